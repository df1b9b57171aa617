"""Tasks choose their features, hidden states summed out, and then their states (Fox et al. 2014, section 4).

Given θ and a task's weights η, of the features that it has not as well, its sequences O_j are as probable as filtering
says. So a task tries, one after the other,

* to take or to give up each state that others have: a Metropolis step with prior odds m/(J − 1 − m + c), m others
  having it, times the ratio of likelihoods;
* to be given a state of its own, or to have one of its own taken away: of these it has Poisson(λ), λ = γc/(c + J − 1).
  A birth's θ is from a mixture, half the prior, half the posterior given the steps of a window W of the task, placed at
  random before it is known whether this is a birth or a death (M. C. Hughes, E. B. Fox and E. B. Sudderth, NIPS 2012,
  section 4). Prior and proposal have the ratio 1 / (½ + ½ p(O_W | θ)/p(O_W)), so that no density of θ is needed; and a
  task with n states of its own is given another with λ/(n + 1) times these.

Given states, a row of W_j tells shares of its weights η_jr, and nothing of their sum, which is Gamma; weights of
features that a task has not are draws from their prior.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.gamma_draws import log_gamma_draws
from kinfolk.sequences.model.bp_hmm import FeatureState, Flags
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Densities, Emission, Observations
from kinfolk.sequences.model.filtering import draw_states, log_likelihoods
from kinfolk.sequences.model.sequences import Sequences

# Steps of a birth's window: from a handful to about what tells a covariance of a dozen columns.
_SHORTEST, _LONGEST = 2, 64
# As in filters: a density this much below the likeliest state's counts as this much.
_LEAST_LIKELIHOOD = 1e-150
_TINY = 1e-300


class TaskView(NamedTuple):
    """What the choices of one task look at.

    Attributes
    ----------
    rows : ndarray of shape (n_steps, L)
        Log densities of the task's steps in every state.
    log_weights : ndarray of shape (L + 1, L)
        log η of the task.
    bounds : ndarray
        Of its sequences, counted from its first step.
    observations : tuple of ndarrays
        What its steps show.
    n_others : ndarray of shape (L,)
        How many other tasks have each state.
    n_tasks : int
    """

    rows: Floats
    log_weights: Floats
    bounds: NDArray[np.int64]
    observations: Observations
    n_others: NDArray[np.int64]
    n_tasks: int

    def log_likelihood(self, own: Flags) -> float:
        """Log likelihood of the task's sequences if these were its features."""
        densities, transitions = restricted(self.rows, self.log_weights, np.flatnonzero(own))
        return float(log_likelihoods(densities, self.bounds, transitions).sum())


@compiled
def _restrict(rows, log_weights, chosen, likelihood, log_scale, transitions):  # type: ignore[no-untyped-def]
    n = len(chosen)
    for t in range(len(rows)):
        most = rows[t, chosen[0]]
        for i in range(1, n):
            most = max(most, rows[t, chosen[i]])
        log_scale[t] = most
        for i in range(n):
            likelihood[t, i] = max(exp(rows[t, chosen[i]] - most), _LEAST_LIKELIHOOD)
    for r in range(n + 1):
        at = 0 if r == 0 else chosen[r - 1] + 1
        most = log_weights[at, chosen[0]]
        for i in range(1, n):
            most = max(most, log_weights[at, chosen[i]])
        total = 0.0
        for i in range(n):
            transitions[r, i] = exp(log_weights[at, chosen[i]] - most)
            total += transitions[r, i]
        for i in range(n):
            transitions[r, i] /= total


def restricted(rows: Floats, log_weights: Floats, chosen: NDArray[np.int64]) -> tuple[Densities, Floats]:
    """Densities and transitions of the chosen states alone."""
    n_steps, n = len(rows), len(chosen)
    densities = Densities(np.empty((n_steps, n)), np.empty(n_steps), np.arange(n_steps))
    transitions = np.empty((n + 1, n))
    _restrict(rows, log_weights, chosen, densities.likelihood, densities.log_scale, transitions)
    return densities, transitions


def draw_log_weights(own: Flags, transitions: Floats, hyper: HyperParameters, rng: np.random.Generator) -> Floats:
    """Draw log η of a task given its transitions (L + 1, L): sums of what they share, and all else from the prior."""
    n_states = len(own)
    shapes = np.full((n_states + 1, n_states), hyper.alpha)
    shapes[1:] += hyper.stickiness * np.eye(n_states)
    log_weights = log_gamma_draws(shapes, rng)
    used = np.concatenate([[True], own])
    sums = log_gamma_draws((shapes * own).sum(axis=1)[used], rng)
    log_weights[np.ix_(used, own)] = np.log(np.maximum(transitions[np.ix_(used, own)], _TINY)) + sums[:, None]
    return log_weights


def choose_shared(task: TaskView, own: Flags, hyper: HyperParameters, rng: np.random.Generator) -> Flags:
    """Let a task take or give up each state that others have, in turn."""
    own, current = own.copy(), task.log_likelihood(own)
    for k in rng.permutation(np.flatnonzero(task.n_others)).tolist():
        tried = own.copy()
        tried[k] = not own[k]
        if not tried.any():
            continue
        log_odds = log(task.n_others[k]) - log(task.n_tasks - 1 - task.n_others[k] + hyper.eta)
        found = task.log_likelihood(tried)
        if -rng.standard_exponential() < found - current + (log_odds if tried[k] else -log_odds):
            own, current = tried, found
    return own


