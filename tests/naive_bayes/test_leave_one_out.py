"""Leaving a row out in closed form gives what fitting without that row gives."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB
from kinfolk.naive_bayes.leave_one_out import LeftOut, learn_temper

RNG = np.random.default_rng(0)
N_ROWS, N_TASKS = 36, 4
TASK = np.repeat(np.arange(N_TASKS), N_ROWS // N_TASKS)
Y = RNG.integers(2, size=N_ROWS)
X = np.column_stack([(Y + RNG.integers(2, size=N_ROWS)) % 3, (Y * TASK + RNG.integers(2, size=N_ROWS)) % 2])
X = X.astype(object).astype(str)
PLAIN = {"label_prior": 1.5, "feature_prior": 0.7, "temper": 1.0}


def refitted(model, i):
    """Log probabilities of row i's labels from a fit to all the others."""
    others = np.arange(N_ROWS) != i
    model.fit(X[others], Y[others], task=TASK[others])
    return model.predict_log_proba(X[i : i + 1], task=TASK[i : i + 1])[0]


@pytest.mark.parametrize(
    "model",
    [
        NoSharingNB(**PLAIN),
        CompleteSharingNB(**PLAIN),
        CompleteSharingNB(share_labels=False, **PLAIN),
        ClusteredNB(inference="exact", **PLAIN),
    ],
    ids=["none", "complete", "complete with own labels", "clustered"],
)
def test_what_is_said_of_a_row_left_out_is_what_a_fit_without_it_says(model):
    model.fit(X, Y, task=TASK)
    found = model._left_out(model._rows).log_predictive(np.ones(2))
    assert np.allclose(found, [refitted(model, i) for i in range(N_ROWS)], atol=1e-10)


def test_a_row_of_weight_two_is_two_rows_of_which_one_is_taken_out():
    weights = RNG.integers(1, 3, size=N_ROWS)
    weighted = NoSharingNB(**PLAIN).fit(X, Y, task=TASK, sample_weight=weights)
    repeated = NoSharingNB(**PLAIN).fit(
        *(np.repeat(part, weights, axis=0) for part in (X, Y)), task=TASK.repeat(weights)
    )
    one, other = (model._left_out(model._rows).score(np.ones(2))[0] for model in (weighted, repeated))
    assert one == pytest.approx(other)


def test_a_learnt_prior_loses_the_vote_of_the_row_too():
    """Tasks of one row each, all alike by chance: with its own vote counted a row would predict itself."""
    n = 200
    x, y = RNG.integers(8, size=(n, 1)).astype(str), RNG.integers(2, size=n)
    model = NoSharingNB(feature_prior="learn", label_prior=20.0, temper=1.0).fit(x, y, task=np.arange(n))
    of_chance = -np.log(2.0) * n
    honest = model._left_out(model._rows).score(np.ones(1))[0]
    model._votes = None
    flattered = model._left_out(model._rows).score(np.ones(1))[0]
    assert honest < of_chance < flattered


@pytest.mark.parametrize("averaged", [False, True])
def test_the_slope_of_the_score_is_its_derivative(averaged):
    model = ClusteredNB(**PLAIN).fit(X, Y, task=TASK)
    left_out = model._left_out(model._rows)
    at = np.array([0.3, 0.8])
    error = check_grad(lambda p: left_out.score(p, averaged)[0], lambda p: left_out.score(p, averaged)[1], at)
    assert error < 1e-5 * np.linalg.norm(left_out.score(at, averaged)[1])


def test_features_that_tell_the_same_twice_get_half_the_power_each():
    """Ten copies of one feature count it ten times; their powers together should be that of one."""
    n = 600
    y = RNG.integers(2, size=n)
    x = np.where(RNG.random(n) < 0.75, y, 1 - y)
    once = CompleteSharingNB(temper="learn").fit(x[:, None].astype(str), y)
    often = CompleteSharingNB(temper="learn").fit(np.repeat(x[:, None], 10, axis=1).astype(str), y)
    assert once.temper_.sum() == pytest.approx(often.temper_.sum(), rel=0.1)
    assert often.temper_.max() < 0.2


def test_a_feature_of_noise_gets_a_lower_power_than_one_that_tells():
    n = 2000
    y = RNG.integers(2, size=n)
    x = np.column_stack([np.where(RNG.random(n) < 0.8, y, 1 - y), RNG.integers(30, size=n), RNG.integers(30, size=n)])
    tells, *noise = NoSharingNB(temper="learn", feature_prior=1.0).fit(x.astype(str), y, task=np.arange(n) % 20).temper_
    assert tells > 0.7
    assert max(noise) < 0.4


def test_powers_maximise_the_penalised_score():
    rng = np.random.default_rng(1)
    n = 50
    left_out = LeftOut(
        np.arange(n + 1),
        np.zeros(n),
        rng.normal(size=(n, 2, 2)),
        np.full((n, 2), np.log(0.5)),
        rng.integers(2, size=n).astype(np.int32),
        np.ones(n),
    )
    best = learn_temper(left_out)
    grid = np.linspace(0.0, 2.0, 81)
    scores = [left_out.score(np.array([a, b]))[0] - 5.0 * (a - b) ** 2 for a in grid for b in grid]
    a, b = divmod(int(np.argmax(scores)), len(grid))
    assert np.allclose(best, [grid[a], grid[b]], atol=0.03)


def test_the_prototype_model_left_out_is_close_to_a_fit_without_the_row():
    """Strengths are not inferred anew, so that it is close only."""
    prototype = PrototypeNB(label_prior=1.5, temper=1.0, random_state=0)
    found = prototype.fit(X, Y, task=TASK)._left_out(prototype._rows).log_predictive(np.ones(2))[::6]
    truth = [refitted(prototype, i) for i in range(0, N_ROWS, 6)]
    assert np.abs(np.exp(found) - np.exp(truth)).max() < 0.1
