"""Every value of every feature, by requests and calendars small enough to be read off by hand."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from kinfolk.datasets.meetings import MEETING_FEATURES, MEETING_MEANINGS
from kinfolk_assistant.features.office import OFFICE_FEATURES
from kinfolk_assistant.features.people import Contact, People
from kinfolk_assistant.features.row import Owner
from kinfolk_assistant.features.rules import RULES

from .calendars import BOB, CAME, EVE, ME, at, engagement, invited, request, row, series, value, whole_day

WEEKLY = series("UID:weekly DTSTAMP:20250101T000000Z DTSTART:20250102T133000Z DURATION:PT1H RRULE:FREQ=WEEKLY")


def asked_at(start: str, end: str = "20:00"):
    return request(5, start, end)


def lasting(minutes: int):
    return replace(request(), end=request().start + timedelta(minutes=minutes))


def with_bob(day: int, start: str = "10:00", end: str = "11:00", **fields):
    return engagement(day, start, end, attendees=invited((ME, "ACCEPTED"), (BOB, "ACCEPTED")), **fields)


def priority(number: int):
    return request(priority=number)


def topic(level: str) -> People:
    return People([Contact("topic", "plans", importance=level)])


def bob_is(**what: str) -> People:
    return People([Contact("person", BOB, **what)])


def examples():
    """Give the feature, the value expected, the request, the calendar, and what else there is."""
    for clock, part in [
        ("0:00", "early"),
        ("8:59", "early"),
        ("9:00", "morning"),
        ("11:29", "morning"),
        ("11:30", "mid"),
        ("13:29", "mid"),
        ("13:30", "afternoon"),
        ("16:29", "afternoon"),
        ("16:30", "late"),
        ("19:59", "late"),
    ]:
        yield "start_time", part, asked_at(clock), (), {}

    for minutes, name in [(0, "15"), (15, "15"), (16, "30"), (30, "30"), (31, "60"), (60, "60"), (61, "longer")]:
        yield "duration", name, lasting(minutes), (), {}
    yield "duration", "longer", request_of_days(1), (), {}

    for number, level in zip(
        range(10),
        ["other", "critical", *["very important"] * 3, "important", *["possibly important"] * 3, "unimportant"],
        strict=True,
    ):
        yield "message_importance", level, priority(number), (), {}
    yield "message_importance", "other", priority(10), (), {}

    for level in MEETING_FEATURES["topic_importance"]:
        yield "topic_importance", level, request(), (), {"people": topic(level)}
        busy = engagement(5, "14:30", "16:00", summary="plans for June")
        yield "conflict_importance", level, request(), (busy,), {"people": topic(level)}
    yield "topic_importance", "other", request(summary="Explains"), (), {"people": topic("critical")}
    yield (
        "topic_importance",
        "important",
        request(summary="", categories=("PLANS",)),
        (),
        {"people": topic("important")},
    )
    yield "conflict_importance", "other", request(), (engagement(5, "13:00", "14:00", summary="budget"),), {}
    both = engagement(5, "14:00", "15:00", summary="lunch"), engagement(5, "14:30", "15:00", summary="budget")
    yield "conflict_importance", "very important", request(), both, {}

    for job in MEETING_FEATURES["invitee_job"]:
        yield "invitee_job", job, request(), (), {"people": bob_is(job=job)}
    yield "invitee_job", "other", request(organiser=EVE), (), {}
    for relation in MEETING_FEATURES["invitee_relation"]:
        yield "invitee_relation", relation, request(), (), {"people": bob_is(relation=relation)}

    came = at(20, "12:00")
    for day, name in [(20, "0"), (19, "1"), (18, "3"), (17, "3"), (16, "7"), (13, "7"), (12, "longer ago")]:
        yield "invitee_recent", name, request(25), (with_bob(day),), {"when": came}
    yield "invitee_recent", "longer ago", request(25), (), {"when": came}
    yield "invitee_recent", "1", request(25), (with_bob(12), with_bob(19), with_bob(16)), {"when": came}
    # Not over yet; of others; declined by the owner or by Bob; cancelled; free time.
    for no_meeting in [
        with_bob(20, "11:30", "12:01"),
        engagement(19, "10:00", "11:00", organiser=EVE, attendees=invited((ME, "ACCEPTED"))),
        with_bob(19, organiser=EVE, cancelled=True),
        with_bob(19, transparent=True),
        engagement(19, "10:00", "11:00", organiser=BOB, attendees=invited((ME, "DECLINED"))),
        engagement(19, "10:00", "11:00", organiser=EVE, attendees=invited((ME, "ACCEPTED"), (BOB, "DECLINED"))),
    ]:
        yield "invitee_recent", "longer ago", request(25), (no_meeting,), {"when": came}
    yield "invitee_recent", "0", request(25), (with_bob(20, "11:00", "12:00"),), {"when": came}
    to_midnight = replace(with_bob(18), end=at(19, "0:00"))
    yield "invitee_recent", "3", request(25), (to_midnight,), {"when": came}
    yield "invitee_recent", "1", request(25), (engagement(19, "9:00", "9:30", organiser=BOB),), {"when": came}

    for day, name in [(1, "0"), (2, "0"), (3, "1"), (4, "3"), (5, "3"), (6, "7"), (9, "7"), (10, "later")]:
        yield "invitee_soon", name, request(day), (), {}

    # The working day has 540 minutes, the morning 180, the afternoon 360.
    for feature, taken, asked, level in [
        ("busy_fday", ("9:00", "12:00"), ("14:00", "15:00"), "light-free"),
        ("busy_fday", ("9:00", "12:01"), ("14:00", "15:00"), "busy-free"),
        ("busy_fday", ("9:00", "15:00"), ("15:00", "17:00"), "busy-free"),
        ("busy_fday", ("9:00", "15:00"), ("15:00", "17:01"), "busy-busy"),
        ("busy_fday", ("9:00", "15:01"), ("9:00", "10:00"), "booked-free"),
        ("busy_fday", ("9:00", "15:01"), ("16:00", "17:30"), "booked-busy"),
        ("busy_fday", ("12:00", "12:15"), ("9:30", "17:30"), "light-busy"),
        ("busy_fday", ("6:00", "9:00"), ("20:00", "21:00"), "light-free"),
        ("busy_hday", ("9:00", "10:00"), ("10:00", "11:00"), "light-free"),
        ("busy_hday", ("9:00", "10:00"), ("11:59", "14:00"), "light-free"),
        ("busy_hday", ("9:00", "10:00"), ("10:00", "11:01"), "light-busy"),
        ("busy_hday", ("9:00", "11:00"), ("9:00", "10:00"), "busy-free"),
        ("busy_hday", ("9:00", "11:00"), ("11:00", "11:30"), "busy-busy"),
        ("busy_hday", ("12:00", "16:01"), ("12:00", "13:00"), "booked-free"),
        ("busy_hday", ("12:00", "16:01"), ("17:00", "18:00"), "booked-busy"),
        ("busy_hday", ("9:00", "12:00"), ("12:00", "13:00"), "light-free"),
    ]:
        yield feature, level, request(5, *asked), (engagement(5, *taken),), {}
    # Two that overlap take their time once: from 9:00 to 12:00.
    twice = engagement(5, "9:00", "11:00"), engagement(5, "10:00", "12:00")
    yield "busy_fday", "light-free", request(), twice, {}
    yield "busy_fday", "booked-busy", request(), (whole_day(5),), {}
    yield "busy_fday", "light-free", request(), (whole_day(5, transparent=True), whole_day(4), whole_day(6)), {}
    yield "busy_fday", "light-busy", request_of_days(1), (), {}

    for before, after, name in [
        ("14:00", "15:00", "0"),
        ("13:45", "15:00", "15"),
        ("13:50", "15:10", "30"),
        ("13:30", "15:30", "60"),
        ("13:00", "15:30", "90"),
        ("13:00", "16:15", "135"),
        ("13:00", "16:16", "longer"),
    ]:
        around = engagement(5, "9:00", before), engagement(5, after, "20:00")
        yield "free_slot_time", name, request(), around, {}
    yield "free_slot_time", "0", request(), (engagement(5, "13:00", "16:00"),), {}
    yield "free_slot_time", "30", request(), (engagement(5, "13:00", "14:30"), engagement(5, "15:30", "16:00")), {}
    for inside in [("14:00", "14:20"), ("14:20", "15:00")]:
        around = engagement(5, "9:00", "13:45"), engagement(5, *inside), engagement(5, "15:45", "20:00")
        yield "free_slot_time", "60", request(), around, {}
    yield "free_slot_time", "60", request(5, "9:00", "10:00"), (engagement(5, "11:00", "12:00"),), {}
    yield "free_slot_time", "60", request(5, "17:00", "19:00"), (engagement(5, "13:00", "16:00"),), {}
    yield "free_slot_time", "0", request(5, "9:00", "18:00"), (), {}
    until_midnight = replace(request(5, "17:00", "18:00"), end=at(6, "0:00"))
    yield "free_slot_time", "30", until_midnight, (engagement(5, "9:00", "16:30"),), {}

    for taken, answer in [
        (("13:00", "14:00"), "no"),
        (("13:00", "14:01"), "yes"),
        (("14:20", "14:30"), "yes"),
        (("14:59", "16:00"), "yes"),
        (("15:00", "16:00"), "no"),
    ]:
        yield "conflict", answer, request(), (engagement(5, *taken),), {}
    yield "conflict", "yes", lasting(0), (engagement(5, "14:00", "15:00"),), {}
    yield "conflict", "no", lasting(0), (engagement(5, "13:00", "14:00"),), {}
    yield "conflict", "yes", request(), (engagement(5, "14:00", "15:00", attendees=invited((ME, "TENTATIVE"))),), {}
    yield "conflict", "no", request(), (engagement(5, "14:30", "14:30"),), {}
    yield "conflict", "no", request(), (engagement(5, "14:00", "15:00", transparent=True),), {}
    yield "conflict", "no", request(), (engagement(5, "14:00", "15:00", uid="the request"),), {}
    yield "conflict", "yes", request(), (whole_day(5),), {}
    yield "conflict", "yes", request_of_days(3), (engagement(7, "23:00", "23:30"),), {}
    yield "conflict", "no", request_of_days(2), (engagement(7, "23:00", "23:30"),), {}

    review = engagement(5, "14:00", "15:00", summary="Review", organiser=EVE)
    yield "conflict_frequency", "other", request(), (), {}
    yield "conflict_frequency", "one time", request(), (review,), {}
    for earlier, often in [
        ({"day": 2, "summary": "review", "organiser": EVE}, "occasionally"),
        ({"day": 2, "summary": "review", "organiser": BOB}, "one time"),
        ({"day": 2, "summary": "reviews", "organiser": EVE}, "one time"),
        ({"day": 9, "summary": "review", "organiser": EVE}, "one time"),
    ]:
        yield "conflict_frequency", often, request(), (review, engagement(start="9:00", end="9:30", **earlier)), {}
    for ago, often in [(28, "occasionally"), (29, "one time")]:
        before = replace(review, uid="before", start=review.start - timedelta(ago), end=review.end - timedelta(ago))
        yield "conflict_frequency", often, request(), (review, before), {}
    unnamed = engagement(5, "14:00", "15:00", summary=""), engagement(4, "14:00", "15:00", summary="")
    yield "conflict_frequency", "one time", request(), unnamed, {}
    yield "conflict_frequency", "regularly", request(), (review, WEEKLY), {}
    yield "conflict", "yes", request(), (WEEKLY,), {}
    yield "conflict", "no", request(6), (WEEKLY,), {}

    for here, place in [("local", "the Library"), ("away", "Paris")]:
        yield "location", f"{here}-none", request(location=place), (), {}
        for there, other in [("local", "Main building, 2"), ("away", "Berlin")]:
            for beside in [("14:30", "16:00"), ("15:15", "16:00"), ("13:00", "13:45")]:
                engaged = engagement(5, *beside, location=other)
                yield "location", f"{here}-{there}", request(location=place), (engaged,), {}
        for apart in [("15:16", "16:00"), ("13:00", "13:44")]:
            yield "location", f"{here}-none", request(location=place), (engagement(5, *apart),), {}
    away = engagement(5, "13:00", "14:00", location=""), engagement(5, "15:00", "16:00", location="Berlin")
    yield "location", "local-away", request(), away, {}
    evening = request(5, "17:00", "18:00"), (engagement(5, "18:15", "19:00"),)
    yield "location", "local-local", *evening, {}
    early = request(5, "9:00", "10:00"), (engagement(5, "8:00", "8:50"),)
    yield "location", "local-local", *early, {}


def request_of_days(days: int):
    return replace(request(), start=date(2026, 3, 5), end=date(2026, 3, 5 + days))


EXAMPLES = list(examples())


@pytest.mark.parametrize(("feature", "expected", "asked", "calendar", "rest"), EXAMPLES)
def test_the_value_is_what_a_reader_finds(feature, expected, asked, calendar, rest):
    assert value(feature, asked, *calendar, **rest) == expected


def test_every_value_of_every_feature_has_an_example():
    shown = {(feature, expected) for feature, expected, *_ in EXAMPLES}
    assert shown == {(feature, one) for feature, values in MEETING_FEATURES.items() for one in values}


def test_the_rules_tell_every_value_of_every_feature_in_order():
    assert {name: tuple(rule.values) for name, rule in RULES.items()} == {**MEETING_FEATURES, **OFFICE_FEATURES}
    assert list(RULES) == [*MEETING_FEATURES, *OFFICE_FEATURES]
    assert {name: RULES[name].meaning for name in MEETING_FEATURES} == MEETING_MEANINGS
    assert all(words for rule in RULES.values() for words in (rule.how, *rule.values.values()))


@pytest.mark.parametrize(
    ("feature", "asked", "calendar", "owner", "why"),
    [
        ("start_time", request_of_days(1), (), None, "whole days"),
        ("invitee_recent", request(organiser=""), (), None, "no organiser"),
        ("location", request(location=""), (), None, "names no place"),
        ("location", request(location="Paris"), (), Owner(ME, CAME.tzinfo), "named no places"),
        ("location", request(), (engagement(5, "13:00", "14:00", location=""),), None, "place of an engagement"),
    ],
)
def test_what_the_request_does_not_say_is_missing_with_the_reason(feature, asked, calendar, owner, why):
    found = row(asked, *calendar, **({"owner": owner} if owner else {}))
    assert found.values[feature] is None
    assert why in found.unknown[feature]


def test_all_features_are_there_in_order_and_only_missing_ones_have_a_reason():
    found = row(request(location=""))
    assert list(found.values) == [*MEETING_FEATURES, *OFFICE_FEATURES, "organiser", "domain", "title"]
    assert list(found.unknown) == [name for name, one in found.values.items() if one is None] == ["location"]


def test_a_request_that_came_at_a_time_without_zone_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"'the request' came at .* needs a time zone\.$"):
        row(request(), when=datetime(2026, 3, 2))


def test_hours_are_those_of_the_owners_zone_also_when_clocks_change():
    berlin = Owner(ME, ZoneInfo("Europe/Berlin"))
    # On 29 March 2026 clocks in Berlin went from +1 to +2.
    for day, utc_hour in [(28, 8), (30, 7)]:
        nine = datetime(2026, 3, day, utc_hour, tzinfo=UTC)
        asked = replace(request(), start=nine, end=nine + timedelta(hours=1))
        assert value("start_time", asked, owner=berlin) == "morning"
        assert value("start_time", replace(asked, start=nine - timedelta(minutes=1)), owner=berlin) == "early"


def test_floating_times_and_whole_days_are_the_owners():
    tokyo = Owner(ME, ZoneInfo("Asia/Tokyo"))
    asked = replace(request(), start=datetime(2026, 3, 5, 10), end=datetime(2026, 3, 5, 11))
    assert value("start_time", asked, owner=tokyo) == "morning"
    assert value("conflict", asked, whole_day(5), owner=tokyo) == "yes"
    assert value("conflict", asked, whole_day(4), whole_day(6), owner=tokyo) == "no"


def test_of_a_running_series_the_first_occurrence_that_is_not_over_counts():
    weekly = replace(request(5, "10:00", "11:00"), repeats="FREQ=WEEKLY")
    taken = engagement(19, "10:30", "10:45")
    for day, clock, soon, conflict in [
        (2, "8:00", "3", "no"),
        (5, "10:59", "0", "no"),
        (5, "11:00", "7", "no"),
        (17, "8:00", "3", "yes"),
        (19, "10:50", "0", "yes"),
        (19, "11:00", "7", "no"),
    ]:
        found = row(weekly, taken, when=at(day, clock)).values
        assert (found["invitee_soon"], found["conflict"]) == (soon, conflict)


def test_a_series_that_is_over_counts_as_it_began():
    ended = replace(request(5, "10:00", "11:00"), repeats="FREQ=DAILY;COUNT=3")
    assert value("invitee_soon", ended, when=at(20, "9:00")) == "0"
    assert value("conflict", ended, engagement(5, "10:00", "11:00"), when=at(20, "9:00")) == "yes"
    yearly = replace(ended, repeats="FREQ=YEARLY")
    assert value("invitee_soon", yearly, when=at(20, "9:00")) == "later"


def test_a_request_for_years_is_held_against_its_first_month():
    endless = replace(request(), end=datetime(2190, 1, 1, tzinfo=UTC))
    april = engagement(5, "10:00", "11:00")
    later = replace(april, start=april.start + timedelta(days=40), end=april.end + timedelta(days=40))
    assert value("conflict", endless, later) == "no"
    assert value("duration", endless) == "longer"


def test_other_occurrences_of_a_series_stand_in_the_way_of_the_one_that_is_moved():
    moved = replace(request(), uid="weekly", recurrence_id="20260312T133000Z")
    assert value("conflict", moved, WEEKLY) == "yes"
    assert value("conflict", replace(moved, recurrence_id="20260305T133000Z"), WEEKLY) == "no"
    assert value("conflict", replace(moved, recurrence_id=""), WEEKLY) == "no"
