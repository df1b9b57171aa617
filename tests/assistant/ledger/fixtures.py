"""Ledgers for tests: an SQLite file, and where it is installed a PostgreSQL database, each empty."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinfolk_assistant.ledger.store import Ledger
from tests.assistant.ledger.postgres import drop_database, make_database, programs, server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    if programs() is None:
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg", reason="psycopg is not installed: the extra postgresql")
    with server() as url:
        yield url


# All of it twice takes minutes more; what differs between the two is in few places.
@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    at = request.getfixturevalue("postgresql")
    name = f"ledger_{uuid.uuid4().hex}"
    yield make_database(at, name)
    drop_database(at, name)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    opened = Ledger(url)
    yield opened
    opened.close()
