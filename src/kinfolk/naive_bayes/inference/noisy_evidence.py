"""Evidence of clusters of noisy copies: annealed importance sampling along a path on which every step stays closed.

Pseudo-counts K θ̄^τ lead from the model without prototypes, τ = 0, to the model itself, τ = 1 (see ``noisy``). In
terms of seats, strengths and votes, prototypes integrated out, the path is

    f_τ(z, K, t) = p(z) p(K) ∏_u Γ(K)/Γ(K + N_u) ∏_x s(n_{u,x}, t_{u,x}) K^{t_{u,x}} · ∏_c B(β + τ t_c) / B(β),

and every sweep at τ is that of the model with votes that count by τ. At τ = 0 seats come from the restaurant and groups
are independent: ∏_g ∫ p(K) ∏_u ∏_x (K↑n_{u,x}) / (K↑N_u) dK, sums over a grid of log K.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from scipy.special import gammaln, logsumexp

from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.inference.noisy_sampling import NoisyChain
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.hyper import HyperParameters
from kinfolk.naive_bayes.model.noisy_copies import NoiseModel, log_likelihoods, noise_model
from kinfolk.naive_bayes.model.tallies import Tallies, tally

# The grid leaves out what is less dense than the densest point by so many nats.
_NEGLIGIBLE = 40.0
_N_POINTS = 1000


def noisy_evidence(
    data: TrainingData,
    hyper: HyperParameters,
    strength_prior: tuple[float, float],
    seed: int,
    n_jobs: int | None = None,
    n_runs: int = 32,
    n_powers: int = 200,
) -> Evidence:
    """Estimate log p(X, Y) of the labelled rows, with its standard error.

    O(runs · powers · (rows · features + tasks · clusters · cells)).
    """
    arranged, _ = data.labelled_only().arranged(data.canonical_order())
    model = noise_model(hyper.feature_prior, data.statistics.layout, strength_prior)
    tallies = tally(data.statistics.feature_counts, model.group_start)
    grids = [_strength_grid(model, tallies, g) for g in range(model.n_groups)]
    powers = np.linspace(0.0, 1.0, n_powers + 1) ** 2
    log_weights = np.array(
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_anneal)(
                NoisyChain(arranged, hyper, model, annealed=True), grids, powers, np.random.default_rng(part)
            )
            for part in np.random.SeedSequence([seed, 3]).spawn(n_runs)
        )
    )
    gain = float(logsumexp(log_weights) - np.log(n_runs))
    log_start = hyper.log_label_evidence(data.statistics.label_counts)
    for points, log_density in grids:
        log_start += float(logsumexp(log_density) + np.log(points[1] - points[0]))
    error = np.exp(log_weights - gain).std(ddof=1) / np.sqrt(n_runs) if n_runs > 1 else np.inf
    return Evidence(log_start + gain, "estimate", float(error))


def _anneal(chain: NoisyChain, grids: list[tuple[Floats, Floats]], powers: Floats, rng: np.random.Generator) -> float:
    """Log weight of one run."""
    _draw_start(chain, grids, rng)
    log_weight = 0.0
    for after in powers[1:]:
        log_weight -= chain.seating.log_likelihood
        chain.count_votes(float(after))
        log_weight += chain.seating.log_likelihood
        # The state that was weighed has no prototypes; the sweep's first steps need those of its own power.
        chain.redraw_prototypes(rng)
        chain.sweep(rng, float(after), adapt=False)
    return log_weight


def _draw_start(chain: NoisyChain, grids: list[tuple[Floats, Floats]], rng: np.random.Generator) -> None:
    """Draw strengths, seats and votes at power zero."""
    for g, (points, log_density) in enumerate(grids):
        cumulative = np.cumsum(np.exp(log_density - log_density.max()))
        point = np.searchsorted(cumulative, rng.random() * cumulative[-1])
        chain.copies.log_strength[g] = points[point] + (rng.random() - 0.5) * (points[1] - points[0])
    chain.draw_concentration_from_prior(rng)
    chain.count_votes(0.0)
    chain.seating.draw_from_prior(rng.random(len(chain.counts)))
    chain.redraw_prototypes(rng)
    chain.redraw_votes(rng, 0.0)


def _strength_grid(model: NoiseModel, tallies: Tallies, group: int) -> tuple[Floats, Floats]:
    """An even grid of log K and the log of its density at power zero, not normalised."""
    cells = model.cells(group)
    constant = model.shape * np.log(model.rate) - gammaln(model.shape)

    def log_density(points: Floats) -> Floats:
        prior = constant + model.shape * points - model.rate * np.exp(points)
        shares = np.zeros((len(points), cells.stop - cells.start))
        return np.asarray(prior + log_likelihoods(group, model, tallies, points, shares))

    def at(point: float) -> float:
        return float(log_density(np.array([point]))[0])

    # The likelihood rises with K and levels off; times the prior it has one peak.
    ends = []
    highest = at(np.log(model.shape / model.rate))
    for direction in (1.0, -1.0):
        end, step = float(np.log(model.shape / model.rate)), 0.5
        while (value := at(end)) > highest - _NEGLIGIBLE:
            highest = max(highest, value)
            end, step = end + direction * step, step * 1.1
        ends.append(end)
    points = np.linspace(ends[1], ends[0], _N_POINTS)
    return points, log_density(points)
