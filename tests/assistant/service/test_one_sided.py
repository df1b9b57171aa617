"""A past that shows only one kind of answer: what it teaches, and how long automation waits for the other kind."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.ledger.own_answers import NEEDED
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Deed, Request
from kinfolk_assistant.service.assistant import Assistant
from tests.assistant.service.world import ANN, BOB, MONDAY, Recorder, add_past, invitation, teach

SLOT = MONDAY + timedelta(days=2)


def remember(ledger: Ledger, answer: str, n: int = 57, user: str = ANN) -> None:
    """Give a user a past of one answer alone."""
    with ledger.begin() as session:
        add_past(session, user, n)
        session.execute(update(Request).where(Request.user == user).values(label=answer))


def answer_here(assistant: Assistant, choice: str, n: int) -> None:
    for i in range(n):
        one = invitation(f"{choice}-{i}", SLOT + timedelta(days=i + 1))
        [number] = assistant.take_in(ANN, [one], received_at=assistant.clock(), source="caldav")
        assistant.work()
        assistant.answer(ANN, number, choice)


@pytest.mark.parametrize("answer", ["accept", "decline"])
def test_a_past_of_one_answer_alone_makes_nobody_sure_of_it(assistant: Assistant, ledger: Ledger, answer: str) -> None:
    remember(ledger, answer)
    assistant.retrain(force=True)
    model = assistant.model(ANN)
    assert model is not None
    for conflict in ("yes", "no"):
        # Nothing tells how often the other answer was given: an even chance.
        assert model.probability({"conflict": conflict}, ANN) == pytest.approx(0.5)


def test_answers_given_here_always_count(assistant: Assistant, ledger: Ledger) -> None:
    remember(ledger, "accept")
    answer_here(assistant, "accept", 4)
    answer_here(assistant, "decline", 8)
    assistant.work()
    assistant.retrain(force=True)
    model = assistant.model(ANN)
    assert model is not None
    # By hand: the team's share is (4 + 6) / (12 + 12), of which twelve pseudo-counts stand beside the twelve answers.
    share = (12 * (4 + 6) / (12 + 12) + 4) / (12 + 12)
    assert model.probability(dict.fromkeys(MEETING_FEATURES), ANN) == pytest.approx(share)


def test_a_past_of_one_answer_alone_still_teaches_what_goes_with_it(assistant: Assistant, ledger: Ledger) -> None:
    remember(ledger, "accept")
    with ledger.begin() as session:
        for one in session.scalars(select(Request).where(Request.user == ANN)):
            one.features = dict.fromkeys(MEETING_FEATURES) | {"conflict": "no"}
    # Bob declines what conflicts; both help each other.
    with ledger.begin() as session:
        add_past(session, BOB, 40)
    for user in (ANN, BOB):
        assistant.agree(user)
    assistant.retrain(force=True)
    model = assistant.model(ANN)
    assert model is not None
    free, taken = (model.probability({"conflict": value}, ANN) for value in ("no", "yes"))
    assert free is not None
    assert taken is not None
    assert free > 0.5 > taken


def test_a_past_with_both_answers_teaches_how_often_each_is_given(assistant: Assistant, ledger: Ledger) -> None:
    with ledger.begin() as session:
        add_past(session, ANN, 40)
        session.execute(update(Request).where(Request.uid.not_in(["past-1", "past-3"])).values(label="accept"))
    assistant.retrain(force=True)
    model = assistant.model(ANN)
    assert model is not None
    known = model.probability({}, ANN)
    assert known is not None
    assert known > 0.85


@pytest.mark.parametrize("declines", [0, NEEDED - 1, NEEDED])
def test_no_yes_is_sent_before_enough_own_noes(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, declines: int
) -> None:
    remember(ledger, "accept")
    teach(ledger, ANN)
    answer_here(assistant, "decline", declines)
    assistant.work()
    recorder.sent.clear()
    assistant.change_settings(ANN, automation=True, undo_minutes=0)
    [one] = assistant.take_in(ANN, [invitation("new", SLOT)], received_at=assistant.clock(), source="caldav")
    assistant.work()
    shown = assistant.request(ANN, one)
    assert shown.action == "accept"
    if declines < NEEDED:
        assert recorder.sent == []
        some = "1 invitation" if declines == 1 else f"{declines} invitations"
        assert shown.why == f"you have declined {some} so far, and no yes is sent for you before {NEEDED}"
        with ledger.read() as session:
            assert any(shown.why in text for text in session.scalars(select(Deed.text)))
    else:
        assert recorder.answers() == [("new", "ACCEPTED")]
        assert shown.why == ""


def test_no_no_is_sent_before_enough_own_yeses(assistant: Assistant, ledger: Ledger, recorder: Recorder) -> None:
    remember(ledger, "decline")
    teach(ledger, ANN)
    answer_here(assistant, "accept", 1)
    assistant.work()
    recorder.sent.clear()
    assistant.change_settings(ANN, automation=True, undo_minutes=0)
    taken = SLOT + timedelta(days=1)
    [one] = assistant.take_in(ANN, [invitation("new", taken)], received_at=assistant.clock(), source="caldav")
    assistant.work()
    assert assistant.request(ANN, one).action == "decline"
    assert assistant.request(ANN, one).why.startswith("you have accepted 1 invitation so far")
    assert recorder.sent == []
