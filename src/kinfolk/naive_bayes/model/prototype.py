"""What follows from draws of prototypes and strengths: pseudo-counts, votes, and whose data a task's rates come from.

A task's rates are made of its own N rows and of K rows of the prototype's. The prototype in turn is made of the prior's
pseudo-counts and of votes of the tasks: of its n rows with a value, a task is expected to have drawn
a (ψ(a + n) − ψ(a)) from the prototype and the others from those before them, a being K θ̄.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.model.tallies import tally
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, PrototypeDraws
from kinfolk.tasks.statistics import Layout

# A product of K and a share of the prototype may be too small for a float; its logarithm is still wanted.
TINY = 1e-300


def pseudo_counts(draws: PrototypeDraws, layout: Layout) -> Floats:
    """Posterior mean of K θ̄, cell by cell."""
    strengths = np.repeat(draws.strengths, np.diff(layout.group_start), axis=2)
    return np.asarray(np.maximum((strengths * draws.prototypes).mean(axis=(0, 1)), TINY))


def mean_counts(fitted: Fitted) -> Floats:
    """Counts of every task, averaged over draws of unknown labels; the last row is a new task's."""
    # Blocks follow draw by draw; the last task of each draw is a new one.
    counts = fitted.blocks.counts
    return np.asarray(counts.reshape(-1, len(fitted.partition) + 1, counts.shape[1]).mean(axis=0))


def votes(pseudo: Floats, counts: Floats) -> Floats:
    """How many of a task's rows with a value are expected to have drawn it from the prototype."""
    return np.asarray(pseudo * (digamma(pseudo + counts) - digamma(pseudo)))


def all_votes(counts: Floats, pseudo: Floats, layout: Layout) -> Floats:
    """How many rows of all tasks are expected to have drawn each cell from the prototype."""
    # Means are fractional, so that every term of the tallies is a count and the number of tasks that have it.
    tallies = tally(counts, layout.group_start)
    cell = np.repeat(np.arange(len(pseudo)), np.diff(tallies.start)[: len(pseudo)])
    of_terms = tallies.weight[: len(cell)] * votes(pseudo[cell], tallies.at[: len(cell)])
    return np.bincount(cell, of_terms, len(pseudo)).astype(np.float64)


def rate_shares(fitted: Fitted, hyper: HyperParameters, layout: Layout, tasks: NDArray[np.int64]) -> Floats:
    """Shares of own data, others' data and prior behind tasks' rates, (3, tasks, labels, features)."""
    assert fitted.prototypes is not None
    starts = layout.group_start[:-1]
    counts, pseudo = mean_counts(fitted), pseudo_counts(fitted.prototypes, layout)
    of_all = np.add.reduceat(all_votes(counts, pseudo, layout), starts)
    weight = np.add.reduceat(hyper.feature_prior, starts)
    asked = counts[tasks]
    own_votes = np.add.reduceat(votes(pseudo, asked), starts, axis=1)
    totals = np.add.reduceat(asked, starts, axis=1)
    strengths = np.maximum(fitted.prototypes.strengths.reshape(-1, len(starts)), TINY)
    pull = np.array([(strengths / (total + strengths)).mean(axis=0) for total in totals])
    others = pull * np.maximum(of_all - own_votes, 0.0) / (weight + of_all)
    prior = np.broadcast_to(weight / (weight + of_all), pull.shape) * pull
    return np.array([1.0 - others - prior, others, prior]).reshape(3, len(tasks), layout.n_labels, -1)
