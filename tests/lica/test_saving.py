"""Linear models of many tasks in files: nothing is lost, numpy alone reads them, and damage costs one sentence."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import kinfolk
from kinfolk import LICAClassifier, LICARegressor
from kinfolk.datasets import make_lica_tasks
from tests.saved_models import saved
from tests.test_hostile_files import array_of, assert_refused, edited

MADE = make_lica_tasks(6, 25, 20, 2, random_state=0)
LOW = make_lica_tasks(5, 4, 30, 1, random_state=1)
GAUSSIAN = make_lica_tasks(6, 10, 15, 1, link="gaussian", random_state=2)
THIN = sparse.csr_matrix(np.where(np.abs(MADE.X) > 1.2, MADE.X, 0.0))
MATRIX = np.where(np.random.default_rng(0).random((120, 4)) < 0.1, np.nan, (MADE.X[:, :4] > 0).astype(float))
FITS = {
    "eb": (LICAClassifier(n_sources=2, random_state=0), MADE.X, MADE.y, MADE.task),
    "probit": (LICAClassifier(n_sources=2, link="probit", weight_variances=True), MADE.X, MADE.y, MADE.task),
    "more rows than features": (LICAClassifier(n_sources=1), LOW.X, np.array(["no", "yes"])[LOW.y], LOW.task),
    "sparse": (LICAClassifier(n_sources=2, class_weight={0: 2.0}), THIN, MADE.y, MADE.task),
    "map": (LICAClassifier(n_sources=2, inference="map"), MADE.X, MADE.y, MADE.task.astype(str)),
    "hierarchical": (LICAClassifier(sharing="hierarchical"), THIN, MADE.y, MADE.task),
    "matrix": (LICAClassifier(n_sources=2), MADE.X, MATRIX, None),
    "sparse matrix": (LICAClassifier(n_sources=2), THIN, MATRIX, None),
    "regression": (LICARegressor(n_sources=1), GAUSSIAN.X, GAUSSIAN.y, GAUSSIAN.task),
    "number chosen": (LICARegressor(), GAUSSIAN.X, GAUSSIAN.y, GAUSSIAN.task),
}


@pytest.fixture(scope="module")
def models():
    return {
        name: (model.set_params(random_state=0, new_tasks="expected").fit(X, y, task=task), X, task)
        for name, (model, X, y, task) in FITS.items()
    }


def answers(model, X, task):
    if hasattr(model, "predict_proba") and getattr(model, "classes_", None) is not None:
        return model.predict_proba(X, task=task)
    return np.stack(model.predict(X, task=task, return_std=True))


def asked(X, task):
    """The rows, the first of them of a task that nobody has seen."""
    return X, None if task is None else np.array(["somebody new", *task.tolist()[1:]], dtype=object)


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_predictor_answers_as_the_model(models, path, name):
    model, X, task = models[name]
    predictor = kinfolk.load(saved(model, path))
    rows, tasks = asked(X, task)
    for table in (rows, rows.toarray() if sparse.issparse(rows) else sparse.csr_array(rows)):
        np.testing.assert_allclose(answers(predictor, table, tasks), answers(model, table, tasks), atol=1e-9)
        np.testing.assert_allclose(
            predictor.decision_function(table, task=tasks),
            model._fitted_predictor().decision_function(table, task=tasks),
            atol=1e-9,
        )
    if model._classification:
        np.testing.assert_array_equal(predictor.predict(rows, task=tasks), model.predict(rows, task=tasks))
        assert predictor.classes_.tolist() == model.classes_.tolist()
    assert predictor.tasks_.tolist() == model.tasks_.tolist()
    np.testing.assert_array_equal(predictor.coef_, model.coef_)


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_estimator_knows_what_the_saved_one_knew(models, path, name):
    model, X, task = models[name]
    again = kinfolk.load(saved(model, path), estimator=True)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    rows, tasks = asked(X, task)
    # Sparse training rows are multiplied by scipy after a fit, and by numpy after a load.
    np.testing.assert_allclose(answers(again, rows, tasks), answers(model, rows, tasks), rtol=1e-12)
    for attribute in ("coef_", "intercept_", "sources_", "components_", "source_similarity_", "objective_", "tasks_"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))
    np.testing.assert_allclose(again.source_variances_, model.source_variances_, rtol=1e-12)
    assert (again.n_iter_, again.converged_, again.n_sources_) == (model.n_iter_, model.converged_, model.n_sources_)
    assert again.top_features(2).equals(model.top_features(2))
    assert hasattr(again, "n_sources_curve_") == (model.n_sources is None and model.sharing == "sources")
    assert hasattr(again, "n_features_in_")


def test_variances_of_weights_come_back(models, path):
    model = models["probit"][0]
    again = kinfolk.load(saved(model, path), estimator=True)
    np.testing.assert_array_equal(again.weight_variances_, model.weight_variances_)


@pytest.mark.parametrize("name", ["eb", "sparse", "map"])
def test_a_task_is_added_to_a_loaded_estimator_as_to_the_saved_one_and_saved_again(path, name):
    model, X, y, task = FITS[name]
    first = model.set_params(random_state=0).fit(X, y, task=task)
    again = kinfolk.load(saved(first, path), estimator=True)
    for one in (first, again):
        one.fit_task(X[:15], y[:15], task="added")
    np.testing.assert_array_equal(again.coef_, first.coef_)
    predictor = kinfolk.load(saved(again, path))
    found = predictor.predict_proba(X, task=["added"] * X.shape[0])
    np.testing.assert_allclose(found, first.predict_proba(X, task=["added"] * X.shape[0]), atol=1e-9)


def test_a_warm_start_goes_on_from_a_loaded_estimator(models, path):
    model, X, task = models["eb"]
    again = kinfolk.load(saved(model, path), estimator=True).set_params(warm_start=True)
    again.fit(X, MADE.y, task=task)
    assert again.n_iter_ < model.n_iter_


def test_names_of_columns_are_kept_and_other_columns_refused(path):
    names = [f"f{j}" for j in range(25)]
    X = pd.DataFrame(MADE.X, columns=names).assign(who=MADE.task)
    model = LICAClassifier(n_sources=2, task_column="who").fit(X, MADE.y)
    predictor = kinfolk.load(saved(model, path))
    assert predictor.feature_names_in_ == names
    np.testing.assert_allclose(predictor.predict_proba(X), model.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match="unseen at fit time:\n- g"):
        predictor.predict(X.rename(columns={"f0": "g"}))
    with pytest.raises(ValueError, match="now missing:\n- f0"):
        predictor.predict(X.drop(columns="f0"))
    again = kinfolk.load(path, estimator=True)
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()


def test_a_predictor_needs_numpy_alone(models, path):
    model, X, _ = models["sparse matrix"]
    saved(model, path)
    np.save(path.with_suffix(".npy"), X.toarray())
    script = (
        "import sys, json, numpy as np, kinfolk\n"
        f"found = kinfolk.load({str(path)!r}).predict_proba(np.load({str(path.with_suffix('.npy'))!r}))\n"
        "print(json.dumps([found.tolist(), [m for m in ('scipy', 'sklearn', 'numba', 'pandas') if m in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found, imported = json.loads(done.stdout)
    assert imported == []
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-9)


def test_only_empirical_bayes_keeps_training_rows(models, path):
    saved(models["map"][0], path)
    assert array_of(path, "reach.rows").size == 0
    with pytest.raises(KeyError):
        array_of(path, "table.0")
    saved(models["eb"][0], path)
    np.testing.assert_array_equal(array_of(path, "table.0"), models["eb"][0].scaling_.apply(MADE.X))


def test_questions_that_do_not_fit_the_model_are_refused(models, path):
    regression = kinfolk.load(saved(models["regression"][0], path))
    with pytest.raises(ValueError, match="is a regression: it has no probabilities"):
        regression.predict_proba(GAUSSIAN.X, task=GAUSSIAN.task)
    classifier = kinfolk.load(saved(models["eb"][0], path))
    with pytest.raises(ValueError, match="return_std=True is for a regression"):
        classifier.predict(MADE.X, task=MADE.task, return_std=True)
    with pytest.raises(ValueError, match="tasks: say which task each row"):
        classifier.predict(MADE.X)


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"tasks": []}, "it has no tasks"),
        ({"tasks": [0, 0, 1, 2, 3, 4]}, "stands there twice"),
        ({"tasks": [0, 1]}, "has shape"),
        ({"classes": [0, 1, 2]}, "it has 3 labels"),
        ({"link": "cloglog"}, "does not go with its labels"),
        ({"link": "gaussian"}, "does not go with its labels"),
        ({"source_scale": -1.0}, "variances that are not positive"),
        ({"intercept_variance": "wide"}, "could not convert"),
        ({"features": ["a"]}, "names of its features"),
        ({"params": None}, "its part 'params' is missing"),
    ],
    ids=str,
)
@pytest.mark.parametrize("estimator", [False, True])
def test_a_story_that_does_not_fit_is_refused(models, path, about, sentence, estimator):
    saved(models["sparse"][0], path)
    assert_refused(edited(path, about=about), sentence, estimator=estimator)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("weights", lambda a: a[:, 1:], "has shape"),
        ("weights", lambda a: a * np.nan, "NaN or infinity"),
        ("noise", lambda a: -a, "variances that are not positive"),
        ("loadings", lambda a: a[:0], "has shape"),
        ("reach.table", lambda a: a + 1, "missing"),
        ("reach.rows", lambda a: a + 10_000, "training rows that it does not have"),
        ("reach.rows", lambda a: a - 10_000, "training rows that it does not have"),
        ("reach.ends", lambda a: a[::-1], "has shape|not in order"),
        ("reach.ends", lambda a: a - 7, "has shape|not in order"),
        ("reach.precision", lambda a: -a, "precisions below zero"),
        ("table.0.indices", lambda a: a + 25, "features that it does not have"),
        ("table.0.ends", lambda a: a[::-1], "not in order"),
        ("table.0.data", None, "is missing"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(models, path, name, change, sentence):
    saved(models["sparse"][0], path)
    array = None if change is None else change(array_of(path, name))
    assert_refused(edited(path, arrays={name: array}), sentence)
    assert_refused(path, sentence, estimator=True)
