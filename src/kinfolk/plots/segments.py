"""Sequences cut into segments by their most probable hidden states."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["state_sequences"]

_MOST_SEQUENCES = 60
# Segments that take less of the width than this are too narrow for the number of their state.
_LEAST_WRITTEN = 0.025


def state_sequences(
    model: Any,
    X: Any,
    lengths: Any = None,
    *,
    task: Any = None,
    decoding: str = "viterbi",
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a row for each sequence, in the colour of the hidden state that each observation most probably has.

    Segments that are wide enough have the number of their state, as in ``predict``; numbers and colours mean the same
    within a task, and in all tasks of a cluster.

    Parameters
    ----------
    model : fitted model of sequences
    X, lengths, task
        Sequences, as in the model's ``predict``.
    decoding : {"viterbi", "marginal"}, default="viterbi"
        How states are told, as in ``predict``.
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes
        With the first 60 sequences, if there are more.

    See Also
    --------
    kinfolk.NestedIHMM.predict : The states.
    number_of : How many states there are.
    """
    from matplotlib.colors import ListedColormap

    if not hasattr(model, "decode"):  # as loaded models have it themselves
        style.asked_of(model, "n_states_", "a model of sequences, such as NestedIHMM, has states")
        model = model._predictor()
    decoded = model.decode(X, lengths, task=task, decoding=decoding)
    states, lengths = decoded.states, decoded.lengths[:_MOST_SEQUENCES]
    several = len(model.tasks_) > 1 or task is not None
    names = [str(own) for own in (decoded.tasks if several else decoded.called)][: len(lengths)]
    table = np.full((len(lengths), int(lengths.max())), np.nan)
    start = 0
    for row, length in enumerate(lengths):
        table[row, :length] = states[start : start + length]
        start += int(length)
    if ax is None:
        ax = style.new_axes(8.0, float(np.clip(1.0 + 0.26 * len(lengths), 1.8, 10.0)))
    n_colours = int(np.nanmax(table)) + 1
    colours = ListedColormap([style.PALETTE[place % len(style.PALETTE)] for place in range(n_colours)])
    look: dict[str, Any] = {"vmin": -0.5, "vmax": n_colours - 0.5, "aspect": "auto", "interpolation": "nearest"}
    ax.imshow(table, cmap=colours, **look)
    # Where a segment ends, and which state it is in, is seen without colours too.
    for row, own in enumerate(table):
        known = own[~np.isnan(own)].astype(int)
        ends = np.flatnonzero(np.diff(known) != 0) + 0.5
        ax.vlines(ends, row - 0.5, row + 0.5, colors="black", linewidth=0.7)
        for begin, end in pairwise([-0.5, *ends.tolist(), len(known) - 0.5]):
            if end - begin >= _LEAST_WRITTEN * table.shape[1]:
                state = int(known[round(begin + 0.5)])
                ink = style.ink_on(style.PALETTE[state % len(style.PALETTE)])
                ax.text((begin + end) / 2, row, str(state), ha="center", va="center", fontsize=7, color=ink)
    ax.hlines(np.arange(1, len(lengths)) - 0.5, -0.5, table.shape[1] - 0.5, colors="white", linewidth=1.5)
    style.write_rows(ax, names)
    ax.tick_params(axis="x", labelsize=8, colors=style.ALONE)
    for spine in ax.spines.values():
        spine.set_visible(False)
    style.name_axes(ax, "observation", "")
    style.write_title(ax, title)
    return ax
