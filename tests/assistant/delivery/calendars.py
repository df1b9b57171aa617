"""Meetings for the tests, written out so that what is expected can be seen."""

from __future__ import annotations

from datetime import UTC, datetime

from kinfolk_assistant.delivery.deliverer import Outgoing
from kinfolk_assistant.reading.reply import make_reply

ANN, BOB = "ann@example.org", "bob@example.org"


def meeting(
    *,
    uid: str = "plan-1",
    ann: str = ANN,
    bob: str = BOB,
    method: str = "",
    sequence: int = 0,
    summary: str = "Plän für Juli",
    more: tuple[str, ...] = (),
) -> str:
    """A meeting to which Ann invites Bob."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//example//tests//EN",
        *([f"METHOD:{method}"] if method else []),
        "BEGIN:VEVENT",
        f"UID:{uid}",
        "DTSTAMP:20260701T080000Z",
        "DTSTART:20260702T080000Z",
        "DTEND:20260702T090000Z",
        f"SEQUENCE:{sequence}",
        f"SUMMARY:{summary}",
        f"ORGANIZER;CN=Ann:mailto:{ann}",
        f"ATTENDEE;PARTSTAT=ACCEPTED:mailto:{ann}",
        f"ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:{bob}",
        *more,
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    return "\r\n".join(lines)


def outgoing(
    answer: str = "ACCEPTED",
    *,
    request: str = "",
    source_ref: str = "",
    uid: str = "plan-1",
    ann: str = ANN,
    bob: str = BOB,
) -> Outgoing:
    """Bob's answer to it."""
    request = request or meeting(uid=uid, ann=ann, bob=bob, method="REQUEST")
    text = make_reply(request, uid, "", bob, answer, datetime(2026, 7, 1, 9, tzinfo=UTC))
    return Outgoing(7, bob, ann, uid, "", answer, text, request, source_ref, "<reply-7.kinfolk@example.org>")
