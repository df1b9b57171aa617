"""How a command ends: its exit status, and the one sentence about input that it could not use."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from warnings import WarningMessage

import typer

BAD_INPUT = 2
INTERRUPTED = 130


def say(sentence: str) -> None:
    """Print a note or an error on standard error, as one line."""
    print(f"kinfolk: {' '.join(sentence.split())}", file=sys.stderr)


@contextmanager
def telling() -> Iterator[None]:
    """Say what warnings say, once all has gone well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in told_by(caught):
        say(warning)


def told_by(caught: Sequence[WarningMessage]) -> list[str]:
    """What warnings say to a user, each once."""
    meant = [warning for warning in caught if not issubclass(warning.category, DeprecationWarning)]
    return list(dict.fromkeys(str(warning.message) for warning in meant))


def run(command: Callable[[], Any]) -> int:
    """Run a command and give its exit status.

    Input that cannot be used gives status 2 and one sentence on standard error; what is a fault of the program stays an
    exception. A reader that has closed the pipe, as ``head`` does, has got what it wanted.
    """
    _write_utf8()
    try:
        outcome = command()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as stop:
        if isinstance(stop, SystemExit) and not isinstance(stop.__context__, BrokenPipeError):
            raise
        _discard_output()
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None or os.environ.get("KINFOLK_TRACEBACK"):
            raise
        say(sentence)
        return BAD_INPUT
    return outcome if isinstance(outcome, int) else 0


def _sentence(error: Exception) -> str | None:
    """What was wrong with the input; None for errors that have another cause."""
    # Typer's own errors are known by this method: their classes have moved from version to version.
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        place = "kinfolk" if context is None else context.command_path
        return f"{error.format_message().rstrip('.')} (see {place} --help)"
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        return f"{where}{error.strerror or error}"
    # An ImportError of our own says which optional package is missing; Python's own are of a subclass.
    if type(error) is ImportError:
        return str(error)
    return str(error) if isinstance(error, ValueError | TypeError) else None


def _write_utf8() -> None:
    """Make files and pipes UTF-8 wherever the program runs; a terminal keeps its encoding, but never fails."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError):  # a stream that stands in for the real one
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
            else:
                stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]


def _discard_output() -> None:
    """Let what is still buffered vanish, instead of failing once more when Python exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
