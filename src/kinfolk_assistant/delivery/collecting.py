"""What is new on a user's CalDAV server: invitations for the assistant to take in, and the calendar as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from kinfolk_assistant.delivery.caldav_server import Arrived, CalDAVAccount, Stored
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.bounds import INVITATION, WHOLE_CALENDAR, Refused
from kinfolk_assistant.reading.calendars import read_calendar

_TAKEN_IN = ("REQUEST", "CANCEL", "DECLINECOUNTER")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Seen(NamedTuple):
    """Paths and etags of what was collected before."""

    inbox: Mapping[str, str]
    calendar: Mapping[str, str]


NOTHING = Seen({}, {})


class Invitation(NamedTuple):
    """A message for the assistant to take in, and its path on the server."""

    object: CalendarObject
    received_at: datetime
    href: str


class Engagement(NamedTuple):
    """An object of the user's calendar, and its path and etag on the server."""

    object: CalendarObject
    href: str
    etag: str


class Collected(NamedTuple):
    """What a visit to the server has brought."""

    invitations: list[Invitation]
    """New ones, in the order they came."""
    calendar: list[Engagement] | None
    """The whole calendar; None where it has not changed."""
    refused: list[str]
    """A sentence for each new message that cannot be used."""
    seen: object
    """To hand to the next visit, once everything else has been taken in."""
    unread: int = 0
    """How many entries of the calendar cannot be read: what they fill is not free."""


def collect(account: CalDAVAccount, seen: Seen = NOTHING, *, now: datetime) -> Collected:
    """Visit a user's server.

    Messages stay in the inbox until they are answered; what else lies there, such as the replies to the user's own
    invitations, is left to the user's other programs.

    Parameters
    ----------
    account : CalDAVAccount
        The user's account.
    seen : Seen, optional
        What the visit before has given; without it, everything is new.
    now : datetime
        When messages have come of which the server does not say when: a server may not be asked for the future.

    Raises
    ------
    ServerTrouble
        With one sentence, where the server cannot be used.
    """
    inbox = account.inbox(seen.inbox)
    refused: list[str] = []
    invitations = [
        Invitation(one, min(message.received or now, now), message.href)
        for message in inbox
        if seen.inbox.get(message.href) != message.etag
        for one in _read(message, refused)
        if one.method in _TAKEN_IN
    ]
    versions = account.versions()
    calendar = None
    unread: list[str] = []
    if versions != seen.calendar or seen is NOTHING:
        stored = account.events()
        calendar = [Engagement(one, place.href, place.etag) for place in stored for one in _read(place, unread)]
    now_seen = Seen({one.href: one.etag for one in inbox}, versions)
    return Collected(sorted(invitations, key=_order), calendar, refused + unread, now_seen, len(unread))


def _read(message: Arrived | Stored, refused: list[str]) -> list[CalendarObject]:
    """What a message says; one that cannot be read must not keep others from being read."""
    try:
        if message.text is None:
            raise Refused(f"the message {message.href} is too large to be read.")
        bounds = WHOLE_CALENDAR if isinstance(message, Stored) else INVITATION
        return read_calendar(message.text.encode(errors="replace"), f"the message {message.href}", bounds=bounds)
    except Refused as error:
        refused.append(str(error))
        return []


def _order(invitation: Invitation) -> tuple[datetime, datetime, str]:
    stamps = [meeting.stamp for meeting in invitation.object.meetings if meeting.stamp is not None]
    return invitation.received_at, min(stamps, default=_LONG_AGO), invitation.href
