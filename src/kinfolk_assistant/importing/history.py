"""The past of a calendar becomes rows to learn from: each invitation with its fifteen features and its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk_assistant.features.past import Past, SeenObject
from kinfolk_assistant.features.people import People
from kinfolk_assistant.features.row import FeatureRow, Owner, feature_row, without_calendar
from kinfolk_assistant.features.rules import ALL_FEATURES
from kinfolk_assistant.importing.report import ImportReport
from kinfolk_assistant.importing.versions import Thread, Version, export_stamps, gather, seen_objects, versions
from kinfolk_assistant.ledger.calendar_read import mark_read
from kinfolk_assistant.ledger.deeds import ask_for_training, tell
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Entry, Request
from kinfolk_assistant.ledger.users import aliases_of, find_user, known_zone, lock_user
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.aliases import under_main_address
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR, Refused
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.mail import MailedObject
from kinfolk_assistant.reading.occurrences import times_of

ARRIVAL_UNKNOWN = "it is not known when the invitation came"
NO_CALENDAR = "no calendar was imported, so it is not known what stood in it"

# What these tell hangs on when the invitation came, and on how the calendar stood then.
DATED_FEATURES = (
    "invitee_recent",
    "invitee_soon",
    "busy_fday",
    "busy_hday",
    "free_slot_time",
    "conflict",
    "conflict_importance",
    "conflict_frequency",
    "location",
    "acquaintance",
)
_MAX_LINE = 1000
_MAX_UID = 1000


class Row(NamedTuple):
    """A past invitation on its way into the ledger."""

    version: Version
    received_at: datetime
    starts_at: datetime
    ends_at: datetime
    features: FeatureRow


def import_history(
    ledger: Ledger, user: str, objects: Iterable[CalendarObject | MailedObject], people: People, *, now: datetime
) -> ImportReport:
    """Import what a calendar and its mails tell of the past.

    An invitation is an event with an organiser who is not the user, and the user among those invited. Each of its
    versions is a row; a series is one row, as its first occurrence, and so is each of its occurrences that was
    answered apart. Invitations that are neither answered nor past are left for the assistant. Importing again adds
    nothing and refreshes what has changed; nothing is ever taken away by an import, which may be of one calendar out
    of several.

    Parameters
    ----------
    ledger : Ledger
        Where rows and calendar entries are kept.
    user : str
        Address of a user of the ledger.
    objects : iterable of CalendarObject or MailedObject
        The calendar's objects (no METHOD, or PUBLISH); with them, in any order, requests, replies and cancellations,
        which tell of earlier versions and of exact times. Hand over together what belongs together.
    people : People
        The user's people-and-topics table.
    now : datetime
        The time of the import.

    Returns
    -------
    ImportReport
        What was found, and what could not be known.

    Raises
    ------
    NotYours
        If there is no such user.
    ValueError
        If `now` has no time zone.

    Notes
    -----
    When an invitation came is told by the mail that brought it; else by DTSTAMP of its REQUEST; else by CREATED of
    the calendar's entry, for a first version; else, where there is no CREATED, by the entry's DTSTAMP, unless that is
    after the meeting or was put on several entries at once, as exports do. Where nothing tells it, `DATED_FEATURES`
    are missing and the row is filed under the meeting's start.
    """
    if now.tzinfo is None:
        raise ValueError(f"The import is at {now}, but that needs a time zone.")
    with ledger.read() as session:
        found = find_user(session, user)
        has_calendar = found.calendar_read_at is not None
        zone = known_zone(found.zone)
        owner = Owner(found.address, zone, tuple(place for place in found.places.splitlines() if place.strip()))
        threads = gather(_under_main_address(objects, owner.address, aliases_of(session, owner.address)), owner.address)
        known = [SeenObject(one) for one in _entries_besides(session, owner.address, threads)]
    threads = {uid: thread for uid, thread in threads.items() if len(uid) <= _MAX_UID}
    exported = export_stamps(threads.values())
    by_thread = {uid: versions(thread, owner.address, zone, exported, now) for uid, thread in threads.items()}
    for uid, thread in threads.items():
        known += seen_objects(thread, owner.address, by_thread[uid])
    past = Past(known, owner.address, zone)
    has_calendar = has_calendar or any(thread.stored is not None for thread in threads.values())
    everything = [one for of_thread in by_thread.values() for one in of_thread]
    rows = [
        _row(one, owner, past if has_calendar else None, people, now) for one in everything if _is_past(one, owner, now)
    ]
    rows.sort(key=lambda row: (row.received_at, row.version.meeting.uid, row.version.meeting.recurrence_id))

    with ledger.begin() as session:
        locked = lock_user(session, owner.address)
        added, refreshed, live = _keep_rows(session, owner.address, rows)
        entries = _keep_entries(session, owner.address, threads, zone, now)
        if entries:
            mark_read(locked, now)
        if added or refreshed:
            told = f"{len(rows)} past invitations imported, {added} of them new."
            tell(session, owner.address, now, "user", "import", told)
            ask_for_training(session, now, "import")
    still_open = len(everything) - len(rows)
    return _report(
        owner.address, rows, added=added, refreshed=refreshed, live=live, still_open=still_open, entries=entries
    )


def _under_main_address(
    objects: Iterable[CalendarObject | MailedObject], main: str, others: list[str]
) -> Iterable[CalendarObject | MailedObject]:
    for one in objects:
        if isinstance(one, MailedObject):
            yield one._replace(object=under_main_address(one.object, main, others)[0]) if others else one
        else:
            yield under_main_address(one, main, others)[0] if others else one


def _entries_besides(session: Session, user: str, threads: dict[str, Thread]) -> list[CalendarObject]:
    """Objects of the calendar that an earlier import or the server told of; they stood in the way too."""
    found = []
    for entry in session.scalars(select(Entry).where(Entry.user == user, Entry.gone_at.is_(None))):
        thread = threads.get(entry.uid)
        if thread is None or thread.stored is None:
            try:
                [one, *_] = read_calendar(entry.text.encode(), bounds=WHOLE_CALENDAR)
            except Refused:
                continue
            if thread is None:
                found.append(one)
            else:
                thread.stored = one
    return found


def _is_past(version: Version, owner: Owner, now: datetime) -> bool:
    if version.answered or version.state != "answered":
        return True
    return version.meeting.span(owner.zone)[1] <= now


def _row(version: Version, owner: Owner, past: Past | None, people: People, now: datetime) -> Row:
    start, end = version.meeting.span(owner.zone)
    when = version.received or min(start, now)
    seen = Past([], owner.address, owner.zone) if past is None else past
    row = feature_row(version.meeting, owner, seen, people, when)
    values, unknown = without_calendar(row, NO_CALENDAR) if past is None else row
    if version.received is None:
        values = values | dict.fromkeys(DATED_FEATURES)
        unknown = unknown | dict.fromkeys(DATED_FEATURES, ARRIVAL_UNKNOWN)
    return Row(version, when, start, end, FeatureRow(values, unknown))


def _keep_rows(session: Session, user: str, rows: list[Row]) -> tuple[int, int, int]:
    """Add and refresh rows; how many were new, how many changed, how many are the assistant's own."""
    query = select(Request).where(Request.user == user)
    known = {(one.uid, one.recurrence_id, one.sequence): one for one in session.scalars(query)}
    added = refreshed = live = 0
    for row in rows:
        meeting = row.version.meeting
        fields = _fields(row)
        key = fields["uid"], meeting.recurrence_id, meeting.sequence
        before = known.get(key)
        if before is None:
            known[key] = Request(user=user, source="history", **fields)
            session.add(known[key])
            added += 1
        elif before.source != "history":
            live += 1
        else:
            if before.source_ref and not row.version.ref:
                # A message told of it before, and more exactly: of a calendar alone only the answer may be news.
                fields = {name: fields[name] for name in ("label", "state") if fields[name]}
            elif row.version.received is None:
                # It stays where it was filed, for that hangs on when it was first imported.
                del fields["received_at"]
            changed = {name: value for name, value in fields.items() if getattr(before, name) != value}
            for name, value in changed.items():
                setattr(before, name, value)
            refreshed += bool(changed)
    return added, refreshed, live


