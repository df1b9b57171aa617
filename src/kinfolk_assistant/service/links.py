"""Links in mails by which one invitation can be answered in one way, by whoever has the mail, after a confirmation."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from kinfolk_assistant.delivery.keys import Keys

LIFETIME = timedelta(days=7)


class Link(NamedTuple):
    """What a link stands for."""

    user: str
    request_id: int
    choice: str
    expires: datetime


def make_token(keys: Keys, link: Link) -> str:
    """Write a link's token: what it stands for, and a signature."""
    told = json.dumps([link.user, link.request_id, link.choice, int(link.expires.timestamp())])
    body = urlsafe_b64encode(told.encode()).decode().rstrip("=")
    return f"{body}.{keys.sign(body)}"


def read_token(keys: Keys, token: str, now: datetime) -> Link | None:
    """Read a token; None where it was not made here, or is too old.

    Examples
    --------
    >>> from cryptography.fernet import Fernet
    >>> keys, now = Keys([Fernet.generate_key().decode()]), datetime(2026, 7, 1, tzinfo=UTC)
    >>> token = make_token(keys, Link("ann@example.org", 7, "accept", now + LIFETIME))
    >>> read_token(keys, token, now).choice, read_token(keys, token, now + LIFETIME), read_token(keys, "x" + token, now)
    ('accept', None, None)
    """
    body, _, signature = token.partition(".")
    if not keys.is_signed(body, signature):
        return None
    user, request_id, choice, expires = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    link = Link(str(user), int(request_id), str(choice), datetime.fromtimestamp(expires, UTC))
    return link if now < link.expires else None
