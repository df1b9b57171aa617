"""The most probable weights of many tasks on the same rows, all tasks at once (section 3.2 of Zhang et al. 2005).

The minimum has θ_k = Λs_k + ΨXᵀa_k and an intercept v₀ Σᵢ aᵢₖ, one number aᵢₖ for each row and task, so that nothing
is as long as the features: predictors are XΛs + Ka, with the Gram matrix K = XΨXᵀ + v₀ computed once, and what Newton's
method needs of all tasks is a product of K with a matrix. Steps come from conjugate gradients on I + √D K √D, D the
curvature of the losses. Tables are tasks × rows, so that tasks which are done can be left out cheaply.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfolk.lica.model.data import Link
from kinfolk.lica.model.links import LINK_CODES, losses
from kinfolk.maths.arrays import Floats

_ARMIJO = 1e-4
_HALVINGS = 60
_CROWDED = 0.75  # tasks are left out once fewer than this share of them still need steps
_ROUNDING = 1e-13


class RowWeights(NamedTuple):
    """Tasks' solutions in terms of rows.

    Parameters
    ----------
    duals : ndarray of shape (n_tasks, n_rows)
        a.
    loss : ndarray of shape (n_tasks,)
        Negative log likelihood, without constants.
    penalty : ndarray of shape (n_tasks,)
        ½ aᵀKa: the negative log prior of weights and intercept, without constants.
    gradient : ndarray of shape (n_tasks,)
        Norm of the objective's gradient in (θ − μ)/√ψ.
    curvature : ndarray of shape (n_tasks, n_rows)
        Second derivatives of the losses.
    """

    duals: Floats
    loss: Floats
    penalty: Floats
    gradient: Floats
    curvature: Floats


def fit_row_weights(
    gram: Floats,
    y: Floats,
    row_weights: Floats,
    offsets: Floats,
    duals: Floats,
    *,
    link: Link,
    intercept_variance: float,
    residual_variance: float = 1.0,
    tolerance: float,
    max_steps: int,
) -> RowWeights:
    """Minimise every task's objective from the given ``duals``.

    Parameters
    ----------
    gram : ndarray of shape (n_rows, n_rows)
        XΨXᵀ + v₀.
    y, row_weights : ndarrays of shape (n_tasks, n_rows)
        Targets, and weights that are zero where a task lacks a row.
    offsets : ndarray of shape (n_tasks, n_rows)
        XΛs of each task.
    duals : ndarray of shape (n_tasks, n_rows)
        Where to start.
    link, intercept_variance, residual_variance
        The model.
    tolerance : float
        Norm of a task's gradient at which it stops.
    max_steps : int
        Newton steps at most.

    Returns
    -------
    RowWeights
    """
    code = LINK_CODES[link]
    duals = duals.copy()
    predictors = offsets + duals @ gram
    loss, slope, curvature = losses(code, y, predictors, row_weights, residual_variance)
    gradient = np.zeros(y.shape[0])
    live = np.arange(y.shape[0])
    for step in range(max_steps + 1):
        residual = duals[live] + slope[live]
        pull = residual @ gram
        gradient[live] = np.sqrt(np.maximum(_dots(residual, pull), 0.0))
        going = gradient[live] > tolerance
        live, residual, pull = live[going], residual[going], pull[going]
        if live.size == 0 or step == max_steps:
            break
        change, shift = _newton_steps(
            gram, curvature[live], residual, pull, gradient[live], intercept_variance, tolerance
        )
        slope_along = _dots(pull, change)
        prior_slope, prior_curvature = _dots(duals[live], shift), _dots(change, shift)
        length = np.ones(live.size)
        trying = np.arange(live.size)
        for _ in range(_HALVINGS):
            tasks, size = live[trying], length[trying]
            tried = predictors[tasks] + size[:, None] * shift[trying]
            new = losses(code, y[tasks], tried, row_weights[tasks], residual_variance)
            rise = new[0] - loss[tasks] + size * prior_slope[trying] + 0.5 * size**2 * prior_curvature[trying]
            fine = rise <= _ARMIJO * size * slope_along[trying] + _ROUNDING * (1.0 + loss[tasks])
            taken = tasks[fine]
            predictors[taken] = tried[fine]
            duals[taken] += size[fine, None] * change[trying[fine]]
            loss[taken], slope[taken], curvature[taken] = new[0][fine], new[1][fine], new[2][fine]
            trying = trying[~fine]
            length[trying] *= 0.5
            if trying.size == 0:
                break
        # A task is done where nothing is left to gain, or where no length of its step helps.
        live = live[(-slope_along > (0.03 * tolerance) ** 2) & ~np.isin(np.arange(live.size), trying)]
    return RowWeights(duals, loss, 0.5 * _dots(duals, predictors - offsets), gradient, curvature)


def solve_rows(
    gram: Floats, curvature: Floats, targets: Floats, intercept_variance: float, enough: Floats
) -> tuple[Floats, Floats]:
    """Solve (I + √D K √D) v = targets for every task; returns v and K√D v.

    ``enough`` says for each task at which remaining error, vᵀ(I + √D K √D)v, to stop.
    """
    nothing = np.zeros(enough.size)
    return _conjugate_gradients(gram, curvature, targets, intercept_variance, enough, nothing, nothing)


def _newton_steps(
    gram: Floats,
    curvature: Floats,
    residual: Floats,
    pull: Floats,
    gradient: Floats,
    intercept_variance: float,
    tolerance: float,
) -> tuple[Floats, Floats]:
    """Changes of duals and of predictors: (I + DK)⁻¹ applied to minus the residual, by Woodbury's identity."""
    # A step may leave a small share of what a full one gains, and a smaller one as the minimum comes near, which
    # keeps the convergence faster than linear.
    share = np.minimum(0.1, gradient)
    floor = np.full(gradient.size, (0.03 * tolerance) ** 2)
    root = np.sqrt(curvature)
    solved, shifted = _conjugate_gradients(gram, curvature, root * pull, intercept_variance, floor, share, gradient**2)
    return root * solved - residual, shifted - pull


