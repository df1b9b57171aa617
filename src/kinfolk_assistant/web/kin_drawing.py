"""The Hinton diagram and the tree of a group of people, laid out for a page; its template draws them as SVG.

The pages draw them themselves, rather than by `kinfolk.plots`, so that they follow dark mode and need no image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

WIDEST_SIDE = 0.86  # of a cell, at probability 1
INVISIBLE = 1e-4
STEM = 0.04  # so far below 0 a leaf begins, to be seen below a merge of height 0


class Cell(NamedTuple):
    """A square of the Hinton diagram; its area is the probability, its side a share of the cell's."""

    row: int
    column: int
    share: float
    side: float


class Twig(NamedTuple):
    """A line of the tree: along a row from one height to another (0: surely kin, 1: surely not), then to a row."""

    row: float
    start: float
    height: float
    to_row: float
    yours: bool


class KinDrawing(NamedTuple):
    """What is drawn: names from first to last, the place of the one who looks, squares and twigs."""

    names: list[str]
    you: int | None
    cells: list[Cell]
    twigs: list[Twig]
    margin: int


def draw_kin(names: Sequence[str], similarity: NDArray[np.float64], you: int | None = None) -> KinDrawing:
    """Lay out who is kin to whom, kin beside each other.

    Parameters
    ----------
    names : sequence of str
        The people.
    similarity : array of shape (n, n)
        The probability that two of them are kin.
    you : int, optional
        The place of the one who looks.

    Examples
    --------
    >>> drawing = draw_kin(["Ann", "Bob", "Cat"], np.array([[1, 0.1, 0.8], [0.1, 1, 0.2], [0.8, 0.2, 1]]), 2)
    >>> drawing.names, drawing.you, [round(twig.height, 3) for twig in drawing.twigs]
    (['Ann', 'Cat', 'Bob'], 1, [0.2, 0.85, 0.2, 0.85])
    """
    n = len(names)
    merges = np.zeros((0, 4))
    order = list(range(n))
    if n > 1:
        distance = 1.0 - (similarity + similarity.T) / 2
        np.fill_diagonal(distance, 0.0)
        merges = linkage(squareform(distance.clip(0.0), checks=False), "average", optimal_ordering=n > 2)
        order = leaves_list(merges).tolist()
        if order.index(0) > n // 2:
            order.reverse()
    shown = similarity[np.ix_(order, order)]
    rows, columns = np.nonzero(shown > INVISIBLE)
    cells = [
        Cell(i, j, float(shown[i, j]), WIDEST_SIDE * float(np.sqrt(shown[i, j])))
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    longest = max((min(len(name), 24) for name in names), default=0)
    return KinDrawing(
        [names[place] for place in order],
        None if you is None else order.index(you),
        cells,
        _twigs(merges, order, you),
        # A letter of the drawing's type is about 7 units wide.
        16 + 7 * longest,
    )


def _twigs(merges: NDArray[np.float64], order: Sequence[int], you: int | None) -> list[Twig]:
    n = len(order)
    row_of = dict(zip(order, map(float, range(n)), strict=True))
    height_of = dict.fromkeys(range(n), -STEM)
    your_path = {you}
    twigs = []
    for number, (left, right, height, _) in enumerate(merges.tolist(), start=n):
        pair = (int(left), int(right))
        row_of[number] = (row_of[pair[0]] + row_of[pair[1]]) / 2
        height_of[number] = height
        twigs += [Twig(row_of[one], height_of[one], height, row_of[number], one in your_path) for one in pair]
        if your_path.intersection(pair):
            your_path.add(number)
    # Yours come last, so that they are drawn over the others.
    return sorted(twigs, key=lambda twig: twig.yours)
