"""Ctrl-C ends a command with status 130 and one sentence; its files are whole or not there."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kinfolk
from tests.cli.conftest import Run

# What sends the signal, and when: half a second into a fit, or in the middle of a file that is written.
DURING_FIT = """
from kinfolk.naive_bayes.estimators.{module} import {name} as Model
fit = Model.fit
def fit_and_signal(self, *given, **named):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    return fit(self, *given, **named)
Model.fit = fit_and_signal
"""
WHILE_WRITING = """
from numpy.lib import format
write = format.write_array
def write_and_signal(file, *given, **named):
    write(file, *given, **named)
    os.kill(os.getpid(), signal.SIGINT)
format.write_array = write_and_signal
"""


@pytest.fixture
def table(run: Run) -> Path:
    rng = np.random.default_rng(0)
    columns = {f"f{i}": rng.integers(0, 4, 2_000) for i in range(6)}
    pd.DataFrame({"id": rng.integers(0, 40, 2_000), **columns, "y": rng.choice(["no", "yes"], 2_000)}).to_csv(
        "t.csv", index=False
    )
    return Path("t.csv")


def interrupted(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    start = f"import os, signal, sys, threading\n{code}\nfrom kinfolk.cli import main\nmain()\n"
    source = str(Path(kinfolk.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": source},
    )


@pytest.mark.parametrize(
    ("code", "options"),
    [
        (DURING_FIT.format(module="clustered", name="ClusteredNB"), ("--inference", "gibbs", "--evidence")),
        (DURING_FIT.format(module="prototype", name="PrototypeNB"), ("--model", "prototype", "--evidence")),
        (WHILE_WRITING, ("--model", "no-sharing")),
    ],
    ids=["gibbs", "prototype", "writing"],
)
def test_ctrl_c_gives_status_130_one_sentence_and_no_file(table: Path, code: str, options: tuple) -> None:
    Path("m.kin").write_text("as it was")
    before = sorted(os.listdir())
    done = interrupted(code, "fit", "t.csv", "--task", "id", "--label", "y", "-o", "m.kin", *options)
    assert (done.returncode, done.stderr) == (130, "kinfolk: interrupted before the work was done\n")
    assert done.stdout == ""
    assert sorted(os.listdir()) == before
    assert Path("m.kin").read_text() == "as it was"
