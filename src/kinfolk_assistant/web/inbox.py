"""The inbox with its prepared answers, one request with its reasons, and the answers given there."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Form
from sqlalchemy import select
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.features.rules import RULES
from kinfolk_assistant.learning.costs import ANSWERS
from kinfolk_assistant.ledger.calendar_read import cannot_decide
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import User
from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.service import kin
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.values import Detail, Prepared, Readiness
from kinfolk_assistant.service.views import MOST_FOUND
from kinfolk_assistant.service.weighing import costs_of
from kinfolk_assistant.web.automatic import to_undo
from kinfolk_assistant.web.forms import Choice, Number, Text, Whole
from kinfolk_assistant.web.limits import limits
from kinfolk_assistant.web.pages import go_to, show, wants_fragment
from kinfolk_assistant.web.sessions import Visitor
from kinfolk_assistant.web.visitors import Poster, Reader, Served

router = APIRouter()

SHOWN_FOR = timedelta(days=2)
"""So long the inbox shows what was answered automatically; the ledger shows it always."""

MOST_SHOWN = 200
"""So many rows of a kind; what comes after them moves up as they are answered."""

NOTICES = {
    "accept": "Accepted. The organiser will hear of it.",
    "decline": "Declined. The organiser will hear of it.",
    "undo": "Taken back before it was sent. The request is open again.",
    "undo-sent": "The request is open again. The organiser still has the answer: to change it, send the opposite.",
    "again": "It will be sent again.",
    "tentative": "Answered with “perhaps”. The organiser will hear of it.",
    "dismiss": "Put away unanswered. The organiser hears nothing; you find it again by searching.",
    "confirm": "The prepared answers are given. The organisers will hear of them.",
}


@router.get("/")
def inbox_page(request: Request, assistant: Served, visitor: Reader, did: str = "", about: int = 0) -> Response:
    """Show what waits, and what was answered for the user."""
    return _inbox(request, assistant, visitor, "inbox.html", did, about)


@router.get("/requests/{number}")
def request_page(request: Request, assistant: Served, visitor: Reader, number: Number, did: str = "") -> Response:
    """Show one request, and what speaks for its answer."""
    detail = assistant.request(visitor.address, number)
    return show(
        request,
        "request.html",
        visitor,
        detail=detail,
        around=assistant.around(visitor.address, number),
        limits=limits(costs_of(assistant.settings(visitor.address))),
        bars=_bars(detail.reasons),
        helpers=_names(assistant.ledger, [one["user"] for one in detail.kin]),
        features=[_Told.of(name, detail) for name in (*RULES, *NAMES)],
        undoable=number in to_undo(assistant.ledger, visitor.address, [number]),
        too_few=assistant.too_few_kin(visitor.address),
        least_kin=kin.LEAST,
        notice=NOTICES.get(did, ""),
    )


@router.post("/requests/{number}/answer")
def answer(
    request: Request, assistant: Served, visitor: Poster, number: Number, answer: Choice, note: Text = ""
) -> Response:
    """Answer by the user's hand."""
    assistant.answer(visitor.address, number, answer, note)
    if wants_fragment(request):
        response = _inbox(request, assistant, visitor, "inbox_list.html", answer, number)
    else:
        response = go_to(request, f"/?did={answer}&about={number}")
    response.background = BackgroundTask(request.app.state.wake)
    return response


@router.post("/confirm")
def confirm(request: Request, assistant: Served, visitor: Poster, prepared: Annotated[list[str], Form()]) -> Response:
    """Give all prepared answers that the user saw."""
    seen = [one.partition(":")[::2] for one in prepared[:MOST_SHOWN]]
    assistant.confirm(
        visitor.address, [(int(number), choice) for number, choice in seen if number.isdigit() and choice in ANSWERS]
    )
    response = go_to(request, "/?did=confirm")
    response.background = BackgroundTask(request.app.state.wake)
    return response


@router.post("/requests/{number}/dismiss")
def dismiss(request: Request, assistant: Served, visitor: Poster, number: Number) -> Response:
    """Put a request away unanswered."""
    assistant.dismiss(visitor.address, number)
    return go_to(request, f"/?did=dismiss&about={number}")


@router.get("/search")
def search_page(request: Request, assistant: Served, visitor: Reader, q: str = "") -> Response:
    """Show the requests that have all of some words."""
    words = q.replace("\0", "")[:200].strip()
    found = assistant.search(visitor.address, words) if words else []
    return show(request, "search.html", visitor, q=words, found=found, most=MOST_FOUND)


