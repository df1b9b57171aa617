"""Draws from Dirichlet distributions, compiled: most shapes of a sparse row are so small that they cost one number.

A share of shape a ≥ 1 is a Gamma draw by G. Marsaglia and W. W. Tsang (ACM Trans. Math. Softw. 26, 2000); of a smaller
shape, Gamma(a + 1) times u^{1/a} with u uniform, which is zero in floats unless u > e^{−800a}. Random numbers come from
xoshiro256++ (D. Blackman and S. Vigna, ACM Trans. Math. Softw. 47, 2021), whose state is filled by numpy's generator:
kernels draw as many as they need, and the same generator gives the same draws.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

# A draw whose logarithm has this taken from it is zero next to one of ordinary size; a row that has less than this in
# all is drawn in logarithms instead; and a shape is at least this part of its row's largest.
_TOO_MUCH, _TOO_LITTLE, _LEAST_RATIO = 800.0, 1e-100, 1e-290
_17, _23, _41, _19, _45, _11 = (np.uint64(n) for n in (17, 23, 41, 19, 45, 11))
_UNIT = 2.0**-53


def _random_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Where a kernel's own random numbers begin."""
    state: NDArray[np.uint64] = rng.bit_generator.random_raw(4)
    return state


@compiled
def _next_uniform(random):  # type: ignore[no-untyped-def]
    """A number evenly between 0 and 1, neither of them."""
    a, b, c, d = random[0], random[1], random[2], random[3]
    total = a + d
    drawn = ((total << _23) | (total >> _41)) + a
    c ^= a
    d ^= b
    random[0], random[1], random[2] = a ^ d, b ^ c, c ^ (b << _17)
    random[3] = (d << _45) | (d >> _19)
    return (float(drawn >> _11) + 0.5) * _UNIT


@compiled
def _gamma(shape, random):  # type: ignore[no-untyped-def]
    """A draw of Gamma(shape), shape ≥ 1."""
    third = shape - 1.0 / 3.0
    width = 1.0 / sqrt(9.0 * third)
    while True:
        # A normal number by the polar method.
        while True:
            x = 2.0 * _next_uniform(random) - 1.0
            y = 2.0 * _next_uniform(random) - 1.0
            square = x * x + y * y
            if 0.0 < square < 1.0:
                break
        normal = x * sqrt(-2.0 * log(square) / square)
        root = 1.0 + width * normal
        if root > 0.0:
            cube, u = root * root * root, _next_uniform(random)
            if u < 1.0 - 0.0331 * normal * normal * normal * normal:
                return third * cube
            if log(u) < 0.5 * normal * normal + third * (1.0 - cube + log(cube)):
                return third * cube


@compiled
def _least_of(shape):  # type: ignore[no-untyped-def]
    """What a uniform number must exceed for the share of a shape not to be zero."""
    return 0.0 if shape >= 1.0 else exp(-_TOO_MUCH * shape)


@compiled
def _draw_row(shapes, least, random, uniforms, out):  # type: ignore[no-untyped-def]
    """Draw probabilities ~ Dir(shapes) into ``out``; ``least`` is what `_least_of` gives, ``uniforms`` is scratch."""
    n, total = len(shapes), 0.0
    for s in range(n):
        uniforms[s], out[s] = 1.0, 0.0
        if shapes[s] >= 1.0:
            out[s] = _gamma(shapes[s], random)
        else:
            uniforms[s] = _next_uniform(random)
            if uniforms[s] > least[s]:
                out[s] = _gamma(shapes[s] + 1.0, random) * exp(log(uniforms[s]) / shapes[s])
        total += out[s]
    if total < _TOO_LITTLE:
        # Shapes so small that one outcome has all: in logarithms, and by ratios of shapes whose reciprocals overflow.
        largest, soonest, most = 0.0, inf, -inf
        for s in range(n):
            largest = max(largest, shapes[s])
        for s in range(n):
            uniforms[s] = -log(uniforms[s]) / max(shapes[s] / largest, _LEAST_RATIO)
            soonest = min(soonest, uniforms[s])
        for s in range(n):
            out[s] = log(_gamma(shapes[s] + 1.0, random)) - (uniforms[s] - soonest) / largest
            most = max(most, out[s])
        total = 0.0
        for s in range(n):
            out[s] = exp(out[s] - most)
            total += out[s]
    for s in range(n):
        out[s] /= total


@compiled
def _draw_transitions(weights, kappa, counts, random, reachable, out):  # type: ignore[no-untyped-def]
    n_tasks, n_rows, n_states = out.shape
    shapes, least = np.empty(n_states), np.empty(n_states)
    of_weights, uniforms = np.empty(n_states), np.empty(n_states)
    # Rows in the order in which they are got to; the first starts sequences.
    waiting, is_waiting = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.bool_)
    for j in range(n_tasks):
        own = weights[j if len(weights) > 1 else 0]
        for s in range(n_states):
            of_weights[s] = _least_of(own[s])
        for r in range(n_rows):
            waiting[r], is_waiting[r] = r, r == 0 or not reachable
        n_waiting, done = 1 if reachable else n_rows, 0
        while done < n_waiting:
            r = waiting[done]
            for s in range(n_states):
                more = counts[j if len(counts) > 1 else 0, r, s]
                if s + 1 == r:
                    more += kappa
                shapes[s] = own[s] + more
                least[s] = _least_of(shapes[s]) if more > 0.0 else of_weights[s]
            _draw_row(shapes, least, random, uniforms, out[j, r])
            for s in range(n_states if reachable else 0):
                if out[j, r, s] > 0.0 and not is_waiting[s + 1]:
                    waiting[n_waiting], is_waiting[s + 1] = s + 1, True
                    n_waiting += 1
            done += 1
        for r in range(n_rows):
            for s in range(0 if is_waiting[r] else n_states):
                out[j, r, s] = 0.0


def draw_transitions(
    weights: Floats,
    kappa: float,
    counts: NDArray[Any],
    rng: np.random.Generator,
    *,
    reachable: bool = False,
    out: Floats | None = None,
) -> Floats:
    """Draw transition rows W_jr ~ Dir(weights_j + κe_r + counts_jr), (J, L + 1, L), given αβ of each task, (J, L).

    Weights (L,) or counts (L + 1, L) that all tasks have in common are given once. With ``reachable``, rows of states
    that no path from the start gets to are not drawn: they are zero.
    """
    n_rows, n_states = counts.shape[-2:]
    if out is None:
        out = np.empty(counts.shape if counts.ndim == 3 else (*weights.shape[:-1], n_rows, n_states))
    of_tasks = np.ascontiguousarray(counts, dtype=np.float64).reshape(-1, n_rows, n_states)
    own = np.ascontiguousarray(weights).reshape(-1, n_states)
    _draw_transitions(own, float(kappa), of_tasks, _random_state(rng), reachable, out.reshape(-1, n_rows, n_states))
    return out


def draw_dirichlet(shapes: Floats, rng: np.random.Generator) -> Floats:
    """Draw probabilities ~ Dir(shapes), along the last axis; not all shapes of a row are zero.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw_dirichlet(np.full((1000, 2), [0.0, 3.0]), rng).mean(axis=0).tolist()
    [0.0, 1.0]
    >>> draw_dirichlet(np.full((10_000, 2), [1e-20, 4e-20]), rng).mean(axis=0).round(1).tolist()
    [0.2, 0.8]
    """
    return draw_transitions(shapes, 0.0, np.zeros((1, shapes.shape[-1])), rng).reshape(shapes.shape)
