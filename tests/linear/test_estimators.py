"""The partially pooled estimators: any table, new tasks, files, explanations, and what they refuse."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk import HierarchicalClassifier, HierarchicalRegressor
from tests.saved_models import ASKED, ASKED_TASK, LABEL, TASK, X

NUMBERS = np.where(LABEL == "yes", 3.0, 1.0) + 0.1 * np.arange(len(LABEL)) / len(LABEL)
THREE = np.where(np.arange(len(LABEL)) % 3 == 0, "perhaps", LABEL)


def fitted(kind):
    if kind == "numbers":
        return HierarchicalRegressor(new_tasks="expected").fit(X, NUMBERS, task=TASK)
    return HierarchicalClassifier(new_tasks="expected").fit(X, LABEL if kind == "two" else THREE, task=TASK)


@pytest.fixture(scope="module", params=["two", "three", "numbers"])
def model(request):
    return fitted(request.param)


def answers(model):
    if isinstance(model, HierarchicalRegressor) or not hasattr(model, "predict_proba"):
        return model.predict_quantiles(ASKED, task=ASKED_TASK)
    return model.predict_proba(ASKED, task=ASKED_TASK)


def test_a_saved_model_answers_as_the_fitted_one(model, tmp_path):
    kinfolk.save(model, tmp_path / "m.kin")
    assert np.array_equal(answers(kinfolk.load(tmp_path / "m.kin")), answers(model))
    again = kinfolk.load(tmp_path / "m.kin", estimator=True)
    assert np.array_equal(answers(again), answers(model))
    assert again.weights().equals(model.weights())
    assert again.get_params() == model.get_params()


def test_fitting_twice_gives_the_same(model):
    again = fitted("numbers" if hasattr(model, "predict_quantiles") else {2: "two", 3: "three"}[len(model.classes_)])
    assert np.array_equal(answers(again), answers(model))


def test_a_polars_frame_is_answered_as_a_pandas_frame():
    frame = X.astype({"grade": str})
    one = HierarchicalClassifier().fit(frame, LABEL, task=TASK).predict_proba(frame, task=TASK)
    other = HierarchicalClassifier().fit(pl.from_pandas(frame), LABEL, task=TASK)
    assert one == pytest.approx(other.predict_proba(pl.from_pandas(frame), task=TASK), abs=1e-9)


def test_a_column_may_hold_the_tasks():
    table = X.assign(who=TASK)
    model = HierarchicalClassifier(task_column="who").fit(table, LABEL)
    beside = HierarchicalClassifier().fit(X, LABEL, task=TASK)
    assert model.predict_proba(table) == pytest.approx(beside.predict_proba(X, task=TASK))


def test_probabilities_add_up_and_labels_are_the_most_probable(model):
    if hasattr(model, "predict_quantiles"):
        low, middle, high = answers(model).T
        assert ((low < middle) & (middle < high)).all()
        return
    proba = answers(model)
    assert proba.sum(axis=1) == pytest.approx(np.ones(len(ASKED)))
    assert (model.classes_[proba.argmax(axis=1)] == model.predict(ASKED, task=ASKED_TASK)).all()


def test_a_new_task_is_answered_less_surely_than_a_known_one():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(10), 20)
    x = rng.normal(size=(200, 1))
    y = rng.normal(size=10)[task] + x[:, 0] + 0.1 * rng.normal(size=200)
    model = HierarchicalRegressor().fit(x, y, task=task)
    _, std = model.predict([[0.0], [0.0]], task=[3, 99], return_std=True)
    assert std[1] > 3 * std[0]


def test_parts_of_an_explanation_add_up_to_the_log_odds():
    model = fitted("two")
    explained = model.explain(ASKED, task=ASKED_TASK)
    log_proba = model.predict_log_proba(ASKED, task=ASKED_TASK)
    assert explained.log_odds() == pytest.approx(log_proba[:, 1] - log_proba[:, 0])
    shares = explained.own + explained.kin + explained.everybody + explained.prior
    assert shares == pytest.approx(np.ones_like(shares))
    assert (explained.own[-1] == 0.0).all()  # a new task has no rows of its own
    assert explained.values[-1][0] == "(unknown)"
    three = fitted("three")
    log_proba = three.predict_log_proba(ASKED, task=ASKED_TASK)
    odds = three.explain(ASKED, task=ASKED_TASK).log_odds("yes", "perhaps")
    places = three.classes_.tolist()
    assert odds == pytest.approx(log_proba[:, places.index("yes")] - log_proba[:, places.index("perhaps")])


def test_rows_without_a_label_are_left_out_with_a_warning():
    some = np.where(np.arange(len(LABEL)) < 5, None, LABEL)
    with pytest.warns(UserWarning, match="5 rows are left out, without a target"):
        model = HierarchicalClassifier().fit(X, some, task=TASK)
    rest = HierarchicalClassifier().fit(X[5:], LABEL[5:], task=TASK[5:])
    assert model.predict_proba(X, task=TASK) == pytest.approx(rest.predict_proba(X, task=TASK))


def test_one_label_is_certain():
    assert HierarchicalClassifier().fit([[1.0], [2.0]], ["a", "a"]).predict_proba([[3.0]]).tolist() == [[1.0]]


def test_slopes_are_of_the_columns_that_are_asked_for():
    everything = HierarchicalClassifier(slopes="all").fit(X, LABEL, task=TASK)
    none = HierarchicalClassifier(slopes="none").fit(X, LABEL, task=TASK)
    one = HierarchicalClassifier(slopes=["flag"]).fit(X, LABEL, task=TASK)
    assert none.scales()["group"].to_list() == ["(intercept)"]
    assert one.scales()["group"].to_list() == ["(intercept)", "flag"]
    assert "missing values" in everything.scales()["group"].to_list()
    assert "missing values" not in fitted("two").scales()["group"].to_list()


def test_a_fit_that_is_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        assert not HierarchicalClassifier(max_iter=2).fit(X, LABEL, task=TASK).converged_


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"slopes": "some"}, 'slopes=\'some\': "auto", "all", "none" or a list'),
        ({"slopes": 3}, "slopes=3"),
        ({"slopes": ["height"]}, "height"),
        ({"max_iter": 0}, "max_iter=0: a whole number of at least 1"),
        *[({"tol": tol}, f"tol={tol}: a positive number") for tol in (-1.0, 0.0, np.inf, np.nan)],
        ({"new_tasks": "no"}, "new_tasks='no'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        HierarchicalClassifier(**parameters).fit(X, LABEL, task=TASK)


def test_quantiles_lie_between_zero_and_one():
    with pytest.raises(ValueError, match="numbers between 0 and 1"):
        fitted("numbers").predict_quantiles(X, [0.5, 1.0], task=TASK)


def test_dates_are_refused_with_their_column():
    table = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    with pytest.raises(ValueError, match="column 'when' holds dates or times"):
        HierarchicalClassifier().fit(table, [0, 1])


@pytest.mark.parametrize("kind", ["two", "numbers"])
@pytest.mark.parametrize("part", ["order", "groups", "0.own", "0.own_scales", "0.gain"])
def test_a_damaged_file_is_refused(kind, part, tmp_path):
    from kinfolk.posterior import predictor_from

    archive = fitted(kind)._to_archive()
    wrong = {"order": np.zeros_like, "groups": lambda a: a + 1, "0.own_scales": np.zeros_like}
    damaged = archive._replace(arrays={**archive.arrays, part: wrong.get(part, lambda a: a[:1])(archive.arrays[part])})
    with pytest.raises(ValueError, match="its"):
        predictor_from(damaged)


def test_scores_are_accuracy_and_explained_variance():
    model = fitted("two")
    assert model.score(X, LABEL, task=TASK) == (model.predict(X, task=TASK) == LABEL).mean()
    regression = fitted("numbers")
    residual = NUMBERS - regression.predict(X, task=TASK)
    assert regression.score(X, NUMBERS, task=TASK) == pytest.approx(1 - residual.var() / NUMBERS.var(), abs=1e-3)


def test_notebooks_and_reports_tell_of_a_fitted_model(model):
    assert type(model).__name__ in model._repr_html_()
    assert model.report().html.startswith("<!doctype html>")


def test_an_explained_number_is_the_sum_of_its_parts():
    model = fitted("numbers")
    explained = model.explain(ASKED, task=ASKED_TASK)
    assert explained.expected() == pytest.approx(model.predict(ASKED, task=ASKED_TASK))
    shares = explained.own + explained.kin + explained.everybody + explained.prior
    assert shares == pytest.approx(np.ones_like(shares))
    assert (explained.own[-1] == 0.0).all()  # a new task has no rows of its own
    assert (explained.own[0] > 0.0).any()
    assert explained.weights is None


def test_the_parts_of_an_explained_number_are_weights_times_distances_from_the_mean():
    rng = np.random.default_rng(0)
    x, task = rng.normal(size=(200, 2)), np.repeat(["a", "b"], 100)
    y = np.where(task == "a", 10.0, 20.0) + x @ [2.0, -1.0] + 0.01 * rng.normal(size=200)
    found = HierarchicalRegressor().fit(x, y, task=task).explain([[1.0, 1.0]], task=["b"])
    assert found.feature_part[0] == pytest.approx([2.0, -1.0] * (1.0 - x.mean(axis=0)), abs=0.02)
    assert found.level[0] == pytest.approx(20.0 + x.mean(axis=0) @ [2.0, -1.0], abs=0.02)
