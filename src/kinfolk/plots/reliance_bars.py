"""Whose rows a task's answers rest on: its own, its kin's, everybody's, or the prior's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["reliance"]

_SOURCES = ("own rows", "kin", "everybody", "prior")
_COLOURS = ("#0072B2", "#56B4E9", "#999999", "#FFFFFF")
_HATCHES = ("", "///", "...", "")


def reliance(
    shares: Any,
    labels: Iterable[Any] | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw for every task a bar of what its answers rest on, starting with those that rest most on their own rows.

    Parameters
    ----------
    shares : fitted naive Bayes model, report of one, or array-like of shape (n_tasks, 4)
        Shares of the task's own rows, its kin, everybody and the prior, adding up to one.
    labels : iterable, optional
        The name of each task; by default numbers from 0.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    gain : What sharing brings each task.

    Examples
    --------
    >>> from kinfolk.plots.reliance_bars import reliance
    >>> ax = reliance([[0.2, 0.7, 0.0, 0.1], [0.9, 0.0, 0.0, 0.1]], ["Ann", "Bob"])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['Bob', 'Ann']
    """
    if hasattr(shares, "get_params"):
        style.asked_of(shares, "tasks_", "")
        shares = shares.report()
    if hasattr(shares, "document"):
        tasks = shares.document["tasks"]
        if not tasks or "rests_on" not in tasks[0]:
            raise ValueError("this report's model does not say whose rows its answers rest on; naive Bayes models do")
        labels = [entry["task"] for entry in tasks] if labels is None else labels
        shares = [list(entry["rests_on"].values()) for entry in tasks]
    table = np.asarray(shares, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(_SOURCES):
        raise ValueError(f"shares has shape {table.shape}; it needs four numbers for each task")
    names = style.task_names(labels, len(table))
    order = np.argsort(-table[:, 0], kind="stable")
    if ax is None:
        ax = style.new_axes(6.5, float(np.clip(1.2 + 0.24 * len(table), 2.2, 10.0)))
    start = np.zeros(len(table))
    many = len(table) > style.MOST_NAMES
    for source, (name, colour, hatch) in enumerate(zip(_SOURCES, _COLOURS, _HATCHES, strict=True)):
        own = table[order, source]
        look: dict[str, Any] = {"edgecolor": colour if many else style.INK, "linewidth": 0.0 if many else 0.5}
        look |= {} if many else {"hatch": hatch}
        ax.barh(np.arange(len(table)), own, 1.0 if many else 0.8, left=start, color=colour, label=name, **look)
        start += own
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(len(table) - 0.4, -0.6)
    style.quieten(ax)
    ax.grid(axis="y", visible=False)
    style.write_rows(ax, [names[place] for place in order])
    style.name_axes(ax, "share of what answers rest on", "")
    where: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    legend = ax.legend(frameon=False, fontsize=8, labelcolor=style.INK, ncols=4, **where)
    for patch in legend.get_patches():
        patch.set(edgecolor=style.INK, linewidth=0.5)  # white is seen in the key by its edge
    style.write_title(ax, title)
    return ax
