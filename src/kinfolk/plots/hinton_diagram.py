"""The Hinton diagram of the probabilities that tasks are kin."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["hinton"]

WIDEST_SIDE = 0.86  # of a cell, at probability 1
TOLERANCE = 1e-6
INVISIBLE = 1e-4  # a side of one hundredth of a cell
MOST_ORDERED_OPTIMALLY = 500
MOST_SQUARES = 200  # tasks a side; with more, a square is smaller than a few points, and a shade says as much


def hinton(
    similarity: Any,
    labels: Iterable[Any] | None = None,
    *,
    order: Sequence[int] | None = None,
    groups: Iterable[Hashable] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the probability that two tasks are kin as a square of that area, for every pair.

    Beyond 200 tasks it is drawn as an image, in which a point is the darker the more probable it is.

    Parameters
    ----------
    similarity : array-like or data frame of shape (n_tasks, n_tasks), or fitted model
        The probabilities, symmetric. A fitted model gives its ``similarity_``, ``tasks_`` and ``partition_``.
    labels : iterable, optional
        The name of each task. By default the model's tasks, a frame's columns, or numbers from 0.
    order : sequence of int, optional
        The tasks from first to last, as positions. By default kin stand together: each group in one piece,
        and the groups, and the tasks in them, in the order of the leaves of an average-linkage tree.
    groups : iterable, optional
        The group of each task; by default the model's. Groups of two or more are boxed and coloured.
    ax : Axes, optional
        Where to draw; by default on a new figure, to be saved by ``ax.figure.savefig(path)``.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    tree : The tree of merges of Bayesian hierarchical clustering.
    cluster_evolution : The draws that a similarity is the average of.

    Examples
    --------
    >>> from kinfolk.plots import hinton
    >>> ax = hinton([[1.0, 0.1, 0.8], [0.1, 1.0, 0.2], [0.8, 0.2, 1.0]], ["Ann", "Bob", "Cat"])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['Ann', 'Cat', 'Bob']
    """
    if style.is_model(similarity):
        owners = "a model that clusters its tasks, such as ClusteredNB or NestedIHMM, has one"
        model, similarity = similarity, style.asked_of(similarity, "similarity_", owners)
        labels = model.tasks_ if labels is None else labels
        groups = model.partition_ if groups is None else groups
    elif labels is None and hasattr(similarity, "columns") and hasattr(similarity, "to_numpy"):
        labels = similarity.columns
    table = _probabilities(similarity)
    n_tasks = len(table)
    names = style.task_names(labels, n_tasks)
    group_of = None if groups is None else style.groups_of_tasks(groups, n_tasks, "groups")
    places = kin_together(table, group_of) if order is None else _checked_order(order, n_tasks)

    shown = table[np.ix_(places, places)]
    grouped = None if group_of is None else [group_of[place] for place in places]
    colour_of = {} if group_of is None else style.colours(group_of)
    if ax is None:
        inches = float(np.clip(1.6 + 0.26 * n_tasks, 3.2, 11.0))
        ax = style.new_axes(inches, inches)
    as_image = n_tasks > MOST_SQUARES
    (_draw_image if as_image else _draw_squares)(ax, shown, grouped, colour_of)
    if grouped is not None:
        _draw_boxes(ax, grouped, colour_of)
    _dress(ax, [names[place] for place in places], "shade" if as_image else "area")
    style.write_title(ax, title)
    return ax


def _probabilities(similarity: Any) -> NDArray[np.float64]:
    table = np.asarray(similarity, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) == 0:
        raise ValueError(f"similarity has shape {table.shape}; it needs a row and a column for each task.")
    within = (table >= -TOLERANCE) & (table <= 1 + TOLERANCE)
    if not within.all():
        row, column = np.argwhere(~within)[0]
        raise ValueError(
            f"similarity holds {table[row, column]:.6g} in row {row}, column {column}; "
            "it needs probabilities, from 0 to 1."
        )
    uneven = np.abs(table - table.T) > TOLERANCE
    if uneven.any():
        row, column = np.argwhere(uneven)[0]
        raise ValueError(
            f"similarity holds {table[row, column]:.6g} in row {row}, column {column}, but "
            f"{table[column, row]:.6g} the other way round; it needs to be symmetric."
        )
    return np.clip((table + table.T) / 2, 0.0, 1.0)


