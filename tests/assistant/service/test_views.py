from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import event, insert

from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.features.people import Contact
from kinfolk_assistant.features.rules import ALL_FEATURES
from kinfolk_assistant.learning.costs import Costs
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Decision, Reply, Request
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotYours
from kinfolk_assistant.service.values import Tally
from tests.assistant.service.world import ANN, BOB, MONDAY, Clock, automate, invitation, teach

CALLS: dict[str, Callable[[Assistant, str, int], object]] = {
    "request": lambda assistant, user, number: assistant.request(user, number),
    "request_text": lambda assistant, user, number: assistant.request_text(user, number),
    "answer": lambda assistant, user, number: assistant.answer(user, number, "accept"),
    "undo": lambda assistant, user, number: assistant.undo(user, number),
    "mark_sent_again": lambda assistant, user, number: assistant.mark_sent_again(user, number),
}


@pytest.mark.parametrize("call", CALLS)
def test_another_users_request_looks_like_one_that_does_not_exist(
    assistant: Assistant, ledger: Ledger, call: str
) -> None:
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    assistant.work()
    assistant.answer(ANN, one, "accept")
    with ledger.read() as session:
        reply = session.query(Reply).one()
    assert reply.id == one
    before = assistant.request(ANN, one)
    said = []
    for number in (one, 999):
        with pytest.raises(NotYours) as error:
            CALLS[call](assistant, BOB, number)
        said.append(str(error.value).replace(str(number), "N"))
    assert said[0] == said[1]
    assert assistant.request(ANN, one)._replace(deeds=[]) == before._replace(deeds=[])


@pytest.mark.parametrize(
    "call",
    [
        lambda one: one.inbox("eve@example.org"),
        lambda one: one.settings("eve@example.org"),
        lambda one: one.change_settings("eve@example.org", automation=True),
        lambda one: one.contacts("eve@example.org"),
        lambda one: one.set_contacts("eve@example.org", []),
        lambda one: one.preview("eve@example.org", Costs()),
        lambda one: one.score("eve@example.org"),
        lambda one: one.deeds("eve@example.org"),
        lambda one: one.model("eve@example.org"),
        lambda one: one.agree("eve@example.org"),
        lambda one: one.withdraw("eve@example.org"),
        lambda one: one.erase("eve@example.org"),
        lambda one: one.work("eve@example.org"),
        lambda one: one.take_calendar("eve@example.org", []),
        lambda one: one.take_in("eve@example.org", [], received_at=MONDAY, source="caldav"),
    ],
)
def test_somebody_who_is_no_user_has_nothing(assistant: Assistant, call: Callable[[Assistant], object]) -> None:
    with pytest.raises(NotYours):
        call(assistant)


def test_each_user_sees_their_own_inbox_and_deeds_only(assistant: Assistant) -> None:
    assistant.take_in(ANN, [invitation("a", summary="Of Ann")], received_at=MONDAY, source="caldav")
    assistant.take_in(BOB, [invitation("b", summary="Of Bob", attendee=BOB)], received_at=MONDAY, source="caldav")
    assistant.work()
    assert [one.summary for one in assistant.inbox(ANN)] == ["Of Ann"]
    assert not any("Of Bob" in deed.text for deed in assistant.deeds(ANN))


def test_deeds_are_read_page_by_page_the_latest_first(assistant: Assistant) -> None:
    for number in range(5):
        assistant.change_settings(ANN, daily_cap=number + 20)
    everything = [deed.id for deed in assistant.deeds(ANN)]
    first = assistant.deeds(ANN, limit=2)
    second = assistant.deeds(ANN, before_id=first[-1].id, limit=100)
    assert everything == sorted(everything, reverse=True)
    assert [deed.id for deed in [*first, *second]] == everything


def test_one_request_has_everything_that_is_known_of_it(assistant: Assistant, ledger: Ledger) -> None:
    teach(ledger, ANN)
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="caldav")
    assistant.work()
    shown = assistant.request(ANN, one)
    assert set(shown.features) == {*ALL_FEATURES, *NAMES}
    assert {name for name, value in shown.features.items() if value is None} == set(shown.unknown)
    assert shown.reasons[0]["feature"] == "conflict"
    assert set(shown.expected_losses) == {"accept", "decline", "ask"}
    assert [deed.kind for deed in shown.deeds] == ["decided", "received"]
    assert shown[:15] == tuple(assistant.inbox(ANN)[0])


