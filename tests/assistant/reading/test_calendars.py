from __future__ import annotations

import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icalendar import Calendar, Event

from kinfolk_assistant.meeting import Attendee
from kinfolk_assistant.reading.aliases import renamed
from kinfolk_assistant.reading.calendars import MAX_ATTENDEES, WHOLE_CALENDAR, Refused, read_calendar
from kinfolk_assistant.reading.occurrences import occurrences
from tests.assistant.reading import corpus
from tests.assistant.reading.corpus import CUSTOM_ZONE, TIMES, calendar, event, named, one, zoned

UTC_ZONE = ZoneInfo("UTC")
# A second on a machine of its own; the processor's time, so that a busy one does not matter much.
SECONDS = 2.0


def first(data: bytes):
    [found] = read_calendar(data)
    return found.meetings[0]


@pytest.mark.parametrize("name", corpus.HANDLED)
def test_an_awkward_file_is_read_quickly_and_can_be_unrolled(name):
    data = corpus.HANDLED[name]()
    began = time.thread_time()
    [found] = read_calendar(data)
    assert time.thread_time() - began < SECONDS
    assert found.meetings[0].uid == "1@example.org"
    start, end = found.meetings[0].span(UTC_ZONE)
    assert start <= end
    assert len(occurrences([found], start, datetime(2026, 9, 1, tzinfo=UTC), UTC_ZONE)) >= 1


@pytest.mark.parametrize("name", corpus.REFUSED)
def test_a_file_that_cannot_be_used_is_refused_quickly_with_one_sentence(name):
    make, reason = corpus.REFUSED[name]
    data = make()
    began = time.thread_time()
    with pytest.raises(Refused, match=r"^the |^a ") as caught:
        read_calendar(data)
    assert time.thread_time() - began < SECONDS
    sentence = str(caught.value)
    assert reason in sentence
    assert sentence.endswith(".")
    assert sentence.isprintable()
    assert len(sentence) < 400
    assert "site-packages" not in sentence


@pytest.mark.parametrize(
    "name", ["10,000 attendees", "an attachment of 3 MB", "a line of 9 MB, folded", "a million properties", "50 MB"]
)
def test_reading_takes_no_more_memory_than_a_few_times_the_file(name):
    data = corpus.EVERYTHING[name]()
    tracemalloc.start()
    try:
        read_calendar(data)
    except Refused:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < max(50 * 10**6, 0.1 * len(data))


