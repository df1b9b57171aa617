"""The M-step of LICA: loadings, noise and residual variance from what is known of all tasks.

Zhang, Ghahramani and Yang (2005), §3.1, with Λ under a Gaussian prior, Λ_jh ~ N(0, τ²), without which a model of point
sources would scale Λ up and its sources down for ever:

    Λ_j = (Σ_k E[θ_kj] E[s_k]ᵀ) (Σ_k E[s_k s_kᵀ] + (ψ_j/τ²) I)⁻¹,
    ψ_j = mean_k ( Var[θ_kj] + (E[θ_kj] − Λ_j E[s_k])² + Λ_j Cov[s_k] Λ_jᵀ ), or its mean over j,

the former drawn towards a common value by an inverse-gamma prior. A mean that all tasks share is the loadings of one
more source, which is the same constant in every task.

E[θ_k] = Λ E[s_k] + ΨXᵀa_k, so the sums come from the a_k of the tasks' rows, and no table of tasks by features is made.

Which way sources point is read off tasks' weights at the start: from Λ = 0 or E[s] = 0 EM would never move. The
weights' singular vectors span the space of the sources; a varimax rotation (Kaiser 1958) of the tasks' scores then
gives each task few large sources, as a Laplace prior would. Later they are turned into one another, which leaves every
task's mixture ΛE[s] as it is. An M-step moves Λ to where the sources already are, so that EM hardly turns them when the
noise is small: the E-step has them pinned by Λ. A step over all invertible R with s → Rs, Λ → ΛR⁻¹ (parameter
expansion: Liu, Rubin and Wu 1998) finds the directions that independent Laplace sources would have, as ICA does, at no
cost in tasks or features.
"""

from __future__ import annotations

from math import lgamma, log, pi
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from kinfolk.lica.inference.expectation import TaskStates
from kinfolk.lica.inference.layout import Layout
from kinfolk.lica.model.data import Link
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.maths.arrays import Floats

_FAINT = 1e-2  # size of loadings that no direction of the weights is left for, relative to the others
_TASK_BLOCK = 64  # tasks whose weights are held at once, where noise differs between features


class Shrinkage(NamedTuple):
    """What keeps the M-step's estimates in bounds.

    Parameters
    ----------
    loading_variance : float
        τ² of the loadings' Gaussian prior.
    noise_floor : float
        The least ψ_j; without it Ψ could collapse onto tasks that the sources explain entirely.
    noise_mode, noise_strength : float
        Mode of each ψ_j's inverse-gamma prior, and the number of tasks that it counts for: more than 2, or 0 for none.
        A ψ_j of its own rests on as many numbers as there are tasks, and would run to zero or far above the others.
    residual_floor : float
        The least σ² of a regression: rows that occur twice, or count twice, would drive it to zero.
    mean_variance : float or None
        Variance of the Gaussian prior of the mean that all tasks share; None where they share none.
    intercept_mode : float or None
        Mode of the inverse-gamma prior, which counts for one task, of the variance of the intercepts; None to hold it.
    hold_residual : bool
        Leave σ² of a regression as it is.
    """

    loading_variance: float
    noise_floor: float
    noise_mode: float = 1.0
    noise_strength: float = 0.0
    residual_floor: float = 0.0
    mean_variance: float | None = None
    intercept_mode: float | None = None
    hold_residual: bool = False

    @property
    def constant(self) -> float:
        """The source, the same in every task, whose loadings under their own prior have the mean's variance."""
        return 0.0 if self.mean_variance is None else float(np.sqrt(self.mean_variance / self.loading_variance))

    def log_density(self, prior: TaskPrior) -> float:
        """Log density of Λ and Ψ."""
        loadings, noise, strength = prior.loadings, prior.noise, self.noise_strength
        squares = float(np.sum(loadings**2)) / self.loading_variance
        density = -0.5 * (squares + loadings.size * log(2.0 * pi * self.loading_variance))
        if prior.mean is not None and self.mean_variance is not None:
            squares = float(np.sum(prior.mean**2)) / self.mean_variance
            density -= 0.5 * (squares + prior.mean.size * log(2.0 * pi * self.mean_variance))
        if self.intercept_mode is not None:
            density -= 0.5 * (log(prior.intercept_variance) + self.intercept_mode / prior.intercept_variance)
        if strength > 0.0:
            shape, scale = 0.5 * strength - 1.0, 0.5 * strength * self.noise_mode
            density += len(noise) * (shape * log(scale) - lgamma(shape))
            density -= float(np.sum((shape + 1.0) * np.log(noise) + scale / noise))
        return density


