"""Leaving a row out in closed form gives what fitting without that row gives."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.metrics import log_loss

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB
from kinfolk.datasets.meetings import make_meetings
from kinfolk.maths.dirichlet import log_marginals
from kinfolk.naive_bayes.inference import leave_one_out
from kinfolk.naive_bayes.inference.fitting import LeftOut, learn_temper
from kinfolk.naive_bayes.inference.leave_one_out import _losses, reseat
from kinfolk.tasks.selection.splitters import FewPerTask
from tests.naive_bayes.posed import posed_to

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
    found = model._leave_out(model._result.rows).log_predictive(np.ones(2))
    assert np.allclose(found, [refitted(model, i) for i in range(N_ROWS)], atol=1e-10)


def test_a_row_of_weight_two_is_two_rows_of_which_one_is_taken_out():
    weights = RNG.integers(1, 3, size=N_ROWS)
    weighted = NoSharingNB(**PLAIN).fit(X, Y, task=TASK, sample_weight=weights)
    repeated = NoSharingNB(**PLAIN).fit(
        *(np.repeat(part, weights, axis=0) for part in (X, Y)), task=TASK.repeat(weights)
    )
    one, other = (model._leave_out(model._result.rows).score(np.ones(2))[0] for model in (weighted, repeated))
    assert one == pytest.approx(other)


def test_a_learnt_prior_loses_the_vote_of_the_row_too():
    """Tasks of one row each, all alike by chance: with its own vote counted a row would predict itself."""
    n = 200
    x, y = RNG.integers(8, size=(n, 1)).astype(str), RNG.integers(2, size=n)
    model = NoSharingNB(feature_prior="learn", label_prior=20.0, temper=1.0).fit(x, y, task=np.arange(n))
    of_chance = -np.log(2.0) * n
    honest = model._leave_out(model._result.rows).score(np.ones(1))[0]
    model._result = model._result._replace(hyper=model._result.hyper._replace(votes=None))
    flattered = model._leave_out(model._result.rows).score(np.ones(1))[0]
    assert honest < of_chance < flattered


def test_a_prior_that_all_tasks_share_loses_about_what_learning_it_without_the_row_takes():
    x, y = RNG.integers(6, size=(N_ROWS, 1)).astype(str), RNG.integers(2, size=N_ROWS)
    model = CompleteSharingNB(share_labels=False)

    def rates(rows):
        prior = model.fit(x[rows], y[rows], task=TASK[rows])._result.hyper.common.pseudo_counts
        return prior / prior.sum() * 2

    before = rates(np.ones(N_ROWS, dtype=bool))
    posed, rows = posed_to(model), model._result.rows
    lost = _losses(*posed, rows, np.ones(N_ROWS))[:, 0] * 2 / posed.hyper.common.pseudo_counts.sum()
    code = rows.codes[:, 0]
    truth = np.array([before[code[i]] - rates(np.arange(N_ROWS) != i)[code[i]] for i in range(N_ROWS)])
    assert (lost > 0.0).all()
    np.testing.assert_allclose(lost, truth, rtol=0.25)


@pytest.mark.parametrize("model", [CompleteSharingNB(share_labels=False), PrototypeNB(random_state=0)], ids=repr)
def test_a_prior_that_all_tasks_share_loses_the_row_for_every_label(model, monkeypatch):
    """Taken out of the prior for its own label alone, a row's values would speak for the other."""
    n = 60
    x, y = RNG.integers(40, size=(n, 3)).astype(str), RNG.integers(2, size=n)
    model.set_params(label_prior=20.0, temper=1.0).fit(x, y, task=np.arange(n) % 6)
    honest = model._leave_out(model._result.rows)
    monkeypatch.setattr("kinfolk.naive_bayes.inference.leave_one_out._losses", lambda *_: np.zeros((n, 3)))
    flattered = model._leave_out(model._result.rows)
    own = np.arange(n), slice(None), y
    other = np.arange(n), slice(None), 1 - y
    assert (honest.log_fit[own] < flattered.log_fit[own]).all()
    assert (honest.log_fit[other] < flattered.log_fit[other]).all()
    assert honest.score(np.ones(3))[0] < flattered.score(np.ones(3))[0]


