"""Servers for the tests: Xandikos as its own process, and before it a gate that signs people in and can misbehave."""

from __future__ import annotations

import base64
import http.client
import http.server
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


def password_of(name: str) -> str:
    """What the gate wants to hear: with letters that a careless client would spoil."""
    return f"{name}'s pässword: «1»"


class Answer(NamedTuple):
    """What the gate answers itself, instead of the server behind it."""

    status: int
    body: bytes = b""
    content_type: str = "text/html"
    wait: float = 0.0


class Gate(http.server.ThreadingHTTPServer):
    """A reverse proxy as Xandikos wants one before it: it checks passwords and names the user in a header.

    ``misbehave`` is asked before each request that is signed in; ``seen`` keeps the methods and paths of all.
    """

    daemon_threads = True

    def __init__(self, port_behind: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.port_behind = port_behind
        self.misbehave: Callable[[str, str], Answer | None] = lambda method, path: None
        self.seen: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def count(self, method: str) -> int:
        return sum(one == method for one, _ in self.seen)


class _Passing(http.server.BaseHTTPRequestHandler):
    server: Gate
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one packet: two would wait for each other

    def handle_one(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        user = self.user()
        if user is None:
            return self.answer(401, b"who are you?", {"WWW-Authenticate": 'Basic realm="test"'})
        self.server.seen.append((self.command, self.path))
        trouble = self.server.misbehave(self.command, self.path)
        if trouble is not None:
            time.sleep(trouble.wait)
            return self.answer(trouble.status, trouble.body, {"Content-Type": trouble.content_type})
        behind = http.client.HTTPConnection("127.0.0.1", self.server.port_behind, timeout=20)
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_PASSED}
        behind.request(self.command, self.path, body or None, {**kept, "X-Remote-User": user})
        response = behind.getresponse()
        content = response.read()
        behind.close()
        headers = {name: value for name, value in response.getheaders() if name.lower() not in _NOT_PASSED}
        self.answer(response.status, content, headers)

    do_GET = do_PUT = do_DELETE = do_OPTIONS = do_PROPFIND = do_PROPPATCH = do_REPORT = do_MKCALENDAR = handle_one

    def user(self) -> str | None:
        kind, _, rest = self.headers.get("Authorization", "").partition(" ")
        name, _, password = base64.b64decode(rest).decode().partition(":") if kind == "Basic" else ("", "", "")
        return name if name and password == password_of(name) else None

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


_NOT_PASSED = {"authorization", "connection", "content-length", "date", "host", "server", "transfer-encoding"}


@contextmanager
def running_gate(port_behind: int) -> Iterator[Gate]:
    gate = Gate(port_behind)
    thread = threading.Thread(target=gate.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield gate
    finally:
        gate.shutdown()
        thread.join()
        gate.server_close()


@contextmanager
def running_xandikos(folder: Path) -> Iterator[int]:
    """Start Xandikos with a calendar, an inbox and an outbox for whoever comes, and give its port."""
    port = free_port()
    command = [sys.executable, "-m", "xandikos", "multi-user", "-d", str(folder / "data"), "--defaults"]
    command += ["-l", "127.0.0.1", "-p", str(port), "--trust-x-remote-user-from", "127.0.0.1"]
    command += ["--state-dir", str(folder / "state"), "--no-detect-systemd"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(port, process, folder / "log")
        yield port
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"Xandikos did not start: {log.read_text()}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
