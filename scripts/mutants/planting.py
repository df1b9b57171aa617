"""Put a mutant into modules that are loaded already, in a process of its own, so that nothing is imported anew.

The session of pytest imports the package and collects a room's tests once. For each mutant it parts ways: the child
gives the function that changed its new bytecode and runs the tests that enter it. A kernel is compiled from its
function's bytecode when it is first called, that is, in the child; what it compiles is not kept. Mutants outside of
functions, and those of default values, need the modules to be loaded anew (``replacement`` finds nothing for them).
"""

from __future__ import annotations

import gc
import importlib
import inspect
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from scripts.mutants.mutate import Mutant


def replacement(path: Path, mutant: Mutant) -> tuple[CodeType, CodeType] | None:
    """Bytecode of the outermost function round a mutant, before and after; None where it is no different."""
    source = path.read_text()
    before, after = (compile(text, str(path), "exec", dont_inherit=True) for text in (source, mutant.apply(source)))
    for name in mutant.function.split("."):
        places = [
            place
            for place, code in enumerate(before.co_consts)
            if isinstance(code, CodeType) and code.co_name == name and _holds(code, mutant.line)
        ]
        if len(places) != 1 or len(before.co_consts) != len(after.co_consts):
            return None
        before, after = before.co_consts[places[0]], after.co_consts[places[0]]
        if not isinstance(after, CodeType) or after.co_name != name:
            return None
        if before.co_flags & inspect.CO_OPTIMIZED:  # a function, not the body of a class
            changed = _said(before) != _said(after) and before.co_freevars == after.co_freevars
            return (before, after) if changed else None
    return None


def _holds(code: CodeType, line: int) -> bool:
    lines = [last for *_, last in code.co_lines() if last is not None]
    nested = [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return code.co_firstlineno <= line <= max(lines) or any(_holds(inner, line) for inner in nested)


def _said(code: CodeType) -> tuple[Any, ...]:
    """Everything but where it stands."""
    constants = [_said(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, code.co_exceptiontable, constants


def plant(before: CodeType, after: CodeType) -> int:
    """Give all functions that were made of some bytecode another; how many there were."""
    parts = Path(before.co_filename).with_suffix("").parts
    importlib.import_module(".".join(parts[parts.index("src") + 1 :]))  # some modules are loaded when they are needed
    found = 0
    for thing in gc.get_objects():
        if type(thing) is FunctionType and _same_place(thing.__code__, before):
            thing.__code__ = after
            found += 1
    return found


def _same_place(one: CodeType, other: CodeType) -> bool:
    places = [(code.co_filename, code.co_firstlineno, code.co_qualname) for code in (one, other)]
    return places[0] == places[1]


def forget_kernels() -> None:
    """Let fingerprints be taken anew, and keep nothing of what is compiled from here on."""
    from kinfolk.maths import kernel_cache

    kernel_cache._node.cache_clear()
    kernel_cache.KernelCache.save_overload = lambda *_: None  # type: ignore[method-assign]
    for thing in gc.get_objects():
        if isinstance(thing, kernel_cache.KernelCache):
            vars(thing).pop("_stamp", None)


def kernels_in_use() -> list[str]:
    """Names of kernels that were called already, in which a mutant would not be seen."""
    from numba.core.dispatcher import Dispatcher

    return [
        kernel.py_func.__qualname__
        for kernel in gc.get_objects()
        if isinstance(kernel, Dispatcher) and kernel.overloads and kernel.py_func.__module__.startswith("kinfolk")
    ]
