"""Connecting a calendar at Google or Microsoft 365 on the page of accounts, at a service that checks what it hears."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.assistant.delivery.online.simulated import Said, Simulated, simulated
from tests.assistant.delivery.online.world import event
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, BOB, NOW, StillClock

pytest.importorskip("authlib", reason="authlib is not installed: the extra oidc")

from kinfolk_assistant.delivery.accounts import Accounts, Entered, keep_account
from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.keys import Keys, read_keys
from kinfolk_assistant.delivery.online.google import GoogleCalendar
from kinfolk_assistant.ledger.tables import Connection
from kinfolk_assistant.ledger.users import set_aliases
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.visiting import Visits
from kinfolk_assistant.web.app import make_app

TITLES = {"google": "Google", "microsoft": "Microsoft 365"}
NAMES: Any = pytest.mark.parametrize("name", TITLES)


@pytest.fixture
def state(clock: StillClock) -> Iterator[Simulated]:
    with simulated(ANN) as one:
        one.clock = clock
        yield one


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return read_keys(tmp_path / "key")


@pytest.fixture
def accounts(assistant: Assistant, keys: Keys, state: Simulated) -> Accounts:
    services = {"google": state.service("google"), "microsoft": state.service("microsoft")}
    accounts = Accounts(Configuration("unused", services=services), assistant.ledger, keys)
    assistant._part = accounts.part
    return accounts


@pytest.fixture
def visitor(assistant: Assistant, accounts: Accounts, keys: Keys) -> Client:
    return Client(make_app(assistant, secure_cookies=False, keys=keys, accounts=accounts)).enter(ANN)


def at_service(visitor: Client, name: str) -> str:
    """Go to a service and agree there; the path to which it sends the browser back."""
    sent = visitor.get(f"/accounts/connect/{name}")
    assert sent.status_code == 303
    back = httpx.get(sent.headers["location"])
    assert back.headers["location"].startswith("http://kin.test/accounts/connected?")
    return str(back.headers["location"].removeprefix("http://kin.test"))


def connection(assistant: Assistant, user: str = ANN) -> Connection | None:
    with assistant.ledger.read() as session:
        return session.get(Connection, user)


@NAMES
def test_whoever_agrees_there_has_the_calendar_connected_and_read(
    visitor: Client, assistant: Assistant, accounts: Accounts, state: Simulated, name: str
) -> None:
    assert f"Connect {TITLES[name]}" in visitor.get("/accounts").text
    assert visitor.get(at_service(visitor, name)).headers["location"] == "/accounts?did=connected"
    page = visitor.get("/accounts?did=connected").text
    assert "Your calendar is connected" in page
    assert "Disconnect" in page
    state.put(event(name, "online", NOW.replace(day=20), updated=NOW))
    Visits(assistant, accounts.calendars).visit(ANN, accounts.calendars()[ANN])
    assert "Plans online" in visitor.get("/").text
    learnt = visitor.post("/accounts/history-from-calendar")
    assert "past invitations" in learnt.text


@NAMES
def test_no_more_is_asked_for_than_the_own_calendar(visitor: Client, name: str) -> None:
    asked = parse_qs(urlsplit(visitor.get(f"/accounts/connect/{name}").headers["location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["response_type"] == ["code"]
    scopes = set(asked["scope"][0].split())
    assert (
        scopes
        == {
            "google": {"openid", "email", "https://www.googleapis.com/auth/calendar.events.owned"},
            "microsoft": {"offline_access", "https://graph.microsoft.com/Calendars.ReadWrite"},
        }[name]
    )


@NAMES
def test_a_way_back_opens_once_and_only_in_the_session_that_began(
    visitor: Client, assistant: Assistant, accounts: Accounts, keys: Keys, name: str
) -> None:
    path = at_service(visitor, name)
    other = Client(make_app(assistant, secure_cookies=False, keys=keys, accounts=accounts)).enter(BOB)
    assert other.get(path).status_code == 400
    begun = visitor.cookies.get("kinfolk-connect")
    assert begun
    # The same browser, with a new session of the same user, and with one of somebody else.
    for who in (ANN, BOB):
        visitor.enter(who)
        visitor.cookies.set("kinfolk-connect", begun)
        assert visitor.get(path).status_code == 400
    assert connection(assistant) is None
    assert connection(assistant, BOB) is None
    visitor.enter(ANN)
    path = at_service(visitor, name)
    assert visitor.get(path.replace("state=", "state=x")).status_code == 400
    path = at_service(visitor, name)
    assert visitor.get(path).status_code == 303
    assert visitor.get(path).status_code == 400


@NAMES
def test_the_calendar_of_somebody_else_is_not_connected(
    visitor: Client, assistant: Assistant, state: Simulated, name: str
) -> None:
    state.account = "eve@example.org"
    page = visitor.get(at_service(visitor, name))
    assert page.status_code == 400
    assert "eve@example.org, which is none of your addresses" in page.text
    assert connection(assistant) is None
    with assistant.ledger.begin() as session:
        set_aliases(session, ANN, ["eve@example.org"])
    assert visitor.get(at_service(visitor, name)).status_code == 303


@NAMES
def test_whoever_allows_less_is_told_so(visitor: Client, assistant: Assistant, state: Simulated, name: str) -> None:
    state.scope = "openid email"
    page = visitor.get(at_service(visitor, name))
    assert "was not allowed to show your calendar" in page.text
    assert connection(assistant) is None


@NAMES
def test_whoever_says_no_there_changes_nothing(visitor: Client, assistant: Assistant, name: str) -> None:
    path = at_service(visitor, name)
    [state_] = parse_qs(urlsplit(path).query)["state"]
    page = visitor.get(f"/accounts/connected?error=access_denied&state={state_}")
    assert page.status_code == 400
    assert "nothing was changed" in page.text
    assert connection(assistant) is None


@NAMES
def test_disconnecting_deletes_the_token_and_has_the_service_forget_it(
    visitor: Client, assistant: Assistant, accounts: Accounts, state: Simulated, name: str
) -> None:
    visitor.get(at_service(visitor, name))
    [refresh] = state.refresh
    assert visitor.ask("POST", "/accounts/disconnect").status_code == 403
    assert connection(assistant) is not None
    assert visitor.post("/accounts/disconnect").status_code == 303
    assert connection(assistant) is None
    assert state.revoked == ([refresh] if name == "google" else [])
    assert accounts.calendars() == {}


def test_an_erased_user_has_the_service_forget_them(visitor: Client, state: Simulated) -> None:
    visitor.get(at_service(visitor, "google"))
    [refresh] = state.refresh
    visitor.post("/settings/erase", {"typed": ANN})
    assert state.revoked == [refresh]


@NAMES
def test_a_connection_that_was_taken_back_is_told_on_the_page_and_made_anew_there(
    visitor: Client, assistant: Assistant, accounts: Accounts, state: Simulated, name: str
) -> None:
    visitor.get(at_service(visitor, name))
    state.refresh.clear()
    visits = Visits(assistant, accounts.calendars)
    visits.visit_all()
    page = visitor.get("/accounts").text
    assert f"{TITLES[name]} no longer lets the assistant in" in page
    assert f"/accounts/connect/{name}" in page
    assert visitor.get(at_service(visitor, name)).status_code == 303
    visits.visit_all()
    visits._visitors.shutdown()
    assert "no longer lets" not in visitor.get("/accounts").text
    assert assistant.settings(ANN).visit_error == ""


def test_a_service_that_does_not_say_whose_it_is_connects_nothing(
    visitor: Client, assistant: Assistant, state: Simulated
) -> None:
    path = at_service(visitor, "microsoft")
    state.misbehave = lambda asked: Said(503) if asked.path.endswith("/me/calendar") else None
    assert visitor.get(path).status_code == 400
    assert connection(assistant) is None


def test_what_the_settings_do_not_name_cannot_be_connected(
    visitor: Client, accounts: Accounts, assistant: Assistant
) -> None:
    accounts.configuration = replace(accounts.configuration, services={})
    assert "Connect Google" not in visitor.get("/accounts").text
    assert visitor.get("/accounts/connect/google").status_code == 404
    assert visitor.get("/accounts/connect/evil").status_code in (400, 404)
    plain = Client(make_app(assistant, secure_cookies=False)).enter(ANN)
    assert plain.get("/accounts/connect/google").status_code == 404
    assert Client(make_app(assistant, secure_cookies=False)).get("/accounts/connect/google").status_code == 303


def test_a_connected_calendar_stands_in_the_place_of_an_entered_one_and_the_page_says_so(
    visitor: Client, assistant: Assistant, accounts: Accounts, keys: Keys
) -> None:
    entered = Entered("caldav", "https://dav.example.org/", "ann", "x")
    with assistant.ledger.begin() as session:
        keep_account(session, keys, ANN, entered, NOW)
    assert isinstance(accounts.calendar(ANN), CalDAVAccount)
    assert "this one is not used" not in visitor.get("/accounts").text
    visitor.get(at_service(visitor, "google"))
    assert "this one is not used" in visitor.get("/accounts").text
    assert isinstance(accounts.calendar(ANN), GoogleCalendar)
    assert isinstance(accounts.calendars()[ANN], GoogleCalendar)


def test_the_page_speaks_german_of_what_can_be_connected(visitor: Client) -> None:
    page = visitor.get("/accounts", headers={"accept-language": "de"}).text
    assert "Microsoft 365 verbinden" in page
    assert "Hauptkalender" in page
