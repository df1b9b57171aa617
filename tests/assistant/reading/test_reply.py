from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
import vobject
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icalendar import Calendar, Event, vCalAddress
from xandikos.icalendar import validate_calendar
from xandikos.itip import extract_scheduling_signature

from kinfolk_assistant.reading.calendars import Refused, read_calendar
from kinfolk_assistant.reading.reply import make_reply, with_answer
from tests.assistant.reading import corpus
from tests.assistant.reading.corpus import CUSTOM_ZONE, TIMES, calendar, event, named, one, zoned

ANN = "ann@example.org"
UID = "1@example.org"
NOW = datetime(2026, 6, 2, 9, 30, tzinfo=UTC)
# What RFC 5546 3.2.3 lets a REPLY have of what is written here, and what it must have.
MAY = {
    "UID",
    "DTSTAMP",
    "SEQUENCE",
    "DTSTART",
    "DTEND",
    "RECURRENCE-ID",
    "ORGANIZER",
    "ATTENDEE",
    "SUMMARY",
    "LOCATION",
}
MUST = {"UID", "DTSTAMP", "ORGANIZER", "ATTENDEE"}
SERIES = ("DTSTART;TZID=Europe/Berlin:20260701T100000", "DTEND;TZID=Europe/Berlin:20260701T110000", "RRULE:FREQ=WEEKLY")
WINDOWS = tuple(line.replace("Europe/Berlin", "W. Europe Standard Time") for line in SERIES)


def answered(data: bytes, recurrence_id: str = "", answer: str = "ACCEPTED") -> tuple[str, Calendar]:
    text = make_reply(read_calendar(data)[0].text, UID, recurrence_id, ANN, answer, NOW)
    return text, Calendar.from_ical(text)


def kept(data: bytes, recurrence_id: str = "", answer: str = "ACCEPTED") -> Calendar:
    return Calendar.from_ical(with_answer(read_calendar(data)[0].text, UID, recurrence_id, ANN, answer))


def check_reply(text: str, answer: str) -> Event:
    """Hold a REPLY against RFC 5546 3.2.3 and against two other readers; give its event."""
    assert all(len(line) <= 75 for line in text.encode().split(b"\r\n"))
    assert "\n" not in text.replace("\r\n", "")
    reply = Calendar.from_ical(text)
    reply.validate()
    assert list(validate_calendar(reply, strict=True)) == []
    assert str(vobject.readOne(text).method.value) == "REPLY"
    assert (reply["METHOD"], reply["VERSION"]) == ("REPLY", "2.0")
    [said] = [one for one in reply.subcomponents if one.name != "VTIMEZONE"]
    assert said.name == "VEVENT"
    assert said.errors == []
    assert set(said) >= MUST
    assert set(said) <= MAY | {"COMMENT"}
    assert not said.subcomponents
    assert not isinstance(said["ATTENDEE"], list)
    assert said["ATTENDEE"].params["PARTSTAT"] == answer
    assert reply.get_missing_tzids() == set()
    return said


def test_a_reply_has_what_the_standard_asks_for_and_nothing_else():
    data = one(
        *TIMES, "SEQUENCE:4", "SUMMARY:Plan", "LOCATION:Room 1", "DESCRIPTION:long", "RRULE:FREQ=DAILY", "CLASS:PRIVATE"
    )
    text, _ = answered(data)
    said = check_reply(text, "ACCEPTED")
    assert said["DTSTAMP"].dt == NOW
    assert (said["UID"], said["SEQUENCE"], said["SUMMARY"], said["LOCATION"]) == (UID, 4, "Plan", "Room 1")
    assert said["DTSTART"].dt == datetime(2026, 7, 1, 8, tzinfo=UTC)
    assert said["ORGANIZER"] == "mailto:bob@example.org"
    assert said["ATTENDEE"] == "mailto:ann@example.org"
    assert dict(said["ATTENDEE"].params) == {"CN": "Ann", "PARTSTAT": "ACCEPTED"}
    assert "DESCRIPTION" not in said


