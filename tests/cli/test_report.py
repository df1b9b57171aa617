"""``kinfolk report``: pages of saved models."""

import json

import pytest
from typer.testing import CliRunner

from kinfolk.cli.app import app
from tests.reporting.examples import kin


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    X, y, task = kin(6, 10, name="p{:02d}".format)
    X.assign(person=task, answer=y).to_csv(folder / "rows.csv", index=False)
    for name, kind in (("kin", "clustered"), ("alone", "no-sharing")):
        options = ["--task", "person", "--label", "answer", "--model", kind, "-o", folder / f"{name}.kin"]
        assert run("fit", folder / "rows.csv", *options).exit_code == 0
    return folder


def test_a_page_is_written_with_the_command_that_makes_it_again(folder):
    arguments = ("--data", folder / "rows.csv", "--label", "answer", "-o", folder / "page.html", "--folds", 3)
    done = run("report", folder / "kin.kin", *arguments)
    assert done.exit_code == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert "kinfolk report kin.kin --data rows.csv --label answer --folds 3 -o page.html" in text
    assert str(folder) not in text
    assert "SHA-256 of the table" in text
    assert ">p00<" in text
    assert done.stdout.strip() == str(folder / "page.html")


def test_json_is_printed_and_nothing_written(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = json.loads(run("report", folder / "kin.kin", "--json").stdout)
    assert found["model"] == "ClusteredNB"
    assert len(found["tasks"]) == 6
    assert list(tmp_path.iterdir()) == []


def test_two_models_are_compared(folder):
    assert run("report", folder / "kin.kin", folder / "alone.kin", "-o", folder / "two.html").exit_code == 0
    assert "<h1>kin.kin and alone.kin</h1>" in (folder / "two.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "rows.csv"], "--label is needed with --data"),
        (["--data", "rows.csv", "--label", "nobody"], "--label 'nobody': rows.csv has no such column"),
        (["--ignore", "KF999"], "KF999"),
        (["-o", "nowhere/page.html"], "there is no folder nowhere"),
        (["kin.kin"], "named twice"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(folder, arguments, sentence, monkeypatch):
    monkeypatch.chdir(folder)
    done = run("report", "kin.kin", *arguments)
    assert done.exit_code == 2
    assert sentence in done.stderr
