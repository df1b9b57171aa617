"""Counts of many tasks as variational inference sees them, gone through in blocks and never copied whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

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


class Sweep(NamedTuple):
    """What one pass over all tasks gives: new counts and sizes of the clusters, and the log normalisers' sum."""

    counts: Floats
    sizes: Floats
    log_norm: float


class Data(Protocol):
    """Counts of many tasks, wherever they are held."""

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""

    def sweep(self, log_theta: Floats, log_pi: Floats) -> Sweep:
        """Add every task to the clusters by its responsibilities."""

    def log_norms(self, log_theta: Floats, log_pi: Floats) -> Floats:
        """Log normaliser of each task: how well the clusters explain it."""

    def responsibilities(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Responsibilities (tasks, clusters), block by block."""

    def own_log_marginals(self, groups: Groups) -> Floats:
        """Log marginal of each task by itself."""

    def sample(self, tasks: NDArray[np.int64]) -> NDArray[Any]:
        """Counts of some tasks, as a numpy array of a type that sums of them fit in."""

    def subset(self, tasks: NDArray[np.int64]) -> Self:
        """Some tasks, held where these are."""

    def parts(self, size: int) -> Sequence[Self]:
        """All tasks in parts of at most ``size``, none of them a copy."""


class CountsInMemory:
    """Counts as a numpy array (a memory map is one), of any integer or float type."""

    def __init__(self, counts: NDArray[Any], block: int = 8_192, dtype: Any = None) -> None:
        self.counts = counts
        self.block = block
        self.dtype = dtype or (np.float64 if counts.size <= MAX_DOUBLE else np.float32)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.counts)

    def _scores(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any]]]:
        weights: NDArray[Any] = np.ascontiguousarray(log_theta.T, dtype=self.dtype)
        offset: NDArray[Any] = log_pi.astype(self.dtype)
        for first in range(0, self.n_tasks, self.block):
            rows = slice(first, first + self.block)
            block: NDArray[Any] = self.counts[rows].astype(self.dtype)
            scores = block @ weights
            scores += offset
            yield rows, block, scores

    def sweep(self, log_theta: Floats, log_pi: Floats) -> Sweep:
        """Add every task to the clusters by its responsibilities. O(tasks · cells · clusters)."""
        counts = np.zeros(log_theta.shape)
        sizes = np.zeros(len(log_pi))
        log_norm = 0.0
        for _, block, scores in self._scores(log_theta, log_pi):
            log_norm += float(_soften(scores).sum(dtype=np.float64))
            counts += scores.T @ block
            sizes += scores.sum(axis=0, dtype=np.float64)
        return Sweep(counts, sizes, log_norm)

    def log_norms(self, log_theta: Floats, log_pi: Floats) -> Floats:
        """Log normaliser of each task."""
        out = np.empty(self.n_tasks)
        for rows, _, scores in self._scores(log_theta, log_pi):
            out[rows] = _soften(scores)
        return out

    def responsibilities(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Responsibilities (tasks, clusters), block by block."""
        for rows, _, scores in self._scores(log_theta, log_pi):
            _soften(scores)
            yield rows, scores

    def own_log_marginals(self, groups: Groups) -> Floats:
        """Log marginal of each task by itself."""
        # Here, so that clustering counts on a device needs no compiler.
        from kinfolk.maths.dirichlet import dirichlet_product, log_marginals

        largest = 0
        if self.counts.dtype.kind in "iu" and self.counts.size:
            # No group has seen more than all its cells could hold.
            widest = int(np.diff(groups.group_start).max(initial=0))
            largest = int(self.counts.max()) * widest
        product = dirichlet_product(groups.prior, groups.group_start, largest)
        own: Floats = log_marginals(self.counts, product)
        return own

    def sample(self, tasks: NDArray[np.int64]) -> NDArray[Any]:
        """Counts of some tasks, of a type that sums of them fit in."""
        chosen = self.counts[tasks]
        if chosen.dtype.kind not in "iu":
            return chosen.astype(np.float64)
        return chosen.astype(np.int32 if int(chosen.sum(dtype=np.int64)) < 2**31 else np.int64)

    def subset(self, tasks: NDArray[np.int64]) -> CountsInMemory:
        """Some tasks."""
        return CountsInMemory(self.counts[tasks], self.block, self.dtype)

    def parts(self, size: int) -> list[CountsInMemory]:
        """All tasks in parts of at most ``size``."""
        starts = range(0, self.n_tasks, size)
        return [CountsInMemory(self.counts[i : i + size], self.block, self.dtype) for i in starts]


def _soften(scores: NDArray[Any]) -> NDArray[Any]:
    """Turn rows of scores into probabilities, in place; returns the rows' log normalisers."""
    highest = scores.max(axis=1, keepdims=True)
    scores -= highest
    np.exp(scores, out=scores)
    total = scores.sum(axis=1, keepdims=True)
    scores /= total
    return np.asarray((highest + np.log(total))[:, 0])
