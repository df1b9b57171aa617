"""Log Γ with numpy alone, for what answers from a file without scipy."""

from __future__ import annotations

import numpy as np

from kinfolk.maths.arrays import Floats


def log_gamma(x: Floats) -> Floats:
    """Log Γ of numbers above zero: Stirling's series ten steps up, and the steps back down.

    Examples
    --------
    >>> log_gamma(np.array([0.5, 1.0, 171.0])).round(9).tolist()
    [0.572364943, 0.0, 706.573062246]
    """
    up = np.where(x < 10.0, x + 10.0, x)
    inverse = 1.0 / up
    square = inverse**2
    series = 1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * 691 / 360360))
    stirling = (
        (up - 0.5) * np.log(up)
        - up
        + 0.5 * np.log(2.0 * np.pi)
        + inverse * (1 / 12 - square * (1 / 360 - square * series))
    )
    steps = np.where(x < 10.0, x, 1.0)
    for i in range(1, 10):
        steps = steps * np.where(x < 10.0, x + i, 1.0)
    return np.asarray(stirling - np.log(steps))
