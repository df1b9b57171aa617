"""The program ``kinfolk``: all its commands, put together.

Command functions import what they work with when they run, so that ``kinfolk --help`` answers at once. Help is plain
text: formatted by rich it would take more than twice as long to appear.
"""

from __future__ import annotations

from typing import Annotated

import typer

import kinfolk
from kinfolk.cli import (
    bif,
    data,
    decide,
    demo,
    evaluate,
    fit,
    inspection,
    music,
    predict,
    report,
    reproduce,
    sample,
    warm_up,
)
from kinfolk.cli.commands import Commands, PanelledCommand

app = typer.Typer(
    name="kinfolk",
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Example:
  kinfolk fit meetings.csv --task person --label answer -o team.kin
  kinfolk inspect team.kin
  kinfolk predict team.kin invitations.csv

Set KINFOLK_TRACEBACK=1 to see where in the code an error arose.""",
)
for name, function, example in (
    ("fit", fit.fit, fit.EXAMPLE),
    ("evaluate", evaluate.evaluate, evaluate.EXAMPLE),
    ("predict", predict.predict, predict.EXAMPLE),
    ("decide", decide.decide, decide.EXAMPLE),
    ("inspect", inspection.inspect, inspection.EXAMPLE),
    ("report", report.report, report.EXAMPLE),
    ("bif", bif.bif, bif.EXAMPLE),
    ("sample", sample.sample, sample.EXAMPLE),
    ("music", music.music, music.EXAMPLE),
    ("demo", demo.demo, demo.EXAMPLE),
    ("reproduce", reproduce.reproduce, reproduce.EXAMPLE),
    ("data", data.data, data.EXAMPLE),
    ("warm-up", warm_up.command, warm_up.EXAMPLE),
):
    app.command(name, cls=PanelledCommand, epilog=example)(function)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Learn from many small, related data sets at once.

    A table has rows of many tasks: people, sites, clips. kinfolk finds out which tasks are kin, lets just those learn
    from each other, and predicts and decides for each.
    """
    if version:
        typer.echo(f"kinfolk {kinfolk.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
