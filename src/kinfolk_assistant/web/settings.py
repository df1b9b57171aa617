"""The settings: costs and what they change, automation, time and place, the table, consent, password, erasure."""

from __future__ import annotations

import hmac
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from zoneinfo import available_timezones

from fastapi import APIRouter, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.features.people import People
from kinfolk_assistant.learning.costs import Costs
from kinfolk_assistant.ledger.own_answers import NEEDED
from kinfolk_assistant.ledger.tables import Contact
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.weighing import costs_of, weigh
from kinfolk_assistant.speech.catalogue import languages
from kinfolk_assistant.speech.manner import Manner
from kinfolk_assistant.web.forms import Cost, Text, Whole
from kinfolk_assistant.web.limits import limits
from kinfolk_assistant.web.pages import go_to, show, wants_fragment
from kinfolk_assistant.web.sessions import Visitor
from kinfolk_assistant.web.sign_in import may_enter, set_password
from kinfolk_assistant.web.visitors import Keeper, Poster, Reader, Served

router = APIRouter()

LARGEST_TABLE = 2**20  # bytes
MOST_SHOWN = 200
ZONES = sorted(name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/")))

NOTICES = {
    "costs": "Your costs are saved, and the prepared answers follow them.",
    "automation": "Saved.",
    "speech": "Saved.",
    "digest": "Saved.",
    "place": "Saved. New invitations are looked at with it.",
    "contacts": "The table is added. New invitations are looked at with it.",
    "clear": "The table is empty.",
    "agree": "Thank you. From the next model on your answers help people like you.",
    "withdraw": "You withdrew. Your answers help nobody but you.",
    "password": "The password is changed, and other browsers are signed out.",
}


@router.get("/settings")
def settings_page(request: Request, assistant: Served, visitor: Reader, did: str = "") -> Response:
    """Show all settings."""
    return _page(request, assistant, visitor, notice=NOTICES.get(did, ""))


@router.post("/settings/preview")
def preview(
    request: Request, assistant: Served, visitor: Poster, false_accept: Cost, false_decline: Cost, ask: Cost
) -> Response:
    """Show what costs would change, without taking them."""
    costs = Costs(false_accept, false_decline, ask)
    if wants_fragment(request):
        return show(request, "preview.html", visitor, **_preview(assistant, visitor, costs))
    return _page(request, assistant, visitor, costs=costs)


@router.post("/settings/costs")
def change_costs(
    request: Request, assistant: Served, visitor: Poster, false_accept: Cost, false_decline: Cost, ask: Cost
) -> Response:
    """Take costs."""
    assistant.change_settings(
        visitor.address, cost_false_accept=false_accept, cost_false_decline=false_decline, cost_ask=ask
    )
    return go_to(request, "/settings?did=costs#costs")


@router.post("/settings/automation")
def change_automation(
    request: Request,
    assistant: Served,
    visitor: Poster,
    daily_cap: Whole,
    undo_minutes: Whole,
    undo_seconds: Whole = 20,
    automation: Text = "",
) -> Response:
    """Turn automation on or off, and bound it."""
    fields = {
        "automation": automation == "yes",
        "daily_cap": daily_cap,
        "undo_minutes": undo_minutes,
        "undo_seconds": undo_seconds,
    }
    return _change(request, assistant, visitor, fields, "automation")


@router.post("/settings/place")
def change_place(request: Request, assistant: Served, visitor: Poster, zone: Text = "", places: Text = "") -> Response:
    """Take the time zone and the places that are near."""
    return _change(request, assistant, visitor, {"zone": zone.strip(), "places": places}, "place")


@router.post("/settings/speech")
def change_speech(
    request: Request,
    assistant: Served,
    visitor: Poster,
    language: Text = "",
    clock: Text = "24",
    week_start: Whole = 0,
) -> Response:
    """Take the language, the clock and the first day of the week."""
    fields = {"language": language, "clock": clock, "week_start": week_start}
    return _change(request, assistant, visitor, fields, "speech")


@router.post("/settings/digest")
def change_digest(request: Request, assistant: Served, visitor: Poster, hour: Text = "") -> Response:
    """Take the hour of the daily mail, or none."""
    fields = {"digest_hour": int(hour) if hour.isdecimal() and len(hour) <= 2 else None}
    return _change(request, assistant, visitor, fields, "digest")


@router.post("/settings/contacts")
def add_contacts(request: Request, assistant: Served, visitor: Poster, table: UploadFile) -> Response:
    """Add a table of people and topics; its lines replace those about the same person or topic."""
    data = table.file.read(LARGEST_TABLE + 1)
    try:
        if len(data) > LARGEST_TABLE:
            raise ValueError(f"The table has more than the {LARGEST_TABLE:,} bytes that it may have.")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"table{PurePath(table.filename or '').suffix.lower()[:8]}"
            path.write_bytes(data)
            added = People.read(path).contacts
        known: dict[tuple[str, str], Any] = {(one.kind, one.key): one for one in assistant.contacts(visitor.address)}
        known |= {(one.kind, one.key): one for one in added}
        lines = [
            Contact(kind=one.kind, key=one.key, job=one.job, relation=one.relation, importance=one.importance)
            for one in known.values()
        ]
        assistant.set_contacts(visitor.address, lines)
    except ValueError as error:
        return _page(request, assistant, visitor, wrong=str(error))
    return go_to(request, "/settings?did=contacts#contacts")


@router.post("/settings/contacts/clear")
def clear_contacts(request: Request, assistant: Served, visitor: Poster) -> Response:
    """Empty the table."""
    assistant.set_contacts(visitor.address, [])
    return go_to(request, "/settings?did=clear#contacts")


@router.post("/settings/agree")
def agree(request: Request, assistant: Served, visitor: Poster) -> Response:
    """Let the user's history help others."""
    assistant.agree(visitor.address)
    return go_to(request, "/settings?did=agree#helping")


@router.post("/settings/withdraw")
def withdraw(request: Request, assistant: Served, visitor: Poster) -> Response:
    """Let it help others no longer."""
    assistant.withdraw(visitor.address)
    return go_to(request, "/settings?did=withdraw#helping")


@router.post("/settings/password")
def change_password(
    request: Request, assistant: Served, keeper: Keeper, visitor: Poster, current: Text = "", new: Text = ""
) -> Response:
    """Change the password; every other browser is signed out."""
    key = f"address {visitor.address}"
    wrong = ""
    if keeper.proxy_header is not None:
        wrong = "Passwords are not used here."
    elif keeper.attempts.wait(key) > 0:
        wrong = "There were too many tries. Wait a while, then try again."
    elif not may_enter(assistant.ledger, visitor.address, current):
        wrong = "The password you have now is another one."
    else:
        keeper.attempts.succeeded(key)
        try:
            set_password(assistant.ledger, visitor.address, new)
        except ValueError as error:
            wrong = str(error)
    if wrong:
        return _page(request, assistant, visitor, wrong=wrong)
    keeper.sessions.end_others(visitor.address, request.cookies.get(keeper.session_cookie, ""))
    return go_to(request, "/settings?did=password#password")


@router.post("/settings/erase")
def erase(request: Request, assistant: Served, keeper: Keeper, visitor: Poster, typed: Text = "") -> Response:
    """Delete everything of the user's, once their address is typed."""
    if not hmac.compare_digest(typed.strip().lower().encode(), visitor.address.encode()):
        return _page(request, assistant, visitor, wrong="Nothing was erased: type your address to confirm.")
    assistant.erase(visitor.address)
    response = show(
        request, "error.html", None, title="Erased", message="Everything of yours is deleted. Thank you for trying it."
    )
    response.delete_cookie(keeper.session_cookie, httponly=True, samesite="lax", secure=keeper.secure_cookies)
    return response


def _change(
    request: Request, assistant: Assistant, visitor: Visitor, fields: Mapping[str, object], section: str
) -> Response:
    try:
        assistant.change_settings(visitor.address, **fields)
    except ValueError as error:
        return _page(request, assistant, visitor, wrong=str(error))
    return go_to(request, f"/settings?did={section}#{section}")


def _page(
    request: Request,
    assistant: Assistant,
    visitor: Visitor,
    *,
    notice: str = "",
    wrong: str = "",
    costs: Costs | None = None,
) -> Response:
    user = assistant.settings(visitor.address)
    costs = costs or costs_of(user)
    contacts = assistant.contacts(visitor.address)
    return show(
        request,
        "settings.html",
        visitor,
        status=400 if wrong else 200,
        user=user,
        own=assistant.own_answers(visitor.address),
        needed=NEEDED,
        costs=costs._asdict(),
        zones=ZONES,
        languages=languages(),
        sends_digests=request.app.state.sends_digests,
        week=Manner().week(),
        contacts=contacts[:MOST_SHOWN],
        n_contacts=len(contacts),
        notice=notice,
        wrong=wrong,
        **_preview(assistant, visitor, costs),
    )


class _Change(NamedTuple):
    """A request of the inbox for which costs would prepare another answer."""

    summary: str
    before: str
    after: str


def _preview(assistant: Assistant, visitor: Visitor, costs: Costs) -> dict[str, Any]:
    saved = costs_of(assistant.settings(visitor.address))
    shown = assistant.preview(visitor.address, costs)
    changes = []
    if costs != saved:
        waiting = [one for one in assistant.inbox(visitor.address) if one.state == "open"]
        chosen = weigh([one.probability for one in waiting], costs)
        changes = [
            _Change(one.summary, one.action, new.action)
            for one, new in zip(waiting, chosen, strict=True)
            if one.action != new.action
        ]
    return {
        "limits": limits(costs),
        "preview": shown,
        "now": shown if costs == saved else assistant.preview(visitor.address, saved),
        "changes": changes,
    }
