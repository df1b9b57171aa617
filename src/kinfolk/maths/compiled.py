"""The one decorator of all kernels: plain loops over arrays, compiled by numba when they are first called.

Ctrl-C in a kernel is KeyboardInterrupt, as everywhere. When a kernel is entered or left, numba calls functions of
Python's: one that gives the classes of arrays and named tuples, and `ctypes.cast` for generators. Python raises what an
interrupt asks for at the next function that begins, which after a kernel at work is one of these; numba goes on without
what it did not get, and the process dies, or the caller has a SystemError. So classes are given by a cache, which runs
no Python; and while a kernel with a generator is called from the main thread, where Python handles interrupts, they
wait until it has returned, unless it is being compiled.
"""

from __future__ import annotations

# What ``signal`` wraps to give handlers names, which takes longer than a small kernel.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeVar, overload

import numba
from numba.core import serialize
from numba.core.registry import CPUDispatcher

from kinfolk.maths.kernel_cache import KernelCache

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

if hasattr(serialize, "_numba_unpickle"):
    serialize._numba_unpickle = lru_cache(maxsize=None)(serialize._numba_unpickle)


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
        if "rng" in kernel.__code__.co_varnames[: kernel.__code__.co_argcount]:
            dispatcher.__class__ = _KernelOfGenerator
    return dispatcher


class _KernelOfGenerator(CPUDispatcher):
    """A kernel that takes a generator as ``rng``: its caller is interrupted after it has returned."""

    # Whoever handles interrupts but for the kernel that the main thread is in; None while it is in none.
    usual: Callable[[int, Any], Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        usual: Any = _signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(usual):
            return super().__call__(*args, **kwargs)
        waiting: list[Any] = []
        _signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
        _KernelOfGenerator.usual = usual
        try:
            return super().__call__(*args, **kwargs)
        finally:
            _KernelOfGenerator.usual = None
            _signal.signal(signal.SIGINT, usual)
            if waiting:
                usual(*waiting[0])

    def compile(self, sig: Any) -> Any:
        """Compile the kernel for some types, which may be interrupted at any time."""
        usual, waits = _KernelOfGenerator.usual, signal.getsignal(signal.SIGINT)
        if usual is None or threading.current_thread() is not threading.main_thread():
            return super().compile(sig)
        signal.signal(signal.SIGINT, usual)
        try:
            return super().compile(sig)
        finally:
            signal.signal(signal.SIGINT, waits)
