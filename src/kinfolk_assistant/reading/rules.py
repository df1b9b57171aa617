"""Which recurrence rules (RFC 5545 3.3.10) are followed: those whose occurrences are found in a bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from itertools import islice
from math import prod

from dateutil.rrule import rrulestr  # type: ignore[import-untyped]
from icalendar.prop import vBroken, vRecur

from kinfolk_assistant.reading.bounds import Refused

FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_MAX_INTERVAL = 10_000
_MAX_VALUES = 400
_MAX_A_DAY = 4
# No century without leap day lies after this year, so weekdays and leap days recur every 28 years.
_CYCLE_START, _CYCLE = 9904, 28


def check_rule(rule: object, start: date, what: str) -> None:
    """Refuse a rule that cannot be followed in a bounded time.

    Parameters
    ----------
    rule
        The property's value as icalendar reads it.
    start
        The DTSTART that the rule begins with.
    what
        Whose rule it is, for the sentence.

    Raises
    ------
    Refused
        Where it repeats more often than daily, more than four times a day, or never.
    """
    if not isinstance(rule, vRecur):
        raise Refused(f"{what} must have one recurrence rule as in RFC 5545 3.3.10 and has another or several.")
    values = {key: value if isinstance(value, list) else [value] for key, value in rule.items()}
    frequency = str(values.get("FREQ", ["at no frequency"])[0])[:20].upper()
    if frequency not in FREQUENCIES:
        raise Refused(f"{what} repeats {frequency!r}; it must repeat daily or less often.")
    if any(not 1 <= int(number) <= _MAX_INTERVAL for number in values.get("INTERVAL", [1])):
        raise Refused(f"{what} repeats at an interval that is not between 1 and {_MAX_INTERVAL}.")
    if sum(len(value) for value in values.values()) > _MAX_VALUES:
        raise Refused(f"{what} has a recurrence rule of more than {_MAX_VALUES} values.")
    if prod(len(values.get(part, [0])) for part in ("BYHOUR", "BYMINUTE", "BYSECOND")) > _MAX_A_DAY:
        raise Refused(f"{what} repeats more than {_MAX_A_DAY} times a day.")
    if frequency == "DAILY" and "BYSETPOS" in values:
        raise Refused(f"{what} has a daily rule with BYSETPOS; that needs a weekly, monthly or yearly one.")
    if next(_probe(rule, start, what), None) is None:
        raise Refused(f"{what} has a recurrence rule that no day ever meets.")


def check_zone_rule(rule: object, start: object, what: str) -> None:
    """Refuse a time zone's rule by which finding one offset would take long.

    Parameters
    ----------
    rule, start
        The values of RRULE and DTSTART as icalendar reads them.
    what
        Whose rule it is, for the sentence.

    Raises
    ------
    Refused
        Where the clocks change by it more than once a year.
    """
    if isinstance(start, vBroken) or not isinstance(start := getattr(start, "dt", None), date):
        raise Refused(f"{what} has no DTSTART.")
    check_rule(rule, start, what)
    first, second, *_ = (*islice(_probe(rule, start, what), 2), None)
    if first is not None and second is not None and first.year == second.year:
        raise Refused(f"{what} changes more than once a year.")


def _probe(rule: object, start: date, what: str) -> Iterator[datetime]:
    """Give the occurrences of a rule, begun anew near the end of the calendar and without its own end.

    dateutil seeks an occurrence until the year 9999, for many seconds where there is none. Here it has less than a
    hundred years left, and they have the same leap days and weekdays.
    """
    assert isinstance(rule, vRecur)
    endless = vRecur({key: value for key, value in rule.items() if key not in ("UNTIL", "COUNT")})
    try:
        text = endless.to_ical().decode()  # type: ignore[no-untyped-call]
        yield from rrulestr(text, dtstart=_moved(start))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
        raise Refused(f"{what} has a recurrence rule that cannot be followed.") from None


def _moved(start: date) -> datetime:
    return datetime(_CYCLE_START + (start.year - _CYCLE_START) % _CYCLE, start.month, start.day)
