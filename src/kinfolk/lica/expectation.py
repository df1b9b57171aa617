"""The E-step: what is known of every task's weights and sources, given what tasks have in common.

Each task's q(θ) q(s) (Zhang, Ghahramani and Yang 2005, Algorithm 1) is improved by one sweep or more. A sweep finds the
covariance of θ, then the means of θ and s jointly with the spreads of s, then where the likelihoods' bounds touch; no
part of it lowers the bound on the log evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed

from kinfolk.lica.designs import Designs
from kinfolk.lica.prior import TaskPrior
from kinfolk.lica.problem import Floats, Link, Links, Problem
from kinfolk.lica.sites import LikelihoodBound, Rows, Sites, match
from kinfolk.lica.source_posterior import SourceKind, SourcePosterior, fit_sources

Result = TypeVar("Result")

_HALVINGS = 8  # of a step towards the matched sites, before the sites are taken as they are
_GROWTH = 1.2  # of a step that did not lower the bound


class TaskState(NamedTuple):
    """One task's posterior in the space of its rows: E[θ] = μ + Λ mean + ΨXᵀ dual, E[intercept] = m₀ + v₀ Σ dual.

    Parameters
    ----------
    sites, matched : Sites
        The sites that θ was conditioned on, and those that belong to what came out.
    mean, spread : ndarrays of shape (n_sources,)
        Of q(s): E[s], and b.
    dual : ndarray of shape (n_rows,)
        a.
    predictor, predictor_variance : ndarrays of shape (n_rows,)
        Mean and variance of f.
    squared_distance : float
        (E[θ] − Λ mean)ᵀ Ψ⁻¹ (E[θ] − Λ mean).
    weights_effective : float
        The number of weights that the rows decide: Σ_j Var[θ_j]/ψ_j falls short of n_features by it.
    intercept_effective : float
        How far the rows decide the intercept, from 0 to 1: Var[intercept] = v₀ (1 − intercept_effective).
    weight_variance : ndarray of shape (n_features,) or None
        Var[θ_j], where asked for.
    bound : float
        The task's part of the bound on the log evidence.
    step : float
        How far the sites may move towards the matched ones, between 0 and 1.
    """

    sites: Sites
    matched: Sites
    mean: Floats
    spread: Floats
    dual: Floats
    predictor: Floats
    predictor_variance: Floats
    squared_distance: float
    weights_effective: float
    intercept_effective: float
    weight_variance: Floats | None
    bound: float
    step: float = 1.0


class Family(NamedTuple):
    """What is assumed of all tasks: likelihood, prior of the sources, and how the likelihood is bounded."""

    link: Link
    sources: SourceKind = "laplace"
    bound: LikelihoodBound = "average"

    def rows(self, problem: Problem, k: int, residual_variance: float) -> Rows:
        """The rows of one task as their likelihood sees them."""
        return Rows(self.link, problem.y[k], problem.weights[k], residual_variance, self.bound)


def fresh_states(problem: Problem, prior: TaskPrior, family: Family) -> list[TaskState]:
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
        The gain in nats per row under which a task's sweeps end.
    same_prior : bool
        Whether the states belong to this very prior: then no sweep lowers a task's bound.
    n_jobs : int, optional
        Threads; the result does not hang on it.
    """
    designs.prepare(prior.noise)
    shared = np.asarray(designs.problem.X @ prior.loadings)
    offset = np.full(len(shared), prior.intercept_mean)
    if prior.mean is not None:
        offset += np.asarray(designs.problem.X @ prior.mean)
    rigidity = np.einsum("jh,jh->h", prior.loadings, prior.loadings / prior.noise[:, None])

    def update(k: int) -> TaskState:
        rows = designs.problem.rows[k]
        task = _Task(designs, k, prior, family, shared[rows], offset[rows], rigidity, want_variances)
        state = states[k] if same_prior else task.sweep(task.sites_of(states[k]), states[k])
        for _ in range(n_sweeps if same_prior else n_sweeps - 1):
            before, state = state.bound, task.improve(state)
            if state.bound - before <= tol * len(task.shared):
                break
        return state

    return _over_tasks(update, len(states), n_jobs)


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

    return _over_tasks(variance, len(states), n_jobs)


def _over_tasks(function: Callable[[int], Result], n_tasks: int, n_jobs: int | None) -> list[Result]:
    # One task, or one thread, is not worth a pool.
    if n_jobs == 1 or n_tasks == 1:
        return [function(k) for k in range(n_tasks)]
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(function)(k) for k in range(n_tasks)))


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
        for _ in range(_HALVINGS):
            moved = self.sweep(_between(state.sites, state.matched, step), state)
            if moved.bound >= state.bound:
                return moved._replace(step=min(1.0, step * _GROWTH) if step == state.step else step)
            step *= 0.5
        return state


def _between(old: Sites, new: Sites, step: float) -> Sites:
    if step == 1.0:
        return new
    return Sites(old.precision + step * (new.precision - old.precision), old.shift + step * (new.shift - old.shift))
