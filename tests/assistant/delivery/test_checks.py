"""What the doctor finds."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.checks import Finding, doctor
from kinfolk_assistant.delivery.configuration import Configuration
from tests.assistant.delivery.conftest import Office
from tests.assistant.delivery.letterbox import Letterbox, listening, plain
from tests.assistant.delivery.servers import Answer, free_port


def _bad(findings: list[Finding]) -> list[str]:
    return [finding.sentence for finding in findings if not finding.ok]


def _ledger(folder: Path) -> str:
    return str(folder / "ledger.db")


def test_where_all_is_well_nothing_is_wrong(office: Office, tmp_path: Path) -> None:
    office.invite()
    with listening(Letterbox()) as port:
        accounts = {office.address("bob"): office.bob}
        findings = doctor(Configuration(_ledger(tmp_path), plain(port), tmp_path / "answers", accounts))
    assert _bad(findings) == []
    what = [finding.what for finding in findings]
    assert what == ["ledger", "mail", "files"] + [f"calendar of {office.address('bob')}"] * 5
    assert any("there are 1 messages" in finding.sentence for finding in findings)
    assert all(finding.sentence.endswith(".") for finding in findings)
    assert list((tmp_path / "answers").iterdir()) == []


def test_the_server_is_looked_at_and_nothing_on_it_changed(office: Office, tmp_path: Path) -> None:
    doctor(Configuration(_ledger(tmp_path), None, None, {office.address("bob"): office.bob}))
    assert {method for method, _ in office.gate.seen} <= {"PROPFIND", "OPTIONS"}


def test_an_address_that_the_server_does_not_know_is_said(office: Office, tmp_path: Path) -> None:
    [sentence] = _bad(doctor(Configuration(_ledger(tmp_path), None, None, {"robert@example.org": office.bob})))
    assert f"knows {office.address('bob')} for this account but not robert@example.org" in sentence
    assert "set the address on the server" in sentence


def test_a_server_that_does_not_schedule_is_said(office: Office, tmp_path: Path) -> None:
    office.gate.misbehave = lambda method, path: Answer(200) if method == "OPTIONS" else None
    [sentence] = _bad(doctor(Configuration(_ledger(tmp_path), None, None, {office.address("bob"): office.bob})))
    assert "does not tell organisers" in sentence
    assert "add [smtp]" in sentence


def test_an_account_without_a_calendar_is_told_of_it_and_one_without_an_inbox_is_no_alarm(
    office: Office, tmp_path: Path
) -> None:
    empty = (
        b'<multistatus xmlns="DAV:"><response><href>/x/</href><propstat><prop/>'
        b"<status>HTTP/1.1 200 OK</status></propstat></response></multistatus>"
    )
    office.gate.misbehave = lambda method, path: (
        Answer(207, empty, "text/xml") if method == "PROPFIND" and path != "/" else None
    )
    sentences = _bad(doctor(Configuration(_ledger(tmp_path), None, None, {office.address("bob"): office.bob})))
    assert len(sentences) == 1
    assert "no calendar" in sentences[0]


def test_a_wrong_password_and_a_wrong_url_are_each_one_finding(office: Office, tmp_path: Path) -> None:
    url = office.gate.url
    accounts = {
        "a@example.org": CalDAVAccount(url, office.bob.username, "wrong"),
        "b@example.org": CalDAVAccount(f"http://127.0.0.1:{free_port()}/", "b", "x"),
        "c@example.org": CalDAVAccount(f"{url}nowhere/", office.bob.username, office.bob.password),
    }
    password, down, nowhere = _bad(doctor(Configuration(_ledger(tmp_path), None, None, accounts)))
    assert "refused the user name" in password
    assert "cannot be reached" in down
    assert "See caldav of c@example.org in the settings." in nowhere


def test_a_mail_server_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    with listening(Letterbox(), enable_SMTPUTF8=True) as port:
        found = doctor(Configuration(_ledger(tmp_path), plain(port, user="u", password="p")))
    down = doctor(Configuration(_ledger(tmp_path), plain(free_port())))
    for findings in (found, down):
        [sentence] = _bad(findings)
        assert sentence.startswith("The mail server 127.0.0.1:")
        assert sentence.endswith("; check [smtp].")


def test_a_ledger_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    for ledger in (str(tmp_path / "no" / "such" / "folder.db"), "mysql://x/y", str(tmp_path)):
        [finding] = [one for one in doctor(Configuration(ledger)) if one.what == "ledger"]
        assert not finding.ok
        assert finding.sentence.endswith("check 'ledger' in the settings.")
        assert "\n" not in finding.sentence


def test_a_ledger_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"not a database" * 100)
    assert "cannot be written" in _bad(doctor(Configuration(_ledger(tmp_path))))[0]


def test_looking_at_the_ledger_leaves_it_as_it_was(tmp_path: Path) -> None:
    assert _bad(doctor(Configuration(_ledger(tmp_path), folder=tmp_path))) == []
    with sqlite3.connect(_ledger(tmp_path)) as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (0,)
    connection.close()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="a folder is closed to nobody here")
def test_a_folder_that_cannot_be_written_is_said_to_its_owner(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    [sentence] = _bad(doctor(Configuration(_ledger(tmp_path), folder=closed)))
    assert sentence.endswith("; check [files].")


def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    [sentence] = _bad(doctor(Configuration(_ledger(tmp_path), folder=tmp_path / "file")))
    assert sentence.endswith("; check [files].")


def test_warnings_and_answers_without_a_way_out_are_findings(tmp_path: Path) -> None:
    first, last = _bad(doctor(Configuration(_ledger(tmp_path), warnings=("Mind the gap.",))))
    assert first == "Mind the gap."
    assert last.startswith("Answers have no way out")
