"""What decisions cost as one kind of mistake costs more and more (thesis figure 4-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["loss_by_asymmetry"]


def loss_by_asymmetry(
    proba: Mapping[str, Any],
    y: Any,
    classes: Sequence[Any],
    *,
    positive: Any,
    powers: Sequence[float] = tuple(range(-6, 7)),
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the mean loss of the best decisions by each model's probabilities against how uneven mistakes are.

    A false alarm costs 1 and a miss 2ⁿ (thesis equation 4.16). Losses are divided by that of the better of the two
    constant decisions, so that 1 is what nobody needs a model for.

    Parameters
    ----------
    proba : mapping
        By a model's name the probabilities (n_rows, 2) of rows that it did not learn from.
    y : array-like of shape (n_rows,)
        What was true.
    classes : sequence of two
        What the columns mean.
    positive : object
        Which of the two is missed, or falsely reported.
    powers : sequence of float
        The n to draw; 0 is the zero-one loss.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    kinfolk.decide : The decisions.
    reliability : Whether the probabilities can be believed.

    Examples
    --------
    >>> from kinfolk.plots.asymmetry import loss_by_asymmetry
    >>> sure = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> ax = loss_by_asymmetry({"model": sure}, ["no", "yes"], ["no", "yes"], positive="yes", powers=[-1, 0, 1])
    >>> ax.lines[-1].get_ydata().tolist()
    [0.0, 0.0, 0.0]
    """
    from kinfolk.decisions import Loss, decide, realised_loss

    if ax is None:
        ax = style.new_axes(6.0, 4.0)
    truth = np.asarray(y)
    losses = [Loss.asymmetric(power, classes, positive=positive) for power in powers]
    constant = [min(realised_loss(truth, np.full(len(truth), label), loss) for label in classes) for loss in losses]
    ax.axhline(1.0, color=style.ALONE, linewidth=0.9, linestyle=(0, (4, 4)), label="always the same decision")
    for place, (name, table) in enumerate(proba.items()):
        cost = [realised_loss(truth, decide(table, loss, classes=classes), loss) for loss in losses]
        share = np.asarray(cost) / np.maximum(constant, np.finfo(float).tiny)
        look: dict[str, Any] = {
            "marker": style.MARKERS[place % len(style.MARKERS)],
            "markersize": 4.5,
            "linewidth": 1.6,
        }
        dash, colour = style.DASHES[place % len(style.DASHES)], style.PALETTE[place % len(style.PALETTE)]
        ax.plot(powers, share, dash, color=colour, label=name, **look)
    ax.set_ylim(bottom=0.0)
    style.quieten(ax)
    style.name_axes(ax, "n: a miss costs 2ⁿ times a false alarm", "loss, as a share of that without a model")
    style.write_key(ax)
    style.write_title(ax, title)
    return ax
