"""A sampler of partially pooled logistic regression that shares nothing with the package: Pólya–Gamma Gibbs.

N. G. Polson, J. G. Scott and J. Windle, "Bayesian inference for logistic models using Pólya–Gamma latent variables",
J. Amer. Statist. Assoc. 108, 2013. A PG(1, c) variable is drawn as the first terms of its sum of Gamma variables, the
rest of which is replaced by its mean.

Clusters of tasks with the same two weights are summed up exactly: over all partitions, and over weights on a grid.
"""

import numpy as np

TERMS = 60


def draw_polya_gamma(c, rng):
    k = np.arange(1, TERMS + 1) - 0.5
    bottom = k**2 + (c[:, None] / (2.0 * np.pi)) ** 2
    head = (rng.exponential(size=(len(c), TERMS)) / bottom).sum(axis=1)
    size = np.maximum(np.abs(c), 1e-8)
    whole = np.pi**2 * np.tanh(size / 2.0) / size  # the mean of the whole sum
    return (head + whole - (1.0 / bottom).sum(axis=1)) / (2.0 * np.pi**2)


def sample_weights(X, y, task, n_tasks, spread, scale, n_draws, rng, n_burn_in=200):
    """Draws of every task's weights (draws, tasks, columns); X has its constant column, all columns are tasks' own."""
    n_columns = X.shape[1]
    common, own = np.zeros(n_columns), np.zeros((n_tasks, n_columns))
    draws = []
    rows = [np.flatnonzero(task == t) for t in range(n_tasks)]
    for i in range(n_burn_in + n_draws):
        eta = (X * (common + own)[task]).sum(axis=1)
        omega = draw_polya_gamma(eta, rng)
        kappa = y - 0.5
        # The common weights given the tasks' own, then these given the common ones.
        rest = kappa - omega * (X * own[task]).sum(axis=1)
        common = _draw(X.T @ (omega[:, None] * X) + np.diag(scale**-2.0), X.T @ rest, rng)
        rest = kappa - omega * (X @ common)
        for t, its in enumerate(rows):
            A = X[its].T @ (omega[its, None] * X[its]) + np.diag(spread**-2.0)
            own[t] = _draw(A, X[its].T @ rest[its], rng)
        # A shift between common and own weights leaves what rows see as it is, and mixes where they are at odds.
        precision = n_tasks * spread**-2.0 + scale**-2.0
        mean = (own.sum(axis=0) * spread**-2.0 - common * scale**-2.0) / precision
        shift = mean + rng.normal(size=n_columns) / np.sqrt(precision)
        common, own = common + shift, own - shift
        if i >= n_burn_in:
            draws.append(common + own)
    return np.array(draws)


def _draw(precision, shift, rng):
    factor = np.linalg.cholesky(precision)
    mean = np.linalg.solve(precision, shift)
    return mean + np.linalg.solve(factor.T, rng.normal(size=len(shift)))


def sum_over_clusters(X, y, task, partitions, log_priors, mean, scale, asked):
    """Probability that two tasks share weights (tasks, tasks), and of label 1 for rows asked of every task.

    X and ``asked`` have a constant column and one more; weights of a cluster are N(mean, scale²).
    """
    z = np.linspace(-6.0, 6.0, 121)
    weights = np.stack([grid.ravel() for grid in np.meshgrid(*(mean + scale * z[:, None]).T, indexing="ij")])
    log_weight = -0.5 * (z[:, None] ** 2 + z**2).ravel()
    log_weight -= np.log(np.exp(log_weight).sum())
    log_likelihood = -np.logaddexp(0.0, -(2.0 * y - 1.0)[:, None] * (X @ weights))
    n_tasks, rate = task.max() + 1, 1.0 / (1.0 + np.exp(-(asked @ weights)))
    of_tasks = np.array([log_likelihood[task == t].sum(axis=0) for t in range(n_tasks)])
    log_joint, together, answers = [], [], []
    for partition, total in zip(partitions, log_priors, strict=True):
        answer = np.zeros((n_tasks, len(asked)))
        for k in range(partition.max() + 1):
            log_density = log_weight + of_tasks[partition == k].sum(axis=0)
            density = np.exp(log_density - log_density.max())
            total += log_density.max() + np.log(density.sum())
            answer[partition == k] = rate @ (density / density.sum())
        log_joint.append(total)
        together.append(partition[:, None] == partition)
        answers.append(answer)
    chance = np.exp(np.array(log_joint) - max(log_joint))
    chance /= chance.sum()
    return (np.tensordot(chance, np.array(each, dtype=float), axes=1) for each in (together, answers))
