"""Answers to invitations that came from Google and Microsoft 365: given there, once, and only where still asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kinfolk_assistant.delivery.keys import Keys
from kinfolk_assistant.delivery.online import api
from kinfolk_assistant.delivery.routes import WithOnline
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.reading.trust import Trust
from kinfolk_assistant.service.errors import NotNow
from tests.assistant.delivery.calendars import outgoing
from tests.assistant.delivery.letterbox import Letterbox, listening, plain
from tests.assistant.delivery.online.simulated import Asked, Said, Simulated
from tests.assistant.delivery.online.world import SLOT, STATUS, World, make_world
from tests.assistant.service.world import ANN, MONDAY, Clock, automate, invitation, teach

ANSWERS = {"accept": "yes", "decline": "no", "tentative": "perhaps"}
DAY = timedelta(days=1)


def told(world: World) -> list[str]:
    """The answers that the organiser was told."""
    return [answer for _, answer, _ in world.state.notified]


def is_answering(asked: Asked) -> bool:
    return asked.method in ("PATCH", "POST") and "/api/" in asked.path


@pytest.mark.parametrize("choice", ANSWERS)
def test_an_answer_is_given_where_the_invitation_came_from(world: World, choice: str) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.assistant.answer(ANN, 1, choice, note="See you; soon,\nBob")
    world.assistant.work()
    assert world.assistant.request(ANN, 1).reply_state == "sent"
    assert world.status("m") == STATUS[world.name][ANSWERS[choice]]
    [(name, _, more)] = world.state.notified
    assert name == "m"
    assert (more if world.name == "google" else more["comment"]) == "See you; soon,\nBob"
    world.visit()
    assert [one for one in world.assistant.inbox(ANN) if one.state == "open"] == []


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_answer_that_arrived_but_was_not_confirmed_is_not_given_twice(
    world: World, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.state.misbehave = lambda asked: Said(status, first=True) if is_answering(asked) else None
    world.assistant.answer(ANN, 1, "accept")
    world.assistant.work()
    assert world.assistant.request(ANN, 1).reply_state == "failed"
    world.state.misbehave = lambda asked: None
    world.clock.at += timedelta(minutes=10)
    pass_quiet(monkeypatch)
    world.assistant.work()
    assert world.assistant.request(ANN, 1).reply_state == "sent"
    assert told(world) == ["accepted"]


def pass_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more than an hour go by, by the clock that does not jump."""
    clock = api.monotonic
    monkeypatch.setattr(api, "monotonic", lambda: clock() + 4000.0)


