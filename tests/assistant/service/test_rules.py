"""A user's own rules and vetoes: they come before every probability."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.users import NotYours
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.calendar import Kept
from tests.assistant.service.world import ANN, BOB, BOSS, MONDAY, Recorder, automate, invitation, teach

SLOT = MONDAY + timedelta(days=2)  # Wednesday, 9:00
SATURDAY = MONDAY + timedelta(days=5)


@pytest.fixture
def first_day(assistant: Assistant) -> Assistant:
    """An assistant that has learnt nothing, with automation on."""
    assistant.change_settings(ANN, automation=True, undo_minutes=0)
    return assistant


def take(assistant: Assistant, one: CalendarObject) -> int:
    [number] = assistant.take_in(ANN, [one], received_at=assistant.clock(), source="caldav")
    assistant.work()
    return number


@pytest.mark.parametrize(("verdict", "answer"), [("always", "ACCEPTED"), ("never", "DECLINED"), ("ask", None)])
def test_a_rule_acts_from_the_first_day(
    first_day: Assistant, recorder: Recorder, verdict: str, answer: str | None
) -> None:
    first_day.add_rule(ANN, verdict=verdict, organiser=BOSS)
    shown = first_day.request(ANN, take(first_day, invitation()))
    assert recorder.answers() == ([("m1", answer)] if answer else [])
    assert BOSS in shown.rule


def test_a_rule_goes_before_what_was_learnt(assistant: Assistant, ledger: Ledger, recorder: Recorder) -> None:
    teach(ledger, ANN)
    automate(assistant, undo_minutes=0)
    assistant.add_rule(ANN, verdict="never", topic="plans")
    assistant.add_rule(ANN, verdict="ask", topic="budget")
    take(assistant, invitation("a"))
    asked = take(assistant, invitation("b", SLOT + timedelta(days=1), summary="Budget 2027"))
    assert recorder.answers() == [("a", "DECLINED")]
    assert assistant.request(ANN, asked).action == "ask"


CONDITIONS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"organiser": BOSS}, {}, {"organiser": "other@example.org"}),
    ({"domain": "example.org"}, {}, {"organiser": "x@example.com"}),
    ({"topic": "plans"}, {}, {"summary": "Plansch"}),
    ({"weekdays": "2"}, {}, {"start": SLOT + timedelta(days=1)}),
    ({"from_hour": 9, "to_hour": 12}, {}, {"start": SLOT + timedelta(hours=3)}),
    ({"shortest": 60}, {}, {"minutes": 45}),
    ({"longest": 60}, {}, {"minutes": 75}),
    ({"conflict": "no"}, {}, {"start": SLOT + timedelta(days=2)}),
    ({"series": "no"}, {}, {"extra": ("RRULE:FREQ=WEEKLY;COUNT=3",)}),
]


@pytest.mark.parametrize(("rule", "holds", "not_"), CONDITIONS, ids=lambda given: "-".join(map(str, given)))
def test_a_rule_holds_where_all_that_it_names_is_so(
    first_day: Assistant, rule: dict[str, Any], holds: dict[str, Any], not_: dict[str, Any]
) -> None:
    engaged = invitation("own", SLOT + timedelta(days=2), method="", organiser=ANN, stamp=MONDAY - timedelta(days=1))
    first_day.take_calendar(ANN, [Kept(engaged)])
    first_day.add_rule(ANN, verdict="always", **rule)
    actions = []
    for uid, given in (("yes", holds), ("no", not_)):
        given = {"start": SLOT, **given}
        number = take(first_day, invitation(uid, given.pop("start"), **given))
        actions.append(first_day.request(ANN, number).action)
        first_day.answer(ANN, number, "decline")
    assert actions == ["accept", "ask"]


def test_rules_that_contradict_each_other_ask(first_day: Assistant, recorder: Recorder) -> None:
    first_day.add_rule(ANN, verdict="always", organiser=BOSS)
    first_day.add_rule(ANN, verdict="never", topic="plans")
    assert first_day.request(ANN, take(first_day, invitation())).action == "ask"
    assert recorder.sent == []


VETOED = {
    "night": (invitation("m1", SLOT + timedelta(hours=10, minutes=30)), "it is at night", {"from_hour": 18}),
    "weekend": (invitation("m1", SATURDAY), "it is at the weekend", {"weekdays": "5"}),
    "overlap": (invitation("m1", SLOT), "it overlaps “Plans” in your calendar", {"conflict": "yes"}),
    "stranger": (
        invitation("m1", organiser="x@far.example"),
        "you have never met x@far.example",
        {"organiser": "x@far.example"},
    ),
}


@pytest.mark.parametrize("veto", VETOED)
@pytest.mark.parametrize("way", ["on", "off", "named"])
def test_a_veto_turns_a_yes_into_a_question_unless_it_is_off_or_the_rule_names_it(
    first_day: Assistant, recorder: Recorder, veto: str, way: str
) -> None:
    asked, why, naming = VETOED[veto]
    own = invitation("own", SLOT, method="", organiser=ANN, stamp=MONDAY - timedelta(days=1))
    first_day.take_calendar(ANN, [Kept(own)] if veto == "overlap" else [])
    first_day.clock.pass_(seconds=1)  # type: ignore[attr-defined]
    first_day.add_rule(ANN, verdict="always", topic="plans", **(naming if way == "named" else {}))
    if way == "off":
        first_day.change_settings(ANN, vetoes=" ".join(one for one in VETOED if one != veto))
    shown = first_day.request(ANN, take(first_day, asked))
    assert shown.action == "accept"
    assert shown.why == (why if way == "on" else "")
    assert recorder.answers() == ([] if way == "on" else [("m1", "ACCEPTED")])


@pytest.mark.parametrize("only", ["both", "accept", "decline"])
def test_only_yeses_or_only_noes_are_sent(first_day: Assistant, recorder: Recorder, only: str) -> None:
    first_day.change_settings(ANN, answers=only)
    first_day.add_rule(ANN, verdict="always", topic="good")
    first_day.add_rule(ANN, verdict="never", topic="bad")
    take(first_day, invitation("a", SLOT, summary="Good"))
    take(first_day, invitation("d", SLOT + timedelta(days=1), summary="Bad"))
    sent = {"accept": [("a", "ACCEPTED")], "decline": [("d", "DECLINED")]}
    assert recorder.answers() == (sent["accept"] + sent["decline"] if only == "both" else sent[only])


def test_a_rule_is_proposed_after_enough_answers_that_were_all_alike(assistant: Assistant) -> None:
    def answer(organiser: str, choice: str, n: int) -> None:
        for i in range(n):
            one = invitation(f"{organiser}-{choice}-{i}", SLOT + timedelta(days=i), organiser=organiser)
            assistant.answer(ANN, take(assistant, one), choice)

    answer("a@vend1.example", "decline", 5)
    answer("b@vend1.example", "decline", 4)
    answer(BOSS, "accept", 5)
    answer("mixed@far.example", "accept", 5)
    answer("mixed@far.example", "decline", 1)
    answer("few@few.example", "decline", 4)
    found = assistant.proposed_rules(ANN)
    assert [one.words for one in found] == [
        "You declined 9 of 9 from vend1.example.",
        f"You accepted 5 of 5 from {BOSS}.",
    ]
    assistant.add_rule(ANN, verdict=found[0].verdict, domain=found[0].domain)
    assert [one.organiser for one in assistant.proposed_rules(ANN)] == [BOSS]


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "always"},
        {"verdict": "perhaps", "topic": "x"},
        {"verdict": "always", "organiser": "nobody"},
        {"verdict": "always", "from_hour": 25},
        {"verdict": "always", "weekdays": "7"},
        {"verdict": "always", "conflict": "maybe"},
    ],
)
def test_a_rule_that_names_nothing_or_nonsense_is_refused(assistant: Assistant, fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        assistant.add_rule(ANN, **fields)
    assert assistant.rules(ANN) == []


def test_nobody_elses_rule_is_removed(assistant: Assistant) -> None:
    assistant.add_rule(ANN, verdict="ask", topic="x")
    [rule] = assistant.rules(ANN)
    with pytest.raises(NotYours):
        assistant.remove_rule(BOB, rule.id)
    assistant.remove_rule(ANN, rule.id)
    assert assistant.rules(ANN) == []
