"""The web application: all pages of one assistant, behind one guard."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from kinfolk_assistant.delivery.accounts import Accounts
from kinfolk_assistant.delivery.configuration import OidcProvider
from kinfolk_assistant.delivery.keys import Keys
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.errors import NotNow, NotYours
from kinfolk_assistant.web import (
    about,
    admin,
    connecting,
    health,
    inbox,
    linked,
    oidc,
    people,
    record,
    rules,
    settings,
    sign_in,
)
from kinfolk_assistant.web import accounts as own_accounts
from kinfolk_assistant.web.guard import HEADERS, Guard
from kinfolk_assistant.web.pages import HERE, go_to, show, wants_fragment
from kinfolk_assistant.web.sessions import Sessions, Visitor
from kinfolk_assistant.web.visitors import Doorkeeper, NotSignedIn


def make_app(
    assistant: Assistant,
    *,
    proxy_header: str | None = None,
    trusted_proxies: Iterable[str] = ("127.0.0.1", "::1"),
    secure_cookies: bool = True,
    proxy_secret: str = "",
    hosts: Collection[str] | None = None,
    provider: OidcProvider | None = None,
    keys: Keys | None = None,
    sends_digests: bool = False,
    accounts: Accounts | None = None,
    wake: Callable[[], object] = lambda: None,
) -> FastAPI:
    """Make the pages of an assistant.

    Parameters
    ----------
    assistant : Assistant
        What is shown and done.
    proxy_header : str, optional
        The header in which a reverse proxy names the user who is signed in there (such as ``X-Remote-User``); then
        nobody signs in by password. The server must then not take clients' addresses from headers itself (uvicorn:
        ``proxy_headers=False``).
    trusted_proxies : iterable of str
        The addresses of proxies, from which that header and X-Forwarded-For are believed; the empty address is that of
        a Unix socket.
    secure_cookies : bool, default=True
        Whether browsers come by HTTPS: cookies then travel by it alone, and browsers are told to use nothing else. To
        be turned off only where the pages are served without it.
    proxy_secret : str, optional
        What the proxy must say in the header X-Proxy-Secret, so that no other program on the machine can name a user.
    hosts : collection of str, optional
        The names under which the pages are served; None: any.
    provider : OidcProvider, optional
        Where users may sign in beside their passwords (needs the extra ``oidc``).
    keys : Keys, optional
        By which links of mails are signed, and app passwords are sealed that users enter; without them there are none.
    sends_digests : bool, default=False
        Whether users can ask for a daily mail.
    accounts : Accounts, optional
        Where users' calendars and mailboxes are, and who administers.
    wake : callable, optional
        Called after a user's answer, so that it is sent at once.

    Returns
    -------
    FastAPI
    """
    app = FastAPI(title="kinfolk", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.assistant = assistant
    app.state.wake = wake
    app.state.keys = keys
    app.state.sends_digests = sends_digests
    app.state.accounts = accounts
    app.state.doorkeeper = Doorkeeper(
        Sessions(assistant.ledger, assistant.clock),
        proxy_header,
        frozenset(trusted_proxies),
        secure_cookies,
        proxy_secret,
        None if provider is None else oidc.Oidc(provider),
    )
    for theme in (
        health,
        sign_in,
        inbox,
        linked,
        people,
        rules,
        settings,
        own_accounts,
        connecting,
        record,
        about,
        admin,
    ):
        app.include_router(theme.router)
    if provider is not None:
        app.include_router(oidc.router)
    app.mount("/static", _Static(directory=HERE / "static"), name="static")
    app.add_exception_handler(NotSignedIn, _not_signed_in)
    app.add_exception_handler(NotYours, _not_found)
    app.add_exception_handler(NotNow, _not_now)
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)
    app.add_middleware(Guard, hosts=hosts, https=secure_cookies)
    return app


class _Static(StaticFiles):
    """Files that are the same for everybody; their addresses carry a version, so browsers may keep them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "public, max-age=86400"
        return response


def _visitor(request: Request) -> Visitor | None:
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    return visitor


def _say(request: Request, status: int, title: str, message: str) -> Response:
    if wants_fragment(request):
        return show(request, "message.html", None, status=status, message=message)
    return show(request, "error.html", _visitor(request), status=status, title=title, message=message)


def _not_signed_in(request: Request, error: Exception) -> Response:
    keeper: Doorkeeper = request.app.state.doorkeeper
    if keeper.proxy_header is not None:
        return _say(request, 401, "Not signed in", "The gateway in front of this server names no user of it.")
    if request.method != "GET" or wants_fragment(request):
        return _say(request, 401, "Not signed in", "Sign in first. Nothing was done.")
    return go_to(request, f"/sign-in?then={request.url.path.removeprefix(request.scope.get('root_path', ''))}")


def _not_found(request: Request, error: Exception) -> Response:
    return _say(request, 404, "Not found", "There is nothing here, or it is not yours.")


def _not_now(request: Request, error: Exception) -> Response:
    return _say(request, 409, "Not possible now", str(error))


def _not_understood(request: Request, error: Exception) -> Response:
    return _say(request, 400, "Not understood", "A part of this request is missing or not what it should be.")


def _failed(request: Request, error: Exception) -> Response:
    # What goes wrong is answered outside the guard; the error itself is logged, never shown.
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return PlainTextResponse("Something went wrong here. Nothing more is known; please try again.", 500, headers)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return _not_found(request, error)
    response = _say(request, error.status_code, "Not done", error.detail)
    response.headers.update(error.headers or {})
    return response
