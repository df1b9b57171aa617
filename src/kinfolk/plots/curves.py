"""Learning curves with bands: how a measure changes with the number of examples, model by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["learning_curves"]


def learning_curves(
    curves: Mapping[str, tuple[Any, Any]],
    *,
    measure: str = "loss",
    across: str = "examples of a task",
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the mean of a measure against the number of examples, with a band of two standard errors.

    Parameters
    ----------
    curves : mapping
        By a model's name the numbers of examples (n_sizes,), and the measure (n_sizes, n_repetitions) or (n_sizes,).
    measure, across : str
        What the axes are called.
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
    >>> from kinfolk.plots.curves import learning_curves
    >>> ax = learning_curves({"alone": ([1, 2, 4], [[0.9, 0.8], [0.7, 0.6], [0.5, 0.5]])})
    >>> len(ax.lines), len(ax.collections)
    (1, 1)
    """
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError("curves is empty, or no mapping: one from names to sizes and values is needed")
    if ax is None:
        ax = style.new_axes(6.0, 4.0)
    sizes: set[float] = set()
    for place, (name, (x, values)) in enumerate(curves.items()):
        across_at, table = np.asarray(x, dtype=np.float64), np.asarray(values, dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != len(across_at):
            raise ValueError(f"curve {name!r} has {len(across_at)} sizes, but values of shape {table.shape}")
        order = np.argsort(across_at)
        across_at, table = across_at[order], table[order]
        mean, colour = table.mean(axis=1), style.PALETTE[place % len(style.PALETTE)]
        look: dict[str, Any] = {"marker": style.MARKERS[place % len(style.MARKERS)], "markersize": 4.5}
        ax.plot(
            across_at, mean, style.DASHES[place % len(style.DASHES)], color=colour, label=name, linewidth=1.6, **look
        )
        if table.shape[1] > 1:
            reach = 2.0 * table.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
            ax.fill_between(across_at, mean - reach, mean + reach, color=colour, alpha=0.18, linewidth=0)
        sizes |= set(across_at.tolist())
    _dress(ax, sorted(sizes))
    style.quieten(ax)
    style.name_axes(ax, across, measure)
    style.write_key(ax)
    style.write_title(ax, title)
    return ax


def _dress(ax: Axes, sizes: Sequence[float]) -> None:
    if min(sizes) > 0 and max(sizes) > 4 * min(sizes):
        ax.set_xscale("log", base=2)
    if len(sizes) <= 12:
        ax.set_xticks(list(sizes), [f"{size:g}" for size in sizes])
        ax.minorticks_off()
