from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import func, select

from kinfolk_assistant.learning.model import TeamModel
from kinfolk_assistant.ledger.own_answers import NEEDED
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Asking, Decision, Lease, Model, Request, Table, User
from kinfolk_assistant.service import retraining
from kinfolk_assistant.service.assistant import Assistant, Trainer
from kinfolk_assistant.service.errors import NotYours
from tests.assistant.service.world import ANN, BOB, MONDAY, Clock, add_past, automate, invitation, teach

CYD = "cyd@example.org"


def give_history(assistant: Assistant, *users: str) -> None:
    """Twenty answered requests of the past for each."""
    for user in users:
        assistant.add_user(user)
        with assistant.ledger.begin() as session:
            add_past(session, user, 20)


def models(ledger: Ledger) -> list[tuple[str | None, list[str]]]:
    with ledger.read() as session:
        found = session.execute(select(Model.owner, Model.users).order_by(Model.id))
        return sorted(((owner, sorted(users)) for owner, users in found), key=lambda one: one[0] or "")


def askings(ledger: Ledger) -> list[str]:
    with ledger.read() as session:
        return list(session.scalars(select(Asking.why).order_by(Asking.id)))


def during_fit(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Have something happen while a model is being fitted."""

    class Interrupted(TeamModel):
        @classmethod
        def fit(cls, rows: pl.DataFrame, *, seed: int = 0, verbose: bool = False) -> TeamModel:
            do()
            return TeamModel.fit(rows, seed=seed)

    monkeypatch.setattr(retraining, "TeamModel", Interrupted)


def test_only_those_who_agreed_are_in_the_shared_model_and_the_others_have_their_own(
    assistant: Assistant, ledger: Ledger
) -> None:
    give_history(assistant, ANN, BOB, CYD)
    assistant.agree(ANN)
    assistant.agree(BOB)
    assert assistant.retrain()
    assert models(ledger) == [(None, [ANN, BOB]), (CYD, [ANN, BOB, CYD])]


def test_the_models_know_only_the_users_they_are_said_to(assistant: Assistant, ledger: Ledger) -> None:
    give_history(assistant, ANN, BOB, CYD)
    assistant.agree(ANN)
    assistant.retrain()
    with ledger.read() as session:
        for model in session.scalars(select(Model)):
            assert sorted(TeamModel.from_bytes(model.archive).users) == sorted(model.users)
    assert [kin.user for kin in assistant.model(BOB).kin(BOB)] != [CYD]  # type: ignore[union-attr]


def test_nobody_agreeing_there_are_private_models_only(assistant: Assistant, ledger: Ledger) -> None:
    give_history(assistant, ANN, BOB)
    assert assistant.retrain(force=True)
    assert models(ledger) == [(ANN, [ANN]), (BOB, [BOB])]
    give_history(assistant, CYD)
    with ledger.begin() as session:
        session.execute(Request.__table__.delete().where(Request.user == CYD))
    assert assistant.model(CYD) is None


def test_a_newcomer_without_history_is_judged_by_the_shared_model(assistant: Assistant, ledger: Ledger) -> None:
    give_history(assistant, ANN)
    assistant.agree(ANN)
    assistant.retrain()
    [one] = assistant.take_in(BOB, [invitation(attendee=BOB)], received_at=MONDAY, source="caldav")
    assistant.work()
    assert assistant.request(BOB, one).probability is not None


def test_withdrawing_takes_every_model_that_knows_the_user_from_all_others_at_once(
    assistant: Assistant, ledger: Ledger
) -> None:
    give_history(assistant, ANN, BOB, CYD)
    assistant.agree(ANN)
    assistant.agree(BOB)
    assistant.retrain()
    assistant.withdraw(ANN)
    assert assistant.model(BOB) is None
    assert assistant.model(CYD) is None
    assert assistant.model(ANN) is not None
    assert models(ledger) == [(ANN, [ANN, BOB])]
    [one] = assistant.take_in(BOB, [invitation(attendee=BOB)], received_at=MONDAY, source="caldav")
    assistant.work()
    assert assistant.request(BOB, one).action == "ask"
    assert assistant.retrain()
    assert models(ledger) == [(None, [BOB]), (ANN, [ANN, BOB]), (CYD, [BOB, CYD])]


def test_agreeing_and_withdrawing_ask_for_retraining_once(assistant: Assistant, ledger: Ledger) -> None:
    assistant.withdraw(ANN)
    assert askings(ledger) == []
    for _ in range(2):
        assistant.agree(ANN)
    for _ in range(2):
        assistant.withdraw(ANN)
    assert askings(ledger) == ["agreed", "withdrew"]


def test_erasing_leaves_no_row_no_model_and_no_name(assistant: Assistant, ledger: Ledger) -> None:
    give_history(assistant, ANN, BOB, CYD)
    for user in (ANN, BOB, CYD):
        assistant.agree(user)
    assistant.withdraw(CYD)
    assistant.retrain()
    assistant.take_in(ANN, [invitation(), invitation("x", method="CANCEL")], received_at=MONDAY, source="caldav")
    [one] = assistant.take_in(BOB, [invitation(attendee=BOB)], received_at=MONDAY, source="caldav")
    assistant.work()
    assistant.answer(ANN, assistant.inbox(ANN)[0].id, "accept")
    assert [kin["user"] for kin in assistant.request(BOB, one).kin] == [ANN]
    assistant.erase(ANN)
    with pytest.raises(NotYours):
        assistant.inbox(ANN)
    assert models(ledger) == []
    with ledger.read() as session:
        for table in Table.metadata.sorted_tables:
            for row in session.execute(table.select()):
                values = {name: value for name, value in row._mapping.items() if name != "text"}
                assert ANN not in repr(values), table.name
    assert assistant.request(BOB, one).kin == []
    assert assistant.retrain()
    assert models(ledger) == [(None, [BOB]), (CYD, [BOB, CYD])]


def test_what_is_erased_is_in_no_file_of_the_sqlite_ledger(tmp_path: Path, assistant: Assistant) -> None:
    if assistant.ledger.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL keeps its files to itself")
    assistant.take_in(ANN, [invitation(summary="Very private plans")], received_at=MONDAY, source="caldav")
    assistant.erase(ANN)
    assert [one.name for one in tmp_path.iterdir() if b"Very private plans" in one.read_bytes()] == []


def test_erasing_one_leaves_the_other_as_they_were(assistant: Assistant, ledger: Ledger) -> None:
    for user in (ANN, BOB):
        assistant.take_in(user, [invitation(attendee=user)], received_at=MONDAY, source="caldav")
    assistant.work()
    before = assistant.inbox(BOB), [deed.text for deed in assistant.deeds(BOB)]
    assistant.erase(ANN)
    assert (assistant.inbox(BOB), [deed.text for deed in assistant.deeds(BOB)]) == before


@pytest.mark.parametrize("deed", ["withdraw", "erase"])
def test_a_model_fitted_while_somebody_left_is_never_put_in_use(
    assistant: Assistant, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    give_history(assistant, ANN, BOB)
    assistant.agree(ANN)
    assistant.agree(BOB)
    during_fit(monkeypatch, lambda: getattr(assistant, deed)(ANN))
    assert not assistant.retrain()
    assert models(ledger) == []
    monkeypatch.undo()
    assert assistant.retrain()
    assert (None, [BOB]) in models(ledger)


def test_a_label_that_comes_during_the_fit_asks_for_the_next(
    assistant: Assistant, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_history(assistant, ANN)
    assistant.agree(ANN)
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    assistant.work()
    during_fit(monkeypatch, lambda: assistant.answer(ANN, one, "accept"))
    assert assistant.retrain()
    assert askings(ledger) == ["label"]


def test_pages_read_and_users_answer_while_a_model_is_fitted(
    assistant: Assistant, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_history(assistant, ANN)
    teach(ledger, ANN)
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    seen: list[object] = []

    def meanwhile() -> None:
        assistant.work()
        seen.append(assistant.inbox(ANN)[0].action)
        assistant.answer(ANN, one, "accept")
        seen.append(assistant.retrain(force=True))

    during_fit(monkeypatch, meanwhile)
    assert assistant.retrain(force=True)
    # The old model decides until the new one is there, and nobody fits a second time meanwhile.
    assert seen == ["accept", False]


def test_only_the_newest_models_are_kept(assistant: Assistant, ledger: Ledger) -> None:
    give_history(assistant, ANN)
    assistant.agree(ANN)
    for _ in range(3):
        assert assistant.retrain(force=True)
    with ledger.read() as session:
        assert session.scalar(select(func.count()).select_from(Model)) == 1


def test_nothing_is_fitted_where_nothing_has_changed(assistant: Assistant, ledger: Ledger) -> None:
    give_history(assistant, ANN)
    assistant.agree(ANN)
    assert assistant.retrain()
    assert not assistant.retrain()


def test_a_fit_that_fails_leaves_the_old_model_and_can_be_tried_again(
    assistant: Assistant, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_history(assistant, ANN)
    assistant.agree(ANN)
    assistant.retrain()
    before = models(ledger)

    def fail() -> None:
        raise RuntimeError("a fault")

    during_fit(monkeypatch, fail)
    with pytest.raises(RuntimeError):
        assistant.retrain(force=True)
    assert models(ledger) == before
    monkeypatch.undo()
    assert assistant.retrain(force=True)


def test_a_trainer_that_was_killed_is_waited_for_and_then_replaced(
    assistant: Assistant, ledger: Ledger, clock: Clock
) -> None:
    give_history(assistant, ANN)
    with ledger.begin() as session:
        lease = session.scalars(select(Lease)).one()
        lease.holder, lease.until = "killed", clock() + retraining.HELD_FOR
    assert not assistant.retrain(force=True)
    clock.pass_(seconds=retraining.HELD_FOR.total_seconds() + 1)
    assert assistant.retrain(force=True)


def test_a_trainer_that_was_given_up_does_not_put_its_model_in_use(
    assistant: Assistant, ledger: Ledger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_history(assistant, ANN)
    newer: list[int] = []

    def overtaken() -> None:
        clock.pass_(seconds=retraining.HELD_FOR.total_seconds() + 1)
        monkeypatch.undo()
        assert assistant.retrain(force=True)
        with ledger.read() as session:
            newer.append(session.scalars(select(Model.id)).one())

    during_fit(monkeypatch, overtaken)
    assert not assistant.retrain(force=True)
    with ledger.read() as session:
        assert session.scalars(select(Model.id)).all() == newer


def test_a_thread_learns_when_there_is_something_to_learn(assistant: Assistant, ledger: Ledger) -> None:
    import time

    give_history(assistant, ANN)
    trainer = Trainer(assistant, every=0.05)
    trainer.start()
    try:
        assistant.agree(ANN)
        end = time.monotonic() + 120
        while not models(ledger) and time.monotonic() < end:
            time.sleep(0.05)
        assert models(ledger) == [(None, [ANN])]
    finally:
        trainer.stop()
    assert not trainer.is_alive()


def test_what_the_assistant_answered_by_itself_is_not_among_the_labels(
    assistant: Assistant, ledger: Ledger, clock: Clock
) -> None:
    teach(ledger, ANN)
    automate(assistant)
    assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    assistant.work()
    clock.pass_(days=1)
    assistant.work()
    with ledger.read() as session:
        [lesson] = retraining.make_lessons(session)
        assert len(lesson.rows["answer"].drop_nulls()) == 2 * NEEDED
        assert session.scalars(select(Decision.action)).all() == ["accept"]


def test_a_users_settings_row_is_gone_with_them(assistant: Assistant, ledger: Ledger) -> None:
    assistant.erase(ANN)
    with ledger.read() as session:
        assert session.scalars(select(User.address)).all() == [BOB]
    with pytest.raises(NotYours):
        assistant.erase(ANN)
