from __future__ import annotations

from datetime import datetime, timedelta
from threading import Event

import pytest

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.collecting import NOTHING, Collected, Engagement, Invitation, Seen
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.ledger.calendar_read import NEVER_READ, cannot_decide
from kinfolk_assistant.ledger.users import NotYours, find_user
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service import visiting
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.intake import MAX_MEETINGS
from kinfolk_assistant.service.visiting import UNREAD, Visits
from tests.assistant.service.world import ANN, BOB, MONDAY, invitation

ACCOUNTS = {user: CalDAVAccount("https://dav.example.org/", user, "secret") for user in (ANN, BOB)}


def too_many() -> CalendarObject:
    """A message that can be read, but has more events than are taken in."""
    one = invitation("many", attendee=ANN).text
    head, _, rest = one.partition("BEGIN:VEVENT")
    event, _, end = rest.partition("END:VEVENT")
    days = [MONDAY + timedelta(days=i) for i in range(MAX_MEETINGS + 1)]
    events = [f"BEGIN:VEVENT{event}RECURRENCE-ID:{day:%Y%m%dT%H%M%SZ}\r\nEND:VEVENT\r\n" for day in days]
    [found] = read_calendar(f"{head}{''.join(events)}{end.lstrip()}".encode())
    return found


def visits(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch, found: dict[str, list[CalendarObject] | Exception]
) -> Visits:
    """Visits to accounts of which is told what they have, or how they fail."""

    def collect(account: CalDAVAccount, seen: Seen = NOTHING, *, now: datetime) -> Collected:
        has = found[account.username]
        if isinstance(has, Exception):
            raise has
        kept = [Engagement(one, "/c", "1") for one in has if not one.method]
        return Collected([Invitation(one, now, "/i") for one in has if one.method], kept, [], NOTHING)

    monkeypatch.setattr(visiting, "collect", collect)
    return Visits(assistant, lambda: ACCOUNTS)


def summaries(assistant: Assistant, user: str) -> list[str]:
    return [one.summary for one in assistant.inbox(user)]


@pytest.mark.parametrize("fails", [ServerTrouble("It is down."), RuntimeError("nobody thought of this")])
def test_an_account_that_fails_keeps_no_other_from_being_visited(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch, fails: Exception
) -> None:
    visits(assistant, monkeypatch, {ANN: fails, BOB: [invitation(attendee=BOB)]}).visit_all()
    assert summaries(assistant, BOB) == ["Plans"]


def test_an_invitation_that_is_refused_keeps_no_other_from_being_taken_in(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = {ANN: [too_many(), invitation("fine")], BOB: [invitation(attendee=BOB)]}
    visits(assistant, monkeypatch, found).visit_all()
    assert (summaries(assistant, ANN), summaries(assistant, BOB)) == (["Plans"], ["Plans"])
    assert any(f"has {MAX_MEETINGS + 1} events" in deed.text for deed in assistant.deeds(ANN))
    assert ANN not in caplog.text


def test_somebody_who_was_erased_does_not_come_back_by_their_account(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant.erase(ANN)
    visits(assistant, monkeypatch, {ANN: [invitation()], BOB: [invitation(attendee=BOB)]}).visit_all()
    with pytest.raises(NotYours):
        assistant.settings(ANN)
    assert summaries(assistant, BOB) == ["Plans"]


def test_the_calendar_is_known_when_the_invitation_is_judged(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(assistant, monkeypatch, {ANN: [invitation("other"), invitation("kept", method="")], BOB: []}).visit_all()
    assistant.work()
    assert assistant.request(ANN, 1).features["conflict"] == "yes"


def test_a_calendar_with_an_entry_that_cannot_be_read_is_not_known_until_all_of_it_is(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread, changed = 1, True

    def collect(account: CalDAVAccount, seen: Seen = NOTHING, *, now: datetime) -> Collected:
        return Collected([], [] if changed else None, [], Seen({}, {"/c": "1"}), unread if changed else 0)

    with assistant.ledger.begin() as session:
        find_user(session, ANN).calendar_read_at = None
    monkeypatch.setattr(visiting, "collect", collect)
    rounds = Visits(assistant, lambda: {ANN: ACCOUNTS[ANN]})
    rounds.visit_all()
    # That nothing has changed since does not make it readable.
    changed = False
    rounds.visit_all()
    with assistant.ledger.read() as session:
        user = find_user(session, ANN)
        assert cannot_decide(user, assistant.clock()) == NEVER_READ
        assert user.visit_error == UNREAD.format(n=1)
    unread, changed = 0, True
    rounds.visit_all()
    with assistant.ledger.read() as session:
        user = find_user(session, ANN)
        assert cannot_decide(user, assistant.clock()) == ""
        assert user.visit_error == ""


def test_a_server_that_does_not_answer_holds_up_no_other_and_is_not_asked_twice_at_once(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, asked = Event(), []

    def collect(account: CalDAVAccount, seen: Seen = NOTHING, *, now: datetime) -> Collected:
        asked.append(account.username)
        if account.username == ANN:
            slow.wait(30)
        return Collected([Invitation(invitation(attendee=BOB), now, "/i")], [], [], NOTHING)

    monkeypatch.setattr(visiting, "collect", collect)
    monkeypatch.setattr(visiting, "PATIENCE", 0.5)
    rounds = Visits(assistant, lambda: ACCOUNTS)
    rounds.visit_all()
    rounds.visit_all()
    assert summaries(assistant, BOB) == ["Plans"]
    assert (asked.count(ANN), asked.count(BOB)) == (1, 2)
    slow.set()
    rounds._visitors.shutdown()
