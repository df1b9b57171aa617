from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kinfolk_assistant.delivery.keys import Keys, read_keys
from kinfolk_assistant.ledger.store import Ledger
from tests.assistant.delivery.online.simulated import Simulated, simulated
from tests.assistant.delivery.online.world import World, make_world
from tests.assistant.service.world import Clock

pytest.importorskip("authlib", reason="authlib is not installed: the extra oidc")


@pytest.fixture
def state() -> Iterator[Simulated]:
    with simulated() as one:
        yield one


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(str(tmp_path / "ledger.db"))
    yield opened
    opened.close()


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return read_keys(tmp_path / "key")


@pytest.fixture(params=["google", "microsoft"])
def world(request: pytest.FixtureRequest, state: Simulated, ledger: Ledger, keys: Keys) -> Iterator[World]:
    one = make_world(request.param, state, ledger, keys, Clock())
    yield one
    one.visits._visitors.shutdown()


@pytest.fixture
def google(state: Simulated, ledger: Ledger, keys: Keys) -> Iterator[World]:
    one = make_world("google", state, ledger, keys, Clock())
    yield one
    one.visits._visitors.shutdown()


@pytest.fixture
def microsoft(state: Simulated, ledger: Ledger, keys: Keys) -> Iterator[World]:
    one = make_world("microsoft", state, ledger, keys, Clock())
    yield one
    one.visits._visitors.shutdown()
