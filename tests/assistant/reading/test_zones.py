from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from dateutil.tz import tzical
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfolk_assistant.reading.calendars import read_calendar
from tests.assistant.reading.corpus import CUSTOM_ZONE, zoned

# Two eras, the second without summer time; offsets with seconds' worth of a quarter hour.
TWO_ERAS = (
    "BEGIN:VTIMEZONE",
    "TZID:Eras",
    "BEGIN:STANDARD",
    "DTSTART:19901028T030000",
    "TZOFFSETFROM:+0645",
    "TZOFFSETTO:+0545",
    "RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU;UNTIL=20301231T000000Z",
    "END:STANDARD",
    "BEGIN:DAYLIGHT",
    "DTSTART:19900325T020000",
    "TZOFFSETFROM:+0545",
    "TZOFFSETTO:+0645",
    "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU;UNTIL=20301231T000000Z",
    "END:DAYLIGHT",
    "END:VTIMEZONE",
)
BY_DATES = (
    "BEGIN:VTIMEZONE",
    "TZID:Dates",
    "BEGIN:STANDARD",
    "DTSTART:20000101T000000",
    "RDATE:20200101T000000,20220101T000000",
    "TZOFFSETFROM:-0300",
    "TZOFFSETTO:-0400",
    "END:STANDARD",
    "BEGIN:DAYLIGHT",
    "DTSTART:20100101T000000",
    "RDATE:20210101T000000",
    "TZOFFSETFROM:-0400",
    "TZOFFSETTO:-0300",
    "END:DAYLIGHT",
    "END:VTIMEZONE",
)


@pytest.mark.parametrize(
    ("name", "lines"), [("Customized Time Zone", CUSTOM_ZONE), ("Eras", TWO_ERAS), ("Dates", BY_DATES)]
)
@settings(max_examples=60, deadline=None)
@given(st.datetimes(datetime(2001, 1, 1), datetime(2150, 1, 1)))
def test_a_described_zone_has_the_offsets_that_dateutil_finds(name, lines, when):
    [found] = read_calendar(zoned(name, *lines))
    zone = found.meetings[0].start.tzinfo
    other = tzical(io.StringIO("\r\n".join(lines))).get()
    # Within some hours of a change, an offset may be asked for in either sense.
    if other.utcoffset(when - timedelta(hours=3)) == other.utcoffset(when + timedelta(hours=3)):
        assert zone.utcoffset(when) == other.utcoffset(when)
        assert when.replace(tzinfo=UTC).astimezone(zone).utcoffset() in {
            other.utcoffset(when + timedelta(hours=hours)) for hours in (-8, 0, 8)
        }
