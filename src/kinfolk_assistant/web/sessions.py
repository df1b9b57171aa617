"""Who is signed in: sessions kept in the ledger, of whose tokens only a hash is stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import NamedTuple

from sqlalchemy import delete, select

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Session, User

LIFETIME = timedelta(days=7)


class Visitor(NamedTuple):
    """The user whom a request to the pages comes from, and the token that their forms must carry."""

    address: str
    name: str
    zone: str
    csrf: str
    language: str = ""
    """What they have chosen; "" where their browser is to say."""
    clock: str = "24"
    week_start: int = 0


class Sessions:
    """The sessions of one ledger.

    Parameters
    ----------
    ledger : Ledger
        Where they are kept.
    clock : callable
        Gives the moment it is.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._clock = clock

    def start(self, address: str, old_token: str = "") -> str:
        """Begin a session and give its token; an older session of the same browser ends."""
        token = token_urlsafe(32)
        now = self._clock()
        with self._ledger.begin() as session:
            session.execute(
                delete(Session).where((Session.token_hash == _hash(old_token)) | (Session.expires_at <= now))
            )
            session.add(
                Session(token_hash=_hash(token), user=address, csrf=token_urlsafe(32), expires_at=now + LIFETIME)
            )
        return token

    def find(self, token: str) -> Visitor | None:
        """Give the user of a session that has not ended."""
        if not token:
            return None
        with self._ledger.read() as session:
            found = session.execute(
                select(User.address, User.name, User.zone, Session.csrf, User.language, User.clock, User.week_start)
                .join(Session, Session.user == User.address)
                .where(Session.token_hash == _hash(token), Session.expires_at > self._clock())
                .where(User.disabled_at.is_(None))
            ).first()
        return Visitor(*found) if found else None

    def end(self, token: str) -> None:
        """End one session."""
        with self._ledger.begin() as session:
            session.execute(delete(Session).where(Session.token_hash == _hash(token)))

    def end_others(self, address: str, token: str) -> None:
        """End every session of a user but one."""
        with self._ledger.begin() as session:
            session.execute(delete(Session).where(Session.user == address, Session.token_hash != _hash(token)))

    def person(self, address: str, csrf: str) -> Visitor | None:
        """Give a user who was signed in elsewhere, with the token that their forms must carry."""
        with self._ledger.read() as session:
            found = session.scalars(
                select(User).where(User.address == address, User.disabled_at.is_(None))
            ).one_or_none()
        if found is None:
            return None
        return Visitor(found.address, found.name, found.zone, csrf, found.language, found.clock, found.week_start)


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
