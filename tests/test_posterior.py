"""Saving and loading: nothing is lost, nothing is executed, and no damaged or hostile file gets any further."""

import io
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kinfolk
from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB

RNG = np.random.default_rng(2)
N_ROWS = 60
LABEL = RNG.choice(["no", "yes"], N_ROWS)
TASK = RNG.choice(["ann", "bob", "eve"], N_ROWS)
SHIFT = (LABEL == "yes") ^ (TASK == "eve")
X = pd.DataFrame(
    {
        "colour": np.where(SHIFT, "red", RNG.choice(["blue", "grün"], N_ROWS)),
        "number": RNG.integers(0, 4, N_ROWS),
        "size": np.where(RNG.random(N_ROWS) < 0.1, np.nan, RNG.normal(SHIFT, 1.0)),
        "flag": RNG.random(N_ROWS) < 0.3,
        "grade": pd.Categorical(RNG.choice(["low", "high"], N_ROWS), categories=["low", "high", "never"]),
    }
)
SOME_UNLABELLED = np.where(np.arange(N_ROWS) % 20 == 0, None, LABEL)
ASKED = pd.concat([X, X.iloc[:2].assign(colour=[None, "mauve"])], ignore_index=True)
ASKED_TASK = np.concatenate([TASK, ["ann", "somebody new"]])
SAMPLING = {"n_chains": 2, "n_burn_in": 3, "n_draws": 4, "random_state": 0}

MODELS = {
    "no sharing": (NoSharingNB(), LABEL),
    "complete sharing": (CompleteSharingNB(), LABEL),
    "own labels": (CompleteSharingNB(share_labels=False), LABEL),
    "bhc": (ClusteredNB(), LABEL),
    "averaged, tempered": (ClusteredNB(predictive="averaged", temper=0.5, concentration=2), LABEL),
    "exact": (ClusteredNB(inference="exact"), LABEL),
    "gibbs": (ClusteredNB(inference="gibbs", **SAMPLING), LABEL),
    "no sharing, unlabelled": (NoSharingNB(**SAMPLING), SOME_UNLABELLED),
    "complete sharing, unlabelled": (CompleteSharingNB(**SAMPLING), SOME_UNLABELLED),
    "exact, unlabelled": (ClusteredNB(inference="exact"), SOME_UNLABELLED),
    "gibbs, unlabelled": (ClusteredNB(inference="gibbs", **SAMPLING), SOME_UNLABELLED),
}


@pytest.fixture(params=MODELS)
def fitted(request):
    model, y = MODELS[request.param]
    return clone(model).fit(X, y, task=TASK)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kin"


def saved(model, path):
    kinfolk.save(model, path)
    return path


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


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 2.0, N_ROWS)], ids=["plain", "weighted"])
def test_adding_rows_after_loading_equals_adding_them_to_the_original(fitted, path, weights):
    loaded = kinfolk.load(saved(fitted, path), estimator=True)
    y = SOME_UNLABELLED if (fitted.label_distributions_.max(axis=1) < 1).any() else LABEL
    task = np.where(np.arange(N_ROWS) % 5 == 0, "zoe", TASK)
    if getattr(fitted, "inference", "") == "exact":
        y = LABEL
    for model in (loaded, fitted):
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
        np.testing.assert_array_equal(predictor.predict_proba(held[held.columns[::-1]]), model.predict_proba(held))


def as_objects(frame):
    return frame.astype(object).where(frame.notna(), None).to_numpy()


@pytest.mark.parametrize(
    "form",
    [
        lambda: X,
        lambda: pl.from_pandas(X.assign(grade=X["grade"].astype(str))),
        lambda: pl.from_pandas(X.assign(grade=X["grade"].astype(str))).to_arrow(),
        lambda: {name: X[name].to_numpy() for name in reversed(list(X))},
        lambda: X[list(X)[::-1]].assign(more=1),
        lambda: as_objects(X),
    ],
    ids=["pandas", "polars", "pyarrow", "mapping", "other order", "numpy"],
)
def test_a_predictor_takes_any_table_and_finds_columns_by_name(form, path):
    model = ClusteredNB().fit(X, LABEL, task=TASK)
    predictor = kinfolk.load(saved(model, path))
    np.testing.assert_array_equal(predictor.predict_proba(form(), task=TASK), model.predict_proba(X, task=TASK))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: p.predict(X), r"the model was fitted to 3 tasks: say which task each row belongs to, task=\.\.\."),
        (lambda p: p.predict(X.drop(columns="size"), task=TASK), "column 'size' is not in the table"),
        (lambda p: p.predict(as_objects(X)[:, :3], task=TASK), "the table has 3 features, the model knows 5"),
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


