"""``kinfolk assistant serve``: the web pages, with everything that works beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from kinfolk.cli.commands import INTERRUPTED
from kinfolk_assistant.cli.logs import write_logs
from kinfolk_assistant.cli.options import LedgerFile, SettingsFile, need_extra, read_settings

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kinfolk_assistant.delivery.accounts import Accounts
    from kinfolk_assistant.delivery.configuration import OidcProvider
    from kinfolk_assistant.delivery.keys import Keys
    from kinfolk_assistant.service.assistant import Assistant

EXAMPLE = """\b
Example:
  kinfolk assistant serve --settings assistant.toml
  kinfolk assistant serve --https --host-name assistant.example.org
  kinfolk assistant serve --https --socket /run/kinfolk/web --proxy-header X-Remote-User

Serve it to others through a reverse proxy with HTTPS; over plain HTTP it is for this machine alone."""

PORT = 8765

Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen at.")]
Port = Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port to listen at; 0: any that is free.")]


def serve(
    host: Host = "127.0.0.1",
    port: Port = PORT,
    proxy_header: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Header in which a reverse proxy on this machine names the user."),
    ] = None,
    https: Annotated[
        bool | None,
        typer.Option(
            "--https/--http", help="Whether browsers come by HTTPS; by default not where the host is this machine."
        ),
    ] = None,
    host_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name under which browsers ask for the pages; may be given several times."),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Address of a reverse proxy; by default this machine's own."),
    ] = None,
    proxy_secret_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with what the proxy says in X-Proxy-Secret beside the user's name."),
    ] = None,
    unix_socket: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="Listen at a Unix socket instead of a port.")
    ] = None,
    logs: Annotated[
        str, typer.Option(metavar="KIND", help="How to write about itself: lines of text, or of json.")
    ] = "text",
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Serve the web pages, visit the calendars, decide, send what is due, and learn from corrections.

    Stops on Ctrl-C; killed at any moment, it loses nothing and repeats nothing when it starts again.
    """
    need_extra()
    from importlib.util import find_spec

    from kinfolk_assistant.delivery.accounts import Accounts
    from kinfolk_assistant.delivery.keys import read_keys
    from kinfolk_assistant.delivery.routes import Routes
    from kinfolk_assistant.ledger.store import Ledger
    from kinfolk_assistant.service.assistant import Assistant
    from kinfolk_assistant.service.digest import Digests
    from kinfolk_assistant.service.mailboxes import Mailboxes
    from kinfolk_assistant.service.visiting import Visits

    if logs not in ("text", "json"):
        raise ValueError(f"--logs is {logs!r}; it must be text or json")
    write_logs("json" if logs == "json" else "text")
    configuration = read_settings(settings, ledger)
    secret = "" if proxy_secret_file is None else proxy_secret_file.read_text(encoding="utf-8").strip()
    if proxy_header is not None and not secret and unix_socket is None:
        raise ValueError(
            "with --proxy-header any program on this machine could name a user: give --proxy-secret-file, or --socket"
        )
    if (configuration.oidc or configuration.services) and find_spec("authlib") is None:
        raise ImportError(
            "to sign in at a provider, or to connect calendars, needs authlib, which is not installed: "
            "pip install 'kinfolk[oidc]'"
        )
    book = Ledger(configuration.ledger)
    keys = read_keys(configuration.key_file)
    accounts = Accounts(configuration, book, keys)
    routes = Routes(configuration, accounts.calendar)
    assistant = Assistant(book, routes, trust=configuration.trust, part=accounts.part)
    beside: list[object] = [Visits(assistant, accounts.calendars), Mailboxes(assistant, accounts.mailboxes)]
    mails = configuration.smtp if configuration.smtp is not None and configuration.smtp.sender else None
    if mails is not None and configuration.url:
        beside.append(Digests(assistant, mails, configuration.url, keys))
    is_near = host in ("127.0.0.1", "::1", "localhost")
    near = ("127.0.0.1", "::1", *([""] if unix_socket is not None else []))
    door = Door(
        host,
        port,
        proxy_header,
        not is_near if https is None else https,
        tuple(host_name or ()) or (("localhost", "127.0.0.1", "::1") if is_near and unix_socket is None else None),
        tuple(trusted_proxy or near),
        secret,
        unix_socket,
        configuration.oidc,
        keys,
        len(beside) > 2,
        accounts,
    )

    def reload() -> None:
        fresh = read_settings(settings, ledger)
        accounts.configuration = routes.configuration = fresh
        assistant.trust = fresh.trust

    reload_on_hangup(reload)
    run(assistant, door, *beside)


