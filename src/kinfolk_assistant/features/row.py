"""The features of a request, from the calendar as it stood when it came: for training and live alike.

In the papers: Roy (2006), appendix B.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from icalendar import Event
from icalendar.prop import vRecur

from kinfolk_assistant.features.case import Owner, make_case
from kinfolk_assistant.features.office import FROM_CALENDAR, names_of
from kinfolk_assistant.features.past import Past
from kinfolk_assistant.features.people import People
from kinfolk_assistant.features.rules import RULES
from kinfolk_assistant.meeting import Meeting, in_utc
from kinfolk_assistant.reading.events import BY_DATES
from kinfolk_assistant.reading.series import Series

__all__ = ["CALENDAR_FEATURES", "FeatureRow", "Owner", "coming_spans", "feature_row", "without_calendar"]

CALENDAR_FEATURES = (
    "invitee_recent",
    "busy_fday",
    "busy_hday",
    "free_slot_time",
    "conflict",
    "conflict_importance",
    "conflict_frequency",
    "location",
    *FROM_CALENDAR,
)
"""What hangs on the owner's calendar: a calendar that is not known is not an empty one."""

# A meeting without length still wants the user there at that moment.
_SHORTEST = timedelta(minutes=1)
# Of a request that goes on for longer only so much is held against the calendar, whatever it claims.
_LONGEST = timedelta(days=31)
# A running series is followed a little over a year ahead, so that yearly ones are found; most are found at once.
_MONTHS = timedelta(days=62)
_MOST_SPANS = 62
_AHEAD = tuple(timedelta(days=n) for n in (8, 40, 400))


class FeatureRow(NamedTuple):
    """The features in the order of `RULES`, then what the request names; ``unknown`` says why a feature is None."""

    values: dict[str, str | None]
    unknown: dict[str, str]


def feature_row(meeting: Meeting, owner: Owner, past: Past, people: People, when: datetime) -> FeatureRow:
    """Compute the features of a request.

    Parameters
    ----------
    meeting : Meeting
        The request. Of a series, the first occurrence that was not over when the request came is looked at.
    owner : Owner
        The user who is asked.
    past : Past
        The user's calendar. No version of the meeting itself counts, so it does no harm if it is in there.
    people : People
        The user's people-and-topics table.
    when : datetime
        When the request came.

    Returns
    -------
    FeatureRow
        What is known, and why the rest is not.

    Examples
    --------
    >>> from zoneinfo import ZoneInfo
    >>> owner = Owner("ada@example.org", ZoneInfo("Europe/Berlin"), ("library",))
    >>> at_three = datetime(2026, 3, 5, 15, tzinfo=owner.zone)
    >>> asked = Meeting("1", at_three, at_three + timedelta(hours=1), organiser="bob@example.org", summary="Plans")
    >>> row = feature_row(asked, owner, Past([], owner.address, owner.zone), People(), at_three - timedelta(days=2))
    >>> row.values["start_time"], row.values["duration"], row.values["invitee_soon"], row.values["conflict"]
    ('afternoon', '60', '3', 'no')
    >>> row.values["location"], row.unknown
    (None, {'location': 'the request names no place'})
    """
    if when.tzinfo is None:
        raise ValueError(f"The request {meeting.uid!r} came at {when}, but that needs a time zone.")
    when = when.astimezone(UTC)
    start, end = _span(meeting, owner, when)
    case = make_case(meeting, start, end, owner, people, past.at(when), when)
    found = {name: rule.find(case) for name, rule in RULES.items()}
    return FeatureRow(
        {name: one.value for name, one in found.items()} | names_of(case),
        {name: one.why_not for name, one in found.items() if one.value is None},
    )


def without_calendar(row: FeatureRow, why: str) -> FeatureRow:
    """Give the features of a request to somebody whose calendar is not known, for the reason ``why``.

    What is known of it otherwise may show an overlap all the same; it cannot show that there is none.
    """
    keeps = ("conflict",) if row.values["conflict"] == "yes" else ()
    missing = {name: why for name in CALENDAR_FEATURES if name not in keeps}
    return FeatureRow(row.values | dict.fromkeys(missing), row.unknown | missing)


def _span(meeting: Meeting, owner: Owner, when: datetime) -> tuple[datetime, datetime]:
    start, end = meeting.span(owner.zone)
    if meeting.repeats not in ("", BY_DATES) and end <= when:
        start, end = _ahead(meeting, owner, when) or (start, end)
    return start, min(max(end, start + _SHORTEST), start + _LONGEST)


def coming_spans(meeting: Meeting, owner: Owner, when: datetime) -> list[tuple[datetime, datetime]]:
    """Give the times that a request asks for from a moment on: of a series those of the next two months."""
    if meeting.repeats in ("", BY_DATES):
        return [_span(meeting, owner, when)]
    found = _series_of(meeting).between(when, when + _MONTHS, owner.zone)
    spans = sorted((in_utc(one.start, owner.zone), in_utc(one.end, owner.zone)) for one in found)
    coming = [(start, max(end, start + _SHORTEST)) for start, end in spans if end > when]
    return coming[:_MOST_SPANS] or [_span(meeting, owner, when)]


def _series_of(meeting: Meeting) -> Series:
    event = Event()
    event.add("dtstart", meeting.start)
    event.add("dtend", meeting.end)
    event.add("rrule", vRecur.from_ical(meeting.repeats))
    return Series([event])


def _ahead(meeting: Meeting, owner: Owner, when: datetime) -> tuple[datetime, datetime] | None:
    """Find the first occurrence of a series that is not over; None where there is none within reach.

    The rule alone counts: a changed occurrence is a request of its own, with its own features, and of a series by
    dates alone a meeting tells the first only.
    """
    series = _series_of(meeting)
    for reach in _AHEAD:
        found = series.between(when, when + reach, owner.zone)
        spans = [(in_utc(one.start, owner.zone), in_utc(one.end, owner.zone)) for one in found]
        if any(end > when for _, end in spans):
            return min((start, end) for start, end in spans if end > when)
    return None
