"""CSV as people write it: words for missing values, other signs, short lines, dates, ids that are passed through."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kinfolk.tasks.streaming.scanning import MISSING, Csv, read_file
from tests.cli.conftest import Run

ROLES = ("--task", "id", "--label", "y")


@pytest.fixture
def rows() -> pd.DataFrame:
    """Two tasks, a column of many numbers, one of categories, and labels."""
    rng = np.random.default_rng(3)
    y = rng.choice(["no", "yes"], 120)
    size = np.round(rng.normal(y == "yes", 1.0), 3)
    return pd.DataFrame({"id": ["a", "b"] * 60, "size": size, "colour": rng.choice(["red", "blue"], 120), "y": y})


def with_tokens(rows: pd.DataFrame, token: str) -> pd.DataFrame:
    text = rows.astype(str)
    text.loc[[1, 5], ["size", "colour", "y"]] = token
    return text


@pytest.fixture
def fitted(run: Run, rows: pd.DataFrame) -> Run:
    rows.to_csv("t.csv", index=False)
    assert run("fit", "t.csv", *ROLES, "--model", "no-sharing", "-o", "m.kin").exit_code == 0
    return run


def test_the_words_for_missing_values_are_those_of_pandas() -> None:
    # All that pandas' documentation of read_csv lists.
    listed = "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan|null"
    words = ["", *listed.split("|")]
    assert sorted(MISSING) == sorted(words)
    text = "a,b\n" + "".join(f"{i},{token}\n" for i, token in enumerate(words))
    assert pd.read_csv(io.StringIO(text))["b"].isna().all()
    assert read_file(io.BytesIO(text.encode()))["b"].is_null().all()


@pytest.mark.parametrize("token", ["NA", "NaN", "null", "N/A", "", "None", "?", "missing"])
def test_a_table_with_tokens_for_missing_values_is_read_as_one_with_empty_fields(
    run: Run, rows: pd.DataFrame, token: str
) -> None:
    named = ("--missing", token) if token in ("?", "missing") else ()
    found = {}
    for name, used in (("token", token), ("empty", "")):
        with_tokens(rows, used).to_csv(f"{name}.csv", index=False)
        result = run("fit", f"{name}.csv", *ROLES, "-o", f"{name}.kin", "--json", *named)
        assert result.exit_code == 0, result.stderr
        about = json.loads(result.stdout)
        assert about.pop("file") == f"{name}.kin"
        assert (about["labels"], about["unlabelled_rows"]) == (["no", "yes"], 2)
        answers = {
            command: run(command, f"{name}.kin", f"{name}.csv", *named).stdout for command in ("predict", "decide")
        }
        found[name] = (about, answers)
    assert found["token"] == found["empty"]


def test_what_means_missing_can_be_kept_as_a_value(run: Run, rows: pd.DataFrame) -> None:
    with_tokens(rows, "NA").to_csv("t.csv", index=False)
    result = run("fit", "t.csv", *ROLES, "-o", "m.kin", "--json", "--keep-na")
    assert json.loads(result.stdout)["labels"] == ["NA", "no", "yes"]


def test_a_column_of_numbers_but_for_one_token_says_so(run: Run, rows: pd.DataFrame) -> None:
    with_tokens(rows, "?").to_csv("t.csv", index=False)
    result = run("fit", "t.csv", *ROLES, "-o", "m.kin")
    assert result.exit_code == 0
    assert "column 'size' of t.csv holds numbers but for '?' in 2 rows" in result.stderr
    assert "--missing '?'" in result.stderr
    assert "colour" not in result.stderr
    # Of a column that is not used there is nothing to say.
    assert run("fit", "t.csv", *ROLES, "-o", "m.kin", "--drop", "size").stderr == ""
    assert run("fit", "t.csv", *ROLES, "-o", "m.kin", "--missing", "?").stderr.count("numbers but for") == 0


def test_new_rows_of_numbers_but_for_one_token_say_so(run: Run, rows: pd.DataFrame) -> None:
    whole = rows.assign(size=np.arange(len(rows)) % 5)
    whole.to_csv("t.csv", index=False)
    run("fit", "t.csv", *ROLES, "-o", "m.kin")
    with_tokens(whole, "x").to_csv("new.csv", index=False)
    result = run("predict", "m.kin", "new.csv")
    assert result.exit_code == 2 or "column 'size' of new.csv holds numbers but for 'x'" in result.stderr
    assert "'x'" in result.stderr
    assert run("predict", "m.kin", "new.csv", "--missing", "x").exit_code == 0


def test_a_large_file_is_counted_with_the_same_words_for_missing_values(
    run: Run, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_tokens(rows, "?").to_csv("t.csv", index=False, sep=";")
    command = ("fit", "t.csv", *ROLES, "--sep", ";", "--missing", "?", "--json", "-o")
    whole = json.loads(run(*command, "a.kin").stdout)
    monkeypatch.setattr("kinfolk.cli.fit_naive_bayes.LARGE_BYTES", 1)
    monkeypatch.setattr("kinfolk.cli.fit_naive_bayes._fit_rows", None)
    counted = json.loads(run(*command, "b.kin").stdout)
    assert counted["labels"] == ["no", "yes"]
    assert counted["log_evidence"]["value"] == pytest.approx(whole["log_evidence"]["value"])


def test_short_lines_are_told_with_the_first_of_them(fitted: Run) -> None:
    lines = Path("t.csv").read_text().splitlines()
    lines[4] = "a,0.5"
    lines[9] = "b,,,"
    Path("short.csv").write_text("\n".join(lines) + "\n\n")
    for command in (("fit", "short.csv", *ROLES, "-o", "s.kin"), ("predict", "m.kin", "short.csv")):
        result = fitted(*command)
        assert result.exit_code == 0
        assert "1 line is shorter than the header of short.csv (the first is line 5)" in result.stderr
    Path("quoted.csv").write_text('id,size,colour,y\na,1,"red, or blue",no\na,1,"two\nlines",no\n')
    assert fitted("predict", "m.kin", "quoted.csv").stderr == ""


@pytest.mark.parametrize("sep", [";", "tab", "|"])
def test_other_signs_between_fields_and_before_decimals(fitted: Run, rows: pd.DataFrame, sep: str) -> None:
    sign = "\t" if sep == "tab" else sep
    rows.to_csv("other.txt", index=False, sep=sign, decimal=",")
    options = ("--sep", sep, "--decimal", ",")
    result = fitted("fit", "other.txt", *ROLES, "--model", "no-sharing", "-o", "other.kin", *options)
    assert result.exit_code == 0, result.stderr
    assert fitted("predict", "other.kin", "other.txt", *options).stdout == fitted("predict", "m.kin", "t.csv").stdout
    given = Path("other.txt").read_text()
    assert fitted("predict", "m.kin", "-", *options, given=given).stdout == fitted("predict", "m.kin", "t.csv").stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [((), "--sep ';'"), (("--sep", ";;"), "';;'"), (("--sep", ";", "--decimal", ";"), "decimal sign ';'")],
)
def test_signs_that_do_not_fit_get_one_sentence(fitted: Run, rows: pd.DataFrame, options: tuple, told: str) -> None:
    rows.to_csv("other.csv", index=False, sep=";", decimal=",")
    result = fitted("predict", "m.kin", "other.csv", *options)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert told in result.stderr


def test_kept_columns_stand_beside_the_answers_as_they_are_written(fitted: Run, rows: pd.DataFrame) -> None:
    number = [f"{i:04d}" for i in range(len(rows))]
    rows.assign(number=number, note="x").to_csv("new.csv", index=False)
    plain = fitted("predict", "m.kin", "t.csv").stdout
    found = pd.read_csv(io.StringIO(fitted("predict", "m.kin", "new.csv", "--keep", "number").stdout), dtype=str)
    assert found.columns[:3].tolist() == ["task", "number", "predicted"]
    assert found["number"].tolist() == number
    assert found.drop(columns="number").equals(pd.read_csv(io.StringIO(plain), dtype=str))
    decided = fitted("decide", "m.kin", "new.csv", "--keep", "number", "--keep", "note", "--json")
    assert json.loads(decided.stdout)["rows"][7]["number"] == "0007"
    for name, told in (("nothing", "'nothing'"), ("predicted", "'predicted'")):
        rows.assign(predicted=1).to_csv("new.csv", index=False)
        result = fitted("predict", "m.kin", "new.csv", "--keep", name)
        assert result.exit_code == 2
        assert told in result.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_a_header_alone_gives_an_empty_answer(fitted: Run, rows: pd.DataFrame, ending: str) -> None:
    none = pl.from_pandas(rows)[:0].with_columns(number=pl.lit(1))
    none.write_csv("none.csv") if ending == "csv" else none.write_parquet("none.parquet")
    for command in ("predict", "decide"):
        result = fitted(command, "m.kin", f"none.{ending}", "--keep", "number")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith("task,number,")
        assert result.stdout.count("\n") == 1


def test_the_index_that_pandas_writes_into_parquet_is_left_out(run: Run, rows: pd.DataFrame) -> None:
    rows.sample(frac=1.0, random_state=0).to_parquet("t.parquet")
    assert "__index_level_0__" in pl.read_parquet_schema("t.parquet")
    result = run("fit", "t.parquet", *ROLES, "-o", "m.kin", "--json")
    assert json.loads(result.stdout)["features"] == ["size", "colour"]


@pytest.mark.parametrize("date", ["2024-03-{:02d}", "{}.3.2024", "3/{}/24", "2024-03-{:02d} 09:30:00"])
def test_dates_do_not_become_categories_in_silence(run: Run, rows: pd.DataFrame, date: str) -> None:
    rows.assign(when=[date.format(1 + i % 28) for i in range(len(rows))]).to_csv("t.csv", index=False)
    result = run("fit", "t.csv", *ROLES, "-o", "m.kin")
    assert result.exit_code == 0
    assert "column 'when' of t.csv holds dates" in result.stderr
    assert run("fit", "t.csv", *ROLES, "-o", "m.kin", "--drop", "when").stderr == ""


def test_text_that_is_no_date_is_silent(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    assert read_file(io.BytesIO(b"a;b\n1-2;x\n3-4;y\n"), csv=Csv(";")).rows() == [("1-2", "x"), ("3-4", "y")]
    assert not recwarn.list


def test_the_former_spelling_for_gaps_of_bayes_nets_still_works(run: Run) -> None:
    table = "who,a,b\n" + "x,0,1\nx,1,0\ny,0,0\ny,1,1\n" * 8 + "x,0,\n"
    Path("t.csv").write_text(table)
    command = ("fit", "t.csv", "--task", "who", "--model", "bayesnets", "--json", "-o")
    former, now = run(*command, "m.kin", "--missing", "em"), run(*command, "m.kin", "--gaps", "em")
    assert former.exit_code == now.exit_code == 0
    assert "--gaps em" in former.stderr
    assert former.stdout == now.stdout
