"""What is read from calendars at Google and Microsoft 365, from a server that speaks as they document."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from kinfolk_assistant.delivery.online import api
from kinfolk_assistant.features.row import CALENDAR_FEATURES
from kinfolk_assistant.ledger.calendar_read import NEVER_READ
from kinfolk_assistant.reading.occurrences import occurrences
from tests.assistant.delivery.online.simulated import Asked, Said
from tests.assistant.delivery.online.world import SLOT, World, event
from tests.assistant.service.world import ANN, BOSS, MONDAY, invitation, teach

BERLIN = ZoneInfo("Europe/Berlin")
DAY = timedelta(days=1)


def test_invitations_come_in_once_and_from_all_pages(world: World) -> None:
    for number in range(5):
        world.state.put(world.event(f"e{number}", SLOT + number * DAY))
    world.visit()
    world.visit()
    assert world.inbox() == [f"Plans e{number}" for number in range(5)]
    shown = world.assistant.request(ANN, 1)
    assert (shown.organiser, shown.organiser_name, shown.starts_at) == (BOSS, "The Boss", SLOT)
    assert [deed.kind for deed in shown.deeds] == ["received"]


def test_only_what_waits_for_an_answer_is_an_invitation(world: World) -> None:
    world.state.put(world.event("asked"))
    world.state.put(world.event("accepted", SLOT + DAY, answer="yes"))
    world.state.put(world.event("declined", SLOT + 2 * DAY, answer="no"))
    world.state.put(world.event("own", SLOT + 3 * DAY, own=True))
    world.state.put(world.event("dentist", SLOT + 4 * DAY, own=True, invited=False))
    world.state.put(world.event("over", MONDAY - 3 * DAY))
    world.visit()
    assert world.inbox() == ["Plans asked"]
    assert [one.summary for one in world.assistant.search(ANN, "Plans")] == ["Plans asked"]


def test_what_stands_in_the_calendar_is_known_by_the_features(world: World) -> None:
    world.state.put(world.event("dentist", SLOT, own=True, invited=False))
    world.state.put(world.event("asked", SLOT + timedelta(minutes=30)))
    world.visit()
    world.assistant.work()
    assert world.assistant.request(ANN, 1).features["conflict"] == "yes"


def test_a_calendar_that_could_not_be_read_is_missing_and_never_free(world: World) -> None:
    world.state.misbehave = lambda asked: Said(500) if "/api/" in asked.path else None
    world.visit()
    assert "asks to be left alone" in world.error()
    world.assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    world.assistant.work()
    shown = world.assistant.request(ANN, 1)
    assert {shown.unknown[name] for name in CALENDAR_FEATURES} == {NEVER_READ}


def test_half_a_calendar_is_not_read(world: World) -> None:
    for number in range(5):
        world.state.put(world.event(f"e{number}", SLOT + number * DAY))
    pages = iter(range(10))

    def fail(asked: Asked) -> Said | None:
        listed = "calendar" in asked.path and "events/" not in asked.path
        return Said(404) if listed and next(pages) == 1 else None

    world.state.misbehave = fail
    world.visit()
    assert world.inbox() == []
    assert world.assistant.settings(ANN).calendar_read_at is None


def test_a_second_visit_asks_for_changes_alone(world: World) -> None:
    world.state.put(world.event("first"))
    world.visit()
    world.state.put(world.event("second", SLOT + DAY))
    world.state.asked.clear()
    world.visit()
    assert sorted(world.inbox()) == ["Plans first", "Plans second"]
    [asked] = world.state.calls("GET", "calendar")
    assert {"syncToken", "$deltatoken"} & asked.query.keys()
    assert not {"timeMin", "startDateTime"} & asked.query.keys()


def test_a_token_that_has_ended_lets_all_be_read_afresh(world: World) -> None:
    world.state.put(world.event("first"))
    world.visit()
    world.state.put(world.event("second", SLOT + DAY))
    world.state.oldest = 99
    world.visit()
    assert sorted(world.inbox()) == ["Plans first", "Plans second"]
    assert world.error() == ""
    first = world.assistant.request(ANN, 1)
    assert [deed.kind for deed in first.deeds] == ["received"]


def test_a_service_that_only_says_410_is_trouble_and_not_an_endless_round(world: World) -> None:
    world.state.misbehave = lambda asked: Said(410) if "/api/" in asked.path else None
    world.visit()
    assert "410" in world.error()
    assert len(world.state.calls("GET", "/api/")) == 2


def test_what_its_organiser_moves_is_asked_anew(world: World) -> None:
    teach(world.assistant.ledger)
    world.state.put(world.event("m"))
    world.visit()
    world.assistant.work()
    world.assistant.answer(ANN, 1, "accept")
    world.assistant.work()
    assert world.status("m") == "accepted"
    world.visit()
    later = MONDAY + timedelta(minutes=5)
    world.state.put(world.event("m", SLOT + DAY, sequence=1, updated=later))
    world.clock.at = MONDAY + timedelta(hours=1)
    world.visit()
    [shown] = [one for one in world.assistant.inbox(ANN) if one.state == "open"]
    assert shown.starts_at == SLOT + DAY


def test_what_only_others_change_is_told_no_more(world: World) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.state.put(world.event("m", updated=MONDAY - timedelta(minutes=5)))
    world.visit()
    assert [deed.kind for deed in world.assistant.request(ANN, 1).deeds] == ["received"]


@pytest.mark.parametrize("again", [True, False])
def test_what_is_gone_from_the_calendar_is_asked_about_no_more(world: World, again: bool) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.assistant.answer(ANN, 1, "accept", can_undo=True)
    world.assistant.undo(ANN, 1)
    world.state.remove("m")
    if again:
        world.visits._seen.clear()  # as after a new start
    world.visit()
    assert world.inbox() == []
    shown = world.assistant.request(ANN, 1)
    assert shown.state == "cancelled"
    assert any("no longer in your calendar" in deed.text for deed in shown.deeds)


def test_an_organisers_cancellation_at_microsoft_is_one(microsoft: World) -> None:
    microsoft.state.put(microsoft.event("m"))
    microsoft.visit()
    microsoft.state.put(microsoft.event("m", isCancelled=True, updated=MONDAY - timedelta(minutes=1)))
    microsoft.visit()
    assert microsoft.assistant.request(ANN, 1).state == "cancelled"


def test_an_answer_given_in_the_calendar_itself_is_the_users_own(world: World) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.state.put(world.event("m", answer="yes", updated=MONDAY - timedelta(minutes=1)))
    world.visit()
    shown = world.assistant.request(ANN, 1)
    assert (shown.state, shown.label) == ("answered", "accept")


@pytest.mark.parametrize(
    "broken",
    [{"start": None}, {"start": {"dateTime": "no time", "timeZone": "UTC"}}, {"attendees": "nobody"}, {"end": {}}],
)
def test_an_event_that_makes_no_sense_keeps_no_other_from_being_read(world: World, broken: dict[str, object]) -> None:
    world.state.put(world.event("broken") | broken)
    world.state.put(world.event("sound", SLOT + DAY))
    world.visit()
    assert world.inbox() == ["Plans sound"]
    assert any(deed.kind == "refused" for deed in world.assistant.deeds(ANN))


def test_a_token_never_goes_to_an_address_that_is_not_the_services_own(microsoft: World) -> None:
    elsewhere = {"value": [], "@odata.nextLink": f"{microsoft.state.url}/evil/api/me/calendarView/delta"}
    microsoft.state.misbehave = lambda asked: Said(200, elsewhere) if "/microsoft/api" in asked.path else None
    microsoft.visit()
    assert "not its own" in microsoft.error()
    assert microsoft.state.calls("GET", "evil") == []


def test_an_answer_without_end_is_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_ANSWER", 1000)
    world.state.put(world.event("m") | {"description": "x" * 2000, "body": {"content": "x" * 2000}})
    world.visit()
    assert "not read" in world.error()


def times(world: World, start: datetime, days: int) -> list[datetime]:
    found = world.calendar().collect(None, now=world.clock())
    assert found.refused == []
    assert found.calendar is not None
    objects = [one.object for one in found.calendar]
    return [one.start for one in occurrences(objects, start, start + days * DAY, BERLIN)]


# The clocks go forward on 29 March 2026, and back on 25 October.
def test_a_series_at_google_keeps_its_hour_moves_and_leaves_out_what_it_says(google: World) -> None:
    start = datetime(2026, 3, 18, 9, tzinfo=BERLIN)
    rule = {"recurrence": ["RRULE:FREQ=WEEKLY;COUNT=5"]}
    series = google.event("s", start) | rule
    for end in ("start", "end"):
        series[end]["timeZone"] = "Europe/Berlin"
    google.state.put(series)
    moved = datetime(2026, 4, 2, 15, tzinfo=BERLIN)
    original = {"dateTime": datetime(2026, 4, 1, 9, tzinfo=BERLIN).isoformat()}
    google.state.put(
        google.event("s_1", moved) | {"iCalUID": "s@google.com", "recurringEventId": "s", "originalStartTime": original}
    )
    left_out = {"dateTime": datetime(2026, 4, 8, 9, tzinfo=BERLIN).isoformat()}
    google.state.put({"id": "s_2", "status": "cancelled", "recurringEventId": "s", "originalStartTime": left_out})
    days = [(3, 18, 9), (3, 25, 9), (4, 2, 15), (4, 15, 9)]
    assert times(google, start - DAY, 60) == [datetime(2026, m, d, h, tzinfo=BERLIN) for m, d, h in days]


def test_whole_days_are_whole_days(world: World) -> None:
    if world.name == "google":
        dates = {"start": {"date": "2026-03-04"}, "end": {"date": "2026-03-05"}}
    else:
        dates = {
            "isAllDay": True,
            "start": {"dateTime": "2026-03-04T00:00:00.0000000", "timeZone": "UTC"},
            "end": {"dateTime": "2026-03-05T00:00:00.0000000", "timeZone": "UTC"},
        }
    world.state.put(world.event("m") | dates)
    found = world.calendar().collect(None, now=world.clock())
    [one] = found.invitations
    assert (one.object.meetings[0].start, one.object.meetings[0].end) == (date(2026, 3, 4), date(2026, 3, 5))


def weekly(**more: object) -> dict[str, object]:
    pattern = {"type": "weekly", "interval": 1, "daysOfWeek": ["wednesday"], "firstDayOfWeek": "monday"}
    span = {"type": "numbered", "numberOfOccurrences": 5, "recurrenceTimeZone": "W. Europe Standard Time"}
    return {"type": "seriesMaster", "recurrence": {"pattern": pattern, "range": span}, **more}


def test_a_series_at_microsoft_keeps_its_hour_moves_and_leaves_out_what_it_says(microsoft: World) -> None:
    start = datetime(2026, 3, 18, 9, tzinfo=BERLIN)
    called_off = {"cancelledOccurrences": ["OID.s.2026-04-08", "something else"]}
    microsoft.state.put(event("microsoft", "s", start) | weekly() | called_off)
    for number, day in enumerate((18, 25)):
        one = event("microsoft", f"o{number}", datetime(2026, 3, day, 9, tzinfo=BERLIN))
        microsoft.state.put(one | {"type": "occurrence", "seriesMasterId": "s"})
    moved = event("microsoft", "x", datetime(2026, 4, 2, 15, tzinfo=BERLIN))
    original = {"originalStart": "2026-04-01T07:00:00Z", "iCalUId": "another uid of the occurrence"}
    microsoft.state.put(moved | {"type": "exception", "seriesMasterId": "s"} | original)
    days = [(3, 18, 9), (3, 25, 9), (4, 2, 15), (4, 15, 9)]
    assert times(microsoft, start - DAY, 60) == [datetime(2026, m, d, h, tzinfo=BERLIN) for m, d, h in days]


def test_a_series_at_microsoft_whose_zone_is_not_known_is_refused_and_not_guessed(microsoft: World) -> None:
    recurrence = weekly()
    recurrence["recurrence"]["range"]["recurrenceTimeZone"] = "tzone://Microsoft/Custom"  # type: ignore[index]
    microsoft.state.put(event("microsoft", "s") | recurrence)
    microsoft.state.put(event("microsoft", "o") | {"type": "occurrence", "seriesMasterId": "s"})
    found = microsoft.calendar().collect(None, now=microsoft.clock())
    assert found.calendar == []
    assert (len(found.refused), found.unread) == (1, 1)


def test_the_past_of_an_online_calendar_can_be_learnt_from(world: World) -> None:
    for number in range(3):
        world.state.put(world.event(f"e{number}", MONDAY - (100 + number) * DAY, answer="yes"))
    assert len(world.calendar().events(MONDAY)) == 3
