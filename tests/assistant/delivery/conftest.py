"""Servers that the tests of this folder share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from caldav.davclient import DAVClient
from caldav.elements import cdav, dav
from icalendar import Calendar

from kinfolk_assistant.delivery.caldav_server import Arrived, CalDAVAccount
from kinfolk_assistant.delivery.deliverer import Outgoing
from tests.assistant.delivery import calendars
from tests.assistant.delivery.servers import Gate, password_of, running_gate, running_xandikos

_NUMBERS = itertools.count()


class Office(NamedTuple):
    """A CalDAV server on which Ann and Bob have calendars, inboxes and addresses that no other test uses."""

    gate: Gate
    ann: CalDAVAccount
    bob: CalDAVAccount

    def address(self, who: str) -> str:
        return f"{getattr(self, who).username}@example.org"

    def meeting(self, **more: object) -> str:
        return calendars.meeting(ann=self.address("ann"), bob=self.address("bob"), **more)  # type: ignore[arg-type]

    def put(self, who: str, text: str, name: str = "meeting.ics") -> None:
        """Store something in somebody's calendar as their own program would."""
        account = getattr(self, who)
        with client(self.gate, account.username) as dav_client:
            url = f"{dav_client.get_principal().get_calendars()[0].url}{name}"
            response = dav_client.put(url, text, {"Content-Type": "text/calendar; charset=utf-8"})
        assert response.status in (201, 204), response.raw

    def invite(self, **more: object) -> Arrived:
        """Have Ann invite Bob, and give what lies in Bob's inbox."""
        return self.invite_with(self.meeting(**more))

    def invite_with(self, text: str) -> Arrived:
        self.put("ann", text)
        [arrived] = self.bob.inbox()
        return arrived

    def answer(self, answer: str, **more: object) -> Outgoing:
        return calendars.outgoing(answer, ann=self.address("ann"), bob=self.address("bob"), **more)  # type: ignore[arg-type]

    def copy(self, who: str) -> str:
        """Somebody's copy of the one meeting in their calendar."""
        [stored] = getattr(self, who).events()
        return str(stored.text)

    def bobs_answer(self, where: str) -> str:
        """What the copy in somebody's calendar says of Bob, by another reader than the assistant's own."""
        people = Calendar.from_ical(self.copy(where)).events[0].get("ATTENDEE")
        [bob] = [one for one in people if str(one) == f"mailto:{self.address('bob')}"]
        return str(bob.params["PARTSTAT"])


def client(gate: Gate, name: str) -> DAVClient:
    return DAVClient(url=gate.url, username=name, password=password_of(name), timeout=20, enable_rfc6764=False)


def account(gate: Gate, name: str, **more: float) -> CalDAVAccount:
    return CalDAVAccount(gate.url, name, password_of(name), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def xandikos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running_xandikos(tmp_path_factory.mktemp("xandikos")) as port:
        yield port


@pytest.fixture
def office(xandikos: int) -> Iterator[Office]:
    with running_gate(xandikos) as gate:
        number = next(_NUMBERS)
        ann, bob = f"ann{number}", f"bob{number}"
        for name in (ann, bob):
            with client(gate, name) as dav_client:
                # The server makes a principal when it is first asked for it, and learns its address afterwards.
                principal = dav_client.get_principal()
                address = dav.Href(value=f"mailto:{name}@example.org")
                principal.set_properties([cdav.CalendarUserAddressSet() + address])
        gate.seen.clear()
        yield Office(gate, account(gate, ann), account(gate, bob))


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate with nothing behind it."""
    with running_gate(1) as one:
        yield one
