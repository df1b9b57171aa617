"""How an event at Microsoft 365 repeats (patternedRecurrence of Microsoft Graph), written as a rule of iCalendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

_FREQUENCIES = {
    "daily": "DAILY",
    "weekly": "WEEKLY",
    "absoluteMonthly": "MONTHLY",
    "relativeMonthly": "MONTHLY",
    "absoluteYearly": "YEARLY",
    "relativeYearly": "YEARLY",
}
_PLACES = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}


def as_rule(recurrence: Any, start: datetime | date) -> str:
    """Write a pattern and its range as an RRULE.

    Parameters
    ----------
    recurrence : dict
        With ``pattern`` (type, interval, daysOfWeek, dayOfMonth, month, index, firstDayOfWeek) and ``range`` (type,
        endDate, numberOfOccurrences), as Microsoft documents recurrencePattern and recurrenceRange.
    start : datetime or date
        When the series begins, in the zone by whose clock it repeats.

    Raises
    ------
    KeyError, ValueError
        Where it is not such a pattern.

    Examples
    --------
    >>> as_rule({"pattern": {"type": "relativeMonthly", "interval": 2, "daysOfWeek": ["tuesday"], "index": "last"},
    ...          "range": {"type": "numbered", "numberOfOccurrences": 4}}, date(2026, 1, 27))
    'RRULE:FREQ=MONTHLY;INTERVAL=2;BYDAY=TU;BYSETPOS=-1;COUNT=4'
    """
    pattern, span = recurrence["pattern"], recurrence.get("range") or {}
    kind = str(pattern["type"])
    parts = [f"FREQ={_FREQUENCIES[kind]}", f"INTERVAL={int(pattern.get('interval') or 1)}"]
    if kind.endswith("Yearly"):
        parts.append(f"BYMONTH={int(pattern['month'])}")
    if kind.startswith("absolute"):
        parts.append(f"BYMONTHDAY={int(pattern['dayOfMonth'])}")
    elif kind != "daily":
        parts.append(f"BYDAY={','.join(_day(day) for day in pattern['daysOfWeek'])}")
    if kind.startswith("relative"):
        parts.append(f"BYSETPOS={_PLACES[str(pattern.get('index') or 'first')]}")
    if kind == "weekly":
        parts.append(f"WKST={_day(pattern.get('firstDayOfWeek') or 'sunday')}")
    if span.get("type") == "numbered":
        parts.append(f"COUNT={int(span['numberOfOccurrences'])}")
    elif span.get("type") == "endDate":
        parts.append(f"UNTIL={_until(date.fromisoformat(span['endDate']), start)}")
    return f"RRULE:{';'.join(parts)}"


def zone_called(name: str) -> ZoneInfo | None:
    """Give the zone that Microsoft calls by its own name or by the usual one; None where there is none.

    Examples
    --------
    >>> zone_called("W. Europe Standard Time"), zone_called("tzone://Microsoft/Custom")
    (zoneinfo.ZoneInfo(key='Europe/Berlin'), None)
    """
    try:
        return ZoneInfo(WINDOWS_TO_OLSON.get(name, name))
    except (OSError, ValueError):
        return None


def _day(name: str) -> str:
    day = str(name)[:2].upper()
    if day not in ("MO", "TU", "WE", "TH", "FR", "SA", "SU"):
        raise ValueError(name)
    return day


def _until(last: date, start: datetime | date) -> str:
    """The last day belongs to the series; with a zone, UNTIL has to be in UTC (RFC 5545 3.3.10)."""
    if not isinstance(start, datetime):
        return f"{last:%Y%m%d}"
    end = datetime.combine(last, time(23, 59, 59), start.tzinfo)
    return f"{end.astimezone(UTC):%Y%m%dT%H%M%SZ}"
