"""One task's posterior between two sweeps of the E-step."""

from __future__ import annotations

from typing import NamedTuple

from kinfolk.lica.model.sites import Sites
from kinfolk.maths.arrays import Floats


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
