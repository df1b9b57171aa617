"""Exact posterior of a tiny beta-process HMM of two tasks: a sum over all feature matrices and all paths."""

from collections import Counter
from itertools import combinations_with_replacement, product
from math import factorial
from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from tests.sequences.oracle import log_dirichlet_multinomial

# Who has a state: the first task, the second, both.
KINDS = ((1, 0), (0, 1), (1, 1))


class ExactFeatures(NamedTuple):
    """Probabilities: of 1, 2, … states, expected shared ones, of steps to stay, that first steps are in one state."""

    n_states: np.ndarray
    n_shared: float
    stays: np.ndarray
    together: float
    log_evidence: float


def log_prior(columns, gamma, c):
    """Of a set of columns of two tasks, by Griffiths and Ghahramani (2011): equal columns are divided by factorials."""
    total = len(columns) * np.log(gamma * c) - gamma * (1 + c / (c + 1))
    total += sum(betaln(sum(column), 2 - sum(column) + c) for column in columns)
    return total - sum(np.log(factorial(n)) for n in Counter(columns).values())


def log_path(path, n_features, alpha, kappa):
    """Log probability of a path over a task's features, rows integrated out."""
    counts = np.zeros((n_features + 1, n_features))
    before = 0
    for state in path:
        counts[before, state] += 1
        before = state + 1
    total = 0.0
    for r, row in enumerate(counts):
        weights = np.full(n_features, alpha)
        if r > 0:
            weights[r - 1] += kappa
        total += log_dirichlet_multinomial(row, weights)
    return total


def exact_features(observations, n_codes, most, *, eta, gamma, alpha, kappa, strength):
    """At most so many states; both tasks have a feature at least."""
    weights = []
    for n in range(1, most + 1):
        for columns in combinations_with_replacement(KINDS, n):
            own = [[k for k, column in enumerate(columns) if column[j]] for j in range(2)]
            if not all(own):
                continue
            base = log_prior(columns, gamma, eta)
            paths = [list(product(range(len(own[j])), repeat=len(observations[j]))) for j in range(2)]
            moves = [{path: log_path(path, len(own[j]), alpha, kappa) for path in paths[j]} for j in range(2)]
            for pair in product(*paths):
                states = [np.array(own[j])[list(pair[j])] for j in range(2)]
                counts = np.zeros((n, n_codes))
                for j in range(2):
                    np.add.at(counts, (states[j], np.array(observations[j])), 1)
                emitted = sum(log_dirichlet_multinomial(row, np.full(n_codes, strength)) for row in counts)
                steady = np.concatenate([np.diff(own_states) == 0 for own_states in states])
                shared = sum(sum(column) == 2 for column in columns)
                weights.append(
                    (
                        base + moves[0][pair[0]] + moves[1][pair[1]] + emitted,
                        n,
                        shared,
                        steady,
                        states[0][0] == states[1][0],
                    )
                )
    log_weight = np.array([entry[0] for entry in weights])
    evidence = np.logaddexp.reduce(log_weight)
    share = np.exp(log_weight - evidence)
    n_states = np.array([entry[1] for entry in weights])
    return ExactFeatures(
        np.array([share[n_states == n].sum() for n in range(1, most + 1)]),
        float(share @ np.array([entry[2] for entry in weights])),
        share @ np.array([entry[3] for entry in weights], dtype=float),
        float(share @ np.array([entry[4] for entry in weights], dtype=float)),
        float(evidence),
    )
