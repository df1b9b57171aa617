"""What is seen of a user's calendar: kept, refreshed, gone; and the answers that the user gave in it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.deeds import ask_for_training, tell
from kinfolk_assistant.ledger.requests import LEFT, replies
from kinfolk_assistant.ledger.tables import Entry, Request, User
from kinfolk_assistant.ledger.users import lock_user
from kinfolk_assistant.meeting import CalendarObject, Meeting
from kinfolk_assistant.service.intake import MAX_UID, as_stored
from kinfolk_assistant.service.withdrawing import withdraw_unsent

_LABELS = {"ACCEPTED": "accept", "DECLINED": "decline"}


class Kept(NamedTuple):
    """An object of a user's calendar, and what its server calls it and this state of it."""

    object: CalendarObject
    href: str = ""
    etag: str = ""


def take_calendar(session: Session, address: str, kept: Iterable[Kept], *, now: datetime, whole: bool) -> int:
    """Bring what is known of a user's calendar up to date; how many objects are new, changed or gone.

    With ``whole``, what is not among the objects is gone; it still counts for the days before. An answer that the
    user has given in another program shows in the calendar: it is the user's hand like any other.
    """
    user = lock_user(session, address)
    known = {entry.uid: entry for entry in session.scalars(select(Entry).where(Entry.user == user.address))}
    asked: dict[str, list[Request]] = {}
    waiting = select(Request).where(
        Request.user == user.address, Request.state.in_(["open", "answered"]), Request.source != "history"
    )
    for request in session.scalars(waiting):
        asked.setdefault(request.uid, []).append(request)
    found: set[str] = set()
    changes = 0
    for object_, href, etag in kept:
        if not object_.meetings or len(object_.meetings[0].uid) > MAX_UID:
            continue
        uid, text = as_stored(object_.meetings[0].uid), as_stored(object_.text)
        found.add(uid)
        entry = known.get(uid)
        if entry is None:
            known[uid] = entry = Entry(user=user.address, uid=uid, text="", seen_at=now)
            session.add(entry)
        entry.href, entry.etag = href, etag
        if entry.text != text or entry.gone_at is not None:
            entry.text, entry.seen_at, entry.gone_at = text, now, None
            changes += 1
        for meeting in object_.meetings:
            _follow_answer(session, user, asked.get(uid, []), meeting, now)
    for uid, entry in known.items():
        if whole and uid not in found and entry.gone_at is None:
            entry.gone_at = now
            changes += 1
    return changes


def _follow_answer(session: Session, user: User, asked: list[Request], meeting: Meeting, now: datetime) -> None:
    """Take over what the user has answered elsewhere.

    What the assistant has sent comes back in the calendar just so, and is no label: only an answer that it never gave
    can be the user's.
    """
    answer = meeting.answer_of(user.address)
    if answer not in _LABELS:
        return
    for request in asked:
        if request.recurrence_id != meeting.recurrence_id or request.sequence > meeting.sequence:
            continue
        given = any(one.answer == answer and one.state in LEFT for one in replies(session, request.id))
        if given or request.label == _LABELS[answer]:
            continue
        request.state, request.label = "answered", _LABELS[answer]
        withdraw_unsent(session, request, now, "you answered it elsewhere")
        text = f"You answered “{request.summary}” in your calendar: {_LABELS[answer]}."
        tell(session, user.address, now, "user", "answered", text, request)
        ask_for_training(session, now, "label")
