"""``kinfolk evaluate``: the comparison of the library, in words and as JSON."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kinfolk
from tests.cli.conftest import Run, write

FEW = [word for name in ("alone", "pooled", "clustered") for word in ("--models", name)]
ROLES = ("--task", "who is it", "--label", "answer")


def test_the_command_gives_the_numbers_and_the_verdict_of_the_library(run: Run, meetings: pd.DataFrame) -> None:
    write(meetings, Path("t.csv"))
    expected = kinfolk.evaluate(
        meetings.drop(columns=["answer", "hours"]),
        meetings["answer"],
        task_column="who is it",
        models=["alone", "pooled", "clustered"],
        n_folds=3,
        random_state=4,
    )
    command = ("evaluate", "t.csv", *ROLES, *FEW, "--folds", 3, "--seed", 4, "--drop", "hours")
    result = run(*command, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["best"], found["sharing_helps"]) == (expected.best, expected.sharing_helps)
    assert found["verdict"] == expected.verdict
    for row in found["models"]:
        np.testing.assert_allclose(row["folds"], expected.losses[row["model"]], rtol=1e-9)
    text = run(*command).stdout
    assert text.endswith(f"{expected.verdict}\n")
    assert text.splitlines()[1].split()[0] == expected.best


def test_the_help_names_no_model_that_is_not_compared(run: Run) -> None:
    text = run("evaluate", "--help").stdout
    assert "--label" in text
    assert "Bayes nets" not in text


def test_whole_tasks_are_held_out_on_demand(run: Run, meetings: pd.DataFrame) -> None:
    write(meetings, Path("t.csv"))
    command = ("evaluate", "t.csv", *ROLES, *FEW, "--folds", 2, "--hold-out", "tasks", "--drop", "hours")
    assert "on tasks held out" in json.loads(run(*command, "--json").stdout)["verdict"]


def test_numbers_are_predicted_where_the_column_holds_them(run: Run, meetings: pd.DataFrame) -> None:
    write(meetings, Path("t.csv"))
    command = ("evaluate", "t.csv", "--task", "who is it", "--label", "größe", "--folds", 2, "--models", "ridge-pooled")
    assert json.loads(run(*command, "--json").stdout)["measure"] == "mean squared error"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--task", "who is it"), "--label"),
        (("--task", "who", "--label", "answer"), "'who'"),
        ((*ROLES, "--models", "best"), "'best'"),
        ((*ROLES, "--folds", 1), "--folds"),
    ],
)
def test_what_cannot_be_compared_gets_one_sentence(
    run: Run, meetings: pd.DataFrame, arguments: tuple, told: str
) -> None:
    write(meetings, Path("t.csv"))
    result = run("evaluate", "t.csv", *arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert told in result.stderr
