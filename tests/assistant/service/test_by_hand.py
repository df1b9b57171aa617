"""What a user can do with a request beside yes and no: another time, later, never, and taking an answer back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from icalendar import Calendar

from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotNow
from tests.assistant.service.world import ANN, BOSS, MONDAY, Clock, Recorder, invitation

START = MONDAY + timedelta(days=2)


def ask(assistant: Assistant, clock: Clock, **more: object) -> int:
    [number] = assistant.take_in(ANN, [invitation(**more)], received_at=clock(), source="caldav")  # type: ignore[arg-type]
    assistant.work(ANN)
    return number


def test_an_answer_on_a_page_waits_and_leaves_no_trace_when_it_is_taken_back(
    assistant: Assistant, recorder: Recorder, clock: Clock
) -> None:
    number = ask(assistant, clock)
    assistant.answer(ANN, number, "accept", can_undo=True)
    clock.pass_(seconds=19)
    assistant.work(ANN)
    assert recorder.sent == []
    assistant.undo(ANN, number)
    clock.pass_(minutes=5)
    assistant.work(ANN)
    assert recorder.sent == []
    found = assistant.request(ANN, number)
    assert (found.state, found.label, found.at_organiser) == ("open", None, "")


def test_an_answer_that_is_not_taken_back_leaves_once_after_the_seconds_that_its_user_set(
    assistant: Assistant, recorder: Recorder, clock: Clock
) -> None:
    assistant.change_settings(ANN, undo_seconds=40)
    number = ask(assistant, clock)
    assistant.answer(ANN, number, "decline", can_undo=True)
    clock.pass_(seconds=39)
    assistant.work(ANN)
    assert recorder.sent == []
    clock.pass_(seconds=1)
    for _ in range(3):
        assistant.work(ANN)
    assert recorder.answers() == [("m1", "DECLINED")]
    with pytest.raises(NotNow, match="has left already"):
        assistant.undo(ANN, number)


def test_another_time_goes_to_the_organiser_as_a_counter_in_the_zone_of_the_invitation(
    assistant: Assistant, recorder: Recorder, clock: Clock
) -> None:
    number = ask(assistant, clock)
    later = START + timedelta(days=1)
    assistant.propose(ANN, number, later, later + timedelta(minutes=45), "Or on Friday?")
    assistant.work(ANN)
    [sent] = recorder.sent
    # By the library's own reader, not by ours.
    counter = Calendar.from_ical(sent.text)
    event = counter.events[0]
    assert (counter["METHOD"], sent.answer, sent.organiser) == ("COUNTER", "COUNTER", BOSS)
    assert (event["DTSTART"].dt, event["DTEND"].dt) == (later, later + timedelta(minutes=45))
    assert (str(event["UID"]), event["SEQUENCE"], str(event["COMMENT"])) == ("m1", 0, "Or on Friday?")
    assert event["ATTENDEE"].params["PARTSTAT"] == "TENTATIVE"
    found = assistant.request(ANN, number)
    assert (found.state, found.label) == ("answered", None)


def test_a_proposal_that_is_declined_is_put_before_the_user_again_but_by_nobody_else(
    assistant: Assistant, clock: Clock
) -> None:
    number = ask(assistant, clock)
    assistant.propose(ANN, number, START + timedelta(days=1), START + timedelta(days=1, hours=1))
    assistant.work(ANN)
    for organiser, state in (("eve@example.net", "answered"), (BOSS, "open")):
        declined = invitation(method="DECLINECOUNTER", organiser=organiser)
        assistant.take_in(ANN, [declined], received_at=clock(), source="caldav")
        assert assistant.request(ANN, number).state == state
    assert "does not take the time" in assistant.request(ANN, number).why


@pytest.mark.parametrize(
    ("days", "minutes", "words"), [(-1, 60, "lie ahead"), (2, 0, "lie ahead"), (0, 60, "you were asked for")]
)
def test_a_time_that_cannot_be_is_not_proposed(
    assistant: Assistant, clock: Clock, days: int, minutes: int, words: str
) -> None:
    number = ask(assistant, clock)
    start = START + timedelta(days=days) if days >= 0 else MONDAY - timedelta(days=1)
    with pytest.raises(NotNow, match=words):
        assistant.propose(ANN, number, start, start + timedelta(minutes=minutes))
    assert assistant.request(ANN, number).state == "open"


def test_of_a_series_no_other_time_is_proposed(assistant: Assistant, clock: Clock) -> None:
    number = ask(assistant, clock, extra=("RRULE:FREQ=WEEKLY;COUNT=4",))
    with pytest.raises(NotNow, match="one occurrence of a series"):
        assistant.propose(ANN, number, START + timedelta(days=1), START + timedelta(days=1, hours=1))


def test_what_is_put_off_comes_back_by_itself_and_not_after_the_meeting(assistant: Assistant, clock: Clock) -> None:
    number = ask(assistant, clock)
    with pytest.raises(NotNow, match="begins before that"):
        assistant.snooze(ANN, number, START)
    assistant.snooze(ANN, number, MONDAY + timedelta(hours=3))
    assert [one.snoozed_until for one in assistant.inbox(ANN)] == [MONDAY + timedelta(hours=3)]
    assistant.bring_back(ANN, number)
    assert [one.snoozed_until for one in assistant.inbox(ANN)] == [None]


@pytest.mark.parametrize("ignore", [True, False])
def test_later_versions_of_what_is_ignored_are_ignored_and_of_what_is_put_away_are_not(
    assistant: Assistant, recorder: Recorder, clock: Clock, ignore: bool
) -> None:
    number = ask(assistant, clock)
    assistant.dismiss(ANN, number, ignore=ignore)
    changed = ask(assistant, clock, sequence=1, start=START + timedelta(hours=2))
    assert assistant.request(ANN, changed).state == ("ignored" if ignore else "open")
    assert [one.id for one in assistant.inbox(ANN)] == ([] if ignore else [changed])
    clock.pass_(minutes=30)
    assistant.work(ANN)
    assert recorder.sent == []
    if ignore:
        assistant.bring_back(ANN, changed)
        assert [one.id for one in assistant.inbox(ANN)] == [changed]
