"""What is handed on: a description that reads by itself, a source archive with what it names, numpy alone to answer."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import kinfolk

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture
def description(monkeypatch: pytest.MonkeyPatch) -> str:
    """The long description that the build makes; what builds is not installed here."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["LongDescription"]()
    hook.root = str(ROOT)
    metadata: dict = {}
    hook.update(metadata)
    assert metadata["readme"]["content-type"] == "text/markdown"
    return metadata["readme"]["text"]


def test_the_long_description_has_no_pictures_and_no_links_that_lead_nowhere(description: str) -> None:
    assert "![" not in description
    assert not re.findall(r"\]\((?!https?:)", description)
    for kept in ("## Ten lines of Python", "kinfolk fit requests.csv", "docs/guide.md", "## Papers"):
        assert kept in description


def test_the_source_archive_has_what_the_readme_names() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    named = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    named += ["Makefile"] if re.search(r"^make ", README, re.MULTILINE) else []
    assert len(named) > 5
    for path in named:
        assert (ROOT / path).exists(), path
        assert f"/{path.partition('/')[0]}" in included, path
    # And what its own build and Makefile need.
    assert {"/hatch_build.py", "/scripts", "/constraints.txt", "/src", "/tests"} <= set(included)
    # Without the slash, folders of these names anywhere would be taken along: an environment has hundreds of "tests".
    assert all(name.startswith("/") for name in included)
    assert all((ROOT / path.removeprefix("/")).exists() for path in included)


def test_the_oldest_versions_that_are_allowed_are_all_named() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "lowest.py"], capture_output=True, text=True, check=True)
    names = [line.partition("==")[0] for line in done.stdout.split()]
    assert len(names) == len(PROJECT["project"]["dependencies"])
    assert {"numpy", "polars", "scikit-learn"} <= set(names)


ASKED = """
import json, sys
sys.path.append(sys.argv[1])
import kinfolk
answer = kinfolk.load(sys.argv[2]).predict_proba(json.loads(sys.argv[3]), task=["ann", "bob", "new"])
others = ("sklearn", "scipy", "numba", "polars", "pandas", "narwhals", "joblib")
print(json.dumps([answer.tolist(), [name for name in others if name in sys.modules]]))
"""


@pytest.mark.skipif(os.name != "posix", reason="a folder of links stands for an environment")
@pytest.mark.parametrize(
    "kind", ["ClusteredNB", "AveragedNB", "LICAClassifier", "HierarchicalClassifier", "ClusteredClassifier"]
)
def test_a_saved_model_answers_in_an_environment_that_has_numpy_alone(tmp_path: Path, kind: str) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    installed = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (installed / name).exists():
            (site / name).symlink_to(installed / name)
    (site / "kinfolk").symlink_to(Path(kinfolk.__file__).parent)
    rng = np.random.default_rng(0)
    size, task = rng.normal(size=40), np.array(["ann", "bob"])[np.arange(40) % 2]
    y = np.where(size + 0.3 * rng.normal(size=40) > 0, "yes", "no")
    rows: dict = {"colour": rng.choice(["red", "blue"], 40), "size": size}
    asked = {"colour": ["red", "blue", "green"], "size": [1.0, 2.0, None]}
    if kind == "LICAClassifier":
        rows = {"size": size}
        model = kinfolk.LICAClassifier(n_sources=1, random_state=0)
        asked = {"size": [1.0, 2.0, 0.0]}
    elif kind == "AveragedNB":
        model = kinfolk.AveragedNB([kinfolk.NoSharingNB(), kinfolk.CompleteSharingNB()], n_folds=2, random_state=0)
    elif kind == "HierarchicalClassifier":
        model = kinfolk.HierarchicalClassifier()
    elif kind == "ClusteredClassifier":
        model = kinfolk.ClusteredClassifier(n_burn_in=2, n_draws=3, random_state=0)
    else:
        model = kinfolk.ClusteredNB(random_state=0)
    model.fit(rows, y, task=task)
    kinfolk.save(model, tmp_path / "m.kin")
    # -S leaves out what is installed, -I what the user has: what is left is Python, numpy and kinfolk.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ASKED, site, tmp_path / "m.kin", json.dumps(asked)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    command = f"import sys; sys.path.append({str(site)!r}); from kinfolk.cli import main; main()"
    program = subprocess.run([sys.executable, "-I", "-S", "-c", command], capture_output=True, text=True, check=False)
    assert (program.returncode, program.stderr.count("\n")) == (1, 1)
    assert "without its dependencies" in program.stderr
    answer, others = json.loads(done.stdout)
    assert others == []
    np.testing.assert_allclose(answer, model.predict_proba(asked, task=["ann", "bob", "new"]), rtol=1e-9)


# What Windows does not have.
ABROAD = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
ATTRIBUTES = {"AF_UNIX", "SIGALRM", "SIGHUP", "SIGKILL", "fork", "getuid", "killpg", "nice", "setitimer"}
IMPORT_ALL = """
import builtins, pkgutil, sys
from importlib import import_module
import kinfolk, kinfolk_assistant
imported = builtins.__import__
def as_on_windows(name, *given, **named):
    asking = ((given[0] if given else named.get("globals")) or {}).get("__name__", "")
    if asking.partition(".")[0] in ("kinfolk", "kinfolk_assistant") and name in ABROAD:
        raise ImportError(name)
    return imported(name, *given, **named)
builtins.__import__ = as_on_windows
n = 0
for package in (kinfolk, kinfolk_assistant):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith(("__main__", ".env")):
            import_module(module.name)
            n += 1
print(n)
"""


def test_every_module_can_be_imported_without_what_windows_lacks() -> None:
    for needed in ("fastapi", "sqlalchemy", "icalendar"):
        pytest.importorskip(needed)
    program = IMPORT_ALL.replace("ABROAD", repr(ABROAD))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 400


def test_what_windows_lacks_is_asked_for_before_it_is_used() -> None:
    bare = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES and isinstance(node.value, ast.Name)):
                continue
            module = node.value.id
            if module in ("os", "signal", "socket") and f'hasattr({module}, "{node.attr}")' not in text:
                bare.append(f"{path.relative_to(ROOT)}:{node.lineno}: {module}.{node.attr}")
    assert not bare
