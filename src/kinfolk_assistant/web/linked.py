"""The page that a link of a mail opens: it says what would be answered, and nothing is done before it is confirmed.

Mail programs and filters open links by themselves, so opening one changes nothing. A link answers one invitation in one
way, and only while nobody has answered it.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotNow, NotYours
from kinfolk_assistant.service.links import Link, read_token
from kinfolk_assistant.service.values import Detail
from kinfolk_assistant.web.pages import manner_of, show
from kinfolk_assistant.web.sessions import Visitor
from kinfolk_assistant.web.visitors import Served

router = APIRouter()


@router.get("/answer/{token}")
def linked_page(request: Request, assistant: Served, token: str) -> Response:
    """Show what a link would answer."""
    link, detail, reader = _found(request, assistant, token)
    return _page(request, link, detail, reader, token, done=False)


@router.post("/answer/{token}")
def confirm_linked(request: Request, assistant: Served, token: str) -> Response:
    """Answer as the link says."""
    link, detail, reader = _found(request, assistant, token)
    if detail.state != "open":
        raise NotNow("It is answered already; sign in to change that.")
    assistant.answer(link.user, link.request_id, link.choice, can_undo=True)
    done = _page(request, link, detail, reader, token, done=True)
    done.background = BackgroundTask(request.app.state.wake)
    return done


def _page(request: Request, link: Link, detail: Detail, reader: Visitor, token: str, *, done: bool) -> Response:
    # Whoever has the mail need not be signed in; they are spoken to as its user is, and see nothing else.
    return show(
        request,
        "linked.html",
        None,
        manner=manner_of(request, reader),
        reader_zone=known_zone(reader.zone),
        detail=detail,
        choice=link.choice,
        token=token,
        done=done,
    )


def _found(request: Request, assistant: Assistant, token: str) -> tuple[Link, Detail, Visitor]:
    keys = request.app.state.keys
    link = None if keys is None else read_token(keys, token[:2000], assistant.clock())
    if link is None:
        raise NotYours("This link is not one of ours, or it is too old.")
    user = assistant.settings(link.user)
    if user.disabled_at is not None:
        raise NotYours("This account is shut.")
    reader = Visitor(user.address, user.name, user.zone, "", user.language, user.clock, user.week_start)
    return link, assistant.request(link.user, link.request_id), reader
