"""The door for training data: a table, its labels, tasks and weights come in, checked once; code behind it trusts them.

`receive_training` is for tables with labels of categories, coded, `receive_labelled` for those of which parts are to be
coded; `receive_table` for everything else that a row has, where a model reads labels or values in a way of its own. All
give frozen values.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from kinfolk.parameters import check_choice
from kinfolk.tasks.answering import NEW_TASKS, Asked, Known, hold_columns, tell
from kinfolk.tasks.columns import as_ids, distinct, learn_schema, sort_values, task_ids, without_identifiers
from kinfolk.tasks.schema import Schema, encode, is_number, places_of
from kinfolk.tasks.sequences import take_sequences
from kinfolk.tasks.statistics import Rows, Statistics, count, layout_of, union
from kinfolk.tasks.table import (
    Backend,
    Coded,
    Table,
    as_column,
    backend_of,
    column_names,
    declared_categories,
    is_missing,
    plain_column,
    read_table,
    take_tasks,
    unlabelled_rows,
)

# What a column must have that repeats as groups do: so many values, and rows of each.
_FEWEST_GROUPS = 3
_ROWS_OF_A_GROUP = 5
# Whole numbers up to here are themselves as floats.
MOST_WEIGHT = 2**53


class Columns(NamedTuple):
    """How an estimator wants columns read; the words are those of its parameters.

    ``counts_alone`` is what its model is called where it has no densities of numbers, else None.
    ``weighs`` says whether whole numbers of few values may become bins: not where values were given priors one by one.
    """

    categorical_features: str | Sequence[Any] = "auto"
    bins: int | Mapping[Any, Any] = 8
    numeric: str | Mapping[Any, str] = "bin"
    counts_alone: str | None = None
    weighs: bool = True


class Arrival(NamedTuple):
    """A training table: its features, what the model will remember of it, and each row's task, as a place in ``known``.

    ``weights`` are None where every row counts once. Of sequences, ``lengths`` says how long each is, ``place`` is each
    sequence's, and ``rows`` says which row each step is, None where they stand in that order. ``backend`` is the
    library of tables that it came from, ``declared`` are its frame's categories.
    """

    table: Table
    known: Known
    place: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    backend: Backend
    declared: Mapping[int, Sequence[Any]]
    lengths: NDArray[np.int64] | None = None
    rows: NDArray[np.int64] | None = None

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Rows that have a weight above zero."""
        return np.ones(self.table.n_rows, dtype=bool) if self.weights is None else self.weights > 0


class Labels(NamedTuple):
    """The labels, sorted, and each row's place among them, −1 where it has none."""

    classes: NDArray[Any]
    codes: NDArray[np.int32]


class Training(NamedTuple):
    """A training table with labels, coded and counted.

    ``rows`` are all rows of this call; ``counted`` tells which of them have a weight above zero, and ``statistics`` are
    the counts of these. A row that does not count, of a task that no other row is of, has the number of tasks for its
    place.
    """

    known: Known
    schema: Schema
    classes: NDArray[Any]
    rows: Rows
    statistics: Statistics
    counted: NDArray[np.bool_]
    backend: Backend