class Improved(NamedTuple):
    """What an M-step finds: its maximum, and noise variances that run ahead of it.

    ``ahead`` solves ψ_j = (mean square of E[θ_kj] about its mixture) / (mean share of θ_kj that rows decide), the same
    fixed point in far fewer steps (MacKay 1992): where a task has few rows and many features, Var[θ_kj] is nearly ψ_j
    itself, and the maximum stays close to where ψ was. It may lower the bound, so it needs a check.
    """

    prior: TaskPrior
    ahead: Floats


def maximise(
    layout: Layout,
    prior: TaskPrior,
    states: TaskStates,
    *,
    link: Link,
    shrinkage: Shrinkage,
) -> Improved:
    """Find the Λ with the mean, then the Ψ, and the σ² of a regression, that raise the bound most.

    Parameters
    ----------
    layout : Layout
        The tasks' data.
    prior : TaskPrior
        What the tasks were last updated under.
    states : TaskStates
        What is known of the tasks.
    link : str
        The likelihood; σ² is learnt for "gaussian" alone.
    shrinkage : Shrinkage
        Prior of Λ, floor and prior of Ψ.
    """
    (n_tasks, n_sources), noise = states.mean.shape, prior.noise
    duals = _by_task(layout, states)
    means = states.mean
    source_variance = 2.0 * np.sum(states.spread**2, axis=0)
    before = prior.loadings
    if prior.mean is not None:
        means = np.column_stack([means, np.full(n_tasks, shrinkage.constant)])
        source_variance = np.append(source_variance, 0.0)
        before = np.column_stack([before, prior.mean / shrinkage.constant])
    pulled = np.asarray(layout.data.X.T @ (duals.T @ means))  # Σ_k Xᵀa_k E[s_k]ᵀ
    outer = means.T @ means
    cross = before @ outer + noise[:, None] * pulled  # Σ_k E[θ_k] E[s_k]ᵀ
    loadings = _ridge(cross, outer, source_variance, noise / shrinkage.loading_variance)
    squares, variances = _spread_of_weights(layout, prior, states, duals)
    change = before - loadings
    squares = (
        squares
        + np.einsum("jh,hl,jl->j", change, outer, change)
        + 2.0 * noise * np.einsum("jh,jh->j", change, pulled)
        + loadings**2 @ source_variance
    )
    if layout.isotropic:
        squares = np.full_like(squares, np.mean(squares))
    squares = np.maximum(squares, 0.0) + shrinkage.noise_strength * shrinkage.noise_mode
    counted = n_tasks + shrinkage.noise_strength
    best = np.maximum((squares + variances) / counted, shrinkage.noise_floor)
    decided = counted - variances / noise
    seen = decided > 1e-12 * counted
    ahead = np.maximum(np.where(seen, squares / np.where(seen, decided, 1.0), noise), shrinkage.noise_floor)
    improved = prior._replace(loadings=loadings[:, :n_sources], noise=best)
    if prior.mean is not None:
        improved = improved._replace(mean=shrinkage.constant * loadings[:, -1])
    if link == "gaussian" and not shrinkage.hold_residual:
        improved = improved._replace(
            residual_variance=max(_residual_variance(layout, states), shrinkage.residual_floor)
        )
    if shrinkage.intercept_mode is not None:
        improved = _share_intercepts(improved, states, duals, shrinkage.intercept_mode)
    return Improved(improved, ahead)


