"""Arguments and options that several commands share, and commands whose options are dataclasses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that 'kinfolk fit' wrote.")]
NewTable = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="The rows: .csv, .csv.gz, .tsv or .parquet, or - for CSV on standard input."),
]
TaskColumn = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="COL", help="Column that tells which task a row belongs to; by default, the one used at fit."
    ),
]
ResultFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to a .csv, .tsv, .parquet or .json file, not to standard output."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs to read.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of all that is random: same seed, same numbers.", min=0)]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller run, to see that all works.")]


def was_given(context: typer.Context, option: str) -> bool:
    """Tell whether an option was written out, be it with its default."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def with_options(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take frozen dataclasses, each field of which is an argument or an option on the command line.

    Parameters
    ----------
    **groups : dataclass types
        By the names under which the command takes them. ``PANEL``, where a type has it, heads its options in the help.

    Returns
    -------
    callable
        A decorator. The decorated function has the signature that typer reads.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(
                **{
                    name: group(**{field.name: given[field.name] for field in fields(group)})
                    for name, group in groups.items()
                }
            )

        parameters = []
        for group in groups.values():
            kinds = get_type_hints(group, include_extras=True)
            for field in fields(group):
                default = Parameter.empty if field.default is MISSING else field.default
                kind = kinds[field.name]
                kind.__metadata__[0].rich_help_panel = getattr(group, "PANEL", None)
                parameters.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called

    return decorate
