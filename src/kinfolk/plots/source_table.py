"""How much of each latent source every task has (Zhang, Ghahramani and Yang 2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["sources"]


def sources(model: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw tasks by sources as shades: blue above zero, orange below, white for none.

    Tasks that have the same sources stand together, and the sources that tasks differ in most come first.

    Parameters
    ----------
    model : fitted LICAClassifier or LICARegressor
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    kinfolk.LICAClassifier.top_features : What the sources are made of.
    """
    table = np.asarray(style.asked_of(model, "sources_", "a model with sources, such as LICAClassifier, has them"))
    if table.shape[1] == 0:
        raise ValueError(f"this {type(model).__name__} has no sources: there is nothing to draw")
    columns = np.argsort(-table.std(axis=0), kind="stable")
    rows = np.arange(len(table))
    if len(rows) > 2:
        from scipy.cluster.hierarchy import leaves_list, linkage

        rows = leaves_list(linkage(table, "average"))
    shown = table[np.ix_(rows, columns)]
    names = [str(model.tasks_.tolist()[place]) for place in rows]
    if ax is None:
        height = float(np.clip(1.2 + 0.2 * len(rows), 2.4, 10.0))
        ax = style.new_axes(float(np.clip(2.6 + 0.4 * len(columns), 3.6, 12.0)), height)
    reach = float(np.abs(shown).max()) or 1.0
    drawn = ax.imshow(shown, cmap=style.diverging(), vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest")
    style.write_rows(ax, names)
    step = -(-len(columns) // 20)
    ticks = list(range(0, len(columns), step))
    ax.set_xticks(ticks, [str(columns[at]) for at in ticks], fontsize=8, color=style.INK)
    for spine in ax.spines.values():
        spine.set_visible(False)
    style.name_axes(ax, "source", "")
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.7, pad=0.02)
    bar.ax.tick_params(labelsize=7, colors=style.ALONE)
    style.write_title(ax, title)
    return ax
