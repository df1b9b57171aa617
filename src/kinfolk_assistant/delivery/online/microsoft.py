"""A calendar at Microsoft 365, by Microsoft Graph 1.0 (https://learn.microsoft.com/graph/api/resources/event)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote

from kinfolk_assistant.delivery.deliverer import NotDelivered, Outgoing
from kinfolk_assistant.delivery.finding import meeting_in
from kinfolk_assistant.delivery.online.api import Gone
from kinfolk_assistant.delivery.online.calendar import MAX_EVENTS, OnlineCalendar, Read, reference
from kinfolk_assistant.delivery.online.event import OnlineEvent
from kinfolk_assistant.delivery.online.recurrence import as_rule, zone_called
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.meeting import Attendee, Moment, in_utc

_FIELDS = (
    "id,iCalUId,changeKey,type,seriesMasterId,originalStart,subject,body,location,start,end,isAllDay,isCancelled,"
    "isOrganizer,organizer,attendees,responseStatus,recurrence,showAs,lastModifiedDateTime,createdDateTime"
)
# Times in UTC and bodies as plain text, which Graph gives to those who prefer them.
_PREFER = {"Prefer": 'outlook.timezone="UTC", outlook.body-content-type="text"'}
_ANSWERS = {
    "none": "NEEDS-ACTION",
    "notResponded": "NEEDS-ACTION",
    "accepted": "ACCEPTED",
    "declined": "DECLINED",
    "tentativelyAccepted": "TENTATIVE",
    "organizer": "ACCEPTED",
}
_ACTIONS = {
    "ACCEPTED": "accept",
    "DECLINED": "decline",
    "TENTATIVE": "tentativelyAccept",
    "COUNTER": "tentativelyAccept",
}
_SKEW = timedelta(seconds=2)


class MicrosoftCalendar(OnlineCalendar):
    """A user's default calendar at Microsoft 365."""

    def read(self, before: Read | None, start: datetime, end: datetime) -> Read:
        """Read by calendarView/delta; later by the link that the last round ended with.

        Documented: every answer but the last of a round has @odata.nextLink, the last has @odata.deltaLink; what has
        left the view is told as @removed; a link that has ended is answered with 410. The view gives occurrences of a
        series, not the series: that is asked for by its id, with the occurrences that were called off.
        """
        items = {} if before is None else dict(before.items)
        touched: set[str] = set()
        if before is None:
            span = f"startDateTime={start:%Y-%m-%dT%H:%M:%SZ}&endDateTime={end:%Y-%m-%dT%H:%M:%SZ}"
            link = f"/me/calendarView/delta?{span}"
        else:
            link = before.token
        while True:
            page = self.api.ask("GET", link, headers=_PREFER)
            if not isinstance(page, dict) or not isinstance(page.get("value", []), list):
                raise ServerTrouble("Microsoft 365 answered something that is not a list of events.")
            for item in page.get("value", []):
                name = str(item.get("id", ""))
                if "@removed" in item:
                    touched.add(str(items.pop(name, {}).get("seriesMasterId") or ""))
                else:
                    items[name] = item
                    touched.add(str(item.get("seriesMasterId") or ""))
                    touched.add(name if item.get("type") == "seriesMaster" else "")
            if len(items) > MAX_EVENTS:
                raise ServerTrouble(f"The calendar at Microsoft 365 has more than {MAX_EVENTS} events, too many.")
            if not page.get("@odata.nextLink"):
                break
            link = str(page["@odata.nextLink"])
        for series in sorted(touched - {""}):
            item = self._get(series, ",cancelledOccurrences")
            still = any(one.get("seriesMasterId") == series for one in items.values())
            if item is not None and still:
                items[series] = item
            else:
                items.pop(series, None)
        return Read(items, str(page.get("@odata.deltaLink", "")))

    def as_events(self, items: Mapping[str, Any], refused: list[str]) -> list[OnlineEvent]:
        """Understand events; occurrences as their series has them say nothing more than the series."""
        found = []
        for item in items.values():
            if item.get("type") == "occurrence" and len(items) > 1:
                continue
            try:
                master = items.get(str(item.get("seriesMasterId") or ""), item)
                found.append(self._event(item, master))
            except (KeyError, TypeError, ValueError, AttributeError):
                refused.append(
                    f"An event at Microsoft 365 cannot be understood: {str(item.get('subject', ''))[:80]!r}."
                )
        return found

    def _event(self, item: Any, master: Any) -> OnlineEvent:
        whole_days = bool(item.get("isAllDay"))
        start, end = _moment(item["start"], whole_days), _moment(item["end"], whole_days)
        rules: tuple[str, ...] = ()
        if item.get("type") == "seriesMaster" and item.get("recurrence"):
            recurrence = item["recurrence"]
            zone = zone_called(str((recurrence.get("range") or {}).get("recurrenceTimeZone") or "UTC"))
            if isinstance(start, datetime) and isinstance(end, datetime):
                # Without its zone, hours would be wrong for half of the year.
                if zone is None:
                    raise ValueError("the zone is not known")
                start, end = start.astimezone(zone), end.astimezone(zone)
            rules = (as_rule(recurrence, start), *_left_out(item.get("cancelledOccurrences") or [], start))
        organiser = (item.get("organizer") or {}).get("emailAddress") or {}
        is_own = bool(item.get("isOrganizer"))
        status = str((item.get("responseStatus") or {}).get("response") or "none")
        answer = _ANSWERS.get(status, "NEEDS-ACTION")
        people = [one for one in item.get("attendees") or [] if (one.get("emailAddress") or {}).get("address")]
        others = tuple(
            Attendee(
                str(one["emailAddress"]["address"]).lower(),
                str(one["emailAddress"].get("name") or ""),
                _ANSWERS.get(str((one.get("status") or {}).get("response")), "NEEDS-ACTION"),
                "OPT-PARTICIPANT" if one.get("type") == "optional" else "",
            )
            for one in people
            if str(one["emailAddress"]["address"]).lower() != self.account
        )
        mine: Any = next((one for one in people if str(one["emailAddress"]["address"]).lower() == self.account), {})
        # Whoever is invited as one of a group does not stand among the attendees.
        is_invited = bool(people) and not is_own
        own = Attendee(self.account, "", answer, "OPT-PARTICIPANT" if mine.get("type") == "optional" else "")
        occurrence = item.get("originalStart") if item.get("type") == "exception" else None
        moment = None if occurrence is None else datetime.fromisoformat(_whole(str(occurrence))).astimezone(UTC)
        return OnlineEvent(
            id=str(item["id"]),
            version=f"{item.get('changeKey', '')}{len(rules)}",
            uid=str(master.get("iCalUId") or item["iCalUId"]),
            start=start,
            end=end,
            stamp=datetime.fromisoformat(_whole(str(item.get("lastModifiedDateTime") or item["createdDateTime"]))),
            occurrence=moment.date() if moment is not None and whole_days else moment,
            organiser=self.account if is_own else str(organiser.get("address", "")).lower(),
            organiser_name=str(organiser.get("name") or ""),
            attendees=(*others, own) if is_invited else others,
            summary=str(item.get("subject") or ""),
            description=str((item.get("body") or {}).get("content") or ""),
            location=str((item.get("location") or {}).get("displayName") or ""),
            rules=rules,
            transparent=item.get("showAs") == "free",
            own=is_own,
            answer=answer if is_invited else "",
            cancelled=bool(item.get("isCancelled")),
        )

    def look_up(self, outgoing: Outgoing) -> Any:
        """Get the event; where the invitation came another way, by its UID (assumed: $filter takes iCalUId)."""
        name = reference(outgoing, "microsoft")
        if name:
            return self._get(name, "")
        asked = {"$filter": f"iCalUId eq '{outgoing.uid.replace(chr(39), chr(39) * 2)}'", "$select": _FIELDS}
        found = self.api.ask("GET", "/me/events", params=asked, headers=_PREFER).get("value", [])
        return found[0] if found else None

    def is_answered(self, item: Any, event: OnlineEvent, outgoing: Outgoing, note: str) -> bool:
        """Whether the event has the answer since it was given here: responseStatus tells when it was returned."""
        told = item.get("responseStatus") or {}
        if event.answer != ("TENTATIVE" if outgoing.answer == "COUNTER" else outgoing.answer):
            return False
        try:
            when = datetime.fromisoformat(_whole(str(told.get("time"))))
        except ValueError:
            return outgoing.answer != "COUNTER"
        return outgoing.made_at is None or when >= outgoing.made_at - _SKEW

    def respond(self, item: Any, event: OnlineEvent, outgoing: Outgoing, note: str) -> None:
        """Accept, decline or accept tentatively; another time is proposed along with the last.

        Documented: these answer 202 without content; proposedNewTime needs sendResponse, and an event that allows it.
        """
        body: dict[str, Any] = {"sendResponse": True, "comment": note}
        if outgoing.answer == "COUNTER":
            proposed = meeting_in(outgoing.text, outgoing.uid, outgoing.recurrence_id)
            if proposed is None:
                raise NotDelivered("The proposed time cannot be read.")
            body["proposedNewTime"] = {"start": _told(proposed.start), "end": _told(proposed.end)}
        self.api.ask("POST", f"/me/events/{quote(event.id, safe='')}/{_ACTIONS[outgoing.answer]}", json=body)

    def whose(self) -> str:
        """Whose calendar it is, as the service says (documented: the calendar's owner)."""
        told = self.api.ask("GET", "/me/calendar", params={"$select": "owner"})
        return str(((told or {}).get("owner") or {}).get("address") or "").strip().lower()[:320]

    def _get(self, name: str, more: str) -> Any:
        try:
            place = f"/me/events/{quote(name, safe='')}"
            return self.api.ask("GET", place, params={"$select": f"{_FIELDS}{more}"}, headers=_PREFER)
        except Gone:
            return None
        except ServerTrouble as error:
            if error.status == 404:
                return None
            raise


