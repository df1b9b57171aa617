"""Any table as one matrix of floats, for models that add things up: linear models, and trees beside them.

- A number is standardised by the training rows; a whole number of few values also has a column for each value, so that
  a model may bend the line where the values are codes, or shrink these columns away where it is straight.
- A category has a column for each of its frequent values, one where the value is there and zero where it is not. Two
  values take one column of √2 between them: what a difference of two columns with one prior amounts to.
- A column that had gaps in training has one more, which tells where it is missing.

Every column is less its mean over the training rows in which something is known, and zero where nothing is: a missing
value, or one never seen, adds what the average row has. Learning a design and using it takes numpy alone.

Columns of one *group* are alike a priori, so that they may share one shrinkage: the values of one column of the table,
or all that tell of missing values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.tasks.answering import tell_of_unseen
from kinfolk.tasks.columns import learn_schema, without_identifiers
from kinfolk.tasks.schema import Column, Number, as_numbers
from kinfolk.tasks.table import Coded, Held, Table, is_missing

# Columns that the values of one column may take, the most frequent first; rarer ones are like values never seen.
MAX_LEVELS = 32
# Whole numbers of so many values may be codes.
MAX_WHOLE_LEVELS = 12
# Rows that a value needs for a column of its own.
_FEWEST_ROWS = 2
_OF_GAPS = "missing values"


class Term(NamedTuple):
    """What one column of a table becomes: a number, a column for each level, and one for gaps, as far as it has them.

    ``shares`` are those of the levels among training rows that have one of them; ``missing`` is the share of gaps, zero
    where there were none. ``rare`` are further values of a category, which have no column of their own.
    """

    name: str
    number: Number | None
    levels: tuple[Any, ...]
    shares: tuple[float, ...]
    missing: float
    rare: tuple[Any, ...] = ()

    @property
    def n_level_columns(self) -> int:
        """Columns of the levels: of two, one tells them apart."""
        return len(self.levels) if self.is_whole or len(self.levels) != 2 else 1

    @property
    def is_whole(self) -> bool:
        """Whether levels stand beside a number."""
        return self.number is not None and len(self.levels) > 0

    @property
    def names(self) -> list[str]:
        """What each of the columns is called."""
        names = [] if self.number is None else [self.name]
        if self.levels:
            names += [f"{self.name}={level}" for level in self.levels[-self.n_level_columns :]]
        return names + [f"{self.name} is missing"] * (self.missing > 0.0)

    @property
    def kinds(self) -> list[str]:
        """Of each column, whether it is a number, one of levels, or tells of gaps."""
        return ["number"] * (self.number is not None) + ["level"] * self.n_level_columns + ["gap"] * (self.missing > 0)

    def codes(self, values: Held, label: str | None = None) -> NDArray[np.int32]:
        """Place of each value among the levels, −1 for a missing one, a rare one, and one never seen."""
        return Column(self.name, self.levels, None).encode(values, label)

    @property
    def n_values(self) -> int:
        """Values of a category that :meth:`places` tells apart; none of a number."""
        return 0 if self.number is not None else len(self.levels) + len(self.rare)

    def places(self, values: Held, label: str | None = None) -> NDArray[np.int32]:
        """Place of each value among the levels and after them the rare ones, −1 for any other."""
        return Column(self.name, self.levels + self.rare, None).encode(values, label)

    def fill(self, X: Floats, table: Table, i: int) -> None:
        """Write the columns of a table's i-th column into a matrix of zeros."""
        label, place = table.labels[i], 0
        if self.number is not None:
            X[:, 0] = np.nan_to_num(self.number.standardised(as_numbers(table.values(i), label)), nan=0.0)
            place = 1
        if self.levels:
            codes, shares = self.codes(table.columns[i], label), np.array(self.shares)
            rows = np.flatnonzero(codes >= 0)
            if self.n_level_columns == 1:
                X[rows, place] = sqrt(2.0) * (codes[rows] - shares[1])
            else:
                X[rows, place : place + len(shares)] = -shares
                X[rows, place + codes[rows]] += 1.0
        if self.missing:
            X[:, -1] = is_missing(table.values(i)) - self.missing


