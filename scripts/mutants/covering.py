"""A pytest plugin: which functions of the package each test enters, and how long it takes.

``pytest -p scripts.mutants.covering --covering FILE`` adds a line of JSON for every test that passed to FILE: its name,
the seconds of processor time it took, and the functions (``folder/file.py:name``) that it entered. Compiled kernels
cannot be seen from outside; ``mutants.tests`` knows who calls them.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
import time
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src" / "kinfolk") + "/"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to write."""
    parser.addoption("--covering", default=None, help="File for the functions that each test enters.")


def pytest_configure(config: pytest.Config) -> None:
    """Watch only when asked to."""
    if config.getoption("--covering"):
        config.pluginmanager.register(_Watch(Path(config.getoption("--covering"))))


class _Watch:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._entered: set[object] = set()
        self._shared: dict[str, set[object]] = {}

    def _see(self, frame: object, event: str, _: object) -> None:
        if event == "call":
            self._entered.add(frame.f_code)  # type: ignore[attr-defined]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]):
        """What a fixture of several tests enters counts for all of them."""
        outer, self._entered = self._entered, set()
        yield
        if fixturedef.scope != "function":
            self._shared.setdefault(fixturedef.baseid + fixturedef.argname, set()).update(self._entered)
        self._entered |= outer

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        """Watch one test, its fixtures included."""
        self._entered = set()
        began = time.process_time()
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        failed = item.session.testsfailed
        yield
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        if item.session.testsfailed > failed:
            return
        seconds = time.process_time() - began
        names = set(getattr(item, "fixturenames", ()))
        codes = self._entered.copy()  # threads that are still at work go on adding to it
        for key, shared in self._shared.items():
            if any(key.endswith(name) for name in names):
                codes |= shared
        entered = sorted(
            {
                f"{code.co_filename.removeprefix(SOURCE)}:{code.co_qualname}"
                for code in codes
                # Bodies of modules and classes are run once, by whoever imports them first.
                if code.co_filename.startswith(SOURCE) and code.co_flags & inspect.CO_OPTIMIZED
            }
        )
        with self._path.open("a") as file:
            file.write(json.dumps({"test": item.nodeid, "seconds": round(seconds, 3), "entered": entered}) + "\n")
