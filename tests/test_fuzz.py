"""The fuzzer begins for every reader, and says so where it cannot."""

import subprocess
import sys
from pathlib import Path

import pytest
from scripts.fuzz import targets

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("target", targets.TARGETS)
def test_every_seed_is_read_or_refused_as_its_name_says(target):
    for module in {"icalendar": "icalendar", "sound": "soundfile"}.get(target, "kinfolk").split():
        pytest.importorskip(module)
    assert targets.check_seeds(target)


def test_a_seed_that_is_refused_ends_the_run_with_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "bif").mkdir()
    (tmp_path / "bif" / "rain.bif").write_text("no BIF at all", "utf-8")
    monkeypatch.setattr(targets, "SEEDS", tmp_path)
    with pytest.raises(RuntimeError, match=r"^rain\.bif is refused$"):
        targets.check_seeds("bif")


def test_changed_seeds_are_tried_and_a_run_that_cannot_begin_says_why(tmp_path):
    def fuzz(*arguments, **given):
        command = [sys.executable, "-c", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, **given)

    begin = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom scripts.fuzz.chance import fenced\n"
    done = fuzz(begin + "import os; os.environ['PYTHONPATH'] = os.pathsep.join(sys.path); fenced('bif', 50)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bif: 50 executions in ")
    failed = fuzz(begin + "import os; os.environ['PYTHONPATH'] = os.pathsep.join(sys.path); fenced('nonsense', 50)")
    assert failed.returncode == 1
    assert "nonsense" in failed.stderr
