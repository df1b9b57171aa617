"""``kinfolk predict``: labels for the rows of a table, or how probable the rows are."""

from __future__ import annotations

from kinfolk.cli.options import AsJson, ModelFile, NewTable, ResultFile, TaskColumn

EXAMPLE = """\b
Example:
  kinfolk predict team.kin invitations.csv
  kinfolk predict team.kin invitations.parquet -o answers.parquet
  cat invitations.csv | kinfolk predict team.kin - --json"""


def predict(
    model: ModelFile, table: NewTable, task: TaskColumn = None, output: ResultFile = None, as_json: AsJson = False
) -> None:
    """Predict the label of every row of a table; with Bayes nets, tell how probable it is.

    Gives a table with the task, the most probable label, and the probability of each label, in the order of the rows;
    with Bayes nets, with the task and the natural log of the row's probability. Columns that the model does not know
    are left aside; its own must stand in the order of the table that it was fitted to. A task never seen before is
    predicted as a new one, from what is known of all others.
    """
    import kinfolk
    from kinfolk.cli.answers import as_table, ask, has_labels, rate
    from kinfolk.cli.results import check_table_target, write_rows

    check_table_target(output, as_json)
    predictor = kinfolk.load(model)
    if hasattr(predictor, "networks_") and not has_labels(predictor):
        write_rows(rate(predictor, table, task), {}, output, as_json)
        return
    answers = ask(predictor, model, table, task)
    best = [answers.classes[place] for place in answers.probabilities.argmax(axis=1)]
    write_rows(as_table(answers, {"predicted": best}), {"labels": answers.classes}, output, as_json)
