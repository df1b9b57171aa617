"""Hidden Markov models compared on sequences held out: kin, all tasks or nobody sharing states, and all tasks as one.

There is no label to be predicted: the loss of a sequence is minus its log likelihood, for each of its steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kinfolk.maths.arrays import Floats
from kinfolk.reporting.findings import Findings
from kinfolk.reporting.held_out import Given, HeldOut, digest_of
from kinfolk.sequences.answers.segments import Decoded
from kinfolk.sequences.estimators.nested import NestedIHMM
from kinfolk.sequences.estimators.shared import SharedIHMM
from kinfolk.sequences.estimators.single import SingleIHMM
from kinfolk.tasks.answering import receive_sequences
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.schema import encode
from kinfolk.tasks.selection.splitters import TaskKFold
from kinfolk.tasks.table import is_missing
from kinfolk.transfer.comparison import Comparison, judge

MEASURE = "minus log likelihood of a step"
_BESIDE = ("task_column", "sequence_column", "order_column", "checkpoint")
_WAYS = {"nested": NestedIHMM, "shared": SharedIHMM, "alone": SingleIHMM, "pooled": SingleIHMM}


class GivenSequences(NamedTuple):
    """Sequences for a report: their rows in the order of their steps, the length and task of each, and their states."""

    rows: Given
    lengths: NDArray[np.int64]
    task: NDArray[Any]
    decoded: Decoded


def receive(findings: Findings, data: Any, y: Any, task: Any) -> GivenSequences:
    """Take sequences in as the model's own ``fit`` does: a table with its columns, a list, or (X, lengths, task)."""
    if y is not None:
        raise ValueError(
            f"{findings.model} predicts no label: leave y (--label) out, sequences are told by their columns"
        )
    lengths = None
    if isinstance(data, tuple) and len(data) == 3 and task is None:
        data, lengths, task = data
    predictor = findings.estimator._predictor()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = receive_sequences(data, predictor.known, lengths=lengths, task=task)
        decoded = predictor.decode(data, lengths, task=task)
    assert asked.lengths is not None
    tasks = np.repeat(predictor.tasks_, len(asked.lengths)) if asked.task is None else asked.task
    # Step by step: the table's own rows stand as they came, in whatever order.
    steps = asked.table if asked.rows is None else asked.table.rows(asked.rows)
    columns = dict(zip(findings.features, steps.all_values(), strict=True))
    of_rows = np.repeat(tasks, asked.lengths)
    rows = Given(columns, None, of_rows, digest_of(columns, None, of_rows))
    return GivenSequences(rows, asked.lengths, tasks, decoded)


def hold_out_sequences(findings: Findings, given: GivenSequences, n_folds: int, seed: int) -> HeldOut:
    """Fit copies of the model, and of those that share otherwise, to parts of the sequences, and score the others."""
    lengths, of_piece, n_cut = _pieces(given, n_folds)
    estimator, own = findings.estimator, findings.model
    same = {"NestedIHMM": "nested", "SharedIHMM": "shared", "SingleIHMM": "alone"}.get(own)
    models = {own: _copy(estimator, type(estimator), given.rows)}
    models |= {name: _copy(estimator, kind, given.rows) for name, kind in _WAYS.items() if name != same}
    ways = {name: name if name in ("alone", "pooled") else "sharing" for name in models}
    ways[own] = "alone" if same == "alone" else "sharing"
    losses = {name: np.full(len(lengths), np.nan) for name in models}
    folds: dict[str, list[float]] = {name: [] for name in models}
    scores: dict[str, list[float]] = {name: [] for name in models}
    n_folds = min(n_folds, int(np.unique(of_piece, return_counts=True)[1].max()))
    if n_folds < 2:
        raise ValueError("every task has a single step: there are no sequences to hold out")
    whole = _table(findings, given)
    for train, test in TaskKFold(n_folds, random_state=seed).split(None, np.zeros(len(lengths)), task=of_piece):
        for name, model in models.items():
            found = _scores(model, whole, lengths, of_piece, (train, test), pooled=name == "pooled")
            losses[name][test] = -found / lengths[test]
            folds[name].append(float(losses[name][test].mean()))
            scores[name].append(float(found.mean()))
    of_folds = {name: np.array(values) for name, values in folds.items()}
    helps, verdict = judge(of_folds, ways, MEASURE)
    best = min(of_folds, key=lambda name: float(of_folds[name].mean()))
    qualities = {name: np.array(values) for name, values in scores.items()}
    seconds = dict.fromkeys(ways, 0.0)
    cut = (
        f"{n_cut:,} task{'s have' if n_cut > 1 else ' has'} one sequence alone, which was cut into pieces to hold out."
    )
    notes = (cut,) if n_cut else ()
    compared = Comparison(
        MEASURE, "log likelihood of a sequence", of_folds, qualities, ways, seconds, best, helps, verdict, notes
    )
    return HeldOut(compared, own, losses, encode(of_piece, findings.tasks).astype(np.int64))


