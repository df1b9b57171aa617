"""Invitations from a user's mailbox (IMAP, RFC 9051): any server will do, and nothing in it is changed or marked.

What is new is told by the numbers that the server gives to messages (UID, with UIDVALIDITY), so that none is read twice
and none is missed, however often the program is stopped.
"""

from __future__ import annotations

import imaplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from imapclient import IMAPClient
from imapclient.exceptions import LoginError

from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.reading.bounds import Refused
from kinfolk_assistant.reading.mail import MAX_MAIL_BYTES, MailedObject, read_mail

Security = Literal["tls", "starttls", "none"]
SCHEMES: dict[str, tuple[Security, int]] = {
    "imaps": ("tls", 993),
    "imap": ("starttls", 143),
    "imap+plain": ("none", 143),
}
MAX_NEW = 200
"""So many new messages are looked at in one visit; the others are looked at in the next."""

_LOOKS_BACK = timedelta(days=30)
_METHODS = ("REQUEST", "CANCEL", "DECLINECOUNTER")


class Position(NamedTuple):
    """Up to where a mailbox was read: its UIDVALIDITY, and the largest UID."""

    validity: int = 0
    uid: int = 0


class Letter(NamedTuple):
    """A message about meetings, and when the user's own server took it."""

    object: MailedObject
    arrived: datetime


class Letters(NamedTuple):
    """What a visit has brought."""

    letters: list[Letter]
    refused: int
    """How many messages have a calendar that cannot be read."""
    position: Position
    more: bool
    """Whether there is more to be read at once."""


@dataclass(frozen=True)
class Mailbox:
    """Where a user's mail is.

    Examples
    --------
    >>> mailbox = Mailbox.from_url("imaps://mail.example.org/INBOX", "ann", "secret")
    >>> mailbox.host, mailbox.port, mailbox.folder, mailbox
    ('mail.example.org', 993, 'INBOX', Mailbox(url='imaps://mail.example.org/INBOX', username='ann'))
    """

    url: str
    username: str
    password: str = field(repr=False)
    certificate: str | None = field(default=None, repr=False)
    timeout: float = field(default=20.0, repr=False)

    @classmethod
    def from_url(cls, url: str, username: str, password: str, certificate: str | None = None) -> Mailbox:
        """Make one of an URL: ``imaps://host[:port]/folder``, or ``imap://`` for STARTTLS.

        Raises
        ------
        ValueError
            If it is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES or not parts.hostname or parts.username or parts.password:
            raise ValueError(f"{url!r} is no mailbox; give one such as imaps://mail.example.org/INBOX.")
        return cls(url, username, password, certificate)

    @property
    def host(self) -> str:
        """The server's name."""
        return urlsplit(self.url).hostname or ""

    @property
    def security(self) -> Security:
        """Whether the connection is ciphered from its beginning, from STARTTLS on, or not."""
        return SCHEMES[urlsplit(self.url).scheme][0]

    @property
    def port(self) -> int:
        """The server's port."""
        parts = urlsplit(self.url)
        return parts.port or SCHEMES[parts.scheme][1]

    @property
    def folder(self) -> str:
        """The folder that invitations come to."""
        return unquote(urlsplit(self.url).path.strip("/")) or "INBOX"

    @contextmanager
    def connect(self) -> Iterator[IMAPClient]:
        """Sign in and open the folder, so that nothing in it can be changed."""
        where = f"The mail server {self.host}:{self.port}"
        with _in_words(where, self.timeout):
            trusted = None if self.security == "none" else ssl.create_default_context(cafile=self.certificate)
            client = IMAPClient(
                self.host, self.port, ssl=self.security == "tls", ssl_context=trusted, timeout=self.timeout
            )
            client.normalise_times = False
            try:
                if self.security == "starttls":
                    client.starttls(trusted)
                client.login(self.username, self.password)
                yield client
            finally:
                with suppress(OSError, imaplib.IMAP4.error):
                    client.logout()


def collect_mail(client: IMAPClient, mailbox: Mailbox, position: Position, now: datetime) -> Letters:
    """Read what has come since a position; of a mailbox that is new, what came in the last month."""
    opened = client.select_folder(mailbox.folder, readonly=True)
    validity = int(opened[b"UIDVALIDITY"])
    if position.validity == validity:
        # The range is never empty by its definition: it gives the last message even where that is older.
        numbers = [one for one in client.search(["UID", f"{position.uid + 1}:*"]) if one > position.uid]
    else:
        numbers = client.search(["SINCE", (now - _LOOKS_BACK).date()])
        position = Position(validity, 0)
    chosen = sorted(numbers)[:MAX_NEW]
    letters: list[Letter] = []
    refused = 0
    told = client.fetch(chosen, ["BODYSTRUCTURE", "RFC822.SIZE", "INTERNALDATE"]) if chosen else {}
    for number in chosen:
        one = told.get(number)
        if one is None or one[b"RFC822.SIZE"] > MAX_MAIL_BYTES or not _has_calendar(one[b"BODYSTRUCTURE"]):
            continue
        data = client.fetch([number], ["BODY.PEEK[]"]).get(number, {}).get(b"BODY[]")
        if data is None:
            continue  # deleted since it was listed
        arrived = min(_aware(one[b"INTERNALDATE"]), now)
        try:
            objects = read_mail(data)
        except Refused:
            refused += 1
            continue
        letters += [Letter(found, arrived) for found in objects if found.object.method in _METHODS]
    last = max(chosen, default=position.uid)
    if not chosen and position.uid == 0:
        # An empty mailbox: what comes from now on is new, and the numbers before it are not.
        last = max(int(opened.get(b"UIDNEXT", 1)) - 1, 0)
    return Letters(letters, refused, Position(validity, last), len(numbers) > len(chosen))


def can_wait(client: IMAPClient) -> bool:
    """Whether the server tells by itself when something has come (IDLE)."""
    return bool(client.has_capability("IDLE"))


def wait_for_mail(client: IMAPClient, seconds: float) -> bool:
    """Wait until the server says that something has come; whether it did."""
    client.idle()
    try:
        return bool(client.idle_check(timeout=seconds))
    finally:
        client.idle_done()


def _has_calendar(structure: Any) -> bool:
    """Whether a message says that it has a calendar in it, in a part's type or in a file's name."""
    said = repr(structure).lower()
    return "'calendar'" in said or ".ics" in said or "'ics'" in said or "tnef" in said


def _aware(moment: datetime) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


@contextmanager
def _in_words(where: str, timeout: float) -> Iterator[None]:
    """Turn what goes wrong with a mail server into one sentence."""
    try:
        yield
    except LoginError as error:
        raise ServerTrouble(f"{where} refused the user name or the password.") from error
    except imaplib.IMAP4.error as error:
        said = " ".join(str(error).split())[:200]
        raise ServerTrouble(f"{where} did not do what it was asked: {said}.") from error
    except TimeoutError as error:
        raise ServerTrouble(f"{where} did not answer within {timeout:g} seconds.") from error
    except ssl.SSLError as error:
        raise ServerTrouble(f"{where} has a certificate that is not trusted, or does not speak TLS.") from error
    except OSError as error:
        if isinstance(error, ServerTrouble):
            raise
        raise ServerTrouble(f"{where} cannot be reached; check its name and whether it runs.") from error
