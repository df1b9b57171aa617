"""Saving and loading: nothing is lost, nothing is executed, and files are written whole."""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kinfolk
from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB
from tests.saved_models import ASKED, ASKED_TASK, LABEL, MODELS, N_ROWS, SAMPLING, SOME_UNLABELLED, TASK, X, saved


@pytest.fixture(params=MODELS)
def fitted(request):
    model, y = MODELS[request.param]
    return clone(model).fit(X, y, task=TASK)


def test_a_loaded_predictor_predicts_what_the_model_did(fitted, path):
    predictor = kinfolk.load(saved(fitted, path))
    expected = fitted.predict_proba(ASKED, task=ASKED_TASK)
    np.testing.assert_array_equal(predictor.predict_proba(ASKED, task=ASKED_TASK), expected)
    np.testing.assert_array_equal(predictor.predict(ASKED, task=ASKED_TASK), fitted.predict(ASKED, task=ASKED_TASK))
    np.testing.assert_array_equal(
        predictor.predict_log_proba(ASKED, task=ASKED_TASK), fitted.predict_log_proba(ASKED, task=ASKED_TASK)
    )
    assert predictor.feature_names_in_ == list(X)


def test_a_loaded_estimator_knows_all_that_the_model_knew(fitted, path):
    with_evidence = fitted.log_evidence_, fitted.log_evidence_kind_, fitted.log_evidence_error_
    loaded = kinfolk.load(saved(fitted, path), estimator=True)
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    ask = {"X": ASKED, "task": ASKED_TASK}
    np.testing.assert_array_equal(loaded.predict_proba(**ask), fitted.predict_proba(**ask))
    assert loaded.tasks_.tolist() == fitted.tasks_.tolist()
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert loaded.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
    assert loaded.n_features_in_ == fitted.n_features_in_
    np.testing.assert_array_equal(loaded.partition_, fitted.partition_)
    np.testing.assert_array_equal(loaded.similarity_, fitted.similarity_)
    np.testing.assert_array_equal(loaded.label_distributions_, fitted.label_distributions_)
    np.testing.assert_array_equal(loaded.transduction_, fitted.transduction_)
    assert (loaded.log_evidence_, loaded.log_evidence_kind_, loaded.log_evidence_error_) == with_evidence
    pd.testing.assert_frame_equal(loaded.feature_rates(by="task"), fitted.feature_rates(by="task"))
    pd.testing.assert_frame_equal(loaded.label_rates("map"), fitted.label_rates("map"))
    for found, expected in zip(loaded.explain(**ask)[3:-1], fitted.explain(**ask)[3:-1], strict=True):
        np.testing.assert_array_equal(found, expected)
    pd.testing.assert_frame_equal(loaded.explain(**ask).table(3), fitted.explain(**ask).table(3))


def test_a_loaded_tree_is_the_tree_that_was_saved(path):
    model = ClusteredNB().fit(X, LABEL, task=TASK)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    np.testing.assert_array_equal(loaded.tree_.linkage(), model.tree_.linkage())
    assert loaded.tree_.log_tree_sum == model.tree_.log_tree_sum
    assert loaded.log_evidence_kind_ == "lower bound"


def test_draws_of_the_sampler_are_saved(path):
    model = ClusteredNB(inference="gibbs", **SAMPLING).fit(X, LABEL, task=TASK)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    np.testing.assert_array_equal(loaded.posterior_.partitions, model.posterior_.partitions)
    np.testing.assert_array_equal(loaded.posterior_.log_joint, model.posterior_.log_joint)


def test_evidence_can_be_estimated_after_loading(path):
    model = ClusteredNB(inference="gibbs", **SAMPLING).fit(X, LABEL, task=TASK)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    assert loaded.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-9)
    assert loaded.log_evidence_kind_ == "estimate"


