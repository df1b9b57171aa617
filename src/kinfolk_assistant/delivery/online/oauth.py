"""OAuth 2 with a service (authorization code with PKCE, RFC 6749 and 7636), by authlib: begun, renewed, revoked."""

from __future__ import annotations

import base64
import json
from secrets import token_urlsafe
from typing import Any, NamedTuple

from kinfolk_assistant.delivery.online.service import Service
from kinfolk_assistant.delivery.trouble import ServerTrouble

_TIMEOUT = 20.0


class NotGranted(ValueError):
    """A service does not let the assistant in (any more), in one sentence."""


class Begun(NamedTuple):
    """A grant on its way: where the browser is sent, and what must come back with it."""

    url: str
    state: str
    verifier: str
    service: str


class Granted(NamedTuple):
    """What a service has given: tokens are nobody's to read, so it shows none."""

    access_token: str
    refresh_token: str
    seconds: float
    """For how long the access token is good."""
    account: str
    """Whose it is, where the service says so along with it; else ""."""

    def __repr__(self) -> str:
        return f"Granted({self.account!r})"


def begin(service: Service, back: str) -> Begun:
    """Give where to send a browser that is to come back to an address of ours."""
    verifier = token_urlsafe(48)
    with _client(service, back) as client:
        url, state = client.create_authorization_url(service.authorize, code_verifier=verifier, **service.asked)
    return Begun(str(url), str(state), verifier, service.name)


def finish(service: Service, begun: Begun, came_with: str, back: str) -> Granted:
    """Give what the service grants to whoever comes back.

    Raises
    ------
    NotGranted
        With one sentence, if anything is not as it was begun, or less is granted than is needed.
    """
    try:
        with _client(service, back) as client:
            told = client.fetch_token(
                service.token,
                authorization_response=came_with,
                state=begun.state,
                code_verifier=begun.verifier,
                timeout=_TIMEOUT,
            )
    except Exception as error:  # whatever a service, or who poses as one, sets off: nothing is granted
        raise NotGranted(f"{service.title} did not let the assistant in; nothing was changed.") from error
    if not told.get("refresh_token"):
        raise NotGranted(f"{service.title} lets the assistant in for an hour only; nothing was changed.")
    # Users may allow a part of what they are asked for; RFC 6749 5.1 has the scope told where it is another.
    wanted = service.scope.split()[-1]
    if "scope" in told and wanted.rpartition("/")[2].lower() not in str(told["scope"]).lower():
        raise NotGranted(f"{service.title} was not allowed to show your calendar; allow it, and try again.")
    account = _address_in(service, str(told.get("id_token", ""))) if service.name == "google" else ""
    return _granted(told, "", account)


def renew(service: Service, refresh_token: str) -> Granted:
    """Give a new access token for a refresh token, which the service may replace as well.

    Raises
    ------
    NotGranted
        Where the service does not know the refresh token any more.
    ServerTrouble
        Where it does not answer, so that it may be tried again.
    """
    import requests

    asked = {
        "grant_type": "refresh_token",
        "refresh_token": refresh_token,
        "client_id": service.client_id,
        "client_secret": service.client_secret,
    }
    try:
        answer = requests.post(service.token, data=asked, timeout=_TIMEOUT, allow_redirects=False)
        told = answer.json()
    except (requests.RequestException, ValueError) as error:
        raise ServerTrouble(f"{service.title} cannot be reached; it is tried again.") from error
    # RFC 6749 5.2: invalid_grant is said of a refresh token that has ended or was revoked.
    if answer.status_code in (400, 401) and isinstance(told, dict) and told.get("error") == "invalid_grant":
        raise NotGranted(f"{service.title} no longer lets the assistant in: connect it again.")
    if answer.status_code != 200 or not isinstance(told, dict) or not told.get("access_token"):
        raise ServerTrouble(
            f"{service.title} answered with the error {answer.status_code} when asked for a new token.",
            answer.status_code,
        )
    return _granted(told, refresh_token, "")


def revoke(service: Service, refresh_token: str) -> bool:
    """Have a service forget a refresh token (RFC 7009); whether it said that it does."""
    import requests

    if not service.revoke:
        return False
    try:
        asked = {"token": refresh_token}
        return bool(
            requests.post(service.revoke, data=asked, timeout=_TIMEOUT, allow_redirects=False).status_code == 200
        )
    except requests.RequestException:
        return False


def _granted(told: Any, refresh_token: str, account: str) -> Granted:
    seconds = told.get("expires_in", 0)
    return Granted(
        str(told["access_token"]),
        str(told.get("refresh_token") or refresh_token),
        float(seconds) if isinstance(seconds, int | float | str) and str(seconds).isdecimal() else 300.0,
        account,
    )


def _address_in(service: Service, id_token: str) -> str:
    """Whose account it is; the token came straight from the service by TLS (OpenID Connect Core 3.1.3.7, point 6)."""
    try:
        body = id_token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        known = claims["aud"] == service.client_id and claims["email_verified"] is True
        return str(claims["email"]).strip().lower()[:320] if known else ""
    except (IndexError, KeyError, TypeError, ValueError):
        return ""


def _client(service: Service, back: str) -> Any:
    from authlib.integrations.requests_client import OAuth2Session

    return OAuth2Session(
        service.client_id,
        service.client_secret,
        scope=service.scope,
        redirect_uri=back,
        code_challenge_method="S256",
        token_endpoint_auth_method="client_secret_post",
    )
