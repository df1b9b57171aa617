"""Servers that are down, slow, forbidding or out of their minds: each is one sentence, soon."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount, CalDAVDeliverer
from kinfolk_assistant.delivery.dav import Connection
from kinfolk_assistant.delivery.deliverer import NotDelivered, PerhapsDelivered
from kinfolk_assistant.delivery.trouble import ServerTrouble
from tests.assistant.delivery.calendars import outgoing
from tests.assistant.delivery.conftest import Office, account
from tests.assistant.delivery.servers import Answer, Gate, free_port, password_of

_HTML = b"<!DOCTYPE html><html><body>Welcome, <br>stranger</body></html>"
_BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><multistatus xmlns="DAV:">&c;</multistatus>'
)


def _is_one_sentence(error: BaseException) -> bool:
    text = str(error)
    return text[0].isupper() and text.endswith(".") and "\n" not in text and len(text) < 300


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(403), "does not allow"),
        (Answer(404), "has nothing at this address"),
        (Answer(500), "error 500"),
        (Answer(503), "error 503"),
        (Answer(429), "is busy"),
        (Answer(200, _HTML), "not CalDAV|no calendar|has nothing"),
        (Answer(207, b"\xff\xfe\x00garbage", "text/xml"), "not CalDAV"),
        (Answer(207, b"<a><b></a>", "application/xml"), "not CalDAV"),
        (Answer(207, b"<calendar xmlns='urn:x'/>", "application/xml"), "not CalDAV|no calendar"),
        (Answer(207, _BOMB, "application/xml"), "not CalDAV|no calendar"),
        (Answer(207, b"", "application/xml"), "not CalDAV|no calendar"),
    ],
)
def test_every_bad_answer_gives_one_sentence_and_no_delivery(gate: Gate, answer: Answer, words: str) -> None:
    gate.misbehave = lambda method, path: answer
    with pytest.raises(NotDelivered, match=words) as caught:
        CalDAVDeliverer(account(gate, "bob")).deliver(outgoing(source_ref="/bob/inbox/1.ics"))
    assert _is_one_sentence(caught.value)
    assert not isinstance(caught.value, PerhapsDelivered)


@pytest.mark.parametrize("method", ["PROPFIND", "REPORT", "GET", "PUT", "OPTIONS"])
@pytest.mark.parametrize("answer", [Answer(404), Answer(207, b"<a><b></a>", "text/xml")])
def test_trouble_at_any_step_gives_one_sentence(office: Office, method: str, answer: Answer) -> None:
    arrived = office.invite()
    office.gate.misbehave = lambda asked, path: answer if asked == method else None
    with pytest.raises(NotDelivered) as caught:
        CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    assert _is_one_sentence(caught.value)
    office.gate.misbehave = lambda asked, path: None
    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    assert office.bobs_answer("ann") == "ACCEPTED"


def test_a_wrong_password_is_said_and_not_shown(gate: Gate) -> None:
    wrong = CalDAVAccount(gate.url, "bob", "hunter2")
    with pytest.raises(ServerTrouble, match="refused the user name 'bob' or its password") as caught:
        wrong.inbox()
    assert caught.value.status == 401
    assert "hunter2" not in f"{caught.value} {wrong!r}"


def test_a_server_that_is_down_gives_one_sentence() -> None:
    with pytest.raises(ServerTrouble, match="cannot be reached") as caught:
        CalDAVAccount(f"http://127.0.0.1:{free_port()}/", "bob", "x").events()
    assert _is_one_sentence(caught.value)


def test_a_server_without_a_trusted_certificate_gives_one_sentence(gate: Gate) -> None:
    with pytest.raises(ServerTrouble, match=r"cannot be reached|certificate"):
        CalDAVAccount(gate.url.replace("http:", "https:"), "bob", password_of("bob")).addresses()


def test_a_slow_server_is_left_in_time(gate: Gate) -> None:
    gate.misbehave = lambda method, path: Answer(207, wait=3.0)
    began = time.monotonic()
    with pytest.raises(ServerTrouble, match=r"did not answer within 0\.5 seconds"):
        account(gate, "bob", timeout=0.5).inbox()
    assert time.monotonic() - began < 2.5


@contextmanager
def _raw(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that says what it likes."""
    stopped = threading.Event()

    def run() -> None:
        while not stopped.is_set():
            with suppress(OSError):
                peer, _ = listener.accept()
                with peer:
                    peer.settimeout(5)
                    peer.recv(65536)
                    serve(peer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            stopped.set()
            thread.join()


def test_an_answer_that_drips_is_left_in_time() -> None:
    def drip(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 207 Multi-Status\r\nContent-Type: text/xml\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(50):
            peer.sendall(b" ")
            time.sleep(0.1)

    began = time.monotonic()
    with (
        _raw(drip) as url,
        pytest.raises(ServerTrouble, match="too slow"),
        Connection(url, "bob", "x", timeout=1.0, patience=1.0) as server,
    ):
        server.principal()
    assert time.monotonic() - began < 4


def test_an_answer_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinfolk_assistant.delivery.dav.MAX_ANSWER", 1 << 20)

    def flood(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 207 Multi-Status\r\nContent-Type: text/xml\r\n\r\n")
        for _ in range(100):
            peer.sendall(b"<a>" * 30000)

    with _raw(flood) as url, pytest.raises(ServerTrouble, match="more than 1 MiB"):
        CalDAVAccount(url, "bob", "x").addresses()


def test_what_is_no_http_gives_one_sentence() -> None:
    with (
        _raw(lambda peer: peer.sendall(b"220 mail.example.org ESMTP\r\n")) as url,
        pytest.raises(ServerTrouble) as caught,
    ):
        CalDAVAccount(url, "bob", "x", timeout=1.0).addresses()
    assert _is_one_sentence(caught.value)


def test_a_visit_ends_when_its_time_is_up(gate: Gate) -> None:
    gate.misbehave = lambda method, path: Answer(500, wait=0.3)
    with Connection(gate.url, "bob", password_of("bob"), patience=0.2) as server:
        with pytest.raises(ServerTrouble, match=r"error 500|slow"):
            server.principal()
        with pytest.raises(ServerTrouble, match="slow"):
            server.principal()
    assert len(gate.seen) == 1
