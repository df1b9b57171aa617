"""Ann, whose calendar is online, with a real assistant, a real ledger, and a simulated service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from kinfolk_assistant.delivery.accounts import Accounts
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.keys import Keys
from kinfolk_assistant.delivery.online.calendar import OnlineCalendar
from kinfolk_assistant.delivery.online.oauth import Granted
from kinfolk_assistant.delivery.routes import Routes
from kinfolk_assistant.delivery.smtp import MailServer
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.visiting import Visits
from tests.assistant.delivery.online.simulated import Simulated
from tests.assistant.service.world import ANN, BOSS, MONDAY, Clock

SLOT = MONDAY + timedelta(days=2)
STATUS = {
    "google": {"ask": "needsAction", "yes": "accepted", "no": "declined", "perhaps": "tentative"},
    "microsoft": {"ask": "notResponded", "yes": "accepted", "no": "declined", "perhaps": "tentativelyAccepted"},
}


class World(NamedTuple):
    name: str
    state: Simulated
    assistant: Assistant
    accounts: Accounts
    routes: Routes
    visits: Visits
    clock: Clock

    def visit(self) -> None:
        self.visits.visit_all()

    def calendar(self) -> OnlineCalendar:
        found = self.accounts.calendar(ANN)
        assert isinstance(found, OnlineCalendar)
        return found

    def inbox(self) -> list[str]:
        return [one.summary for one in self.assistant.inbox(ANN)]

    def event(self, id_: str, start: datetime = SLOT, **more: Any) -> dict[str, Any]:
        return event(self.name, id_, start, **more)

    def status(self, id_: str) -> str:
        """What the service has of Ann's answer."""
        one = self.state.events[id_]
        if self.name == "microsoft":
            return str(one["responseStatus"]["response"])
        return next(str(guest["responseStatus"]) for guest in one["attendees"] if guest.get("self"))

    def error(self) -> str:
        return self.assistant.settings(ANN).visit_error


def make_world(
    name: Any, state: Simulated, ledger: Ledger, keys: Keys, clock: Clock, smtp: MailServer | None = None
) -> World:
    state.clock = clock
    services = {name: state.service(name)}
    accounts = Accounts(Configuration("unused", smtp, services=services), ledger, keys)
    routes = Routes(accounts.configuration, accounts.calendar)
    assistant = Assistant(ledger, routes, clock, part=accounts.part)
    assistant.add_user(ANN)
    access, refresh = state.grant()
    assert accounts.connections is not None
    granted = Granted(access, refresh, 3600, ANN)
    accounts.connections.connect(ANN, services[name], granted, clock())
    state.asked.clear()
    return World(name, state, assistant, accounts, routes, Visits(assistant, accounts.calendars), clock)


def event(
    service: str,
    id_: str,
    start: datetime = SLOT,
    *,
    minutes: int = 60,
    answer: str = "ask",
    invited: bool = True,
    sequence: int = 0,
    updated: datetime = MONDAY - timedelta(hours=1),
    own: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """An event in the writing of a service: the boss invites Ann and Bob."""
    end = start + timedelta(minutes=minutes)
    organiser, status = (ANN if own else BOSS), STATUS[service][answer]
    if service == "google":
        guests = [
            {"email": "Bob@Example.org", "responseStatus": "accepted", "optional": True},
            {"email": ANN, "self": True, "responseStatus": status},
        ]
        written = {
            "id": id_,
            "iCalUID": f"{id_}@google.com",
            "status": "confirmed",
            "summary": f"Plans {id_}",
            "updated": f"{updated.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.000Z",
            "start": {"dateTime": start.isoformat()},
            "end": {"dateTime": end.isoformat()},
            "sequence": sequence,
            "organizer": {"email": organiser, "displayName": "The Boss"} | ({"self": True} if own else {}),
        }
        return written | ({"attendees": guests} if invited else {}) | more
    people = [
        {"type": kind, "status": {"response": answered}, "emailAddress": {"name": "x", "address": address}}
        for kind, answered, address in (("optional", "accepted", "Bob@Example.org"), ("required", "none", ANN.upper()))
    ]
    told = "%Y-%m-%dT%H:%M:%S.0000000"
    return {
        "id": id_,
        "iCalUId": f"{id_}@outlook",
        "type": "singleInstance",
        "subject": f"Plans {id_}",
        "lastModifiedDateTime": f"{updated.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.1234567Z",
        "start": {"dateTime": f"{start.astimezone(UTC):{told}}", "timeZone": "UTC"},
        "end": {"dateTime": f"{end.astimezone(UTC):{told}}", "timeZone": "UTC"},
        "isOrganizer": own,
        "isCancelled": False,
        "organizer": {"emailAddress": {"name": "The Boss", "address": organiser}},
        "attendees": people if invited else [],
        "responseStatus": {"response": status, "time": "0001-01-01T00:00:00Z"},
    } | more