def test_a_comment_and_a_long_or_odd_text_cannot_break_out_of_their_lines():
    data = one(*TIMES, "SUMMARY:Zürich " + "ü" * 300, 'ATTENDEE;CN="^nX-BAD:1":mailto:cy@example.org')
    [found] = read_calendar(data)
    comment = "Sorry,\r\nATTENDEE:mailto:x@example.org; 日本"
    text = make_reply(found.text, UID, "", "cy@example.org", "DECLINED", NOW, comment)
    said = check_reply(text, "DECLINED")
    assert said["COMMENT"].replace("\r", "") == comment.replace("\r", "")
    assert "\nX-BAD" not in text


def test_the_addresses_are_written_as_the_organiser_wrote_them():
    data = one(*TIMES).replace(b"mailto:ann@example.org", b"MAILTO:Ann@Example.org")
    _, reply = answered(data)
    assert reply.events[0]["ATTENDEE"] == "MAILTO:Ann@Example.org"


def test_what_is_between_client_and_server_is_not_sent():
    data = one(*TIMES).replace(b"ORGANIZER;", b"ORGANIZER;SCHEDULE-AGENT=SERVER;SCHEDULE-STATUS=1.2;")
    _, reply = answered(data)
    assert dict(reply.events[0]["ORGANIZER"].params) == {"CN": "Bob"}


def test_someone_who_is_not_on_the_list_may_answer():
    said = check_reply(make_reply(one(*TIMES).decode(), UID, "", "new@example.org", "TENTATIVE", NOW), "TENTATIVE")
    assert said["ATTENDEE"] == "mailto:new@example.org"


@pytest.mark.parametrize(
    ("data", "zone"),
    [
        (zoned("Europe/Berlin"), "Europe/Berlin"),
        (zoned("Europe/Berlin", *named("Europe/Berlin")), "Europe/Berlin"),
        (zoned("Customized Time Zone", *CUSTOM_ZONE), "Customized Time Zone"),
        (zoned("W. Europe Standard Time", *named("W. Europe Standard Time")), "W. Europe Standard Time"),
        (zoned("W. Europe Standard Time"), "W. Europe Standard Time"),
    ],
)
def test_a_reply_describes_the_one_time_zone_that_it_names(data, zone):
    text, reply = answered(data)
    check_reply(text, "ACCEPTED")
    assert reply.events[0]["DTSTART"].params["TZID"] == zone
    assert [str(one["TZID"]) for one in reply.timezones] == [zone]
    [again], [before] = read_calendar(text.encode()), read_calendar(data)
    assert again.meetings[0].start.astimezone(UTC) == before.meetings[0].start.astimezone(UTC)


@pytest.mark.parametrize(
    ("lines", "recurrence_id", "written"),
    [
        (SERIES, "20260708T080000Z", "RECURRENCE-ID;TZID=Europe/Berlin:20260708T100000"),
        (WINDOWS, "20260708T080000Z", "RECURRENCE-ID;TZID=W. Europe Standard Time:20260708T100000"),
        (SERIES, "20261202T090000Z", "RECURRENCE-ID;TZID=Europe/Berlin:20261202T100000"),
        ((*TIMES, "RRULE:FREQ=DAILY"), "20260702T080000Z", "RECURRENCE-ID:20260702T080000Z"),
        (("DTSTART;VALUE=DATE:20260701", "RRULE:FREQ=DAILY"), "20260703", "RECURRENCE-ID;VALUE=DATE:20260703"),
        (("DTSTART:20260701T100000", "RRULE:FREQ=DAILY"), "20260703T100000", "RECURRENCE-ID:20260703T100000"),
    ],
)
def test_one_occurrence_of_a_series_is_answered_by_its_own_event(lines, recurrence_id, written):
    data = one(*lines, "SUMMARY:series")
    text, _ = answered(data, recurrence_id, "DECLINED")
    said = check_reply(text, "DECLINED")
    assert written in text
    assert said["DTSTART"].dt == said["RECURRENCE-ID"].dt
    series, own = kept(data, recurrence_id, "DECLINED").events
    assert written in own.to_ical().decode()
    assert (series["ATTENDEE"].params["PARTSTAT"], own["ATTENDEE"].params["PARTSTAT"]) == ("NEEDS-ACTION", "DECLINED")
    assert ("RRULE" in series, "RRULE" in own) == (True, False)
    assert own["SUMMARY"] == "series"
    if "DTEND" in series:
        assert own["DTEND"].dt - own["DTSTART"].dt == series["DTEND"].dt - series["DTSTART"].dt
    [again] = read_calendar(with_answer(data.decode(), UID, recurrence_id, ANN, "DECLINED").encode())
    assert [(one.recurrence_id, one.answer_of(ANN)) for one in again.meetings] == [
        ("", "NEEDS-ACTION"),
        (recurrence_id, "DECLINED"),
    ]