# What a file may look like instead. Each is refused with one sentence that names it, or does no harm.


def members_of(path):
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def pack(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return path


def as_npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def npy_with_header(header, body):
    text = header.encode().ljust(118 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def edited(path, about=None, arrays=None):
    """The saved model with parts of its JSON and of its arrays replaced; None takes a part out."""
    members = members_of(path)
    story = json.loads(members["model.json"]) | (about or {})
    members["model.json"] = json.dumps({k: v for k, v in story.items() if v is not None} if about else story).encode()
    for name, array in (arrays or {}).items():
        if array is None:
            del members[f"{name}.npy"]
        else:
            members[f"{name}.npy"] = array if isinstance(array, bytes) else as_npy(array)
    return pack(path, members)


def array_of(path, name):
    return np.load(io.BytesIO(members_of(path)[f"{name}.npy"]))


def assert_refused(path, *matches, estimator=False):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the sentence is checked below
        kinfolk.load(path, estimator=estimator)
    sentence = str(refusal.value)
    assert type(refusal.value) is ValueError
    assert str(path) in sentence
    assert "\n" not in sentence
    for match in matches:
        assert re.search(match, sentence.removeprefix(str(path))), sentence


def assert_refused_or_unharmed(path, model, estimator):
    """Loading fails with the right kind of sentence, or gives a model that predicts as before."""
    try:
        loaded = kinfolk.load(path, estimator=estimator)
    except ValueError as refusal:
        sentence = str(refusal)
    else:
        expected = model.predict_proba(ASKED, task=ASKED_TASK)
        np.testing.assert_array_equal(loaded.predict_proba(ASKED, task=ASKED_TASK), expected)
        return True
    assert str(path) in sentence
    assert "\n" not in sentence
    return False


@pytest.fixture
def bhc(path):
    """A fitted model that has a tree, saved."""
    model = ClusteredNB().fit(X, LABEL, task=TASK)
    kinfolk.save(model, path)
    return model


def test_a_file_cut_short_anywhere_is_refused(bhc, path):
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), *range(len(whole) - 30, len(whole))]:
        path.write_bytes(whole[:length])
        assert_refused(path)


@pytest.mark.parametrize("estimator", [False, True])
def test_a_flipped_bit_is_noticed_or_does_no_harm(bhc, path, estimator):
    whole, rng = path.read_bytes(), np.random.default_rng(7)
    n_refused = 0
    for place in rng.integers(0, len(whole), 250):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        n_refused += not assert_refused_or_unharmed(path, bhc, estimator)
    assert n_refused > 125


def test_overwritten_bytes_of_the_zip_files_directory_are_noticed_or_do_no_harm(bhc, path):
    whole, rng = path.read_bytes(), np.random.default_rng(8)
    start = struct.unpack("<I", whole[-6:-2])[0]
    for place in rng.integers(start, len(whole) - 6, 150):
        damaged = bytearray(whole)
        damaged[place] = rng.choice([0, 255])
        path.write_bytes(damaged)
        assert_refused_or_unharmed(path, bhc, False)


def test_a_zip_directory_that_points_before_the_file_is_refused(bhc, path):
    whole = bytearray(path.read_bytes())
    # The place of the directory, four bytes that stand six bytes before the end.
    whole[-6:-2] = struct.pack("<I", struct.unpack("<I", whole[-6:-2])[0] + 5)
    path.write_bytes(whole)
    assert_refused(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello, I am no model\n", b"PK\x03\x04", b"\x80\x04\x95.", pickle.dumps({"a": 1}), bytes(range(256)) * 10],
    ids=["empty", "text", "start of a zip", "start of a pickle", "pickle", "noise"],
)
def test_a_file_that_is_no_zip_is_refused(content, path):
    path.write_bytes(content)
    assert_refused(path, "is not a kinfolk model")


