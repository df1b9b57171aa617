from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from kinfolk_assistant.delivery.deliverer import NotDelivered, Outgoing, PerhapsDelivered
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Reply
from kinfolk_assistant.service import outbox
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotNow
from tests.assistant.service.world import ANN, BOB, MONDAY, Clock, Recorder, automate, invitation, teach


class Killed(BaseException):
    """Stands for kill -9: nothing that follows is done."""


@pytest.fixture
def prepared(assistant: Assistant, ledger: Ledger) -> int:
    """A request with an automatic answer that is due in ten minutes."""
    teach(ledger, ANN)
    automate(assistant, undo_minutes=10)
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav", source_ref="<ref@x>")
    assistant.work()
    return one


def reply(ledger: Ledger) -> Reply:
    with ledger.read() as session:
        return session.scalars(select(Reply).order_by(Reply.id.desc())).first()  # type: ignore[return-value]


def kill(outgoing: Outgoing) -> None:
    raise Killed


def test_an_automatic_answer_waits_for_the_time_to_undo_it_and_leaves_once(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    clock.pass_(minutes=9.99)
    assert assistant.work() == 0
    clock.pass_(minutes=0.02)
    assert assistant.work() == 1
    for _ in range(3):
        clock.pass_(days=1)
        assert assistant.work() == 0
    [sent] = recorder.sent
    assert (sent.user, sent.organiser, sent.answer, sent.source_ref) == (ANN, "boss@example.org", "ACCEPTED", "<ref@x>")
    assert "METHOD:REPLY" in sent.text
    assert "METHOD:REQUEST" in sent.request_text
    assert reply(ledger).state == "sent"


def test_it_is_sending_in_the_ledger_before_the_deliverer_is_called(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    seen: list[str] = []
    recorder.before = lambda outgoing: seen.append(reply(ledger).state)
    clock.pass_(minutes=11)
    assistant.work()
    assert seen == ["sending"]


def test_the_text_and_the_message_id_are_the_same_at_every_attempt(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    tried: list[Outgoing] = []

    def fail(outgoing: Outgoing) -> None:
        tried.append(outgoing)
        if len(tried) < 3:
            raise NotDelivered("The server is away.")

    recorder.before = fail
    for _ in range(4):
        clock.pass_(hours=1)
        assistant.work()
    assert len(tried) == 3
    assert len({(one.text, one.message_id) for one in tried}) == 1
    assert reply(ledger).state == "sent"


def test_failures_are_tried_again_ever_later_and_not_for_ever(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    tries = []

    def fail(outgoing: Outgoing) -> None:
        tries.append(clock.at)
        raise NotDelivered("The server is away.")

    recorder.before = fail
    for _ in range(400):
        clock.pass_(minutes=1 if len(tries) < 6 else 20)
        assistant.work()
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert len(tries) == outbox.MOST_ATTEMPTS
    assert gaps == sorted(gaps)
    assert gaps[0] < timedelta(minutes=2) < timedelta(hours=1) < gaps[-1]
    assert (reply(ledger).state, reply(ledger).error) == ("failed", "The server is away.")
    [shown] = assistant.inbox(ANN)
    assert shown.reply_state == "failed"
    recorder.before = lambda outgoing: None
    assistant.mark_sent_again(ANN, reply(ledger).id)
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED")]


def test_killed_while_sending_it_is_sent_again_where_that_does_no_harm(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    clock.pass_(minutes=11)
    recorder.before = kill
    with pytest.raises(Killed):
        assistant.work()
    recorder.before = lambda outgoing: None
    # Whoever has it may be alive and slow.
    assert assistant.work() == 0
    clock.pass_(seconds=outbox.HELD_FOR.total_seconds() + 1)
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED")]


def test_killed_while_sending_by_mail_it_is_put_before_the_user(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    recorder.certain = False
    clock.pass_(minutes=11)
    recorder.before = kill
    with pytest.raises(Killed):
        assistant.work()
    recorder.before = lambda outgoing: None
    for _ in range(3):
        clock.pass_(hours=1)
        assistant.work()
    assert recorder.sent == []
    [shown] = assistant.inbox(ANN)
    assert (shown.state, shown.reply_state) == ("answered", "uncertain")
    assistant.mark_sent_again(ANN, reply(ledger).id)
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED")]


@pytest.mark.parametrize("error", [PerhapsDelivered("It broke off."), RuntimeError("a fault")])
def test_by_mail_an_end_that_nobody_understands_is_uncertain(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int, error: Exception
) -> None:
    recorder.certain = False

    def fail(outgoing: Outgoing) -> None:
        raise error

    recorder.before = fail
    clock.pass_(minutes=11)
    assistant.work()
    assert (reply(ledger).state, reply(ledger).error) == ("uncertain", str(error))


def test_a_slow_sender_that_was_given_up_still_reports_that_it_was_sent(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    recorder.certain = False
    clock.pass_(minutes=11)

    def slow(outgoing: Outgoing) -> None:
        recorder.before = lambda outgoing: None
        clock.pass_(hours=1)
        assistant.work()
        assert reply(ledger).state == "uncertain"

    recorder.before = slow
    assistant.work()
    assert (len(recorder.sent), reply(ledger).state) == (1, "sent")


def test_nothing_leaves_after_the_organiser_cancelled(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    clock.pass_(minutes=11)
    assistant.take_in(ANN, [invitation(method="CANCEL", sequence=1)], received_at=clock(), source="caldav")
    assistant.work()
    assert recorder.sent == []
    assert reply(ledger).state == "withdrawn"


def test_a_reply_whose_request_is_over_is_withdrawn_when_it_would_leave(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    """The check at the moment of leaving counts by itself, whoever has cancelled and how."""
    from kinfolk_assistant.ledger.tables import Request

    with ledger.begin() as session:
        session.get_one(Request, prepared).state = "cancelled"
    clock.pass_(minutes=11)
    assistant.work()
    assert recorder.sent == []
    assert reply(ledger).state == "withdrawn"


def test_a_reply_that_failed_is_not_tried_again_after_a_cancellation(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    def cancelled_meanwhile(outgoing: Outgoing) -> None:
        assistant.take_in(ANN, [invitation(method="CANCEL", sequence=1)], received_at=clock(), source="caldav")
        raise NotDelivered("The server is away.")

    recorder.before = cancelled_meanwhile
    clock.pass_(minutes=11)
    assistant.work()
    recorder.before = lambda outgoing: None
    clock.pass_(days=1)
    assistant.work()
    assert recorder.sent == []
    assert reply(ledger).state == "withdrawn"


def test_the_ledger_itself_refuses_a_second_answer_by_the_assistant(ledger: Ledger, prepared: int) -> None:
    with pytest.raises(IntegrityError), ledger.begin() as session:
        session.add(
            Reply(
                request_id=prepared,
                once=prepared,
                by="assistant",
                answer="DECLINED",
                text="",
                made_at=MONDAY,
                due_at=MONDAY,
            )
        )


def test_only_what_failed_or_is_uncertain_can_be_sent_again(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    with pytest.raises(NotNow, match="The answer is prepared"):
        assistant.mark_sent_again(ANN, reply(ledger).id)
    recorder.before = lambda outgoing: (_ for _ in ()).throw(NotDelivered("Away."))
    clock.pass_(minutes=11)
    assistant.work()
    failed = reply(ledger).id
    assistant.answer(ANN, prepared, "decline")
    with pytest.raises(NotNow, match="The answer is withdrawn"):
        assistant.mark_sent_again(ANN, failed)


def test_a_user_who_is_erased_while_an_answer_leaves_does_not_stop_the_others(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, prepared: int
) -> None:
    [other] = assistant.take_in(BOB, [invitation(attendee=BOB)], received_at=MONDAY, source="caldav")
    assistant.answer(BOB, other, "accept")

    def erased(outgoing: Outgoing) -> None:
        if outgoing.user == ANN:
            assistant.erase(ANN)

    recorder.before = erased
    clock.pass_(minutes=11)
    assistant.work()
    assert [one.user for one in recorder.sent] == [ANN, BOB]
    assert assistant.request(BOB, other).reply_state == "sent"
