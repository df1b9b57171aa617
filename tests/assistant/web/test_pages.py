"""What the pages show and do: the inbox, one request, people like you, the ledger, the score, the rules."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import escape
from statistics import median
from time import thread_time

import pytest
from fastapi import FastAPI
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, BOB, CAT, DAN, HOSTILE, StillClock, invite, requests_of

from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.features.rules import ALL_FEATURES, RULES
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.speech.manner import Manner
from kinfolk_assistant.web.app import make_app
from kinfolk_assistant.web.pages import FEATURE_TITLES, value_in_words

FRAGMENT = {"X-Fragment": "yes"}


def automatic(assistant: Assistant, clock: StillClock | None = None) -> int:
    """An automatic answer to Ann's invitation to lunch; sent, where a clock is given."""
    assistant.change_settings(ANN, automation=True)
    number = invite(assistant, ANN, "automatic", "ann: Lunch", datetime(2026, 11, 19, 11, tzinfo=UTC))
    assistant.work(ANN)
    if clock:
        clock.now += timedelta(hours=1)
        assistant.work(ANN)
    return number


def section(html: str, number: int) -> str:
    """The row of a request in the inbox."""
    return html.partition(f'id="request-{number}"')[2].partition("</li>")[0]


class TestInbox:
    def test_each_request_shows_its_time_in_the_users_zone_and_its_prepared_answer(
        self, ann: Client, assistant: Assistant
    ) -> None:
        html = ann.get("/").text
        sync, _, _, offsite = requests_of(assistant, ANN)
        assert "10:00–10:30" in section(html, sync)
        assert "Would accept" in section(html, sync)
        assert "Overlaps" not in section(html, sync)
        assert "Would decline" in section(html, offsite)
        assert "Overlaps" in section(html, offsite)
        shown = {one.id: one.probability for one in assistant.inbox(ANN)}
        assert shown[sync] > 0.95
        assert f"{shown[sync]:.0%}" in section(html, sync)

    def test_requests_stand_in_the_order_they_came(self, ann: Client, assistant: Assistant) -> None:
        found = re.findall(r'id="request-(\d+)"', ann.get("/").text)
        assert [int(number) for number in found] == requests_of(assistant, ANN)

    def test_confirming_and_overriding_are_labels_and_replies(self, ann: Client, assistant: Assistant) -> None:
        first, second = requests_of(assistant, ANN)[:2]
        for number, answer in ((first, "accept"), (second, "decline")):
            response = ann.post(f"/requests/{number}/answer", {"answer": answer})
            assert response.headers["location"] == f"/?did={answer}&about={number}"
            detail = assistant.request(ANN, number)
            assert detail.label == answer
            assert [one.by for one in detail.replies] == ["user"]
        page = ann.get(f"/?did=decline&about={second}").text
        assert "Declined." in page
        assert "Your answers on their way" in page

    def test_the_script_gets_the_list_alone_and_the_same_as_the_page_has(
        self, ann: Client, assistant: Assistant
    ) -> None:
        number = requests_of(assistant, ANN)[0]
        fragment = ann.post(f"/requests/{number}/answer", {"answer": "accept"}, headers=FRAGMENT).text
        assert "<html" not in fragment
        assert fragment in ann.get(f"/?did=accept&about={number}").text

    def test_an_answer_is_sent_at_once_where_the_worker_can_be_woken(self, app: FastAPI, assistant: Assistant) -> None:
        app.state.wake = lambda: assistant.work(ANN)
        number = requests_of(assistant, ANN)[0]
        Client(app).enter(ANN).post(f"/requests/{number}/answer", {"answer": "accept"})
        assert [one.answer for one in assistant.deliver.sent] == ["ACCEPTED"]

    def test_another_word_than_accept_or_decline_is_refused(self, ann: Client, assistant: Assistant) -> None:
        number = requests_of(assistant, ANN)[0]
        for form in ({}, {"answer": "maybe"}):
            assert ann.post(f"/requests/{number}/answer", form).status_code == 400
        assert assistant.request(ANN, number).state == "open"

    def test_numbers_that_no_request_can_have_are_no_requests(self, ann: Client) -> None:
        for number in ("0", "-1", "99999999999999999999", "x"):
            assert ann.get(f"/requests/{number}").status_code in (400, 404)

    @pytest.mark.parametrize("sent", [False, True])
    def test_an_automatic_answer_can_be_undone_from_every_page_that_shows_it(
        self, ann: Client, assistant: Assistant, clock: StillClock, sent: bool
    ) -> None:
        number = automatic(assistant, clock if sent else None)
        form = f'action="/requests/{number}/undo"'
        for page in ("/", f"/requests/{number}", "/ledger"):
            assert ann.get(page).text.count(form) == 1, page
        assert ann.post(f"/requests/{number}/undo").status_code == 303
        assert assistant.request(ANN, number).state == "open"
        for page in ("/", f"/requests/{number}", "/ledger"):
            assert form not in ann.get(page).text, page
        assert ann.post(f"/requests/{number}/undo").status_code == 409

    def test_every_automatic_answer_that_waits_can_be_undone_however_many_there_are(
        self, ann: Client, assistant: Assistant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kinfolk_assistant.web.automatic.MOST_SHOWN", 1)
        assistant.change_settings(ANN, automation=True)
        for n in range(3):
            invite(assistant, ANN, f"many-{n}", f"Meeting {n}", datetime(2026, 11, 23 + n, 11, tzinfo=UTC))
        assistant.work(ANN)
        assert ann.get("/").text.count("/undo") == 3

    def test_a_flood_of_invitations_makes_no_endless_page(self, ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kinfolk_assistant.web.inbox.MOST_SHOWN", 3)
        html = ann.get("/").text
        assert html.count('id="request-') == 3
        assert "4 invitations wait for you; the first 3 are shown." in html

    def test_a_refusal_comes_to_the_script_as_one_sentence(self, ann: Client, assistant: Assistant) -> None:
        number = requests_of(assistant, ANN)[0]
        response = ann.post(f"/requests/{number}/undo", headers=FRAGMENT)
        assert response.status_code == 409
        assert response.text.strip() == "There is no answer to take back."

    def test_a_page_takes_few_milliseconds_beyond_its_query(
        self, app: FastAPI, ann: Client, assistant: Assistant
    ) -> None:
        from kinfolk_assistant.web import pages

        spent = []
        render = pages.show
        for n in range(40):
            invite(assistant, ANN, f"many-{n}", f"Meeting {n}", datetime(2026, 11, 23, 9, tzinfo=UTC))
        assistant.work(ANN)

        def timed(*given: object, **named: object) -> object:
            begin = thread_time()
            page = render(*given, **named)
            spent.append(thread_time() - begin)
            return page

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kinfolk_assistant.web.inbox.show", timed)
            for _ in range(7):
                ann.get("/")
        assert median(spent[1:]) < 0.02


class TestEscaping:
    def test_text_of_an_invitation_is_shown_as_text_on_every_page(self, ann: Client, assistant: Assistant) -> None:
        number = requests_of(assistant, ANN)[2]
        ann.post("/settings/costs", {"false_accept": "1", "false_decline": "1", "ask": "0.1"})
        shows = 0
        for page in ("/", f"/requests/{number}", "/ledger", "/score", "/people", "/settings"):
            html = ann.get(page).text
            assert "<script>alert" not in html
            assert "<i>Organiser" not in html
            assert "Room 4 <b>" not in html
            assert "49" not in re.findall(r"ann: .*?</", html)
            shows += str(escape(HOSTILE)).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in html
        assert shows == 3

    def test_what_a_slider_would_change_is_escaped(self, ann: Client) -> None:
        form = {"false_accept": "1", "false_decline": "1", "ask": "0"}
        html = ann.post("/settings/preview", form, headers=FRAGMENT).text
        assert "&lt;script&gt;alert" in html
        assert "<script>" not in html

    def test_names_and_what_a_user_typed_are_escaped(self, ann: Client, app: FastAPI, assistant: Assistant) -> None:
        assistant.change_settings(BOB, name="<img src=x>")
        assert "<img src=x>" not in ann.get("/people").text
        assert "&lt;img src=x&gt;" in ann.get("/people").text
        wrong = Client(app).sign_in('"><script>x</script>@example.org', "wrong")
        assert "<script>x" not in wrong.text


class TestRequest:
    def test_probability_reasons_and_all_fifteen_features_are_told(self, ann: Client, assistant: Assistant) -> None:
        number = requests_of(assistant, ANN)[3]
        detail = assistant.request(ANN, number)
        html = ann.get(f"/requests/{number}").text
        assert detail.probability is not None
        assert f"<strong>{detail.probability:.0%}</strong>" in html
        for title in FEATURE_TITLES.values():
            assert str(escape(title)).replace("&#x27;", "&#39;") in html
        for name, value in detail.features.items():
            if value is not None:
                assert value_in_words(name, value) in html
        assert "the owner has named no places" in html
        bars = html.partition("What weighed most")[2].partition("</section>")[0]
        assert bars.count('class="fill-decline"') == 3
        assert any(title in bars for title in ("That day", "That half day", "Overlap", "Free time around it"))

    def test_bars_are_as_long_as_the_log_ratios_and_point_their_way(self) -> None:
        from kinfolk_assistant.web.inbox import _bars

        up, down = _bars(
            [
                {"feature": "conflict", "value": "no", "log_ratio": 2.0},
                {"feature": "duration", "value": "15", "log_ratio": -0.5},
            ]
        )
        assert (up.left, up.width) == (100.0, 96.0)
        assert (down.left, down.width) == (76.0, 24.0)

    def test_helpers_are_named_and_their_meetings_are_not(self, ann: Client, assistant: Assistant) -> None:
        html = ann.get(f"/requests/{requests_of(assistant, ANN)[0]}").text
        helped = html.partition("Whose answers helped")[2].partition("</section>")[0]
        assert "Bob Byrne" in helped
        assert "bob:" not in html
        assert "Secret past" not in html

    def test_a_cancelled_request_offers_no_answer(self, ann: Client, assistant: Assistant) -> None:
        from kinfolk_assistant.ledger.tables import Request

        number = requests_of(assistant, ANN)[0]
        with assistant.ledger.begin() as session:
            session.get_one(Request, number).state = "cancelled"
        html = ann.get(f"/requests/{number}").text
        assert "Cancelled by the organiser" in html
        assert f'action="/requests/{number}/answer"' not in html
        assert ann.post(f"/requests/{number}/answer", {"answer": "accept"}).status_code == 409


class TestPeople:
    def test_only_those_who_agreed_are_shown(self, ann: Client, app: FastAPI, assistant: Assistant) -> None:
        html = ann.get("/people").text
        assert "Bob Byrne" in html
        assert "Cat Castle" in html
        assert "Dan Dorn" not in html
        assistant.withdraw(CAT)
        assert "Cat Castle" not in ann.get("/people").text

    def test_one_who_agrees_no_longer_is_not_shown_even_by_a_model_that_knows_them(
        self, ann: Client, assistant: Assistant
    ) -> None:
        from kinfolk_assistant.ledger.tables import User

        with assistant.ledger.begin() as session:
            session.get_one(User, CAT).agreed_at = None
        html = ann.get("/people").text
        assert "Bob Byrne" in html
        assert "Cat Castle" not in html

    def test_one_who_keeps_to_himself_sees_himself_among_them(self, app: FastAPI, assistant: Assistant) -> None:
        html = Client(app).enter(DAN).get("/people").text
        assert "Dan Dorn" in html
        assert "Bob Byrne" in html

    def test_the_nearest_are_those_the_model_finds(self, ann: Client, assistant: Assistant) -> None:
        nearest = ann.get("/people").text.partition("Nearest to you")[2].partition("</table>")[0]
        assert [one.user for one in assistant.model(ANN).kin(ANN)] == [BOB]
        assert "Bob Byrne" in nearest
        assert "Cat Castle" not in nearest

    def test_without_a_model_it_says_so(self, ann: Client, assistant: Assistant) -> None:
        from sqlalchemy import delete

        from kinfolk_assistant.ledger.tables import Model

        with assistant.ledger.begin() as session:
            session.execute(delete(Model))
        assert "Nothing is learnt yet" in ann.get("/people").text


class TestRecord:
    def test_the_ledger_is_paged_and_misses_no_line(self, ann: Client, assistant: Assistant) -> None:
        for n in range(60):
            assistant.change_settings(ANN, daily_cap=n % 2 + 3)
        deeds = assistant.deeds(ANN, limit=1000)
        path, shown = "/ledger", []
        while path:
            html = ann.get(path).text
            shown += re.findall(r'<span class="deed-text">(.*?)</span>', html, re.DOTALL)
            found = re.search(r'href="(/ledger\?before=\d+)"', html)
            path = found[1] if found else ""
        assert len(shown) == len(deeds)
        assert str(escape(deeds[-1].text, quote=False)) in shown[-1]

    def test_the_score_counts_what_the_user_did_after_a_decision(self, ann: Client, assistant: Assistant) -> None:
        assert "You have not answered anything yet" in ann.get("/score").text
        for number, answer in zip(requests_of(assistant, ANN), ("accept", "accept", "decline", "decline"), strict=True):
            assistant.answer(ANN, number, answer)
        html = ann.get("/score").text
        assert "<dt>right</dt><dd>75%</dd>" in html
        rows = [re.sub(r"<.*?>", " ", row).split() for row in re.findall(r"<tr>(.*?)</tr>", html)]
        assert ["accept", "3", "2", "67%"] in rows
        assert ["decline", "1", "1", "100%"] in rows


class TestAbout:
    def test_every_rule_of_every_value_is_there_for_anybody(self, app: FastAPI) -> None:
        html = Client(app).get("/about").text
        assert list(FEATURE_TITLES) == [*ALL_FEATURES, *NAMES]
        for name, rule in RULES.items():
            assert f'id="{name}"' in html
            for value, words in rule.values.items():
                assert value in ALL_FEATURES[name]
                assert str(escape(words, quote=False)) in html.replace("&#39;", "'").replace("&#34;", '"')


@pytest.mark.parametrize(
    ("start", "hours", "all_day", "words"),
    [
        ((2026, 7, 1, 8), 1, False, ("Wed 1 Jul", "10:00–11:00")),
        ((2026, 7, 1, 21), 2, False, ("Wed 1 Jul", "23:00, to Thu 2 Jul 01:00")),
        ((2026, 6, 30, 22), 24, True, ("Wed 1 Jul", "all day")),
        ((2026, 6, 30, 22), 48, True, ("Wed 1 Jul", "to Thu 2 Jul")),
        ((2026, 12, 31, 12), 24, False, ("Thu 31 Dec", "13:00, to Fri 1 Jan 2027 13:00")),
        ((2027, 7, 1, 8), 1, False, ("Thu 1 Jul 2027", "10:00–11:00")),
    ],
)
def test_a_time_is_told_in_the_users_zone(
    start: tuple[int, ...], hours: int, all_day: bool, words: tuple[str, str]
) -> None:
    from zoneinfo import ZoneInfo

    begin, now = datetime(*start, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    assert Manner().span(begin, begin + timedelta(hours=hours), all_day, ZoneInfo("Europe/Berlin"), now) == words


def test_every_page_of_the_made_up_team_says_that_it_is_made_up_and_no_other_does(
    assistant: Assistant, ann: Client
) -> None:
    assistant.add_user("abel@exercise.example")
    app = make_app(assistant, proxy_header="X-User", trusted_proxies=("192.0.2.7",), secure_cookies=False)
    for path in ("/", "/people", "/score", "/ledger", "/settings", "/about"):
        shown = Client(app).ask("GET", path, headers={"X-User": "abel@exercise.example"}).text
        assert "are made up" in shown
        assert "are made up" not in ann.ask("GET", path).text
