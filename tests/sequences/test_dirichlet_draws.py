"""Dirichlet rows drawn in kernels, against published random numbers, exact marginals and means."""

import numpy as np
import pytest
from scipy.stats import beta, kstest

from kinfolk.sequences.model.dirichlet_draws import _next_uniform, draw_dirichlet, draw_transitions

# The first numbers of xoshiro256++ from the state 1, 2, 3, 4, as its authors' program prints them.
PUBLISHED = [
    41943041,
    58720359,
    3588806011781223,
    3591011842654386,
    9228616714210784205,
    9973669472204895162,
    14011001112246962877,
    12406186145184390807,
    15849039046786891736,
    10450023813501588000,
]


def test_random_numbers_are_the_published_ones_of_xoshiro256_plus_plus():
    state = np.arange(1, 5, dtype=np.uint64)
    drawn = [_next_uniform(state) for _ in PUBLISHED]
    assert drawn == [((number >> 11) + 0.5) / 2**53 for number in PUBLISHED]


@pytest.mark.parametrize(
    "shapes", [[0.05, 0.3, 0.9], [1.0, 1.0, 1.0], [2.5, 40.0, 0.01], [1e-3, 2e-3, 1e-3], [0.7, 5.0]]
)
def test_shares_have_the_beta_distributions_that_are_marginals_of_a_dirichlet(shapes):
    shares = draw_dirichlet(np.tile(shapes, (20_000, 1)), np.random.default_rng(0))
    assert shares.sum(axis=1) == pytest.approx(1.0)
    for place, shape in enumerate(shapes):
        exact = beta(shape, sum(shapes) - shape)
        # What is below the least of floats, or next to one, is not told apart.
        inside = (shares[:, place] > 1e-12) & (shares[:, place] < 1.0 - 1e-12)
        low, high = exact.cdf(1e-12), exact.cdf(1.0 - 1e-12)
        assert abs(inside.mean() - (high - low)) < 0.015
        if inside.sum() > 500:
            held = kstest(shares[inside, place], lambda x, e=exact, a=low, b=high: (e.cdf(x) - a) / (b - a))
            assert held.pvalue > 1e-4


def test_shares_of_a_row_are_as_correlated_as_those_of_a_dirichlet():
    shapes = np.array([0.4, 1.5, 3.0])
    shares = draw_dirichlet(np.tile(shapes, (40_000, 1)), np.random.default_rng(1))
    mean = shapes / shapes.sum()
    exact = (np.diag(mean) - np.outer(mean, mean)) / (shapes.sum() + 1.0)
    np.testing.assert_allclose(np.cov(shares.T), exact, atol=0.002)


def test_rows_of_states_that_no_path_gets_to_are_zero_and_all_others_are_drawn():
    weights = np.array([1e-4, 5.0, 1e-4, 1e-4])
    rows = draw_transitions(np.tile(weights, (200, 1)), 0.0, np.zeros((5, 4)), np.random.default_rng(3), reachable=True)
    for task in rows:
        got_to, waiting = {0}, [0]
        while waiting:
            more = {state + 1 for state in np.flatnonzero(task[waiting.pop()]).tolist()} - got_to
            got_to |= more
            waiting += more
        for row in range(5):
            assert task[row].sum() == pytest.approx(1.0 if row in got_to else 0.0)
