"""One VEVENT (RFC 5545 3.6.1) read into a Meeting: what it says within bounds, or a sentence why not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from icalendar import Component
from icalendar.prop import vBroken

from kinfolk_assistant.meeting import Attendee, Meeting, Moment
from kinfolk_assistant.reading.bounds import FIRST_YEAR, FIRST_YEAR_OF_SERIES, LAST_YEAR, MAX_ATTENDEES, Refused
from kinfolk_assistant.reading.rules import check_rule

BY_DATES = "RDATE"
"""What ``Meeting.repeats`` says of a series without rule, whose dates are listed."""
MAX_UID = 1000
_LARGEST_SEQUENCE = 2**31 - 1
# Outlook's 0, 1 and 2 on the scale of PRIORITY (RFC 5545 3.8.1.9), where 1 is highest.
_IMPORTANCE = {"2": 1, "1": 5, "0": 9}


def read_event(event: Component, method: str, uid: str, what: str) -> Meeting:
    """Read one event.

    Parameters
    ----------
    event
        As icalendar reads it.
    method
        The calendar's METHOD: what CANCEL names is cancelled.
    uid
        Its UID.
    what
        Which event it is, for the sentence when it is refused.

    Raises
    ------
    Refused
        Where its times make no sense.
    """
    start, end = span_of(event, what)
    recurrence_id = recurrence_of(event)
    if not recurrence_id and "RECURRENCE-ID" in event:
        raise Refused(f"{what} has a RECURRENCE-ID that is no date or time.")
    organiser = first(event, "ORGANIZER")
    attendees = event.get("ATTENDEE", [])
    return Meeting(
        uid=uid,
        start=start,
        end=end,
        recurrence_id=recurrence_id,
        sequence=_number(event, "SEQUENCE", _LARGEST_SEQUENCE),
        stamp=_instant(event, "DTSTAMP"),
        created=_instant(event, "CREATED"),
        organiser="" if organiser is None else address_of(organiser),
        organiser_name=_parameter(organiser, "CN"),
        sent_by=_parameter(organiser, "SENT-BY").lower().removeprefix("mailto:").strip(),
        attendees=tuple(
            Attendee(
                address_of(one),
                _parameter(one, "CN"),
                _parameter(one, "PARTSTAT").upper() or "NEEDS-ACTION",
                _parameter(one, "ROLE").upper(),
            )
            for one in (attendees if isinstance(attendees, list) else [attendees])[:MAX_ATTENDEES]
        ),
        summary=words(event, "SUMMARY", 1000),
        description=words(event, "DESCRIPTION", 20_000),
        location=words(event, "LOCATION", 1000),
        categories=_categories(event),
        priority=priority_of(event),
        repeats="" if recurrence_id else _repeats(event, start, what),
        cancelled=method == "CANCEL" or token(event, "STATUS") == "CANCELLED",
        transparent=token(event, "TRANSP") == "TRANSPARENT",
    )


def priority_of(event: Component) -> int:
    """PRIORITY, or what Outlook's own property says where there is none; 0 where neither does."""
    return _number(event, "PRIORITY", 9) or _IMPORTANCE.get(words(event, "X-MICROSOFT-CDO-IMPORTANCE", 9), 0)


def recurrence_text(moment: Moment) -> str:
    """Write a RECURRENCE-ID as the text by which occurrences are known here.

    Examples
    --------
    >>> from zoneinfo import ZoneInfo
    >>> recurrence_text(datetime(2026, 7, 1, 10, tzinfo=ZoneInfo("Europe/Berlin"))), recurrence_text(date(2026, 7, 1))
    ('20260701T080000Z', '20260701')
    """
    if not isinstance(moment, datetime):
        return f"{moment:%Y%m%d}"
    return f"{moment:%Y%m%dT%H%M%S}" if moment.tzinfo is None else f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def recurrence_of(event: Component) -> str:
    """The text of an event's RECURRENCE-ID, "" for the series or where it is no date or time."""
    moment = moment_of(first(event, "RECURRENCE-ID"))
    in_time = isinstance(moment, date) and FIRST_YEAR <= moment.year <= LAST_YEAR
    return recurrence_text(moment) if isinstance(moment, date) and in_time else ""


def events_of(calendar: Component, uid: str) -> Iterator[Component]:
    """The events of a calendar with this UID: the series, its changed occurrences, maybe in several versions."""
    for event in calendar.subcomponents:
        if event.name == "VEVENT" and words(event, "UID", MAX_UID) == uid:
            yield event


def age_of(event: Component) -> tuple[int, datetime]:
    """By which of two versions of an event the newer is known (RFC 5546 2.1.5)."""
    return _number(event, "SEQUENCE", _LARGEST_SEQUENCE), _instant(event, "DTSTAMP") or datetime(1, 1, 1, tzinfo=UTC)


