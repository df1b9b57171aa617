"""What is the same for every user of a service: where it is, who the assistant is to it, what it asks to be allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from kinfolk_assistant.delivery.settings import Settings

Name = Literal["google", "microsoft"]
NAMES: tuple[Name, ...] = ("google", "microsoft")
TITLES: dict[str, str] = {"google": "Google", "microsoft": "Microsoft 365"}
CONNECTED = "/accounts/connected"
"""The page to which services send users back."""

NEAR = ("localhost", "127.0.0.1", "::1")

# The least that lets the assistant read a user's own calendar and answer in it. "openid email" tells whose account it
# is; the scope for events is that of calendars which the user owns.
_SCOPES = {
    "google": "openid email https://www.googleapis.com/auth/calendar.events.owned",
    "microsoft": "offline_access https://graph.microsoft.com/Calendars.ReadWrite",
}
# Google gives a refresh token only to those who ask for "offline", and again only where the user is asked again.
_ASKED = {"google": {"access_type": "offline", "prompt": "consent"}, "microsoft": {"prompt": "select_account"}}
_PLACES = {
    "google": {
        "authorize": "https://accounts.google.com/o/oauth2/v2/auth",
        "token": "https://oauth2.googleapis.com/token",
        "revoke": "https://oauth2.googleapis.com/revoke",
        "api": "https://www.googleapis.com/calendar/v3",
    },
    "microsoft": {
        "authorize": "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/authorize",
        "token": "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",
        # Microsoft has no address at which a single refresh token is revoked.
        "revoke": "",
        "api": "https://graph.microsoft.com/v1.0",
    },
}


@dataclass(frozen=True)
class Service:
    """A service as the settings name it."""

    name: Name
    client_id: str
    client_secret: str = field(repr=False)
    authorize: str
    token: str
    revoke: str
    api: str

    @property
    def title(self) -> str:
        """How people call it."""
        return TITLES[self.name]

    @property
    def scope(self) -> str:
        """What users are asked to allow."""
        return _SCOPES[self.name]

    @property
    def asked(self) -> dict[str, str]:
        """What is said beside that where they are asked."""
        return _ASKED[self.name]


def read_service(name: Name, table: Settings) -> Service:
    """Read what the settings say of a service; its addresses may be named for other clouds, and for tests.

    Raises
    ------
    ValueError
        With one sentence that names the key, where something is missing or would travel in the clear.
    """
    tenant = table.text("tenant", "organizations") if name == "microsoft" else ""
    places = {}
    for what, usual in _PLACES[name].items():
        url = table.text(what, usual.format(tenant=tenant)).rstrip("/")
        if url and not is_safe(url):
            raise table.wrong(what, f"is {url!r}, but must begin with https://")
        places[what] = url
    return Service(name, table.text("client_id"), table.secret("client_secret"), **places)


def is_safe(url: str) -> bool:
    """Whether nobody on the way can read what is sent to an address.

    Examples
    --------
    >>> is_safe("https://graph.example.org"), is_safe("http://127.0.0.1:80"), is_safe("http://graph.example.org")
    (True, True, False)
    """
    parts = urlsplit(url)
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in NEAR))
