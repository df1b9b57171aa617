"""A calendar at Google, by the Calendar API v3 (https://developers.google.com/workspace/calendar/api/v3/reference)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from kinfolk_assistant.delivery.deliverer import NotDelivered, Outgoing
from kinfolk_assistant.delivery.online.calendar import MAX_EVENTS, OnlineCalendar, Read, reference
from kinfolk_assistant.delivery.online.event import OnlineEvent
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.meeting import Attendee, Moment

_EVENTS = "/calendars/primary/events"
_ANSWERS = {"needsAction": "NEEDS-ACTION", "accepted": "ACCEPTED", "declined": "DECLINED", "tentative": "TENTATIVE"}
_STATUS = {answer: status for status, answer in _ANSWERS.items()}


class GoogleCalendar(OnlineCalendar):
    """A user's primary calendar at Google."""

    def read(self, before: Read | None, start: datetime, end: datetime) -> Read:
        """Read by events.list; later by syncToken, which gives what has changed, also what was deleted.

        Documented: nextSyncToken is on the last page only; with syncToken neither timeMin nor timeMax may be given, and
        all else has to be as it was at first; a token that has ended is answered with 410.
        """
        asked = {"maxResults": "2500", "singleEvents": "false", "maxAttendees": "200"}
        if before is None:
            asked |= {"timeMin": f"{start:%Y-%m-%dT%H:%M:%SZ}", "timeMax": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
        else:
            asked["syncToken"] = before.token
        items = {} if before is None else dict(before.items)
        while True:
            page = self.api.ask("GET", _EVENTS, params=asked)
            if not isinstance(page, dict) or not isinstance(page.get("items", []), list):
                raise ServerTrouble("Google answered something that is not a list of events.")
            for item in page.get("items", []):
                name = str(item.get("id", ""))
                # Of a deleted event nothing but its id is promised; of a series' occurrence also which one it is, and
                # that has to be known, because the series itself goes on.
                if item.get("status") == "cancelled" and not item.get("recurringEventId"):
                    items.pop(name, None)
                else:
                    items[name] = item
            if len(items) > MAX_EVENTS:
                raise ServerTrouble(f"The calendar at Google has more than {MAX_EVENTS} events, which is too many.")
            if page.get("nextPageToken"):
                asked["pageToken"] = str(page["nextPageToken"])
            else:
                return Read(items, str(page.get("nextSyncToken", "")))

    def as_events(self, items: Mapping[str, Any], refused: list[str]) -> list[OnlineEvent]:
        """Understand events; an occurrence that was called off is left out of its series."""
        left_out: dict[str, list[str]] = {}
        for item in items.values():
            if item.get("status") == "cancelled" and item.get("recurringEventId"):
                line = _left_out(item.get("originalStartTime") or {})
                left_out.setdefault(str(item["recurringEventId"]), []).append(line)
        found = []
        for item in items.values():
            if item.get("status") == "cancelled":
                continue
            try:
                event = self._event(item, tuple(filter(None, left_out.get(str(item.get("id")), ()))))
            except (KeyError, TypeError, ValueError, AttributeError):
                refused.append(f"An event at Google cannot be understood: {str(item.get('summary', ''))[:80]!r}.")
                continue
            found.append(event)
        return found

    def _event(self, item: Any, left_out: tuple[str, ...]) -> OnlineEvent:
        attendees = item.get("attendees", [])
        own = next((one for one in attendees if one.get("self")), None)
        organiser = item.get("organizer", {})
        is_own = bool(organiser.get("self")) or not organiser
        zone = str(item["start"].get("timeZone") or "") if item.get("recurrence") else ""
        occurrence = item.get("originalStartTime") if item.get("recurringEventId") else None
        return OnlineEvent(
            id=str(item["id"]),
            version=f"{item.get('etag', '')}{len(left_out)}",
            uid=str(item["iCalUID"]),
            start=_moment(item["start"], zone),
            end=_moment(item["end"], zone),
            stamp=datetime.fromisoformat(str(item.get("updated") or item["created"])).astimezone(UTC),
            occurrence=None if occurrence is None else _moment(occurrence, ""),
            sequence=int(item.get("sequence", 0)),
            organiser=self.account if is_own else str(organiser.get("email", "")).lower(),
            organiser_name=str(organiser.get("displayName", "")),
            attendees=tuple(
                Attendee(
                    self.account if one.get("self") else str(one.get("email", "")).lower(),
                    str(one.get("displayName", "")),
                    _ANSWERS.get(str(one.get("responseStatus")), "NEEDS-ACTION"),
                    "OPT-PARTICIPANT" if one.get("optional") else "",
                )
                for one in attendees
                if one.get("email")
            ),
            summary=str(item.get("summary", "")),
            description=str(item.get("description", "")),
            location=str(item.get("location", "")),
            rules=(*(str(line) for line in item.get("recurrence", [])), *left_out),
            transparent=item.get("transparency") == "transparent",
            own=is_own,
            answer="" if own is None else _ANSWERS.get(str(own.get("responseStatus")), ""),
        )

    def look_up(self, outgoing: Outgoing) -> Any:
        """Get the event; where the invitation came another way, by its UID (documented: the parameter iCalUID)."""
        name = reference(outgoing, "google")
        try:
            if name:
                item = self.api.ask("GET", f"{_EVENTS}/{quote(name, safe='')}")
            else:
                found = self.api.ask("GET", _EVENTS, params={"iCalUID": outgoing.uid}).get("items", [])
                item = next((one for one in found if not one.get("recurringEventId")), None)
        except ServerTrouble as error:
            if error.status == 404:
                return None
            raise
        return None if item is None or item.get("status") == "cancelled" else item

    def is_answered(self, item: Any, event: OnlineEvent, outgoing: Outgoing, note: str) -> bool:
        """Whether the event has the answer, and the note where there is one."""
        own = _own(item)
        return event.answer == outgoing.answer and (not note or own.get("comment", "") == note)

    def respond(self, item: Any, event: OnlineEvent, outgoing: Outgoing, note: str) -> None:
        """Change the user's own responseStatus.

        Documented: with attendeesOmitted an update changes the participant's own response alone; sendUpdates says who
        is told. The etag keeps a change in between from being overwritten (412).
        """
        answered = {"email": _own(item)["email"], "responseStatus": _STATUS[outgoing.answer]}
        kept = self.api.ask(
            "PATCH",
            f"{_EVENTS}/{quote(event.id, safe='')}",
            params={"sendUpdates": "all"},
            json={"attendeesOmitted": True, "attendees": [answered | ({"comment": note} if note else {})]},
            headers={"If-Match": str(item.get("etag", "*"))},
        )
        if _own(kept or {}).get("responseStatus") != answered["responseStatus"]:
            raise NotDelivered("Google did not keep the answer.")


def _own(item: Any) -> Any:
    return next((one for one in item.get("attendees", []) if one.get("self")), {})


def _moment(told: Any, zone: str) -> Moment:
    """A date of whole days, or a time with its offset; a series needs its zone, because clocks change."""
    if "date" in told:
        return date.fromisoformat(told["date"])
    moment = datetime.fromisoformat(told["dateTime"])
    if moment.tzinfo is None:
        return moment.replace(tzinfo=ZoneInfo(told["timeZone"]))
    return moment.astimezone(ZoneInfo(zone) if zone else UTC)


def _left_out(told: Any) -> str:
    if "date" in told:
        return f"EXDATE;VALUE=DATE:{told['date'].replace('-', '')}"
    if "dateTime" in told:
        return f"EXDATE:{datetime.fromisoformat(told['dateTime']).astimezone(UTC):%Y%m%dT%H%M%SZ}"
    return ""
