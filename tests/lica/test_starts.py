"""Where empirical Bayes starts: on documents whose tasks have sources and no mean in common, and where tasks agree."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import kinfolk
from kinfolk.datasets import make_lica_documents
from kinfolk.lica.inference import starts
from kinfolk.lica.inference.eb import fit_empirical_bayes
from kinfolk.lica.inference.starts import STARTS, Start, choose_start
from kinfolk.lica.model.data import make_linear_tasks

N_TASKS, N_TRAIN, N_ROWS = 16, 40, 100
# Loadings under a prior that leaves them nothing: the mean has to explain all, and the noise goes to zero behind it.
BAD = Start(True, 1.0, 1e-3)


@pytest.fixture(scope="module")
def documents():
    made = make_lica_documents(N_TASKS, 600, N_ROWS, 3, n_topics=20, random_state=3)
    return made, np.tile(np.arange(N_ROWS) < N_TRAIN, N_TASKS)


def as_tasks(made, train):
    rows = [np.flatnonzero(train & (made.task == k)) for k in range(N_TASKS)]
    return make_linear_tasks(made.X, rows, [2.0 * made.y[row] - 1.0 for row in rows])


def auc(model, made, test):
    score = model.predict_proba(made.X[test], task=made.task[test])[:, 1]
    y, task = made.y[test], made.task[test]
    return np.mean([roc_auc_score(y[task == k], score[task == k]) for k in range(N_TASKS)])


@pytest.mark.parametrize("inference", ["eb", "map"])
def test_documents_of_tasks_with_sources_are_told_apart_better_than_by_tasks_alone(documents, inference):
    made, train = documents
    found = {}
    for sharing in ("individual", "sources"):
        model = kinfolk.LICAClassifier(3, inference=inference, sharing=sharing, random_state=0)
        found[sharing] = auc(model.fit(made.X[train], made.y[train], task=made.task[train]), made, ~train)
    assert found["sources"] > found["individual"] + 0.02
    assert not model.common_weights_.any()


def test_a_start_that_ends_at_a_coin_is_abandoned(documents):
    data = as_tasks(*documents)
    ended = fit_empirical_bayes(data, link="logistic", n_sources=3, **BAD._asdict())
    assert np.mean(ended.prior.noise) < 0.1  # what a task has of its own is lost: 600 words of unit rows
    assert choose_start(data, "logistic", n_sources=3, shared_mean=True, starts=(BAD, *STARTS[1:])) != BAD


def test_tasks_that_agree_start_with_their_mean(documents):
    made, train = documents
    data = as_tasks(made._replace(y=(made.X @ made.weights[0] > 0).astype(int)), train)
    assert choose_start(data, "logistic", n_sources=3, shared_mean=True, noise="diagonal") == STARTS[0]


def test_starts_are_compared_on_some_hundreds_of_tasks_however_many_there_are(monkeypatch):
    rng = np.random.default_rng(4)
    n_tasks = 3 * starts._MOST_TASKS
    X, rows = rng.normal(size=(6 * n_tasks, 3)), np.arange(6 * n_tasks).reshape(n_tasks, 6)
    data = make_linear_tasks(X, rows, [np.where(X[row] @ np.ones(3) > 0, 1.0, -1.0) for row in rows])
    seen = []

    def fit_and_tell(part, *given, **named):
        seen.append(len(part.rows))
        return fit_empirical_bayes(part, *given, **named)

    monkeypatch.setattr(starts, "fit_empirical_bayes", fit_and_tell)
    assert choose_start(data, "logistic", n_sources=2, shared_mean=True) == STARTS[0]  # all tasks agree
    assert set(seen) == {starts._MOST_TASKS}


@pytest.mark.parametrize(
    ("ahead", "chosen"),
    [([4.0], 1), ([-1.0], 0), ([0.0], 0), ([2.0, 2.0], 1), ([2.0, -3.0], 0), ([1.0, 0.5, 1.0, 0.4], 0)],
)
def test_where_one_part_of_the_rows_does_not_tell_the_next_is_asked(monkeypatch, documents, ahead, chosen):
    said, parts = list(ahead), []

    def say(fold, *_):
        parts.append(fold)
        return np.array([0.0, said.pop(0)])

    monkeypatch.setattr(starts, "_said", say)
    assert choose_start(as_tasks(*documents), "logistic", n_sources=3, shared_mean=True) == STARTS[chosen]
    assert not said
    held_out = np.concatenate([row for fold in parts for row in fold.judged.rows])
    assert len(set(held_out.tolist())) == len(held_out)  # each part is held out once


def test_no_start_has_a_mean_where_none_is_allowed(documents):
    data = as_tasks(*documents)
    assert not choose_start(data, "logistic", n_sources=1, shared_mean=False).shared_mean
    lone = make_linear_tasks([[1.0]], [[0]], [[1.0]])  # no row can be held out
    assert choose_start(lone, "logistic", n_sources=1, shared_mean=False) == Start(False)


def test_the_same_seed_gives_the_same_fit(documents):
    made, train = documents
    fits = [
        kinfolk.LICAClassifier(2, random_state=5, n_jobs=n).fit(made.X[train], made.y[train], task=made.task[train])
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize("inference", ["eb", "map"])
def test_a_warm_start_does_not_take_up_a_mean_that_was_of_no_use(documents, inference):
    made, train = documents
    model = kinfolk.LICAClassifier(3, inference=inference, warm_start=True, random_state=0)
    for _ in range(2):
        model.fit(made.X[train], made.y[train], task=made.task[train])
        assert not model.common_weights_.any()


def test_tasks_that_are_alike_keep_their_mean_for_new_ones_however_surely_labels_are_told():
    """Labels without noise are predicted better under wide variances; without a mean, new tasks would get a coin."""
    codes, task = np.random.default_rng(0).integers(0, 5, (180, 5)), np.repeat(["a", "b", "c"], 60)
    X, y = np.eye(5)[codes].reshape(180, -1), (codes[:, 0] > 0) & (codes[:, 1] > 0)
    model = kinfolk.LICAClassifier(1, random_state=0, verbose=False, new_tasks="expected").fit(X, y, task=task)
    for name in ("a", "new"):
        accepts = model.predict_proba(X, task=np.full(180, name))[:, 1]
        assert np.mean((accepts > 0.5) == y) > 0.95
