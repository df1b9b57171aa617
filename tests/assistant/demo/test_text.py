from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from kinfolk_assistant.demo.text import calendar_object
from kinfolk_assistant.meeting import Attendee, Meeting
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.occurrences import occurrences

ZONE = ZoneInfo("America/Los_Angeles")
START = datetime(2026, 3, 2, 9, tzinfo=ZONE)


def test_what_is_written_is_read_back_as_it_was():
    stamp = datetime(2026, 2, 20, 8, 30, 5, tzinfo=UTC)
    meeting = Meeting(
        "1-una@sri.example",
        START.astimezone(UTC),
        START.astimezone(UTC) + timedelta(hours=1),
        sequence=3,
        stamp=stamp,
        created=stamp - timedelta(days=1),
        organiser="boss@sri.example",
        organiser_name="Boss, the",
        attendees=(Attendee("una@sri.example", "Una", "TENTATIVE"), Attendee("boss@sri.example", "Boss", "ACCEPTED")),
        summary="Plans; budget, and a backslash \\ in a summary that is long enough to be folded over two lines",
        description="First line\nsecond line",
        location="Ravine House, room 3",
        categories=("one", "two"),
        priority=5,
        cancelled=True,
        transparent=True,
    )
    written = calendar_object([meeting], "REQUEST")
    [read] = read_calendar(written.text.encode())
    assert (read.method, read.meetings) == ("REQUEST", (meeting,))
    assert max(len(line) for line in written.text.split("\r\n")) <= 75


def test_whole_days_are_read_back_as_dates():
    trip = Meeting("1", date(2026, 3, 2), date(2026, 3, 4))
    [read] = read_calendar(calendar_object([trip]).text.encode())
    assert read.meetings == (trip,)


def test_a_series_keeps_its_hour_over_the_change_of_the_clocks_less_what_is_left_out_or_moved():
    series = Meeting("1", START, START + timedelta(hours=1), repeats="FREQ=WEEKLY;COUNT=4")
    third = START + timedelta(days=14)
    moved = replace(
        series,
        start=third + timedelta(days=1),
        end=third + timedelta(days=1, hours=1),
        recurrence_id=f"{third.astimezone(UTC):%Y%m%dT%H%M%SZ}",
        repeats="",
    )
    text = calendar_object([series, moved], left_out=[START + timedelta(days=21)]).text
    found = occurrences(read_calendar(text.encode()), START, START + timedelta(days=60), ZONE)
    # The clocks go forward on 8 March 2026: nine o'clock is 17:00 UTC before and 16:00 after.
    assert [f"{one.start:%d %H:%M}" for one in found] == ["02 17:00", "09 16:00", "17 16:00"]
