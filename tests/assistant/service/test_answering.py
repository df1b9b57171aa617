from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from kinfolk_assistant.delivery.deliverer import Outgoing
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Asking, Reply, Request
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.calendar import Kept
from kinfolk_assistant.service.errors import NotNow
from tests.assistant.service.world import ANN, MONDAY, Clock, Recorder, automate, invitation, teach


@pytest.fixture
def asked(assistant: Assistant) -> int:
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    assistant.work()
    return one


@pytest.fixture
def automatic(assistant: Assistant, ledger: Ledger) -> int:
    """A request that the assistant accepts by itself in ten minutes."""
    teach(ledger, ANN)
    automate(assistant)
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    assistant.work()
    return one


def label(ledger: Ledger, number: int) -> str | None:
    with ledger.read() as session:
        return session.get_one(Request, number).label


def states(ledger: Ledger) -> list[tuple[str, str, str]]:
    with ledger.read() as session:
        query = select(Reply.by, Reply.answer, Reply.state).order_by(Reply.id)
        return [tuple(row) for row in session.execute(query)]


@pytest.mark.parametrize(("choice", "partstat"), [("accept", "ACCEPTED"), ("decline", "DECLINED")])
def test_an_answer_by_hand_is_sent_at_once_and_is_a_label(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, asked: int, choice: str, partstat: str
) -> None:
    assistant.answer(ANN, asked, choice)
    assistant.work()
    assert recorder.answers() == [("m1", partstat)]
    assert label(ledger, asked) == choice
    assert assistant.inbox(ANN) == []


def test_the_same_answer_twice_is_sent_once(assistant: Assistant, recorder: Recorder, asked: int) -> None:
    for _ in range(2):
        assistant.answer(ANN, asked, "accept")
        assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED")]


def test_another_answer_replaces_the_first(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, asked: int
) -> None:
    assistant.answer(ANN, asked, "accept")
    assistant.answer(ANN, asked, "decline")
    assistant.work()
    assert recorder.answers() == [("m1", "DECLINED")]
    assert label(ledger, asked) == "decline"
    assistant.answer(ANN, asked, "accept")
    assistant.work()
    assert recorder.answers() == [("m1", "DECLINED"), ("m1", "ACCEPTED")]


def test_confirming_an_automatic_answer_sends_it_at_once_and_only_once(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, automatic: int
) -> None:
    assistant.answer(ANN, automatic, "accept")
    assistant.work()
    clock.pass_(hours=1)
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED")]
    assert label(ledger, automatic) == "accept"


def test_overriding_an_automatic_answer_in_time_leaves_only_the_users(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, automatic: int
) -> None:
    assistant.answer(ANN, automatic, "decline")
    clock.pass_(hours=1)
    assistant.work()
    assert recorder.answers() == [("m1", "DECLINED")]
    assert states(ledger) == [("assistant", "ACCEPTED", "withdrawn"), ("user", "DECLINED", "sent")]


def test_overriding_an_automatic_answer_too_late_sends_the_users_after_it(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, automatic: int
) -> None:
    clock.pass_(hours=1)
    assistant.work()
    assistant.answer(ANN, automatic, "decline")
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED"), ("m1", "DECLINED")]


def test_the_users_answer_does_not_overtake_the_assistants_that_is_being_sent(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, automatic: int
) -> None:
    def meanwhile(outgoing: Outgoing) -> None:
        recorder.before = lambda outgoing: None
        assistant.answer(ANN, automatic, "decline")
        assert assistant.work() == 0

    recorder.before = meanwhile
    clock.pass_(hours=1)
    assistant.work()
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED"), ("m1", "DECLINED")]


def test_an_automatic_answer_is_no_label(assistant: Assistant, ledger: Ledger, clock: Clock, automatic: int) -> None:
    clock.pass_(days=1)
    assistant.work()
    assert states(ledger) == [("assistant", "ACCEPTED", "sent")]
    assert label(ledger, automatic) is None
    with ledger.read() as session:
        assert session.scalars(select(Asking)).all() == []


