"""A small world for the service's tests: a clock that is set, invitations, a deliverer that writes down, a model."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import polars as pl
from sqlalchemy.orm import Session

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.delivery.deliverer import Outgoing
from kinfolk_assistant.learning.model import TeamModel
from kinfolk_assistant.ledger.own_answers import NEEDED
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Model, Request
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service.assistant import Assistant

ANN, BOB, BOSS = "ann@example.org", "bob@example.org", "boss@example.org"
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Clock:
    """Stands still until it is set; what is to be done whenever time has passed, it does."""

    def __init__(self, at: datetime = MONDAY) -> None:
        self.at = at
        self.then: list[Callable[[], object]] = []

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, **spans: float) -> None:
        self.at += timedelta(**spans)
        for do in self.then:
            do()


class Recorder:
    """A deliverer that writes down what it sent, or does something else first."""

    def __init__(self, certain: bool = True) -> None:
        self.certain = certain
        self.sent: list[Outgoing] = []
        self.before: Callable[[Outgoing], None] = lambda outgoing: None

    def deliver(self, outgoing: Outgoing) -> None:
        self.before(outgoing)
        self.sent.append(outgoing)

    def answers(self) -> list[tuple[str, str]]:
        return [(one.uid, one.answer) for one in self.sent]


def invitation(
    uid: str = "m1",
    start: datetime = MONDAY + timedelta(days=2),
    *,
    method: str = "REQUEST",
    minutes: int = 60,
    sequence: int = 0,
    stamp: datetime = MONDAY,
    organiser: str = BOSS,
    attendee: str = ANN,
    partstat: str = "NEEDS-ACTION",
    summary: str = "Plans",
    extra: tuple[str, ...] = (),
) -> CalendarObject:
    form = "%Y%m%dT%H%M%SZ"
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//tests//tests//EN",
        *([f"METHOD:{method}"] if method else []),
        "BEGIN:VEVENT",
        f"UID:{uid}",
        f"DTSTAMP:{stamp:{form}}",
        f"DTSTART:{start:{form}}",
        f"DTEND:{start + timedelta(minutes=minutes):{form}}",
        f"SEQUENCE:{sequence}",
        f"SUMMARY:{summary}",
        "LOCATION:Room 1",
        f"ORGANIZER;CN=The Boss:mailto:{organiser}",
        f"ATTENDEE;PARTSTAT={partstat}:mailto:{attendee}",
        *extra,
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    [one] = read_calendar("\r\n".join(lines).encode())
    return one


def rows(user: str, n: int = 30, *, contrary: bool = False) -> list[dict[str, str | None]]:
    """Rows of someone who accepts what does not conflict, and declines what does; or the other way round."""
    empty: dict[str, str | None] = dict.fromkeys(MEETING_FEATURES)
    found = []
    for i in range(n):
        conflict = "yes" if i % 2 else "no"
        answer = "accept" if (conflict == "no") != contrary else "decline"
        found.append(empty | {"conflict": conflict, "user": user, "answer": answer})
    return found


@cache
def learnt(*users: str) -> bytes:
    schema = {name: pl.Enum(values) for name, values in MEETING_FEATURES.items()} | {
        "user": pl.String(),
        "answer": pl.String(),
    }
    return TeamModel.fit(pl.DataFrame([row for user in users for row in rows(user)], schema=schema)).to_bytes()


def teach(ledger: Ledger, *users: str, owner: str | None = None) -> int:
    """Put a model in use that accepts whatever does not conflict and declines the rest."""
    with ledger.begin() as session:
        model = Model(
            owner=owner,
            made_at=MONDAY,
            n_rows=30,
            users=list(users),
            archive=learnt(*(users or ("somebody@example.org",))),
        )
        session.add(model)
        session.flush()
        return model.id


def add_past(session: Session, user: str, n: int) -> None:
    """Give a user ``n`` answered requests of the past."""
    for number, row in enumerate(rows(user, n)):
        features = {name: value for name, value in row.items() if name not in ("user", "answer")}
        session.add(
            Request(
                user=user,
                uid=f"past-{number}",
                received_at=MONDAY,
                starts_at=MONDAY,
                ends_at=MONDAY,
                text="",
                source="history",
                state="answered",
                features=features,
                unknown={},
                label=row["answer"],
            )
        )


def automate(assistant: Assistant, user: str = ANN, **settings: Any) -> None:
    """Turn automation on for somebody for whom nothing is left to wait for."""
    with assistant.ledger.begin() as session:
        add_past(session, user, 2 * NEEDED)
    assistant.calendar_unchanged(user)
    assistant.change_settings(user, automation=True, **settings)
