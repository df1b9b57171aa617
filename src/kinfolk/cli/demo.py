"""``kinfolk demo``: what kinfolk does, on a made-up team."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk.cli.options import Quick, Seed

EXAMPLE = """\b
Example:
  kinfolk demo
  kinfolk demo --quick -o /tmp/demo"""


def demo(
    quick: Quick = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for tables and pictures.")
    ] = Path("kinfolk-demo"),
    seed: Seed = 0,
) -> None:
    """Show what kinfolk does, on a made-up team of 21 people.

    The team answers invitations to meetings. The demo fits the models, prints how well each predicts from a few
    examples per person and which people are found to be kin, and writes a picture.
    """
    from kinfolk.experiments.clustered_naive_bayes.team import run_demo

    output.mkdir(parents=True, exist_ok=True)
    run_demo(output, quick, seed)
