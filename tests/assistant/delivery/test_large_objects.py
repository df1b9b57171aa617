"""A user's own object may be larger than what strangers may send: it is answered all the same."""

from __future__ import annotations

import pytest

from kinfolk_assistant.delivery.caldav_server import Stored
from kinfolk_assistant.delivery.collecting import _read
from kinfolk_assistant.delivery.finding import meeting_in
from kinfolk_assistant.delivery.scheduling import is_marked, left_to_client, marked, server_tells
from kinfolk_assistant.reading.bounds import INVITATION
from tests.assistant.delivery.calendars import meeting


@pytest.fixture(scope="module")
def large() -> str:
    notes = tuple(f"X-NOTE-{i}:kept by the owner's own program" for i in range(INVITATION.work))
    return meeting(uid="plan-1", more=notes)


def test_its_meeting_is_found(large: str) -> None:
    found = meeting_in(large, "plan-1", "")
    assert found is not None
    assert found.uid == "plan-1"


def test_it_can_be_marked_and_left_to_the_client(large: str) -> None:
    assert server_tells(large)
    assert not server_tells(left_to_client(large))
    assert is_marked(marked(large, "<1@example.org>"), "<1@example.org>")


def test_it_is_collected_from_the_calendar(large: str) -> None:
    refused: list[str] = []
    [found] = _read(Stored("/ann/calendar/large.ics", "1", large), refused)
    assert (found.meetings[0].uid, refused) == ("plan-1", [])
