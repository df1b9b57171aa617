"""A small real HTTP server that speaks the few addresses of Google Calendar v3, Microsoft Graph and OAuth 2 we use.

It is strict where the services say that they are: tokens, PKCE, etags, parameters that do not go with a sync token.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from threading import Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from kinfolk_assistant.delivery.online.service import Name, Service

CLIENT, SECRET = "kinfolk-client", "client secret"
PAGE = 2


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    token: str
    etag: str


class Said(NamedTuple):
    """An answer in the place of the real one."""

    status: int
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012
    first: bool = False
    """Whether the request is carried out all the same before this is said."""


@dataclass
class Simulated:
    """The state of both services, for one account."""

    account: str = "ann@example.org"
    url: str = ""
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Google's or Microsoft's own writing of each event, by id."""
    changed: list[str] = field(default_factory=list)
    """Ids in the order in which they changed: a sync token is a place in it."""
    asked: list[Asked] = field(default_factory=list)
    notified: list[tuple[str, str, Any]] = field(default_factory=list)
    """Which answers organisers were told: event, answer, and what came with it."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: set[str] = field(default_factory=set)
    refresh: set[str] = field(default_factory=set)
    revoked: list[str] = field(default_factory=list)
    rotates: bool = False
    scope: str = ""
    seconds: int = 3600
    oldest: int = 0
    """Sync tokens before this place have ended."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    misbehave: Callable[[Asked], Said | None] = lambda asked: None
    lock: Any = field(default_factory=Lock)

    def service(self, name: Name) -> Service:
        root = f"{self.url}/{name}"
        revoke = f"{root}/revoke" if name == "google" else ""
        return Service(name, CLIENT, SECRET, f"{root}/authorize", f"{root}/token", revoke, f"{root}/api")

    def put(self, event: dict[str, Any]) -> None:
        """Have somebody else change an event."""
        with self.lock:
            number = len(self.changed) + 1
            self.events[event["id"]] = event | {"etag": f'"{number}"', "changeKey": f"key{number}"}
            self.changed.append(event["id"])

    def remove(self, name: str) -> None:
        with self.lock:
            del self.events[name]
            self.changed.append(name)

    def grant(self) -> tuple[str, str]:
        """Give tokens as if a user had agreed."""
        access, refresh = f"access-{token_urlsafe(8)}", f"refresh-{token_urlsafe(8)}"
        self.access.add(access)
        self.refresh.add(refresh)
        return access, refresh

    def since(self, place: int) -> list[str]:
        return list(dict.fromkeys(self.changed[place:]))

    def calls(self, method: str, part: str = "") -> list[Asked]:
        return [one for one in self.asked if one.method == method and part in one.path]


