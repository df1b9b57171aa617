"""Requests in the ledger: a user's own one, its versions, its latest decision and its latest reply."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ScalarSelect, func, select
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.tables import Decision, Reply, Request
from kinfolk_assistant.ledger.users import NotYours

UNSENT = ("prepared", "failed")
"""The states of a reply that certainly has not left."""

MOST_ATTEMPTS = 10
"""After so many failures only the user may have a reply tried again."""

LEFT = ("sending", "sent", "uncertain")
"""The states of a reply that has left, or may have."""


CALLED = {"ACCEPTED": "yes", "DECLINED": "no", "TENTATIVE": "perhaps", "COUNTER": "proposal"}
"""What answers are called where people read of them."""


def own_request(session: Session, user: str, request_id: int) -> Request:
    """Give a user's own request.

    Raises
    ------
    NotYours
        If there is none of that number, or it is another's: the two look the same.
    """
    query = select(Request).where(Request.id == request_id, Request.user == user.lower())
    request = session.scalars(query).one_or_none()
    if request is None:
        raise NotYours(f"There is no request {request_id}.")
    return request


def own_reply(session: Session, user: str, reply_id: int) -> tuple[Reply, Request]:
    """Give a reply to a user's own request, and that request.

    Raises
    ------
    NotYours
        If there is none of that number, or it is another's.
    """
    query = select(Reply, Request).join(Request).where(Reply.id == reply_id, Request.user == user.lower())
    found = session.execute(query).one_or_none()
    if found is None:
        raise NotYours(f"There is no reply {reply_id}.")
    return found[0], found[1]


def versions(session: Session, user: str, uid: str, recurrence_id: str | None = None) -> list[Request]:
    """Give all versions of a meeting that came to a user, the first first; of all its occurrences where None."""
    query = select(Request).where(Request.user == user, Request.uid == uid)
    if recurrence_id is not None:
        query = query.where(Request.recurrence_id == recurrence_id)
    return list(session.scalars(query.order_by(Request.sequence, Request.id)))


def latest_decision_id() -> ScalarSelect[Any]:
    """Give the number of a request's latest decision, for use within a query of requests."""
    return select(func.max(Decision.id)).where(Decision.request_id == Request.id).correlate(Request).scalar_subquery()


def latest_reply_id() -> ScalarSelect[Any]:
    """Give the number of a request's latest reply, for use within a query of requests."""
    return select(func.max(Reply.id)).where(Reply.request_id == Request.id).correlate(Request).scalar_subquery()


def latest_decision(session: Session, request_id: int) -> Decision | None:
    """Give the decision that counts; None before the first."""
    query = select(Decision).where(Decision.request_id == request_id).order_by(Decision.id.desc()).limit(1)
    return session.scalars(query).one_or_none()


def replies(session: Session, request_id: int) -> list[Reply]:
    """Give all replies to a request, the first first."""
    return list(session.scalars(select(Reply).where(Reply.request_id == request_id).order_by(Reply.id)))


def next_undecided(session: Session, user: str) -> Request | None:
    """Give the open request that came first of those about which nothing is decided."""
    query = select(Request).where(Request.user == user, Request.state == "open", Request.decided.is_(False))
    return session.scalars(query.order_by(Request.received_at, Request.id).limit(1)).one_or_none()


def users_with_undecided(session: Session) -> list[str]:
    """Give the users who have requests about which nothing is decided."""
    query = select(Request.user).where(Request.state == "open", Request.decided.is_(False))
    return list(session.scalars(query.distinct().order_by(Request.user)))
