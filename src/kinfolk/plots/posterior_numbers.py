"""How many clusters, or hidden states, the data speak for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["number_of"]


def number_of(
    model: Any,
    what: str = "clusters",
    *,
    task: Any = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the posterior probability of each number of clusters, or of hidden states.

    Parameters
    ----------
    model : fitted model
        For clusters one that was fitted by sampling; for states one of sequences.
    what : {"clusters", "states"}, default="clusters"
        What is counted.
    task : optional
        The task whose states are counted; by default the average over tasks.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    traces : The draws that the posterior is made of.
    """
    if what == "states":
        table = np.asarray(style.asked_of(model, "n_states_", "a model of sequences, such as NestedIHMM, has it"))
        if task is not None and task not in model.tasks_.tolist():
            raise ValueError(f"task {task!r} was not in the training data")
        share = table.mean(axis=0) if task is None else table[model.tasks_.tolist().index(task)]
    elif what == "clusters" and hasattr(model, "n_clusters_"):
        share = np.asarray(model.n_clusters_)
    elif what == "clusters":
        drawn = partitions_of(model)
        numbers = (drawn.max(axis=-1) + 1).ravel()
        share = np.bincount(numbers) / len(numbers)
    else:
        raise ValueError(f"what={what!r}: it is one of 'clusters' and 'states'")
    there = np.flatnonzero(share > 0.0005)
    low, high = int(there.min()), int(there.max())
    if ax is None:
        ax = style.new_axes(float(np.clip(2.0 + 0.35 * (high - low + 1), 3.5, 9.0)), 3.2)
    at = np.arange(low, high + 1)
    ax.bar(at, share[low : high + 1], color=style.PALETTE[0], width=0.8)
    step = -(-len(at) // 20)
    ax.set_xticks(at[::step].tolist(), [str(number) for number in at[::step]])
    style.quieten(ax)
    style.name_axes(ax, f"number of {what}", "posterior probability")
    style.write_title(ax, title)
    return ax


def partitions_of(model: Any) -> np.ndarray[Any, Any]:
    """Clusters of tasks that a sampler drew (chains, draws, tasks)."""
    posterior = style.asked_of(
        model, "posterior_", 'a model that samples, such as ClusteredNB(inference="gibbs"), has it'
    )
    drawn = getattr(posterior, "partitions", None)
    if drawn is None:
        drawn = getattr(getattr(posterior, "traces", None), "partitions", None)
    if drawn is None:
        raise ValueError(f'{type(model).__name__} was not fitted by sampling: take inference="gibbs"')
    return np.asarray(drawn)
