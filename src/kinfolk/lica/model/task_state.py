"""Posteriors of many tasks between two sweeps of the E-step."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

PER_ROW = 7  # the first fields have a number for each row, the others for each task


class TaskStates(NamedTuple):
    """Tasks' posteriors in the space of their rows: E[θ] = μ + Λ mean + ΨXᵀ dual, E[intercept] = m₀ + v₀ Σ dual.

    Fields of rows have all tasks' rows end to end; for tasks side by side, an axis for tasks before that of rows.

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
