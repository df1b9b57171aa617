"""Learning in a process of its own: begun where there is something to learn, ended in good order."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import select

from kinfolk_assistant.ledger.deeds import ask_for_training
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Lease, Model
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.learner import Learner
from tests.assistant.service.world import ANN, MONDAY, add_past


def fill(assistant: Assistant, n: int) -> None:
    """Give Ann a past of ``n`` answers, and something to learn."""
    with assistant.ledger.begin() as session:
        add_past(session, ANN, n)
        ask_for_training(session, MONDAY, "import")


def n_models(ledger: Ledger) -> int:
    with ledger.read() as session:
        return len(session.scalars(select(Model.id)).all())


def holder(ledger: Ledger) -> str:
    with ledger.read() as session:
        return session.scalars(select(Lease.holder)).one()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was begun instead of a process, which is nothing at all."""
    asked: list[Any] = []

    class Idle:
        returncode = 0

        def __init__(self, command: list[str], **options: object) -> None:
            self.command, self.given = command, ""
            asked.append(self)

        def communicate(self, given: str) -> None:
            self.given = given

    monkeypatch.setattr(subprocess, "Popen", Idle)
    return asked


def test_a_process_begins_only_where_there_is_something_to_learn(assistant: Assistant, begun: list[Any]) -> None:
    learner = Learner(assistant.ledger)
    learner.learn()
    assert begun == []
    fill(assistant, 2)
    learner.learn()
    assert len(begun) == 1


def test_no_process_begins_while_another_learns(assistant: Assistant, begun: list[Any]) -> None:
    fill(assistant, 2)
    with assistant.ledger.begin() as session:
        lease = session.scalars(select(Lease)).one()
        lease.holder, lease.until = "another", datetime.now(UTC) + timedelta(minutes=1)
    Learner(assistant.ledger).learn()
    assert begun == []
    with assistant.ledger.begin() as session:
        session.scalars(select(Lease)).one().until = datetime.now(UTC) - timedelta(minutes=1)
    Learner(assistant.ledger).learn()
    assert len(begun) == 1


def test_the_ledgers_address_is_not_on_the_command_line(assistant: Assistant, begun: list[Any]) -> None:
    fill(assistant, 2)
    Learner(assistant.ledger).learn()
    [process] = begun
    assert process.given == assistant.ledger.engine.url.render_as_string(hide_password=False)
    assert not any("://" in word for word in process.command)


def test_no_process_begins_after_the_end(assistant: Assistant, begun: list[Any]) -> None:
    fill(assistant, 2)
    learner = Learner(assistant.ledger)
    learner.stop()
    learner.learn()
    assert begun == []


def test_a_process_that_fails_is_no_success(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    fill(assistant, 2)
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(RuntimeError, match="ended with status 1"):
        Learner(assistant.ledger).learn()


def test_a_process_that_is_stopped_gives_the_lease_back(assistant: Assistant) -> None:
    fill(assistant, 2000)
    learner = Learner(assistant.ledger)
    thread = Thread(target=learner.learn)
    thread.start()
    end = time.monotonic() + 60
    while not holder(assistant.ledger) and time.monotonic() < end:
        time.sleep(0.01)
    assert holder(assistant.ledger)
    learner.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert holder(assistant.ledger) == ""
    assert n_models(assistant.ledger) == 0
