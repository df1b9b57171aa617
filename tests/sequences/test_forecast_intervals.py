"""Forecasts with intervals: exact on a tiny model, and as often right as they say on made-up data."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from kinfolk import SharedIHMM
from kinfolk.sequences.answers.layout import Channel, Layout
from kinfolk.sequences.answers.predictor import SequencesPredictor
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.tasks.answering import Known
from tests.sequences.test_prediction import keep, random_draw

LEVELS = (0.05, 0.5, 0.95)


@pytest.fixture(scope="module")
def tiny():
    """Two draws of two states that emit numbers, and a layout of one column."""
    emission = GaussianDiagonal(np.zeros(1), np.ones(1), 1.0)
    rng = np.random.default_rng(0)
    draws = [
        random_draw(rng, n_tasks=1, n_clusters=1, emission=emission, n_states=2)._replace(
            parameters=np.array([[[low, 1.0], [high, 4.0]]])
        )
        for low, high in ((-2.0, 3.0), (-1.0, 4.0))
    ]
    known = Known("SharedIHMM", None, 1, None, np.array([0]))
    layout = Layout(None, 1, True, (Channel("gaussian", (0,)),))
    return draws, SequencesPredictor(known, layout, keep(draws, emission, 1))


def enumerated(draws, past, ahead):
    """The distribution of the step so far ahead, a mixture of normal ones: weights, means and deviations."""
    terms = []
    for draw in draws:
        mean, deviation = draw.parameters[0, :, 0], 1.0 / np.sqrt(draw.parameters[0, :, 1])
        for path in itertools.product(range(2), repeat=len(past) + ahead):
            weight, row = 1.0, 0
            for step, state in enumerate(path):
                weight, row = weight * draw.transitions[0, row, state], state + 1
                if step < len(past):
                    weight *= norm.pdf(past[step], mean[state], deviation[state])
            terms.append((weight, mean[path[-1]], deviation[path[-1]]))
    weights, means, deviations = np.array(terms).T
    return weights / weights.sum(), means, deviations


@pytest.mark.parametrize("ahead", [1, 3])
def test_intervals_are_those_of_the_enumerated_mixture(tiny, ahead):
    draws, model = tiny
    past = [-1.5, 3.2]
    found = model.forecast(past, n_steps=ahead, n_samples=4000, quantiles=LEVELS, random_state=0)
    weights, means, deviations = enumerated(draws, past, ahead)
    mean = weights @ means
    assert found.mean[0][0, -1] == pytest.approx(mean, rel=1e-9)
    spread = np.sqrt(weights @ (deviations**2 + means**2) - mean**2)
    assert found.deviation[0][0, -1] == pytest.approx(spread, rel=1e-9)
    # A quantile of draws is the true one of about its level.
    reached = [float(weights @ norm.cdf(x, means, deviations)) for x in found.quantiles[0][0, -1]]
    np.testing.assert_allclose(reached, LEVELS, atol=0.025)


def test_quantiles_that_are_none_get_one_sentence(tiny):
    _, model = tiny
    assert model.forecast([0.0], quantiles=0.5).quantiles[0].shape == (1, 1, 1)
    for wrong in (0.0, [0.5, 1.0], [[0.5]]):
        with pytest.raises(ValueError, match="numbers between 0 and 1 are needed"):
            model.forecast([0.0], quantiles=wrong)


def test_symbols_have_no_quantiles():
    model = SharedIHMM(n_states=2, inference="variational", random_state=0).fit(list("abab") * 5, [20])
    assert model.forecast(list("aba")).quantiles == {}
    with pytest.raises(ValueError, match="columns of symbols alone"):
        model.forecast(list("aba"), quantiles=[0.5])


def made_up(n_sequences, length, rng):
    """Sequences of two sticky states, one low and quiet, one high and loud."""
    states = np.empty((n_sequences, length), dtype=int)
    states[:, 0] = rng.integers(2, size=n_sequences)
    for t in range(1, length):
        states[:, t] = np.where(rng.random(n_sequences) < 0.85, states[:, t - 1], 1 - states[:, t - 1])
    return np.array([0.0, 5.0])[states] + rng.normal(size=states.shape) * np.array([0.5, 1.5])[states]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_intervals_hold_as_much_of_the_future_as_they_say():
    rng = np.random.default_rng(1)
    train, test = made_up(20, 30, rng), made_up(300, 13, rng)
    model = SharedIHMM(n_states=6, n_chains=2, n_burn_in=40, n_draws=10, random_state=0).fit(
        train.reshape(-1, 1), [30] * 20, task=["a", "b"] * 10
    )
    found = model.forecast(
        test[:, :10].reshape(-1, 1),
        [10] * 300,
        task=["a"] * 300,
        n_steps=3,
        n_samples=500,
        quantiles=[0.1, 0.9],
        random_state=0,
    )
    low, high = np.moveaxis(found.quantiles[0], -1, 0)
    held = (low <= test[:, 10:]) & (test[:, 10:] <= high)
    # 80 % of 900, three standard errors about it, those of 300 where a sequence's three steps are as one.
    assert held.mean() == pytest.approx(0.8, abs=3 * np.sqrt(0.8 * 0.2 / 300))