def test_undone_in_time_nothing_leaves_and_the_assistant_does_not_answer_again(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, automatic: int
) -> None:
    assistant.undo(ANN, automatic)
    teach(ledger, ANN)
    clock.pass_(days=1)
    assistant.work()
    assert recorder.sent == []
    [shown] = assistant.inbox(ANN)
    assert (shown.state, shown.reply_state) == ("open", "withdrawn")
    assert label(ledger, automatic) is None
    assistant.answer(ANN, automatic, "accept")
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED")]


def test_undone_too_late_the_users_choice_follows(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, automatic: int
) -> None:
    clock.pass_(hours=1)
    assistant.work()
    assistant.undo(ANN, automatic)
    assert assistant.request(ANN, automatic).state == "open"
    assistant.answer(ANN, automatic, "decline")
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED"), ("m1", "DECLINED")]


def test_undone_too_late_and_then_confirmed_nothing_more_is_sent(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, automatic: int
) -> None:
    clock.pass_(hours=1)
    assistant.work()
    assistant.undo(ANN, automatic)
    assistant.answer(ANN, automatic, "accept")
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED")]
    assert label(ledger, automatic) == "accept"


@pytest.mark.parametrize(("then", "conflict"), [(None, "yes"), ("decline", "no")])
def test_an_undone_meeting_takes_time_like_any_that_is_not_answered_until_it_is_declined(
    assistant: Assistant, automatic: int, then: str | None, conflict: str
) -> None:
    assistant.undo(ANN, automatic)
    if then is not None:
        assistant.answer(ANN, automatic, then)
    [other] = assistant.take_in(ANN, [invitation("other")], received_at=MONDAY, source="caldav")
    assistant.work()
    assert assistant.request(ANN, other).features["conflict"] == conflict


def test_what_the_user_answered_cannot_be_undone_once_it_has_left(
    assistant: Assistant, asked: int, ledger: Ledger
) -> None:
    with pytest.raises(NotNow, match="no answer to take back"):
        assistant.undo(ANN, asked)
    assistant.answer(ANN, asked, "accept")
    assistant.work(ANN)
    with pytest.raises(NotNow, match="has left already"):
        assistant.undo(ANN, asked)


def test_nothing_is_undone_twice(assistant: Assistant, automatic: int) -> None:
    assistant.undo(ANN, automatic)
    with pytest.raises(NotNow, match="no answer to take back"):
        assistant.undo(ANN, automatic)


def test_what_is_cancelled_or_superseded_is_answered_no_more(assistant: Assistant, automatic: int) -> None:
    assistant.take_in(ANN, [invitation(sequence=1)], received_at=MONDAY, source="caldav")
    with pytest.raises(NotNow, match="answer its later version"):
        assistant.answer(ANN, automatic, "accept")
    with pytest.raises(NotNow, match="answer its later version"):
        assistant.undo(ANN, automatic)
    assistant.take_in(ANN, [invitation(method="CANCEL", sequence=2)], received_at=MONDAY, source="caldav")
    with pytest.raises(NotNow, match="has cancelled"):
        assistant.answer(ANN, automatic + 1, "accept")


def test_an_answer_is_accept_or_decline(assistant: Assistant, asked: int) -> None:
    with pytest.raises(ValueError, match="'maybe' is neither accept nor decline"):
        assistant.answer(ANN, asked, "maybe")


def test_an_answer_given_in_the_calendar_is_the_users_hand(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, automatic: int
) -> None:
    assistant.take_calendar(ANN, [Kept(invitation(method="", partstat="DECLINED"))])
    clock.pass_(hours=1)
    assistant.work()
    assert recorder.sent == []
    assert label(ledger, automatic) == "decline"
    assert assistant.inbox(ANN) == []


