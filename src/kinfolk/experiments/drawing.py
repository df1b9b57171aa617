"""What the pictures of experiments share: lines with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from kinfolk.plots import style


def draw_methods(
    ax: Axes, averages: pl.DataFrame, measure: str, up: str, across: str, looks: Mapping[str, tuple[str, str]]
) -> None:
    """Draw a measure against the number of examples, one line with error bars for each method.

    Parameters
    ----------
    ax : Axes
    averages : polars.DataFrame
        As `kinfolk.experiments.measuring.average` gives them, by ``method`` and ``examples``.
    measure : str
        Its column.
    up, across : str
        What the axes are called.
    looks : mapping
        Colours and markers of methods; one that has none gets a colour by its place.
    """
    for place, ((method,), rows) in enumerate(averages.group_by("method", maintain_order=True)):
        colour, marker = looks.get(str(method), (style.PALETTE[1 + place % 3], "D"))
        x, mean, error = (rows[column].to_numpy() for column in ("examples", measure, f"{measure}_error"))
        lines: dict[str, Any] = {"markersize": 5, "linewidth": 1.6, "elinewidth": 1.0, "capsize": 2.5}
        ax.errorbar(x, mean, yerr=error, color=colour, marker=marker, label=str(method), **lines)
    dress_examples_axis(ax, sorted(averages["examples"].unique().to_list()))
    style.name_axes(ax, across, up)


def dress_examples_axis(ax: Axes, sizes: Sequence[int]) -> None:
    """Make the horizontal axis one of doubling examples, and the rest as quiet as the other pictures."""
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    style.quieten(ax)
