"""The first two derivatives of lgamma, compiled."""

from __future__ import annotations

import numpy as np

from kinfolk.maths.compiled import compiled


@compiled
def digamma(x):  # type: ignore[no-untyped-def]
    """ψ(x) for x > 0, to about 1e-13: by recurrence to above 10, then by Stirling's series (Abramowitz–Stegun 6.3.18).

    Examples
    --------
    >>> round(digamma(1.0), 12)  # Euler's constant, negative
    -0.577215664902
    """
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    inverse = 1.0 / (x * x)
    series = 1.0 / 252.0 - inverse * (1.0 / 240.0 - inverse * (1.0 / 132.0 - inverse * 691.0 / 32760.0))
    series = inverse * (1.0 / 12.0 - inverse * (1.0 / 120.0 - inverse * series))
    return shift + np.log(x) - 0.5 / x - series


@compiled
def trigamma(x):  # type: ignore[no-untyped-def]
    """ψ′(x) for x > 0, by recurrence to above 8, then by its asymptotic series (Abramowitz–Stegun 6.4.12).

    Examples
    --------
    >>> round(trigamma(1.0), 10) == round(np.pi**2 / 6, 10)
    True
    """
    value = 0.0
    while x < 8.0:
        value += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66 - y * 691 / 2730)))))
    return value + 0.5 * y + (1.0 + series) / x
