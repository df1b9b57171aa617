"""Prototype sharing: every task a noisy copy of one prototype (thesis section 2.4, eq. 2.25–2.31).

Evidence is a bridge from a known distribution to the posterior, group by group.
Each group's evidence is an integral over its strength K and its prototype θ̄: few numbers, with one mode. A distribution
q is fitted to half of the posterior draws: a Student's t for log K, and for θ̄ sticks broken one after another, each by
a Beta (R. J. Connor and J. E. Mosimann, J. Amer. Statist. Assoc. 64, 1969). With draws from q and the other half of the
posterior's, the evidence is the fixed point of

    Z = mean over q of [p̃ / (p̃ + Z q)]  /  mean over the posterior of [1 / (p̃ + Z q)],        p̃ = prior · likelihood

(X.-L. Meng and W. H. Wong, Statist. Sinica 6, 1996). Logs of independent groups add up, their errors in quadrature.
What unlabelled rows add is annealed: from labels drawn blindly to the posterior, with the labelled rows at full power.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray
from scipy.special import betaln, expit, gammaln, log_expit

from kinfolk.evidence import Annealed, Evidence, annealed_evidence
from kinfolk.maths.arrays import Floats
from kinfolk.maths.gamma_draws import log_gamma_draws
from kinfolk.naive_bayes.inference import prototype_labelled, prototype_unlabelled
from kinfolk.naive_bayes.inference.conditional_evidence import ratio, without_labels
from kinfolk.naive_bayes.inference.empirical_bayes import with_learnt_prior
from kinfolk.naive_bayes.inference.fitting import LeftOut
from kinfolk.naive_bayes.inference.leave_one_out import fitted_blocks
from kinfolk.naive_bayes.inference.leave_one_out import leave_out as leave_out_of_blocks
from kinfolk.naive_bayes.inference.options import Effort, Options, Schedule
from kinfolk.naive_bayes.inference.prototype_labelled import sample_group
from kinfolk.naive_bayes.inference.prototype_unlabelled import PrototypeChain
from kinfolk.naive_bayes.model.noisy_copies import NoiseModel, log_likelihoods, noise_model
from kinfolk.naive_bayes.model.prototype import all_votes, mean_counts, pseudo_counts
from kinfolk.naive_bayes.model.tallies import Tallies, tally
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, TrainingData
from kinfolk.pieces import delayed
from kinfolk.tasks.statistics import Rows

# Chains, sweeps thrown away and draws of the runs that evidence is estimated from.
_SCHEDULE = Schedule(4, 100, 500)
_BATCHES_PER_CHAIN = 5
_FREEDOM = 5.0


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Sample strengths and prototypes, and the labels of unlabelled rows."""
    pooled = data.statistics.pooled().feature_counts
    hyper = with_learnt_prior(hyper, pooled, data.statistics.layout, same_for_labels=True)
    infer_all = prototype_unlabelled.infer if data.n_unlabelled else prototype_labelled.infer
    return infer_all(data, hyper, options, seed)


