"""The E-step: what is known of every task's weights and sources, given what tasks have in common.

Each task's q(θ) q(s) (Zhang, Ghahramani and Yang 2005, Algorithm 1) is improved by one sweep or more. A sweep finds the
covariance of θ, then the means of θ and s jointly with the spreads of s, then where the likelihoods' bounds touch; no
part of it lowers the bound on the log evidence. Tasks side by side (``layout``) go through it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, effective_n_jobs
from numpy.typing import NDArray

from kinfolk.lica.inference.layout import Batch, Layout
from kinfolk.lica.model.data import Link
from kinfolk.lica.model.factors import LikelihoodBound, Likelihoods, SourceKind, fit_sources, match
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.lica.model.sparse_forms import sparse_column_forms
from kinfolk.lica.model.task_posterior import Conditioned, column_forms, condition_by_features, condition_by_rows
from kinfolk.maths.arrays import Floats
from kinfolk.pieces import delayed

_HALVINGS = 8  # of a step towards the matched sites, before the sites are taken as they are
PER_ROW = 7  # the first fields of states have a number for each row, the others for each task
_GROWTH = 1.2  # of a step that did not lower the bound

Item = TypeVar("Item")
Result = TypeVar("Result")


class Family(NamedTuple):
    """What is assumed of all tasks: likelihood, prior of the sources, and how the likelihood is bounded."""

    link: Link
    sources: SourceKind = "laplace"
    bound: LikelihoodBound = "average"


class TaskStates(NamedTuple):
    """Tasks' posteriors between two sweeps, in the space of their rows.

    E[θ] = μ + Λ mean + ΨXᵀ dual, and E[intercept] = m₀ + v₀ Σ dual. Fields of rows have all
    tasks' rows end to end; for tasks side by side, an axis for tasks before that of rows.

    Parameters
    ----------
    precision, shift : ndarrays of shape (n_rows,)
        The sites that θ was conditioned on.
    matched_precision, matched_shift : ndarrays of shape (n_rows,)
        The sites that belong to what came out.
    dual : ndarray of shape (n_rows,)
        a.
    predictor, predictor_variance : ndarrays of shape (n_rows,)
        Mean and variance of f.
    mean, spread : ndarrays of shape (n_tasks, n_sources)
        Of q(s): E[s], and b.
    weight_variance : ndarray of shape (n_tasks, n_features), or (n_tasks, 0) where not asked for
        Var[θ_j].
    squared_distance : ndarray of shape (n_tasks,)
        (E[θ] − Λ mean)ᵀ Ψ⁻¹ (E[θ] − Λ mean).
    weights_effective : ndarray of shape (n_tasks,)
        The number of weights that the rows decide: Σ_j Var[θ_j]/ψ_j falls short of n_features by it.
    intercept_effective : ndarray of shape (n_tasks,)
        How far the rows decide the intercept, from 0 to 1: Var[intercept] = v₀ (1 − intercept_effective).
    bound : ndarray of shape (n_tasks,)
        The task's part of the bound on the log evidence.
    step : ndarray of shape (n_tasks,)
        How far the sites may move towards the matched ones, between 0 and 1.
    """

    precision: Floats
    shift: Floats
    matched_precision: Floats
    matched_shift: Floats
    dual: Floats
    predictor: Floats
    predictor_variance: Floats
    mean: Floats
    spread: Floats
    weight_variance: Floats
    squared_distance: Floats
    weights_effective: Floats
    intercept_effective: Floats
    bound: Floats
    step: Floats

    def of(self, tasks: NDArray[Any]) -> TaskStates:
        """Some of the tasks side by side."""
        return TaskStates(*(field[tasks] for field in self))

    def having(self, tasks: NDArray[Any], others: TaskStates) -> TaskStates:
        """The same with others in the place of some of the tasks side by side."""
        if len(tasks) == len(self.bound):
            return others
        fields = [field.copy() for field in self]
        for field, new in zip(fields, others, strict=True):
            field[tasks] = new
        return TaskStates(*fields)


def side_by_side(states: TaskStates, batch: Batch) -> TaskStates:
    """The states of a batch's tasks side by side; zeros for rows that are not here."""
    of_rows = (np.where(batch.here, field[batch.at], 0.0) for field in states[:PER_ROW])
    return TaskStates(*of_rows, *(field[batch.tasks] for field in states[PER_ROW:]))


