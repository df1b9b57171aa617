"""The actions that minimise expected loss (Roy 2006, equation 1.2), and what actions taken cost.

In the papers: Roy (2006), eq. 3.1.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinfolk.decisions.losses import Loss, as_numbers, checked_names, listed, plain_name

__all__ = ["decide", "expected_loss", "realised_loss"]

# Wide enough for probabilities in single precision, too narrow for a forgotten class.
PROBABILITY_TOLERANCE = 1e-5


def decide(
    proba: Any, loss: Any, *, actions: Iterable[Any] | None = None, classes: Iterable[Any] | None = None
) -> NDArray[Any]:
    """Choose, row by row, the action with the smallest expected loss (equation 1.2).

    Parameters
    ----------
    proba : array-like or data frame of shape (n_rows, n_classes)
        The probability of each class; each row sums to 1. The columns of a data frame name the classes.
    loss : Loss or array-like of shape (n_classes, n_actions)
        What each action costs under each true class. A `Loss` that names its classes is matched to the
        columns of ``proba`` by name where both are named, and by position otherwise.
    actions : iterable, optional
        The name of each action, in place of the loss's own.
    classes : iterable, optional
        The name of each column of ``proba``, in place of a data frame's own.

    Returns
    -------
    ndarray of shape (n_rows,)
        The names of the chosen actions; their numbers, from 0, where nothing names them. Where several
        actions have the smallest expected loss, or differ from it by no more than rounding, the first of
        them in the order of the loss is chosen.

    See Also
    --------
    expected_loss : What every action is expected to cost.
    realised_loss : What actions taken did cost.
    DecisionClassifier : The same as a scikit-learn classifier.

    Examples
    --------
    A missed illness costs ten times a needless treatment:

    >>> import kinfolk.decisions as kd
    >>> kd.decide([[0.95, 0.05], [0.85, 0.15]], [[0, 1], [10, 0]], classes=["well", "ill"])
    array(['well', 'ill'], dtype='<U4')
    """
    table, priced = _matched(proba, loss, classes, actions)
    losses = table @ priced.matrix
    # A row's last digits depend on how many rows are multiplied with it; what is decided for it must not.
    rounding = 8 * len(priced.matrix) * np.finfo(np.float64).eps * (np.abs(table) @ np.abs(priced.matrix))
    as_good_as_best = losses - rounding <= (losses + rounding).min(axis=1, keepdims=True)
    chosen: NDArray[Any] = as_good_as_best.argmax(axis=1)
    if priced.actions is not None:
        chosen = _as_array(priced.actions)[chosen]
    return chosen


def expected_loss(proba: Any, loss: Any, *, classes: Iterable[Any] | None = None) -> NDArray[np.float64]:
    """Compute the expected loss of every action for every row: E[L(Y, a) | x] (equation 1.2).

    Parameters
    ----------
    proba, loss, classes
        As in `decide`.

    Returns
    -------
    ndarray of shape (n_rows, n_actions)
        A row for each row of ``proba``, a column for each action of the loss.

    See Also
    --------
    decide : The action for which this is smallest.

    Examples
    --------
    >>> from kinfolk.decisions import expected_loss
    >>> expected_loss([[0.75, 0.25]], [[0, 1], [8, 0]])
    array([[2.  , 0.75]])
    """
    table, priced = _matched(proba, loss, classes, None)
    losses: NDArray[np.float64] = table @ priced.matrix
    return losses


def realised_loss(y_true: Any, actions: Any, loss: Any, *, sample_weight: ArrayLike | None = None) -> float:
    """Compute the mean loss of actions taken, once the true classes are known.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        The true class of each row, by name, or by row number of a loss without names.
    actions : array-like of shape (n_rows,)
        The action taken for each row, as `decide` returns it.
    loss : Loss or array-like of shape (n_classes, n_actions)
        What each action costs under each true class.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in the mean.

    Returns
    -------
    float
        The mean loss.

    See Also
    --------
    decide : How to choose actions.

    Notes
    -----
    ``make_scorer(realised_loss, greater_is_better=False, loss=loss)`` makes a scikit-learn scorer of it.

    Examples
    --------
    >>> from kinfolk.decisions import Loss, realised_loss
    >>> loss = Loss.zero_one(["no", "yes"]).with_ask(0.25)
    >>> realised_loss(["no", "yes", "yes", "no"], ["no", "no", "ask", "no"], loss)
    0.3125
    """
    priced = loss if isinstance(loss, Loss) else Loss(loss)
    n_classes, n_actions = priced.matrix.shape
    rows = _positions(y_true, range(n_classes) if priced.classes is None else priced.classes, "y_true", "class")
    columns = _positions(actions, range(n_actions) if priced.actions is None else priced.actions, "actions", "action")
    if len(rows) != len(columns) or len(rows) == 0:
        raise ValueError(
            f"y_true has {len(rows)} rows and actions has {len(columns)}; they must be equal in number, "
            "and at least one."
        )
    weights = None if sample_weight is None else as_numbers(sample_weight, "sample_weight")
    return float(np.average(priced.matrix[rows, columns], weights=weights))


def _matched(
    proba: Any, loss: Any, classes: Iterable[Any] | None, actions: Iterable[Any] | None
) -> tuple[NDArray[np.float64], Loss]:
    """Check the probabilities, and give the loss its rows in the order of their columns."""
    if classes is None and hasattr(proba, "columns") and hasattr(proba, "to_numpy"):
        classes = proba.columns
    table = _probabilities(proba)
    priced = loss if isinstance(loss, Loss) else Loss(loss)
    if actions is not None:
        priced = Loss(priced.matrix, priced.classes, tuple(actions))
    if classes is not None:
        names = checked_names(classes, table.shape[1], "classes", "columns of proba")
        if priced.classes is None and len(priced.matrix) == len(names):
            priced = Loss(priced.matrix, names, priced.actions)
        elif priced.classes is not None:
            priced = priced.for_classes(names)
    if len(priced.matrix) != table.shape[1]:
        raise ValueError(
            f"proba has {table.shape[1]} columns but the loss has {len(priced.matrix)} rows; "
            "both need one for each class."
        )
    return table, priced


def _probabilities(proba: Any) -> NDArray[np.float64]:
    table = as_numbers(proba, "proba")
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"proba has shape {table.shape}; it needs one row per case and one column per class.")
    if np.isnan(table).any():
        row, column = np.argwhere(np.isnan(table))[0]
        raise ValueError(f"Row {row} of proba holds NaN in column {column}; every probability must be known.")
    if (table < -PROBABILITY_TOLERANCE).any():
        row, column = np.argwhere(table < -PROBABILITY_TOLERANCE)[0]
        raise ValueError(
            f"Row {row} of proba holds {table[row, column]:.6g} in column {column}; a probability is never negative."
        )
    sums = table.sum(axis=1)
    # Written so that an infinite sum counts as wrong too.
    wrong = ~(np.abs(sums - 1.0) <= PROBABILITY_TOLERANCE)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"Row {row} of proba sums to {sums[row]:.6g}; the probabilities of a row must sum to 1.")
    return table


def _as_array(names: Sequence[Any]) -> NDArray[Any]:
    """Make an array of the names as they are: NumPy alone would turn 1 beside "ask" into "1"."""
    if len({type(name) for name in names}) == 1 and isinstance(names[0], str | bool | int | float):
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def _positions(values: Any, names: Sequence[Any], what: str, kind: str) -> NDArray[np.intp]:
    position_of = {name: position for position, name in enumerate(names)}
    found = []
    for row, value in enumerate(np.asarray(values, dtype=object)):
        if value not in position_of:
            raise ValueError(
                f"Row {row} of {what} is {plain_name(value)!r}, which the loss does not know as {kind}; "
                f"it knows {listed(names)}."
            )
        found.append(position_of[value])
    return np.array(found, dtype=np.intp)
