"""``kinfolk evaluate``: models compared on rows or tasks held out; which to take, and whether sharing helps."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfolk.cli.commands import say, with_options
from kinfolk.cli.options import AsJson, Seed
from kinfolk.cli.tables import TableOptions, json_text, open_training, text_table

if TYPE_CHECKING:
    from kinfolk.transfer.comparison import Comparison

EXAMPLE = """\b
Models of labels: transfer, clustered, prototype, averaged and lica share between tasks; alone,
pooled and task-feature are naive Bayes without sharing, logistic-alone, logistic-pooled and
logistic-task-feature are logistic regression without. Models of numbers: transfer, lica,
ridge-alone, ridge-pooled and ridge-task-feature.

\b
Example:
  kinfolk evaluate meetings.csv --task person --label answer
  kinfolk evaluate meetings.csv --task person --label answer --hold-out tasks
  kinfolk evaluate meetings.csv --task person --label answer \\
      --models clustered --models alone --models pooled --folds 10"""


class Target(StrEnum):
    """What the label column holds."""

    auto = "auto"
    label = "label"
    number = "number"


class HoldOut(StrEnum):
    """What models are tested on."""

    rows = "rows"
    tasks = "tasks"


@dataclass(frozen=True, kw_only=True)
class LabelledTable(TableOptions):
    """A table whose label is predicted, by every model."""

    label: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column to be predicted (required); empty where it is unknown."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """What to compare, and how."""

    models: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A model to compare, see below; repeatable. Default: all.")
    ] = None
    folds: Annotated[int, typer.Option(metavar="N", help="Parts to hold out in turn.", min=2)] = 5
    hold_out: Annotated[
        HoldOut,
        typer.Option(help="Hold out rows of every task, or whole tasks, to see how well new tasks are predicted."),
    ] = HoldOut.rows
    target: Annotated[
        Target,
        typer.Option(help="Whether to predict labels or numbers; auto: numbers, unless all values are whole numbers."),
    ] = Target.auto
    seed: Seed = 0
    jobs: Annotated[int, typer.Option(metavar="N", help="Fits to run in parallel; -1 for all cores.")] = 1
    as_json: AsJson = False


@with_options(table=LabelledTable, how=EvaluateOptions)
def evaluate(table: LabelledTable, how: EvaluateOptions) -> None:
    """Compare models: which to take, and whether sharing helps.

    Rows of every task, or whole tasks, are held out in turn and predicted by models that learnt from the others. Some
    of the models share between tasks, others do not: every task alone, all rows pooled, or all rows pooled with the
    task as a feature. Errors (±) are standard errors over the parts, widened because these share training rows.
    """
    import kinfolk

    if table.label is None:
        raise ValueError("--label is needed, the column to be predicted")
    source, roles = open_training(table, table.label)
    frame = source.whole()
    found = kinfolk.evaluate(
        frame.select(roles.features),
        frame[table.label],
        task=frame[table.task],
        models=how.models,
        n_folds=how.folds,
        hold_out=how.hold_out.value,
        target=how.target.value,
        random_state=how.seed,
        n_jobs=how.jobs,
        verbose=sys.stderr.isatty(),
    )
    for note in found.notes:
        say(note)
    typer.echo(json_text(_document(found)) if how.as_json else _text(found), nl=False)


def _document(found: Comparison) -> dict[str, Any]:
    models = [
        {name.replace(" ", "_"): value for name, value in row.items()} | {"folds": found.losses[row["model"]].tolist()}
        for row in found.rows()
    ]
    about = {"best": found.best, "sharing_helps": found.sharing_helps, "verdict": found.verdict}
    return {**about, "measure": found.measure, "models": models, "notes": list(found.notes)}


def _text(found: Comparison) -> str:
    rows = []
    for row in found.rows():
        behind = "" if row["model"] == found.best else f"{row['behind']:.4f} ± {row['error of behind']:.4f}"
        loss = f"{row[found.measure]:.4f} ± {row['error']:.4f}"
        rows.append([row["model"], row["way"], loss, behind, row[found.quality], f"{row['seconds']:.1f}"])
    header = ["model", "tasks", found.measure, "behind the best", found.quality, "seconds"]
    return f"{text_table(header, rows)}\n{found.verdict}\n"
