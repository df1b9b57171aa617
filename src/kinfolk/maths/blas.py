"""Optimisation of few parameters without the threads of BLAS.

SciPy's L-BFGS-B calls BLAS for tiny matrices, which OpenBLAS hands to threads that wait for each other by spinning
(SciPy issue 22438): with every core busy, a fit of forty rows took ten times as long as with one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
# Who is inside, and what the last one out has to undo: threads that each undid their own would undo each other's.
_inside: list[Any] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use a single thread, in this process, until nobody is inside any more.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> with one_blas_thread():
    ...     found = minimize(lambda x: float((x[0] - 2.0) ** 2), [0.0], method="L-BFGS-B")
    >>> round(float(found.x[0]), 3)
    2.0
    """
    with _lock:
        _inside.append(_inside[0] if _inside else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limits = _inside.pop()
            if not _inside:
                limits.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
