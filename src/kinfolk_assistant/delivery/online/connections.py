"""Calendars that users have connected: their refresh tokens kept sealed, renewed, and given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from threading import Lock

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kinfolk_assistant.delivery.keys import Keys
from kinfolk_assistant.delivery.online.api import Access, WebApi
from kinfolk_assistant.delivery.online.calendar import OnlineCalendar
from kinfolk_assistant.delivery.online.google import GoogleCalendar
from kinfolk_assistant.delivery.online.microsoft import MicrosoftCalendar
from kinfolk_assistant.delivery.online.oauth import Granted, NotGranted, renew, revoke
from kinfolk_assistant.delivery.online.service import Service
from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Connection
from kinfolk_assistant.ledger.users import aliases_of, lock_user

_CALENDARS: dict[str, type[GoogleCalendar | MicrosoftCalendar]] = {
    "google": GoogleCalendar,
    "microsoft": MicrosoftCalendar,
}


class Connections:
    """The connected calendars as they are at each moment.

    Parameters
    ----------
    ledger : Ledger
        Where they are kept.
    keys : Keys
        By which refresh tokens are sealed; access tokens are kept nowhere but in memory.
    services : callable
        Gives the services that the settings name, by name.
    """

    def __init__(self, ledger: Ledger, keys: Keys, services: Callable[[], Mapping[str, Service]]) -> None:
        self._ledger = ledger
        self._keys = keys
        self._services = services
        self._lock = Lock()
        self._access: dict[tuple[str, str, datetime], Access] = {}

    def calendars(self, user: str | None = None) -> dict[str, OnlineCalendar]:
        """Give the connected calendars, by user."""
        query = select(Connection) if user is None else select(Connection).where(Connection.user == user)
        with self._ledger.read() as session:
            kept = list(session.scalars(query.order_by(Connection.user)))
        services = self._services()
        return {one.user: self._calendar(one, services[one.service]) for one in kept if one.service in services}

    def connect(self, user: str, service: Service, granted: Granted, now: datetime) -> None:
        """Keep what a service has granted to a user, in the place of what was connected before.

        Raises
        ------
        NotGranted
            With one sentence, where the account is not one of the user's own.
        ServerTrouble
            Where the service does not say whose it is.
        """
        account = granted.account
        if service.name == "microsoft":
            account = MicrosoftCalendar(WebApi(service, Access(lambda: granted)), "").whose()
        with self._ledger.read() as session:
            own = {user, *aliases_of(session, user)}
        if account not in own:
            revoke(service, granted.refresh_token)
            raise NotGranted(
                f"The account at {service.title} is that of {account or 'nobody who is known'}, which is none of your "
                "addresses here; choose your own, or ask your administrator to add this address."
            )
        self.disconnect(user, now, told=False)
        with self._ledger.begin() as session:
            owner = lock_user(session, user)
            session.add(
                Connection(
                    user=owner.address,
                    service=service.name,
                    account=account,
                    sealed=self._keys.seal(_name(owner.address, service.name), granted.refresh_token),
                    made_at=now,
                )
            )
            tell(session, owner.address, now, "user", "account", f"You connected your calendar at {service.title}.")

    def disconnect(self, user: str, now: datetime, *, told: bool = True) -> bool:
        """Have the service forget what it granted, and forget it here; whether there was something to forget.

        It is forgotten here whatever the service says.
        """
        with self._ledger.read() as session:
            kept = session.get(Connection, user)
        if kept is None:
            return False
        service = self._services().get(kept.service)
        if service is not None:
            with suppress(ValueError):  # sealed by a key that is gone: nobody can use it any more
                revoke(service, self._keys.unseal(_name(kept.user, kept.service), kept.sealed))
        with self._ledger.begin() as session:
            owner = lock_user(session, user)
            session.execute(delete(Connection).where(Connection.user == owner.address))
            if told:
                title = service.title if service is not None else kept.service
                text = f"You disconnected your calendar at {title}."
                tell(session, owner.address, now, "user", "account", text)
        return True

    def _calendar(self, kept: Connection, service: Service) -> OnlineCalendar:
        # A connection that was made anew has a moment of its own, so that nothing of the one before is used.
        key = (kept.user, kept.service, kept.made_at)
        with self._lock:
            if key not in self._access:
                for old in [one for one in self._access if one[0] == kept.user]:
                    del self._access[old]
                self._access[key] = Access(lambda: self._renew(kept.user, service))
            access = self._access[key]
        return _CALENDARS[kept.service](WebApi(service, access), kept.account)

    def _renew(self, user: str, service: Service) -> Granted:
        """Give new tokens; a refresh token that the service has replaced is kept, one that it refuses is marked so."""
        with self._ledger.read() as session:
            kept = session.get(Connection, user)
        if kept is None or kept.service != service.name:
            raise NotGranted(f"Your calendar at {service.title} is no longer connected.")
        if kept.broken:
            raise NotGranted(kept.broken)
        name = _name(user, service.name)
        try:
            old = self._keys.unseal(name, kept.sealed)
        except ValueError as error:
            raise NotGranted(f"{error} Connect {service.title} again.") from None
        try:
            granted = renew(service, old)
        except NotGranted as error:
            self._change(kept, broken=str(error))
            raise
        if granted.refresh_token != old:
            self._change(kept, sealed=self._keys.seal(name, granted.refresh_token))
        return granted

    def _change(self, kept: Connection, **fields: str) -> None:
        with self._ledger.begin() as session:
            lock_user(session, kept.user)
            now = session.get(Connection, kept.user)
            # It may have been made anew meanwhile.
            if now is not None and now.made_at == kept.made_at:
                for field, value in fields.items():
                    setattr(now, field, value)


def seal_connections_anew(session: Session, keys: Keys) -> int:
    """Seal all refresh tokens by the first key; how many there are."""
    kept = list(session.scalars(select(Connection)))
    for one in kept:
        name = _name(one.user, one.service)
        one.sealed = keys.seal(name, keys.unseal(name, one.sealed))
    return len(kept)


def _name(user: str, service: str) -> str:
    return f"{user} {service}"
