"""How kernels that only other kernels call are compiled: without a door from Python, which would take longest."""

from __future__ import annotations

from typing import Any

from numba import njit

_NO_DOOR: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

inner = njit(cache=True, nogil=True, **_NO_DOOR)
# Copied into its caller before anything is compiled: a kernel on the way to a large one would compile that once more.
spliced = njit(cache=True, nogil=True, inline="always")
