"""scikit-learn's tools on kinfolk's estimators, by ``task_column=`` and by routed ``task=``, against plain loops."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from kinfolk import (
    ClusteredNB,
    CompleteSharingNB,
    DecisionClassifier,
    FewPerTask,
    LeaveTasksOut,
    NoSharingNB,
    OneTaskFew,
    TaskKFold,
    decide,
    task_scorer,
)

RNG = np.random.default_rng(6)
N_ROWS = 90
TASK = RNG.permutation(np.repeat(["ann", "bob", "eve", "kim", "lee", "zoe"], N_ROWS // 6))
LABEL = np.where(RNG.random(N_ROWS) < 0.5, "no", "yes")
AGREES = (LABEL == "yes") ^ np.isin(TASK, ["kim", "lee", "zoe"])
FEATURES = pd.DataFrame(
    {
        "colour": np.where(RNG.random(N_ROWS) < 0.8, np.where(AGREES, "red", "blue"), "green"),
        "size": RNG.normal(AGREES, 1.5),
    }
)
HELD = FEATURES.assign(who=TASK)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
SPLITS = list(FOLDS.split(FEATURES, LABEL))
PRIORS = [0.2, 1.0, 5.0]
MODELS = [NoSharingNB(), CompleteSharingNB(), ClusteredNB(), ClusteredNB(inference="exact")]
FORMS = {"pandas": (HELD, "who"), "polars": (pl.from_pandas(HELD), "who"), "numpy": (HELD.to_numpy(), 2)}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(params=MODELS, ids=repr)
def model(request):
    return clone(request.param)


@pytest.fixture(params=FORMS)
def table(request):
    return FORMS[request.param]


def proba_on_split(model, split):
    """Fit to one part with the task given by hand, predict the other."""
    train, test = split
    fitted = clone(model).fit(FEATURES.iloc[train], LABEL[train], task=TASK[train])
    return fitted.predict_proba(FEATURES.iloc[test], task=TASK[test])


def score_by_hand(name, truth, proba):
    if name == "roc_auc":
        return roc_auc_score(truth == "yes", proba[:, 1])
    if name == "neg_log_loss":
        return -log_loss(truth, proba, labels=["no", "yes"])
    return accuracy_score(truth, np.array(["no", "yes"])[proba.argmax(axis=1)])


def scores_by_hand(model, name, splits=SPLITS):
    return [score_by_hand(name, LABEL[split[1]], proba_on_split(model, split)) for split in splits]


# The task in a column of the table: no tool needs to know.


@pytest.mark.parametrize("name", ["accuracy", "roc_auc", "neg_log_loss"])
def test_named_scorers_work_with_a_task_column(model, table, name):
    X, column = table
    found = cross_validate(model.set_params(task_column=column), X, LABEL, cv=FOLDS, scoring=name, error_score="raise")
    expected = scores_by_hand(model.set_params(task_column=None), name)
    np.testing.assert_allclose(found["test_score"], expected, rtol=1e-12)


def test_cross_val_predict_works_with_a_task_column(model, table):
    X, column = table
    found = cross_val_predict(model.set_params(task_column=column), X, LABEL, cv=FOLDS, method="predict_proba")
    model.set_params(task_column=None)
    for split in SPLITS:
        np.testing.assert_allclose(found[split[1]], proba_on_split(model, split), rtol=1e-12)


def test_grid_search_works_with_a_task_column(table):
    X, column = table
    search = GridSearchCV(
        ClusteredNB(task_column=column),
        {"feature_prior": PRIORS},
        cv=FOLDS,
        scoring="neg_log_loss",
        error_score="raise",
    ).fit(X, LABEL)
    expected = [np.mean(scores_by_hand(ClusteredNB(feature_prior=prior), "neg_log_loss")) for prior in PRIORS]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    assert search.best_params_ == {"feature_prior": PRIORS[int(np.argmax(expected))]}
    whole = ClusteredNB(**search.best_params_).fit(FEATURES, LABEL, task=TASK)
    np.testing.assert_allclose(search.predict_proba(X), whole.predict_proba(FEATURES, task=TASK), rtol=1e-12)
    assert search.score(X, LABEL) == pytest.approx(
        score_by_hand("neg_log_loss", LABEL, whole.predict_proba(FEATURES, task=TASK))
    )


def test_calibration_works_with_a_task_column_and_keeps_the_order_of_rows(table):
    X, column = table
    model = ClusteredNB(task_column=column)
    calibrated = CalibratedClassifierCV(model, cv=FOLDS, ensemble=False).fit(X, LABEL).predict_proba(X)[:, 1]
    plain = clone(model).fit(X, LABEL).predict_proba(X)[:, 1]
    order = np.argsort(plain, kind="stable")
    assert (np.diff(calibrated[order]) >= -1e-12).all()
    assert np.ptp(calibrated) > 0.3
    for method in ("sigmoid", "isotonic"):
        proba = CalibratedClassifierCV(model, cv=FOLDS, method=method).fit(X, LABEL).predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert roc_auc_score(LABEL, proba[:, 1]) > 0.8


def test_pipelines_work_with_a_task_column(model, table):
    X, column = table
    model.set_params(task_column=column)
    pipe = make_pipeline(FunctionTransformer(), model).fit(X, LABEL)
    plain = clone(model).fit(X, LABEL)
    np.testing.assert_array_equal(pipe.predict_proba(X), plain.predict_proba(X))
    assert pipe.score(X, LABEL) == plain.score(X, LABEL)


def test_voting_averages_models_with_a_task_column():
    voters = [("alone", NoSharingNB(task_column="who")), ("kin", ClusteredNB(task_column="who"))]
    voted = VotingClassifier(voters, voting="soft").fit(HELD, LABEL)
    expected = np.mean([clone(voter).fit(HELD, LABEL).predict_proba(HELD) for _, voter in voters], axis=0)
    np.testing.assert_allclose(voted.predict_proba(HELD), expected, rtol=1e-12)


def test_learning_curves_and_importances_work_with_a_task_column():
    model = ClusteredNB(task_column="who")
    sizes, _, test = learning_curve(model, HELD, LABEL, cv=FOLDS, train_sizes=[30, 60], error_score="raise")
    assert sizes.tolist() == [30, 60]
    np.testing.assert_allclose(test[1], scores_by_hand(ClusteredNB(), "accuracy"))
    importance = permutation_importance(model.fit(HELD, LABEL), HELD, LABEL, n_repeats=3, random_state=0)
    assert importance.importances_mean[0] > 0.1, "the colour"
    assert importance.importances_mean[2] > 0.1, "whose it is"


SPLITTERS = [
    FewPerTask(5, 2, random_state=0),
    OneTaskFew(4, 1, random_state=0),
    LeaveTasksOut(2, random_state=0),
    TaskKFold(3, random_state=0),
]


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_splitters_that_know_tasks_work_with_a_task_column(splitter, table):
    X, column = table
    cv = clone_splitter(splitter, task_column=column)
    found = cross_validate(ClusteredNB(task_column=column), X, LABEL, cv=cv, error_score="raise")
    splits = list(splitter.split(FEATURES, LABEL, task=TASK))
    np.testing.assert_allclose(found["test_score"], scores_by_hand(ClusteredNB(), "accuracy", splits))


def clone_splitter(splitter, **changes):
    return type(splitter)(**(vars(splitter) | changes))


# The task by metadata routing: nobody has to request it.


def test_the_task_is_requested_by_the_classes_themselves(model, routing):
    requests = model.get_metadata_routing()
    for method in ("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "score"):
        assert getattr(requests, method).requests["task"] is True, method
    assert requests.fit.requests["sample_weight"] is None


def test_a_pipeline_routes_the_task(model, routing):
    pipe = Pipeline([("as it is", FunctionTransformer()), ("nb", clone(model))]).fit(FEATURES, LABEL, task=TASK)
    plain = model.fit(FEATURES, LABEL, task=TASK)
    assert pipe[-1].tasks_.tolist() == sorted(set(TASK))
    ask = {"X": FEATURES, "task": TASK}
    np.testing.assert_array_equal(pipe.predict(**ask), plain.predict(**ask))
    np.testing.assert_array_equal(pipe.predict_proba(**ask), plain.predict_proba(**ask))
    np.testing.assert_array_equal(pipe.predict_log_proba(**ask), plain.predict_log_proba(**ask))
    assert pipe.score(FEATURES, LABEL, task=TASK) == plain.score(FEATURES, LABEL, task=TASK)


@pytest.mark.parametrize("name", [None, "roc_auc", "neg_log_loss"])
def test_grid_search_routes_the_task(name, routing):
    search = GridSearchCV(
        ClusteredNB(),
        {"feature_prior": PRIORS},
        cv=FOLDS,
        scoring=None if name is None else task_scorer(name),
        error_score="raise",
    ).fit(FEATURES, LABEL, task=TASK)
    expected = [np.mean(scores_by_hand(ClusteredNB(feature_prior=prior), name)) for prior in PRIORS]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    whole = ClusteredNB(**search.best_params_).fit(FEATURES, LABEL, task=TASK)
    np.testing.assert_array_equal(
        search.best_estimator_.predict_proba(FEATURES, task=TASK), whole.predict_proba(FEATURES, task=TASK)
    )


def test_grid_search_over_a_pipeline_routes_the_task(routing):
    pipe = Pipeline([("as it is", FunctionTransformer()), ("nb", ClusteredNB())])
    search = GridSearchCV(pipe, {"nb__feature_prior": PRIORS}, cv=FOLDS, error_score="raise")
    search.fit(FEATURES, LABEL, task=TASK)
    expected = [np.mean(scores_by_hand(ClusteredNB(feature_prior=prior), "accuracy")) for prior in PRIORS]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)


def test_cross_validate_routes_the_task(model, routing):
    found = cross_validate(model, FEATURES, LABEL, cv=FOLDS, params={"task": TASK}, error_score="raise")
    np.testing.assert_allclose(found["test_score"], scores_by_hand(model, "accuracy"))


def test_cross_validate_routes_the_task_to_several_scorers(routing):
    scorers = {name: task_scorer(name) for name in ("accuracy", "roc_auc", "neg_log_loss")}
    found = cross_validate(
        ClusteredNB(), FEATURES, LABEL, cv=FOLDS, scoring=scorers, params={"task": TASK}, error_score="raise"
    )
    for name in scorers:
        np.testing.assert_allclose(found[f"test_{name}"], scores_by_hand(ClusteredNB(), name), rtol=1e-12)


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_splitters_that_know_tasks_are_routed_the_task_too(splitter, routing):
    found = cross_validate(ClusteredNB(), FEATURES, LABEL, cv=splitter, params={"task": TASK}, error_score="raise")
    splits = list(splitter.split(FEATURES, LABEL, task=TASK))
    np.testing.assert_allclose(found["test_score"], scores_by_hand(ClusteredNB(), "accuracy", splits))


def test_unlabelled_rows_stay_in_training_and_out_of_the_score(routing):
    y = np.where(np.arange(N_ROWS) % 45 == 0, None, LABEL)
    splitter, model = TaskKFold(3, random_state=0), ClusteredNB(inference="exact")
    found = cross_validate(
        model, FEATURES, y, cv=splitter, params={"task": TASK}, scoring=task_scorer("accuracy"), error_score="raise"
    )
    expected = []
    for train, test in splitter.split(FEATURES, y, task=TASK):
        assert np.isin(np.flatnonzero(y == None), train).all()  # noqa: E711 - element by element
        fitted = clone(model).fit(FEATURES.iloc[train], y[train], task=TASK[train])
        assert len(fitted._result.data.unlabelled.labels) == 2
        expected.append(np.mean(fitted.predict(FEATURES.iloc[test], task=TASK[test]) == y[test]))
    np.testing.assert_allclose(found["test_score"], expected)


def test_sample_weights_are_routed_where_they_are_requested(routing):
    weights = RNG.integers(0, 3, N_ROWS).astype(float)
    model = ClusteredNB().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    found = cross_validate(
        model, FEATURES, LABEL, cv=FOLDS, params={"task": TASK, "sample_weight": weights}, error_score="raise"
    )
    expected = []
    for train, test in SPLITS:
        repeated = np.repeat(train, weights[train].astype(int))
        fitted = ClusteredNB().fit(FEATURES.iloc[repeated], LABEL[repeated], task=TASK[repeated])
        expected.append(fitted.score(FEATURES.iloc[test], LABEL[test], task=TASK[test]))
    np.testing.assert_allclose(found["test_score"], expected)


@pytest.mark.parametrize("enabled", [True, False])
def test_decisions_take_the_task(enabled):
    with sklearn.config_context(enable_metadata_routing=enabled):
        loss = np.array([[0.0, 1.0], [3.0, 0.0]])
        decider = DecisionClassifier(ClusteredNB(), loss=loss).fit(FEATURES, LABEL, task=TASK)
        proba = ClusteredNB().fit(FEATURES, LABEL, task=TASK).predict_proba(FEATURES, task=TASK)
        np.testing.assert_array_equal(decider.predict_proba(FEATURES, task=TASK), proba)
        chosen = np.array(["no", "yes"])[decide(proba, loss)]
        np.testing.assert_array_equal(decider.predict(FEATURES, task=TASK), chosen)
        assert decider.score(FEATURES, LABEL, task=TASK) == pytest.approx(np.mean(chosen == LABEL))


def test_decisions_are_cross_validated_and_searched_with_the_task(routing):
    decider = DecisionClassifier(ClusteredNB())
    found = cross_validate(decider, FEATURES, LABEL, cv=FOLDS, params={"task": TASK}, error_score="raise")
    np.testing.assert_allclose(found["test_score"], scores_by_hand(ClusteredNB(), "accuracy"))
    search = GridSearchCV(decider, {"estimator__feature_prior": PRIORS}, cv=FOLDS, error_score="raise")
    search.fit(FEATURES, LABEL, task=TASK)
    expected = [np.mean(scores_by_hand(ClusteredNB(feature_prior=prior), "accuracy")) for prior in PRIORS]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)


def test_decisions_work_with_a_task_column():
    decider = DecisionClassifier(ClusteredNB(task_column="who"), ask_cost=0.2).fit(HELD, LABEL)
    assert set(decider.predict(HELD)) == {"no", "yes", "ask"}


# Copies.


def test_a_clone_has_the_parameters_and_nothing_learnt():
    model = ClusteredNB(feature_prior={"colour": 2.0}, bins={"size": [0.0]}, concentration=2.0, temper=0.5)
    copy = clone(model.fit(FEATURES, LABEL, task=TASK))
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "classes_")
    assert copy.set_params(temper=1.0) is copy
    assert (copy.temper, model.temper) == (1.0, 0.5)


def test_a_pickled_model_predicts_the_same(model):
    model.fit(FEATURES, LABEL, task=TASK)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(FEATURES, task=TASK), model.predict_proba(FEATURES, task=TASK))


def test_parameters_are_left_as_they_were_given(model):
    given = {"label_prior": [1, 2], "bins": {"size": (0.0, 1.0)}, "categorical_features": ("colour",)}
    model.set_params(**given).fit(FEATURES, LABEL, task=TASK)
    for name, value in given.items():
        assert getattr(model, name) is value


@pytest.mark.parametrize("name", ["accuracy", "roc_auc", "f1"])
def test_named_scorers_work_with_float_labels(name):
    y = (LABEL == "yes").astype(float)
    scores = [
        cross_validate(NoSharingNB(task_column="who"), HELD, labels, cv=FOLDS, scoring=name, error_score="raise")
        for labels in (y, y.astype(int))
    ]
    np.testing.assert_allclose(scores[0]["test_score"], scores[1]["test_score"])


@pytest.mark.parametrize("name", ["accuracy", "roc_auc", "neg_log_loss", "f1"])
def test_named_scorers_work_with_boolean_labels(name):
    y = LABEL == "yes"
    scores = [
        cross_validate(NoSharingNB(task_column="who"), HELD, labels, cv=FOLDS, scoring=name, error_score="raise")
        for labels in (y, y.astype(int))
    ]
    np.testing.assert_allclose(scores[0]["test_score"], scores[1]["test_score"])


def opposed(rng):
    """Rows sorted by user, as many of each label; users of four kinds mean something else by the same word."""
    user, label = np.repeat(np.arange(20), 20), np.tile(np.arange(20) % 4, 20)
    word = np.where(rng.random(400) < 0.85, (label + user) % 4, rng.integers(4, size=400))
    return pd.DataFrame({"word": np.array(list("abcd"))[word], "who": [f"user {i:02}" for i in user]}), label


@pytest.mark.parametrize("model", [NoSharingNB(task_column="who"), ClusteredNB(task_column="who")], ids=repr)
@pytest.mark.parametrize(
    "tool",
    [CalibratedClassifierCV, lambda model, cv: StackingClassifier([("one", model)], LogisticRegression(), cv=cv)],
    ids=["calibrated", "stacked"],
)
def test_a_table_sorted_by_task_is_calibrated_and_stacked_by_folds_with_rows_of_every_task(tool, model):
    rng = np.random.default_rng(2)
    (table, y), (new, truth) = opposed(rng), opposed(rng)
    shuffled = rng.permutation(len(y))

    def score(cv, rows):
        return tool(model, cv=cv).fit(table.iloc[rows], y[rows]).score(new, truth)

    # What README and guide warn of: each fifth of the sorted rows is four whole users.
    assert score(5, slice(None)) < 0.3
    by_task = score(TaskKFold(5, task_column="who", random_state=0), slice(None))
    assert by_task > 0.8
    assert by_task == pytest.approx(score(5, shuffled), abs=0.02)
