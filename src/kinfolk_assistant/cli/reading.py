"""A file that may be a mail or a calendar, as the messages in it."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.bounds import Refused
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.mail import MAX_MAIL_BYTES, read_mail
from kinfolk_assistant.reading.origin import Origin


class Received(NamedTuple):
    """One message: what it says, when it came or says it was sent (None: not told), "mail" or "file", its name there,
    who sent it, and when the user's own server took it (None: not told).
    """

    object: CalendarObject
    received: datetime | None
    source: str
    reference: str
    sender: str = ""
    arrived: datetime | None = None
    origin: Origin | None = None


def read_messages(path: Path) -> list[Received]:
    """Read what a file holds, or standard input where the path is ``-``.

    Raises
    ------
    ValueError
        If it is neither a calendar nor a mail with one.
    """
    name = "standard input" if str(path) == "-" else path.name
    # No more than is ever used, however much there is.
    if str(path) == "-":
        data = sys.stdin.buffer.read(MAX_MAIL_BYTES + 1)
    else:
        with path.open("rb") as file:
            data = file.read(MAX_MAIL_BYTES + 1)
    if b"BEGIN:VCALENDAR" in data[:4096].upper().lstrip(b"\xef\xbb\xbf \r\n\t")[:64]:
        return [Received(one, None, "file", name) for one in read_calendar(data, name)]
    try:
        mailed = read_mail(data)
    except Refused as refusal:
        raise Refused(f"{name} is not a calendar, and as a mail it is of no use: {refusal}") from None
    return [
        Received(one.object, one.received, "mail", one.message_id, one.sender, one.arrived, one.origin)
        for one in mailed
    ]