def weights_of_tasks(layout: Layout, prior: TaskPrior, states: TaskStates) -> Floats:
    """E[θ_k] of every task, as a table of tasks by features."""
    unshared = _by_task(layout, states) @ layout.data.X
    dense = unshared.toarray() if sparse.issparse(unshared) else np.asarray(unshared)
    dense *= prior.noise
    dense += states.mean @ prior.loadings.T
    if prior.mean is not None:
        dense += prior.mean
    return np.asarray(dense, dtype=np.float64)


def _by_task(layout: Layout, states: TaskStates) -> sparse.csr_matrix:
    """The a_k as a sparse table of tasks by rows."""
    shape = len(states.bound), layout.data.X.shape[0]
    return sparse.csr_matrix((states.dual, layout.places, layout.ends), shape=shape)


def _ridge(cross: Floats, outer: Floats, source_variance: Floats, penalty: Floats) -> Floats:
    """Solve Λ_j (outer + diag(source_variance) + penalty_j I) = cross_j for every j through one eigendecomposition."""
    values, vectors = np.linalg.eigh(outer + np.diag(source_variance))
    solved = (cross @ vectors) / (np.maximum(values, 0.0) + penalty[:, None])
    return np.asarray(solved @ vectors.T)


def _spread_of_weights(
    layout: Layout, prior: TaskPrior, states: TaskStates, duals: sparse.csr_matrix
) -> tuple[Floats, Floats]:
    """Σ_k (E[θ_kj] − Λ_j E[s_k])² and Σ_k Var[θ_kj]; for isotropic noise, the mean over j of each everywhere."""
    noise = prior.noise
    n_features, n_tasks = len(noise), len(states.bound)
    if layout.isotropic:
        squares = noise * float(np.sum(states.squared_distance)) / n_features
        return squares, noise * (n_tasks - float(np.sum(states.weights_effective)) / n_features)
    if states.weight_variance.shape[1] != n_features:
        raise ValueError("Diagonal noise needs the variances of the weights from the E-step.")
    squares = np.zeros(n_features)
    for first in range(0, n_tasks, _TASK_BLOCK):
        unshared = duals[first : first + _TASK_BLOCK] @ layout.data.X
        squared = unshared.multiply(unshared) if sparse.issparse(unshared) else unshared**2
        squares += np.asarray(squared.sum(axis=0)).ravel()
    return noise**2 * squares, np.sum(states.weight_variance, axis=0)


def _share_intercepts(prior: TaskPrior, states: TaskStates, duals: sparse.csr_matrix, mode: float) -> TaskPrior:
    """The mean and the variance of the intercepts; tasks without rows say nothing of the mean."""
    before = prior.intercept_variance
    values = prior.intercept_mean + before * np.asarray(duals.sum(axis=1)).ravel()
    left = before * (1.0 - states.intercept_effective)
    mean = float(np.mean(values))
    variance = (float(np.sum((values - mean) ** 2 + left)) + mode) / (len(values) + 1.0)
    return prior._replace(intercept_mean=mean, intercept_variance=variance)


def _residual_variance(layout: Layout, states: TaskStates) -> float:
    errors = layout.y - states.predictor
    return float(layout.weights @ (errors**2 + states.predictor_variance)) / float(np.sum(layout.weights))


