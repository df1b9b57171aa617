"""Calibration: how often what was predicted with a probability came true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["reliability"]

# Quantile of the normal distribution of a two-sided interval of 95 %.
_Z = 1.959963984540054


class Bins(NamedTuple):
    """Rows in bins of equal size: mean probability, rate of what came true, its 95 % interval, and their number."""

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n: NDArray[np.int64]


def calibration_bins(predicted: NDArray[np.float64], came: NDArray[np.bool_], n_bins: int = 10) -> Bins:
    """Divide rows into bins of equal numbers by their probability; intervals are Wilson's (1927).

    Examples
    --------
    >>> found = calibration_bins(np.array([0.1, 0.2, 0.8, 0.9]), np.array([False, False, True, True]), 2)
    >>> found.observed.tolist(), found.n.tolist()
    ([0.0, 1.0], [2, 2])
    """
    edges = np.unique(np.quantile(predicted, np.linspace(0.0, 1.0, n_bins + 1))[1:-1])
    at = np.searchsorted(edges, predicted, side="right")
    n = np.bincount(at, minlength=len(edges) + 1)
    there = n > 0
    mean, rate = (np.bincount(at, values, len(n))[there] / n[there] for values in (predicted, came))
    n = n[there]
    middle = (rate + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    reach = _Z * np.sqrt(rate * (1 - rate) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return Bins(mean, rate, middle - reach, middle + reach, n)


def reliability(
    proba: Any,
    came: Any = None,
    *,
    n_bins: int = 10,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw observed rates against predicted probabilities, with intervals; the diagonal is perfect calibration.

    Parameters
    ----------
    proba : array-like of shape (n_rows,), mapping from names to such, or a report made with rows
        Probabilities of an event; several models are drawn side by side.
    came : array-like of bool of shape (n_rows,)
        Whether it came true; a report knows.
    n_bins : int, default=10
        Bins, of equal numbers of rows.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    loss_by_asymmetry : What decisions by these probabilities cost.

    Examples
    --------
    >>> from kinfolk.plots.reliability_diagram import reliability
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> ax = reliability(p, rng.random(500) < p)
    >>> ax.get_xlabel()
    'predicted probability'
    """
    if hasattr(proba, "document"):
        found = proba.document.get("calibration")
        if found is None:
            raise ValueError("this report knows no probabilities of rows held out: make it with data= for labels")
        bins = {"": Bins(*(np.asarray(found[name]) for name in Bins._fields))}
    else:
        if came is None:
            raise ValueError("came is needed: whether what was predicted came true, row by row")
        truth = np.asarray(came, dtype=bool)
        several = proba if hasattr(proba, "items") else {"": proba}
        bins = {}
        for name, values in several.items():
            of_rows = np.asarray(values, dtype=np.float64)
            if of_rows.shape != truth.shape:
                raise ValueError(f"proba has shape {of_rows.shape}, but came {truth.shape}: one number a row is needed")
            bins[str(name)] = calibration_bins(of_rows, truth, n_bins)
    if ax is None:
        ax = style.new_axes(4.6, 4.6)
    ax.plot([0, 1], [0, 1], color=style.ALONE, linewidth=0.9, linestyle=(0, (4, 4)), label="_")
    for place, (name, own) in enumerate(bins.items()):
        colour = style.PALETTE[place % len(style.PALETTE)]
        around = np.stack([own.observed - own.low, own.high - own.observed]).clip(min=0.0)
        look: dict[str, Any] = {"marker": style.MARKERS[place % len(style.MARKERS)], "markersize": 5, "linewidth": 1.4}
        ax.errorbar(own.predicted, own.observed, yerr=around, color=colour, label=name or "_", elinewidth=1.0, **look)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    style.quieten(ax)
    style.name_axes(ax, "predicted probability", "observed rate")
    if any(bins):
        style.write_key(ax, loc="upper left")
    style.write_title(ax, title)
    return ax
