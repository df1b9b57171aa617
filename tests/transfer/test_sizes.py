"""Weights that depend on how many rows a task has, against a general optimiser and by what they must be."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from kinfolk.transfer.sizes import SizeWeights, choose_sizes, hats
from kinfolk.transfer.weights import by_sizes, by_stacking


@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_weights_by_size_are_the_maximum_that_a_general_optimiser_finds(strength):
    rng = np.random.default_rng(0)
    log_p, counts = np.log(rng.uniform(0.05, 0.95, size=(60, 3))), rng.uniform(0.5, 2.0, size=60)
    shares = np.array([0.2, 0.5, 0.3])
    of_rows = hats(rng.integers(0, 40, 60).astype(float), np.array([0.0, 4.0, 16.0]))

    def loss(free):
        v, *w = (softmax(np.append(each, 0.0)) for each in free.reshape(4, 2))
        w = np.array(w)
        fit = counts @ np.log(np.einsum("is,sm,im->i", of_rows, w, np.exp(log_p)))
        return strength * (w * np.log(w / v)).sum() + v @ np.log(v / shares) - fit

    best = minimize(loss, np.zeros(8), tol=1e-14).x.reshape(4, 2)
    in_common, *of_sizes = (softmax(np.append(each, 0.0)) for each in best)
    found, common = by_sizes(log_p, counts, of_rows, shares, strength)
    assert np.allclose(found, of_sizes, atol=1e-4)
    assert np.allclose(common, in_common, atol=1e-4)


def test_weights_of_two_models_and_two_sizes_are_those_of_a_grid_over_all_weights():
    right, wrong = np.log([0.8, 0.3])
    log_p = np.array([[right, wrong]] * 6 + [[wrong, right]] * 5)
    of_rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], [6, 5], axis=0)
    grid = (np.arange(100) + 0.5) / 100
    v, a, b = np.meshgrid(grid, grid, grid, indexing="ij")

    def divergence(p, q):
        return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))

    fit = 6 * np.log(0.8 * a + 0.3 * (1 - a)) + 5 * np.log(0.3 * b + 0.8 * (1 - b))
    value = fit - divergence(a, v) - divergence(b, v) - divergence(v, 0.5)
    place = np.unravel_index(value.argmax(), value.shape)
    found, common = by_sizes(log_p, np.ones(11), of_rows, np.array([0.5, 0.5]), strength=1.0)
    assert np.allclose([common[0], *found[:, 0]], [grid[k] for k in place], atol=0.012)


def test_a_size_that_no_row_tells_of_has_what_all_sizes_have_in_common():
    log_p = np.log(np.random.default_rng(1).uniform(0.05, 0.95, size=(30, 3)))
    of_rows = np.column_stack([np.zeros(30), np.ones(30)])
    found, common = by_sizes(log_p, np.ones(30), of_rows, np.full(3, 1 / 3))
    assert np.allclose(found[0], common, atol=1e-6)


def test_sizes_that_are_tied_have_the_weights_of_plain_stacking():
    rng = np.random.default_rng(2)
    log_p, shares = np.log(rng.uniform(0.05, 0.95, size=(80, 3))), np.array([0.1, 0.6, 0.3])
    of_rows = hats(rng.integers(1, 60, 80).astype(float), np.array([2.0, 16.0]))
    found, _ = by_sizes(log_p, np.ones(80), of_rows, shares, strength=1e6)
    assert np.allclose(found, by_stacking(log_p, np.ones(80), shares), atol=1e-3)


def test_weights_between_two_sizes_lie_on_a_line_over_the_logarithm_and_add_up_to_one():
    weights = SizeWeights(np.array([0.0, 4.0, 64.0]), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]))
    found = weights.of(np.array([0.0, 1.0, 4.0, 16.0, 64.0, 1000.0]))
    assert np.allclose(found[:, 0], [0.2, 0.5, 0.5, 0.7, 0.9, 0.9])
    assert np.allclose(found.sum(axis=1), 1.0)


def test_tasks_of_one_size_have_one_size_beside_that_of_new_tasks():
    assert choose_sizes(np.array([0.0, 8.0, 8.0, 7.0])).tolist() == [0.0, 8.0]
    assert choose_sizes(np.zeros(3)).tolist() == [0.0]


def test_sizes_are_a_factor_of_four_apart_or_more_and_six_at_most():
    assert choose_sizes(np.repeat([1.0, 20.0], 50)) == pytest.approx([0.0, 1.0, 20**0.5, 20.0])
    assert choose_sizes(np.repeat([1.0, 1e6], 50)) == pytest.approx([0.0, 1.0, 10**1.5, 1e3, 10**4.5, 1e6])