def test_the_score_counts_what_the_user_did_with_what_was_shown(assistant: Assistant, ledger: Ledger) -> None:
    teach(ledger, ANN)
    slot = MONDAY + timedelta(days=2)
    at = [slot, slot, slot + timedelta(days=1), slot + timedelta(days=2)]
    for number, (start, choice) in enumerate(zip(at, ["accept", "decline", "decline", ""], strict=True)):
        [one] = assistant.take_in(ANN, [invitation(f"m{number}", start)], received_at=MONDAY, source="caldav")
        assistant.work()
        if choice:
            assistant.answer(ANN, one, choice)
    # Shown: accept, decline (the slot is taken), accept, accept; done: accept, decline, decline, nothing yet.
    score = assistant.score(ANN)
    assert (score.accept, score.decline) == (Tally(2, 1), Tally(1, 1))
    assert (score.asked, score.automatic, score.undone) == (0, 0, 0)


def test_the_score_counts_automatic_answers_and_those_taken_back(assistant: Assistant, ledger: Ledger) -> None:
    teach(ledger, ANN)
    automate(assistant)
    for number in range(3):
        start = MONDAY + timedelta(days=number + 1)
        assistant.take_in(ANN, [invitation(f"m{number}", start)], received_at=MONDAY, source="caldav")
    assistant.work()
    assistant.undo(ANN, assistant.inbox(ANN)[0].id)
    score = assistant.score(ANN)
    assert (score.automatic, score.undone, score.accept) == (3, 1, Tally(0, 0))


def test_the_preview_says_what_other_costs_would_do(assistant: Assistant, ledger: Ledger) -> None:
    teach(ledger, ANN)
    slot = MONDAY + timedelta(days=2)
    for number, start in enumerate([slot, slot, slot + timedelta(days=1)]):
        [one] = assistant.take_in(ANN, [invitation(f"m{number}", start)], received_at=MONDAY, source="caldav")
        assistant.work()
        assistant.answer(ANN, one, "accept")
    # The probabilities are high, low (the slot is taken), high; all three were accepted.
    dear = assistant.preview(ANN, Costs(1.0, 1.0, 1.0))
    assert (dear.n, dear.accept, dear.decline, dear.ask) == (3, 2, 1, 0)
    assert (dear.answered, dear.right, dear.remembered) == (3, 2, 0)
    free = assistant.preview(ANN, Costs(1.0, 1.0, 0.0))
    assert (free.accept, free.decline, free.ask, free.answered) == (0, 0, 3, 0)


def test_the_preview_says_of_how_many_the_model_may_remember_the_answer(assistant: Assistant, ledger: Ledger) -> None:
    teach(ledger, ANN)
    [one] = assistant.take_in(ANN, [invitation()], received_at=MONDAY, source="history")
    with ledger.begin() as session:
        request = session.get_one(Request, one)
        request.state, request.label, request.features = "answered", "accept", {"conflict": "no"}
    preview = assistant.preview(ANN, Costs(1.0, 1.0, 1.0))
    assert (preview.n, preview.accept, preview.right, preview.remembered) == (1, 1, 1, 1)


