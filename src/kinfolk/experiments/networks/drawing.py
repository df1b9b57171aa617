"""What the pictures of the structure-learning experiments share: lines with error bars, and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from kinfolk.plots import style
from kinfolk.plots.style import name_axes, quieten

MARKERS = "osD^v"
# Where 1 − δ = 0 stands on an axis of powers of ten.
LEFT_END = -14.0


def draw_line(ax: Axes, place: int, x: Any, mean: Any, error: Any, label: str, colour: str | None = None) -> None:
    """Draw the place-th line of a picture, with error bars."""
    ax.errorbar(
        np.asarray(x),
        np.asarray(mean),
        yerr=np.asarray(error),
        color=style.PALETTE[place % len(style.PALETTE)] if colour is None else colour,
        marker=MARKERS[place % len(MARKERS)],
        markersize=4.5,
        linewidth=1.6,
        elinewidth=0.9,
        capsize=2.0,
        label=label,
    )


def dress(ax: Axes, across: str, up: str, title: str | None = None) -> None:
    """Name the axes, and make them as quiet as the other pictures."""
    name_axes(ax, across, up)
    quieten(ax)
    style.write_title(ax, title)


def penalty_places(exponents: Sequence[float]) -> NDArray[np.float64]:
    """Where penalties δ = 1 − 10^−e stand on an axis of log₁₀(1 − δ); δ = 1 (e = ∞) at the left end, as in the paper.

    Examples
    --------
    >>> penalty_places([0.0, 2.0, np.inf]).tolist()
    [0.0, -2.0, -14.0]
    """
    return np.array([LEFT_END if np.isinf(e) else -e or 0.0 for e in exponents])


def dress_penalty_axis(ax: Axes) -> None:
    """Write powers of ten along an axis of log₁₀(1 − δ)."""
    ticks = [LEFT_END, *range(-12, 1, 2)]
    ax.set_xticks(ticks, ["0", *(f"$10^{{{tick}}}$" if tick else "1" for tick in ticks[1:])])
    ax.minorticks_off()


def penalty_at(exponent: float) -> float:
    """The penalty δ = 1 − 10^−e."""
    return float(-np.expm1(-exponent * np.log(10)))
