"""EM that never lowers the bound, and takes longer steps than EM's own wherever they raise it.

One iteration is an M-step and one sweep over every task's posterior. Plain EM crawls where tasks have many more
features than rows, because nearly all of a weight's posterior is then its prior. Each iteration therefore tries in
turn, and keeps the first that does not lower the bound: a longer step with the sources turned (now and then; see
``rotation``), a longer step (Salakhutdinov and Roweis 2003 for Λ, MacKay 1992 for Ψ), and EM's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kinfolk.lica.inference.expectation import ONE_SWEEP, Family, Sweeps, update_tasks
from kinfolk.lica.inference.layout import Layout, TaskStates
from kinfolk.lica.inference.maximisation import Shrinkage, maximise
from kinfolk.lica.inference.rotation import unmix
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.maths.arrays import Floats

_FIRST_SWEEPS = 10  # over tasks of which nothing is known yet
_SURE = Sweeps(10, 1e-6)  # where one sweep has not followed the prior far enough
_STRETCH = 1.3  # growth of Λ's step after each longer step that raised the bound
_LONGEST = 20.0  # longest step of Λ, in steps of EM
_TURNS = (0, 1, 3, 7, 15, 31, 63)  # iterations that turn the sources
_WIDEST = 3.0  # most that one longer step multiplies or divides a ψ_j by, where each feature has its own
_SMALL_GAINS = 2  # in a row, after which there is nothing left to gain


class EMResult(NamedTuple):
    """Where EM ended: the states belong to the prior; ``bounds`` are those at the start and after each iteration."""

    prior: TaskPrior
    states: TaskStates
    bounds: Floats
    converged: bool


def run_em(
    layout: Layout,
    family: Family,
    prior: TaskPrior,
    states: TaskStates,
    shrinkage: Shrinkage,
    *,
    max_iter: int,
    tol: float,
    n_jobs: int | None,
    advance: Callable[[int], None] | None = None,
) -> EMResult:
    """Iterate until an iteration gains too little."""
    counted, isotropic = float(np.sum(layout.weights)), layout.isotropic

    def expect(at: TaskPrior, known: TaskStates, sweeps: Sweeps = ONE_SWEEP) -> tuple[TaskStates, float]:
        found = update_tasks(layout, at, known, family, sweeps, want_variances=not isotropic, n_jobs=n_jobs)
        return found, float(np.sum(found.bound)) + shrinkage.log_density(at)

    states, bound = expect(prior, states, Sweeps(_FIRST_SWEEPS, tol))
    bounds = [bound]
    stretch, small_gains = 1.0, 0
    can_turn = family.sources == "laplace" and prior.loadings.size > 0
    for iteration in range(max_iter):
        best, ahead = maximise(layout, prior, states, link=family.link, shrinkage=shrinkage)
        longer = _longer_step(prior, best, ahead, stretch, isotropic)
        stretch = min(stretch * _STRETCH, _LONGEST)
        at, found, bound = prior, states, -np.inf
        if can_turn and iteration in _TURNS:
            at, moved = _turned(longer, states, shrinkage.loading_variance)
            found, bound = expect(at, moved)
        if not bound >= bounds[-1]:
            at = longer
            found, bound = expect(longer, states)
        if not bound >= bounds[-1]:
            at, stretch = best, 1.0
            found, bound = expect(best, states, _SURE)
        if not bound >= bounds[-1]:
            # A task had not followed its last prior yet, and lost by following the new one: let it do so first.
            at = prior
            found, bound = expect(prior, states, _SURE._replace(same_prior=True))
        prior, states = at, found
        bounds.append(bound)
        if advance is not None:
            advance(1)
        small_gains = small_gains + 1 if bounds[-1] - bounds[-2] < tol * counted else 0
        if small_gains == _SMALL_GAINS:
            return EMResult(prior, states, np.array(bounds), True)
    return EMResult(prior, states, np.array(bounds), False)


def _longer_step(prior: TaskPrior, best: TaskPrior, ahead: Floats, stretch: float, isotropic: bool) -> TaskPrior:
    if not isotropic:
        ahead = np.clip(ahead, prior.noise / _WIDEST, prior.noise * _WIDEST)
    longer = best._replace(loadings=prior.loadings + stretch * (best.loadings - prior.loadings), noise=ahead)
    if prior.mean is not None and best.mean is not None:
        longer = longer._replace(mean=prior.mean + stretch * (best.mean - prior.mean))
    return longer


def _turned(prior: TaskPrior, states: TaskStates, loading_variance: float) -> tuple[TaskPrior, TaskStates]:
    """Turn the sources to where they are independent, and Λ with them."""
    spread = float(np.median(states.spread))
    turn = unmix(states.mean, spread, prior.loadings, prior.source_scale, loading_variance)
    loadings = np.asarray(np.linalg.solve(turn.T, prior.loadings.T).T, dtype=np.float64)
    return prior._replace(loadings=loadings), states._replace(mean=states.mean @ turn.T)
