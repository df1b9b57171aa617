"""The program where it may write nothing but its results: installed by somebody else, no home, as in a container."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import kinfolk

NOBODY = 65534


def ignore(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    """A copy of the package that cannot be written to, not even by an administrator."""
    site = tmp_path / "site-packages"
    shutil.copytree(Path(kinfolk.__file__).parent, site / "kinfolk", ignore=ignore)
    for folder in [site, *(path for path in site.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
        folder.chmod(0o555)
    yield site
    for folder in [site, *(path for path in site.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)


def other_user() -> dict[str, object]:
    """Arguments for a process of another user than this one, where there may be one that can run this Python."""
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    another = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        able = subprocess.run([sys.executable, "-c", "import numpy"], **another, capture_output=True, check=False)
    except PermissionError:
        return {}
    return another if able.returncode == 0 else {}


def test_fit_inspect_and_predict_need_no_home_and_no_writable_package(
    tmp_path: Path, read_only: Path, meetings: pd.DataFrame
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    meetings.to_csv(work / "t.csv", index=False)
    (work / "file").touch()
    another = other_user()
    for place in (work, tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o777 if place == work else 0o755)
    nowhere = str(work / "file" / "home")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    environment |= {"PYTHONPATH": str(read_only), "HOME": nowhere, "MPLCONFIGDIR": nowhere, "TMPDIR": str(work)}

    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        start = "import kinfolk, sys; assert 'site-packages' in kinfolk.__file__; from kinfolk.cli import main; main()"
        command = [sys.executable, "-c", start, *arguments]
        return subprocess.run(
            command, cwd=work, env=environment, capture_output=True, text=True, check=False, **another
        )

    command = ("fit", "t.csv", "--task", "who is it", "--label", "answer", "--model", "no-sharing", "-o", "m.kin")
    done = program(*command)
    assert done.returncode == 0, done.stderr
    # Where compiled code went, or that it is not kept, is one sentence.
    assert len(done.stderr.splitlines()) <= 1
    for arguments in (("inspect", "m.kin"), ("inspect", "m.kin", "--task", "person 1"), ("predict", "m.kin", "t.csv")):
        done = program(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments
        assert "person 1" in done.stdout
    if another:
        assert (work / "m.kin").stat().st_uid == NOBODY
