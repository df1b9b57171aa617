"""What speaks for a label in some tasks, side by side (thesis figure 4-2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["log_ratios"]


def log_ratios(
    model: Any,
    tasks: Sequence[Any] | None = None,
    *,
    label: Any = None,
    against: Any = None,
    n_values: int = 12,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the log ratios of features' values under two labels as bars, one colour and hatching for each task.

    Parameters
    ----------
    model : fitted naive Bayes model
    tasks : sequence, optional
        Which tasks; by default one of each of the largest clusters, four at most.
    label, against : optional
        Two of the classes; by default the last against the first.
    n_values : int, default=12
        How many values to show: those in which the tasks differ most, or are surest.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    cluster_profiles : The same of all clusters, as shades.
    """
    style.asked_of(model, "log_ratios", "a naive Bayes model, such as ClusteredNB, has them")
    if tasks is None:
        numbers, first, size = np.unique(model.partition_, return_index=True, return_counts=True)
        tasks = [model.tasks_.tolist()[first[at]] for at in np.argsort(-size, kind="stable")[: min(4, len(numbers))]]
    names, table = ratio_table(model, "task", label, against)
    unknown = [task for task in tasks if task not in table]
    if unknown:
        raise ValueError(f"task {unknown[0]!r} was not in the training data")
    values = np.array([table[task] for task in tasks])
    chosen = np.sort(np.argsort(-np.nanmax(np.abs(values), axis=0), kind="stable")[:n_values])
    values = values[:, chosen]
    if ax is None:
        ax = style.new_axes(7.0, float(np.clip(1.0 + 0.14 * values.size, 2.6, 11.0)))
    thick = 0.8 / len(tasks)
    for place, (task, own) in enumerate(zip(tasks, values, strict=True)):
        rows = np.arange(len(chosen)) - 0.4 + (place + 0.5) * thick
        look: dict[str, Any] = {"hatch": ("", "///", "...", "xxx", "\\\\\\")[place % 5], "edgecolor": "white"}
        ax.barh(
            rows, own, thick, color=style.PALETTE[place % len(style.PALETTE)], label=str(task), linewidth=0.5, **look
        )
    ax.axvline(0.0, color=style.INK, linewidth=0.8)
    ax.set_ylim(len(chosen) - 0.4, -0.6)
    style.quieten(ax)
    style.write_rows(ax, [names[at] for at in chosen])
    classes = model.classes_.tolist()
    one, other = classes[-1] if label is None else label, classes[0] if against is None else against
    style.name_axes(ax, f"log ratio: right speaks for {one}, left for {other}", "")
    style.write_key(ax, ncols=len(tasks), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    style.write_title(ax, title)
    return ax


def ratio_table(model: Any, by: str, label: Any, against: Any) -> tuple[list[str], dict[Any, np.ndarray[Any, Any]]]:
    """Names of all values of features, and for each task or cluster their log ratios in that order."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(model.log_ratios(label, against, by=by, estimate="mean"), eager_only=True)
    rows = frame.select(by, "feature", "value", "log_ratio").rows()
    names = list(dict.fromkeys(f"{feature} = {value}" for _, feature, value, _ in rows))
    place = {name: at for at, name in enumerate(names)}
    table: dict[Any, np.ndarray[Any, Any]] = {}
    for owner, feature, value, ratio in rows:
        own = table.setdefault(owner, np.full(len(names), np.nan))
        own[place[f"{feature} = {value}"]] = np.nan if ratio is None else ratio
    return names, table
