"""Long work that goes on where it was killed: where a fit stands is a value, kept in a file under a key.

A checkpoint is a folder. Each piece of work that can be gone on with by itself, such as a chain, has a file of its own
there, called by a hash of all that its result depends on: data, parameters, seed, and this version of kinfolk. So
folds, clones and fits side by side never meet, and what is started again finds its own file, whatever else is there.
The same fit several times at once writes the same file. A file is written whole or not at all, holds the hash of its
content, and nothing in it is pickled.

An inference needs three lines: ``place.load()`` before its loop, ``place.due()`` and ``place.save(value)`` within it.
Work that is made of independent pieces, such as folds, needs one for each: ``checkpoint.done(piece, *depends_on)``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic, time
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kinfolk.files import whole_file
from kinfolk.interrupts import asked

# Seconds between two files of one piece of work, and the share of the time that writing them may take.
SECONDS = 5.0
_SHARE = 0.05
# Seconds from which on a piece of work is worth a file; writing one takes a few thousandths.
WORTH = 0.1
# Seconds after which a file that was not finished is nobody's any more; the same fit may be going on beside this one.
_OLD = 3600.0
_VERSION = 1
# Parameters of estimators that no result depends on.
_BESIDE = ("checkpoint", "n_jobs", "verbose")
Result = TypeVar("Result")


class Place:
    """Where one piece of work keeps what it has reached."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self._began = monotonic()
        self._next = self._began + SECONDS

    def load(self) -> Any:
        """What was kept, or None."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        head, _, body = content.partition(b"\n")
        told = {"kinfolk checkpoint": _VERSION, "key": self.key, "sha256": hashlib.sha256(body).hexdigest()}
        if head != json.dumps(told).encode():
            raise ValueError(
                f"{self.path} does not hold what its name says: it was changed or damaged, or is another fit's; "
                "delete it to begin that part of the work anew"
            )
        with np.load(io.BytesIO(body), allow_pickle=False) as kept:
            return _decode(json.loads(kept["value"].tobytes()), kept)

    def due(self) -> bool:
        """Whether it is time to write."""
        return monotonic() >= self._next

    def save(self, value: Any) -> None:
        """Write down where the work stands."""
        began = monotonic()
        for unfinished in self.path.parent.glob(f".{self.path.name}.*.part"):
            _remove_if_old(unfinished)  # of one that was killed while it wrote
        arrays: list[Any] = []
        text = json.dumps(_encode(value, arrays))
        body = io.BytesIO()
        named = {str(i): array for i, array in enumerate(arrays)}
        np.savez(body, value=np.frombuffer(text.encode(), dtype=np.uint8), **named)
        told = {
            "kinfolk checkpoint": _VERSION,
            "key": self.key,
            "sha256": hashlib.sha256(body.getvalue()).hexdigest(),
        }
        with whole_file(self.path) as file:
            file.write(json.dumps(told).encode() + b"\n" + body.getvalue())
            file.flush()
            os.fsync(file.fileno())
        self._next = monotonic() + max(SECONDS, (monotonic() - began) / _SHARE)

    def end(self, value: Any) -> None:
        """Write down the result of the work, if doing it anew would take longer than it is worth."""
        if monotonic() - self._began >= WORTH:
            self.save(value)


class Nowhere:
    """Work that is not kept."""

    def load(self) -> Any:
        """Nothing was kept."""

    def due(self) -> bool:
        """It is never time to write."""
        return False

    def save(self, value: Any) -> None:
        """Keep nothing."""

    def end(self, value: Any) -> None:
        """Keep nothing."""


NOWHERE = Nowhere()


class Checkpoint(NamedTuple):
    """A folder for what long work has reached; without one, nothing is kept.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> place = Checkpoint(mkdtemp()).place("chain", np.arange(3), 7)
    >>> place.save((1, {"draws": [np.ones(2)]}))
    >>> place.load()
    (1, {'draws': [array([1., 1.])]})
    """

    folder: str | os.PathLike[str] | None = None
    within: str = ""

    def of(self, *depends_on: Any) -> Checkpoint:
        """The same folder for pieces of work that all depend on these values, which are read but once."""
        return self if self.folder is None else self._replace(within=_digest((self.within, *depends_on)))

    def done(self, work: Callable[[], Result], *depends_on: Any) -> Result:
        """The result of a piece of work that is kept when it is done: as it was kept, or else as it comes out.

        What comes out after Ctrl-C may have been cut short, and is not kept.

        Examples
        --------
        >>> Checkpoint().done(lambda: 2 * 3, "twice", 3)
        6
        """
        place = self.place(*depends_on)
        if (kept := place.load()) is None:
            kept = (work(),)
            if not asked():
                place.end(kept)
        found: Result = kept[0]
        return found

    def place(self, *depends_on: Any) -> Place | Nowhere:
        """Where work is kept whose result depends on these values."""
        if self.folder is None:
            return NOWHERE
        from importlib.metadata import version

        folder = Path(self.folder)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"checkpoint={os.fspath(self.folder)!r} is a file: a folder is needed")
        folder.mkdir(parents=True, exist_ok=True)
        key = _digest((_VERSION, version("kinfolk"), self.within, *depends_on))
        return Place(folder / f"{key}.checkpoint", key)


def _remove_if_old(path: Path) -> None:
    with suppress(FileNotFoundError):
        if time() - path.stat().st_mtime > _OLD:
            path.unlink()


def check_checkpoint(folder: Any, random_state: Any) -> Checkpoint:
    """A checkpoint as an estimator's parameter gives it: what is to be found again needs a seed.

    Examples
    --------
    >>> check_checkpoint(None, None)
    Checkpoint(folder=None, within='')
    """
    if folder is None:
        return Checkpoint()
    if not isinstance(folder, str | os.PathLike):
        raise ValueError(f"checkpoint={folder!r}: the path of a folder is needed")
    if not isinstance(random_state, int | np.integer):
        raise ValueError(
            f"checkpoint= needs a whole number as random_state, not {random_state!r}: a fit that is started again is "
            "found by its seed"
        )
    return Checkpoint(folder)


def parameters_of(estimator: Any) -> tuple[str, dict[str, Any]]:
    """What a fit of an estimator depends on beside data: its kind, and its parameters but those that change nothing.

    Examples
    --------
    >>> from sklearn.naive_bayes import BernoulliNB
    >>> parameters_of(BernoulliNB(alpha=2.0))
    ('BernoulliNB', {'alpha': 2.0, 'binarize': 0.0, 'class_prior': None, 'fit_prior': True, 'force_alpha': True})
    """
    given = estimator.get_params(deep=False)
    return type(estimator).__name__, {name: value for name, value in given.items() if name not in _BESIDE}


def column_key(column: Any) -> Any:
    """A column of a user's table as a part of a key: objects by their kinds and by how they are written."""
    values = np.asarray(column)
    return [f"{type(value).__name__} {value!r}" for value in values.tolist()] if values.dtype.hasobject else values


