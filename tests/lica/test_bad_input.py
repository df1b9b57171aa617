"""Data and parameters that are odd or wrong: a sensible result, or one clear sentence."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import kinfolk
from kinfolk import LICAClassifier, LICARegressor
from kinfolk.datasets import make_lica_tasks
from tests.saved_models import saved

MADE = make_lica_tasks(6, 8, 20, 1, random_state=0)
NAMES = [f"f{j}" for j in range(8)]
KINDS = [
    {"n_sources": 1},
    {"n_sources": 1, "inference": "map"},
    {"sharing": "individual"},
    {"sharing": "pooled"},
    {"sharing": "hierarchical"},
]
IDS = ["eb", "map", "individual", "pooled", "hierarchical"]


def with_value(value, row=7, column=3):
    X = MADE.X.copy()
    X[row, column] = value
    return X


def refused(sentence, X=MADE.X, y=MADE.y, estimator=LICAClassifier, kind=ValueError, task=MADE.task, **params):
    with pytest.raises(kind, match=sentence) as refusal:
        estimator(**({"n_sources": 1} | params)).fit(X, y, task=task)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_a_feature_that_is_not_finite_is_named_by_column_and_row(value, word):
    X = with_value(value)
    for table, column in ((X, "3"), (pd.DataFrame(X, columns=NAMES), "'f3'"), (sparse.csr_matrix(X), "3")):
        refused(rf"column {column}, row 7: ({word}|every)", table)
        refused(word, table)


def test_such_a_feature_is_refused_in_prediction_and_in_a_new_task_too():
    model = LICAClassifier(n_sources=1).fit(MADE.X, MADE.y, task=MADE.task)
    for ask in (
        lambda X: model.predict(X, task=MADE.task),
        lambda X: model.fit_task(X, MADE.y, task="new"),
    ):
        with pytest.raises(ValueError, match="NaN in column 3, row 7"):
            ask(with_value(np.nan))


def test_text_among_features_is_named_by_column_and_row():
    X = pd.DataFrame(MADE.X, columns=NAMES).assign(f3=["red"] * len(MADE.X))
    refused(r"column 'f3', row 0: 'red' is not a number", X)


@pytest.mark.parametrize("inference", ["eb", "map"])
def test_text_in_a_column_that_was_fitted_as_numbers_is_refused_wherever_it_is_asked_about(inference, path):
    frame = pd.DataFrame(MADE.X, columns=NAMES)
    model = LICAClassifier(n_sources=1, inference=inference).fit(frame, MADE.y, task=MADE.task)
    asked = frame.astype({"f3": object})
    asked.loc[7, "f3"] = "banana"
    for ask in (
        lambda X: model.predict(X, task=MADE.task),
        lambda X: model.score(X, MADE.y, task=MADE.task),
        lambda X: kinfolk.load(saved(model, path)).predict_proba(X, task=MADE.task),
        lambda X: model.fit_task(X, MADE.y, task="new"),
    ):
        with pytest.raises(ValueError, match=r"^column 'f3', row 7: 'banana' is not a number") as refusal:
            ask(asked)
        assert "\n" not in str(refusal.value)
    as_text = frame.astype({"f3": str})  # numbers in writing are numbers
    np.testing.assert_allclose(model.predict(as_text, task=MADE.task), model.predict(frame, task=MADE.task))


def test_numbers_written_as_objects_are_numbers():
    model = LICAClassifier(n_sources=1, random_state=0)
    expected = model.fit(MADE.X, MADE.y, task=MADE.task).coef_
    np.testing.assert_array_equal(model.fit(MADE.X.astype(object), MADE.y, task=MADE.task).coef_, expected)


@pytest.mark.parametrize("shape", [(0, 8), (120, 0)])
@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix])
def test_an_empty_table_is_refused(shape, kind):
    what = "sample" if shape[0] == 0 else "feature"
    refused(rf"Found array with 0 {what}\(s\)", kind(np.zeros(shape)), task=None)


@pytest.mark.parametrize("params", KINDS, ids=IDS)
@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_feature_that_is_the_same_everywhere_does_no_harm(params, value):
    X = MADE.X.copy()
    X[:, 2] = value
    model = LICAClassifier(random_state=0, **params).fit(X, MADE.y, task=MADE.task)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.score(X, MADE.y, task=MADE.task) > 0.5
    if value == 0.0:
        assert np.abs(model.coef_[:, 2]).max() < 1e-6 * np.abs(model.coef_).max()


@pytest.mark.parametrize("params", KINDS, ids=IDS)
def test_a_table_of_zeros_predicts_the_rate_of_labels(params):
    y = (np.arange(120) % 4 == 0).astype(int)
    model = LICAClassifier(random_state=0, **params).fit(np.zeros((120, 3)), y, task=MADE.task)
    probability = model.predict_proba(np.zeros((120, 3)), task=MADE.task)[:, 1]
    np.testing.assert_allclose(probability, 0.25, atol=0.05)


@pytest.mark.parametrize("params", KINDS, ids=IDS)
def test_rows_that_stand_there_twice_do_no_harm(params):
    twice = np.concatenate([np.arange(120), np.arange(120)])
    model = LICAClassifier(random_state=0, **params).fit(MADE.X[twice], MADE.y[twice], task=MADE.task[twice])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict_proba(MADE.X, task=MADE.task)).all()


@pytest.mark.parametrize("params", [*KINDS, {}], ids=[*IDS, "number chosen"])
def test_one_task_is_enough(params):
    its = MADE.task == 0
    model = LICAClassifier(random_state=0, **params).fit(MADE.X[its], MADE.y[its])
    assert model.coef_.shape == (1, 8)
    assert model.predict_proba(MADE.X).shape == (120, 2)
    assert model.score(MADE.X[its], MADE.y[its]) > 0.6


@pytest.mark.parametrize("params", KINDS, ids=IDS)
def test_separable_tasks_have_finite_weights(params):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    model = LICAClassifier(random_state=0, **params).fit(X, y, task=np.arange(200) % 5)
    assert np.isfinite(model.coef_).all()
    assert np.abs(model.coef_).max() < 1e4
    assert model.score(X, y, task=np.arange(200) % 5) > 0.95


@pytest.mark.parametrize("params", KINDS, ids=IDS)
def test_labels_that_are_all_the_same_are_predicted(params):
    model = LICAClassifier(random_state=0, **params).fit(MADE.X, ["yes"] * 120, task=MADE.task)
    assert model.classes_.tolist() == ["yes"]
    assert set(model.predict(MADE.X, task=MADE.task)) == {"yes"}
    np.testing.assert_array_equal(model.predict_proba(MADE.X, task=MADE.task), np.ones((120, 1)))


def test_a_task_without_labels_is_named():
    y = np.where(MADE.task == 4, np.nan, MADE.y)
    refused("task 4 has no row with a target: leave it out", y=y)
    Y = pd.DataFrame({"a": MADE.y, "b": [None] * 120})
    refused("task 'b' has no row with a target: leave it out", y=Y, task=None)
    refused("no row has a target", y=np.full(120, np.nan))


@pytest.mark.parametrize("params", KINDS[:2], ids=IDS[:2])
def test_a_task_whose_rows_all_weigh_nothing_is_a_new_task(params):
    weights = (MADE.task != 4).astype(float)
    model = LICAClassifier(random_state=0, new_tasks="expected", **params).fit(
        MADE.X, MADE.y, task=MADE.task, sample_weight=weights
    )
    assert model.tasks_.tolist() == [0, 1, 2, 3, 5]
    new = model.predict_proba(MADE.X, task=["somebody new"] * 120)
    np.testing.assert_array_equal(model.predict_proba(MADE.X, task=np.full(120, 4)), new)


def test_labels_that_are_not_two_are_refused():
    refused(r"Only binary classification is supported\. y has 3 labels, 0, 1, 2:", y=np.arange(120) % 3)
    refused("y holds fractions; two labels are needed, or LICARegressor", y=MADE.X[:, 0])
    refused("y contains infinity", y=np.where(MADE.y == 0, np.inf, 1.0))
    refused("y contains 'many' in row 1: every target must be a finite", y=[1.0, "many"] * 60, estimator=LICARegressor)
    refused("y contains infinity in row 3:", y=np.where(np.arange(120) == 3, np.inf, 1.0), estimator=LICARegressor)


def test_targets_tasks_and_weights_of_another_length_are_refused():
    refused(r"inconsistent numbers of samples: \[120, 119\]", y=MADE.y[:-1])
    refused(r"inconsistent numbers of samples: \[120, 119\]", y=np.ones((119, 3)), task=None)
    refused("task has 119 entries for 120 rows", task=MADE.task[:-1])
    refused("task, row 2: a task is missing", task=[0, 1, None, *MADE.task[3:]])
    with pytest.raises(ValueError, match="sample_weight"):
        LICAClassifier(n_sources=1).fit(MADE.X, MADE.y, task=MADE.task, sample_weight=np.ones(3))


def test_tasks_that_are_named_twice_are_refused():
    refused("y has a column for each task: task= says it a second time", y=np.ones((120, 2)))
    refused("task= and task_column='who' were both given", pd.DataFrame({"who": MADE.task}), task_column="who")
    refused("a sparse table has no task column", sparse.csr_matrix(MADE.X), task=None, task_column=0)


@pytest.mark.parametrize(
    "params",
    [
        {"inference": "vb"},
        {"sharing": "some"},
        {"link": "cloglog"},
        {"noise": "full"},
        {"source_prior": "student"},
        {"n_sources": 0},
        {"n_sources": 1.5},
        {"n_sources": True},
        {"max_iter": 0},
        {"tol": -1.0},
        {"intercept_variance": 0.0},
        {"loading_variance": -1.0},
        {"loading_variance": "large"},
        {"class_weight": "equal"},
    ],
    ids=str,
)
def test_a_parameter_that_cannot_be_is_named_with_its_value(params):
    ((name, value),) = params.items()
    refused(re.escape(f"{name}={value!r}: "), **params)


def test_class_weights_of_unknown_labels_or_below_zero_are_refused():
    refused("class_weight: 'yes' is not a label; the labels are", class_weight={"yes": 2.0})
    refused("class_weight: task 0 would get weights that are not finite", class_weight={0: -1.0})


def test_a_prediction_without_its_task_or_with_other_columns_is_refused():
    model = LICAClassifier(n_sources=1).fit(pd.DataFrame(MADE.X, columns=NAMES), MADE.y, task=MADE.task)
    asked = pd.DataFrame(MADE.X, columns=NAMES)
    with pytest.raises(ValueError, match="fitted to 6 tasks: say which task each row belongs to"):
        model.predict(asked)
    with pytest.raises(ValueError, match="feature"):
        model.predict(asked[NAMES[:5]], task=MADE.task)
    with pytest.raises(ValueError, match="unseen at fit time:\n- other"):
        model.fit_task(asked.rename(columns={"f0": "other"}), MADE.y, task="new")


def test_a_new_task_with_other_labels_or_several_columns_is_refused():
    model = LICAClassifier(n_sources=1).fit(MADE.X, MADE.y, task=MADE.task)
    with pytest.raises(ValueError, match=r"label 2 is not among the labels \[0, 1\]"):
        model.fit_task(MADE.X[:4], [2, 1, 2, 2], task="new")
    with pytest.raises(ValueError, match="fit_task takes one task"):
        model.fit_task(MADE.X[:4], np.ones((4, 2)), task="new")


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = LICAClassifier(n_sources=1).fit(MADE.X, MADE.y, task=MADE.task)
    before = model.predict_proba(MADE.X, task=MADE.task)
    with pytest.raises(ValueError, match="Only binary"):
        model.fit(MADE.X[:, :4], np.arange(120) % 3, task=MADE.task)
    np.testing.assert_array_equal(model.predict_proba(MADE.X, task=MADE.task), before)
