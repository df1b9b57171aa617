"""What sharing brings every task: by how much its loss falls beside that of learning alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["gain"]


def gain(
    gains: Any,
    errors: Any = None,
    labels: Iterable[Any] | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw every task's gain over no sharing, the largest first, with intervals of two standard errors.

    Parameters
    ----------
    gains : array-like of shape (n_tasks,), or a report made with rows
        By how much the loss is smaller than that of a model of the task alone; NaN where it is not known.
    errors : array-like of shape (n_tasks,), optional
        Standard errors.
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
    reliance : Whose rows a task's answers rest on.

    Examples
    --------
    >>> from kinfolk.plots.gain_by_task import gain
    >>> ax = gain([0.1, -0.2], [0.05, 0.02], ["Ann", "Bob"])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['Ann', 'Bob']
    """
    if hasattr(gains, "get_params"):
        raise ValueError("gains are known of rows held out: draw model.report(data=..., y=..., task=...)")
    if hasattr(gains, "document"):
        tasks = gains.document["tasks"]
        if not tasks or "gain_over_alone" not in tasks[0]:
            raise ValueError("this report was made without rows, so that gains are not known: give it data=")
        labels = [entry["task"] for entry in tasks] if labels is None else labels
        errors = [np.nan if entry["gain_error"] is None else entry["gain_error"] for entry in tasks]
        gains = [np.nan if entry["gain_over_alone"] is None else entry["gain_over_alone"] for entry in tasks]
    values = np.asarray(gains, dtype=np.float64)
    reach = np.zeros(len(values)) if errors is None else 2.0 * np.nan_to_num(np.asarray(errors, dtype=np.float64))
    names = style.task_names(labels, len(values))
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
    order = order[~np.isnan(values[order])]
    if ax is None:
        ax = style.new_axes(6.0, float(np.clip(1.0 + 0.22 * len(order), 2.2, 10.0)))
    rows = np.arange(len(order))
    shown, around = values[order], reach[order]
    colour = np.where(shown - around > 0, style.PALETTE[0], np.where(shown + around < 0, style.PALETTE[1], style.ALONE))
    ax.hlines(rows, shown - around, shown + around, colors=colour.tolist(), linewidth=1.2 if len(rows) <= 60 else 0.6)
    ax.scatter(shown, rows, c=colour, s=22 if len(rows) <= 60 else 5, zorder=3)
    ax.axvline(0.0, color=style.INK, linewidth=0.8)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    style.quieten(ax)
    ax.grid(axis="y", visible=False)
    ax.grid(axis="x", color=style.GUIDE, linewidth=0.7)
    style.write_rows(ax, [names[place] for place in order])
    style.name_axes(ax, "loss saved by sharing (to the right of zero, sharing helps)", "")
    style.write_title(ax, title)
    return ax
