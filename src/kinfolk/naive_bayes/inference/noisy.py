"""Clustered naive Bayes whose tasks have noisy copies of their cluster's rates; ``noisy_sampling`` has the model.

Evidence is annealed along a path on which every step stays closed.
Pseudo-counts K θ̄^τ lead from the model without prototypes, τ = 0, to the model itself, τ = 1. In
terms of seats, strengths and votes, prototypes integrated out, the path is

    f_τ(z, K, t) = p(z) p(K) ∏_u Γ(K)/Γ(K + N_u) ∏_x s(n_{u,x}, t_{u,x}) K^{t_{u,x}} · ∏_c B(β + τ t_c) / B(β),

and every sweep at τ is that of the model with votes that count by τ. At τ = 0 seats come from the restaurant and groups
are independent: ∏_g ∫ p(K) ∏_u ∏_x (K↑n_{u,x}) / (K↑N_u) dK, sums over a grid of log K.

In a block whose rates are (n + K m) / (N + K), taking out a row with value x leaves n_x − 1 and N − 1 of the task's own
rows, and a prototype m without the vote that the row had cast, if it had: that is so with probability
K m_x / (K m_x + n_x − 1). What is known of the block changes by the row's own probability, as in ``leave_one_out``.

In the papers: Roy and Kaelbling (2007), section 6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.naive_bayes.inference import noisy_sampling
from kinfolk.naive_bayes.inference.clustered import learn_from_blocks
from kinfolk.naive_bayes.inference.fitting import LeftOut
from kinfolk.naive_bayes.inference.leave_one_out import entries_of_rows, weigh_without
from kinfolk.naive_bayes.inference.noisy_sampling import NoisyChain
from kinfolk.naive_bayes.inference.options import Effort, Options
from kinfolk.naive_bayes.model.noisy_copies import NoiseModel, log_likelihoods, noise_model
from kinfolk.naive_bayes.model.tallies import Tallies, tally
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, TrainingData
from kinfolk.pieces import delayed
from kinfolk.tasks.statistics import Rows

# The grid leaves out what is less dense than the densest point by so many nats.
_NEGLIGIBLE = 40.0
_N_POINTS = 1000


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Sample partitions, strengths and prototypes, whatever algorithm the options name."""
    hyper, _ = learn_from_blocks(data, hyper, options._replace(inference="gibbs"), seed)
    return noisy_sampling.infer(data, hyper, options, seed)


def evidence(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
    """Log p(X, Y) of the labelled rows, annealed."""
    return noisy_evidence(data, hyper, options.strength_prior, seed, options.n_jobs)


def leave_out(data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options) -> LeftOut:
    """Take out each of the labelled rows in turn. O(rows · blocks of its task · features · labels).

    A row of weight 2 is two rows, of which one is taken out.
    """
    assert fitted.sources is not None
    layout, mixture = data.statistics.layout, fitted.blocks.mixture
    start = entries_of_rows(mixture.start, rows.task)
    log_fit = np.empty((int(start[-1]), rows.codes.shape[1], layout.n_labels))
    counts = data.statistics.feature_counts
    tasks = _Tasks(counts, np.add.reduceat(counts, layout.group_start[:-1], axis=1))
    blocks = _Blocks(mixture.start, mixture.block, mixture.log_theta, fitted.sources.pull, fitted.sources.mass)
    _fit_without(rows.codes, rows.labels, rows.task, tasks, blocks, layout.offsets, start, log_fit)
    taken, label_counts = np.ones(len(rows.labels)), data.statistics.label_counts
    return weigh_without(start, mixture.start, mixture.log_weight, log_fit, rows, taken, label_counts, hyper)


def labels_given_features(
    data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
) -> Evidence:
    """Refuse: unknown labels and votes are not annealed together."""
    raise ValueError('conditional_evidence knows partition_per="task" with within="same" alone')


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
    arranged, _ = data.labelled_only().arranged(data.canonical_order)
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


class _Blocks(NamedTuple):
    """Blocks that tasks may belong to, entry by entry, with their rates and what these are made of."""

    start: NDArray[np.int64]
    block: NDArray[np.int64]
    log_theta: Floats
    pull: Floats
    mass: Floats


class _Tasks(NamedTuple):
    """Counts of the tasks, and their totals group by group."""

    counts: NDArray[np.generic]
    totals: NDArray[np.generic]


@compiled
def _fit_without(codes, labels, task, tasks, blocks, offsets, start, log_fit):  # type: ignore[no-untyped-def]
    """Log likelihood of every row's features under each label in each block, without the row itself."""
    n_features, width = codes.shape[1], offsets[-1]
    for i in range(len(labels)):
        u = task[i]
        for slot in range(start[i + 1] - start[i]):
            k = blocks.block[blocks.start[u] + slot]
            for y in range(log_fit.shape[2]):
                for f in range(n_features):
                    value = 0.0
                    if codes[i, f] >= 0:
                        cell = offsets[f] + codes[i, f]
                        value = blocks.log_theta[k, cell, y]
                        if y == labels[i]:
                            group = y * n_features + f
                            strength, votes = blocks.pull[k, group], blocks.mass[k, group]
                            n = float(tasks.counts[u, y * width + cell])
                            pseudo = max(np.exp(value) * (tasks.totals[u, group] + strength) - n, 1e-12 * strength)
                            cast = pseudo / (pseudo + n - 1.0)
                            share = (pseudo / strength * votes - cast) / (votes - cast)
                            rate = n - 1.0 + strength * max(share, 1e-12)
                            value = np.log(rate / (tasks.totals[u, group] - 1.0 + strength))
                    log_fit[start[i] + slot, f, y] = value
