"""``serve``, ``demo`` and ``doctor``: a server as its own process, the made-up team, and what is wrong in settings."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
import uvicorn
from sqlalchemy import select

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Decision, Lease, Model, Request
from tests.assistant.cli.conftest import Demo, refused, worked
from tests.assistant.cli.files import ANN, calendar, event
from tests.cli.conftest import Run

SERVE = [sys.executable, "-c", "from kinfolk.cli import main; main()", "assistant", "serve", "--port", "0"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="servers are stopped by signals here")


@contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server as its own process, and its address."""
    server = subprocess.Popen([*SERVE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.fullmatch(r"Serving at (http://127\.0\.0\.1:\d+/) \(Ctrl-C stops it\)\n", said)
        assert found, (said, server.communicate(timeout=30))
        yield server, found[1]
    finally:
        server.kill()
        server.communicate()


def wait_for(ledger: Ledger, what: object) -> object:
    """Wait until the ledger has something, and give it."""
    stop = time.monotonic() + 60
    while time.monotonic() < stop:
        with ledger.read() as session:
            found = session.scalars(what).first()  # type: ignore[call-overload]
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(what)


def test_a_server_decides_learns_and_stops_when_asked_to(run: Run, team: Path) -> None:
    worked(run, "user", ANN, "--ledger", team)
    worked(run, "receive", "-", "-u", ANN, "--ledger", team, given=calendar(event()))
    ledger = Ledger(str(team))
    with ledger.read() as session:
        [before] = session.scalars(select(Model.id))
    worked(run, "user", "bryn@exercise.example", "--withdraw", "--ledger", team)
    with served("--ledger", str(team)) as (server, address):
        # It lets clients in before it says where.
        with urlopen(f"{address}sign-in", timeout=30) as page:
            assert page.status == 200
            assert b"<form" in page.read()
        uid = select(Decision.action).join(Request).where(Request.uid == "plans")
        assert wait_for(ledger, uid) in ("accept", "decline", "ask")
        assert wait_for(ledger, select(Model.id).where(Model.id > before))
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=30)
    assert (server.returncode, out, err) == (130, "", "")
    with ledger.read() as session:
        assert session.scalars(select(Lease.holder)).one() == ""
    ledger.close()


def test_a_server_that_was_killed_starts_again_with_everything_there(run: Run) -> None:
    worked(run, "user", ANN)
    worked(run, "receive", "-", "-u", ANN, given=calendar(event()))
    ledger = Ledger("kinfolk-assistant.db")
    for _ in range(2):
        with served() as (server, address):
            with urlopen(f"{address}sign-in", timeout=30) as page:
                assert page.status == 200
            wait_for(ledger, select(Decision.action))
            server.kill()
            assert server.wait() == -signal.SIGKILL
    with ledger.read() as session:
        # Decided once, though two servers have seen it.
        assert session.execute(select(Request.uid, Decision.action).join(Decision)).all() == [("plans", "ask")]
    ledger.close()


def test_the_door_is_open_before_the_address_is_told_and_small_packets_wait_for_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def serve(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        # asyncio turns Nagle's algorithm off only for sockets that name their protocol.
        seen.extend((one.proto, one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)) for one in sockets)

    monkeypatch.setattr(uvicorn.Server, "run", serve)
    assert worked(run, "serve", "--port", 0).startswith("Serving at http://127.0.0.1:")
    assert seen == [(socket.IPPROTO_TCP, 1)]


def test_a_port_that_is_taken_is_one_sentence(run: Run) -> None:
    worked(run, "user", ANN)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run("assistant", "serve", "--port", port)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"kinfolk: cannot listen at 127.0.0.1:{port}: Address already in use; choose another --port\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--port", "65536"), "65535"),
        (("--port", "many"), "--port"),
        (("--settings", "nothing.toml"), "nothing.toml"),
        (("--settings", "bad.toml"), "bad.toml is not TOML"),
        (("--ledger", "bad.toml"), "not a database"),
    ],
)
def test_a_server_that_cannot_start_says_why(run: Run, arguments: tuple[str, ...], told: str) -> None:
    Path("bad.toml").write_text("ledger == \n" * 100)
    assert told in refused(run, "serve", *arguments)


