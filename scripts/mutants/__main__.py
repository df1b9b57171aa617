"""Change one small thing in the code, see whether a test notices, and again: how much the tests prove.

    python -m scripts.mutants cover FOLDER              once: which test enters which function (runs the tests)
    python -m scripts.mutants run FOLDER --number 500   draw mutants by a seed and test each; goes on where it stopped
    python -m scripts.mutants report FOLDER             the share that was noticed, and what was not, line by line

FOLDER holds a copy of the sources and the tests as they were when ``cover`` began, so that work can go on meanwhile,
and the results, one line of JSON a mutant; without FOLDER everything begins anew. Each mutant is tested in a process of
its own by the tests that enter its function (``choosing``), until the first one fails; a mutant that runs several times
longer than the tests do, or that ends the process, is noticed as well. One mutant is tested at a time.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from scripts.mutants.choosing import Tests
from scripts.mutants.mutate import Mutant, mutants

ROOT = Path(__file__).parents[2]
ROOMS = ("naive_bayes", "partition", "networks", "lica", "sequences")
# Loaded once, before the processes of the mutants part ways.
LIBRARIES = (
    "numpy",
    "scipy.stats",
    "pandas",
    "polars",
    "pyarrow",
    "numba",
    "networkx",
    "sklearn.utils.estimator_checks",
)
MEMORY = 16 * 2**30


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=["cover", "run", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=500, help="How many mutants to draw.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help="Of the mutants drawn, test those of these folders.")
    parser.add_argument("--budget", type=float, default=60.0, help="Seconds of tests for one mutant.")
    parser.add_argument("--minutes", type=float, default=math.inf, help="Stop after so long.")
    given = parser.parse_args()
    {"cover": cover, "run": run, "report": report}[given.command](given)


def cover(given: argparse.Namespace) -> None:
    """Copy the repository and run the tests of the rooms, watched."""
    base = given.folder / "base"
    if base.exists():
        return
    shutil.copytree(ROOT, base, ignore=shutil.ignore_patterns(".git", ".venv", ".mutants", ".hypothesis", "*_cache"))
    covering = (given.folder / "covering.jsonl").resolve()
    for room in ROOMS:
        options = ["-p", "scripts.mutants.covering", "--covering", str(covering), "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *options, f"tests/{room}"]
        subprocess.run(command, cwd=base, env=_environment(base), check=False)


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": f"{folder / 'src'}:{folder}", "OMP_NUM_THREADS": "1"}


def drawn(base: Path, number: int, seed: int) -> list[tuple[str, Mutant]]:
    """Mutants drawn without replacement; every place is as probable as every other."""
    package = base / "src" / "kinfolk"
    places: dict[tuple[str, int, int, str], list[Mutant]] = {}
    for room in ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            file = path.relative_to(package).as_posix()
            for mutant in mutants(path.read_text()):
                places.setdefault((file, mutant.start, mutant.end, mutant.kind), []).append(mutant)
    rng = random.Random(seed)
    found = []
    for place in rng.sample(sorted(places), len(places)):
        mutant = rng.choice(places[place])
        if len(found) < number and _can_be_read(mutant.apply((package / place[0]).read_text())):
            found.append((place[0], mutant))
    return found


def _can_be_read(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def run(given: argparse.Namespace) -> None:
    """Test the mutants that have no result yet."""
    base, results = (given.folder / "base").resolve(), given.folder / "results.jsonl"
    tests = Tests(given.folder / "covering.jsonl", base / "src" / "kinfolk")
    done = {_key(line) for line in _lines(results)}
    os.environ.update(_environment(base))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for library in LIBRARIES:
        importlib.import_module(library)
    until = time.monotonic() + 60 * given.minutes
    for file, mutant in drawn(base, given.number, given.seed):
        about: dict[str, Any] = {"file": file, **mutant._asdict()}
        if _key(about) in done or file.partition("/")[0] not in given.rooms or time.monotonic() > until:
            continue
        chosen = tests.of(file, mutant.function, given.budget)
        limit = 30.0 + 4.0 * sum(tests.seconds[test] for test in chosen)
        about |= {"tests": len(chosen)} | (
            tested(given.folder.resolve(), file, mutant, chosen, limit) if chosen else {}
        )
        about.setdefault("noticed", None)
        with results.open("a") as out:
            out.write(json.dumps(about) + "\n")
        print(f"{about['noticed'] or 'survived':60.60} {file}:{mutant.line} {mutant.kind}", flush=True)


def tested(folder: Path, file: str, mutant: Mutant, tests: list[str], limit: float) -> dict[str, Any]:
    """Run tests on a copy of the sources with the mutant; who noticed it, and the seconds it took."""
    copy = folder / "mutant"
    shutil.rmtree(copy, ignore_errors=True)
    # Links, so that kernels which the mutant supersedes stay in the cache of the others.
    subprocess.run(["cp", "-al", str(folder / "base"), str(copy)], check=True)
    path = copy / "src" / "kinfolk" / file
    source = path.read_text()
    path.unlink()
    path.write_text(mutant.apply(source))
    told = folder / "told"
    told.unlink(missing_ok=True)
    began = time.monotonic()
    child = os.fork()
    if not child:
        _test(copy, tests, limit, told)
    status = _waited(child, began + 10 * limit)
    failed = told.read_text() if told.exists() else ""
    code = os.waitstatus_to_exitcode(status)
    noticed = (
        None if code == 0 else failed or ("time" if code in (-signal.SIGXCPU, -signal.SIGKILL) else f"exit {code}")
    )
    return {"noticed": noticed, "wall": round(time.monotonic() - began, 1)}


def _waited(child: int, until: float) -> int:
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.1)
    os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _test(copy: Path, tests: list[str], limit: float, told: Path) -> None:
    """In the process of a mutant: run the tests and end."""
    import pytest

    class Tell:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and not told.exists():
                told.write_text(report.nodeid)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed and not told.exists():
                told.write_text(f"collecting {report.nodeid}")

    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    log = os.open(told.with_name("log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(copy)
    os.environ.update(_environment(copy))
    sys.path[:] = [str(copy / "src"), str(copy), *(p for p in sys.path if p and Path(p) != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("kinfolk", "tests", "scripts")]:
        del sys.modules[name]
    options = ["-x", "-q", "-p", "no:cacheprovider", "--timeout", "0", "--no-header"]
    code = 1
    try:
        code = int(pytest.main([*options, *tests], plugins=[Tell()]))
    finally:
        os._exit(code)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _key(about: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(about[name] for name in ("file", "start", "end", "text"))


def report(given: argparse.Namespace) -> None:
    """Say how many mutants were noticed, and show the others."""
    results = _lines(given.folder / "results.jsonl")
    package = given.folder / "base" / "src" / "kinfolk"
    counts: Counter[tuple[str, bool]] = Counter()
    for about in results:
        noticed = about["noticed"] is not None
        counts[about["file"].partition("/")[0], noticed] += 1
        counts["all", noticed] += 1
        if not noticed:
            source = (package / about["file"]).read_text()
            changed = Mutant(*(about[name] for name in Mutant._fields)).apply(source)
            why = "" if about["tests"] else "   (no test enters it)"
            print(f"{about['file']}:{about['line']} {about['function']}{why}")
            print(f"  - {source.splitlines()[about['line'] - 1].strip()}")
            print(f"  + {changed.splitlines()[about['line'] - 1].strip()}")
    for room in (*ROOMS, "all"):
        killed, survived = counts[room, True], counts[room, False]
        n = killed + survived
        if n:
            share = killed / n
            error = math.sqrt(share * (1 - share) / n)
            print(f"{room:12} {killed:4} of {n:4} noticed: {100 * share:5.1f} % ± {100 * error:.1f}")


if __name__ == "__main__":
    main()