def _digest(value: Any) -> str:
    arrays: list[Any] = []
    found = hashlib.sha256(json.dumps(_encode(value, arrays)).encode())
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:32]


def _encode(value: Any, arrays: list[Any]) -> Any:
    """A value as JSON, its arrays beside it."""
    if value is None or isinstance(value, bool | str) or type(value) in (int, float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        arrays.append(np.asarray(value))
        if arrays[-1].dtype.hasobject:
            raise TypeError("arrays of objects cannot be written down")
        return {"array" if isinstance(value, np.ndarray) else "scalar": len(arrays) - 1}
    if isinstance(value, Mapping):
        return {"dict": [[_encode(key, arrays), _encode(own, arrays)] for key, own in value.items()]}
    kind = type(value)
    if hasattr(kind, "_fields") or (is_dataclass(kind) and kind.__module__.startswith("kinfolk")):
        parts = value if hasattr(kind, "_fields") else [getattr(value, f.name) for f in fields(kind) if f.init]
        return {"type": f"{kind.__module__}:{kind.__qualname__}", "parts": [_encode(part, arrays) for part in parts]}
    for sequence in (list, tuple, frozenset, set):
        if kind is sequence:
            members = sorted(value) if sequence in (frozenset, set) else value
            return {sequence.__name__: [_encode(member, arrays) for member in members]}
    raise TypeError(f"{kind.__name__} cannot be written down")


def _decode(told: Any, arrays: Any) -> Any:
    if not isinstance(told, dict):
        return told
    if "type" in told:
        parts = [_decode(part, arrays) for part in told["parts"]]
        return _type(told["type"])(*parts)
    [(kind, content)] = told.items()
    if kind == "array":
        return arrays[str(content)]
    if kind == "scalar":
        return arrays[str(content)][()]
    if kind == "dict":
        return {_decode(key, arrays): _decode(own, arrays) for key, own in content}
    return {"list": list, "tuple": tuple, "frozenset": frozenset, "set": set}[kind](
        _decode(member, arrays) for member in content
    )


def _type(name: str) -> Any:
    """One of kinfolk's own types of values, which do nothing when they are made."""
    module, _, qualified = name.partition(":")
    kind: Any = import_module(module) if module.partition(".")[0] == "kinfolk" else None
    for part in qualified.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and (hasattr(kind, "_fields") or is_dataclass(kind))):
        raise ValueError(f"a checkpoint holds {name!r}, which is no value of kinfolk")
    return kind
