"""What each action costs under each true class (Roy 2006, equations 1.1 and 4.16)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Loss"]


@dataclass(frozen=True, eq=False, init=False)
class Loss:
    """What each action costs under each true class.

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_actions), pandas.DataFrame, or mapping
        ``matrix[c, a]`` is L(c, a), the loss of action ``a`` where the true class is ``c``: any
        finite number. A frame names its classes by its index and its actions by its columns; a mapping from
        classes to mappings from actions to losses does so too.
    classes : sequence, optional
        The name of each row, where the matrix does not say it.
    actions : sequence, optional
        The name of each column. Where only the classes are named, the actions of a square matrix are the
        classes, and those of any other matrix are numbered from 0.

    Examples
    --------
    A wrong acceptance costs four times as much as a wrong refusal; asking costs a tenth of it:

    >>> from kinfolk.decisions import Loss, decide
    >>> loss = Loss.asymmetric(-2, ["decline", "accept"], positive="accept").with_ask(0.1)
    >>> decide([[0.05, 0.95], [0.4, 0.6], [0.9, 0.1]], loss)
    array(['accept', 'ask', 'decline'], dtype='<U7')
    """

    matrix: NDArray[np.float64]
    classes: tuple[Any, ...] | None
    actions: tuple[Any, ...] | None

    def __init__(
        self,
        matrix: ArrayLike | Mapping[Any, Mapping[Any, float]],
        classes: Iterable[Any] | None = None,
        actions: Iterable[Any] | None = None,
    ) -> None:
        if isinstance(matrix, Mapping) or hasattr(matrix, "iloc"):
            if classes is not None or actions is not None:
                raise ValueError("The loss names its own classes and actions; classes= and actions= say it again.")
            matrix, classes, actions = _named(matrix)
        table = as_numbers(matrix, "The loss")
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(f"The loss has shape {table.shape}; it needs one row per class and one column per action.")
        if not np.isfinite(table).all():
            row, column = np.argwhere(~np.isfinite(table))[0]
            raise ValueError(
                f"The loss holds {table[row, column]} in row {row}, column {column}; "
                "every loss must be a finite number."
            )
        table.setflags(write=False)
        n_classes, n_actions = table.shape
        rows = None if classes is None else checked_names(classes, n_classes, "classes", "rows of the loss")
        if actions is not None:
            columns: tuple[Any, ...] | None = checked_names(actions, n_actions, "actions", "columns of the loss")
        elif rows is not None:
            columns = rows if n_classes == n_actions else tuple(range(n_actions))
        else:
            columns = None
        object.__setattr__(self, "matrix", table)
        object.__setattr__(self, "classes", rows)
        object.__setattr__(self, "actions", columns)

    @classmethod
    def zero_one(cls, classes: Iterable[Any]) -> "Loss":
        """Cost 1 for any wrong class (equation 1.1): its decisions are the most probable classes.

        Examples
        --------
        >>> from kinfolk.decisions import Loss
        >>> Loss.zero_one(["no", "yes"]).matrix
        array([[0., 1.],
               [1., 0.]])
        """
        names = tuple(classes)
        return cls(1.0 - np.eye(len(names)), names, names)

    @classmethod
    def asymmetric(cls, n: float, classes: Iterable[Any] = (0, 1), *, positive: Any = None) -> "Loss":
        """Cost 1 for a false positive and 2ⁿ for a false negative: the thesis's Lₙ (equation 4.16).

        The positive class is chosen where its probability exceeds 1/(1 + 2ⁿ) (equation 3.1).

        Parameters
        ----------
        n : float
            0 gives the zero-one loss; above 0 misses cost more, below 0 false alarms do.
        classes : iterable of two names, default=(0, 1)
            The classes.
        positive : optional
            Which of the two is positive. It must be named where that makes a difference, unless the classes are 0 and
            1, -1 and 1, or False and True.

        Examples
        --------
        >>> from kinfolk.decisions import Loss
        >>> Loss.asymmetric(3, ["no", "yes"], positive="yes").matrix
        array([[0., 1.],
               [8., 0.]])
        """
        names = tuple(classes)
        if len(names) != 2:
            raise ValueError(
                f"The asymmetric loss was given {len(names)} classes; it needs a negative and a positive one."
            )
        if not abs(n) <= 1000:
            raise ValueError(f"The asymmetric loss was given n = {n}; it needs a number from -1000 to 1000.")
        if positive is None:
            if n and set(names) not in ({0, 1}, {-1, 1}):
                raise ValueError(
                    f"The asymmetric loss treats {listed(names)} differently; "
                    f"say which is positive: positive={names[1]!r}."
                )
            positive = max(names) if n else names[1]
        elif positive not in names:
            raise ValueError(f"The positive class {positive!r} is not one of the two classes, {listed(names)}.")
        miss, false_alarm = 2.0**n, 1.0
        matrix = [[0.0, false_alarm], [miss, 0.0]] if positive == names[1] else [[0.0, miss], [false_alarm, 0.0]]
        return cls(np.array(matrix), names, names)

    def with_ask(self, cost: ArrayLike, name: Any = "ask") -> "Loss":
        """Add an action that hands the decision back, at a cost of its own.

        Parameters
        ----------
        cost : float or array-like of shape (n_classes,)
            What asking costs, whatever the class or for each class.
        name : default="ask"
            The name of the action. It comes last, so that a tie is never asked about.

        Examples
        --------
        >>> from kinfolk.decisions import Loss
        >>> Loss.zero_one(["no", "yes"]).with_ask(0.2).matrix
        array([[0. , 1. , 0.2],
               [1. , 0. , 0.2]])
        """
        n_classes, n_actions = self.matrix.shape
        column = as_numbers(cost, "The cost of asking")
        if column.shape not in ((), (n_classes,)):
            raise ValueError(
                f"The cost of asking has shape {column.shape}; it needs one number, or one for each of "
                f"{n_classes} classes."
            )
        matrix = np.column_stack([self.matrix, np.broadcast_to(column, n_classes)])
        known = tuple(range(n_actions)) if self.actions is None else self.actions
        return Loss(matrix, self.classes, (*known, name))

    def for_classes(self, classes: Iterable[Any]) -> "Loss":
        """Put the rows in the order of ``classes``, the columns of some table of probabilities.

        A class of the loss that is not among them has probability 0 there, and its row is left out. A loss
        without class names takes these, in order.

        Examples
        --------
        >>> from kinfolk.decisions import Loss
        >>> Loss.asymmetric(3, ["no", "yes"], positive="yes").for_classes(["yes", "no"]).matrix
        array([[8., 0.],
               [0., 1.]])
        """
        wanted = tuple(plain_name(name) for name in classes)
        if self.classes is None:
            return Loss(self.matrix, wanted, self.actions)
        row_of = {name: row for row, name in enumerate(self.classes)}
        for column, name in enumerate(wanted):
            if name not in row_of:
                raise ValueError(
                    f"Column {column} of the probabilities is for class {name!r}, but the loss has rows only "
                    f"for {listed(self.classes)}."
                )
        return Loss(self.matrix[[row_of[name] for name in wanted]], wanted, self.actions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        same_names = self.classes == other.classes and self.actions == other.actions
        return same_names and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.classes, self.actions))

    def __reduce__(self) -> tuple[Any, ...]:
        # NumPy forgets that an array is read-only when it is copied or pickled; the constructor does not.
        return Loss, (self.matrix, self.classes, self.actions)


def _named(matrix: Any) -> tuple[NDArray[np.float64], list[Any], list[Any]]:
    """Losses with the names of their rows and columns, from a frame or from mappings within a mapping."""
    if hasattr(matrix, "iloc"):
        return as_numbers(matrix, "The loss"), list(matrix.index), list(matrix.columns)
    classes = list(matrix)
    for name in classes:
        if not isinstance(matrix[name], Mapping):
            raise ValueError(f"The loss of class {name!r} is {matrix[name]!r}; a mapping from actions is needed.")
    actions = list(dict.fromkeys(action for name in classes for action in matrix[name]))
    for name in classes:
        for action in actions:
            if action not in matrix[name]:
                raise ValueError(f"The loss of action {action!r} is missing for class {name!r}.")
    rows = [[matrix[name][action] for action in actions] for name in classes]
    return as_numbers(rows, "The loss"), classes, actions


def as_numbers(values: Any, what: str) -> NDArray[np.float64]:
    """Copy values into an array of floats."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} cannot be read as an array of numbers: {error}.") from error


def checked_names(names: Iterable[Any], count: int, what: str, of: str) -> tuple[Any, ...]:
    """Give the names as a tuple, once it is sure that there are enough and no two are the same."""
    plain = tuple(plain_name(name) for name in names)
    if len(plain) != count:
        raise ValueError(f"{len(plain)} {what} are named, {listed(plain)}, but there are {count} {of}.")
    if len(set(plain)) < count:
        twice = next(name for position, name in enumerate(plain) if name in plain[:position])
        raise ValueError(f"The name {twice!r} stands twice among the {what}; each needs a name of its own.")
    return plain


def plain_name(name: Any) -> Any:
    """Turn a NumPy scalar into Python's own, which prints and compares without surprises."""
    return name.item() if isinstance(name, np.generic) else name


def listed(names: Sequence[Any]) -> str:
    """Write names out for an error message."""
    shown = ", ".join(repr(name) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown}, … ({len(names)} in all)"
