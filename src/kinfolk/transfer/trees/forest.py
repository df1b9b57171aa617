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
_KINDS = ("numbers", "two labels", "labels")


class Forest(NamedTuple):
    """What was learnt.

    A row takes the right turn at a node where its column is above the threshold, else, or where nothing is known of it,
    the left; node k of a tree has the nodes 2k + 1 and 2k + 2 behind it. Its linear predictor is what its task's rows
    say, and all its leaves.

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
    """

    kind: str
    effects: Effects
    of_columns: dict[int, Effects]
    column: NDArray[np.int32]
    threshold: Floats
    leaf: Floats
    noise: float = 1.0

    def score(self, ordinals: Floats, place: NDArray[np.int64]) -> Floats:
        """The linear predictor of rows (rows, outputs)."""
        of_task = self.effects.of(place)
        return of_task + self._leaves(seen_by_trees(ordinals, self.of_columns, of_task))

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


def seen_by_trees(ordinals: Floats, of_columns: dict[int, Effects], of_task: Floats) -> Floats:
    """Rows as trees see them: numbers, effects of categories in their columns' places, and what the task says."""
    if not of_columns:
        return np.hstack([ordinals, of_task])
    parts = []
    for j in range(ordinals.shape[1]):
        if j in of_columns:
            known = ~np.isnan(ordinals[:, j])
            codes = np.where(known, ordinals[:, j], of_columns[j].n_known).astype(np.int64)
            parts.append(np.where(known[:, None], of_columns[j].of(codes), np.nan))
        else:
            parts.append(ordinals[:, [j]])
    return np.hstack([*parts, of_task])


def forest_arrays(forest: Forest) -> dict[str, NDArray[Any]]:
    """The arrays of a forest, by the names that they are saved under."""
    arrays: dict[str, NDArray[Any]] = {
        "forest.column": forest.column,
        "forest.threshold": forest.threshold,
        "forest.leaf": forest.leaf,
        "effects": forest.effects.values,
    }
    return arrays | {f"effects.{j}": effects.values for j, effects in forest.of_columns.items()}


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
    names = [name.removeprefix("effects.") for name in archive.arrays if name.startswith("effects.")]
    if not all(name.isdecimal() and int(name) < n_columns for name in names):
        raise ValueError("its effects are not of its columns")
    of_columns = {int(j): Effects(archive.array(f"effects.{j}", "f", (None, n_outputs))) for j in names}
    width = n_columns + len(of_columns) * (n_outputs - 1) + n_outputs
    if column.size and not 0 <= column.min() <= column.max() < width:
        raise ValueError("its trees look at columns that it does not have")
    return Forest(kind, effects, of_columns, column, threshold, leaf, noise)
