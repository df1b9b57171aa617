"""``kinfolk report``: one HTML page about a saved model, or about two side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfolk.cli.commands import with_options
from kinfolk.cli.options import AsJson, AskOptions, Seed
from kinfolk.cli.tables import CsvOptions, json_text, open_table
from kinfolk.files import check_target

if TYPE_CHECKING:
    import polars as pl

EXAMPLE = """\b
Example:
  kinfolk report team.kin --open
  kinfolk report team.kin --data meetings.csv --label answer -o team.html
  kinfolk report before.kin after.kin --data meetings.csv --label answer"""


_FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class ReportOptions(CsvOptions):
    """Models, rows to hold them against, and where the page goes."""

    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...", help="A model that 'kinfolk fit' wrote; if there are two, they are compared."
        ),
    ]
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Rows on which models are compared, those of the fit or others: .csv, .csv.gz, .tsv, .parquet or -.",
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column of TABLE that the model predicts, if it has labels."),
    ] = None
    task: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column of TABLE with the task of each row; by default, the one used at fit."),
    ] = None
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the page.")] = Path(
        "report.html"
    )
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False
    as_json: AsJson = False
    examples: Annotated[
        bool, typer.Option("--examples/--no-examples", help="Whether rows of TABLE may be shown on the page.")
    ] = True
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="A check to leave out, such as KF003; repeatable.")
    ] = None
    folds: Annotated[
        int, typer.Option(metavar="N", help="Number of parts of every task's rows, which are held out in turn.", min=2)
    ] = _FOLDS
    seed: Seed = 0


@with_options(how=ReportOptions)
def report(how: ReportOptions) -> None:
    """Write an HTML page about a model, or about two.

    The page says whether sharing helped, which tasks are kin, and what to look at next. It is one file that loads
    nothing from elsewhere. A saved model holds no rows: with --data, copies of it learn from parts of TABLE and predict
    the rest, and are compared with models that do not share. With --json, the contents are printed instead.
    """
    import kinfolk
    from kinfolk import reporting

    if not how.as_json:
        check_target(how.output)
    if len(set(how.models)) < len(how.models):
        raise ValueError("the same model was named twice: there is nothing to compare")
    for option, given in (("--label", how.label), ("--task", how.task), ("--folds", how.folds != _FOLDS)):
        if given and how.data is None:
            raise ValueError(f"{option} belongs to --data, which was not given")
    estimators = {path: kinfolk.load(path, estimator=True) for path in how.models}
    first = next(iter(estimators.values()))
    without_labels = hasattr(first, "n_states_") or (hasattr(first, "networks_") and not hasattr(first, "classes_"))
    if how.label is not None and hasattr(first, "n_states_"):
        raise ValueError(f"--label was given, but {how.models[0]} holds hidden Markov models, which predict no label")
    if how.data is not None and how.label is None and not without_labels:
        raise ValueError("--label is needed with --data, the column that the model predicts")
    rows = _rows(how, first)
    shared: dict[str, Any] = {**rows, "ignore": how.ignore or (), "n_folds": how.folds, "random_state": how.seed}
    if len(how.models) > 1:
        named = {_called(path, how.models): model for path, model in estimators.items()}
        made = reporting.compare(named, again=_again(how), **shared)
    else:
        made = reporting.report(first, examples=how.examples, again=_again(how), **shared)
    if how.as_json:
        typer.echo(json_text(made.document), nl=False)
        return
    made.save(how.output)
    typer.echo(f"{how.output}")
    if how.open_page:
        typer.launch(how.output.resolve().as_uri())


def _rows(how: ReportOptions, model: Any) -> dict[str, Any]:
    """The table and which of its columns is what, with text where the model was fitted to text."""
    if how.data is None:
        return {}
    if hasattr(model, "n_states_"):
        from kinfolk.cli.predict_sequences import read_sequences

        csv = {field.name: getattr(how, field.name) for field in fields(CsvOptions)}
        asked = AskOptions(model=how.models[0], table=how.data, task=how.task, **csv)
        return {"data": read_sequences(model._predictor(), asked).table}
    from kinfolk.reporting.findings import findings_of

    column = how.task or getattr(model, "task_column", None)
    found = findings_of(model)
    features = () if found.schema is None else found.schema.columns
    text = {feature.name for feature in features if _is_text(feature.categories)}
    text |= {column} if isinstance(column, str) and _is_text(found.tasks) else set()
    text |= {str(how.label)} if _is_text(found.labels) else set()
    frame: pl.DataFrame = open_table(how.data, how, text).whole()
    for name, option in ((how.label, "--label"), (how.task, "--task")):
        if name is not None and name not in frame.columns:
            raise ValueError(f"{option} {name!r}: {how.data} has no such column; it has {', '.join(frame.columns)}")
    return {"data": frame, "y": how.label, "task": how.task}


def _is_text(values: Sequence[Any] | None) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values or ())


def _again(how: ReportOptions) -> dict[str, str]:
    """The command, and hashes of the files that it reads."""
    again = {"command": _command(how)}
    several = len(how.models) > 1
    for path in how.models:
        again[f"SHA-256 of {_called(path, how.models) if several else 'the model'}"] = _hash(path)
    if how.data is not None and str(how.data) != "-":
        again["SHA-256 of the table"] = _hash(how.data)
    return again


def _called(path: Path, paths: list[Path]) -> str:
    """A model by its file's name, with its folder where two have the same."""
    return path.name if [other.name for other in paths].count(path.name) == 1 else str(path)


def _command(how: ReportOptions) -> str:
    """The command that makes the page again, files by their names."""
    import shlex

    parts = ["kinfolk", "report", *[path.name for path in how.models]]
    if how.data is not None:
        parts += ["--data", how.data.name, *([] if how.label is None else ["--label", how.label])]
    for option, value, default in (("--task", how.task, None), ("--folds", how.folds, _FOLDS), ("--seed", how.seed, 0)):
        parts += [] if value == default else [option, str(value)]
    for code in how.ignore or ():
        parts += ["--ignore", code]
    return shlex.join([*parts, *([] if how.examples else ["--no-examples"]), "-o", how.output.name])


def _hash(path: Path) -> str:
    from hashlib import file_digest

    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
