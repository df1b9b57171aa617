from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfolk_assistant.meeting import CalendarObject, Meeting
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.occurrences import is_recurring, occurrences
from tests.assistant.reading.corpus import CUSTOM_ZONE, TIMES, calendar, event, one, zoned

BERLIN = ZoneInfo("Europe/Berlin")
WEEKLY = ("DTSTART;TZID=Europe/Berlin:20260701T100000", "DTEND;TZID=Europe/Berlin:20260701T110000", "RRULE:FREQ=WEEKLY")


def starts(*files: bytes, start: str = "2026-07-01", end: str = "2026-08-01", zone: ZoneInfo = BERLIN) -> list[str]:
    """When the meetings of some files start, by the clock of the zone."""
    objects = [found for data in files for found in read_calendar(data)]
    span = [datetime.fromisoformat(day).replace(tzinfo=zone) for day in (start, end)]
    return [f"{found.start.astimezone(zone):%m-%d %H:%M}" for found in occurrences(objects, *span, zone)]


def test_a_series_keeps_its_clock_time_when_the_clocks_change():
    found = starts(one(*WEEKLY), start="2026-10-20", end="2026-11-01", zone=ZoneInfo("UTC"))
    assert found == ["10-21 08:00", "10-28 09:00"]


def test_a_series_in_a_custom_zone_follows_that_zones_changes():
    data = zoned("Customized Time Zone", *CUSTOM_ZONE).replace(b"DTEND", b"RRULE:FREQ=WEEKLY\r\nDTEND")
    # It is on +04:30 until the last Sunday of October, the 25th, and then on +03:30.
    assert starts(data, start="2026-10-20", end="2026-11-01", zone=ZoneInfo("UTC")) == ["10-21 05:30", "10-28 06:30"]


def test_exception_dates_are_left_out_and_further_dates_taken_in():
    lines = ("EXDATE;TZID=Europe/Berlin:20260708T100000", "RDATE;TZID=Europe/Berlin:20260710T150000")
    assert starts(one(*WEEKLY, *lines)) == ["07-01 10:00", "07-10 15:00", "07-15 10:00", "07-22 10:00", "07-29 10:00"]


def test_a_further_period_has_its_own_length():
    [found] = read_calendar(one(*TIMES, "RDATE;VALUE=PERIOD:20260708T080000Z/PT3H"))
    span = datetime(2026, 7, 2, tzinfo=UTC), datetime(2026, 8, 1, tzinfo=UTC)
    [later] = occurrences([found], *span, BERLIN)
    assert later.end - later.start == timedelta(hours=3)
    assert later.recurring


def test_a_moved_occurrence_is_where_it_was_moved_to_with_its_own_text():
    moved = event("RECURRENCE-ID:20260708T080000Z", "DTSTART:20260709T120000Z", "DTEND:20260709T130000Z", "SUMMARY:new")
    [found] = read_calendar(calendar(*event(*WEEKLY, "SUMMARY:old"), *moved))
    span = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 7, 16, tzinfo=UTC)
    seen = [(each.start.day, each.meeting.summary, each.recurring) for each in occurrences([found], *span, BERLIN)]
    assert seen == [(1, "old", True), (9, "new", True), (15, "old", True)]


def test_an_occurrence_moved_into_the_span_from_afar_is_found():
    moved = event("RECURRENCE-ID:20261202T090000Z", "DTSTART:20260709T120000Z", "DTEND:20260709T130000Z")
    assert "07-09 14:00" in starts(calendar(*event(*WEEKLY), *moved))


def test_a_cancelled_occurrence_is_left_out():
    gone = event("RECURRENCE-ID:20260708T080000Z", *TIMES, "STATUS:CANCELLED")
    assert starts(calendar(*event(*WEEKLY), *gone)) == ["07-01 10:00", "07-15 10:00", "07-22 10:00", "07-29 10:00"]


def test_this_and_future_moves_all_later_occurrences():
    later = event(
        "RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20260715T100000",
        "DTSTART;TZID=Europe/Berlin:20260715T120000",
        "DTEND;TZID=Europe/Berlin:20260715T140000",
    )
    found = starts(calendar(*event(*WEEKLY), *later))
    assert found == ["07-01 10:00", "07-08 10:00", "07-15 12:00", "07-22 12:00", "07-29 12:00"]


def test_whole_days_and_floating_times_are_those_of_the_zone():
    day = one("DTSTART;VALUE=DATE:20260701", "DTEND;VALUE=DATE:20260702", "RRULE:FREQ=DAILY;COUNT=2")
    floating = one("DTSTART:20260701T100000", "DTEND:20260701T110000", "RRULE:FREQ=DAILY;COUNT=2").replace(b"1@", b"2@")
    for zone in (BERLIN, ZoneInfo("Pacific/Auckland")):
        found = starts(day, floating, zone=zone)
        assert found == ["07-01 00:00", "07-01 10:00", "07-02 00:00", "07-02 10:00"]


def test_a_whole_day_begins_and_ends_with_the_zones_own_day():
    [found] = read_calendar(one("DTSTART;VALUE=DATE:20260701", "RRULE:FREQ=YEARLY"))
    for zone in (ZoneInfo("Pacific/Auckland"), ZoneInfo("America/Chicago")):
        midnight = datetime(2026, 7, 1, tzinfo=zone)
        hours = [midnight + timedelta(hours=hours) for hours in (-1, 0, 1, 23, 24, 25)]
        assert [len(occurrences([found], *span, zone)) for span in pairwise(hours)] == [0, 1, 1, 1, 0]


