"""Calendar texts for the import's tests, written line by line so that they owe nothing to the code under test."""

from __future__ import annotations

from datetime import UTC, datetime

from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.calendars import read_calendar

ME = "una@sri.example"
BOSS = "boss@sri.example"
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def event(uid: str, start: str, *, answer: str = "ACCEPTED", organiser: str = BOSS, end: str = "", **more: str) -> str:
    """One VEVENT of an hour; ``more`` are further properties, underscores for hyphens."""
    lines = [f"UID:{uid}", f"DTSTART:{start}", f"DTEND:{end}" if end else "DURATION:PT1H", "LOCATION:Ravine House"]
    if organiser:
        lines += [f"ORGANIZER:mailto:{organiser}", f"ATTENDEE;PARTSTAT={answer}:mailto:{ME}"]
    lines += [f"{name.replace('_', '-')}:{value}" for name, value in more.items()]
    return "\r\n".join(["BEGIN:VEVENT", *lines, "END:VEVENT"])


def text(*events: str, method: str = "") -> str:
    """One VCALENDAR."""
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//test//EN", *([f"METHOD:{method}"] if method else [])]
    return "\r\n".join([*head, *events, "END:VCALENDAR", ""])


def objects(*events: str, method: str = "") -> list[CalendarObject]:
    """The objects of one VCALENDAR."""
    return read_calendar(text(*events, method=method).encode())
