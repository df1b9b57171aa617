"""What holds for every response and every request: headers, the origin of posts, the size of bodies."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, requests_of

from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web import guard
from kinfolk_assistant.web.pages import HERE

PAGES = ("/", "/people", "/settings", "/ledger", "/score", "/about", "/sign-in", "/nothing", "/requests/999999")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_strict_headers_and_is_kept_by_no_cache(ann: Client, path: str) -> None:
    headers = ann.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", PAGES)
def test_no_page_holds_an_inline_script_style_or_handler(ann: Client, assistant: Assistant, path: str) -> None:
    for html in (ann.get(path).text, ann.get(f"/requests/{requests_of(assistant, ANN)[0]}").text):
        assert not re.search(r"<[^>]*\s(?:style|on[a-z]+)\s*=", html)
        assert not re.search(r"<style|<script(?![^>]* src=)|javascript:", html)


def test_a_failure_shows_nothing_of_itself(app: FastAPI, assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(user: str) -> None:
        raise RuntimeError("ann: a secret")

    monkeypatch.setattr(assistant, "inbox", fail)
    response = Client(app, raises=False).enter(ANN).get("/")
    assert response.status_code == 500
    assert "secret" not in response.text
    assert response.headers["content-security-policy"] == guard.HEADERS["Content-Security-Policy"]


def test_static_files_may_be_kept_and_are_as_guarded(ann: Client) -> None:
    response = ann.get("/static/style.css")
    assert response.status_code == 200
    assert "public" in response.headers["cache-control"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert ann.get("/static/../app.py").status_code == 404
    assert ann.get("/static/%2e%2e/app.py").status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, 303),
        ({"origin": "http://kin.test"}, 303),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site", "origin": "http://kin.test"}, 403),
        ({"origin": "http://evil.test"}, 403),
        ({"origin": "http://kin.test.evil.test"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_a_post_from_another_site_is_refused_even_with_the_right_token(
    ann: Client, assistant: Assistant, headers: dict[str, str], status: int
) -> None:
    form = {"zone": "Asia/Tokyo", "places": ""}
    assert ann.post("/settings/place", form, headers=headers).status_code == status
    assert (assistant.settings(ANN).zone == "Asia/Tokyo") == (status == 303)


def test_a_body_that_is_too_large_is_refused_by_its_stated_length(ann: Client) -> None:
    response = ann.ask("POST", "/sign-in", content=b"", headers={"content-length": str(guard.LARGEST_BODY + 1)})
    assert response.status_code == 413
    response = ann.ask("POST", "/sign-in", content=b"", headers={"content-length": "9" * 30})
    assert response.status_code == 413


def test_a_body_without_a_length_is_read_no_further_than_the_bound() -> None:
    async def swallow(request: Request) -> None:
        await request.body()

    app = Starlette(routes=[Route("/", swallow, methods=["POST"])], middleware=[Middleware(guard.Guard)])
    piece = b"x" * 2**16
    taken = 0
    statuses = []

    async def receive() -> dict[str, object]:
        nonlocal taken
        taken += len(piece)
        return {"type": "http.request", "body": piece, "more_body": True}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"transfer-encoding", b"chunked")],
    }
    asyncio.run(app(scope, receive, send))
    assert statuses == [413]
    assert taken <= guard.LARGEST_BODY + 2 * len(piece)


def test_the_pages_own_script_is_small() -> None:
    script = (HERE / "static" / "pages.js").read_text()
    assert len(script.splitlines()) <= 150
    assert not re.search(r"\beval\b|new Function|document\.write", script)
    assert {path.name for path in Path(HERE / "static").iterdir()} == {"icon.svg", "pages.js", "style.css"}
