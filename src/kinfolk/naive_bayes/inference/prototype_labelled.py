"""Inference in the prototype model (thesis section 2.4): draws of prototypes and strengths, and the predictions' rates.

Given labelled rows, the groups (y, f) of one label and one feature are independent a posteriori, and so are the label
rates φ_u of the tasks; hence the predictive distribution of a task's next row is a product,

    p(x, y | u, D) = E[φ_{u,y}] ∏_f E[θ_{u,y,f,x_f}],        θ_u | K, θ̄, D ~ Dirichlet(n_u + K θ̄),

    E[θ_{u,x}] = E[(n_{u,x} + K θ̄_x) / (N_u + K)] = n_{u,x} E[1 / (N_u + K)] + E[K θ̄_x / (N_u + K)],

in which every expectation is over the posterior draws of that one group. So one block per task, holding the averaged
rates, is exact, and so is E[θ̄] for a task never seen; both expectations depend on the task through N_u alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from kinfolk.convergence import Convergence, diagnose
from kinfolk.interrupts import stops_safely
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.inference.options import Options, Schedule
from kinfolk.naive_bayes.model.mixture import Mixture
from kinfolk.naive_bayes.model.noisy_copies import NoiseModel, State, log_likelihoods, noise_model, run_group
from kinfolk.naive_bayes.model.prototype import TINY
from kinfolk.naive_bayes.model.tallies import Tallies, tally
from kinfolk.naive_bayes.model.values import (
    Blocks,
    Fitted,
    HyperParameters,
    PrototypeDraws,
    TrainingData,
    log_feature_rates,
)
from kinfolk.pieces import delayed
from kinfolk.progress import progress_bar

# Rates are averaged for this many different row totals at a time, so that memory stays bounded.
_TOTALS_AT_ONCE = 4096


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Sample the posterior given the labelled rows, group by group. O(tasks · cells + sweeps · different counts)."""
    statistics, schedule = data.statistics, options.schedule
    model = noise_model(hyper.feature_prior, statistics.layout, options.strength_prior)
    tallies = tally(statistics.feature_counts, model.group_start)
    pooled = statistics.feature_counts.sum(axis=0)
    seeds = np.random.SeedSequence(seed).spawn(model.n_groups)

    keep = options.checkpoint
    key = ("groups of the prototype", statistics.feature_counts, model, schedule, seed)
    # Draws of some groups alone are no draws of the model: only what is kept, or other threads, need a safe end.
    wanted = keep.folder is not None or options.n_jobs not in (None, 1)
    bar = progress_bar("Sampling", model.n_groups * schedule.n_sweeps, options.verbose)
    with bar as advance, stops_safely(wanted) as stop:

        def sample(g: int) -> tuple[Floats, Floats, Floats]:
            if stop.asked():
                raise KeyboardInterrupt
            place = keep.place(*key, g)
            drawn: tuple[Floats, Floats, Floats] | None = place.load()
            if drawn is None:
                drawn = sample_group(g, model, tallies, pooled, schedule, seeds[g])
                place.save(drawn)
            advance(schedule.n_sweeps)
            return drawn

        by_group = Parallel(n_jobs=options.n_jobs, prefer="threads")(delayed(sample)(g) for g in range(model.n_groups))
    draws = PrototypeDraws(
        np.exp(np.stack([log_strengths for log_strengths, _, _ in by_group], axis=-1)),
        np.exp(np.concatenate([log_prototypes for _, log_prototypes, _ in by_group], axis=-1)),
    )
    counts = np.concatenate([statistics.feature_counts, np.zeros_like(statistics.feature_counts[:1])])
    rates = expected_rates(counts, model, draws)
    log_joint = sum(log_joint for _, _, log_joint in by_group) + hyper.log_label_evidence(statistics.label_counts)
    fitted = Fitted(
        blocks=blocks_of_draws(data, hyper, counts[None], statistics.label_counts[None], rates[None]),
        partition=np.arange(len(statistics.tasks)),
        log_joint=log_joint,
        convergence=convergence_of_prototypes(log_joint, draws.strengths),
        prototypes=draws,
    )
    return hyper, fitted