def window_of(bounds: NDArray[np.int64], rng: np.random.Generator) -> slice:
    """A window of a task's steps, within one of its sequences."""
    n_steps = int(bounds[-1])
    at = int(rng.integers(n_steps))
    sequence = int(np.searchsorted(bounds, at, side="right")) - 1
    length = int(np.exp(rng.uniform(np.log(_SHORTEST), np.log(_LONGEST + 1))))
    first = max(int(bounds[sequence]), at - length // 2)
    return slice(first, min(int(bounds[sequence + 1]), first + length))


def log_proposal_ratio(log_likelihood_of_window: float, log_evidence_of_window: float) -> float:
    """Log of q(θ | W)/p(θ) of a birth, ½ + ½ p(O_W | θ)/p(O_W)."""
    return float(np.logaddexp(0.0, log_likelihood_of_window - log_evidence_of_window) - log(2.0))


def be_born_or_die(
    task: TaskView,
    own: Flags,
    parameters: Floats,
    emission: Emission,
    hyper: HyperParameters,
    rng: np.random.Generator,
) -> tuple[Flags, Floats]:
    """Try to give a task a state of its own, or to take one away; its features and all parameters θ after that.

    Where a state is born, ``task.rows`` gets its log densities.
    """
    window = window_of(task.bounds, rng)
    seen = tuple(channel[window] for channel in task.observations)
    statistics = emission.statistics(seen, np.zeros(len(seen[0]), dtype=np.int64), 1)
    log_evidence = float(emission.log_marginal(statistics)[0])
    log_rate = log(hyper.gamma) + log(hyper.eta) - log(hyper.eta + task.n_tasks - 1)
    alone = np.flatnonzero(own & (task.n_others == 0))
    born = rng.random() < 0.5
    tried = own.copy()
    if born:
        empty = np.flatnonzero(~own & (task.n_others == 0))
        if not len(empty):
            return own, parameters
        k = int(empty[rng.integers(len(empty))])
        given = statistics if rng.random() < 0.5 else np.zeros_like(statistics)
        parameters = parameters.copy()
        before = task.rows[:, k].copy()
        parameters[k] = emission.draw_parameters(given, rng)[0]
        rows, row = emission.log_densities(parameters[k : k + 1], task.observations)
        task.rows[:, k] = rows[row, 0]
        n_own = len(alone)
    else:
        if not len(alone) or own.sum() == 1:
            return own, parameters
        k, n_own = int(alone[rng.integers(len(alone))]), len(alone) - 1
    tried[k] = born
    log_prior = log_rate - log(n_own + 1) - log_proposal_ratio(float(task.rows[window, k].sum()), log_evidence)
    log_ratio = task.log_likelihood(tried) - task.log_likelihood(own) + (log_prior if born else -log_prior)
    if -rng.standard_exponential() < log_ratio:
        return tried, parameters
    if born:
        task.rows[:, k] = before
    return own, parameters


def choose_features(
    state: FeatureState, sequences: Sequences, emission: Emission, rng: np.random.Generator, n_births: int = 1
) -> FeatureState:
    """Let every task choose its features, and draw its states. O(n_steps L² × states that others have).

    Parameters
    ----------
    state : FeatureState
        Where the chain is.
    sequences : Sequences
        The data.
    emission : Emission
        What states emit, with the strength that the chain has.
    rng : Generator
        Source of randomness.
    n_births : int, default=1
        How many births or deaths each task tries.

    Returns
    -------
    state : FeatureState
        With new features and states, and θ of those that were born; transitions are those that states were drawn by.
    """
    features, states = state.features.copy(), state.states.copy()
    transitions, parameters = np.zeros_like(state.transitions), state.parameters
    n_tasks, hyper = len(features), state.hyper
    sizes = features.sum(axis=0)
    for j in rng.permutation(n_tasks).tolist():
        own, part, steps = features[j], sequences.between(j, j + 1), sequences.steps_of(j)
        rows, row = emission.log_densities(parameters, part.observations)
        log_weights = draw_log_weights(own, state.transitions[j], hyper, rng)
        task = TaskView(rows[row], log_weights, part.bounds, part.observations, sizes - own, n_tasks)
        chosen = choose_shared(task, own, hyper, rng)
        for _ in range(n_births):
            chosen, parameters = be_born_or_die(task, chosen, parameters, emission, hyper, rng)
        sizes += chosen.astype(np.int64) - own
        features[j], places = chosen, np.flatnonzero(chosen)
        densities, moves = restricted(task.rows, task.log_weights, places)
        drawn = np.zeros(part.n_steps, dtype=np.int64)
        draw_states(densities, part.layout, moves[None], rng.random(part.n_steps), drawn)
        states[steps] = places[drawn]
        transitions[j][np.ix_(np.concatenate([[0], places + 1]), places)] = moves
    return state._replace(features=features, states=states, transitions=transitions, parameters=parameters)
