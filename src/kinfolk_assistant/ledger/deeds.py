"""The lines of the ledger that a user reads."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.tables import Asking, Deed, Request


def tell(
    session: Session, user: str, at: datetime, by: str, kind: str, text: str, request: Request | None = None
) -> None:
    """Write down what was done; kept or lost together with the deed itself, as it is in the same transaction."""
    request_id = None if request is None else request.id
    session.add(Deed(user=user, at=at, by=by, kind=kind, request_id=request_id, text=text))


def read_deeds(session: Session, user: str, before_id: int | None = None, limit: int = 50) -> list[Deed]:
    """Give a user's deeds, the latest first, from before a deed on."""
    query = select(Deed).where(Deed.user == user)
    if before_id is not None:
        query = query.where(Deed.id < before_id)
    return list(session.scalars(query.order_by(Deed.id.desc()).limit(limit)))


def ask_for_training(session: Session, at: datetime, why: str) -> None:
    """Say that there is something to learn (or to unlearn)."""
    session.add(Asking(at=at, why=why))