def _pieces(given: GivenSequences, n_folds: int) -> tuple[NDArray[np.int64], NDArray[Any], int]:
    """The lengths and tasks of what is held out: sequences, or pieces of a task's only one; and how many were cut."""
    names, n_sequences = np.unique(given.task, return_counts=True)
    single = set(names[n_sequences == 1].tolist())
    lengths: list[int] = []
    tasks: list[Any] = []
    n_cut = 0
    for length, task in zip(given.lengths.tolist(), given.task.tolist(), strict=True):
        n = min(n_folds, length) if task in single else 1
        ends = np.linspace(0, length, n + 1).round().astype(np.int64)
        lengths += np.diff(ends).tolist()
        tasks += [task] * n
        n_cut += n > 1
    named = np.empty(len(tasks), dtype=object)
    named[:] = tasks
    return np.array(lengths, dtype=np.int64), named, n_cut


def _copy(estimator: Any, kind: type[Any], rows: Given) -> Any:
    """A model of another kind with the same settings, which takes what columns hold for what this one did.

    All copies know the same symbols, those of this model and of the rows: none is unknown to one of them alone.
    """
    wanted = kind().get_params(deep=False)
    params = {name: value for name, value in estimator.get_params(deep=False).items() if name in wanted}
    layout = estimator._predictor().layout
    kinds = {column: channel.kind for channel in layout.channels for column in channel.columns}
    params |= {name: None for name in _BESIDE if name in wanted}
    params |= {"emission": kinds[0] if layout.is_flat else [kinds[column] for column in sorted(kinds)]}
    columns = list(rows.columns.items())
    symbols: dict[str, list[Any]] = {}
    for channel in layout.channels:
        if channel.symbols is not None:
            name, values = columns[channel.columns[0]]
            symbols[name] = list(dict.fromkeys([*channel.symbols, *values[~is_missing(values)].tolist()]))
    if symbols:
        params["symbols"] = next(iter(symbols.values())) if layout.is_flat else symbols
    return clone(kind(**{**params, "new_tasks": "expected", "verbose": False}))


def _table(findings: Findings, given: GivenSequences) -> Any:
    columns = given.rows.columns
    if findings.estimator._predictor().layout.is_flat:
        return next(iter(columns.values()))
    return make_frame({name: values.tolist() for name, values in columns.items()}, "polars")


def _scores(
    model: Any,
    table: Any,
    lengths: NDArray[np.int64],
    tasks: NDArray[Any],
    parts: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    pooled: bool,
) -> Floats:
    """Log likelihoods of some pieces, by a model that learnt from others."""
    starts = np.cumsum(lengths) - lengths

    def some(part: NDArray[np.int64]) -> Mapping[str, Any]:
        rows = np.concatenate([np.arange(starts[i], starts[i] + lengths[i]) for i in part])
        task = np.zeros(len(part), dtype=int) if pooled else tasks[part]
        return {"X": table[rows], "lengths": lengths[part], "task": task}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train, test = parts
        found: Floats = model.fit(**some(train)).score_samples(**some(test))
        return found