@router.post("/requests/{number}/undo")
def undo(request: Request, assistant: Served, visitor: Poster, number: Number) -> Response:
    """Take an automatic answer back."""
    assistant.undo(visitor.address, number)
    did = "undo-sent" if assistant.request(visitor.address, number).at_organiser else "undo"
    if wants_fragment(request):
        return _inbox(request, assistant, visitor, "inbox_list.html", did, number)
    return go_to(request, f"/requests/{number}?did={did}")


@router.post("/replies/{number}/send-again")
def send_again(request: Request, assistant: Served, visitor: Poster, number: Number, about: Whole = 0) -> Response:
    """Have an answer sent again of which it is not known whether it was sent."""
    assistant.mark_sent_again(visitor.address, number)
    response = go_to(request, f"/requests/{about}?did=again" if about else "/?did=again")
    response.background = BackgroundTask(request.app.state.wake)
    return response


def _inbox(request: Request, assistant: Assistant, visitor: Visitor, template: str, did: str, about: int) -> Response:
    shown = assistant.inbox(visitor.address)
    waiting = [one for one in shown if one.state == "open"]
    answered = [one for one in shown if one.state != "open"]
    inside = {one.id for one in answered}
    automatic = to_undo(assistant.ledger, visitor.address)
    if not inside <= automatic.keys():
        automatic |= to_undo(assistant.ledger, visitor.address, sorted(inside))
    recent = assistant.clock() - SHOWN_FOR
    settings = assistant.settings(visitor.address)
    return show(
        request,
        template,
        visitor,
        waiting=waiting[:MOST_SHOWN],
        days=_by_day(waiting[:MOST_SHOWN], known_zone(settings.zone)),
        confirmable=[one for one in waiting[:MOST_SHOWN] if one.action in ANSWERS],
        ready=None if settings.automation else _ready(assistant, visitor.address),
        n_waiting=len(waiting),
        prepared=[one for one in answered if one.id in automatic][:MOST_SHOWN],
        leaving=[one for one in answered if one.id not in automatic][:MOST_SHOWN],
        sent=[one for one in automatic.values() if one.id not in inside and one.made_at > recent],
        automatic=automatic,
        automation=settings.automation,
        daily_cap=settings.daily_cap,
        waits=_waits(assistant, settings) if settings.automation else [],
        notice=NOTICES.get(did, ""),
        notice_id=about,
    )


def _by_day(waiting: list[Prepared], zone: ZoneInfo) -> list[list[Prepared]]:
    """Put requests together whose meetings start on the same day."""
    days = groupby(waiting, key=lambda one: one.starts_at.astimezone(zone).date())
    return [list(requests) for _, requests in days]


def _ready(assistant: Assistant, user: str) -> Readiness | None:
    """Give the record that speaks for automation; None where it does not."""
    found = assistant.readiness(user)
    return found if found.is_ready else None


def _waits(assistant: Assistant, user: User) -> list[str]:
    """Why yeses, or noes, or no answers at all, are sent for the user now."""
    own = assistant.own_answers(user.address)
    unread = cannot_decide(user, assistant.clock())
    held = [f"{unread}; nothing is answered for you until it is read again"] if unread else []
    return held + [why for action in ANSWERS if (why := own.waits(action))]


class _Bar(NamedTuple):
    """A reason as it is drawn: from the middle of 200 units, the weightiest reaching the edge."""

    feature: str
    value: str
    log_ratio: float
    left: float
    width: float


def _bars(reasons: list[dict[str, Any]]) -> list[_Bar]:
    longest = max((abs(one["log_ratio"]) for one in reasons), default=0.0) or 1.0
    bars = []
    for one in reasons:
        width = round(96 * abs(one["log_ratio"]) / longest, 1)
        left = 100.0 if one["log_ratio"] > 0 else 100.0 - width
        bars.append(_Bar(one["feature"], one["value"], one["log_ratio"], left, width))
    return bars


class _Told(NamedTuple):
    """One feature of a request: its value and rule, or why it is not known."""

    name: str
    value: str | None
    rule: str

    @classmethod
    def of(cls, name: str, detail: Detail) -> _Told:
        value = detail.features.get(name)
        if name not in RULES:
            return cls(name, value, "how often you, and others, accept what bears it")
        if value is None:
            return cls(name, None, detail.unknown.get(name) or RULES[name].missing)
        return cls(name, value, RULES[name].values.get(value, ""))


def _names(ledger: Ledger, addresses: list[str]) -> list[str]:
    """Name those who agree now that others see their names, in the order given."""
    with ledger.read() as session:
        found = session.execute(
            select(User.address, User.name).where(User.address.in_(addresses), User.agreed_at.is_not(None))
        )
        names = {address: name or address for address, name in found}
    return [names[one] for one in addresses if one in names]
