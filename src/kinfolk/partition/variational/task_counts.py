"""Counts of many tasks as variational inference sees them, gone through in blocks and never copied whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats, wide_enough

# Up to this many counts double precision costs nothing. Beyond, single precision is off by about 1e-4 nats a task.
MAX_DOUBLE = 4_000_000


class Groups(Protocol):
    """The prior of independent Dirichlet groups side by side; a ``DirichletProduct`` is one."""

    @property
    def group_start(self) -> NDArray[np.int64]:
        """First cell of every group, and the number of cells at the end."""

    @property
    def prior(self) -> Floats:
        """Pseudo-count of every cell."""

    @property
    def group_prior(self) -> Floats:
        """Sum of the pseudo-counts of every group."""


def cells_in_groups(groups: Groups) -> Floats:
    """The matrix (cells, groups) with a one where a cell belongs to a group: counts times it are groups' totals."""
    widths = np.diff(groups.group_start)
    return np.repeat(np.eye(len(widths)), widths, axis=0)


def log_marginals(counts: Any, prior: Any, group_prior: Any, in_group: Any, log_gamma: Callable[[Any], Any]) -> Any:
    """Log marginal of every row of counts, by any library of arrays; ``in_group`` is as `cells_in_groups` gives it."""
    empty = log_gamma(group_prior).sum() - log_gamma(prior).sum()
    return log_gamma(counts + prior).sum(1) - log_gamma(counts @ in_group + group_prior).sum(1) + empty


class Sweep(NamedTuple):
    """What one pass over all tasks gives: new counts and sizes of the clusters, and the log normalisers' sum."""

    counts: Floats
    sizes: Floats
    log_norm: float


class TaskCounts(ABC):
    """Counts (tasks, cells) of any integer or float type, wherever they are held; ``block`` tasks are taken at a time.

    A subclass says how arrays get there and back, and how scores become shares; products are of type ``dtype``, and
    sums over tasks of type ``double``.
    """

    counts: Any
    block: int
    dtype: Any
    double: Any

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.counts.shape[0])

    def shares(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, Any, Any, Any]]:
        """Tasks, their counts, responsibilities (tasks, clusters) and log normalisers, block by block, held there."""
        weights, offset = self._floats(self._there(log_theta.T)), self._floats(self._there(log_pi))
        for first in range(0, self.n_tasks, self.block):
            rows = slice(first, min(first + self.block, self.n_tasks))
            block = self._floats(self.counts[rows])
            yield rows, block, *self._soften(block, weights, offset)

    def sweep(self, log_theta: Floats, log_pi: Floats) -> Sweep:
        """Add every task to the clusters by its responsibilities. O(tasks · cells · clusters)."""
        # Sums over blocks are kept in double precision, and where the counts are until all blocks are done.
        counts, sizes = self._there(np.zeros(log_theta.shape)), self._there(np.zeros(len(log_pi)))
        log_norm = self._there(np.zeros(1))
        for _, block, share, log_norms in self.shares(log_theta, log_pi):
            log_norm += log_norms.sum(dtype=self.double)
            counts += share.T @ block
            sizes += share.sum(0, dtype=self.double)
        return Sweep(self._here(counts), self._here(sizes), float(log_norm[0]))

    def log_norms(self, log_theta: Floats, log_pi: Floats) -> Floats:
        """Log normaliser of each task: how well the clusters explain it."""
        out = np.empty(self.n_tasks)
        for rows, _, _, log_norms in self.shares(log_theta, log_pi):
            out[rows] = self._here(log_norms)
        return out

    def responsibilities(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Responsibilities (tasks, clusters) as numpy arrays, block by block."""
        for rows, _, share, _ in self.shares(log_theta, log_pi):
            yield rows, self._here(share)

    def sample(self, tasks: NDArray[np.int64]) -> NDArray[Any]:
        """Counts of some tasks, as a numpy array of a type that sums of them fit in."""
        return wide_enough(self._here(self.counts[self._there(tasks)]))

    def subset(self, tasks: NDArray[np.int64]) -> Self:
        """Some tasks, held where these are."""
        return self._holding(self.counts[self._there(tasks)])

    def parts(self, size: int) -> list[Self]:
        """All tasks in parts of at most ``size``, none of them a copy."""
        return [self._holding(self.counts[first : first + size]) for first in range(0, self.n_tasks, size)]

    def _holding(self, counts: Any) -> Self:
        other = copy(self)
        other.counts = counts
        return other

    @abstractmethod
    def own_log_marginals(self, groups: Groups) -> Floats:
        """Log marginal of each task by itself."""

    @abstractmethod
    def _there(self, array: NDArray[Any]) -> Any:
        """An array of numpy, taken to where the counts are."""

    @abstractmethod
    def _here(self, array: Any) -> NDArray[Any]:
        """An array from where the counts are, as one of numpy."""

    @abstractmethod
    def _floats(self, array: Any) -> Any:
        """An array there, of the type of the products."""

    @abstractmethod
    def _soften(self, block: Any, weights: Any, offset: Any) -> tuple[Any, Any]:
        """Rows of block · weights + offset, exponentiated and made to add up to one; and the rows' log normalisers."""


class CountsInMemory(TaskCounts):
    """Counts as a numpy array (a memory map is one)."""

    double = np.float64

    def __init__(self, counts: NDArray[Any], block: int = 8_192, dtype: Any = None) -> None:
        self.counts = counts
        self.block = block
        self.dtype = dtype or (np.float64 if counts.size <= MAX_DOUBLE else np.float32)

    def own_log_marginals(self, groups: Groups) -> Floats:
        """Log marginal of each task by itself."""
        # Here, so that clustering counts on a device needs no compiler.
        from kinfolk.maths import dirichlet

        largest = 0
        if self.counts.dtype.kind in "iu" and self.counts.size:
            # No group has seen more than all its cells could hold.
            widest = int(np.diff(groups.group_start).max(initial=0))
            largest = int(self.counts.max()) * widest
        product = dirichlet.dirichlet_product(groups.prior, groups.group_start, largest)
        own: Floats = dirichlet.log_marginals(self.counts, product)
        return own

    def _there(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(array)

    def _here(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def _floats(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(array.astype(self.dtype))

    def _soften(
        self, block: NDArray[Any], weights: NDArray[Any], offset: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        scores = block @ weights
        scores += offset
        highest = scores.max(axis=1, keepdims=True)
        scores -= highest
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        scores /= total
        return scores, (highest + np.log(total))[:, 0]