@pytest.mark.parametrize("averaged", [False, True])
def test_the_slope_of_the_score_is_its_derivative(averaged):
    model = ClusteredNB(**PLAIN).fit(X, Y, task=TASK)
    left_out = model._leave_out(model._result.rows)
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
    found = prototype.fit(X, Y, task=TASK)._leave_out(prototype._result.rows).log_predictive(np.ones(2))[::6]
    truth = [refitted(prototype, i) for i in range(0, N_ROWS, 6)]
    assert np.abs(np.exp(found) - np.exp(truth)).max() < 0.1


@pytest.mark.parametrize("inference", ["bhc", "gibbs", "variational"])
def test_of_two_tasks_the_seats_are_all_that_there_are(inference):
    """Of two tasks, the one taken out may join the other or not: the sum over partitions is exact."""
    two = TASK < 2
    exact, model = (
        ClusteredNB(inference=way, random_state=0, concentration=0.7, **PLAIN).fit(X[two], Y[two], task=TASK[two])
        for way in ("exact", inference)
    )
    found, expected = (one._leave_out(one._result.rows).log_predictive(np.ones(2)) for one in (model, exact))
    assert np.allclose(found, expected, atol=1e-10)


def test_of_many_tasks_the_seats_are_those_of_the_restaurant():
    """A task joins by the ratio of what it and the cluster together, and the cluster alone, make probable."""
    model = ClusteredNB(inference="bhc", concentration=0.7, **PLAIN).fit(X, Y, task=TASK)
    partition = np.array([0, 0, 1, 2])
    seats = reseat(*posed_to(model), partition, np.array([1, 3]))
    assert np.diff(seats.start).tolist() == [0, 4, 0, 3]

    product, counts = posed_to(model).product(), model._result.data.statistics.feature_counts

    def log_features(*tasks):
        """Log probability of the features of some tasks that share everything, given their labels."""
        return log_marginals(counts[list(tasks)].sum(axis=0, keepdims=True), product)[0]

    of_one = {"0": log_features(0, 1) - log_features(0), "2": log_features(2, 1) - log_features(2)}
    of_one |= {"3": log_features(3, 1) - log_features(3), "alone": log_features(1) + np.log(0.7)}
    expected = np.sort(np.array(list(of_one.values())))
    found = np.sort(seats.log_weight[:4])
    assert np.allclose(found - found[0], expected - expected[0])
    assert np.exp(found).sum() == pytest.approx(1.0)


def test_seats_that_are_kept_of_many_weigh_one_together(monkeypatch):
    monkeypatch.setattr(leave_one_out, "_MAX_SEATS", 2)
    model = ClusteredNB(inference="bhc", concentration=0.7, **PLAIN).fit(X, Y, task=TASK)
    seats = reseat(*posed_to(model), np.array([0, 0, 1, 2]), np.array([1]))
    assert len(seats.log_weight) == 2
    assert np.exp(seats.log_weight).sum() == pytest.approx(1.0)


def test_powers_learnt_from_one_row_a_task_predict_no_worse_than_label_rates_alone():
    """Clusters gather rows that look alike: had the row left out chosen its cluster, powers would come out too high."""
    meetings = make_meetings(random_state=0)
    losses = {}
    for train, test in FewPerTask(1, 2, random_state=0).split(meetings.data, meetings.target, task=meetings.task):
        for temper in ("learn", 0.0):
            model = ClusteredNB(temper=temper).fit(
                meetings.data[train], meetings.target[train], task=meetings.task[train]
            )
            proba = model.predict_proba(meetings.data[test], task=meetings.task[test])
            losses.setdefault(temper, []).append(log_loss(meetings.target[test], proba, labels=model.classes_))
    assert np.mean(losses["learn"]) < np.mean(losses[0.0]) + 0.05
