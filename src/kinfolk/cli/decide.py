"""``kinfolk decide``: the action of least expected loss for every row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfolk.cli.options import AsJson, ModelFile, NewTable, ResultFile, TaskColumn
from kinfolk.cli.predict import as_table, ask
from kinfolk.cli.tables import check_table_target, named, read_table, shown, write_rows

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


def decide(
    model: ModelFile,
    table: NewTable,
    loss: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table of what each action costs under each true label.")
    ] = None,
    asymmetric: Annotated[
        float | None,
        typer.Option(metavar="N", help="With two labels: a miss of the positive one costs 2^N, a false alarm 1."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The positive label for --asymmetric; 1 of 0 and 1.")
    ] = None,
    ask_cost: Annotated[
        float | None, typer.Option(metavar="C", help="Allow the action 'ask', which costs C whatever the label.")
    ] = None,
    task: TaskColumn = None,
    output: ResultFile = None,
    as_json: AsJson = False,
) -> None:
    """Decide what to do about every row of a table.

    Chooses the action of the smallest expected loss. Unless a loss is given, the actions are the labels, a wrong one
    costs 1 and the right one nothing. Gives a table with the task, the decision, its expected loss, the expected loss
    of each action and the probability of each label, in the order of the rows.
    """
    import kinfolk
    from kinfolk.decisions import decide as choose
    from kinfolk.decisions import expected_loss

    if loss is not None and asymmetric is not None:
        raise ValueError("--loss and --asymmetric were both given: one of them is needed")
    if positive is not None and asymmetric is None:
        raise ValueError("--positive belongs to --asymmetric, which was not given")
    check_table_target(output, as_json)
    answers = ask(kinfolk.load(model), model, table, task)
    price = _price(answers.classes, loss, asymmetric, positive)
    if ask_cost is not None:
        price = price.with_ask(ask_cost)
    actions = list(price.actions or ())
    decisions = choose(answers.probabilities, price, classes=answers.classes).tolist()
    losses = expected_loss(answers.probabilities, price, classes=answers.classes)
    place = {action: i for i, action in enumerate(actions)}
    columns: dict[str, list[Any]] = {
        "decision": decisions,
        "expected_loss": [losses[row, place[action]].item() for row, action in enumerate(decisions)],
    }
    for action, values in zip(actions, losses.T.tolist(), strict=True):
        columns[f"expected_loss_{shown(action)}"] = values
    write_rows(as_table(answers, columns), {"labels": answers.classes, "actions": actions}, output, as_json)


def _price(classes: list[Any], file: Path | None, asymmetric: float | None, positive: str | None) -> Loss:
    """The loss that the options ask for."""
    from kinfolk.decisions import Loss

    if asymmetric is not None:
        given = None if positive is None else named(positive, classes, "--positive")
        if given is None and asymmetric and set(classes) not in ({0, 1}, {-1, 1}):
            raise ValueError("--asymmetric needs --positive, the label whose misses cost 2^N")
        return Loss.asymmetric(asymmetric, classes, positive=given)
    return Loss.zero_one(classes) if file is None else _read_loss(file, classes)


def _read_loss(file: Path, classes: list[Any]) -> Loss:
    """A loss from a table whose first column names the true label and whose other columns are actions."""
    import polars as pl

    from kinfolk.decisions import Loss

    frame = read_table(file)
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
