"""``kinfolk bif``: the networks of a saved model as files for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kinfolk.cli.options import AsJson, ModelFile
from kinfolk.cli.tables import json_text, shown, text_table
from kinfolk.files import check_target

EXAMPLE = """\b
Example:
  kinfolk bif birds.kin -o networks
  kinfolk bif birds.kin -o networks --task WA"""

_LONGEST_NAME = 60
# Names that stand for devices on some systems, whatever follows the first dot.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{kind}{n}" for kind in ("com", "lpt") for n in range(10))}


def bif(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the files.")],
    task: Annotated[str | None, typer.Option(metavar="ID", help="Write this one task's network only.")] = None,
    quote: Annotated[
        bool,
        typer.Option("--quote", help="Put names that hold blanks or commas in quotes, which some programs misread."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the Bayesian networks of a model as BIF files.

    Says which file holds which task's network. If one of them cannot be written, none is.
    """
    from kinfolk.cli.network_structures import load_networks

    _check_folder(output)
    networks = load_networks(model, task)
    files = file_names([shown(name) for name in networks])
    _write(list(networks.values()), files, output, quote)
    if as_json:
        listed = [{"task": name, "file": file} for name, file in zip(networks, files, strict=True)]
        typer.echo(json_text({"folder": str(output), "files": listed}), nl=False)
    else:
        rows = [[shown(name), str(output / file)] for name, file in zip(networks, files, strict=True)]
        typer.echo(text_table(["task", "file"], rows), nl=False)


def file_names(tasks: Sequence[str]) -> list[str]:
    """A name for each task's file that every system takes, and that no other has, however it treats capitals.

    Examples
    --------
    >>> file_names(["ann", "Ann", "../x y", "nul", ""])
    ['ann.bif', 'Ann-2.bif', 'x_y.bif', 'nul_.bif', 'task.bif']
    """
    import re

    taken: set[str] = set()
    names = []
    for task in tasks:
        stem = re.sub(r"[^\w.-]+", "_", task).strip("._-")[:_LONGEST_NAME] or "task"
        if stem.partition(".")[0].lower() in _DEVICES:
            stem = f"{stem.replace('.', '_')}_"
        name, n = stem, 1
        while name.casefold() in taken:
            n += 1
            name = f"{stem}-{n}"
        taken.add(name.casefold())
        names.append(f"{name}.bif")
    return names


def _check_folder(folder: Path) -> None:

    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} cannot be written to: it is not a folder")
    check_target(folder / "task.bif" if folder.is_dir() else folder)


def _write(networks: Sequence[Any], files: Sequence[str], folder: Path, quote: bool) -> None:
    """Write files beside the folder, and move them into it once all are there."""
    import os
    from tempfile import TemporaryDirectory

    from kinfolk.networks.answers.bif import write_bif

    with TemporaryDirectory(prefix=".kinfolk-", dir=folder.resolve().parent) as unfinished:
        for network, file in zip(networks, files, strict=True):
            write_bif(network, Path(unfinished) / file, quote=quote)
        folder.mkdir(exist_ok=True)
        for file in files:
            os.replace(Path(unfinished) / file, folder / file)
