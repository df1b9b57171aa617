"""Fits of one cluster that begin with more states than they need, which are then merged.

Modes of the states lie hundreds of nats apart, and this is what finds good ones: blocks of steps given to states at
random, then merged, found the best bound known on four of four music clips, where random posteriors of the steps found
it on two and took longer.

States are merged greedily, from a fit with more of them than it needs: the search of A. Stolcke and S. Omohundro
("Hidden Markov model induction by Bayesian model merging", NIPS 5, 1993). Pairs of states are ranked by what their
merge would add if every step kept its state,

    log p(o | merged) − log p(o | a) − log p(o | b) + change of Σ_jr log[B(x_r + n_jr)/B(x_r)],

and the best few are tried: a merge stays when the bound, after some iterations, is above that of the fit without it.
"""

from __future__ import annotations

from math import lgamma

import numpy as np
from scipy.special import digamma, gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.sequences.inference.mean_field import (
    NO_COUNT,
    ROUGHLY,
    ClusterFit,
    Start,
    base_of,
    fit_cluster,
    start_from_posteriors,
)
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior
from kinfolk.sequences.model.sequences import Sequences

# Pairs tried in vain before a fit counts as merged, and iterations that a tried merge gets to beat the fit without it.
_TRIES = 4
_TRIAL_ITERATIONS = 12


def merged_start(start: Start | ClusterFit, first: int, second: int) -> Start:
    """Expected transitions and statistics with two states made one, at the place of the first."""
    counts = start.counts.copy()
    counts[:, first + 1] += counts[:, second + 1]
    counts = np.delete(counts, second + 1, axis=1)
    counts[:, :, first] += counts[:, :, second]
    statistics = start.statistics.copy()
    statistics[first] += statistics[second]
    return Start(np.delete(counts, second, axis=2), np.delete(statistics, second, axis=0))


def merged_weights(weights: Floats, first: int, second: int, hyper: ClusterPrior) -> Floats:
    """Base weights with two states made one: their tables add up, their priors do not."""
    joined = weights.copy()
    joined[first] += joined[second] - hyper.gamma / hyper.n_states
    return np.delete(joined, second)


def merge_gains(start: Start | ClusterFit, weights: Floats, emission: Emission, hyper: ClusterPrior) -> Floats:
    """What merging each pair of states would add if steps kept their states, (A, A); −∞ on and below the diagonal."""
    n_states = len(weights)
    base = base_of(weights, hyper)
    gains = np.full((n_states, n_states), -np.inf)
    first, second = np.triu_indices(n_states, 1)
    if not len(first):
        return gains
    alone = emission.log_marginal(start.statistics)
    emitted = emission.log_marginal(start.statistics[first] + start.statistics[second]) - alone[first] - alone[second]
    moved = _transition_gains(np.ascontiguousarray(start.counts), base, hyper.alpha, hyper.stickiness)
    joined = weights[first] + weights[second] - hyper.gamma / hyper.n_states
    # The total of all base weights is the same after a merge, so that only those of the two states count.
    total = hyper.gamma + (weights - hyper.gamma / hyper.n_states).sum()
    cost, cost_joined = _base_cost(weights, total, hyper), _base_cost(joined, total, hyper)
    saved = cost[first] + cost[second] - cost_joined
    gains[first, second] = emitted + moved[first, second] + saved
    return gains


def _base_cost(weights: Floats, total: float, hyper: ClusterPrior) -> Floats:
    """What each state's base weight adds to KL(Dir(ω) ‖ Dir(γ/L))."""
    prior = hyper.gamma / hyper.n_states
    own = (weights - prior) * (digamma(weights) - digamma(total)) - gammaln(weights) + gammaln(prior)
    return np.asarray(own)


def merge_states(
    sequences: Sequences,
    emission: Emission,
    hyper: ClusterPrior,
    fit: ClusterFit,
    *,
    n_tries: int = _TRIES,
    tolerance: float = 1e-2,
) -> ClusterFit:
    """Merge states for as long as that raises the bound; the result's bound is never below that of ``fit``.

    Examples
    --------
    Four states are offered where two are enough.

    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> from kinfolk.sequences.inference.mean_field import start_from_posteriors
    >>> codes = np.tile(np.repeat([0, 1], 10), 6)
    >>> sequences = Sequences((codes,), np.array([0, 120]), np.array([0, 1]))
    >>> emission = Categorical(2, strength=1.0)
    >>> offered = np.eye(4)[2 * codes + np.arange(120) // 60]
    >>> fit = fit_cluster(sequences, emission, ClusterPrior(), start_from_posteriors(sequences, emission, offered))
    >>> len(merge_states(sequences, emission, ClusterPrior(), fit).weights)
    2
    """
    while len(fit.weights) > 1:
        better = _better_merge(sequences, emission, hyper, fit, n_tries)
        if better is None:
            break
        fit = better
    refined = fit_cluster(sequences, emission, hyper, fit, weights=fit.weights, tolerance=tolerance)
    return max(fit, refined, key=lambda one: one.bound)


def _better_merge(
    sequences: Sequences, emission: Emission, hyper: ClusterPrior, fit: ClusterFit, n_tries: int
) -> ClusterFit | None:
    gains = merge_gains(fit, fit.weights, emission, hyper)
    for pair in np.argsort(-gains, axis=None, kind="stable")[:n_tries]:
        first, second = divmod(int(pair), len(gains))
        if not np.isfinite(gains[first, second]):
            return None
        tried = fit_cluster(
            sequences,
            emission,
            hyper,
            merged_start(fit, first, second),
            weights=merged_weights(fit.weights, first, second, hyper),
            n_iterations=_TRIAL_ITERATIONS,
            enough=fit.bound,
        )
        if tried.bound > fit.bound:
            return tried
    return None


