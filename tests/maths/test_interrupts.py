"""Ctrl-C in compiled code is KeyboardInterrupt, whatever goes into a kernel and comes out of it."""

import subprocess
import sys

import pytest

KERNELS = """
import os, signal, threading, time
from typing import Any, NamedTuple
import numpy as np
from kinfolk.maths.compiled import compiled

class Pair(NamedTuple):
    x: Any
    y: Any

@compiled
def at_work(pair, n):
    total = 0.0
    for i in range(n):
        total += np.sin(pair.x[i % 3])
    return Pair(pair.x + total, pair.y)

@compiled
def drawn(pair, rng, n):
    total = 0.0
    for i in range(n):
        total += rng.random()
    return Pair(pair.x + total, pair.y)

pair, rng = Pair(np.ones(3), np.ones(2)), np.random.default_rng(0)
at_work(pair, 1), drawn(pair, rng, 1)
CALLS = {
    "one long": lambda: at_work(pair, 10**9 // 40),
    "many short": lambda: [at_work(pair, 1) for _ in range(10**6)],
    "one long with a generator": lambda: drawn(pair, rng, 10**9 // 40),
    "many short with a generator": lambda: [drawn(pair, rng, 1) for _ in range(10**6)],
}
for name, call in CALLS.items():
    for delay in (0.02, 0.031, 0.047):
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            call()
            time.sleep(5)
        except KeyboardInterrupt:
            continue
        raise SystemExit(f"{name}: not interrupted")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("as it should be")
"""

FOLDS = """
import os, signal, threading, warnings
import numpy as np
from sklearn.model_selection import cross_val_score
from kinfolk import PrototypeNB

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.integers(0, 3, (60, 4)), rng.integers(0, 2, 60)
PrototypeNB(n_chains=1, n_burn_in=1, n_draws=1, random_state=0).fit(X, y)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    cross_val_score(PrototypeNB(n_chains=1, n_burn_in=10**6, n_draws=10, random_state=0), X, y, cv=3)
except KeyboardInterrupt:
    print("as it should be")
"""

COMMAND = """
import os, signal, sys, tempfile, threading
from pathlib import Path
from kinfolk import PrototypeNB
from kinfolk.cli import main
from kinfolk.naive_bayes.inference import prototype_labelled

table = Path(tempfile.mkdtemp()) / "table.csv"
table.write_text("who,a,b,y\\n" + "".join(f"t{i % 4},{i % 3},{i % 5},{i % 2}\\n" for i in range(80)))
made, sample = PrototypeNB.__init__, prototype_labelled.sample_group

def long(self, **params):
    made(self, **{**params, "n_chains": 1, "n_burn_in": 10**6})

def interrupted(*given):
    # From here on, and not from the start: an interrupt in a callback of ctypes, of which imports have some, is lost.
    threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    return sample(*given)

prototype_labelled.sample_group = interrupted
PrototypeNB.__init__ = long
words = ["fit", str(table), "--model", "prototype", "--task", "who", "--label", "y", "-o", str(table) + ".kin"]
sys.argv[1:] = words
main()
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("program", [KERNELS, FOLDS], ids=["kernels", "cross-validation"])
def test_an_interrupt_is_raised_as_such(program):
    done = run(program)
    assert (done.returncode, done.stdout.strip()) == (0, "as it should be"), done.stderr[-2000:]


def test_the_command_line_ends_with_the_status_of_an_interrupt():
    done = run(COMMAND)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr[-2000:]
    assert "interrupted" in done.stderr