def end_to_end(batches: Sequence[Batch], found: Sequence[TaskStates]) -> TaskStates:
    """The states of all tasks, from those of every batch."""
    n_rows, n_tasks = sum(int(batch.here.sum()) for batch in batches), sum(len(batch.tasks) for batch in batches)
    fields = [np.empty(n_rows) for _ in range(PER_ROW)]
    fields += [np.empty((n_tasks, *field.shape[1:])) for field in found[0][PER_ROW:]]
    for batch, states in zip(batches, found, strict=True):
        places = batch.at[batch.here]
        for i, (field, values) in enumerate(zip(fields, states, strict=True)):
            if i < PER_ROW:
                field[places] = values[batch.here]
            else:
                field[batch.tasks] = values
    return TaskStates(*fields)


class Sweeps(NamedTuple):
    """How far an E-step goes.

    Parameters
    ----------
    most : int
        Sweeps over each task at most; the first follows the prior, the others keep the bound from falling.
    tol : float
        The gain in nats per row, counted by its weight, under which a task's sweeps end.
    same_prior : bool
        Whether the states belong to this very prior: then no sweep lowers a task's bound.
    """

    most: int = 1
    tol: float = 0.0
    same_prior: bool = False


ONE_SWEEP = Sweeps()


def fresh_states(layout: Layout, prior: TaskPrior, family: Family) -> TaskStates:
    """Tasks of which nothing is known yet."""
    n_tasks, n_sources, nothing = len(layout.ends) - 1, prior.loadings.shape[1], np.zeros(len(layout.y))
    rows = Likelihoods(family.link, layout.y, layout.weights, prior.residual_variance, family.bound)
    sites = match(rows, nothing, np.ones(len(nothing)))
    return TaskStates(
        *(sites.precision, sites.shift, sites.precision, sites.shift),
        *(nothing, nothing, nothing),
        mean=np.zeros((n_tasks, n_sources)),
        spread=np.full((n_tasks, n_sources), prior.source_scale),
        weight_variance=np.zeros((n_tasks, 0)),
        squared_distance=np.zeros(n_tasks),
        weights_effective=np.zeros(n_tasks),
        intercept_effective=np.zeros(n_tasks),
        bound=np.full(n_tasks, -np.inf),
        step=np.ones(n_tasks),
    )


def update_tasks(
    layout: Layout,
    prior: TaskPrior,
    states: TaskStates | None,
    family: Family,
    sweeps: Sweeps = ONE_SWEEP,
    *,
    want_variances: bool = False,
    n_jobs: int | None = None,
) -> TaskStates:
    """Improve every task's posterior by some sweeps.

    Parameters
    ----------
    layout : Layout
        The tasks' data.
    prior : TaskPrior
        What tasks have in common.
    states : TaskStates or None
        What is known so far, if anything.
    family : Family
        What is assumed of all tasks.
    sweeps : Sweeps
        How far to go.
    want_variances : bool
        Compute the posterior variance of every weight.
    n_jobs : int, optional
        Threads; the result does not hang on it.
    """
    before = fresh_states(layout, prior, family) if states is None else states
    X, loadings = layout.data.X, prior.loadings
    offset = np.full(X.shape[0], prior.intercept_mean)
    if prior.mean is not None:
        offset += np.asarray(X @ prior.mean)
    rigidity = np.einsum("jh,jh->h", loadings, loadings / prior.noise[:, None])
    of_all = layout.kernel_of_all(prior.noise) if layout.shares_kernel else None
    held = _Held(prior, family, np.asarray(X @ loadings), offset, rigidity, of_all)

    def update(batch: Batch) -> TaskStates:
        rows = _rows_of(layout, batch, held, want_variances)
        return _update(rows, held, side_by_side(before, batch), sweeps)

    return end_to_end(layout.batches, _over(update, layout.batches, n_jobs))