def _checked_order(order: Sequence[int], n_tasks: int) -> list[int]:
    places = [int(place) for place in order]
    if sorted(places) != list(range(n_tasks)):
        raise ValueError(f"order must hold each position from 0 to {n_tasks - 1} once; it holds {places}.")
    return places


def kin_together(table: NDArray[np.float64], group_of: Sequence[Hashable] | None) -> list[int]:
    """Places of tasks in an order in which kin stand together, each group in one piece."""
    n_tasks = len(table)
    if n_tasks < 3:
        return list(range(n_tasks))
    distance = 1.0 - table
    if group_of is not None:
        number_of = {group: number for number, group in enumerate(dict.fromkeys(group_of))}
        numbers = np.array([number_of[group] for group in group_of])
        # Farther than any two tasks of one group can be: each group is then joined up before it meets another.
        distance += 2.0 * (numbers[:, None] != numbers[None, :])
    np.fill_diagonal(distance, 0.0)
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    leaves: list[int] = leaves_list(
        linkage(squareform(distance), "average", optimal_ordering=n_tasks <= MOST_ORDERED_OPTIMALLY)
    ).tolist()
    # A tree can be read from either end; the end where the first task is comes first.
    return leaves[::-1] if leaves.index(0) > n_tasks // 2 else leaves


def _draw_squares(
    ax: Axes,
    table: NDArray[np.float64],
    grouped: Sequence[Hashable] | None,
    colour_of: Mapping[Hashable, str],
) -> None:
    rows, columns = np.nonzero(table > INVISIBLE)
    reach = WIDEST_SIDE * np.sqrt(table[rows, columns]) / 2
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    centres = np.stack([columns, rows], axis=1).astype(float)
    squares = centres[:, None, :] + reach[:, None, None] * corners
    if grouped is None:
        colours = [style.PALETTE[0]]
    else:
        colours = [
            colour_of.get(grouped[i], style.ALONE) if grouped[i] == grouped[j] else style.ALONE
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        ]
    from matplotlib.collections import PolyCollection

    # Snapping to pixels would make squares of one probability differ in size.
    ax.add_collection(PolyCollection(squares, facecolors=colours, linewidths=0, snap=False, zorder=2))


def _draw_image(
    ax: Axes,
    table: NDArray[np.float64],
    grouped: Sequence[Hashable] | None,
    colour_of: Mapping[Hashable, str],
) -> None:
    from matplotlib.colors import to_rgb

    n_tasks = len(table)
    ink = np.empty((n_tasks, n_tasks, 3), dtype=np.float32)
    ink[:] = to_rgb(style.PALETTE[0] if grouped is None else style.ALONE)
    start = 0
    for group, run in groupby(grouped or ()):
        end = start + len(list(run))
        ink[start:end, start:end] = to_rgb(colour_of.get(group, style.ALONE))
        start = end
    ink = 1.0 - (1.0 - ink) * table[..., None].astype(np.float32)
    edges = (-0.5, n_tasks - 0.5, n_tasks - 0.5, -0.5)
    ax.imshow(np.rint(255.0 * ink).astype(np.uint8), extent=edges, interpolation="antialiased", zorder=2)


def _draw_boxes(ax: Axes, grouped: Sequence[Hashable], colour_of: Mapping[Hashable, str]) -> None:
    from matplotlib.patches import Rectangle

    start = 0
    for group, run in groupby(grouped):
        length = len(list(run))
        if group in colour_of:
            ax.add_patch(
                Rectangle(
                    (start - 0.5, start - 0.5),
                    length,
                    length,
                    fill=False,
                    edgecolor=colour_of[group],
                    linewidth=1.5,
                    zorder=3,
                )
            )
        start += length


def _dress(ax: Axes, names: Sequence[str], measure: str) -> None:
    n_tasks = len(names)
    ax.set_xlim(-0.6, n_tasks - 0.4)
    ax.set_ylim(n_tasks - 0.4, -0.6)
    ax.set_aspect("equal")
    style.write_names(ax, names, min(style.size_in_inches(ax)), rows=True)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if n_tasks <= style.MOST_NAMES:
        borders = np.arange(n_tasks + 1) - 0.5
        ax.hlines(borders, -0.5, n_tasks - 0.5, colors=style.GUIDE, linewidth=0.7, zorder=1)
        ax.vlines(borders, -0.5, n_tasks - 0.5, colors=style.GUIDE, linewidth=0.7, zorder=1)
    ax.set_xlabel(f"{measure}: probability of being kin (diagonal: 1)", fontsize=9, color=style.ALONE, labelpad=8)
