"""What clusters believe, side by side: the log ratios of all values of features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style
from kinfolk.plots.log_ratio_bars import ratio_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["cluster_profiles"]

_MOST_CLUSTERS = 40


def cluster_profiles(
    model: Any,
    *,
    label: Any = None,
    against: Any = None,
    n_values: int = 30,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a column for each cluster and a row for each value: blue speaks for a label, orange against it.

    Parameters
    ----------
    model : fitted naive Bayes model
    label, against : optional
        Two of the classes; by default the last against the first.
    n_values : int, default=30
        How many values to show: those in which clusters differ most.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes
        With at most 40 clusters, the largest.

    See Also
    --------
    log_ratios : A few tasks as bars.
    """
    style.asked_of(model, "log_ratios", "a naive Bayes model, such as ClusteredNB, has them")
    names, table = ratio_table(model, "cluster", label, against)
    numbers, size = np.unique(model.partition_, return_counts=True)
    shown = [int(number) for number in numbers[np.argsort(-size, kind="stable")] if number in table][:_MOST_CLUSTERS]
    values = np.array([table[number] for number in shown]).T
    spread = np.nanmax(values, axis=1) - np.nanmin(values, axis=1) if len(shown) > 1 else np.abs(values[:, 0])
    chosen = np.sort(np.argsort(-np.nan_to_num(spread), kind="stable")[:n_values])
    values = values[chosen]
    if ax is None:
        height = float(np.clip(1.4 + 0.24 * len(chosen), 2.6, 11.0))
        ax = style.new_axes(float(np.clip(3.6 + 0.5 * len(shown), 4.5, 14.0)), height)
    reach = float(np.nanmax(np.abs(values))) or 1.0
    drawn = ax.imshow(values, cmap=style.diverging(), vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest")
    sizes = dict(zip(numbers.tolist(), size.tolist(), strict=True))
    step = -(-len(shown) // 20)
    ticks = list(range(0, len(shown), step))
    ax.set_xticks(
        ticks, [f"{shown[at]} ({sizes[shown[at]]})" for at in ticks], fontsize=8, color=style.INK, rotation=90
    )
    style.write_rows(ax, [names[at] for at in chosen])
    for spine in ax.spines.values():
        spine.set_visible(False)
    style.name_axes(ax, "cluster (number of its tasks)", "")
    classes = model.classes_.tolist()
    one, other = classes[-1] if label is None else label, classes[0] if against is None else against
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.7, pad=0.02)
    bar.set_label(f"log ratio: blue for {one}, orange for {other}", fontsize=8, color=style.ALONE)
    bar.ax.tick_params(labelsize=7, colors=style.ALONE)
    style.write_title(ax, title)
    return ax
