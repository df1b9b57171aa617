"""The calendar as it is now, which is looked at before any automatic yes.

Features tell how the calendar stood when a request came, which is what answers are learnt from. Between then and now a
dentist may have been entered.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from kinfolk_assistant.features.row import Owner, coming_spans
from kinfolk_assistant.ledger.tables import Request, User
from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.service.rules import Ruled
from kinfolk_assistant.service.standing import meeting_of, past_of

_MOST_NAMED = 80


def owner_of(user: User) -> Owner:
    """Give a user as the features know them."""
    places = tuple(line.strip() for line in user.places.splitlines() if line.strip())
    return Owner(user.address, known_zone(user.zone), places)


def overlap_veto(session: Session, user: User, request: Request, now: datetime, ruled: Ruled | None = None) -> str:
    """Say what keeps a yes back by the calendar as it is now; "" where nothing does.

    Where the user wants no question about overlaps, or a rule of theirs names them, only what was entered after the
    request came counts: of that the rule, and what was learnt, know nothing.
    """
    wanted = "overlap" in user.vetoes.split() and not (ruled is not None and ruled.names("conflict"))
    knew = (request.features or {}).get("conflict") == "yes"
    return taken_now(session, user, request, now) if wanted or not knew else ""


def taken_now(session: Session, user: User, request: Request, now: datetime) -> str:
    """Say what stands at the time of a request by the calendar as it is now; "" where nothing does."""
    meeting = meeting_of(request)
    if meeting is None:
        return "it cannot be read any more"
    spans = coming_spans(meeting, owner_of(user), now)
    standing = past_of(session, user, request, until=max(end for _, end in spans)).at(now)
    for start, end in spans:
        found = standing.between(start, end, without=meeting).all()
        if found:
            name = found[0].meeting.summary.strip()[:_MOST_NAMED]
            return f"it overlaps “{name}” in your calendar" if name else "it overlaps another engagement"
    return ""