def variances_of_weights(layout: Layout, prior: TaskPrior, states: TaskStates, n_jobs: int | None = None) -> Floats:
    """Var[θ_j] of every task, which isotropic noise does not need on the way."""
    nothing = np.zeros((layout.data.X.shape[0], 0))
    of_all = layout.kernel_of_all(prior.noise) if layout.shares_kernel else None
    held = _Held(prior, Family("gaussian"), nothing, nothing, nothing, of_all)

    def variance(batch: Batch) -> Floats:
        rows = _rows_of(layout, batch, held, True)
        flat = side_by_side(states, batch)
        return _weight_variance(rows, prior, _condition(rows, prior, flat.precision, np.zeros_like(flat.precision)))

    found = np.empty((len(layout.ends) - 1, len(prior.noise)))
    for batch, values in zip(layout.batches, _over(variance, layout.batches, n_jobs), strict=True):
        found[batch.tasks] = values
    return found


def _over(function: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None) -> list[Result]:
    # One thread, or one item, is not worth a pool.
    if len(items) <= 1 or effective_n_jobs(n_jobs) == 1:
        return [function(item) for item in items]
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(function)(item) for item in items))


class _Held(NamedTuple):
    """What an E-step holds: XΛ and offset of every row of the table, R, and the kernel that tasks share."""

    prior: TaskPrior
    family: Family
    shared: Floats
    offset: Floats
    rigidity: Floats
    kernel: Floats | None


class _Rows(NamedTuple):
    """Rows of tasks side by side under a prior that stays: by their kernel, or by their features."""

    y: Floats
    weights: Floats
    shared: Floats
    offset: Floats
    kernel: Floats | None
    features: Floats | None
    columns: tuple[Any, ...] | None
    want_variances: bool

    def of(self, tasks: NDArray[np.int64]) -> _Rows:
        """Some of the tasks."""
        if len(tasks) == len(self.y):
            return self
        return _Rows(
            self.y[tasks],
            self.weights[tasks],
            self.shared[tasks],
            self.offset[tasks],
            None if self.kernel is None else self.kernel[tasks],
            None if self.features is None else self.features[tasks],
            None if self.columns is None else tuple(self.columns[k] for k in tasks),
            self.want_variances,
        )


def _rows_of(layout: Layout, batch: Batch, held: _Held, want_variances: bool) -> _Rows:
    places = layout.places[batch.at]
    features, columns = batch.features, batch.columns
    if features is None and (batch.by_features or (want_variances and batch.tables is None)):
        features = layout.features(batch)
    if want_variances and columns is None and batch.tables is not None:
        columns = tuple(table.tocsc() for table in batch.tables)
    return _Rows(
        layout.y[batch.at],
        np.where(batch.here, layout.weights[batch.at], 0.0),
        held.shared[places],
        held.offset[places],
        None if batch.by_features else layout.kernel(batch, held.prior.noise, held.kernel),
        features,
        columns,
        want_variances,
    )


def _update(rows: _Rows, held: _Held, state: TaskStates, sweeps: Sweeps) -> TaskStates:
    """Sweep over tasks side by side until each gains too little."""
    if not sweeps.same_prior:
        if held.family.link == "gaussian":  # whose sites follow σ² and nothing else
            precision = rows.weights / held.prior.residual_variance
            state = _sweep(rows, held, precision, precision * rows.y, state)
        else:
            state = _sweep(rows, held, *_between(state, state.step), state)
    counted = np.sum(rows.weights, axis=1)
    going = np.arange(len(counted))
    for _ in range(sweeps.most if sweeps.same_prior else sweeps.most - 1):
        before = state.bound[going]
        moved = _improve(rows.of(going), held, state.of(going))
        state = state.having(going, moved)
        going = going[~(moved.bound - before <= sweeps.tol * counted[going])]
        if not len(going):
            break
    return state


