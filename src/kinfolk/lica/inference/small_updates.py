"""Which tasks are small enough for compiled sweeps, and their posteriors as those sweeps need them, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from kinfolk.lica.inference.small_tasks import Held, Posterior, Rows, sweep_tasks
from kinfolk.lica.model.data import LinearTasks
from kinfolk.lica.model.sites import Sites
from kinfolk.lica.model.task_state import TaskState

MOST_WORK = 200_000  # multiplications that conditioning a task takes, beyond which LAPACK is the faster
_CHUNK = 500  # tasks that one thread goes through at a time


class SmallTasks:
    """The tasks of a problem whose sweeps are faster compiled: few cells of a dense table, and one row at least.

    Parameters
    ----------
    problem : LinearTasks
        Without rows of weight zero.

    Attributes
    ----------
    tasks : list of int
        Which tasks they are.
    """

    def __init__(self, problem: LinearTasks) -> None:
        size = problem.n_features + 1
        self.tasks = [
            k
            for k, rows in enumerate(problem.rows)
            if not sparse.issparse(problem.X) and 0 < len(rows) * size * min(len(rows), size) <= MOST_WORK
        ]
        self._ends = np.cumsum([0, *(len(problem.rows[k]) for k in self.tasks)])
        if self.tasks:
            self._rows = Rows(
                problem.X,
                np.concatenate([problem.rows[k] for k in self.tasks]),
                np.concatenate([problem.y[k] for k in self.tasks]),
                np.concatenate([problem.weights[k] for k in self.tasks]),
                self._ends,
            )

    @property
    def n_chunks(self) -> int:
        """Parts that can be swept over at the same time."""
        return -(-len(self.tasks) // _CHUNK)

    def lay_out(self, states: Sequence[TaskState], n_features: int) -> Posterior:
        """The states of these tasks end to end; weights have variances where ``n_features`` is not zero."""
        mine = [states[k] for k in self.tasks]
        n_rows = self._ends[-1]
        return Posterior(
            np.concatenate([state.sites.precision for state in mine]),
            np.concatenate([state.sites.shift for state in mine]),
            np.concatenate([state.matched.precision for state in mine]),
            np.concatenate([state.matched.shift for state in mine]),
            np.empty(n_rows),
            np.empty(n_rows),
            np.empty(n_rows),
            np.array([state.mean for state in mine]),
            np.array([state.spread for state in mine]),
            np.empty((len(mine), n_features)),
            np.array([[0.0, 0.0, 0.0, state.bound, state.step] for state in mine]),
        )

    def update(
        self, chunk: int, held: Held, laid_out: Posterior, n_sweeps: int, tol: float, same_prior: bool
    ) -> list[TaskState | None]:
        """Sweep over the tasks of one chunk; None for a task that is still what it was."""
        first, last = chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(self.tasks))
        moved = np.zeros(len(self.tasks), dtype=np.bool_)
        sweep_tasks(self._rows, held, laid_out, n_sweeps, tol, same_prior, moved, first, last)
        return [self._state(laid_out, k) if moved[k] else None for k in range(first, last)]

    def _state(self, found: Posterior, k: int) -> TaskState:
        rows = slice(self._ends[k], self._ends[k + 1])
        distance, weights_effective, intercept_effective, bound, step = found.numbers[k].tolist()
        return TaskState(
            Sites(found.precision[rows], found.shift[rows]),
            Sites(found.matched_precision[rows], found.matched_shift[rows]),
            found.mean[k],
            found.spread[k],
            found.dual[rows],
            found.predictor[rows],
            found.variance[rows],
            distance,
            weights_effective,
            intercept_effective,
            found.weight_variance[k] if found.weight_variance.shape[1] else None,
            bound,
            step,
        )