def _conjugate_gradients(
    gram: Floats,
    curvature: Floats,
    targets: Floats,
    intercept_variance: float,
    enough: Floats,
    share: Floats,
    decrement: Floats,
) -> tuple[Floats, Floats]:
    """Preconditioned by I + D diag(XΨXᵀ) + v₀ √D11ᵀ√D, inverted by Sherman and Morrison's formula.

    Stops at a remaining error of ``enough``, or of ``share`` times the gain of a Newton step: ``decrement`` less what
    the solution gains so far.
    """
    n_tasks = targets.shape[0]
    root = np.sqrt(curvature)
    diagonal = 1.0 + curvature * (np.diag(gram) - intercept_variance)
    ones = root / diagonal
    weight = intercept_variance / (1.0 + intercept_variance * _dots(root, ones))
    solution, shifted = np.zeros_like(targets), np.zeros_like(targets)
    part, part_shifted = solution, shifted
    residual = targets.copy()
    direction = residual / diagonal - ones * (weight * _dots(ones, residual))[:, None]
    error = _dots(residual, direction)
    gain = np.zeros(n_tasks)
    at = np.arange(n_tasks)
    for _ in range(targets.shape[1] + 50):
        going = error > np.maximum(enough, share * (decrement - gain))
        if not going.any():
            break
        if going.mean() < _CROWDED:
            solution[at], shifted[at] = part, part_shifted
            at, part, part_shifted = at[going], part[going], part_shifted[going]
            residual, direction, error, gain = residual[going], direction[going], error[going], gain[going]
            root, diagonal, ones, weight = root[going], diagonal[going], ones[going], weight[going]
            enough, share, decrement = enough[going], share[going], decrement[going]
        moved = (root * direction) @ gram
        product = direction + root * moved
        bend = _dots(direction, product)
        length = np.divide(error, bend, out=np.zeros_like(error), where=bend > 0.0)
        part += length[:, None] * direction
        part_shifted += length[:, None] * moved
        gain = gain + length * error
        residual -= length[:, None] * product
        preconditioned = residual / diagonal - ones * (weight * _dots(ones, residual))[:, None]
        before, error = error, _dots(residual, preconditioned)
        direction *= np.divide(error, before, out=np.zeros_like(error), where=before > 0.0)[:, None]
        direction += preconditioned
    solution[at], shifted[at] = part, part_shifted
    return solution, shifted


def _dots(left: Floats, right: Floats) -> Floats:
    """Inner products, task by task."""
    return np.asarray(np.einsum("ki,ki->k", left, right))