def _improve(rows: _Rows, held: _Held, state: TaskStates) -> TaskStates:
    """Move towards the matched sites, less far where that would lower a task's bound.

    Full steps overshoot in tasks of one class, whose sites change by much with the variance of the intercept.
    """
    found, step = state, state.step.copy()
    left = np.arange(len(step))
    for halving in range(_HALVINGS):
        start = state.of(left)
        tried = _sweep(rows.of(left), held, *_between(start, step[left]), start)
        tried = tried._replace(step=np.minimum(1.0, step[left] * _GROWTH) if halving == 0 else step[left])
        fine = tried.bound >= start.bound
        found = found.having(left[fine], tried if fine.all() else tried.of(fine))
        left = left[~fine]
        if not len(left):
            break
        step[left] *= 0.5
    return found


def _between(state: TaskStates, step: Floats) -> tuple[Floats, Floats]:
    """Sites some way from those that tasks were conditioned on to the matched ones."""
    full, step = step[:, None] == 1.0, step[:, None]
    precision = state.precision + step * (state.matched_precision - state.precision)
    shift = state.shift + step * (state.matched_shift - state.shift)
    return np.where(full, state.matched_precision, precision), np.where(full, state.matched_shift, shift)


def _sweep(rows: _Rows, held: _Held, precision: Floats, shift: Floats, start: TaskStates) -> TaskStates:
    """Condition weights and sources on some sites; means and spreads of the sources start from another state."""
    prior, shared = held.prior, rows.shared
    # Of f less what all tasks share.
    known = _condition(rows, prior, precision, shift - precision * rows.offset)
    across = np.swapaxes(shared, 1, 2)
    said = fit_sources(
        across @ known.damped,
        (across @ known.pull[..., None])[..., 0],
        held.rigidity,
        held.family.sources,
        prior.source_scale,
        (start.mean, start.spread),
    )
    mean = said.mean[..., None]
    dual = known.pull - (known.damped @ mean)[..., 0]
    moved = known.pull_spread - (known.damped_spread @ mean)[..., 0]
    predictor = rows.offset + (shared @ mean)[..., 0] + moved
    family, shape = held.family, rows.y.shape
    seen = Likelihoods(family.link, rows.y.ravel(), rows.weights.ravel(), prior.residual_variance, family.bound)
    matched = match(seen, predictor.ravel(), known.variance.ravel())
    distance = np.einsum("ki,ki->k", dual, moved)
    return TaskStates(
        precision,
        shift,
        matched.precision.reshape(shape),
        matched.shift.reshape(shape),
        dual,
        predictor,
        known.variance,
        said.mean,
        said.spread,
        _weight_variance(rows, prior, known) if rows.want_variances else np.zeros((len(dual), 0)),
        distance - prior.intercept_variance * np.sum(dual, axis=1) ** 2,
        known.weights_effective,
        known.effective - known.weights_effective,
        np.sum(matched.value.reshape(shape), axis=1) + 0.5 * (known.effective - known.log_det - distance) + said.value,
        start.step,
    )


def _condition(rows: _Rows, prior: TaskPrior, precision: Floats, shift: Floats) -> Conditioned:
    if rows.kernel is not None:
        return condition_by_rows(rows.kernel, precision, shift, rows.shared, prior.intercept_variance)
    features = rows.features
    if features is None:
        raise ValueError("tasks have neither a kernel nor features")
    return condition_by_features(features, precision, shift, rows.shared, prior.noise, prior.intercept_variance)


def _weight_variance(rows: _Rows, prior: TaskPrior, known: Conditioned) -> Floats:
    noise = prior.noise
    if known.kept is not None:
        return noise * known.kept
    if known.root is None:
        raise ValueError("weights were conditioned neither by rows nor by features")
    if rows.features is not None:
        return np.asarray(noise - noise**2 * column_forms(rows.features, known.root))
    forms = [sparse_column_forms(table, root) for table, root in zip(rows.columns or (), known.root, strict=True)]
    return noise - noise**2 * np.array(forms)