@pytest.mark.parametrize(
    "weights", [None, np.random.default_rng(3).uniform(0.5, 2.0, N_ROWS)], ids=["plain", "weighted"]
)
def test_adding_rows_after_loading_equals_adding_them_to_the_original(fitted, path, weights):
    loaded = kinfolk.load(saved(fitted, path), estimator=True)
    y = SOME_UNLABELLED if (fitted.label_distributions_.max(axis=1) < 1).any() else LABEL
    task = np.where(np.arange(N_ROWS) % 5 == 0, "zoe", TASK)
    if getattr(fitted, "inference", "") == "exact":
        y = LABEL
    for model in (loaded, fitted):
        # Learnt from rows that are at hand, and a file does not keep them.
        model.set_params(temper=1.0)
        model.partial_fit(X, y, task=task, sample_weight=weights)
    assert loaded.tasks_.tolist() == ["ann", "bob", "eve", "zoe"]
    ask = {"X": ASKED, "task": ASKED_TASK}
    np.testing.assert_array_equal(loaded.predict_proba(**ask), fitted.predict_proba(**ask))
    np.testing.assert_array_equal(loaded.partition_, fitted.partition_)


def test_weights_of_unlabelled_rows_are_kept(path):
    weights = np.random.default_rng(3).uniform(0.5, 2.0, N_ROWS)
    model = ClusteredNB(inference="exact").fit(X, SOME_UNLABELLED, task=TASK, sample_weight=weights)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    for fitted in (model, loaded):
        fitted.partial_fit(X[:5], LABEL[:5], task=TASK[:5])
    assert loaded.log_evidence_ == model.log_evidence_


def test_rows_without_a_label_have_none_once_loaded_nor_what_else_they_miss(path):
    gaps = X.assign(colour=X["colour"].mask(np.arange(N_ROWS) == 20))
    model = ClusteredNB(inference="exact").fit(gaps, SOME_UNLABELLED, task=TASK)
    rows = kinfolk.load(saved(model, path), estimator=True)._result.data.unlabelled
    assert (rows.codes == -1).any()
    for loaded, kept in zip(rows, model._result.data.unlabelled, strict=True):
        np.testing.assert_array_equal(loaded, kept)


def test_a_model_that_was_loaded_can_be_saved_again_byte_for_byte(fitted, path, tmp_path):
    loaded = kinfolk.load(saved(fitted, path), estimator=True)
    again = saved(loaded, tmp_path / "again.kin")
    with zipfile.ZipFile(path) as first, zipfile.ZipFile(again) as second:
        assert first.namelist() == second.namelist()
        for name in first.namelist():
            assert first.read(name) == second.read(name), name


def test_fitting_the_loaded_estimator_anew_forgets_what_was_saved(path):
    loaded = kinfolk.load(saved(NoSharingNB().fit(X, LABEL, task=TASK), path), estimator=True)
    loaded.fit([["a"], ["b"]], [0, 1])
    assert loaded.predict([["b"]]).tolist() == [1]


IDS = {
    "whole numbers": [3, 12],
    "text": ["b", "名"],
    "text like numbers": ["1", "2"],
    "booleans": [False, True],
    "fractions": [0.5, 2.0],
    "mixed": [1, "b"],
    "booleans and text": [True, "b"],
    "large numbers": [2**70, 2**71],
}


@pytest.mark.parametrize("kind", IDS)
def test_tasks_labels_and_categories_keep_their_types(kind, path):
    first, second = IDS[kind]
    values = [first, second] * 10
    rows = pd.DataFrame({"v": np.fromiter(values, dtype=object)})
    model = NoSharingNB(categorical_features=["v"]).fit(rows, values, task=values[::-1])
    predictor = kinfolk.load(saved(model, path))
    loaded = kinfolk.load(path, estimator=True)
    for other in (predictor, loaded):
        assert [(type(v), v) for v in other.tasks_.tolist()] == [(type(v), v) for v in model.tasks_.tolist()]
        assert [(type(v), v) for v in other.classes_.tolist()] == [(type(v), v) for v in model.classes_.tolist()]
        np.testing.assert_array_equal(
            other.predict_proba(rows, task=values), model.predict_proba(rows, task=values), err_msg=str(type(other))
        )
        assert other.predict(rows, task=values[::-1]).tolist() == values
        assert {type(v) for v in other.predict(rows, task=values).tolist()} <= {type(first), type(second)}
    pd.testing.assert_frame_equal(loaded.feature_rates(), model.feature_rates())


