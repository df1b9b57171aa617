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

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import log_marginal_of_sum
from kinfolk.naive_bayes.inference.gibbs import Chain


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
            _exchange(
                self.seating.seat,
                self.seating.cluster_counts,
                self.seating.cluster_size,
                self.seating.cluster_log_marginal,
                self.seating.counts,
                self.seating.task_log_marginal,
                self.seating.product,
                self.seating.log_concentration,
                self.fixed is not None,
                self.labels.label_counts,
                self.labels.label_prior,
                one,
                other,
                power,
                rng.random(n_tasks),
                exchanged,
            )
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


@compiled
def _exchange(  # type: ignore[no-untyped-def]
    seat,
    cluster_counts,
    cluster_size,
    cluster_log_marginal,
    counts,
    task_log_marginal,
    product,
    log_concentration,
    seats_held,
    label_counts,
    label_prior,
    one,
    other,
    power,
    uniforms,
    exchanged,
):
    n, cells = counts.shape
    # Counts lie label by label, then the sums of numbers do.
    first = product.numbers.first
    width, more = first // len(label_prior), (cells - first) // len(label_prior)
    nothing = np.zeros(cells, dtype=counts.dtype)
    ways = np.zeros((2, cells), dtype=counts.dtype)
    alone = np.empty(2)
    joined, scores = np.empty((2, n + 1)), np.empty((2, n + 1))
    in_use = 0
    for k in range(n):
        if cluster_size[k] > 0:
            in_use = k + 1
    for u in range(n):
        own, a, b = seat[u], one[u], other[u]
        cluster_size[own] -= 1
        for c in range(cells):
            cluster_counts[own, c] -= counts[u, c]
            ways[0, c] = counts[u, c]
            ways[1, c] = counts[u, c]
        for c in range(width):
            ways[1, a * width + c] = counts[u, b * width + c]
            ways[1, b * width + c] = counts[u, a * width + c]
        for c in range(more):
            ways[1, first + a * more + c] = counts[u, first + b * more + c]
            ways[1, first + b * more + c] = counts[u, first + a * more + c]
        if cluster_size[own] > 0:
            cluster_log_marginal[own] = log_marginal_of_sum(cluster_counts[own], nothing, product)
        else:
            # Fractional weights may leave rounding dust in an empty cluster.
            cluster_counts[own, :] = 0
            cluster_log_marginal[own] = 0.0
        alone[0], alone[1] = task_log_marginal[u], log_marginal_of_sum(ways[1], nothing, product)
        gain = lgamma(label_counts[u, a] + label_prior[b]) - lgamma(label_counts[u, a] + label_prior[a])
        gain += lgamma(label_counts[u, b] + label_prior[a]) - lgamma(label_counts[u, b] + label_prior[b])
        highest = -np.inf
        for way in range(2):
            free = -1
            for k in range(in_use + 1):
                scores[way, k] = -np.inf
                if k < in_use and cluster_size[k] > 0:
                    if seats_held and k != own:
                        continue
                    joined[way, k] = log_marginal_of_sum(cluster_counts[k], ways[way], product)
                    fit = joined[way, k] - cluster_log_marginal[k]
                    scores[way, k] = np.log(cluster_size[k]) + power * fit
                elif k == own if seats_held else free < 0:
                    free = k
                    joined[way, k] = alone[way]
                    scores[way, k] = log_concentration + power * alone[way]
                scores[way, k] += way * gain
                highest = max(highest, scores[way, k])
        total = 0.0
        for way in range(2):
            for k in range(in_use + 1):
                total += np.exp(scores[way, k] - highest)
        left = uniforms[u] * total
        chosen_way, chosen = 0, own
        for i in range(2 * (in_use + 1)):
            way, k = i // (in_use + 1), i % (in_use + 1)
            if scores[way, k] > -np.inf:
                chosen_way, chosen = way, k
                left -= np.exp(scores[way, k] - highest)
                if left < 0.0:
                    break
        seat[u] = chosen
        in_use = max(in_use, chosen + 1)
        cluster_size[chosen] += 1
        for c in range(cells):
            counts[u, c] = ways[chosen_way, c]
            cluster_counts[chosen, c] += counts[u, c]
        cluster_log_marginal[chosen] = joined[chosen_way, chosen]
        task_log_marginal[u] = alone[chosen_way]
        if chosen_way == 1:
            exchanged[u] = True
            label_counts[u, a], label_counts[u, b] = label_counts[u, b], label_counts[u, a]
