"""The calendar that a request is held against: what was seen on the server, and every meeting that was accepted."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from kinfolk_assistant.features.past import Past, SeenObject
from kinfolk_assistant.ledger.requests import latest_reply_id
from kinfolk_assistant.ledger.tables import Cancellation, Entry, Reply, Request, User
from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.meeting import CalendarObject, Meeting
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.reply import with_answer


class Told(NamedTuple):
    """What became of a request: whether it takes the user's time, and when that came about."""

    request: Request
    stands: bool
    at: datetime


def past_of(session: Session, user: User, request: Request) -> Past:
    """Give the calendar as it is to be looked at for a request.

    A meeting that was accepted, though its answer has not even left, counts as standing when the request came, and so
    does one that came before it and is not answered yet: requests are handled in the order they came, so that two for
    one slot never both find it free. No version or occurrence of the requested meeting itself stands in its way.
    """
    entries = select(Entry).where(Entry.user == user.address, Entry.uid != request.uid)
    entry_of = {entry.uid: entry for entry in session.scalars(entries)}
    called_off = _called_off(session, user.address)
    told = _told(session, user.address, request, called_off)
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


def _told(
    session: Session, user: str, asked: Request, called_off: dict[str, dict[str, datetime]]
) -> dict[str, list[Told]]:
    """Give what became of the user's other requests, by UID; of those that are open, only what came earlier counts."""
    earlier = or_(
        Request.received_at < asked.received_at, and_(Request.received_at == asked.received_at, Request.id < asked.id)
    )
    query = (
        select(Request, Reply.answer, Reply.made_at)
        .outerjoin(Reply, Reply.id == latest_reply_id())
        .where(
            Request.user == user,
            Request.uid != asked.uid,
            or_(Request.state.in_(["answered", "cancelled"]), and_(Request.state == "open", earlier)),
            Request.source != "history",
        )
        .order_by(Request.received_at, Request.id)
    )
    told: dict[str, list[Told]] = {}
    for request, answer, made_at in session.execute(query):
        yes = request.label == "accept" if request.label is not None else answer == "ACCEPTED"
        stands = request.state == "open" or (yes and request.state == "answered")
        at = max(made_at or request.received_at, *called_off.get(request.uid, {}).values(), request.received_at)
        told.setdefault(request.uid, []).append(Told(request, stands, at))
    return told


def _called_off(session: Session, user: str) -> dict[str, dict[str, datetime]]:
    """Give what was called off, by UID and occurrence, and when."""
    query = select(Cancellation.uid, Cancellation.recurrence_id, Cancellation.received_at)
    found: dict[str, dict[str, datetime]] = {}
    for uid, recurrence_id, at in session.execute(query.where(Cancellation.user == user)):
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
