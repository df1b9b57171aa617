"""The automatic answers that their user can still take back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import Select, bindparam, select

from kinfolk_assistant.ledger.requests import latest_reply_id
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Reply, Request

MOST_SHOWN = 20


class Automatic(NamedTuple):
    """A request that the assistant has answered by itself."""

    id: int
    summary: str
    answer: str
    made_at: datetime


def to_undo(ledger: Ledger, user: str, numbers: Sequence[int] | None = None) -> dict[int, Automatic]:
    """Give a user's requests whose automatic answer can be taken back, the latest first; of some, or the latest."""
    query = _query()
    if numbers is not None:
        query = query.where(Request.id.in_(numbers)).limit(len(numbers))
    with ledger.read() as session:
        return {row[0]: Automatic(*row) for row in session.execute(query, {"owner": user})}


@cache  # to put it together takes longer than to run it
def _query() -> Select[int, str, str, datetime]:
    return (
        select(Request.id, Request.summary, Reply.answer, Reply.made_at)
        .join(Reply, Reply.id == latest_reply_id())
        .where(
            Request.user == bindparam("owner"),
            Request.state == "answered",
            Request.label.is_(None),
            Request.source != "history",
            Reply.by == "assistant",
            Reply.state != "withdrawn",
        )
        .order_by(Reply.id.desc())
        .limit(MOST_SHOWN)
    )