def test_fifty_megabytes_are_refused_before_they_are_decoded():
    data = corpus.EVERYTHING["50 MB"]()
    tracemalloc.start()
    with pytest.raises(Refused, match="50000341 bytes"):
        read_calendar(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**5


@pytest.mark.parametrize(
    ("data", "start", "end"),
    [
        (zoned("Europe/Berlin"), "2026-07-01 08:00", "2026-07-01 09:00"),
        (zoned("Europe/Berlin", *named("Europe/Berlin")), "2026-07-01 08:00", "2026-07-01 09:00"),
        (zoned("W. Europe Standard Time"), "2026-07-01 08:00", "2026-07-01 09:00"),
        (zoned('"Eastern Standard Time"'), "2026-07-01 14:00", "2026-07-01 15:00"),
        (zoned("/freeassociation.sourceforge.net/Asia/Kolkata"), "2026-07-01 04:30", "2026-07-01 05:30"),
        (zoned("Customized Time Zone", *CUSTOM_ZONE), "2026-07-01 05:30", "2026-07-01 06:30"),
        (zoned("Customized Time Zone", after=CUSTOM_ZONE), "2026-07-01 05:30", "2026-07-01 06:30"),
        (one("DTSTART:20260701T100000", "DTEND:20260701T110000"), "2026-07-01 15:00", "2026-07-01 16:00"),
        (one("DTSTART;VALUE=DATE:20260701", "DTEND;VALUE=DATE:20260703"), "2026-07-01 05:00", "2026-07-03 05:00"),
        (one("DTSTART;VALUE=DATE:20260701"), "2026-07-01 05:00", "2026-07-02 05:00"),
        (one("DTSTART;VALUE=DATE:20260701", "DTEND;VALUE=DATE:20260701"), "2026-07-01 05:00", "2026-07-02 05:00"),
        (one("DTSTART;VALUE=DATE:20260701", "DURATION:P2D"), "2026-07-01 05:00", "2026-07-03 05:00"),
        (one("DTSTART:20260701T080000Z"), "2026-07-01 08:00", "2026-07-01 08:00"),
        (one("DTSTART:20260701T080000Z", "DURATION:PT90M"), "2026-07-01 08:00", "2026-07-01 09:30"),
        # The night in which Berlin's clocks go from 2 to 3: eight hours by the clock, and a day by the calendar.
        (one("DTSTART;TZID=Europe/Berlin:20260328T230000", "DURATION:PT8H"), "2026-03-28 22:00", "2026-03-29 06:00"),
        (one("DTSTART;TZID=Europe/Berlin:20260328T230000", "DURATION:P1D"), "2026-03-28 22:00", "2026-03-29 21:00"),
    ],
)
def test_times_of_every_style_are_the_instants_that_they_mean(data, start, end):
    # Floating times and whole days are those of the user, here in Chicago.
    span = first(data).span(ZoneInfo("America/Chicago"))
    assert [f"{moment:%Y-%m-%d %H:%M}" for moment in span] == [start, end]


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("folded", "one two"),
        ("folded by tab", "one two"),
        ("folded within a character", "Zürich"),
        ("broken UTF-8", "Z\ufffdrich"),
        ("NUL and control characters", "onetwo"),
    ],
)
def test_text_is_unfolded_and_decoded(name, summary):
    assert first(corpus.HANDLED[name]()).summary == summary


def test_every_property_is_read():
    lines = [
        "SEQUENCE:3",
        "CREATED:20260531T100000Z",
        "SUMMARY:Plan\\, then do",
        "DESCRIPTION:first line\\nsecond line",
        "LOCATION:Room 1\\; north",
        "CATEGORIES:work,a\\,b",
        "CATEGORIES:team",
        "PRIORITY:2",
        "TRANSP:TRANSPARENT",
        "STATUS:cancelled",
        "RRULE:FREQ=WEEKLY;BYDAY=WE",
    ]
    found = first(one(*TIMES, *lines))
    assert found.stamp == datetime(2026, 6, 1, 12, tzinfo=UTC)
    assert found.created == datetime(2026, 5, 31, 10, tzinfo=UTC)
    assert (found.sequence, found.priority, found.cancelled, found.transparent) == (3, 2, True, True)
    assert (found.summary, found.location) == ("Plan, then do", "Room 1; north")
    assert found.description == "first line\nsecond line"
    assert found.categories == ("work", "a,b", "team")
    assert (found.organiser, found.organiser_name) == ("bob@example.org", "Bob")
    assert found.attendees == (Attendee("ann@example.org", "Ann", "NEEDS-ACTION"),)
    assert found.repeats == "FREQ=WEEKLY;BYDAY=WE"


@pytest.mark.parametrize(("importance", "priority"), [("2", 1), ("1", 5), ("0", 9), ("7", 0)])
def test_outlooks_importance_counts_where_there_is_no_priority(importance, priority):
    line = f"X-MICROSOFT-CDO-IMPORTANCE:{importance}"
    assert first(one(*TIMES, line)).priority == priority
    assert first(one(*TIMES, line, "PRIORITY:0")).priority == priority
    assert first(one(*TIMES, line, "PRIORITY:4")).priority == 4


@pytest.mark.parametrize(
    ("line", "address", "answer"),
    [
        ("ATTENDEE;PARTSTAT=ACCEPTED:MAILTO:Cy@Example.ORG", "cy@example.org", "ACCEPTED"),
        ("ATTENDEE;PARTSTAT=declined:mailto: cy@example.org ", "cy@example.org", "DECLINED"),
        ("ATTENDEE;EMAIL=cy@example.org:urn:uuid:6ba7b810", "cy@example.org", "NEEDS-ACTION"),
        ("ATTENDEE:cy@example.org", "cy@example.org", "NEEDS-ACTION"),
    ],
)
def test_addresses_are_lower_case_and_without_mailto(line, address, answer):
    found = first(one(*TIMES, line))
    assert found.answer_of(address) == answer


