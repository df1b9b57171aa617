"""The administrator's page: how it stands with all users, one switch for all automatic answers, users shut or erased.

It shows nothing of anybody's meetings. Who may see it stands in the settings file (``[pages] admins``), not in the
ledger, so that nobody becomes an administrator by what is kept there.
"""

from __future__ import annotations

import hmac
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.ledger.users import NotYours, mail_address
from kinfolk_assistant.service import operating
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.background import log_name
from kinfolk_assistant.web.forms import Text
from kinfolk_assistant.web.pages import go_to, is_admin, show
from kinfolk_assistant.web.sessions import Visitor
from kinfolk_assistant.web.visitors import Poster, Reader, Served

router = APIRouter()

NOTICES = {
    "stop": "All automatic answers are stopped.",
    "resume": "Automatic answers may leave again.",
    "disable": "The user is shut out.",
    "enable": "The user is let in again.",
    "erase": "The user is erased, with every model that had learnt from them.",
}


@router.get("/admin")
def admin_page(request: Request, assistant: Served, visitor: Reader, did: str = "") -> Response:
    """Show how it stands."""
    _check(request, visitor)
    return _page(request, assistant, visitor, notice=NOTICES.get(did, ""))


@router.post("/admin/switch")
def switch(
    request: Request, assistant: Served, visitor: Poster, to: Annotated[Literal["stop", "resume"], Form()]
) -> Response:
    """Stop all automatic answers, or let them leave again."""
    _check(request, visitor)
    with assistant.ledger.begin() as session:
        if to == "stop":
            operating.stop(session, assistant.clock())
        else:
            operating.resume(session)
    return go_to(request, f"/admin?did={to}")


@router.post("/admin/user")
def change_user(
    request: Request,
    assistant: Served,
    visitor: Poster,
    do: Annotated[Literal["disable", "enable", "erase"], Form()],
    address: Text = "",
    typed: Text = "",
) -> Response:
    """Shut a user out, let them in again, or erase them."""
    _check(request, visitor)
    try:
        user = mail_address(address)
        if do == "erase":
            if not hmac.compare_digest(typed.strip().lower().encode(), user.encode()):
                raise ValueError("Nothing was erased: type the address to confirm.")
            assistant.erase(user)
        else:
            with assistant.ledger.begin() as session:
                (operating.disable if do == "disable" else operating.enable)(session, user, assistant.clock())
    except (ValueError, NotYours) as error:
        return _page(request, assistant, visitor, wrong=str(error))
    return go_to(request, f"/admin?did={do}")


def _check(request: Request, visitor: Visitor) -> None:
    # Whoever is not one learns nothing, not even that the page is there.
    if not is_admin(request, visitor):
        raise NotYours("There is nothing here.")


def _page(request: Request, assistant: Assistant, visitor: Visitor, *, notice: str = "", wrong: str = "") -> Response:
    with assistant.ledger.read() as session:
        users, counts = operating.users(session), operating.counts(session)
    return show(
        request,
        "admin.html",
        visitor,
        status=400 if wrong else 200,
        users=[(log_name(one.address), one) for one in users],
        counts=counts,
        notice=notice,
        wrong=wrong,
    )
