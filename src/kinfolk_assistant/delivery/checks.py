"""What ``doctor`` looks at: whether the ledger, the mail server and the calendar servers can be used as they are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import delete
from sqlalchemy.exc import SQLAlchemyError

from kinfolk_assistant.delivery.accounts import Entered
from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.dav import Connection
from kinfolk_assistant.delivery.imap_mailbox import Mailbox, can_wait
from kinfolk_assistant.delivery.online.service import CONNECTED, Service
from kinfolk_assistant.delivery.smtp import MailServer, trouble
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.ledger.migrations import BEFORE, HEAD
from kinfolk_assistant.ledger.store import Ledger, look_at_revision
from kinfolk_assistant.ledger.tables import Session


class Finding(NamedTuple):
    """What was looked at, whether it is well, and a sentence: where it is not, what is wrong and what to do."""

    what: str
    ok: bool
    sentence: str


def doctor(configuration: Configuration) -> list[Finding]:
    """Look at everything that a settings file names."""
    findings = [Finding("settings", False, warning) for warning in configuration.warnings]
    findings.append(_ledger(configuration.ledger))
    if configuration.smtp is not None:
        findings.append(look_at_mail(configuration.smtp))
    if configuration.folder is not None:
        findings.append(_folder(configuration.folder))
    for address, account in configuration.accounts.items():
        findings += _account(address, account, sends_mail=configuration.smtp is not None)
    findings += [_mailbox(address, mailbox) for address, mailbox in configuration.mailboxes.items()]
    findings += [_service(service, configuration.url) for service in configuration.services.values()]
    ways = configuration.smtp, configuration.folder, configuration.accounts or None, configuration.services or None
    if all(way is None for way in ways):
        findings.append(
            Finding("settings", False, "Answers have no way out: add [smtp], [files], or users with a caldav table.")
        )
    return findings


def _ledger(url: str) -> Finding:
    try:
        found = look_at_revision(url)
        if found == BEFORE or "" < found < HEAD:
            how = "pg_dump" if "://" in url and not url.startswith("sqlite:") else "kinfolk assistant admin backup FILE"
            sentence = f"The ledger is of revision {found}; it is brought to {HEAD} when it is next opened."
            return Finding("ledger", True, f"{sentence} Copy it first, by {how}.")
        ledger = Ledger(url)
        try:
            with ledger.begin() as session:
                session.execute(delete(Session).where(Session.token_hash == ""))
        finally:
            ledger.close()
    except (OSError, ValueError, SQLAlchemyError) as error:
        reason = getattr(error, "orig", None) or error
        sentence = f"The ledger cannot be written: {str(reason).rstrip('.')}; check 'ledger' in the settings."
        return Finding("ledger", False, " ".join(sentence.split()))
    return Finding("ledger", True, f"The ledger can be read and written; it is of revision {HEAD}, the newest.")


def look_at_accounts(address: str, entered: Iterable[Entered], *, sends_mail: bool) -> list[Finding]:
    """Look at accounts that somebody has entered."""
    findings: list[Finding] = []
    for one in entered:
        if one.kind == "caldav":
            account = CalDAVAccount(one.url, one.name, one.password)
            findings += _account(address, account, sends_mail=sends_mail)
        else:
            try:
                findings.append(_mailbox(address, Mailbox.from_url(one.url, one.name, one.password)))
            except ValueError as error:
                findings.append(Finding(f"mailbox of {address}", False, str(error)))
    return findings


def _mailbox(address: str, mailbox: Mailbox) -> Finding:
    what = f"mailbox of {address}"
    try:
        with mailbox.connect() as client:
            client.select_folder(mailbox.folder, readonly=True)
            waits = can_wait(client)
    except ServerTrouble as trouble:
        return Finding(what, False, str(trouble))
    how = "tells at once when mail has come" if waits else "is looked at every minute"
    return Finding(what, True, f"The mail server {mailbox.host}:{mailbox.port} lets {mailbox.username!r} in and {how}.")


def _service(service: Service, url: str) -> Finding:
    if find_spec("authlib") is None:
        return Finding(service.title, False, "Connecting calendars needs authlib: pip install 'kinfolk[oidc]'.")
    if not url:
        return Finding(service.title, False, "Say where the pages are (url in [pages]): users come back to them.")
    back = f"{url}{CONNECTED}"
    sentence = f"Users may connect calendars; register {back} there as the address to come back to."
    return Finding(
        service.title, True, f"{sentence} Not tried here: only a user who connects shows whether it lets them in."
    )


def look_at_mail(server: MailServer) -> Finding:
    """Look at the mail server that takes answers."""
    try:
        with server.connect():
            pass
    except (OSError, ValueError) as error:
        sentence = f"The mail server {server.host}:{server.port} cannot be used: {trouble(error)}; check [smtp]."
        return Finding("mail", False, sentence)
    return Finding("mail", True, f"The mail server {server.host}:{server.port} answers and lets the assistant in.")


def _folder(folder: Path) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
        os.close(handle)
        os.unlink(name)
    except OSError as error:
        return Finding("files", False, f"The folder {folder} cannot be written: {error.strerror}; check [files].")
    return Finding("files", True, f"The folder {folder} can be written.")


def _account(address: str, account: CalDAVAccount, *, sends_mail: bool) -> list[Finding]:
    what = f"calendar of {address}"
    try:
        with account.connect() as server:
            server.principal()
            findings = [Finding(what, True, f"{server.where} lets {account.username!r} in.")]
            looks: list[Callable[[Connection, str], tuple[bool, str]]] = [
                _inbox,
                _calendars,
                _addresses,
                partial(_scheduling, sends_mail=sends_mail),
            ]
            for look in looks:
                try:
                    findings.append(Finding(what, *look(server, address)))
                except ServerTrouble as error:
                    findings.append(Finding(what, False, str(error)))
            return findings
    except ServerTrouble as error:
        return [Finding(what, False, f"{error} See caldav of {address} in the settings.")]


def _inbox(server: Connection, address: str) -> tuple[bool, str]:
    inbox = server.inbox()
    if inbox is None:
        return True, f"{server.where} has no scheduling inbox: invitations of {address} come by mail."
    return True, f"Invitations arrive in {inbox}: there are {len(server.members(inbox))} messages."


def _calendars(server: Connection, address: str) -> tuple[bool, str]:
    calendars = server.calendars()
    if not calendars:
        return False, f"{server.where} has no calendar of {address}; make one there."
    return True, f"There are {len(calendars)} calendars; new meetings go into {server.default_calendar()}."


def _addresses(server: Connection, address: str) -> tuple[bool, str]:
    found = server.addresses()
    if address in found:
        return True, f"The server knows {address}."
    if server.inbox() is None:
        return True, f"{server.where} delivers no invitations, so it need not know {address}."
    known = ", ".join(found) if found else "no address"
    return False, (
        f"{server.where} knows {known} for this account but not {address}, so invitations to it do not arrive; "
        "set the address on the server, or the user's address in the settings."
    )


def _scheduling(server: Connection, address: str, *, sends_mail: bool) -> tuple[bool, str]:
    if server.schedules():
        return True, "The server tells organisers what is answered."
    if sends_mail:
        return True, f"{server.where} does not tell organisers what {address} answers; it goes by mail."
    return False, f"{server.where} does not tell organisers what {address} answers; add [smtp] so that it goes by mail."
