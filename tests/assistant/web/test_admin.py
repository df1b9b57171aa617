"""The administrator's page: for those whom the settings name, and for nobody else."""

from __future__ import annotations

import pytest
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, BOB

from kinfolk_assistant.delivery.accounts import Accounts
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotYours
from kinfolk_assistant.service.operating import is_stopped
from kinfolk_assistant.web.app import make_app


def enter(assistant: Assistant, user: str) -> Client:
    accounts = Accounts(Configuration("unused", admins=frozenset([ANN])))
    return Client(make_app(assistant, secure_cookies=False, accounts=accounts)).enter(user)


def stopped(assistant: Assistant) -> bool:
    with assistant.ledger.read() as session:
        return is_stopped(session)


def test_an_administrator_sees_users_and_nothing_of_their_meetings(assistant: Assistant) -> None:
    page = enter(assistant, ANN).get("/admin").text
    assert BOB in page
    assert "bob: " not in page
    assert "Administration" in enter(assistant, ANN).get("/").text


def test_nobody_else_sees_it_or_can_do_anything_there(assistant: Assistant) -> None:
    bob = enter(assistant, BOB)
    assert bob.get("/admin").status_code == 404
    assert bob.post("/admin/switch", {"to": "stop"}).status_code == 404
    assert bob.post("/admin/user", {"do": "erase", "address": ANN, "typed": ANN}).status_code == 404
    assert not stopped(assistant)
    assert assistant.settings(ANN).disabled_at is None
    assert "/admin" not in bob.get("/").text


def test_one_switch_stops_everything_and_lets_it_go_on(assistant: Assistant) -> None:
    ann = enter(assistant, ANN)
    ann.post("/admin/switch", {"to": "stop"})
    assert stopped(assistant)
    ann.post("/admin/switch", {"to": "resume"})
    assert not stopped(assistant)


def test_users_are_shut_out_let_in_and_erased_once_their_address_is_typed(assistant: Assistant) -> None:
    ann, bob = enter(assistant, ANN), enter(assistant, BOB)
    ann.post("/admin/user", {"do": "disable", "address": BOB})
    assert bob.get("/").status_code == 303
    ann.post("/admin/user", {"do": "enable", "address": BOB})
    assert assistant.settings(BOB).disabled_at is None
    assert ann.post("/admin/user", {"do": "erase", "address": BOB, "typed": "bob"}).status_code == 400
    assert assistant.settings(BOB)
    ann.post("/admin/user", {"do": "erase", "address": BOB, "typed": BOB})
    with pytest.raises(NotYours):
        assistant.settings(BOB)
