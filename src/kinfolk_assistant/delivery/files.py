"""Answers as files: each is there whole or not at all, under a name made from the reply's number."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from kinfolk_assistant.delivery.deliverer import NotDelivered, Outgoing


class FileDeliverer:
    """Writes each answer into a folder, from which the user or another program sends it.

    Parameters
    ----------
    folder : path
        Where to write; it is made where it is missing.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> answer = Outgoing(7, "ann@x.org", "bob@x.org", "1", "", "ACCEPTED", "BEGIN:VCALENDAR...", "", "", "<7@x.org>")
    >>> FileDeliverer(folder.name).deliver(answer)
    >>> [path.name for path in Path(folder.name).iterdir()]
    ['reply-7.ics']
    >>> folder.cleanup()
    """

    certain = True

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path_of(self, outgoing: Outgoing) -> Path:
        """Where an answer is written; nothing of the invitation's own text is in the name."""
        return self.folder / f"reply-{int(outgoing.reply_id)}.ics"

    def deliver(self, outgoing: Outgoing) -> None:
        """Write the answer; a second time writes the same file again."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.path_of(outgoing), outgoing.text.encode())
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "the answer holds characters that are no text"
            raise NotDelivered(f"The answer could not be written to {self.folder}: {reason}.") from error


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that, whenever the machine stops, its old or its new content is there and never a part."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Make the new name itself last; where a folder cannot be opened for that, as on Windows, the system sees to it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
