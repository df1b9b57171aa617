"""All studies one after another, and one page that sets what every paper found beside what came out here.

A study that is done leaves a file ``NAME.json`` beside its numbers and its picture; it is not run again for the same
seed, length and version of kinfolk: a run that was stopped goes on where it was. ``claims.toml`` lists every figure,
table and claim of the papers; `claims_page` has all of them.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from kinfolk.experiments.claims_page import claims_page
from kinfolk.experiments.publishing import write_whole
from kinfolk.experiments.registry import EXPERIMENTS, Experiment

PAGE = "claims.html"


def run_all(
    output: Path,
    quick: bool = False,
    seed: int = 0,
    *,
    repeats: int | None = None,
    say: Callable[[str], None] = print,
    studies: Iterable[Experiment] | None = None,
) -> Path:
    """Run every study that is not done yet, and write the page of all.

    Parameters
    ----------
    output : Path
        Folder for the files of every study and for ``claims.html``.
    quick : bool
        Whether to do with fewer repetitions.
    seed : int
        Decides everything that chance decides.
    repeats : int, optional
        How many draws, splits or repeats are made, in studies that repeat; by default those of each study.
    say : callable
        Told of every study as it begins.
    studies : iterable of Experiment, optional
        Which to run; all by default.

    Returns
    -------
    Path
        The page.
    """
    output.mkdir(parents=True, exist_ok=True)
    chosen = list(EXPERIMENTS.values() if studies is None else studies)
    records = []
    for number, study in enumerate(chosen, start=1):
        setting = _setting(quick, seed)
        if repeats is not None and study.repeated is not None:
            setting["repeats"] = repeats
        record = _done(output / f"{study.name}.json", setting)
        if record is None:
            say(f"{number} of {len(chosen)}: {study.name}")
            record = _run(study, output, quick, seed, setting.get("repeats")) | {"with": setting}
            write_whole(output / f"{study.name}.json", json.dumps(record, indent=2).encode())
        records.append(record)
    write_whole(output / PAGE, claims_page(records).encode())
    return output / PAGE


def page_of(folder: Path) -> str:
    """The page of what earlier runs left in a folder; nothing is run, and studies that left nothing are named."""
    records = []
    for study in EXPERIMENTS.values():
        path = folder / f"{study.name}.json"
        if path.is_file():
            records.append(json.loads(path.read_text(encoding="utf-8")))
        else:
            missing = {"not_run": "no results of it are kept here", "with": _setting(False, 0)}
            records.append(_described(study) | missing)
    return claims_page(records)


def _setting(quick: bool, seed: int) -> dict[str, Any]:
    from kinfolk import __version__

    return {"kinfolk": __version__, "quick": quick, "seed": seed}


def _done(path: Path, setting: Mapping[str, Any]) -> dict[str, Any] | None:
    """What an earlier run left of a study, if it was the same run; what could not be run then is tried again."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if record.get("with") == setting and record.get("not_run") is None else None


def _described(study: Experiment) -> dict[str, Any]:
    about = study.about
    return {
        "name": study.name,
        "title": study.title,
        "paper": about.paper,
        "stands_in": about.stands_in,
        "found": list(about.found),
    }


def _run(study: Experiment, output: Path, quick: bool, seed: int, repeats: int | None) -> dict[str, Any]:
    record: dict[str, Any] = _described(study) | {
        "not_run": None,
        "commit": _git_commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    start = perf_counter()
    try:
        outcome = study.run(output, quick, seed, repeats=repeats, shown=False)
    except (OSError, ValueError) as error:  # data that is not there, or an optional package
        return record | {"not_run": " ".join(str(error).split()), "ours": [], "held": [], "run": ""}
    return record | {
        "ours": list(outcome.ours),
        "held": list(outcome.held),
        "run": outcome.setting,
        "seconds": round(perf_counter() - start, 1),
    }


def _git_commit() -> str | None:
    """The commit of the checkout that the package stands in; a star says that files were changed since."""
    home = Path(__file__).parent
    git = ["git", "-C", str(home)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain", "--", "."], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("*" if changed.stdout.strip() else "")


def _processor() -> str:
    """The kind of processor, as the system calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