def test_parameters_of_every_form_are_kept(path):
    model = NoSharingNB(
        label_prior={"yes": 2.0},
        feature_prior={"number": np.array([1.0, 2.0, 3.0, 4.0]), "colour": 0.5},
        temper=1.0,
        bins={"size": [0.0, 0.5]},
        categorical_features=["colour", "number", "flag", "grade"],
        random_state=np.random.RandomState(0),
        n_jobs=1,
    ).fit(X, LABEL, task=TASK)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    assert loaded.label_prior == {"yes": 2.0}
    assert loaded.feature_prior == {"number": [1.0, 2.0, 3.0, 4.0], "colour": 0.5}
    assert loaded.bins == {"size": [0.0, 0.5]}
    assert isinstance(loaded.random_state, int)
    expected = model.partial_fit(X, LABEL, task=TASK).predict_proba(X, task=TASK)
    np.testing.assert_array_equal(loaded.partial_fit(X, LABEL, task=TASK).predict_proba(X, task=TASK), expected)


@pytest.mark.parametrize("column", ["who", -1, 5])
def test_a_predictor_takes_the_task_from_the_column_that_the_model_did(column, path):
    held = X.assign(who=TASK)
    model = ClusteredNB(task_column=column).fit(held, LABEL)
    predictor = kinfolk.load(saved(model, path))
    np.testing.assert_array_equal(predictor.predict_proba(held), model.predict_proba(held))
    if column == "who":
        beside = predictor.predict_proba(held.drop(columns="who"), task=held["who"])
        np.testing.assert_array_equal(beside, model.predict_proba(held))


def as_objects(frame):
    return frame.astype(object).where(frame.notna(), None).to_numpy()


@pytest.mark.parametrize(
    "form",
    [
        lambda: X,
        lambda: pl.from_pandas(X.assign(grade=X["grade"].astype(str))),
        lambda: pl.from_pandas(X.assign(grade=X["grade"].astype(str))).to_arrow(),
        lambda: {name: X[name].to_numpy() for name in X},
        lambda: X.assign(more=1),
    ],
    ids=["pandas", "polars", "pyarrow", "mapping", "columns more"],
)
def test_a_predictor_takes_any_table_and_finds_columns_by_name(form, path):
    model = ClusteredNB().fit(X, LABEL, task=TASK)
    predictor = kinfolk.load(saved(model, path))
    np.testing.assert_array_equal(predictor.predict_proba(form(), task=TASK), model.predict_proba(X, task=TASK))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: p.predict(X), r"the model was fitted to 3 tasks: say which task each row belongs to, task=\.\.\."),
        (lambda p: p.predict(as_objects(X)[:, :3], task=TASK), "X has 3 features, but ClusteredNB is expecting 5"),
        (lambda p: p.predict(X, task=TASK[:3]), "task has 3 entries for 60 rows"),
        (lambda p: p.predict(X[:2], task=["ann", None]), "task, row 1: a task is missing, every row needs one"),
        (lambda p: p.predict(X[:1].assign(size=np.inf), task=["ann"]), "column 'size', row 0: infinity"),
    ],
)
def test_a_predictor_refuses_bad_rows_in_a_sentence(ask, message, path):
    predictor = kinfolk.load(saved(ClusteredNB().fit(X, LABEL, task=TASK), path))
    with pytest.raises(ValueError, match=message) as refusal:
        ask(predictor)
    assert "\n" not in str(refusal.value)


def test_a_predictor_refuses_columns_that_are_missing_or_in_another_order(path):
    predictor = kinfolk.load(saved(ClusteredNB().fit(X, LABEL, task=TASK), path))
    with pytest.raises(ValueError, match="yet now missing:\n- size\n"):
        predictor.predict(X.drop(columns="size"), task=TASK)
    with pytest.raises(ValueError, match="in the same order as they were in fit"):
        predictor.predict(X[list(X)[::-1]], task=TASK)


def test_a_predictor_refuses_both_a_task_and_a_task_column(path):
    held = X.assign(who=TASK)
    predictor = kinfolk.load(saved(ClusteredNB(task_column="who").fit(held, LABEL), path))
    with pytest.raises(ValueError, match="both given"):
        predictor.predict(held, task=TASK)


FORBIDDEN = ["numba", "sklearn", "scipy", "joblib", "narwhals", "polars", "pandas", "pyarrow", "llvmlite"]


