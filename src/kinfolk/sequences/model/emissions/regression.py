"""A vector autoregression in each state, in the data's units: what comes after a sequence, drawn and expected."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import Codes

# A state may be unstable; what it draws and expects far ahead stays a number that can be squared.
_FARTHEST = 1e100


class Regression(NamedTuple):
    """Each state's law: x ~ N(constant + lags slope, covariance), lags the p steps before, the last one first.

    Constants are (…, width), slopes (…, p · width, width) and covariances (…, width, width).
    """

    constant: Floats
    slope: Floats
    covariance: Floats

    def drawn(self, spread: Floats, paths: Codes, before: Floats, rng: np.random.Generator) -> Floats:
        """Draw sequences (n_paths, n_steps, width) that go through states (n_paths, n_steps).

        ``spread`` (L, D, width) makes standard normal numbers noise, and ``before`` (n_paths, p, width) has the steps
        that sequences go on from.
        """
        n_paths, n_steps = paths.shape
        width = before.shape[2]
        lags = np.nan_to_num(before.reshape(n_paths, -1))
        drawn = np.empty((n_paths, n_steps, width))
        for t in range(n_steps):
            state = paths[:, t]
            noise = np.einsum("nd,ndw->nw", rng.standard_normal((n_paths, spread.shape[1])), spread[state])
            x = self.constant[state] + np.einsum("nl,nlw->nw", lags, self.slope[state]) + noise
            drawn[:, t] = np.clip(x, -_FARTHEST, _FARTHEST)
            lags = np.concatenate([np.nan_to_num(drawn[:, t]), lags[:, : lags.shape[1] - width]], axis=1)
        return drawn

    def moments_ahead(self, transitions: Floats, states: Floats, n_steps: int, before: Floats) -> tuple[Floats, Floats]:
        """Means and mean squares (n_sequences, n_steps, width) after sequences whose last states have probabilities.

        Exact: the mean of yyᵀ in each state, y = (1, the last p steps), moves on with the states step by step.
        O(n_steps · n_sequences · L · (p width)³).
        """
        constant, slope, covariance = (np.nan_to_num(part) for part in self)
        n_sequences, n_states = states.shape
        n_lags, width = slope.shape[1:]
        y = np.column_stack([np.ones(n_sequences), np.nan_to_num(before.reshape(n_sequences, -1))])
        joint = states[:, :, None, None] * (y[:, :, None] * y[:, None, :])[:, None]
        # y moves on: one stays, the new step comes first, and the oldest drops out.
        move = np.zeros((n_states, 1 + n_lags, 1 + n_lags))
        move[:, 0, 0] = 1.0
        move[:, 1 : 1 + width, 0], move[:, 1 : 1 + width, 1:] = constant, np.swapaxes(slope, 1, 2)
        move[:, 1 + width :, 1 : 1 + n_lags - width] = np.eye(n_lags - width)
        mean, square = (np.empty((n_sequences, n_steps, width)) for _ in range(2))
        entry = np.arange(1, 1 + width)
        for t in range(n_steps):
            joint = np.einsum("nkij,kl->nlij", joint, transitions)
            joint = np.clip(move @ joint @ np.swapaxes(move, 1, 2), -(_FARTHEST**2), _FARTHEST**2)
            joint[:, :, 1 : 1 + width, 1 : 1 + width] += joint[:, :, :1, :1] * covariance
            mean[:, t] = joint[:, :, 0, 1 : 1 + width].sum(axis=1)
            square[:, t] = joint[:, :, entry, entry].sum(axis=1)
        return mean, square


def last_steps(steps: Floats, bounds: Codes, first: Floats, order: int) -> Floats:
    """The last steps (n_sequences, order, width) of each sequence ``bounds[i]:bounds[i + 1]``, the last one first.

    An entry missing counts as the one before it, and at the beginning as ``first``.

    Examples
    --------
    >>> last_steps(np.array([[1.0], [2.0], [np.nan]]), np.array([0, 3]), np.array([9.0]), order=2).ravel().tolist()
    [2.0, 2.0]
    """
    out = np.tile(first, (len(bounds) - 1, order, 1))
    for i, (start, stop) in enumerate(pairwise(bounds.tolist())):
        own = steps[start:stop]
        place = np.maximum.accumulate(np.where(np.isnan(own), -1, np.arange(len(own))[:, None]), axis=0)
        filled = np.where(place < 0, first, np.take_along_axis(own, np.maximum(place, 0), axis=0))
        known = filled[::-1][:order]
        out[i, : len(known)] = known
    return out
