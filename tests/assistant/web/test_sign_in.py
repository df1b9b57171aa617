"""Signing in: passwords, limited tries, sessions, and a reverse proxy's header."""

from __future__ import annotations

from datetime import timedelta

import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI
from sqlalchemy import select
from tests.assistant.web.client import Client, token_in
from tests.assistant.web.team import ANN, BOB, PASSWORD, StillClock

from kinfolk_assistant.ledger.tables import Session as SessionRow
from kinfolk_assistant.ledger.tables import User
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web import passwords
from kinfolk_assistant.web.app import make_app
from kinfolk_assistant.web.attempts import FREE_TRIES_OF_A_CLIENT, Attempts
from kinfolk_assistant.web.sessions import LIFETIME


def signed_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_the_right_password_opens_the_inbox_and_a_wrong_one_does_not(app: FastAPI) -> None:
    client = Client(app)
    refused = client.sign_in(ANN, "wrong horse battery")
    assert refused.status_code == 401
    assert not signed_in(client)
    assert client.sign_in(" Ann@Example.org ").status_code == 303
    assert signed_in(client)


def test_an_unknown_address_gets_the_same_answer_as_a_wrong_password(app: FastAPI) -> None:
    wrong, unknown = Client(app).sign_in(ANN, "wrong"), Client(app).sign_in("zed@example.org", "wrong")
    assert wrong.status_code == unknown.status_code == 401
    tail = "do not go together"
    assert tail in wrong.text
    assert tail in unknown.text


def test_an_unknown_address_costs_a_hash_like_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    verify = PasswordHasher.verify
    monkeypatch.setattr(PasswordHasher, "verify", lambda self, *given: checked.append(given[0]) or verify(self, *given))
    kept = passwords.hash_password(PASSWORD)
    assert not passwords.is_password(None, PASSWORD)
    assert not passwords.is_password(kept, "wrong")
    parameters = [hash_.split("$")[1:4] for hash_ in checked]
    assert len(checked) == 2
    assert parameters[0] == parameters[1]


def test_a_password_kept_with_weaker_parameters_is_hashed_anew_at_sign_in(app: FastAPI, assistant: Assistant) -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
    with assistant.ledger.begin() as session:
        session.get_one(User, ANN).password_hash = weak
    assert Client(app).sign_in(ANN).status_code == 303
    kept = assistant.settings(ANN).password_hash
    assert kept is not None
    assert kept != weak
    assert passwords.is_password(kept, PASSWORD)
    assert not passwords.is_outdated(kept)


def test_a_user_without_a_password_cannot_sign_in(app: FastAPI, assistant: Assistant) -> None:
    with assistant.ledger.begin() as session:
        session.get_one(User, ANN).password_hash = None
    for password in ("", "None", PASSWORD):
        assert Client(app).sign_in(ANN, password).status_code == 401


def test_an_endless_password_is_refused_without_work(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = passwords.hash_password(PASSWORD)

    def verify(*given: object) -> bool:
        raise AssertionError("a hash was made of it")

    monkeypatch.setattr(PasswordHasher, "verify", verify)
    assert not passwords.is_password(kept, "x" * 10_000_000)
    with pytest.raises(ValueError, match="8 to 1024"):
        passwords.hash_password("x" * 10_000_000)


def test_the_sign_in_form_needs_its_own_token(app: FastAPI) -> None:
    client, other = Client(app), Client(app)
    client.get("/sign-in")
    foreign = token_in(other.get("/sign-in"))
    for token in ("", "wrong", foreign):
        form = {"address": ANN, "password": PASSWORD, "csrf": token}
        assert client.ask("POST", "/sign-in", data=form).status_code == 403
    assert not signed_in(client)


def test_tries_wait_longer_and_longer_by_address_and_by_client() -> None:
    now = 0.0
    attempts = Attempts(time=lambda: now)
    waits = []
    for _ in range(9):
        wait = attempts.wait("address ann", "client 1")
        if wait:
            waits.append(wait)
            now += wait
            assert attempts.wait("address ann", "client 1") == 0
    assert waits == [1, 2, 4, 8]
    assert attempts.wait("address ann", "client 2") > 0
    assert attempts.wait("address bob", "client 2") == 0
    # Many may come from one address, so a client has more tries than an account.
    while attempts.wait(f"address {now}", "client 1") == 0:
        now += 1e-3
    assert attempts._failed["client 1"][0] == FREE_TRIES_OF_A_CLIENT


def test_tries_of_many_addresses_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinfolk_assistant.web.attempts.MOST_KEPT", 10)
    attempts = Attempts(time=lambda: 0.0)
    for n in range(50):
        attempts.wait(f"address {n}")
    assert len(attempts._failed) == 10


def test_after_six_wrong_passwords_even_the_right_one_waits_and_success_forgets(app: FastAPI) -> None:
    client = Client(app)
    app.state.doorkeeper.attempts._time = lambda: 0.0
    assert [client.sign_in(ANN, "wrong").status_code for _ in range(5)] == [401] * 5
    waiting = client.sign_in(ANN)
    assert waiting.status_code == 429
    assert int(waiting.headers["retry-after"]) >= 1
    app.state.doorkeeper.attempts.succeeded(f"address {ANN}", "client 192.0.2.7")
    assert client.sign_in(ANN).status_code == 303
    assert Client(app).sign_in(ANN, "wrong").status_code == 401


def test_only_a_hash_of_the_token_is_kept(app: FastAPI, assistant: Assistant) -> None:
    client = Client(app)
    client.sign_in(ANN)
    token = client.cookies["kinfolk"]
    with assistant.ledger.read() as session:
        rows = session.scalars(select(SessionRow)).all()
    assert rows
    assert all(token not in (row.token_hash, row.csrf) for row in rows)


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(assistant: Assistant) -> None:
    client = Client(make_app(assistant))
    form = client.get("/sign-in")
    given = {"address": ANN, "password": PASSWORD, "csrf": token_in(form)}
    guest = form.headers["set-cookie"].split(";")[0]
    response = client.ask("POST", "/sign-in", data=given, headers={"cookie": guest})
    cookie = next(one for one in response.headers.get_list("set-cookie") if one.startswith("__Host-kinfolk="))
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "secure", "samesite=lax", "path=/"} <= parts


