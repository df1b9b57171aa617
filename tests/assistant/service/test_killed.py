"""Workers that are killed at any moment, and workers side by side: nothing is lost, nothing is repeated."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import func, select

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Decision, Reply, Request
from kinfolk_assistant.service.assistant import Assistant
from tests.assistant.service.killed_worker import SLOTS, USERS
from tests.assistant.service.world import Recorder, automate, teach


def run(url: str, folder: Path, how: str, seed: int = 0) -> int:
    """Work through a fresh ledger by a program of its own; the number that it prints."""
    ledger = Ledger(url)
    assistant = Assistant(ledger, Recorder())
    for user in USERS:
        assistant.add_user(user)
        automate(assistant, user, undo_minutes=0, daily_cap=100, cost_ask=0.45)
    teach(ledger, *USERS)
    ledger.close()
    program = [sys.executable, "-m", "tests.assistant.service.killed_worker", url, str(folder), how, str(seed)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=280, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def left(folder: Path) -> list[tuple[str, str, str]]:
    return [tuple(line.split()) for line in (folder / "left").read_text().splitlines()]  # type: ignore[misc]


def check_decided_once(ledger: Ledger) -> None:
    n = len(USERS) * 2 * SLOTS
    with ledger.read() as session:
        decided = select(Decision.request_id, func.count()).group_by(Decision.request_id)
        assert [count for _, count in session.execute(decided)] == [1] * n
        replied = select(Reply.request_id, func.count()).group_by(Reply.request_id)
        assert [count for _, count in session.execute(replied)] == [1] * n
        # In every slot the first that came is accepted, and the second finds it taken.
        query = select(Request.uid, Reply.answer).join(Request)
        answers = {(uid.rpartition("-")[0], int(uid.rpartition("-")[2])): one for uid, one in session.execute(query)}
    assert answers == {
        (user, number): ("ACCEPTED", "DECLINED")[number % 2] for user in USERS for number in range(2 * SLOTS)
    }


@pytest.mark.parametrize("seed", [1])
def test_killed_at_any_moment_every_request_is_decided_once_and_every_answer_leaves(
    url: str, tmp_path: Path, seed: int
) -> None:
    assert run(url, tmp_path, "certain", seed) >= 8
    ledger = Ledger(url)
    check_decided_once(ledger)
    with ledger.read() as session:
        assert set(session.scalars(select(Reply.state))) == {"sent"}
    ledger.close()
    # A repeated delivery is of the very same reply, which does no harm where the deliverer is certain.
    assert len(set(left(tmp_path))) == len(USERS) * 2 * SLOTS


@pytest.mark.parametrize("seed", [3])
def test_killed_at_any_moment_no_mail_is_sent_twice_and_none_is_forgotten(url: str, tmp_path: Path, seed: int) -> None:
    assert run(url, tmp_path, "by mail", seed) >= 8
    ledger = Ledger(url)
    check_decided_once(ledger)
    with ledger.read() as session:
        states = {str(number): state for number, state in session.execute(select(Reply.id, Reply.state))}
    ledger.close()
    times = Counter(number for number, _, _ in left(tmp_path))
    assert set(times.values()) == {1}
    assert set(states.values()) == {"sent", "uncertain"}
    assert {number for number, state in states.items() if state == "sent"} <= set(times)


def test_several_workers_on_one_ledger_answer_nothing_twice_and_forget_nothing(url: str, tmp_path: Path) -> None:
    assert run(url, tmp_path, "side by side") == 3
    ledger = Ledger(url)
    check_decided_once(ledger)
    with ledger.read() as session:
        assert set(session.scalars(select(Reply.state))) == {"sent"}
    ledger.close()
    assert Counter(Counter(uid for _, uid, _ in left(tmp_path)).values()) == {1: len(USERS) * 2 * SLOTS}
