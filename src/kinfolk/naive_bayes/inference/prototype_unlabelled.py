"""Inference in the prototype model when some rows have no label (thesis section 2.4, and A.1 for the labels).

An unlabelled row ties the groups of its features together. Its label is drawn along with strengths and prototypes,

    p(y | …) ∝ (m_{u,y} + α_y) ∏_f (n_{u,y,f,x} + K_{y,f} θ̄_{y,f,x}) / (N_{u,y,f} + K_{y,f}),

all counts without the row. The product over features that makes a task one block when all is labelled holds within a
draw only, and a task is a mixture of a block per draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.naive_bayes.inference.gibbs import Schedule, arrange
from kinfolk.naive_bayes.inference.label_draws import draw_label, log_grow
from kinfolk.naive_bayes.inference.prototype import (
    TINY,
    PrototypeDraws,
    blocks_of_draws,
    convergence_of_prototypes,
    expected_rates,
)
from kinfolk.naive_bayes.model.fitted import Fitted, Problem, log_label_marginals
from kinfolk.naive_bayes.model.noisy_copies import NoiseModel, State
from kinfolk.naive_bayes.model.tallies import Floats, tally
from kinfolk.tasks.statistics import Rows

# Of the draws, predictions use at most this many, and no more cells than this (128 MiB).
_MOST_KEPT = 100
_MOST_KEPT_CELLS = 1 << 24
_FEWEST_KEPT = 10


class PrototypeChain:
    """A sampler over strengths, prototypes and the labels of unlabelled rows.

    Annealed, the power acts on what the unlabelled rows' features say; at power zero there are only labelled rows.
    """

    def __init__(self, problem: Problem, model: NoiseModel) -> None:
        self.problem, self.model = problem, model
        self.labelled = tally(problem.statistics.feature_counts, model.group_start)
        self.rows = problem.unlabelled._replace(labels=problem.unlabelled.labels.copy())

    def forget_labels(self, rng: np.random.Generator) -> None:
        """Begin anew, with the unlabelled rows left out of all counts."""
        statistics = self.problem.statistics
        self.rows.labels[:] = -1
        self.counts, self.label_counts = statistics.feature_counts.copy(), statistics.label_counts.copy()
        self.tallies = self.labelled
        self.state = State.around(self.model, statistics.feature_counts.sum(axis=0).astype(np.float64), rng)

    def start(self, rng: np.random.Generator) -> None:
        """Strengths from the prior, prototypes at the labelled rows' rates, labels one after another."""
        self.forget_labels(rng)
        self.redraw_labels(rng, 1.0)

    def draw_from_prior(self, rng: np.random.Generator, n_burn_in: int = 50) -> None:
        """Draw, by sweeps, from the posterior given labelled rows alone, and labels from the urns of their tasks."""
        self.forget_labels(rng)
        for _ in range(n_burn_in):
            self.state.sweep(self.model, self.labelled, rng, adapt=True)
        self.redraw_labels(rng, 0.0)

    def sweep(self, rng: np.random.Generator, power: float = 1.0, adapt: bool = False) -> Floats:
        """Redraw every unknown label, then all strengths and prototypes; returns the labels' probabilities."""
        probability = self.redraw_labels(rng, power)
        tallies = self.tallies if power == 1.0 else self.labelled.blended(self.tallies, power)
        self.state.sweep(self.model, tallies, rng, adapt)
        return probability

    def redraw_labels(self, rng: np.random.Generator, power: float) -> Floats:
        """Redraw every unknown label given strengths and prototypes; returns the probabilities (rows, labels)."""
        rows, layout = self.rows, self.problem.statistics.layout
        strength = np.exp(self.state.log_strength)
        pseudo = np.repeat(strength, np.diff(layout.group_start)) * np.exp(self.state.log_prototype)
        probability = np.empty((len(rows.labels), layout.n_labels))
        _redraw(
            rows.codes,
            rows.labels,
            rows.task,
            np.ones(len(rows.labels)) if rows.weights is None else rows.weights,
            self.counts,
            np.add.reduceat(self.counts, layout.group_start[:-1], axis=1),
            self.label_counts,
            self.problem.label_prior,
            layout.offsets,
            np.maximum(pseudo, TINY),
            np.maximum(strength, TINY),
            power,
            rng.random(len(rows.labels)),
            probability,
        )
        self.tallies = tally(self.counts, self.model.group_start)
        return probability

    @property
    def log_likelihood(self) -> float:
        """Log probability of the unlabelled rows' features, given everything else."""
        everything = self.state.log_likelihood(self.model, self.tallies)
        return everything - self.state.log_likelihood(self.model, self.labelled)

    @property
    def log_joint(self) -> float:
        """Log density of strengths, prototypes, labels and features."""
        state, model = self.state, self.model
        total = float(log_label_marginals(self.label_counts, self.problem.label_prior).sum())
        total += state.log_likelihood(model, self.tallies)
        for g in range(model.n_groups):
            total += float(model.log_prior(g, state.log_strength[g], state.log_prototype[model.cells(g)]))
        return total


