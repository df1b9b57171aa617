"""Signing in at an OpenID Connect provider (authorization code flow with PKCE), by authlib and joserfc."""

from __future__ import annotations

import base64
import hmac
import json
from asyncio import get_running_loop
from functools import cached_property
from secrets import token_urlsafe
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kinfolk_assistant.delivery.configuration import OidcProvider
from kinfolk_assistant.web.pages import go_to, show
from kinfolk_assistant.web.sessions import LIFETIME
from kinfolk_assistant.web.sign_in import DOORS, drop_cookie, set_cookie
from kinfolk_assistant.web.visitors import Doorkeeper, Keeper

router = APIRouter()

ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
_SECONDS = 600
_TIMEOUT = 10.0
FAILED = "The sign-in at your organisation did not work. Try again, or sign in with a password."
UNKNOWN = "Your organisation has signed you in, but the assistant has no such user. Ask your administrator."


class NotProven(Exception):
    """A provider has not proven who somebody is."""


class Begun(NamedTuple):
    """A sign-in on its way: where the browser is sent, and what must come back with it."""

    url: str
    state: str
    nonce: str
    verifier: str


class Oidc:
    """One provider; what it says of itself is asked once.

    Parameters
    ----------
    provider : OidcProvider
        As the settings name it.
    """

    def __init__(self, provider: OidcProvider) -> None:
        self.provider = provider

    def begin(self, back: str) -> Begun:
        """Give where to send a browser that is to come back to an address of ours."""
        verifier, nonce = token_urlsafe(48), token_urlsafe(24)
        with self._client(back) as client:
            url, state = client.create_authorization_url(
                self._told["authorization_endpoint"], code_verifier=verifier, nonce=nonce
            )
        return Begun(str(url), str(state), nonce, verifier)

    def finish(self, begun: Begun, came_with: str, back: str) -> str:
        """Give the address of whoever comes back.

        Raises
        ------
        NotProven
            If anything is not as it was begun, or the provider does not vouch for the address.
        """
        import requests
        from joserfc import jwt
        from joserfc.jwk import KeySet

        try:
            with self._client(back) as client:
                token = client.fetch_token(
                    self._told["token_endpoint"],
                    authorization_response=came_with,
                    state=begun.state,
                    code_verifier=begun.verifier,
                    timeout=_TIMEOUT,
                )
                keys = KeySet.import_key_set(requests.get(self._told["jwks_uri"], timeout=_TIMEOUT).json())
            claims = jwt.decode(token["id_token"], keys, algorithms=ALGORITHMS).claims
            jwt.JWTClaimsRegistry(
                leeway=60,
                iss={"essential": True, "value": self._told["issuer"]},
                aud={"essential": True, "value": self.provider.client_id},
                exp={"essential": True},
                nonce={"essential": True, "value": begun.nonce},
            ).validate(claims)
        except Exception as error:  # whatever a provider, or who poses as one, sets off: nobody is signed in
            raise NotProven(type(error).__name__) from error
        if claims.get("email_verified") is not True or not isinstance(claims.get("email"), str):
            raise NotProven("the provider does not vouch for the address")
        return str(claims["email"]).strip().lower()[:320]

    @cached_property
    def _told(self) -> dict[str, Any]:
        import requests

        told = requests.get(f"{self.provider.issuer}/.well-known/openid-configuration", timeout=_TIMEOUT).json()
        if str(told.get("issuer", "")).rstrip("/") != self.provider.issuer:
            raise NotProven("the provider calls itself by another name")
        return dict(told)

    def _client(self, back: str) -> Any:
        from authlib.integrations.requests_client import OAuth2Session

        return OAuth2Session(
            self.provider.client_id,
            self.provider.client_secret,
            scope="openid email",
            redirect_uri=back,
            code_challenge_method="S256",
        )


@router.get("/oidc/start")
async def start(request: Request, keeper: Keeper) -> Response:
    """Send the browser to the provider."""
    try:
        begun = await get_running_loop().run_in_executor(DOORS, _oidc(keeper).begin, _back(request, keeper))
    except Exception:
        return show(request, "error.html", None, status=502, title="Sign in", message=FAILED)
    response = RedirectResponse(begun.url, 303)
    set_cookie(response, keeper, _cookie(keeper), _sealed(keeper, begun), _SECONDS)
    return response


@router.get("/oidc/back")
async def back(request: Request, keeper: Keeper) -> Response:
    """Take back a browser that the provider has signed in."""
    begun = _opened(keeper, request.cookies.get(_cookie(keeper), ""))
    loop = get_running_loop()
    try:
        if begun is None:
            raise NotProven("it was not begun in this browser")
        came_with, to = f"{_back(request, keeper)}?{request.url.query}", _back(request, keeper)
        address = await loop.run_in_executor(DOORS, _oidc(keeper).finish, begun, came_with, to)
    except NotProven:
        response: Response = show(request, "error.html", None, status=403, title="Sign in", message=FAILED)
    else:
        if keeper.sessions.person(address, "") is None:
            response = show(request, "error.html", None, status=403, title="Sign in", message=UNKNOWN)
        else:
            old = request.cookies.get(keeper.session_cookie, "")
            token = await loop.run_in_executor(DOORS, keeper.sessions.start, address, old)
            response = go_to(request, "/")
            set_cookie(response, keeper, keeper.session_cookie, token, int(LIFETIME.total_seconds()))
    drop_cookie(response, keeper, _cookie(keeper))
    return response


def _oidc(keeper: Doorkeeper) -> Oidc:
    assert isinstance(keeper.oidc, Oidc)
    return keeper.oidc


def _back(request: Request, keeper: Doorkeeper) -> str:
    scheme = "https" if keeper.secure_cookies else "http"
    return f"{scheme}://{request.headers.get('host', '')}{request.scope.get('root_path', '')}/oidc/back"


def _cookie(keeper: Doorkeeper) -> str:
    return "__Host-kinfolk-oidc" if keeper.secure_cookies else "kinfolk-oidc"


def _sealed(keeper: Doorkeeper, begun: Begun) -> str:
    kept = base64.urlsafe_b64encode(json.dumps(begun[1:]).encode()).decode()
    return f"{kept}.{keeper.form_token(f'oidc {kept}')}"


def _opened(keeper: Doorkeeper, cookie: str) -> Begun | None:
    kept, _, seal = cookie.partition(".")
    if not kept or not hmac.compare_digest(seal.encode(), keeper.form_token(f"oidc {kept}").encode()):
        return None
    return Begun("", *json.loads(base64.urlsafe_b64decode(kept)))
