"""Every route and every method, asked by nobody, by another user, with a wrong token, and by whom it is for."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI
from sqlalchemy import select
from tests.assistant.web.client import Client
from tests.assistant.web.team import (
    ANN,
    BOB,
    PASSWORD,
    ClosedOutbox,
    StillClock,
    calendar,
    invite,
    make_assistant,
    requests_of,
)

from kinfolk_assistant.ledger.tables import Decision, Reply, Table
from kinfolk_assistant.ledger.tables import Session as SessionRow
from kinfolk_assistant.service.assistant import Assistant

COSTS = {"false_accept": "2", "false_decline": "3", "ask": "0.2"}
PAST = {
    "past": (
        "past.ics",
        calendar("own", "Old", datetime(2026, 10, 2, 8, tzinfo=UTC), 30, ANN, method=""),
        "text/calendar",
    )
}
CSV = {"table": ("people.csv", b"person,relation\nolga@example.org,peer\n", "text/csv")}


class Case(NamedTuple):
    """A route: who may use it, and a form with which its owner succeeds."""

    private: bool
    form: dict[str, str] = {}  # noqa: RUF012
    files: dict[str, Any] = {}  # noqa: RUF012


OPEN, PRIVATE = Case(False), Case(True)
ROUTES = {
    ("GET", "/sign-in"): OPEN,
    ("POST", "/sign-in"): OPEN,
    ("GET", "/about"): OPEN,
    ("GET", "/healthz"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/metrics"): OPEN,
    ("GET", "/answer/{token}"): OPEN,
    ("POST", "/answer/{token}"): OPEN,
    ("POST", "/sign-out"): PRIVATE,
    ("GET", "/"): PRIVATE,
    ("GET", "/requests/{number}"): PRIVATE,
    ("POST", "/requests/{number}/answer"): Case(True, {"answer": "decline"}),
    ("POST", "/requests/{number}/dismiss"): PRIVATE,
    ("POST", "/requests/{number}/undo"): PRIVATE,
    ("POST", "/confirm"): Case(True, {"prepared": "{prepared}"}),
    ("POST", "/requests/{number}/snooze"): Case(True, {"until": "2026-11-16T12:00"}),
    ("POST", "/requests/{number}/back"): PRIVATE,
    ("POST", "/requests/{number}/propose"): Case(True, {"start": "2026-11-18T12:00", "minutes": "30"}),
    ("GET", "/search"): PRIVATE,
    ("POST", "/replies/{number}/send-again"): PRIVATE,
    ("GET", "/people"): PRIVATE,
    ("GET", "/ledger"): PRIVATE,
    ("GET", "/score"): PRIVATE,
    ("GET", "/rules"): PRIVATE,
    ("POST", "/rules/add"): Case(True, {"verdict": "ask", "topic": "budget"}),
    ("POST", "/rules/{number}/remove"): PRIVATE,
    ("POST", "/rules/vetoes"): Case(True, {"vetoes": "night", "answers": "accept"}),
    ("GET", "/settings"): PRIVATE,
    ("POST", "/settings/preview"): Case(True, COSTS),
    ("POST", "/settings/costs"): Case(True, COSTS),
    ("POST", "/settings/automation"): Case(True, {"automation": "yes", "daily_cap": "3", "undo_minutes": "5"}),
    ("POST", "/settings/place"): Case(True, {"zone": "Europe/Paris", "places": "Hall"}),
    ("POST", "/settings/speech"): Case(True, {"language": "de", "clock": "12", "week_start": "6"}),
    ("POST", "/settings/digest"): Case(True, {"hour": "7"}),
    ("GET", "/accounts"): PRIVATE,
    ("POST", "/accounts/enter"): Case(True, {"kind": "imap", "url": "imaps://mail.example.org/INBOX"}),
    ("POST", "/accounts/remove"): Case(True, {"kind": "imap"}),
    ("POST", "/accounts/history"): Case(True, {}, PAST),
    ("POST", "/accounts/history-from-calendar"): PRIVATE,
    ("GET", "/accounts/connect/{service}"): PRIVATE,
    ("GET", "/accounts/connected"): PRIVATE,
    ("POST", "/accounts/disconnect"): PRIVATE,
    ("GET", "/admin"): PRIVATE,
    ("POST", "/admin/switch"): Case(True, {"to": "stop"}),
    ("POST", "/admin/user"): Case(True, {"do": "disable", "address": "{address}"}),
    ("POST", "/settings/contacts"): Case(True, {}, CSV),
    ("POST", "/settings/contacts/clear"): PRIVATE,
    ("POST", "/settings/agree"): PRIVATE,
    ("POST", "/settings/withdraw"): PRIVATE,
    ("POST", "/settings/password"): Case(True, {"current": PASSWORD, "new": "another password"}),
    ("POST", "/settings/erase"): Case(True, {"typed": "{address}"}),
}
GUARDED = [route for route, case in ROUTES.items() if case.private]
# Routes that need more than the tests' team has, with tests of their own (test_accounts, test_connecting, test_admin).
APART = (
    "/accounts/enter",
    "/accounts/history-from-calendar",
    "/accounts/connect/{service}",
    "/accounts/connected",
    "/accounts/disconnect",
    "/admin",
    "/admin/switch",
    "/admin/user",
)
COMMON = [route for route in GUARDED if route[1] not in APART]
READS_ONLY = {"/settings/preview", "/sign-out"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def routes_of(routes: Iterable[Any]) -> Iterable[tuple[str, str]]:
    for route in routes:
        if hasattr(route, "original_router"):
            yield from routes_of(route.original_router.routes)
        elif hasattr(route, "methods"):
            yield from ((method, route.path) for method in route.methods)
        else:
            yield "MOUNT", route.path


class Prepared(NamedTuple):
    """A ledger, and of Ann's things in it one that each route with a number can work on."""

    ledger: Path
    numbers: dict[str, int]