class Design:
    """The columns of a design matrix, learnt from a training table.

    Attributes
    ----------
    terms : tuple of Term
        One for each column of the table.
    names : list of str
        What each column of the matrix is called.
    feature : ndarray of int
        The column of the table that each column of the matrix was made of.
    kinds : list of str
        "number", "level" or "gap", for each column of the matrix.
    group : ndarray of int
        Columns that may share one shrinkage have one number, counted from 0.
    group_names : list of str
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self.names = [name for term in terms for name in term.names]
        self.kinds = [kind for term in terms for kind in term.kinds]
        self.feature = np.repeat(np.arange(len(terms)), [len(term.names) for term in terms])
        self._ends = np.cumsum([0, *(len(term.names) for term in terms)])
        keys = [(_OF_GAPS if kind == "gap" else int(f), kind) for f, kind in zip(self.feature, self.kinds, strict=True)]
        found = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        self.group = np.array([found[key] for key in keys], dtype=np.int64)
        self.group_names = [_group_name(feature, kind, terms) for feature, kind in found]

    def encode(self, table: Table) -> Floats:
        """The design matrix of a table's rows, all of it finite.

        Parameters
        ----------
        table : Table
            As :func:`kinfolk.tasks.answering.receive_rows` gives it.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        X = np.zeros((table.n_rows, len(self.names)))
        for i, term in enumerate(self.terms):
            term.fill(X[:, self._ends[i] : self._ends[i + 1]], table, i)
        return X

    def read_back(self, table: Table) -> list[list[str]]:
        """The values of rows, readable, as far as they are known."""
        shown = np.full((table.n_rows, len(self.terms)), "(unknown)", dtype=object)
        for i, (term, values) in enumerate(zip(self.terms, table.all_values(), strict=True)):
            if term.number is not None:
                numbers = as_numbers(values, table.labels[i])
                known = ~np.isnan(numbers)
                shown[known, i] = [f"{value:.6g}" for value in numbers[known].tolist()]
            else:
                known = term.codes(table.columns[i], table.labels[i]) >= 0
                shown[known, i] = [str(value) for value in values[known].tolist()]
        result: list[list[str]] = shown.tolist()
        return result

    def ordinals(self, table: Table) -> Floats:
        """One column for each of the table: standardised numbers, or places of values; NaN where nothing is known.

        Trees, which cut a column in two wherever it helps, take it so. They have room for rare values too, of each of
        which they know what its rows say.
        """
        X = np.empty((table.n_rows, len(self.terms)))
        for i, (term, values) in enumerate(zip(self.terms, table.columns, strict=True)):
            if term.number is not None:
                X[:, i] = term.number.standardised(as_numbers(table.values(i), table.labels[i]))
            else:
                codes = term.places(values, table.labels[i])
                X[:, i] = np.where(codes < 0, np.nan, codes)
        return X


def design_rows(table: Table, design: Design) -> Floats:
    """The design matrix of rows to be answered, with a warning where nothing, or nothing of its type, is known."""
    for i, term in enumerate(design.terms):
        if term.levels and term.number is None:
            codes = term.codes(table.columns[i], table.labels[i])
            tell_of_unseen(table.values(i), codes < 0, term.levels, table.labels[i])
    return design.encode(table)


def _group_name(feature: Any, kind: str, terms: tuple[Term, ...]) -> str:
    if kind == "gap":
        return _OF_GAPS
    term = terms[feature]
    return f"values of {term.name}" if kind == "level" and term.is_whole else term.name


