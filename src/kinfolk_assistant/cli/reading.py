"""A file that may be a mail or a calendar, as the messages in it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.bounds import Refused
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.mail import read_mail


class Received(NamedTuple):
    """One message: what it says, when it came (None: not told), "mail" or "file", and what it is called there."""

    object: CalendarObject
    received: datetime | None
    source: str
    reference: str


def read_messages(data: bytes, name: str) -> list[Received]:
    """Read what a file holds.

    Raises
    ------
    ValueError
        If it is neither a calendar nor a mail with one.
    """
    if b"BEGIN:VCALENDAR" in data[:4096].upper().lstrip(b"\xef\xbb\xbf \r\n\t")[:64]:
        return [Received(one, None, "file", name) for one in read_calendar(data, name)]
    mailed = read_mail(data)
    if not mailed:
        raise Refused(f"{name} is neither a calendar nor a mail with an invitation.")
    return [Received(_weighed(one.object, one.importance), one.received, "mail", one.message_id) for one in mailed]


def _weighed(found: CalendarObject, importance: int) -> CalendarObject:
    """The importance of a mail counts where the invitation itself states none."""
    meetings = tuple(replace(one, priority=one.priority or importance) for one in found.meetings)
    return replace(found, meetings=meetings)