def _moment(told: Any, whole_days: bool) -> Moment:
    moment = datetime.fromisoformat(_whole(str(told["dateTime"])))
    if whole_days:
        return moment.date()
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    zone = zone_called(str(told.get("timeZone") or "UTC"))
    if zone is None:
        raise ValueError("the zone is not known")
    return moment.replace(tzinfo=zone).astimezone(UTC)


def _whole(text: str) -> str:
    """Leave out what of a second is beyond the microsecond: Graph writes seven digits."""
    return re.sub(r"(\.\d{6})\d+", r"\1", text)


def _left_out(names: list[Any], start: Moment) -> list[str]:
    """Which occurrences were called off: their ids end with the day (OID.<series>.<day>).

    One that does not is not left out, so that a time is rather taken than free.
    """
    lines = []
    for name in names:
        try:
            day = date.fromisoformat(str(name)[-10:])
        except ValueError:
            continue
        if isinstance(start, datetime):
            moment = datetime.combine(day, start.timetz().replace(tzinfo=None), start.tzinfo)
            lines.append(f"EXDATE:{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}")
        else:
            lines.append(f"EXDATE;VALUE=DATE:{day:%Y%m%d}")
    return lines


def _told(moment: Moment) -> dict[str, str]:
    from zoneinfo import ZoneInfo

    return {"dateTime": f"{in_utc(moment, ZoneInfo('UTC')):%Y-%m-%dT%H:%M:%S}", "timeZone": "UTC"}
