"""``kinfolk assistant setup``: a few questions, every connection tried; then settings, the first user, their past."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from kinfolk.cli.commands import say
from kinfolk_assistant.cli.options import need_extra

if TYPE_CHECKING:
    from datetime import datetime

    from kinfolk_assistant.delivery.accounts import Entered
    from kinfolk_assistant.delivery.checks import Finding
    from kinfolk_assistant.delivery.keys import Keys
    from kinfolk_assistant.delivery.smtp import MailServer
    from kinfolk_assistant.ledger.store import Ledger

EXAMPLE = """\b
Example:
  kinfolk assistant setup
  kinfolk assistant setup /etc/kinfolk/assistant.toml"""

_SECURITY = "starttls, tls or none"


class _Told(NamedTuple):
    """What was answered."""

    url: str
    smtp_host: str
    smtp_security: str
    smtp_user: str
    smtp_password: str
    sender: str
    mail_server: str
    address: str
    zone: str
    password: str
    accounts: tuple[Entered, ...]


def setup(
    path: Annotated[Path, typer.Argument(metavar="FILE.toml", help="Where to write the settings.")] = Path(
        "assistant.toml"
    ),
) -> int:
    """Set the assistant up: ask a few questions, try the connections, write the settings, make the first user.

    Where the calendar can be read, its past is imported, and what the assistant would have answered last month is told.
    Nothing is written before every question is answered and every connection was tried. Passwords of calendars and
    mailboxes are kept sealed in the ledger, that of the mail server in a file beside the settings.
    """
    need_extra()
    from datetime import UTC, datetime

    from kinfolk_assistant.delivery.checks import doctor
    from kinfolk_assistant.delivery.configuration import read_configuration
    from kinfolk_assistant.delivery.keys import read_keys
    from kinfolk_assistant.ledger.store import Ledger

    if path.exists():
        raise ValueError(f"{path} is there already: name another file, or look at that one with 'doctor'")
    told = _ask()
    findings = _try(told)
    for finding in findings:
        typer.echo(f"{'ok     ' if finding.ok else 'WRONG  '} {finding.what}: {finding.sentence}")
    if not all(one.ok for one in findings) and not typer.confirm("Write the settings all the same?", default=False):
        typer.echo("Nothing was written.")
        return 1
    _write(path, told)
    configuration = read_configuration(path)
    keys = read_keys(configuration.key_file)
    now = datetime.now(UTC)
    book = Ledger(configuration.ledger)
    try:
        _make_user(book, told, now)
        _keep_accounts(book, told, keys, now)
        _import(book, told, now)
    finally:
        book.close()
    wrong = [one for one in doctor(configuration) if not one.ok and one.what != "settings"]
    for finding in wrong:
        say(f"{finding.what}: {finding.sentence}")
    host = f" --https --host-name {told.url.split('//')[-1].split('/')[0]}" if told.url else ""
    typer.echo(f"{path} is written. Now: kinfolk assistant serve --settings {path}{host}")
    return 0


def _ask() -> _Told:
    from kinfolk_assistant.delivery.accounts import Entered
    from kinfolk_assistant.ledger.users import known_zone, mail_address

    typer.echo("Leave empty what you do not have.")
    address = mail_address(typer.prompt("Your mail address"))
    zone = known_zone(typer.prompt("Your time zone", default=_zone())).key
    password = typer.prompt("A password for the pages", hide_input=True, confirmation_prompt=True)
    url = typer.prompt("Address of the pages, such as https://assistant.example.org", default="", show_default=False)
    caldav = typer.prompt("Calendar server (CalDAV), such as https://dav.example.org/", default="", show_default=False)
    imap = typer.prompt("Mailbox, such as imaps://mail.example.org/INBOX", default="", show_default=False)
    accounts = []
    for kind, place, called in (("caldav", caldav, "calendar server"), ("imap", imap, "mailbox")):
        if place:
            name = typer.prompt(f"User name at the {called}", default=address)
            secret = typer.prompt(f"App password at the {called}", hide_input=True)
            accounts.append(Entered("imap" if kind == "imap" else "caldav", place.strip(), name, secret))
    smtp = typer.prompt("Mail server for answers (SMTP), such as mail.example.org", default="", show_default=False)
    security = user = secret = sender = mail_server = ""
    if smtp:
        security = typer.prompt(f"Its security ({_SECURITY})", default="starttls")
        user = typer.prompt("User name there", default="", show_default=False)
        secret = typer.prompt("Password there", hide_input=True) if user else ""
        sender = typer.prompt("Who the assistant's own mails are from", default=address)
        words = "Name of your mail server in Authentication-Results (without it, what comes by mail is always asked)"
        mail_server = typer.prompt(words, default="", show_default=False)
    return _Told(
        url.rstrip("/"),
        smtp.strip(),
        security,
        user,
        secret,
        sender,
        mail_server,
        address,
        zone,
        password,
        tuple(accounts),
    )


def _zone() -> str:
    """The zone of this machine, where it can be told."""
    try:
        return str(Path("/etc/localtime").resolve()).partition("/zoneinfo/")[2] or "UTC"
    except OSError:
        return "UTC"


def _try(told: _Told) -> list[Finding]:
    """Look at every server as ``doctor`` does, before anything is written."""
    from kinfolk_assistant.delivery.checks import look_at_accounts, look_at_mail

    server = _mail_server(told)
    findings = [look_at_mail(server)] if server is not None else []
    return findings + look_at_accounts(told.address, told.accounts, sends_mail=server is not None)


def _mail_server(told: _Told) -> MailServer | None:
    from kinfolk_assistant.delivery.configuration import mail_server

    if not told.smtp_host:
        return None
    return mail_server(told.smtp_host, told.smtp_security, told.smtp_user, told.smtp_password, told.sender)


def _write(path: Path, told: _Told) -> None:
    """Write the settings, and the mail server's password beside them, each for its owner alone."""
    import json
    import os
    from urllib.parse import urlsplit

    from kinfolk_assistant.delivery.configuration import split_host
    from kinfolk_assistant.delivery.files import write_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ['ledger = "assistant.db"', ""]
    if told.url:
        lines += ["[pages]", f"url = {json.dumps(told.url)}", f"admins = [{json.dumps(told.address)}]", ""]
    if told.smtp_host:
        host, port = split_host(told.smtp_host)
        lines += ["[smtp]", f"host = {json.dumps(host)}", f'security = "{told.smtp_security}"']
        lines += [f"port = {port}"] if port else []
        if told.smtp_user:
            secret = path.with_name("smtp-password")
            write_whole(secret, told.smtp_password.encode() + b"\n")
            os.chmod(secret, 0o600)
            lines += [f"user = {json.dumps(told.smtp_user)}", 'password_file = "smtp-password"']
        lines += [f"sender = {json.dumps(told.sender)}", ""]
    else:
        lines += ["[files]", 'folder = "answers"', ""]
    if told.mail_server:
        lines += ["[trust]", f"servers = [{json.dumps(told.mail_server)}]", ""]
    hosts = sorted({urlsplit(one.url).hostname or "" for one in told.accounts})
    if hosts:
        lines += ["[accounts]", f"hosts = {json.dumps(hosts)}", ""]
    write_whole(path, "\n".join(lines).encode())
    os.chmod(path, 0o600)


