"""Logs that name nobody, settings read anew on a signal, and examples of how to run it that fit the program."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from typer.testing import CliRunner

from kinfolk.cli.app import app
from kinfolk_assistant.cli.logs import write_logs
from kinfolk_assistant.cli.serving import reload_on_hangup
from tests.assistant.delivery.servers import free_port

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.fixture
def quiet() -> Iterator[None]:
    """Loggers are as they were before, after a test that changes them."""
    loggers = [logging.getLogger(name) for name in ("", "uvicorn", "uvicorn.error", "uvicorn.access")]
    before = [(one.handlers[:], one.level, one.propagate) for one in loggers]
    yield
    for one, (handlers, level, propagate) in zip(loggers, before, strict=True):
        one.handlers[:], one.propagate = handlers, propagate
        one.setLevel(level)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_log_has_a_line_with_a_time_for_each_event_and_not_what_an_exception_says(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_logs("json" if kind == "json" else "text")
    try:
        raise ValueError("ann@example.org has a dentist")
    except ValueError:
        logging.getLogger("kinfolk_assistant.service").exception("It failed\nand goes on")
    [line] = capsys.readouterr().err.splitlines()
    assert "dentist" not in line
    assert re.match(r'(\{"time": ")?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00', line)
    assert "It failed and goes on" in line
    assert "ValueError in test_a_log" in line
    if kind == "json":
        assert json.loads(line)["level"] == "error"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_a_hangup_reads_the_settings_anew_and_bad_settings_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    before = signal.getsignal(signal.SIGHUP)
    done: list[bool] = []

    def reload() -> None:
        done.append(True)
        if len(done) > 1:
            raise ValueError("assistant.toml: ledger is missing.")

    try:
        reload_on_hangup(reload)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert len(done) == 2
    assert ["read anew" in one for one in caplog.messages] == [True, False]
    assert "stay as they are: assistant.toml" in caplog.messages[1]


def test_examples_use_options_that_there_are() -> None:
    known = set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["assistant", "serve", "--help"]).output))
    for name in ("Containerfile", "compose.yaml", "kinfolk-assistant.service"):
        command = re.findall(r"serve\b(.*?)(?=\n\S|\n    read_only|\Z)", (DEPLOY / name).read_text(), re.DOTALL)
        used = set(re.findall(r"--[a-z-]+", " ".join(command)))
        assert used, name
        assert used <= known, name


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
def test_the_example_for_nginx_is_one_that_nginx_takes(tmp_path: Path) -> None:
    site = (DEPLOY / "nginx.conf").read_text()
    # Certificates are the reader's own; all else is looked at.
    site = re.sub(r" +ssl_certificate.*\n", "", site).replace(" ssl;", ";")
    (tmp_path / "site.conf").write_text(site)
    whole = f"pid {tmp_path}/pid;\nerror_log {tmp_path}/log;\nevents {{}}\nhttp {{ include {tmp_path}/site.conf; }}\n"
    (tmp_path / "nginx.conf").write_text(whole)
    said = subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr


class _Heard(BaseHTTPRequestHandler):
    """Says what headers it was sent."""

    def do_GET(self) -> None:
        told = json.dumps({name.lower(): value for name, value in self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.skipif(shutil.which("caddy") is None, reason="needs caddy")
def test_the_example_for_caddy_runs_hides_metrics_and_lets_no_browser_name_a_user(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Heard)
    Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    site = (DEPLOY / "Caddyfile").read_text().replace("assistant:8765", f"127.0.0.1:{server.server_address[1]}")
    # Without a name of the reader's own there is no certificate; all else is as it stands.
    site = site.replace("assistant.example.org {", f"http://localhost:{port} {{")
    (tmp_path / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\n{site}")
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    command = ["caddy", "run", "--config", tmp_path / "Caddyfile", "--adapter", "caddyfile"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as caddy:
        try:
            forged = {"X-Remote-User": "ann@example.org", "X-Proxy-Secret": "guessed", "X-Forwarded-For": "192.0.2.1"}
            heard = _ask(f"http://localhost:{port}/", forged).json()
            hidden = _ask(f"http://localhost:{port}/metrics", {})
        finally:
            caddy.terminate()
            server.shutdown()
            server.server_close()
    assert "x-remote-user" not in heard
    assert "x-proxy-secret" not in heard
    assert heard["host"] == f"localhost:{port}"
    # The client's own word on where it comes from is not passed on.
    assert heard["x-forwarded-for"] in ("127.0.0.1", "::1")
    assert hidden.status_code == 404


def _ask(url: str, headers: dict[str, str]) -> httpx.Response:
    for _ in range(200):
        try:
            return httpx.get(url, headers=headers)
        except httpx.ConnectError:
            time.sleep(0.05)
    raise RuntimeError("Caddy did not start.")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit_is_one_that_systemd_takes_and_calls_safe(tmp_path: Path) -> None:
    unit = (DEPLOY / "kinfolk-assistant.service").read_text().replace("/opt/kinfolk/bin/kinfolk", "/bin/true")
    path = tmp_path / "kinfolk-assistant.service"
    path.write_text(unit)
    said = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
    assert "kinfolk" not in said.stderr, said.stderr
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", path], capture_output=True, text=True
    )
    found = re.search(r"Overall exposure level.*?: ([\d.]+)", rated.stdout)
    if found is None:
        pytest.skip("this systemd-analyze rates no files")
    assert float(found[1]) <= 2.5
