"""Learning anew from everybody's answers: whole models, fitted outside of any transaction and swapped in in one."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import polars as pl
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.features.rules import ALL_FEATURES
from kinfolk_assistant.learning.model import TeamModel
from kinfolk_assistant.learning.rows import CENSORED
from kinfolk_assistant.ledger.own_answers import one_sided_pasts
from kinfolk_assistant.ledger.store import MODELS, Ledger
from kinfolk_assistant.ledger.tables import Asking, Lease, Model, Request, User
from kinfolk_assistant.service.consent import lock_models

HELD_FOR = timedelta(minutes=30)
"""How long a process that learns is believed to be alive."""


class Lesson(NamedTuple):
    """What one model is to learn from: the rows of these users; ``owner`` is None for the shared model."""

    owner: str | None
    users: tuple[str, ...]
    rows: pl.DataFrame


class _Fitted(NamedTuple):
    lesson: Lesson
    model: TeamModel


def retrain(ledger: Ledger, clock: Callable[[], datetime], *, force: bool = False, seed: int = 0) -> bool:
    """Fit all models anew where there is something to learn; whether new ones are in use.

    The shared model learns from those who agreed; everybody else who has answered anything has a model of their own,
    which learns from those and from them. Nothing that the assistant answered by itself is among the labels: a model
    that learnt from its own answers would only grow surer of them.
    """
    holder = uuid.uuid4().hex
    with ledger.begin() as session:
        lease = lock_models(session)
        if _is_held(lease, clock()) or not (force or _is_asked_for(session)):
            return False
        lease.holder, lease.until = holder, clock() + HELD_FOR
    swapped = False
    try:
        with ledger.read() as session:
            asked = list(session.scalars(select(Asking.id)))
            lessons = make_lessons(session)
        fitted = [_Fitted(one, TeamModel.fit(one.rows, seed=seed)) for one in lessons]
        swapped = _swap(ledger, fitted, asked, holder, clock())
    finally:
        with ledger.begin() as session:
            lease = lock_models(session)
            if lease.holder == holder:
                lease.holder, lease.until = "", None
    return swapped


def is_due(session: Session, now: datetime) -> bool:
    """Whether there is something to learn, and nobody who learns it just now."""
    return _is_asked_for(session) and not _is_held(session.get_one(Lease, MODELS), now)


def _is_asked_for(session: Session) -> bool:
    return session.scalars(select(Asking.id).limit(1)).first() is not None


def _is_held(lease: Lease, now: datetime) -> bool:
    return bool(lease.holder) and lease.until is not None and lease.until > now


def make_lessons(session: Session, before: datetime | None = None) -> list[Lesson]:
    """Give what is to be learnt, from one moment's rows; nothing where nobody has answered anything.

    With ``before``, only of what had come by then.
    """
    agreed = set(session.scalars(select(User.address).where(User.agreed_at.is_not(None))))
    query = select(Request.user, Request.features, Request.label, Request.source).where(Request.features.is_not(None))
    query = query if before is None else query.where(Request.received_at < before)
    one_sided = one_sided_pasts(session)
    rows: dict[str, list[dict[str, Any]]] = {}
    for user, features, label, source in session.execute(query.order_by(Request.user, Request.received_at, Request.id)):
        if features:
            known = {name: features.get(name) for name in (*ALL_FEATURES, *NAMES)}
            censored = source == "history" and user in one_sided
            rows.setdefault(user, []).append(known | {"user": user, "answer": label, CENSORED: censored})
    answered = [user for user, own in rows.items() if any(one["answer"] for one in own)]
    helping = tuple(user for user in rows if user in agreed)
    lessons: list[Lesson] = []
    if any(user in agreed for user in answered):
        lessons.append(Lesson(None, helping, _frame(rows, helping)))
    alone = [(*helping, user) for user in answered if user not in agreed]
    return lessons + [Lesson(users[-1], users, _frame(rows, users)) for users in alone]


def _frame(rows: dict[str, list[dict[str, Any]]], users: tuple[str, ...]) -> pl.DataFrame:
    schema: dict[str, pl.DataType] = {name: pl.Enum(values) for name, values in ALL_FEATURES.items()}
    schema |= dict.fromkeys(NAMES, pl.String())
    schema |= {"user": pl.String(), "answer": pl.String(), CENSORED: pl.Boolean()}
    return pl.DataFrame([row for user in users for row in rows[user]], schema=schema)


def _swap(ledger: Ledger, fitted: list[_Fitted], asked: list[int], holder: str, now: datetime) -> bool:
    """Put new models in the place of all old ones; not where somebody withdrew, or was erased, in the meantime."""
    with ledger.begin() as session:
        if lock_models(session).holder != holder:
            return False
        agreed = set(session.scalars(select(User.address).where(User.agreed_at.is_not(None))))
        there = set(session.scalars(select(User.address)))
        for lesson, _ in fitted:
            if not set(lesson.users) <= agreed | ({lesson.owner} & there):
                return False
        session.execute(delete(Model))
        for lesson, model in fitted:
            session.add(
                Model(
                    owner=lesson.owner,
                    made_at=now,
                    n_rows=lesson.rows.height,
                    users=list(lesson.users),
                    archive=model.to_bytes(),
                )
            )
        for first in range(0, len(asked), 500):
            session.execute(delete(Asking).where(Asking.id.in_(asked[first : first + 500])))
    return True
