"""A calendar server without scheduling: Radicale, as its own process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from caldav.davclient import DAVClient
from typer.testing import CliRunner

from kinfolk.cli.app import app
from kinfolk_assistant.delivery.accounts import Accounts
from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.checks import doctor
from kinfolk_assistant.delivery.collecting import collect
from kinfolk_assistant.delivery.configuration import Configuration, read_configuration
from kinfolk_assistant.delivery.keys import read_keys
from kinfolk_assistant.delivery.smtp import MailServer
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.users import find_user
from tests.assistant.delivery import calendars
from tests.assistant.delivery.letterbox import Letterbox, listening
from tests.assistant.delivery.servers import free_port, wait_for

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
ANN, BOB = "ann@example.org", "bob@example.org"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CalDAVAccount]:
    """Bob's account, with a calendar and a meeting in it."""
    pytest.importorskip("radicale", reason="Radicale is not installed")
    folder = tmp_path_factory.mktemp("radicale")
    port = free_port()
    (folder / "users").write_text("bob:secret\n", encoding="utf-8")
    settings = {
        "server-hosts": f"127.0.0.1:{port}",
        "storage-filesystem-folder": folder / "data",
        "auth-type": "htpasswd",
        "auth-htpasswd-filename": folder / "users",
        "auth-htpasswd-encryption": "plain",
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "radicale", "-C", "", *options], stdout=log, stderr=log)
    try:
        wait_for(port, process, folder / "log")
        url = f"http://127.0.0.1:{port}/"
        with DAVClient(url=url, username="bob", password="secret", enable_rfc6764=False) as client:
            made = client.get_principal().make_calendar(name="Work", cal_id="work")
            made.add_event(calendars.meeting(ann=ANN, bob=BOB))
        yield CalDAVAccount(url, "bob", "secret")
    finally:
        process.terminate()
        process.wait(20)


def test_calendars_are_read_where_there_is_no_scheduling_inbox(account: CalDAVAccount) -> None:
    found = collect(account, now=NOW)
    assert found.calendar is not None
    assert [one.object.meetings[0].uid for one in found.calendar] == ["plan-1"]
    assert (found.invitations, found.refused) == ([], [])
    assert collect(account, found.seen, now=NOW).calendar is None


def test_the_doctor_raises_no_false_alarm(account: CalDAVAccount, tmp_path: Path) -> None:
    with listening(Letterbox()) as port:
        mail = MailServer("127.0.0.1", port, "none")
        findings = doctor(Configuration(str(tmp_path / "ledger.db"), mail, accounts={BOB: account}))
    assert [one.sentence for one in findings if not one.ok] == []


def _answered(uid: str, days_ago: int, answer: str) -> str:
    start = datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0) - timedelta(days=days_ago)
    made = start - timedelta(days=2)
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//tests//EN",
        "BEGIN:VEVENT",
        f"UID:{uid}",
        f"DTSTAMP:{made:%Y%m%dT%H%M%SZ}",
        f"CREATED:{made:%Y%m%dT%H%M%SZ}",
        f"DTSTART:{start:%Y%m%dT%H%M%SZ}",
        f"DTEND:{start + timedelta(hours=1):%Y%m%dT%H%M%SZ}",
        f"SUMMARY:{'Plans' if answer == 'ACCEPTED' else 'Offer'}",
        f"ORGANIZER:mailto:{ANN if answer == 'ACCEPTED' else 'vend@vendor.example'}",
        f"ATTENDEE;PARTSTAT={answer}:mailto:{BOB}",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    return "\r\n".join(lines)


def test_setup_asks_tries_writes_imports_and_says_what_it_would_have_answered(
    account: CalDAVAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DAVClient(url=account.url, username="bob", password="secret", enable_rfc6764=False) as client:
        [work] = client.get_principal().get_calendars()
        for n in range(24):
            work.add_event(_answered(f"past-{n}", 5 * n + 2, "DECLINED" if n % 2 else "ACCEPTED"))
    path = tmp_path / "assistant.toml"
    with listening(Letterbox()) as port:
        told = [BOB, "Europe/Berlin", "correct horse", "correct horse", "https://assistant.example.org"]
        told += [account.url, "", "bob", "secret", f"127.0.0.1:{port}", "none", "", "assistant@example.org", ""]
        done = CliRunner().invoke(app, ["assistant", "setup", str(path)], input="\n".join(told) + "\n")
        assert done.exit_code == 0, (done.output, done.exception)
        assert "WRONG" not in done.output
        assert "12 accepted, 12 declined" in done.output
        found = re.search(r"Of (\d+) invitations that you answered in the last month", done.output)
        assert found is not None
        assert int(found[1]) == 6
        again = CliRunner().invoke(app, ["assistant", "setup", str(path)])
        assert again.exit_code == 2

        read = read_configuration(path)
        assert [one for one in doctor(read) if not one.ok] == []
    assert "secret" not in "".join(one.read_text() for one in tmp_path.glob("*.toml"))
    ledger = Ledger(read.ledger)
    kept = Accounts(read, ledger, read_keys(read.key_file)).calendars()
    assert kept == {BOB: CalDAVAccount(account.url, "bob", "secret")}
    with ledger.read() as session:
        assert find_user(session, BOB).zone == "Europe/Berlin"
    ledger.close()


def test_setup_writes_nothing_where_a_server_refuses_and_nobody_insists(account: CalDAVAccount, tmp_path: Path) -> None:
    told = [BOB, "UTC", "correct horse", "correct horse", "", account.url, "", "bob", "wrong", "", "n"]
    done = CliRunner().invoke(app, ["assistant", "setup", str(tmp_path / "a.toml")], input="\n".join(told) + "\n")
    assert done.exit_code == 1
    assert "refused the user name" in done.output
    assert list(tmp_path.iterdir()) == []
