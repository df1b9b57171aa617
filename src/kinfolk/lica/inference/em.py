"""EM that never lowers the bound, and takes longer steps than EM's own wherever they raise it.

One iteration is an M-step and one sweep over every task's posterior. Plain EM crawls where tasks have many more
features than rows, because nearly all of a weight's posterior is then its prior. Each iteration therefore tries in
turn, and keeps the first that does not lower the bound: a longer step with the sources turned (now and then; see
``rotation``), a longer step (Salakhutdinov and Roweis 2003 for Λ, MacKay 1992 for Ψ), and EM's own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kinfolk.lica.inference.designs import Designs
from kinfolk.lica.inference.expectation import Family, update_tasks, variances_of_weights
from kinfolk.lica.inference.maximisation import Shrinkage, maximise, weights_of_tasks
from kinfolk.lica.inference.rotation import unmix
from kinfolk.lica.model.data import LinearTasks
from kinfolk.lica.model.prior import Reach, TaskPosterior, TaskPrior
from kinfolk.lica.model.task_state import TaskState
from kinfolk.maths.arrays import Floats

_FIRST_SWEEPS = 10  # over tasks of which nothing is known yet
_SURE_SWEEPS, _SURE_TOLERANCE = 10, 1e-6  # where one sweep has not followed the prior far enough; nats per row
_STRETCH = 1.3  # growth of Λ's step after each longer step that raised the bound
_LONGEST = 20.0  # longest step of Λ, in steps of EM
_TURNS = (0, 1, 3, 7, 15, 31, 63)  # iterations that turn the sources
_WIDEST = 3.0  # most that one longer step multiplies or divides a ψ_j by, where each feature has its own
_SMALL_GAINS = 2  # in a row, after which there is nothing left to gain


class Climb:
    """EM over one problem."""

    def __init__(self, problem: LinearTasks, family: Family, isotropic: bool, n_jobs: int | None) -> None:
        self.problem = problem
        self.family = family
        self.designs = Designs(problem, isotropic)
        self.n_jobs = n_jobs

    def expect(
        self, prior: TaskPrior, states: list[TaskState], n_sweeps: int = 1, tol: float = 0.0, same_prior: bool = False
    ) -> list[TaskState]:
        """Sweep over every task."""
        wanted = not self.designs.isotropic
        return update_tasks(
            self.designs,
            prior,
            states,
            self.family,
            want_variances=wanted,
            n_sweeps=n_sweeps,
            tol=tol,
            same_prior=same_prior,
            n_jobs=self.n_jobs,
        )

    def run(
        self,
        prior: TaskPrior,
        states: list[TaskState],
        max_iter: int,
        tol: float,
        shrinkage: Shrinkage,
        advance: Callable[[int], None] | None = None,
    ) -> tuple[TaskPrior, list[TaskState], list[float], bool]:
        """Iterate until an iteration gains too little; the states returned belong to the prior returned."""
        counted = self.problem.counted

        def total(at: TaskPrior, found: list[TaskState]) -> float:
            return sum(state.bound for state in found) + shrinkage.log_density(at)

        states = self.expect(prior, states, _FIRST_SWEEPS, tol)
        bounds = [total(prior, states)]
        stretch, small_gains = 1.0, 0
        can_turn = self.family.sources == "laplace" and prior.n_sources > 0
        for iteration in range(max_iter):
            best, ahead = maximise(self.designs, prior, states, link=self.family.link, shrinkage=shrinkage)
            longer = _longer_step(prior, best, ahead, stretch, self.designs.isotropic)
            stretch = min(stretch * _STRETCH, _LONGEST)
            at, found, bound = prior, states, -np.inf
            if can_turn and iteration in _TURNS:
                at, moved = _turned(longer, states, shrinkage.loading_variance)
                found = self.expect(at, moved)
                bound = total(at, found)
            if not bound >= bounds[-1]:
                at, found = longer, self.expect(longer, states)
                bound = total(at, found)
            if not bound >= bounds[-1]:
                at, found, stretch = best, self.expect(best, states, _SURE_SWEEPS, _SURE_TOLERANCE), 1.0
                bound = total(at, found)
            if not bound >= bounds[-1]:
                # A task had not followed its last prior yet, and lost by following the new one: let it do so first.
                at, found = prior, self.expect(prior, states, _SURE_SWEEPS, _SURE_TOLERANCE, same_prior=True)
                bound = total(at, found)
            prior, states = at, found
            bounds.append(bound)
            if advance is not None:
                advance(1)
            small_gains = small_gains + 1 if bounds[-1] - bounds[-2] < tol * counted else 0
            if small_gains == _SMALL_GAINS:
                return prior, states, bounds, True
        return prior, states, bounds, False

    def posteriors(self, prior: TaskPrior, states: list[TaskState], weight_variances: bool) -> list[TaskPosterior]:
        """The tasks' posteriors in the space of features."""
        weights = weights_of_tasks(self.designs, prior, states)
        variances: list[Floats | None] = [state.weight_variance if weight_variances else None for state in states]
        if weight_variances and self.designs.isotropic:
            variances = variances_of_weights(self.designs, prior, states, self.n_jobs)
        return [
            TaskPosterior(
                weights[k],
                prior.intercept_mean + prior.intercept_variance * float(np.sum(state.dual)),
                state.mean,
                state.spread,
                variances[k],
                Reach(self.problem.X, rows, state.sites.precision),
            )
            for k, (state, rows) in enumerate(zip(states, self.problem.rows, strict=True))
        ]


def _longer_step(prior: TaskPrior, best: TaskPrior, ahead: Floats, stretch: float, isotropic: bool) -> TaskPrior:
    if not isotropic:
        ahead = np.clip(ahead, prior.noise / _WIDEST, prior.noise * _WIDEST)
    longer = best._replace(loadings=prior.loadings + stretch * (best.loadings - prior.loadings), noise=ahead)
    if prior.mean is not None and best.mean is not None:
        longer = longer._replace(mean=prior.mean + stretch * (best.mean - prior.mean))
    return longer


def _turned(prior: TaskPrior, states: list[TaskState], loading_variance: float) -> tuple[TaskPrior, list[TaskState]]:
    """Turn the sources to where they are independent, and Λ with them."""
    means = np.array([state.mean for state in states])
    spread = float(np.median([state.spread for state in states]))
    turn = unmix(means, spread, prior.loadings, prior.source_scale, loading_variance)
    turned = [state._replace(mean=mean) for state, mean in zip(states, means @ turn.T, strict=True)]
    loadings = np.asarray(np.linalg.solve(turn.T, prior.loadings.T).T, dtype=np.float64)
    return prior._replace(loadings=loadings), turned
