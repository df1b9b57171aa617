"""Counts of many tasks on a device, through torch (the optional extra ``gpu``): what ``task_counts`` does, there.

Clusters' parameters stay in numpy, being small; only they, their sums and what is asked for travel.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.partition.variational.task_counts import MAX_DOUBLE, Floats, Groups, Sweep


def load_torch() -> Any:
    """The module torch, or one sentence that says how to get it."""
    try:
        return import_module("torch")
    except ImportError:
        raise ImportError('device= needs torch, which is not installed: pip install "kinfolk[gpu]"') from None


class TorchCounts:
    """Counts (tasks, cells) on a device, of any integer or float type; a byte each where they come so.

    Matrix products are of plain single precision. TF32 and bfloat16 hold counts up to 2,048 and 256 exactly but round
    log rates to 11 and 8 bits: for tasks of a hundred rows of fifteen features that moves a task's log normaliser by
    0.05 and 0.4 nats, and not to zero on average, where sweeps are stopped and births judged by 1e-4 nats a task.
    Single precision moves it by 4e-4, and by 1e-5 on average.

    Parameters
    ----------
    counts : numpy array or torch tensor of shape (tasks, cells)
        A tensor that is on the device already is not copied.
    device : str or torch.device
        "cuda", "cuda:1", "cpu", ….
    block : int
        Tasks turned to floats at a time.
    dtype : torch.dtype, optional
        Of the products; by default double precision for few counts, as in numpy.
    """

    def __init__(self, counts: Any, device: Any, block: int = 1 << 18, dtype: Any = None) -> None:
        self._torch = torch = load_torch()
        self.counts = torch.as_tensor(_known_to_torch(counts), device=device)
        self.block = block
        few = self.counts.numel() <= MAX_DOUBLE and self.counts.device.type != "mps"
        self.dtype = dtype or (torch.float64 if few else torch.float32)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.counts.shape[0])

    def _here(self, array: Any) -> Any:
        return self._torch.as_tensor(np.ascontiguousarray(array), device=self.counts.device)

    def _there(self, tensor: Any) -> NDArray[Any]:
        return np.asarray(tensor.cpu().numpy())

    def _scores(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, Any, Any]]:
        weights, offset = self._here(log_theta.T).to(self.dtype), self._here(log_pi).to(self.dtype)
        for first in range(0, self.n_tasks, self.block):
            rows = slice(first, min(first + self.block, self.n_tasks))
            block = self.counts[rows].to(self.dtype)
            yield rows, block, self._torch.addmm(offset, block, weights)

    def sweep(self, log_theta: Floats, log_pi: Floats) -> Sweep:
        """Add every task to the clusters by its responsibilities. O(tasks · cells · clusters)."""
        torch = self._torch
        # Sums over blocks are kept in double precision, and on the device until all blocks are done.
        total = {"dtype": torch.float64, "device": self.counts.device}
        counts, sizes = torch.zeros(log_theta.shape, **total), torch.zeros(len(log_pi), **total)
        log_norm = torch.zeros((), **total)
        for _, block, scores in self._scores(log_theta, log_pi):
            log_norm += torch.logsumexp(scores, dim=1).sum(dtype=torch.float64)
            share = torch.softmax(scores, dim=1)
            counts += share.T @ block
            sizes += share.sum(dim=0, dtype=torch.float64)
        return Sweep(self._there(counts), self._there(sizes), float(log_norm))

    def log_norms(self, log_theta: Floats, log_pi: Floats) -> Floats:
        """Log normaliser of each task."""
        torch = self._torch
        out = torch.empty(self.n_tasks, dtype=self.dtype, device=self.counts.device)
        for rows, _, scores in self._scores(log_theta, log_pi):
            out[rows] = torch.logsumexp(scores, dim=1)
        return self._there(out).astype(np.float64)

    def responsibilities(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Responsibilities (tasks, clusters), block by block, as numpy arrays."""
        for rows, _, scores in self._scores(log_theta, log_pi):
            yield rows, self._there(self._torch.softmax(scores, dim=1))

    def most_probable(self, log_theta: Floats, log_pi: Floats) -> Any:
        """The most probable cluster of each task, two bytes each, on the device."""
        torch = self._torch
        out = torch.empty(self.n_tasks, dtype=torch.int16, device=self.counts.device)
        for rows, _, scores in self._scores(log_theta, log_pi):
            out[rows] = scores.argmax(dim=1).to(torch.int16)
        return out

    def own_log_marginals(self, groups: Groups) -> Floats:
        """Log marginal of each task by itself."""
        torch = self._torch
        prior, group_prior = self._here(groups.prior).to(self.dtype), self._here(groups.group_prior).to(self.dtype)
        widths = np.diff(groups.group_start)
        member = np.zeros((len(groups.prior), len(widths)))
        member[np.arange(len(groups.prior)), np.repeat(np.arange(len(widths)), widths)] = 1.0
        in_group = self._here(member).to(self.dtype)
        empty = torch.lgamma(group_prior).sum() - torch.lgamma(prior).sum()
        out = torch.empty(self.n_tasks, dtype=self.dtype, device=self.counts.device)
        for first in range(0, self.n_tasks, self.block):
            block = self.counts[first : first + self.block].to(self.dtype)
            totals = torch.lgamma(block @ in_group + group_prior).sum(dim=1)
            out[first : first + self.block] = torch.lgamma(block + prior).sum(dim=1) - totals + empty
        return self._there(out).astype(np.float64)

    def sample(self, tasks: NDArray[np.int64]) -> NDArray[Any]:
        """Counts of some tasks, as a numpy array of a type that sums of them fit in."""
        chosen = self._there(self.counts[self._here(tasks)])
        if chosen.dtype.kind not in "iu":
            return chosen.astype(np.float64)
        return chosen.astype(np.int32 if int(chosen.sum(dtype=np.int64)) < 2**31 else np.int64)

    def subset(self, tasks: NDArray[np.int64]) -> TorchCounts:
        """Some tasks, on the same device."""
        return TorchCounts(self.counts[self._here(tasks)], self.counts.device, self.block, self.dtype)

    def parts(self, size: int) -> list[TorchCounts]:
        """All tasks in parts of at most ``size``, none of them a copy."""
        parts = self.counts.split(size)
        return [TorchCounts(part, self.counts.device, self.block, self.dtype) for part in parts]


def _known_to_torch(counts: Any) -> Any:
    """Counts in a type that torch computes with: it knows no unsigned integers of more than a byte."""
    if isinstance(counts, np.ndarray) and counts.dtype.kind == "u" and counts.dtype.itemsize > 1:
        return counts.astype(np.int32 if counts.dtype.itemsize == 2 else np.int64)
    return counts
