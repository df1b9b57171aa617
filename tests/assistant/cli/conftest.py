"""A way to run commands, and the made-up team's ledger, which is made once by the command itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from kinfolk.cli.app import app
from tests.cli.conftest import Run, run

__all__ = ["run"]


class Demo(NamedTuple):
    """The folder that ``demo`` filled, and what it said."""

    folder: Path
    said: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("team") / "demo"
    done = CliRunner().invoke(app, ["assistant", "demo", "--people", "2", "--no-serve", "-o", str(folder)])
    assert done.exit_code == 0, (done.stderr, done.exception)
    return Demo(folder, done.stdout)


@pytest.fixture
def team(demo: Demo, run: Run, tmp_path: Path) -> Path:
    """A copy of the team's ledger to be changed at will."""
    return Path(shutil.copy(demo.folder / "ledger.db", tmp_path / "team.db"))


def refused(run: Run, *arguments: object, given: str | bytes | None = None) -> str:
    """Run something that must be refused with one sentence and leave no trace, and give the sentence."""
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    result = run("assistant", *arguments, given=given)
    assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
    assert result.stdout == ""
    assert result.stderr.startswith("kinfolk: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
    return result.stderr


def worked(run: Run, *arguments: object, given: str | bytes | None = None) -> str:
    """Run something that must work, and give what it printed."""
    result = run("assistant", *arguments, given=given)
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    return result.stdout
