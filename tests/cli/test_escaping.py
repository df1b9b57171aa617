"""Text that a spreadsheet would run as a formula is harmless in CSV, and comes back as it was."""

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfolk
from kinfolk.tasks.streaming.escaping import escape
from kinfolk.tasks.streaming.scanning import Csv, read_file
from tests.cli.conftest import Run

FORMULA = '=HYPERLINK("http://evil.example","x")'


@pytest.fixture
def model(run: Run, tmp_path: Path) -> Path:
    rows = pl.DataFrame(
        {"who": [FORMULA, "@bob", "-3", "+4 men"] * 6, "sky": ["=red", "blue"] * 12, "ok": ["+yes", "no", "no"] * 8}
    )
    rows.write_csv("rows.csv")
    assert run("fit", "rows.csv", "--task", "who", "--label", "ok", "-o", "m.kin").exit_code == 0
    return tmp_path / "m.kin"


def test_tasks_labels_and_kept_columns_are_prefixed_in_csv_unless_they_are_numbers(run: Run, model: Path) -> None:
    found = list(csv.DictReader(run("predict", model, "rows.csv", "--keep", "sky").stdout.splitlines()))
    assert [row["task"] for row in found[:4]] == [f"'{FORMULA}", "'@bob", "-3", "'+4 men"]
    assert {row["sky"] for row in found} == {"'=red", "blue"}
    assert {row["predicted"] for row in found} <= {"'+yes", "no"}
    assert float(found[0]["probability_no"]) > 0


def test_no_escape_leaves_text_as_it_is(run: Run, model: Path) -> None:
    found = list(csv.DictReader(run("predict", model, "rows.csv", "--no-escape").stdout.splitlines()))
    assert [row["task"] for row in found[:4]] == [FORMULA, "@bob", "-3", "+4 men"]


def test_json_and_parquet_are_untouched(run: Run, model: Path) -> None:
    assert json.loads(run("predict", model, "rows.csv", "--json").stdout)["rows"][0]["task"] == FORMULA
    assert run("predict", model, "rows.csv", "-o", "found.parquet").exit_code == 0
    assert pl.read_parquet("found.parquet")["task"][0] == FORMULA


def test_what_was_written_fits_the_same_model_again(run: Run, model: Path) -> None:
    """Labels, ids and features of a table that went through CSV twice are those of the table itself."""
    run("predict", model, "rows.csv", "--keep", "sky", "--keep", "ok", "-o", "found.csv")
    pl.read_csv("found.csv").select("task", "sky", "ok").write_csv("again.csv")
    assert run("fit", "again.csv", "--task", "task", "--label", "ok", "-o", "again.kin").exit_code == 0
    before, after = (kinfolk.load(path) for path in (model, "again.kin"))
    assert after.tasks_.tolist() == before.tasks_.tolist() == sorted([FORMULA, "@bob", "-3", "+4 men"])
    assert after.classes_.tolist() == before.classes_.tolist() == ["+yes", "no"]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text("=+-@'a1.\t ", min_size=1, max_size=5), min_size=1, max_size=8))
def test_every_text_comes_back_and_none_but_numbers_begins_like_a_formula(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("escaped") / "texts.csv"
    frame = pl.DataFrame({"=name": texts, "n": range(len(texts))})
    escape(frame).write_csv(path, quote_style="non_numeric")
    assert read_file(path, text=["=name"])["=name"].to_list() == texts
    with path.open(newline="") as file:
        for row in list(csv.reader(file)):
            if row[0][:1] in ("=", "+", "-", "@", "\t"):
                float(row[0])
    raw = read_file(path, text=["'=name"], csv=Csv(escaped=False))
    assert raw.columns == ["'=name", "n"]
