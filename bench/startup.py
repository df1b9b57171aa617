"""What a user waits for before anything happens: imports, and a first fit with and without compiled kernels.

First fits run in processes of their own. ``first call`` is one with an empty cache, which has to compile; ``time`` is
that of the next process, which finds the kernels ready. Importing the estimator is counted apart.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measure import Comparison, best_of

DATA = """
import numpy as np
rng = np.random.default_rng(0)
task = np.repeat(np.arange(6), 50)
table = rng.integers(0, 3, (300, 6))
label = (table[:, 0] + rng.integers(0, 2, 300)) % 2
numbers = rng.normal(size=(300, 6))
"""
FITS = {
    "ClusteredNB": ("ClusteredNB().fit(table, label, task=task)", "under 4 s"),
    "BayesNets": ("BayesNets().fit(table, task=task)", "under 10 s"),
    "LICAClassifier": ("LICAClassifier(n_sources=2, random_state=0).fit(numbers, label, task=task)", "under 10 s"),
    "NestedIHMM": (
        "NestedIHMM(n_states=4, n_chains=1, n_burn_in=10, n_draws=10, random_state=0)"
        ".fit(table[:, 0], [50] * 6, task=range(6))",
        "under 10 s",
    ),
}


def first_fit(name: str, cache: str) -> tuple[float, float]:
    """Seconds of importing an estimator and of its first fit, in a process of its own."""
    script = f"""
import time, warnings
warnings.simplefilter("ignore")
{DATA}
start = time.perf_counter()
from kinfolk import {name}
loaded = time.perf_counter()
{FITS[name][0]}
print(loaded - start, time.perf_counter() - loaded)
"""
    own = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", script], env=own, check=True, text=True, stdout=subprocess.PIPE)
    imported, fitted = map(float, done.stdout.split())
    return imported, fitted


def run() -> list[Comparison]:
    python = sys.executable
    command = Path(python).parent / "kinfolk"
    bare = best_of(lambda: subprocess.run([python, "-c", "pass"], check=True))
    loaded = best_of(lambda: subprocess.run([python, "-c", "import kinfolk"], check=True))
    helped = best_of(lambda: subprocess.run([command, "--help"], check=True, stdout=subprocess.DEVNULL))
    results = [
        Comparison("import kinfolk, beyond starting Python", "", loaded - bare, None, "under 100 ms"),
        Comparison("kinfolk --help, Python's start included", "", helped, None, "under 300 ms"),
    ]
    for name, (_, wanted) in FITS.items():
        with TemporaryDirectory(prefix="kinfolk-bench-") as cache:
            _, compiling = first_fit(name, cache)
            again = [first_fit(name, cache) for _ in range(3)]
        imported, fitted = (min(seconds) for seconds in zip(*again, strict=True))
        results += [
            Comparison(f"import {name}, beyond NumPy", "", imported, None, ""),
            Comparison(f"first fit of {name}", "", fitted, None, f"compiling {wanted}", compiling),
        ]
    return results
