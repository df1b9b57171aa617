"""Asking well: what the inbox and a request's page tell, and the answers that are neither yes nor no."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, StillClock, calendar, invite, requests_of

from kinfolk_assistant.ledger.tables import Decision
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotNow
from kinfolk_assistant.service.values import Readiness

DAY = datetime(2026, 11, 25, 13, tzinfo=UTC)


def shown(html: str) -> list[int]:
    return [int(number) for number in re.findall(r'id="request-(\d+)"', html)]


def take_in(assistant: Assistant, text: str) -> int:
    return assistant.take_in(ANN, read_calendar(text.encode()), received_at=assistant.clock(), source="caldav")[0]


def test_the_inbox_is_sorted_by_when_meetings_are_and_grouped_by_day(ann: Client, assistant: Assistant) -> None:
    late = invite(assistant, ANN, "late", "Late", DAY + timedelta(days=9))
    early = invite(assistant, ANN, "early", "Early", datetime(2026, 11, 16, 15, tzinfo=UTC))
    assistant.work(ANN)
    html = ann.get("/").text
    assert shown(html)[0] == early
    assert shown(html)[-1] == late
    days = re.findall(r"<h2>(\w{3} \d+ \w{3})</h2>", html)
    assert days == ["Mon 16 Nov", "Tue 17 Nov", "Wed 18 Nov", "Fri 20 Nov", "Fri 4 Dec"]


def test_what_is_over_leaves_the_inbox_and_a_series_stays(assistant: Assistant, clock: StillClock) -> None:
    text = calendar("weekly", "Weekly", DAY, 30, ANN).decode().replace("SUMMARY", "RRULE:FREQ=WEEKLY\r\nSUMMARY")
    series = take_in(assistant, text)
    assistant.work(ANN)
    clock.now = DAY + timedelta(days=1)
    assert [one.id for one in assistant.inbox(ANN)] == [series]


def test_where_it_asks_it_says_what_is_likely(ann: Client, assistant: Assistant) -> None:
    number = requests_of(assistant, ANN)[0]
    said = {0.77: "Asks you: probably yes", 0.3: "Asks you: probably no", 0.5: "Asks you</span>"}
    for probability, words in said.items():
        with assistant.ledger.begin() as session:
            fields = {"expected_losses": {}, "reasons": [], "kin": [], "shadow": True}
            session.add(
                Decision(request_id=number, made_at=assistant.clock(), action="ask", probability=probability, **fields)
            )
        for page in ("/", f"/requests/{number}"):
            assert words in ann.get(page).text


def test_all_prepared_answers_are_confirmed_as_they_were_seen(ann: Client, assistant: Assistant) -> None:
    sync, budget, hostile, offsite = requests_of(assistant, ANN)
    html = ann.get("/").text
    assert "Confirm all 4 prepared answers" in html
    prepared = re.findall(r'name="prepared" value="([^"]+)"', html)
    # What was seen as a no is prepared as a yes by now: nothing is done about it.
    seen = [one.replace(f"{sync}:accept", f"{sync}:decline") for one in prepared]
    assert ann.post("/confirm", {"prepared": seen}).headers["location"] == "/?did=confirm"
    labels = [assistant.request(ANN, one).label for one in (sync, budget, hostile, offsite)]
    assert labels == [None, "accept", "accept", "decline"]
    assert ann.post("/confirm", {"prepared": ["x:accept", "999999:accept", f"{sync}:maybe"]}).status_code == 303
    assert assistant.request(ANN, sync).label is None


def test_the_day_shows_what_is_overlapped_by_name(ann: Client, assistant: Assistant) -> None:
    sync, _, _, offsite = requests_of(assistant, ANN)
    page = ann.get(f"/requests/{offsite}").text.partition('id="day-title"')[2].partition("</ol>")[0]
    assert re.search(r"Workshop.*?Overlaps", page, re.DOTALL)
    assert "This invitation" in page
    assert "Workshop" not in ann.get(f"/requests/{sync}").text


def test_description_join_link_series_and_guests_are_told(ann: Client, assistant: Assistant) -> None:
    more = [
        "RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=6",
        "DESCRIPTION:Bring <b>plans</b>.\\nhttps://zoom.us/j/123?pwd=x",
        "ATTENDEE;CN=Cy;PARTSTAT=ACCEPTED;ROLE=OPT-PARTICIPANT:mailto:cy@example.org",
        "SUMMARY",
    ]
    number = take_in(assistant, calendar("full", "Full", DAY, 30, ANN).decode().replace("SUMMARY", "\r\n".join(more)))
    html = ann.get(f"/requests/{number}").text
    assert "every 2 weeks, 6 times" in html
    assert "Bring &lt;b&gt;plans&lt;/b&gt;." in html
    assert 'href="https://zoom.us/j/123?pwd=x"' in html
    assert re.search(r"Cy</bdi> ✓.*?\(optional\)", html)


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://evil.example/zoom.us/j/1", "http://zoom.us/j/1"])
def test_only_a_meeting_services_own_address_is_a_join_link(assistant: Assistant, link: str) -> None:
    text = calendar("bad", "Bad", DAY, 30, ANN).decode().replace("SUMMARY", f"DESCRIPTION:{link}\r\nSUMMARY")
    assert assistant.around(ANN, take_in(assistant, text)).join == ""


def test_an_update_says_what_has_changed(ann: Client, assistant: Assistant) -> None:
    first = calendar("moved", "Plans", DAY, 60, ANN).decode()
    take_in(assistant, first)
    second = calendar("moved", "Better plans", DAY + timedelta(hours=1), 60, ANN).decode()
    number = take_in(assistant, second.replace("SUMMARY", "SEQUENCE:1\r\nSUMMARY").replace("Room 4 <b>", "Room 5"))
    assert assistant.around(ANN, number).changes == [
        "It was at 14:00 on 25.11.2026 for 60 minutes.",
        "It was at Room 4 <b>.",
        "It was called “Plans”.",
    ]
    assert "What has changed" in ann.get(f"/requests/{number}").text


def test_perhaps_is_sent_and_is_no_label(ann: Client, assistant: Assistant) -> None:
    number = requests_of(assistant, ANN)[0]
    ann.post(f"/requests/{number}/answer", {"answer": "tentative", "note": "If the train is on time."})
    assistant.work(ANN)
    [sent] = assistant.deliver.sent
    assert sent.answer == "TENTATIVE"
    assert "COMMENT:If the train is on time." in sent.text.replace("\r\n ", "")
    detail = assistant.request(ANN, number)
    assert (detail.state, detail.label) == ("answered", None)
    assert "Answered with “perhaps” by you" in ann.get(f"/requests/{number}").text


def test_a_note_goes_with_an_answer_that_was_given_already(assistant: Assistant) -> None:
    number = requests_of(assistant, ANN)[0]
    assistant.answer(ANN, number, "accept")
    assistant.work(ANN)
    assistant.answer(ANN, number, "accept", "I shall be late.")
    assistant.work(ANN)
    assert [("I shall be late." in one.text, one.answer) for one in assistant.deliver.sent] == [
        (False, "ACCEPTED"),
        (True, "ACCEPTED"),
    ]


def test_what_is_put_away_leaves_without_a_word(ann: Client, assistant: Assistant) -> None:
    number = requests_of(assistant, ANN)[0]
    assert ann.post(f"/requests/{number}/dismiss").headers["location"] == f"/?did=dismiss&about={number}"
    assistant.work(ANN)
    assert assistant.deliver.sent == []
    assert number not in shown(ann.get("/").text)
    assert "Put away unanswered" in ann.get(f"/requests/{number}").text
    assert assistant.request(ANN, number).label is None
    with pytest.raises(NotNow):
        assistant.dismiss(ANN, number)


def test_what_was_put_away_comes_back_where_the_organiser_changes_it(assistant: Assistant) -> None:
    number = invite(assistant, ANN, "again", "Again", DAY)
    assistant.dismiss(ANN, number)
    text = calendar("again", "Again", DAY + timedelta(hours=2), 60, ANN).decode()
    later = take_in(assistant, text.replace("SUMMARY", "SEQUENCE:1\r\nSUMMARY"))
    assert assistant.request(ANN, number).state == "superseded"
    assert assistant.request(ANN, later).state == "open"


def test_search_finds_own_invitations_by_words_of_title_organiser_and_place(ann: Client, assistant: Assistant) -> None:
    sync = requests_of(assistant, ANN)[0]
    for words in ("weekly SYNC", "olga weekly", "room weekly"):
        assert [one.id for one in assistant.search(ANN, words)] == [sync], words
    assert assistant.search(ANN, "weekly bob") == []
    assert assistant.search(ANN, "100%") == []
    html = ann.get("/search?q=weekly+%3Cb%3E").text
    assert f"/requests/{sync}" in html
    assert "<b>" not in html.partition("<main")[2]
    assert "No invitation has" in ann.get("/search?q=nowhere").text


def test_automation_is_proposed_once_thirty_prepared_answers_were_right(ann: Client, assistant: Assistant) -> None:
    assert "You may turn automation on now" not in ann.get("/").text
    for n in range(30):
        number = invite(assistant, ANN, f"right-{n}", "Free", DAY + timedelta(hours=3 * n))
        assistant.work(ANN)
        assistant.answer(ANN, number, assistant.request(ANN, number).action)
    found = assistant.readiness(ANN)
    assert found == Readiness(30, 30)
    assert "of the last 30 answers that were prepared, 30 were" in ann.get("/").text
    assistant.change_settings(ANN, automation=True)
    assert "You may turn automation on now" not in ann.get("/").text
    assert not Readiness(29, 29).is_ready
    assert not Readiness(30, 28).is_ready
