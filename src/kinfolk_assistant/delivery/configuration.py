"""The settings file: where the ledger is, and how each user's invitations come and answers leave.

Secrets are here, or in files or environment variables that this file names, and never in the ledger.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.imap_mailbox import Mailbox
from kinfolk_assistant.delivery.online.service import NAMES, NEAR, Service, is_safe, read_service
from kinfolk_assistant.delivery.settings import Settings, read_settings
from kinfolk_assistant.delivery.smtp import MailServer, Security
from kinfolk_assistant.reading.trust import Trust

SHADOW_DAYS = 14
"""So many days the assistant only shows what it would do for somebody who is new, unless the settings say otherwise."""

_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")


@dataclass(frozen=True)
class OidcProvider:
    """An OpenID Connect provider where users sign in: its issuer, and who the assistant is to it."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True)
class Configuration:
    """What a settings file says.

    Attributes
    ----------
    ledger : str
        A path, or a ``postgresql://`` URL.
    smtp : MailServer or None
        Where mail is handed over.
    folder : Path or None
        Where answers are written that go no other way.
    accounts : mapping of str to CalDAVAccount
        The users' accounts, by address.
    trust : Trust
        Whom the assistant may answer without asking.
    oidc : OidcProvider or None
        Where users sign in beside their passwords.
    warnings : tuple of str
        What works but should not be so, a sentence each.
    url : str
        Where the pages are, as users' browsers see them; "" where it is not said.
    key_file : Path
        Where the key of stored passwords and signed links is, or will be.
    mailboxes : mapping of str to Mailbox
        The users' mailboxes, by address.
    hosts : tuple of str
        Servers of which users may enter accounts on the page, ``*.example.org`` for all of a domain.
    certificate : str or None
        A file with the certificates to trust at these, where the system's are not those.
    admins : frozenset of str
        Users who see the page of the administrator.
    services : mapping of str to Service
        Where users may connect their calendars: "google", "microsoft".
    """

    ledger: str = field(repr=False)
    smtp: MailServer | None = None
    folder: Path | None = None
    accounts: Mapping[str, CalDAVAccount] = field(default_factory=dict)
    trust: Trust = field(default_factory=Trust)
    oidc: OidcProvider | None = None
    warnings: tuple[str, ...] = ()
    url: str = ""
    key_file: Path = Path("kinfolk-assistant.key")
    mailboxes: Mapping[str, Mailbox] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    certificate: str | None = None
    admins: frozenset[str] = frozenset()
    services: Mapping[str, Service] = field(default_factory=dict)


def read_configuration(path: str | os.PathLike[str]) -> Configuration:
    """Read a settings file in TOML.

    Paths in it are relative to its folder. Each secret, ``ledger`` and ``password``, is given as it is, or by a file
    that holds it (``password_file``), or by an environment variable (``password_env``).

    Raises
    ------
    ValueError
        With one sentence that names the key.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "assistant.toml")
    >>> _ = path.write_text('''
    ... ledger = "assistant.db"
    ... [smtp]
    ... host = "mail.example.org"
    ... [[users]]
    ... address = "ann@example.org"
    ... caldav = { url = "https://dav.example.org/", user = "ann", password_env = "HOME" }
    ... ''')
    >>> read = read_configuration(path)
    >>> str(read.smtp), read.accounts["ann@example.org"].url
    ('the mail server mail.example.org:587', 'https://dav.example.org/')
    >>> folder.cleanup()
    """
    top = read_settings(Path(path))
    ledger = top.secret("ledger")
    smtp, files = top.table("smtp"), top.table("files")
    mail = _mail_server(smtp) if smtp else None
    folder = top.beside(files.text("folder")) if files else None
    accounts: dict[str, CalDAVAccount | None] = {}
    mailboxes: dict[str, Mailbox] = {}
    for user in top.tables("users"):
        address = user.text("address").lower()
        if not _ADDRESS.fullmatch(address):
            raise user.wrong("address", f"is {address!r}, which is no mail address")
        if address in accounts:
            raise user.wrong("address", f"is {address!r} for the second time")
        caldav = user.table("caldav")
        accounts[address] = _account(caldav) if caldav else None
        imap = user.table("imap")
        if imap:
            mailboxes[address] = _mailbox(imap)
    trusted = top.table("trust")
    trust = _trust(trusted) if trusted else Trust(shadow_days=SHADOW_DAYS)
    oidc = top.table("oidc")
    provider = _provider(oidc) if oidc else None
    pages, entered = top.table("pages"), top.table("accounts")
    url = _url(pages) if pages else ""
    admins = frozenset(pages.texts("admins")) if pages else frozenset()
    hosts = entered.texts("hosts") if entered else ()
    certificate = _certificate(entered) if entered else None
    tables = {name: top.table(name) for name in NAMES}
    services: dict[str, Service] = {
        name: read_service(name, table) for name, table in tables.items() if table is not None
    }
    # Beside the ledger, so that one folder is all that has to be written to.
    beside_ledger = "assistant.key" if "://" in ledger else str(Path(ledger).with_suffix(".key"))
    key_file = top.text("key_file", "") or beside_ledger
    top.all_known()
    return Configuration(
        ledger if "://" in ledger else str(top.beside(ledger)),
        mail,
        folder,
        {address: account for address, account in accounts.items() if account is not None},
        trust,
        provider,
        tuple(top.warnings),
        url,
        top.beside(key_file),
        mailboxes,
        hosts,
        certificate,
        admins,
        services,
    )


