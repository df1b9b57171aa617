"""Invitations, calendars and mails for the command line's tests, line by line; all are past, whenever it runs."""

from __future__ import annotations

ANN, BOB = "ann@example.org", "bob@example.org"


def event(
    uid: str = "plans",
    start: str = "20240305T140000Z",
    *more: str,
    organiser: str = BOB,
    attendee: str = ANN,
    answer: str = "NEEDS-ACTION",
    stamp: str = "20240301T090000Z",
) -> str:
    """One VEVENT of an hour; ``more`` are further lines."""
    lines = [f"UID:{uid}", f"DTSTAMP:{stamp}", f"DTSTART:{start}", "DURATION:PT1H", f"SUMMARY:About {uid}"]
    if organiser:
        lines += [f"ORGANIZER;CN=Bob:mailto:{organiser}", f"ATTENDEE;PARTSTAT={answer}:mailto:{attendee}"]
    return "\r\n".join(["BEGIN:VEVENT", *lines, *more, "END:VEVENT"])


def calendar(*events: str, method: str = "REQUEST") -> str:
    """One VCALENDAR; a calendar that somebody keeps has no method."""
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests//tests//EN", *([f"METHOD:{method}"] if method else [])]
    return "\r\n".join([*head, *events, "END:VCALENDAR", ""])


def engagement(uid: str = "dentist", start: str = "20240305T143000Z", created: str = "20240201T080000Z") -> str:
    """One's own appointment, put into the calendar at a known time."""
    return event(uid, start, f"CREATED:{created}", organiser="", stamp=created)


def past_invitation(uid: str, day: int, answer: str, *more: str) -> str:
    """An answered invitation as a calendar keeps it."""
    return event(uid, f"202401{day:02}T100000Z", "CREATED:20231220T080000Z", *more, answer=answer)


def mail(calendar_text: str, *headers: str) -> bytes:
    """A mail with a plain part and a calendar."""
    lines = [
        "Received: from mail.example.org by mx.example.org; Fri, 01 Mar 2024 09:30:00 +0000",
        "From: Bob <bob@example.org>",
        "To: ann@example.org",
        "Subject: Invitation",
        "Date: Fri, 01 Mar 2024 10:30:00 +0100",
        "Message-ID: <invitation-1@example.org>",
        *headers,
        "MIME-Version: 1.0",
        'Content-Type: multipart/alternative; boundary="=="',
        "",
        "--==",
        "Content-Type: text/plain; charset=utf-8",
        "",
        "You are invited.",
        "--==",
        "Content-Type: text/calendar; charset=utf-8; method=REQUEST",
        "",
        calendar_text.replace("\r\n", "\n"),
        "--==--",
        "",
    ]
    return "\n".join(lines).encode()