@pytest.mark.parametrize("kind", ["bhc", "gibbs, unlabelled"])
def test_predicting_from_a_file_needs_numpy_alone(kind, path, tmp_path):
    model, y = MODELS[kind]
    model = clone(model).fit(X, y, task=TASK)
    saved(model, path)
    np.save(tmp_path / "rows.npy", as_objects(X), allow_pickle=True)
    script = f"""
import json, sys
import numpy as np
import kinfolk
predictor = kinfolk.load({str(path)!r})
rows = np.load({str(tmp_path / "rows.npy")!r}, allow_pickle=True)
proba = predictor.predict_proba(rows, task={TASK.tolist()!r})
names = {list(X)!r}
by_name = predictor.predict_proba({{name: rows[:, f] for f, name in enumerate(names)}}, task={TASK.tolist()!r})
assert (proba == by_name).all()
decided = kinfolk.decide(proba, 1 - np.eye(2))
print(json.dumps({{"proba": proba.tolist(), "loaded": sorted(set({FORBIDDEN!r}) & set(sys.modules))}}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    answer = json.loads(done.stdout)
    assert answer["loaded"] == []
    np.testing.assert_array_equal(answer["proba"], model.predict_proba(X, task=TASK))


# Writing.


def files_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("interruption", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
def test_a_save_that_fails_midway_leaves_the_old_file_and_nothing_else(bhc, path, interruption, monkeypatch):
    before, written = path.read_bytes(), []
    write_array = np.lib.format.write_array

    def fails_at_the_third(*arguments, **options):
        written.append(1)
        if len(written) == 3:
            raise interruption
        write_array(*arguments, **options)

    monkeypatch.setattr(np.lib.format, "write_array", fails_at_the_third)
    with pytest.raises(type(interruption)):
        kinfolk.save(NoSharingNB().fit(X, LABEL, task=TASK), path)
    assert len(written) == 3
    assert path.read_bytes() == before
    assert files_in(path.parent) == [path.name]


def test_saving_replaces_the_file_and_leaves_nothing_beside_it(bhc, path):
    other = NoSharingNB().fit([["a"], ["b"]], [0, 1])
    kinfolk.save(other, path)
    assert kinfolk.load(path).predict([["b"]]).tolist() == [1]
    assert files_in(path.parent) == [path.name]


def test_a_loaded_model_of_one_column_says_so(path):
    kinfolk.save(kinfolk.NoSharingNB().fit([["a"], ["b"]], [0, 1]), path)
    assert "1 column," in repr(kinfolk.load(path))


def test_a_path_may_be_text(bhc, path):
    kinfolk.save(bhc, str(path))
    assert kinfolk.load(str(path)).tasks_.tolist() == ["ann", "bob", "eve"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_saved_model_may_be_read_by_whom_any_new_file_may(bhc, path):
    beside = path.with_suffix(".txt")
    beside.write_text("new")
    assert path.stat().st_mode == beside.stat().st_mode


def test_a_model_that_is_not_fitted_cannot_be_saved(path):
    for model in (NoSharingNB(), CompleteSharingNB(), ClusteredNB()):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            kinfolk.save(model, path)
    assert files_in(path.parent) == []


def test_things_that_are_no_models_are_refused(path):
    with pytest.raises(TypeError, match=r"^dict is not a kinfolk model that can be saved$"):
        kinfolk.save({}, path)


@pytest.mark.parametrize(
    "value",
    [b"bytes", pd.Interval(0, 1), (1, 2)],
    ids=["bytes", "interval", "tuple"],
)
@pytest.mark.parametrize("part", ["category", "task", "label"])
def test_names_that_json_cannot_hold_are_refused_when_saving(value, part, path):
    values = {name: ["a", "b"] for name in ("category", "task", "label")}
    values[part] = [value, "b"]
    rows = np.empty((2, 1), dtype=object)
    rows[:, 0] = values["category"]
    model = NoSharingNB().fit(rows, values["label"], task=values["task"])
    with pytest.raises(ValueError, match=r"cannot be saved: text, numbers and booleans can$") as refusal:
        kinfolk.save(model, path)
    assert repr(value) in str(refusal.value)
    assert {"category": "column '0'", "task": "a task", "label": "a label"}[part] in str(refusal.value)
    assert files_in(path.parent) == []
