"""The inbox with its prepared answers, one request with its reasons, and the answers given there."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Form
from sqlalchemy import select
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.delivery.deliverer import may_propose
from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.features.rules import RULES
from kinfolk_assistant.learning.costs import ANSWERS
from kinfolk_assistant.ledger.calendar_read import cannot_decide
from kinfolk_assistant.ledger.requests import UNSENT
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import User
from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.service import kin
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotNow
from kinfolk_assistant.service.operating import in_shadow
from kinfolk_assistant.service.rules import in_words
from kinfolk_assistant.service.values import Detail, Prepared, Readiness
from kinfolk_assistant.service.views import MOST_FOUND
from kinfolk_assistant.service.weighing import costs_of
from kinfolk_assistant.web.automatic import to_undo
from kinfolk_assistant.web.forms import Choice, Moment, Number, Text, Whole
from kinfolk_assistant.web.limits import limits
from kinfolk_assistant.web.pages import go_to, manner_of, show, wants_fragment
from kinfolk_assistant.web.sessions import Visitor
from kinfolk_assistant.web.visitors import Poster, Reader, Served

router = APIRouter()

SHOWN_FOR = timedelta(days=2)
"""So long the inbox shows what was answered automatically; the ledger shows it always."""

MOST_SHOWN = 200
"""So many rows of a kind; what comes after them moves up as they are answered."""

LONGEST_PROPOSED = 7 * 24 * 60  # minutes

NOTICES = {
    "accept": "Accepted. The organiser will hear of it.",
    "decline": "Declined. The organiser will hear of it.",
    "undo": "Taken back before it was sent. The request is open again.",
    "undo-sent": "The request is open again. The organiser still has the answer: to change it, send the opposite.",
    "again": "It will be sent again.",
    "tentative": "Answered with “perhaps”. The organiser will hear of it.",
    "dismiss": "Put away unanswered. The organiser hears nothing; you find it again by searching.",
    "ignore": "Ignored from now on, with all changes of it. The organiser hears nothing; you find it by searching.",
    "snooze": "Put off. It comes back by itself.",
    "back": "It is in your inbox again.",
    "propose": "Your proposal goes to the organiser, who may ask anew for that time.",
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
        undoable=number in to_undo(assistant.ledger, visitor.address, [number]) or _can_take_back(detail),
        proposes=may_propose(assistant.deliver, visitor.address) and not detail.all_day,
        rule=_rule_in_words(assistant, request, visitor, detail.rule),
        later=_later(assistant, visitor.address, detail),
        too_few=assistant.too_few_kin(visitor.address),
        least_kin=kin.LEAST,
        notice=NOTICES.get(did, ""),
    )


@router.post("/requests/{number}/answer")
def answer(
    request: Request, assistant: Served, visitor: Poster, number: Number, answer: Choice, note: Text = ""
) -> Response:
    """Answer by the user's hand."""
    assistant.answer(visitor.address, number, answer, note, can_undo=True)
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
        visitor.address,
        [(int(number), choice) for number, choice in seen if number.isdigit() and choice in ANSWERS],
        can_undo=True,
    )
    response = go_to(request, "/?did=confirm")
    response.background = BackgroundTask(request.app.state.wake)
    return response


@router.post("/requests/{number}/dismiss")
def dismiss(
    request: Request, assistant: Served, visitor: Poster, number: Number, how: Literal["dismiss", "ignore"] = "dismiss"
) -> Response:
    """Put a request away unanswered, or ignore its meeting altogether."""
    assistant.dismiss(visitor.address, number, ignore=how == "ignore")
    return go_to(request, f"/?did={how}&about={number}")


@router.post("/requests/{number}/snooze")
def snooze(request: Request, assistant: Served, visitor: Poster, number: Number, until: Moment) -> Response:
    """Put a request off."""
    assistant.snooze(visitor.address, number, _moment(until, visitor))
    return go_to(request, f"/?did=snooze&about={number}")


@router.post("/requests/{number}/back")
def bring_back(request: Request, assistant: Served, visitor: Poster, number: Number) -> Response:
    """Put a request into the inbox again."""
    assistant.bring_back(visitor.address, number)
    return go_to(request, f"/requests/{number}?did=back")


@router.post("/requests/{number}/propose")
def propose(
    request: Request,
    assistant: Served,
    visitor: Poster,
    number: Number,
    start: Moment,
    minutes: Whole,
    note: Text = "",
) -> Response:
    """Propose another time."""
    begin = _moment(start, visitor)
    end = begin + timedelta(minutes=min(minutes, LONGEST_PROPOSED))
    assistant.propose(visitor.address, number, begin, end, note, can_undo=True)
    return go_to(request, f"/?did=propose&about={number}")