def test_what_only_touches_the_span_does_not_count_and_what_crosses_it_does():
    data = one("DTSTART:20260701T080000Z", "DTEND:20260701T090000Z")
    [found] = read_calendar(data)
    hours = [datetime(2026, 7, 1, hour, tzinfo=UTC) for hour in range(6, 12)]
    counts = [len(occurrences([found], first, last, BERLIN)) for first, last in pairwise(hours)]
    assert counts == [0, 0, 1, 0, 0]
    half = datetime(2026, 7, 1, 8, 20, tzinfo=UTC)
    assert len(occurrences([found], half, half + timedelta(minutes=1), BERLIN)) == 1


def test_a_meeting_of_no_length_counts_at_the_start_of_a_span_and_not_at_its_end():
    [found] = read_calendar(one("DTSTART:20260701T080000Z"))
    hours = [datetime(2026, 7, 1, hour, tzinfo=UTC) for hour in range(7, 10)]
    counts = [len(occurrences([found], first, last, BERLIN)) for first, last in pairwise(hours)]
    assert counts == [0, 1]


@pytest.mark.parametrize("order", [1, -1])
def test_messages_about_one_meeting_are_put_together_whatever_their_order(order):
    series = one(*WEEKLY)
    moved = one("RECURRENCE-ID:20260708T080000Z", "DTSTART:20260709T120000Z", "DTEND:20260709T130000Z", "SEQUENCE:1")
    gone = one("RECURRENCE-ID:20260715T080000Z", *TIMES, "SEQUENCE:1", method="CANCEL")
    found = starts(*[series, moved, gone][::order])
    assert found == ["07-01 10:00", "07-09 14:00", "07-22 10:00", "07-29 10:00"]


def test_a_series_that_was_cancelled_is_gone_with_its_changed_occurrences():
    changed = event("RECURRENCE-ID:20260708T080000Z", "DTSTART:20260709T120000Z")
    assert starts(calendar(*event(*WEEKLY), *changed), one(*WEEKLY, "SEQUENCE:1", method="CANCEL")) == []
    assert starts(one(*TIMES), one(*TIMES, "SEQUENCE:1", method="CANCEL")) == []


def test_an_older_message_does_not_undo_a_newer_one():
    newer = one("DTSTART:20260702T080000Z", "SEQUENCE:2")
    assert starts(newer, one(*TIMES, "SEQUENCE:1")) == ["07-02 10:00"]


def test_a_reply_is_no_meeting():
    assert starts(one(*TIMES), one(*TIMES, "SEQUENCE:5", method="REPLY")) == ["07-01 10:00"]
    assert starts(one(*TIMES, method="REPLY")) == []


def test_recurrence_is_told():
    [series] = read_calendar(one(*WEEKLY))
    [dates] = read_calendar(one(*TIMES, "RDATE:20260708T080000Z"))
    [single] = read_calendar(one(*TIMES))
    [lone] = read_calendar(one(*TIMES, "RECURRENCE-ID:20260701T080000Z"))
    assert [is_recurring(each) for each in (series, dates, single, lone)] == [True, True, False, True]


@pytest.mark.parametrize(
    "lines",
    [
        ("DTSTART;TZID=Europe/Berlin:19700101T080000", "RRULE:FREQ=DAILY;BYHOUR=8,9;BYMINUTE=0,30"),
        ("DTSTART;TZID=Europe/Berlin:19700101T080000", "RRULE:FREQ=DAILY;COUNT=1000000000"),
        ("DTSTART;TZID=Customized Time Zone:19700101T080000", "RRULE:FREQ=DAILY;UNTIL=99991231T000000Z"),
    ],
)
def test_the_longest_series_is_unrolled_quickly(lines):
    [found] = read_calendar(calendar(*CUSTOM_ZONE, *event(*lines)))
    began = time.thread_time()
    seen = occurrences([found], datetime(2026, 7, 1, tzinfo=BERLIN), datetime(2026, 7, 8, tzinfo=BERLIN), BERLIN)
    assert time.thread_time() - began < 2
    assert len(seen) == (28 if "BYHOUR" in lines[1] else 7)


def test_a_thousand_single_meetings_are_looked_through_without_parsing_them():
    objects = [
        CalendarObject("", (Meeting(str(i), date(2026, 7, 1 + i % 30), date(2026, 7, 2 + i % 30)),), "not iCalendar")
        for i in range(1000)
    ]
    span = datetime(2026, 7, 3, tzinfo=BERLIN), datetime(2026, 7, 4, tzinfo=BERLIN)
    assert len(occurrences(objects, *span, BERLIN)) == len([i for i in range(1000) if i % 30 == 2])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
    st.datetimes(datetime(2026, 1, 1, 4), datetime(2026, 12, 1)).map(
        lambda when: when.replace(second=0, microsecond=0)
    ),
    st.integers(1, 5),
    st.integers(1, 60),
    st.sets(st.integers(0, 59), max_size=5),
    st.integers(0, 300),
)
def test_a_daily_series_is_what_counting_days_gives(zone, start, interval, count, left_out, days):
    def written(moment: datetime) -> str:
        return f"{moment:%Y%m%dT%H%M%S}"

    lines = [f"DTSTART;TZID={zone}:{written(start)}", "DURATION:PT30M"]
    lines += [f"RRULE:FREQ=DAILY;INTERVAL={interval};COUNT={count}"]
    lines += [f"EXDATE;TZID={zone}:{written(start + timedelta(days=interval * each))}" for each in left_out]
    [found] = read_calendar(one(*lines))
    span = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=days)
    own = ZoneInfo(zone)
    expected = [
        (start + timedelta(days=interval * each)).replace(tzinfo=own).astimezone(UTC)
        for each in range(count)
        if each not in left_out
    ]
    half = timedelta(minutes=30)
    assert [each.start for each in occurrences([found], *span, own)] == [
        begins for begins in expected if begins < span[1] and span[0] < begins + half
    ]
