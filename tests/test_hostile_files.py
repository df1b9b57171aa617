"""No damaged or hostile model file gets any further than one sentence."""

import io
import json
import os
import pickle
import re
import struct
import warnings
import zipfile

import numpy as np
import pytest

import kinfolk
from kinfolk import ClusteredNB
from tests.saved_models import ASKED, ASKED_TASK, SOME_UNLABELLED, TASK, X, saved

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
    for nowhere in (tmp_path / "nowhere.kin", tmp_path / "no" / "where.kin"):
        with pytest.raises(FileNotFoundError, match=f"^{re.escape(str(nowhere))} does not exist$"):
            kinfolk.load(nowhere)
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


@pytest.mark.parametrize("depth", [101, 700, 5_000])
def test_what_is_nested_deeply_is_refused_however_much_python_would_bear(bhc, path, depth):
    edited(path, {"beside": 0})
    members = members_of(path)
    members["model.json"] = members["model.json"].replace(b'"beside": 0', b'"beside": ' + b"[" * depth + b"]" * depth)
    pack(path, members)
    assert_refused(path, "nested more than 100 levels|is not JSON")


def test_what_is_nested_a_little_is_read(bhc, path):
    edited(path, {"beside": json.loads("[" * 90 + "]" * 90)})
    np.testing.assert_array_equal(kinfolk.load(path).tasks_, bhc.tasks_)


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


def test_the_block_after_the_last_is_refused(bhc, path):
    block = array_of(path, "mixture.block").copy()
    block[-1] = len(array_of(path, "mixture.log_theta"))
    edited(path, arrays={"mixture.block": block})
    assert_refused(path, "names blocks that it does not have")


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
    wrong = [("unlabelled.task", 3), ("unlabelled.task", -1), ("unlabelled.codes", 99), ("unlabelled.codes", -2)]
    for name, value in wrong:
        array = array_of(saved(model, path), name).copy()
        array.flat[0] = value
        edited(path, arrays={name: array})
        assert_refused(path, "its unlabelled rows do not fit its categories and tasks", estimator=True)


BAD_STORIES = {
    "family unknown": {"family": "os"},
    "family of a wrong type": {"family": ["naive_bayes"]},
    "estimator unknown": {"estimator": "Popen"},
    "estimator no model": {"estimator": "LeaveTasksOut"},
    "of another family": {"estimator": "DecisionClassifier"},
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
    if not kind.startswith(("estimator", "of another", "parameter unknown")):
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
