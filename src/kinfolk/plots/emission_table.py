"""What hidden states of a model of sequences emit: shares of symbols, or means of columns, as shades and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["emissions"]

_MOST_COLUMNS = 40
# Numbers are written into cells as long as they can be read.
_MOST_WRITTEN = 240


def emissions(model: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw hidden states by what they emit: blue above what all states emit together, orange below.

    A row is a state that tasks use, in the draw of the model's ``predict``; a column is a symbol, with its probability,
    or a column of numbers, with its mean. Shades tell how far that is from the mean over all states, weighed by how
    much time tasks spend in each; they are darkest from half the probability of a symbol on, and from a standard
    deviation of a column of numbers.

    Parameters
    ----------
    model : fitted model of sequences
    ax : Axes, optional
        Where to draw; by default on a new figure.
    title : str, optional
        The title.

    Returns
    -------
    Axes
        With the first 40 columns, if there are more.

    See Also
    --------
    state_sequences : Where sequences are in which state.
    kinfolk.NestedIHMM.states : The states as a table.
    """
    if not hasattr(model, "kept"):  # as loaded models have it themselves
        style.asked_of(model, "n_states_", "a model of sequences, such as NestedIHMM, has states")
        model = model._predictor()
    told = _emitted(model)
    shown, away = told.mean[:, :_MOST_COLUMNS], told.away[:, :_MOST_COLUMNS]
    if ax is None:
        width = float(np.clip(2.4 + 0.55 * shown.shape[1], 3.6, 14.0))
        ax = style.new_axes(width, float(np.clip(1.1 + 0.3 * len(shown), 2.2, 10.0)))
    ax.imshow(away, cmap=style.diverging(), vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    if shown.size <= _MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(shown):
            text = f"{value:.0%}" if told.is_share[column] else f"{value:.3g}"
            ink = "white" if abs(away[row, column]) > 0.55 else style.INK
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
    style.write_rows(ax, told.states)
    ticks = list(range(shown.shape[1]))
    names = [told.columns[place] for place in ticks]
    ax.set_xticks(ticks, names, fontsize=8, color=style.INK, rotation=90 if max(map(len, names)) > 4 else 0)
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    style.name_axes(ax, "what is emitted", "state")
    style.write_title(ax, title)
    return ax


class _Emitted(NamedTuple):
    """States (rows) by what they emit (columns): means, and how far they lie from those of all states, within ±1."""

    states: list[str]
    columns: list[str]
    mean: Floats
    away: Floats
    is_share: list[bool]


def _emitted(predictor: Any) -> _Emitted:
    """What every state that tasks use emits, channel by channel."""
    from kinfolk.sequences.answers.states import states_of

    layout, families = predictor.layout, predictor.kept.emission.channels
    states = states_of(predictor.kept, layout)
    weights = states.shares.sum(axis=0) / states.shares.sum()
    ends = np.cumsum([family.n_parameters for family in families])[:-1]
    names: list[str] = []
    means: list[Floats] = []
    away: list[Floats] = []
    is_share: list[bool] = []
    for channel, family, own in zip(layout.channels, families, np.split(states.parameters, ends, axis=-1), strict=True):
        (mean,), (square,) = family.means(own), family.mean_squares(own)
        apart = mean - weights @ mean
        called = [f"column {at}" if layout.names is None else str(layout.names[at]) for at in channel.columns]
        if channel.symbols is not None:
            of = "" if layout.n_columns == 1 else f"{called[0]}: "
            names += [f"{of}{symbol}" for symbol in channel.symbols]
            apart = np.clip(2.0 * apart, -1.0, 1.0)
        else:
            names += called
            spread = np.sqrt(np.maximum(weights @ square - (weights @ mean) ** 2, 1e-300))
            apart = np.clip(apart / spread, -1.0, 1.0)
        is_share += [channel.symbols is not None] * mean.shape[1]
        means.append(mean)
        away.append(apart)
    n_clusters = len(set(states.cluster.tolist()))
    called_states = [
        (f"{cluster}/{state}" if n_clusters > 1 else str(state)) + f" ({weight:.0%})"
        for cluster, state, weight in zip(states.cluster.tolist(), states.state.tolist(), weights, strict=True)
    ]
    return _Emitted(called_states, names, np.concatenate(means, axis=1), np.concatenate(away, axis=1), is_share)
