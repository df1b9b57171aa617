"""A small made-up team with a real assistant: Ann and Bob accept what is free, Cat what is not; Dan helps nobody."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

from sqlalchemy import select

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.delivery.deliverer import NotDelivered, Outgoing
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Request, User
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.calendar import Kept
from kinfolk_assistant.web.passwords import hash_password

NOW = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)  # a Monday
ANN, BOB, CAT, DAN = "ann@example.org", "bob@example.org", "cat@example.org", "dan@example.org"
NAMES = {ANN: "Ann Arbor", BOB: "Bob Byrne", CAT: "Cat Castle", DAN: "Dan Dorn"}
PASSWORD = "correct horse battery"
HOSTILE = "<script>alert('x')</script> & \"quoted\" {{ 7 * 7 }}"

# What a request finds in a calendar that is free then, or taken.
FREE = {"conflict": "no", "busy_fday": "light-free", "busy_hday": "light-free", "free_slot_time": "longer"}
TAKEN = {"conflict": "yes", "busy_fday": "booked-busy", "busy_hday": "booked-busy", "free_slot_time": "0"}


class Outbox:
    """Takes every answer, and keeps it."""

    certain = True

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    def deliver(self, outgoing: Outgoing) -> None:
        self.sent.append(outgoing)


class ClosedOutbox:
    """Takes no answer."""

    certain = True

    def deliver(self, outgoing: Outgoing) -> None:
        raise NotDelivered("The server is away.")


class StillClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def make_assistant(path: str, clock: StillClock | None = None) -> Assistant:
    return Assistant(Ledger(path), Outbox(), clock or StillClock())


def make_team(path: str) -> None:
    """Make the team's ledger: history, a model, and a week of invitations to Ann and Bob."""
    assistant = make_assistant(path)
    kept = hash_password(PASSWORD)
    for address, name in NAMES.items():
        assistant.add_user(address, name=name, zone="Europe/Berlin")
        with assistant.ledger.begin() as session:
            user = session.get_one(User, address)
            # What is answered on the pages leaves at once, but where a test wants to take it back.
            user.password_hash, user.undo_seconds = kept, 0
        _remember(assistant, address)
        if address != DAN:
            assistant.agree(address)
    assistant.retrain(force=True)
    # Ann is engaged for the whole of Friday, so that what comes for it overlaps.
    engaged = calendar("engaged", "Workshop", datetime(2026, 11, 20, 7, tzinfo=UTC), 12 * 60, ANN, method="")
    assistant.take_calendar(ANN, [Kept(one) for one in read_calendar(engaged)])
    assistant.calendar_unchanged(BOB)
    for user in (ANN, BOB):
        for place, (summary, day, hour, minutes) in enumerate(
            (
                ("Weekly sync", 17, 9, 30),
                ("Budget review", 17, 11, 60),
                (HOSTILE, 18, 13, 60),
                ("Offsite planning", 20, 15, 120),
            )
        ):
            uid = f"{user}-{place}"
            invite(
                assistant,
                user,
                uid,
                f"{user.split('@')[0]}: {summary}",
                datetime(2026, 11, day, hour, tzinfo=UTC),
                minutes,
            )
        assistant.work(user)
    assistant.ledger.close()


def invite(assistant: Assistant, user: str, uid: str, summary: str, start: datetime, minutes: int = 60) -> int:
    """Invite a user; the number of the request."""
    objects = read_calendar(calendar(uid, summary, start, minutes, user))
    return assistant.take_in(user, objects, received_at=assistant.clock(), source="caldav", source_ref=uid)[0]


def calendar(uid: str, summary: str, start: datetime, minutes: int, user: str, method: str = "REQUEST") -> bytes:
    """A meeting in iCalendar; without a method as it lies in the user's own calendar, accepted."""
    end = start + timedelta(minutes=minutes)
    escaped = summary.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//example//team//EN",
        f"METHOD:{method}" if method else "CALSCALE:GREGORIAN",
        "BEGIN:VEVENT",
        f"UID:{uid}",
        "DTSTAMP:20261101T080000Z",
        "CREATED:20261101T080000Z",
        f"DTSTART:{start:%Y%m%dT%H%M%SZ}",
        f"DTEND:{end:%Y%m%dT%H%M%SZ}",
        f"SUMMARY:{escaped}",
        "LOCATION:Room 4 <b>",
        'ORGANIZER;CN="Olga <i>Organiser</i>":mailto:olga@example.org',
        f"ATTENDEE;PARTSTAT={'NEEDS-ACTION' if method else 'ACCEPTED'};RSVP=TRUE:mailto:{user}",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    return "\r\n".join(lines).encode()


def _remember(assistant: Assistant, user: str) -> None:
    with assistant.ledger.begin() as session:
        for n, (taken, length, start, _) in enumerate(
            product(
                (False, True), ("15", "30", "60", "longer"), ("morning", "mid", "afternoon", "late", "early"), range(2)
            )
        ):
            values = {name: values[0] for name, values in MEETING_FEATURES.items()}
            values |= TAKEN if taken else FREE
            values |= {"duration": length, "start_time": start}
            accepts = taken == (user == CAT)
            session.add(
                Request(
                    user=user,
                    uid=f"past-{n}",
                    received_at=NOW - timedelta(days=200 - n),
                    starts_at=NOW - timedelta(days=199 - n),
                    ends_at=NOW - timedelta(days=199 - n),
                    summary=f"Secret past of {user}",
                    text="",
                    source="history",
                    state="answered",
                    features=values,
                    unknown={},
                    label="accept" if accepts else "decline",
                )
            )


def requests_of(assistant: Assistant, user: str) -> list[int]:
    """The numbers of a user's live requests."""
    with assistant.ledger.read() as session:
        return list(
            session.scalars(
                select(Request.id).where(Request.user == user, Request.source != "history").order_by(Request.id)
            )
        )
