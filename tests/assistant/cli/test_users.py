"""``user`` and ``receive``: who is answered for, and invitations handed over by a mail server's filter."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Contact, Request, User
from kinfolk_assistant.web.passwords import is_password
from kinfolk_assistant.web.sessions import Sessions
from tests.assistant.cli.conftest import refused, worked
from tests.assistant.cli.files import ANN, BOB, calendar, event, mail
from tests.cli.conftest import Run

LEDGER = "kinfolk-assistant.db"


def all_of(what: Any) -> list[Any]:
    ledger = Ledger(LEDGER)
    with ledger.read() as session:
        found = list(session.scalars(select(what)))
    ledger.close()
    return found


def test_a_user_is_made_with_settings_and_a_password_from_standard_input(run: Run) -> None:
    Path("people.csv").write_text(f"person,job\n{BOB},faculty\n")
    told = worked(
        run,
        *("user", "Ann@example.org", "--name", "Ann", "--zone", "Europe/Berlin", "--place", "Hall 3", "--place", "Hut"),
        *("--people", "people.csv", "--agree", "--password-stdin"),
        given="correct horse\n",
    )
    assert told == f"{ANN}: zone Europe/Berlin, signs in with a password; the history helps others.\n"
    [user] = all_of(User)
    assert (user.address, user.name, user.zone, user.places) == (ANN, "Ann", "Europe/Berlin", "Hall 3\nHut")
    assert user.agreed_at is not None
    assert is_password(user.password_hash, "correct horse")
    assert [(one.key, one.job) for one in all_of(Contact)] == [(BOB, "faculty")]


def test_what_is_not_said_stays_as_it_was(run: Run) -> None:
    worked(run, "user", ANN, "--zone", "Asia/Tokyo", "--agree", "--password-stdin", given="correct horse\n")
    assert worked(run, "user", ANN, "--name", "Ann") == (
        f"{ANN}: zone Asia/Tokyo, signs in with a password; the history helps others.\n"
    )
    assert worked(run, "user", ANN, "--withdraw").endswith("the history helps nobody else.\n")
    [user] = all_of(User)
    assert (user.name, user.zone, user.agreed_at) == ("Ann", "Asia/Tokyo", None)
    assert is_password(user.password_hash, "correct horse")


def test_without_a_terminal_nobody_is_asked_for_a_password(run: Run) -> None:
    assert "has no password" in worked(run, "user", ANN)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ann",), ["'ann'", "not a mail address"]),
        ((ANN, "--zone", "Mars/Base"), ["'Mars/Base'", "Europe/Berlin"]),
        ((ANN, "--people", "nothing.csv"), ["nothing.csv", "No such file"]),
        ((ANN, "--people", "people.csv"), ["people.csv, line 2", "job", "'wizard'"]),
        ((ANN, "--password-stdin"), ["5 characters"]),
        ((), ["ADDRESS"]),
        ((ANN, "--settings", "bad.toml"), ["bad.toml", "ledger"]),
    ],
)
def test_a_user_who_cannot_be_made_leaves_no_trace(run: Run, arguments: tuple[str, ...], told: list[str]) -> None:
    Path("people.csv").write_text(f"person,job\n{BOB},wizard\n")
    Path("bad.toml").write_text("[smtp]\nhost = 'mail.example.org'\n")
    sentence = refused(run, "user", *arguments, given="short\n")
    for words in told:
        assert words in sentence


def test_an_invitation_by_mail_is_taken_in_once_however_often_it_comes(run: Run) -> None:
    worked(run, "user", ANN)
    message = mail(calendar(event()))
    for _ in range(2):
        told = worked(run, "receive", "-", "--user", ANN, given=message)
        assert told == f"1 of 1 messages are about requests to {ANN}.\n"
    [request] = all_of(Request)
    assert (request.uid, request.user, request.state) == ("plans", ANN, "open")
    assert (request.source, request.source_ref) == ("mail", "<invitation-1@example.org>")
    assert request.received_at.isoformat() == "2024-03-01T09:30:00+00:00"


def test_an_update_and_a_cancellation_are_followed(run: Run) -> None:
    worked(run, "user", ANN)
    for name, text in {
        "request.ics": calendar(event()),
        "update.ics": calendar(event("plans", "20240306T140000Z", "SEQUENCE:1")),
        "cancel.ics": calendar(event("plans", "20240306T140000Z", "SEQUENCE:1"), method="CANCEL"),
    }.items():
        Path(name).write_text(text, newline="")
        worked(run, "receive", name, "--user", ANN)
    assert [(one.sequence, one.state) for one in all_of(Request)] == [(0, "superseded"), (1, "cancelled")]


def test_messages_are_counted_and_not_the_events_in_them(run: Run) -> None:
    worked(run, "user", ANN)
    series = event("series", "20240305T140000Z", "RRULE:FREQ=DAILY;COUNT=3")
    moved = event("series", "20240306T160000Z", "RECURRENCE-ID:20240306T140000Z")
    reply = event("other", answer="ACCEPTED")
    Path("series.ics").write_text(calendar(series, moved), newline="")
    Path("reply.ics").write_text(calendar(reply, method="REPLY"), newline="")
    assert worked(run, "receive", "series.ics", "-u", ANN).startswith("1 of 1 messages")
    assert worked(run, "receive", "reply.ics", "-u", ANN).startswith("0 of 1 messages")


def test_what_claims_to_come_from_the_future_came_now(run: Run) -> None:
    from datetime import UTC, datetime

    worked(run, "user", ANN)
    ahead = mail(calendar(event())).replace(b"2024 10:30", b"2150 10:30")
    worked(run, "receive", "-", "--user", ANN, given=ahead)
    assert all_of(Request)[0].received_at <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-", "-u", BOB), ["no user bob@example.org", "kinfolk assistant user"]),
        (("-", "-u", "bob"), ["'bob'", "not a mail address"]),
        (("nothing.eml", "-u", ANN), ["nothing.eml", "No such file"]),
        (("notes.txt", "-u", ANN), ["notes.txt", "not a calendar"]),
        (("-", "-u", ANN, "--ledger", "nothing.db"), ["no ledger nothing.db"]),
    ],
)
def test_what_cannot_be_received_is_refused(run: Run, arguments: tuple[str, ...], told: list[str]) -> None:
    worked(run, "user", ANN)
    Path("notes.txt").write_text("Dear Ann\n")
    sentence = refused(run, "receive", *arguments, given=calendar(event()))
    for words in told:
        assert words in sentence
    assert all_of(Request) == []


def test_standard_input_that_is_no_invitation_is_called_by_its_name(run: Run) -> None:
    worked(run, "user", ANN)
    assert "standard input is not a calendar" in refused(run, "receive", "-", "-u", ANN, given="Dear Ann\n")


def test_a_new_password_ends_all_sessions_of_the_user(run: Run) -> None:
    worked(run, "user", ANN, "--password-stdin", given="correct horse\n")
    ledger = Ledger(LEDGER)
    sessions = Sessions(ledger, lambda: datetime.now(UTC))
    token = sessions.start(ANN)
    worked(run, "user", ANN, "--name", "Ann")
    assert sessions.find(token) is not None
    worked(run, "user", ANN, "--password-stdin", given="another horse\n")
    assert sessions.find(token) is None
    ledger.close()
