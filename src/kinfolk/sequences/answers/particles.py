"""How probable sequences are with transition rows and shares of codes summed out: a particle filter over draws.

A draw of the posterior has the hidden states of all steps that were learnt from. Given those, a task's transition rows
are Dirichlet with pseudo-counts αβ + κe_r + n_r, and the shares of codes with h + n. One could draw rows and shares,
and average likelihoods over draws: unbiased, but of a move or a code that a state has not shown yet nearly every draw
says never, and one in thousands says often. Over hundreds of draws, sequences of 40 steps of music were thought 8 to 20
nats less probable than they are, and how much less was up to the seed.

So each draw is a particle, which goes along a sequence: with probability p(s_t, o_t | what it has seen) it moves to a
state, and counts the move and the code as seen (an urn). Its weight is multiplied by p(o_t | what it has seen); where
few particles have most of the weight, they take the places of the others. The mean weight is an unbiased estimate of
the posterior predictive likelihood (C. M. Carvalho, M. S. Johannes, H. F. Lopes and N. G. Polson, "Particle Learning
and Smoothing", Statist. Sci. 25, 2010). What θ is of numbers and counts stays as it was drawn.

Every sequence meets the same random numbers, so that its answer hangs on nothing but itself. Only numpy is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.answers.new_tasks import Empty, base_of_a_new_task, joining_weights, pseudo_counts
from kinfolk.sequences.model.draw import Draw
from kinfolk.sequences.model.emissions.emission import Emission

# Fewer draws than this are taken several times; particles have at most so many cells in all. On music, twice as many as
# 400 halved what a mean over 94 sequences changes by with other random numbers, to 0.1 nats, and 3,200 give 0.5 more.
_FEWEST_PARTICLES, _MOST_CELLS = 800, 1 << 25
# Particles of a new task, each a cluster of a draw, unless a single draw has more of them.
_MOST_OF_NEW = 1000
# Densities of numbers and counts that are in memory at once.
_MOST_DENSITIES = 1 << 22
# Particles take each other's places where they are worth less than this share of them.
WORN_OUT = 0.5


class Crowd(NamedTuple):
    """N particles somewhere on a sequence.

    Attributes
    ----------
    log_weights : array of shape (N,)
        The logarithm of their sum is log p(what was seen so far).
    origin : int64 array of shape (N,)
        Whose θ a particle has, among those that the crowd began with.
    row : int64 array of shape (N,)
        The transition row that it leaves by: 0 at the start, s + 1 in state s.
    rows : float32 array of shape (N, L + 1, L)
        Pseudo-counts of its moves.
    codes : float32 array of shape (N, L, C)
        Pseudo-counts of the codes of each state, channels side by side.
    """

    log_weights: Floats
    origin: NDArray[np.int64]
    row: NDArray[np.int64]
    rows: NDArray[np.float32]
    codes: NDArray[np.float32]

    def copy(self) -> Crowd:
        """The same particles, to be moved in place."""
        return Crowd(self.log_weights.copy(), self.origin.copy(), self.row.copy(), self.rows.copy(), self.codes.copy())

    def log_likelihood(self) -> float:
        """Log p(what was seen so far)."""
        largest = self.log_weights.max()
        return float(np.log(np.exp(self.log_weights - largest).sum()) + largest)


class Steps(NamedTuple):
    """Some steps of a sequence as particles read them.

    Attributes
    ----------
    codes : int64 array of shape (T, M)
        Places of what M channels show among all codes; −1 where it is missing or unknown.
    channels : int64 array of shape (M + 1,)
        Where the codes of each channel begin.
    likelihood, log_scale : arrays of shape (n, D, L) and (n, D)
        What all else says of rows of steps by the θ of D particles, divided by the largest of a particle's, and its
        logarithm.
    row : int64 array of shape (T,)
        The row of each step.
    """

    codes: NDArray[np.int64]
    channels: NDArray[np.int64]
    likelihood: Floats
    log_scale: Floats
    row: NDArray[np.int64]


class Start(NamedTuple):
    """Particles before the first step, and the θ (D, L, P) that they have."""

    crowd: Crowd
    parameters: Floats
    emission: Emission
    seed: int

    def steps(self, observations: tuple[NDArray[Any], ...]) -> Iterator[Steps]:
        """A sequence in parts that take little memory."""
        families = self.emission.channels
        n_steps = len(observations[0])
        codes, masked, channels = [], [], [0]
        for family, shown in zip(families, observations, strict=True):
            if not family.counts_codes:
                masked.append(shown)
                continue
            known = shown < family.n_statistics
            codes.append(np.where(known & (shown >= 0), shown + channels[-1], -1))
            # An unknown code has a share of its own in θ, which is never drawn.
            masked.append(np.where(known, -1, shown))
            channels.append(channels[-1] + family.n_statistics)
        places = np.array(codes, dtype=np.int64).reshape(len(codes), n_steps).T
        starts = np.array(channels, dtype=np.int64)
        n_thetas, n_states, _ = self.parameters.shape
        counted = [family.counts_codes for family in families]
        if all(counted) and all((shown < 0).all() for shown in masked):
            flat = np.ones((1, n_thetas, n_states))
            yield Steps(
                np.ascontiguousarray(places), starts, flat, np.zeros((1, n_thetas)), np.zeros(n_steps, np.int64)
            )
            return
        width = max(1, _MOST_DENSITIES // (n_thetas * n_states))
        for first in range(0, n_steps, width):
            some = tuple(shown[first : first + width] for shown in masked)
            table, row = self.emission.log_densities(self.parameters.reshape(n_thetas * n_states, -1), some)
            log_density = table.reshape(len(table), n_thetas, n_states)
            log_scale = log_density.max(axis=2)
            likelihood = np.exp(log_density - log_scale[:, :, None])
            own = np.ascontiguousarray(places[first : first + width])
            yield Steps(own, starts, likelihood, log_scale, np.asarray(row, dtype=np.int64))

    def uniforms(self) -> np.random.Generator:
        """Where the random numbers of any sequence come from."""
        return np.random.default_rng([self.seed, 4])


def particles_of_task(draws: Sequence[Draw], weights: Floats, task: int, emission: Emission, seed: int) -> Start:
    """Particles of a task that was learnt: its rows and its cluster's states in each draw."""
    chosen = _affordable(draws, len(draws))
    n_times = max(1, -(-_FEWEST_PARTICLES // len(chosen)))
    ways = [(draws[place], int(draws[place].cluster[task]), weights[place]) for place in chosen.tolist()]
    rows, codes, parameters = [], [], []
    for draw, cluster, _ in ways:
        assert draw.row_counts is not None
        assert draw.code_counts is not None
        rows.append(draw.row_counts[task])
        codes.append(draw.code_counts[cluster])
        parameters.append(draw.parameters[cluster])
    return _start(rows, codes, parameters, [weight for *_, weight in ways], n_times, emission, seed)


def particles_of_new_task(
    draws: Sequence[Draw],
    weights: Floats,
    empty: Empty,
    room: int | None,
    emission: Emission,
    seed: int,
) -> Start:
    """Particles of a task that nothing is known of: a cluster of a draw each, or one that is empty.

    ``room`` says how many clusters there is room for, None where tasks never share.
    """
    n_ways = sum(len(draw.base_weights) + 1 for draw in draws)
    chosen = _affordable(draws, max(1, len(draws) * _MOST_OF_NEW // n_ways))
    rows, codes, parameters, shares = [], [], [], []
    rng = np.random.default_rng([seed, 5])
    for place in chosen.tolist():
        draw = draws[place]
        assert draw.code_counts is not None
        joins, alone = joining_weights(draw, room)
        ways = list(zip(joins.tolist(), draw.base_weights, draw.code_counts, draw.parameters, strict=True))
        nothing = np.full(draw.code_counts.shape[1:], draw.hyper.strength)
        ways.append((alone, empty.base_weights[place], nothing, empty.parameters[place]))
        for weight, base, shown, theta in ways:
            if weight > 0.0:
                rows.append(pseudo_counts(base_of_a_new_task(draw, base, rng), draw.hyper))
                codes.append(shown)
                parameters.append(theta)
                shares.append(weight * weights[place])
    return _start(rows, codes, parameters, shares, max(1, _FEWEST_PARTICLES // len(rows)), emission, seed)


def _affordable(draws: Sequence[Draw], most: int) -> NDArray[np.int64]:
    """Places of at most so many draws, evenly spaced, of which particles take no more memory than there is."""
    first = draws[0]
    assert first.code_counts is not None
    n_cells = first.transitions[0].size + first.code_counts[0].size
    n = min(len(draws), most, max(1, _MOST_CELLS // n_cells))
    return np.unique(np.linspace(0, len(draws) - 1, n).round().astype(np.int64))


def _start(
    rows: list[Any],
    codes: list[Any],
    parameters: list[Floats],
    weights: list[float],
    n_times: int,
    emission: Emission,
    seed: int,
) -> Start:
    """Particles, each n times."""
    origin = np.repeat(np.arange(len(rows)), n_times)
    shares = np.array(weights)[origin]
    crowd = Crowd(
        np.log(shares / shares.sum()),
        origin,
        np.zeros(len(origin), dtype=np.int64),
        np.maximum(np.array(rows, dtype=np.float32), np.finfo(np.float32).tiny)[origin],
        np.array(codes, dtype=np.float32)[origin],
    )
    return Start(crowd, np.array(parameters), emission, seed)


def successors(log_weights: Floats, uniform: float) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Places of particles that end, and of those that take their places; None while most are worth something.

    Systematic resampling: the n-th point of an even grid falls on a particle with the probability of its weight.
    """
    worth = np.exp(log_weights - log_weights.max())
    reached = worth.cumsum()
    n = len(worth)
    if reached[-1] ** 2 >= WORN_OUT * n * (worth * worth).cumsum()[-1]:
        return None
    points = (np.arange(n) + uniform) / n * reached[-1]
    n_kept = np.bincount(np.minimum(np.searchsorted(reached, points), n - 1), minlength=n)
    return np.flatnonzero(n_kept == 0), np.repeat(np.arange(n), np.maximum(n_kept - 1, 0))


def advance(crowd: Crowd, steps: Steps, uniforms: Floats) -> Crowd:
    """Particles so many steps later; ``uniforms`` are (T, N + 1) random numbers. O(T N L)."""
    log_weights, origin, row, rows, codes = crowd.copy()
    n, n_states = codes.shape[:2]
    every = np.arange(n)
    left = rows.sum(axis=2, dtype=np.float64)
    held = np.stack(
        [
            codes[:, :, a:b].sum(axis=2, dtype=np.float64)
            for a, b in zip(steps.channels[:-1], steps.channels[1:], strict=True)
        ]
        or [np.zeros((n, n_states))],
        axis=2,
    )
    for t, shown in enumerate(steps.codes):
        at = steps.row[t]
        weight = rows[every, row] / left[every, row][:, None] * steps.likelihood[at, origin]
        for channel, code in enumerate(shown):
            if code >= 0:
                weight *= codes[:, :, code] / held[:, :, channel]
        reached = weight.cumsum(axis=1)
        log_weights += np.log(reached[:, -1]) + steps.log_scale[at, origin]
        changes = successors(log_weights, float(uniforms[t, n]))
        if changes is not None:
            end, go_on = changes
            largest = log_weights.max()
            log_weights[:] = largest + np.log(np.exp(log_weights - largest).cumsum()[-1] / n)
            for array in (origin, row, rows, codes, left, held, reached):
                array[end] = array[go_on]
        state = (uniforms[t, :n, None] * reached[:, -1:] >= reached).sum(axis=1).clip(max=n_states - 1)
        rows[every, row, state] += 1.0
        left[every, row] += 1.0
        for channel, code in enumerate(shown):
            if code >= 0:
                codes[every, state, code] += 1.0
                held[every, state, channel] += 1.0
        row = state + 1
    return Crowd(log_weights, origin, row, rows, codes)
