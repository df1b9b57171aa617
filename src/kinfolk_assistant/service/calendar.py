"""What is seen of a user's calendar: kept, refreshed, gone; and the answers that the user gave in it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk_assistant.delivery.online.service import NAMES
from kinfolk_assistant.ledger.calendar_read import mark_read
from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.tables import Entry, Request
from kinfolk_assistant.ledger.users import aliases_of, known_zone, lock_user
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.aliases import under_main_address
from kinfolk_assistant.reading.occurrences import times_of
from kinfolk_assistant.service.elsewhere import answers_in, follow
from kinfolk_assistant.service.intake import MAX_UID, as_stored
from kinfolk_assistant.service.withdrawing import withdraw_unsent

GONE = "it is no longer in your calendar: its organiser has called it off, or you have removed it"


class Kept(NamedTuple):
    """An object of a user's calendar, and what its server calls it and this state of it."""

    object: CalendarObject
    href: str = ""
    etag: str = ""


def take_calendar(
    session: Session, address: str, kept: Iterable[Kept], *, now: datetime, whole: bool, read: bool
) -> int:
    """Bring what is known of a user's calendar up to date; how many objects are new, changed or gone.

    With ``whole``, what is not among the objects is gone; it still counts for the days before. With ``read`` besides,
    nothing of the calendar was left unread, so that it may decide. An answer that the
    user has given in another program shows in the calendar: it is the user's hand like any other.
    """
    user = lock_user(session, address)
    if whole and read:
        mark_read(user, now)
    known = {entry.uid: entry for entry in session.scalars(select(Entry).where(Entry.user == user.address))}
    asked: dict[str, list[Request]] = {}
    waiting = select(Request).where(
        Request.user == user.address, Request.state.in_(["open", "answered"]), Request.source != "history"
    )
    for request in session.scalars(waiting):
        asked.setdefault(request.uid, []).append(request)
    found: set[str] = set()
    changes = 0
    others = aliases_of(session, user.address)
    for given, href, etag in kept:
        object_ = under_main_address(given, user.address, others)[0] if others else given
        if not object_.meetings or len(object_.meetings[0].uid) > MAX_UID:
            continue
        uid, text = as_stored(object_.meetings[0].uid), as_stored(object_.text)
        found.add(uid)
        entry = known.get(uid)
        if entry is None:
            known[uid] = entry = Entry(user=user.address, uid=uid, text="", seen_at=now)
            session.add(entry)
        entry.href, entry.etag = href, etag
        if entry.starts_at is None or entry.text != text:
            entry.starts_at, entry.ends_at, entry.recurs = times_of(object_, known_zone(user.zone))
        if entry.text != text and uid in asked:
            before = answers_in(entry.text, user.address)
            for meeting in object_.meetings:
                follow(session, user.address, asked[uid], meeting, before, now)
        if entry.text != text or entry.gone_at is not None:
            entry.text, entry.seen_at, entry.gone_at = text, now, None
            changes += 1
    for uid, entry in known.items():
        if whole and uid not in found and entry.gone_at is None:
            entry.gone_at = now
            changes += 1
            _let_go(session, asked.get(uid, []), now)
    return changes


def _let_go(session: Session, requests: Iterable[Request], now: datetime) -> None:
    """Ask no more about what is gone from an online calendar, where an invitation and its entry are one thing."""
    for request in requests:
        if request.state == "open" and request.source in NAMES:
            withdraw_unsent(session, request, now, GONE)
            request.state = "cancelled"
            tell(session, request.user, now, "organiser", "cancelled", f"“{request.summary}”: {GONE}.", request)
