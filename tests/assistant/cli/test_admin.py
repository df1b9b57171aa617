"""``kinfolk assistant admin``, and what ``receive`` tells a mail server."""

from __future__ import annotations

import json
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinfolk_assistant.delivery.accounts import Entered, keep_account
from kinfolk_assistant.delivery.keys import read_keys
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Account
from tests.assistant.cli.conftest import refused, worked
from tests.assistant.cli.files import calendar, event
from tests.cli.conftest import Run

MEMBER, OTHER = "abel@exercise.example", "who@nowhere.example"


def test_users_are_listed_shut_out_and_let_in(run: Run, team: Path) -> None:
    about = ("--ledger", team)
    listed = json.loads(worked(run, "admin", "users", "--json", *about))["users"]
    assert MEMBER in [one["address"] for one in listed]
    worked(run, "admin", "disable", MEMBER, *about)
    assert "shut out" in worked(run, "admin", "users", *about)
    worked(run, "admin", "enable", MEMBER, *about)
    assert "shut out" not in worked(run, "admin", "users", *about)
    assert f"there is no user {OTHER}" in refused(run, "admin", "disable", OTHER, *about)


def test_the_switch_is_thrown_and_turned_back(run: Run, team: Path) -> None:
    for command, value in (("stop", 1), ("stop", 1), ("resume", 0)):
        worked(run, "admin", command, "--ledger", team)
        assert f"kinfolk_stopped {value}\n" in worked(run, "admin", "status", "--ledger", team)


def test_who_is_erased_is_gone(run: Run, team: Path) -> None:
    worked(run, "admin", "erase", MEMBER, "--yes", "--ledger", team)
    listed = json.loads(worked(run, "admin", "users", "--json", "--ledger", team))["users"]
    assert MEMBER not in [one["address"] for one in listed]
    with closing(sqlite3.connect(team)) as book, book:
        assert book.execute("SELECT count(*) FROM requests WHERE user = ?", (MEMBER,)).fetchone() == (0,)


def test_little_is_never_pruned_by_mistake(run: Run, team: Path) -> None:
    assert run("assistant", "admin", "prune", "--days", 3, "--ledger", team).exit_code == 2
    assert "are gone" in worked(run, "admin", "prune", "--days", 30, "--ledger", team)


def test_a_backup_is_restored_and_sends_nothing_twice(run: Run, team: Path, tmp_path: Path) -> None:
    copy, again = tmp_path / "copy.db", tmp_path / "again.db"
    with closing(sqlite3.connect(team)) as book, book:
        [(request,)] = book.execute("SELECT id FROM requests WHERE state = 'open' LIMIT 1").fetchall()
        book.execute(
            "INSERT INTO replies (request_id, by, answer, text, state, made_at, due_at, attempts, error) "
            "VALUES (?, 'user', 'ACCEPTED', '', 'prepared', '2026-01-01 00:00:00', '2026-01-01 00:00:00', 0, '')",
            (request,),
        )
    worked(run, "admin", "backup", copy, "--ledger", team)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert "is there already" in refused(run, "admin", "backup", copy, "--ledger", team)
    said = worked(run, "admin", "restore", copy, "--ledger", again)
    assert "1 replies that were on their way" in said
    with closing(sqlite3.connect(again)) as book, book:
        assert book.execute("SELECT state FROM replies").fetchall() == [("uncertain",)]
    assert worked(run, "admin", "users", "--ledger", again) == worked(run, "admin", "users", "--ledger", team)
    assert "already" in refused(run, "admin", "restore", copy, "--ledger", again)
    Path("nothing.db").write_text("no ledger")
    assert "is no copy of a ledger" in refused(run, "admin", "restore", "nothing.db", "--ledger", tmp_path / "x.db")


ORDINARY = "From: bob@example.org\r\nTo: abel@exercise.example\r\nSubject: Hello\r\n\r\nNo invitation.\r\n"


@pytest.mark.parametrize(
    ("text", "user", "ledger", "status"),
    [
        (ORDINARY, MEMBER, "team.db", 0),
        (calendar(event(attendee=MEMBER)), MEMBER, "team.db", 0),
        ("\x00 nothing that anybody could read", MEMBER, "team.db", 0),
        (calendar(event(attendee=MEMBER)), OTHER, "team.db", 67),
        (calendar(event(attendee=MEMBER)), MEMBER, "nowhere/team.db", 75),
    ],
    ids=["ordinary mail", "an invitation", "rubbish", "nobody", "no ledger"],
)
def test_a_mail_server_is_told_what_became_of_a_mail(
    run: Run, team: Path, text: str, user: str, ledger: str, status: int
) -> None:
    ended = run("assistant", "receive", "-", "--pipe", "--user", user, "--ledger", ledger, given=text.encode())
    assert ended.exit_code == status, (ended.stdout, ended.stderr)


def test_a_new_key_seals_every_password_and_the_old_one_is_gone(run: Run, team: Path) -> None:
    key_file = team.with_suffix(".key")
    before = read_keys(key_file)
    ledger = Ledger(str(team))
    with ledger.begin() as session:
        entered = Entered("imap", "imaps://mail.example.org/INBOX", "abel", "secret")
        keep_account(session, before, MEMBER, entered, datetime.now(UTC))
    assert "1 passwords are sealed" in worked(run, "admin", "new-key", "--ledger", team)
    with ledger.read() as session:
        sealed = session.get_one(Account, (MEMBER, "imap")).sealed
    ledger.close()
    assert read_keys(key_file).unseal(f"{MEMBER} imap", sealed) == "secret"
    with pytest.raises(ValueError, match="not in the key file"):
        before.unseal(f"{MEMBER} imap", sealed)
    assert len(key_file.read_text().split()) == 1


def test_mail_to_another_address_of_a_users_is_theirs(run: Run, team: Path) -> None:
    other = "abel.private@exercise.example"
    worked(run, "user", MEMBER, "--also", other, "--ledger", team)
    text = calendar(event("elsewhere", attendee=other)).encode()
    told = worked(run, "receive", "-", "--user", other, "--ledger", team, given=text)
    assert f"1 of 1 messages are about requests to {MEMBER}" in told
    with closing(sqlite3.connect(team)) as book, book:
        kept = book.execute("SELECT user, sent_to FROM requests WHERE uid = 'elsewhere'").fetchall()
    assert kept == [(MEMBER, other)]
    with closing(sqlite3.connect(team)) as book, book:
        [(somebody,)] = book.execute("SELECT address FROM users WHERE address != ? LIMIT 1", (MEMBER,)).fetchall()
    assert "is that of another user" in refused(run, "user", MEMBER, "--also", somebody, "--ledger", team)