@compiled
def _redraw(  # type: ignore[no-untyped-def]
    codes,
    labels,
    task,
    weights,
    counts,
    totals,
    label_counts,
    label_prior,
    offsets,
    pseudo,
    strength,
    power,
    uniforms,
    probability,
):
    n_features, n_labels, width = codes.shape[1], len(label_prior), offsets[-1]
    for i in range(len(labels)):
        u, w = task[i], weights[i]
        for turn in range(2):
            # First take the row out, if it has a label, then, its label drawn, put it back.
            step = -w if turn == 0 else w
            y = labels[i]
            if y >= 0:
                label_counts[u, y] += step
                for f in range(n_features):
                    if codes[i, f] >= 0:
                        counts[u, y * width + offsets[f] + codes[i, f]] += step
                        totals[u, y * n_features + f] += step
            if turn == 0:
                for y in range(n_labels):
                    fit = 0.0
                    for f in range(n_features):
                        if codes[i, f] >= 0:
                            c, g = y * width + offsets[f] + codes[i, f], y * n_features + f
                            fit += log_grow(counts[u, c] + pseudo[c], w) - log_grow(totals[u, g] + strength[g], w)
                    probability[i, y] = log_grow(label_counts[u, y] + label_prior[y], w) + power * fit
                labels[i] = draw_label(probability[i], uniforms[i])


class _Kept(NamedTuple):
    """What one chain leaves: every draw's strengths, prototypes and log joint, and some draws' counts."""

    draws: PrototypeDraws
    log_joint: Floats
    counts: NDArray[Any]
    label_counts: NDArray[Any]
    label_probability: Floats


def _run_chain(
    chain: PrototypeChain,
    schedule: Schedule,
    kept: NDArray[np.int64],
    seed: np.random.SeedSequence,
    progress: Callable[[int], None] | None,
) -> _Kept:
    rng = np.random.default_rng(seed)
    chain.start(rng)
    strengths, prototypes, log_joint, counts, label_counts = [], [], [], [], []
    label_probability = np.zeros((len(chain.rows.labels), chain.problem.statistics.layout.n_labels))
    for sweep in range(schedule.n_burn_in + schedule.n_draws):
        probability = chain.sweep(rng, adapt=sweep < schedule.n_burn_in)
        if progress is not None:
            progress(chain.model.n_groups)
        draw = sweep - schedule.n_burn_in
        if draw < 0:
            continue
        strengths.append(np.exp(chain.state.log_strength))
        prototypes.append(np.exp(chain.state.log_prototype))
        log_joint.append(chain.log_joint)
        label_probability += probability / schedule.n_draws
        if draw in kept:
            counts.append(chain.counts.copy())
            label_counts.append(chain.label_counts.copy())
    draws = PrototypeDraws(np.array(strengths), np.array(prototypes))
    return _Kept(draws, np.array(log_joint), np.array(counts), np.array(label_counts), label_probability)


def fit_with_unlabelled(
    problem: Problem,
    model: NoiseModel,
    schedule: Schedule,
    seed: int,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Fitted, PrototypeDraws]:
    """Run the chains side by side and join their draws. O(sweeps · (tasks · cells + rows · features · labels))."""
    order = problem.canonical_order()
    arranged, row_order = arrange(problem, order)
    n_tasks, n_cells = problem.statistics.feature_counts.shape
    most = int(np.clip(_MOST_KEPT_CELLS // ((n_tasks + 1) * n_cells), _FEWEST_KEPT, _MOST_KEPT))
    per_chain = max(1, most // schedule.n_chains)
    kept = np.unique(np.linspace(0, schedule.n_draws - 1, per_chain).round().astype(np.int64))
    seeds = np.random.SeedSequence(seed).spawn(schedule.n_chains)
    chains = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_run_chain)(PrototypeChain(arranged, model), schedule, kept, part, progress) for part in seeds
    )
    back = np.argsort(order)
    counts = np.concatenate([chain.counts for chain in chains])[:, back]
    counts = np.concatenate([counts, np.zeros_like(counts[:, :1])], axis=1)
    label_counts = np.concatenate([chain.label_counts for chain in chains])[:, back]
    draws = PrototypeDraws(*(np.array(part) for part in zip(*(chain.draws for chain in chains), strict=True)))
    used = [part[:, kept].reshape(len(counts), 1, 1, -1) for part in draws]
    rates = [expected_rates(own, model, PrototypeDraws(*point)) for own, *point in zip(counts, *used, strict=True)]
    label_probability = np.empty((len(row_order), problem.statistics.layout.n_labels))
    label_probability[row_order] = np.mean([chain.label_probability for chain in chains], axis=0)
    label_probability = _alike_for_twins(label_probability, problem.unlabelled)
    log_joint = np.array([chain.log_joint for chain in chains])
    fitted = Fitted(
        blocks=blocks_of_draws(problem, counts, label_counts, np.array(rates)),
        partition=np.arange(n_tasks),
        log_joint=log_joint,
        label_probability=label_probability,
        convergence=convergence_of_prototypes(log_joint, draws.strengths),
    )
    return fitted, draws


def _alike_for_twins(label_probability: Floats, rows: Rows) -> Floats:
    """Rows that do not differ have the same probabilities, and share what was drawn for them."""
    weights = np.ones(len(rows.task)) if rows.weights is None else rows.weights
    _, twin = np.unique(np.column_stack([rows.task, weights, rows.codes]), axis=0, return_inverse=True)
    total = np.zeros((int(twin.max()) + 1, label_probability.shape[1]))
    np.add.at(total, twin, label_probability)
    return np.asarray(total[twin] / np.bincount(twin)[twin, None])
