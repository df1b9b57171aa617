"""Names that are there once kinfolk is imported."""

import subprocess
import sys


def test_plots_and_datasets_are_there_once_kinfolk_is_imported():
    code = "import kinfolk; print(callable(kinfolk.plots.hinton), callable(kinfolk.datasets.make_meetings))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
