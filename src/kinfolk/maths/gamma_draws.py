"""Draws of Gamma and Dirichlet distributions by way of their logarithms, with numpy alone."""

from __future__ import annotations

import numpy as np

from kinfolk.maths.arrays import Floats

# A draw whose logarithm has this taken from it is zero next to one of ordinary size; a row that has less than this in
# all is drawn in logarithms instead; and a shape is at least this part of its row's largest.
_TOO_MUCH, _TOO_LITTLE, _LEAST_RATIO = 800.0, 1e-100, 1e-290


def log_gamma_draws(shape: Floats, rng: np.random.Generator) -> Floats:
    """Logarithms of Gamma(shape) draws, which for a small shape are themselves too small for a float.

    A Gamma(a) draw is one of Gamma(a + 1) times U^{1/a}.
    """
    return np.asarray(np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.shape) / shape)


def draw_dirichlet(shapes: Floats, rng: np.random.Generator) -> Floats:
    """Draw probabilities ~ Dir(shapes), along the last axis; not all shapes of a row are zero.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw_dirichlet(np.full((1000, 2), [0.0, 3.0]), rng).mean(axis=0).tolist()
    [0.0, 1.0]
    >>> draw_dirichlet(np.full((10_000, 2), [1e-20, 3e-20]), rng).mean(axis=0).round(1).tolist()
    [0.2, 0.8]
    """
    exponents = rng.standard_exponential(shapes.shape)
    # A Gamma(a) draw is one of Gamma(a + 1) times e^{−E/a}: where the second factor is zero, which most of a sparse row
    # is, the first need not be drawn.
    counts = exponents < _TOO_MUCH * shapes
    drawn, exponents_drawn = shapes[counts], exponents[counts]
    shares = np.zeros(shapes.shape)
    shares[counts] = rng.standard_gamma(drawn + 1.0) * np.exp(-exponents_drawn / drawn)
    totals = shares @ np.ones(shapes.shape[-1])
    small = totals < _TOO_LITTLE
    if small.any():
        # Shapes so small that one outcome has all, which is then drawn by their ratios.
        most = shapes[small].max(axis=-1, keepdims=True)
        waits = exponents[small] / np.maximum(shapes[small] / most, _LEAST_RATIO)
        with np.errstate(over="ignore"):
            behind = (waits - waits.min(axis=-1, keepdims=True)) / most
        logs = np.log(rng.standard_gamma(shapes[small] + 1.0)) - behind
        shares[small] = np.exp(logs - logs.max(axis=-1, keepdims=True))
        totals = shares @ np.ones(shapes.shape[-1])
    shares /= totals[..., None]
    return shares
