"""Invitations, updates and cancellations on their way into the ledger (RFC 5546 2.1.4, 3.2.2 and 3.2.5).

The same message may come twice, and messages may overtake each other. What a message says is therefore compared with
what is known by its version, SEQUENCE first and DTSTAMP where that is the same, never by when it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.requests import replies, versions
from kinfolk_assistant.ledger.tables import Cancellation, Deed, Request
from kinfolk_assistant.ledger.users import aliases_of, known_zone, lock_user
from kinfolk_assistant.meeting import CalendarObject, Meeting
from kinfolk_assistant.reading.aliases import under_main_address
from kinfolk_assistant.reading.origin import Origin
from kinfolk_assistant.reading.trust import Trust, forgery_doubt, tied_sender
from kinfolk_assistant.service.deciding import put_before
from kinfolk_assistant.service.elsewhere import follow_earlier
from kinfolk_assistant.service.standing import meeting_of
from kinfolk_assistant.service.withdrawing import withdraw_unsent

MAX_UID = 1000
"""Longer UIDs are refused (RFC 7986 5.3 asks for fewer than 255 octets)."""

MAX_MEETINGS = 100
"""Objects with more events than this are refused: each event is a request of its own."""

MOST_A_DAY = 200
"""So many meetings that are new to a user are taken in within a day from one sender, and of one organiser."""

_DAY = timedelta(days=1)
_MAX_LINE = 1000
_MAX_SEQUENCE = 2**31 - 1
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def take_in(
    session: Session,
    user: str,
    objects: Iterable[CalendarObject],
    *,
    received_at: datetime,
    source: str,
    source_ref: str,
    now: datetime,
    sender: str = "",
    origin: Origin | None = None,
    trust: Trust | None = None,
) -> list[int]:
    """Take messages in; the numbers of the requests that they speak of.

    Only REQUEST, CANCEL and DECLINECOUNTER are followed, and only from the meeting's own organiser: somebody who knows
    the UID of another's meeting can neither move it nor call it off. Where the ``sender`` of a mail is known and cannot
    be tied to the organiser whom it names, or the own mail server says that it may be forged, what it says of a meeting
    that is known already is not followed but put before the user.
    """
    origin, trust = origin or Origin(sender), trust or Trust()
    owner = lock_user(session, user)
    zone = known_zone(owner.zone)
    others = aliases_of(session, owner.address)
    touched: dict[int, None] = {}
    for given in objects:
        one, sent_to = under_main_address(given, owner.address, others) if others else (given, "")
        if len(one.meetings) > MAX_MEETINGS:
            raise ValueError(
                f"The invitation {_line(one.meetings[0].uid)[:80]!r} has {len(one.meetings)} events; "
                f"at most {MAX_MEETINGS} are taken."
            )
        for meeting in one.meetings:
            if len(meeting.uid) > MAX_UID:
                raise ValueError(
                    f"The UID of an invitation has {len(meeting.uid)} characters; at most {MAX_UID} are taken."
                )
            if _is_doubtful(meeting, origin, trust) and _is_known(session, owner.address, one.method, meeting):
                found = _doubt(session, owner.address, meeting, origin.sender, now)
            elif one.method == "CANCEL":
                found = _cancel(session, owner.address, meeting, received_at, now)
            elif one.method == "DECLINECOUNTER":
                found = _decline_counter(session, owner.address, meeting, now)
            elif one.method == "REQUEST" and meeting.organiser != owner.address:
                start, end = _span(meeting, zone)
                fresh = Request(
                    user=owner.address,
                    uid=as_stored(meeting.uid),
                    recurrence_id=meeting.recurrence_id,
                    sequence=_sequence(meeting),
                    stamp=meeting.stamp,
                    received_at=received_at,
                    organiser=_line(meeting.organiser),
                    organiser_name=_line(meeting.organiser_name),
                    summary=_line(meeting.summary),
                    location=_line(meeting.location),
                    starts_at=start,
                    ends_at=end,
                    all_day=meeting.all_day,
                    text=as_stored(one.text),
                    source=source,
                    source_ref=_line(source_ref),
                    sender=_line(origin.sender)[:320],
                    origin=origin.as_json() if source == "mail" else None,
                    recurs=bool(meeting.repeats),
                    sent_to=sent_to,
                    state="open",
                )
                found = _request(session, fresh, cancelled=meeting.cancelled, now=now)
                if not meeting.recurrence_id and fresh in found:
                    _forget_occurrences(session, fresh, {other.recurrence_id for other in one.meetings}, now)
            else:
                found = []
            touched.update((request.id, None) for request in found)
    return list(touched)


def _is_doubtful(meeting: Meeting, origin: Origin, trust: Trust) -> bool:
    """Whether a mail may be somebody else's than its organiser's; where no own server is named, its sender is taken."""
    if not origin.sender:
        return False
    return bool(forgery_doubt(meeting, origin, trust)) if trust.servers else not tied_sender(meeting, origin, trust)


def _is_known(session: Session, user: str, method: str, meeting: Meeting) -> bool:
    """Whether a message would change something: a CANCEL always may, its REQUEST may still be on the way."""
    return method == "CANCEL" or bool(versions(session, user, as_stored(meeting.uid), meeting.recurrence_id))


def _doubt(session: Session, user: str, meeting: Meeting, sender: str, now: datetime) -> list[Request]:
    """Let the user see to a meeting of which somebody else than its organiser says that it has changed."""
    doubted = []
    who = _line(sender)
    if sender == meeting.organiser:
        who = f"a mail that may not be from {who}"
    elif sender:
        who += ", who is not its organiser,"
    why = f"{who} says that it has changed or was cancelled"
    for request in versions(session, user, as_stored(meeting.uid), meeting.recurrence_id or None):
        withdrawn = request.state in ("open", "answered") and withdraw_unsent(session, request, now, why)
        if request.state == "open" or withdrawn:
            request.state = "open"
            put_before(session, request, why, now)
            doubted.append(request)
    return doubted


def _request(session: Session, fresh: Request, *, cancelled: bool, now: datetime) -> list[Request]:
    """Take a REQUEST in: a new version, one that is known already, or one that came too late."""
    known = versions(session, fresh.user, fresh.uid, fresh.recurrence_id)
    if any(one.organiser != fresh.organiser for one in known):
        text = (
            f"“{fresh.summary}” came again from {fresh.organiser or 'nobody'}, who is not its organiser: not followed."
        )
        tell(session, fresh.user, now, "assistant", "ignored", text)
        return []
    if cancelled or _called_off(session, fresh):
        fresh.state = "cancelled"
    same = next((one for one in known if one.sequence == fresh.sequence), None)
    if same is not None:
        _refresh(session, same, fresh, now)
        return [same]
    if any(one.sequence > fresh.sequence for one in known):
        fresh.state = "superseded"
    if fresh.state == "open" and _is_ignored(session, fresh):
        fresh.state = "ignored"
    if not known and (flooding := _flooding(session, fresh, now)):
        _tell_of_flood(session, fresh.user, flooding, now)
        return []
    session.add(fresh)
    session.flush()
    if fresh.state != "superseded":
        for one in known:
            _supersede(session, one, now)
    told = {
        "open": f"{fresh.organiser_name or fresh.organiser or 'Somebody'} asks for “{fresh.summary}”.",
        "cancelled": f"“{fresh.summary}” came after it had been cancelled.",
        "superseded": f"“{fresh.summary}” came after a later version of it.",
        "ignored": f"“{fresh.summary}” has changed; you ignore it.",
    }
    kind = "updated" if known and fresh.state == "open" else "received"
    tell(session, fresh.user, now, "organiser", kind, told[fresh.state], fresh)
    if fresh.state == "open" and not known:
        # Of a later version an answer in the calendar may be that to the earlier one.
        follow_earlier(session, fresh, now)
    return [fresh]


def _is_ignored(session: Session, fresh: Request) -> bool:
    """Whether the user wants to hear no more of a meeting, or of the series that it belongs to."""
    known = versions(session, fresh.user, fresh.uid)
    meant = [one for one in known if one.recurrence_id in ("", fresh.recurrence_id) and one.state != "superseded"]
    return any(one.state == "ignored" for one in meant)


def _decline_counter(session: Session, user: str, meeting: Meeting, now: datetime) -> list[Request]:
    """Put a meeting before its user again whose organiser does not take the time that they proposed."""
    found = []
    for request in versions(session, user, as_stored(meeting.uid), meeting.recurrence_id):
        given = replies(session, request.id)
        proposed = request.state == "answered" and given and given[-1].answer == "COUNTER"
        if proposed and request.organiser == _line(meeting.organiser):
            request.state = "open"
            put_before(session, request, "its organiser does not take the time that you proposed", now)
            found.append(request)
    return found


def _flooding(session: Session, fresh: Request, now: datetime) -> str:
    """Give the sender, or else the organiser, of whom enough came within the last day; "" where nobody is."""
    lately = select(func.count()).select_from(Request)
    lately = lately.where(Request.user == fresh.user, Request.received_at > now - _DAY, Request.source != "history")
    for column, who in ((Request.sender, fresh.sender), (Request.organiser, fresh.organiser)):
        if who and session.scalars(lately.where(column == who)).one() >= MOST_A_DAY:
            return who
    return ""


def _tell_of_flood(session: Session, user: str, who: str, now: datetime) -> None:
    """Say once a day that no more is taken in of somebody."""
    text = f"More than {MOST_A_DAY} invitations came from {who} within a day: no more are taken in today."
    query = select(Deed.id).where(Deed.user == user, Deed.kind == "flood", Deed.at > now - _DAY, Deed.text == text)
    if session.scalars(query.limit(1)).first() is None:
        tell(session, user, now, "assistant", "flood", text)


def _refresh(session: Session, known: Request, fresh: Request, now: datetime) -> None:
    """Take what a message says of a version that is known: no new answer, unless it has moved all the same."""
    if (fresh.stamp or _EARLIEST) <= (known.stamp or _EARLIEST):
        if fresh.state == "cancelled":
            _call_off(session, [known], now)
        return
    was_decided = known.state == "answered" or (known.state == "open" and known.features is not None)
    has_moved = was_decided and known.source != "history" and _times(known) != _times(fresh)
    kept = ("stamp", "organiser_name", "summary", "location", "starts_at", "ends_at", "all_day", "text")
    for name in (*kept, "sender", "origin", "recurs", "sent_to"):
        setattr(known, name, getattr(fresh, name))
    if fresh.source_ref:
        known.source_ref = fresh.source_ref
    if fresh.state == "cancelled":
        _call_off(session, [known], now)
    elif known.state == "cancelled":
        # Invited again after having been uninvited (RFC 5546 3.2.5), without a new SEQUENCE.
        known.state, known.source = "open", fresh.source
        tell(session, known.user, now, "organiser", "received", f"“{known.summary}” takes place after all.", known)
    elif has_moved:
        # Against RFC 5546 2.1.4, without a new SEQUENCE: what was decided or answered was about another time.
        withdraw_unsent(session, known, now, "the meeting was moved")
        known.state, known.features, known.unknown, known.label = "open", None, None, None
        put_before(session, known, "its organiser has moved it without saying so", now)
    else:
        tell(session, known.user, now, "organiser", "refreshed", f"“{known.summary}” was sent again.", known)


def _times(request: Request) -> tuple[object, ...]:
    """When a request's meeting takes place, as it says itself."""
    meeting = meeting_of(request)
    return () if meeting is None else (meeting.start, meeting.end, meeting.repeats)