def test_an_occurrence_that_has_an_event_is_answered_in_it():
    moved = event("RECURRENCE-ID:20260708T080000Z", "DTSTART:20260709T120000Z", "SEQUENCE:7")
    data = calendar(*event(*SERIES), *moved)
    _, reply = answered(data, "20260708T080000Z")
    assert reply.events[0]["DTSTART"].dt == datetime(2026, 7, 9, 12, tzinfo=UTC)
    assert reply.events[0]["SEQUENCE"] == 7
    series, own = kept(data, "20260708T080000Z").events
    assert [one["ATTENDEE"].params["PARTSTAT"] for one in (series, own)] == ["NEEDS-ACTION", "ACCEPTED"]


def test_the_own_copy_has_no_method_and_differs_in_the_answer_alone():
    data = calendar(*CUSTOM_ZONE, *event(*TIMES, "X-KEPT;X-P=1:yes", "ATTENDEE;RSVP=TRUE:mailto:cy@example.org"))
    before, after = Calendar.from_ical(data), kept(data)
    assert "METHOD" not in after
    people = after.events[0]["ATTENDEE"]
    assert [str(one) for one in people] == ["mailto:cy@example.org", "mailto:ann@example.org"]
    assert people[1].params["PARTSTAT"] == "ACCEPTED"
    people[1].params["PARTSTAT"] = "NEEDS-ACTION"
    after["METHOD"] = before["METHOD"]
    assert after == before


def test_someone_not_on_the_list_is_added_to_their_own_copy():
    after = Calendar.from_ical(with_answer(one(*TIMES).decode(), UID, "", "new@example.org", "ACCEPTED"))
    assert [str(one) for one in after.events[0]["ATTENDEE"]] == ["mailto:ann@example.org", "mailto:new@example.org"]


def test_a_later_answer_replaces_the_first_wherever_the_address_stands():
    data = one(*TIMES, "ATTENDEE;PARTSTAT=ACCEPTED:mailto:ANN@example.org")
    after = kept(data, answer="DECLINED")
    assert [one.params["PARTSTAT"] for one in [after.events[0]["ATTENDEE"]]] == ["DECLINED"]


