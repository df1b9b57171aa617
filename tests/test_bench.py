"""Benchmarks that were measured are kept, and measured again once the code has changed."""

import sys
from types import ModuleType

import bench.__main__ as program
import pytest
from bench.measure import Comparison

from kinfolk import checkpoints


@pytest.fixture
def measured(monkeypatch):
    names = []
    for name in ("quick_one", "slow_one"):
        module = ModuleType(f"bench.{name}")
        row = Comparison(f"job of {name}", "a peer", 0.1, None, "under 1 s", 0.3)
        module.run = lambda name=name, row=row: names.append(name) or [row]
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(checkpoints, "WORTH", 0.0)
    return names


def test_a_benchmark_that_was_measured_is_not_run_again(measured, tmp_path):
    first = program.measure(["quick_one"], str(tmp_path))
    both = program.measure(["quick_one", "slow_one"], str(tmp_path))
    assert measured == ["quick_one", "slow_one"]
    assert both[:1] == first
    assert [one.job for one in both] == ["job of quick_one", "job of slow_one"]
    program.measure(["quick_one"])
    assert measured == ["quick_one", "slow_one", "quick_one"]


def test_a_benchmark_of_other_code_is_run_again(measured, tmp_path, monkeypatch):
    program.measure(["quick_one"], str(tmp_path))
    monkeypatch.setattr(program, "sources", lambda: "other code")
    program.measure(["quick_one"], str(tmp_path))
    assert measured == ["quick_one"] * 2
