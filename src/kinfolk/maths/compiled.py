"""The one decorator of all kernels: plain loops over arrays, compiled by numba when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

import numba

from kinfolk.maths.kernel_cache import KernelCache

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@overload
def compiled(kernel: Kernel) -> Kernel: ...


@overload
def compiled(kernel: None = None, **options: Any) -> Callable[[Kernel], Kernel]: ...


def compiled(kernel: Any = None, **options: Any) -> Any:
    """Compile a kernel, keep its code for later runs, and let other threads run meanwhile.

    Code is kept for as long as neither the kernel nor anything that it reaches has changed (``kernel_cache``).

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
    if kernel is None:
        return partial(compiled, **options)
    # No entrance from C, which nothing uses: a wrapper less to compile for every kernel.
    dispatcher = numba.njit(nogil=True, **{"no_cfunc_wrapper": True, **options})(kernel)
    if dispatcher is not kernel:  # as it is where NUMBA_DISABLE_JIT is set
        dispatcher._cache = KernelCache(dispatcher)
    return dispatcher
