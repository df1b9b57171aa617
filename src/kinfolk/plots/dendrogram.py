"""The tree of Bayesian hierarchical clustering, as in figure 4 of Roy and Kaelbling (2007)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["tree"]

TOLERANCE = 1e-9
# Beyond this many nats the height is drawn on a logarithmic scale, or one far merge would flatten all others.
HIGHEST_ON_A_LINEAR_SCALE = 10.0
STEM = 0.05  # of the height of the drawing: what a leaf shows below a merge of height 0


def tree(
    linkage: Any,
    labels: Iterable[Any] | None = None,
    *,
    partition: Iterable[Hashable] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the tree of merges of tasks, and how strong the evidence against each merge was.

    Short vertical edges join tasks that are strongly related, long ones join tasks that are not.

    Parameters
    ----------
    linkage : array-like of shape (n_tasks - 1, 4), or fitted model
        A SciPy linkage matrix whose heights, in nats, are not negative and never fall on the way up. A fitted
        model gives its ``tree_.linkage()``, ``tasks_`` and ``partition_``.
    labels : iterable, optional
        The name of each task. By default the model's tasks, or numbers from 0.
    partition : iterable, optional
        The cluster of each task; by default the model's. Branches inside a cluster of two or more get its
        colour, all others are grey.
    ax : Axes, optional
        Where to draw; by default on a new figure, to be saved by ``ax.figure.savefig(path)``.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    hinton : The probabilities that tasks are kin.
    kinfolk.ClusteredNB : The model whose ``tree_`` is drawn.

    References
    ----------
    D. M. Roy and L. P. Kaelbling (2007), *Efficient Bayesian task-level transfer learning*, IJCAI, figure 4.

    Examples
    --------
    >>> from kinfolk.plots import tree
    >>> ax = tree([[0, 2, 0.1, 2], [1, 3, 40.0, 3]], ["Ann", "Bob", "Cat"], partition=[0, 1, 0])
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['Ann', 'Cat', 'Bob']
    """
    from scipy.cluster.hierarchy import leaves_list

    if style.is_model(linkage):
        owners = 'ClusteredNB with inference="bhc", its default, builds a tree'
        model, linkage = linkage, style.asked_of(linkage, "tree_", owners).linkage()
        labels = model.tasks_ if labels is None else labels
        partition = model.partition_ if partition is None else partition
    merges = _first_task_first(_checked(linkage))
    n_tasks = len(merges) + 1
    names = style.task_names(labels, n_tasks)
    cluster_of = None if partition is None else style.groups_of_tasks(partition, n_tasks, "partition")
    leaves = leaves_list(merges).tolist() if n_tasks > 1 else [0]
    colour_of = {} if cluster_of is None else style.colours(cluster_of)

    if ax is None:
        ax = style.new_axes(float(np.clip(1.2 + 0.26 * n_tasks, 3.6, 14.0)), 4.0)
    tips = _scale_heights(ax, merges)
    if n_tasks == 1:
        ax.plot([0, 0], [tips, 0], color=style.ALONE, linewidth=1.6)
        ax.text(0, 0.5, "One task: there is nothing to merge.", ha="center", va="center", color=style.ALONE)
        ax.yaxis.set_visible(False)
        ax.spines["left"].set_visible(False)
    else:
        _draw_branches(ax, merges, leaves, tips, _node_colours(merges, cluster_of, colour_of))
    leaf_colours = [
        style.INK if cluster_of is None else colour_of.get(cluster_of[leaf], style.ALONE) for leaf in leaves
    ]
    _name_leaves(ax, [names[leaf] for leaf in leaves], leaf_colours)
    style.write_title(ax, title)
    return ax


def _checked(linkage: Any) -> NDArray[np.float64]:
    merges = np.array(linkage, dtype=np.float64)
    if merges.ndim != 2 or merges.shape[1] != 4:
        raise ValueError(
            f"linkage has shape {merges.shape}; it needs four columns, and one row less than there are tasks."
        )
    if len(merges) == 0:
        return merges
    heights = merges[:, 2]
    if not (np.isfinite(heights) & (heights >= -TOLERANCE)).all():
        merge = int((~(np.isfinite(heights) & (heights >= -TOLERANCE))).argmax())
        raise ValueError(f"Merge {merge} of linkage has height {heights[merge]}; a height is finite and not negative.")
    merges[:, 2] = np.maximum(heights, 0.0)
    from scipy.cluster.hierarchy import is_valid_linkage

    if not is_valid_linkage(merges):
        raise ValueError("linkage does not describe a tree: every row must join two nodes that stand alone.")
    above = np.concatenate([np.zeros(len(merges) + 1), merges[:, 2]])
    falls = merges[:, 2] < above[merges[:, :2].astype(int)].max(axis=1) - TOLERANCE
    if falls.any():
        merge = int(falls.argmax())
        raise ValueError(
            f"Merge {merge} of linkage has height {merges[merge, 2]:.6g}, lower than a merge inside it; "
            "heights must not fall on the way up."
        )
    return merges