def evidence(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
    """Log p(X, Y): a bridge, and annealed where there are unlabelled rows."""
    model = noise_model(hyper.feature_prior, data.statistics.layout, options.strength_prior)
    return prototype_evidence(data, hyper, model, seed, options.n_jobs)


def leave_out(data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options) -> LeftOut:
    """Take rows out of their tasks and, by their votes, out of the prototype; strengths stay as they are."""
    assert fitted.prototypes is not None
    layout = data.statistics.layout
    pseudo = pseudo_counts(fitted.prototypes, layout)
    votes = hyper.feature_prior + all_votes(mean_counts(fitted), pseudo, layout)
    of_tasks = hyper._replace(feature_prior=pseudo, votes=votes)
    return leave_out_of_blocks(data, of_tasks, fitted_blocks(fitted), rows, data.statistics.label_counts)


def labels_given_features(
    data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
) -> Evidence:
    """Log p(Y | X)."""
    model = noise_model(hyper.feature_prior, data.statistics.layout, options.strength_prior)
    joint = prototype_evidence(data, hyper, model, effort.seed, effort.n_jobs)
    blind = without_labels(data, rows)
    arranged, _ = blind.arranged(blind.canonical_order)
    states: list[Annealed] = [PrototypeChain(arranged, hyper, model) for _ in range(effort.n_runs)]
    return ratio(joint, effort.log_features(states))


def prototype_evidence(
    data: TrainingData,
    hyper: HyperParameters,
    model: NoiseModel,
    seed: int,
    n_jobs: int | None = None,
    n_runs: int = 32,
) -> Evidence:
    """Estimate log p(X, Y), with its standard error; ``n_runs`` annealed ones if there are unlabelled rows."""
    labelled = _labelled_evidence(data, hyper, model, seed, n_jobs)
    if not data.n_unlabelled:
        return labelled
    arranged, _ = data.arranged(data.canonical_order)
    states: list[Annealed] = [PrototypeChain(arranged, hyper, model) for _ in range(n_runs)]
    seeds = np.random.SeedSequence([seed, 2]).spawn(n_runs)
    whole = annealed_evidence(states, labelled.value, seeds, n_jobs=n_jobs)
    return whole._replace(error=float(np.hypot(whole.error, labelled.error)))


def _labelled_evidence(
    data: TrainingData, hyper: HyperParameters, model: NoiseModel, seed: int, n_jobs: int | None
) -> Evidence:
    counts = data.statistics.feature_counts
    tallies = tally(counts, model.group_start)
    pooled = counts.sum(axis=0)
    # One value alone is certain, and no data have probability one.
    told = np.flatnonzero(tallies.seen(model.n_groups) & (np.diff(model.group_start) > 1))
    seeds = np.random.SeedSequence([seed, 1]).spawn(model.n_groups)
    found = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_group_evidence)(g, model, tallies, pooled, seeds[g]) for g in told.tolist()
    )
    value = hyper.log_label_evidence(data.statistics.label_counts) + sum(log_z for log_z, _ in found)
    error = float(np.sqrt(sum(error**2 for _, error in found)))
    return Evidence(float(value), "estimate" if len(told) else "exact", error)


def _group_evidence(
    group: int, model: NoiseModel, tallies: Tallies, pooled: NDArray[np.generic], seed: np.random.SeedSequence
) -> tuple[float, float]:
    """Log evidence of a group's counts, and its standard error."""
    sampling, proposing = seed.spawn(2)
    log_strength, log_prototype, log_joint = sample_group(group, model, tallies, pooled, _SCHEDULE, sampling)
    half = _SCHEDULE.n_draws // 2
    n_values = log_prototype.shape[-1]
    proposal = Proposal.fitted(
        log_strength[:, :half].ravel(),
        log_prototype[:, :half].reshape(-1, n_values),
        model.prototype_prior[model.cells(group)],
    )
    drawn = proposal.draw(log_strength[:, half:].size, np.random.default_rng(proposing))
    from_proposal = log_likelihoods(group, model, tallies, *drawn) + model.log_prior(group, *drawn)
    from_proposal -= proposal.log_density(*drawn)
    from_posterior = log_joint[:, half:].ravel() - proposal.log_density(
        log_strength[:, half:].ravel(), log_prototype[:, half:].reshape(-1, n_values)
    )
    return bridge(from_posterior.reshape(_SCHEDULE.n_chains * _BATCHES_PER_CHAIN, -1), from_proposal)


