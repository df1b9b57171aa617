"""Evidence as a value, and annealed importance sampling to estimate it (thesis appendix A.2).

How finely the power rises is settled by pilot runs: where the log likelihood varies much between runs, steps are short,
and there are as many steps as the wanted standard error asks for. Pilots are thrown away, so that the runs that are
averaged know nothing of how their powers were chosen, and the average of their weights stays unbiased.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
from joblib import Parallel
from scipy.special import logsumexp

from kinfolk.pieces import delayed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Kind = Literal["exact", "estimate", "lower bound"]

_N_PILOTS = 8
_MOST_ROUNDS = 4
_FEWEST_POWERS = 40
_USUAL_POWERS = 200
# Pilots grow by this factor at most, so that a rough guess from a few steps does not buy very many.
_MOST_GROWTH = 4.0
# Room left above the number of powers that pilots, few as they are, ask for.
_MARGIN = 1.25
# Share of the powers that lie where a path of this kind usually needs them, whatever the pilots saw.
_SHARE_AS_USUAL = 0.2


class Evidence(NamedTuple):
    """Natural log of p(X, Y) of the training rows as an ordered sequence, and what kind of number it is.

    ``error`` is the standard error of an estimate on the log scale, zero for exact numbers and bounds.
    """

    value: float
    kind: Kind
    error: float = 0.0


class Annealed(Protocol):
    """A state that can be moved while the likelihood is raised from power zero to one."""

    @property
    def log_likelihood(self) -> float | NDArray[np.float64]:
        """Log likelihood of the current state, the part that the power acts on.

        An array, if the state is made of parts that never touch each other: one number for each of them.
        """

    def draw_from_prior(self, rng: np.random.Generator) -> None:
        """Draw the state from its distribution at power zero."""

    def sweep(self, rng: np.random.Generator, power: float) -> object:
        """Move the state by a step that leaves its distribution at this power as it is."""


def anneal(
    state: Annealed, powers: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One annealed run: its log weight, and the log likelihood of the whole state before each step.

    The exponential of the log weight is an unbiased estimate of Z₁/Z₀ (thesis eq. A.70). It is one number, or one for
    each independent part of the state.
    """
    state.draw_from_prior(rng)
    log_weight, seen = np.zeros(()), np.empty(len(powers) - 1)
    for step, (before, after) in enumerate(pairwise(powers)):
        if step:
            state.sweep(rng, float(before))
        log_likelihood = np.asarray(state.log_likelihood)
        log_weight = log_weight + (after - before) * log_likelihood
        seen[step] = log_likelihood.sum()
    return log_weight, seen


def annealed_evidence(
    states: Sequence[Annealed],
    log_start: float,
    seeds: Sequence[np.random.SeedSequence],
    n_powers: int | None = None,
    n_jobs: int | None = None,
    *,
    target_error: float = 0.1,
    max_powers: int = 500,
) -> Evidence:
    """Estimate log Z₁ = log Z₀ + log mean of the weights of independent runs, one per state.

    The average stands without the 1/N in front of a ratio of sums that eq. A.53 prints. Where a state is made of
    independent parts, the means of the parts' weights are multiplied, which varies far less than the mean of products.

    Parameters
    ----------
    states : sequence of Annealed
        One for every run; none of what they hold is used but their distribution.
    log_start : float
        Log Z₀.
    seeds : sequence of SeedSequence
        One for every run.
    n_powers : int, optional
        Number of steps of the fourth powers of an even grid. By default pilot runs choose number and places.
    n_jobs : int, optional
        Runs side by side (threads, through joblib); the result does not depend on it.
    target_error : float
        Standard error that the pilots aim at, on the log scale.
    max_powers : int
        Steps that no wish for accuracy goes beyond; the error then tells how far the aim was missed.

    Returns
    -------
    Evidence
    """
    if n_powers is not None or len(states) < 2:
        powers = usual_powers(_USUAL_POWERS if n_powers is None else n_powers)
    else:
        powers = adapted_powers(states, seeds, n_jobs, target_error, max_powers)
    log_weights, _ = _side_by_side(states, powers, seeds, n_jobs)
    value, error = _log_of_means(log_weights)
    return Evidence(log_start + value, "estimate", error)


