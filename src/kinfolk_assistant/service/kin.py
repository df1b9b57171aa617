"""How many must have agreed before what was learnt from them is shown: of a few, it would tell what they answer."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk_assistant.learning.model import TeamModel
from kinfolk_assistant.ledger.tables import User

LEAST = 5


def too_few_kin(session: Session, model: TeamModel | None, viewer: str) -> bool:
    """Whether the model that decides for somebody has learnt from others, but from fewer than five who agreed."""
    others = set(model.users) - {viewer} if model is not None else set()
    if not others:
        return False
    agreed = set(session.scalars(select(User.address).where(User.agreed_at.is_not(None))))
    return len(others & agreed) < LEAST