def test_ten_thousand_attendees_are_kept_and_beyond_the_bound_the_first_ones():
    assert len(first(corpus.HANDLED["10,000 attendees"]()).attendees) == 10_001
    many = one(*TIMES, *["ATTENDEE:mailto:p@example.org"] * (MAX_ATTENDEES + 5))
    [found] = read_calendar(many, bounds=WHOLE_CALENDAR)
    assert len(found.meetings[0].attendees) == MAX_ATTENDEES


@pytest.mark.parametrize(
    ("times", "recurrence_id"),
    [
        (("DTSTART:20260701T080000Z", "RECURRENCE-ID:20260701T070000Z"), "20260701T070000Z"),
        (("DTSTART:20260701T080000Z", "RECURRENCE-ID;TZID=Europe/Berlin:20260701T070000"), "20260701T050000Z"),
        (("DTSTART:20260701T080000", "RECURRENCE-ID:20260701T070000"), "20260701T070000"),
        (("DTSTART;VALUE=DATE:20260701", "RECURRENCE-ID;VALUE=DATE:20260702"), "20260702"),
        (("DTSTART:20260701T080000Z",), ""),
    ],
)
def test_an_occurrence_is_known_by_its_instant_whatever_its_zone(times, recurrence_id):
    assert first(one(*times)).recurrence_id == recurrence_id


def test_a_series_comes_first_and_of_versions_the_newest_counts():
    series = event(*TIMES, "RRULE:FREQ=DAILY", "SEQUENCE:1", "SUMMARY:series")
    older = event(*TIMES, "RECURRENCE-ID:20260702T080000Z", "SEQUENCE:1", "SUMMARY:older")
    newer = event(*TIMES, "RECURRENCE-ID:20260702T080000Z", "SEQUENCE:2", "SUMMARY:newer")
    [found] = read_calendar(calendar(*newer, *older, *series))
    assert [meeting.summary for meeting in found.meetings] == ["series", "newer"]


def test_each_uid_is_an_object_whose_own_text_reads_the_same():
    zone = event("DTSTART;TZID=Customized Time Zone:20260701T100000", "SUMMARY:Zürich, then on", uid="zoned")
    series = [line for uid in "ab" for line in event(*TIMES, "RRULE:FREQ=DAILY", "X-KEPT;X-P=1:yes", uid=uid)]
    changed = event(*TIMES, "RECURRENCE-ID:20260702T080000Z", uid="b")
    found = read_calendar(calendar(*CUSTOM_ZONE, *series, *zone, *changed))
    assert [each.meetings[0].uid for each in found] == ["a", "b", "zoned"]
    assert [len(each.meetings) for each in found] == [1, 2, 1]
    for each in found:
        [again] = read_calendar(each.text.encode())
        assert again.method == "REQUEST"
        assert [meeting.span(UTC_ZONE) for meeting in again.meetings] == [m.span(UTC_ZONE) for m in each.meetings]
        assert [meeting.summary for meeting in again.meetings] == [meeting.summary for meeting in each.meetings]
        assert ("BEGIN:VTIMEZONE" in each.text) == (each.meetings[0].uid == "zoned")
    assert "X-KEPT;X-P=1:yes" in found[0].text


def test_calendars_of_different_methods_in_one_file_stay_apart():
    found = read_calendar(one(*TIMES) + one(*TIMES, "SEQUENCE:1", method="CANCEL"))
    assert [(each.method, each.meetings[0].cancelled) for each in found] == [("REQUEST", False), ("CANCEL", True)]