class Labelled(NamedTuple):
    """A training table with labels, read and checked but not yet coded.

    Where targets are ``numbers``, the labels only tell which rows have one: 0, or −1 where there is none.
    """

    arrival: Arrival
    labels: Labels
    numbers: NDArray[np.float64] | None = None

    def take(self, keep: NDArray[np.bool_]) -> Labelled:
        """Some of the rows, as if no others had come: tasks and labels that only others have are not known."""
        arrival, labels = self.arrival, self.labels
        counted = arrival.counted & keep
        known, place = _present(arrival.known.tasks, arrival.place, counted, new=True)
        classes, codes = _present(labels.classes, labels.codes, counted & (labels.codes >= 0), new=False)
        part = arrival._replace(
            table=arrival.table.rows(keep),
            known=arrival.known._replace(tasks=known),
            place=place[keep],
            weights=None if arrival.weights is None else arrival.weights[keep],
        )
        numbers = None if self.numbers is None else self.numbers[keep]
        return self._replace(arrival=part, labels=Labels(classes, codes[keep].astype(np.int32)), numbers=numbers)

    def asked(self, keep: NDArray[np.bool_], known: Known) -> Asked:
        """Some of the rows, to be answered by a model that was fitted to others of them."""
        place = np.append(places_of(self.arrival.known.tasks, known.tasks), len(known.tasks))
        return Asked(self.arrival.table.rows(keep), place[self.arrival.place[keep]])

    def coded(self, columns: Columns, before: Training | None = None) -> Training:
        """The table coded by a schema that is learnt from its rows, or was from earlier ones."""
        table, known, place, weights, backend, declared, *_ = self.arrival
        counted = self.arrival.counted
        if before is None:
            kept, kept_weights = (table, None) if weights is None else (table.rows(counted), weights[counted])
            schema = learn_schema(
                kept,
                kept_weights,
                columns.categorical_features,
                columns.bins,
                declared,
                columns.numeric,
                self.labels.codes[counted],
                columns.counts_alone is None,
                columns.weighs,
            )
            if isinstance(columns.categorical_features, str):
                schema = without_identifiers(schema, kept, declared)
        else:
            schema, backend = before.schema, before.backend
        if columns.counts_alone is not None and schema.numbers:
            name = next(column.name for column in schema.columns if column.number is not None)
            raise ValueError(
                f"{columns.counts_alone} takes no columns of numbers, as column {name!r} is to be: it has rates of "
                'values and no densities; give numeric="bin", or "auto", which then chooses between bins and categories'
            )
        classes = self.labels.classes
        rows = Rows(schema.encode(table), self.labels.codes, place, weights, schema.encode_numbers(table))
        kept_rows = rows if weights is None else rows.take(counted)
        statistics = count(kept_rows, layout_of(schema, len(classes)), known.tasks)
        return Training(known, schema, classes, rows, statistics, counted, backend)


