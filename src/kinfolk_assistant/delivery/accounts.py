"""All accounts of all users: those of the settings file, and those that users have entered or connected on the page.

A password that was entered on the page is kept sealed (see `kinfolk_assistant.delivery.keys`), and opened only to sign
in. Where both are there, the user's own counts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatch
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.imap_mailbox import Mailbox
from kinfolk_assistant.delivery.keys import Keys
from kinfolk_assistant.delivery.online.calendar import OnlineCalendar
from kinfolk_assistant.delivery.online.connections import Connections, seal_connections_anew
from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Account, Position
from kinfolk_assistant.ledger.users import lock_user

Kind = Literal["caldav", "imap"]
_LONGEST = 1000


class Accounts:
    """The accounts as they are at each moment.

    Parameters
    ----------
    configuration : Configuration
        What the settings file says; may be replaced while the server runs.
    ledger : Ledger, optional
        Where the users' own accounts are.
    keys : Keys, optional
        By which their passwords are sealed.
    """

    def __init__(self, configuration: Configuration, ledger: Ledger | None = None, keys: Keys | None = None) -> None:
        self.configuration = configuration
        self._ledger = ledger
        self._keys = keys
        self.connections = (
            None if ledger is None or keys is None else Connections(ledger, keys, lambda: self.configuration.services)
        )

    def calendars(self) -> dict[str, CalDAVAccount | OnlineCalendar]:
        """Give the calendar accounts, by user."""
        own = {one.user: self._calendar(one) for one in self._entered("caldav")}
        connected = {} if self.connections is None else self.connections.calendars()
        return {**self.configuration.accounts, **own, **connected}

    def calendar(self, user: str) -> CalDAVAccount | OnlineCalendar | None:
        """Give one user's calendar account."""
        connected = {} if self.connections is None else self.connections.calendars(user)
        if user in connected:
            return connected[user]
        own = self._entered("caldav", user)
        return self._calendar(own[0]) if own else self.configuration.accounts.get(user)

    def part(self, user: str) -> None:
        """Have services forget a user who is about to be erased."""
        if self.connections is not None:
            self.connections.disconnect(user, datetime.now(UTC), told=False)

    def mailboxes(self) -> dict[str, Mailbox]:
        """Give the mailboxes, by user."""
        own = {
            one.user: Mailbox.from_url(one.url, one.name, self._open(one), self.configuration.certificate)
            for one in self._entered("imap")
        }
        return {**self.configuration.mailboxes, **own}

    def _calendar(self, one: Account) -> CalDAVAccount:
        return CalDAVAccount(one.url, one.name, self._open(one), certificate=self.configuration.certificate)

    def _open(self, one: Account) -> str:
        assert self._keys is not None
        return self._keys.unseal(f"{one.user} {one.kind}", one.sealed)

    def _entered(self, kind: Kind, user: str | None = None) -> list[Account]:
        if self._ledger is None or self._keys is None:
            return []
        query = select(Account).where(Account.kind == kind)
        query = query if user is None else query.where(Account.user == user)
        with self._ledger.read() as session:
            return list(session.scalars(query.order_by(Account.user)))


class Entered(NamedTuple):
    """An account as a user has entered it."""

    kind: Kind
    url: str
    name: str
    password: str


def check_account(entered: Entered, hosts: tuple[str, ...]) -> Entered:
    """Give an account that can be one, without blanks around what was entered.

    Only servers that the administrator names (``hosts``) may be entered: the assistant must not be a way to reach
    others from within.

    Raises
    ------
    ValueError
        With one sentence, where it cannot be an account.
    """
    kind, password = entered.kind, entered.password
    url, name = entered.url.strip()[:_LONGEST], entered.name.strip()[:_LONGEST]
    parts = urlsplit(url)
    if kind == "imap":
        Mailbox.from_url(url, name, password)
    elif parts.scheme != "https" or not parts.hostname or parts.username or parts.password:
        raise ValueError(f"{url[:80]!r} is no calendar server; its address begins with https:// and a host.")
    if parts.scheme not in ("https", "imaps", "imap"):
        raise ValueError("The password would travel in the clear: give imaps:// or https://.")
    host = (parts.hostname or "").lower()
    if not any(fnmatch(host, one) for one in hosts):
        allowed = ", ".join(hosts) or "none"
        raise ValueError(f"{host[:80]!r} is not one of the servers that the administrator allows: {allowed}.")
    if not name or not password or len(password) > _LONGEST:
        raise ValueError("A user name and a password are needed.")
    return Entered(kind, url, name, password)


def keep_account(session: Session, keys: Keys, address: str, entered: Entered, now: datetime) -> None:
    """Keep an account that was checked, in the place of the one before."""
    kind, url, name, password = entered
    user = lock_user(session, address)
    forget_account(session, address, kind, now=now, told=False)
    sealed = keys.seal(f"{user.address} {kind}", password)
    session.add(Account(user=user.address, kind=kind, url=url, name=name, sealed=sealed, made_at=now))
    what = "mailbox" if kind == "imap" else "calendar"
    tell(session, user.address, now, "user", "account", f"You entered a password for your {what}.")


def forget_account(session: Session, address: str, kind: Kind, *, now: datetime, told: bool = True) -> None:
    """Delete an account that a user has entered, with its password."""
    user = lock_user(session, address)
    session.execute(delete(Account).where(Account.user == user.address, Account.kind == kind))
    if kind == "imap":
        session.execute(delete(Position).where(Position.user == user.address))
    if told:
        what = "mailbox" if kind == "imap" else "calendar"
        tell(session, user.address, now, "user", "account", f"You removed the password for your {what}.")


def seal_anew(session: Session, keys: Keys) -> int:
    """Seal all stored passwords by the first key; how many there are."""
    accounts = list(session.scalars(select(Account)))
    for one in accounts:
        name = f"{one.user} {one.kind}"
        one.sealed = keys.seal(name, keys.unseal(name, one.sealed))
    return len(accounts) + seal_connections_anew(session, keys)