class Proposal(NamedTuple):
    """A distribution over log K, a Student's t, and θ̄, sticks broken by Betas."""

    centre: float
    scale: float
    broken: Floats
    left: Floats

    @classmethod
    def fitted(cls, log_strength: Floats, log_prototype: Floats, prior: Floats) -> Proposal:
        """Match the moments of draws; a stick whose draws tell nothing is broken as the prior breaks it."""
        log_part, log_rest = _sticks(log_prototype)
        mean, rest, variance = (
            np.exp(log_part).mean(axis=0),
            np.exp(log_rest).mean(axis=0),
            np.exp(log_part).var(axis=0),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            total = mean * rest / variance - 1.0
        after = np.cumsum(prior[::-1])[::-1][1:]
        known = np.isfinite(total) & (total > 0.0) & (mean > 0.0)
        return cls(
            float(log_strength.mean()),
            float(log_strength.std()) * np.sqrt((_FREEDOM - 2.0) / _FREEDOM),
            np.where(known, mean * total, prior[:-1]),
            np.where(known, rest * total, after),
        )

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Log strengths (n,) and log prototypes (n, values)."""
        log_strength = self.centre + self.scale * rng.standard_t(_FREEDOM, n)
        size = (n, len(self.broken))
        log_odds = log_gamma_draws(np.broadcast_to(self.broken, size), rng)
        log_odds -= log_gamma_draws(np.broadcast_to(self.left, size), rng)
        log_rest = np.cumsum(log_expit(-log_odds), axis=1)
        log_part = log_expit(log_odds)
        log_part[:, 1:] += log_rest[:, :-1]
        return log_strength, np.concatenate([log_part, log_rest[:, -1:]], axis=1)

    def log_density(self, log_strength: Floats, log_prototype: Floats) -> Floats:
        """Log density of points, over log K and all θ̄_x but the last."""
        z = (log_strength - self.centre) / self.scale
        t = gammaln((_FREEDOM + 1.0) / 2.0) - gammaln(_FREEDOM / 2.0) - 0.5 * np.log(_FREEDOM * np.pi)
        t = t - np.log(self.scale) - (_FREEDOM + 1.0) / 2.0 * np.log1p(z**2 / _FREEDOM)
        log_part, log_rest = _sticks(log_prototype)
        sticks = log_part @ (self.broken - 1.0) + log_rest @ (self.left - 1.0) - betaln(self.broken, self.left).sum()
        # A stick is as long as what the sticks before it left.
        lengths = np.cumsum(log_rest, axis=1)[:, :-1].sum(axis=1)
        return np.asarray(t + sticks - lengths)


def _sticks(log_prototype: Floats) -> tuple[Floats, Floats]:
    """Logs of the part of what is left that each value but the last takes, and of the rest."""
    log_left = np.logaddexp.accumulate(log_prototype[:, ::-1], axis=1)[:, ::-1]
    return log_prototype[:, :-1] - log_left[:, :-1], log_left[:, 1:] - log_left[:, :-1]


def bridge(from_posterior: Floats, from_proposal: Floats, n_iterations: int = 1000) -> tuple[float, float]:
    """Log of the ratio of two normalising constants, and its standard error.

    Takes log p̃/q at as many draws of the posterior as of the proposal. Those of the posterior come in batches
    (batches, draws), one after another along a chain, whose spread knows of autocorrelation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, q = rng.normal(0, 1.0, (10, 500)), rng.normal(0, 1.5, 5000)
    >>> def log_ratio(x):  # exp(−x²/2) over the density of q; the integral of the former is √(2π)
    ...     return -(x**2) / 2 + (x / 1.5) ** 2 / 2 + np.log(1.5 * np.sqrt(2 * np.pi))
    >>> value, error = bridge(log_ratio(p), log_ratio(q))
    >>> bool(abs(value - 0.5 * np.log(2 * np.pi)) < 3 * error < 0.06)
    True
    """
    value = float(np.median(from_posterior))
    for _ in range(n_iterations):
        of_proposal, of_posterior = expit(from_proposal - value), expit(value - from_posterior)
        step = float(np.log(of_proposal.mean()) - np.log(of_posterior.mean()))
        value += step
        if abs(step) < 1e-10:
            break
    batches = of_posterior.mean(axis=1)
    variance = of_proposal.var(ddof=1) / len(of_proposal) / of_proposal.mean() ** 2
    variance += batches.var(ddof=1) / len(batches) / batches.mean() ** 2
    return value, float(np.sqrt(variance))
