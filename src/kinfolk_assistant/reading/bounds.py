"""How much of a stranger's calendar is read: whoever invites may send anything, and reading it must stay quick."""

from __future__ import annotations

from typing import NamedTuple

MAX_BYTES = 10 * 2**20
MAX_ATTENDEES = 20_000
"""Attendees of a meeting that are kept; those beyond are not looked at."""
MAX_DEPTH = 8
FIRST_YEAR, LAST_YEAR = 1900, 2199
FIRST_YEAR_OF_SERIES = 1970


class Refused(ValueError):
    """A calendar or mail that is not read; one sentence says why."""


class Bounds(NamedTuple):
    """What a calendar may cost.

    Attributes
    ----------
    size
        Bytes, looked at before anything else.
    work
        Content lines, or what takes as long: see ``Reader``. Some 20,000 are read in a second.
    objects
        UIDs.
    """

    size: int = MAX_BYTES
    work: int = 16_000
    objects: int = 10


INVITATION = Bounds()
"""For what others send: an iTIP message is about one UID (RFC 5546 3.2), and even 10,000 attendees fit."""

WHOLE_CALENDAR = Bounds(size=40 * 2**20, work=500_000, objects=50_000)
"""For a calendar that its owner hands over; it may take half a minute."""
