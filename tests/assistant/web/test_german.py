"""The pages in German: none of their sentences is left in English, and nothing that people wrote is touched."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, requests_of

from kinfolk_assistant.service.assistant import Assistant

# Words of English sentences that German ones do not have.
_ENGLISH = re.compile(r"\b(the|you|your|and|is|were|with|that|this|of|will|be|would|have|has)\b", re.IGNORECASE)
# What is nobody's to translate: the tables of exact rules, names of files, what people wrote.
_LEFT = re.compile(
    r"<script.*?</script>|<head>.*?</head>|<bdi>.*?</bdi>|<td class=\"small quiet\">.*?</td>|<datalist.*?</datalist>"
    r"|<option[^>]*lang=.*?</option>",
    re.DOTALL,
)


@pytest.fixture
def german(app: FastAPI, assistant: Assistant) -> Client:
    assistant.change_settings(ANN, language="de")
    return Client(app).enter(ANN)


def words_of(html: str) -> str:
    return re.sub(r"<[^>]*>", " ", _LEFT.sub(" ", html))


@pytest.mark.parametrize("path", ["/", "/people", "/rules", "/score", "/settings", "/search?q=nothing"])
def test_a_page_has_no_english_sentence(german: Client, path: str) -> None:
    page = german.get(path)
    assert '<html lang="de">' in page.text
    assert _ENGLISH.findall(words_of(page.text)) == []


def test_a_request_and_its_record_have_none_either(german: Client, assistant: Assistant) -> None:
    assistant.change_settings(ANN, automation=True)
    first, second, third = requests_of(assistant, ANN)[:3]
    german.post(f"/requests/{first}/answer", {"answer": "decline"})
    german.post(f"/requests/{second}/dismiss")
    german.post(f"/requests/{third}/answer", {"answer": "tentative"})
    assistant.work(ANN)
    for number in (first, second, third):
        page = german.get(f"/requests/{number}").text
        assert _ENGLISH.findall(words_of(page)) == []
    deeds = [
        re.sub(r"„.*?“", "", one) for one in re.findall(r"deed-text\"><bdi>(.*?)</bdi>", german.get("/ledger").text)
    ]
    assert deeds
    assert [one for one in deeds if _ENGLISH.search(one)] == []


def test_the_sign_in_form_follows_the_browser(app: FastAPI) -> None:
    page = Client(app).get("/sign-in", headers={"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"})
    assert "Anmelden" in page.text
    assert "Sign in" in Client(app).get("/sign-in").text


def test_a_clock_of_twelve_hours_is_chosen_on_the_page(ann: Client, assistant: Assistant) -> None:
    assert "12:00–13:00" in ann.get("/").text
    ann.post("/settings/speech", {"clock": "12", "week_start": "6"})
    assert "12:00 pm–1:00 pm" in ann.get("/").text
    days = re.findall(r'name="weekdays" value="(\d)"', ann.get("/rules").text)
    assert days == ["6", "0", "1", "2", "3", "4", "5"]