def test_signing_in_again_ends_the_older_session_of_that_browser(app: FastAPI) -> None:
    client, thief = Client(app), Client(app)
    client.sign_in(ANN)
    thief.cookies.set("kinfolk", client.cookies["kinfolk"])
    assert signed_in(thief)
    client.cookies.set("kinfolk-guest", "x")
    token = app.state.doorkeeper.form_token("guest x")
    client.ask("POST", "/sign-in", data={"address": ANN, "password": PASSWORD, "csrf": token})
    assert signed_in(client)
    assert not signed_in(thief)


def test_a_session_ends_by_time_and_by_signing_out(app: FastAPI, clock: StillClock) -> None:
    client = Client(app).enter(ANN)
    clock.now += LIFETIME - timedelta(seconds=1)
    assert signed_in(client)
    clock.now += timedelta(seconds=2)
    assert not signed_in(client)
    client.enter(ANN)
    kept = client.cookies["kinfolk"]
    assert client.post("/sign-out").status_code == 303
    client.cookies.set("kinfolk", kept)
    assert not signed_in(client)


def test_sign_in_leads_back_to_the_page_but_never_to_another_site(app: FastAPI) -> None:
    for then, leads in (
        ("/settings", "/settings"),
        ("/requests/7", "/requests/7"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/ledger\r\nSet-Cookie: a=b", "/"),
    ):
        client = Client(app)
        token = token_in(client.get("/sign-in"))
        form = {"address": ANN, "password": PASSWORD, "csrf": token, "then": then}
        assert client.ask("POST", "/sign-in", data=form).headers["location"] == leads


def test_a_changed_password_signs_other_browsers_out(app: FastAPI) -> None:
    here, there = Client(app).enter(ANN), Client(app).enter(ANN)
    assert here.post("/settings/password", {"current": "wrong", "new": "another password"}).status_code == 400
    assert here.post("/settings/password", {"current": PASSWORD, "new": "short"}).status_code == 400
    assert signed_in(there)
    assert here.post("/settings/password", {"current": PASSWORD, "new": "another password"}).status_code == 303
    assert signed_in(here)
    assert not signed_in(there)
    assert Client(app).sign_in(ANN, "another password").status_code == 303


class TestProxy:
    """A reverse proxy names the user."""

    @pytest.fixture
    def proxied(self, assistant: Assistant) -> FastAPI:
        return make_app(assistant, proxy_header="X-Remote-User", trusted_proxies=["198.51.100.1"])

    def test_its_header_is_believed_from_its_own_address_alone(self, proxied: FastAPI) -> None:
        header = {"X-Remote-User": "Ann@Example.org"}
        assert "ann: Weekly sync" in Client(proxied, "198.51.100.1").get("/", headers=header).text
        stranger = Client(proxied, "198.51.100.2").get("/", headers=header)
        assert stranger.status_code == 401
        assert "ann:" not in stranger.text

    def test_the_header_means_nothing_where_none_is_configured(self, app: FastAPI) -> None:
        for host in ("127.0.0.1", "198.51.100.1"):
            assert Client(app, host).get("/", headers={"X-Remote-User": ANN}).status_code == 303

    def test_no_two_headers_no_empty_one_and_no_unknown_user(self, proxied: FastAPI) -> None:
        client = Client(proxied, "198.51.100.1")
        for headers in (
            [],
            [("X-Remote-User", " ")],
            [("X-Remote-User", "zed@example.org")],
            [("X-Remote-User", ANN), ("X-Remote-User", BOB)],
        ):
            assert client.get("/", headers=headers).status_code == 401

    def test_its_users_forms_carry_a_token_of_their_own(self, proxied: FastAPI, assistant: Assistant) -> None:
        client = Client(proxied, "198.51.100.1")
        ann, bob = {"X-Remote-User": ANN}, {"X-Remote-User": BOB}
        of_ann, of_bob = token_in(client.get("/settings", headers=ann)), token_in(client.get("/settings", headers=bob))
        form = {"zone": "Asia/Tokyo", "places": ""}
        for token, status in (("", 403), (of_bob, 403), (of_ann, 303)):
            response = client.ask("POST", "/settings/place", data={"csrf": token, **form}, headers=ann)
            assert response.status_code == status
        assert assistant.settings(ANN).zone == "Asia/Tokyo"

    def test_passwords_and_cookies_open_nothing_there(self, proxied: FastAPI) -> None:
        client = Client(proxied, "198.51.100.1").enter(ANN)
        assert client.get("/").status_code == 401
        form = {"address": ANN, "password": PASSWORD, "csrf": ""}
        assert client.ask("POST", "/sign-in", data=form).status_code == 403