def _make_user(book: Ledger, told: _Told, now: datetime) -> None:
    from kinfolk_assistant.ledger.users import make_user
    from kinfolk_assistant.web.passwords import hash_password

    hashed = hash_password(told.password)
    with book.begin() as session:
        user = make_user(session, told.address, zone=told.zone, now=now)
        user.password_hash = hashed
    typer.echo(f"{told.address} can sign in.")


def _keep_accounts(book: Ledger, told: _Told, keys: Keys, now: datetime) -> None:
    from kinfolk_assistant.delivery.accounts import keep_account

    with book.begin() as session:
        for one in told.accounts:
            keep_account(session, keys, told.address, one, now)


def _import(book: Ledger, told: _Told, now: datetime) -> None:
    """Import the calendar's past, learn from it, and say what would have been answered last month."""
    from kinfolk.progress import progress_bar
    from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
    from kinfolk_assistant.delivery.trouble import ServerTrouble
    from kinfolk_assistant.features.people import People
    from kinfolk_assistant.importing.history import import_history
    from kinfolk_assistant.importing.sources import read_objects
    from kinfolk_assistant.service.looking_back import look_back
    from kinfolk_assistant.service.retraining import retrain

    for one in told.accounts:
        if one.kind != "caldav":
            continue
        try:
            stored = CalDAVAccount(one.url, one.name, one.password).events()
        except ServerTrouble as trouble:
            say(f"the calendar's past could not be read: {trouble}")
            return
        with progress_bar("Reading the past", None, True):
            report = import_history(book, told.address, read_objects(stored), People(), now=now)
        typer.echo(str(report))
        if report.accepts + report.declines:
            with progress_bar("Learning", None, True):
                retrain(book, lambda: now, force=True)
                found = look_back(book, told.address, now)
            typer.echo(str(found))
