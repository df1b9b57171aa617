"""Inference of the beta-process HMM by sampling: where chains start, and their draws with states numbered alike.

Chains run as those of the nDP-iHMM do (`gibbs`). A state's number means nothing, and changes where states are born,
split and merge. So states of every draw that is kept are numbered as those of the best one, the draw with the highest
log joint, are: two states are the same if they have most steps in common, all pairs at once (H. W. Kuhn, Naval Res.
Logist. 2, 1955). The best one's come in the order of how many steps they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from kinfolk.interrupts import stops_safely
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
# Steps by which states of draws are compared.
_STEPS_COMPARED = 4096


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
    draws = numbered_alike(fitted.draws)
    return fitted.mean_hyper(), fitted._replace(draws=draws, interrupted=stop.asked())


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


def numbered_alike(draws: Sequence[Draw]) -> tuple[Draw, ...]:
    """The draws with their states numbered as in the best one, and without the steps by which that was found.

    Examples
    --------
    >>> rows, hyper = np.full((1, 3, 2), 0.5), HyperParameters(1.0, 1.0, 1.0, 1.0)
    >>> one = Draw(np.zeros(1), np.array([[0.2, 0.8]]), np.array([[[5.0], [6.0]]]), rows, hyper, -3.0, np.array([2]),
    ...            rows, np.empty((1, 2, 0)), features=np.array([[True, True]]), states=np.array([0, 1, 1]))
    >>> other = one._replace(parameters=one.parameters[:, ::-1], states=np.array([1, 0, 0]), log_joint=-4.0)
    >>> [draw.parameters.ravel().tolist() for draw in numbered_alike([one, other])]
    [[6.0, 5.0], [6.0, 5.0]]
    """
    best = max(draws, key=lambda draw: draw.log_joint)
    n_states = best.base_weights.shape[1]
    assert best.states is not None
    by_size = np.argsort(-np.bincount(best.states, minlength=n_states), kind="stable")
    place = np.empty(n_states, dtype=np.int64)
    place[by_size] = np.arange(n_states)
    wanted = place[best.states]
    out = []
    for draw in draws:
        assert draw.states is not None
        overlap = np.zeros((n_states, n_states))
        np.add.at(overlap, (wanted, draw.states), 1.0)
        # Of states with no step, those that some task has come first.
        assert draw.features is not None
        overlap += 1e-6 * draw.features.any(axis=0)
        out.append(renumbered(draw, linear_sum_assignment(-overlap)[1]))
    return tuple(out)


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
    )
