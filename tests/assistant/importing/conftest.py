from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.users import make_user
from tests.assistant.importing.calendars import ME, NOW


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(str(tmp_path / "ledger.db"))
    with opened.begin() as session:
        user = make_user(session, ME, zone="America/Los_Angeles", now=NOW)
        user.places = "Ravine House"
    yield opened
    opened.close()
