"""All studies one after another, and one page that sets what every paper found beside what came out here.

A study that is done leaves a file ``NAME.json``; it is not run again for the same seed, length and version of kinfolk:
a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from kinfolk.experiments.publishing import write_whole
from kinfolk.experiments.registry import EXPERIMENTS, Experiment
from kinfolk.reporting.layout import Section, frame, sortable
from kinfolk.reporting.markup import Html, element, joined

PAGE = "claims.html"


def run_all(
    output: Path,
    quick: bool = False,
    seed: int = 0,
    *,
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
        record = _done(output / f"{study.name}.json", setting)
        if record is None:
            say(f"{number} of {len(chosen)}: {study.name}")
            record = _run(study, output, quick, seed) | {"with": setting}
            write_whole(output / f"{study.name}.json", json.dumps(record, indent=2).encode())
        records.append(record)
    write_whole(output / PAGE, claims_page(records).encode())
    return output / PAGE


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


def _run(study: Experiment, output: Path, quick: bool, seed: int) -> dict[str, Any]:
    about = study.about
    record: dict[str, Any] = {
        "name": study.name,
        "title": study.title,
        "paper": about.paper,
        "stands_in": about.stands_in,
        "found": list(about.found),
        "not_run": None,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    start = perf_counter()
    try:
        outcome = study.run(output, quick, seed, shown=False)
    except (OSError, ValueError) as error:  # data that is not there, or an optional package
        return record | {"not_run": " ".join(str(error).split()), "ours": [], "run": ""}
    return record | {
        "ours": list(outcome.ours),
        "run": outcome.setting,
        "seconds": round(perf_counter() - start, 1),
    }


def claims_page(records: Iterable[Mapping[str, Any]]) -> str:
    """What papers found beside what came out, as one page."""
    all_of_them = list(records)
    parts = [Section(record["name"], record["name"], _body(record)) for record in all_of_them]
    done = [record for record in all_of_them if record["not_run"] is None]
    n_claims = sum(len(record["found"]) for record in done)
    said = f"{len(done)} of {len(all_of_them)} studies were run, with {n_claims} findings of the papers beside ours."
    first = [element("p", said)]
    rows = [
        [
            element("a", record["name"], href=f"#{record['name']}"),
            record["title"],
            "run" if record["not_run"] is None else f"not run: {record['not_run']}",
        ]
        for record in all_of_them
    ]
    first.append(sortable("studies", ["name", "study", "state"], rows))
    return frame("The papers' findings, and ours", "Every study of kinfolk reproduce", parts, joined(*first))


def _body(record: Mapping[str, Any]) -> Html:
    command = f"kinfolk reproduce {record['name']}" + (" --quick" if record["with"]["quick"] else "")
    command += f" --seed {record['with']['seed']}" if record["with"]["seed"] else ""
    parts: list[Any] = [
        element("p", record["title"]),
        element("p", f"Paper: {record['paper']} Data: {record['stands_in']}", class_="small"),
    ]
    if record["not_run"] is not None:
        parts += [element("p", element("b", "Not run: "), record["not_run"])]
        parts += [element("ul", *[element("li", f"The paper found: {found}") for found in record["found"]])]
    else:
        rows = [list(pair) for pair in zip(record["found"], record["ours"], strict=True)]
        parts.append(sortable(f"{record['name']}-table", ["The paper found", "Here"], rows, search=False))
        took = f"{record['run']} {record['seconds']:g} s on {record['machine']}; kinfolk {record['with']['kinfolk']}."
        parts.append(element("p", took, class_="small"))
    parts.append(element("p", "Again: ", element("code", command)))
    return joined(*parts)