def mail_server(host: str, security: str, user: str, password: str, sender: str) -> MailServer:
    """Make a mail server of what somebody answers who is asked for one.

    Raises
    ------
    ValueError
        If it cannot be one.
    """
    if security not in _PORTS:
        raise ValueError(f"the security of the mail server is {security!r}; it must be one of {', '.join(_PORTS)}")
    name, port = split_host(host)
    return MailServer(name, port or _PORTS[security], cast(Security, security), user, password, sender=sender)


def split_host(host: str) -> tuple[str, int]:
    """Give a name and a port; 0 where none is named.

    Examples
    --------
    >>> split_host("mail.example.org:2525"), split_host("mail.example.org")
    (('mail.example.org', 2525), ('mail.example.org', 0))
    """
    name, _, port = host.partition(":")
    if port and not port.isdecimal():
        raise ValueError(f"{host!r} is no mail server; give a name, or a name and a port")
    return name, int(port or 0)


def _mail_server(table: Settings) -> MailServer:
    security = table.choice("security", tuple(_PORTS), "starttls")
    server = MailServer(
        table.text("host"),
        table.number("port", 1, 65535, _PORTS[security]),
        cast(Security, security),
        table.text("user", ""),
        table.secret("password", ""),
        _certificate(table),
        table.number("timeout", 1, 60, 20),
        table.text("sender", ""),
    )
    if server.sender and not _ADDRESS.fullmatch(server.sender):
        raise table.wrong("sender", f"is {server.sender!r}, which is no mail address")
    if bool(server.user) != bool(server.password):
        raise table.wrong("user", "and password go together: give both or none")
    if security == "none" and server.password and server.host not in NEAR:
        table.warn("security", 'is "none", so the password can be read on its way')
    return server


def _url(table: Settings) -> str:
    url = table.text("url").rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise table.wrong("url", f"is {url!r}, but must begin with https:// and a host")
    return url


def _provider(table: Settings) -> OidcProvider:
    issuer = table.text("issuer").rstrip("/")
    if not is_safe(issuer):
        raise table.wrong("issuer", f"is {issuer!r}, but must begin with https://")
    return OidcProvider(issuer, table.text("client_id"), table.secret("client_secret"))


def _trust(table: Settings) -> Trust:
    delegates = table.table("delegates")
    return Trust(
        table.texts("servers"),
        table.texts("domains"),
        {organiser.lower(): delegates.texts(organiser) for organiser in delegates.names()} if delegates else {},
        table.texts("services"),
        table.texts("allow"),
        table.texts("deny"),
        table.number("per_organiser", 0, 1000, Trust.per_organiser),
        table.number("per_domain", 0, 1000, Trust.per_domain),
        table.number("shadow_days", 0, 365, SHADOW_DAYS),
        table.texts("calendars"),
    )


def _account(table: Settings) -> CalDAVAccount:
    url = table.text("url")
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise table.wrong("url", f"is {url!r}, but must begin with https:// and a host")
    if parts.username or parts.password:
        raise table.wrong("url", "holds a user name or a password; give them as user and password")
    if parts.scheme == "http" and parts.hostname not in NEAR:
        table.warn("url", "begins with http://, so the password can be read on its way")
    return CalDAVAccount(
        url, table.text("user"), table.secret("password"), table.number("timeout", 1, 60, 10), _certificate(table)
    )


def _mailbox(table: Settings) -> Mailbox:
    url = table.text("url")
    try:
        mailbox = Mailbox.from_url(url, table.text("user"), table.secret("password"), _certificate(table))
    except ValueError:
        raise table.wrong("url", f"is {url!r}, but must be such as imaps://mail.example.org/INBOX") from None
    if mailbox.security == "none" and mailbox.host not in NEAR:
        table.warn("url", "begins with imap+plain://, so the password can be read on its way")
    return mailbox


def _certificate(table: Settings) -> str | None:
    named = table.text("certificate", "")
    if not named:
        return None
    path = table.beside(named)
    if not path.is_file():
        raise table.wrong("certificate", f"names {path}, which is no file")
    return str(path)
