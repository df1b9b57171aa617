"""What files say is what the models get: types, gaps, odd names."""

import io
import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from kinfolk.tasks.streaming.scanning import read_file
from tests.cli.conftest import Run


def from_csv(tmp_path: Path, text: str | bytes, **options: object) -> pl.DataFrame:
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(path, **options)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,x\n2,y\n", [(1, "x"), (2, "y")]),
        ('a,b\n,""\n2,y\n', [(2, "y")]),
        ('a,b\n"",x\n2,""\n', [(None, "x"), (2, None)]),
        ("a,b\n1,x\n\n2,y\n\n", [(1, "x"), (2, "y")]),
        ("a,b\r\n1,true\r\n2,false\r\n", [(1, True), (2, False)]),
        ("a,b\n1,1\n2,1.5\n", [(1, 1.0), (2, 1.5)]),
        ("a,b\n1,2020-01-01\n", [(1, "2020-01-01")]),
        ('a,b\n1,"x,\ny"\n', [(1, "x,\ny")]),
        ("a,b\n1,123456789012345678901234567890\n", [(1, "123456789012345678901234567890")]),
        (",a,,b\n0,1,q,x\n1,2,r,y\n", [(1, "x"), (2, "y")]),
        ("\ufeffa,b\n1,x\n", [(1, "x")]),
    ],
)
def test_csv_is_read_as_people_mean_it(tmp_path: Path, text: str, rows: list) -> None:
    frame = from_csv(tmp_path, text)
    assert frame.columns == ["a", "b"]
    assert frame.rows() == rows


def test_short_lines_lack_their_last_fields_and_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"1 line is shorter than the header of .*table.csv \(the first is line 2\)"):
        assert from_csv(tmp_path, "a,b\n1\n2,3\n").rows() == [(1, None), (2, 3)]


def test_a_type_that_shows_late_in_a_file_is_the_type_of_the_whole_column(tmp_path: Path) -> None:
    frame = from_csv(tmp_path, "a\n" + "1\n" * 20_000 + "x\n")
    assert frame["a"].dtype == pl.String


def test_names_that_look_like_patterns_are_plain_file_names(tmp_path: Path) -> None:
    for name in ("a[1].csv", "b*.csv"):
        (tmp_path / name).write_text("a\n1\n")
        assert read_file(tmp_path / name).rows() == [(1,)]


def test_odd_column_names_work_throughout(run: Run) -> None:
    names = ["the task", 'naïve, "quoted"', "名前", "-o", "0"]
    frame = pd.DataFrame([["a", "x", "y", 1, "l"], ["b", "x", "z", 2, "m"]] * 4, columns=names)
    frame.to_csv("odd.csv", index=False)
    result = run("fit", "odd.csv", "--task", "the task", "--label", "0", "-o", "odd.kin", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["features"] == names[1:4]
    assert run("predict", "odd.kin", "odd.csv").exit_code == 0
    assert "名前" in run("inspect", "odd.kin").stdout


TRAIN = "id,f,g,h,y\n" + "7,a,1,true,no\n8,b,2,false,yes\n" * 6


def predictions(run: Run, text: str) -> pd.DataFrame:
    result = run("predict", "m.kin", "-", given=text)
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout))


@pytest.fixture
def numbered(run: Run) -> Run:
    result = run("fit", "-", "--task", "id", "--label", "y", "--model", "no-sharing", "-o", "m.kin", given=TRAIN)
    assert result.exit_code == 0, result.stderr
    return run


def test_a_task_that_is_a_number_at_fit_is_known_beside_a_new_one_that_is_text(numbered: Run) -> None:
    alone = predictions(numbered, "id,f,g,h\n7,a,1,true\n007,a,1,true\n")
    beside = predictions(numbered, "id,f,g,h\n7,a,1,true\n007,a,1,true\nseven,a,1,true\n")
    floats = predictions(numbered, "id,f,g,h\n7.0,a,1,true\n7.5,a,1,true\n")
    p = "probability_no"
    assert beside[p][0] == alone[p][0] == alone[p][1] == beside[p][1] == floats[p][0]
    assert beside[p][2] == floats[p][1] != alone[p][0]


def test_a_task_that_is_text_at_fit_is_known_where_all_tasks_look_like_numbers(run: Run) -> None:
    train = TRAIN.replace("8,b", "x8,b").replace("7,a", "07,a")
    run("fit", "-", "--task", "id", "--label", "y", "--model", "no-sharing", "-o", "m.kin", given=train)
    found = predictions(run, "id,f,g,h\n07,a,1,true\n7,a,1,true\n")
    known = predictions(run, "id,f,g,h\n07,a,1,true\nx8,a,1,true\n")
    assert found["probability_no"][0] == known["probability_no"][0]
    assert found["probability_no"][1] != known["probability_no"][0]


def test_features_of_another_type_are_brought_to_that_of_the_fit(numbered: Run) -> None:
    plain = predictions(numbered, "id,f,g,h\n7,a,1,true\n7,,,\n")
    mixed = predictions(numbered, "id,f,g,h\n7,a,1,TRUE\n7,3,new,maybe\n")
    p = "probability_no"
    assert mixed[p].tolist() == plain[p].tolist()
    digits = predictions(numbered, "id,f,g,h\n7,12,1.0,true\n7,,1,true\n")
    assert digits[p][0] == digits[p][1]


def test_columns_that_a_model_does_not_know_are_left_aside(numbered: Run) -> None:
    found = predictions(numbered, "y,id,extra,f,g,more,h\nno,7,1,a,1,2,true\n")
    assert found["probability_no"][0] == predictions(numbered, "id,f,g,h\n7,a,1,true\n")["probability_no"][0]


def test_columns_in_another_order_are_refused_as_by_the_estimator(numbered: Run) -> None:
    result = numbered("predict", "m.kin", "-", given="h,g,f,id\ntrue,1,a,7\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "must be in the same order as they were in fit" in result.stderr


def test_whole_labels_with_gaps_stay_whole_numbers(run: Run) -> None:
    text = "id,f,y\n" + "a,p,1.0\na,q,0.0\na,q,\n" * 4
    found = json.loads(run("fit", "-", "--task", "id", "--label", "y", "-o", "m.kin", "--json", given=text).stdout)
    assert found["labels"] == [0, 1]
    assert found["unlabelled_rows"] == 4


def test_decimals_and_declared_categories_of_parquet_are_understood(run: Run) -> None:
    frame = pl.DataFrame(
        {
            "id": pl.Series(["a", "b"] * 6).cast(pl.Categorical),
            "f": pl.Series(["x", "y", "x"] * 4).cast(pl.Enum(["x", "y", "never seen"])),
            "price": pl.Series([f"{i}.25" for i in range(12)]).cast(pl.Decimal(10, 2)),
            "y": pl.Series(["no", "no", "yes"] * 4).cast(pl.Categorical),
        }
    )
    frame.write_parquet("t.parquet")
    result = run("fit", "t.parquet", "--task", "id", "--label", "y", "-o", "m.kin", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["labels"] == ["no", "yes"]
    assert "never seen" in run("inspect", "m.kin", "--features", 20).stdout
    assert run("predict", "m.kin", "t.parquet").exit_code == 0
