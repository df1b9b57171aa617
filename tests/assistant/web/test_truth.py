"""What the pages say is true, and what strangers write cannot make it look otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from tests.assistant.web.client import Client
from tests.assistant.web.conftest import LEAST_AGREED
from tests.assistant.web.team import ANN, ClosedOutbox, StillClock, calendar, invite, requests_of

from kinfolk_assistant.ledger.requests import MOST_ATTEMPTS
from kinfolk_assistant.ledger.tables import Reply
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service import kin
from kinfolk_assistant.service.assistant import Assistant

FRAGMENT = {"X-Fragment": "yes"}
LUNCH = datetime(2026, 11, 19, 11, tzinfo=UTC)


def automatic(assistant: Assistant) -> int:
    assistant.change_settings(ANN, automation=True)
    number = invite(assistant, ANN, "automatic", "ann: Lunch", LUNCH)
    assistant.work(ANN)
    return number


def test_after_an_undo_that_came_too_late_the_page_says_what_the_organiser_has(
    ann: Client, assistant: Assistant, clock: StillClock
) -> None:
    number = automatic(assistant)
    clock.now += timedelta(minutes=11)
    assistant.work(ANN)
    assert assistant.request(ANN, number).reply_state == "sent"
    said = ann.post(f"/requests/{number}/undo", headers=FRAGMENT).text
    assert "The organiser still has the answer" in said
    assert "Taken back" not in said
    page = ann.get(f"/requests/{number}").text
    assert "The organiser still has your yes" in page
    ann.post(f"/requests/{number}/answer", {"answer": "decline"})
    assert "still has your" not in ann.get(f"/requests/{number}").text
    assistant.work(ANN)
    assert [one.answer for one in assistant.deliver.sent] == ["ACCEPTED", "DECLINED"]  # type: ignore[attr-defined]


def test_after_an_undo_in_time_the_page_says_that_nothing_was_sent(ann: Client, assistant: Assistant) -> None:
    number = automatic(assistant)
    assert "Taken back before it was sent." in ann.post(f"/requests/{number}/undo", headers=FRAGMENT).text
    page = ann.get(f"/requests/{number}").text
    assert "still has your" not in page
    assert "not sent" in page


@pytest.mark.parametrize("given_up", [False, True])
def test_the_page_says_whether_an_answer_will_be_tried_again(ann: Client, assistant: Assistant, given_up: bool) -> None:
    number = requests_of(assistant, ANN)[0]
    assistant.answer(ANN, number, "accept")
    assistant.deliver = ClosedOutbox()
    assistant.work(ANN)
    with assistant.ledger.begin() as session:
        reply = session.scalars(select(Reply).where(Reply.request_id == number)).one()
        reply.attempts = MOST_ATTEMPTS if given_up else 1
    page = ann.get(f"/requests/{number}").text
    assert ("it is not tried again unless you say so" in page) is given_up
    assert ("it will be tried again" in page) is not given_up


def test_the_page_says_why_something_is_only_shown(ann: Client, assistant: Assistant) -> None:
    number = requests_of(assistant, ANN)[0]
    assert "Only shown: automation is off." in ann.get(f"/requests/{number}").text


@pytest.mark.parametrize("page", ["/", "/requests/{}"])
def test_the_organisers_address_stands_beside_the_name_and_outsiders_are_marked(
    ann: Client, assistant: Assistant, page: str
) -> None:
    start = datetime(2026, 11, 24, 11, tzinfo=UTC)
    text = calendar("far", "ann: Offer", start, 30, ANN).replace(b"mailto:olga@example.org", b"mailto:boss@far.example")
    [far] = assistant.take_in(ANN, read_calendar(text), received_at=assistant.clock(), source="caldav")
    near = requests_of(assistant, ANN)[0]
    for number, address, marked in ((near, "olga@example.org", False), (far, "boss@far.example", True)):
        html = ann.get(page.format(number)).text
        if page == "/":
            html = html.partition(f'id="request-{number}"')[2].partition("</li>")[0]
        assert address in html
        assert ("From outside" in html) is marked


def test_text_that_turns_or_never_ends_is_tamed(ann: Client, assistant: Assistant) -> None:
    hostile = "ann: invoice\u202egnp.exe\u2066" + "x" * 900
    number = invite(assistant, ANN, "turned", hostile, datetime(2026, 11, 24, 11, tzinfo=UTC))
    for page in ("/", f"/requests/{number}", "/ledger"):
        html = ann.get(page).text
        assert not {"\u202e", "\u2066"} & set(html), page
        assert "x" * 700 not in html, page
        assert "<bdi>" in html, page


@pytest.mark.parametrize("least", [2, 3])
def test_reasons_and_names_are_shown_only_where_enough_people_agreed(
    ann: Client, assistant: Assistant, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    # Beside Ann, Bob and Cat have agreed.
    monkeypatch.setattr(kin, "LEAST", least)
    page = ann.get(f"/requests/{requests_of(assistant, ANN)[0]}").text
    people = ann.get("/people").text
    assert ('class="reason"' in page) is (least == 2)
    assert ("Bob Byrne" in people) is (least == 2)
    assert ("Bob Byrne" in page) is (least == 2)
    if least == 3:
        assert "fewer than 3 other people have agreed" in page
        assert "Fewer than" in people


def test_five_is_the_least() -> None:
    assert LEAST_AGREED == 5