def test_a_zip_of_other_things_is_refused(path):
    assert_refused(pack(path, {"hello.txt": b"hello"}), "is not a kinfolk model")
    assert_refused(pack(path, {}), "is not a kinfolk model")
    np.savez(path.with_suffix(".npz"), a=np.ones(3))
    assert_refused(path.with_suffix(".npz"), "is not a kinfolk model")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert_refused(tmp_path / "nowhere.kin", "does not exist$")
    assert_refused(tmp_path / "no" / "where.kin", "does not exist$")
    assert_refused(tmp_path, "is a folder, not a model file$")


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b'"kinfolk"',
        b"{}",
        b'{"format": "other"}',
        b'{"format": "kinfolk"}',
        b'{"format": "kinfolk", "version": 1}',
    ],
    ids=["cut", "empty", "no text", "nested", "list", "string", "nothing", "foreign", "no version", "no family"],
)
def test_a_story_that_is_not_a_models_is_refused(bhc, path, text):
    pack(path, members_of(path) | {"model.json": text})
    assert_refused(path)


@pytest.mark.parametrize("version", [2, 0, "1", 1.5, None, [1]])
def test_another_format_version_is_refused_by_its_number(bhc, path, version):
    members = members_of(path)
    story = json.loads(members["model.json"]) | {"version": version}
    pack(path, members | {"model.json": json.dumps(story)})
    assert_refused(path, re.escape(f"has format version {version!r}; this kinfolk reads version 1"))


class Payload:
    """Unpickled, it would make a folder."""

    def __init__(self, where):
        self.where = where

    def __reduce__(self):
        return os.mkdir, (str(self.where),)


@pytest.mark.parametrize("estimator", [False, True])
def test_pickled_objects_are_refused_and_not_run(bhc, path, tmp_path, estimator):
    array = np.empty(1, dtype=object)
    array[0] = Payload(tmp_path / "executed")
    for name in ("mixture.block", "something.else"):
        kinfolk.save(bhc, path)
        assert_refused(edited(path, arrays={name: array}), name, "object", estimator=estimator)
    pack(path, {"model.json": pickle.dumps(Payload(tmp_path / "executed"))})
    assert_refused(path, estimator=estimator)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", "b"]),
        np.array([b"a"]),
        np.array([1j]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.zeros(2, dtype=[("a", int)]),
        np.zeros(2, dtype="V8"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_of_anything_but_numbers_are_refused(bhc, path, array):
    assert_refused(edited(path, arrays={"mixture.log_weight": array}), "mixture.log_weight", "instead of plain numbers")


def test_a_zip_bomb_is_refused_before_it_goes_off(bhc, path):
    members = members_of(path)
    bomb = npy_with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (16777216,), }", bytes(1 << 24))
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        pack(path, members | {"bomb.npy": bomb}, compression)
        assert path.stat().st_size < 1 << 20
        assert_refused(path, "is not a kinfolk model")


def overlapping(members, n, size):
    """A stored zip whose last n members lie inside each other, so that together they are n times `size` long."""
    out, directory = io.BytesIO(), []

    def header(name, crc, length):
        return struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 0, crc, length, length, len(name), 0) + name

    def entry(name, crc, length, where):
        fields = (0x02014B50, 20, 20, 0, 0, 0, 0, crc, length, length, len(name), 0, 0, 0, 0, 0, where)
        return struct.pack("<IHHHHHHIIIHHHHHII", *fields) + name

    def add(name, data):
        directory.append(entry(name, zipfile.crc32(data), len(data), out.tell()))
        out.write(header(name, zipfile.crc32(data), len(data)) + data)

    for name, data in members.items():
        add(name.encode(), data)
    # From the inside out: every member is an array whose bytes are the next member with its zip header.
    body, offsets = bytes(size), []
    for i in range(n):
        npy = npy_with_header(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(body)},), }}", body)
        name = f"more{i:05}.npy".encode()
        body = header(name, zipfile.crc32(npy), len(npy)) + npy
        offsets.append((name, zipfile.crc32(npy), len(npy), len(body)))
    start = out.tell()
    out.write(body)
    for name, crc, length, distance in offsets:
        directory.append(entry(name, crc, length, start + len(body) - distance))
    where = out.tell()
    out.write(b"".join(directory))
    size_of_directory = out.tell() - where
    out.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(directory), len(directory), size_of_directory, where, 0))
    return out.getvalue()


