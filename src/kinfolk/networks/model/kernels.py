"""How kernels that only other kernels call are compiled: without a door from Python, which would take longest."""

from __future__ import annotations

from functools import partial
from typing import Any

from kinfolk.maths.compiled import compiled

_NO_DOOR: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

inner: Any = partial(compiled, **_NO_DOOR)
# Copied into its caller before anything is compiled: a kernel on the way to a large one would compile that once more.
spliced: Any = partial(compiled, inline="always")
