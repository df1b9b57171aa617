"""An event of an online calendar, the same for all services, and the iCalendar (RFC 5545) that says the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from icalendar import Calendar, Event
from icalendar.prop import vCalAddress

from kinfolk_assistant.meeting import Attendee, Moment
from kinfolk_assistant.reading.reply import PRODID

_RULES = ("RRULE", "RDATE", "EXDATE")


@dataclass(frozen=True)
class OnlineEvent:
    """One event: a meeting, a whole series, or with an ``occurrence`` one occurrence changed."""

    id: str
    """What the service calls it."""
    version: str
    """Another for every state of it."""
    uid: str
    start: Moment
    end: Moment
    stamp: datetime
    """When it was last changed."""
    occurrence: Moment | None = None
    """Which occurrence of its series it stands for."""
    sequence: int = 0
    organiser: str = ""
    organiser_name: str = ""
    attendees: tuple[Attendee, ...] = ()
    summary: str = ""
    description: str = ""
    location: str = ""
    rules: tuple[str, ...] = ()
    """Lines such as ``RRULE:FREQ=WEEKLY``."""
    transparent: bool = False
    own: bool = field(default=False)
    """Whether the user is its organiser."""
    answer: str = ""
    """What the user has answered, "" where they are not invited."""
    cancelled: bool = False
    """Whether its organiser has called it off."""

    @property
    def asks(self) -> bool:
        """Whether the user is asked to answer."""
        return self.answer == "NEEDS-ACTION" and not self.own and not self.cancelled and bool(self.organiser)

    @property
    def told(self) -> tuple[object, ...]:
        """What its organiser says of it: where this is the same, nothing is asked anew."""
        return (
            self.sequence,
            self.start,
            self.end,
            self.rules,
            self.summary,
            self.location,
            self.description,
            self.asks,
            self.cancelled,
        )


def as_icalendar(events: list[OnlineEvent], method: str = "") -> str:
    """Write events of one UID as an iCalendar object.

    Examples
    --------
    >>> one = OnlineEvent("a", "1", "uid", datetime(2026, 7, 1, 8, tzinfo=UTC), datetime(2026, 7, 1, 9, tzinfo=UTC),
    ...                   datetime(2026, 6, 1, tzinfo=UTC), organiser="bob@example.org", summary="Plans")
    >>> [line for line in as_icalendar([one], "REQUEST").splitlines() if line.startswith(("METHOD", "ORG", "DTST"))]
    ['METHOD:REQUEST', 'DTSTART:20260701T080000Z', 'DTSTAMP:20260601T000000Z', 'ORGANIZER:mailto:bob@example.org']
    """
    calendar = Calendar()
    calendar.add("PRODID", PRODID)
    calendar.add("VERSION", "2.0")
    if method:
        calendar.add("METHOD", method)
    for event in events:
        calendar.add_component(_component(event))
    return bytes(calendar.to_ical()).decode("utf-8", "replace")


def _component(event: OnlineEvent) -> Event:
    made = Event()
    made.add("UID", event.uid)
    made.add("DTSTAMP", event.stamp.astimezone(UTC))
    made.add("DTSTART", event.start)
    made.add("DTEND", event.end)
    made.add("SEQUENCE", event.sequence)
    if event.occurrence is not None:
        made.add("RECURRENCE-ID", event.occurrence)
    for name in ("summary", "description", "location"):
        if getattr(event, name):
            made.add(name.upper(), getattr(event, name))
    if event.organiser:
        made["ORGANIZER"] = _person(event.organiser, event.organiser_name, {})
    people = [
        _person(one.address, one.name, {"PARTSTAT": one.answer, **({"ROLE": one.role} if one.role else {})})
        for one in event.attendees
    ]
    if people:
        made["ATTENDEE"] = people
    if event.transparent:
        made.add("TRANSP", "TRANSPARENT")
    if event.cancelled:
        made.add("STATUS", "CANCELLED")
    for rule in event.rules:
        # Read as a part of an event, so that parameters such as TZID are understood.
        read = Event.from_ical(f"BEGIN:VEVENT\r\n{' '.join(rule.splitlines())}\r\nEND:VEVENT\r\n")
        for name in _RULES:
            for value in _several(read.get(name)):
                made.add(name, value)
    return made


def _several(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _person(address: str, name: str, parameters: dict[str, str]) -> vCalAddress:
    person = vCalAddress(f"mailto:{address}")
    for key, value in {"CN": name, **parameters}.items():
        if value:
            # A name with a quotation mark or a line break in it would not be a parameter's value (RFC 5545 3.2).
            person.params[key] = "".join(sign for sign in value if sign.isprintable() and sign != '"')
    return person
