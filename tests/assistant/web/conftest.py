"""The team's ledger is made once; every test works on its own copy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, BOB, StillClock, make_assistant, make_team

from kinfolk_assistant.service import kin
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web.app import make_app

LEAST_AGREED = kin.LEAST


@pytest.fixture(autouse=True)
def small_team(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and reasons are shown though the tests' team is too small for it."""
    monkeypatch.setattr(kin, "LEAST", 1)


@pytest.fixture(scope="session")
def team_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("team") / "ledger.db"
    make_team(str(path))
    return path


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def assistant(team_ledger: Path, tmp_path: Path, clock: StillClock) -> Iterator[Assistant]:
    path = tmp_path / "ledger.db"
    shutil.copy(team_ledger, path)
    assistant = make_assistant(str(path), clock)
    yield assistant
    assistant.ledger.close()


@pytest.fixture
def app(assistant: Assistant) -> FastAPI:
    return make_app(assistant, secure_cookies=False)


@pytest.fixture
def ann(app: FastAPI) -> Client:
    return Client(app).enter(ANN)


@pytest.fixture
def bob(app: FastAPI) -> Client:
    return Client(app).enter(BOB)
