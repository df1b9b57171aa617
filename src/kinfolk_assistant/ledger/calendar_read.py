"""When a user's calendar was last read, and whether what is known of it can be relied on."""

from __future__ import annotations

from datetime import datetime, timedelta

from kinfolk_assistant.ledger.tables import User

DESCRIBES_FOR = timedelta(days=1)
"""A calendar that was last read longer than this before a request came says nothing about it."""

DECIDES_FOR = timedelta(minutes=30)
"""Nothing is answered automatically by a calendar that was last read longer ago than this."""

NEVER_READ = "your calendar has not been read, so it is not known what stands in it"
STALE = "your calendar could not be read in the day before it came"

_OFTEN_ENOUGH = timedelta(minutes=5)


def mark_read(user: User, now: datetime) -> bool:
    """Note that a user's calendar was read; whether nothing could be said by it before."""
    before = user.calendar_read_at
    if before is None or now - before > _OFTEN_ENOUGH:
        user.calendar_read_at = now
    return before is None or now - before > DESCRIBES_FOR


def cannot_describe(user: User, when: datetime) -> str:
    """Why the calendar says nothing about a request that came at a moment; "" where it does."""
    if user.calendar_read_at is None:
        return NEVER_READ
    return STALE if user.calendar_read_at < when - DESCRIBES_FOR else ""


def cannot_decide(user: User, now: datetime) -> str:
    """Why nothing may be answered by the calendar as it is known now; "" where something may."""
    if user.calendar_read_at is None:
        return NEVER_READ
    minutes = (now - user.calendar_read_at) // timedelta(minutes=1)
    if now - user.calendar_read_at <= DECIDES_FOR:
        return ""
    ago = (
        f"{minutes} minutes"
        if minutes < 120
        else f"{minutes // 60} hours"
        if minutes < 2880
        else (f"{minutes // 1440} days")
    )
    return f"your calendar was last read {ago} ago"
