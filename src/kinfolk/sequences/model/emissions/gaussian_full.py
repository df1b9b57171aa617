"""Numbers that are jointly Gaussian given the state, with any covariance (normal–inverse-Wishart).

In coordinates in which the training data has mean 0 and covariance I, D of them (h, δ² as for a diagonal one):

    Σ ~ IW(ν₀ = D + 1 + h, Ψ₀ = (h + δ²) I),   μ | Σ ~ N(0, Σ/h);

with D = 1 this is the prior of the diagonal Gaussian.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import log, pi
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import (
    Asked,
    Codes,
    LogDensities,
    Observations,
    check_strength,
    numbers_of_shape,
)
from kinfolk.sequences.model.emissions.exponential_family import ExponentialFamily
from kinfolk.sequences.model.emissions.gaussian_diagonal import LEAST_SPREAD, centre_and_scale
from kinfolk.sequences.model.emissions.predictive import GAUSSIAN, LARGEST, gaussian_cells, gaussian_factor

_LOG_2_PI = log(2.0 * pi)
# Variance of standardised columns in a direction that is but rounding.
_COLLINEAR = 1e-10


class _Posterior(NamedTuple):
    """Normal–inverse-Wishart parameters κ, m, ν, and the Cholesky factor C of Ψ = CCᵀ with log |Ψ|."""

    weight: Floats
    mean: Floats
    freedom: Floats
    factor: Floats
    log_det: Floats


@dataclass(frozen=True, eq=False)
class GaussianFull(ExponentialFamily):
    """Jointly Gaussian entries; a step that misses one entry is left out whole.

    Statistics are n, Σz and the upper triangle of Σzzᵀ, parameters the mean of z and then a matrix U with precision UUᵀ
    (row by row), where z = (x − centre) whiten; densities are those of x.

    Parameters
    ----------
    centre : ndarray of shape (width,)
        Where the prior's mean is, in the data's units.
    whiten : ndarray of shape (width, D)
        What makes the data's covariance I. D may be below the width: the data does not vary in the directions missing,
        which are left out.
    colour : ndarray of shape (D, width)
        The way back.
    log_volume : float
        Logarithm of the volume in the data's units of a cube of size 1 in the coordinates z.
    strength : float, default=1.0
        h, how many observations the prior counts for.

    Examples
    --------
    >>> emission = GaussianFull(np.zeros(2), np.eye(2), np.eye(2), 0.0, strength=1.0)
    >>> emission.statistics((np.array([[1.0, 2.0], [3.0, np.nan]]),), np.array([0, 0]), n_states=1)
    array([[1., 1., 2., 1., 2., 4.]])
    """

    centre: Floats
    whiten: Floats
    colour: Floats
    log_volume: float
    strength: float = 1.0

    reads: ClassVar[Literal["numbers"]] = "numbers"
    # On frames of speech and of music the evidence of covariances is highest between 1 and 3, and at 0.3 far below.
    usual_strength: ClassVar[float] = 1.0

    @classmethod
    def made_for(cls, steps: NDArray[Any], strength: float, asked: Asked) -> Self:
        """Coordinates from the correlations of complete steps; directions without variance are left out."""
        numbers = np.asarray(steps, dtype=np.float64)
        known = ~np.isnan(numbers).all(axis=0)
        complete = numbers[~np.isnan(numbers[:, known]).any(axis=1)]
        if len(complete) == 0:
            raise ValueError(
                f"{asked.name} has no step without a missing entry, but kind 'gaussian-full' leaves all others out."
            )
        return cls(*coordinates_of(complete), strength)

    def plain(self) -> dict[str, Any]:
        """Centre, the ways to the coordinates and back, and their volume."""
        arrays = {name: getattr(self, name).tolist() for name in ("centre", "whiten", "colour")}
        return {**arrays, "log_volume": float(self.log_volume)}

    @classmethod
    def from_plain(cls, about: Mapping[str, Any], width: int, asked: Asked, strength: float) -> Self:
        """Saved coordinates."""
        size = len(about["colour"])
        return cls(
            numbers_of_shape(about["centre"], (width,)),
            numbers_of_shape(about["whiten"], (width, size)),
            numbers_of_shape(about["colour"], (size, width)),
            float(numbers_of_shape(about["log_volume"], ())),
            strength,
        )

    def __post_init__(self) -> None:
        check_strength(self.strength)

    @property
    def n_coordinates(self) -> int:
        """D, in how many directions the data varies."""
        return int(self.whiten.shape[1])

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has."""
        return 1 + self.n_coordinates + self.n_coordinates * (self.n_coordinates + 1) // 2

    @property
    def n_parameters(self) -> int:
        """How many parameters a state has."""
        return self.n_coordinates * (self.n_coordinates + 1)

    def with_strength(self, strength: float) -> Self:
        """The same coordinates with another h."""
        return replace(self, strength=float(strength))

    def step_statistics(self, observations: Observations) -> Floats:
        """1, z and the products of z's entries, of each step with all of its entries."""
        z, is_there = self._coordinates(observations)
        out = np.empty((len(z), self.n_statistics))
        out[:, 0] = is_there
        out[:, 1 : self.n_coordinates + 1] = z
        column = self.n_coordinates + 1
        for i in range(self.n_coordinates):
            np.multiply(z[:, i : i + 1], z[:, i:], out=out[:, column : column + self.n_coordinates - i])
            column += self.n_coordinates - i
        return out

    def natural_parameters(self, parameters: Floats) -> Floats:
        """½ log |P/2π| − log volume − ½μᵀPμ, Pμ and −½P with its upper triangle counted twice, P the precision."""
        mean, root = self._unpacked(parameters)
        log_det = 2.0 * np.linalg.slogdet(root)[1]
        precision = root @ np.swapaxes(root, -1, -2)
        linear = (precision @ mean[..., None])[..., 0]
        return self._natural(log_det, precision, linear, (mean * linear).sum(axis=-1))

    def expected_natural_parameters(self, statistics: Floats) -> Floats:
        """The same, with E log |P| = Σψ((ν + 1 − i)/2) + log |2Ψ⁻¹|, E P = νΨ⁻¹ and E μᵀPμ = D/κ + ν mᵀΨ⁻¹m."""
        from scipy.special import digamma

        q = self._posterior(statistics)
        inverse = np.linalg.inv(q.factor)
        precision = q.freedom[..., None, None] * (np.swapaxes(inverse, -1, -2) @ inverse)
        linear = (precision @ q.mean[..., None])[..., 0]
        halves = 0.5 * (q.freedom[..., None] - np.arange(self.n_coordinates))
        log_det = digamma(halves).sum(axis=-1) + self.n_coordinates * log(2.0) - q.log_det
        return self._natural(log_det, precision, linear, self.n_coordinates / q.weight + (q.mean * linear).sum(axis=-1))

    def draw_parameters(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw precisions from the Wishart by Bartlett's decomposition, P = UUᵀ with U = C⁻ᵀB, then means."""
        return self._drawn(self._posterior(statistics), rng)

    def _drawn(self, q: _Posterior, rng: np.random.Generator) -> Floats:
        size = self.n_coordinates
        bartlett = np.tril(rng.standard_normal((*q.weight.shape, size, size)), -1)
        diagonal = np.arange(size)
        bartlett[..., diagonal, diagonal] = np.sqrt(2.0 * rng.standard_gamma(0.5 * (q.freedom[..., None] - diagonal)))
        root = np.linalg.solve(np.swapaxes(q.factor, -1, -2), bartlett)
        noise = rng.standard_normal(q.mean.shape) / np.sqrt(q.weight)[..., None]
        mean = q.mean + np.linalg.solve(np.swapaxes(root, -1, -2), noise[..., None])[..., 0]
        return np.concatenate([mean, root.reshape(*mean.shape[:-1], size * size)], axis=-1)

    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Log densities of Student's t with f = ν + 1 − D degrees of freedom, location m, shape Ψ(κ + 1)/κf."""
        from scipy.special import gammaln

        q = self._posterior(statistics)
        inverse = np.linalg.inv(q.factor)
        # The exponent's squared distance, as a quadratic form in the steps' statistics.
        narrow = (q.weight / (q.weight + 1.0))[..., None, None] * (np.swapaxes(inverse, -1, -2) @ inverse)
        linear = (narrow @ q.mean[..., None])[..., 0]
        form = np.concatenate([(q.mean * linear).sum(axis=-1)[..., None], -2.0 * linear, self._packed(narrow)], axis=-1)
        size = self.n_coordinates
        power = 0.5 * (q.freedom + 1.0)
        grown = (
            gammaln(power)
            - gammaln(power - 0.5 * size)
            - 0.5 * (q.log_det + size * np.log(pi * (1.0 + 1.0 / q.weight)))
        )
        rows = np.empty((len(observations[0]), len(form)))
        for steps, block in self._blocks(observations):
            distance = np.maximum(block @ form.T, 0.0)
            rows[steps] = block[:, :1] * (grown - self.log_volume - power * np.log1p(distance))
        return LogDensities(rows, np.arange(len(rows)))

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """Numbers together, of which nothing but their mean is to be told."""
        return GAUSSIAN, 1, 1, 1 + self.n_coordinates

    def cells(self, statistics: Floats, strength: Floats) -> Floats:
        """The inverse of the Cholesky factor of what prior and steps have of (1, z)(1, z)ᵀ."""
        return gaussian_cells(joint_factor(statistics, 1, 1 + self.n_coordinates, strength))

    def draw_known(self, cells: Floats, rng: np.random.Generator) -> Floats:
        """Draw precisions, then means."""
        joint = gaussian_factor(cells, 1 + self.n_coordinates)
        factor, weight = joint[..., 1:, 1:], joint[..., 0, 0] ** 2.0
        mean = joint[..., 1:, 0] / joint[..., :1, 0]
        # Draws have no use for the determinant.
        q = _Posterior(weight, mean, self.n_coordinates + 1.0 + weight, factor, np.zeros_like(weight))
        return self._drawn(q, rng)

    def entries(self, observations: Observations) -> tuple[Floats, Floats]:
        """Entries (1, z)."""
        z, is_there = self._coordinates(observations)
        v = np.column_stack([is_there, np.nan_to_num(z).clip(-LARGEST, LARGEST)])
        return v, -v[:, 0] * (self.log_volume + 0.5 * self.n_coordinates * log(pi))

    def log_marginal(self, statistics: Floats) -> Floats:
        """Log density of the steps, log Γ_D(ν/2)|Ψ₀|^{ν₀/2}κ₀^{D/2} / Γ_D(ν₀/2)|Ψ|^{ν/2}κ^{D/2} − n log volume √π^D."""
        n, size = statistics[..., 0], self.n_coordinates
        grown = self._log_normaliser(self._posterior(statistics)) - self._log_normaliser_of_prior
        return np.asarray(grown - n * (self.log_volume + 0.5 * size * log(pi)))

    def draw_steps(self, parameters: Floats, states: Codes, rng: np.random.Generator) -> NDArray[np.generic]:
        """Draw all entries of each step."""
        mean, root = self._unpacked(parameters)
        # Columns of U⁻ᵀ times standard normal numbers have covariance (UUᵀ)⁻¹.
        spread = np.linalg.inv(np.swapaxes(root, -1, -2))
        noise = rng.standard_normal((len(states), self.n_coordinates))
        z = mean[states] + np.einsum("tij,tj->ti", spread[states], noise)
        return np.asarray(self.centre + z @ self.colour)

    def means(self, parameters: Floats) -> tuple[Floats, ...]:
        """The states' means."""
        return (self.centre + parameters[..., : self.n_coordinates] @ self.colour,)

    def mean_squares(self, parameters: Floats) -> tuple[Floats, ...]:
        """Squared means and variances."""
        (mean,) = self.means(parameters)
        spread = np.linalg.inv(np.swapaxes(self._unpacked(parameters)[1], -1, -2))
        return (mean**2 + ((np.swapaxes(spread, -1, -2) @ self.colour) ** 2).sum(axis=-2),)

    def _coordinates(self, observations: Observations) -> tuple[Floats, NDArray[np.bool_]]:
        """The z of each step, and which of them have all of their entries."""
        x = np.asarray(observations[0], dtype=np.float64)
        is_there = np.asarray(np.isfinite(x[:, self._varies]).all(axis=1))
        gaps = np.where(is_there[:, None] & self._varies, x - self.centre, 0.0)
        return gaps @ self.whiten, is_there

    @property
    def _varies(self) -> NDArray[np.bool_]:
        return np.asarray((self.whiten != 0.0).any(axis=1))

    def _unpacked(self, parameters: Floats) -> tuple[Floats, Floats]:
        size = self.n_coordinates
        return parameters[..., :size], parameters[..., size:].reshape(*parameters.shape[:-1], size, size)

    def _posterior(self, statistics: Floats) -> _Posterior:
        size = self.n_coordinates
        n, total = statistics[..., 0], statistics[..., 1 : size + 1]
        rows, columns = triangle(size)
        scatter = np.zeros((*n.shape, size, size))
        # Of a symmetric matrix no more than the lower triangle is read.
        scatter[..., columns, rows] = statistics[..., size + 1 :]
        weight = self.strength + n
        mean = total / weight[..., None]
        scatter -= total[..., :, None] * mean[..., None, :]
        scatter += (self.strength + LEAST_SPREAD) * np.eye(size)
        factor = np.linalg.cholesky(scatter)
        log_det = 2.0 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        return _Posterior(weight, mean, size + 1.0 + weight, factor, log_det)

    @cached_property
    def _log_normaliser_of_prior(self) -> Floats:
        return self._log_normaliser(self._posterior(np.zeros(self.n_statistics)))

    def _log_normaliser(self, q: _Posterior) -> Floats:
        from scipy.special import gammaln

        size = self.n_coordinates
        gammas = gammaln(0.5 * (q.freedom[..., None] - np.arange(size))).sum(axis=-1)
        return np.asarray(gammas - 0.5 * q.freedom * q.log_det - 0.5 * size * np.log(q.weight))

    def _natural(self, log_det: Floats, precision: Floats, linear: Floats, quadratic: Floats) -> Floats:
        constant = 0.5 * (log_det - self.n_coordinates * _LOG_2_PI - quadratic) - self.log_volume
        return np.concatenate([constant[..., None], linear, -0.5 * self._packed(precision)], axis=-1)

    def _packed(self, matrix: Floats) -> Floats:
        """The upper triangle, where entries beside the diagonal stand for two."""
        rows, columns = triangle(self.n_coordinates)
        return np.asarray(matrix[..., rows, columns] * np.where(rows == columns, 1.0, 2.0))


def joint_factor(statistics: Floats, n_regressors: int, size: int, strength: Floats | float) -> Floats:
    """The Cholesky factor of what prior and steps have of Σvvᵀ, v = (u, e), from its upper triangle.

    Of u it is the factor F of the precision of B, of e below it what makes B's mean, beside the factor C of Ψ: Ψ is
    what u leaves of Ψ₀ and the squares of e.
    """
    rows, columns = triangle(size)
    products = np.zeros((*statistics.shape[:-1], size, size))
    # Of a symmetric matrix no more than the lower triangle is read.
    products[..., columns, rows] = statistics
    diagonal = np.arange(size)
    products[..., diagonal, diagonal] += np.asarray(strength)[..., None] + np.where(
        diagonal < n_regressors, 0.0, LEAST_SPREAD
    )
    return np.linalg.cholesky(products)


@cache
def triangle(size: int) -> tuple[Codes, Codes]:
    """Rows and columns of the upper triangle of a square matrix."""
    return np.triu_indices(size)


def coordinates_of(complete: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Centre, the way to coordinates in which steps have covariance I and back, and their log volume.

    Directions in which steps do not vary are left out.
    """
    centre, scale = centre_and_scale(complete)
    varies = scale > 0.0
    z = (complete[:, varies] - centre[varies]) / scale[varies]
    correlation = z.T @ z / len(z)
    if len(z) <= len(correlation):
        # So few steps cannot tell columns that depend on each other from those that were not seen to differ.
        correlation = 0.5 * (correlation + np.eye(len(correlation)))
    variance, direction = np.linalg.eigh(correlation)
    is_kept = variance > _COLLINEAR
    root, direction = np.sqrt(variance[is_kept]), direction[:, is_kept]
    whiten, colour = np.zeros((len(centre), len(root))), np.zeros((len(root), len(centre)))
    whiten[varies] = direction / root / scale[varies, None]
    colour[:, varies] = direction.T * root[:, None] * scale[varies]
    return centre, whiten, colour, float(np.log(root).sum() + np.log(scale[varies]).sum())
