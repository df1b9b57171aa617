"""Replies taken back before they have left."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.requests import CALLED, UNSENT, replies
from kinfolk_assistant.ledger.tables import Request


def withdraw_unsent(session: Session, request: Request, now: datetime, why: str) -> bool:
    """Withdraw what is prepared for a request and has not left; whether there was anything."""
    unsent = [one for one in replies(session, request.id) if one.state in UNSENT]
    for reply in unsent:
        reply.state = "withdrawn"
        text = f"The {CALLED[reply.answer]} to “{request.summary}” was not sent: {why}."
        tell(session, request.user, now, "assistant", "withdrawn", text, request)
    return bool(unsent)
