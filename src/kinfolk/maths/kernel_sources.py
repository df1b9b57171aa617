"""A fingerprint of everything a kernel is compiled from: itself, the kernels that it can reach, and their constants.

numba copies called kernels and the values of global names into the code of the caller. Compiled code is therefore good
for as long as none of these has changed, in whatever module they stand. What is read is bytecode, which is what numba
compiles: comments, docstrings and a function's place in its file do not matter, and no source file has to be opened.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba.core.dispatcher import Dispatcher


class _Node(NamedTuple):
    """What one function says itself, and the functions that its names lead to."""

    text: str
    leads_to: tuple[Any, ...]


def fingerprint(kernel: Any) -> str:
    """Name all that is compiled into a kernel; call it when every module that the kernel needs is loaded.

    Examples
    --------
    >>> def two(x):
    ...     return 2 * x
    >>> def three(x):
    ...     return 3 * x
    >>> fingerprint(two) == fingerprint(two), fingerprint(two) == fingerprint(three)
    (True, False)
    """
    reached, waiting = {}, [kernel]
    while waiting:
        function = waiting.pop()
        if id(function) not in reached:
            node = reached[id(function)] = _node(function)
            waiting += node.leads_to
    return sha256("\n".join(sorted(node.text for node in reached.values())).encode()).hexdigest()


@cache
def _node(function: Any) -> _Node:
    options = ""
    if isinstance(function, Dispatcher):
        options = repr(sorted((name, _constant(value)) for name, value in function.targetoptions.items()))
        function = function.py_func
    leads_to: list[Any] = []
    used = [f"{name}={_say(value, function, leads_to)}" for name, value in _names(function)]
    code = _code(function.__code__, function.__doc__)
    return _Node(" ".join([_full_name(function), options, code, *used]), tuple(leads_to))


def _code(code: CodeType, docstring: str | None = None) -> str:
    """Everything about a piece of bytecode but where it stands."""
    constants = [
        _code(value) if isinstance(value, CodeType) else _constant(value)
        for value in (code.co_consts if docstring is None else code.co_consts[1:])
    ]
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return repr((code.co_code, code.co_exceptiontable, shape, names, constants))


def _constant(value: Any) -> str:
    # The order of a set changes from process to process.
    return repr(sorted(map(repr, value))) if isinstance(value, set | frozenset) else repr(value)


def _names(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Names that a function takes from outside, with their values: defaults, closure, globals, modules' members."""
    yield "defaults", (function.__defaults__ or (), tuple(sorted((function.__kwdefaults__ or {}).items())))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    # Attributes are among the names too: at worst one that is called like a global makes a link too many.
    names = sorted(_all_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if value is None:
            continue
        yield name, value
        if isinstance(value, ModuleType) and _package(value.__name__) == _package(function.__module__):
            yield from ((f"{name}.{member}", vars(value)[member]) for member in names if member in vars(value))


def _all_names(code: CodeType) -> set[str]:
    """Names in a piece of bytecode and in the functions inside it."""
    return set(code.co_names).union(*(_all_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _say(value: Any, user: FunctionType, leads_to: list[Any]) -> str:
    """Describe a value that a function uses; functions of which the code matters too are added to ``leads_to``."""
    if isinstance(value, Dispatcher):
        leads_to.append(value)
        return _full_name(value.py_func)
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_say(item, user, leads_to) for item in value) + ")"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str} {value.shape} {sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type):
        members = [(item.name, item.value) for item in value] if issubclass(value, enum.Enum) else []
        return f"{_full_name(value)} {getattr(value, '_fields', ())} {getattr(value, '_field_defaults', {})} {members}"
    definition = getattr(value, "_defn", value)  # numba's intrinsics keep theirs there
    if isinstance(definition, FunctionType):
        if _package(definition.__module__) == _package(user.__module__):
            leads_to += [definition, *_overloads(definition)]
        return _full_name(definition)
    text = _constant(value)
    return text if " at 0x" not in text else _full_name(type(value))


def _overloads(function: FunctionType) -> list[FunctionType]:
    """What ``numba.extending.overload`` made kernels use in place of a function."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    known = cpu_target.typing_context._lookup_global(function)
    found = [getattr(template, "_overload_func", None) for template in getattr(known, "templates", ())]
    return [definition for definition in found if isinstance(definition, FunctionType)]


def _package(module: str) -> str:
    return module.partition(".")[0]


def _full_name(thing: Callable[..., Any]) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
