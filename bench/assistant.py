"""The assistant under load: 200 users with 500 past requests each, 50 of whom read their inbox while it learns."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, process_time, sleep
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from bench.measure import Comparison
from kinfolk.datasets.meetings import MEETING_FEATURES, make_meetings
from kinfolk_assistant.delivery.files import FileDeliverer
from kinfolk_assistant.demo.moving_in import move_in
from kinfolk_assistant.demo.team import Member, make_team
from kinfolk_assistant.ledger.deeds import ask_for_training
from kinfolk_assistant.ledger.store import MODELS, Ledger
from kinfolk_assistant.ledger.tables import Contact, Decision, Deed, Entry, Lease, Model, Request, Table, User
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service.assistant import Assistant, now
from kinfolk_assistant.web.sessions import Sessions

N_USERS, N_REQUESTS, N_UPCOMING, N_IMPORTED, N_CLIENTS = 200, 500, 8, 3, 50
PAUSE = 1.0  # seconds that a client looks at a page before it asks for the next
AT_REST = 10.0  # seconds of reading after the learning
OPEN_REQUESTS = 100, 10_000
LONGEST = 180.0  # seconds that the learning may take


class Page(NamedTuple):
    """One page that was read: when it was asked for, and the seconds until it was there."""

    asked: float
    seconds: float


class Reading(NamedTuple):
    """Pages read under one condition."""

    pages: list[Page]
    during: float

    @property
    def median(self) -> float:
        """Seconds within which half of the pages were there."""
        return float(np.median([page.seconds for page in self.pages]))

    def __str__(self) -> str:
        late = float(np.quantile([page.seconds for page in self.pages], 0.95))
        return f"95 % within {late * 1e3:.0f} ms, {len(self.pages) / self.during:.0f} pages a second"


def run() -> list[Comparison]:
    with TemporaryDirectory(prefix="kinfolk-bench-") as folder:
        path = Path(folder, "ledger.db")
        ledger = Ledger(str(path))
        imported = fill(ledger, Path(folder, "answers"))
        readers = [Sessions(ledger, now).start(f"user{i}@example.org") for i in range(N_CLIENTS)]
        with ledger.begin() as session:
            ask_for_training(session, now(), "import")
        with serving(path) as port:
            pages, learning = read_while_learning(ledger, port, readers)
            crowded = read_for(port, readers, AT_REST, pause=0.0)
        load = os.getloadavg()[0]
        ledger.close()
    # The first second fills caches: of the database, of the templates, of connections.
    began, ended = max(learning[0], pages[0].asked + 1.0), learning[1]
    meanwhile = Reading([page for page in pages if began <= page.asked < ended], ended - began)
    at_rest = Reading([page for page in pages if page.asked >= ended], pages[-1].asked - ended)
    who = f"inbox page, median, {N_USERS} users with {N_REQUESTS} requests, {N_CLIENTS} clients"
    paced = f"{who} that ask every {PAUSE:.0f} s"
    busy = f"for {ended - learning[0]:.0f} s; load {load:.1f} on {os.cpu_count()} cores, clients included"
    few, many = (decision_among(n) for n in OPEN_REQUESTS)
    flat = f"CPU of a decision with {{:,}} open requests ({many / few:.2f} times that with {OPEN_REQUESTS[0]})"
    return [
        Comparison(flat.format(OPEN_REQUESTS[0]), "", few, None, ""),
        Comparison(flat.format(OPEN_REQUESTS[1]), "", many, None, "flat"),
        Comparison(f"import of a calendar with {N_REQUESTS} past invitations", "", imported, None, ""),
        Comparison(
            f"{paced} while the server learns ({busy}): {meanwhile}", "", meanwhile.median, None, "under 100 ms"
        ),
        Comparison(f"{paced}: {at_rest}", "", at_rest.median, None, ""),
        Comparison(f"{who} that ask without a pause: {crowded}", "", crowded.median, None, ""),
    ]


def decision_among(n: int, n_decisions: int = 20) -> float:
    """Give the processor seconds of one decision for somebody with so many open requests, half of them for one week."""
    user, begin = "ann@example.org", datetime(2026, 3, 2, 9, tzinfo=UTC)
    with TemporaryDirectory(prefix="kinfolk-bench-") as folder:
        ledger = Ledger(str(Path(folder, "ledger.db")))
        assistant = Assistant(ledger, FileDeliverer(Path(folder, "answers")), clock=lambda: begin)
        assistant.add_user(user)
        with ledger.begin() as session:
            session.execute(insert(Request), [_open_request(user, i, begin) for i in range(n)])
        new = [_open_request(user, n + i, begin)["text"] for i in range(n_decisions + 1)]
        for text in new[:1]:
            assistant.take_in(user, read_calendar(text.encode()), received_at=begin, source="caldav")
        assistant.work()
        for text in new[1:]:
            assistant.take_in(user, read_calendar(text.encode()), received_at=begin, source="caldav")
        began = process_time()
        assert assistant.work() == n_decisions
        seconds = (process_time() - began) / n_decisions
        ledger.close()
    return seconds


def _open_request(user: str, number: int, begin: datetime) -> dict[str, Any]:
    start = begin + timedelta(minutes=30 * (number % 300) if number % 2 else 90 * number)
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "METHOD:REQUEST", "BEGIN:VEVENT", f"UID:m{number}"]
    lines += [f"DTSTAMP:{begin:%Y%m%dT%H%M%SZ}", f"DTSTART:{start:%Y%m%dT%H%M%SZ}", "DURATION:PT1H", "SUMMARY:Plans"]
    lines += [
        f"ORGANIZER:mailto:boss{number}@example.org",
        f"ATTENDEE:mailto:{user}",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    return {
        "user": user,
        "uid": f"m{number}",
        "received_at": begin - timedelta(minutes=1),
        "organiser": f"boss{number}@example.org",
        "starts_at": start,
        "ends_at": start + timedelta(hours=1),
        "text": "\r\n".join(lines),
        "source": "caldav",
        "state": "open",
        "decided": True,
        "recurs": False,
    }


def fill(ledger: Ledger, answers: Path) -> float:
    """Fill a ledger; seconds per user of the import.

    A few users are imported from iCalendar like anybody. The others get the same calendars and texts under their own
    names, which takes minutes less, and features and answers that are drawn for each.
    """
    at = datetime.now(UTC)
    team = make_team(at, n_people=N_IMPORTED, n_requests=N_REQUESTS, n_upcoming=N_UPCOMING, days=540)
    began = monotonic()
    move_in(ledger, team, now=at)
    seconds = (monotonic() - began) / len(team)
    _decide_upcoming(Assistant(ledger, FileDeliverer(answers)), team)
    drawn = make_meetings(N_USERS, N_REQUESTS + 50, frame=None, random_state=0)
    with ledger.begin() as session:
        for number in range(N_USERS - N_IMPORTED):
            copy_user(session, team[number % N_IMPORTED].circle.owner, f"user{number}@example.org", number, drawn)
    return seconds


def _decide_upcoming(assistant: Assistant, team: tuple[Member, ...]) -> None:
    assistant.retrain(force=True)
    for member in team:
        for one in member.upcoming:
            assistant.take_in(member.circle.owner, [one.object], received_at=one.received, source="file")
    assistant.work()


def copy_user(session: Session, old: str, new: str, number: int, drawn: Any) -> None:
    """Give a new user all that another has, with features and answers of their own."""
    rows = iter(zip(*(column[drawn.task == number + 1] for column in (drawn.data, drawn.target)), strict=True))
    [user] = _rows(session, User, User.address == old)
    session.execute(insert(User), [user | {"address": new}])
    for table in (Contact, Entry):
        copies = [_renamed(row, old, new) for row in _rows(session, table, table.user == old)]
        session.execute(insert(table), copies)
    requests = _rows(session, Request, Request.user == old)
    copies = [_renamed(row, old, new) for row in requests]
    for copied in copies:
        features, answer = next(rows)
        copied["features"] = dict(zip(MEETING_FEATURES, features, strict=True))
        copied["label"] = copied["label"] and ("accept" if answer == "accept" else "decline")
    numbers = session.scalars(insert(Request).returning(Request.id, sort_by_parameter_order=True), copies).all()
    number_of = dict(zip([row["id"] for row in requests], numbers, strict=True))
    for about in (Decision, Deed):
        copies = [
            _renamed(row, old, new) | {"request_id": number_of[row["request_id"]]}
            for row in _rows(session, about, about.request_id.in_(list(number_of)))
        ]
        session.execute(insert(about), copies)


def _rows(session: Session, table: type[Table], where: Any) -> list[dict[str, Any]]:
    columns = table.__table__.columns
    return [dict(row._mapping) for row in session.execute(select(*columns).where(where).order_by(*columns[:1]))]


def _renamed(row: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    renamed = {name: value.replace(old, new) if isinstance(value, str) else value for name, value in row.items()}
    return {name: value for name, value in renamed.items() if name != "id"}


@contextmanager
def serving(ledger: Path) -> Iterator[int]:
    """Run the server as its own process; gives its port."""
    program = [sys.executable, "-c", "from kinfolk.cli import main; main()", "assistant", "serve"]
    command = [*program, "--ledger", str(ledger), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        told = re.search(r":(\d+)/", server.stdout.readline())
        try:
            assert told is not None, "the server has not started"
            yield int(told[1])
        finally:
            server.send_signal(signal.SIGINT)


def read_while_learning(ledger: Ledger, port: int, readers: list[str]) -> tuple[list[Page], tuple[float, float]]:
    """Let clients read until a while after the server has learnt; their pages, and when it began and ended to learn."""
    with reading(port, readers, PAUSE) as pages:
        began = _wait_until(ledger, learning=True)
        ended = _wait_until(ledger, learning=False)
        sleep(AT_REST)
    with ledger.read() as session:
        assert len(session.scalars(select(Model.users).order_by(Model.id.desc())).first() or ()) == N_USERS
    return pages, (began, ended)


def _wait_until(ledger: Ledger, *, learning: bool) -> float:
    stop = monotonic() + LONGEST
    while monotonic() < stop:
        with ledger.read() as session:
            if bool(session.get_one(Lease, MODELS).holder) == learning:
                return monotonic()
        sleep(0.05)
    raise TimeoutError("the server did not begin to learn" if learning else "the server did not finish to learn")


def read_for(port: int, readers: list[str], seconds: float, pause: float) -> Reading:
    with reading(port, readers, pause) as pages:
        sleep(seconds)
    return Reading(pages, pages[-1].asked - pages[0].asked)


@contextmanager
def reading(port: int, readers: list[str], pause: float) -> Iterator[list[Page]]:
    """Let clients in a process of their own read; the pages, in the order asked for, are there at the end."""
    pages: list[Page] = []
    command = [sys.executable, "-m", "bench.readers"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps([port, [f"kinfolk={token}" for token in readers], pause]) + "\n")
        process.stdin.flush()
        yield pages
        told, _ = process.communicate()
        pages.extend(Page(*page) for page in json.loads(told))


if __name__ == "__main__":
    for found in run():
        print(f"{found.seconds * 1e3:9.1f} ms  {found.job}  {found.wanted}")
