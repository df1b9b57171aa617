"""Invitations in mail (RFC 6047): every text/calendar part and every .ics attachment, with Python's email package."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from icalendar.prop import vInt

from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.bounds import INVITATION, WHOLE_CALENDAR, Refused
from kinfolk_assistant.reading.calendars import METHODS, read_calendar
from kinfolk_assistant.reading.events import priority_of
from kinfolk_assistant.reading.origin import Origin, origin_of
from kinfolk_assistant.reading.parsing import parse, written

MAX_MAIL_BYTES = 25 * 2**20
_MAX_WORK = 1_000_000
_MAX_HEADER = 4000
_MAX_PARTS = 500
_MAX_CALENDARS = 5
_HEADER = re.compile(rb"^content-[a-z-]+[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE)
_MESSAGE_ID = re.compile(r"<[^<>\s]+>")
_BOUNDARY = re.compile(rb"boundary[ \t]*[*=]|message/", re.IGNORECASE)
# On the scale of PRIORITY (RFC 5545 3.8.1.9): 1 is highest, 9 lowest, 0 not said.
_IMPORTANCE = {"high": 1, "urgent": 1, "normal": 5, "low": 9, "non-urgent": 9, "1": 1, "2": 3, "3": 5, "4": 7, "5": 9}


class MailedObject(NamedTuple):
    """A calendar object and the mail it came in.

    Attributes
    ----------
    object
        What was read.
    received
        When the user's own server took the mail, or else when it says it was sent: for the past, where nothing better
        is known.
    arrived
        When the user's own server took the mail, by the topmost Received line; None where it has none. What a sender
        writes into Date is no evidence of that.
    origin
        Who sent it, and what servers found out about that.
    sender
        The address in From.
    message_id
        The Message-ID, with its angle brackets; "" where it is none.
    importance
        As PRIORITY: 1 highest, 9 lowest, 0 where the mail says nothing. It is the PRIORITY of every meeting that has
        none of its own, in ``object`` and in its text.
    """

    object: CalendarObject
    received: datetime | None
    sender: str
    message_id: str
    importance: int
    arrived: datetime | None = None
    origin: Origin = Origin()


def read_mail(data: bytes) -> list[MailedObject]:
    r"""Read the calendar objects of a mail message, each once.

    Raises
    ------
    Refused
        Where the message is too large or has no calendar that can be read.

    Examples
    --------
    >>> mail = b"From: Ann <ann@example.org>\nDate: Wed, 01 Jul 2026 10:00:00 +0200\n" + (
    ...     b"Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\n"
    ...     b"UID:1\nDTSTART:20260702T080000Z\nEND:VEVENT\nEND:VCALENDAR\n")
    >>> [one] = read_mail(mail)
    >>> one.sender, str(one.received), one.object.meetings[0].uid
    ('ann@example.org', '2026-07-01 08:00:00+00:00', '1')
    """
    message = _message(data)
    calendars = _calendars(message)
    if not calendars:
        raise Refused("the mail has no text/calendar part and no .ics attachment.")
    bounds = INVITATION._replace(work=INVITATION.work // len(calendars))
    found: dict[str, CalendarObject] = {}
    refusals: list[Refused] = []
    for content, method in calendars.items():
        try:
            objects = read_calendar(content, "the mail's calendar", bounds=bounds)
        except Refused as refusal:
            refusals.append(refusal)
            continue
        for one in objects:
            known = found.get(one.meetings[0].uid)
            if known is None or not known.method:
                found[one.meetings[0].uid] = one if one.method else replace(one, method=method)
    if not found:
        raise refusals[0]
    importance = _importance(message)
    arrived = _arrived(message)
    received = arrived or _moment(_header(message, "Date"))
    origin = origin_of(message)
    shared = (received, origin.sender, _message_id(message), importance, arrived, origin)
    return [MailedObject(_weighed(one, importance), *shared) for one in found.values()]


def _message(data: bytes) -> Message:
    """Parse a message that the parser cannot be kept busy with.

    Each line is compared with each boundary around it, and a long header of many parameters is read again for each.
    """
    if len(data) > MAX_MAIL_BYTES:
        raise Refused(f"the mail has {len(data)} bytes; at most {MAX_MAIL_BYTES} are read.")
    lines, boundaries = data.count(b"\n"), len(_BOUNDARY.findall(data))
    if lines * (2 + boundaries) > _MAX_WORK:
        raise Refused(f"the mail has {lines} lines in parts nested up to {boundaries} deep, too many to read.")
    if any(len(header[0]) > _MAX_HEADER for header in _HEADER.finditer(data)):
        raise Refused(f"the mail has a Content header of more than {_MAX_HEADER} bytes.")
    try:
        # The older policy: it reads only those headers that are asked for, and those plainly.
        return message_from_bytes(data, policy=policy.compat32)
    except Exception as error:  # whatever a stranger's bytes set off in the parser is a reason to refuse them
        raise Refused("the mail cannot be read as a message.") from error


def _calendars(message: Message) -> dict[bytes, str]:
    """The bytes of each calendar in UTF-8, once, with the METHOD that its part names."""
    found: dict[bytes, str] = {}
    for number, part in enumerate(message.walk()):
        if number >= _MAX_PARTS:
            raise Refused(f"the mail has more than {_MAX_PARTS} parts.")
        if part.is_multipart() or not _is_calendar(part):
            continue
        method = str(part.get_param("method") or "").upper()
        found.setdefault(_content(part), method if method in METHODS else "")
        if len(found) > _MAX_CALENDARS:
            raise Refused(f"the mail has more than {_MAX_CALENDARS} different calendars.")
    return found


def _is_calendar(part: Message) -> bool:
    return part.get_content_type() in ("text/calendar", "application/ics") or str(
        part.get_filename("")
    ).lower().endswith(".ics")


def _content(part: Message) -> bytes:
    raw = part.get_payload(decode=True)
    raw = raw.strip() if isinstance(raw, bytes) else b""
    try:
        return raw.decode(part.get_content_charset("utf-8")).encode()
    except (LookupError, ValueError):
        return raw


def _header(message: Message, name: str) -> str:
    return " ".join(str(message.get(name, ""))[:1000].split())


def _message_id(message: Message) -> str:
    found = _MESSAGE_ID.fullmatch(_header(message, "Message-ID"))
    return found[0] if found else ""


def _arrived(message: Message) -> datetime | None:
    hops = [str(one)[-200:].rpartition(";")[2] for one in message.get_all("Received", [])[:1]]
    return next(filter(None, map(_moment, hops)), None)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _weighed(one: CalendarObject, importance: int) -> CalendarObject:
    """Give a calendar object whose meetings have a PRIORITY, written into the text too, which is what is kept."""
    if not importance or all(meeting.priority for meeting in one.meetings):
        return one
    calendars = parse(one.text, "the mail's calendar", WHOLE_CALENDAR)
    for event in (event for calendar in calendars for event in calendar.walk("VEVENT")):
        if not priority_of(event):
            event["PRIORITY"] = vInt(importance)
    text = written(calendars, "the mail's calendar")
    meetings = tuple(replace(meeting, priority=meeting.priority or importance) for meeting in one.meetings)
    return CalendarObject(one.method, meetings, text)


def _importance(message: Message) -> int:
    for name in ("Importance", "X-Priority", "Priority"):
        first = _header(message, name).lower().split(" ")[0]
        if first in _IMPORTANCE:
            return _IMPORTANCE[first]
    return 0
