"""Targets of many linear models: one for each row of a long table, or a matrix with a column for each task."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from kinfolk.lica.model.data import LinearTasks, make_linear_tasks
from kinfolk.maths.arrays import Floats
from kinfolk.tasks.columns import as_ids, distinct
from kinfolk.tasks.schema import encode, is_number, rows_of_tasks
from kinfolk.tasks.table import as_column, column_names, is_missing, plain_column, read_table


class Targets(NamedTuple):
    """Which rows each task has, with their targets: places among ``classes`` (0, 1), or numbers in a regression."""

    tasks: NDArray[Any]
    rows: tuple[NDArray[np.int64], ...]
    values: tuple[Floats, ...]
    classes: NDArray[Any] | None
    is_matrix: bool


def receive_targets(
    y: Any, place: NDArray[np.int64], tasks: NDArray[Any], *, classification: bool, named: bool = True
) -> Targets:
    """Read targets, one for each row or a matrix with a column for each task; missing ones are left out.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_tasks)
    place : ndarray of shape (n_rows,)
        The place of each row's task among ``tasks``.
    tasks : ndarray
    classification : bool
        Whether targets are labels rather than numbers.
    named : bool
        Whether tasks were named; a matrix of targets names them by its columns.
    """
    y = _flat(y)
    matrix = _matrix(y)
    if matrix is not None and named:
        raise ValueError("y has a column for each task: task= says it a second time")
    names, columns = (None, [as_column(y, "y")]) if matrix is None else matrix
    n_rows = len(place)
    for column in columns:
        if len(column) != n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {[n_rows, len(column)]} "
                "(rows and targets)"
            )
    known = [~is_missing(column) for column in columns]
    if not any(has.any() for has in known):
        raise ValueError("Input y contains NaN or None everywhere: no row has a target")
    present = np.concatenate([column[has] for column, has in zip(columns, known, strict=True)])
    classes = _classes(present) if classification else None
    coded = []
    for column, has in zip(columns, known, strict=True):
        values = np.full(n_rows, np.nan)
        if classes is None:
            values[has] = _numbers(column[has], np.flatnonzero(has))
        else:
            values[has] = encode(column[has], classes.tolist())
        coded.append(values)
    if names is not None:
        rows = [np.flatnonzero(has) for has in known]
        return Targets(names, tuple(rows), tuple(v[r] for v, r in zip(coded, rows, strict=True)), classes, True)
    rows = [its[known[0][its]] for its in rows_of_tasks(place, len(tasks))]
    return Targets(tasks, tuple(rows), tuple(coded[0][its] for its in rows), classes, False)


def check_tasks(targets: Targets) -> None:
    """Refuse a task that there is nothing to learn of."""
    for name, rows in zip(targets.tasks.tolist(), targets.rows, strict=True):
        if not len(rows):
            raise ValueError(f"task {name!r} has no row with a target: leave it out")


def _flat(y: Any) -> Any:
    """Rows of lists as an array, and an array of one column as one target for each row, as scikit-learn has it."""
    if isinstance(y, list | tuple) and y and isinstance(y[0], list | tuple | np.ndarray):
        y = np.array(y, dtype=object)
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: y.ravel() is one.",
            DataConversionWarning,
            stacklevel=4,
        )
        return y.ravel()
    return y


def _matrix(y: Any) -> tuple[NDArray[Any], list[NDArray[Any]]] | None:
    """Names and columns of a target matrix; None for one target a row."""
    if sparse.issparse(y):
        dense = np.asarray(y.todense())
        return np.arange(dense.shape[1]), list(dense.T)
    if isinstance(y, Mapping):
        return as_ids(list(y)), [as_column(y[name], f"y, task {name!r}") for name in y]
    names = column_names(y) if hasattr(y, "columns") or hasattr(y, "column_names") else None
    if names is not None:
        table = read_table(y)
        return as_ids(names), table.all_values()
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return np.arange(y.shape[1]), [plain_column(column, "y") for column in y.T]
    return None


def _classes(present: NDArray[Any]) -> NDArray[Any]:
    """The labels, two at most."""
    plain = plain_column(present, "y")
    found = list(distinct(plain, "y")) if plain.dtype.kind != "f" else np.unique(plain).tolist()
    if plain.dtype.kind == "f" and np.isinf(plain).any():
        raise ValueError("Input y contains infinity: two labels are needed")
    if plain.dtype.kind == "f" and any(value != np.floor(value) for value in found):
        raise ValueError("Unknown label type: y holds fractions; two labels are needed, or LICARegressor")
    if len(found) > 2:
        raise ValueError(
            f"Only binary classification is supported. y has {len(found)} labels, {found[0]!r}, {found[1]!r}, "
            f"{found[2]!r}{', …' if len(found) > 3 else ''}: two are needed, or a task for each label"
        )
    return as_ids(found)


def _numbers(values: NDArray[Any], rows: NDArray[np.int64]) -> Floats:
    plain = plain_column(values, "y")
    text = [not is_number(value) for value in plain.tolist()] if plain.dtype == object else []
    wrong = np.array(text) if any(text) else ~np.isfinite(plain.astype(np.float64))
    if wrong.any():
        place = int(np.argmax(wrong))
        what = repr(plain[place]) if any(text) else "infinity"
        raise ValueError(f"Input y contains {what} in row {int(rows[place])}: every target must be a finite number")
    return plain.astype(np.float64)


def lay_out(X: Any, targets: Targets, weights: Floats | None, class_weight: Any) -> LinearTasks:
    """Put features, targets and weights together; rows of no weight are left out."""
    of_tasks = []
    for name, rows, values in zip(targets.tasks.tolist(), targets.rows, targets.values, strict=True):
        own = np.ones(len(rows)) if weights is None else weights[rows]
        if class_weight is not None:
            own = own * _class_weights(values, own, targets.classes, class_weight, name)
        of_tasks.append(own)
    signed = targets.values if targets.classes is None else tuple(_signs(v, targets.classes) for v in targets.values)
    return make_linear_tasks(X, targets.rows, signed, of_tasks)


def _signs(values: Floats, classes: NDArray[Any]) -> Floats:
    """Places 0 and 1 among two classes as −1 and 1; a single class is the positive one."""
    return np.ones(len(values)) if len(classes) == 1 else 2.0 * values - 1.0


def _class_weights(
    values: Floats, weights: Floats, classes: NDArray[Any] | None, class_weight: Any, task: Any
) -> Floats:
    if classes is None:
        raise ValueError("class_weight is for classification alone")
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.array([weights[values == c].sum() for c in range(len(classes))])
        # A class that a task lacks has nothing to balance.
        factors = totals.sum() / (np.maximum((totals > 0).sum(), 1) * np.where(totals > 0, totals, 1.0))
    elif isinstance(class_weight, Mapping):
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"class_weight: {unknown[0]!r} is not a label; the labels are {classes.tolist()}")
        factors = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    else:
        raise ValueError(f'class_weight={class_weight!r}: None, "balanced" or a mapping from labels is needed')
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ValueError(f"class_weight: task {task!r} would get weights that are not finite and at least 0")
    return np.asarray(factors[values.astype(np.int64)])
