"""Averages of all kinds of models for ``kinfolk fit``: how they learn from a table, and what is told of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kinfolk.cli.tables import TableOptions, fact_lines, open_training, shown, text_table

if TYPE_CHECKING:
    from kinfolk.cli.fit import Learnt, RunOptions
    from kinfolk.cli.fit_naive_bayes import NaiveBayesOptions

# Estimators that are averages of all kinds of models.
TRANSFER = ("TransferClassifier", "TransferRegressor")
_OF_NUMBERS = "TransferRegressor"


def learn(name: str, table: TableOptions, run: RunOptions, options: NaiveBayesOptions) -> Learnt:
    """Fit the estimator of this name, and tell what it found."""
    import kinfolk
    from kinfolk.cli.fit import Learnt
    from kinfolk.cli.fit_naive_bayes import mark_of, whole_labels

    if table.label is None:
        raise ValueError("--label is needed, the column to be predicted: only --model bayesnets and ihmm go without")
    source, roles = open_training(table, table.label, options.weight)
    frame = source.whole()
    target = frame[table.label] if name == _OF_NUMBERS else whole_labels(frame[table.label])
    if name == _OF_NUMBERS and not target.dtype.is_numeric():
        raise ValueError(f"column {table.label!r} holds {target.dtype}, not numbers: --model transfer predicts labels")
    told = {} if name == _OF_NUMBERS else {"unlabelled": mark_of(options.unlabelled, table.label, target.dtype)}
    estimator = getattr(kinfolk, name)(
        task_column=table.task,
        random_state=run.seed,
        n_jobs=run.jobs,
        verbose=sys.stderr.isatty(),
        checkpoint=run.checkpoint,
        **told,
    )
    weights = None if roles.weight is None else frame[roles.weight]
    estimator.fit(frame.select(roles.learnt), target, sample_weight=weights)
    about = {"rows": frame.height, **describe(estimator)}
    return Learnt(estimator, about, [("rows", f"{frame.height:,}"), *facts_of(about)])


def describe(estimator: Any) -> dict[str, Any]:
    """An average, its tasks and how much its members weigh, ready for JSON."""
    average = estimator._average
    labels = getattr(estimator, "classes_", None)
    rows = zip(estimator.tasks_.tolist(), average.n_rows.tolist(), strict=False)
    return {
        "model": type(estimator).__name__,
        "labels": None if labels is None else labels.tolist(),
        "features": estimator._predictor().feature_names_in_,
        "weights": estimator.weights_,
        "weights_by_rows": [
            {"rows": size, **dict(zip(estimator.members_, weights, strict=True))}
            for size, weights in zip(average.weights.sizes.tolist(), average.weights.weights.tolist(), strict=True)
        ],
        "tasks": [{"task": task, "labelled_rows": n} for task, n in rows],
    }


def facts_of(about: dict[str, Any]) -> list[tuple[str, str]]:
    """What there is to be read of an average, in lines."""
    heaviest = sorted(about["weights"].items(), key=lambda item: -item[1])
    return [
        ("model", about["model"]),
        ("tasks", f"{len(about['tasks']):,}"),
        *([] if about["labels"] is None else [("labels", ", ".join(map(shown, about["labels"])))]),
        ("features", ", ".join(about["features"])),
        ("weights", ", ".join(f"{name} {weight:.0%}" for name, weight in heaviest)),
    ]


def weights_text(about: dict[str, Any]) -> str:
    """How much members weigh by how many rows a task has, as a table."""
    names = list(about["weights"])
    rows = [[f"{row['rows']:.0f}" if row["rows"] else "new task", *(row[name] for name in names)]
            for row in about["weights_by_rows"]]  # fmt: skip
    return text_table(["rows of a task", *names], rows)


def describe_task(estimator: Any, task: Any) -> dict[str, Any]:
    """One task: its rows, how much members weigh for it, and its kin where members cluster tasks."""
    from kinfolk.cli.description import kin_of

    average, place = estimator._average, estimator.tasks_.tolist().index(task)
    weights = average.weights.of(average.n_rows[[place]])[0].tolist()
    found = {
        "task": task,
        "labelled_rows": float(average.n_rows[place]),
        "weights": dict(zip(estimator.members_, weights, strict=True)),
    }
    clusters = any(member.partition() is not None for member in average.members.values())
    return found | ({"kin": kin_of(estimator, task)} if clusters else {})


def task_text(about: dict[str, Any], least: float) -> str:
    """One task, to be read."""
    heaviest = sorted(about["weights"].items(), key=lambda item: -item[1])
    facts = [
        ("task", shown(about["task"])),
        ("rows", f"{about['labelled_rows']:,.0f}"),
        ("weights", ", ".join(f"{name} {weight:.0%}" for name, weight in heaviest)),
    ]
    every = [[shown(entry["task"]), entry["similarity"]] for entry in about.get("kin", ())]
    kin = [entry for entry in every if entry[1] >= least]
    return fact_lines(facts) + ("\n" + text_table(["kin", "similarity"], kin) if kin else "")
