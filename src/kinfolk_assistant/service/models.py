"""The models in use: a user's private one, else the shared one; each is loaded from the ledger once."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk_assistant.learning.model import TeamModel
from kinfolk_assistant.ledger.tables import Model

_MOST_LOADED = 32


class InUse(NamedTuple):
    """A model and its number in the ledger; None and None where there is none."""

    id: int | None
    model: TeamModel | None


class Models:
    """The models that were used last, kept in memory.

    Which one is in use is asked of the ledger every time: one that another process has deleted, because somebody
    withdrew, is never used again.
    """

    def __init__(self) -> None:
        self._loaded: OrderedDict[int, TeamModel] = OrderedDict()
        self._lock = Lock()

    def of(self, session: Session, user: str) -> InUse:
        """Give the model that decides for a user."""
        model_id = model_id_of(session, user)
        if model_id is None:
            return InUse(None, None)
        with self._lock:
            if model_id in self._loaded:
                self._loaded.move_to_end(model_id)
                return InUse(model_id, self._loaded[model_id])
        archive = session.scalars(select(Model.archive).where(Model.id == model_id)).one()
        model = TeamModel.from_bytes(archive)
        with self._lock:
            self._loaded[model_id] = model
            while len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)
        return InUse(model_id, model)


def model_id_of(session: Session, user: str) -> int | None:
    """Give the number of the model that decides for a user: the private one before the shared one."""
    query = select(Model.id).where((Model.owner == user) | Model.owner.is_(None))
    return session.scalars(query.order_by(Model.owner.is_(None), Model.id.desc()).limit(1)).one_or_none()


def model_ids(session: Session) -> list[int]:
    """Give the numbers of all models in use: they change whenever one is swapped in or taken out of use."""
    return list(session.scalars(select(Model.id).order_by(Model.id)))
