"""The E-step over many small tasks at once, compiled: the sweeps of ``expectation`` for dense tasks of few cells."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.model.links import LINK_CODES
from kinfolk.lica.model.site_kernels import match_row
from kinfolk.lica.model.small_posterior import (
    Given,
    condition_by_features,
    condition_by_rows,
    covariance_of,
    factorise,
    invert_lower,
)
from kinfolk.lica.model.source_posterior import descend, gaussian_spread
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

HALVINGS = 8  # of a step towards the matched sites, before the sites are taken as they are
GROWTH = 1.2  # of a step that did not lower the bound
DISTANCE, WEIGHTS_EFFECTIVE, INTERCEPT_EFFECTIVE, BOUND, STEP = range(5)  # places in a posterior's ``numbers``
_GAUSSIAN = LINK_CODES["gaussian"]


class Rows(NamedTuple):
    """Rows of all small tasks, one task's after the other's, in the order of their ``starts``.

    Parameters
    ----------
    X : ndarray of shape (n_all_rows, n_features)
        The table of features, and ``places`` in it.
    places, y, weights : ndarrays of shape (n_rows,)
    starts : ndarray of shape (n_tasks + 1,)
    """

    X: Floats
    places: NDArray[np.int64]
    y: Floats
    weights: Floats
    starts: NDArray[np.int64]


class Held(NamedTuple):
    """What an E-step holds: P = XΛ and the offset of every row of X, Ψ, R, and what is assumed of all tasks."""

    shared: Floats
    offset: Floats
    noise: Floats
    rigidity: Floats
    source_scale: float
    intercept_variance: float
    residual_variance: float
    link: int
    by_average: bool
    laplace: bool


class Posterior(NamedTuple):
    """A task's posterior, as ``TaskState``, in arrays that sweeps fill in.

    For many tasks, those of rows are laid end to end and the others have a row a task. ``weight_variance`` is empty
    where it is not asked for.
    """

    precision: Floats
    shift: Floats
    matched_precision: Floats
    matched_shift: Floats
    dual: Floats
    predictor: Floats
    variance: Floats
    mean: Floats
    spread: Floats
    weight_variance: Floats
    numbers: Floats


class _Task(NamedTuple):
    """One task: B, BBᵀ (empty where features are fewer than rows), P, offset, targets and weights."""

    root: Floats
    covariance: Floats
    shared: Floats
    offset: Floats
    y: Floats
    weights: Floats


@compiled
def sweep_tasks(
    rows: Rows,
    held: Held,
    tasks: Posterior,
    n_sweeps: int,
    tol: float,
    same_prior: bool,
    moved: NDArray[np.bool_],
    first: int,
    last: int,
) -> None:
    """Sweep over some tasks, as ``expectation.update_tasks`` says; ``tasks`` changes in place.

    Of a task that no sweep improved, ``moved`` stays false and nothing is written.
    """
    for k in range(first, last):
        start, end = rows.starts[k], rows.starts[k + 1]
        task = _lay_out(rows, held, start, end)
        now = Posterior(
            tasks.precision[start:end],
            tasks.shift[start:end],
            tasks.matched_precision[start:end],
            tasks.matched_shift[start:end],
            tasks.dual[start:end],
            tasks.predictor[start:end],
            tasks.variance[start:end],
            tasks.mean[k],
            tasks.spread[k],
            tasks.weight_variance[k],
            tasks.numbers[k],
        )
        trial = _blank(now)
        if not same_prior:
            if held.link == _GAUSSIAN:
                for i in range(end - start):
                    trial.precision[i] = task.weights[i] / held.residual_variance
                    trial.shift[i] = trial.precision[i] * task.y[i]
            else:
                _between(now, now.numbers[STEP], trial)
            _sweep(task, held, now, trial)
            trial.numbers[STEP] = now.numbers[STEP]
            _take_over(trial, now)
            moved[k] = True
        counted = np.sum(task.weights)
        for _ in range(n_sweeps if same_prior else n_sweeps - 1):
            before = now.numbers[BOUND]
            if _improve(task, held, now, trial):
                moved[k] = True
            if now.numbers[BOUND] - before <= tol * counted:
                break


@compiled
def _lay_out(rows: Rows, held: Held, start: int, end: int) -> _Task:
    n_rows, n_features = end - start, rows.X.shape[1]
    root = np.empty((n_rows, n_features + 1))
    shared = np.empty((n_rows, held.shared.shape[1]))
    offset = np.empty(n_rows)
    deviation = np.sqrt(held.noise)
    for i in range(n_rows):
        place = rows.places[start + i]
        for j in range(n_features):
            root[i, j] = rows.X[place, j] * deviation[j]
        root[i, n_features] = sqrt(held.intercept_variance)
        shared[i] = held.shared[place]
        offset[i] = held.offset[place]
    covariance = covariance_of(root) if n_rows <= n_features + 1 else np.empty((0, 0))
    return _Task(root, covariance, shared, offset, rows.y[start:end], rows.weights[start:end])


@compiled
def _blank(like: Posterior) -> Posterior:
    return Posterior(
        np.empty_like(like.precision),
        np.empty_like(like.shift),
        np.empty_like(like.matched_precision),
        np.empty_like(like.matched_shift),
        np.empty_like(like.dual),
        np.empty_like(like.predictor),
        np.empty_like(like.variance),
        np.empty_like(like.mean),
        np.empty_like(like.spread),
        np.empty_like(like.weight_variance),
        np.empty_like(like.numbers),
    )


@compiled
def _take_over(new: Posterior, into: Posterior) -> None:
    into.precision[:] = new.precision
    into.shift[:] = new.shift
    into.matched_precision[:] = new.matched_precision
    into.matched_shift[:] = new.matched_shift
    into.dual[:] = new.dual
    into.predictor[:] = new.predictor
    into.variance[:] = new.variance
    into.mean[:] = new.mean
    into.spread[:] = new.spread
    into.weight_variance[:] = new.weight_variance
    into.numbers[:] = new.numbers


@compiled
def _improve(task: _Task, held: Held, now: Posterior, trial: Posterior) -> bool:
    """Move towards the matched sites, less far where that would lower the bound; whether anything moved."""
    step = now.numbers[STEP]
    for halving in range(HALVINGS):
        _between(now, step, trial)
        _sweep(task, held, now, trial)
        if trial.numbers[BOUND] >= now.numbers[BOUND]:
            trial.numbers[STEP] = min(1.0, step * GROWTH) if halving == 0 else step
            _take_over(trial, now)
            return True
        step *= 0.5
    return False


@compiled
def _between(now: Posterior, step: float, into: Posterior) -> None:
    if step == 1.0:
        into.precision[:] = now.matched_precision
        into.shift[:] = now.matched_shift
    else:
        for i in range(len(now.precision)):
            into.precision[i] = now.precision[i] + step * (now.matched_precision[i] - now.precision[i])
            into.shift[i] = now.shift[i] + step * (now.matched_shift[i] - now.shift[i])


@compiled
def _sweep(task: _Task, held: Held, start: Posterior, into: Posterior) -> None:
    """Condition weights and sources on the sites of ``into``; the sources start from those of ``start``."""
    n_rows, n_sources = task.shared.shape
    size = task.root.shape[1]
    by_rows, want_variances = len(task.covariance) > 0, len(into.weight_variance) > 0
    about = into.shift - into.precision * task.offset  # of f less what all tasks share
    given = Given(np.empty(n_rows), np.empty((n_rows, n_sources)), into.variance, np.empty(size))
    if by_rows:
        log_det, effective, of_weights = condition_by_rows(
            task.root, task.covariance, into.precision, about, task.shared, want_variances, given
        )
    else:
        log_det, effective, of_weights = condition_by_features(task.root, into.precision, about, task.shared, given)
    of_sources = _fit_sources(task, held, given, start, into)
    moved = np.zeros(n_rows)
    back = np.zeros(size)
    for i in range(n_rows):
        into.dual[i] = given.pull[i]
        for h in range(n_sources):
            into.dual[i] -= given.damped[i, h] * into.mean[h]
        if by_rows:
            for j in range(n_rows):
                moved[j] += task.covariance[i, j] * into.dual[i]
        else:
            for j in range(size):
                back[j] += task.root[i, j] * into.dual[i]
    likelihood, distance, total = 0.0, 0.0, 0.0
    for i in range(n_rows):
        if not by_rows:
            for j in range(size):
                moved[i] += task.root[i, j] * back[j]
        distance += into.dual[i] * moved[i]
        total += into.dual[i]
        into.predictor[i] = task.offset[i] + moved[i]
        for h in range(n_sources):
            into.predictor[i] += task.shared[i, h] * into.mean[h]
        into.matched_precision[i], into.matched_shift[i], value = match_row(
            held.link,
            held.by_average,
            task.y[i],
            task.weights[i],
            held.residual_variance,
            into.predictor[i],
            into.variance[i],
        )
        likelihood += value
    for j in range(len(into.weight_variance)):
        into.weight_variance[j] = held.noise[j] * given.left[j]
    into.numbers[DISTANCE] = distance - held.intercept_variance * total**2
    into.numbers[WEIGHTS_EFFECTIVE] = of_weights
    into.numbers[INTERCEPT_EFFECTIVE] = effective - of_weights
    into.numbers[BOUND] = likelihood + 0.5 * (effective - log_det - distance) + of_sources


@compiled
def _fit_sources(task: _Task, held: Held, given: Given, start: Posterior, into: Posterior) -> float:
    """Find q(s) as ``source_posterior.fit_sources`` does; returns its ``value``."""
    n_rows, n_sources = task.shared.shape
    quadratic, linear = np.zeros((n_sources, n_sources)), np.zeros(n_sources)
    for i in range(n_rows):
        for h in range(n_sources):
            linear[h] += task.shared[i, h] * given.pull[i]
            for other in range(n_sources):
                quadratic[h, other] += task.shared[i, h] * given.damped[i, other]
    if held.laplace:
        into.mean[:] = start.mean
        into.spread[:] = start.spread
        return descend(quadratic, linear, held.rigidity, held.source_scale, into.mean, into.spread)
    for h in range(n_sources):
        quadratic[h, h] += 1.0
    factorise(quadratic)
    inverse = invert_lower(quadratic)
    into.mean[:] = inverse.T @ (inverse @ linear)
    spread, value = gaussian_spread(into.mean, held.rigidity)
    into.spread[:] = spread
    return value
