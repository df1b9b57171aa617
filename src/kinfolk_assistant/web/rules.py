"""A user's own rules, the vetoes, and rules that what was seen suggests."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.rules import NIGHT_BEGINS, NIGHT_ENDS, in_words
from kinfolk_assistant.web.forms import Number, Text
from kinfolk_assistant.web.pages import go_to, manner_of, show
from kinfolk_assistant.web.sessions import Visitor
from kinfolk_assistant.web.visitors import Poster, Reader, Served

router = APIRouter()

VETOES = {
    "overlap": "it overlaps something in your calendar (a yes only)",
    "night": f"it is before {NIGHT_ENDS.hour}:00 or after {NIGHT_BEGINS.hour}:00 (a yes only)",
    "weekend": "it is on a Saturday or Sunday (a yes only)",
    "stranger": "its organiser is from outside and you have accepted nothing of theirs yet",
}
NOTICES = {"added": "The rule holds from now on.", "removed": "The rule is gone.", "vetoes": "Saved."}


@router.get("/rules")
def rules_page(request: Request, assistant: Served, visitor: Reader, did: str = "") -> Response:
    """Show all rules."""
    return _page(request, assistant, visitor, notice=NOTICES.get(did, ""))


@router.post("/rules/add")
def add(
    request: Request,
    assistant: Served,
    visitor: Poster,
    verdict: Text = "",
    organiser: Text = "",
    domain: Text = "",
    topic: Text = "",
    weekdays: Annotated[list[str] | None, Form()] = None,
    from_hour: Text = "",
    to_hour: Text = "",
    shortest: Text = "",
    longest: Text = "",
    conflict: Text = "",
    series: Text = "",
) -> Response:
    """Make a rule."""
    try:
        numbers = {
            name: _number(value)
            for name, value in (
                ("from_hour", from_hour),
                ("to_hour", to_hour),
                ("shortest", shortest),
                ("longest", longest),
            )
        }
        assistant.add_rule(
            visitor.address,
            verdict=verdict,
            organiser=organiser,
            domain=domain,
            topic=topic,
            weekdays="".join(weekdays or [])[:7],
            conflict=conflict,
            series=series,
            **numbers,
        )
    except ValueError as error:
        return _page(request, assistant, visitor, wrong=str(error))
    return go_to(request, "/rules?did=added")


@router.post("/rules/{number}/remove")
def remove(request: Request, assistant: Served, visitor: Poster, number: Number) -> Response:
    """Take a rule away."""
    assistant.remove_rule(visitor.address, number)
    return go_to(request, "/rules?did=removed")


@router.post("/rules/vetoes")
def change_vetoes(
    request: Request,
    assistant: Served,
    visitor: Poster,
    vetoes: Annotated[list[str] | None, Form()] = None,
    answers: Annotated[Literal["both", "accept", "decline"], Form()] = "both",
) -> Response:
    """Take what turns an automatic answer into a question."""
    try:
        assistant.change_settings(visitor.address, vetoes=" ".join(vetoes or []), answers=answers)
    except ValueError as error:
        return _page(request, assistant, visitor, wrong=str(error))
    return go_to(request, "/rules?did=vetoes")


def _number(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not text.isdecimal() or len(text) > 6:
        raise ValueError("Hours and lengths are whole numbers.")
    return int(text)


def _page(request: Request, assistant: Assistant, visitor: Visitor, *, notice: str = "", wrong: str = "") -> Response:
    user = assistant.settings(visitor.address)
    manner = manner_of(request, visitor)
    return show(
        request,
        "rules.html",
        visitor,
        status=400 if wrong else 200,
        user=user,
        rules=[(rule.id, in_words(rule, manner)) for rule in assistant.rules(visitor.address)],
        proposals=assistant.proposed_rules(visitor.address)[:20],
        vetoes=VETOES,
        chosen=user.vetoes.split(),
        days=manner.week(),
        notice=notice,
        wrong=wrong,
    )
