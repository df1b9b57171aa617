"""Small calendars for the tests of the features, all in one week of March 2026 (2 March is a Monday)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from kinfolk_assistant.features.past import Past, SeenObject
from kinfolk_assistant.features.people import Contact, People
from kinfolk_assistant.features.row import FeatureRow, Owner, feature_row
from kinfolk_assistant.meeting import Attendee, CalendarObject, Meeting
from kinfolk_assistant.reading.calendars import read_calendar

ME, BOB, EVE = "me@example.org", "bob@example.org", "eve@example.org"
ZONE = ZoneInfo("Etc/GMT-1")  # one hour ahead of Greenwich all the year
OWNER = Owner(ME, ZONE, ("Main Building", "library"))
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)
CAME = datetime(2026, 3, 2, 8, tzinfo=ZONE)
PEOPLE = People(
    [
        Contact("person", BOB, job="faculty", relation="peer"),
        Contact("topic", "budget", importance="very important"),
        Contact("topic", "lunch", importance="unimportant"),
    ]
)


def at(day: int, clock: str) -> datetime:
    """A time of March 2026 in the owner's zone."""
    hour, minute = map(int, clock.split(":"))
    return datetime(2026, 3, day, hour, minute, tzinfo=ZONE)


def request(day: int = 5, start: str = "14:00", end: str = "15:00", **fields: object) -> Meeting:
    values = {"organiser": BOB, "location": "Library", "summary": "Plans", **fields}
    return Meeting("the request", at(day, start), at(day, end), **values)  # type: ignore[arg-type]


def engagement(day: int, start: str, end: str, uid: str = "", **fields: object) -> Meeting:
    values = {"created": LONG_AGO, "location": "Library", "summary": f"{start}", **fields}
    return Meeting(uid or f"{day} {start} {end}", at(day, start), at(day, end), **values)  # type: ignore[arg-type]


def whole_day(day: int, **fields: object) -> Meeting:
    values = {"created": LONG_AGO, "location": "Library", **fields}
    return Meeting(f"day {day}", date(2026, 3, day), date(2026, 3, day + 1), **values)  # type: ignore[arg-type]


def invited(*answers: tuple[str, str]) -> tuple[Attendee, ...]:
    return tuple(Attendee(address, answer=answer) for address, answer in answers)


def seen(*meetings: Meeting, **times: datetime) -> list[SeenObject]:
    return [SeenObject(CalendarObject("", (one,), ""), **times) for one in meetings]


def series(*lines: str, **times: datetime) -> SeenObject:
    """A calendar object of one UID, from the lines of its events."""
    body = [line for event in lines for line in ("BEGIN:VEVENT", *event.split(), "END:VEVENT")]
    text = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests//EN", *body, "END:VCALENDAR", ""])
    [found] = read_calendar(text.encode())
    return SeenObject(found, **times)


def row(
    asked: Meeting,
    *calendar: Meeting | SeenObject,
    when: datetime = CAME,
    owner: Owner = OWNER,
    people: People = PEOPLE,
) -> FeatureRow:
    objects = [one if isinstance(one, SeenObject) else seen(one)[0] for one in calendar]
    return feature_row(asked, owner, Past(objects, owner.address, owner.zone), people, when)


def value(feature: str, asked: Meeting, *calendar: Meeting | SeenObject, **rest: object) -> str | None:
    return row(asked, *calendar, **rest).values[feature]  # type: ignore[arg-type]


def shifted(meeting: Meeting, by: timedelta) -> Meeting:
    """The same meeting and its history at another time."""
    return replace(
        meeting,
        start=meeting.start + by,
        end=meeting.end + by,
        created=meeting.created and meeting.created + by,
        stamp=meeting.stamp and meeting.stamp + by,
    )