def _present(
    names: NDArray[Any], codes: NDArray[Any], rows: NDArray[np.bool_], new: bool
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Names that some of the rows have, and codes among these: the place after the last, or −1, for any other."""
    here = np.unique(codes[rows])
    place = np.full(len(names) + 1, len(here) if new else -1, dtype=np.int64)
    place[here] = np.arange(len(here))
    return names[here], place[codes]


def receive_table(
    X: Any,
    *,
    model: str,
    task: Any = None,
    task_column: str | int | None = None,
    sample_weight: Any = None,
    lengths: Any = None,
    sequence_column: str | int | None = None,
    order_column: str | int | None = None,
    sequences: bool = False,
    sparse: bool = False,
    new_tasks: str = "warn",
    shares: bool = True,
    before: Known | None = None,
) -> Arrival:
    """Read a training table and the task of each row, or of each sequence.

    Parameters
    ----------
    X : frame, array, mapping from columns to values, or scipy sparse matrix
    model : str
        Name of the estimator, for sentences.
    task : array-like, optional
        The task of each row, or of each sequence. Without it, and without ``task_column``, there is one task; a table
        that has a column which repeats as groups do (:func:`group_column`) is then warned of.
    task_column : str or int, optional
        The column of the table that holds the task instead.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts; a row of weight zero makes no task known.
    lengths : array-like of shape (n_sequences,), optional
        With ``sequences``: the steps of each; all rows are one sequence by default.
    sequence_column : str or int, optional
        With ``sequences``: the column of the table that tells which sequence a row belongs to, instead of ``lengths``.
    order_column : str or int, optional
        With ``sequences``: the column that tells the order of a sequence's rows; by default they stand in it.
    sequences : bool, default=False
        Whether rows make sequences, and a single column may come without a table around it.
    sparse : bool, default=False
        Whether a sparse matrix is taken.
    new_tasks : {"warn", "expected"}, default="warn"
        Whether to warn later where most rows are of tasks never seen.
    shares : bool, default=True
        False for a model whose tasks learn nothing from each other, of which one task is as good as another.
    before : Known, optional
        What earlier rows were like, which these are added to.

    Returns
    -------
    Arrival

    Examples
    --------
    >>> arrival = receive_table({"who": ["bob", "ann"], "size": [1, 2]}, model="NoSharingNB", task_column="who")
    >>> arrival.known.tasks.tolist(), arrival.place.tolist(), arrival.table.names
    (['ann', 'bob'], [1, 0], ['size'])
    """
    check_choice("new_tasks", new_tasks, NEW_TASKS)
    table = read_table(X, flat=sequences, sparse=sparse, times=order_column)
    backend, declared = backend_of(X), declared_categories(X)
    if sparse and table.sparse is not None and task_column is not None:
        raise ValueError("a sparse table has no task column: give task= instead")
    names, width = None if table.names is None else tuple(table.names), table.n_features
    if before is not None:
        table = hold_columns(table, before)
        names, width = before.columns, before.n_columns
    steps = rows = None
    if sequences:
        taken = take_sequences(table, lengths, sequence_column, task, task_column, order_column)
        features, steps, given, rows = taken.table, taken.lengths, taken.task, taken.rows
    else:
        features, given = take_tasks(table, task, task_column)
    if given is None and before is None and shares and not sequences:
        _tell_of_groups(features, table)
    need_some(features)
    weights = check_weights(sample_weight, table.n_rows)
    tasks = task_ids(given if given is None or weights is None else given[weights > 0])
    if before is not None:
        tasks = union(before.tasks, tasks)
    n = table.n_rows if steps is None else len(steps)
    place = np.zeros(n, dtype=np.int64) if given is None else places_of(given, tasks)
    known = Known(model, names, width, task_column, tasks, new_tasks, sequence_column, order_column)
    return Arrival(features, known, place, weights, backend, declared, steps, rows)


def group_column(table: Table) -> int | None:
    """The first column that repeats as groups do, as if many small data sets had been put under each other.

    That is a column of text or whole numbers with at least 3 different values, all rows of each standing together, of
    which there are at least 5 for each value on average. Columns of features are hardly ever so, unless the table was
    sorted by one.

    Examples
    --------
    >>> from kinfolk.tasks.table import read_table
    >>> group_column(read_table({"size": [1, 2, 3] * 5, "site": ["n"] * 5 + ["w"] * 5 + ["s"] * 5}))
    1
    """
    for i, held in enumerate(table.columns):
        values = held.codes if isinstance(held, Coded) else held
        if values.dtype.kind not in "iuO" or (isinstance(held, Coded) and (values < 0).any()):
            continue
        begins = np.flatnonzero(values[1:] != values[:-1])
        if not _FEWEST_GROUPS <= len(begins) + 1 <= len(values) / _ROWS_OF_A_GROUP:
            continue
        firsts = values[np.append(0, begins + 1)]
        # Most columns come back to a value soon: the first few tell.
        if _all_differ(firsts[:50]) and _all_differ(firsts) and all(isinstance(v, int | str) for v in firsts.tolist()):
            return i
    return None


def _all_differ(values: NDArray[Any]) -> bool:
    return len(set(values.tolist())) == len(values)


def _tell_of_groups(features: Table, table: Table) -> None:
    place = group_column(features)
    if place is not None:
        column = place if table.names is None else table.names[place]
        tell(
            f"no task was given, so that all rows are one, but {table.labels[place]} repeats as groups do: if it tells "
            f"which task a row belongs to, say task_column={column!r}; if there is one task, say so: "
            "task=[0] * len(X)",
            UserWarning,
        )


def need_some(table: Table) -> None:
    """Refuse a table without columns or rows; the sentences are scikit-learn's."""
    for found, what in ((table.n_features, "feature"), (table.n_rows, "sample")):
        if not found:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape=({table.n_rows}, {table.n_features})) while a minimum of 1 is "
                "required."
            )


def receive_labels(
    X: Any,
    y: Any,
    n_rows: int,
    *,
    model: str,
    classes: Any = None,
    before: NDArray[Any] | None = None,
    unlabelled: Any = None,
    counted: NDArray[np.bool_] | None = None,
) -> Labels:
    """Read a label of any type for each row; ``None`` or NaN, or the mark ``unlabelled``, where there is none.

    Parameters
    ----------
    X : table
        Looked into only to see whether the label is among its columns; None where that does not matter.
    y : array-like of shape (n_rows,)
    n_rows : int
    model : str
        Name of the estimator, for sentences.
    classes : array-like, optional
        All labels that there can be.
    before : ndarray, optional
        The labels of earlier rows, which must have all labels of these.
    unlabelled : optional
        A label that marks a row without one.
    counted : ndarray of bool, optional
        Rows that have a weight; only these make a label known.

    Returns
    -------
    Labels
    """
    if y is None:
        raise ValueError(f"This {model} estimator requires y to be passed, but the target y is None.")
    labels, missing = check_labels(X, flat_labels(y), n_rows, unlabelled)
    kept = ~missing if counted is None else counted & ~missing
    if not kept.any():
        raise ValueError("Input y contains NaN, None or weight zero everywhere: no row with a label counts")
    found = distinct_labels(labels[kept])
    given = None if classes is None else as_column(classes, "classes").tolist()
    if before is None:
        known = found if given is None else as_ids(sort_values(list(dict.fromkeys(given))))
    else:
        known = before
        if given is not None and set(given) != set(known.tolist()):
            raise ValueError(f"classes={given} differs from those of the first call, {known.tolist()}")
    among = set(known.tolist())
    new = next((label for label in found.tolist() if label not in among), None)
    if new is not None:
        raise ValueError(f"label {new!r} is not among the classes {known.tolist()}")
    return Labels(known, np.where(missing, -1, encode(labels, known.tolist())).astype(np.int32))


