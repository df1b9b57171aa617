"""Task-aware scores against the same metrics computed by hand, directly and inside scikit-learn's own tools."""

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    get_scorer,
    log_loss,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from kinfolk.tasks.selection.scorers import task_scorer
from kinfolk.tasks.selection.splitters import TaskKFold


def routing():
    return sklearn.config_context(enable_metadata_routing=True)


class LabelsByTask(ClassifierMixin, BaseEstimator):
    """P(label | first feature, task), by smoothed counts; it refuses to predict without a task."""

    __metadata_request__fit: ClassVar = {"task": True}
    __metadata_request__predict: ClassVar = {"task": True}
    __metadata_request__predict_proba: ClassVar = {"task": True}

    def __init__(self, smoothing=1.0, task_column=None):
        self.smoothing = smoothing
        self.task_column = task_column

    def _keys(self, X, task):
        if self.task_column is not None:
            task = X[self.task_column]
        if task is None:
            raise ValueError("no task")
        first = np.asarray(X)[:, 0]
        assert len(task) == len(first)
        return list(zip(np.asarray(task).tolist(), first.tolist(), strict=True))

    def fit(self, X, y, task=None, sample_weight=None):
        known = [(key, label) for key, label in zip(self._keys(X, task), y, strict=True) if label == label]
        known = [(key, label) for key, label in known if label is not None]
        self.classes_ = np.unique([label for _, label in known])
        self.counts_ = {}
        for key, label in known:
            counts = self.counts_.setdefault(key, np.full(len(self.classes_), float(self.smoothing)))
            counts[np.searchsorted(self.classes_, label)] += 1
        self.n_calls_ = [0]
        return self

    def predict_proba(self, X, task=None):
        self.n_calls_[0] += 1
        unknown = np.ones(len(self.classes_))
        counts = np.array([self.counts_.get(key, unknown) for key in self._keys(X, task)])
        return counts / counts.sum(axis=1, keepdims=True)

    def predict(self, X, task=None):
        return self.classes_[self.predict_proba(X, task).argmax(axis=1)]


