"""``kinfolk decide``: the action of least expected loss for every row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfolk.cli.commands import with_options
from kinfolk.cli.options import AskOptions
from kinfolk.cli.predict import as_table, ask
from kinfolk.cli.tables import CsvOptions, check_table_target, named, open_table, shown, write_rows

if TYPE_CHECKING:
    from kinfolk.decisions import Loss

EXAMPLE = """\b
A loss file has a row for each true label and a column for each action:
  label,accept,decline
  accept,0,4
  decline,1,0

\b
Example:
  kinfolk decide team.kin invitations.csv --ask-cost 0.1
  kinfolk decide team.kin invitations.csv --asymmetric 2 --positive accept
  kinfolk decide team.kin invitations.csv --loss losses.csv"""


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """What actions cost."""

    loss: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table of what each action costs under each true label.")
    ] = None
    asymmetric: Annotated[
        float | None,
        typer.Option(metavar="N", help="With two labels: a miss of the positive one costs 2^N, a false alarm 1."),
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="The positive label for --asymmetric; by default 1, if the labels are 0 and 1."
        ),
    ] = None
    ask_cost: Annotated[
        float | None, typer.Option(metavar="C", help="Allow the action 'ask', which costs C whatever the label.")
    ] = None


@with_options(asked=AskOptions, costs=LossOptions)
def decide(asked: AskOptions, costs: LossOptions) -> None:
    """Decide what to do about every row of a table.

    Chooses the action with the smallest expected loss. Unless a loss is given, the actions are the labels; a wrong one
    costs 1 and the right one nothing. The result is a table with the task, the decision, its expected loss, the
    expected loss of each action and the probability of each label, in the order of the rows.
    """
    from kinfolk.decisions import decide as choose
    from kinfolk.decisions import expected_loss

    if costs.loss is not None and costs.asymmetric is not None:
        raise ValueError("--loss and --asymmetric were both given: one of them is needed")
    if costs.positive is not None and costs.asymmetric is None:
        raise ValueError("--positive belongs to --asymmetric, which was not given")
    check_table_target(asked.output, asked.as_json)
    rows, classes, probabilities = ask(asked.load(), asked)
    price = _price(classes, costs, asked)
    if costs.ask_cost is not None:
        price = price.with_ask(costs.ask_cost)
    actions = list(price.actions or ())
    decisions = choose(probabilities, price, classes=classes).tolist()
    losses = expected_loss(probabilities, price, classes=classes)
    place = {action: i for i, action in enumerate(actions)}
    columns: dict[str, list[Any]] = {
        "decision": decisions,
        "expected_loss": [losses[row, place[action]].item() for row, action in enumerate(decisions)],
    }
    for action, values in zip(actions, losses.T.tolist(), strict=True):
        columns[f"expected_loss_{shown(action)}"] = values
    answers = as_table(rows, columns, classes, probabilities)
    write_rows(answers, {"labels": classes, "actions": actions}, asked.output, asked.as_json, asked.no_escape)


def _price(classes: list[Any], costs: LossOptions, csv: CsvOptions) -> Loss:
    """The loss that the options ask for."""
    from kinfolk.decisions import Loss

    if costs.asymmetric is not None:
        given = None if costs.positive is None else named(costs.positive, classes, "--positive")
        if given is None and costs.asymmetric and set(classes) not in ({0, 1}, {-1, 1}):
            raise ValueError("--asymmetric needs --positive, the label whose misses cost 2^N")
        return Loss.asymmetric(costs.asymmetric, classes, positive=given)
    return Loss.zero_one(classes) if costs.loss is None else _read_loss(costs.loss, classes, csv)


def _read_loss(file: Path, classes: list[Any], csv: CsvOptions) -> Loss:
    """A loss from a table whose first column names the true label and whose other columns are actions."""
    import polars as pl

    from kinfolk.decisions import Loss

    frame = open_table(file, csv).whole()
    label, *actions = frame.columns
    if not actions:
        raise ValueError(f"{file} has one column: beside the labels, it needs a column for each action")
    for action in actions:
        if not frame[action].dtype.is_numeric() or not frame[action].is_finite().fill_null(False).all():
            raise ValueError(f"column {action!r} of {file} must hold a number for every label: what the action costs")
    rows = frame[label].cast(pl.String).to_list()
    absent = [shown(name) for name in classes if shown(name) not in rows]
    if absent:
        raise ValueError(f"column {label!r} of {file} has no row for label {absent[0]!r}")
    known = [shown(name) for name in classes]
    true_labels = [named(row, classes, "label") if row in known else row for row in rows]
    return Loss(frame.select(actions).to_numpy(), true_labels, actions)