def receive_numbers(
    X: Any, y: Any, n_rows: int, *, model: str, counted: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Read a number to be predicted for each row; NaN where there is none.

    Parameters
    ----------
    X : table
        Looked into only to see whether the target is among its columns; None where that does not matter.
    y : array-like of shape (n_rows,)
    n_rows : int
    model : str
        Name of the estimator, for sentences.
    counted : ndarray of bool, optional
        Rows that have a weight; one of them must have a target.

    Returns
    -------
    ndarray of float of shape (n_rows,)

    Examples
    --------
    >>> receive_numbers(None, [1, None, 2.5], 3, model="HierarchicalRegressor").tolist()
    [1.0, nan, 2.5]
    """
    if y is None:
        raise ValueError(f"This {model} estimator requires y to be passed, but the target y is None.")
    targets, missing = check_labels(X, flat_labels(y), n_rows, None)
    plain = plain_column(targets, "y")
    if plain.dtype == object:
        wrong = next((row for row, value in enumerate(plain.tolist()) if not (missing[row] or is_number(value))), None)
        if wrong is not None:
            raise ValueError(f"Input y contains {plain[wrong]!r} in row {wrong}: every target must be a finite number")
    numbers = np.full(n_rows, np.nan)
    numbers[~missing] = plain[~missing].astype(np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"Input y contains infinity in row {int(np.argmax(np.isinf(numbers)))}")
    if not (~missing if counted is None else counted & ~missing).any():
        raise ValueError("Input y contains NaN, None or weight zero everywhere: no row with a target counts")
    return numbers


def distinct_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels that occur, sorted; fractions are none."""
    if labels.dtype.kind == "f":
        check_classification_targets(labels)
        return np.unique(labels)
    return as_ids(list(distinct(labels, "y")))


def flat_labels(y: Any) -> Any:
    """A column of labels as one row of them, with scikit-learn's own warning."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        return np.asarray(y).ravel()
    return y


def check_labels(X: Any, y: Any, n_rows: int, unlabelled: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Labels as a plain column, and which rows have none."""
    name = getattr(y, "name", None)
    names = None if X is None else column_names(X)
    if isinstance(name, str) and names is not None and name in names:
        column, labels = np.asarray(X[name]), np.asarray(y)
        if len(column) == len(labels) and bool(np.all((column == labels) | (is_missing(column) & is_missing(labels)))):
            raise ValueError(f"column {name!r} is the label and also a feature: drop it from the table")
    labels = _whole_with_gaps(y, as_column(y, "y"))
    numbers = plain_column(labels, "y")
    if len(labels) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, len(labels)]} (rows and labels)"
        )
    if numbers.dtype.kind == "f" and np.isinf(numbers).any():
        raise ValueError(f"Input y contains infinity in row {int(np.argmax(np.isinf(numbers)))}")
    missing = unlabelled_rows(labels, unlabelled)
    if n_rows and missing.all():
        raise ValueError("Input y contains NaN, None or the mark of an unlabelled row everywhere: no row has a label")
    return labels, missing