def test_members_that_overlap_cannot_unpack_to_more_than_the_files_size(bhc, path):
    path.write_bytes(overlapping(members_of(path), n=20, size=10_000))
    with zipfile.ZipFile(path) as packed:
        assert sum(member.file_size for member in packed.infolist()) > 5 * path.stat().st_size
    assert_refused(path)


def test_a_name_that_stands_twice_is_refused(bhc, path):
    members = members_of(path)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as packed:
        warnings.simplefilter("ignore")
        for name, data in [*members.items(), ("model.json", members["model.json"])]:
            packed.writestr(name, data)
    assert_refused(path)


def test_an_encrypted_file_is_refused(bhc, path):
    whole = bytearray(path.read_bytes())
    start = struct.unpack("<I", whole[-6:-2])[0]
    whole[6] |= 1
    whole[start + 8] |= 1
    path.write_bytes(whole)
    assert_refused(path, "encrypted")


HEADERS = {
    "more than there is": "{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }",
    "less than there is": "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
    "a terabyte": "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }",
    "beyond all bounds": "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000000000000000000,), }",
    "below zero": "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
    "no shape": "{'descr': '<f8', 'fortran_order': False}",
    "no dtype": "{'descr': 'what', 'fortran_order': False, 'shape': (3,), }",
    "code": "__import__('os').mkdir('executed')",
    "nonsense": "}{",
}


@pytest.mark.parametrize("kind", HEADERS)
def test_an_array_whose_header_lies_is_refused(bhc, path, kind):
    lie = npy_with_header(HEADERS[kind], np.ones(3).tobytes())
    assert_refused(edited(path, arrays={"mixture.log_weight": lie}), "'mixture.log_weight.npy'")


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -3), }", np.ones(3).tobytes()),
        (f"{{'descr': '<f8', 'fortran_order': False, 'shape': (0, {10**30}), }}", b""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (3L,", np.ones(3).tobytes()),
    ],
    ids=["two below zero", "nothing times everything", "half a Python 2 tuple"],
)
def test_an_array_whose_header_lies_cunningly_is_refused(bhc, path, header, body):
    lie = npy_with_header(header, body)
    assert_refused(edited(path, arrays={"mixture.log_weight": lie}), "'mixture.log_weight.npy'")


def test_bytes_that_are_no_array_are_refused(bhc, path):
    for data in (b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00", b"hello"):
        assert_refused(edited(path, arrays={"mixture.block": data}), "is not an array")


def distortions(array):
    yield "taken out", None
    yield "one row more", np.concatenate([array, array[-1:]]) if len(array) else np.zeros((1, *array.shape[1:]))
    yield "one row less", array[:-1] if len(array) else None
    yield "flat", array.ravel() if array.ndim > 1 else array[None]
    yield "empty", array[:0].astype(array.dtype) if len(array) else None
    yield "turned", array.T if array.ndim > 1 and array.shape != array.T.shape else array[..., None]
    yield "not a number", np.full(array.shape, np.nan) if array.size else None


SAVED_ARRAYS = [
    "mixture.offsets",
    "mixture.log_theta",
    "mixture.start",
    "mixture.block",
    "mixture.log_weight",
    "mixture.log_rates",
    "blocks.counts",
    "blocks.sizes",
    "partition",
    "feature_counts",
    "label_counts",
    "unlabelled.codes",
    "unlabelled.task",
    "tree.children",
    "tree.log_odds",
]


@pytest.mark.parametrize("name", SAVED_ARRAYS)
def test_arrays_of_the_wrong_shape_are_refused(bhc, path, name):
    whole = path.read_bytes()
    for kind, distorted in distortions(array_of(path, name)):
        if kind in ("flat", "turned") and name == "unlabelled.codes":
            continue  # without rows all these are the same
        if kind == "taken out" and name == "tree.children":
            continue  # a model without a tree is a model
        path.write_bytes(whole)
        edited(path, arrays={name: distorted})
        assert_refused(path, "is damaged", estimator=True)
        # A predictor reads the mixture alone, where a block that nobody is in does no harm.
        if name.startswith("mixture.") and (name, kind) != ("mixture.log_theta", "one row more"):
            assert_refused(path, "is damaged")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mixture.block", 10**6),
        ("mixture.block", -1),
        ("mixture.start", 10**6),
        ("mixture.start", -1),
        ("mixture.offsets", 1),
    ],
)
def test_places_that_do_not_exist_are_refused(bhc, path, name, value):
    array = array_of(path, name).copy()
    array[0] = value
    edited(path, arrays={name: array})
    assert_refused(path, "is damaged")
    assert_refused(path, "is damaged", estimator=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tree.children", 10**6),
        ("tree.children", -1),
        ("tree.children", 3),
        ("partition", 10**9),
        ("partition", -1),
    ],
)
def test_trees_and_partitions_that_cannot_be_are_refused(bhc, path, name, value):
    array = array_of(path, name).copy()
    array.flat[0] = value
    edited(path, arrays={name: array})
    assert_refused(path, "is damaged", estimator=True)


