"""The page of rules: proposals by one click, rules made and removed, vetoes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, BOB, invite

from kinfolk_assistant.ledger.tables import VETOES
from kinfolk_assistant.service.assistant import Assistant


def test_a_rule_is_made_shown_and_removed(ann: Client, assistant: Assistant) -> None:
    filled = {"verdict": "never", "domain": "vendor.example", "weekdays": ["4"], "from_hour": "15"}
    assert ann.post("/rules/add", filled).status_code == 303
    page = ann.get("/rules").text
    assert "Never accept from vendor.example on Friday from 15:00" in page
    [number] = re.findall(r"/rules/(\d+)/remove", page)
    assert ann.post(f"/rules/{number}/remove").status_code == 303
    assert assistant.rules(ANN) == []


def test_nonsense_is_said_and_nothing_is_made(ann: Client, assistant: Assistant) -> None:
    for filled in ({"verdict": "always"}, {"verdict": "always", "from_hour": "noon"}):
        answered = ann.post("/rules/add", filled)
        assert (answered.status_code, 'role="alert"' in answered.text) == (400, True)
    assert assistant.rules(ANN) == []


def test_one_click_makes_a_proposed_rule(ann: Client, assistant: Assistant) -> None:
    for n in range(5):
        start = datetime(2026, 11, 23, 11, tzinfo=UTC) + timedelta(days=n)
        number = invite(assistant, ANN, f"p-{n}", "Again", start)
        assistant.answer(ANN, number, "decline")
    page = ann.get("/rules").text
    assert "You declined 5 of 5 from olga@example.org. Decline always?" in page
    ann.post("/rules/add", {"verdict": "never", "organiser": "olga@example.org", "domain": ""})
    page = ann.get("/rules").text
    assert "Never accept from olga@example.org" in page
    assert "You declined 5 of 5" not in page


def test_vetoes_are_on_until_they_are_turned_off(ann: Client, assistant: Assistant) -> None:
    assert ann.get("/rules").text.count(" checked>") == len(VETOES.split())
    ann.post("/rules/vetoes", {"vetoes": ["night"], "answers": "decline"})
    user = assistant.settings(ANN)
    assert (user.vetoes, user.answers) == ("night", "decline")
    assert ann.get("/rules").text.count(" checked>") == 1


def test_nobody_removes_anothers_rule(ann: Client, assistant: Assistant) -> None:
    assistant.add_rule(BOB, verdict="ask", topic="x")
    [rule] = assistant.rules(BOB)
    assert ann.post(f"/rules/{rule.id}/remove").status_code == 404
    assert len(assistant.rules(BOB)) == 1