@pytest.mark.parametrize(
    ("uid", "recurrence_id", "attendee", "answer", "reason"),
    [
        ("2", "", ANN, "ACCEPTED", "no event '2'"),
        (UID, "tomorrow", ANN, "ACCEPTED", "no occurrence 'tomorrow'"),
        (UID, "20260703", ANN, "ACCEPTED", "no occurrence '20260703'"),
        (UID, "", ANN, "accept", "answer is 'accept'"),
        (UID, "", "ann@example.org\r\nX-BAD:1", "ACCEPTED", "must be a mail address"),
        (UID, "", "", "ACCEPTED", "must be a mail address"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_one_sentence(uid, recurrence_id, attendee, answer, reason):
    text = one(*SERIES).decode()
    with pytest.raises(ValueError, match=reason):
        make_reply(text, uid, recurrence_id, attendee, answer, NOW)
    with pytest.raises(ValueError, match=reason):
        with_answer(text, uid, recurrence_id, attendee, answer)


def test_without_an_organiser_there_is_nobody_to_answer():
    with pytest.raises(Refused, match="no ORGANIZER"):
        make_reply(corpus.HANDLED["no organiser"]().decode(), UID, "", ANN, "ACCEPTED", NOW)


@pytest.mark.parametrize("name", [name for name in corpus.HANDLED if name not in ("no organiser", "lower case")])
def test_every_file_that_is_read_can_be_answered(name):
    [found] = read_calendar(corpus.HANDLED[name]())
    recurrence_id = found.meetings[0].recurrence_id
    began = time.thread_time()
    text = make_reply(found.text, UID, recurrence_id, ANN, "ACCEPTED", NOW)
    own = with_answer(found.text, UID, recurrence_id, ANN, "ACCEPTED")
    assert time.thread_time() - began < 4
    check_reply(text, "ACCEPTED")
    [again] = read_calendar(own.encode())
    assert again.method == ""
    assert again.meetings[0].answer_of(ANN) == "ACCEPTED"
    assert [one.start for one in again.meetings] == [one.start for one in found.meetings]


ADDRESSES = st.from_regex(r"[a-zA-Z0-9.+_-]{1,20}@[a-z0-9-]{1,20}\.(org|com)", fullmatch=True)
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=60)
MOMENTS = st.one_of(
    st.datetimes(
        datetime(2000, 1, 1), datetime(2040, 1, 1), timezones=st.one_of(st.none(), st.just(UTC), st.timezones())
    ),
    st.dates(datetime(2000, 1, 1).date(), datetime(2040, 1, 1).date()),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, str]:
    """Any request that icalendar can write, and who of its attendees is asked."""
    made = Event()
    made.add("uid", draw(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30)))
    made.add("dtstamp", NOW)
    start = draw(MOMENTS)
    made.add("dtstart", start.replace(microsecond=0, fold=0) if isinstance(start, datetime) else start)
    made.add("sequence", draw(st.integers(0, 100)))
    for name in ("summary", "location", "description", "x-own"):
        if draw(st.booleans()):
            made.add(name, draw(NAMES))
    if draw(st.booleans()):
        made.add("rrule", {"freq": draw(st.sampled_from(["daily", "weekly", "yearly"])), "count": 5})
    made.add("organizer", vCalAddress("mailto:boss@example.org", params={"CN": draw(NAMES)}))
    addresses = draw(st.lists(ADDRESSES, min_size=1, max_size=5, unique_by=str.lower))
    for address in addresses:
        params = {"CN": draw(NAMES), "RSVP": "TRUE", "PARTSTAT": draw(st.sampled_from(["NEEDS-ACTION", "ACCEPTED"]))}
        made.add("attendee", vCalAddress(f"mailto:{address}", params=params))
    request = Calendar()
    request.add("prodid", "-//example//example//EN")
    request.add("version", "2.0")
    request.add("method", "REQUEST")
    request.add_component(made)
    return request.to_ical(), draw(st.sampled_from(addresses))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests(), st.sampled_from(["ACCEPTED", "DECLINED", "TENTATIVE"]))
def test_any_request_is_answered_by_a_reply_of_exactly_one_attendee(request_and_asked, answer):
    data, asked = request_and_asked
    [found] = read_calendar(data)
    meeting = found.meetings[0]
    text = make_reply(found.text, meeting.uid, "", asked.lower(), answer, NOW)
    said = check_reply(text, answer)
    assert str(said["ATTENDEE"]) == f"mailto:{asked}"
    [reply] = read_calendar(text.encode())
    [told] = reply.meetings
    assert reply.method == "REPLY"
    assert [(one.address, one.answer) for one in told.attendees] == [(asked.lower(), answer)]
    assert (told.uid, told.sequence, told.organiser) == (meeting.uid, meeting.sequence, "boss@example.org")
    assert told.start == meeting.start


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests(), st.sampled_from(["ACCEPTED", "DECLINED", "TENTATIVE"]))
def test_an_answer_changes_nothing_in_the_own_copy_that_a_server_forbids(request_and_asked, answer):
    data, asked = request_and_asked
    [found] = read_calendar(data)
    own = with_answer(found.text, found.meetings[0].uid, "", asked.lower(), answer)
    before, after = Calendar.from_ical(data), Calendar.from_ical(own)
    mine = frozenset({f"mailto:{asked}"})
    # By this a CalDAV server finds out whether an attendee changed more than their own answer (RFC 6638 3.2.2.1).
    assert extract_scheduling_signature(after, mine) == extract_scheduling_signature(before, mine)
    people = [after.events[0]["ATTENDEE"], before.events[0]["ATTENDEE"]]
    for new, old in zip(*[each if isinstance(each, list) else [each] for each in people], strict=True):
        assert (str(new) == f"mailto:{asked}") or new.params == old.params
        if str(new) == f"mailto:{asked}":
            assert new.params["PARTSTAT"] == answer
            new.params["PARTSTAT"] = old.params["PARTSTAT"]
    after["METHOD"] = before["METHOD"]
    assert after == before
