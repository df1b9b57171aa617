"""Users in the ledger: made, found, and locked while one of their requests is worked on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.tables import Alias, User


class NotYours(LookupError):
    """Something that does not exist, or belongs to another user: nobody is told which."""


def make_user(
    session: Session, address: str, *, name: str = "", zone: str = "UTC", now: datetime | None = None
) -> User:
    """Make a user, or give the one there is.

    Raises
    ------
    ValueError
        If the address is none, or the time zone is not known.
    """
    address = mail_address(address)
    user = session.get(User, address)
    if user is None:
        user = User(address=address, name=name, zone=known_zone(zone).key, made_at=now or datetime.now(UTC))
        session.add(user)
        session.flush()
    return user


def mail_address(given: str) -> str:
    """Give an address in the form in which users are known by it.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> mail_address(" mailto:Ann@Example.org")
    'ann@example.org'
    """
    address = given.strip().lower().removeprefix("mailto:")
    if not 3 <= len(address) <= 320 or "@" not in address or any(sign.isspace() for sign in address):
        raise ValueError(f"The address {address!r} is not a mail address.")
    return address


def aliases_of(session: Session, user: str) -> list[str]:
    """Give a user's other addresses."""
    return list(session.scalars(select(Alias.address).where(Alias.user == user).order_by(Alias.address)))


def main_address(session: Session, address: str) -> str:
    """Give the main address of the user whose other address this is; the address itself where it is nobody's."""
    alias = session.get(Alias, address.lower())
    return address if alias is None else alias.user


def set_aliases(session: Session, user: str, addresses: Iterable[str]) -> None:
    """Give a user these other addresses, and no more.

    Raises
    ------
    ValueError
        If one is no address, or is somebody else's.
    """
    wanted = sorted({mail_address(one) for one in addresses} - {user})
    for address in wanted:
        alias = session.get(Alias, address)
        if session.get(User, address) is not None or (alias is not None and alias.user != user):
            raise ValueError(f"The address {address} is that of another user.")
    session.execute(delete(Alias).where(Alias.user == user))
    session.add_all([Alias(address=address, user=user) for address in wanted])
    session.flush()


def find_user(session: Session, address: str) -> User:
    """Give a user.

    Raises
    ------
    NotYours
        If there is none.
    """
    user = session.get(User, address.lower())
    if user is None:
        raise NotYours(f"There is no user {address!r}.")
    return user


def lock_user(session: Session, address: str) -> User:
    """Give a user whose rows nobody else changes until the transaction ends.

    On SQLite every writing transaction is alone already; on PostgreSQL the user's row is the lock, of the kind that
    lets others refer to the row, so that the user can sign in meanwhile.
    """
    query = select(User).where(User.address == address.lower()).with_for_update(key_share=True)
    user = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if user is None:
        raise NotYours(f"There is no user {address!r}.")
    return user


def known_zone(name: str) -> ZoneInfo:
    """Give a time zone by its name.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"The time zone {name!r} is not known; give one such as Europe/Berlin.") from None