def test_what_cannot_be_used_is_left_out_where_the_caller_asks_for_it():
    data = calendar(*event(*TIMES, uid="good"), *event("RRULE:FREQ=SECONDLY", *TIMES, uid="bad"))
    with pytest.raises(Refused):
        read_calendar(data)
    skipped: list[str] = []
    [found] = read_calendar(data, "my file", skipped=skipped)
    assert found.meetings[0].uid == "good"
    assert skipped == ["the event 'bad' of my file repeats 'SECONDLY'; it must repeat daily or less often."]


def test_what_icalendar_reads_and_cannot_write_is_refused_where_it_has_to_be_written():
    unwritable = event(*TIMES, r"EXRULE:FREQ=WEEKLY;CO\NT=4", uid="bad")
    [alone] = read_calendar(calendar(*unwritable))
    assert alone.meetings[0].uid == "bad", "its text is kept as it came"
    data = calendar(*event(*TIMES, uid="good"), *unwritable)
    with pytest.raises(Refused, match=r"^the event 'bad' of the calendar cannot be written as iCalendar again "):
        read_calendar(data)
    skipped: list[str] = []
    assert [each.meetings[0].uid for each in read_calendar(data, skipped=skipped)] == ["good"]
    assert len(skipped) == 1
    with pytest.raises(Refused, match="cannot be written"):
        renamed(alone.text, "ann@example.org", "bob@example.org")


def test_one_file_cannot_change_what_another_files_time_zone_means():
    before = first(zoned("W. Europe Standard Time")).span(UTC_ZONE)
    mine = zoned("W. Europe Standard Time", *named("W. Europe Standard Time"))
    assert first(mine).span(UTC_ZONE)[0] == datetime(2026, 7, 1, 5, 30, tzinfo=UTC)
    assert first(zoned("W. Europe Standard Time")).span(UTC_ZONE) == before
    with pytest.raises(Refused, match="'Customized Time Zone'"):
        read_calendar(zoned("Customized Time Zone"))


def test_files_read_at_the_same_time_keep_their_own_time_zones():
    other = tuple(line.replace("+0430", "+0030").replace("+0330", "-0030") for line in CUSTOM_ZONE)
    files = [zoned("Customized Time Zone", *CUSTOM_ZONE), zoned("Customized Time Zone", *other)] * 15
    with ThreadPoolExecutor(8) as pool:
        hours = [one.span(UTC_ZONE)[0].strftime("%H:%M") for one in pool.map(first, files)]
    assert hours == ["05:30", "09:30"] * 15


def test_a_whole_calendar_has_wider_bounds():
    data = calendar(*(line for i in range(2000) for line in event(*TIMES, uid=str(i))), method="")
    assert len(read_calendar(data, bounds=WHOLE_CALENDAR)) == 2000


SMALL = [name for name in corpus.HANDLED if len(corpus.HANDLED[name]()) < 5000]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_whatever_is_done_to_a_file_it_is_read_or_refused(data):
    text = bytearray(corpus.HANDLED[data.draw(st.sampled_from(SMALL))]())
    pieces = st.sampled_from(
        [b"\r\n", b":", b";", b",", b'"', b"\\", b"BEGIN:VEVENT", b"\xff", b"9", b"-", b"^n", b"="]
    )
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        text[place : place + length] = data.draw(st.one_of(pieces, st.binary(max_size=6)))
    try:
        found = read_calendar(bytes(text))
    except Refused:
        return
    for each in found:
        start, end = each.meetings[0].span(UTC_ZONE)
        assert start <= end
        occurrences([each], datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), UTC_ZONE)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_are_read_or_refused(data):
    with pytest.raises(Refused):
        read_calendar(data)


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=100),
    st.dates(date(1971, 1, 1), date(2198, 1, 1)),
    st.integers(0, 40),
)
def test_what_icalendar_writes_is_read_back(summary, day, days):
    written, made = Calendar(), Event()
    made.add("uid", "x")
    made.add("summary", summary)
    made.add("dtstart", day)
    made.add("dtend", day + timedelta(days=1 + days))
    written.add_component(made)
    found = first(written.to_ical())
    assert found.summary == summary.strip()
    assert (found.start, found.end) == (day, day + timedelta(days=1 + days))