def test_the_assistants_own_answer_coming_back_in_the_calendar_is_no_label(
    assistant: Assistant, ledger: Ledger, clock: Clock, automatic: int
) -> None:
    clock.pass_(hours=1)
    assistant.work()
    accepted = Kept(invitation(method="", partstat="ACCEPTED"))
    assistant.take_calendar(ANN, [accepted])
    assert label(ledger, automatic) is None
    assistant.undo(ANN, automatic)
    assistant.take_calendar(ANN, [accepted])
    assert label(ledger, automatic) is None
    assert assistant.request(ANN, automatic).state == "open"


def test_an_answer_in_the_calendar_to_an_earlier_version_is_not_one_to_the_later(
    assistant: Assistant, ledger: Ledger, asked: int
) -> None:
    [later] = assistant.take_in(
        ANN, [invitation(sequence=1, start=MONDAY + timedelta(days=3))], received_at=MONDAY, source="caldav"
    )
    assistant.take_calendar(ANN, [Kept(invitation(method="", partstat="ACCEPTED"))])
    assert label(ledger, later) is None
    assert assistant.request(ANN, later).state == "open"


def test_an_answer_that_the_server_carried_over_to_a_changed_meeting_is_no_answer_to_it(
    assistant: Assistant, ledger: Ledger, clock: Clock, asked: int
) -> None:
    def stored(sequence: int, *extra: str) -> Kept:
        start = MONDAY + timedelta(days=2 + sequence)
        return Kept(invitation(method="", partstat="ACCEPTED", sequence=sequence, start=start, extra=extra))

    assistant.answer(ANN, asked, "accept")
    assistant.work()
    assistant.take_calendar(ANN, [stored(0)])
    clock.pass_(hours=1)
    assistant.take_calendar(ANN, [stored(1)])
    [later] = assistant.take_in(
        ANN, [invitation(sequence=1, start=MONDAY + timedelta(days=3))], received_at=clock(), source="caldav"
    )
    # Something else of the entry changes, and the calendar is read again.
    assistant.take_calendar(ANN, [stored(1, "X-SEEN:yes")])
    assert label(ledger, later) is None
    assert assistant.request(ANN, later).state == "open"


def test_a_changed_mind_in_the_calendar_is_followed_even_back_to_what_the_assistant_had_sent(
    assistant: Assistant, ledger: Ledger, clock: Clock, automatic: int
) -> None:
    clock.pass_(hours=1)
    assistant.work()
    for answer, expected in [("ACCEPTED", None), ("DECLINED", "decline"), ("ACCEPTED", "accept")]:
        assistant.take_calendar(ANN, [Kept(invitation(method="", partstat=answer))])
        assert label(ledger, automatic) == expected


def test_an_occurrence_that_only_repeats_the_answer_of_its_series_is_no_answer_to_a_request(
    assistant: Assistant, ledger: Ledger, clock: Clock
) -> None:
    day = MONDAY + timedelta(days=9)
    series = invitation(method="", partstat="ACCEPTED", extra=("RRULE:FREQ=WEEKLY",))
    assistant.take_calendar(ANN, [Kept(series)])
    moved = invitation(start=day + timedelta(hours=3), sequence=1, extra=(f"RECURRENCE-ID:{day:%Y%m%dT%H%M%SZ}",))
    [one] = assistant.take_in(ANN, [moved], received_at=clock(), source="caldav")
    head, _, event = series.text.partition("BEGIN:VEVENT")
    own = moved.text.partition("BEGIN:VEVENT")[2].replace("NEEDS-ACTION", "ACCEPTED")
    both = f"{head}BEGIN:VEVENT{event.partition('END:VCALENDAR')[0]}BEGIN:VEVENT{own}"
    assistant.take_calendar(ANN, [Kept(*read_calendar(both.encode()))])
    assert label(ledger, one) is None


def test_what_the_user_has_answered_before_the_request_was_seen_is_not_answered_again(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    teach(ledger, ANN)
    automate(assistant)
    assistant.take_calendar(ANN, [Kept(invitation(method="", partstat="DECLINED"))])
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    clock.pass_(hours=1)
    assistant.work()
    clock.pass_(hours=1)
    assistant.work()
    assert recorder.sent == []
    assert label(ledger, one) == "decline"