def address_of(value: object) -> str:
    """The mail address in ORGANIZER or ATTENDEE: lower case and without ``mailto:``.

    Servers that name people by a path or UUID give the address in the parameter EMAIL (RFC 7986 6.2).

    Examples
    --------
    >>> address_of("MAILTO:Ann@Example.org")
    'ann@example.org'
    """
    address = str(value)[:1000].strip().lower()
    if not address.startswith("mailto:"):
        address = _parameter(value, "EMAIL").lower() or address
    return address.removeprefix("mailto:").strip()[:320]


def first(component: Component, name: str) -> Any:
    """The first value of a property that should be there once; None where it is not."""
    value = component.get(name)
    return (value[0] if value else None) if isinstance(value, list) else value


def moment_of(value: Any) -> Any:
    """The date, time or duration of a property; None where it has none or is broken."""
    return None if isinstance(value, vBroken) else getattr(value, "dt", None)


def words(component: Component, name: str, most: int) -> str:
    """A property's text, at most so many characters."""
    value = first(component, name)
    return "" if value is None else str(value)[:most].strip()


def token(component: Component, name: str) -> str:
    """A property's text where it is one of a few words."""
    return words(component, name, 40).upper()


def zones_of(event: Component) -> Iterator[str]:
    """The TZIDs that an event's times name."""
    for _, value in event.property_items():
        zone = getattr(value, "params", {}).get("TZID")
        if zone:
            yield str(zone)


def span_of(event: Component, what: str) -> tuple[Moment, Moment]:
    """Start and end; without DTEND and DURATION an event takes a day or no time (RFC 5545 3.6.1).

    Raises
    ------
    Refused
        Where they are no times, go backwards or lie too far away.
    """
    start = _moment(event, "DTSTART", what)
    if start is None:
        raise Refused(f"{what} has no DTSTART.")
    day = timedelta(days=0 if isinstance(start, datetime) else 1)
    try:
        end = _moment(event, "DTEND", what) or _after(start, first(event, "DURATION")) or start + day
        if end == start:
            end = start + day
        backwards = end < start
    except (TypeError, OverflowError):
        raise Refused(f"{what} has a DTEND or DURATION that does not go with its DTSTART.") from None
    if backwards or isinstance(start, datetime) is not isinstance(end, datetime):
        raise Refused(f"{what} must end at or after its DTSTART, by a value of the same kind.")
    if start.year < FIRST_YEAR or end.year > LAST_YEAR:
        raise Refused(f"{what} lies outside the years {FIRST_YEAR} to {LAST_YEAR}.")
    return start, end


def _moment(event: Component, name: str, what: str) -> Moment | None:
    value = first(event, name)
    if value is None:
        return None
    moment = moment_of(value)
    if not isinstance(moment, date):
        raise Refused(f"{what} has a {name} that is no date or time.")
    zone = value.params.get("TZID")
    if zone and isinstance(moment, datetime) and moment.tzinfo is None:
        raise Refused(f"{what} is in the time zone {str(zone)[:80]!r}, which is not known and not rightly described.")
    return moment


def _after(start: Moment, lasts: object) -> Moment | None:
    """Where a DURATION ends: its days by the calendar, its hours by the clock (RFC 5545 3.3.6)."""
    if lasts is None:
        return None
    duration = moment_of(lasts)
    if not isinstance(duration, timedelta):
        raise TypeError
    end = start + timedelta(days=duration.days)
    hours = timedelta(seconds=duration.seconds)
    if isinstance(end, datetime) and end.tzinfo is not None:
        return (end.astimezone(UTC) + hours).astimezone(end.tzinfo)
    if hours and not isinstance(end, datetime):
        raise TypeError
    return end + hours


def _repeats(event: Component, start: Moment, what: str) -> str:
    rule = event.get("RRULE")
    if rule is None:
        return BY_DATES if "RDATE" in event else ""
    check_rule(rule, start, what)
    if start.year < FIRST_YEAR_OF_SERIES:
        raise Refused(f"{what} repeats since {start.year}; a series must begin in {FIRST_YEAR_OF_SERIES} or later.")
    return bytes(rule.to_ical()).decode()


def _number(event: Component, name: str, most: int) -> int:
    try:
        return min(max(int(words(event, name, 12) or 0), 0), most)
    except ValueError:
        return 0


def _instant(event: Component, name: str) -> datetime | None:
    moment = moment_of(first(event, name))
    if not isinstance(moment, datetime) or not FIRST_YEAR <= moment.year <= LAST_YEAR:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _parameter(value: object, name: str) -> str:
    given = getattr(value, "params", {}).get(name, "")
    return (", ".join(map(str, given)) if isinstance(given, list) else str(given)).strip()[:200]


def _categories(event: Component) -> tuple[str, ...]:
    given = event.get("CATEGORIES", [])
    lists = given if isinstance(given, list) else [given]
    names = (str(name).strip()[:100] for one in lists for name in ([] if isinstance(one, vBroken) else one.cats))
    return tuple(name for name in names if name)[:50]
