"""Numbers that hang on the p steps before them, a vector autoregression in each state (matrix-normal–inverse-Wishart).

As in the sticky HDP-AR-HMM and the beta-process HMM (E. Fox, E. Sudderth, M. Jordan and A. Willsky, IEEE Trans. Signal
Processing 59, 2011; E. Fox, M. Hughes, E. Sudderth and M. Jordan, Ann. Appl. Statist. 8, 2014, section 2.1):

    x_t = A_s (x_{t−1}, …, x_{t−p}) + b_s + noise of covariance Σ_s.

The prior is in the data's own units. One regression of all training steps on the p before them gives x̂; what it leaves
is measured in coordinates e = (x − x̂) whiten in which its covariance is I, and the steps before in coordinates w in
which theirs is. With u = (1, w), h observations' worth of prior and δ² = ``LEAST_SPREAD``,

    e | u ~ N(Bᵀu, Σ),   Σ ~ IW(ν₀ = D + 1 + h, Ψ₀ = (h + δ²) I),   B | Σ ~ MN(0, I/h, Σ):

a state without data goes on as the data does on the whole. With p = 0 this is the prior of the full Gaussian.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from math import log, pi
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import (
    Asked,
    Codes,
    LogDensities,
    MomentsAhead,
    Observations,
    Past,
    check_strength,
    numbers_of_shape,
    with_past,
)
from kinfolk.sequences.model.emissions.exponential_family import ExponentialFamily
from kinfolk.sequences.model.emissions.gaussian_diagonal import LEAST_SPREAD
from kinfolk.sequences.model.emissions.gaussian_full import coordinates_of, joint_factor, triangle
from kinfolk.sequences.model.emissions.predictive import GAUSSIAN, LARGEST, gaussian_cells, gaussian_factor
from kinfolk.sequences.model.emissions.regression import Regression, last_steps

_LOG_2_PI = log(2.0 * pi)


class _Posterior(NamedTuple):
    """Of B and Σ: the Cholesky factor F of u's precision FFᵀ, B's mean, ν, and the factor C of Ψ = CCᵀ with log |Ψ|."""

    precision_factor: Floats
    mean: Floats
    freedom: Floats
    factor: Floats
    log_det: Floats


@dataclass(frozen=True, eq=False)
class Autoregressive(ExponentialFamily):
    """Jointly Gaussian entries around what the state makes of the steps before ("ar", or "ar-2" for two of them).

    Observations have the p steps before beside each step (`with_past`). A step that misses an entry of its own or of
    these is left out whole; so are the first p of a sequence, on which the others are conditioned. Drawn sequences
    begin as if the training data's mean had been there before.

    Statistics are the upper triangle of Σvvᵀ, v = (u, e); parameters B and then a matrix U with precision UUᵀ (both row
    by row); densities are those of x.

    Parameters
    ----------
    centre : ndarray of shape (width,)
        The data's mean.
    lag_centre : ndarray of shape (p · width,)
        The mean of the steps before.
    lag_whiten : ndarray of shape (p · width, R − 1)
        What makes their covariance I; directions without variance are left out.
    trend : ndarray of shape (R − 1, width)
        The regression of all: x̂ = centre + w trend.
    whiten, colour : ndarrays of shape (width, D), (D, width)
        What makes the covariance of x − x̂ I, and the way back.
    log_volume : float
        Logarithm of the volume in the data's units of a cube of size 1 in the coordinates e.
    strength : float, default=1.0
        h, how many observations the prior counts for.

    Examples
    --------
    A state that turns back each time, and one that stays where it is:

    >>> rng = np.random.default_rng(0)
    >>> turning, x = np.arange(400) % 20 < 10, np.ones((400, 1))
    >>> for t in range(1, 400):
    ...     x[t] = (-0.9 if turning[t] else 0.9) * x[t - 1] + rng.normal(0.0, 0.1)
    >>> steps = with_past(x, np.array([400]), order=1)
    >>> emission = Autoregressive.made_for(steps, 1.0, Asked("x", order=1))
    >>> drawn = emission.draw_parameters(emission.statistics((steps,), turning.astype(int), 2), rng)
    >>> emission.regression(drawn).slope.round(1).ravel().tolist()
    [0.9, -0.9]
    """

    centre: Floats
    lag_centre: Floats
    lag_whiten: Floats
    trend: Floats
    whiten: Floats
    colour: Floats
    log_volume: float
    strength: float = 1.0

    reads: ClassVar[Literal["numbers"]] = "numbers"
    looks_back: ClassVar[bool] = True
    usual_strength: ClassVar[float] = 1.0

    @classmethod
    def made_for(cls, steps: NDArray[Any], strength: float, asked: Asked) -> Self:
        """Coordinates from the regression of complete steps on those before them."""
        numbers = np.asarray(steps, dtype=np.float64)
        width = numbers.shape[1] // (asked.order + 1)
        known = np.tile(~np.isnan(numbers[:, :width]).all(axis=0), asked.order + 1)
        complete = numbers[~np.isnan(numbers[:, known]).any(axis=1)]
        if len(complete) == 0:
            raise ValueError(
                f"{asked.name} has nowhere {asked.order + 1} steps in a row without a missing entry, "
                f"but kind 'ar' learns from nothing else."
            )
        centre, whiten, colour, log_volume = coordinates_of(complete[:, :width])
        lag_centre, lag_whiten, _, _ = coordinates_of(complete[:, width:])
        z = _seen_from(centre, complete[:, :width], whiten) @ whiten
        w = _seen_from(lag_centre, complete[:, width:], lag_whiten) @ lag_whiten
        slope = np.linalg.solve(w.T @ w + np.eye(w.shape[1]), w.T @ z)
        rest = z - w @ slope
        variance, direction = np.linalg.eigh(rest.T @ rest / len(rest))
        # Where a straight line says all, the noise is still a hundredth of the data's spread.
        root = np.sqrt(np.maximum(variance, LEAST_SPREAD))
        return cls(
            centre,
            lag_centre,
            lag_whiten,
            slope @ colour,
            whiten @ direction / root,
            root[:, None] * (direction.T @ colour),
            log_volume + float(np.log(root).sum()),
            strength,
        )

    def plain(self) -> dict[str, Any]:
        """The coordinates, and the regression of all."""
        about = {field.name: np.asarray(getattr(self, field.name)).tolist() for field in fields(self)}
        del about["strength"]
        return about

    @classmethod
    def from_plain(cls, about: Mapping[str, Any], width: int, asked: Asked, strength: float) -> Self:
        """Saved coordinates."""
        n_lags, n_known, size = asked.order * width, len(about["trend"]), len(about["colour"])
        return cls(
            numbers_of_shape(about["centre"], (width,)),
            numbers_of_shape(about["lag_centre"], (n_lags,)),
            numbers_of_shape(about["lag_whiten"], (n_lags, n_known)),
            numbers_of_shape(about["trend"], (n_known, width)),
            numbers_of_shape(about["whiten"], (width, size)),
            numbers_of_shape(about["colour"], (size, width)),
            float(numbers_of_shape(about["log_volume"], ())),
            strength,
        )

    def __post_init__(self) -> None:
        check_strength(self.strength)

    @property
    def width(self) -> int:
        """How many entries a step has."""
        return len(self.centre)

    @property
    def order(self) -> int:
        """p, how many steps it looks back."""
        return len(self.lag_centre) // max(self.width, 1)

    @property
    def n_coordinates(self) -> int:
        """D, in how many directions the data varies."""
        return int(self.whiten.shape[1])

    @property
    def n_regressors(self) -> int:
        """R: one, and the directions in which the steps before vary."""
        return 1 + int(self.lag_whiten.shape[1])

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has."""
        size = self.n_regressors + self.n_coordinates
        return size * (size + 1) // 2

    @property
    def n_parameters(self) -> int:
        """How many parameters a state has."""
        return self.n_coordinates * (self.n_regressors + self.n_coordinates)

    def with_strength(self, strength: float) -> Self:
        """The same coordinates with another h."""
        return replace(self, strength=float(strength))

    def step_statistics(self, observations: Observations) -> Floats:
        """The products of v's entries, of each step that misses none of its own entries or of those before it."""
        return _products(self._coordinates(observations))

    def statistics(self, observations: Observations, states: Codes, n_states: int) -> Floats:
        """Sums of the products over the steps in each state."""
        v = self._coordinates(observations)
        rows, columns = triangle(v.shape[1])
        by_state = np.argsort(states, kind="stable")
        ends = np.cumsum(np.bincount(states, minlength=n_states))
        sums = np.zeros((n_states, self.n_statistics))
        for state, (first, last) in enumerate(pairwise([0, *ends.tolist()])):
            if last > first:
                own = v[by_state[first:last]]
                sums[state] = (own.T @ own)[rows, columns]
        return sums

    def _found_blocks(self, observations: Observations) -> Iterator[tuple[slice, Floats]]:
        v = self._coordinates(observations)
        for steps in self._slices(len(v)):
            yield steps, _products(v[steps])

    def _coordinates(self, observations: Observations) -> Floats:
        """Entries v = (u, e) of each step; zeros where something is missing."""
        x = np.asarray(observations[0], dtype=np.float64)
        own, lags = x[:, : self.width], x[:, self.width :]
        is_there = _complete(own, self.whiten) & _complete(lags, self.lag_whiten)
        w = _seen_from(self.lag_centre, lags, self.lag_whiten) @ self.lag_whiten
        e = (_seen_from(self.centre, own, self.whiten) - w @ self.trend) @ self.whiten
        v = np.column_stack([is_there, w, e])
        v[~is_there] = 0.0
        return v

    def natural_parameters(self, parameters: Floats) -> Floats:
        """½ log |P/2π| − log volume, and −½ of BPBᵀ, −BP and P as blocks of a form in v, P the precision."""
        coefficients, root = self._unpacked(parameters)
        precision = root @ _transposed(root)
        across = coefficients @ precision
        return self._natural(2.0 * np.linalg.slogdet(root)[1], precision, across, across @ _transposed(coefficients))

    def expected_natural_parameters(self, statistics: Floats) -> Floats:
        """The same, with E P = νΨ⁻¹, E BP = m E P, E BPBᵀ = m E P mᵀ + D(FFᵀ)⁻¹ and E log |P| as of a Wishart."""
        from scipy.special import digamma

        q = self._posterior(statistics)
        inverse, spread = np.linalg.inv(q.factor), np.linalg.inv(q.precision_factor)
        precision = q.freedom[..., None, None] * (_transposed(inverse) @ inverse)
        across = q.mean @ precision
        halves = 0.5 * (q.freedom[..., None] - np.arange(self.n_coordinates))
        log_det = digamma(halves).sum(axis=-1) + self.n_coordinates * log(2.0) - q.log_det
        squares = across @ _transposed(q.mean) + self.n_coordinates * (_transposed(spread) @ spread)
        return self._natural(log_det, precision, across, squares)

    def draw_parameters(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw precisions from the Wishart by Bartlett's decomposition, P = UUᵀ with U = C⁻ᵀT, then B."""
        return self._drawn(self._posterior(statistics), rng)

    def _drawn(self, q: _Posterior, rng: np.random.Generator) -> Floats:
        size = self.n_coordinates
        bartlett = np.tril(rng.standard_normal((*q.freedom.shape, size, size)), -1)
        diagonal = np.arange(size)
        bartlett[..., diagonal, diagonal] = np.sqrt(2.0 * rng.standard_gamma(0.5 * (q.freedom[..., None] - diagonal)))
        root = np.linalg.solve(_transposed(q.factor), bartlett)
        noise = np.linalg.solve(_transposed(q.precision_factor), rng.standard_normal(q.mean.shape))
        coefficients = q.mean + _transposed(np.linalg.solve(_transposed(root), _transposed(noise)))
        shape = q.freedom.shape
        return np.concatenate([coefficients.reshape(*shape, -1), root.reshape(*shape, size * size)], axis=-1)

    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Log densities of Student's t, ν + 1 − D =: f degrees of freedom, location mᵀu, shape Ψ(1 + uᵀ(FFᵀ)⁻¹u)/f."""
        from scipy.special import gammaln

        q = self._posterior(statistics)
        size, n_steps = self.n_coordinates, len(observations[0])
        inverse, spread = np.linalg.inv(q.factor), np.linalg.inv(q.precision_factor)
        precision = _transposed(inverse) @ inverse
        across = q.mean @ precision
        distance_form = self._packed(self._blocks_of(across @ _transposed(q.mean), -across, precision))
        leverage_form = self._packed(
            self._blocks_of(_transposed(spread) @ spread, np.zeros_like(across), np.zeros_like(precision))
        )
        power = 0.5 * (q.freedom + 1.0)
        grown = gammaln(power) - gammaln(power - 0.5 * size) - 0.5 * (q.log_det + size * log(pi)) - self.log_volume
        rows = np.empty((n_steps, len(power)))
        for steps, block in self._blocks(observations):
            wider = 1.0 + np.maximum(block @ leverage_form.T, 0.0)
            distance = np.maximum(block @ distance_form.T, 0.0) / wider
            rows[steps] = block[:, :1] * (grown - 0.5 * size * np.log(wider) - power * np.log1p(distance))
        return LogDensities(rows, np.arange(n_steps))

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """Numbers together, told by the steps before."""
        return GAUSSIAN, 1, self.n_regressors, self.n_regressors + self.n_coordinates

    def cells(self, statistics: Floats, strength: Floats) -> Floats:
        """The inverse of the Cholesky factor of what prior and steps have of Σvvᵀ."""
        return gaussian_cells(joint_factor(statistics, self.n_regressors, self.blocks[-1], strength))

    def draw_known(self, cells: Floats, rng: np.random.Generator) -> Floats:
        """Draw precisions, then B."""
        joint = gaussian_factor(cells, self.blocks[-1])
        return self._drawn(self._posterior_of(joint, self.n_coordinates + 1.0 + joint[..., 0, 0] ** 2.0), rng)

    def entries(self, observations: Observations) -> tuple[Floats, Floats]:
        """Entries v."""
        v = np.nan_to_num(self._coordinates(observations)).clip(-LARGEST, LARGEST)
        return v, -v[:, 0] * (self.log_volume + 0.5 * self.n_coordinates * log(pi))

    def log_marginal(self, statistics: Floats) -> Floats:
        """Log density of the steps, log Γ_D(ν/2)|Ψ₀|^{ν₀/2}h^{RD/2} / Γ_D(ν₀/2)|Ψ|^{ν/2}|F|^D − n log volume √π^D."""
        n, size = statistics[..., 0], self.n_coordinates
        grown = self._log_normaliser(statistics) - self._log_normaliser_of_prior
        return np.asarray(grown - n * (self.log_volume + 0.5 * size * log(pi)))

    def draw_observations(
        self, parameters: Floats, states: Codes, rng: np.random.Generator, past: Past | None = None
    ) -> Observations:
        """Draw step by step, each around what its state makes of those drawn before it."""
        paths = np.atleast_2d(states)
        before = None if past is None else past[0]
        lags = np.broadcast_to(self.centre, (len(paths), self.order, self.width)) if before is None else before
        drawn = self.regression(parameters).drawn(self._spread(parameters), paths, lags, rng)
        return (with_past(drawn.reshape(-1, self.width), np.full(len(paths), paths.shape[1]), self.order),)

    def past(self, observations: Observations, bounds: Codes) -> Past:
        """The last p steps of each sequence; an entry missing counts as the one before it, the first as the mean."""
        x = np.asarray(observations[0], dtype=np.float64)[:, : self.width]
        return (last_steps(x, bounds, self.centre, self.order),)

    def moments_ahead(
        self, parameters: Floats, transitions: Floats, states: Floats, n_steps: int, past: Past
    ) -> tuple[MomentsAhead, ...]:
        """Exact, as `Regression.moments_ahead` has them; unknown of columns that were never seen."""
        assert past[0] is not None
        mean, square = self.regression(parameters).moments_ahead(transitions, states, n_steps, past[0])
        unknown = np.isnan(self.centre)
        mean[:, :, unknown] = square[:, :, unknown] = np.nan
        return (MomentsAhead(mean, square),)

    def means(self, parameters: Floats) -> tuple[Floats, ...]:
        """What states show where the steps before were at the training data's mean."""
        constant, slope, _ = self.regression(parameters)
        lags = np.nan_to_num(np.tile(self.centre, self.order))
        return (constant + (lags[:, None] * slope).sum(axis=-2),)

    def mean_squares(self, parameters: Floats) -> tuple[Floats, ...]:
        """Of the same: squared means and variances."""
        (mean,) = self.means(parameters)
        return (mean**2 + np.diagonal(self.regression(parameters).covariance, axis1=-2, axis2=-1),)

    def told(self, parameters: Floats, place: int) -> list[str]:
        """Beside mean and deviation, how much of its own step before a column goes on with."""
        slopes = self.regression(parameters).slope[:, place, place].tolist()
        plain = super().told(parameters, place)
        return [f"{slope:.2g} of the last, {text}" for slope, text in zip(slopes, plain, strict=True)]

    def regression(self, parameters: Floats) -> Regression:
        """Constant (…, width), slope (…, p · width, width) and covariance (…, width, width) in the data's units."""
        coefficients, _ = self._unpacked(parameters)
        step = coefficients @ self.colour
        slope = self.lag_whiten @ (self.trend + step[..., 1:, :])
        constant = self.centre + step[..., 0, :] - (np.nan_to_num(self.lag_centre)[:, None] * slope).sum(axis=-2)
        spread = self._spread(parameters)
        return Regression(constant, slope, _transposed(spread) @ spread)

    def _spread(self, parameters: Floats) -> Floats:
        """What makes a row of standard normal numbers, one for each direction, noise in the data's units."""
        root = self._unpacked(parameters)[1]
        return np.asarray(_transposed(np.linalg.inv(_transposed(root))) @ self.colour)

    def _unpacked(self, parameters: Floats) -> tuple[Floats, Floats]:
        size, n_first = self.n_coordinates, self.n_regressors * self.n_coordinates
        shape = parameters.shape[:-1]
        return (
            parameters[..., :n_first].reshape(*shape, self.n_regressors, size),
            parameters[..., n_first:].reshape(*shape, size, size),
        )

    def _joint_factor(self, statistics: Floats) -> Floats:
        first = self.n_regressors
        return joint_factor(statistics, first, first + self.n_coordinates, self.strength)

    def _freedom(self, statistics: Floats) -> Floats:
        return np.asarray(self.n_coordinates + 1.0 + self.strength + statistics[..., 0])

    def _posterior(self, statistics: Floats) -> _Posterior:
        return self._posterior_of(self._joint_factor(statistics), self._freedom(statistics))

    def _posterior_of(self, joint: Floats, freedom: Floats) -> _Posterior:
        first = self.n_regressors
        precision_factor, factor = joint[..., :first, :first], joint[..., first:, first:]
        mean = np.asarray(np.linalg.solve(_transposed(precision_factor), _transposed(joint[..., first:, :first])))
        log_det = 2.0 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        return _Posterior(precision_factor, mean, freedom, factor, log_det)

    @cached_property
    def _log_normaliser_of_prior(self) -> Floats:
        return self._log_normaliser(np.zeros(self.n_statistics))

    def _log_normaliser(self, statistics: Floats) -> Floats:
        from scipy.special import gammaln

        size, freedom = self.n_coordinates, self._freedom(statistics)
        log_diagonal = np.log(np.diagonal(self._joint_factor(statistics), axis1=-2, axis2=-1))
        log_precision, half_log_det = (
            log_diagonal[..., part].sum(axis=-1) for part in (slice(self.n_regressors), slice(self.n_regressors, None))
        )
        gammas = gammaln(0.5 * (freedom[..., None] - np.arange(size))).sum(axis=-1)
        return np.asarray(gammas - freedom * half_log_det - size * log_precision)

    def _natural(self, log_det: Floats, precision: Floats, across: Floats, squares: Floats) -> Floats:
        packed = -0.5 * self._packed(self._blocks_of(squares, -across, precision))
        packed[..., 0] += 0.5 * (log_det - self.n_coordinates * _LOG_2_PI) - self.log_volume
        return np.asarray(packed)

    def _blocks_of(self, upper: Floats, across: Floats, lower: Floats) -> Floats:
        """A symmetric form in v = (u, e) from its blocks."""
        return np.concatenate(
            [np.concatenate([upper, across], axis=-1), np.concatenate([_transposed(across), lower], axis=-1)], axis=-2
        )

    def _packed(self, matrix: Floats) -> Floats:
        """The upper triangle, where entries beside the diagonal stand for two."""
        rows, columns = triangle(matrix.shape[-1])
        return np.asarray(matrix[..., rows, columns] * np.where(rows == columns, 1.0, 2.0))


def _products(v: Floats) -> Floats:
    """Products of the entries of each row with themselves and those after them."""
    n_steps, size = v.shape
    # Steps lie side by side, so that a product of two entries is one of two long rows.
    entries = np.ascontiguousarray(v.T)
    out = np.empty((size * (size + 1) // 2, n_steps))
    row = 0
    for i in range(size):
        np.multiply(entries[i], entries[i:], out=out[row : row + size - i])
        row += size - i
    return out.T


def _transposed(matrix: Any) -> Floats:
    return np.asarray(np.swapaxes(matrix, -1, -2))


def _varies(whiten: Floats) -> NDArray[np.bool_]:
    return np.asarray((whiten != 0.0).any(axis=1))


def _complete(numbers: Floats, whiten: Floats) -> NDArray[np.bool_]:
    """Whether a row misses none of the columns that vary."""
    return np.asarray(np.isfinite(numbers[:, _varies(whiten)]).all(axis=1))


def _seen_from(centre: Floats, numbers: Floats, whiten: Floats) -> Floats:
    """Differences from the centre, zero where a column does not vary or an entry is missing."""
    return np.where(_varies(whiten) & np.isfinite(numbers), numbers - np.where(_varies(whiten), centre, 0.0), 0.0)
