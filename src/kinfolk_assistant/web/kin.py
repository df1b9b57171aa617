"""How many must have agreed before what was learnt from them is shown: of a few, it would tell what they answer."""

from __future__ import annotations

from sqlalchemy import select

from kinfolk_assistant.ledger.tables import User
from kinfolk_assistant.service.assistant import Assistant

LEAST = 5


def too_few_kin(assistant: Assistant, viewer: str) -> bool:
    """Whether the model that decides for somebody has learnt from others, but from fewer than five who agreed."""
    model = assistant.model(viewer)
    others = set(model.users) - {viewer} if model is not None else set()
    if not others:
        return False
    with assistant.ledger.read() as session:
        agreed = set(session.scalars(select(User.address).where(User.agreed_at.is_not(None))))
    return len(others & agreed) < LEAST
