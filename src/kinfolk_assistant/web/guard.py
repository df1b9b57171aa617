"""What holds for every request and every response: bounded bodies, no posts from other sites, strict headers."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 2 * 2**20  # bytes
LARGEST_HISTORY = 20 * 2**20
"""So much a user may hand over of their past, on the one page for that."""

_HISTORY = "/accounts/history"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # With "no-referrer" a browser would say "Origin: null" of the pages' own forms, and the check below had nothing
    # to go by where Sec-Fetch-Site is not sent; this policy tells other sites just as little.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


HSTS = {"Strict-Transport-Security": "max-age=31536000"}


# Whoever watches the server asks by its address; what is told there is the same under any name.
WATCHED = ("/healthz", "/readyz", "/metrics")


class Guard:
    """The outermost layer of the application.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    hosts : collection of str, optional
        The names under which the pages are served; a request for another name is refused. None: any.
    https : bool, default=False
        Whether browsers come by HTTPS, and are to come by nothing else for a year.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None = None, https: bool = False) -> None:
        self._app = app
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._headers = {**HEADERS, **(HSTS if https else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        is_watched = path in WATCHED
        most = LARGEST_HISTORY + LARGEST_BODY if path == _HISTORY else LARGEST_BODY
        if self._hosts is not None and _host(headers) not in self._hosts and not is_watched:
            await PlainTextResponse("No pages are served under this name.", 421)(scope, receive, send_guarded)
        elif _length(headers) > most:
            refusal = PlainTextResponse(f"A request may hold at most {most} bytes.", 413)
            await refusal(scope, receive, send_guarded)
        elif scope["method"] not in ("GET", "HEAD", "OPTIONS") and comes_from_elsewhere(headers):
            await PlainTextResponse("This was sent from another site.", 403)(scope, receive, send_guarded)
        else:
            await self._app(scope, _bounded(receive, most), send_guarded)


def _host(headers: Headers) -> str:
    """Give the name that a browser asks for, without its port."""
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""


def comes_from_elsewhere(headers: Headers) -> bool:
    """Whether a browser says that another site's page made it send this request."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _length(headers: Headers) -> int:
    stated = headers.get("content-length", "0")
    return int(stated) if stated.isdecimal() and len(stated) < 19 else LARGEST_HISTORY + LARGEST_BODY + 1


def _bounded(receive: Receive, most: int) -> Receive:
    taken = 0

    async def receive_bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > most:
            raise HTTPException(413, f"A request may hold at most {most} bytes.")
        return message

    return receive_bounded