def test_an_address_that_is_not_this_machines_is_one_sentence(run: Run) -> None:
    worked(run, "user", ANN)
    done = run("assistant", "serve", "--host", "192.0.2.1")
    assert done.exit_code == 2
    assert done.stderr.startswith("kinfolk: cannot listen at 192.0.2.1:8765: ")


def test_the_demo_says_that_it_is_made_up_and_who_can_sign_in(demo: Demo) -> None:
    assert "made up" in demo.said
    assert re.search(r"2 people, \d+ past invitations of which \d+ were declined; 16 new ones wait\.", demo.said)
    assert "password kinfolk-demo" in demo.said
    assert "abel@exercise.example" in demo.said
    assert "bryn@exercise.example" in demo.said


def test_the_demo_has_learnt_and_prepared_answers_and_sent_nothing(demo: Demo) -> None:
    ledger = Ledger(str(demo.folder / "ledger.db"))
    with ledger.read() as session:
        [users] = session.scalars(select(Model.users))
        decided = select(Request.id).join(Decision).where(Request.state == "open", Decision.probability.is_not(None))
        assert len(session.scalars(decided).all()) == 16
    ledger.close()
    assert users == ["abel@exercise.example", "bryn@exercise.example"]
    assert list((demo.folder / "answers").iterdir()) == []


def test_a_demo_that_is_there_already_is_not_made_over(run: Run, demo: Demo) -> None:
    sentence = refused(run, "demo", "--people", "2", "--no-serve", "-o", demo.folder)
    assert "there already" in sentence
    assert f"kinfolk assistant serve --settings {demo.folder / 'assistant.toml'}" in sentence


@pytest.mark.parametrize(
    ("arguments", "told"), [(("--people", "1"), "--people"), (("--people", "22"), "--people"), (("-o", "file"), "file")]
)
def test_a_demo_that_cannot_be_made_is_refused(run: Run, arguments: tuple[str, ...], told: str) -> None:
    Path("file").write_text("")
    assert told in refused(run, "demo", "--no-serve", *arguments)


def test_the_doctor_finds_nothing_wrong_where_all_is_well(run: Run) -> None:
    Path("assistant.toml").write_text('ledger = "team.db"\n[files]\nfolder = "answers"\n')
    told = worked(run, "doctor", "--settings", "assistant.toml").splitlines()
    assert [line.split()[0] for line in told] == ["ok", "ok"]


def test_the_doctor_says_what_cannot_be_reached_and_ends_with_1(run: Run) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        Path("assistant.toml").write_text(
            f'ledger = "team.db"\n[smtp]\nhost = "127.0.0.1"\nport = {port}\nsecurity = "none"\n'
            f'[[users]]\naddress = "{ANN}"\n'
            f'caldav = {{ url = "http://127.0.0.1:{port}/", user = "ann", password = "secret" }}\n'
        )
        Path("assistant.toml").chmod(0o600)
        done = run("assistant", "doctor", "--settings", "assistant.toml")
    assert done.exit_code == 1
    ledger, mail, dav = done.stdout.splitlines()
    assert ledger.startswith("ok ")
    assert mail.startswith(f"WRONG   mail: The mail server 127.0.0.1:{port} cannot be used: ")
    assert mail.endswith("; check [smtp].")
    assert dav.startswith(f"WRONG   calendar of {ANN}: ")
    assert "secret" not in done.output


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("ledger =", "assistant.toml is not TOML"),
        ("[smtp]\nhost = 'h'", "ledger is missing"),
        ("ledger = 'l.db'\n[smpt]\nhost = 'h'", "smpt is not known"),
        ("ledger = 'l.db'\n[smtp]\nport = 25", "smtp.host is missing"),
        ("ledger = 'l.db'\n[[users]]\naddress = 'ann'", "users[1].address is 'ann'"),
    ],
)
def test_settings_that_are_wrong_are_refused_by_key(run: Run, settings: str, told: str) -> None:
    Path("assistant.toml").write_text(settings)
    assert told in refused(run, "doctor", "--settings", "assistant.toml")


def test_the_doctor_needs_settings(run: Run) -> None:
    assert "--settings" in refused(run, "doctor")
    assert "nothing.toml: No such file" in refused(run, "doctor", "--settings", "nothing.toml")


def test_a_header_is_not_believed_without_a_secret_or_a_socket(run: Run) -> None:
    assert "--proxy-secret-file" in refused(run, "serve", "--proxy-header", "X-Remote-User")
