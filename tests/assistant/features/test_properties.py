"""What holds of the features for any calendar: by hypothesis, and against oracles that count minutes and subsets."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.features.past import Past
from kinfolk_assistant.features.row import feature_row
from kinfolk_assistant.features.rules import ALL_FEATURES

from .calendars import BOB, CAME, EVE, LONG_AGO, ME, OWNER, PEOPLE, at, engagement, invited, request, row, seen, shifted

NEVER_KNOWN = None
MIDNIGHT = at(5, "0:00")
ANSWERS = ("ACCEPTED", "DECLINED", "TENTATIVE", "NEEDS-ACTION")
FROM_CALENDAR = ("busy_fday", "busy_hday", "free_slot_time", "conflict", "conflict_importance", "conflict_frequency")
BUSYNESS = {level: rank for rank, level in enumerate(("light", "busy", "booked"))}

quarters = st.integers(-8, 112).map(lambda n: timedelta(minutes=15 * n))
moments = st.one_of(st.none(), st.sampled_from([LONG_AGO, CAME - timedelta(hours=1), CAME + timedelta(hours=1)]))


@st.composite
def engagements(draw, known=False):
    """Give an engagement within a day of 5 March, at a quarter of an hour."""
    start = MIDNIGHT + draw(quarters)
    return replace(
        engagement(5, "9:00", "10:00"),
        uid=str(draw(st.uuids())),
        start=start,
        end=start + timedelta(minutes=15 * draw(st.integers(0, 24))),
        created=LONG_AGO if known else draw(moments),
        stamp=None if known else draw(moments),
        sequence=0 if known else draw(st.integers(0, 1)),
        organiser=draw(st.sampled_from(["", BOB, EVE])),
        attendees=() if known else invited((ME, draw(st.sampled_from(ANSWERS)))),
        summary=draw(st.sampled_from(["budget", "lunch", "talk", ""])),
        location=draw(st.sampled_from(["library", "Paris", "", "https://x.example/1"])),
        transparent=False if known else draw(st.booleans()),
        cancelled=False if known else draw(st.booleans()),
    )


@st.composite
def requests(draw):
    start = MIDNIGHT + timedelta(minutes=15 * draw(st.integers(24, 88)))
    end = start + timedelta(minutes=15 * draw(st.integers(0, 20)))
    return replace(request(), start=start, end=end, location=draw(st.sampled_from(["library", "Paris", ""])))


any_calendar = st.lists(engagements(), max_size=6)
known_calendar = st.lists(engagements(known=True), max_size=6)
times = st.sampled_from([CAME, at(5, "8:00"), at(6, "20:00"), at(20, "12:00")])
quick = settings(max_examples=60, deadline=None)


@quick
@given(requests(), any_calendar, times)
def test_every_value_is_one_of_the_feature_or_missing_with_a_reason(asked, calendar, when):
    found = row(asked, *calendar, when=when)
    assert list(found.values) == [*ALL_FEATURES, *NAMES]
    for feature, known in ALL_FEATURES.items():
        one = found.values[feature]
        assert one in known if one is not None else found.unknown[feature]
    assert set(found.unknown) == {feature for feature in ALL_FEATURES if found.values[feature] is None}


@quick
@given(requests(), any_calendar, times, st.integers(-200, 200))
def test_whole_weeks_earlier_or_later_nothing_changes(asked, calendar, when, weeks):
    by = timedelta(weeks=weeks)
    moved = row(shifted(asked, by), *(shifted(one, by) for one in calendar), when=when + by)
    assert moved == row(asked, *calendar, when=when)


@quick
@given(requests(), any_calendar, st.randoms(use_true_random=False))
def test_the_order_of_the_calendar_does_not_matter(asked, calendar, random):
    mixed = list(calendar)
    random.shuffle(mixed)
    assert row(asked, *mixed) == row(asked, *calendar)


@quick
@given(requests(), any_calendar, any_calendar)
def test_what_was_created_after_the_request_came_changes_nothing(asked, calendar, later):
    later = [replace(one, created=CAME + timedelta(minutes=1)) for one in later]
    assert row(asked, *calendar, *later) == row(asked, *calendar)


@quick
@given(requests(), any_calendar, engagements(), st.sampled_from([-40, -9, 3, 40]))
def test_an_engagement_far_away_changes_at_most_when_the_two_last_met(asked, calendar, far, days):
    by = timedelta(days=days)
    far = replace(far, start=far.start + by, end=far.end + by, summary="far away")
    with_it, without = row(asked, *calendar, far), row(asked, *calendar)
    met = ("invitee_recent", "acquaintance")
    assert {f: v for f, v in with_it.values.items() if f not in met} == {
        f: v for f, v in without.values.items() if f not in met
    }


@quick
@given(requests(), any_calendar, engagements(known=True))
def test_one_that_overlaps_makes_a_conflict(asked, calendar, one):
    overlapping = replace(one, start=asked.start - timedelta(minutes=15), end=asked.start + timedelta(minutes=1))
    assert row(asked, *calendar, overlapping).values["conflict"] == "yes"


@quick
@given(requests(), known_calendar, engagements(known=True))
def test_one_more_engagement_never_frees_time(asked, calendar, more):
    before, after = row(asked, *calendar).values, row(asked, *calendar, more).values
    for feature in ("busy_fday", "busy_hday"):
        (taken, left), (taken_after, left_after) = (one[feature].split("-") for one in (before, after))
        assert BUSYNESS[taken] <= BUSYNESS[taken_after]
        assert (left, left_after) != ("busy", "free")
    order = MEETING_FEATURES["free_slot_time"].index
    assert order(after["free_slot_time"]) <= order(before["free_slot_time"])
    assert (before["conflict"], after["conflict"]) != ("yes", "no")


@quick
@given(requests(), any_calendar, engagements(known=True))
def test_earlier_versions_of_the_requested_meeting_do_not_count(asked, calendar, version):
    assert row(asked, *calendar, replace(version, uid=asked.uid)) == row(asked, *calendar)


@quick
@given(requests(), known_calendar)
def test_hours_and_conflicts_are_those_that_counting_minutes_gives(asked, calendar):
    found = row(asked, *calendar).values
    start, end = minute(asked.start), max(minute(asked.end), minute(asked.start) + 1)
    taken = {m for one in calendar for m in range(minute(one.start), minute(one.end))}
    morning, afternoon = range(9 * 60, 12 * 60), range(12 * 60, 18 * 60)
    assert found["conflict"] == ("yes" if taken & set(range(start, end)) else "no")
    assert found["busy_fday"] == busyness(range(9 * 60, 18 * 60), taken, start, end)
    assert found["busy_hday"] == busyness(morning if start < 12 * 60 else afternoon, taken, start, end)
    free = 0
    # Day by day of a request over midnight: the working day reaches to the evening of its last day.
    last = 24 * 60 * ((end - 1) // (24 * 60)) + 18 * 60
    for m in range(start - 1, 9 * 60 - 1, -1):
        if m in taken:
            break
        free += 1
    for m in range(end, last):
        if m in taken:
            break
        free += 1
    cuts = [int(name) for name in MEETING_FEATURES["free_slot_time"][:-1]]
    assert found["free_slot_time"] == next((str(cut) for cut in cuts if free <= cut), "longer")


def minute(moment):
    return int((moment - MIDNIGHT) / timedelta(minutes=1))


def busyness(hours, taken, start, end):
    share = sum(m in taken for m in hours) / len(hours)
    level = "light" if share <= 1 / 3 else "busy" if share <= 2 / 3 else "booked"
    run = longest = 0
    for m in hours:
        run = 0 if m in taken or start <= m < end else run + 1
        longest = max(longest, run)
    return f"{level}-{'free' if longest >= 60 else 'busy'}"


@settings(max_examples=40, deadline=None)
@given(requests(), st.lists(engagements(known=True), max_size=2), st.lists(engagements(known=True), max_size=4))
def test_a_value_is_told_exactly_if_every_selection_of_the_doubtful_gives_it(asked, calendar, doubtful):
    asked = replace(asked, location="library")
    calendar = [replace(one, location="Main Building") for one in calendar]
    doubtful = [replace(one, location="Paris") for one in doubtful]
    found = row(asked, *calendar, *(replace(one, created=NEVER_KNOWN) for one in doubtful)).values
    selections = product([False, True], repeat=len(doubtful))
    rows = [
        row(asked, *calendar, *(one for one, there in zip(doubtful, chosen, strict=True) if there)).values
        for chosen in selections
    ]
    for feature in (*FROM_CALENDAR, "location", "invitee_recent"):
        possible = {one[feature] for one in rows}
        assert found[feature] == (possible.pop() if len(possible) == 1 else None)


@pytest.mark.parametrize("place", ["library", "Paris", ""])
def test_a_calendar_is_not_used_up_by_being_asked(place):
    past = Past(seen(engagement(5, "14:30", "15:30", location=place)), ME, OWNER.zone)
    first = feature_row(request(), OWNER, past, PEOPLE, CAME)
    feature_row(request(9), OWNER, past, PEOPLE, LONG_AGO)
    assert feature_row(request(), OWNER, past, PEOPLE, CAME) == first
