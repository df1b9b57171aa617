"""Draws of hyper-parameters against integrals of their densities, likelihoods as products of urn probabilities."""

import numpy as np
import pytest

from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.inference.sweep import (
    RowTotals,
    draw_alpha,
    draw_eta,
    draw_from_slice,
    draw_gamma,
    draw_kappa,
    draw_strength,
)
from kinfolk.sequences.model.emissions.categorical import Categorical

PRIOR = GammaPrior(2.0, 1.5)
GRID = np.exp(np.linspace(np.log(1e-4), np.log(60.0), 4_000))


def integrated(likelihood):
    """Mean and mean square of the logarithm under prior times likelihood (a function of one value)."""
    log_weight = np.array([PRIOR.shape * np.log(x) - PRIOR.rate * x + np.log(likelihood(x)) for x in GRID])
    weight = np.exp(log_weight - log_weight.max())
    return np.array([np.log(GRID) @ weight, np.log(GRID) ** 2 @ weight]) / weight.sum()


def agrees(draw, likelihood, n_draws=4_000, n_batches=40):
    rng, value, found = np.random.default_rng(0), 1.0, []
    for _ in range(n_draws):
        value = draw(value, rng)
        found.append([np.log(value), np.log(value) ** 2])
    batches = np.array(found).reshape(n_batches, -1, 2).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(n_batches)
    return np.all(np.abs(batches.mean(axis=0) - integrated(likelihood)) < 4 * error)


def urn(counts, weight_of):
    """Probability of a sample with such counts from an urn whose balls come back double; weights by index."""
    total, probability, drawn = sum(weight_of), 1.0, 0
    for count, weight in zip(counts, weight_of, strict=True):
        for i in range(count):
            probability *= (weight + i) / (total + drawn)
            drawn += 1
    return probability


def test_slice_steps_keep_a_distribution_of_two_peaks():
    rng, x, found = np.random.default_rng(1), 0.0, []
    for _ in range(20_000):
        x = draw_from_slice(x, lambda x: np.logaddexp(-0.5 * (x + 2) ** 2, np.log(3) - 0.5 * (x - 2) ** 2), rng)
        found.append(x > 0)
    batches = np.array(found, dtype=float).reshape(40, -1).mean(axis=1)
    # Of N(−2, 1), 2.275% is above zero.
    wanted = 0.25 * 0.0227501 + 0.75 * 0.9772499
    assert abs(batches.mean() - wanted) < 4 * batches.std(ddof=1) / np.sqrt(40)


def test_eta_is_drawn_given_sizes_of_clusters():
    sizes = np.array([4, 0, 1, 2])
    assert agrees(lambda x, rng: draw_eta(x, sizes, PRIOR, rng), lambda x: urn(sizes, np.full(4, x / 4)))


def test_gamma_is_drawn_given_tables():
    tables = np.array([[3, 0, 1], [0, 0, 0], [2, 2, 1]])
    assert agrees(
        lambda x, rng: draw_gamma(x, tables, PRIOR, rng),
        lambda x: np.prod([urn(row, np.full(3, x / 3)) for row in tables]),
    )


COUNTS = np.array([[[2, 0], [3, 1], [0, 4]], [[0, 1], [0, 0], [1, 0]]])


def rows(alpha, kappa):
    """∏ Γ(α + κ_r)/Γ(α + κ_r + n_r) as a product over customers."""
    out = 1.0
    for r, n in ((r, n) for task in COUNTS for r, n in enumerate(task.sum(axis=1))):
        out /= np.prod(alpha + (kappa if r else 0.0) + np.arange(n)) if n else 1.0
    return out


def test_alpha_is_drawn_given_tables():
    totals = RowTotals.of(COUNTS)
    assert agrees(lambda x, rng: draw_alpha(x, 0.7, 5, totals, PRIOR, rng), lambda x: x**5 * rows(x, 0.7))


def test_kappa_is_drawn_given_overrides():
    totals = RowTotals.of(COUNTS)
    assert agrees(lambda x, rng: draw_kappa(x, 0.9, 3, totals, PRIOR, rng), lambda x: x**3 * rows(0.9, x))


def test_strength_is_drawn_given_what_states_emitted():
    codes, states = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 0, 0, 0, 1, 1])
    emission = Categorical(3)
    statistics = emission.statistics((codes,), states, 2)
    assert agrees(
        lambda x, rng: draw_strength(x, statistics, emission, PRIOR, rng),
        lambda x: urn([3, 1, 0], np.full(3, x)) * urn([0, 0, 2], np.full(3, x)),
    )


@pytest.mark.parametrize(("draw", "counts"), [(draw_eta, [3, 1, 0, 2]), (draw_gamma, [[3, 1], [0, 2]])])
def test_a_fixed_number_stays(draw, counts):
    assert draw(1.0, np.array(counts), 0.25, np.random.default_rng(0)) == 0.25