@compiled
def _rising(x, n):  # type: ignore[no-untyped-def]
    return lgamma(x + n) - lgamma(x) if n > NO_COUNT else 0.0


@compiled
def _transition_gains(counts, base, alpha, stickiness):  # type: ignore[no-untyped-def]
    """Change of Σ_jr log[B(x_r + n_jr)/B(x_r)] when two states are merged, for every pair a < b."""
    n_tasks, n_states = len(counts), len(base)
    out = np.zeros((n_states, n_states))
    own, visits = np.zeros((n_states + 1, n_states)), np.zeros(n_states + 1)
    for j in range(n_tasks):
        n = counts[j]
        for r in range(n_states + 1):
            visits[r] = 0.0
            for s in range(n_states):
                visits[r] += n[r, s]
                own[r, s] = _rising(alpha * base[s] + (stickiness if r == s + 1 else 0.0), n[r, s])
        for a in range(n_states):
            for b in range(a + 1, n_states):
                both = alpha * (base[a] + base[b])
                gain = 0.0
                for r in range(n_states + 1):
                    if r != a + 1 and r != b + 1:
                        gain += _rising(both, n[r, a] + n[r, b]) - own[r, a] - own[r, b]
                for s in range(n_states):
                    gain -= own[a + 1, s] + own[b + 1, s]
                    if s != a and s != b:
                        gain += _rising(alpha * base[s], n[a + 1, s] + n[b + 1, s])
                stays = n[a + 1, a] + n[a + 1, b] + n[b + 1, a] + n[b + 1, b]
                gain += _rising(both + stickiness, stays)
                total = alpha + stickiness
                gain += _rising(total, visits[a + 1]) + _rising(total, visits[b + 1])
                gain -= _rising(total, visits[a + 1] + visits[b + 1])
                out[a, b] += gain
    return out


def stacked(fits: list[ClusterFit]) -> Start:
    """The states of several fits side by side, each used by its own tasks alone."""
    n_states = [len(fit.weights) for fit in fits]
    n_tasks = [len(fit.counts) for fit in fits]
    total = sum(n_states)
    counts = np.zeros((sum(n_tasks), total + 1, total))
    state, task = 0, 0
    for fit, a, j in zip(fits, n_states, n_tasks, strict=True):
        counts[task : task + j, 0, state : state + a] = fit.counts[:, 0]
        counts[task : task + j, state + 1 : state + a + 1, state : state + a] = fit.counts[:, 1:]
        state, task = state + a, task + j
    return Start(counts, np.concatenate([fit.statistics for fit in fits]))


def squeezed(start: Start, weights: Floats, emission: Emission, hyper: ClusterPrior) -> tuple[Start, Floats]:
    """Merge pairs that cost least, without looking at the data again, until no more than L states are left."""
    while len(weights) > hyper.n_states:
        gains = merge_gains(start, weights, emission, hyper)
        first, second = divmod(int(np.argmax(gains)), len(gains))
        start, weights = merged_start(start, first, second), merged_weights(weights, first, second, hyper)
    return start, weights


# The longest block of steps of each start in turn, of lengths drawn evenly: states that last are found from long
# blocks, states that alternate from short ones. A step has this much of its probability in its block's state.
_LONGEST_BLOCKS = (8, 1, 4, 2)
_SURE = 0.9


def random_blocks(n_steps: int, n_states: int, longest: int, rng: np.random.Generator) -> Floats:
    """Posteriors (n_steps, n_states) that put blocks of consecutive steps into random states."""
    lengths = rng.integers(1, longest + 1, size=n_steps)
    states = np.repeat(rng.integers(n_states, size=len(lengths)), lengths)[:n_steps]
    posteriors = np.full((n_steps, n_states), (1.0 - _SURE) / n_states)
    posteriors[np.arange(n_steps), states] += _SURE
    return posteriors


def fit_from_blocks(
    sequences: Sequences, emission: Emission, hyper: ClusterPrior, rng: np.random.Generator, n_starts: int = 4
) -> ClusterFit:
    """The best of several fits from random blocks, states merged.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> codes = np.tile(np.repeat([0, 1], 10), 6)
    >>> sequences = Sequences((codes,), np.array([0, 120]), np.array([0, 1]))
    >>> fit = fit_from_blocks(sequences, Categorical(2), ClusterPrior(), np.random.default_rng(0))
    >>> fit.statistics.round().tolist() in ([[60, 0], [0, 60]], [[0, 60], [60, 0]])
    True
    """
    # More states than steps cannot be told apart.
    n_states = min(hyper.n_states, sequences.n_steps)
    fits = []
    for i in range(n_starts):
        blocks = random_blocks(sequences.n_steps, n_states, _LONGEST_BLOCKS[i % len(_LONGEST_BLOCKS)], rng)
        start = start_from_posteriors(sequences, emission, blocks)
        fit = fit_cluster(sequences, emission, hyper, start, tolerance=ROUGHLY)
        fits.append(merge_states(sequences, emission, hyper, fit, tolerance=ROUGHLY))
    best = max(fits, key=lambda fit: fit.bound)
    return merge_states(sequences, emission, hyper, best)
