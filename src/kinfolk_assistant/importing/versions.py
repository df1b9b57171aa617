"""Every version of every invitation that a calendar and its mails tell of: when it came, and how it was answered.

RFC 5546 numbers the versions of a meeting by SEQUENCE. A calendar keeps the last version alone; requests, replies and
cancellations, where they were kept, tell of the earlier ones and of exact times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from kinfolk_assistant.features.past import SeenObject
from kinfolk_assistant.meeting import Attendee, CalendarObject, Meeting
from kinfolk_assistant.reading.mail import MailedObject

LABELS = {"ACCEPTED": "accept", "DECLINED": "decline"}

# So many objects with one DTSTAMP were stamped by an export, not by their own history.
_EXPORTED_TOGETHER = 3
_NEVER = datetime.max.replace(tzinfo=UTC)


class Message(NamedTuple):
    """One event of a request, a reply or a cancellation, and when it was sent or came (None: not known)."""

    meeting: Meeting
    object: CalendarObject
    at: datetime | None
    how: str
    ref: str


@dataclass
class Thread:
    """All that is known of one UID: the calendar's object, and the messages about it."""

    stored: CalendarObject | None = None
    requests: list[Message] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)
    cancels: list[Message] = field(default_factory=list)


class Version(NamedTuple):
    """One version of one invitation to the user."""

    meeting: Meeting
    text: str
    received: datetime | None
    arrival: str  # how `received` is known: a key of `report.ARRIVALS`
    label: str | None  # "accept", "decline" or None
    answered: bool  # the user has said something, if only "perhaps"
    state: str  # as in the ledger: answered, cancelled or superseded
    ref: str


def gather(given: Iterable[CalendarObject | MailedObject], user: str) -> dict[str, Thread]:
    """Sort objects by their UID and by what they are; what is no event of the calendar or about it is left out.

    Examples
    --------
    >>> start = datetime(2026, 7, 1, 9, tzinfo=UTC)
    >>> one = Meeting("1", start, start.replace(hour=10), organiser="ann@x.example", stamp=start)
    >>> threads = gather([CalendarObject("", (one,), ""), CalendarObject("REQUEST", (one,), "")], "bob@x.example")
    >>> len(threads), threads["1"].stored is not None, len(threads["1"].requests)
    (1, True, 1)
    """
    threads: dict[str, Thread] = {}
    for item in given:
        found, at, ref, importance = item, None, "", 0
        if isinstance(item, MailedObject):
            found, at, ref, importance = item.object, item.received, item.message_id, item.importance
        assert isinstance(found, CalendarObject)
        if not found.meetings:
            continue
        thread = threads.setdefault(found.meetings[0].uid, Thread())
        method = found.method.upper()
        if method in ("", "PUBLISH"):
            thread.stored = found
            continue
        for meeting in found.meetings:
            # RFC 5545 3.8.7.2: for an object with a METHOD, DTSTAMP says when this very message was made.
            when, how = (at, "mail") if at else (meeting.stamp, "request" if meeting.stamp else "")
            if importance and not meeting.priority:
                meeting = replace(meeting, priority=importance)
            message = Message(meeting, found, when, how, ref or method)
            if method == "REQUEST":
                thread.requests.append(message)
            elif method == "REPLY" and meeting.answer_of(user):
                thread.replies.append(message)
            elif method == "CANCEL":
                thread.cancels.append(message)
    return threads


def export_stamps(threads: Iterable[Thread]) -> frozenset[datetime]:
    """Give the DTSTAMPs that say nothing of an object's own history because an export put them on many at once."""
    counts = Counter(
        stamp for one in threads if one.stored for stamp in {meeting.stamp for meeting in one.stored.meetings} if stamp
    )
    return frozenset(stamp for stamp, n in counts.items() if n >= _EXPORTED_TOGETHER)


def versions(thread: Thread, user: str, zone: ZoneInfo, exported: frozenset[datetime], now: datetime) -> list[Version]:
    """Give the versions of an invitation to the user, each once: of the series, and of occurrences answered apart.

    Parameters
    ----------
    thread : Thread
        What is known of one UID.
    user : str
        Address of the one invited.
    zone : ZoneInfo
        Where whole days and floating times are.
    exported : frozenset of datetime
        DTSTAMPs that are no evidence; see `export_stamps`.
    now : datetime
        Time of the import: nothing came later.
    """
    found: dict[tuple[str, int], Version] = {}
    for message in sorted(thread.requests, key=lambda one: (one.at or _NEVER, one.meeting.sequence)):
        if _invites(message.meeting, user):
            key = message.meeting.recurrence_id, message.meeting.sequence
            # Sent again without a new SEQUENCE, it is the same version, which came when it came first.
            first = found.get(key)
            at, how = (message.at, message.how) if first is None else (first.received, first.arrival)
            if at is not None and at > now:
                at, how = None, ""
            ref = message.ref if first is None else first.ref
            found[key] = Version(message.meeting, message.object.text, at, how, None, False, "answered", ref)
    if thread.stored is not None:
        master = next((one for one in thread.stored.meetings if not one.recurrence_id), None)
        for meeting in thread.stored.meetings:
            key = meeting.recurrence_id, meeting.sequence
            if meeting.cancelled:
                # RFC 5546 3.2.5: calling a meeting off has a SEQUENCE of its own, but is no invitation of its own.
                earlier = [
                    other for other in found if other[0] == meeting.recurrence_id and other[1] <= meeting.sequence
                ]
                key = max(earlier, default=key)
            if key in found:
                found[key] = _answered(found[key], meeting.answer_of(user))
            elif _invites(meeting, user) and not (meeting.recurrence_id and _follows(meeting, master, user)):
                at, how = _arrival(meeting, master, zone, exported, now)
                fresh = Version(meeting, thread.stored.text, at, how, None, False, "answered", "")
                found[key] = _answered(fresh, meeting.answer_of(user))
    for reply in sorted(thread.replies, key=lambda one: one.at or _NEVER):
        key = reply.meeting.recurrence_id, reply.meeting.sequence
        if key in found and (thread.stored is None or not found[key].label):
            found[key] = _answered(found[key], reply.meeting.answer_of(user))
    return [one._replace(state=_state(one, thread, found)) for one in found.values()]


