"""Whom a request comes from, and whether it was meant: what every page asks first."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_bytes
from typing import Annotated, cast

from fastapi import Depends, Form
from starlette.exceptions import HTTPException
from starlette.requests import Request

from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web.attempts import Attempts
from kinfolk_assistant.web.sessions import Sessions, Visitor

STALE_FORM = "This form was too old or came from elsewhere, so nothing was done. Load the page again and repeat it."


SECRET_HEADER = "x-proxy-secret"


class NotSignedIn(Exception):
    """A page that needs a user was asked for by nobody."""


@dataclass(frozen=True)
class Doorkeeper:
    """What is needed to know a visitor.

    Attributes
    ----------
    sessions : Sessions
        Who is signed in by password.
    proxy_header : str or None
        The header in which a reverse proxy names the user; then passwords are of no use.
    trusted_proxies : frozenset of str
        The addresses of proxies; the empty one is that of a Unix socket, which has none.
    proxy_secret : str
        What the proxy says in the header ``X-Proxy-Secret`` beside the user's name; "" where nothing is asked for.
    secure_cookies : bool
        Whether cookies travel by HTTPS alone.
    oidc : Oidc or None
        A provider where users may sign in too.
    """

    sessions: Sessions
    proxy_header: str | None
    trusted_proxies: frozenset[str]
    secure_cookies: bool
    proxy_secret: str = field(default="", repr=False)
    oidc: object | None = None
    attempts: Attempts = field(default_factory=Attempts)
    _secret: bytes = field(default_factory=lambda: token_bytes(32), repr=False)

    @property
    def session_cookie(self) -> str:
        """Name of the cookie that holds the session's token."""
        return "__Host-kinfolk" if self.secure_cookies else "kinfolk"

    @property
    def guest_cookie(self) -> str:
        """Name of the cookie that ties the sign-in form to a browser."""
        return "__Host-kinfolk-guest" if self.secure_cookies else "kinfolk-guest"

    def form_token(self, holder: str) -> str:
        """Give the token for the forms of someone who has no session: a guest's browser, or a proxy's user."""
        return hmac.new(self._secret, holder.encode(), sha256).hexdigest()

    def who(self, request: Request) -> Visitor | None:
        """Find the user of a request."""
        if self.proxy_header is None:
            return self.sessions.find(request.cookies.get(self.session_cookie, ""))
        if not self._is_proxy(request):
            return None
        told = request.headers.getlist(SECRET_HEADER)
        if self.proxy_secret and (
            len(told) != 1 or not hmac.compare_digest(told[0].encode(), self.proxy_secret.encode())
        ):
            return None
        named = request.headers.getlist(self.proxy_header)
        # A second header would be one that the proxy did not replace.
        if len(named) != 1 or not named[0].strip():
            return None
        address = named[0].strip().lower()
        return self.sessions.person(address, self.form_token(f"user {address}"))

    def client(self, request: Request) -> str:
        """Give the address of whoever asks: behind proxies of ours the last that one of them has seen.

        Each proxy adds to X-Forwarded-For the address from which it was asked; what stands before that is the client's
        own word, and counts for nothing.
        """
        if not self._is_proxy(request):
            return "" if request.client is None else request.client.host
        hops = [hop.strip() for line in request.headers.getlist("x-forwarded-for") for hop in line.split(",")]
        for hop in reversed(hops):
            if hop and hop not in self.trusted_proxies:
                return hop[:64]
        return ""

    def _is_proxy(self, request: Request) -> bool:
        host = "" if request.client is None else request.client.host
        return host in self.trusted_proxies


# What needs no database is a coroutine: a plain function would be sent through a thread, and wait for one.
async def doorkeeper(request: Request) -> Doorkeeper:
    """Give the application's doorkeeper."""
    return cast(Doorkeeper, request.app.state.doorkeeper)


async def assistant(request: Request) -> Assistant:
    """Give the assistant that the pages show."""
    return cast(Assistant, request.app.state.assistant)


Keeper = Annotated[Doorkeeper, Depends(doorkeeper)]


def guest_or_user(request: Request, keeper: Keeper) -> Visitor | None:
    """Give the signed-in user, if there is one."""
    visitor = keeper.who(request)
    request.state.visitor = visitor
    return visitor


async def user(visitor: Annotated[Visitor | None, Depends(guest_or_user)]) -> Visitor:
    """Give the signed-in user."""
    if visitor is None:
        raise NotSignedIn
    return visitor


async def poster(visitor: Annotated[Visitor, Depends(user)], csrf: Annotated[str, Form()] = "") -> Visitor:
    """Give the signed-in user whose own form, with the right token, was posted."""
    if not hmac.compare_digest(csrf.encode(), visitor.csrf.encode()):
        raise HTTPException(403, STALE_FORM)
    return visitor


Served = Annotated[Assistant, Depends(assistant)]
Reader = Annotated[Visitor, Depends(user)]
Poster = Annotated[Visitor, Depends(poster)]
Anyone = Annotated[Visitor | None, Depends(guest_or_user)]
