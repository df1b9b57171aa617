"""The settings: sliders and what they change, automation, time and place, the table, consent, erasure."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, BOB

from kinfolk_assistant.learning.costs import Costs
from kinfolk_assistant.ledger.users import NotYours
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.weighing import weigh
from kinfolk_assistant.web.limits import limits

FRAGMENT = {"X-Fragment": "yes"}
SAVED = {"false_accept": "1", "false_decline": "1", "ask": "0.1"}


@pytest.mark.parametrize("false_accept", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("false_decline", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("ask", [0.0, 0.05, 0.4, 2.0])
def test_the_limits_are_where_the_cheapest_action_changes(
    false_accept: float, false_decline: float, ask: float
) -> None:
    costs = Costs(false_accept, false_decline, ask)
    decline_below, accept_above = limits(costs)
    grid = [n / 1000 + 0.0003 for n in range(1000)]
    for probability, weighed in zip(grid, weigh(grid, costs), strict=True):
        expected = "decline" if probability < decline_below else "accept" if probability > accept_above else "ask"
        assert weighed.action == expected, probability


class TestCosts:
    def test_a_preview_tells_what_changes_and_changes_nothing(self, ann: Client, assistant: Assistant) -> None:
        html = ann.post("/settings/preview", {**SAVED, "ask": "0"}, headers=FRAGMENT).text
        told = assistant.preview(ANN, Costs(1.0, 1.0, 0.0))
        assert told.ask == told.n > 0
        assert re.search(rf"<dt>asked</dt><dd>{told.ask} <span[^>]*>now 0<", html)
        assert html.count("→") == 4
        assert assistant.settings(ANN).cost_ask == 0.1
        assert "<html" not in html

    def test_a_preview_works_as_a_whole_page_too(self, ann: Client) -> None:
        html = ann.post("/settings/preview", {**SAVED, "ask": "0.5"}).text
        assert "<html" in html
        assert re.search(r'id="ask"[^>]* value="0.5"', html)

    def test_saved_costs_change_the_prepared_answers(self, ann: Client, assistant: Assistant) -> None:
        assert {one.action for one in assistant.inbox(ANN)} == {"accept", "decline"}
        assert ann.post("/settings/costs", {**SAVED, "ask": "0"}).status_code == 303
        assert {one.action for one in assistant.inbox(ANN)} == {"ask"}
        assert ann.get("/").text.count("Asks you") == 4

    @pytest.mark.parametrize("wrong", ["-1", "nan", "inf", "1e9", "much", ""])
    def test_costs_that_are_none_are_refused(self, ann: Client, assistant: Assistant, wrong: str) -> None:
        for path in ("/settings/costs", "/settings/preview"):
            assert ann.post(path, {**SAVED, "ask": wrong}).status_code == 400
        assert assistant.settings(ANN).cost_ask == 0.1


class TestAutomation:
    def test_it_is_turned_on_and_off_with_its_bounds(self, ann: Client, assistant: Assistant) -> None:
        ann.post("/settings/automation", {"automation": "yes", "daily_cap": "3", "undo_minutes": "5"})
        user = assistant.settings(ANN)
        assert (user.automation, user.daily_cap, user.undo_minutes) == (True, 3, 5)
        ann.post("/settings/automation", {"daily_cap": "3", "undo_minutes": "5"})
        assert not assistant.settings(ANN).automation

    @pytest.mark.parametrize("wrong", [{"daily_cap": "-1"}, {"undo_minutes": "100000"}, {"daily_cap": "many"}])
    def test_bounds_that_are_none_are_refused(self, ann: Client, assistant: Assistant, wrong: dict[str, str]) -> None:
        form = {"automation": "yes", "daily_cap": "3", "undo_minutes": "5", **wrong}
        assert ann.post("/settings/automation", form).status_code == 400
        assert not assistant.settings(ANN).automation


def test_a_zone_that_does_not_exist_is_refused_with_a_sentence(ann: Client, assistant: Assistant) -> None:
    response = ann.post("/settings/place", {"zone": "Mars/Olympus", "places": "Hall"})
    assert response.status_code == 400
    assert "Mars/Olympus" in response.text
    assert assistant.settings(ANN).places == ""
    assert ann.post("/settings/place", {"zone": "Asia/Tokyo", "places": "Hall\0\nRoom 4"}).status_code == 303
    assert assistant.settings(ANN).places == "Hall\nRoom 4"


class TestTable:
    def upload(self, ann: Client, name: str, data: bytes) -> int:
        return ann.post("/settings/contacts", files={"table": (name, data, "application/octet-stream")}).status_code

    def test_lines_are_added_and_those_known_replaced(self, ann: Client, assistant: Assistant) -> None:
        first = b"person,job,relation,topic,importance\nolga@example.org,faculty,peer,,\n,,,budget,critical\n"
        card = b"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Olga\r\nEMAIL:olga@example.org\r\nTITLE:Planner\r\nEND:VCARD\r\n"
        assert self.upload(ann, "people.csv", first) == 303
        assert self.upload(ann, "Cards.VCF", card) == 303
        table = {(one.kind, one.key): (one.job, one.importance) for one in assistant.contacts(ANN)}
        assert table == {
            ("person", "olga@example.org"): ("planner", "other"),
            ("topic", "budget"): ("other", "critical"),
        }
        assert assistant.contacts(BOB) == []
        assert "olga@example.org" in ann.get("/settings").text
        ann.post("/settings/contacts/clear")
        assert assistant.contacts(ANN) == []

    @pytest.mark.parametrize(
        ("name", "data", "told"),
        [
            ("people.csv", b"person,job\nolga@example.org,wizard\n", "line 2"),
            ("people.exe", b"MZ", ".csv or a .vcf"),
            ("../../etc/passwd", b"x", ".csv or a .vcf"),
            ("people.csv", b"person\n\xff\xfe\n", "UTF-8"),
            ("people.csv", b"person\n" + b"x" * 2**20, "1,048,576 bytes"),
            ("people.csv", b"", "columns"),
        ],
    )
    def test_a_table_that_is_none_is_refused_with_a_sentence_and_changes_nothing(
        self, ann: Client, assistant: Assistant, name: str, data: bytes, told: str
    ) -> None:
        self.upload(ann, "people.csv", b"topic,importance\nbudget,critical\n")
        response = ann.post("/settings/contacts", files={"table": (name, data, "text/csv")})
        assert response.status_code == 400
        assert told in response.text
        assert [one.key for one in assistant.contacts(ANN)] == ["budget"]


class TestConsent:
    def test_agreeing_and_withdrawing(self, ann: Client, assistant: Assistant) -> None:
        assert "Withdraw" in ann.get("/settings").text
        ann.post("/settings/withdraw")
        assert assistant.settings(ANN).agreed_at is None
        assert "I agree" in ann.get("/settings").text
        ann.post("/settings/agree")
        assert assistant.settings(ANN).agreed_at is not None

    def test_erasing_needs_the_typed_address_and_leaves_no_session(
        self, app: FastAPI, ann: Client, assistant: Assistant
    ) -> None:
        for typed in ("", "yes", BOB):
            assert ann.post("/settings/erase", {"typed": typed}).status_code == 400
        assert assistant.settings(ANN).address == ANN
        assert "Erased" in ann.post("/settings/erase", {"typed": " Ann@example.org "}).text
        assert ann.get("/").status_code == 303
        with pytest.raises(NotYours):
            assistant.settings(ANN)
        assert Client(app).sign_in(ANN).status_code == 401
        assert Client(app).enter(BOB).get("/people").status_code == 200
