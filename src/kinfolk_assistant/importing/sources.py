"""What a user hands over to be imported: calendar files, mails, mailboxes, and folders of all of these."""

from __future__ import annotations

import mailbox
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR, Refused
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.mail import MAX_MAIL_BYTES, MailedObject, read_mail

CALENDARS = (".ics", ".ical", ".ifb", ".icalendar")
MAILS = (".eml",)
MAILBOXES = (".mbox", ".mbx")


class Stored(Protocol):
    """An object of a calendar, as its server keeps it."""

    @property
    def text(self) -> str:
        """What it says."""
        ...


class Handed(NamedTuple):
    """What was read, and a sentence for each thing that was not."""

    objects: list[CalendarObject | MailedObject]
    skipped: list[str]


def read_history(path: str | Path) -> Handed:
    """Read everything that a file or folder tells of a calendar's past.

    Parameters
    ----------
    path : str or Path
        A calendar (``.ics``), a mail (``.eml``), a mailbox (``.mbox``), or a folder with such files, at any depth.

    Returns
    -------
    Handed
        Calendar objects in the order of their files' names. Mails without a calendar are passed over.

    Raises
    ------
    ValueError
        If the path is of another kind, or a file given by its own name cannot be used.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "empty.ics").write_text("nothing here")
    ...     read_history(folder).skipped
    ['empty.ics is not iCalendar: it has no BEGIN:VCALENDAR.']
    """
    path = Path(path)
    handed = Handed([], [])
    if not path.is_dir():
        if path.suffix.lower() not in (*CALENDARS, *MAILS, *MAILBOXES):
            raise ValueError(f"{path.name} is no calendar (.ics), mail (.eml), mailbox (.mbox) or folder of these.")
        handed.objects.extend(_read(path, handed.skipped))
        return handed
    for file in sorted(path.rglob("*")):
        # A link could lead out of the folder that was handed over.
        if file.is_file() and not file.is_symlink() and file.suffix.lower() in (*CALENDARS, *MAILS, *MAILBOXES):
            try:
                handed.objects.extend(_read(file, handed.skipped))
            except Refused as refusal:
                handed.skipped.append(str(refusal))
    return handed


def read_objects(stored: Iterable[Stored]) -> list[CalendarObject | MailedObject]:
    """Read what a calendar server has given; what cannot be read is left out."""
    found: list[CalendarObject | MailedObject] = []
    for one in stored:
        with suppress(Refused):
            found += read_calendar(one.text.encode(errors="replace"), bounds=WHOLE_CALENDAR)
    return found


def _read(path: Path, skipped: list[str]) -> Iterator[CalendarObject | MailedObject]:
    kind = path.suffix.lower()
    if kind in CALENDARS:
        if path.stat().st_size > WHOLE_CALENDAR.size:
            raise Refused(f"{path.name} has {path.stat().st_size} bytes; at most {WHOLE_CALENDAR.size} are read.")
        yield from read_calendar(path.read_bytes(), path.name, bounds=WHOLE_CALENDAR, skipped=skipped)
    elif kind in MAILS:
        if path.stat().st_size <= MAX_MAIL_BYTES:
            yield from _of_mail(path.read_bytes())
    else:
        box = mailbox.mbox(path, create=False)
        try:
            for key in box.iterkeys():
                yield from _of_mail(box.get_bytes(key))
        finally:
            box.close()


def _of_mail(data: bytes) -> list[MailedObject]:
    # Most mails of a mailbox have no calendar, and one that cannot be read is no reason to lose the others.
    try:
        return read_mail(data)
    except Refused:
        return []