def _side_by_side(
    states: Sequence[Annealed],
    powers: NDArray[np.float64],
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: int | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log weights (runs, parts) and log likelihoods on the way (runs, steps) of independent runs."""
    runs = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(anneal)(state, powers, np.random.default_rng(seed)) for state, seed in zip(states, seeds, strict=True)
    )
    log_weights = np.array([log_weight for log_weight, _ in runs]).reshape(len(runs), -1)
    return log_weights, np.array([seen for _, seen in runs])


def _log_of_means(log_weights: NDArray[np.float64]) -> tuple[float, float]:
    """Sum over parts of the log of their mean weight over runs, and its standard error."""
    n = len(log_weights)
    values = logsumexp(log_weights, axis=0) - np.log(n)
    if n == 1:
        return float(values.sum()), np.inf
    # Leaving out one run at a time: where runs agree, this is the spread of the weights; where the mean rests on one of
    # them, whose weight says nothing about how large weights can be, it is how far that one stands out.
    without = np.array([logsumexp(np.delete(log_weights, i, axis=0), axis=0) for i in range(n)])
    variance = (n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    return float(values.sum()), float(np.sqrt(variance.sum()))


def usual_powers(n_powers: int) -> NDArray[np.float64]:
    """Powers from zero to one, the fourth powers of an even grid: most changes where the likelihood is weak."""
    return np.asarray(np.linspace(0.0, 1.0, n_powers + 1) ** 4)


def adapted_powers(
    states: Sequence[Annealed],
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: int | None = None,
    target_error: float = 0.1,
    max_powers: int = 500,
) -> NDArray[np.float64]:
    """Powers such that the mean of as many runs as there are seeds has about the standard error that is wanted.

    Pilot runs, with randomness of their own, tell how the log likelihood varies along the path. Every step adds about
    the same to the variance of the log weights, which falls with the number of steps. Finer steps are preferred to more
    runs, because the error of an average of a few very different weights cannot be known.
    """
    n_pilots = min(_N_PILOTS, len(states))
    powers = usual_powers(min(_FEWEST_POWERS, max_powers))
    for pilot_round in range(_MOST_ROUNDS):
        # Children of the runs' seeds have streams that are independent of their parents'.
        own = [
            np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, pilot_round)) for seed in seeds[:n_pilots]
        ]
        log_weights, seen = _side_by_side(states[:n_pilots], powers, own, n_jobs)
        excess = _excess(log_weights.var(axis=0, ddof=1), len(seeds) * target_error**2)
        wanted = np.ceil((len(powers) - 1) * min(_MARGIN * excess, _MOST_GROWTH))
        n_powers = int(np.clip(wanted, min(_FEWEST_POWERS, max_powers), max_powers))
        powers = _even_steps(powers, seen.std(axis=0, ddof=1), n_powers)
        if excess <= 1.0 or n_powers == max_powers:
            break
    return powers


def _excess(variances: NDArray[np.float64], allowed: float) -> float:
    """Factor by which the variances of the parts' log weights must fall, weights being nearly log-normal."""
    factors = np.exp2(np.arange(-8.0, 20.0, 0.25))
    relative = np.expm1(np.minimum(variances / factors[:, None], 500.0)).sum(axis=1)
    good = relative <= allowed
    return float(factors[good.argmax()] if good.any() else factors[-1])


def _even_steps(powers: NDArray[np.float64], spread: NDArray[np.float64], n_powers: int) -> NDArray[np.float64]:
    """Powers between which the integral of the log likelihood's standard deviation grows evenly."""
    usual = np.linspace(0.0, 1.0, n_powers + 1)
    at_end = np.append(spread, spread[-1])
    length = np.append(0.0, np.cumsum(np.diff(powers) * (at_end[1:] + at_end[:-1]) / 2.0))
    if not (np.isfinite(length[-1]) and length[-1] > 0.0):
        return usual_powers(n_powers)
    progress = (1.0 - _SHARE_AS_USUAL) * length / length[-1] + _SHARE_AS_USUAL * powers**0.25
    found = np.interp(usual, progress, powers)
    found[0], found[-1] = 0.0, 1.0
    return np.asarray(found)