class Door(NamedTuple):
    """Where and to whom the pages are open; see the options of `serve`."""

    host: str
    port: int
    proxy_header: str | None = None
    https: bool = False
    names: tuple[str, ...] | None = None
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    secret: str = ""
    path: Path | None = None
    provider: OidcProvider | None = None
    keys: Keys | None = None
    sends_digests: bool = False
    accounts: Accounts | None = None


def reload_on_hangup(reload: Callable[[], None]) -> None:
    """Read the settings anew on SIGHUP: accounts, mail server, trust and administrators; the rest needs a new start.

    Settings that cannot be read change nothing.
    """
    import logging
    import signal

    log = logging.getLogger(__name__)

    def handle(signum: int, frame: object) -> None:
        try:
            reload()
        except (OSError, ValueError) as error:
            log.warning("The settings stay as they are: %s", error)
        else:
            log.warning("The settings were read anew")

    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, handle)


def run(assistant: Assistant, at: Door, *beside: object) -> None:
    """Serve an assistant until it is told to stop, with threads beside it that work, learn and visit."""
    import socket

    import uvicorn

    from kinfolk_assistant.service.assistant import Trainer, Worker
    from kinfolk_assistant.service.background import Repeating
    from kinfolk_assistant.service.mailboxes import Mailboxes
    from kinfolk_assistant.web.app import make_app

    worker, trainer = Worker(assistant), Trainer(assistant)
    for one in beside:
        if isinstance(one, Mailboxes):
            one.wake_worker = worker.wake
    threads = [worker, trainer, *(one for one in beside if isinstance(one, Repeating))]
    app = make_app(
        assistant,
        proxy_header=at.proxy_header,
        trusted_proxies=at.proxies,
        secure_cookies=at.https,
        proxy_secret=at.secret,
        hosts=at.names,
        provider=at.provider,
        keys=at.keys,
        sends_digests=at.sends_digests,
        accounts=at.accounts,
        wake=worker.wake,
    )
    if at.path is not None and not hasattr(socket, "AF_UNIX"):
        raise ValueError(f"--socket {at.path}: Python has no such sockets on this system; give --host and --port")
    family = socket.AF_UNIX if at.path is not None else socket.AF_INET6 if ":" in at.host else socket.AF_INET
    try:
        # The protocol is named because asyncio sends small packets at once only where it is.
        with socket.socket(family, socket.SOCK_STREAM, 0 if at.path is not None else socket.IPPROTO_TCP) as door:
            if at.path is not None:
                _open_at(door, at.path)
                typer.echo(f"Serving at the socket {at.path} (Ctrl-C stops it)")
            else:
                _open(door, at.host, at.port)
                shown = f"[{at.host}]" if ":" in at.host else at.host
                typer.echo(f"Serving at http://{shown}:{door.getsockname()[1]}/ (Ctrl-C stops it)")
            for thread in threads:
                thread.start()
            # Clients' addresses are told by the socket: a header could be anybody's.
            uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, proxy_headers=False)).run(
                sockets=[door]
            )
    except KeyboardInterrupt:  # what Ctrl-C was promised to do, and nothing was cut short
        raise SystemExit(INTERRUPTED) from None
    finally:
        for thread in threads:
            if thread.is_alive():
                thread.stop()
        assistant.ledger.close()


def _open_at(door: socket.socket, path: Path) -> None:
    """Let those in who may open a file: the user and the group that this runs as."""
    import os
    import stat

    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        path.unlink()
    before = os.umask(0o117)
    try:
        door.bind(str(path))
        door.listen()
    except OSError as error:
        raise ValueError(f"cannot listen at {path}: {error.strerror}") from None
    finally:
        os.umask(before)


def _open(door: socket.socket, host: str, port: int) -> None:
    """Let clients in; those who come before the server is ready wait for it."""
    from socket import SO_REUSEADDR, SOL_SOCKET

    door.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
        door.listen()
    except OSError as error:
        raise ValueError(f"cannot listen at {host}:{port}: {error.strerror}; choose another --port") from None
