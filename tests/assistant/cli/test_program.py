"""All commands together: help with examples, a quick start, and one sentence where packages are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kinfolk_assistant.cli.options import EXTRA
from tests.assistant.cli.conftest import refused, worked
from tests.cli.conftest import Run

COMMANDS = ("demo", "setup", "serve", "user", "import", "receive", "train", "decide", "export", "doctor", "admin")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(run: Run, command: str) -> None:
    text = worked(run, command, "--help")
    assert "Example:" in text
    assert f"kinfolk assistant {command}" in text


def test_the_commands_are_listed_with_and_without_being_asked_for(run: Run) -> None:
    text = worked(run, "--help")
    assert worked(run) == text
    listed = text.partition("Commands:")[2].partition("Example:")[0]
    assert tuple(line.split()[0] for line in listed.splitlines() if line[:3].strip()) == COMMANDS
    assert "kinfolk assistant demo" in text


def test_a_command_that_is_not_there_is_refused(run: Run) -> None:
    assert "guess" in refused(run, "guess")


def test_help_needs_none_of_the_packages_and_loads_none() -> None:
    heavy = [*EXTRA, "numpy", "polars", "sklearn", "numba"]
    code = (
        "import sys\nfrom kinfolk.cli.app import app\n"
        "try: app(['assistant', 'decide', '--help'], prog_name='kinfolk')\n"
        "except SystemExit as stop: assert not stop.code\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("package", EXTRA)
def test_a_missing_package_is_one_sentence_that_says_how_to_get_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    # Python takes None for a module that cannot be found.
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    for arguments in (
        ("decide", "x.ics", "-u", "ann@example.org"),
        ("import", "x.ics", "-u", "ann@example.org"),
        ("receive", "x.ics", "-u", "ann@example.org"),
        ("export", "-o", "x.csv"),
        ("user", "ann@example.org"),
        ("doctor", "--settings", "x.toml"),
        ("serve",),
        ("train",),
        ("demo",),
    ):
        sentence = refused(run, *arguments)
        assert f"needs {package}, which is not installed" in sentence
        assert "pip install 'kinfolk[assistant]'" in sentence


def test_a_missing_database_driver_is_one_sentence_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # type: ignore[arg-type]
    Path("assistant.toml").write_text("ledger = 'postgresql://ann:secret@127.0.0.1:1/team'\n")
    for command in ("train", "serve", "doctor"):
        sentence = refused(run, command, "--settings", "assistant.toml")
        assert "pip install 'kinfolk[postgresql]'" in sentence
        assert "secret" not in sentence


def test_the_extra_is_all_that_is_asked_for() -> None:
    from importlib.metadata import packages_distributions, requires

    wanted = {line.split(">")[0] for line in requires("kinfolk") or () if "assistant" in line.partition("extra")[2]}
    modules = packages_distributions()
    assert {modules[name][0].lower().replace("_", "-") for name in EXTRA} == wanted
