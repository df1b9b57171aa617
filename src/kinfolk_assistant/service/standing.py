"""The calendar that a request is held against: what was seen on the server, and every meeting that was accepted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Select, and_, or_, select
from sqlalchemy.orm import Session

from kinfolk_assistant.features.past import Past, SeenObject
from kinfolk_assistant.ledger.requests import latest_reply_id
from kinfolk_assistant.ledger.tables import Cancellation, Entry, Reply, Request, User
from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.meeting import CalendarObject, Meeting
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.reply import with_answer

# How far the features look: back from a meeting for others like what it overlaps, back from the request for when the
# two last met, and to both sides for what it borders; of a meeting that goes on for long only its first month counts.
_LATELY = timedelta(weeks=9)
_RECENTLY = timedelta(weeks=8, days=2)
_BESIDE = timedelta(days=2)
_LONGEST = timedelta(days=31)
_MOST_WAITING = 60


class Told(NamedTuple):
    """What became of a request: whether it takes the user's time, and when that came about."""

    request: Request
    stands: bool
    at: datetime


def past_of(session: Session, user: User, request: Request, until: datetime | None = None) -> Past:
    """Give the calendar as it is to be looked at for a request, or on to a moment that lies further ahead.

    A meeting that was accepted, though its answer has not even left, counts as standing when the request came, and so
    does one that came before it and is not answered yet: requests are handled in the order they came, so that two for
    one slot never both find it free. No version or occurrence of the requested meeting itself stands in its way.
    """
    start, end = _window(request)
    window = start, max(end, until or end)
    entry_of = {entry.uid: entry for entry in session.scalars(_entries_near(user.address, request, window))}
    near = _requests_near(session, user.address, request, window)
    called_off = _called_off(session, user.address, {one.uid for one, _, _ in near})
    told = _told(near, called_off)
    # What the assistant knows of a meeting counts against its entry wherever that one says that it is.
    missing = [uid for uid in told if uid not in entry_of]
    for first in range(0, len(missing), 500):
        query = select(Entry).where(Entry.user == user.address, Entry.uid.in_(missing[first : first + 500]))
        entry_of |= {entry.uid: entry for entry in session.scalars(query)}
    seen: list[SeenObject] = []
    for uid, entry in entry_of.items():
        # The calendar tells what happened last, unless the assistant knows of something later.
        if uid in told and max(one.at for one in told[uid]) > max(entry.seen_at, entry.gone_at or entry.seen_at):
            continue
        since = entry.seen_at
        if any(one.stands for one in told.pop(uid, ())):
            since = min(since, request.received_at)
        seen += [SeenObject(one, since, entry.gone_at, None) for one in parsed(entry.text)]
    for uid, answered in told.items():
        apart = {one.request.recurrence_id for one in answered} | called_off.get(uid, {}).keys()
        for one in answered:
            stands = _stands(one.request, user.address, frozenset(apart - {""})) if one.stands else None
            if stands is not None:
                since = min(one.request.received_at, request.received_at)
                seen.append(SeenObject(stands, since, None, since))
    return Past(seen, user.address, known_zone(user.zone))


@lru_cache(maxsize=8192)
def parsed(text: str) -> tuple[CalendarObject, ...]:
    """Read stored text, each only once while it is in use; nothing where it cannot be read any more."""
    try:
        # It was read before, within the bounds of what it came from; these are the widest of them.
        return tuple(read_calendar(text.encode(), bounds=WHOLE_CALENDAR))
    except ValueError:
        return ()


def meeting_of(request: Request) -> Meeting | None:
    """Give the event that a request is about, read from its text."""
    for one in parsed(request.text):
        for meeting in one.meetings:
            if (meeting.uid, meeting.recurrence_id) == (request.uid, request.recurrence_id):
                return meeting
    return None


def _window(request: Request) -> tuple[datetime, datetime]:
    """Give the time that the features of a request look at: see `kinfolk_assistant.features.calendar_rules`."""
    return min(request.starts_at - _LATELY, request.received_at - _RECENTLY), max(
        min(request.ends_at, request.starts_at + _LONGEST) + _BESIDE, request.received_at
    )


def _entries_near(user: str, request: Request, window: tuple[datetime, datetime]) -> Select[Entry]:
    start, end = window
    near = and_(Entry.ends_at > start, Entry.starts_at < end)
    query = select(Entry).where(Entry.user == user, Entry.uid != request.uid)
    return query.where(or_(near, Entry.recurs.is_not(False)))