def test_an_answer_that_did_not_arrive_is_given_later_and_nothing_is_asked_in_between(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.state.put(world.event("m"))
    world.visit()
    busy = {"error": {"errors": [{"reason": "rateLimitExceeded"}]}}
    said = Said(403 if world.name == "google" else 429, busy, {"Retry-After": "120"})
    world.state.misbehave = lambda asked: said if is_answering(asked) else None
    world.assistant.answer(ANN, 1, "accept")
    world.assistant.work()
    shown = world.assistant.request(ANN, 1)
    assert (shown.reply_state, "120 seconds" in shown.replies[0].error) == ("failed", True)
    world.state.misbehave = lambda asked: None
    world.state.asked.clear()
    world.clock.at += timedelta(minutes=1)
    world.assistant.work()
    world.visit()
    assert world.state.asked == []
    pass_quiet(monkeypatch)
    world.clock.at += timedelta(minutes=10)
    world.assistant.work()
    assert told(world) == ["accepted"]


def test_what_is_not_allowed_is_not_taken_for_a_rate_that_is_too_high(google: World) -> None:
    said = Said(403, {"error": {"errors": [{"reason": "forbidden"}]}})
    google.state.misbehave = lambda asked: said if "/api/" in asked.path else None
    google.visit()
    assert google.error() == "Google answered with the error 403."


def test_what_has_the_answer_already_is_left_alone(world: World) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.assistant.answer(ANN, 1, "accept")
    answered = world.event("m", answer="yes")
    if world.name == "microsoft":
        answered["responseStatus"]["time"] = f"{MONDAY + timedelta(seconds=5):%Y-%m-%dT%H:%M:%SZ}"
    world.state.put(answered)
    world.assistant.work()
    assert world.assistant.request(ANN, 1).reply_state == "sent"
    assert told(world) == []


def test_a_note_leaves_though_the_answer_beside_it_was_given_already(world: World) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.state.put(world.event("m", answer="yes"))
    world.assistant.answer(ANN, 1, "accept", note="I shall be late")
    world.assistant.work()
    [(_, _, more)] = world.state.notified
    assert (more if world.name == "google" else more["comment"]) == "I shall be late"


@pytest.mark.parametrize("change", ["moved", "removed", "cancelled", "uninvited"])
def test_what_is_asked_no_more_is_not_answered(world: World, change: str) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.assistant.answer(ANN, 1, "accept")
    if change == "moved":
        world.state.put(world.event("m", SLOT + DAY))
    elif change == "removed":
        world.state.remove("m")
    elif change == "cancelled":
        world.state.put(world.event("m", isCancelled=True, status="cancelled"))
    else:
        world.state.put(world.event("m", invited=False))
    world.assistant.work()
    assert world.assistant.request(ANN, 1).reply_state == "failed"
    assert told(world) == []


def test_a_change_in_between_is_not_overwritten_at_google(google: World) -> None:
    google.state.put(google.event("m"))
    google.visit()

    def change(asked: Asked) -> None:
        if asked.method == "PATCH":
            google.state.misbehave = lambda asked: None
            google.state.put(google.event("m", SLOT + DAY))

    google.state.misbehave = change
    google.assistant.answer(ANN, 1, "accept")
    google.assistant.work()
    assert google.assistant.request(ANN, 1).reply_state == "failed"
    assert told(google) == []


def test_another_time_is_proposed_through_microsoft(microsoft: World) -> None:
    microsoft.state.put(microsoft.event("m"))
    microsoft.visit()
    microsoft.assistant.propose(ANN, 1, SLOT + DAY, SLOT + DAY + timedelta(hours=1), "Later?")
    microsoft.assistant.work()
    [(_, answer, more)] = microsoft.state.notified
    assert answer == "tentativelyAccepted"
    assert more["comment"] == "Later?"
    assert more["proposedNewTime"]["start"] == {"dateTime": "2026-03-05T09:00:00", "timeZone": "UTC"}
    assert more["proposedNewTime"]["end"] == {"dateTime": "2026-03-05T10:00:00", "timeZone": "UTC"}


def test_google_takes_no_proposals_and_the_user_is_told(google: World) -> None:
    google.state.put(google.event("m"))
    google.visit()
    with pytest.raises(NotNow, match="Other times go by mail"):
        google.assistant.propose(ANN, 1, SLOT + DAY, SLOT + DAY + timedelta(hours=1))


@pytest.mark.parametrize("name", ["google", "microsoft"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_mailed_invitation_is_answered_in_the_calendar_if_it_is_there_and_else_by_mail(
    name: str, is_there: bool, state: Simulated, ledger: Ledger, keys: Keys
) -> None:
    box = Letterbox()
    with listening(box) as port:
        world = make_world(name, state, ledger, keys, Clock(), plain(port))
        uid = "m@google.com" if name == "google" else "m@outlook"
        if is_there:
            state.put(world.event("m"))
        mailed = invitation(uid, SLOT)
        world.assistant.take_in(ANN, [mailed], received_at=MONDAY, source="mail", source_ref="<m@example.org>")
        world.assistant.answer(ANN, 1, "accept")
        world.assistant.work()
        assert world.assistant.request(ANN, 1).reply_state == "sent"
    assert (len(box.envelopes), len(state.notified)) == ((0, 1) if is_there else (1, 0))
    world.visits._visitors.shutdown()


@pytest.mark.parametrize("believed", [True, False])
def test_an_automatic_answer_leaves_only_where_the_administrator_believes_the_service(
    world: World, believed: bool
) -> None:
    world.assistant.trust = replace(Trust(), calendars=(world.name,) if believed else ())
    world.assistant.change_settings(ANN, cost_ask=0.45)
    teach(world.assistant.ledger)
    automate(world.assistant, undo_minutes=0)
    world.state.put(world.event("m"))
    world.visit()
    world.assistant.work()
    world.assistant.work()
    assert told(world) == (["accepted"] if believed else [])
    if not believed:
        [shown] = world.assistant.inbox(ANN)
        assert "does not say whether boss@example.org really sent it" in world.assistant.request(ANN, shown.id).why


def test_an_automatic_yes_does_not_leave_once_the_calendar_has_something_else(world: World) -> None:
    world.assistant.trust = replace(Trust(), calendars=(world.name,))
    world.assistant.change_settings(ANN, cost_ask=0.45)
    teach(world.assistant.ledger)
    automate(world.assistant, undo_minutes=10)
    world.state.put(world.event("m"))
    world.visit()
    world.assistant.work()
    world.state.put(world.event("dentist", SLOT, own=True, invited=False))
    world.clock.at += timedelta(minutes=11)
    world.visit()
    world.assistant.work()
    assert told(world) == []


def test_the_way_of_an_answer_is_the_service_itself(world: World) -> None:
    own = outgoing(source_ref=f"{world.name}:m")._replace(user=ANN)
    assert world.routes.route(own).certain
    assert not isinstance(world.routes.route(own), WithOnline)
