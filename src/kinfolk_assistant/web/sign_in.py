"""Signing in with a password, and out; the tries are limited by address and by client."""

from __future__ import annotations

import hmac
import re
from asyncio import get_running_loop
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from secrets import token_urlsafe

from fastapi import APIRouter
from sqlalchemy import select, update
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import User
from kinfolk_assistant.web import passwords
from kinfolk_assistant.web.attempts import CLIENT
from kinfolk_assistant.web.forms import Text
from kinfolk_assistant.web.pages import go_to, show
from kinfolk_assistant.web.sessions import LIFETIME
from kinfolk_assistant.web.visitors import STALE_FORM, Anyone, Doorkeeper, Keeper, Poster, Served

router = APIRouter()

# As many as may hash at once; those who wait for them take no thread away from the pages.
DOORS = ThreadPoolExecutor(2, "sign-in")

WRONG = "This address and password do not go together."
ELSEWHERE = "Here one signs in at the gateway in front of this server."


@router.get("/sign-in")
def sign_in_page(request: Request, keeper: Keeper, visitor: Anyone, then: str = "/") -> Response:
    """Show the form, or the inbox to someone who is signed in."""
    if visitor is not None:
        return go_to(request, _page_of_ours(then))
    if keeper.proxy_header is not None:
        return show(request, "error.html", None, status=403, title="Sign in", message=ELSEWHERE)
    return _form(request, keeper, then)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    keeper: Keeper,
    assistant: Served,
    address: Text = "",
    password: Text = "",
    then: Text = "/",
    csrf: Text = "",
) -> Response:
    """Begin a session for an address and its password.

    Passwords are checked by a few threads of their own, so that many who come at once wait for each other and nobody
    else waits for them.
    """
    if keeper.proxy_header is not None:
        return show(request, "error.html", None, status=403, title="Sign in", message=ELSEWHERE)
    guest = request.cookies.get(keeper.guest_cookie, "")
    if not guest or not hmac.compare_digest(csrf.encode(), keeper.form_token(f"guest {guest}").encode()):
        return _form(request, keeper, then, 403, STALE_FORM, address)
    address = address.strip().lower()[:320]
    client = keeper.client(request)
    # Where a proxy does not say whom it speaks for, all would be one client, and one could lock out all.
    keys = (f"address {address}", *([f"{CLIENT}{client}"] if client else []))
    wait = keeper.attempts.wait(*keys)
    if wait > 0:
        message = f"There were too many tries. Wait {ceil(wait)} seconds, then try again."
        response = _form(request, keeper, then, 429, message, address)
        response.headers["Retry-After"] = str(ceil(wait))
        return response
    loop = get_running_loop()
    if not await loop.run_in_executor(DOORS, may_enter, assistant.ledger, address, password):
        return _form(request, keeper, then, 401, WRONG, address)
    keeper.attempts.succeeded(*keys)
    old = request.cookies.get(keeper.session_cookie, "")
    token = await loop.run_in_executor(DOORS, keeper.sessions.start, address, old)
    response = go_to(request, _page_of_ours(then))
    set_cookie(response, keeper, keeper.session_cookie, token, int(LIFETIME.total_seconds()))
    drop_cookie(response, keeper, keeper.guest_cookie)
    return response


@router.post("/sign-out")
def sign_out(request: Request, keeper: Keeper, visitor: Poster) -> Response:
    """End the session."""
    keeper.sessions.end(request.cookies.get(keeper.session_cookie, ""))
    response = go_to(request, "/sign-in")
    drop_cookie(response, keeper, keeper.session_cookie)
    return response


def may_enter(ledger: Ledger, address: str, password: str) -> bool:
    """Whether a password is that of a user; takes as long for an address that nobody has."""
    with ledger.read() as session:
        kept = session.scalar(select(User.password_hash).where(User.address == address, User.disabled_at.is_(None)))
    if not passwords.is_password(kept, password):
        return False
    if kept is not None and passwords.is_outdated(kept):
        set_password(ledger, address, password)
    return True


def set_password(ledger: Ledger, address: str, password: str) -> None:
    """Give a user a password.

    Raises
    ------
    ValueError
        If it is too short or too long.
    """
    made = passwords.hash_password(password)
    with ledger.begin() as session:
        session.execute(update(User).where(User.address == address).values(password_hash=made))


def _form(
    request: Request, keeper: Doorkeeper, then: str, status: int = 200, message: str = "", address: str = ""
) -> Response:
    guest = request.cookies.get(keeper.guest_cookie) or token_urlsafe(32)
    response = show(
        request,
        "sign_in.html",
        None,
        status=status,
        message=message,
        address=address,
        then=_page_of_ours(then),
        csrf=keeper.form_token(f"guest {guest}"),
        elsewhere=keeper.oidc is not None,
    )
    set_cookie(response, keeper, keeper.guest_cookie, guest, 3600)
    return response


def _page_of_ours(then: str) -> str:
    # A path with a second slash, a backslash or a colon could lead to another site.
    return then if re.fullmatch(r"/(?:[a-z]+(?:/[0-9]+)?)?", then) else "/"


def set_cookie(response: Response, keeper: Doorkeeper, name: str, value: str, seconds: int) -> None:
    """Have a browser keep something that only this server is told."""
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=keeper.secure_cookies)


def drop_cookie(response: Response, keeper: Doorkeeper, name: str) -> None:
    """Have a browser forget it."""
    response.delete_cookie(name, httponly=True, samesite="lax", secure=keeper.secure_cookies)
