"""``kinfolk sample``: rows drawn from a Bayes net."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinfolk.cli.options import AsJson, ResultFile
from kinfolk.cli.tables import NoEscape, check_table_target, listed, series, write_rows

if TYPE_CHECKING:
    from kinfolk.networks.model.network import Network

EXAMPLE = """\b
Example:
  kinfolk sample birds.kin -n 100 --task WA
  kinfolk sample alarm.bif.gz -n 5000 --seed 1 -o alarm.parquet"""

_START_OF_ZIP = b"PK"


def sample(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A model of Bayes nets that 'kinfolk fit' wrote, or a BIF file.")
    ],
    n_rows: Annotated[int, typer.Option("--rows", "-n", metavar="N", help="How many rows to draw.", min=1)] = 1,
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="The task whose network to draw from, if there are several.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draws: same seed, same rows.", min=0)] = 0,
    output: ResultFile = None,
    as_json: AsJson = False,
    no_escape: NoEscape = False,
) -> None:
    """Draw random rows from a Bayesian network."""
    import numpy as np
    import polars as pl

    check_table_target(output, as_json)
    network = _network(source, task)
    codes = network.sample(n_rows, np.random.default_rng(seed))
    columns = [
        series(name, [states[code] for code in codes[:, v].tolist()])
        for v, (name, states) in enumerate(zip(network.variables, network.states, strict=True))
    ]
    write_rows(pl.DataFrame(columns), {}, output, as_json, no_escape)


def _network(source: Path, task: str | None) -> Network:
    from kinfolk.cli.network_structures import load_networks
    from kinfolk.networks.answers.bif import read_bif

    with source.open("rb") as file:
        start = file.read(len(_START_OF_ZIP))
    if start != _START_OF_ZIP and source.suffix != ".kin":
        if task is not None:
            raise ValueError(f"--task was given, but {source} is not a saved model: a BIF file holds one network")
        return read_bif(source)
    networks = load_networks(source, task)
    if len(networks) > 1:
        raise ValueError(f"{source} knows several tasks: name one with --task, of {listed(list(networks))}")
    return next(iter(networks.values()))
