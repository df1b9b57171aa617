"""The most probable weights of all tasks, by whichever way is fastest for their size.

Tasks on the same rows go through Newton's method together, where a step is a product of one Gram matrix with a matrix
of tasks; others go one by one, on several threads. Measured on RCV1 (47,236 features, 101 topics, one core, gradient
1e-6, variance 100): together 0.9 s for 1,000 rows, one by one 2.6 s; the two ways meet at some 3,000 rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse

from kinfolk.lica.inference.map_shared_rows import fit_row_weights, solve_rows
from kinfolk.lica.inference.map_weights import (
    EXACT_FEATURES,
    MAX_STEPS,
    PROBE_ERROR,
    Design,
    MapWeights,
    make_design,
    rows_of_task,
    solve_task,
    starting_intercept,
    weight_variance,
)
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.links import LINK_CODES, losses
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.maths.arrays import Floats
from kinfolk.pieces import delayed

MAX_SHARED_ROWS = 3000
_MIN_SHARED = 0.5  # of the rows of a table that tasks must have on average for the table to be worth its zeros
# Nonzero features per entry of the Gram matrix: with fewer, products with features are cheaper. With a quarter, an
# eighth and a twentieth of RCV1's nonzeros (0.02, 0.009, 0.004) fits took 2.6, 2.5 and 2.3 s together and 3.5, 2.6 and
# 1.1 s one by one.
_MIN_FILLED = 0.01


class WeightsOfTasks(NamedTuple):
    """Weights of all tasks.

    Parameters
    ----------
    weights : ndarray of shape (n_features, n_tasks)
    intercepts : ndarray of shape (n_tasks,)
    loss : ndarray of shape (n_tasks,)
        Negative log likelihoods, without constants.
    duals : ndarray of shape (n_tasks, n_rows) or None
        The solution in terms of rows, where tasks were solved together.
    """

    weights: Floats
    intercepts: Floats
    loss: Floats
    duals: Floats | None = None

    def penalty(self, mean: Floats, noise: Floats, intercept_variance: float) -> Floats:
        """Negative log prior of each task's weights and intercept, without constants."""
        deviation = self.weights - mean
        spread = np.einsum("jk,jk,j->k", deviation, deviation, 1.0 / noise)
        return np.asarray(0.5 * spread + 0.5 * self.intercepts**2 / intercept_variance)


