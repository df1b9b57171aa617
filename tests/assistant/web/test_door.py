"""Who comes in: real clients behind proxies, guarded header sign-in, names, HTTPS, many at once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.assistant.web.client import Client, token_in
from tests.assistant.web.team import ANN, BOB, PASSWORD

from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web import passwords
from kinfolk_assistant.web.app import make_app
from kinfolk_assistant.web.attempts import FREE_TRIES_OF_A_CLIENT

PROXY = "127.0.0.1"


def try_in(client: Client, address: str, password: str, forwarded: str = "") -> int:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    form = client.get("/sign-in")
    given = {"address": address, "password": password, "csrf": token_in(form)}
    return client.ask("POST", "/sign-in", data=given, headers=headers).status_code


def test_somebody_behind_the_proxy_who_guesses_locks_out_nobody_else(app: FastAPI) -> None:
    app.state.doorkeeper.attempts._time = lambda: 0.0
    guesser, ann = Client(app, PROXY), Client(app, PROXY)
    tried = [try_in(guesser, f"x{n}@example.org", "wrong", "203.0.113.9") for n in range(FREE_TRIES_OF_A_CLIENT + 1)]
    assert tried[-2:] == [401, 429]
    # What a client writes before the proxy's own entry is its own word.
    assert try_in(guesser, "y@example.org", "wrong", "198.51.100.1, 203.0.113.9") == 429
    assert try_in(ann, ANN, PASSWORD, "203.0.113.10") == 303


def test_where_the_proxy_does_not_say_for_whom_it_asks_nobody_is_locked_out_by_others(app: FastAPI) -> None:
    app.state.doorkeeper.attempts._time = lambda: 0.0
    client = Client(app, PROXY)
    for n in range(FREE_TRIES_OF_A_CLIENT + 1):
        try_in(client, f"x{n}@example.org", "wrong")
    assert try_in(Client(app, PROXY), ANN, PASSWORD) == 303


def test_a_client_that_is_no_proxy_cannot_say_that_it_is_another(app: FastAPI) -> None:
    app.state.doorkeeper.attempts._time = lambda: 0.0
    client = Client(app, "203.0.113.9")
    for n in range(FREE_TRIES_OF_A_CLIENT):
        try_in(client, f"x{n}@example.org", "wrong", f"198.51.100.{n}")
    assert try_in(client, "z@example.org", "wrong", "198.51.100.250") == 429


def test_one_account_is_slowed_whatever_the_client(app: FastAPI) -> None:
    app.state.doorkeeper.attempts._time = lambda: 0.0
    assert [try_in(Client(app, f"203.0.113.{n}"), ANN, "wrong") for n in range(6)] == [401] * 5 + [429]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Remote-User": ANN, "X-Proxy-Secret": "s3cret"}, 200),
        ({"X-Remote-User": ANN}, 401),
        ({"X-Remote-User": ANN, "X-Proxy-Secret": "guess"}, 401),
    ],
)
def test_a_header_names_a_user_only_beside_the_secret(
    assistant: Assistant, headers: dict[str, str], status: int
) -> None:
    app = make_app(assistant, proxy_header="X-Remote-User", proxy_secret="s3cret", secure_cookies=False)
    assert Client(app, PROXY).get("/", headers=headers).status_code == status
    assert Client(app, "203.0.113.9").get("/", headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("host", "status"), [("kin.test", 200), ("kin.test:8443", 200), ("evil.test", 421), ("", 421), ("[bad", 421)]
)
def test_a_name_that_is_not_ours_is_refused(assistant: Assistant, host: str, status: int) -> None:
    app = make_app(assistant, secure_cookies=False, hosts=["Kin.Test"])
    assert Client(app).get("/about", headers={"host": host}).status_code == status


def test_by_https_browsers_are_told_to_use_nothing_else(assistant: Assistant) -> None:
    secure, plain = (make_app(assistant, secure_cookies=secure) for secure in (True, False))
    assert Client(secure).get("/about").headers["strict-transport-security"] == "max-age=31536000"
    assert "strict-transport-security" not in Client(plain).get("/about").headers
    assert "__Host-kinfolk-guest=" in Client(secure).get("/sign-in").headers["set-cookie"]


def test_a_hundred_who_sign_in_at_once_stall_no_page(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    real = passwords.is_password

    def slow(kept: str | None, password: str) -> bool:
        gate.wait(60)
        return real(kept, password)

    monkeypatch.setattr(passwords, "is_password", slow)
    form = Client(app)
    token = token_in(form.get("/sign-in"))
    reader = Client(app).enter(BOB)

    async def visit() -> tuple[int, list[int]]:
        transport = httpx.ASGITransport(app=app, client=("203.0.113.9", 5000))

        def client(cookies: Any) -> httpx.AsyncClient:
            return httpx.AsyncClient(transport=transport, base_url="http://kin.test", cookies=cookies)

        async with client(form.cookies) as guests, client(reader.cookies) as one:
            given = {"password": PASSWORD, "csrf": token}
            tries = [
                asyncio.create_task(guests.post("/sign-in", data={**given, "address": f"u{n}@example.org"}))
                for n in range(99)
            ]
            await asyncio.sleep(0.2)
            # No password has been checked yet, and the page is there all the same.
            page = await asyncio.wait_for(one.get("/"), 30)
            gate.set()
            return page.status_code, [answer.status_code for answer in await asyncio.gather(*tries)]

    page, answers = asyncio.run(visit())
    assert page == 200
    assert set(answers) == {401}
