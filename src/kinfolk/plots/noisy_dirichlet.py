"""Samples of the prototype model's noise on the triangle of three probabilities (thesis figure 2-5, eq. 2.30)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["noise_model"]

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
# Copies so near to a corner that the dots of many are one dot are counted in writing beside it.
AT_A_CORNER = 0.99
FEWEST_COUNTED = 0.02


def noise_model(
    prototype: ArrayLike = (1 / 3, 1 / 3, 1 / 3),
    strengths: Sequence[float] = (100.0, 10.0, 3.0, 0.5, 0.1, 0.01),
    *,
    n_samples: int = 1000,
    values: Sequence[Any] | None = None,
    axes: Sequence[Axes] | NDArray[Any] | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[Any]:
    """Draw samples of the noisy Dirichlet, a triangle for every strength.

    Each dot is a copy θ ~ Dirichlet(K θ̄) of the prototype θ̄, which is marked by a cross: the nearer to a corner, the
    more probable that corner's value. Where K θ̄ falls below 1 the copies leave the prototype for the corners; the share
    of them that has arrived is written there.

    Parameters
    ----------
    prototype : array-like of shape (3,)
        Probabilities of three values, above zero, in the order left, right, top.
    strengths : sequence of float
        The strengths K, above zero.
    n_samples : int, default=1000
        Number of copies in each triangle.
    values : sequence of three names, optional
        Written at the corners of the first triangle.
    axes : sequence of Axes, optional
        Where to draw, one for each strength; by default on a new figure, three side by side.
    random_state : int, Generator or None, default=0
        Seed of the samples.

    Returns
    -------
    array of Axes, one for each strength

    References
    ----------
    D. M. Roy, "Clustered Naive Bayes", M.Eng. thesis, MIT, 2006, figure 2-5.

    Examples
    --------
    >>> from kinfolk.plots.noisy_dirichlet import noise_model
    >>> axes = noise_model(strengths=[50, 0.1], n_samples=200)
    >>> [ax.get_title() for ax in axes]
    ['K = 50', 'K = 0.1']
    """
    centre = _probabilities(prototype)
    wanted = [_strength(strength) for strength in strengths]
    if not wanted:
        raise ValueError("strengths is empty; it needs a strength for each triangle.")
    if values is not None and len(values) != 3:
        raise ValueError(f"values names {len(values)} values; a triangle has three.")
    places = _new_axes(len(wanted)) if axes is None else list(np.asarray(axes, dtype=object).ravel())
    if len(places) != len(wanted):
        raise ValueError(f"axes holds {len(places)} axes for {len(wanted)} strengths.")
    rng = np.random.default_rng(random_state)
    for panel, (ax, strength) in enumerate(zip(places, wanted, strict=True)):
        copies = rng.dirichlet(strength * centre, size=n_samples)
        _draw_triangle(ax, copies, centre, values if panel == 0 else None)
        ax.set_title(f"K = {strength:g}", color=style.INK, fontsize=11, pad=8)
    return np.array(places, dtype=object)


def _probabilities(prototype: ArrayLike) -> NDArray[np.float64]:
    centre = np.asarray(prototype, dtype=np.float64)
    if centre.shape != (3,) or not (centre > 0).all() or not np.isclose(centre.sum(), 1.0):
        raise ValueError(f"prototype is {centre.tolist()}; it needs three probabilities above zero that add up to one.")
    return np.asarray(centre / centre.sum())


def _strength(given: float) -> float:
    strength = float(given)
    if not 0.0 < strength < np.inf:
        raise ValueError(f"strengths holds {given!r}; every strength needs to be a finite number above zero.")
    return strength


def _new_axes(n: int) -> list[Axes]:
    # Imported here because pyplot chooses a backend, which is not ours to choose where axes are given.
    import matplotlib.pyplot as plt

    columns = min(n, 3)
    rows = -(-n // columns)
    _, grid = plt.subplots(rows, columns, figsize=(2.8 * columns, 2.9 * rows), layout="constrained", squeeze=False)
    for spare in grid.ravel()[n:]:
        spare.set_visible(False)
    return list(grid.ravel()[:n])


def _draw_triangle(
    ax: Axes, copies: NDArray[np.float64], centre: NDArray[np.float64], values: Sequence[Any] | None
) -> None:
    from matplotlib.patches import Polygon

    ax.add_patch(Polygon(CORNERS, closed=True, fill=False, edgecolor=style.APART, linewidth=1.0, zorder=1))
    x, y = (copies @ CORNERS).T
    ax.scatter(x, y, s=7, color=style.PALETTE[0], alpha=0.3, linewidths=0, zorder=2, clip_on=False)
    x, y = centre @ CORNERS
    ax.scatter([x], [y], s=60, marker="+", color=style.PALETTE[1], linewidths=1.6, zorder=3)
    names = ["", "", ""] if values is None else [str(value) for value in values]
    shares = (copies >= AT_A_CORNER).mean(axis=0)
    for (x, y), name, share in zip(CORNERS, names, shares, strict=True):
        text = f"{name} {share:.0%}" if share >= FEWEST_COUNTED else name
        beyond = -0.08 if y == 0.0 else 0.08
        ax.text(x, y + beyond, text.strip(), ha="center", va="center", fontsize=8, color=style.INK, parse_math=False)
    ax.set_xlim(-0.14, 1.14)
    ax.set_ylim(-0.13, 1.0)
    ax.set_aspect("equal")
    ax.set_axis_off()
