"""Time zones that a calendar describes itself (VTIMEZONE, RFC 5545 3.6.5), made as quick as the known ones.

dateutil, which icalendar uses for them, walks through all changes of the clocks since 1601 at every question.
"""

from __future__ import annotations

import io
import struct
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from icalendar import Component, Timezone
from icalendar.timezone.zoneinfo import ZONEINFO

from kinfolk_assistant.reading.bounds import LAST_YEAR, Refused
from kinfolk_assistant.reading.rules import check_zone_rule

_MAX_OBSERVANCES, _MAX_RULED = 20, 4
_LAST = datetime(LAST_YEAR + 1, 12, 31, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1)
_ABBREVIATION = b"local\0"
_MAX_MADE = 100
_made: dict[bytes, ZoneInfo] = {}


class Zones(ZONEINFO):
    """icalendar's provider of time zones, which makes those that are described from all their changes at once."""

    def fix_rrule_until(self, rrule: Any, ical_rrule: Any) -> None:
        """Let a rule end with the last year that is read."""
        if rrule._until is None or rrule._until > _LAST:
            rrule._until = _LAST

    def create_timezone(self, tz: Timezone) -> tzinfo:  # type: ignore[override]
        """Make a time zone of a VTIMEZONE; the same words always mean the same one, whatever file they are in."""
        text = bytes(tz.to_ical())
        if text not in _made:
            times, kinds = tz.get_transitions()
            seconds = [round((moment - _EPOCH).total_seconds()) for moment in times]
            offsets = [(round(offset.total_seconds()), bool(dst)) for offset, dst, _ in kinds]
            if len(_made) >= _MAX_MADE:
                _made.clear()
            _made[text] = ZoneInfo.from_file(io.BytesIO(_compiled(seconds, offsets)), key=str(tz["TZID"]))
        return _made[text]


def is_affordable(zone: Component) -> bool:
    """Whether a VTIMEZONE has few parts, each a single change or a yearly one."""
    observances = zone.walk()[1:]
    ruled = [one for one in observances if "RRULE" in one]
    if len(observances) > _MAX_OBSERVANCES or len(ruled) > _MAX_RULED:
        return False
    try:
        for one in ruled:
            check_zone_rule(one["RRULE"], one.get("DTSTART"), "a time zone")
    except Refused:
        return False
    return True


def _compiled(seconds: list[int], offsets: list[tuple[int, bool]]) -> bytes:
    """Write changes of the clocks as a TZif file (RFC 9636): the empty part of version 1, then version 2."""
    kinds = sorted(set(offsets))
    counts = struct.pack(">6l", 0, 0, 0, len(seconds), len(kinds), len(_ABBREVIATION))
    changes = struct.pack(f">{len(seconds)}q{len(seconds)}B", *seconds, *map(kinds.index, offsets))
    described = b"".join(struct.pack(">lBB", offset, dst, 0) for offset, dst in kinds)
    head = b"TZif2" + bytes(15)
    return (
        head
        + struct.pack(">6l", 0, 0, 0, 0, 1, 1)
        + bytes(7)
        + head
        + counts
        + changes
        + described
        + _ABBREVIATION
        + b"\n\n"
    )
