"""How probable sequences are with transition rows and θ summed out: a particle filter over draws.

A draw of the posterior has the hidden states of all steps that were learnt from. Given those, a task's transition rows
are Dirichlet with pseudo-counts αβ + κe_r + n_r, the shares of codes with h + n, and what θ is of numbers and counts
has the conjugate posterior of a state's statistics. One could draw rows and θ, and average likelihoods over draws:
unbiased, but of a move or a code that a state has not shown yet nearly every draw says never, and one in thousands says
often; and where a state has seen few numbers, nearly all means and variances that may be its own are far off. Over
hundreds of draws, sequences of 40 steps of music were thought 8 to 20 nats less probable than they are, utterances of
vowels up to 200 nats where speakers had been heard once, and how much less was up to the seed.

So each draw is a particle, which goes along a sequence: with probability p(s_t, o_t | what it has seen) it moves to a
state, and adds the move and the step to what it has seen (an urn). Its weight is multiplied by p(o_t | what it has
seen); where few particles have most of the weight, they take the places of the others. The mean weight is an unbiased
estimate of the posterior predictive likelihood (C. M. Carvalho, M. S. Johannes, H. F. Lopes and N. G. Polson, "Particle
Learning and Smoothing", Statist. Sci. 25, 2010). θ stays as it was drawn of families that are not conjugate, and in
draws from files of earlier versions.

Numbers tell states apart so well that a particle nearly always moves to the likeliest one, though another, which knows
little yet, would explain what comes after far better once it has seen this step. So where a step shows something to
cells, particles move by the square roots of these probabilities, and their weights make up for it. With other random
numbers, log likelihoods of utterances of vowels were up to 10 nats different without that, and are 2 to 3.

Codes are counted for all particles. What particles know of numbers and counts (`predictive`) differs only in states
that they have put steps of this sequence in; how probable steps are in all others hangs on the draw alone, and is found
for all of these at once.

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
from kinfolk.sequences.model.emissions.families import side_by_side
from kinfolk.sequences.model.emissions.predictive import Layout, grown, log_densities, log_density_of_each
from kinfolk.sequences.model.emissions.summed_out import SummedOut

# The arrays of a channel each.
Shown = tuple[NDArray[Any], ...]

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
    touched : bool array of shape (N, L)
        The states that a particle has put steps of this sequence in.
    cells : array of shape (N, L, C′)
        What it knows of θ in these states, of channels that are summed out otherwise (`predictive`).
    """

    log_weights: Floats
    origin: NDArray[np.int64]
    row: NDArray[np.int64]
    rows: NDArray[np.float32]
    codes: NDArray[np.float32]
    touched: NDArray[np.bool_]
    cells: Floats

    def copy(self) -> Crowd:
        """The same particles, to be moved in place."""
        cells = np.empty_like(self.cells)
        cells[self.touched] = self.cells[self.touched]
        return Crowd(
            self.log_weights.copy(),
            self.origin.copy(),
            self.row.copy(),
            self.rows.copy(),
            self.codes.copy(),
            self.touched.copy(),
            cells,
        )

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
    drawn : array of shape (n, D, L)
        Log densities of rows of steps by what D origins have of θ as it was drawn; empty where there is nothing to say.
    row : int64 array of shape (T,)
        The row of each step.
    untouched : array of shape (T, D, L)
        Log densities of what is summed out by cells, in states without steps of this sequence; empty as well.
    entries : array of shape (T, V)
        What cells read of each step.
    log_scale : array of shape (T,)
        What all log densities by cells have in common.
    layout : int64 array of shape (channels, 6)
        How cells and entries lie (`predictive`).
    begun : array of shape (D, L, C′)
        Cells before the sequence.
    goes_on : bool
        Whether steps of the sequence come after these.
    """

    codes: NDArray[np.int64]
    channels: NDArray[np.int64]
    drawn: Floats
    row: NDArray[np.int64]
    untouched: Floats
    entries: Floats
    log_scale: Floats
    layout: Layout
    begun: Floats
    goes_on: bool


class Start(NamedTuple):
    """Particles before the first step, the θ (D, L, P) that they have, and what they know of it (D, L, C′).

    Where they do not learn, what training has told of numbers and counts is all that they know of them, at every step.
    """

    crowd: Crowd
    parameters: Floats
    emission: Emission
    seed: int
    summed: SummedOut
    cells: Floats
    learns: bool = True

    def steps(self, observations: Shown) -> Iterator[Steps]:
        """A sequence in parts that take little memory."""
        n_steps, (n_thetas, n_states, _) = len(observations[0]), self.parameters.shape
        places, starts = self._codes(observations)
        drawn, theta, shown = self._drawn(observations)
        entries, log_scale = self.summed.entries(observations)
        layout = self.summed.layout
        cells = self.cells.reshape(n_thetas * n_states, -1)
        nothing = np.zeros((0, n_thetas, n_states))
        says_nothing = drawn is None and not len(layout)
        width = max(1, n_steps) if says_nothing else max(1, _MOST_DENSITIES // (n_thetas * n_states))
        for first in range(0, n_steps, width):
            part = slice(first, first + width)
            table, untouched, own = nothing, nothing, np.ascontiguousarray(places[part])
            row = np.zeros(len(own), dtype=np.int64)
            if drawn is not None:
                rows, row = drawn.log_densities(theta, tuple(array[part] for array in shown))
                table = rows.reshape(-1, n_thetas, n_states)
            if len(layout):
                untouched = log_densities(cells, entries[part], layout).reshape(-1, n_thetas, n_states)
            if len(layout) and not self.learns:
                # A table of densities that stay as they are, as those by θ as it was drawn do.
                table = untouched if drawn is None else untouched + table[row]
                row, untouched = np.arange(len(own)), nothing
            yield Steps(
                own,
                starts,
                np.ascontiguousarray(table),
                np.asarray(row, dtype=np.int64),
                untouched,
                np.ascontiguousarray(entries[part]),
                log_scale[part],
                layout if self.learns else layout[:0],
                self.cells,
                first + width < n_steps,
            )

    def _codes(self, observations: Shown) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places of codes that are known among all (T, M), and where those of each channel begin."""
        codes, channels = [], [0]
        for family, shown in zip(self.emission.channels, observations, strict=True):
            if family.counts_codes:
                known = (shown >= 0) & (shown < family.n_statistics)
                codes.append(np.where(known, shown + channels[-1], -1))
                channels.append(channels[-1] + family.n_statistics)
        places = np.array(codes, dtype=np.int64).reshape(len(codes), len(observations[0])).T
        return places, np.array(channels, dtype=np.int64)

    def _drawn(self, observations: Shown) -> tuple[Emission | None, Floats, Shown]:
        """The channels in which θ is as it was drawn, side by side, what it is there (D · L, P), and what they show.

        Among them are those of codes, because an unknown one has a share of its own in θ, which is never drawn; all of
        them are left out where they say nothing.
        """
        families, columns, shown, here = [], [], [], 0
        for place, (family, array) in enumerate(zip(self.emission.channels, observations, strict=True)):
            columns_here = np.arange(here, here + family.n_parameters)
            here += family.n_parameters
            own = array
            if family.counts_codes:
                own = np.where(array < family.n_statistics, -1, array)
            if place in self.summed.channels or (family.counts_codes and (own < 0).all()):
                continue
            families.append(family)
            columns.append(columns_here)
            shown.append(own)
        if not families:
            return None, np.empty((0, 0)), ()
        theta = self.parameters.reshape(-1, here)[:, np.concatenate(columns)]
        return side_by_side(families), theta, tuple(shown)

    def uniforms(self) -> np.random.Generator:
        """Where the random numbers of any sequence come from."""
        return np.random.default_rng([self.seed, 4])

    def of_forecasts(self) -> np.random.Generator:
        """Where the random numbers of θ come from, when what comes after a sequence is asked for."""
        return np.random.default_rng([self.seed, 6])