def _first_task_first(merges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn every merge so that the part with the earliest task is on the left: equal trees look equal."""
    turned = merges.copy()
    earliest = list(range(len(merges) + 1))
    for merge in turned:
        left, right = int(merge[0]), int(merge[1])
        if earliest[left] > earliest[right]:
            merge[0], merge[1] = right, left
        earliest.append(min(earliest[left], earliest[right]))
    return turned


def _node_colours(
    merges: NDArray[np.float64], cluster_of: Sequence[Hashable] | None, colour_of: dict[Hashable, str]
) -> list[str]:
    """Give each merge the colour of the one cluster that all its tasks belong to, or grey."""
    if cluster_of is None:
        return [style.PALETTE[0]] * len(merges)
    mixed = object()
    inside: list[Hashable] = list(cluster_of)
    for left, right in merges[:, :2].astype(int):
        inside.append(inside[left] if inside[left] == inside[right] else mixed)
    return [colour_of.get(cluster, style.APART) for cluster in inside[len(cluster_of) :]]


def _draw_branches(
    ax: Axes, merges: NDArray[np.float64], leaves: Sequence[int], tips: float, colours: Sequence[str]
) -> None:
    n_tasks = len(leaves)
    across = np.empty(2 * n_tasks - 1)
    across[leaves] = np.arange(n_tasks)
    up = np.concatenate([np.full(n_tasks, tips), merges[:, 2]])
    branches = np.empty((n_tasks - 1, 4, 2))
    for place, (left, right) in enumerate(merges[:, :2].astype(int)):
        top = up[n_tasks + place]
        branches[place] = (
            (across[left], up[left]),
            (across[left], top),
            (across[right], top),
            (across[right], up[right]),
        )
        across[n_tasks + place] = (across[left] + across[right]) / 2
    from matplotlib.collections import LineCollection

    # Grey goes first, so that it never crosses a cluster's colour.
    painted = sorted(range(n_tasks - 1), key=lambda place: colours[place] != style.APART)
    ax.add_collection(
        LineCollection(
            [branches[place] for place in painted],
            colors=[colours[place] for place in painted],
            linewidths=1.6,
            capstyle="round",
            zorder=2,
        )
    )


def _scale_heights(ax: Axes, merges: NDArray[np.float64]) -> float:
    """Set the vertical scale, and return how far below 0 the leaves end."""
    # At least one nat, so that a tree of strongly related tasks looks as flat as it is.
    top = max([1.0, *merges[:, 2]])
    if top > HIGHEST_ON_A_LINEAR_SCALE:
        ax.set_yscale("function", functions=(_signed_log1p, _signed_expm1))
        powers = 10.0 ** np.arange(0, int(np.log10(top)) + 1)
        ax.set_yticks([0.0, *powers], ["0", *(f"{power:,.0f}" for power in powers)])
        ax.minorticks_off()
        tips = float(_signed_expm1(np.array(-STEM * np.log1p(top))))
        highest = float(np.expm1(1.03 * np.log1p(top)))
    else:
        tips, highest = -STEM * top, 1.03 * top
    ax.set_ylim(tips, highest)
    return tips


def _signed_log1p(height: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sign(height) * np.log1p(np.abs(height)))


def _signed_expm1(height: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sign(height) * np.expm1(np.abs(height)))


def _name_leaves(ax: Axes, names: Sequence[str], colours: Sequence[str]) -> None:
    n_tasks = len(names)
    ax.set_xlim(-0.7, n_tasks - 0.3)
    places = style.write_names(ax, names, style.size_in_inches(ax)[0])
    for tick, place in zip(ax.get_xticklabels(), places, strict=True):
        tick.set_color(colours[place])
    ax.tick_params(axis="y", labelsize=8, colors=style.ALONE)
    ax.set_ylabel("log evidence against being kin", fontsize=9, color=style.ALONE)
    ax.grid(axis="y", color=style.GUIDE, linewidth=0.7, zorder=1)
    ax.set_axisbelow(True)
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    ax.spines["left"].set_color(style.APART)