def test_unlabelled_rows_that_do_not_fit_are_refused(path):
    model = ClusteredNB(inference="exact").fit(X, SOME_UNLABELLED, task=TASK)
    for name, value in [("unlabelled.task", 3), ("unlabelled.task", -1), ("unlabelled.codes", 99)]:
        array = array_of(saved(model, path), name).copy()
        array.flat[0] = value
        edited(path, arrays={name: array})
        assert_refused(path, "its unlabelled rows do not fit its categories and tasks", estimator=True)


BAD_STORIES = {
    "family unknown": {"family": "os"},
    "family of a wrong type": {"family": ["naive_bayes"]},
    "estimator unknown": {"estimator": "Popen"},
    "estimator no model": {"estimator": "DecisionClassifier"},
    "parameter unknown": {"params": {"nonsense": 1}},
    "parameters missing": {"params": {}},
    "parameters a list": {"params": []},
    "classes missing": {"classes": None},
    "a class more": {"classes": ["maybe", "no", "yes"]},
    "no classes": {"classes": []},
    "a task more": {"tasks": ["ann", "bob", "eve", "zoe"]},
    "tasks a number": {"tasks": 3},
    "schema missing": {"schema": None},
    "schema empty": {"schema": []},
    "schema text": {"schema": "colour"},
    "column without values": {"schema": [{"name": "colour", "categories": None, "edges": None}]},
    "column with both": {"schema": [{"name": "colour", "categories": ["a"], "edges": [1.0]}]},
    "edges of text": {"schema": [{"name": "colour", "categories": None, "edges": ["a"]}]},
    "temper text": {"temper": "hot"},
    "temper missing": {"temper": None},
}


@pytest.mark.parametrize("kind", BAD_STORIES)
def test_a_story_that_does_not_fit_its_arrays_is_refused(bhc, path, kind):
    edited(path, about=BAD_STORIES[kind])
    says = ["is not one that this version knows"] if kind.startswith(("family", "estimator")) else []
    # A predictor needs no estimator, and an estimator has its temper among its parameters.
    if not kind.startswith(("estimator", "parameter unknown")):
        assert_refused(path, *says)
    if not kind.startswith(("temper", "parameters missing")):
        assert_refused(path, *says, estimator=True)


@pytest.mark.parametrize("temper", [float("nan"), float("inf"), -1.0, 10**400], ids=["NaN", "inf", "negative", "huge"])
def test_a_temper_that_cannot_be_is_refused(bhc, path, temper):
    assert_refused(edited(path, about={"temper": temper}))


@pytest.mark.parametrize(
    "change",
    [
        lambda story: story["schema"][0].update(categories=[["a"], ["b"], ["c"]]),
        lambda story: story.update(tasks=[["a"], ["b"], ["c"]]),
        lambda story: story.update(classes=[{}, []]),
        lambda story: story["schema"][2].update(edges=story["schema"][2]["edges"][::-1]),
        lambda story: story["schema"][2].update(edges=[float("nan")] * len(story["schema"][2]["edges"])),
    ],
    ids=["categories", "tasks", "labels", "falling edges", "edges that are no numbers"],
)
def test_nested_names_and_edges_that_do_not_rise_are_refused(bhc, path, change):
    story = json.loads(members_of(path)["model.json"])
    change(story)
    assert_refused(edited(path, about=story))


@pytest.mark.parametrize("name", ["mixture.log_theta", "mixture.log_weight", "mixture.log_rates"])
def test_infinite_numbers_are_refused(bhc, path, name):
    array = array_of(path, name).copy()
    array.flat[0] = np.inf
    assert_refused(edited(path, arrays={name: array}))


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
