"""A user's calendar at a service: what every service has in common in reading it and in answering there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from kinfolk_assistant.delivery.caldav_server import Stored
from kinfolk_assistant.delivery.collecting import Collected, Engagement, Invitation
from kinfolk_assistant.delivery.deliverer import NotDelivered, Outgoing
from kinfolk_assistant.delivery.finding import meeting_in
from kinfolk_assistant.delivery.online.api import Gone, WebApi
from kinfolk_assistant.delivery.online.event import OnlineEvent, as_icalendar
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.meeting import CalendarObject, in_utc
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR, Refused
from kinfolk_assistant.reading.calendars import read_calendar

PAST, AHEAD = timedelta(days=70), timedelta(days=400)
"""How much of a calendar is read: what features look at (eight weeks back), and invitations to come."""

HISTORY = timedelta(days=730)
"""How much of the past is read to learn from it."""

RENEWED = timedelta(days=7)
"""So often all is read afresh, because what is read moves along with the days."""

MAX_EVENTS = 20_000
"""A calendar with more events in that time is not read."""

_UTC = ZoneInfo("UTC")


class Read(NamedTuple):
    """A calendar as a service has told it, and what to hand over to be told the changes alone."""

    items: Mapping[str, Any]
    """Events as the service writes them, by what it calls them."""
    token: str


@dataclass(frozen=True)
class Mirror:
    """What was read at earlier visits."""

    account: tuple[str, str]
    since: datetime
    read: Read
    told: Mapping[str, tuple[object, ...]]
    """What organisers have said of each event."""
    objects: Mapping[tuple[str, ...], CalendarObject | None] = field(repr=False)
    """Objects by the versions of their events: what has not changed is not written and read again."""


class OnlineCalendar(ABC):
    """A user's main calendar at a service.

    Parameters
    ----------
    api : WebApi
        The service as this user reaches it.
    account : str
        The user's address there.
    """

    certain = True

    def __init__(self, api: WebApi, account: str) -> None:
        self.api = api
        self.account = account

    @property
    def name(self) -> str:
        """Which service it is."""
        return self.api.service.name

    @abstractmethod
    def read(self, before: Read | None, start: datetime, end: datetime) -> Read:
        """Read the calendar of a span of time, or what has changed since it was read before.

        Raises
        ------
        Gone
            Where the service does not know any more what has changed.
        ServerTrouble
            With one sentence, where it cannot be read.
        """

    @abstractmethod
    def as_events(self, items: Mapping[str, Any], refused: list[str]) -> list[OnlineEvent]:
        """Understand what the service has written; a sentence for each event that cannot be understood."""

    @abstractmethod
    def look_up(self, outgoing: Outgoing) -> Any:
        """Give the event that an answer is about as the service writes it now; None where there is none."""

    @abstractmethod
    def respond(self, item: Any, event: OnlineEvent, outgoing: Outgoing, note: str) -> None:
        """Answer an event that is not answered so yet."""

    @abstractmethod
    def is_answered(self, item: Any, event: OnlineEvent, outgoing: Outgoing, note: str) -> bool:
        """Whether the service has this very answer already."""

    def collect(self, seen: object, *, now: datetime) -> Collected:
        """Visit the calendar: invitations that wait for an answer, and all that stands in it."""
        of = (self.name, self.account)
        before = seen if isinstance(seen, Mirror) and seen.account == of and now - seen.since < RENEWED else None
        since = now if before is None else before.since
        try:
            read = self.read(None if before is None else before.read, since - PAST, since + AHEAD)
        except Gone:
            before, since = None, now
            try:
                read = self.read(None, since - PAST, since + AHEAD)
            except Gone as error:
                raise ServerTrouble(f"{self.api.service.title} answered with the error 410.", 410) from error
        if before is not None and read.items == before.read.items:
            return Collected([], None, [], Mirror(of, since, read, before.told, before.objects))
        refused: list[str] = []
        events = self.as_events(read.items, refused)
        n_strange = len(refused)
        known = {} if before is None else before.told
        objects: dict[tuple[str, ...], CalendarObject | None] = {}
        calendar = []
        for versions, group in _by_uid(events):
            held = before is not None and versions in before.objects
            one = before.objects[versions] if before is not None and held else _object(group, "", refused)
            objects[versions] = one
            if one is not None:
                calendar.append(Engagement(one, f"{self.name}:{group[0].id}", group[0].version[:200]))
        invitations = []
        for event in events:
            is_over = not event.rules and in_utc(event.end, _UTC) < now
            if known.get(event.id) == event.told or is_over or not (event.asks or event.cancelled):
                continue
            message = _object([event], "CANCEL" if event.cancelled else "REQUEST", refused)
            if message is not None:
                invitations.append(Invitation(message, min(event.stamp, now), f"{self.name}:{event.id}"))
        told = {event.id: event.told for event in events}
        return Collected(
            sorted(invitations, key=lambda one: (one.received_at, one.href)),
            calendar,
            refused if before is None else [],
            Mirror(of, since, read, told, objects),
            n_strange + sum(one is None for one in objects.values()),
        )

    def events(self, now: datetime) -> list[Stored]:
        """Give what stands in the calendar, with two years of its past, to learn from."""
        try:
            read = self.read(None, now - HISTORY, now + AHEAD)
        except Gone as error:
            raise ServerTrouble(f"{self.api.service.title} answered with the error 410.", 410) from error
        groups = _by_uid(self.as_events(read.items, []))
        return [Stored(f"{self.name}:{group[0].id}", "", as_icalendar(group)) for _, group in groups]

    def deliver(self, outgoing: Outgoing) -> None:
        """Answer where the event is; the service tells its organiser.

        What the service has is looked at first, so that an answer of which nobody knows whether it arrived is not
        given twice.

        Raises
        ------
        NotDelivered
            With one sentence, where it was not answered.
        """
        if not self.answer(outgoing):
            raise NotDelivered(f"The meeting is no longer in the calendar at {self.api.service.title}.")

    def answer(self, outgoing: Outgoing) -> bool:
        """Answer where the event is; False where there is no such event."""
        try:
            item = self.look_up(outgoing)
            events = [] if item is None else self.as_events({str(item.get("id")): item}, [])
            if not events:
                return False
            note = _note(outgoing)
            if self.is_answered(item, events[0], outgoing, note):
                return True
            self._check_still_asked(events[0], outgoing)
            self.respond(item, events[0], outgoing, note)
        except Gone:
            return False
        except (ServerTrouble, Refused) as error:
            raise NotDelivered(str(error)) from error
        return True

    def _check_still_asked(self, event: OnlineEvent, outgoing: Outgoing) -> None:
        """Refuse to answer what the organiser has meanwhile cancelled or changed, or never asked of this user."""
        if not event.answer or event.own:
            raise NotDelivered(f"The meeting in the calendar does not invite {outgoing.attendee}.")
        if event.cancelled:
            raise NotDelivered("The organiser has cancelled the meeting.")
        asked = meeting_in(outgoing.request_text, outgoing.uid, outgoing.recurrence_id)
        moved = asked is not None and (
            (in_utc(asked.start, _UTC), in_utc(asked.end, _UTC)) != (in_utc(event.start, _UTC), in_utc(event.end, _UTC))
            or event.sequence > asked.sequence
        )
        if moved:
            raise NotDelivered("The organiser has changed the meeting since, and asks anew.")


def reference(outgoing: Outgoing, service: str) -> str:
    """Give what a service calls the event from which an invitation came; "" where it came another way."""
    name, _, event = outgoing.source_ref.partition(":")
    return event if name == service else ""


def _by_uid(events: Iterable[OnlineEvent]) -> list[tuple[tuple[str, ...], list[OnlineEvent]]]:
    """Give the events of each UID together, the series before its occurrences, with their versions."""
    groups: dict[str, list[OnlineEvent]] = {}
    for event in events:
        groups.setdefault(event.uid, []).append(event)
    ordered = [sorted(group, key=lambda one: (one.occurrence is not None, one.id)) for group in groups.values()]
    return [(tuple(f"{one.id} {one.version}" for one in group), group) for group in ordered]


def _object(events: list[OnlineEvent], method: str, refused: list[str]) -> CalendarObject | None:
    try:
        text = as_icalendar(events, method)
        return read_calendar(text.encode(), f"the event {events[0].summary[:80]!r}", bounds=WHOLE_CALENDAR)[0]
    except (Refused, ValueError) as error:
        refused.append(str(error) if isinstance(error, Refused) else f"{events[0].summary[:80]!r} cannot be read.")
        return None


def _note(outgoing: Outgoing) -> str:
    """What the user says to the organiser beside the answer."""
    from icalendar import Calendar

    told = Calendar.from_ical(outgoing.text).walk("VEVENT")[0].get("COMMENT", "")
    return str(told[0] if isinstance(told, list) else told)