@router.get("/search")
def search_page(request: Request, assistant: Served, visitor: Reader, q: str = "") -> Response:
    """Show the requests that have all of some words."""
    words = q.replace("\0", "")[:200].strip()
    found = assistant.search(visitor.address, words) if words else []
    return show(request, "search.html", visitor, q=words, found=found, most=MOST_FOUND)


@router.post("/requests/{number}/undo")
def undo(request: Request, assistant: Served, visitor: Poster, number: Number) -> Response:
    """Take an automatic answer back, or one of the user's own that has not left."""
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
    now = assistant.clock()
    snoozed = [one for one in shown if one.state == "open" and (one.snoozed_until or now) > now]
    waiting = [one for one in shown if one.state == "open" and one not in snoozed]
    answered = [one for one in shown if one.state != "open"]
    inside = {one.id for one in answered}
    automatic = to_undo(assistant.ledger, visitor.address)
    if not inside <= automatic.keys():
        automatic |= to_undo(assistant.ledger, visitor.address, sorted(inside))
    recent = now - SHOWN_FOR
    settings = assistant.settings(visitor.address)
    return show(
        request,
        template,
        visitor,
        waiting=waiting[:MOST_SHOWN],
        days=_by_day(waiting[:MOST_SHOWN], known_zone(settings.zone)),
        snoozed=snoozed[:MOST_SHOWN],
        confirmable=[one for one in waiting[:MOST_SHOWN] if one.action in ANSWERS],
        ready=None if settings.automation else _ready(assistant, visitor.address),
        n_waiting=len(waiting),
        prepared=[one for one in answered if one.id in automatic][:MOST_SHOWN],
        leaving=[one for one in answered if one.id not in automatic][:MOST_SHOWN],
        unsent=UNSENT,
        sent=[one for one in automatic.values() if one.id not in inside and one.made_at > recent],
        automatic=automatic,
        automation=settings.automation,
        daily_cap=settings.daily_cap,
        waits=_waits(assistant, settings) if settings.automation else [],
        notice=NOTICES.get(did, ""),
        notice_id=about,
    )


def _rule_in_words(assistant: Assistant, request: Request, visitor: Visitor, kept: str) -> str:
    """Say the rules behind a decision in the visitor's language, as far as they are still there."""
    manner = manner_of(request, visitor)
    for rule in assistant.rules(visitor.address) if kept else ():
        kept = kept.replace(f"“{in_words(rule)}”", manner.say("“%(rule)s”", rule=in_words(rule, manner)))
    return kept


def _can_take_back(detail: Detail) -> bool:
    """Whether the user's own answer has not left."""
    return detail.state == "answered" and detail.reply_state in UNSENT


def _later(assistant: Assistant, user: str, detail: Detail) -> list[tuple[str, str]]:
    """Give moments until which a request can be put off, each with what it is called, and as a form says it."""
    now = assistant.clock()
    local = now.astimezone(known_zone(assistant.settings(user).zone))
    mornings = [datetime.combine(local.date() + timedelta(days=days), time(8), local.tzinfo) for days in range(1, 8)]
    before = detail.starts_at.astimezone(local.tzinfo).date() - timedelta(days=1)
    moments = [
        ("in three hours", local + timedelta(hours=3)),
        ("tomorrow morning", mornings[0]),
        ("on Monday morning", next(one for one in mornings if one.weekday() == 0)),
        ("on the morning before it", datetime.combine(before, time(8), local.tzinfo)),
    ]
    last = detail.starts_at if detail.starts_at > now else datetime.max.replace(tzinfo=UTC)
    found: dict[str, str] = {}
    for words, moment in moments:
        if now < moment < last:
            found.setdefault(f"{moment:%Y-%m-%dT%H:%M}", words)
    return [(words, moment) for moment, words in found.items()]


def _moment(told: str, visitor: Visitor) -> datetime:
    """Read what a form says of a moment, by the visitor's clock."""
    try:
        return datetime.strptime(told, "%Y-%m-%dT%H:%M").replace(tzinfo=known_zone(visitor.zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise NotNow("That is no day and hour.") from None


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
    shadow = in_shadow(user, assistant.trust, assistant.clock())
    held = [shadow] if shadow else []
    held += [f"{unread}; nothing is answered for you until it is read again"] if unread else []
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
