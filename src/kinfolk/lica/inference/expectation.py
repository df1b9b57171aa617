"""The E-step: what is known of every task's weights and sources, given what tasks have in common.

Each task's q(θ) q(s) (Zhang, Ghahramani and Yang 2005, Algorithm 1) is improved by one sweep or more. A sweep finds the
covariance of θ, then the means of θ and s jointly with the spreads of s, then where the likelihoods' bounds touch; no
part of it lowers the bound on the log evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed

from kinfolk.lica.inference.designs import Designs
from kinfolk.lica.inference.small_tasks import GROWTH, HALVINGS, Held
from kinfolk.lica.model.data import LinearTasks, Link, Links
from kinfolk.lica.model.links import LINK_CODES
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.lica.model.sites import LikelihoodBound, Rows, Sites, match
from kinfolk.lica.model.source_posterior import SourceKind, SourcePosterior, fit_sources
from kinfolk.lica.model.task_state import TaskState
from kinfolk.maths.arrays import Floats

Result = TypeVar("Result")


class Family(NamedTuple):
    """What is assumed of all tasks: likelihood, prior of the sources, and how the likelihood is bounded."""

    link: Link
    sources: SourceKind = "laplace"
    bound: LikelihoodBound = "average"

    def rows(self, problem: LinearTasks, k: int, residual_variance: float) -> Rows:
        """The rows of one task as their likelihood sees them."""
        return Rows(self.link, problem.y[k], problem.weights[k], residual_variance, self.bound)


def fresh_states(problem: LinearTasks, prior: TaskPrior, family: Family) -> list[TaskState]:
    """Tasks of which nothing is known yet."""
    states = []
    for k, place in enumerate(problem.rows):
        nothing = np.zeros(len(place))
        sites, _ = match(family.rows(problem, k, prior.residual_variance), nothing, np.ones(len(place)))
        sources = np.zeros(prior.n_sources), np.full(prior.n_sources, prior.source_scale)
        states.append(TaskState(sites, sites, *sources, nothing, nothing, nothing, 0.0, 0.0, 0.0, None, -np.inf))
    return states


def update_tasks(
    designs: Designs,
    prior: TaskPrior,
    states: list[TaskState],
    family: Family,
    *,
    want_variances: bool = False,
    n_sweeps: int = 1,
    tol: float = 0.0,
    same_prior: bool = False,
    n_jobs: int | None = None,
) -> list[TaskState]:
    """Improve every task's posterior by some sweeps.

    Parameters
    ----------
    designs : Designs
        The tasks' features.
    prior : TaskPrior
        What tasks have in common.
    states : list of TaskState
        What is known so far.
    family : Family
        What is assumed of all tasks.
    want_variances : bool
        Compute the posterior variance of every weight.
    n_sweeps : int
        Sweeps over each task at most; the first follows the prior, the others keep the bound from falling.
    tol : float
        The gain in nats per row, counted by its weight, under which a task's sweeps end.
    same_prior : bool
        Whether the states belong to this very prior: then no sweep lowers a task's bound.
    n_jobs : int, optional
        Threads; the result does not hang on it.
    """
    shared = np.asarray(designs.problem.X @ prior.loadings)
    offset = np.full(len(shared), prior.intercept_mean)
    if prior.mean is not None:
        offset += np.asarray(designs.problem.X @ prior.mean)
    rigidity = np.einsum("jh,jh->h", prior.loadings, prior.loadings / prior.noise[:, None])
    found = list(states)
    small = designs.small
    if small.tasks:
        held = Held(
            shared,
            offset,
            prior.noise,
            rigidity,
            prior.source_scale,
            prior.intercept_variance,
            prior.residual_variance,
            LINK_CODES[family.link],
            family.bound == "average",
            family.sources == "laplace",
        )
        laid_out = small.lay_out(states, prior.n_features if want_variances else 0)

        def update_chunk(chunk: int) -> list[TaskState | None]:
            return small.update(chunk, held, laid_out, n_sweeps, tol, same_prior)

        for k, state in zip(small.tasks, chain(*_over(update_chunk, range(small.n_chunks), n_jobs)), strict=True):
            found[k] = state or found[k]

    def update(k: int) -> TaskState:
        rows = designs.problem.rows[k]
        task = _Task(designs, k, prior, family, shared[rows], offset[rows], rigidity, want_variances)
        state = states[k] if same_prior else task.sweep(task.sites_of(states[k]), states[k])
        counted = float(np.sum(designs.problem.weights[k]))
        for _ in range(n_sweeps if same_prior else n_sweeps - 1):
            before, state = state.bound, task.improve(state)
            if state.bound - before <= tol * counted:
                break
        return state

    if designs.others:
        designs.prepare(prior.noise)
    for k, state in zip(designs.others, _over(update, designs.others, n_jobs), strict=True):
        found[k] = state
    return found


def variances_of_weights(
    designs: Designs, prior: TaskPrior, states: list[TaskState], n_jobs: int | None = None
) -> list[Floats | None]:
    """Var[θ_kj] of every task, from the sites that its weights were conditioned on."""
    designs.prepare(prior.noise)

    def variance(k: int) -> Floats | None:
        precision = states[k].sites.precision
        if not len(precision):
            return prior.noise.copy()
        sites, nothing = Sites(precision, np.zeros_like(precision)), np.zeros((len(precision), 0))
        return designs.condition(k, sites, nothing, prior.intercept_variance, True).weight_variance

    return _over(variance, range(len(states)), n_jobs)


def _over(function: Callable[[int], Result], numbers: Sequence[int], n_jobs: int | None) -> list[Result]:
    # One task, or one thread, is not worth a pool.
    if n_jobs == 1 or len(numbers) <= 1:
        return [function(k) for k in numbers]
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(function)(k) for k in numbers))


class _Task(NamedTuple):
    """One task under a prior that stays."""

    designs: Designs
    k: int
    prior: TaskPrior
    family: Family
    shared: Floats
    offset: Floats
    rigidity: Floats
    want_variances: bool

    def sites_of(self, state: TaskState) -> Sites:
        """The sites to go on from; those of a Gaussian likelihood follow σ² and nothing else."""
        if self.family.link != Links.GAUSSIAN:
            return _between(state.sites, state.matched, state.step)
        rows = self.family.rows(self.designs.problem, self.k, self.prior.residual_variance)
        return match(rows, state.predictor, state.predictor_variance)[0]

    def sweep(self, sites: Sites, start: TaskState) -> TaskState:
        """Condition weights and sources on some sites; means and spreads of the sources start from another state."""
        prior, shared = self.prior, self.shared
        if not len(shared):
            alone = self._sources(np.zeros((prior.n_sources, prior.n_sources)), np.zeros(prior.n_sources), start)
            variance = prior.noise.copy() if self.want_variances else None
            return start._replace(mean=alone.mean, spread=alone.spread, weight_variance=variance, bound=alone.value)
        about = Sites(sites.precision, sites.shift - sites.precision * self.offset)  # of f less what all tasks share
        known = self.designs.condition(self.k, about, shared, prior.intercept_variance, self.want_variances)
        said = self._sources(shared.T @ known.damped, shared.T @ known.pull, start)
        dual = known.pull - known.damped @ said.mean
        moved = known.pull_spread - known.damped_spread @ said.mean
        predictor = self.offset + shared @ said.mean + moved
        rows = self.family.rows(self.designs.problem, self.k, prior.residual_variance)
        matched, likelihood = match(rows, predictor, known.variance)
        distance = float(dual @ moved)
        return TaskState(
            sites,
            matched,
            said.mean,
            said.spread,
            dual,
            predictor,
            known.variance,
            distance - prior.intercept_variance * float(np.sum(dual)) ** 2,
            known.weights_effective,
            known.effective - known.weights_effective,
            known.weight_variance if self.want_variances else None,
            likelihood + 0.5 * (known.effective - known.log_det - distance) + said.value,
            start.step,
        )

    def _sources(self, quadratic: Floats, linear: Floats, start: TaskState) -> SourcePosterior:
        at = start.mean, start.spread
        return fit_sources(quadratic, linear, self.rigidity, self.family.sources, self.prior.source_scale, at)

    def improve(self, state: TaskState) -> TaskState:
        """Move towards the matched sites, less far where that would lower the bound.

        Full steps overshoot in tasks of one class, whose sites change by much with the variance of the intercept.
        """
        step = state.step
        for _ in range(HALVINGS):
            moved = self.sweep(_between(state.sites, state.matched, step), state)
            if moved.bound >= state.bound:
                return moved._replace(step=min(1.0, step * GROWTH) if step == state.step else step)
            step *= 0.5
        return state


def _between(old: Sites, new: Sites, step: float) -> Sites:
    if step == 1.0:
        return new
    return Sites(old.precision + step * (new.precision - old.precision), old.shift + step * (new.shift - old.shift))
