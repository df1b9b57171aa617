"""Today's calendar decides before any automatic yes, whatever stood when the request came."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kinfolk_assistant.ledger.calendar_read import DECIDES_FOR
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.mail import read_mail
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.calendar import Kept
from kinfolk_assistant.service.outbox import WAITS_FOR
from tests.assistant.service.world import ANN, MONDAY, Clock, Recorder, automate, invitation, teach

SLOT = MONDAY + timedelta(days=3)


def dentist(clock: Clock, start: object = SLOT) -> Kept:
    """An own entry that was made just now."""
    entered = (f"CREATED:{clock():%Y%m%dT%H%M%SZ}",)
    one = invitation("dentist", start, method="", organiser=ANN, stamp=clock(), summary="Dentist", extra=entered)  # type: ignore[arg-type]
    return Kept(one)


def take(assistant: Assistant, one: CalendarObject, **ago: float) -> int:
    [number] = assistant.take_in(ANN, [one], received_at=assistant.clock() - timedelta(**ago), source="caldav")
    return number


@pytest.mark.parametrize("extra", [(), ("RRULE:FREQ=WEEKLY;COUNT=8",)])
def test_what_was_entered_after_the_request_came_keeps_the_yes_back(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, extra: tuple[str, ...]
) -> None:
    teach(ledger, ANN)
    automate(assistant, undo_minutes=0)
    # Of a series, the fourth occurrence is the one that overlaps.
    assistant.take_calendar(ANN, [dentist(clock, SLOT + timedelta(weeks=3) if extra else SLOT)])
    number = take(assistant, invitation("old", SLOT, extra=extra), days=3)
    assistant.work()
    shown = assistant.request(ANN, number)
    # What is learnt from is how the calendar stood then.
    assert (shown.features["conflict"], shown.action) == ("no", "accept")
    assert shown.why == "it overlaps “Dentist” in your calendar"
    assert recorder.sent == []


def test_what_is_entered_while_the_yes_waits_keeps_it_back(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    teach(ledger, ANN)
    automate(assistant, undo_minutes=10)
    number = take(assistant, invitation("soon", SLOT))
    assistant.work()
    assert assistant.request(ANN, number).reply_state == "prepared"
    clock.at += timedelta(minutes=5)
    assistant.take_calendar(ANN, [dentist(clock)])
    clock.at += timedelta(minutes=6)
    assistant.work()
    shown = assistant.request(ANN, number)
    assert recorder.sent == []
    assert (shown.state, shown.action, shown.why) == ("open", "ask", "it overlaps “Dentist” in your calendar")
    assert shown.replies[-1].state == "withdrawn"


def test_a_yes_waits_for_a_calendar_that_cannot_be_read_and_then_asks(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    teach(ledger, ANN)
    automate(assistant, undo_minutes=10)
    first, second = take(assistant, invitation("a", SLOT)), take(assistant, invitation("b", SLOT + timedelta(days=1)))
    assistant.work()
    clock.at += timedelta(seconds=DECIDES_FOR.total_seconds() + 60)
    assistant.work()
    assert recorder.sent == []
    assistant.calendar_unchanged(ANN)
    assistant.undo(ANN, second)
    assistant.work()
    assert recorder.answers() == [("a", "ACCEPTED")]
    third = take(assistant, invitation("c", SLOT + timedelta(days=1, hours=3)))
    assistant.work()
    assert assistant.request(ANN, third).reply_state == "prepared"
    clock.at += timedelta(seconds=WAITS_FOR.total_seconds() + 3600)
    assistant.work()
    assert assistant.request(ANN, third).state == "open"
    assert assistant.request(ANN, third).why.endswith("and it could not wait any longer")
    assert assistant.request(ANN, first).state == "answered"


def test_the_date_of_a_sender_tells_nothing_of_when_a_mail_arrived() -> None:
    head = "From: boss@example.org\r\nDate: Fri, 27 Feb 2026 09:00:00 +0000\r\nContent-Type: text/calendar\r\n"
    hop = "Received: from x by mx.example.org; Mon, 02 Mar 2026 08:59:00 +0000\r\n"
    [claimed] = read_mail((head + "\r\n" + invitation().text).encode())
    [taken] = read_mail((hop + head + "\r\n" + invitation().text).encode())
    assert claimed.arrived is None
    assert taken.arrived == MONDAY - timedelta(minutes=1)
