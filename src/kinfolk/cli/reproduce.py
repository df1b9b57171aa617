"""``kinfolk reproduce``: one of the papers' studies, run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk.cli.commands import say
from kinfolk.cli.options import Quick, Seed
from kinfolk.cli.tables import text_table

EXAMPLE = """\b
Example:
  kinfolk reproduce --list
  kinfolk reproduce NAME --quick
  kinfolk reproduce --all --quick -o claims"""


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The study to run; see --list.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the studies and exit.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Run all studies that are not done yet, and write one page about all of them.")
    ] = False,
    quick: Quick = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for results; by default, kinfolk-reproduce/NAME."),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of random draws or splits, instead of the study's own number.", min=1),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Reproduce one of the papers' studies, or all of them.

    Shows the paper's findings beside ours, as tables and pictures. Without a name, lists the studies. A run that was
    stopped resumes when it is started again. With --all, claims.html in the output folder lists all findings side by
    side.
    """
    from kinfolk.experiments.registry import EXPERIMENTS, find

    if everything:
        if name is not None:
            raise ValueError(f"--all runs every study: leave {name} out, or leave --all out")
        from kinfolk.experiments.claims import run_all

        typer.echo(
            run_all(Path("kinfolk-reproduce") if output is None else output, quick, seed, repeats=repeats, say=say)
        )
        return
    if show_list or name is None:
        rows = [[known, each.title] for known, each in EXPERIMENTS.items()]
        typer.echo(text_table(["name", "study"], rows), nl=False)
        return
    study = find(name)
    folder = Path("kinfolk-reproduce") / name if output is None else output
    folder.mkdir(parents=True, exist_ok=True)
    study.run(folder, quick, seed, repeats=repeats)
