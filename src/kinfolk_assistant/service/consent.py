"""Whose history helps whom: agreeing, withdrawing, and being erased."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import Text, cast, delete, select
from sqlalchemy.orm import Session, defer

from kinfolk_assistant.ledger.deeds import ask_for_training, tell
from kinfolk_assistant.ledger.store import MODELS
from kinfolk_assistant.ledger.tables import Decision, Lease, Model, User
from kinfolk_assistant.ledger.users import lock_user


def lock_models(session: Session) -> Lease:
    """Make sure that nobody else makes or deletes models until the transaction ends."""
    query = select(Lease).where(Lease.name == MODELS).with_for_update()
    return session.scalars(query.execution_options(populate_existing=True)).one()


def agree(session: Session, address: str, now: datetime) -> None:
    """Let a user's history help others from now on."""
    user = lock_user(session, address)
    if user.agreed_at is None:
        user.agreed_at = now
        ask_for_training(session, now, "agreed")
        tell(session, user.address, now, "user", "agreed", "You agreed that your history helps others.")


def withdraw(session: Session, address: str, now: datetime) -> None:
    """Let a user's history help others no longer, from this very transaction on.

    No model that has learnt from it decides for anybody else any more: until the next one is fitted, others are asked.
    The shared model becomes the user's own, which is just what it would be had it been fitted for them.
    """
    lock_models(session)
    user = lock_user(session, address)
    if user.agreed_at is None:
        return
    user.agreed_at = None
    keep = session.scalars(
        select(Model.id).where(Model.owner.is_(None)).order_by(Model.id.desc()).limit(1)
    ).one_or_none()
    for model in _containing(session, user.address):
        if model.id == keep:
            session.execute(delete(Model).where(Model.owner == user.address))
            model.owner = user.address
        elif model.owner != user.address:
            session.delete(model)
    ask_for_training(session, now, "withdrew")
    tell(session, user.address, now, "user", "withdrew", "You withdrew: your history helps others no longer.")


def erase(session: Session, address: str, now: datetime) -> None:
    """Delete a user with everything that is theirs, every model that has learnt from them, and their name elsewhere."""
    lock_models(session)
    user = lock_user(session, address)
    for model in _containing(session, user.address):
        session.delete(model)
    written = json.dumps(user.address)[1:-1]
    for decision in session.scalars(
        select(Decision).where(cast(Decision.kin, Text).contains(written, autoescape=True))
    ):
        decision.kin = [one for one in decision.kin if one.get("user") != user.address]
    ask_for_training(session, now, "erased")
    session.flush()
    # The database deletes what hangs on the user, and what hangs on that.
    session.execute(delete(User).where(User.address == user.address))


def _containing(session: Session, user: str) -> list[Model]:
    """Give the models that have learnt from a user's rows, or are theirs; their archives are not loaded."""
    models = session.scalars(select(Model).options(defer(Model.archive)))
    return [model for model in models if user in model.users or model.owner == user]
