"""Requests to a service in a user's name: bounded, renewed once where the token has ended, quiet where asked to be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Lock
from time import monotonic
from typing import Any

from kinfolk_assistant.delivery.online.oauth import Granted, NotGranted
from kinfolk_assistant.delivery.online.service import Service
from kinfolk_assistant.delivery.trouble import ServerTrouble

MAX_ANSWER = 20 * 2**20
"""Larger answers, in octets, are not read."""

_TIMEOUT = 20.0
_EARLY = 60.0  # an access token is renewed so many seconds before it ends
_QUIET, _MOST_QUIET = 60.0, 3600.0  # seconds, where the service does not say how long, and at most
_BUSY = ("rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded")


class Gone(Exception):
    """What was given at the last visit is no longer known to the service: all has to be read afresh."""


class TryLater(ServerTrouble):
    """A service asks to be left alone for a while."""


class Access:
    """One user's access to a service: the token as it is now, and until when nothing is asked.

    Parameters
    ----------
    fresh : callable
        Gives new tokens, or raises `NotGranted`.
    """

    def __init__(self, fresh: Callable[[], Granted]) -> None:
        self._fresh = fresh
        self._lock = Lock()
        self._token = ""
        self._until = 0.0
        self.quiet_until = 0.0

    def token(self, ended: str = "") -> str:
        """Give an access token, another than one that has ``ended``; of several who ask at once, one renews it."""
        with self._lock:
            if not self._token or self._token == ended or monotonic() > self._until:
                granted = self._fresh()
                self._token, self._until = granted.access_token, monotonic() + max(granted.seconds - _EARLY, 0.0)
            return self._token


class WebApi:
    """A service's interface as one user reaches it."""

    def __init__(self, service: Service, access: Access) -> None:
        self.service = service
        self._access = access

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        json: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """Give the service's answer; None where it has no content.

        Parameters
        ----------
        path : str
            Beneath the service's interface, or an address that the service itself has given.

        Raises
        ------
        Gone
            For the status 410.
        TryLater
            Where the service asks to be left alone (403 with a reason of that kind, 429, 5xx).
        ServerTrouble
            With one sentence, where it does not do what it should.
        """
        url = path if "://" in path else f"{self.service.api}{path}"
        # A token goes to the service alone, whatever address an answer of it may name.
        if not url.startswith(f"{self.service.api}/"):
            raise ServerTrouble(f"{self.service.title} names an address that is not its own.")
        if monotonic() < self._access.quiet_until:
            raise TryLater(f"{self.service.title} asks to be left alone for a while; it is tried again.", 429)
        try:
            token = self._access.token()
            status, answer = self._send(method, url, token, params, json, headers)
            if status == 401:
                token = self._access.token(ended=token)
                status, answer = self._send(method, url, token, params, json, headers)
        except NotGranted as error:
            raise ServerTrouble(str(error), 401) from error
        if status == 401:
            raise ServerTrouble(f"{self.service.title} no longer lets the assistant in: connect it again.", 401)
        if status == 410:
            raise Gone
        if not 200 <= status < 300:
            raise ServerTrouble(f"{self.service.title} answered with the error {status}.", status)
        return answer

    def _send(
        self,
        method: str,
        url: str,
        token: str,
        params: dict[str, str] | None,
        json: dict[str, Any] | None,
        headers: dict[str, str] | None,
    ) -> tuple[int, Any]:
        import requests

        title = self.service.title
        try:
            with requests.request(
                method,
                url,
                params=params,
                json=json,
                headers={**(headers or {}), "Authorization": f"Bearer {token}"},
                timeout=_TIMEOUT,
                allow_redirects=False,
                stream=True,
            ) as answer:
                content = answer.raw.read(MAX_ANSWER + 1, decode_content=True)
                status, waits = answer.status_code, answer.headers.get("Retry-After", "")
            if len(content) > MAX_ANSWER:
                raise ServerTrouble(f"{title} answered more than {MAX_ANSWER // 2**20} MB, which is not read.")
        except requests.Timeout as error:
            raise ServerTrouble(f"{title} did not answer within {_TIMEOUT:g} seconds.") from error
        except (OSError, requests.RequestException) as error:
            if isinstance(error, ServerTrouble):
                raise
            raise ServerTrouble(f"{title} cannot be reached; it is tried again.") from error
        told = _read(content)
        # Google says 403 for a rate that is too high and for what is not allowed; its reason tells them apart.
        if status == 429 or status >= 500 or (status == 403 and (waits or _reason(told) in _BUSY)):
            seconds = seconds_of(waits)
            self._access.quiet_until = monotonic() + seconds
            raise TryLater(f"{title} asks to be left alone for {seconds:.0f} seconds; it is tried again.", status)
        if 200 <= status < 300 and content and told is None:
            raise ServerTrouble(f"{title} answered something that is not JSON.", status)
        return status, told


def seconds_of(retry_after: str) -> float:
    """Give the seconds that a Retry-After asks for (RFC 9110 10.2.3: a number, or a date); a minute where it says none.

    Examples
    --------
    >>> seconds_of("120"), seconds_of(""), seconds_of("tomorrow"), seconds_of("999999")
    (120.0, 60.0, 60.0, 3600.0)
    """
    if retry_after.isdecimal():
        return min(float(retry_after), _MOST_QUIET)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return _QUIET
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max((moment - datetime.now(UTC)).total_seconds(), 1.0), _MOST_QUIET)


def _read(content: bytes) -> Any:
    import json

    try:
        return json.loads(content) if content else None
    except ValueError:
        return None


def _reason(told: Any) -> str:
    try:
        return str(told["error"]["errors"][0]["reason"])
    except (KeyError, IndexError, TypeError):
        return ""