def sources_of_weights(weights: Floats, n_sources: int, seed: int, rotate: bool = True) -> tuple[Floats, Floats]:
    """Split a table of weights into loadings and sources of unit mean square.

    Parameters
    ----------
    weights : ndarray of shape (n_tasks, n_features)
        Weights of tasks fitted one by one.
    n_sources : int
        Number of sources; those beyond the rank of the weights are faint and random.
    seed : int
        Of those.
    rotate : bool
        Turn the singular vectors by varimax; Gaussian sources have no use for it.

    Returns
    -------
    loadings, means : ndarrays of shapes (n_features, n_sources) and (n_tasks, n_sources)
        weights ≈ means loadingsᵀ.

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.outer([1.0, -1.0, 2.0], [3.0, 0.0])
    >>> loadings, means = sources_of_weights(weights, n_sources=1, seed=0)
    >>> np.allclose(means @ loadings.T, weights)
    True
    """
    n_tasks, n_features = weights.shape
    values, vectors = np.linalg.eigh(weights @ weights.T)
    found = [int(i) for i in np.argsort(-values)[:n_sources] if values[i] > 1e-12 * max(values[-1], 0.0)]
    directions = vectors[:, found]
    rotation = varimax(directions) if rotate else np.eye(len(found))
    means = directions @ rotation * np.sqrt(n_tasks)
    means *= np.where(np.sum(means**3, axis=0) < 0.0, -1.0, 1.0)
    loadings = weights.T @ means / n_tasks
    missing = n_sources - len(found)
    if missing:
        rng = np.random.default_rng(seed)
        size = _FAINT * np.sqrt(np.mean(weights**2) or 1.0)
        means = np.hstack([means, rng.standard_normal((n_tasks, missing))])
        loadings = np.hstack([loadings, size * rng.standard_normal((n_features, missing))])
    return loadings, means


def varimax(scores: Floats, max_iter: int = 500) -> Floats:
    """The rotation of orthonormal scores whose squares vary most down the columns (Kaiser 1958)."""
    rotation = np.eye(scores.shape[1])
    last = 0.0
    for _ in range(max_iter if scores.shape[1] > 1 else 0):
        rotated = scores @ rotation
        gradient = scores.T @ (rotated**3 - rotated * np.mean(rotated**2, axis=0))
        left, singular, right = np.linalg.svd(gradient)
        rotation = left @ right
        total = float(np.sum(singular))
        if total <= last * (1.0 + 1e-10):
            break
        last = total
    return rotation


def unmix(means: Floats, spread: float, loadings: Floats, source_scale: float, loading_variance: float) -> Floats:
    """The R for which sources R E[s_k] are likeliest under their Laplace prior and ΛR⁻¹ under its Gaussian one.

    It minimises Σ_kh (|z| + b e^{−|z|/b})/b₀ − K log|det R| + ½‖ΛR⁻¹‖²/τ² over R, z = R E[s_k]; one spread b for all
    sources smooths |z| as it does in the bound.

    Parameters
    ----------
    means : ndarray of shape (n_tasks, n_sources)
        E[s_k].
    spread : float
        b.
    loadings : ndarray of shape (n_features, n_sources)
        Λ.
    source_scale, loading_variance : float
        b₀ and τ².

    Examples
    --------
    >>> import numpy as np
    >>> sources = np.random.default_rng(0).laplace(scale=0.5**0.5, size=(2_000, 2))
    >>> mixing = np.array([[1.0, 0.6], [-0.6, 1.0]])
    >>> found = unmix(sources @ mixing.T, 0.01, np.eye(2), 0.5**0.5, 1e6) @ mixing
    >>> np.abs(found).round(1)
    array([[1., 0.],
           [0., 1.]])
    """
    n_tasks, n_sources = means.shape
    gram = loadings.T @ loadings / loading_variance

    def objective(flat: Floats) -> tuple[float, Floats]:
        turn = flat.reshape(n_sources, n_sources)
        sign, log_det = np.linalg.slogdet(turn)
        if sign <= 0.0:
            return np.inf, np.zeros_like(flat)
        inverse = np.linalg.inv(turn)
        turned = means @ turn.T
        size = np.abs(turned)
        decay = np.exp(-size / spread)
        drawn = inverse.T @ gram @ inverse
        value = np.sum(size + spread * decay) / source_scale - n_tasks * log_det + 0.5 * np.trace(drawn)
        slope = (np.sign(turned) * (1.0 - decay)).T @ means / source_scale
        return float(value), (slope - n_tasks * inverse.T - drawn @ inverse.T).ravel()

    start = np.eye(n_sources).ravel()
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(best.x).reshape(n_sources, n_sources) if np.isfinite(best.fun) else np.eye(n_sources)
