"""Series of meetings unrolled by recurring-ical-events, from the few properties that this needs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

import recurring_ical_events  # type: ignore[import-untyped]
from icalendar import Calendar, Component, Event
from icalendar.prop import vDDDTypes

from kinfolk_assistant.meeting import Moment
from kinfolk_assistant.reading.events import recurrence_of, span_of

_NEEDED = ("UID", "RECURRENCE-ID", "SEQUENCE", "RRULE", "RDATE", "EXDATE")


class Once(NamedTuple):
    """One occurrence: by which RECURRENCE-ID its event may be known, and when it is."""

    recurrence_id: str
    start: Moment
    end: Moment


class Series:
    """The events of one UID, ready to be unrolled; their attendees and texts are not kept.

    Parameters
    ----------
    events
        The series, if it is known, and its changed occurrences, each in one version.
    """

    def __init__(self, events: Iterable[Component]) -> None:
        calendar = Calendar()
        self._zone: tzinfo | None = None
        for event in events:
            bare = Event({name: event[name] for name in _NEEDED if name in event})
            start, end = span_of(event, "the event")
            # An end that is left out or given by a DURATION is put as it is understood here.
            bare["DTSTART"], bare["DTEND"] = vDDDTypes(start), vDDDTypes(end)
            calendar.add_component(bare)
            if isinstance(start, datetime) and "RECURRENCE-ID" not in event:
                self._zone = start.tzinfo
        self._query = recurring_ical_events.of(calendar)

    def between(self, start: datetime, end: datetime, zone: tzinfo = UTC) -> list[Once]:
        """Give the occurrences between two instants; floating times and whole days are those of ``zone``."""
        # In the series' own zone: times of one zone are compared without asking it for offsets.
        own = self._zone or zone
        found = self._query.between(start.astimezone(own), end.astimezone(own))
        return [Once(recurrence_of(event), event["DTSTART"].dt, event["DTEND"].dt) for event in found]


def try_out(series: Series, start: datetime) -> None:
    """Unroll a little of a series, to meet now what would raise an error later."""
    series.between(start - timedelta(days=1), start + timedelta(days=8))