def learn_design(
    table: Table,
    weights: Floats | None = None,
    categorical_features: str | Sequence[Any] = "auto",
    declared: Mapping[int, Sequence[Any]] | None = None,
) -> Design:
    """Learn units, levels and gaps from a training table whose rows of weight zero are already gone.

    Parameters
    ----------
    table : Table
    weights : ndarray of shape (n_rows,), optional
        A row of weight 2 counts as two.
    categorical_features : "auto" or list
        Text, truth values and what a frame declares to be categories are; or the columns named.
    declared : mapping, optional
        The categories that a frame's columns declare (:func:`kinfolk.tasks.table.declared_categories`).

    Returns
    -------
    Design

    Examples
    --------
    >>> from kinfolk.tasks.table import read_table
    >>> table = read_table({"size": [1.5, 2.5, None, 3.5], "colour": ["red", "blue", "red", "red"]})
    >>> design = learn_design(table)
    >>> design.names
    ['size', 'size is missing', 'colour=red']
    >>> design.encode(table).round(2).tolist()
    [[-1.22, -0.25, 0.35], [0.0, -0.25, -1.06], [0.0, 0.75, 0.35], [1.22, -0.25, 0.35]]
    """
    declared = {} if declared is None else declared
    auto = isinstance(categorical_features, str)
    mass = np.ones(table.n_rows) if weights is None else weights
    chosen = categorical_features
    if auto and categorical_features == "auto":
        text = [isinstance(held, Coded) or held.dtype.kind not in "iuf" for held in table.columns]
        chosen = [place for place, is_text in zip(table.places, text, strict=True) if place in declared or is_text]
    schema = learn_schema(table, weights, chosen, 1, declared, "gaussian")
    if auto:
        schema = without_identifiers(schema, table, declared)
    terms = []
    for i, column in enumerate(schema.columns):
        values = table.values(i)
        gaps = is_missing(values)
        # All gaps, or none, tell nothing apart.
        missing = 0.0 if gaps.all() or not gaps.any() else float(mass[gaps].sum() / mass.sum())
        if column.number is None:
            assert column.categories is not None
            codes = column.encode(table.columns[i], table.labels[i])
            levels, shares = _frequent(codes, column.categories, mass, MAX_LEVELS)
            # One level is what every row has.
            kept = (levels, shares) if len(levels) > 1 else ((), ())
            rare = _rare(codes, column.categories, mass, kept[0])
            terms.append(Term(column.name, None, *kept, missing, rare))
        else:
            number, levels, shares = _number_and_levels(values[~gaps], mass[~gaps], column.number, auto)
            terms.append(Term(column.name, number, levels, shares, missing))
    return Design(tuple(terms))


def _number_and_levels(
    values: NDArray[Any], mass: Floats, number: Number, auto: bool
) -> tuple[Number | None, tuple[Any, ...], tuple[float, ...]]:
    """What a column of numbers becomes; nothing where all are alike."""
    distinct = np.unique(values.astype(np.float64))
    if len(distinct) < 2:
        return None, (), ()
    if len(distinct) == 2:
        # As two categories are, so that a rare value weighs no more for being rare.
        half = 0.5 * distinct[1] - 0.5 * distinct[0]
        return number._replace(scale=max(sqrt(2.0) * half, np.finfo(np.float64).tiny)), (), ()
    if not auto or len(distinct) > MAX_WHOLE_LEVELS or (distinct != np.floor(distinct)).any():
        return number, (), ()
    if np.abs(distinct).max() >= 2.0**53:
        return number, (), ()
    codes = np.searchsorted(distinct, values).astype(np.int32)
    levels = tuple(int(value) for value in distinct)
    frequent, shares = _frequent(codes, levels, mass, MAX_WHOLE_LEVELS)
    return (number, frequent, shares) if len(frequent) > 1 else (number, (), ())


def _frequent(
    codes: NDArray[np.int32], categories: Sequence[Any], mass: Floats, most: int
) -> tuple[tuple[Any, ...], tuple[float, ...]]:
    """The most frequent categories in their order, those of hardly any row left out, and their shares."""
    known = codes >= 0
    counts = np.bincount(codes[known], mass[known], minlength=len(categories))
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    kept = kept[counts[kept] >= _FEWEST_ROWS] if len(categories) > 2 else kept[counts[kept] > 0]
    shares = counts[kept] / counts[kept].sum() if len(kept) else counts[kept]
    return tuple(categories[k] for k in kept), tuple(shares.tolist())


def _rare(
    codes: NDArray[np.int32], categories: Sequence[Any], mass: Floats, levels: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Categories that are no levels for want of room, in their order; those of a single row tell nothing of others."""
    if len(levels) < MAX_LEVELS:
        return ()
    counts = np.bincount(codes[codes >= 0], mass[codes >= 0], minlength=len(categories))
    taken = set(levels)
    return tuple(categories[k] for k in np.flatnonzero(counts >= _FEWEST_ROWS).tolist() if categories[k] not in taken)
