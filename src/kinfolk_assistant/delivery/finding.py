"""Which meeting of a calendar object an answer is about."""

from __future__ import annotations

from kinfolk_assistant.meeting import Meeting
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR
from kinfolk_assistant.reading.calendars import read_calendar


def meeting_in(text: str, uid: str, recurrence_id: str) -> Meeting | None:
    """Give the occurrence, or the series where the occurrence has no event of its own; None where there is neither.

    Raises
    ------
    Refused
        Where the text is no calendar object.
    """
    objects = read_calendar(text.encode(errors="replace"), "the meeting", bounds=WHOLE_CALENDAR)
    found = [meeting for one in objects for meeting in one.meetings if meeting.uid == uid]
    own = [meeting for meeting in found if meeting.recurrence_id == recurrence_id]
    return next(iter(own or found), None)
