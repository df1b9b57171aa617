"""How probable one more step is in states whose θ is summed out, and what they know after it; with numpy alone.

What a state knows is a row of *cells*, the parameters of its posterior; a step is a row of *entries*. Four kinds of
channels are enough, and a row of *layout* (kind, first entry, first cell, blocks, regressors, size) tells each:

NUMBERS   numbers that are independent Gaussians. Of each there are κ, the mean m, b = twice the rate, and
          f = log Γ(½(3 + κ))/Γ(½(2 + κ)); entries are ones for the numbers that are there, and the numbers. One more is

              f − ½ log b(κ + 1)/κ − ½(3 + κ) log(1 + (z − m)² κ/((κ + 1) b)).

GAUSSIAN  v = (u, e) with e | u ~ N(Bᵀu, Σ), D of them, and a matrix-normal–inverse-Wishart prior as `autoregressive`
          has it; with u = 1 numbers of any covariance. Prior and steps together have M = LLᵀ of Σvvᵀ; cells are L⁻¹,
          row by row up to the diagonal. With y = L⁻¹v, w = 1 + |y_u|² and q = |y_e|²/w, one more step has log density

              log Γ(½(D + 2 + κ))/Γ(½(2 + κ)) − Σ_e log L_ii − ½D log w − ½(D + 2 + κ) log(1 + q),   κ = L_00².

          A step that is missing has v = 0.
COUNT     x ~ Poisson(λ), cells are shape a and rate b of the Gamma posterior, entries 1, x and log x!:

              log Γ(a + x)/Γ(a) − a log(1 + 1/b) − x log(1 + b).

BINARY    columns of yes or no: cells are pseudo-counts of yes and then of no, entries ones for what is shown.

What all states have in common is left out: ½ log π and the log of its unit for every number, and log x!.
`kinfolk.sequences.answers.compiled_predictive` has the same for one state, compiled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.log_gamma import log_gamma

NUMBERS, GAUSSIAN, COUNT, BINARY = 0, 1, 2, 3
# Entries are at most so large, that squares of them stay numbers.
LARGEST = 1e75
# Up to this, so many squares of entries have a product that is a number, and one logarithm is enough.
MODERATE, TOGETHER = 1e6, 16
# Numbers that are in memory at once beside the densities themselves.
_MOST_AT_ONCE = 1 << 20

Layout = NDArray[np.int64]


def n_cells(kind: int, n_blocks: int, size: int) -> int:
    """How many cells a state has."""
    return {NUMBERS: 4, GAUSSIAN: size * (size + 1) // 2, COUNT: 2, BINARY: 2}[kind] * n_blocks


def number_cells(weight: Floats, mean: Floats, rate: Floats) -> Floats:
    """Cells (…, 4 · width) of NUMBERS from κ, m and the rate of their posterior (…, width)."""
    # Where no entry is missing, all numbers of a state have as many steps.
    each = weight[..., :1] if (weight == weight[..., :1]).all() else weight
    ratio = log_gamma(0.5 * (3.0 + each)) - log_gamma(0.5 * (2.0 + each))
    return np.concatenate([weight, mean, 2.0 * rate, np.broadcast_to(ratio, weight.shape)], axis=-1)


def gaussian_cells(factor: Floats) -> Floats:
    """Cells of GAUSSIAN from the Cholesky factor L (…, size, size)."""
    rows, columns = np.tril_indices(factor.shape[-1])
    return np.asarray(np.linalg.inv(factor)[..., rows, columns])


def gaussian_factor(cells: Floats, size: int) -> Floats:
    """The Cholesky factor L (…, size, size) that cells of GAUSSIAN were made from."""
    return np.asarray(np.linalg.inv(_unpacked(cells, size)), dtype=np.float64)


def log_densities(cells: Floats, entries: Floats, layout: Layout) -> Floats:
    """Log densities (steps, states) of steps (steps, entries), each as one more of states (states, cells)."""
    out = np.zeros((len(entries), len(cells)))
    for kind, own, shown, n_regressors, size in _channels(cells, entries, layout):
        if kind == NUMBERS:
            _add_numbers(own, shown, out)
        elif kind == GAUSSIAN:
            inverse = _unpacked(own, size)
            across = inverse.reshape(-1, size).T
            width = max(1, _MOST_AT_ONCE // across.shape[1])
            for first in range(0, len(shown), width):
                some = shown[first : first + width]
                y = (some @ across).reshape(len(some), len(own), size)
                out[first : first + width] += some[:, :1] * _of_gaussian(inverse, y, n_regressors)
        elif kind == COUNT:
            seen, row = np.unique(shown, axis=0, return_inverse=True)
            out += _of_counts(own, seen[:, None, :])[row.ravel()]
        else:
            out += shown @ _log_shares(own).T
    return out


def log_density_of_each(cells: Floats, entries: Floats, layout: Layout) -> Floats:
    """Log density (states,) of one step (entries,) as one more of each state (states, cells)."""
    out = np.zeros(len(cells))
    for kind, own, shown, n_regressors, size in _channels(cells, entries, layout):
        if kind == NUMBERS:
            out += _of_numbers(own, shown)
        elif kind == GAUSSIAN:
            inverse = _unpacked(own, size)
            out += shown[0] * _of_gaussian(inverse, inverse @ shown, n_regressors)
        elif kind == COUNT:
            out += _of_counts(own, shown)
        else:
            out += _log_shares(own) @ shown
    return out


def grown(cells: Floats, entries: Floats, layout: Layout) -> Floats:
    """Cells (states, cells) of states after one more step (entries,) in each."""
    parts = [np.empty((len(cells), 0))]
    for kind, own, shown, _, size in _channels(cells, entries, layout):
        if kind == NUMBERS:
            parts.append(_grown_numbers(own, shown))
        elif kind == GAUSSIAN:
            parts.append(_grown_gaussian(own, shown, size) if shown[0] else own)
        elif kind == COUNT:
            parts.append(own + shown[1::-1])
        else:
            parts.append(own + shown)
    return np.concatenate(parts, axis=1)


def _channels(cells: Floats, entries: Floats, layout: Layout) -> Iterator[tuple[int, Floats, Floats, int, int]]:
    """Of each channel: kind, its cells and its entries, and numbers of regressors and of entries in a block."""
    for kind, entry, cell, n_blocks, n_regressors, size in layout.tolist():
        own = cells[:, cell : cell + n_cells(kind, n_blocks, size)]
        yield kind, own, entries[..., entry : entry + n_blocks * size], n_regressors, size


def _numbers(cells: Floats, entries: Floats) -> tuple[Floats, ...]:
    """κ, m, b and f, and what is there of a step, and the numbers."""
    width = entries.shape[-1] // 2
    parts = [cells[:, k * width : (k + 1) * width] for k in range(4)]
    return (*parts, entries[..., :width], entries[..., width:])


def _of_numbers(cells: Floats, entries: Floats) -> Floats:
    weight, mean, twice_rate, ratio, there, z = _numbers(cells, entries)
    spread = twice_rate * (weight + 1.0) / weight
    each = ratio - 0.5 * np.log(spread) - 0.5 * (3.0 + weight) * np.log1p((z - mean) ** 2 / spread)
    return np.asarray((there * each).sum(axis=-1))


def _grown_numbers(cells: Floats, entries: Floats) -> Floats:
    weight, mean, twice_rate, ratio, there, z = _numbers(cells, entries)
    after, gap = weight + there, there * (z - mean)
    # Γ(a + 1) = aΓ(a) tells the next ratio by the last.
    next_ratio = np.where(there > 0.0, np.log(0.5 * (2.0 + weight)) - ratio, ratio)
    return np.concatenate([after, mean + gap / after, twice_rate + gap * gap * weight / after, next_ratio], axis=1)


def _add_numbers(cells: Floats, entries: Floats, out: Floats) -> None:
    """Add log densities of all steps; those of numbers with one power by the log of their product."""
    weight, mean, twice_rate, ratio, there, z = _numbers(cells, entries)
    spread = twice_rate * (weight + 1.0) / weight
    out += there @ (ratio - 0.5 * np.log(spread)).T
    slope = np.ascontiguousarray((1.0 / np.sqrt(spread)).T)
    offset = np.ascontiguousarray(-mean.T) * slope
    power = np.ascontiguousarray(0.5 * (3.0 + weight).T)
    alike = bool((weight == weight[:, :1]).all())
    square, product = np.empty(len(cells)), np.empty(len(cells))
    for t, shown in enumerate(there > 0.0):
        numbers = np.flatnonzero(shown)
        at_once = TOGETHER if alike and np.abs(z[t]).max(initial=0.0) < MODERATE else 1
        for first in range(0, len(numbers), at_once):
            product.fill(1.0)
            for d in numbers[first : first + at_once].tolist():
                np.multiply(slope[d], z[t, d], out=square)
                square += offset[d]
                square *= square
                square += 1.0
                product *= square
            np.log(product, out=product)
            product *= power[numbers[first]]
            out[t] -= product


def _of_gaussian(inverse: Floats, y: Floats, n_regressors: int) -> Floats:
    """Log densities of y (…, states, size) by L⁻¹ (states, size, size)."""
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)
    weight, width = diagonal[:, 0] ** -2.0, y.shape[-1] - n_regressors
    power = 0.5 * (width + 2.0 + weight)
    constant = log_gamma(power) - log_gamma(0.5 * (2.0 + weight)) + np.log(diagonal[:, n_regressors:]).sum(axis=1)
    wider = 1.0 + (y[..., :n_regressors] ** 2).sum(axis=-1)
    distance = (y[..., n_regressors:] ** 2).sum(axis=-1) / wider
    return np.asarray(constant - 0.5 * width * np.log(wider) - power * np.log1p(distance))


def _unpacked(cells: Floats, size: int) -> Floats:
    """L⁻¹ (…, size, size)."""
    rows, columns = np.tril_indices(size)
    inverse = np.zeros((*cells.shape[:-1], size, size))
    inverse[..., rows, columns] = cells
    return inverse


def _grown_gaussian(cells: Floats, v: Floats, size: int) -> Floats:
    """L⁻¹ with M + vvᵀ = L(I + yyᵀ)Lᵀ: it is divided by the Cholesky factor of I + yyᵀ, which has a closed form."""
    inverse = _unpacked(cells, size)
    y = inverse @ v
    after = 1.0 + np.cumsum(y * y, axis=1)
    before = np.concatenate([np.ones((len(y), 1)), after[:, :-1]], axis=1)
    so_far = np.zeros_like(y)
    for k in range(size):
        root, root_before = np.sqrt(after[:, k]), np.sqrt(before[:, k])
        inverse[:, k] = (root_before / root)[:, None] * (inverse[:, k] - y[:, k, None] * so_far)
        so_far += (y[:, k] / root / root_before)[:, None] * inverse[:, k]
    rows, columns = np.tril_indices(size)
    return np.asarray(inverse[:, rows, columns])


def _of_counts(cells: Floats, entries: Floats) -> Floats:
    """Negative binomial; entries (…, 3) go along with states (states, 2)."""
    shape, rate, x = cells[:, 0], cells[:, 1], entries[..., 1]
    ratio = log_gamma(np.asarray(shape + x)) - log_gamma(shape)
    return np.asarray(entries[..., 0] * (ratio - shape * np.log1p(1.0 / rate) - x * np.log1p(rate)))


def _log_shares(cells: Floats) -> Floats:
    both = cells.reshape(len(cells), 2, cells.shape[1] // 2)
    return np.asarray((np.log(both) - np.log(both.sum(axis=1, keepdims=True))).reshape(cells.shape))