def _forget_occurrences(session: Session, series: Request, told: set[str], now: datetime) -> None:
    """Let earlier changes of single occurrences rest that a later version of their series no longer has."""
    for request in versions(session, series.user, series.uid):
        if request.recurrence_id not in told and request.sequence < series.sequence and series.state == "open":
            _supersede(session, request, now)


def _supersede(session: Session, request: Request, now: datetime) -> None:
    """Let a request rest of which a later version has come; nothing prepared for it is sent."""
    if request.state in ("open", "answered", "dismissed", "ignored"):
        request.state = "superseded"
        withdraw_unsent(session, request, now, "a later version of the meeting has come")


def _cancel(session: Session, user: str, meeting: Meeting, received_at: datetime, now: datetime) -> list[Request]:
    """Take a CANCEL in, and remember it: its REQUEST may still be on the way."""
    uid, sequence, organiser = as_stored(meeting.uid), _sequence(meeting), _line(meeting.organiser)
    query = select(Cancellation).where(
        Cancellation.user == user,
        Cancellation.uid == uid,
        Cancellation.recurrence_id == meeting.recurrence_id,
        Cancellation.organiser == organiser,
    )
    kept = session.scalars(query).one_or_none()
    if kept is None:
        kept = Cancellation(user=user, uid=uid, recurrence_id=meeting.recurrence_id, organiser=organiser, sequence=-1)
        session.add(kept)
    if (sequence, meeting.stamp or _EARLIEST) > (kept.sequence, kept.stamp or _EARLIEST):
        kept.sequence, kept.stamp, kept.received_at = sequence, meeting.stamp, received_at
    session.flush()
    # Calling off a series calls off every one of its occurrences.
    known = versions(session, user, uid, meeting.recurrence_id or None)
    ended = [one for one in known if one.organiser == organiser and _ends(kept, one)]
    _call_off(session, ended, now)
    return ended


