"""Connecting a calendar at Google or Microsoft 365: to the service, back from it, and apart again."""

from __future__ import annotations

import base64
import hmac
import json

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kinfolk_assistant.delivery.accounts import Accounts
from kinfolk_assistant.delivery.online.connections import Connections
from kinfolk_assistant.delivery.online.oauth import Begun, NotGranted, begin, finish
from kinfolk_assistant.delivery.online.service import CONNECTED, Name, Service
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.service.errors import NotYours
from kinfolk_assistant.web.accounts import accounts_view
from kinfolk_assistant.web.pages import go_to
from kinfolk_assistant.web.sessions import Visitor
from kinfolk_assistant.web.sign_in import drop_cookie, set_cookie
from kinfolk_assistant.web.visitors import Doorkeeper, Keeper, Poster, Reader, Served

router = APIRouter()

_SECONDS = 600
NOT_BEGUN = "This was not begun here, or too long ago; nothing was connected. Try again."


# By GET, because a form's answer may not lead to another site (form-action of the content security policy); it changes
# nothing.
@router.get("/accounts/connect/{service}")
def start(request: Request, keeper: Keeper, visitor: Reader, service: Name) -> Response:
    """Send the browser to a service, where the user is asked."""
    begun = begin(_service(request, service), _back(request, keeper))
    response = RedirectResponse(begun.url, 303)
    set_cookie(response, keeper, _cookie(keeper), _sealed(keeper, visitor, begun), _SECONDS)
    return response


@router.get(CONNECTED)
def back(request: Request, assistant: Served, keeper: Keeper, visitor: Reader) -> Response:
    """Take a browser back, and keep what the service has granted."""
    begun = _opened(keeper, visitor, request.cookies.get(_cookie(keeper), ""))
    try:
        if begun is None:
            raise NotGranted(NOT_BEGUN)
        service, to = _service(request, begun.service), _back(request, keeper)
        granted = finish(service, begun, f"{to}?{request.url.query}", to)
        _connections(request).connect(visitor.address, service, granted, assistant.clock())
    except (NotGranted, ServerTrouble) as error:
        response = accounts_view(request, assistant, visitor, wrong=str(error))
    else:
        response = go_to(request, "/accounts?did=connected")
    drop_cookie(response, keeper, _cookie(keeper))
    return response


@router.post("/accounts/disconnect")
def disconnect(request: Request, assistant: Served, visitor: Poster) -> Response:
    """Have the service forget what it granted, and forget it here."""
    _connections(request).disconnect(visitor.address, assistant.clock())
    return go_to(request, "/accounts?did=disconnected")


def _connections(request: Request) -> Connections:
    accounts: Accounts | None = request.app.state.accounts
    if accounts is None or accounts.connections is None:
        raise NotYours("There is nothing here.")
    return accounts.connections


def _service(request: Request, name: str) -> Service:
    _connections(request)
    found = request.app.state.accounts.configuration.services.get(name)
    if not isinstance(found, Service):
        raise NotYours("There is nothing here.")
    return found


def _back(request: Request, keeper: Doorkeeper) -> str:
    scheme = "https" if keeper.secure_cookies else "http"
    return f"{scheme}://{request.headers.get('host', '')}{request.scope.get('root_path', '')}{CONNECTED}"


def _cookie(keeper: Doorkeeper) -> str:
    return "__Host-kinfolk-connect" if keeper.secure_cookies else "kinfolk-connect"


def _sealed(keeper: Doorkeeper, visitor: Visitor, begun: Begun) -> str:
    kept = base64.urlsafe_b64encode(json.dumps(begun[1:]).encode()).decode()
    return f"{kept}.{_seal(keeper, visitor, kept)}"


def _opened(keeper: Doorkeeper, visitor: Visitor, cookie: str) -> Begun | None:
    kept, _, seal = cookie.partition(".")
    if not kept or not hmac.compare_digest(seal.encode(), _seal(keeper, visitor, kept).encode()):
        return None
    return Begun("", *json.loads(base64.urlsafe_b64decode(kept)))


def _seal(keeper: Doorkeeper, visitor: Visitor, kept: str) -> str:
    """Tie what was begun to the session in which it was: the token of forms is another in every session."""
    return keeper.form_token(f"connect {visitor.address} {visitor.csrf} {kept}")
