"""The administrator's hand: stopping everything at once, shutting users out, what is kept how long."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Asking, Deed, Request
from kinfolk_assistant.ledger.users import lock_user
from kinfolk_assistant.reading.trust import Trust
from kinfolk_assistant.service import operating
from kinfolk_assistant.service.assistant import Assistant
from tests.assistant.service.world import ANN, MONDAY, Clock, Recorder, add_past, automate, invitation, teach

SLOT = MONDAY + timedelta(days=2)


@pytest.fixture
def automated(assistant: Assistant, ledger: Ledger) -> Assistant:
    """Ann's assistant, which would answer by itself, ten minutes after it has decided."""
    with ledger.begin() as session:
        add_past(session, ANN, 20)
    teach(ledger, ANN)
    assistant.calendar_unchanged(ANN)
    assistant.change_settings(ANN, automation=True, undo_minutes=10)
    return assistant


def ask(assistant: Assistant, uid: str, days: int = 0) -> int:
    one = invitation(uid, SLOT + timedelta(days=days))
    [number] = assistant.take_in(ANN, [one], received_at=assistant.clock(), source="caldav")
    assistant.work()
    return number


def test_one_switch_stops_what_is_decided_and_what_was_prepared(
    automated: Assistant, ledger: Ledger, recorder: Recorder
) -> None:
    before = ask(automated, "before")
    assert automated.request(ANN, before).reply_state == "prepared"
    with ledger.begin() as session:
        operating.stop(session, automated.clock())
    after = ask(automated, "after", days=1)
    automated.clock.pass_(minutes=11)  # type: ignore[attr-defined]
    automated.calendar_unchanged(ANN)
    automated.work()
    assert recorder.sent == []
    for number in (before, after):
        shown = automated.request(ANN, number)
        assert (shown.state, shown.why) == ("open", operating.STOPPED)
    # What users answer by hand leaves all the same.
    automated.answer(ANN, before, "decline")
    automated.work()
    assert recorder.answers() == [("before", "DECLINED")]
    with ledger.begin() as session:
        operating.resume(session)
    assert automated.request(ANN, ask(automated, "later", days=2)).reply_state == "prepared"


def test_turning_automation_off_stops_what_was_prepared(automated: Assistant, recorder: Recorder) -> None:
    number = ask(automated, "before")
    automated.change_settings(ANN, automation=False)
    automated.clock.pass_(minutes=11)  # type: ignore[attr-defined]
    automated.calendar_unchanged(ANN)
    automated.work()
    assert recorder.sent == []
    assert automated.request(ANN, number).why == "you have turned automation off"


def test_nothing_is_sent_for_who_is_shut_out(automated: Assistant, ledger: Ledger) -> None:
    with ledger.begin() as session:
        operating.disable(session, ANN, automated.clock())
        [status] = [one for one in operating.users(session) if one.address == ANN]
    assert status.disabled
    assert automated.request(ANN, ask(automated, "new")).why == operating.DISABLED


def test_what_is_older_is_deleted_and_learnt_without(assistant: Assistant, ledger: Ledger) -> None:
    with ledger.begin() as session:
        add_past(session, ANN, 20)
    now = assistant.clock()
    with ledger.read() as session:
        oldest = session.scalars(select(func.min(Request.ends_at))).one()
        n = session.scalars(select(func.count()).select_from(Request)).one()
    with ledger.begin() as session:
        assert operating.prune(session, now - oldest + timedelta(days=1), now) == (0, 0, 0)
    with ledger.begin() as session:
        pruned = operating.prune(session, timedelta(0), now + timedelta(seconds=1))
    assert pruned.requests == n
    with ledger.read() as session:
        assert session.scalars(select(func.count()).select_from(Request)).one() == 0
        assert session.scalars(select(func.count()).select_from(Deed)).one() == 0
        assert "retention" in session.scalars(select(Asking.why)).all()


def test_for_somebody_who_is_new_nothing_is_sent_whatever_they_have_set(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    assistant.trust = Trust(shadow_days=14)
    teach(ledger, ANN)
    automate(assistant, undo_minutes=0)
    with ledger.begin() as session:
        lock_user(session, ANN).made_at = MONDAY - timedelta(days=13)
    assistant.take_in(ANN, [invitation("m1")], received_at=clock(), source="caldav")
    assistant.work(ANN)
    [shown] = assistant.inbox(ANN)
    assert shown.action == "accept"
    assert assistant.request(ANN, shown.id).why == "in the first 14 days it only shows what it would do: 1 days more"
    assert recorder.sent == []
    clock.pass_(days=1)
    later = MONDAY + timedelta(days=4)
    assistant.take_in(ANN, [invitation("m2", later)], received_at=clock(), source="caldav")
    assistant.work(ANN)
    assert recorder.answers() == [("m2", "ACCEPTED")]
