"""Compiled kernels, kept between runs: one file for each kernel and types of arguments.

numba's own cache does not notice that a called kernel was edited in another file, and refuses to work where nothing
can be written. Here the name of an entry holds a fingerprint of all that was compiled into it, so that an entry that is
found is right, and entries of the same kernel with another fingerprint are superseded and go. Entries are looked for in
every place and written to the first that can be written:

1. ``NUMBA_CACHE_DIR``, where it is set: there alone;
2. ``__pycache__`` beside the source: it goes when the environment or the checkout goes, cannot be confused with that of
   another version, and what a container's build compiled is found by a user who may not write there;
3. the user's cache folder (``XDG_CACHE_HOME`` or what the platform uses);
4. a folder in the temporary one that belongs to the user alone.

An entry is unpickled, that is, run: only places that nobody else may write to are used.
"""

from __future__ import annotations

import enum
import logging
import multiprocessing
import os
import stat
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from pickle import loads
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import sigutils
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaWarning
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

# numba makes these when it is loaded, so that their members have no types.
config: Any = numba.config
types: Any = numba.types

_PYTHON = f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
_SUFFIX = ".kernel"


class KernelCache(_Cache):
    """The kept code of one kernel; numba asks it before it compiles, and tells it what it compiled."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._enabled = True
        source = Path(kernel.py_func.__code__.co_filename)
        self._folder = source.parent
        self._module = source.stem
        # Forbidden in the names of files by some systems.
        self._name = kernel.py_func.__qualname__.replace("<", "").replace(">", "")

    @cached_property
    def _stamp(self) -> str:
        """What the name of every entry of this kernel begins with; not before all modules are loaded."""
        made_by = f"{fingerprint(self._kernel)} {numba.__version__} {config.OPT} {config.BOUNDSCHECK}"
        return f"{self._module}.{self._name}-{_PYTHON}-{_digest(made_by)}"

    def _entry(self, signature: Any, codegen: Any) -> str:
        """File name of the code for some types of arguments on this machine's processor."""
        arguments, result = sigutils.normalize_signature(signature)
        behind: list[str] = []
        kinds = [_type_name(argument, behind) for argument in arguments]
        return f"{self._stamp}-{_digest(f'{kinds} {result} {codegen.magic_tuple()}')}-{_digest(str(behind))}{_SUFFIX}"

    @property
    def cache_path(self) -> str | None:
        """The folder that newly compiled code goes to; None where there is none."""
        folder = place_to_write(self._folder)
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Give the kept code for some types; None where there is none, which is what numba compiles upon."""
        if not self._enabled:
            return None
        target_context.refresh()
        name = self._entry(sig, target_context.codegen())
        for folder in places(self._folder):
            try:
                return CompileResult._rebuild(target_context, *loads((folder / name).read_bytes()))
            except OSError:
                continue
            except Exception:  # a damaged file is as good as none: it is written anew
                continue
        _tell_once(place_to_write(self._folder))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code, in one step, and remove what it supersedes."""
        _compiled.append(self._name)
        if not self._enabled:
            return
        if data.library.has_dynamic_globals:
            warnings.warn(f"{self._name} refers to an address in memory and cannot be kept", NumbaWarning, stacklevel=2)
            return
        folder = place_to_write(self._folder)
        if folder is None:
            return
        path = folder / self._entry(sig, data.codegen)
        unfinished = path.with_suffix(f".{uuid.uuid4().hex[:16]}")
        try:
            # Not a file of tempfile's, which others could not read: one user may compile for many.
            unfinished.write_bytes(dumps(data._reduce()))
            os.replace(unfinished, path)
            self._remove_superseded(path)
        except OSError:  # a full disk, say: the code is there, and is compiled again next time
            unfinished.unlink(missing_ok=True)

    def _remove_superseded(self, new: Path) -> None:
        """Remove entries of this kernel's former code, and of kernels and modules that there no longer are."""
        living = vars(sys.modules[self._kernel.__module__]) if self._kernel.__module__ in sys.modules else None
        has_sources = (self._folder / f"{self._module}.py").exists()
        same = new.name.rpartition("-")[0]
        for entry in new.parent.glob(f"*{_SUFFIX}"):
            kernel, python, *_ = entry.name.split("-")
            module, _, name = kernel.partition(".")
            mine = module == self._module and python == _PYTHON
            former = mine and name == self._name and not entry.name.startswith(f"{self._stamp}-")
            other_types = entry != new and entry.name.startswith(f"{same}-")
            forgotten = mine and living is not None and "." not in name and name not in living
            lost = has_sources and not (self._folder / f"{module}.py").exists()
            if former or other_types or forgotten or lost:
                entry.unlink(missing_ok=True)

    def enable(self) -> None:
        """Use the cache."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor keep anything from here on."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all entries of this kernel."""
        for folder in places(self._folder):
            for entry in folder.glob(f"{self._module}.{self._name}-{_PYTHON}-*{_SUFFIX}"):
                entry.unlink(missing_ok=True)


