"""Change one small thing in the code, see whether a test notices, and again: how much the tests prove.

    python -m scripts.mutants cover FOLDER              once: which test enters which function (runs the tests)
    python -m scripts.mutants run FOLDER --number 500   draw mutants by a seed and test each; goes on where it stopped
    python -m scripts.mutants report FOLDER             the share that was noticed, and what was not, line by line

FOLDER holds a copy of the sources and the tests as they were when ``cover`` began, so that work can go on meanwhile,
and the results, one line of JSON a mutant; without FOLDER everything begins anew. Each mutant is tested in a process of
its own by the tests that enter its function (``choosing``), until the first one fails; a mutant that runs several times
longer than the tests do, or that ends the process, is noticed as well. One mutant is tested at a time; several runs may
go side by side, each with ``--rooms`` of its own.
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
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scripts.mutants.choosing import Tests
from scripts.mutants.mutate import Mutant, mutants
from scripts.mutants.planting import forget_kernels, kernels_in_use, plant, replacement

ROOT = Path(__file__).parents[2]
ROOMS = ("naive_bayes", "partition", "networks", "lica", "linear", "sequences", "transfer")
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
    "sklearn.linear_model",
    "sklearn.naive_bayes",
    "scipy.optimize",
    "matplotlib.pyplot",
    "narwhals",
    "rich.progress",
)
MEMORY = 16 * 2**30
# A mutant is given so many times the processor time of its tests, and so many seconds to compile kernels.
SLOWER, COMPILING = 3.0, 20.0
# The exit status where no loaded function is the one that changed.
NOT_FOUND = 99


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=["cover", "run", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=500, help="How many mutants to draw.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help="Of the mutants drawn, test those of these folders.")
    parser.add_argument("--budget", type=float, default=30.0, help="Seconds of tests for one mutant.")
    parser.add_argument("--without", nargs="*", default=[], help="Files of tests that start threads when collected.")
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
    """Test the mutants that have no result yet, room by room, each room in a process of its own."""
    base, results = (given.folder / "base").resolve(), given.folder.resolve() / "results.jsonl"
    os.environ.update(_environment(base))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for library in LIBRARIES:
        importlib.import_module(library)
    every = drawn(base, given.number, given.seed)
    for room in given.rooms:
        done = {_key(line) for line in _lines(results)}
        left = [
            (file, mutant)
            for file, mutant in every
            if file.partition("/")[0] == room and _key({"file": file, **mutant._asdict()}) not in done
        ]
        child = os.fork()
        if not child:
            _test_room(given, base, room, left)
        os.waitpid(child, 0)


def _test_room(given: argparse.Namespace, base: Path, room: str, left: list[tuple[str, Mutant]]) -> None:
    """In the process of a room: import the package and its tests, and test mutants; those of modules afterwards."""
    tests = Tests(given.folder / "covering.jsonl", base / "src" / "kinfolk")
    folder, until = given.folder.resolve(), time.monotonic() + 60 * given.minutes
    told = folder / f"told-{room}"
    of_mutant = {(file, mutant): tests.of(file, mutant.function, given.budget) for file, mutant in left}
    folders = sorted({"/".join(test.split("/")[:2]) for chosen in of_mutant.values() for test in chosen})
    others = []
    shown = os.fdopen(os.dup(1), "w")  # pytest keeps what is printed to itself

    def tell(file: str, mutant: Mutant, chosen: list[str], outcome: dict[str, Any]) -> None:
        about = {"file": file, **mutant._asdict(), "tests": len(chosen), "noticed": None} | outcome
        with (folder / "results.jsonl").open("a") as out:
            out.write(json.dumps(about) + "\n")
        print(f"{about['noticed'] or 'survived':60.60} {file}:{mutant.line} {mutant.kind}", file=shown, flush=True)

    class Room:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and not told.exists():
                told.write_text(report.nodeid)

        def pytest_runtestloop(self, session: Any) -> bool:
            items = {item.nodeid: item for item in session.items}
            places = {name: place for place, name in enumerate(items)}
            if kernels_in_use():
                raise RuntimeError(f"called while tests were collected: {kernels_in_use()}")
            if len(list(Path("/proc/self/task").glob("*"))) > 1:
                raise RuntimeError("threads were started while tests were collected; the children would wait for them")
            for file, mutant in left:
                if time.monotonic() > until:
                    break
                chosen = [test for test in of_mutant[file, mutant] if test in items]
                codes = replacement(base / "src" / "kinfolk" / file, mutant)
                if not chosen:
                    tell(file, mutant, chosen, {})
                elif codes is None:
                    others.append((file, mutant, chosen))
                else:
                    seconds: Counter[str] = Counter()
                    for test in chosen:
                        seconds[test.partition("::")[0]] += tests.seconds[test]
                    # Tests of a file together, since they share what its fixtures made.
                    chosen.sort(key=lambda test: (seconds[test.partition("::")[0]], places[test]))
                    limit = SLOWER * seconds.total() + COMPILING
                    test = partial(_run_items, [items[test] for test in chosen], codes, told)
                    outcome = _noticed(test, told, limit)
                    if outcome["noticed"] == f"exit {NOT_FOUND}":
                        others.append((file, mutant, chosen))
                    else:
                        tell(file, mutant, chosen, outcome)
            return True

    os.chdir(base)
    sys.path[:] = [str(base / "src"), str(base), *(p for p in sys.path if p and Path(p) != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] == "kinfolk"]:
        del sys.modules[name]
    session = os.fork()  # pytest is started once a process: mutants of modules start it again
    waiting = folder / f"others-{room}"
    if not session:
        _log_to(told)
        ignored = [f"--ignore={file}" for file in given.without]
        code = _pytest([*folders, "-m", "not slow", *ignored], Room())
        waiting.write_text(json.dumps([(file, mutant, chosen) for file, mutant, chosen in others]))
        os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(session, 0)[1]):
        print(f"{room}: the session broke off; see {told.with_suffix('.log')}", file=shown, flush=True)
    for file, mutant, chosen in json.loads(waiting.read_text()) if waiting.exists() else []:
        if time.monotonic() < until:
            limit = SLOWER * sum(tests.seconds[test] for test in chosen) + COMPILING
            tell(file, Mutant(*mutant), chosen, tested(folder, file, Mutant(*mutant), chosen, limit))
    os._exit(0)


def _run_items(items: list[Any], codes: tuple[Any, Any], told: Path) -> int:
    """Run tests of a session, one of whose functions is changed, until one fails."""
    if not plant(*codes):
        return NOT_FOUND
    forget_kernels()
    for item, following in zip(items, [*items[1:], None], strict=True):
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException:  # what ends a session is noticed as well
            told.write_text(item.nodeid)
        if told.exists():
            return 1
    return 0


def tested(folder: Path, file: str, mutant: Mutant, tests: list[str], limit: float) -> dict[str, Any]:
    """Run tests on a copy of the sources with the mutant; who noticed it, and the seconds it took."""
    copy = folder / f"mutant-{os.getpid()}"
    shutil.rmtree(copy, ignore_errors=True)
    # Links, so that kernels which the mutant supersedes stay in the cache of the others.
    subprocess.run(["cp", "-al", str(folder / "base"), str(copy)], check=True)
    path = copy / "src" / "kinfolk" / file
    source = path.read_text()
    path.unlink()
    path.write_text(mutant.apply(source))
    told = folder / f"told-{os.getpid()}"
    return _noticed(lambda: _test_copy(copy, tests, told), told, limit)


def _noticed(test: Callable[[], int], told: Path, limit: float) -> dict[str, Any]:
    """Run tests in a process of their own; who noticed the mutant, and the seconds it took."""
    told.unlink(missing_ok=True)
    began = time.monotonic()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            _log_to(told)
            code = test()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = _waited(child, began + 20 * limit)
    failed = told.read_text() if told.exists() else ""
    code = os.waitstatus_to_exitcode(status)
    if code in (1, 4, 5) and not failed:
        raise RuntimeError(f"no test was run; see {told.with_suffix('.log')}")
    killed = code in (-signal.SIGXCPU, -signal.SIGKILL)
    noticed = None if code == 0 else failed or ("time" if killed else f"exit {code}")
    return {"noticed": noticed, "wall": round(time.monotonic() - began, 1)}


def _log_to(told: Path) -> None:
    log = os.open(told.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _waited(child: int, until: float) -> int:
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.1)
    os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _test_copy(copy: Path, tests: list[str], told: Path) -> int:
    """In the process of a mutant: load everything from the copy, and run tests until one fails."""

    class Tell:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and not told.exists():
                told.write_text(report.nodeid)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed and not told.exists():
                told.write_text(f"collecting {report.nodeid}")

    os.chdir(copy)
    os.environ.update(_environment(copy))
    base = copy.with_name("base")
    sys.path[:] = [str(copy / "src"), str(copy), *(p for p in sys.path if base not in (Path(p), Path(p).parent))]
    return _pytest(["-x", *tests], Tell())


def _pytest(arguments: list[str], plugin: object) -> int:
    import pytest

    options = ["-q", "-p", "no:cacheprovider", "--timeout", "0", "--no-header"]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))


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
