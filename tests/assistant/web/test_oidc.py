"""Signing in at an OpenID Connect provider that is a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, BOB

pytest.importorskip("authlib", reason="authlib is not installed: the extra oidc")

from kinfolk_assistant.delivery.configuration import OidcProvider
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web.app import make_app


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    command = [sys.executable, "-m", "tests.assistant.web.provider"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield OidcProvider(f"http://127.0.0.1:{port}", "kinfolk", "shared secret")
        process.terminate()


@pytest.fixture
def visitor(assistant: Assistant, provider: OidcProvider) -> Client:
    return Client(make_app(assistant, secure_cookies=False, provider=provider))


def at_provider(visitor: Client, who: str, how: str = "") -> str:
    """Go to the provider and sign in there; the path to which it sends the browser back."""
    sent = visitor.get("/oidc/start")
    assert sent.status_code == 303
    back = httpx.get(f"{sent.headers['location']}&who={who}&how={how}")
    assert back.headers["location"].startswith("http://kin.test/oidc/back?")
    return str(back.headers["location"].removeprefix("http://kin.test"))


def test_somebody_whom_the_provider_signs_in_is_signed_in(visitor: Client) -> None:
    assert 'href="/oidc/start"' in visitor.get("/sign-in").text
    assert visitor.get(at_provider(visitor, ANN.upper())).status_code == 303
    assert "ann: Weekly sync" in visitor.get("/").text


@pytest.mark.parametrize("how", ["unverified", "issuer", "audience", "expired", "nonce", "key"])
def test_what_the_provider_does_not_prove_lets_nobody_in(visitor: Client, how: str) -> None:
    assert visitor.get(at_provider(visitor, ANN, how)).status_code == 403
    assert visitor.get("/").status_code == 303


def test_nobody_comes_in_who_is_no_user(visitor: Client) -> None:
    answered = visitor.get(at_provider(visitor, "eve@example.org"))
    assert (answered.status_code, "no such user" in answered.text) == (403, True)


def test_a_way_back_opens_once_and_only_in_the_browser_that_began(
    visitor: Client, assistant: Assistant, provider: OidcProvider
) -> None:
    path = at_provider(visitor, ANN)
    stranger = Client(make_app(assistant, secure_cookies=False, provider=provider))
    assert stranger.get(path).status_code == 403
    assert visitor.get(path.replace("state=", "state=x")).status_code == 403
    path = at_provider(visitor, BOB)
    assert visitor.get(path).status_code == 303
    assert visitor.get(path).status_code == 403


def test_without_a_provider_there_is_no_such_door(assistant: Assistant) -> None:
    plain = Client(make_app(assistant, secure_cookies=False))
    assert plain.get("/oidc/start").status_code == 404
    assert "/oidc/start" not in plain.get("/sign-in").text
