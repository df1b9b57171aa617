"""A program that works through a ledger in processes of its own, which are killed at random or run side by side.

Started by the tests as ``python -m tests.assistant.service.killed_worker URL FOLDER HOW SEED``. Everything is loaded
once; each worker is a fork that opens the ledger for itself.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

from sqlalchemy import event

from kinfolk_assistant.delivery.deliverer import Outgoing
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.reading.trust import Trust
from kinfolk_assistant.service import deciding
from kinfolk_assistant.service.assistant import Assistant
from tests.assistant.service.world import MONDAY, Clock, invitation

USERS = [f"user{number}@example.org" for number in range(2)]
SLOTS = 4


def invitations(user: str) -> list[tuple[int, object]]:
    """Two for every slot, so that one of each two is to be accepted and one declined."""
    return [
        (n, invitation(f"{user}-{n}", MONDAY + timedelta(days=10, hours=3 * (n // 2)), attendee=user))
        for n in range(2 * SLOTS)
    ]


class Logged:
    """Appends a line for every answer that leaves; may be told to die just before or just after."""

    def __init__(self, path: Path, certain: bool, die: str) -> None:
        self.certain = certain
        self._path = path
        self._die = die

    def deliver(self, outgoing: Outgoing) -> None:
        if self._die == "before leaving":
            os.kill(os.getpid(), signal.SIGKILL)
        with self._path.open("a") as file:
            file.write(f"{outgoing.reply_id} {outgoing.uid} {outgoing.answer}\n")
        if self._die == "after leaving":
            os.kill(os.getpid(), signal.SIGKILL)


def work(url: str, folder: Path, certain: bool, clock: Clock, die: str, at: int) -> None:
    """What one worker does: takes everything in (again), decides, sends."""
    ledger = Ledger(url)
    said = 0

    def count(*rest: object) -> None:
        nonlocal said
        said += 1
        if die == "statement" and said == at:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(ledger.engine, "before_cursor_execute", count)
    event.listen(ledger.engine, "commit", count)
    if die == "between decision and reply":
        deciding.make_reply = lambda *rest: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
    assistant = Assistant(ledger, Logged(folder / "left", certain, die), clock, Trust(per_organiser=100))
    for user in USERS:
        assistant.calendar_unchanged(user)
        for n, one in invitations(user):
            received_at = MONDAY + timedelta(minutes=n)
            assistant.take_in(user, [one], received_at=received_at, source="caldav")  # type: ignore[list-item]
    while assistant.work():
        pass
    ledger.close()


def fork(url: str, folder: Path, certain: bool, clock: Clock, die: str, at: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            work(url, folder, certain, clock, die, at)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def killed_again_and_again(url: str, folder: Path, certain: bool, rng: random.Random) -> int:
    """Kill workers at every kind of moment, then let the last one come to its end; how many were killed."""
    clock = Clock(MONDAY + timedelta(days=1))
    killed = 0
    moments = ["between decision and reply", "before leaving", "after leaving", *["statement"] * 12, *["time"] * 6]
    rng.shuffle(moments)
    # The first must meet undecided requests, whatever the order of the rest.
    for die in ["between decision and reply", *moments, ""]:
        clock.pass_(minutes=10)
        child = fork(url, folder, certain, clock, die, int(400 ** rng.random()))
        if die == "time":
            time.sleep(rng.random() * 0.3)
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), status
        killed += status == -signal.SIGKILL
    assert status == 0
    return killed


def side_by_side(url: str, folder: Path, certain: bool) -> int:
    """Let several work at once; how many there were."""
    clock = Clock(MONDAY + timedelta(days=1))
    children = [fork(url, folder, certain, clock, "", 0) for _ in range(3)]
    assert all(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in children)
    return len(children)


if __name__ == "__main__":
    _, at, where, how, seed = sys.argv
    if how == "side by side":
        print(side_by_side(at, Path(where), False))
    else:
        print(killed_again_and_again(at, Path(where), how == "certain", random.Random(int(seed))))
