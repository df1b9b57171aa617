"""A calendar that is not known is not an empty one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kinfolk_assistant.features.row import CALENDAR_FEATURES
from kinfolk_assistant.ledger.calendar_read import DECIDES_FOR, DESCRIBES_FOR, NEVER_READ, STALE
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import User
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.calendar import Kept
from tests.assistant.service.world import ANN, MONDAY, Clock, Recorder, automate, invitation, teach

SLOT = MONDAY + timedelta(days=2)


def take(assistant: Assistant, one: CalendarObject) -> int:
    [number] = assistant.take_in(ANN, [one], received_at=assistant.clock(), source="caldav")
    assistant.work()
    return number


def forget(ledger: Ledger) -> None:
    with ledger.begin() as session:
        session.get_one(User, ANN).calendar_read_at = None


def test_features_of_a_calendar_never_read_are_missing(assistant: Assistant, ledger: Ledger) -> None:
    forget(ledger)
    shown = assistant.request(ANN, take(assistant, invitation()))
    assert [shown.features[name] for name in CALENDAR_FEATURES] == [None] * len(CALENDAR_FEATURES)
    assert {shown.unknown[name] for name in CALENDAR_FEATURES} == {NEVER_READ}
    assert shown.features["start_time"] == "morning"


def test_features_of_a_calendar_not_read_for_long_are_missing(assistant: Assistant, clock: Clock) -> None:
    clock.at += timedelta(seconds=DESCRIBES_FOR.total_seconds())
    assert assistant.request(ANN, take(assistant, invitation("a"))).features["conflict"] == "no"
    clock.at += timedelta(seconds=1)
    assert (
        assistant.request(ANN, take(assistant, invitation("b", SLOT + timedelta(hours=3)))).unknown["conflict"] == STALE
    )


def test_what_was_accepted_here_overlaps_all_the_same(assistant: Assistant, ledger: Ledger) -> None:
    forget(ledger)
    assistant.answer(ANN, take(assistant, invitation("first", SLOT)), "accept")
    shown = assistant.request(ANN, take(assistant, invitation("second", SLOT)))
    assert shown.features["conflict"] == "yes"
    assert shown.features["busy_fday"] is None


@pytest.mark.parametrize("read", ["never", "long ago", "just now"])
def test_nothing_is_answered_by_a_calendar_that_is_not_known(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, read: str
) -> None:
    teach(ledger, ANN)
    automate(assistant, undo_minutes=0)
    # A request that the model is sure of whatever the calendar says.
    clock.at += timedelta(seconds=DECIDES_FOR.total_seconds() + 60)
    if read == "never":
        forget(ledger)
    if read == "just now":
        assistant.calendar_unchanged(ANN)
    shown = assistant.request(ANN, take(assistant, invitation()))
    assert len(recorder.sent) == (read == "just now")
    if read == "long ago":
        assert shown.action == "accept"
        assert shown.why == "your calendar was last read 31 minutes ago"
    if read == "never":
        assert shown.action == "ask" or shown.why == NEVER_READ


def test_what_came_before_the_calendar_was_known_is_looked_at_again(assistant: Assistant, ledger: Ledger) -> None:
    teach(ledger, ANN)
    forget(ledger)
    number = take(assistant, invitation("asked", SLOT))
    assert assistant.request(ANN, number).features["conflict"] is None
    own = invitation(
        "own", SLOT, method="", organiser=ANN, stamp=MONDAY - timedelta(days=1), extra=("CREATED:20260201T090000Z",)
    )
    assistant.take_calendar(ANN, [Kept(own)])
    shown = assistant.request(ANN, number)
    assert (shown.features["conflict"], shown.action, shown.shadow) == ("yes", "decline", True)
    assert shown.why == "your calendar was not known when it came"