class WeightSolver:
    """Solves for the weights of all tasks, again and again under different priors.

    Parameters
    ----------
    data : LinearTasks
    link : {"logistic", "probit", "gaussian"}
    intercept_variance : float
    n_jobs : int, optional
        Threads, where tasks are solved one by one; the result does not depend on it.
    design : Design, optional
        ``make_design(data.X)``, where it is at hand.
    """

    def __init__(
        self,
        data: LinearTasks,
        link: Link,
        intercept_variance: float,
        n_jobs: int | None = None,
        design: Design | None = None,
    ) -> None:
        self.data = data
        self.link: Link = link
        self.intercept_variance = intercept_variance
        self.n_jobs = n_jobs
        used = np.unique(np.concatenate(data.rows))
        shared = sum(rows.size for rows in data.rows) >= _MIN_SHARED * len(data.rows) * used.size
        self.together = 0 < used.size <= MAX_SHARED_ROWS and shared and data.X.shape[1] > EXACT_FEATURES
        if self.together:
            self._table = data.X[used]
            n_filled = self._table.nnz if sparse.issparse(self._table) else self._table.size
            self.together = n_filled >= _MIN_FILLED * used.size**2
            self._columns = self._table.T.tocsr() if sparse.issparse(self._table) else self._table.T
            self._y, self._row_weights = np.ones((2, len(data.rows), used.size))
            self._row_weights[:] = 0.0
            for k, rows in enumerate(data.rows):
                at = np.searchsorted(used, rows)
                # A row that a task has twice counts twice; its targets may differ, which one entry cannot hold.
                self.together &= np.unique(at).size == at.size
                self._y[k, at], self._row_weights[k, at] = data.y[k], data.weights[k]
            self._gram: tuple[Floats, Floats] | None = None
        self.design = make_design(data.X) if design is None else design

    def solve(
        self,
        mean: Floats,
        noise: Floats,
        residual_variance: float,
        start: WeightsOfTasks | None,
        tolerance: float,
    ) -> WeightsOfTasks:
        """Find the most probable weights of every task, given the ``mean`` (n_features × n_tasks) of each.

        ``tolerance`` bounds the norm of the gradient in (θ − μ)/√ψ, and so leaves each objective within half its square
        of the minimum.
        """
        if self.together:
            return self._solve_together(mean, noise, residual_variance, start, tolerance)
        return self._solve_one_by_one(mean, noise, residual_variance, start, tolerance)

    def determined(
        self, solved: WeightsOfTasks, noise: Floats, residual_variance: float, rng: np.random.Generator
    ) -> Floats:
        """For each feature, how many tasks' weights the data determine: Σₖ (1 − Vₖⱼⱼ/ψⱼ), V from Laplace's method.

        Estimated without bias from a vector of random signs for each task, exact where features are few.
        """
        n_tasks = len(self.data.rows)
        signs = rng.integers(0, 2, size=(n_tasks, self.data.X.shape[1] + 1)) * 2.0 - 1.0
        if not self.together:
            prior = TaskPrior(
                np.zeros((noise.size, 0)),
                noise,
                intercept_variance=self.intercept_variance,
                residual_variance=residual_variance,
            )

            def one(k: int) -> Floats:
                variance = weight_variance(
                    self.data,
                    k,
                    prior,
                    solved.weights[:, k],
                    float(solved.intercepts[k]),
                    link=self.link,
                    design=self.design,
                    signs=signs[k],
                )
                return 1.0 - variance[:-1] / noise

            return np.asarray(
                sum(Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(one)(k) for k in range(n_tasks)))
            )
        scale = np.sqrt(noise)
        curvature = losses(
            LINK_CODES[self.link], self._y, self._predictors(solved), self._row_weights, residual_variance
        )[2]
        root = np.sqrt(curvature)
        probes = self._table @ (scale[:, None] * signs[:, :-1].T) + np.sqrt(self.intercept_variance) * signs[:, -1]
        enough = np.full(n_tasks, PROBE_ERROR)
        solution, _ = solve_rows(self._gram_of(noise), curvature, root * probes.T, self.intercept_variance, enough)
        back = scale[:, None] * (self._columns @ (root * solution).T)
        return np.asarray(np.einsum("jk,kj->j", back, signs[:, :-1]))

    def _predictors(self, solved: WeightsOfTasks) -> Floats:
        return np.ascontiguousarray((self._table @ solved.weights + solved.intercepts).T)

    def _gram_of(self, noise: Floats) -> Floats:
        if self._gram is None or not np.array_equal(self._gram[0], noise):
            if sparse.issparse(self._table):
                product = (self._table.multiply(noise).tocsr() @ self._columns).toarray()
            else:
                product = (self._table * noise) @ self._columns
            self._gram = noise, product + self.intercept_variance
        return self._gram[1]

    def _solve_together(
        self, mean: Floats, noise: Floats, residual_variance: float, start: WeightsOfTasks | None, tolerance: float
    ) -> WeightsOfTasks:
        gram = self._gram_of(noise)
        offsets = np.ascontiguousarray((self._table @ mean).T)
        if start is None:
            intercepts = np.array(
                [starting_intercept(y, w, self.link) for y, w in zip(self._y, self._row_weights, strict=True)]
            )
            # The same number for every row, so that the intercept and the rows' mean product add up to what is wanted.
            duals = np.tile(intercepts[:, None] / gram.mean(axis=0).sum(), (1, gram.shape[0]))
        elif start.duals is not None:
            duals = start.duals
        else:
            duals = -losses(
                LINK_CODES[self.link], self._y, self._predictors(start), self._row_weights, residual_variance
            )[1]
        found = fit_row_weights(
            gram,
            self._y,
            self._row_weights,
            offsets,
            duals,
            link=self.link,
            intercept_variance=self.intercept_variance,
            residual_variance=residual_variance,
            tolerance=tolerance,
            max_steps=MAX_STEPS,
        )
        weights = mean + noise[:, None] * (self._columns @ found.duals.T)
        return WeightsOfTasks(weights, self.intercept_variance * found.duals.sum(axis=1), found.loss, found.duals)

    def _solve_one_by_one(
        self, mean: Floats, noise: Floats, residual_variance: float, start: WeightsOfTasks | None, tolerance: float
    ) -> WeightsOfTasks:
        data = self.data
        scale = np.sqrt(np.append(noise, self.intercept_variance))

        def block(tasks: NDArray[np.int64]) -> list[MapWeights]:
            found = []
            for k in tasks:
                centre = np.append(mean[:, k], 0.0)
                if start is None:
                    at = centre.copy()
                    at[-1] = starting_intercept(data.y[k], data.weights[k], self.link)
                else:
                    at = np.append(start.weights[:, k], start.intercepts[k])
                rows = rows_of_task(data, k, self.link, residual_variance)
                found.append(solve_task(self.design, rows, centre, scale, at, tolerance, MAX_STEPS))
            return found

        blocks = np.array_split(np.arange(len(data.rows)), min(effective_n_jobs(self.n_jobs), len(data.rows)))
        parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(block)(tasks) for tasks in blocks)
        found = [task for part in parts for task in part]
        return WeightsOfTasks(
            np.stack([task.weights for task in found], axis=1),
            np.array([task.intercept for task in found]),
            np.array([task.loss for task in found]),
        )


def without_empty_features(data: LinearTasks) -> tuple[NDArray[np.int64], LinearTasks]:
    """Features that some row of some task has, and the data with these and its own rows alone.

    The weights of other features stay at their prior's mean, and rows that no task has say nothing.
    """
    used = np.unique(np.concatenate(data.rows)) if len(data.rows) else np.zeros(0, dtype=np.int64)
    table: Any = data.X if used.size == data.X.shape[0] else data.X[used]
    filled = table.getnnz(axis=0) if sparse.issparse(table) else np.count_nonzero(table, axis=0)
    kept = np.flatnonzero(filled)
    if kept.size == 0:
        kept = np.arange(min(1, data.X.shape[1]))
    if kept.size < data.X.shape[1]:
        table = table[:, kept]
    return kept, data._replace(X=table, rows=tuple(np.searchsorted(used, rows) for rows in data.rows))