def test_settings_are_checked_and_kept_all_or_none(assistant: Assistant) -> None:
    for fields, sentence in (
        ({"daily_cap": -1}, "daily_cap is -1; it needs to be from 0 to 1000"),
        ({"undo_minutes": 5.5}, "undo_minutes cannot be '5.5'"),
        ({"zone": "Mars/Olympus"}, "time zone 'Mars/Olympus' is not known"),
        ({"cost_ask": -1}, "cost ask is -1"),
        ({"cost_ask": "dear"}, "cost_ask cannot be 'dear'"),
        ({"cost_false_accept": float("nan")}, "cost false_accept is nan"),
        ({"automation": "yes"}, "automation cannot be 'yes'"),
        ({"places": "x" * 10_001}, "places cannot be"),
        ({"address": BOB}, "no setting 'address'"),
        ({"password_hash": "x"}, "no setting 'password_hash'"),
        ({"agreed_at": MONDAY}, "no setting 'agreed_at'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            assistant.change_settings(ANN, name="Ann", **fields)
    assert assistant.settings(ANN).name == ""
    assistant.change_settings(ANN, name="Ann", daily_cap=3, undo_minutes=0, automation=True, zone="Europe/Berlin")
    user = assistant.settings(ANN)
    assert (user.name, user.daily_cap, user.undo_minutes, user.automation) == ("Ann", 3, 0, True)


def test_people_and_topics_are_replaced_as_a_whole(assistant: Assistant) -> None:
    assistant.set_contacts(ANN, [Contact("person", "x@example.org", job="student"), Contact("topic", "budget")])
    assistant.set_contacts(ANN, [Contact("topic", "thesis", importance="critical")])
    assistant.set_contacts(BOB, [Contact("topic", "other")])
    assert [(one.kind, one.key, one.importance) for one in assistant.contacts(ANN)] == [("topic", "thesis", "critical")]


def fill(ledger: Ledger, users: int, each: int) -> None:
    """Users with open requests, each decided twice."""
    with ledger.begin() as session:
        from kinfolk_assistant.ledger.users import make_user

        names = [make_user(session, f"user{number}@example.org").address for number in range(users)]
        requests = [
            {
                "user": name, "uid": f"u{n}", "received_at": MONDAY + timedelta(minutes=n), "starts_at": MONDAY,
                "ends_at": MONDAY, "text": "x" * 2000, "state": "open", "features": {"conflict": "yes"}, "unknown": {},
            }
            for name in names
            for n in range(each)
        ]  # fmt: skip
        ids = list(session.scalars(insert(Request).returning(Request.id), requests))
        for action in ("ask", "accept"):
            decision = {
                "made_at": MONDAY,
                "action": action,
                "probability": 0.5,
                "expected_losses": {},
                "reasons": [],
                "kin": [],
            }
            session.execute(insert(Decision), [decision | {"request_id": number} for number in ids])


def test_the_inbox_is_read_in_two_statements_however_long_it_is(assistant: Assistant, ledger: Ledger) -> None:
    fill(ledger, 2, 50)
    said: list[str] = []

    def listen(connection: object, cursor: object, statement: str, *rest: object) -> None:
        said.append(statement)

    event.listen(ledger.engine, "before_cursor_execute", listen)
    shown = assistant.inbox("user1@example.org")
    event.remove(ledger.engine, "before_cursor_execute", listen)
    assert len([one for one in said if one.startswith("SELECT")]) == 2
    assert not any("requests.text" in one for one in said)
    assert [one.action for one in shown] == ["accept"] * 50
    assert all(one.conflict for one in shown)


def test_the_inbox_looks_at_no_other_users_rows(assistant: Assistant, ledger: Ledger) -> None:
    if ledger.engine.dialect.name != "sqlite":
        pytest.skip("the plan of PostgreSQL depends on how many rows there are")
    fill(ledger, 2, 5)
    said: list[tuple[str, object]] = []

    def listen(connection: object, cursor: object, statement: str, parameters: object, *rest: object) -> None:
        said.append((statement, parameters))

    event.listen(ledger.engine, "before_cursor_execute", listen)
    assistant.inbox("user1@example.org")
    event.remove(ledger.engine, "before_cursor_execute", listen)
    with ledger.engine.connect() as connection:
        plans = [
            str(step[3])
            for statement, parameters in said
            if statement.startswith("SELECT")
            for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[arg-type]
        ]
    assert any("SEARCH requests" in step for step in plans)
    assert not any(step.startswith("SCAN") for step in plans)


def test_the_clock_of_the_world_is_the_one_that_counts(assistant: Assistant, clock: Clock) -> None:
    clock.pass_(days=3)
    assistant.agree(ANN)
    assert assistant.settings(ANN).agreed_at == MONDAY + timedelta(days=3)
