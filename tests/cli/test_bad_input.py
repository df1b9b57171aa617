"""Input that cannot be used gives exit status 2, one sentence that names the culprit, and no file."""

import json
import os
import re
from datetime import date, time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kinfolk
from tests.cli.conftest import Run

GOOD = pd.DataFrame(
    {"id": ["a", "b"] * 6, "f": ["x", "y", "x"] * 4, "g": np.arange(12) / 8, "y": ["no", "no", "yes"] * 4}
)
FIT = ("fit", "t.csv", "--task", "id", "--label", "y", "-o", "m.kin")


@pytest.fixture(autouse=True)
def files(run: Run) -> None:
    """Good files beside which something bad is given."""
    GOOD.to_csv("t.csv", index=False)
    kinfolk.save(kinfolk.NoSharingNB(task_column="id").fit(GOOD.drop(columns="y"), GOOD["y"]), "good.kin")
    Path("loss.csv").write_text("label,go,stay\nno,0,1\nyes,1,0\n")
    Path("folder").mkdir()


def refused(run: Run, *arguments: object, given: str | bytes | None = None) -> str:
    """Run something that must be refused, and give the sentence."""
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    result = run(*arguments, given=given)
    assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
    return result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fit", "nothing.csv", *FIT[2:]), ["nothing.csv", "No such file"]),
        (("fit", "folder", *FIT[2:]), ["folder"]),
        (("fit", "good.kin", *FIT[2:]), ["good.kin", ".parquet"]),
        (("fit", "t.csv", "--task", "who", "--label", "y", "-o", "m.kin"), ["'who'", "id, f, g, y"]),
        (("fit", "t.csv", "--task", "id", "--label", "Y", "-o", "m.kin"), ["'Y'", "id, f, g, y"]),
        ((*FIT, "--feature", "ff"), ["'ff'", "did you mean 'f'"]),
        ((*FIT, "--drop", "nothing"), ["'nothing'"]),
        ((*FIT, "--feature", "f", "--drop", "g"), ["--feature", "--drop"]),
        ((*FIT, "--feature", "y"), ["'y'", "label", "feature"]),
        ((*FIT, "--feature", "id"), ["'id'", "task", "feature"]),
        ((*FIT, "--drop", "y"), ["'y'", "label"]),
        ((*FIT, "--drop", "f", "--drop", "g"), ["no feature"]),
        ((*FIT, "--weight", "y"), ["'y'", "label and as weight"]),
        ((*FIT, "--weight", "f"), ["'f'", "number"]),
        ((*FIT, "--weight", "nothing"), ["'nothing'"]),
        (("fit", "t.csv", "--task", "id", "--label", "id", "-o", "m.kin"), ["'id'", "task and as label"]),
        (("fit", "t.csv", "--task", "id", "--label", "g", "-o", "m.kin"), ["continuous"]),
        (("fit", "t.csv", "--task", "id", "--label", "y"), ["--output", "kinfolk fit --help"]),
        (("fit", "t.csv", "--task", "id", "--label", "y", "-o", "nowhere/m.kin"), ["nowhere/m.kin", "no folder"]),
        (("fit", "t.csv", "--task", "id", "--label", "y", "-o", "folder"), ["folder"]),
        (("fit", "t.csv", "--task", "id", "--label", "y", "-o", os.devnull), [os.devnull]),
        ((*FIT, "--model", "sharing"), ["'sharing'", "complete-sharing"]),
        ((*FIT, "--inference", "guess"), ["'guess'", "bhc"]),
        ((*FIT, "--model", "no-sharing", "--inference", "bhc"), ["--inference", "clustered"]),
        ((*FIT, "--own-labels"), ["--share-labels", "complete-sharing"]),
        ((*FIT, "--bins", 0), ["bins"]),
        ((*FIT, "--bins", "many"), ["--bins"]),
        ((*FIT, "--temper", 2), ["temper"]),
        ((*FIT, "--temper", "much"), ["--temper much: a number or 'learn' is needed"]),
        ((*FIT, "--model", "averaged", "--temper", 1), ["--temper belongs to --model"]),
        ((*FIT, "--concentration", -1), ["concentration"]),
        ((*FIT, "--label-prior", 0), ["label_prior"]),
        ((*FIT, "--feature-prior", "nan"), ["feature_prior"]),
        ((*FIT, "--jobs", 0, "--inference", "gibbs"), ["n_jobs"]),
        (("predict", "nothing.kin", "t.csv"), ["nothing.kin"]),
        (("predict", "folder", "t.csv"), ["folder"]),
        (("predict", "t.csv", "t.csv"), ["t.csv", "not a kinfolk model"]),
        (("predict", "good.kin", "nothing.csv"), ["nothing.csv"]),
        (("predict", "good.kin", "t.csv", "--task", "who"), ["'who'", "id, f, g, y"]),
        (("predict", "good.kin", "t.csv", "-o", "nowhere/p.csv"), ["nowhere/p.csv"]),
        (("predict", "good.kin", "t.csv", "-o", "p.xlsx"), ["p.xlsx", ".parquet"]),
        (("predict", "good.kin", "t.csv", "--json", "-o", "p.csv"), ["p.csv", "--json"]),
        (("decide", "good.kin", "t.csv", "--loss", "nothing.csv"), ["nothing.csv"]),
        (("decide", "good.kin", "t.csv", "--loss", "t.csv"), ["'f'", "t.csv"]),
        (("decide", "good.kin", "t.csv", "--loss", "loss.csv", "--asymmetric", 1), ["--loss", "--asymmetric"]),
        (("decide", "good.kin", "t.csv", "--asymmetric", 1), ["--asymmetric needs --positive"]),
        (("decide", "good.kin", "t.csv", "--positive", "yes"), ["--positive"]),
        (("decide", "good.kin", "t.csv", "--asymmetric", 1, "--positive", "Yes"), ["'Yes'", "'no', 'yes'"]),
        (("decide", "good.kin", "t.csv", "--ask-cost", "nan"), ["nan"]),
        (("inspect", "t.csv"), ["t.csv"]),
        (("inspect", "good.kin", "--task", "c"), ["'c'", "'a', 'b'"]),
        (("inspect", "good.kin", "--features", -1), ["--features"]),
        (("reproduce", "nothing"), ["'nothing'"]),
        (("guess",), ["'guess'", "kinfolk --help"]),
        (("--guess",), ["--guess"]),
        (("fit",), ["TABLE"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_arguments_get_one_sentence(run: Run, arguments: tuple, told: list[str]) -> None:
    sentence = refused(run, *arguments)
    for part in told:
        assert part in sentence


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("bad.csv", b"", "bad.csv"),
        ("bad.csv", b"id,f,y,f\na,b,c,d\n", "2 columns named 'f'"),
        ("bad.csv", b"id,f,y\na,b,c,d\n", "bad.csv"),
        ("bad.csv", b'id,f,y\na,"b,c\n', "bad.csv"),
        ("bad.csv", b"id,f,y\na,\xff\xfe,c\n", "utf-8"),
        ("bad.csv", b"id;f;y\na;b;c\n", "--sep ';'"),
        ("bad.csv", b"\x00\x01\x02", "\x00\x01\x02"),
        ("bad.csv.gz", b"\x1f\x8b\x08\x00\x00", "bad.csv.gz"),
        ("bad.parquet", b"id,f,y\na,b,c\n", "bad.parquet"),
        ("bad.parquet", b"", "bad.parquet"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_broken_tables_get_one_sentence(run: Run, name: str, content: bytes, told: str, command: str) -> None:
    Path(name).write_bytes(content)
    arguments = ("fit", name, *FIT[2:]) if command == "fit" else ("predict", "good.kin", name, "-o", "p.csv")
    assert told in refused(run, *arguments)


@pytest.mark.parametrize("rows", ["", "\n\n", "\n,,,\n"])
def test_a_table_without_rows_is_refused_by_fit_and_answered_by_no_rows(run: Run, rows: str) -> None:
    Path("none.csv").write_text(f"id,f,g,y\n{rows}")
    assert "0 sample(s)" in refused(run, "fit", "none.csv", *FIT[2:])
    result = run("predict", "good.kin", "none.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "task,predicted,probability_no,probability_yes\n"
    result = run("decide", "good.kin", "none.csv", "--json", "--ask-cost", 0.1)
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {"labels": ["no", "yes"], "actions": ["no", "yes", "ask"], "rows": []}


def test_standard_input_is_called_by_its_name(run: Run) -> None:
    assert "standard input" in refused(run, "fit", "-", *FIT[2:], given="")


def changed(**columns: object) -> pd.DataFrame:
    return GOOD.assign(**columns)


def at(value: object, row: int, good: list) -> list:
    return [*good[:row], value, *good[row + 1 :]]


@pytest.mark.parametrize(
    ("frame", "options", "told"),
    [
        (changed(g=at(np.inf, 3, GOOD["g"].tolist())), (), ["'g'", "row 3", "infinity"]),
        (changed(id=at(None, 4, GOOD["id"].tolist())), (), ["'id'", "row 4", "missing"]),
        (changed(id=[1.0, 2.0, np.nan] * 4), (), ["'id'", "row 2", "missing"]),
        (changed(y=None), (), ["no row has a label"]),
        (changed(y="?"), ("--unlabelled", "?"), ["no row has a label"]),
        (changed(y=[1, 2, 3] * 4), ("--unlabelled", "none"), ["'none'", "'y'"]),
        (changed(w=at(-1, 5, [1] * 12)), ("--weight", "w"), ["'w'", "row 5", "-1"]),
        (changed(w=at(None, 5, [1] * 12)), ("--weight", "w"), ["'w'", "row 5", "nan"]),
        (changed(w=at(np.inf, 5, [1.0] * 12)), ("--weight", "w"), ["'w'", "row 5", "inf"]),
        (changed(w=0), ("--weight", "w"), ["'w'", "zero"]),
        (changed(y=at("yes", 0, [None] * 12), w=at(0, 0, [1] * 12)), ("--weight", "w"), ["weight zero"]),
        (changed(y=at(np.inf, 5, [1.0] * 12)), (), ["row 5", "infinity"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_that_cannot_be_learnt_from_get_one_sentence(
    run: Run, frame: pd.DataFrame, options: tuple, told: list[str], ending: str
) -> None:
    path = f"bad.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    sentence = refused(run, "fit", path, *FIT[2:], *options)
    for part in told:
        assert part in sentence


@pytest.mark.parametrize("values", [[[1, 2]] * 12, [date(2020, 1, 1)] * 12, [time(9)] * 12, [b"x"] * 12])
@pytest.mark.parametrize("column", ["id", "f", "y"])
def test_types_that_no_model_takes_get_one_sentence(run: Run, column: str, values: list) -> None:
    pl.from_pandas(GOOD).with_columns(pl.Series(column, values)).write_parquet("b.parquet")
    refused_by_the_door = refused(run, "fit", "b.parquet", *FIT[2:])
    culprit = {"id": "column 'id'|task", "f": "column 'f'", "y": "y|a label"}[column]
    assert re.match(rf"kinfolk: ({culprit}|a task) (holds|is) ", refused_by_the_door)


def test_a_column_that_no_model_takes_can_be_dropped(run: Run) -> None:
    pl.from_pandas(GOOD).with_columns(when=date(2020, 1, 1)).write_parquet("b.parquet")
    assert run("fit", "b.parquet", *FIT[2:], "--drop", "when").exit_code == 0
    assert run("predict", "m.kin", "b.parquet").exit_code == 0


def test_a_column_of_too_many_categories_is_named(run: Run) -> None:
    n = 70_000
    pl.DataFrame({"id": ["a"] * n, "f": [f"v{i}" for i in range(n)], "y": ["no", "yes"] * (n // 2)}).write_parquet(
        "big.parquet"
    )
    sentence = refused(run, "fit", "big.parquet", *FIT[2:])
    assert "column 'f'" in sentence
    assert "too many" in sentence


@pytest.mark.parametrize(
    ("frame", "note"),
    [
        (changed(y="yes"), "every label is yes"),
        (changed(id="a"), ""),
        (changed(id=["a"] * 11 + ["b"]), ""),
        (changed(f="x", g=3), ""),
        (changed(f=None, g=np.nan), ""),
        (changed(y=at(None, 3, GOOD["y"].tolist())), "1 unlabelled row is"),
        (GOOD[:1], "every label is no"),
    ],
    ids=["one class", "one task", "a task of one row", "constant", "nothing but gaps", "a gap among labels", "one row"],
)
@pytest.mark.parametrize("model", ["clustered", "no-sharing", "complete-sharing"])
def test_poor_tables_are_learnt_from_all_the_same(run: Run, frame: pd.DataFrame, note: str, model: str) -> None:
    frame.to_csv("poor.csv", index=False)
    result = run("fit", "poor.csv", *FIT[2:], "--model", model)
    assert result.exit_code == 0, (result.stderr, result.exception)
    if model == "clustered" or "every" in note:
        assert note in result.stderr
    result = run("predict", "m.kin", "poor.csv", "-o", "p.csv")
    assert result.exit_code == 0, (result.stderr, result.exception)
    found = pd.read_csv("p.csv").filter(like="probability")
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    for arguments in (("inspect", "m.kin"), ("inspect", "m.kin", "--task", "a"), ("decide", "m.kin", "poor.csv")):
        result = run(*arguments)
        assert result.exit_code == 0, (result.stderr, result.exception)


@pytest.mark.parametrize("missing", ["f", "id"])
def test_a_column_missing_from_a_new_table_is_named(run: Run, missing: str) -> None:
    GOOD.drop(columns=missing).to_csv("new.csv", index=False)
    assert f"yet now missing: - {missing}" in refused(run, "predict", "good.kin", "new.csv")


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (changed(id=at(None, 4, GOOD["id"].tolist())), ["'id'", "row 4"]),
        (changed(g=at(np.inf, 3, GOOD["g"].tolist())), ["'g'", "row 3"]),
    ],
)
def test_new_rows_that_cannot_be_predicted_are_named(run: Run, frame: pd.DataFrame, told: list[str]) -> None:
    frame.to_csv("new.csv", index=False)
    sentence = refused(run, "predict", "good.kin", "new.csv", "-o", "p.csv")
    for part in told:
        assert part in sentence


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ("label,go\nno,1\n", "'yes'"),
        ("label\nno\nyes\n", "action"),
        ("label,go\nno,much\nyes,1\n", "'go'"),
        ("label,go\nno,\nyes,1\n", "'go'"),
        ("label,go\nno,1\nyes,1\nno,2\n", "twice"),
        ("label,go,go\nno,1,1\nyes,1,1\n", "'go'"),
    ],
)
def test_broken_losses_get_one_sentence(run: Run, loss: str, told: str) -> None:
    Path("loss.csv").write_text(loss)
    assert told in refused(run, "decide", "good.kin", "t.csv", "--loss", "loss.csv")


@pytest.mark.parametrize("kept", [10, 500, -10])
@pytest.mark.parametrize("command", [("predict", "cut.kin", "t.csv"), ("inspect", "cut.kin")])
def test_a_model_cut_short_is_refused(run: Run, kept: int, command: tuple) -> None:
    Path("cut.kin").write_bytes(Path("good.kin").read_bytes()[:kept])
    assert "cut.kin" in refused(run, *command)


def test_files_that_may_not_be_read_are_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", denied)
    assert "t.csv: Permission denied" in refused(run, *FIT)


def test_folders_that_may_not_be_written_are_told_before_the_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    assert "m.kin" in refused(run, *FIT)
    assert "p.csv" in refused(run, "predict", "good.kin", "t.csv", "-o", "p.csv")