def _fields(row: Row) -> dict[str, Any]:
    version = row.version
    meeting = version.meeting
    return {
        "uid": _text(meeting.uid),
        "recurrence_id": meeting.recurrence_id,
        "sequence": meeting.sequence,
        "stamp": meeting.stamp,
        "received_at": row.received_at,
        "organiser": _text(meeting.organiser)[:_MAX_LINE],
        "organiser_name": _text(meeting.organiser_name)[:_MAX_LINE],
        "summary": _text(meeting.summary)[:_MAX_LINE],
        "location": _text(meeting.location)[:_MAX_LINE],
        "starts_at": row.starts_at,
        "ends_at": row.ends_at,
        "all_day": meeting.all_day,
        "text": _text(version.text),
        "source_ref": _text(version.ref)[:_MAX_LINE],
        "state": version.state,
        "features": row.features.values,
        "unknown": row.features.unknown,
        "label": version.label,
    }


def _keep_entries(session: Session, user: str, threads: dict[str, Thread], zone: ZoneInfo, now: datetime) -> int:
    """Store the calendar's objects as they are now; how many there are."""
    known = {one.uid: one for one in session.scalars(select(Entry).where(Entry.user == user))}
    stored = {_text(uid): thread.stored for uid, thread in threads.items() if thread.stored is not None}
    for uid, one in stored.items():
        entry, text = known.get(uid), _text(one.text)
        if entry is None:
            entry = Entry(user=user, uid=uid, text=text, seen_at=now)
            session.add(entry)
        elif entry.text != text or entry.gone_at is not None:
            entry.text, entry.seen_at, entry.gone_at = text, now, None
        entry.starts_at, entry.ends_at, entry.recurs = times_of(one, zone)
    return len(stored)


def _report(user: str, rows: list[Row], **counts: int) -> ImportReport:
    labels = Counter(row.version.label for row in rows)
    unknown = {
        name: dict(Counter(row.features.unknown[name] for row in rows if name in row.features.unknown))
        for name in ALL_FEATURES
    }
    return ImportReport(
        user,
        rows=len(rows),
        accepts=labels["accept"],
        declines=labels["decline"],
        unlabelled=labels[None],
        arrivals=dict(Counter(row.version.arrival for row in rows)),
        unknown={name: reasons for name, reasons in unknown.items() if reasons},
        **counts,
    )


def _text(text: str) -> str:
    """What both databases can keep: no NUL, no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
