"""What a user waits for before anything happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.measure import Comparison, best_of


def run() -> list[Comparison]:
    python = sys.executable
    command = Path(python).parent / "kinfolk"
    bare = best_of(lambda: subprocess.run([python, "-c", "pass"], check=True))
    loaded = best_of(lambda: subprocess.run([python, "-c", "import kinfolk"], check=True))
    helped = best_of(lambda: subprocess.run([command, "--help"], check=True, stdout=subprocess.DEVNULL))
    return [
        Comparison("import kinfolk, beyond starting Python", "", loaded - bare, None, "under 100 ms"),
        Comparison("kinfolk --help, Python's start included", "", helped, None, "under 300 ms"),
    ]
