"""Compiled code is that of the source as it stands, is kept where it can be, and who has to wait is told why."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import kinfolk

INNER = """
from kinfolk.maths.compiled import compiled

FACTOR = 2.0

@compiled
def inner(x):
    return x + 1.0
"""
OUTER = """
from typing import NamedTuple
from kinfolk.maths.compiled import compiled
from family import inner as module
from family.inner import FACTOR, inner

class Pair(NamedTuple):
    first: float
    second: float

@compiled
def calls(x):
    return 10.0 * inner(x)

@compiled
def calls_through_a_module(x):
    return 10.0 * module.inner(x)

@compiled
def is_handed(kernel, x):
    return 10.0 * kernel(x)

@compiled(fastmath={"contract", "reassoc", "nsz", "arcp"})  # a set: in another order in every process
def scales(x):
    return FACTOR * x

@compiled
def recurs(x):
    return x if x < 1.0 else recurs(x - 1.0)

@compiled
def names_a_field(pair):
    return pair.first
"""
CALLS = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
from family import outer
from family.inner import inner
pair = outer.Pair(first=1.0, second=2.0)
calls = dict(calls=[1.0], calls_through_a_module=[1.0], is_handed=[inner, 1.0], scales=[1.0], recurs=[2.5],
             names_a_field=[pair])
for name, arguments in calls.items():
    kernel = getattr(outer, name)
    print(name, kernel(*arguments), "compiled" if sum(kernel.stats.cache_misses.values()) else "loaded")
"""
NOTICE = "Compiling kernels for the first time"


@pytest.fixture
def family(tmp_path):
    """A package of two modules."""
    folder = tmp_path / "family"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "inner.py").write_text(INNER)
    (folder / "outer.py").write_text(OUTER)
    return folder


def run(family, script=CALLS, stderr=subprocess.PIPE, **environment):
    """Run a script beside the package in a new process."""
    path = os.pathsep.join([str(family.parent), str(Path(kinfolk.__file__).parents[1])])
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    return subprocess.run(
        [sys.executable, "-c", script],
        env=clean | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=True,
    )


def said(ran):
    """Value and way of every kernel, by name."""
    return {name: (float(value), way) for name, value, way in map(str.split, ran.stdout.splitlines())}


def entries(folder):
    """Kept code by kernel."""
    return {file.name.split("-")[0]: file.name for file in folder.rglob("*.kernel")}


def test_an_edit_recompiles_what_reaches_it_and_nothing_else(family):
    first = run(family)
    assert set(said(first).values()) == {(20.0, "compiled"), (2.0, "compiled"), (0.5, "compiled"), (1.0, "compiled")}
    assert first.stderr.count(NOTICE) == 1
    kept = entries(family)
    assert len(kept) == 7

    again = run(family)
    assert again.stderr == ""
    assert {way for _, way in said(again).values()} == {"loaded"}
    assert {name: value for name, (value, _) in said(again).items()} == {
        name: value for name, (value, _) in said(first).items()
    }
    assert entries(family) == kept

    (family / "inner.py").write_text(INNER.replace("x + 1.0", "x + 2.0").replace("FACTOR = 2", "FACTOR = 3"))
    swapped = OUTER.replace("first: float\n    second", "second: float\n    first")
    (family / "outer.py").write_text(f'"""Comments and places do not count."""\n{swapped}')
    edited = said(run(family))
    assert edited == {
        "calls": (30.0, "compiled"),
        "calls_through_a_module": (30.0, "compiled"),
        "is_handed": (30.0, "compiled"),
        "scales": (3.0, "compiled"),
        "recurs": (0.5, "loaded"),
        "names_a_field": (1.0, "compiled"),
    }
    left = [file.name for file in family.rglob("*.kernel")]
    assert len(left) == len(kept)
    assert set(left) & set(kept.values()) == {kept["outer.recurs"]}


def test_kernels_and_modules_that_are_gone_leave_no_code_behind(family):
    run(family)
    (family / "outer.py").unlink()
    (family / "inner.py").write_text(INNER.replace("def inner", "def renamed"))
    run(family, "from family.inner import renamed; renamed(1.0)")
    assert list(entries(family)) == ["inner.renamed"]


def test_damaged_code_is_compiled_anew(family):
    run(family)
    for file in family.rglob("*.kernel"):
        file.write_bytes(file.read_bytes()[:100])
    assert {way for _, way in said(run(family)).values()} == {"compiled"}
    assert {way for _, way in said(run(family)).values()} == {"loaded"}


def test_code_goes_to_the_users_cache_where_the_package_is_read_only(family, tmp_path):
    # A file instead of the folder: permissions do not keep an administrator out.
    (family / "__pycache__").touch()
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path / "home")}
    first = run(family, **environment)
    assert "kept for the next run" in first.stderr
    assert len(list(tmp_path.rglob("*.kernel"))) == 7
    assert {way for _, way in said(run(family, **environment)).values()} == {"loaded"}


@pytest.mark.parametrize("temporary", [True, False])
def test_kernels_run_without_a_home_and_one_sentence_says_so(family, tmp_path, temporary):
    (family / "__pycache__").touch()
    nowhere = tmp_path / "file"
    nowhere.touch()
    place = tmp_path if temporary else nowhere / "folder"
    script = f"import tempfile; tempfile.tempdir = {str(place)!r}\n{CALLS}"
    environment = {"HOME": str(nowhere / "home"), "XDG_CACHE_HOME": str(nowhere / "cache")}
    first, second = run(family, script, **environment), run(family, script, **environment)
    assert first.stderr.count("NUMBA_CACHE_DIR") == len(first.stderr.splitlines()) == 1
    assert ("may be emptied" if temporary else "cannot be kept") in first.stderr
    assert {way for _, way in said(second).values()} == {"loaded" if temporary else "compiled"}


def test_what_others_may_write_to_is_not_trusted(family, tmp_path):
    (family / "__pycache__").touch()
    (tmp_path / "file").touch()
    (tmp_path / f"kinfolk-kernels-{os.getuid()}").mkdir()
    (tmp_path / f"kinfolk-kernels-{os.getuid()}").chmod(0o777)
    script = f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}\n{CALLS}"
    ran = run(family, script, HOME=str(tmp_path / "file" / "home"))
    assert "cannot be kept" in ran.stderr
    assert not list(tmp_path.rglob("*.kernel"))


def test_a_terminal_is_told_and_workers_no_progress(family):
    script = "from family.inner import inner; inner(1.0)"
    ours, theirs = pty.openpty()
    run(family, script, stderr=theirs)
    os.close(theirs)
    assert os.read(ours, 10_000).decode().count(NOTICE) == 1
    os.close(ours)
    for file in family.rglob("*.kernel"):
        file.unlink()
    tell = "import logging; logging.basicConfig(level=logging.INFO)"
    in_workers = f"""
from joblib import Parallel, delayed

def work(x):
    {tell}
    from family.inner import inner
    return inner(x)

print(Parallel(n_jobs=2, backend="loky")(delayed(work)(float(x)) for x in range(2)))
"""
    ran = run(family, in_workers)
    assert ran.stdout.strip() == "[1.0, 2.0]"
    assert NOTICE not in ran.stderr
    assert len(entries(family)) == 1
