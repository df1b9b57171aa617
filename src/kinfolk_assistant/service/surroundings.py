"""What stands around a request: the day it asks for, what it overlaps, who else is invited, what has changed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from sqlalchemy.orm import Session

from kinfolk_assistant.features.row import coming_spans
from kinfolk_assistant.ledger.requests import own_request, versions
from kinfolk_assistant.ledger.tables import Request, User
from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.meeting import Meeting
from kinfolk_assistant.service.standing import meeting_of, past_of
from kinfolk_assistant.service.today import owner_of

MOST_SHOWN = 30
_MOST_DESCRIPTION = 2000
_OFTEN = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
# Where people meet on a screen: the services that invitations name most, by their hosts.
_JOIN = re.compile(
    r"https://(?:[\w.-]+\.)?(?:zoom\.us|teams\.microsoft\.com|teams\.live\.com|meet\.google\.com|meet\.jit\.si|webex\.com"
    r"|whereby\.com|gotomeeting\.com|bbb\.[\w.-]+|bigbluebutton\.[\w.-]+)/[^\s<>\"']{1,400}",
    re.IGNORECASE,
)


class Engagement(NamedTuple):
    """Something of the day that a request asks for."""

    summary: str
    start: datetime
    end: datetime
    overlaps: bool
    is_this: bool = False


class Guest(NamedTuple):
    """Somebody else who is invited."""

    name: str
    answer: str
    optional: bool


class Around(NamedTuple):
    """What stands around a request."""

    description: str
    join: str
    """The address of a meeting service that the invitation names; "" where there is none."""
    repeats: str
    """How a series repeats, in words; "" where it does not."""
    guests: list[Guest]
    n_guests: int
    day: list[Engagement]
    calendar_known: bool
    changes: list[str]
    """What is otherwise than in the version before."""


def around(session: Session, user: User, request_id: int, now: datetime) -> Around:
    """Give what stands around one of the user's requests."""
    request = own_request(session, user.address, request_id)
    meeting = meeting_of(request)
    if meeting is None:
        return Around("", "", "", [], 0, [], False, [])
    others = [one for one in meeting.attendees if one.address not in (user.address, meeting.organiser)]
    guests = [Guest(one.name or one.address, one.answer, one.role == "OPT-PARTICIPANT") for one in others]
    joined = _JOIN.search(f"{meeting.location}\n{meeting.description}")
    return Around(
        meeting.description[:_MOST_DESCRIPTION],
        joined[0].rstrip(").,;") if joined else "",
        _repeats(meeting),
        guests[:MOST_SHOWN],
        len(guests),
        _day(session, user, request, meeting, now),
        user.calendar_read_at is not None,
        _changes(session, user, request, meeting),
    )


def _day(session: Session, user: User, request: Request, meeting: Meeting, now: datetime) -> list[Engagement]:
    """Give the day of the meeting, of a series that of its next occurrence, with the meeting itself in its place."""
    zone = known_zone(user.zone)
    start, end = coming_spans(meeting, owner_of(user), now)[0]
    begin = datetime.combine(start.astimezone(zone).date(), time(), zone).astimezone(UTC)
    close = max(end, begin + timedelta(days=1))
    standing = past_of(session, user, request, until=close).at(now)
    found = standing.between(begin, close, without=meeting).all()
    taken = [
        Engagement(one.meeting.summary, one.start, one.end, one.start < end and one.end > start)
        for one in found
        if not one.given_up
    ]
    return sorted(
        [*taken[:MOST_SHOWN], Engagement(request.summary, start, end, False, True)], key=lambda one: one.start
    )


def _repeats(meeting: Meeting) -> str:
    """Say how often a series repeats, as far as a few words do."""
    if not meeting.repeats:
        return "one occurrence of a series" if meeting.recurrence_id else ""
    parts = dict(part.split("=", 1) for part in meeting.repeats.upper().split(";") if "=" in part)
    unit = _OFTEN.get(parts.get("FREQ", ""))
    if unit is None:
        return "on several dates"
    every = parts.get("INTERVAL", "1")
    words = f"every {unit}" if every == "1" else f"every {every} {unit}s"
    return f"{words}, {parts['COUNT']} times" if parts.get("COUNT", "").isdigit() else words


def _changes(session: Session, user: User, request: Request, meeting: Meeting) -> list[str]:
    """Say what an update has changed beside the version before it."""
    earlier = [
        one
        for one in versions(session, user.address, request.uid, request.recurrence_id)
        if one.sequence < request.sequence
    ]
    before = meeting_of(earlier[-1]) if earlier else None
    if before is None:
        return []
    zone = known_zone(user.zone)
    changed = []
    if meeting.span(zone) != before.span(zone):
        old, _ = (moment.astimezone(zone) for moment in before.span(zone))
        length = before.span(zone)[1] - before.span(zone)[0]
        changed.append(f"It was at {old:%H:%M} on {old:%d.%m.%Y} for {int(length.total_seconds()) // 60} minutes.")
    if meeting.location != before.location:
        changed.append(f"It was at {before.location or 'no place'}.")
    if meeting.summary != before.summary:
        changed.append(f"It was called “{before.summary}”.")
    came, gone = (
        {one.address for one in a.attendees} - {one.address for one in b.attendees}
        for a, b in ((meeting, before), (before, meeting))
    )
    if came:
        changed.append(f"Invited in addition: {', '.join(sorted(came)[:5])}{' and others' if len(came) > 5 else ''}.")
    if gone:
        changed.append(f"No longer invited: {', '.join(sorted(gone)[:5])}{' and others' if len(gone) > 5 else ''}.")
    if meeting.repeats != before.repeats:
        changed.append("It repeats otherwise than before.")
    return changed
