from __future__ import annotations

from contextlib import suppress

import pytest

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotYours
from tests.assistant.ledger.fixtures import ledger, postgresql, url
from tests.assistant.service.world import ANN, BOB, Clock, Recorder

__all__ = ["ledger", "postgresql", "url"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def assistant(ledger: Ledger, recorder: Recorder, clock: Clock) -> Assistant:
    one = Assistant(ledger, recorder, clock)
    for user in (ANN, BOB):
        one.add_user(user)
        # So dear a question is asked only where the model hardly leans either way.
        one.change_settings(user, cost_ask=0.45)
        one.calendar_unchanged(user)

    def visit() -> None:
        for user in (ANN, BOB):
            with suppress(NotYours):
                one.calendar_unchanged(user)

    # Calendars are visited as they are by a server, but where a test wants otherwise.
    clock.then.append(visit)
    return one
