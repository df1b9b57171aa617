"""What the assistant knows of a meeting: values read from iCalendar, the same for live requests and for the past."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Literal
from zoneinfo import ZoneInfo

Moment = datetime | date
"""A date for all-day meetings, a naive datetime for floating times (RFC 5545 3.3.5), else an aware datetime."""

Answer = Literal["ACCEPTED", "DECLINED", "TENTATIVE", "NEEDS-ACTION"]


@dataclass(frozen=True, slots=True)
class Attendee:
    """Someone invited; the address is lower case and without ``mailto:``."""

    address: str
    name: str = ""
    answer: str = "NEEDS-ACTION"
    role: str = ""  # RFC 5545 3.2.16; "" stands for a required participant


@dataclass(frozen=True, slots=True)
class Meeting:
    """One event of a calendar object: the whole series, or with a ``recurrence_id`` one occurrence changed."""

    uid: str
    start: Moment
    end: Moment
    recurrence_id: str = ""
    sequence: int = 0
    stamp: datetime | None = None
    created: datetime | None = None
    organiser: str = ""
    organiser_name: str = ""
    sent_by: str = ""
    attendees: tuple[Attendee, ...] = ()
    summary: str = ""
    description: str = ""
    location: str = ""
    categories: tuple[str, ...] = ()
    priority: int = 0
    repeats: str = ""
    cancelled: bool = False
    transparent: bool = False

    @property
    def all_day(self) -> bool:
        """Whether it takes whole days."""
        return not isinstance(self.start, datetime)

    def span(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """Start and end in UTC; whole days and floating times are those of ``zone``.

        Examples
        --------
        >>> one = Meeting("1", date(2026, 7, 1), date(2026, 7, 2))
        >>> [str(moment) for moment in one.span(ZoneInfo("Europe/Berlin"))]
        ['2026-06-30 22:00:00+00:00', '2026-07-01 22:00:00+00:00']
        """
        return in_utc(self.start, zone), in_utc(self.end, zone)

    def answer_of(self, address: str) -> str:
        """What someone has answered; "" where they are not invited."""
        return next((one.answer for one in self.attendees if one.address == address), "")


@dataclass(frozen=True, slots=True)
class CalendarObject:
    """One iCalendar object (RFC 5545) as it was read: its method (RFC 5546; "" in a store), its events, its text."""

    method: str
    meetings: tuple[Meeting, ...]
    text: str


def in_utc(moment: Moment, zone: ZoneInfo) -> datetime:
    """Give a moment in UTC; a date is its midnight and a floating time its clock time in ``zone``."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
