"""What offices run on beside the fifteen features: each value on a calendar made for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinfolk_assistant.meeting import Attendee, Meeting
from tests.assistant.features.calendars import BOB, EVE, ME, engagement, invited, request, row, series


def value(feature: str, asked: Meeting, *calendar: Meeting) -> str | None:
    return row(asked, *calendar).values[feature]


def test_weekday_and_hour_are_those_of_the_owners_clock() -> None:
    assert value("weekday", request(day=5)) == "Thursday"
    assert value("weekday", request(day=7)) == "Saturday"
    for start, end, told in (("7:30", "8:00", "before 8"), ("14:30", "15:00", "14"), ("20:00", "21:00", "19 or later")):
        assert value("hour", request(start=start, end=end)) == told


@pytest.mark.parametrize(
    ("organiser", "told"),
    [
        ("bob@example.org", "inside"),
        ("bob@labs.example.org", "inside"),
        ("bob@notexample.org", "outside"),
        ("bob@gmail.com", "private"),
        ("", None),
    ],
)
def test_outsiders_are_told_by_domain(organiser: str, told: str | None) -> None:
    assert value("outsider", request(organiser=organiser)) == told


@pytest.mark.parametrize(("others", "told"), [(0, "two"), (3, "five"), (7, "nine"), (13, "fifteen"), (14, "more")])
def test_the_number_invited_counts_owner_and_organiser_once(others: int, told: str) -> None:
    crowd = invited(
        (ME, "NEEDS-ACTION"), (BOB, "ACCEPTED"), *((f"p{i}@example.org", "ACCEPTED") for i in range(others))
    )
    assert value("invited", request(attendees=crowd)) == told


def test_the_owners_part_is_that_of_role() -> None:
    assert value("part", request(attendees=(Attendee(ME),))) == "required"
    assert value("part", request(attendees=(Attendee(ME, role="OPT-PARTICIPANT"),))) == "optional"
    assert value("part", request(attendees=(Attendee(EVE),))) == "not named"


def test_a_series_and_an_occurrence_of_one_repeat() -> None:
    assert value("series", request()) == "no"
    assert value("series", request(repeats="FREQ=WEEKLY")) == "yes"
    assert value("series", request(recurrence_id="20260305T130000Z")) == "yes"


@pytest.mark.parametrize(("n", "told"), [(0, "never"), (1, "once"), (2, "sometimes"), (4, "sometimes"), (5, "often")])
def test_acquaintance_counts_meetings_with_the_organiser_that_were_over(n: int, told: str) -> None:
    met = [replace(engagement(1, f"{9 + i}:00", f"{9 + i}:30"), organiser=BOB) for i in range(n)]
    others = [
        replace(engagement(1, "16:00", "17:00"), organiser=EVE),
        replace(engagement(4, "9:00", "10:00"), organiser=BOB),
    ]
    assert value("acquaintance", request(), *met, *others) == told


def test_a_series_with_the_organiser_alone_is_a_one_to_one() -> None:
    weekly = "UID:weekly DTSTART:20260209T090000Z DTEND:20260209T093000Z CREATED:20260101T090000Z RRULE:FREQ=WEEKLY"
    with_bob = f"{weekly} ORGANIZER:mailto:{BOB} ATTENDEE;PARTSTAT=ACCEPTED:mailto:{ME}"
    with_eve = f"{with_bob} ATTENDEE;PARTSTAT=ACCEPTED:mailto:{EVE}"
    assert row(request(), series(with_bob)).values["acquaintance"] == "one-to-one"
    assert row(request(), series(with_eve)).values["acquaintance"] == "sometimes"


def test_names_are_organiser_domain_and_the_words_of_the_title() -> None:
    found = row(request(summary="Re: Budget 2026, the budget of Q3")).values
    assert (found["organiser"], found["domain"]) == (BOB, "example.org")
    assert found["title"] == "budget the"
    assert row(request(organiser="", summary="")).values["title"] is None