def convergence_of_prototypes(log_joint: Floats, strengths: Floats) -> Convergence:
    """Judge chains by their log joint (chains, draws) and by the worst of the strengths (chains, draws, groups)."""
    whole = diagnose({"log joint": log_joint})
    groups = diagnose({f"strength {g}": strengths[..., g] for g in range(strengths.shape[-1])})
    return Convergence(
        whole.r_hat | {"strengths": max(groups.r_hat.values())}, whole.ess | {"strengths": min(groups.ess.values())}
    )


def sample_group(
    group: int,
    model: NoiseModel,
    tallies: Tallies,
    pooled: NDArray[Any],
    schedule: Schedule,
    seed: np.random.SeedSequence,
) -> tuple[Floats, Floats, Floats]:
    """Log strengths (chains, draws), log prototypes (chains, draws, values) and log joint density of one group."""
    cells, chains = model.cells(group), []
    own = NoiseModel(np.array([0, cells.stop - cells.start]), model.prototype_prior[cells], model.shape, model.rate)
    # The last rows have the totals of groups.
    rows = np.append(np.arange(cells.start, cells.stop), len(model.prototype_prior) + group)
    tallies = tallies.of_rows(rows)
    seen = len(tallies.at) > 0
    mass = pooled[cells] + own.prototype_prior
    for part in seed.spawn(schedule.n_chains):
        rng = np.random.default_rng(part)
        strengths = model.draw_strengths(rng)
        if seen:
            state = State(strengths[[group]], np.log(mass)[None] - np.log(mass.sum()), np.ones(1), np.ones(len(mass)))
            chains.append(run_group(0, own, tallies, state, schedule.n_burn_in, schedule.n_draws, rng))
        else:
            chains.append(own.draw_prior(0, schedule.n_draws, rng))
    log_strengths = np.array([log_strength for log_strength, _ in chains])
    log_prototypes = np.array([log_prototype for _, log_prototype in chains])
    log_joint = [log_likelihoods(0, own, tallies, *chain) + own.log_prior(0, *chain) for chain in chains]
    return log_strengths, log_prototypes, np.array(log_joint)


def expected_rates(counts: NDArray[Any], model: NoiseModel, draws: PrototypeDraws) -> Floats:
    """Posterior mean of the feature rates of tasks with these counts (tasks, cells)."""
    strengths = draws.strengths.reshape(-1, model.n_groups)
    prototypes = draws.prototypes.reshape(len(strengths), -1)
    out = np.empty(counts.shape)
    for g in range(model.n_groups):
        cells, strength = model.cells(g), np.maximum(strengths[:, g], TINY)
        totals, place = np.unique(counts[:, cells].sum(axis=1), return_inverse=True)
        per_count, pseudo = np.empty(len(totals)), np.empty((len(totals), cells.stop - cells.start))
        for first in range(0, len(totals), _TOTALS_AT_ONCE):
            part = slice(first, first + _TOTALS_AT_ONCE)
            inverse = 1.0 / (totals[part, None] + strength)
            per_count[part] = inverse.mean(axis=1)
            pseudo[part] = (inverse * strength) @ prototypes[:, cells] / len(strength)
        # A task without rows has the prototype itself, which a strength near zero must not blur.
        per_count[totals == 0] = 0.0
        out[:, cells] = counts[:, cells] * per_count[place, None] + pseudo[place]
    return np.maximum(out, TINY)


def blocks_of_draws(
    data: TrainingData, hyper: HyperParameters, counts: NDArray[Any], label_counts: NDArray[Any], rates: Floats
) -> Blocks:
    """A block for every draw and task; the last task of each draw is a new one."""
    layout = data.statistics.layout
    n_draws, n_owners, n_cells = rates.shape
    by_task = np.arange(n_draws * n_owners).reshape(n_draws, n_owners).T.ravel()
    own = np.concatenate([label_counts, np.zeros_like(label_counts[:, :1])], axis=1)
    flat = rates.reshape(-1, n_cells)
    mixture = Mixture(
        layout.offsets,
        log_feature_rates(flat, np.zeros(n_cells), layout.group_start, layout.n_labels),
        np.arange(n_owners + 1) * n_draws,
        by_task,
        np.full(len(by_task), -np.log(n_draws)),
        hyper.log_label_rates(own.reshape(len(flat), -1))[by_task],
    )
    sizes = np.tile(np.append(np.ones(n_owners - 1, dtype=np.int64), 0), n_draws)
    return Blocks(counts.reshape(-1, n_cells), sizes, mixture)
