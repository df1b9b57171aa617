"""What inference takes and gives: frozen values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import Checkpoint, Nowhere, Place
from kinfolk.linear.model.rows import LinearRows
from kinfolk.linear.model.weights import TaskWeights
from kinfolk.maths.arrays import Floats

# Scales of the priors of standard deviations, in units of log odds, or of the target's standard deviation: of tasks'
# intercepts, of all their slopes together, and of common weights. Measured: see docs/models/linear.md.
_INTERCEPTS = 0.5
_SLOPES = 0.25
_COMMON = 0.3
# Standard deviation of the common intercept.
_COMMON_INTERCEPT = 5.0


class Groups(NamedTuple):
    """Which columns share a standard deviation, among tasks' own weights, the constant first.

    ``own`` is the group of each own column; the constant's is the first, 0. ``bends`` tells which of all columns are
    values beside a number, None where there are none: they bend what is straight, which most columns hardly need.
    """

    own: NDArray[np.int64]
    bends: NDArray[np.bool_] | None = None

    @property
    def common(self) -> NDArray[np.int64]:
        """The scale that each column's common weight has, but for the constant's: 0 for most, 1 for bends."""
        assert self.bends is not None
        return self.bends[1:].astype(np.int64)

    @property
    def widths(self) -> Floats:
        """Scales of the priors of the groups' standard deviations: slopes share theirs out among their groups."""
        n_slopes = int(self.own.max())
        return np.append(_INTERCEPTS, np.full(n_slopes, _SLOPES / np.sqrt(max(n_slopes, 1))))


class Hyper(NamedTuple):
    """Standard deviations: of every group of tasks' own weights, of common weights, and of those that bend."""

    own: Floats
    common: float
    bends: float | None = None

    def spread(self, groups: Groups) -> Floats:
        """τ of every own column."""
        return np.asarray(self.own[groups.own])

    def scale(self, n_columns: int, groups: Groups) -> Floats:
        """σ of every column, the constant first."""
        scale = np.append(_COMMON_INTERCEPT, np.full(n_columns - 1, self.common))
        if self.bends is not None and groups.bends is not None:
            scale[groups.bends] = self.bends
        return scale

    @property
    def commons(self) -> Floats:
        """Standard deviations of common weights, those that bend last, if there are any."""
        return np.array([self.common] if self.bends is None else [self.common, self.bends])


COMMON_WIDTH = np.array([_COMMON, _COMMON])


def first_hyper(groups: Groups) -> Hyper:
    """Where learning begins: half of what the priors have in the middle."""
    return Hyper(0.5 * groups.widths, 0.5 * _COMMON, None if groups.bends is None else 0.5 * _COMMON)


class Options(NamedTuple):
    """How long to go on: iterations at most, and a gain in the bound, in nats a thousand rows, that is enough.

    Scales that are not to be learnt stay as they were given. ``checkpoint`` is where a fit keeps how far it got.
    """

    max_iter: int = 300
    tol: float = 1e-2
    learn_scales: bool = True
    checkpoint: Checkpoint = Checkpoint()

    def enough(self, rows: LinearRows) -> float:
        """The gain below which it is enough, of tables under a thousand rows as of a thousand."""
        return self.tol * max(1.0, rows.n_rows / 1e3)

    def place(self, what: str, rows: LinearRows, hyper: Hyper | None) -> Place | Nowhere:
        """Where a fit to these rows keeps how far it got."""
        own = self.max_iter, self.tol, self.learn_scales
        return self.checkpoint.place(what, rows, hyper, own)


class Noise(NamedTuple):
    """Variances of noise: what was learnt of each task's, an inverse Gamma(shape, rate), and of a new task's."""

    shape: Floats
    rate: Floats
    new_shape: float
    new_rate: float

    @property
    def precisions(self) -> Floats:
        """E 1/s² of every task."""
        return self.shape / self.rate


class ClusterDraws(NamedTuple):
    """Draws of partitions and of concentrations, and what follows from all of them.

    ``seats`` (draws, tasks) are partitions, ``log_evidence`` their log evidence up to a constant; ``base_scale``
    (labels, own columns) is the spread of what clusters' weights are drawn from; ``new_mean`` and ``new_covariance``
    are of a new task's own weights, for each label; ``own_share`` (tasks, labels, own columns) is how much of what is
    known of a task's cluster came from the task itself; ``n_chains`` chains have as many draws each, the first's first.
    """

    seats: NDArray[np.int64]
    concentration: Floats
    log_evidence: Floats
    base_scale: Floats
    new_mean: Floats
    new_covariance: Floats
    own_share: Floats
    n_chains: int = 1


class Fitted(NamedTuple):
    """What was learnt: weights, the bound on the log evidence after each iteration, and whether it settled."""

    weights: TaskWeights
    bound: Floats
    converged: bool
    noise: Noise | None = None
