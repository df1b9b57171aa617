"""How often the assistant asks, and how often it is wrong, in made-up offices whose rules it was not built on.

Run as ``python -m bench.questions``. Everything goes through the application: the past is imported from calendars,
nobody has a table of people, costs and vetoes are the defaults, automation is on, and each invitation is taken in at
the moment that it came. What is not answered automatically counts as asked, whatever held it back. In each of ten
offices (`bench.offices`) three of each unit have given 80 answers and the fourth has given five; the next 25
invitations of each are measured. Errors are standard errors over offices. ``alone`` is the same learner where nobody
shares.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

import numpy as np

from bench.offices import ZONE, Invitation, Member, make_office
from kinfolk_assistant.delivery.files import FileDeliverer
from kinfolk_assistant.features.people import People
from kinfolk_assistant.importing.history import import_history
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service.assistant import Assistant

N_OFFICES, N_PEOPLE = 10, 16
OLD, NEW, MEASURED = 80, 5, 25


class Outcome(NamedTuple):
    """What became of one person's measured invitations."""

    newcomer: bool
    asked: int
    wrong: int
    proposed_wrong: int
    """Wrong leanings among all that the model was sure enough of, be they held back or not."""
    sure: int
    n: int


class _Clock:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


def measure(office: list[Member], *, shared: bool) -> list[Outcome]:
    """Let an office use the assistant."""
    with TemporaryDirectory(prefix="kinfolk-bench-") as folder:
        clock = _Clock(datetime(2026, 1, 1, tzinfo=UTC))
        ledger = Ledger(str(Path(folder, "ledger.db")))
        assistant = Assistant(ledger, FileDeliverer(Path(folder, "answers")), clock=clock)
        n_units = len({one.trade for one in office})
        size = len(office) // n_units
        newcomers = {place for place in range(len(office)) if place % size == size - 1}
        for place, member in enumerate(office):
            _move_in(assistant, member, NEW if place in newcomers else OLD, clock, shared)
        assistant.retrain(force=True)
        outcomes = [_measure_one(assistant, member, place in newcomers, clock) for place, member in enumerate(office)]
        ledger.close()
    return outcomes


def _move_in(assistant: Assistant, member: Member, n: int, clock: _Clock, shared: bool) -> None:
    past = member.invitations[OLD - n : OLD]
    clock.now = past[-1].came + timedelta(minutes=1)
    address = member.person.address
    assistant.add_user(address, name=member.person.name, zone=str(ZONE))
    # What was answered before stands in the calendar of a newcomer too, but tells nothing of how they answer.
    before = [_private(one.kept, address) for one in member.invitations[: OLD - n] if one.accept]
    texts = [*member.own, *before, *(one.kept for one in past)]
    objects = [one for text in texts for one in read_calendar(text.encode())]
    import_history(assistant.ledger, address, objects, People(), now=clock.now)
    assistant.change_settings(address, automation=True)
    if shared:
        assistant.agree(address)


def _private(text: str, address: str) -> str:
    """Make an engagement of the owner's own of what was accepted."""
    lines = [line for line in text.split("\r\n") if not line.startswith(("ORGANIZER", "ATTENDEE"))]
    return "\r\n".join(lines)


def _measure_one(assistant: Assistant, member: Member, newcomer: bool, clock: _Clock) -> Outcome:
    address = member.person.address
    asked = wrong = sure = proposed_wrong = 0
    measured = member.invitations[OLD : OLD + MEASURED]
    for one in measured:
        clock.now = one.came
        assistant.calendar_unchanged(address)
        answer, leaning = _answer_to(assistant, address, one)
        asked += answer == ""
        wrong += answer not in ("", _label(one))
        sure += leaning != "ask"
        proposed_wrong += leaning not in ("ask", _label(one))
    return Outcome(newcomer, asked, wrong, proposed_wrong, sure, len(measured))


def _label(one: Invitation) -> str:
    return "accept" if one.accept else "decline"


def _answer_to(assistant: Assistant, address: str, one: Invitation) -> tuple[str, str]:
    """Give what is answered automatically, or "", and what the assistant decided; then answer by the user's hand."""
    [number] = assistant.take_in(address, read_calendar(one.text.encode()), received_at=one.came, source="caldav")
    assistant.work(address)
    detail = assistant.request(address, number)
    sent = {"ACCEPTED": "accept", "DECLINED": "decline"}
    answers = [sent[reply.answer] for reply in detail.replies if reply.by == "assistant"]
    assistant.answer(address, number, _label(one))
    return (answers[0] if answers else ""), detail.action


def _shares(outcomes: list[list[Outcome]], newcomer: bool) -> str:
    """Say the shares, with standard errors over offices."""

    def share(field: str, of: str) -> str:
        shares = []
        for office in outcomes:
            chosen = [one for one in office if one.newcomer == newcomer]
            n = sum(getattr(one, of) for one in chosen)
            shares.append(sum(getattr(one, field) for one in chosen) / n if n else 0.0)
        error = np.std(shares, ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
        return f"{100 * np.mean(shares):5.1f} ± {100 * error:3.1f} %"

    return (
        f"asked {share('asked', 'n')}, wrong {share('wrong', 'n')} of all; "
        f"sure of {share('sure', 'n')}, wrong in {share('proposed_wrong', 'sure')} of these"
    )


def main() -> None:
    n_offices = int(sys.argv[1]) if len(sys.argv) > 1 else N_OFFICES
    found: dict[bool, list[list[Outcome]]] = {True: [], False: []}
    began = process_time()
    for seed in range(n_offices):
        office = make_office(seed, n_people=N_PEOPLE, n_invitations=OLD + MEASURED)
        for shared in found:
            found[shared].append(measure(office, shared=shared))
        print(f"office {seed + 1} of {n_offices}, {process_time() - began:.0f} s", file=sys.stderr, flush=True)
    for newcomer, who in ((False, f"{OLD} answers each"), (True, f"newcomers with {NEW} answers")):
        for shared, how in ((True, "kinfolk"), (False, "alone")):
            print(f"{who}, {how:8s}: {_shares(found[shared], newcomer)}")


if __name__ == "__main__":
    main()
