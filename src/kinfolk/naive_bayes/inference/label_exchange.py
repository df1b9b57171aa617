"""A chain over unknown labels that may exchange two labels throughout a task, and seat the task anew as it does.

Where no row of a task has a known label, two tasks of one kind may end up with labels that mean opposite things. They
then sit apart, and neither a move of one label nor a move of one seat leads to where they sit together. So each task
chooses between its labels as they are and two of them exchanged, y ↔ y′, along with its seat z:

    p(exchanged or not, z | …) ∝ p(Y_u) · n_z · p(X_u | Y_u, D_z)^τ,

all counts without the task, and a, the concentration, in place of n_z at a new cluster. Exchanging is its own inverse,
so that the choice is a draw from the conditional distribution and needs no correction.
"""

from __future__ import annotations

from math import lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import log_marginal_of_sum
from kinfolk.maths.draws import draw_index
from kinfolk.naive_bayes.inference.gibbs import Chain
from kinfolk.partition.gibbs import n_places, sit_down, stand_up


class RelabellingChain(Chain):
    """A chain for a problem in which no label is known."""

    def sweep(self, rng: np.random.Generator, power: float = 1.0) -> NDArray[np.float64]:
        """Redraw labels and seats one by one, then labels and seats of whole tasks; returns labels' probabilities."""
        probability = super().sweep(rng, power)
        n_tasks, n_labels = self.labels.label_counts.shape
        if n_labels > 1:
            one = np.asarray(rng.integers(n_labels, size=n_tasks))
            other = np.asarray((one + rng.integers(1, n_labels, size=n_tasks)) % n_labels)
            exchanged = np.zeros(n_tasks, dtype=np.bool_)
            tasks = Exchanges(self.labels.label_counts, self.labels.label_prior, one, other, exchanged)
            _exchange(self.seating.seats, tasks, self.fixed is not None, power, rng.random(n_tasks))
            labels, task = self.labels.rows.labels, self.labels.rows.task
            is_one, is_other = exchanged[task] & (labels == one[task]), exchanged[task] & (labels == other[task])
            labels[is_one], labels[is_other] = other[task][is_one], one[task][is_other]
        return probability


class HeldSeatsChain(RelabellingChain):
    """The same with seats that are held: clusters never touch each other, and each has a likelihood of its own."""

    @property
    def log_likelihood(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Log probability of the features given labels and seats, cluster by cluster."""
        return self.seating.cluster_log_marginal[self.seating.cluster_size > 0]


class Exchanges(NamedTuple):
    """Labels of every task by their counts, the two of each that may be exchanged, and whether they were."""

    label_counts: NDArray[np.generic]
    label_prior: NDArray[np.float64]
    one: NDArray[np.int64]
    other: NDArray[np.int64]
    exchanged: NDArray[np.bool_]


@compiled
def _exchange(seats, tasks, seats_held, power, uniforms):  # type: ignore[no-untyped-def]
    """Draw for every task in turn whether its two labels are exchanged, along with its seat."""
    counts, cluster_counts, product = seats.counts, seats.cluster_counts, seats.product
    label_counts, label_prior = tasks.label_counts, tasks.label_prior
    n, cells = counts.shape
    # Counts lie label by label, then the sums of numbers do.
    first = product.numbers.first
    width, more = first // len(label_prior), (cells - first) // len(label_prior)
    nothing = np.zeros(cells, dtype=counts.dtype)
    exchanged = np.zeros(cells, dtype=counts.dtype)
    joined, scores = np.empty(2 * (n + 1)), np.empty(2 * (n + 1))
    in_use = n_places(seats)
    for u in range(n):
        own, a, b = seats.seat[u], tasks.one[u], tasks.other[u]
        stand_up(seats, u, nothing)
        for c in range(cells):
            exchanged[c] = counts[u, c]
        for c in range(width):
            exchanged[a * width + c] = counts[u, b * width + c]
            exchanged[b * width + c] = counts[u, a * width + c]
        for c in range(more):
            exchanged[first + a * more + c] = counts[u, first + b * more + c]
            exchanged[first + b * more + c] = counts[u, first + a * more + c]
        alone = log_marginal_of_sum(exchanged, nothing, product)
        gain = lgamma(label_counts[u, a] + label_prior[b]) - lgamma(label_counts[u, a] + label_prior[a])
        gain += lgamma(label_counts[u, b] + label_prior[a]) - lgamma(label_counts[u, b] + label_prior[b])
        for way in range(2):
            free = -1
            for k in range(in_use + 1):
                i = way * (in_use + 1) + k
                scores[i] = -np.inf
                if k < in_use and seats.cluster_size[k] > 0:
                    if seats_held and k != own:
                        continue
                    with_task = exchanged if way == 1 else counts[u]
                    joined[i] = log_marginal_of_sum(cluster_counts[k], with_task, product)
                    fit = joined[i] - seats.cluster_log_marginal[k]
                    scores[i] = np.log(seats.cluster_size[k]) + power * fit
                elif k == own if seats_held else free < 0:
                    free = k
                    joined[i] = alone if way == 1 else seats.task_log_marginal[u]
                    scores[i] = seats.log_concentration + power * joined[i]
                scores[i] += way * gain
        chosen = draw_index(scores, 2 * (in_use + 1), uniforms[u])
        seat = chosen % (in_use + 1)
        if chosen > in_use:
            for c in range(cells):
                counts[u, c] = exchanged[c]
            seats.task_log_marginal[u] = alone
            tasks.exchanged[u] = True
            label_counts[u, a], label_counts[u, b] = label_counts[u, b], label_counts[u, a]
        sit_down(seats, u, seat, joined[chosen])
        in_use = max(in_use, seat + 1)