class Handler(BaseHTTPRequestHandler):
    state: Simulated
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length).decode()
        form = self.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded")
        body = dict(parse_qsl(raw)) if form else json.loads(raw) if raw else None
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        asked = Asked(
            self.command, unquote(url.path), dict(parse_qsl(url.query)), body, token, self.headers.get("If-Match", "")
        )
        self.state.asked.append(asked)
        said = self.state.misbehave(asked)
        if said is not None and not said.first:
            self.say(said)
            return
        with self.state.lock:
            answer = self.route(asked)
        self.say(said if said is not None else answer)

    do_GET = do_POST = do_PATCH = handle_any

    def route(self, asked: Asked) -> Said:
        state = self.state
        service, _, place = asked.path.strip("/").partition("/")
        if place == "authorize":
            assert asked.query["code_challenge_method"] == "S256"
            assert asked.query["client_id"] == CLIENT
            code = token_urlsafe(8)
            state.codes[code] = asked.query
            back = f"{asked.query['redirect_uri']}?{urlencode({'code': code, 'state': asked.query['state']})}"
            return Said(302, None, {"Location": back})
        if place == "token":
            return self.token(asked.body, service)
        if place == "revoke":
            state.revoked.append(asked.body["token"])
            state.refresh.discard(asked.body["token"])
            return Said(200, {})
        if asked.token not in state.access:
            return Said(401, {"error": {"code": 401, "message": "Invalid Credentials"}})
        return google(state, asked) if service == "google" else microsoft(state, asked)

    def token(self, told: dict[str, str], service: str) -> Said:
        state = self.state
        if (told.get("client_id"), told.get("client_secret")) != (CLIENT, SECRET):
            return Said(401, {"error": "invalid_client"})
        if told["grant_type"] == "refresh_token":
            if told["refresh_token"] not in state.refresh:
                return Said(400, {"error": "invalid_grant"})
            access, refresh = state.grant()
            if state.rotates:
                state.refresh.discard(told["refresh_token"])
                return Said(200, {"access_token": access, "refresh_token": refresh, "expires_in": state.seconds})
            state.refresh.discard(refresh)
            return Said(200, {"access_token": access, "expires_in": state.seconds, "token_type": "Bearer"})
        begun = state.codes.pop(told["code"], None)
        digest = hashlib.sha256(told.get("code_verifier", "").encode()).digest()
        proves = begun and begun["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if not begun or not proves or told["redirect_uri"] != begun["redirect_uri"]:
            return Said(400, {"error": "invalid_grant"})
        access, refresh = state.grant()
        claims = {"aud": CLIENT, "email": state.account, "email_verified": True}
        body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
        given = {"access_token": access, "refresh_token": refresh, "expires_in": state.seconds, "token_type": "Bearer"}
        given["scope"] = state.scope or begun["scope"]
        return Said(200, given | ({"id_token": f"e30.{body}.x"} if service == "google" else {}))

    def say(self, said: Said) -> None:
        content = b"" if said.body is None else json.dumps(said.body).encode()
        self.send_response(said.status)
        for name, value in said.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def google(state: Simulated, asked: Asked) -> Said:
    place = asked.path.removeprefix("/google/api/calendars/primary/events")
    if place and asked.method == "GET":
        event = state.events.get(place[1:])
        return Said(404, {"error": {"code": 404}}) if event is None else Said(200, event)
    if place:
        event = state.events[place[1:]]
        if asked.etag and asked.etag != event["etag"]:
            return Said(412, {"error": {"code": 412}})
        assert asked.query == {"sendUpdates": "all"}
        assert asked.body["attendeesOmitted"] is True
        [answered] = asked.body["attendees"]
        [own] = [one for one in event["attendees"] if one.get("self")]
        assert answered["email"] == own["email"]
        own.update(answered)
        state.changed.append(place[1:])
        event["etag"] = f'"{len(state.changed)}"'
        state.notified.append((place[1:], answered["responseStatus"], answered.get("comment", "")))
        return Said(200, event)
    if "iCalUID" in asked.query:
        found = [one for one in state.events.values() if one["iCalUID"] == asked.query["iCalUID"]]
        return Said(200, {"items": found})
    if "syncToken" in asked.query:
        # As documented, these cannot be given together.
        if {"timeMin", "timeMax", "orderBy", "q"} & asked.query.keys():
            return Said(400, {"error": {"code": 400}})
        since = int(asked.query["syncToken"])
        if since < state.oldest:
            return Said(410, {"error": {"code": 410, "errors": [{"reason": "fullSyncRequired"}]}})
        names = state.since(since)
    else:
        names = list(state.events)
    first = int(asked.query.get("pageToken", 0))
    items = [state.events.get(name, {"id": name, "status": "cancelled"}) for name in names[first : first + PAGE]]
    if first + PAGE < len(names):
        return Said(200, {"items": items, "nextPageToken": str(first + PAGE)})
    return Said(200, {"items": items, "nextSyncToken": str(len(state.changed))})


def microsoft(state: Simulated, asked: Asked) -> Said:
    place = asked.path.removeprefix("/microsoft/api/me")
    if place == "/calendar":
        return Said(200, {"owner": {"name": "Ann", "address": state.account}})
    if place == "/calendarView/delta":
        query = asked.query
        if "$deltatoken" in query and int(query["$deltatoken"]) < state.oldest:
            return Said(410, {"error": {"code": "syncStateNotFound"}})
        if "$skiptoken" in query:
            since, first = (int(part) for part in query["$skiptoken"].split("_"))
        else:
            assert "$deltatoken" in query or query.keys() >= {"startDateTime", "endDateTime"}
            since, first = int(query.get("$deltatoken", -1)), 0
        view = [name for name, one in state.events.items() if one["type"] != "seriesMaster"]
        names = view if since < 0 else [one for one in state.since(since) if one in view or one not in state.events]
        gone = {"@removed": {"reason": "deleted"}}
        items = [state.events.get(name, {"id": name} | gone) for name in names[first : first + PAGE]]
        here = f"{state.url}/microsoft/api/me/calendarView/delta"
        if first + PAGE < len(names):
            return Said(200, {"value": items, "@odata.nextLink": f"{here}?$skiptoken={since}_{first + PAGE}"})
        return Said(200, {"value": items, "@odata.deltaLink": f"{here}?$deltatoken={len(state.changed)}"})
    if place == "/events":
        uid = asked.query["$filter"].removeprefix("iCalUId eq '").removesuffix("'")
        return Said(200, {"value": [one for one in state.events.values() if one["iCalUId"] == uid]})
    name, _, action = place.removeprefix("/events/").partition("/")
    if name not in state.events:
        return Said(404, {"error": {"code": "ErrorItemNotFound"}})
    if not action:
        return Said(200, state.events[name])
    status = {"accept": "accepted", "decline": "declined", "tentativelyAccept": "tentativelyAccepted"}[action]
    assert asked.body["sendResponse"] is True
    state.events[name]["responseStatus"] = {"response": status, "time": f"{state.clock():%Y-%m-%dT%H:%M:%S}.1234567Z"}
    state.changed.append(name)
    state.events[name]["changeKey"] = f"key{len(state.changed)}"
    state.notified.append((name, status, {key: asked.body.get(key) for key in ("comment", "proposedNewTime")}))
    return Said(202)


@contextmanager
def simulated(account: str = "ann@example.org") -> Iterator[Simulated]:
    state = Simulated(account)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("One", (Handler,), {"state": state}))
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
