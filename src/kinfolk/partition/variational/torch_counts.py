"""Counts of many tasks on a device, through torch (the optional extra ``gpu``).

Clusters' parameters stay in numpy, being small; only they, their sums and what is asked for travel.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.partition.variational.task_counts import (
    MAX_DOUBLE,
    Groups,
    TaskCounts,
    cells_in_groups,
    log_marginals,
)


def load_torch() -> Any:
    """The module torch, or one sentence that says how to get it."""
    try:
        return import_module("torch")
    except ImportError:
        raise ImportError('device= needs torch, which is not installed: pip install "kinfolk[gpu]"') from None


class TorchCounts(TaskCounts):
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
        self.double = torch.float64

    def own_log_marginals(self, groups: Groups) -> Floats:
        """Log marginal of each task by itself."""
        prior, group_prior, in_group = (
            self._floats(self._there(of)) for of in (groups.prior, groups.group_prior, cells_in_groups(groups))
        )
        out = np.empty(self.n_tasks)
        for first in range(0, self.n_tasks, self.block):
            rows = slice(first, first + self.block)
            block = self._floats(self.counts[rows])
            out[rows] = self._here(log_marginals(block, prior, group_prior, in_group, self._torch.lgamma))
        return out

    def _there(self, array: NDArray[Any]) -> Any:
        return self._torch.as_tensor(np.ascontiguousarray(array), device=self.counts.device)

    def _here(self, array: Any) -> NDArray[Any]:
        return np.asarray(array.cpu().numpy())

    def _floats(self, array: Any) -> Any:
        return array.to(self.dtype)

    def _soften(self, block: Any, weights: Any, offset: Any) -> tuple[Any, Any]:
        scores = self._torch.addmm(offset, block, weights)
        return self._torch.softmax(scores, dim=1), self._torch.logsumexp(scores, dim=1)


def _known_to_torch(counts: Any) -> Any:
    """Counts in a type that torch computes with: it knows no unsigned integers of more than a byte."""
    if isinstance(counts, np.ndarray) and counts.dtype.kind == "u" and counts.dtype.itemsize > 1:
        return counts.astype(np.int32 if counts.dtype.itemsize == 2 else np.int64)
    return counts