def _call_off(session: Session, requests: Sequence[Request], now: datetime) -> None:
    for request in requests:
        if request.state in ("open", "answered", "dismissed", "ignored"):
            request.state = "cancelled"
            tell(session, request.user, now, "organiser", "cancelled", f"“{request.summary}” was cancelled.", request)
            withdraw_unsent(session, request, now, "the meeting was cancelled")


def _called_off(session: Session, request: Request) -> bool:
    """Whether a CANCEL of this version, or of a later one, has come before it."""
    query = select(Cancellation).where(
        Cancellation.user == request.user,
        Cancellation.uid == request.uid,
        Cancellation.recurrence_id.in_(["", request.recurrence_id]),
        Cancellation.organiser == request.organiser,
    )
    return any(_ends(one, request) for one in session.scalars(query))


def _ends(cancellation: Cancellation, request: Request) -> bool:
    """Whether a CANCEL ends a version; one of the same SEQUENCE does unless the version's DTSTAMP is later."""
    if cancellation.sequence != request.sequence:
        return cancellation.sequence > request.sequence
    return (request.stamp or _EARLIEST) <= (cancellation.stamp or datetime.max.replace(tzinfo=UTC))


def _span(meeting: Meeting, zone: ZoneInfo) -> tuple[datetime, datetime]:
    try:
        return meeting.span(zone)
    except OverflowError:
        raise ValueError(f"The invitation {_line(meeting.uid)[:80]!r} is out of all time.") from None


def _sequence(meeting: Meeting) -> int:
    return max(0, min(meeting.sequence, _MAX_SEQUENCE))


def as_stored(text: str) -> str:
    """What both databases can keep: no NUL, no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _line(text: str) -> str:
    return as_stored(text)[:_MAX_LINE]
