"""Draws of Gamma distributions by way of their logarithms, with numpy alone."""

from __future__ import annotations

import numpy as np

from kinfolk.maths.arrays import Floats


def log_gamma_draws(shape: Floats, rng: np.random.Generator) -> Floats:
    """Logarithms of Gamma(shape) draws, which for a small shape are themselves too small for a float.

    A Gamma(a) draw is one of Gamma(a + 1) times U^{1/a}.
    """
    return np.asarray(np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.shape) / shape)
