"""Exact posterior of a tiny nDP-iHMM of two tasks, one sequence each: a sum over all partitions and all paths."""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, roots_jacobi


class Exact(NamedTuple):
    """P(both tasks in one cluster), and of each step (of both tasks) P(its state is that of the step before it)."""

    together: float
    stays: np.ndarray
    log_evidence: float


def log_dirichlet_multinomial(counts, weights):
    """Log probability of an ordered sample with these counts, its Dirichlet integrated out."""
    counts, weights = np.asarray(counts, float), np.asarray(weights, float)
    return (
        gammaln(weights.sum())
        - gammaln(weights.sum() + counts.sum())
        + (gammaln(weights + counts) - gammaln(weights)).sum()
    )


def exact_posterior(observations, n_codes, n_clusters, *, eta, gamma, alpha, kappa, strength):
    """Two states; β is then one number, and Gauss–Jacobi quadrature is exact, for all else is a polynomial of it."""
    nodes, node_weights = roots_jacobi(24, gamma / 2 - 1, gamma / 2 - 1)
    betas, node_weights = (1 + nodes) / 2, node_weights / node_weights.sum()

    def transitions(path):
        """Probability of a path at each β, the task's rows integrated out."""
        counts = np.zeros((3, 2))
        before = 0
        for state in path:
            counts[before, state] += 1
            before = state + 1
        out = np.zeros(len(betas))
        for i, beta in enumerate(betas):
            for r in range(3):
                weights = alpha * np.array([beta, 1 - beta])
                if r > 0:
                    weights[r - 1] += kappa
                out[i] += log_dirichlet_multinomial(counts[r], weights)
        return np.exp(out)

    def codes(path, observed):
        counts = np.zeros((2, n_codes))
        np.add.at(counts, (np.array(path, int), np.array(observed, int)), 1)
        return counts

    def emissions(counts):
        return np.exp(sum(log_dirichlet_multinomial(row, np.full(n_codes, strength)) for row in counts))

    each = []
    for observed in observations:
        paths = list(product(range(2), repeat=len(observed)))
        each.append([(path, transitions(path), codes(path, observed)) for path in paths])
    apart_prior = eta * (1 - 1 / n_clusters) / (1 + eta)
    weight = {True: 0.0, False: 0.0}
    stays = np.zeros(sum(max(len(observed) - 1, 0) for observed in observations))
    for (path_a, moves_a, codes_a), (path_b, moves_b, codes_b) in product(*each):
        steady = np.concatenate([np.diff(np.array(path, int)) == 0 for path in (path_a, path_b)])
        together = (1 - apart_prior) * (node_weights @ (moves_a * moves_b)) * emissions(codes_a + codes_b)
        apart = apart_prior * (node_weights @ moves_a) * (node_weights @ moves_b)
        apart *= emissions(codes_a) * emissions(codes_b)
        weight[True] += together
        weight[False] += apart
        stays += steady * (together + apart)
    total = weight[True] + weight[False]
    return Exact(weight[True] / total, stays / total, np.log(total))
