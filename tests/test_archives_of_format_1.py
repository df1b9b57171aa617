"""Models that were saved in the first format keep loading, and say what they said when they were saved.

``archives/format-1.zip`` has one small model of every estimator and option, the rows that each was asked about, and
what it answered from its file on the day that it was saved; ``format-1-later.zip`` those that came after it.
"""

import io
import json
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kinfolk

FOLDER = Path(__file__).parent / "archives"
LENGTHS = [20] * 8
TASKS = ["ann", "bob", "cid", "ann", "dee", "dee", "eve", "eve"]
# Earlier versions of pandas round what they read unless they are told not to, and later ones warn of being told.
EXACTLY = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}


@cache
def packed(pack, name):
    with zipfile.ZipFile(FOLDER / f"{pack}.zip") as opened:
        return opened.read(name)


INDEX = {
    name: {"pack": pack, **about}
    for pack in ("format-1", "format-1-later")
    for name, about in json.loads(packed(pack, "index.json")).items()
}


@cache
def answers(pack):
    with np.load(io.BytesIO(packed(pack, "answers.npz"))) as known:
        return {name.replace(":", "/"): known[name] for name in known.files}


def question(name, about):
    rows = pd.read_csv(io.BytesIO(packed(about["pack"], f"questions/{about['question']}.csv")), **EXACTLY)
    if about["kind"] == "seq":
        rows = rows["s"].to_numpy() if about["question"] == "symbols" else rows
        return {"X": rows, "lengths": LENGTHS, "task": TASKS}
    if about["kind"] == "nbcol":
        return {"X": rows}
    task = rows.pop("who")
    if name == "net/parts":
        rows = rows[["a", "b", "c", "d"]]
    if name.startswith("lica/reg") or "matrix" in name or "sparse" in name:
        rows = rows.to_numpy()
    if about["kind"] == "multinet" or "matrix" in name:
        return {"X": rows}
    return {"X": rows, "task": task.to_numpy()}


def answer(model, name, about):
    asked = question(name, about)
    return getattr(model, about["method"])(**asked)


@pytest.fixture
def path(request, tmp_path):
    file = tmp_path / "model.kin"
    file.write_bytes(packed(INDEX[request.param]["pack"], f"archives/{request.param}.kin"))
    return file


@pytest.mark.parametrize(("path", "name"), [(name, name) for name in INDEX], indirect=["path"], ids=list(INDEX))
def test_an_old_file_answers_as_it_did(path, name):
    found = answer(kinfolk.load(path), name, INDEX[name])
    np.testing.assert_allclose(found, answers(INDEX[name]["pack"])[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("path", "name"),
    [(name, name) for name in INDEX],
    indirect=["path"],
    ids=list(INDEX),
)
def test_the_estimator_of_an_old_file_answers_as_it_did(path, name):
    about = INDEX[name]
    model = kinfolk.load(path, estimator=True)
    assert type(model).__name__ == about["estimator"]
    np.testing.assert_allclose(answer(model, name, about), answers(about["pack"])[name], rtol=1e-9, atol=1e-12)