def _requests_near(
    session: Session, user: str, asked: Request, window: tuple[datetime, datetime]
) -> list[tuple[Request, str | None, datetime | None]]:
    """Give the user's other requests of some time, and all series; of those that are open, only what came earlier.

    Whoever floods a user with requests must not make every decision dear: of those that nobody has answered so many of
    the very days are looked at, and so many of the weeks around them; a day that so many ask for is full anyway.
    """
    start, end = window
    earlier = or_(
        Request.received_at < asked.received_at, and_(Request.received_at == asked.received_at, Request.id < asked.id)
    )
    mine = (Request.user == user, Request.uid != asked.uid, Request.source != "history")
    near = and_(Request.ends_at > start, Request.starts_at < end)
    settled = (
        select(Request, Reply.answer, Reply.made_at)
        .outerjoin(Reply, Reply.id == latest_reply_id())
        .where(*mine, Request.state.in_(["answered", "cancelled"]), or_(near, Request.recurs.is_not(False)))
    )
    found: dict[int, tuple[Request, str | None, datetime | None]] = {
        request.id: (request, answer, made_at) for request, answer, made_at in session.execute(settled)
    }
    waiting = select(Request).where(*mine, Request.state == "open", earlier).limit(_MOST_WAITING)
    close, until = asked.starts_at - _BESIDE, min(asked.ends_at, asked.starts_at + _LONGEST) + _BESIDE
    beside = waiting.where(Request.ends_at > close, Request.starts_at < until, Request.recurs.is_(False))
    around = waiting.where(near, Request.recurs.is_(False))
    series = waiting.where(Request.recurs.is_not(False))
    for query in (beside, around, series):
        found |= {request.id: (request, None, None) for request in session.scalars(query)}
    return sorted(found.values(), key=lambda one: (one[0].received_at, one[0].id))


def _told(
    near: list[tuple[Request, str | None, datetime | None]], called_off: dict[str, dict[str, datetime]]
) -> dict[str, list[Told]]:
    """Give what became of requests, by UID."""
    told: dict[str, list[Told]] = {}
    for request, answer, made_at in near:
        yes = request.label == "accept" if request.label is not None else answer in ("ACCEPTED", "TENTATIVE")
        stands = request.state == "open" or (yes and request.state == "answered")
        at = max(made_at or request.received_at, *called_off.get(request.uid, {}).values(), request.received_at)
        told.setdefault(request.uid, []).append(Told(request, stands, at))
    return told


def _called_off(session: Session, user: str, uids: Collection[str]) -> dict[str, dict[str, datetime]]:
    """Give what was called off of some meetings, by UID and occurrence, and when."""
    found: dict[str, dict[str, datetime]] = {}
    asked = sorted(uids)
    for first in range(0, len(asked), 500):
        query = select(Cancellation.uid, Cancellation.recurrence_id, Cancellation.received_at)
        query = query.where(Cancellation.user == user, Cancellation.uid.in_(asked[first : first + 500]))
        for uid, recurrence_id, at in session.execute(query):
            found.setdefault(uid, {})[recurrence_id] = at
    return found


def _stands(request: Request, user: str, apart: frozenset[str]) -> CalendarObject | None:
    """Give a meeting as an object of the calendar; a series without the occurrences that are told apart.

    What the request itself says of the user's answer does not count: it may be that to an earlier version.
    """
    meeting = meeting_of(request)
    if meeting is None:
        return None
    if request.recurrence_id or not meeting.repeats:
        # It stands by itself: an occurrence that was moved is a single engagement.
        others = tuple(one for one in meeting.attendees if one.address != user)
        return CalendarObject("", (replace(meeting, recurrence_id="", attendees=others),), "")
    return _series_without(request.text, request.uid, user, apart)


@lru_cache(maxsize=1024)
def _series_without(text: str, uid: str, user: str, apart: frozenset[str]) -> CalendarObject | None:
    text = with_answer(text, uid, "", user, "ACCEPTED")
    for recurrence_id in sorted(apart):
        try:
            text = with_answer(text, uid, recurrence_id, user, "DECLINED")
        except ValueError:
            # Told apart by a time that is not one of the series: there is nothing to leave out.
            continue
    return next((one for one in parsed(text) if one.meetings[0].uid == uid), None)