@pytest.fixture(scope="module")
def prepared(team_ledger: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    path = tmp_path_factory.mktemp("prepared") / "ledger.db"
    shutil.copy(team_ledger, path)
    assistant = make_assistant(str(path))
    numbers = prepare(assistant)
    assistant.ledger.close()
    return Prepared(path, numbers)


@pytest.fixture
def assistant(prepared: Prepared, tmp_path: Path, clock: StillClock) -> Iterator[Assistant]:
    path = tmp_path / "ledger.db"
    shutil.copy(prepared.ledger, path)
    assistant = make_assistant(str(path), clock)
    assistant.deliver = ClosedOutbox()
    yield assistant
    assistant.ledger.close()


@pytest.fixture
def numbers(prepared: Prepared) -> dict[str, int]:
    return prepared.numbers


def prepare(assistant: Assistant) -> dict[str, int]:
    assistant.change_settings(ANN, automation=True)
    automatic = invite(assistant, ANN, "automatic", "ann: Lunch", datetime(2026, 11, 19, 11, tzinfo=UTC))
    assistant.work(ANN)
    assistant.change_settings(ANN, automation=False)
    opened, other, put_away = requests_of(assistant, ANN)[:3]
    assistant.dismiss(ANN, put_away)
    assistant.answer(ANN, other, "accept")
    assistant.deliver = ClosedOutbox()
    assistant.work(ANN)
    assistant.add_rule(ANN, verdict="ask", topic="ann: secret")
    with assistant.ledger.read() as session:
        failed = session.scalars(select(Reply.id).where(Reply.request_id == other)).one()
    return {
        "/requests/{number}": opened,
        "/requests/{number}/answer": opened,
        "/requests/{number}/dismiss": opened,
        "/confirm": opened,
        "/requests/{number}/undo": automatic,
        "/requests/{number}/snooze": opened,
        "/requests/{number}/back": put_away,
        "/requests/{number}/propose": opened,
        "/replies/{number}/send-again": failed,
        "/rules/{number}/remove": assistant.rules(ANN)[0].id,
    }


def everything(assistant: Assistant, user: str | None = None) -> list[str]:
    """What the ledger holds, sessions left out; of one user, where one is named."""
    with assistant.ledger.read() as session:
        own = set(requests_of(assistant, user)) if user else set()
        found = []
        for table in Table.metadata.sorted_tables:
            if table.name in (SessionRow.__tablename__, "models", "askings", "leases"):
                continue
            for row in session.execute(select(table)).mappings():
                mine = user in (row.get("user"), row.get("address")) or row.get("request_id") in own
                # Whose answers helped is about others, and goes when they are erased.
                shown = {name: value for name, value in row.items() if name != "kin"}
                if user is None or mine:
                    found.append(f"{table.name} {shown}")
        return sorted(found)


def ask(client: Client, route: tuple[str, str], numbers: dict[str, int], address: str, token: str) -> Any:
    method, path = route
    case = ROUTES[route]
    path = path.replace("{number}", str(numbers.get(path, 0)))
    if method == "GET":
        return client.get(path)
    told = {"{address}": address, "{prepared}": f"{numbers['/confirm']}:accept"}
    form = {name: told.get(value, value) for name, value in case.form.items()}
    return client.ask("POST", path, data={"csrf": token, **form}, files=case.files or None)


def test_every_route_is_in_the_table(app: FastAPI) -> None:
    found = set(routes_of(app.routes))
    assert found == {*ROUTES, ("MOUNT", "/static")}


@pytest.mark.parametrize("path", sorted({path for _, path in ROUTES}))
def test_no_path_answers_to_another_method(app: FastAPI, path: str) -> None:
    ann = Client(app).enter(ANN)
    for method in METHODS:
        if (method, path) not in ROUTES:
            assert ann.ask(method, path.replace("{number}", "1")).status_code == 405, method


@pytest.mark.parametrize("route", GUARDED, ids=" ".join)
def test_nobody_is_sent_to_sign_in_and_changes_nothing(
    app: FastAPI, assistant: Assistant, numbers: dict[str, int], route: tuple[str, str]
) -> None:
    before = everything(assistant)
    response = ask(Client(app), route, numbers, ANN, "")
    if route[0] == "GET":
        assert response.status_code == 303
        assert response.headers["location"].startswith("/sign-in?then=/")
    else:
        assert response.status_code == 401
    assert "ann:" not in response.text
    assert everything(assistant) == before


@pytest.mark.parametrize("route", COMMON, ids=" ".join)
def test_another_user_neither_sees_nor_changes_ones_meetings(
    app: FastAPI, assistant: Assistant, numbers: dict[str, int], bob: Client, route: tuple[str, str]
) -> None:
    before = everything(assistant, ANN)
    response = ask(bob, route, numbers, BOB, bob.token)
    assert response.status_code == 404 if "{number}" in route[1] else response.status_code < 400
    assert "ann:" not in response.text
    assert f"Secret past of {ANN}" not in response.text
    assert everything(assistant, ANN) == before


@pytest.mark.parametrize("route", [route for route in GUARDED if route[0] == "POST"], ids=" ".join)
@pytest.mark.parametrize("token", ["", "wrong", "of bob"])
def test_a_post_without_the_sessions_own_token_changes_nothing(
    app: FastAPI,
    assistant: Assistant,
    numbers: dict[str, int],
    ann: Client,
    bob: Client,
    route: tuple[str, str],
    token: str,
) -> None:
    before = everything(assistant)
    response = ask(ann, route, numbers, ANN, bob.token if token == "of bob" else token)
    assert response.status_code == 403
    assert everything(assistant) == before
    assert ann.get("/").status_code == 200


@pytest.mark.parametrize("route", COMMON, ids=" ".join)
def test_the_owner_succeeds_with_the_same_request(
    app: FastAPI, assistant: Assistant, numbers: dict[str, int], ann: Client, route: tuple[str, str]
) -> None:
    if route[1] == "/settings/agree":
        assistant.withdraw(ANN)
    if route[1] == "/settings/contacts/clear":
        ask(ann, ("POST", "/settings/contacts"), numbers, ANN, ann.token)
    before = everything(assistant)
    assert ask(ann, route, numbers, ANN, ann.token).status_code in (200, 303)
    assert (everything(assistant) != before) == (route[0] == "POST" and route[1] not in READS_ONLY)


def test_kin_of_a_decision_are_named_only_while_they_agree(
    assistant: Assistant, ann: Client, numbers: dict[str, int]
) -> None:
    page = f"/requests/{numbers['/requests/{number}']}"
    assert "Bob Byrne" in ann.get(page).text
    with assistant.ledger.read() as session:
        assert any(one["user"] == BOB for kin in session.scalars(select(Decision.kin)) for one in kin)
    assistant.withdraw(BOB)
    assert "Bob Byrne" not in ann.get(page).text
