"""Inference of the beta-process HMM by sampling: where chains start, and their draws with states numbered alike.

Chains run as those of the nDP-iHMM do (`gibbs`). A state's number means nothing, and changes where states are born,
split and merge. Two states of two draws are the same if they have most steps in common, all pairs at once (H. W. Kuhn,
Naval Res. Logist. 2, 1955).

Chains of a few dozen sweeps end in modes of their own, hundreds of nats apart. The one with the highest log joint is
hardly a better answer than the others, and which one it is, is up to the seed. So hidden states are told by the draw
that has the fewest steps in another state than all draws have them in, on average: of the draws, the best answer where
every step that is told otherwise costs the same (D. A. Binder, Biometrika 65, 1978, on point estimates of clusterings).

States of all draws are numbered as this one's at first. But where it has one state for what most draws have two for,
one of the two is left over, and gets one number in one draw and another in the next. So the draws are numbered again
one by one, each such that most of its steps have the numbers that the others give them, until none changes, as M.
Stephens does it (J. R. Statist. Soc. B 62, 2000): no change makes fewer pairs of draws agree about a step. Numbers come
in the order of how many steps they have in all draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from kinfolk.interrupts import stops_safely
from kinfolk.maths.arrays import Floats
from kinfolk.progress import progress_bar
from kinfolk.sequences.inference.feature_starts import start_paths
from kinfolk.sequences.inference.feature_sweep import start_state, sweep
from kinfolk.sequences.inference.gibbs import run_side_by_side
from kinfolk.sequences.inference.options import Options
from kinfolk.sequences.model.bp_hmm import FeatureState, kept
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.fitted import Fitted
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences

# Splits and merges tried in a sweep, most of which are merges that are known at once to be bad.
_SPLIT_MERGES = 20
# Sweeps after which starts are compared.
_SWEEPS_TO_COMPARE = 6
# Steps by which states of draws are compared, how many draws at most each with each, and how often all are numbered.
_STEPS_COMPARED, _DRAWS_COMPARED, _MOST_ROUNDS = 4096, 120, 20


def infer(
    sequences: Sequences, emission: Emission, priors: Priors, options: Options, seed: int
) -> tuple[HyperParameters, Fitted]:
    """Hyper-parameters, and all that inference leaves behind.

    Parameters
    ----------
    sequences : Sequences
        The data.
    emission : Emission
        What states emit; its strength is where learning starts.
    priors : Priors
        Of the hyper-parameters; η and γ are c and γ of the beta process.
    options : Options
        ``n_states`` is the most states there may be.
    seed : int

    Returns
    -------
    HyperParameters
        Means over draws.
    Fitted
    """
    schedule = options.schedule
    sampler = FeatureSampler(sequences, emission, priors, options.n_states)
    n_sweeps = schedule.n_chains * (schedule.n_burn_in + schedule.n_draws * schedule.thin)
    key = ("feature ihmm", sequences, emission, priors, options.n_states, schedule, seed)
    bar = progress_bar("Sampling", n_sweeps, True) if options.verbose else nullcontext()
    keep = options.checkpoint
    with bar as advance, stops_safely() as stop:
        (fitted,) = run_side_by_side([sampler], schedule, seed, options.n_jobs, advance, keep, key, stop)
    central = central_draw(fitted.draws)
    draws = numbered_alike(fitted.draws, central)
    return fitted.mean_hyper(), fitted._replace(draws=draws, interrupted=stop.asked(), central=central)


class FeatureSampler(NamedTuple):
    """The sampler of a model with room for L states."""

    sequences: Sequences
    emission: Emission
    priors: Priors
    n_states: int

    def start(self, rng: np.random.Generator) -> FeatureState:
        """Blocks of steps, agglomerated into states: of several starts the best after some sweeps."""
        data = self.sequences, self.emission
        tried = []
        for states in start_paths(*data, self.priors.means(), self.n_states, rng):
            state = start_state(states, *data, self.priors, n_states=self.n_states, rng=rng)
            for _ in range(_SWEEPS_TO_COMPARE):
                state = self.sweep(state, rng)
            tried.append((kept(state, *data).log_joint, state))
        return max(tried, key=lambda found: found[0])[1]

    def sweep(self, state: FeatureState, rng: np.random.Generator) -> FeatureState:
        """The next state."""
        return sweep(state, self.sequences, self.emission, self.priors, rng, n_split_merges=_SPLIT_MERGES)

    def draw(self, state: FeatureState) -> Draw:
        """What is kept of a state, with some steps' hidden states, by which draws are compared."""
        n_each = -(-self.sequences.n_steps // _STEPS_COMPARED)
        steps = state.states[::n_each].astype(np.int32)
        return kept(state, self.sequences, self.emission)._replace(states=steps)


def central_draw(draws: Sequence[Draw]) -> int:
    """The place of the draw whose steps are in the states of all draws most often, on average; the first of equals.

    Of many draws some are compared, evenly spaced, as many of each chain. O(compared² · (steps + L³)).

    Examples
    --------
    >>> rows, hyper = np.full((1, 3, 2), 0.5), HyperParameters(1.0, 1.0, 1.0, 1.0)
    >>> draw = Draw(np.zeros(1), np.full((1, 2), 0.5), rows, rows, hyper, 0.0, np.array([2]), states=np.zeros(4, int))
    >>> paths = ([1, 1, 0, 0], [0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 0, 1])
    >>> central_draw([draw._replace(states=np.array(path)) for path in paths])
    1
    """
    compared = np.unique(np.linspace(0, len(draws) - 1, min(len(draws), _DRAWS_COMPARED)).round().astype(np.int64))
    n_states = draws[0].base_weights.shape[1]
    paths = [np.asarray(draws[place].states) for place in compared.tolist()]
    alike = np.diag([float(len(path)) for path in paths])
    for i, path in enumerate(paths):
        for j in range(i):
            overlap = steps_in_common(path, paths[j], n_states)
            alike[i, j] = alike[j, i] = overlap[linear_sum_assignment(-overlap)].sum()
    return int(compared[np.argmax(alike.sum(axis=1))])


def steps_in_common(one: NDArray[Any], other: NDArray[Any], n_states: int) -> Floats:
    """How many steps are in each state by one draw and in each by another (L, L)."""
    together = np.bincount(one.astype(np.int64) * n_states + other, minlength=n_states * n_states)
    return together.reshape(n_states, n_states).astype(np.float64)


def numbered_alike(draws: Sequence[Draw], central: int) -> tuple[Draw, ...]:
    """The draws with their states numbered alike, and without the steps by which that was found.

    O(rounds · draws · (steps · L² + L³)).

    Examples
    --------
    >>> rows, hyper = np.full((1, 3, 2), 0.5), HyperParameters(1.0, 1.0, 1.0, 1.0)
    >>> one = Draw(np.zeros(1), np.array([[0.2, 0.8]]), np.array([[[5.0], [6.0]]]), rows, hyper, -3.0, np.array([2]),
    ...            rows, np.empty((1, 2, 0)), features=np.array([[True, True]]), states=np.array([0, 1, 1]))
    >>> other = one._replace(parameters=one.parameters[:, ::-1], states=np.array([1, 0, 0]), log_joint=-4.0)
    >>> [draw.parameters.ravel().tolist() for draw in numbered_alike([one, other], 0)]
    [[6.0, 5.0], [6.0, 5.0]]
    """
    n_states, paths = draws[0].base_weights.shape[1], [np.asarray(draw.states) for draw in draws]
    every = np.arange(len(paths[0]))

    def found(told: Floats, place: int) -> NDArray[np.int64]:
        """Which state of a draw has each number, given how often each step is told to have it (steps, L)."""
        features = draws[place].features
        assert features is not None
        overlap = told.T @ np.eye(n_states)[paths[place]]
        # Of states with no step, those that some task has come first.
        overlap += np.outer(np.linspace(1e-6, 0.0, n_states), features.any(axis=0))
        return np.asarray(linear_sum_assignment(-overlap)[1])

    told = np.zeros((len(every), n_states))
    told[every, paths[central]] = 1.0
    orders = [found(told, place) for place in range(len(draws))]
    told[:] = 0.0
    for path, order in zip(paths, orders, strict=True):
        told[every, np.argsort(order)[path]] += 1.0
    for _ in range(_MOST_ROUNDS):
        n_changed = 0
        for place, path in enumerate(paths):
            before = orders[place]
            told[every, np.argsort(before)[path]] -= 1.0
            orders[place] = found(told, place)
            told[every, np.argsort(orders[place])[path]] += 1.0
            n_changed += int((orders[place] != before).any())
        if n_changed == 0:
            break
    by_size = np.argsort(-told.sum(axis=0), kind="stable")
    return tuple(renumbered(draw, order[by_size]) for draw, order in zip(draws, orders, strict=True))


def renumbered(draw: Draw, order: NDArray[np.int64]) -> Draw:
    """A draw with its states in another order."""
    rows = np.concatenate([[0], order + 1])
    assert draw.row_counts is not None
    assert draw.code_counts is not None
    assert draw.features is not None
    return draw._replace(
        base_weights=draw.base_weights[:, order],
        parameters=draw.parameters[:, order],
        transitions=draw.transitions[:, rows][:, :, order],
        row_counts=draw.row_counts[:, rows][:, :, order],
        code_counts=draw.code_counts[:, order],
        features=draw.features[:, order],
        states=None,
        statistics=None if draw.statistics is None else draw.statistics[:, order],
    )
