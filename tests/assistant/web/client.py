"""A browser without a window: it asks the application directly, keeps cookies, and finds the token in forms."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
from fastapi import FastAPI
from tests.assistant.web.team import PASSWORD


class Client:
    """One visitor of the pages."""

    def __init__(self, app: FastAPI, host: str = "192.0.2.7", *, raises: bool = True) -> None:
        self._keeper = app.state.doorkeeper
        self._transport = httpx.ASGITransport(app=app, client=(host, 50000), raise_app_exceptions=raises)
        self.cookies = httpx.Cookies()

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=self._transport, base_url="http://kin.test", cookies=self.cookies
            ) as client:
                response = await client.request(method, path, **options)
                self.cookies = httpx.Cookies(client.cookies)
                return response

        return asyncio.run(ask())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, data: dict[str, Any] | None = None, **options: Any) -> httpx.Response:
        """Post a form with the token of the pages."""
        return self.ask("POST", path, data={"csrf": self.token, **(data or {})}, **options)

    @property
    def token(self) -> str:
        return token_in(self.get("/about"))

    def enter(self, address: str) -> Client:
        """Be signed in without a password."""
        self.cookies.set(self._keeper.session_cookie, self._keeper.sessions.start(address))
        return self

    def sign_in(self, address: str, password: str = PASSWORD) -> httpx.Response:
        form = self.get("/sign-in")
        return self.ask("POST", "/sign-in", data={"address": address, "password": password, "csrf": token_in(form)})


def token_in(page: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    return found[1] if found else ""
