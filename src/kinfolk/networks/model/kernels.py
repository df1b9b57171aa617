"""How kernels that only other kernels call are compiled: without a door from Python, or not at all on their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kinfolk.maths.compiled import compiled

# A kernel that makes no arrays need not count references to them. Counting would be much of what is compiled: each time
# that a tuple of arrays gets another name, or one of its fields is looked at, every array in it is counted.
inner: Any = partial(compiled, no_cpython_wrapper=True, _nrt=False)
# Copied into its callers before anything is compiled: for a kernel that is called in one or two places, what it takes
# to hand its arguments over and to compile it by itself is saved.
spliced: Any = partial(compiled, inline="always")

_int64: Any = np.int64
# A number that is no constant: numba compiles a kernel anew for each constant that it is given, and what begins as a
# constant and becomes a variable is compiled twice.
int64: Callable[[float], int] = _int64
