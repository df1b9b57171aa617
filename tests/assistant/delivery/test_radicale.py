"""A calendar server without scheduling: Radicale, as its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from caldav.davclient import DAVClient

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.checks import doctor
from kinfolk_assistant.delivery.collecting import collect
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.smtp import MailServer
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
