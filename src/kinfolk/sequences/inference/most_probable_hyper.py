"""ClusterPrior-parameters that maximise the variational bound under their Gamma priors, given the fits of all clusters.

Each is maximised on its own, on the scale of its logarithm, with expected transitions, base weights and emission
statistics held; q(W) and q(θ) follow, since they are the posteriors given those. The bound never falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from kinfolk.maths.arrays import Floats
from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.inference.base_weights import base_bound, geometric_means
from kinfolk.sequences.inference.local_posteriors import log_rising
from kinfolk.sequences.inference.mean_field import ClusterFit
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors

# One update moves a hyper-parameter by no more than a factor of e to this power, and stops within this of the best.
_FARTHEST = 2.0
_PRECISION = 0.01


def most_probable(value: Callable[[float], float], current: float, prior: GammaPrior | float) -> float:
    """The hyper-parameter near ``current`` that maximises value + log prior density of its logarithm."""
    if not isinstance(prior, GammaPrior):
        return float(prior)

    def loss(log_at: float) -> float:
        at = float(np.exp(log_at))
        return -value(at) - prior.log_density(at)

    centre = float(np.log(current))
    found = minimize_scalar(
        loss, bounds=(centre - _FARTHEST, centre + _FARTHEST), method="bounded", options={"xatol": _PRECISION}
    )
    return float(np.exp(found.x)) if found.fun < loss(centre) else current


def learn_hyper(
    fits: Sequence[ClusterFit],
    emission: Emission,
    hyper: ClusterPrior,
    priors: Priors,
    task_weights: Sequence[Floats] | None = None,
) -> tuple[ClusterPrior, Emission]:
    """ClusterPrior-parameters for fits that are held, one after the other; those with a fixed value keep it.

    ``task_weights`` tells how far each task of a fit belongs to its cluster, wholly by default.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> from kinfolk.sequences.inference.task_set_fits import fit_from_blocks
    >>> from kinfolk.sequences.model.sequences import Sequences
    >>> codes = np.tile(np.repeat([0, 1], 10), 6)
    >>> sequences = Sequences((codes,), np.array([0, 120]), np.array([0, 1]))
    >>> fit = fit_from_blocks(sequences, Categorical(2, 1.0), ClusterPrior(), np.random.default_rng(0))
    >>> _, emission = learn_hyper([fit], Categorical(2, 1.0), ClusterPrior(), Priors())
    >>> emission.strength < 0.5
    True
    """
    weights = [np.ones(len(fit.counts)) for fit in fits] if task_weights is None else task_weights

    def of_rows(at: ClusterPrior) -> float:
        total = 0.0
        for fit, rho in zip(fits, weights, strict=True):
            base = geometric_means(fit.weights, at.gamma, at.n_states)
            counts = np.ascontiguousarray(fit.counts)
            total += log_rising(counts, rho, base, at.alpha, at.stickiness)[0]
            total += base_bound(fit.weights, at.gamma, at.n_states, float(rho.sum()))
        return total

    alpha = most_probable(lambda x: of_rows(hyper._replace(alpha=x)), hyper.alpha, priors.alpha)
    hyper = hyper._replace(alpha=alpha)
    gamma = most_probable(lambda x: of_rows(hyper._replace(gamma=x)), hyper.gamma, priors.gamma)
    hyper = hyper._replace(gamma=gamma)
    stickiness = most_probable(lambda x: of_rows(hyper._replace(stickiness=x)), hyper.stickiness, priors.stickiness)
    hyper = hyper._replace(stickiness=stickiness)
    statistics = np.concatenate([fit.statistics for fit in fits])
    strength = most_probable(
        lambda x: float(emission.with_strength(x).log_marginal(statistics).sum()), emission.strength, priors.strength
    )
    return hyper, emission.with_strength(strength)


def log_prior(priors: Priors, eta: float, hyper: ClusterPrior, strength: float) -> float:
    """Log prior density of the logarithms of the hyper-parameters that are learnt."""
    values = (eta, hyper.gamma, hyper.alpha, strength, hyper.stickiness)
    pairs = zip(priors, values, strict=True)
    return sum(prior.log_density(value) for prior, value in pairs if isinstance(prior, GammaPrior))
