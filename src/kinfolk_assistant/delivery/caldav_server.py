"""Invitations and answers through a CalDAV server that schedules (RFC 6638): a changed PARTSTAT is the reply."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from kinfolk_assistant.delivery.dav import MAX_OBJECT, Connection, Content
from kinfolk_assistant.delivery.deliverer import NotDelivered, Outgoing
from kinfolk_assistant.delivery.finding import meeting_in
from kinfolk_assistant.delivery.scheduling import is_marked, left_to_client, marked, server_tells
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.reading.bounds import Refused
from kinfolk_assistant.reading.reply import with_answer

MAX_NEW = 500
"""So many new messages of an inbox are read at once; the others are read the next time."""

_SAME_LETTERS = 20


class Arrived(NamedTuple):
    """A message in the scheduling inbox."""

    href: str
    etag: str
    text: str | None
    """None where it is as known before, or too large."""
    received: datetime | None
    """When the server says it came."""
    size: int


class Stored(NamedTuple):
    """An object of a calendar."""

    href: str
    etag: str
    text: str


@dataclass(frozen=True)
class CalDAVAccount:
    """Where a user's calendars are.

    Every method visits the server, and raises `ServerTrouble`, an `OSError`, with one sentence where that goes wrong.
    """

    url: str
    username: str
    password: str = field(repr=False)
    timeout: float = 10.0
    certificate: str | None = None

    def connect(self, patience: float = 120.0) -> Connection:
        """Begin a visit that takes at most ``patience`` seconds."""
        return Connection(
            self.url,
            self.username,
            self.password,
            timeout=self.timeout,
            patience=patience,
            certificate=self.certificate,
        )

    def addresses(self) -> list[str]:
        """Give the user's addresses as the server knows them: invitations to others do not reach the inbox."""
        with self.connect() as server:
            return server.addresses()

    def inbox(self, known: Mapping[str, str] | None = None) -> list[Arrived]:
        """Give what is in the scheduling inbox.

        Parameters
        ----------
        known : mapping of str to str, optional
            Paths and etags of messages that were read before: they are not read again.

        Returns
        -------
        list of Arrived
            All messages that are known, and up to 500 new ones; none where the server does not schedule and has no
            such place: invitations then come by mail.
        """
        known = known or {}
        with self.connect() as server:
            place = server.inbox()
            if place is None:
                return []
            found, read = [], 0
            for member in server.members(place):
                text = None
                if known.get(member.href) != member.etag and member.size <= MAX_OBJECT:
                    content = server.get(member.href) if read < MAX_NEW else None
                    read += 1
                    if content is None:
                        continue  # gone since the inbox was listed, or left for the next time
                    text = content.text if len(content.text) <= MAX_OBJECT else None
                found.append(Arrived(member.href, member.etag, text, member.modified, member.size))
            return found

    def versions(self) -> dict[str, str]:
        """Give the paths and etags of all objects in the user's calendars."""
        with self.connect() as server:
            return {one.href: one.etag for place in server.calendars() for one in server.members(place)}

    def events(self) -> list[Stored]:
        """Give all objects of the user's calendars, but those that are too large."""
        with self.connect(patience=600.0) as server:
            found = []
            for place in server.calendars():
                hrefs = [member.href for member in server.members(place) if member.size <= MAX_OBJECT]
                found += [Stored(*one) for one in server.contents(place, hrefs) if 0 < len(one.text) <= MAX_OBJECT]
            return found

    def remove(self, href: str) -> None:
        """Remove a message from the inbox, and never anything else."""
        with self.connect() as server:
            if not _in_inbox(server, href):
                raise ValueError(f"{href!r} is not in the scheduling inbox of {self.username!r}, so it is not removed.")
            server.delete(href)


