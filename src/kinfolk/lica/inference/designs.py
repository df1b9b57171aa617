"""The features of every task as its posterior needs them: row kernels made once where tasks share rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kinfolk.lica.inference.small_updates import SmallTasks
from kinfolk.lica.model.data import LinearTasks
from kinfolk.lica.model.sites import Sites
from kinfolk.lica.model.task_posterior import (
    Conditioned,
    by_features,
    condition_by_features,
    condition_by_rows,
    row_kernel,
)
from kinfolk.maths.arrays import Floats

_MAX_KERNEL = 1 << 28  # cells of row kernels kept in memory (2 GiB)


class Designs:
    """Features of the tasks of a problem, with the row kernels XΨXᵀ of those that have more features than rows.

    One kernel over all rows serves every task where tasks share rows; otherwise each task has its own. With one noise
    variance for all features a kernel is made once for the whole fit; with one each, once for every Ψ.

    Parameters
    ----------
    problem : LinearTasks
        Without rows of weight zero.
    isotropic : bool
        Whether all features have the same noise variance, whatever it is.
    """

    def __init__(self, problem: LinearTasks, isotropic: bool) -> None:
        self.problem = problem
        self.isotropic = isotropic
        self.small = SmallTasks(problem)
        self.others = sorted(set(range(problem.n_tasks)) - set(self.small.tasks))
        sizes = [len(rows) for rows in problem.rows]
        self.by_features = [by_features(size, problem.n_features) for size in sizes]
        n_rows = problem.X.shape[0]
        cells = sum(size**2 for size, small in zip(sizes, self.by_features, strict=True) if not small)
        self._whole_fits = 0 < n_rows**2 <= min(2 * cells, _MAX_KERNEL)
        self._each_fits = cells <= _MAX_KERNEL
        self._every_row = [len(rows) == n_rows and np.array_equal(rows, np.arange(n_rows)) for rows in problem.rows]
        self._shares_rows = problem.shares_rows
        self._features: dict[int, Any] = {}
        self._columns: dict[int, Any] = {}
        self._noise = np.zeros(0)
        self._whole: Floats | None = None
        self._kernels: dict[int, Floats] = {}

    def prepare(self, noise: Floats) -> None:
        """Take Ψ over: make the kernels that all tasks share, forget those of another Ψ."""
        stale = not self.isotropic and not np.array_equal(noise, self._noise)
        self._noise = noise
        if stale:
            self._kernels.clear()
        if self._whole_fits and (stale or self._whole is None):
            self._whole = row_kernel(self.problem.X, self._kernel_noise())

    def condition(
        self, k: int, sites: Sites, shared: Floats, intercept_variance: float, want_variances: bool
    ) -> Conditioned:
        """Condition task ``k`` on its sites, under the Ψ last prepared."""
        if self.by_features[k]:
            return condition_by_features(self.features(k), self._noise, sites, shared, intercept_variance)
        columns, noise = (self._columns_of(k), self._noise) if want_variances else (None, None)
        return condition_by_rows(self._kernel(k), sites, shared, intercept_variance, columns, noise)

    def features(self, k: int) -> Any:
        """The rows of ``X`` that task ``k`` has."""
        if self._every_row[k]:
            return self.problem.X
        if k not in self._features:
            self._features[k] = self.problem.X[self.problem.rows[k]]
        return self._features[k]

    def _kernel_noise(self) -> Floats:
        return np.ones_like(self._noise) if self.isotropic else self._noise

    def _kernel(self, k: int) -> Floats:
        if self._whole is not None:
            rows = self.problem.rows[k]
            kernel = self._whole if self._every_row[k] else self._whole[np.ix_(rows, rows)]
        elif k in self._kernels:
            kernel = self._kernels[k]
        else:
            kernel = row_kernel(self.features(k), self._kernel_noise())
            if self._each_fits:
                self._kernels[k] = kernel
        return kernel * self._noise[0] if self.isotropic else kernel

    def _columns_of(self, k: int) -> Any:
        first = 0 if self._shares_rows else k
        if first not in self._columns:
            features = self.features(first)
            self._columns[first] = features.tocsc() if sparse.issparse(features) else features
        return self._columns[first]
