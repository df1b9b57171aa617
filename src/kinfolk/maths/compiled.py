"""The one decorator of all kernels: plain loops over arrays, compiled by numba when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@overload
def compiled(kernel: Kernel) -> Kernel: ...


@overload
def compiled(kernel: None = None, **options: Any) -> Callable[[Kernel], Kernel]: ...


def compiled(kernel: Any = None, **options: Any) -> Any:
    """Compile a kernel, keep it in numba's cache, and let other threads run meanwhile.

    Parameters
    ----------
    kernel : function, optional
        A function of arrays and numbers; left out where options are given: ``@compiled(inline="always")``.
    options
        Further options of ``numba.njit``.

    Examples
    --------
    >>> @compiled
    ... def doubled(x):
    ...     return 2 * x
    >>> doubled.py_func(4)
    8
    """
    decorate = numba.njit(cache=True, nogil=True, **options)
    return decorate if kernel is None else decorate(kernel)