def particles_of_task(draws: Sequence[Draw], weights: Floats, task: int, emission: Emission, seed: int) -> Start:
    """Particles of a task that was learnt: its rows and its cluster's states in each draw."""
    summed = _summed_out(draws, emission)
    most = _most_particles(draws[0], summed)
    chosen = _evenly(draws, min(len(draws), most))
    n_times = max(1, min(-(-_FEWEST_PARTICLES // len(chosen)), most // len(chosen)))
    origins = _Origins(summed)
    for place in chosen.tolist():
        draw, cluster = draws[place], int(draws[place].cluster[task])
        assert draw.row_counts is not None
        origins.add(draw, cluster, draw.row_counts[task], draw.parameters[cluster], weights[place])
    return origins.start(n_times, emission, seed)


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
    summed = _summed_out(draws, emission)
    most = _most_particles(draws[0], summed)
    n_ways = sum(len(draw.base_weights) + 1 for draw in draws)
    chosen = _evenly(draws, min(len(draws), max(1, len(draws) * _MOST_OF_NEW // n_ways), most))
    origins = _Origins(summed)
    rng = np.random.default_rng([seed, 5])
    for place in chosen.tolist():
        draw = draws[place]
        joins, alone = joining_weights(draw, room)
        ways: list[tuple[int | None, float, Floats, Floats]] = [
            (k, weight, draw.base_weights[k], draw.parameters[k]) for k, weight in enumerate(joins.tolist())
        ]
        ways.append((None, alone, empty.base_weights[place], empty.parameters[place]))
        for cluster, weight, base, theta in ways:
            if weight > 0.0:
                rows = pseudo_counts(base_of_a_new_task(draw, base, rng), draw.hyper)
                origins.add(draw, cluster, rows, theta, weight * weights[place])
    return origins.start(max(1, min(_FEWEST_PARTICLES, most) // len(origins.rows)), emission, seed)


def _summed_out(draws: Sequence[Draw], emission: Emission) -> SummedOut:
    return SummedOut.of(emission, all(draw.statistics is not None for draw in draws))


def _most_particles(draw: Draw, summed: SummedOut) -> int:
    """How many particles take no more memory than there is."""
    assert draw.code_counts is not None
    # Cells take twice the bits of counts.
    n_cells: int = draw.transitions[0].size + draw.code_counts[0].size + 2 * summed.n_cells * draw.base_weights.shape[1]
    return max(1, _MOST_CELLS // n_cells)


def _evenly(draws: Sequence[Draw], n: int) -> NDArray[np.int64]:
    """Places of so many draws, evenly spaced."""
    return np.unique(np.linspace(0, len(draws) - 1, n).round().astype(np.int64))


class _Origins:
    """What particles begin with, one after the other."""

    def __init__(self, summed: SummedOut) -> None:
        self.summed = summed
        self.rows: list[Any] = []
        self.codes: list[Any] = []
        self.parameters: list[Floats] = []
        self.statistics: list[Floats] = []
        self.strengths: list[float] = []
        self.weights: list[float] = []

    def add(self, draw: Draw, cluster: int | None, rows: Any, theta: Floats, weight: float) -> None:
        """One that leaves by some rows, with a cluster of a draw, or one that nothing is known of."""
        assert draw.code_counts is not None
        n_states, n_codes = draw.code_counts.shape[1:]
        self.rows.append(rows)
        if cluster is None:
            self.codes.append(np.full((n_states, n_codes), draw.hyper.strength))
        else:
            self.codes.append(draw.code_counts[cluster])
        if cluster is None or draw.statistics is None or not self.summed.families:
            self.statistics.append(np.zeros((n_states, self.summed.n_statistics)))
        else:
            self.statistics.append(draw.statistics[cluster])
        self.strengths.append(draw.hyper.strength)
        self.parameters.append(theta)
        self.weights.append(weight)

    def start(self, n_times: int, emission: Emission, seed: int) -> Start:
        """Particles, each n times."""
        origin = np.repeat(np.arange(len(self.rows)), n_times)
        shares = np.array(self.weights)[origin]
        cells = self.summed.cells(np.array(self.statistics), np.array(self.strengths)[:, None])
        n, n_states = len(origin), cells.shape[1]
        crowd = Crowd(
            np.log(shares / shares.sum()),
            origin,
            np.zeros(n, dtype=np.int64),
            np.maximum(np.array(self.rows, dtype=np.float32), np.finfo(np.float32).tiny)[origin],
            np.array(self.codes, dtype=np.float32)[origin],
            np.zeros((n, n_states), dtype=np.bool_),
            np.zeros((n, *cells.shape[1:])),
        )
        return Start(crowd, np.array(self.parameters), emission, seed, self.summed, cells)


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
    log_weights, origin, row, rows, codes, touched, cells = crowd.copy()
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
        log_density = np.zeros((n, n_states))
        if len(steps.untouched):
            log_density += steps.untouched[t, origin]
            log_density[touched] = log_density_of_each(cells[touched], steps.entries[t], steps.layout)
        if len(steps.drawn):
            log_density += steps.drawn[steps.row[t], origin]
        largest = log_density.max(axis=1)
        weight = rows[every, row] / left[every, row][:, None] * np.exp(log_density - largest[:, None])
        for channel, code in enumerate(shown):
            if code >= 0:
                weight *= codes[:, :, code] / held[:, :, channel]
        total = weight.cumsum(axis=1)[:, -1]
        log_weights += np.log(total) + largest + steps.log_scale[t]
        changes = successors(log_weights, float(uniforms[t, n]))
        if changes is not None:
            end, go_on = changes
            most = log_weights.max()
            log_weights[:] = most + np.log(np.exp(log_weights - most).cumsum()[-1] / n)
            for array in (origin, row, rows, codes, touched, cells, left, held, weight, total):
                array[end] = array[go_on]
        looks_ahead = bool(steps.entries[t].any()) and (steps.goes_on or t < len(steps.codes) - 1)
        chance = np.sqrt(weight) if looks_ahead else weight
        reached = chance.cumsum(axis=1)
        state = (uniforms[t, :n, None] * reached[:, -1:] >= reached).sum(axis=1).clip(max=n_states - 1)
        if looks_ahead:
            log_weights += np.log(chance[every, state]) - np.log(total) + np.log(reached[:, -1])
        rows[every, row, state] += 1.0
        left[every, row] += 1.0
        for channel, code in enumerate(shown):
            if code >= 0:
                codes[every, state, code] += 1.0
                held[every, state, channel] += 1.0
        if len(steps.layout):
            known = np.where(touched[every, state, None], cells[every, state], steps.begun[origin, state])
            cells[every, state] = grown(known, steps.entries[t], steps.layout)
            touched[every, state] = True
        row = state + 1
    return Crowd(log_weights, origin, row, rows, codes, touched, cells)
