"""Where a mail comes from, by its headers: who it says sent it, and what servers found out about that (RFC 8601)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from email.utils import parseaddr
from typing import Any, NamedTuple

_COMMENT = re.compile(r"\([^()]*\)")
_RESULT = re.compile(r"^\s*([a-z0-9-]+)(?:\s*/\s*\d+)?\s*=\s*([a-z]+)\b(.*)$", re.IGNORECASE | re.DOTALL)
_PROPERTY = re.compile(r"([a-z0-9-]+\.[a-z0-9_.-]+)\s*=\s*(\"[^\"]*\"|[^\s;]+)", re.IGNORECASE)
_MOST_HEADERS = 10
_LONGEST = 4000


class Check(NamedTuple):
    """One result of one server: ``domain`` is the one that it is about, as far as it says."""

    server: str
    method: str
    result: str
    domain: str


class Origin(NamedTuple):
    """Where a mail comes from.

    Attributes
    ----------
    sender
        The address in From.
    by
        The address in Sender; "" where there is none.
    is_list
        Whether a mailing list, or something else that sends to many, has passed it on.
    checks
        What servers say of it in Authentication-Results, those of the topmost lines alone: each server adds its own
        above what is there, so that a line further down may be anybody's.
    """

    sender: str = ""
    by: str = ""
    is_list: bool = False
    checks: tuple[Check, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Give it as the ledger keeps it."""
        return {**self._asdict(), "checks": [list(one) for one in self.checks]}

    @classmethod
    def from_json(cls, kept: dict[str, Any] | None) -> Origin:
        """Give what the ledger has kept; nothing is known where it has nothing."""
        if not kept:
            return cls()
        checks = tuple(Check(*map(str, one)) for one in kept.get("checks", ()))
        return cls(str(kept.get("sender", "")), str(kept.get("by", "")), bool(kept.get("is_list")), checks)


def origin_of(message: Message) -> Origin:
    r"""Read where a mail comes from.

    Examples
    --------
    >>> from email import message_from_string
    >>> lines = ["Authentication-Results: mx.example.org; dkim=pass header.d=example.com; spf=none",
    ...          "Received: from mail.example.com by mx.example.org; Mon, 2 Mar 2026 09:00:00 +0000",
    ...          "Authentication-Results: mx.example.org; dmarc=pass header.from=bank.example",
    ...          "From: Ann <Ann@example.com>", "", ""]
    >>> origin = origin_of(message_from_string("\n".join(lines)))
    >>> origin.sender, [(one.method, one.result, one.domain) for one in origin.checks]
    ('ann@example.com', [('dkim', 'pass', 'example.com'), ('spf', 'none', '')])
    """
    precedence = _line(message, "Precedence").lower()
    is_list = any(name in message for name in ("List-Id", "List-Post", "List-Unsubscribe", "Mailing-List"))
    return Origin(
        _address(message, "From"),
        _address(message, "Sender"),
        is_list or precedence in ("list", "bulk", "junk"),
        tuple(_checks(message)),
    )


def _checks(message: Message) -> Iterator[Check]:
    """Read the topmost Authentication-Results, and those that follow it with no server's Received line between."""
    found = 0
    for name, value in message.items():
        if name.lower() == "received" and found:
            return
        if name.lower() != "authentication-results":
            continue
        found += 1
        if found > _MOST_HEADERS:
            return
        text = str(value)[:_LONGEST]
        for _ in range(3):
            text = _COMMENT.sub(" ", text)
        server, *results = text.split(";")
        for result in results:
            told = _RESULT.match(result)
            if told:
                yield Check(_word(server), told[1].lower(), told[2].lower(), _domain(told[1].lower(), told[3]))


def _word(server: str) -> str:
    return (server.split() or [""])[0].strip('"').lower()[:255]


def _domain(method: str, rest: str) -> str:
    """Give the domain that a result is about: of the signature, of the envelope, of From."""
    told = {name.lower(): value.strip('"').lower() for name, value in _PROPERTY.findall(rest)}
    names = {
        "dkim": ("header.d", "header.i"),
        "spf": ("smtp.mailfrom", "smtp.mail", "smtp.helo"),
        "dmarc": ("header.from",),
    }.get(method, ())
    value = next((told[name] for name in names if name in told), "")
    return value.rpartition("@")[2].rstrip(".")[:255]


def _address(message: Message, name: str) -> str:
    try:
        return parseaddr(_line(message, name))[1].lower()[:320]
    except RecursionError:  # comments may be nested as deeply as anyone likes
        return ""


def _line(message: Message, name: str) -> str:
    return " ".join(str(message.get(name, ""))[:1000].split())