def meetings(n_rows=200, seed=0):
    """Three users: ann goes by the feature, bob against it, and cat says yes to everything."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n_rows, 1))
    task = rng.choice(["ann", "bob", "cat"], n_rows, p=[0.5, 0.3, 0.2])
    agrees = X[:, 0] + rng.normal(size=n_rows) > 1
    y = np.where(task == "ann", agrees, np.where(task == "bob", ~agrees, True)).astype(int)
    return X, y, task


@pytest.fixture
def fitted():
    X, y, task = meetings()
    return LabelsByTask().fit(X, y, task=task)


METRICS = {
    "accuracy": lambda y, p: accuracy_score(y, p > 0.5),
    "roc_auc": roc_auc_score,
    "average_precision": average_precision_score,
    "neg_log_loss": lambda y, p: -log_loss(y, p, labels=[0, 1]),
    "neg_brier_score": lambda y, p: -brier_score_loss(y, p, pos_label=1),
}
NEED_BOTH_CLASSES = {"roc_auc", "average_precision"}


@pytest.mark.parametrize("name", METRICS)
def test_the_task_reaches_the_estimator(fitted, name):
    X, y, task = meetings(seed=1)
    expected = METRICS[name](y, fitted.predict_proba(X, task=task)[:, 1])
    assert task_scorer(name)(fitted, X, y, task=task) == pytest.approx(expected)


@pytest.mark.parametrize("name", METRICS)
def test_per_task_gives_the_plain_mean_over_the_tasks_where_the_score_exists(fitted, name):
    X, y, task = meetings(seed=1)
    proba = fitted.predict_proba(X, task=task)[:, 1]
    users = ["ann", "bob"] if name in NEED_BOTH_CLASSES else ["ann", "bob", "cat"]
    expected = np.mean([METRICS[name](y[task == user], proba[task == user]) for user in users])
    assert task_scorer(name, per_task=True)(fitted, X, y, task=task) == pytest.approx(expected)


def test_per_task_area_with_three_classes_needs_all_three_in_a_task():
    rng = np.random.default_rng(0)
    X, task = rng.integers(0, 4, (300, 1)), rng.choice(list("ab"), 300)
    y = np.where(task == "a", (X[:, 0] + rng.integers(0, 2, 300)) % 3, X[:, 0] % 2)
    model = LabelsByTask().fit(X, y, task=task)
    expected = roc_auc_score(y[task == "a"], model.predict_proba(X, task=task)[task == "a"], multi_class="ovr")
    assert task_scorer("roc_auc_ovr", per_task=True)(model, X, y, task=task) == pytest.approx(expected)


@pytest.mark.parametrize("per_task", [True, False])
def test_a_test_set_that_lacks_a_class_has_a_log_loss(fitted, per_task):
    X, y, task = meetings(seed=1)
    only = (task == "cat") & (y == 1)
    expected = np.log(fitted.predict_proba(X[only], task=task[only])[:, 1]).mean()
    found = task_scorer("neg_log_loss", per_task=per_task)(fitted, X[only], y[only], task=task[only])
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("missing", "unlabelled"), [(None, None), (np.nan, None), (pd.NA, None), (-1, -1)], ids=str)
@pytest.mark.parametrize("per_task", [True, False])
def test_rows_without_a_label_are_left_out_of_the_score(fitted, missing, unlabelled, per_task):
    X, y, task = meetings(seed=1)
    known = np.arange(len(y)) % 3 > 0
    with_gaps = y.astype(object)
    with_gaps[~known] = missing
    for name in METRICS:
        scorer = task_scorer(name, per_task=per_task, unlabelled=unlabelled)
        expected = scorer(fitted, X[known], y[known], task=task[known])
        assert scorer(fitted, X, with_gaps, task=task) == pytest.approx(expected)


def test_min_rows_leaves_small_tasks_out_of_the_mean():
    majority = DummyClassifier(strategy="constant", constant=1).fit(np.zeros((2, 1)), [0, 1])
    X, y, task = np.zeros((5, 1)), [1, 1, 0, 1, 0], list("aaabb")
    assert task_scorer("accuracy", per_task=True)(majority, X, y, task=task) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert task_scorer("accuracy", per_task=True, min_rows=3)(majority, X, y, task=task) == pytest.approx(2 / 3)


def test_rows_without_a_label_do_not_count_towards_min_rows():
    majority = DummyClassifier(strategy="constant", constant=1).fit(np.zeros((2, 1)), [0, 1])
    scorer = task_scorer("accuracy", per_task=True, min_rows=2)
    assert scorer(majority, np.zeros((4, 1)), [1, 1, 0, None], task=list("aabb")) == 1.0


def test_a_score_that_exists_for_no_task_is_nan_with_a_warning(fitted):
    with pytest.warns(UndefinedMetricWarning, match="none of the 2 tasks"):
        score = task_scorer("roc_auc", per_task=True)(fitted, [[0], [1]], [0, 1], task=["ann", "bob"])
    assert np.isnan(score)


def test_tasks_for_which_a_scorer_of_ones_own_says_nan_are_left_out(fitted):
    def recall_of_no(y_true, y_pred):
        return np.mean(y_pred[y_true == 0] == 0) if (y_true == 0).any() else np.nan

    X, y, task = meetings(seed=1)
    predicted = fitted.predict(X, task=task)
    expected = np.mean([recall_of_no(y[task == user], predicted[task == user]) for user in ("ann", "bob")])
    assert task_scorer(make_scorer(recall_of_no), per_task=True)(fitted, X, y, task=task) == pytest.approx(expected)


def test_the_estimator_predicts_once_however_many_tasks_there_are(fitted):
    X, y, task = meetings(seed=1)
    fitted.n_calls_[0] = 0
    task_scorer("neg_log_loss", per_task=True)(fitted, X, y, task=task)
    assert fitted.n_calls_[0] == 1


def test_a_scorer_written_by_hand_sees_the_estimator_with_the_task_known(fitted):
    def by_hand(estimator, X, y):
        assert isinstance(estimator, LabelsByTask)
        assert is_classifier(estimator)
        check_is_fitted(estimator)
        return estimator.score(X, y)

    X, y, task = meetings(seed=1)
    expected = np.mean(fitted.predict(X, task=task) == y)
    assert task_scorer(by_hand)(fitted, X, y, task=task) == pytest.approx(expected)


def test_scoring_leaves_the_estimator_as_it_was(fitted):
    X, y, task = meetings(seed=1)
    before = set(vars(fitted))
    task_scorer("roc_auc", per_task=True)(fitted, X, y, task=task)
    assert set(vars(fitted)) == before


def test_a_scorer_that_predicts_other_rows_than_it_was_given_is_refused(fitted):
    X, y, task = meetings(seed=1)
    with pytest.raises(ValueError, match="must call predict on the very X"):
        task_scorer(lambda estimator, X, y: estimator.predict(X[:5]).mean())(fitted, X, y, task=task)


def test_weights_are_passed_on_and_follow_their_rows():
    majority = DummyClassifier(strategy="constant", constant=1).fit(np.zeros((2, 1)), [0, 1])
    X, y, task, weights = np.zeros((5, 1)), [1, 0, None, 1, 0], list("aaabb"), np.array([3.0, 1.0, 9.0, 1.0, 1.0])
    assert task_scorer("accuracy")(majority, X, y, task=task, sample_weight=weights) == pytest.approx(4 / 6)
    per_task = task_scorer("accuracy", per_task=True)
    assert per_task(majority, X, y, task=task, sample_weight=weights) == pytest.approx((3 / 4 + 1 / 2) / 2)


def by_hand_cross_validation(X, y, task, splitter, metric):
    scores = []
    for train, test in splitter.split(X, y, task=task):
        model = LabelsByTask().fit(X[train], y[train], task=task[train])
        scores.append(metric(y[test], model.predict_proba(X[test], task=task[test])[:, 1]))
    return scores


@pytest.mark.parametrize("name", METRICS)
def test_cross_validate_routes_the_task_without_being_told_to(name):
    X, y, task = meetings()
    splitter = TaskKFold(4, random_state=0)
    with routing():
        found = cross_validate(
            LabelsByTask(), X, y, cv=splitter, scoring=task_scorer(name), params={"task": task}, error_score="raise"
        )
    assert found["test_score"] == pytest.approx(by_hand_cross_validation(X, y, task, splitter, METRICS[name]))


def test_cross_validate_scores_labelled_rows_and_trains_with_all():
    X, y, task = meetings()
    y = y.astype(object)
    y[::4] = None
    scoring = {"area": task_scorer("roc_auc", per_task=True), "loss": task_scorer("neg_log_loss")}
    with routing():
        found = cross_validate(
            LabelsByTask(),
            X,
            y,
            cv=TaskKFold(4, random_state=0),
            scoring=scoring,
            params={"task": task},
            return_train_score=True,
            error_score="raise",
        )
    expected = by_hand_cross_validation(
        X, y, task, TaskKFold(4, random_state=0), lambda y, p: METRICS["neg_log_loss"](y.astype(int), p)
    )
    assert found["test_loss"] == pytest.approx(expected)
    assert np.isfinite(found["train_area"]).all()


def test_grid_search_finds_the_smoothing_that_predicts_best_and_scores_by_task():
    X, y, task = meetings()
    scorer = task_scorer("neg_log_loss", per_task=True)
    with routing():
        search = GridSearchCV(
            LabelsByTask(), {"smoothing": [1.0, 1000.0]}, scoring=scorer, cv=TaskKFold(4, random_state=0)
        ).fit(X, y, task=task)
        assert search.best_params_ == {"smoothing": 1.0}
        assert search.score(X, y, task=task) == pytest.approx(scorer(search.best_estimator_, X, y, task=task))


def test_a_search_can_itself_be_cross_validated():
    X, y, task = meetings()
    splitter = TaskKFold(3, random_state=0)
    scorer = task_scorer("roc_auc")
    with routing():
        search = GridSearchCV(LabelsByTask(), {"smoothing": [1.0]}, scoring=scorer, cv=splitter)
        found = cross_validate(search, X, y, cv=splitter, scoring=scorer, params={"task": task}, error_score="raise")
    assert found["test_score"] == pytest.approx(by_hand_cross_validation(X, y, task, splitter, roc_auc_score))


@pytest.mark.parametrize("enabled", [True, False])
def test_a_pipeline_passes_the_task_to_its_last_step(fitted, enabled):
    X, y, task = meetings(seed=1)
    pipeline = make_pipeline(FunctionTransformer(), fitted)
    with sklearn.config_context(enable_metadata_routing=enabled):
        found = task_scorer("roc_auc")(pipeline, X, y, task=task)
    assert found == pytest.approx(roc_auc_score(y, fitted.predict_proba(X, task=task)[:, 1]))


@pytest.mark.parametrize("baseline", [LogisticRegression(), make_pipeline(FunctionTransformer(), LogisticRegression())])
def test_a_baseline_that_knows_no_tasks_is_scored_beside_the_others(baseline):
    X, y, task = meetings()
    splitter = TaskKFold(4, random_state=0)
    with routing():
        found = cross_validate(
            baseline, X, y, cv=splitter, scoring=task_scorer("roc_auc"), params={"task": task}, error_score="raise"
        )
    plain = cross_validate(baseline, X, y, cv=list(splitter.split(X, y, task=task)), scoring="roc_auc")
    assert found["test_score"] == pytest.approx(plain["test_score"])


def test_a_task_column_needs_no_routing():
    X, y, task = meetings()
    frame = pd.DataFrame({"x": X[:, 0], "user": task})
    scorer = task_scorer("roc_auc", per_task=True, task_column="user")
    found = cross_validate(
        LabelsByTask(task_column="user"),
        frame,
        y,
        cv=StratifiedKFold(4, shuffle=True, random_state=0),
        scoring=scorer,
        return_estimator=True,
        return_indices=True,
        error_score="raise",
    )
    for model, test, score in zip(found["estimator"], found["indices"]["test"], found["test_score"], strict=True):
        proba = model.predict_proba(frame.iloc[test])[:, 1]
        areas = [roc_auc_score(y[test][task[test] == u], proba[task[test] == u]) for u in ("ann", "bob")]
        assert score == pytest.approx(np.mean(areas))


def test_the_scorer_asks_for_the_task_and_for_what_the_inner_scorer_asks():
    with routing():
        inner = get_scorer("accuracy").set_score_request(sample_weight="importance")
        requests = task_scorer(inner).get_metadata_routing().score.requests
        assert requests == {"sample_weight": "importance", "task": True}
        assert inner.get_metadata_routing().score.requests == {"sample_weight": "importance"}
        assert task_scorer("accuracy", task_column=0).get_metadata_routing().score.requests["task"] is False


@pytest.mark.parametrize("multimetric", [True, False])
def test_a_weighted_search_without_routing_weights_the_score_too(multimetric):
    X, y, task = meetings()
    frame = pd.DataFrame({"x": X[:, 0], "user": task})
    weights = np.where(y == 1, 1.0, 1e-9)
    scorer = task_scorer("accuracy", task_column="user")
    always_yes = DummyClassifier(strategy="constant")
    search = GridSearchCV(
        always_yes,
        {"constant": [1]},
        scoring={"only": scorer} if multimetric else scorer,
        refit="only" if multimetric else True,
        cv=StratifiedKFold(3),
    )
    search.fit(frame, y, sample_weight=weights)
    assert search.best_score_ == pytest.approx(1.0)


def test_the_scorer_travels_to_other_processes(fitted):
    X, y, task = meetings(seed=1)
    scorer = task_scorer("roc_auc", per_task=True)
    assert pickle.loads(pickle.dumps(scorer))(fitted, X, y, task=task) == scorer(fitted, X, y, task=task)


def test_the_repr_is_the_call_that_made_the_scorer():
    assert repr(task_scorer("roc_auc")) == "task_scorer('roc_auc')"
    assert (
        repr(task_scorer("roc_auc", per_task=True, min_rows=5)) == "task_scorer('roc_auc', per_task=True, min_rows=5)"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scoring": ["roc_auc"]}, r"name of a score or a scorer, not \['roc_auc'\]"),
        ({"scoring": "no such score"}, "no such score"),
        ({"scoring": roc_auc_score}, "looks like it is a metric function"),
        ({"scoring": "roc_auc", "min_rows": 0}, "min_rows must be at least 1, not 0"),
    ],
)
def test_a_scorer_that_cannot_be_is_refused_when_it_is_made(arguments, message):
    with pytest.raises(ValueError, match=message):
        task_scorer(**arguments)


def test_rows_that_cannot_be_scored_are_refused_in_a_sentence(fitted):
    X, y, task = meetings()
    with pytest.raises(ValueError, match="needs the task of each row"):
        task_scorer("roc_auc", per_task=True)(fitted, X, y)
    with pytest.raises(ValueError, match="none of the 2 rows has a label"):
        task_scorer("roc_auc")(fitted, X[:2], [None, None], task=task[:2])
    with pytest.raises(ValueError, match="a label for each of the 200 rows of X, not 3"):
        task_scorer("roc_auc")(fitted, X, y[:3], task=task)
    with pytest.raises(ValueError, match="task has 3 entries for 200 rows"):
        task_scorer("roc_auc")(fitted, X, y, task=task[:3])
    with pytest.raises(ValueError, match="no task"):
        task_scorer("roc_auc")(fitted, X, y)