def seen_objects(thread: Thread, user: str, of_thread: list[Version]) -> list[SeenObject]:
    """Give what the calendar held for one UID over time: each version from when it came to when it went.

    An invitation that the calendar no longer has, without a reply or a cancellation that says since when, was given
    up at a time that is not known.
    """
    stored = thread.stored
    dated = [one for one in of_thread if one.arrival in ("mail", "request") and not one.meeting.recurrence_id]
    if stored is not None and (not dated or len(stored.meetings) > 1):
        return [SeenObject(stored, answered_at=_declined_at(thread, stored.meetings[0], user))]
    if not dated:
        return []
    dated.sort(key=lambda one: one.meeting.sequence)
    seen = []
    for one, following in zip(dated, [*dated[1:], None], strict=True):
        ends = [_declined_at(thread, one.meeting, user) if one.label == "decline" else None]
        ends += [] if following is None else [following.received]
        ends += [
            cancel.at
            for cancel in thread.cancels
            if not cancel.meeting.recurrence_id and cancel.meeting.sequence >= one.meeting.sequence
        ]
        gone = min((end for end in ends if end is not None), default=None)
        now_there = stored.meetings[0] if following is None and stored is not None else None
        stands = now_there is not None and _stands(now_there, one, user)
        meeting = replace(one.meeting, created=one.received, cancelled=False)
        if gone is None and not stands:
            # This is how `Past` is told that something was given up, at the latest when the calendar last changed it.
            latest = now_there.stamp if now_there is not None else None
            meeting = replace(meeting, stamp=latest, attendees=(Attendee(user, answer="DECLINED"),))
        seen_at = None if gone is None and not stands else one.received
        seen.append(SeenObject(CalendarObject("", (meeting,), one.text), seen_at=seen_at, gone_at=gone))
    if stored is not None and _is_later(stored.meetings[0], dated[-1]):
        # A later version than any that a message tells of.
        seen.append(SeenObject(stored))
    return seen


def _is_later(meeting: Meeting, version: Version) -> bool:
    return meeting.sequence > version.meeting.sequence and not meeting.cancelled


def _stands(meeting: Meeting, version: Version, user: str) -> bool:
    """Whether the calendar has a version still, neither declined nor cancelled."""
    same = meeting.sequence == version.meeting.sequence
    return same and not meeting.cancelled and meeting.answer_of(user) != "DECLINED"


def _invites(meeting: Meeting, user: str) -> bool:
    return bool(meeting.organiser) and meeting.organiser != user and bool(meeting.answer_of(user))


def _follows(meeting: Meeting, master: Meeting | None, user: str) -> bool:
    """Whether an occurrence says nothing of its own: not answered, or as the series, at its own old time."""
    answer = meeting.answer_of(user)
    if answer not in LABELS:
        return True
    return master is not None and answer == master.answer_of(user) and meeting.sequence <= master.sequence


def _arrival(
    meeting: Meeting, master: Meeting | None, zone: ZoneInfo, exported: frozenset[datetime], now: datetime
) -> tuple[datetime | None, str]:
    """Tell when a version came by what the calendar says of it; CREATED and DTSTAMP count where they can be true."""
    latest = min(now, meeting.span(zone)[1])
    created, stamp = meeting.created, meeting.stamp
    first = 0
    if meeting.recurrence_id and master is not None:
        # Where CREATED is copied from the series, it says nothing of the occurrence.
        created, first = (None if created == master.created else created), master.sequence + 1
    if created is not None:
        # Of a later version CREATED tells only when the first one was made, and DTSTAMP may be that of the answer.
        return (created, "created") if meeting.sequence <= first and created <= latest else (None, "")
    if stamp is not None and stamp not in exported and stamp <= latest:
        return stamp, "stamp"
    return None, ""


def _answered(version: Version, answer: str) -> Version:
    if answer in ("", "NEEDS-ACTION"):
        return version
    return version._replace(label=LABELS.get(answer), answered=True)


def _declined_at(thread: Thread, meeting: Meeting, user: str) -> datetime | None:
    """When the user's reply declined a version; None where no reply tells."""
    return max(
        (
            one.at
            for one in thread.replies
            if one.at is not None
            and one.meeting.answer_of(user) == "DECLINED"
            and (one.meeting.recurrence_id, one.meeting.sequence) == (meeting.recurrence_id, meeting.sequence)
        ),
        default=None,
    )


def _state(version: Version, thread: Thread, found: dict[tuple[str, int], Version]) -> str:
    recurrence_id, sequence = version.meeting.recurrence_id, version.meeting.sequence
    if any(other > sequence for rid, other in found if rid == recurrence_id):
        return "superseded"
    stored = () if thread.stored is None else thread.stored.meetings
    ends = [one.meeting for one in thread.cancels] + [one for one in stored if one.cancelled]
    called_off = any(one.recurrence_id in ("", recurrence_id) and one.sequence >= sequence for one in ends)
    return "cancelled" if called_off or version.meeting.cancelled else "answered"
