"""What stood in a calendar when a request came, and what cannot be known of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from kinfolk_assistant.features import past as past_module
from kinfolk_assistant.features.past import CHANGED, ENTERED, GIVEN_UP, Past, SeenObject
from kinfolk_assistant.meeting import CalendarObject

from .calendars import BOB, CAME, LONG_AGO, ME, ZONE, at, engagement, invited, request, row, seen, series

EARLIER, LATER = CAME - timedelta(hours=1), CAME + timedelta(hours=1)
OVERLAPPING = engagement(5, "14:30", "15:30")
DECLINED = invited((ME, "DECLINED"), (BOB, "ACCEPTED"))


def stood(meeting, **times):
    """Give "yes" or "no", or why it is not known, by the conflict that an engagement makes."""
    found = row(request(), *seen(meeting, **times))
    return found.values["conflict"] or found.unknown["conflict"]


@pytest.mark.parametrize(
    ("fields", "times", "expected"),
    [
        # CREATED decides where nothing has changed since, whatever an export has put into DTSTAMP.
        ({"created": EARLIER}, {}, "yes"),
        ({"created": CAME}, {}, "yes"),
        ({"created": LATER}, {}, "no"),
        ({"created": EARLIER, "stamp": LATER}, {}, "yes"),
        # Without CREATED, DTSTAMP tells if it is old enough.
        ({"created": None, "stamp": EARLIER}, {}, "yes"),
        ({"created": None, "stamp": LATER}, {}, ENTERED),
        ({"created": None, "stamp": None}, {}, ENTERED),
        # A SEQUENCE says that it has changed since it was created.
        ({"created": EARLIER, "sequence": 1, "stamp": EARLIER}, {}, "yes"),
        ({"created": EARLIER, "sequence": 1, "stamp": LATER}, {}, CHANGED),
        ({"created": EARLIER, "sequence": 1, "stamp": None}, {}, CHANGED),
        ({"created": LATER, "sequence": 1, "stamp": LATER}, {}, "no"),
        # Declined or cancelled: given up at some time up to DTSTAMP.
        ({"created": EARLIER, "attendees": DECLINED, "stamp": EARLIER}, {}, "no"),
        ({"created": EARLIER, "attendees": DECLINED, "stamp": LATER}, {}, GIVEN_UP),
        ({"created": EARLIER, "attendees": DECLINED, "stamp": None}, {}, GIVEN_UP),
        ({"created": LATER, "attendees": DECLINED, "stamp": LATER}, {}, "no"),
        ({"created": EARLIER, "cancelled": True, "stamp": EARLIER}, {}, "no"),
        ({"created": EARLIER, "cancelled": True, "stamp": LATER}, {}, GIVEN_UP),
        # The time of the answer, where it is known, says it all.
        ({"created": EARLIER, "attendees": DECLINED, "stamp": LATER}, {"answered_at": EARLIER}, "no"),
        ({"created": EARLIER, "attendees": DECLINED, "stamp": LATER}, {"answered_at": CAME}, "no"),
        ({"created": EARLIER, "attendees": DECLINED, "stamp": LATER}, {"answered_at": LATER}, "yes"),
        ({"created": EARLIER, "cancelled": True, "stamp": LATER}, {"answered_at": LATER}, GIVEN_UP),
        (
            {"created": EARLIER, "cancelled": True, "attendees": DECLINED, "stamp": LATER},
            {"answered_at": LATER},
            GIVEN_UP,
        ),
        # Seen as it is: nothing else is asked.
        ({"created": None}, {"seen_at": EARLIER}, "yes"),
        ({"created": LATER}, {"seen_at": CAME}, "yes"),
        ({"created": None}, {"seen_at": LATER}, ENTERED),
        ({"created": EARLIER, "sequence": 3, "stamp": LATER}, {"seen_at": EARLIER}, "yes"),
        ({"created": EARLIER, "attendees": DECLINED}, {"seen_at": EARLIER}, "no"),
        # Gone from the calendar.
        ({"created": EARLIER}, {"gone_at": CAME}, "no"),
        ({"created": EARLIER}, {"gone_at": LATER}, "yes"),
        ({"created": EARLIER}, {"seen_at": EARLIER, "gone_at": CAME}, "no"),
        # What others have answered does not matter.
        ({"created": EARLIER, "attendees": invited((BOB, "DECLINED"), (ME, "NEEDS-ACTION"))}, {}, "yes"),
    ],
)
def test_an_engagement_stood_by_what_is_known_of_its_life(fields, times, expected):
    assert stood(replace(OVERLAPPING, **fields), **times) == expected


def test_what_is_not_known_does_not_matter_where_it_changes_nothing():
    unknown = replace(OVERLAPPING, created=None)
    found = row(request(), unknown)
    for feature in ("conflict", "conflict_frequency", "busy_hday", "location"):
        assert (found.values[feature], found.unknown.get(feature)) in [(None, ENTERED), ("light-free", None)]
    covered = row(
        request(), unknown, replace(OVERLAPPING, uid="known", summary="", start=at(5, "14:00"), end=at(5, "17:00"))
    )
    assert covered.unknown == {}
    assert row(request(6), unknown).unknown == {}


def test_the_reason_names_only_what_would_change_the_value():
    aside = engagement(5, "17:00", "17:30", attendees=DECLINED)
    assert row(request(), replace(OVERLAPPING, created=None), aside).unknown["conflict"] == ENTERED


def test_a_reason_that_two_have_only_together_names_both():
    # 120 minutes are free beside the request, 100 with either, 80 with both; the values are cut at 90.
    walls = engagement(5, "9:00", "13:00"), engagement(5, "16:00", "18:00")
    before = replace(engagement(5, "13:00", "13:20"), created=None)
    after = engagement(5, "15:40", "16:00", attendees=DECLINED)
    assert row(request(), *walls).values["free_slot_time"] == "135"
    assert row(request(), *walls, before).values["free_slot_time"] == "135"
    assert row(request(), *walls, after).values["free_slot_time"] == "135"
    assert row(request(), *walls, before, after).unknown["free_slot_time"] == f"{GIVEN_UP}; {ENTERED}"


SERIES = (
    "UID:s SUMMARY:daily CREATED:20250101T000000Z DTSTAMP:20250101T000000Z "
    "DTSTART:20260302T133000Z DURATION:PT30M RRULE:FREQ=DAILY"
)
# As the request is from 14:00 to 15:00 at +01:00, the occurrence of 5 March lies in it, at 13:30 of UTC.
EXCEPTION = "UID:s SUMMARY:daily RECURRENCE-ID:20260305T133000Z DTSTART:20260305T{at}00Z DURATION:PT30M {more}"
MADE_LATER = "CREATED:20260302T080000Z DTSTAMP:20260302T080000Z"
MADE_BEFORE = "CREATED:20260302T060000Z DTSTAMP:20260302T060000Z"
COPIED = "CREATED:20250101T000000Z DTSTAMP:20260302T080000Z"


@pytest.mark.parametrize(
    ("change", "asked", "expected"),
    [
        # Moved to 18:00 (17:00 of UTC) after the request came: it stood where the series has it.
        (EXCEPTION.format(at="1700", more=MADE_LATER), ("14:00", "15:00"), "yes"),
        (EXCEPTION.format(at="1700", more=MADE_LATER), ("18:00", "19:00"), "no"),
        # Moved before.
        (EXCEPTION.format(at="1700", more=MADE_BEFORE), ("14:00", "15:00"), "no"),
        (EXCEPTION.format(at="1700", more=MADE_BEFORE), ("18:00", "19:00"), "yes"),
        # Moved at some time up to DTSTAMP; CREATED is that of the series.
        (EXCEPTION.format(at="1700", more=COPIED), ("14:00", "15:00"), CHANGED),
        (EXCEPTION.format(at="1700", more=COPIED), ("18:00", "19:00"), CHANGED),
        # Cancelled, after, before, or at some time.
        (EXCEPTION.format(at="1330", more=f"STATUS:CANCELLED {MADE_LATER}"), ("14:00", "15:00"), "yes"),
        (EXCEPTION.format(at="1330", more=f"STATUS:CANCELLED {MADE_BEFORE}"), ("14:00", "15:00"), "no"),
        (EXCEPTION.format(at="1330", more=f"STATUS:CANCELLED {COPIED}"), ("14:00", "15:00"), f"{CHANGED}; {GIVEN_UP}"),
        # Changed without being moved: there in any case.
        (EXCEPTION.format(at="1330", more=COPIED), ("14:00", "15:00"), "yes"),
        (EXCEPTION.format(at="1330", more=MADE_LATER), ("14:00", "15:00"), "yes"),
        # Where nothing was changed.
        (EXCEPTION.format(at="1700", more=COPIED).replace("20260305", "20260306"), ("14:00", "15:00"), "yes"),
    ],
)
def test_a_changed_occurrence_stood_where_the_series_has_it_until_it_was_changed(change, asked, expected):
    found = row(request(5, *asked), series(SERIES, change))
    assert (found.values["conflict"] or found.unknown["conflict"]) == expected


def test_a_changed_occurrence_that_was_seen_so_is_nowhere_else():
    moved = EXCEPTION.format(at="1700", more=COPIED)
    found = row(request(), series(SERIES, moved, seen_at=EARLIER))
    assert found.values["conflict"] == "no"


def test_no_version_of_a_moved_occurrence_stands_in_its_own_way():
    asked = replace(request(5, "17:30", "18:30"), uid="s", recurrence_id="20260305T133000Z")
    moved_before = series(SERIES, EXCEPTION.format(at="1700", more=MADE_BEFORE))
    assert row(asked, moved_before).values["conflict"] == "no"
    assert row(replace(asked, recurrence_id="20260306T133000Z"), moved_before).values["conflict"] == "yes"
    back = replace(request(), uid="s", recurrence_id="20260305T133000Z")
    assert row(back, series(SERIES, EXCEPTION.format(at="1700", more=MADE_LATER))).values["conflict"] == "no"


def test_a_series_cancelled_after_the_request_may_have_stood():
    cancelled = SERIES.replace("DTSTAMP:2025", "STATUS:CANCELLED DTSTAMP:2027")
    assert row(request(), series(cancelled)).unknown["conflict"] == GIVEN_UP
    assert row(request(), series(cancelled.replace("DTSTAMP:2027", "DTSTAMP:2026"))).values["conflict"] == "no"


def test_series_are_found_across_the_blocks_in_which_they_are_unrolled(monkeypatch):
    nights = series(
        "UID:n CREATED:20250101T000000Z DTSTAMP:20250101T000000Z DTSTART:20260101T200000Z DURATION:PT40H "
        "RRULE:FREQ=WEEKLY"
    )
    start, end = at(1, "0:00"), at(31, "0:00")
    found, reaching_over = [], []
    for days in (1, 5, 28, 400):
        monkeypatch.setattr(past_module, "_BLOCK", timedelta(days=days))
        standing = Past([nights], ME, ZONE).at(CAME)
        found.append([(one.start, one.end) for one in standing.between(start, end).known])
        reaching_over.append(len(standing.between(at(7, "9:00"), at(7, "9:30")).known))
    # Thursdays 21:00 of the owner's time: 5, 12, 19 and 26 March.
    assert sorted(found[0]) == [(at(day, "21:00"), at(day, "21:00") + timedelta(hours=40)) for day in (5, 12, 19, 26)]
    assert all(sorted(one) == sorted(found[0]) for one in found)
    assert reaching_over == [1, 1, 1, 1]


def test_a_series_is_unrolled_once_for_many_requests(monkeypatch):
    asked = []
    unroll = past_module.occurrences
    monkeypatch.setattr(past_module, "occurrences", lambda *given: asked.append(given) or unroll(*given))
    standing = Past([series(SERIES)], ME, ZONE)
    for day in range(5, 25):
        standing.at(CAME).between(at(day, "9:00"), at(day, "18:00"))
    assert len(asked) <= 2


def test_long_engagements_are_found_on_their_last_day():
    fair = replace(engagement(1, "9:00", "10:00"), end=at(30, "10:00"), created=LONG_AGO)
    standing = Past([SeenObject(CalendarObject("", (fair,), ""))], ME, ZONE).at(CAME)
    assert standing.between(at(30, "9:00"), at(30, "18:00")).known[0].meeting == fair
    assert standing.between(at(30, "10:00"), at(30, "18:00")).known == []