def places(source: Path) -> list[Path]:
    """Folders in which compiled kernels of a source folder may be, the preferred one first."""
    if not source.is_absolute():  # typed at a prompt: there is no file
        return []
    # Checkouts and environments side by side have folders of their own.
    own = f"{source.name}_{_digest(str(source))}"
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR) / own]
    shared = [_user_folder(), _temporary_folder()]
    return [source / "__pycache__", *(folder / own for folder in shared if folder is not None)]


@cache
def place_to_write(source: Path) -> Path | None:
    """Find the first of the places that can be written to, made if need be; None where there is none."""
    for folder in places(source):
        try:
            if folder.parent == _temporary_folder():
                folder.parent.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


@cache
def _user_folder() -> Path | None:
    """Give the user's cache folder; None for a user without a home."""
    folder = Path(AppDirs("kinfolk", appauthor=False).user_cache_dir)
    return folder / "kernels" if folder.is_absolute() else None


def _temporary_folder() -> Path | None:
    """Give a folder in the temporary one, there or yet to be made; None where it is somebody else's."""
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"kinfolk-kernels-{'' if user is None else user}"
    except FileNotFoundError:  # there is no temporary folder at all
        return None
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return folder
    except OSError:
        return None
    strange = user is not None and (found.st_uid != user or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return None if strange or not stat.S_ISDIR(found.st_mode) else folder


def _type_name(kind: Any, behind: list[str]) -> str:
    """Name a type in the same way in every process; what is compiled in because of it is added to ``behind``."""
    if isinstance(kind, types.Dispatcher):  # a kernel that is handed over
        behind.append(fingerprint(kind.dispatcher))
        return str(kind.dispatcher.py_func.__qualname__)
    if isinstance(kind, types.BaseTuple):
        form = getattr(kind, "instance_class", tuple)
        # Fields are compiled to positions: their order counts even where all have the same type.
        behind.append(str(getattr(form, "_fields", "")))
        return f"{form.__module__}.{form.__qualname__}{[_type_name(part, behind) for part in kind]}"
    return f"{type(kind).__name__} {kind}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


_compiled: list[str] = []
_told: list[str] = []


def n_compiled() -> int:
    """Count what this process had to compile so far: kernels, for each types of arguments."""
    return len(_compiled)


def _tell_once(kept_in: Path | None) -> None:
    """Tell that the caller has to wait: on a terminal, or to the log; never from a worker, of which there are many."""
    if _told or multiprocessing.parent_process() is not None:
        return
    begin = "Compiling kernels for the first time; this takes some seconds"
    advice = "set NUMBA_CACHE_DIR to a folder that can be written to"
    level = logging.WARNING
    if kept_in is None:
        _told.append(f"{begin} every time, because they cannot be kept: {advice}.")
    elif not config.CACHE_DIR and kept_in.parent == _temporary_folder():
        _told.append(f"{begin} and is kept in {kept_in.parent}, which may be emptied: {advice}.")
    else:
        _told.append(f"{begin} and is kept for the next run.")
        level = logging.INFO
    if sys.stderr is not None and sys.stderr.isatty():
        print(_told[0], file=sys.stderr)
    else:
        logging.getLogger("kinfolk").log(level, _told[0])


# A fingerprint of everything a kernel is compiled from. numba copies called kernels and the values of global names into
# the code of the caller: compiled code is good for as long as none of these has changed, in whatever module they stand.
# What is read is bytecode, which is what numba compiles: comments, docstrings and a function's place in its file do not
# matter, and no source file has to be opened.


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
    if isinstance(value, dict):
        value = tuple(value.items())
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
