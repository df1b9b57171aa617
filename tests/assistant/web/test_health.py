"""For those who watch the server: whether it lives, whether it can work, and numbers without names."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, requests_of

from kinfolk_assistant.service import operating
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web.app import make_app


def test_it_lives_and_is_ready_for_anybody_under_any_name(assistant: Assistant) -> None:
    client = Client(make_app(assistant, secure_cookies=False, hosts=["assistant.example.org"]))
    for path in ("/healthz", "/readyz"):
        found = client.get(path)
        assert (found.status_code, found.text) == (200, "ok\n")
    assert client.get("/about").status_code == 421


def test_it_is_not_ready_where_the_ledger_cannot_be_read(
    app: FastAPI, assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise OSError("gone")

    monkeypatch.setattr(assistant.ledger, "read", broken)
    assert Client(app).get("/readyz").status_code == 503
    assert Client(app).get("/healthz").status_code == 200


def test_metrics_count_and_name_nobody(app: FastAPI, assistant: Assistant) -> None:
    assistant.answer(ANN, requests_of(assistant, ANN)[0], "accept")
    assert Client(app).get("/metrics").status_code == 403
    found = Client(app, "127.0.0.1").get("/metrics")
    assert "kinfolk_users 4\n" in found.text
    assert "kinfolk_requests_open 7\n" in found.text
    assert 'kinfolk_replies{state="prepared"} 1\n' in found.text
    assert "@" not in found.text


def test_metrics_are_not_told_through_a_proxy(app: FastAPI) -> None:
    assert Client(app, "127.0.0.1").get("/metrics", headers={"X-Forwarded-For": "198.51.100.7"}).status_code == 403


def test_who_is_shut_out_is_signed_out_and_cannot_sign_in(ann: Client, assistant: Assistant) -> None:
    assert ann.get("/").status_code == 200
    with assistant.ledger.begin() as session:
        operating.disable(session, ANN, assistant.clock())
    assert ann.get("/").status_code != 200
    with assistant.ledger.begin() as session:
        operating.enable(session, ANN, assistant.clock())
