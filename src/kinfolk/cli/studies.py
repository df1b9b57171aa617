"""``kinfolk demo`` and ``kinfolk reproduce``: the doors to the experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk.cli.options import Quick

DEMO_EXAMPLE = """\b
Example:
  kinfolk demo
  kinfolk demo --quick -o /tmp/demo"""

REPRODUCE_EXAMPLE = """\b
Example:
  kinfolk reproduce --list
  kinfolk reproduce NAME --quick"""

Seed = Annotated[int, typer.Option(metavar="N", help="Seed of all that is random: same seed, same numbers.", min=0)]


def demo(
    quick: Quick = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for tables and pictures.")
    ] = Path("kinfolk-demo"),
    seed: Seed = 0,
) -> None:
    """Show what kinfolk does, on a made-up team of 21 people.

    They answer invitations. Fits the sharing models to them, prints how well each predicts from a few examples per
    person and which people it found to be kin, and writes a picture.
    """
    from kinfolk.experiments.clustered_naive_bayes.team import run_demo

    output.mkdir(parents=True, exist_ok=True)
    run_demo(output, quick, seed)


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The study to run; see --list.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the studies and exit.")] = False,
    quick: Quick = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for results; by default, kinfolk-reproduce/NAME."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Run one of the papers' studies again.

    Gives the paper's finding beside ours, as tables and pictures. Without a name, lists the studies.
    """
    from kinfolk.experiments.registry import EXPERIMENTS

    if show_list or name is None:
        from kinfolk.cli.results import text_table

        rows = [[known, study.title] for known, study in EXPERIMENTS.items()]
        typer.echo(text_table(["name", "study"], rows), nl=False)
        return
    if name not in EXPERIMENTS:
        from kinfolk.cli.tables import listed

        raise ValueError(f"there is no study {name!r}: the known ones are {listed(list(EXPERIMENTS))}")
    folder = Path("kinfolk-reproduce") / name if output is None else output
    folder.mkdir(parents=True, exist_ok=True)
    EXPERIMENTS[name].run(folder, quick, seed)