def _whole_with_gaps(y: Any, labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as they were written, where numpy made floats of whole numbers because some are missing."""
    if labels.dtype.kind != "f" or isinstance(y, np.ndarray):
        return labels
    lister = next((name for name in ("to_pylist", "to_list", "tolist") if hasattr(y, name)), None)
    written = labels if lister is None else as_column(getattr(y, lister)(), "y")
    whole = all(isinstance(value, int) for value in written[~is_missing(labels)].tolist())
    return written if whole else labels


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Weights as finite, non-negative floats, not all zero; a column that has a name is called by it."""
    if sample_weight is None:
        return None
    name = getattr(sample_weight, "name", None)
    what = f"weight column {name!r}" if isinstance(name, str) and name else "sample_weight"
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    try:
        given = np.asarray(sample_weight)
        weights = given if given.dtype.kind == "c" else given.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must hold one number per row") from None
    if weights.dtype.kind == "c":  # NumPy would leave the imaginary parts out
        raise ValueError(f"Complex data not supported: {what} holds complex numbers")
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    refuse_wrong_weights(weights, what)
    if not weights.any():
        raise ValueError(f"{what} is zero in every row: at least one row must count")
    return weights


def refuse_wrong_weights(weights: NDArray[np.float64], label: str, first_row: int = 0) -> None:
    """Refuse weights that are missing, infinite or negative, or too large to add up, with their place."""
    wrong = ~(weights <= MOST_WEIGHT) | (weights < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{label}, row {first_row + row}: {wrong_weight(float(weights[row]))}")


def wrong_weight(weight: float) -> str:
    """What is wrong with a weight, in words.

    Examples
    --------
    >>> wrong_weight(-1.0)
    '-1.0 is not a weight, it must be finite and not negative'
    >>> wrong_weight(1e20)
    '1e+20 is too large a weight: beside more than 9,007,199,254,740,992 a row of weight 1 is lost to rounding'
    """
    if np.isfinite(weight) and weight > 0:
        return f"{weight} is too large a weight: beside more than {MOST_WEIGHT:,} a row of weight 1 is lost to rounding"
    return f"{weight} is not a weight, it must be finite and not negative"


def receive_labelled(
    X: Any,
    y: Any,
    *,
    model: str,
    task: Any = None,
    task_column: str | int | None = None,
    sample_weight: Any = None,
    unlabelled: Any = None,
    classes: Any = None,
    new_tasks: str = "warn",
    shares: bool = True,
    before: Training | None = None,
) -> Labelled:
    """Read a training table with labels, without coding it yet: parts of it may be coded each by itself.

    Parameters
    ----------
    X, y, task, task_column, sample_weight, unlabelled, classes, new_tasks
        As the estimators take them.
    model : str
        Name of the estimator, for sentences.
    shares : bool, default=True
        Whether tasks learn from each other.
    before : Training, optional
        What was learnt from earlier rows, which these are added to: their labels stay.

    Returns
    -------
    Labelled
    """
    arrival = receive_table(
        X,
        model=model,
        task=task,
        task_column=task_column,
        sample_weight=sample_weight,
        new_tasks=new_tasks,
        shares=shares,
        before=None if before is None else before.known,
    )
    labels = receive_labels(
        X,
        y,
        arrival.table.n_rows,
        model=model,
        classes=classes,
        before=None if before is None else before.classes,
        unlabelled=unlabelled,
        counted=arrival.counted,
    )
    return Labelled(arrival, labels)


def receive_measured(
    X: Any,
    y: Any,
    *,
    model: str,
    task: Any = None,
    task_column: str | int | None = None,
    sample_weight: Any = None,
    new_tasks: str = "warn",
) -> Labelled:
    """Read a training table whose targets are numbers, as :func:`receive_labelled` reads one with labels."""
    arrival = receive_table(
        X,
        model=model,
        task=task,
        task_column=task_column,
        sample_weight=sample_weight,
        new_tasks=new_tasks,
    )
    numbers = receive_numbers(X, y, arrival.table.n_rows, model=model, counted=arrival.counted)
    has_one = Labels(np.zeros(1), np.where(np.isnan(numbers), -1, 0).astype(np.int32))
    return Labelled(arrival, has_one, numbers)


def receive_training(
    X: Any,
    y: Any,
    *,
    columns: Columns = Columns(),  # noqa: B008 - a frozen value
    before: Training | None = None,
    **how: Any,
) -> Training:
    """Read a training table with labels, and code it by a schema that is learnt from it, or was before.

    Parameters
    ----------
    X, y, before
        As :func:`receive_labelled` takes them.
    columns : Columns
        How columns are read.
    how
        All else that :func:`receive_labelled` takes.

    Returns
    -------
    Training

    Examples
    --------
    >>> training = receive_training([["red"], ["blue"]], ["stop", "go"], model="NoSharingNB", task=["ann", "bob"])
    >>> training.classes.tolist(), training.rows.codes.ravel().tolist(), training.rows.labels.tolist()
    (['go', 'stop'], [1, 0], [1, 0])
    """
    return receive_labelled(X, y, before=before, **how).coded(columns, before)
