"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


def check_target(path: Path) -> None:
    """Refuse a place that cannot be written to, before any work is done for it."""
    folder = path.parent
    if not folder.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {folder}")
    if path.is_dir():
        raise ValueError(f"{path} cannot be written: it is a folder")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} cannot be written: it is a device or a pipe, not a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: permission denied in folder {folder}")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write; it takes its place when all is written, and leaves no trace if that fails.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with whole_file(path) as file:
    ...     _ = file.write(b"kin")
    >>> path.read_text()
    'kin'
    """
    # Through a link to the file itself, which would otherwise be replaced by the new one.
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise ValueError(f"{os.fspath(path)} cannot be written: it is a folder, a device or a pipe, not a file")
    # Another thread, too, may be writing a file of this name.
    unfinished = target.with_name(f".{target.name}.{os.getpid()}-{token_hex(4)}.part")
    try:
        with unfinished.open("xb") as file:
            yield file
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
