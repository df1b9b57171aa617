"""Whether an invitation can be answered without its user: is it really its organiser's, and who is that to the user?

Whoever sends an invitation can write any address into ORGANIZER, and an answer then goes to somebody who never asked.
So nothing is answered automatically unless the one who sent it can be tied to the organiser, and the user's own mail
server has found the sender to be who they say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kinfolk_assistant.meeting import Meeting
from kinfolk_assistant.reading.origin import Origin

PUBLIC_DOMAINS = frozenset(
    [
        "aol.com",
        "fastmail.com",
        "free.fr",
        "gmail.com",
        "gmx.at",
        "gmx.ch",
        "gmx.de",
        "gmx.net",
        "googlemail.com",
        "hotmail.com",
        "icloud.com",
        "laposte.net",
        "live.com",
        "mac.com",
        "mail.com",
        "mail.ru",
        "mailbox.org",
        "me.com",
        "msn.com",
        "orange.fr",
        "outlook.com",
        "posteo.de",
        "proton.me",
        "protonmail.com",
        "qq.com",
        "t-online.de",
        "web.de",
        "yahoo.com",
        "yandex.ru",
        "163.com",
    ]
)
"""Anybody has an address there, so to share such a domain ties nobody to anybody."""


@dataclass(frozen=True)
class Trust:
    """Whom an administrator lets the assistant answer without asking.

    Attributes
    ----------
    servers : collection of str
        Names (authserv-id, RFC 8601) of the own mail servers, whose Authentication-Results are believed.
    domains : collection of str
        Domains of the own organisation, beside that of each user's own address where it is not a public one.
    delegates : mapping of str to collection of str
        For an organiser's address those who may invite in their name from another domain.
    services : collection of str
        Addresses or domains of calendar services that send invitations in organisers' names.
    allow, deny : collection of str
        Addresses or domains: organisers who count as met, and organisers who are never answered automatically.
    per_organiser, per_domain : int
        So many automatic answers a day go to one organiser, and to all of one domain, for each user.
    shadow_days : int
        So many days nothing is sent automatically for somebody who is new, whatever they have set.
    calendars : collection of str
        Online calendars ("google", "microsoft") that are believed to know who invites: they do not tell how they know.
    """

    servers: Collection[str] = ()
    domains: Collection[str] = ()
    delegates: Mapping[str, Collection[str]] = field(default_factory=dict)
    services: Collection[str] = ()
    allow: Collection[str] = ()
    deny: Collection[str] = ()
    per_organiser: int = 5
    per_domain: int = 10
    shadow_days: int = 0
    calendars: Collection[str] = ()

    def is_inside(self, address: str, user: str) -> bool:
        """Whether an address is of the user's own organisation.

        Examples
        --------
        >>> Trust().is_inside("bob@example.org", "ann@example.org"), Trust().is_inside("b@gmail.com", "a@gmail.com")
        (True, False)
        """
        domain, own = domain_of(address), domain_of(user)
        return bool(domain) and (domain in self.domains or (domain == own and own not in PUBLIC_DOMAINS))


def domain_of(address: str) -> str:
    """Give the domain of an address, "" where it has none."""
    return address.rpartition("@")[2].lower() if "@" in address else ""


def is_listed(address: str, names: Collection[str]) -> bool:
    """Whether an address, its domain, or a domain above that one, is among names."""
    domain = domain_of(address)
    above = [domain.split(".", n)[-1] for n in range(domain.count(".") + 1)] if domain else []
    return any(name in names for name in (address, *above))


def tied_sender(meeting: Meeting, origin: Origin, trust: Trust) -> str:
    """Give the sender who may speak for a meeting's organiser; "" where there is none.

    SENT-BY is written by whoever sends the invitation: it ties two addresses of one domain, and no others.
    """
    organiser = meeting.organiser
    for sender in filter(None, (origin.sender, origin.by)):
        same_house = sender == meeting.sent_by and domain_of(sender) == domain_of(organiser) not in PUBLIC_DOMAINS
        named = sender in trust.delegates.get(organiser, ()) or is_listed(sender, trust.services)
        if organiser and (sender == organiser or same_house or named):
            return sender
    return ""


def forgery_doubt(meeting: Meeting, origin: Origin, trust: Trust) -> str:
    """Why a mail may not be its organiser's; "" where nothing speaks for that.

    Examples
    --------
    >>> from datetime import date
    >>> from kinfolk_assistant.reading.origin import Check
    >>> meeting = Meeting("1", date(2026, 7, 1), date(2026, 7, 2), organiser="boss@example.org")
    >>> trust = Trust(servers=["mx.example.org"])
    >>> forgery_doubt(meeting, Origin("eve@evil.example"), trust)
    'it was sent by eve@evil.example, who is not its organiser'
    >>> forgery_doubt(meeting, Origin("boss@example.org"), trust)
    'your mail server did not say whether boss@example.org really sent it'
    >>> passed = Check("mx.example.org", "dkim", "pass", "example.org")
    >>> forgery_doubt(meeting, Origin("boss@example.org", checks=(passed,)), trust)
    ''
    """
    if origin.is_list:
        return "it came through a mailing list"
    sender = tied_sender(meeting, origin, trust)
    if not sender:
        return f"it was sent by {origin.sender or 'nobody knows whom'}, who is not its organiser"
    checks = [one for one in origin.checks if one.server in trust.servers]
    if any(one.method == "dmarc" and one.result in ("fail", "permerror") for one in checks):
        return f"your mail server says that {sender} may not have sent it"
    if not any(one.result == "pass" and _aligned(one.domain, domain_of(sender)) for one in checks):
        failed = any(one.result in ("fail", "softfail", "permerror") for one in checks)
        said = "says that" if failed else "did not say whether"
        return f"your mail server {said} {sender} {'may not have' if failed else 'really'} sent it"
    return ""


def _aligned(checked: str, domain: str) -> bool:
    return bool(checked) and (checked == domain or (domain.endswith(f".{checked}") and checked.count(".") > 0))