class CalDAVDeliverer:
    """Answers by storing the answered meeting in the user's calendar; the server then tells the organiser.

    A user's own change in between is not overwritten: the etag that was read must still be there. An answer that is
    there already is not stored again, so that it does no harm to deliver it twice.
    """

    certain = True

    def __init__(self, account: CalDAVAccount) -> None:
        self.account = account

    def deliver(self, outgoing: Outgoing) -> None:
        """Store the answer, and clear the message from the inbox."""
        if not self.store(outgoing):
            raise NotDelivered(
                "The answer is in the calendar, but its server does not tell the organiser; "
                "add [smtp] to the settings so that answers go by mail."
            )

    def store(self, outgoing: Outgoing) -> bool:
        """Store the answer; whether the server tells the organiser."""
        try:
            with self.account.connect() as server:
                told = self._store(server, outgoing)
                with suppress(ServerTrouble):  # the answer is out; a message left behind is only seen once more
                    if _in_inbox(server, outgoing.source_ref):
                        server.delete(outgoing.source_ref)
                return told
        except (ServerTrouble, Refused) as error:
            raise NotDelivered(str(error)) from error

    def _store(self, server: Connection, outgoing: Outgoing) -> bool:
        found = _find(server, outgoing.uid)
        if found is None and outgoing.answer == "DECLINED" and not comes_from_server(outgoing):
            return False  # what is declined by mail need not enter the calendar
        schedules = server.schedules()
        found = found or _create(server, outgoing)
        if _answer_in(found, outgoing) == outgoing.answer and _is_asked_anew(server, found, outgoing):
            _, found = _change(server, found, outgoing, "NEEDS-ACTION")
        kept = False
        for _ in range(2):
            if kept or _answer_in(found, outgoing) == outgoing.answer:
                break
            kept, found = _change(server, found, outgoing, outgoing.answer)
        if _answer_in(found, outgoing) != outgoing.answer:
            what = "did not keep the answer" if kept else "has the meeting changed whenever it is to be answered"
            raise NotDelivered(f"{server.where} {what}.")
        return schedules and server_tells(found.text)


def comes_from_server(outgoing: Outgoing) -> bool:
    """Whether the invitation came through a CalDAV server, and not as a mail or a file."""
    return outgoing.source_ref.startswith("/")


def _in_inbox(server: Connection, href: str) -> bool:
    inbox = server.inbox() if href.startswith("/") else None
    return inbox is not None and posixpath.normpath(href) == href and href.startswith(inbox)


def _find(server: Connection, uid: str) -> Content | None:
    """The user's copy of a meeting, in whichever calendar it is."""
    for calendar in server.calendars():
        for href in server.find(calendar, uid)[:_SAME_LETTERS]:
            content = server.get(href)
            with suppress(Refused):
                if content is not None and meeting_in(content.text, uid, "") is not None:
                    return content
    return None


def _create(server: Connection, outgoing: Outgoing) -> Content:
    """Store a meeting that is in no calendar yet.

    Where the server is to tell the organiser, it is stored without an answer: only a change of the answer is told.
    """
    told = comes_from_server(outgoing)
    answer = "NEEDS-ACTION" if told else outgoing.answer
    text = with_answer(outgoing.request_text, outgoing.uid, outgoing.recurrence_id, outgoing.attendee, answer)
    href = f"{server.default_calendar()}{sha256(outgoing.uid.encode()).hexdigest()[:40]}.ics"
    server.put(href, text if told else left_to_client(text), etag=None)
    return _read(server, href)


def _is_asked_anew(server: Connection, found: Content, outgoing: Outgoing) -> bool:
    """Whether the organiser asks though the answer is there: some servers keep it when the meeting is changed.

    Only a change of the answer is told, so it has to be taken back first; but not where this very reply has set it.
    """
    asks = comes_from_server(outgoing) and not is_marked(found.text, outgoing.message_id)
    return asks and _in_inbox(server, outgoing.source_ref) and server.get(outgoing.source_ref) is not None


def _change(server: Connection, found: Content, outgoing: Outgoing, answer: str) -> tuple[bool, Content]:
    """Store another answer; whether it was stored, and what is there now."""
    _check_still_asked(found, outgoing)
    text = with_answer(found.text, outgoing.uid, outgoing.recurrence_id, outgoing.attendee, answer)
    kept = server.put(found.href, marked(text, outgoing.message_id), etag=found.etag)
    return kept, _read(server, found.href)


def _read(server: Connection, href: str) -> Content:
    found = server.get(href)
    if found is None:
        raise NotDelivered(f"{server.where} did not keep the meeting.")
    return found


def _answer_in(content: Content, outgoing: Outgoing) -> str:
    meeting = meeting_in(content.text, outgoing.uid, outgoing.recurrence_id)
    return "" if meeting is None else meeting.answer_of(outgoing.attendee)


def _check_still_asked(content: Content, outgoing: Outgoing) -> None:
    """Refuse to answer what the organiser has meanwhile cancelled or changed, or never asked of this user."""
    there = meeting_in(content.text, outgoing.uid, outgoing.recurrence_id)
    asked = meeting_in(outgoing.request_text, outgoing.uid, outgoing.recurrence_id)
    if there is None or not there.answer_of(outgoing.attendee):
        raise NotDelivered(f"The meeting in the calendar does not invite {outgoing.attendee}.")
    if there.cancelled:
        raise NotDelivered("The organiser has cancelled the meeting.")
    if asked is not None and there.sequence > asked.sequence:
        raise NotDelivered("The organiser has changed the meeting since, and asks anew.")
