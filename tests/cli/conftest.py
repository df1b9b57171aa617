"""A small table of tasks, and a way to run the command line within the tests' own process."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from kinfolk.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command line in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object, given: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)

    return command


@pytest.fixture
def meetings() -> pd.DataFrame:
    """Six people, of whom the first three like what the others do not."""
    rng = np.random.default_rng(7)
    rows = []
    for person in range(6):
        for _ in range(30):
            colour = str(rng.choice(["red", "blue", "grün"]))
            likes = (colour == "red") == (person < 3) if rng.random() < 0.85 else bool(rng.random() < 0.5)
            size, hours = round(float(rng.normal()), 3), int(rng.integers(0, 4))
            rows.append((f"person {person}", colour, size, hours, "yes" if likes else "no"))
    return pd.DataFrame(rows, columns=["who is it", "colour", "größe", "hours", "answer"])


@pytest.fixture(params=["csv", "csv.gz", "tsv", "parquet"])
def table(request: pytest.FixtureRequest, meetings: pd.DataFrame, tmp_path: Path) -> Path:
    """The same table in every kind of file."""
    return write(meetings, tmp_path / f"meetings.{request.param}")


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path
