"""The cluster of every task, iteration by iteration (Ni, Carin and Dunson 2007, figure 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["cluster_evolution"]

Partitions = NDArray[np.int64]

# Wider pictures than this hold more columns than a screen has points: iterations are thinned out evenly.
MOST_COLUMNS = 2_000
# With more iterations than this, lines around every change would hide what they outline: last clusters alone are.
_MOST_OUTLINED = 400


def cluster_evolution(
    clusters: Any,
    labels: Iterable[Any] | None = None,
    *,
    order: Sequence[int] | None = None,
    first: int = 1,
    chain: int = 0,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a row for each task and a column for each iteration, in the colour of the task's cluster.

    What a sampler calls its clusters means nothing and may change at any time. Here clusters are coloured so that from
    one iteration to the next as few tasks as possible change their colour.

    Parameters
    ----------
    clusters : array-like of shape (n_iterations, n_tasks), or fitted model
        The cluster of each task at each iteration, as any whole numbers. A model that was fitted by sampling gives the
        draws that it kept, and its ``tasks_``.
    labels : iterable, optional
        The name of each task. By default the model's tasks, or numbers from 0.
    order : sequence of int, optional
        The tasks from top to bottom, as positions. By default those that end in one cluster stand together.
    first : int, default=1
        The number of the first iteration.
    chain : int, default=0
        Which of a model's chains to draw.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    hinton : What all iterations say together.
    kinfolk.NestedIHMM : A model that draws partitions.

    Examples
    --------
    >>> from kinfolk.plots.evolution import cluster_evolution
    >>> ax = cluster_evolution([[0, 0, 0], [0, 1, 0], [2, 1, 2]], ["Ann", "Bob", "Cat"])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['Ann', 'Cat', 'Bob']
    """
    if style.is_model(clusters):
        labels = clusters.tasks_ if labels is None and hasattr(clusters, "tasks_") else labels
        clusters = _draws(clusters, chain)
    from matplotlib.colors import ListedColormap
    from matplotlib.ticker import MaxNLocator

    table = np.asarray(clusters)
    if table.ndim != 2 or 0 in table.shape or not np.issubdtype(table.dtype, np.integer):
        raise ValueError(
            f"clusters has shape {table.shape} and type {table.dtype}; it needs a whole number for each iteration "
            "(row) and task (column)."
        )
    n_iterations, n_tasks = table.shape
    names = style.task_names(labels, n_tasks)
    aligned = align(table[:: -(-n_iterations // MOST_COLUMNS)])
    places = _by_last(aligned[-1]) if order is None else [int(place) for place in order]
    if sorted(places) != list(range(n_tasks)):
        raise ValueError(f"order must hold each position from 0 to {n_tasks - 1} once; it holds {places}.")
    if ax is None:
        ax = style.new_axes(7.0, float(np.clip(1.2 + 0.26 * n_tasks, 2.4, 11.0)))
    n_colours = int(aligned.max()) + 1
    colours = ListedColormap([style.PALETTE[place % len(style.PALETTE)] for place in range(n_colours)])
    ax.imshow(
        aligned[:, places].T,
        cmap=colours,
        vmin=-0.5,
        vmax=n_colours - 0.5,
        aspect="auto",
        interpolation="nearest",
        extent=(first - 0.5, first + n_iterations - 0.5, n_tasks - 0.5, -0.5),
    )
    if n_tasks <= style.MOST_NAMES:  # between more rows, lines would be wider than the rows
        ax.hlines(np.arange(1, n_tasks) - 0.5, first - 0.5, first + n_iterations - 0.5, colors="white", linewidth=1.0)
    _outline(ax, aligned[:, places].T, first, n_iterations)
    style.write_rows(ax, [names[place] for place in places])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(axis="x", labelsize=8, colors=style.ALONE)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel("iteration (colour: cluster)", fontsize=9, color=style.ALONE)
    style.write_title(ax, title)
    return ax


def _outline(ax: Axes, drawn: Partitions, first: int, n_iterations: int) -> None:
    """Black lines where a row, or an iteration, is of another cluster than the next: seen without colours too."""
    n_rows, n_columns = drawn.shape
    edges = first - 0.5 + n_iterations / n_columns * np.arange(n_columns + 1)
    if n_rows > style.MOST_NAMES or n_columns > _MOST_OUTLINED:
        ends = np.flatnonzero(drawn[1:, -1] != drawn[:-1, -1]) + 0.5
        ax.hlines(ends, edges[0], edges[-1], colors="black", linewidth=0.7)
        return
    row, column = np.nonzero(drawn[1:] != drawn[:-1])
    ax.hlines(row + 0.5, edges[column], edges[column + 1], colors="black", linewidth=0.9)
    row, column = np.nonzero(drawn[:, 1:] != drawn[:, :-1])
    ax.vlines(edges[column + 1], row - 0.5, row + 0.5, colors="black", linewidth=0.6)


def _draws(model: Any, chain: int) -> NDArray[np.int64]:
    """The partitions that one chain of a fitted model drew."""
    owners = 'ClusteredNB with inference="gibbs" and the infinite hidden Markov models draw partitions'
    posterior = style.asked_of(model, "posterior_", owners)
    partitions = getattr(getattr(posterior, "traces", posterior), "partitions", None)
    if partitions is None or getattr(model, "partition_per", None) == "feature":
        raise ValueError(f"this {type(model).__name__} drew no partitions of its tasks; {owners}")
    if not 0 <= chain < len(partitions):
        raise ValueError(f"chain={chain}: the model has {len(partitions)} chains, numbered from 0")
    return np.asarray(partitions[chain], dtype=np.int64)


def align(partitions: NDArray[Any]) -> Partitions:
    """Number the clusters of each partition so that the fewest tasks have another number than in the one before.

    Parameters
    ----------
    partitions : ndarray of shape (n_partitions, n_tasks)

    Returns
    -------
    ndarray of shape (n_partitions, n_tasks)
        Numbers from 0; a cluster that is new gets the smallest number not used at that time.

    Examples
    --------
    >>> align(np.array([[7, 7, 3], [3, 3, 7], [3, 4, 7]])).tolist()
    [[0, 0, 1], [0, 0, 1], [0, 2, 1]]
    """
    from scipy.optimize import linear_sum_assignment

    aligned = np.empty(partitions.shape, dtype=np.int64)
    previous = np.zeros(partitions.shape[1], dtype=np.int64)
    for place, partition in enumerate(partitions):
        _, first, code = np.unique(partition, return_index=True, return_inverse=True)
        shared = np.zeros((len(first), int(previous.max()) + 1))
        np.add.at(shared, (code, previous), 1.0)
        # Between equals the cluster of the first task keeps its number, whatever the sampler calls it.
        shared[shared > 0] -= (1e-6 * first / len(partition))[np.nonzero(shared > 0)[0]]
        ours, theirs = linear_sum_assignment(-shared)
        number = {int(o): int(t) for o, t in zip(ours, theirs, strict=True) if shared[o, t] > 0}
        free = (n for n in range(len(partition) + len(first)) if n not in number.values())
        for cluster in np.argsort(first).tolist():
            if cluster not in number:
                number[cluster] = next(free)
        previous = np.array([number[int(cluster)] for cluster in code], dtype=np.int64)
        aligned[place] = previous
    return aligned


def _by_last(last: Partitions) -> list[int]:
    """Tasks in the order of their last clusters, those by their first task."""
    rank = {int(cluster): place for place, cluster in enumerate(dict.fromkeys(last.tolist()))}
    return sorted(range(len(last)), key=lambda task: (rank[int(last[task])], task))
