"""What the chains of a sampler drew, and whether they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style
from kinfolk.plots.posterior_numbers import partitions_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["traces"]


def traces(
    model: Any,
    quantity: str = "log joint",
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a quantity draw by draw, a line for each chain, with R-hat and the effective number of draws.

    Parameters
    ----------
    model : fitted model that samples
    quantity : {"log joint", "number of clusters"}, default="log joint"
        What to draw.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title; by default what R-hat and the effective number of draws are.

    Returns
    -------
    Axes

    See Also
    --------
    number_of : The draws of the number of clusters, counted.
    cluster_evolution : Who was with whom, draw by draw.
    """
    if quantity == "number of clusters":
        drawn = partitions_of(model).max(axis=-1) + 1
    elif quantity == "log joint":
        partitions_of(model)
        found = getattr(model.posterior_, "log_joint", None)
        drawn = np.asarray(model.posterior_.traces.log_joint if found is None else found)
    else:
        raise ValueError(f"quantity={quantity!r}: it is one of 'log joint' and 'number of clusters'")
    if ax is None:
        ax = style.new_axes(7.0, 3.0)
    for chain, own in enumerate(drawn):
        dash, colour = style.DASHES[chain % len(style.DASHES)], style.PALETTE[chain % len(style.PALETTE)]
        ax.plot(np.arange(1, len(own) + 1), own, dash, color=colour, linewidth=0.9, label=f"chain {chain + 1}")
    style.quieten(ax)
    style.name_axes(ax, "draw", quantity)
    if 1 < len(drawn) <= 6:
        style.write_key(ax, ncols=2)
    if title is None and getattr(model, "convergence_", None) is not None and quantity in model.convergence_.r_hat:
        found = model.convergence_
        title = f"R-hat {found.r_hat[quantity]:.3f}, {found.ess[quantity]:,.0f} effective draws"
    style.write_title(ax, title)
    return ax
