"""Boosted trees as plain arrays, and what they say of rows; with numpy alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive
from kinfolk.transfer.trees.effects import Effects

# What is below every number, and above: files have no infinity.
BELOW, ABOVE = -np.finfo(np.float64).max, np.finfo(np.float64).max
# The place of tasks among columns whose sizes are known.
OF_TASKS = -1
_KINDS = ("numbers", "two labels", "labels")


class Forest(NamedTuple):
    """What was learnt.

    A row takes the right turn at a node where its column is above the threshold, else, or where nothing is known of it,
    the left; node k of a tree has the nodes 2k + 1 and 2k + 2 behind it. Its linear predictor is what its task's rows
    say, and its categories' where these have intercepts of their own, and all its leaves.

    Parameters
    ----------
    kind : str
        "numbers", "two labels" or "labels": one output, or one for each label.
    effects : Effects
        Of the tasks; those of new ones come last.
    of_columns : mapping from int to Effects
        Of the categories of each column that has some, in place of which trees see them.
    column : ndarray of shape (n_rounds, n_outputs, n_nodes)
    threshold : ndarray of the same shape
    leaf : ndarray of shape (n_rounds, n_outputs, n_nodes + 1)
    noise : float
        Standard deviation of numbers about what trees say of rows not learnt from.
    crossed : mapping from int to Effects
        Of columns whose categories have intercepts beside the trees, as tasks have: what each adds, and last, nothing,
        what one never seen does.
    sizes : mapping from int to ndarray of shape (n_known + 1,)
        How many rows each category of a column had, and at ``OF_TASKS`` each task; none of one never seen.
    """

    kind: str
    effects: Effects
    of_columns: dict[int, Effects]
    column: NDArray[np.int32]
    threshold: Floats
    leaf: Floats
    noise: float = 1.0
    crossed: dict[int, Effects] = {}  # noqa: RUF012 - a default, which nobody writes to
    sizes: dict[int, Floats] = {}  # noqa: RUF012

    def score(self, ordinals: Floats, place: NDArray[np.int64]) -> Floats:
        """The linear predictor of rows (rows, outputs)."""
        of_task = self.effects.of(place)
        sizes = [size_of(size, place if j == OF_TASKS else codes_of(ordinals[:, j])) for j, size in self.sizes.items()]
        score = of_task + self._leaves(seen_by_trees(ordinals, self.of_columns, of_task, sizes))
        for j, effects in self.crossed.items():
            codes = codes_of(ordinals[:, j])
            score += effects.of(np.where(codes < 0, effects.n_known, codes))
        return score

    def _leaves(self, X: Floats) -> Floats:
        """The sum of all leaves that rows end in (rows, outputs)."""
        n_rows, depth = len(X), int(np.log2(self.leaf.shape[2]))
        every, total = np.arange(n_rows), np.zeros((n_rows, self.leaf.shape[1]))
        for round_of in range(len(self.leaf)):
            for c in range(self.leaf.shape[1]):
                column, threshold = self.column[round_of, c], self.threshold[round_of, c]
                at = np.zeros(n_rows, dtype=np.int64)
                for _ in range(depth):
                    # What is not known compares as not above.
                    at = 2 * at + 1 + (X[every, column[at]] > threshold[at])
                total[:, c] += self.leaf[round_of, c, at - len(column)]
        return total


def codes_of(column: Floats) -> NDArray[np.int64]:
    """Places of categories, negative where none is known."""
    return np.where(np.isnan(column), -1, column).astype(np.int64)


def sizes_of(place: NDArray[np.int64], weights: Floats, n_known: int) -> Floats:
    """How many rows each task or category has; last, none."""
    known = place >= 0
    return np.append(np.bincount(place[known], weights[known], minlength=n_known).astype(np.float64), 0.0)


def size_of(sizes: Floats, place: NDArray[np.int64], itself: float = 0.0) -> Floats:
    """How many rows there are of the task or category of each, ``itself`` not counted; NaN where none is known.

    In half powers of two, rounded down: it tells large from small, and hardly one large task from another. One column.

    Examples
    --------
    >>> size_of(np.array([1.0, 7.0, 0.0]), np.array([0, 1, 2, -1])).ravel().tolist()
    [2.0, 6.0, 0.0, nan]
    """
    n = np.maximum(sizes[np.minimum(place, len(sizes) - 1)] - itself, 0.0)
    return np.where(place < 0, np.nan, np.floor(2.0 * np.log2(1.0 + n)))[:, None]


def seen_by_trees(ordinals: Floats, of_columns: dict[int, Effects], of_task: Floats, sizes: list[Floats]) -> Floats:
    """Rows as trees see them: numbers, effects of categories in their places, what the task says, and sizes."""
    parts = []
    for j in range(ordinals.shape[1]):
        if j in of_columns:
            codes = codes_of(ordinals[:, j])
            known = codes >= 0
            parts.append(np.where(known[:, None], of_columns[j].of(codes), np.nan))
        else:
            parts.append(ordinals[:, [j]])
    return np.hstack([*parts, of_task, *sizes])


def forest_arrays(forest: Forest) -> dict[str, NDArray[Any]]:
    """The arrays of a forest, by the names that they are saved under."""
    arrays: dict[str, NDArray[Any]] = {
        "forest.column": forest.column,
        "forest.threshold": forest.threshold,
        "forest.leaf": forest.leaf,
        "effects": forest.effects.values,
    }
    arrays |= {f"effects.{j}": effects.values for j, effects in forest.of_columns.items()}
    arrays |= {f"crossed.{j}": effects.values for j, effects in forest.crossed.items()}
    return arrays | {f"sizes.{'task' if j == OF_TASKS else j}": size for j, size in forest.sizes.items()}


def forest_from(archive: Archive, n_columns: int) -> Forest:
    """The forest of a saved model, if its parts fit together."""
    kind, noise = archive.about["kind"], float(archive.about["noise"])
    if not noise > 0.0:
        raise ValueError(f"its noise is {noise}")
    if kind not in _KINDS:
        raise ValueError(f"its kind of targets is {kind!r}")
    effects = Effects(archive.array("effects", "f", (None, None)))
    n_outputs = effects.values.shape[1]
    leaf = archive.array("forest.leaf", "f", (None, n_outputs, None))
    n_nodes = leaf.shape[2] - 1
    column = archive.array("forest.column", "i", (len(leaf), n_outputs, n_nodes))
    threshold = archive.array("forest.threshold", "f", (len(leaf), n_outputs, n_nodes))
    if n_nodes < 1 or (n_nodes + 1) & n_nodes:
        raise ValueError(f"its trees have {n_nodes} nodes, which are none of whole levels")
    of_columns, crossed = (
        {j: Effects(archive.array(name, "f", (None, n_outputs))) for j, name in _arrays_of(archive, what, n_columns)}
        for what in ("effects", "crossed")
    )
    sizes = {j: archive.array(name, "f", (None,)) for j, name in _arrays_of(archive, "sizes", n_columns)}
    every = [each.values for each in (effects, *of_columns.values(), *crossed.values())]
    if not all(map(len, (*every, *sizes.values()))):
        raise ValueError("its effects are of nothing")
    width = n_columns + len(of_columns) * (n_outputs - 1) + n_outputs + len(sizes)
    if column.size and not 0 <= column.min() <= column.max() < width:
        raise ValueError("its trees look at columns that it does not have")
    return Forest(kind, effects, of_columns, column, threshold, leaf, noise, crossed, sizes)


def _arrays_of(archive: Archive, what: str, n_columns: int) -> list[tuple[int, str]]:
    """The columns, in order, that a file has something of, and the names of the arrays."""
    found = list[tuple[int, str]]()
    for name in archive.arrays:
        if name == "sizes.task" and what == "sizes":
            found.append((OF_TASKS, name))
        elif name.startswith(f"{what}."):
            place = name.removeprefix(f"{what}.")
            if not (place.isdecimal() and int(place) < n_columns):
                raise ValueError("its effects are not of its columns")
            found.append((int(place), name))
    return sorted(found)
