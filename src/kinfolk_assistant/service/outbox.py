"""Replies on their way: each leaves once.

A reply is marked "sending", and that is kept, before it is handed to its deliverer. Whoever finds one marked so that
nobody is sending any more knows that a process died in between: it is delivered again where that does no harm, and
put before the user where it might be the second time.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session, aliased

from kinfolk_assistant.delivery.deliverer import Deliverer, NotDelivered, Outgoing, PerhapsDelivered, may_repeat
from kinfolk_assistant.ledger.calendar_read import cannot_decide
from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.requests import CALLED, MOST_ATTEMPTS, latest_decision, own_reply, replies
from kinfolk_assistant.ledger.tables import Reply, Request, User
from kinfolk_assistant.ledger.users import lock_user
from kinfolk_assistant.reading.aliases import renamed
from kinfolk_assistant.service.deciding import put_before
from kinfolk_assistant.service.errors import NotNow
from kinfolk_assistant.service.operating import halted
from kinfolk_assistant.service.today import overlap_veto
from kinfolk_assistant.service.withdrawing import withdraw_unsent

HELD_FOR = timedelta(minutes=5)
"""How long a process that sends is believed to be alive; deliverers give up long before."""

WAITS_FOR = timedelta(hours=12)
"""So long an automatic yes waits for a calendar that cannot be read; then its user is asked instead."""

_FIRST_DELAY, _LONGEST_DELAY = timedelta(seconds=30), timedelta(hours=2)

_log = logging.getLogger(__name__)


class Claimed(NamedTuple):
    """A reply that this process, and no other, is about to deliver."""

    outgoing: Outgoing
    attempt: int


def users_with_due(session: Session, now: datetime) -> list[str]:
    """Give the users who have replies to send."""
    query = (
        select(Request.user)
        .join(Reply, Reply.request_id == Request.id)
        .where(_due(now))
        .distinct()
        .order_by(Request.user)
    )
    return list(session.scalars(query))


def claim(session: Session, address: str, deliverer: Deliverer, now: datetime) -> Claimed | None:
    """Mark the user's first reply that is due as being sent; None where there is none.

    That its meeting is not cancelled is looked up in this very transaction, with the user locked: a CANCEL is either
    seen here, or comes after the answer has left.
    """
    user = lock_user(session, address)
    earlier = aliased(Reply)
    waits = exists().where(
        earlier.request_id == Reply.request_id,
        earlier.id < Reply.id,
        earlier.state == "sending",
    )
    query = select(Reply, Request).join(Request).where(Request.user == user.address, _due(now), ~waits)
    for reply, request in session.execute(query.order_by(Reply.id)).all():
        outgoing = _outgoing(reply, request)
        if reply.state == "sending" and not may_repeat(deliverer, outgoing):
            _uncertain(session, reply, request, now, "the assistant was stopped while sending it")
            continue
        if reply.state != "sending" and request.state in ("cancelled", "superseded"):
            reply.state = "withdrawn"
            continue
        if reply.by == "assistant" and reply.state != "sending" and request.label is None:
            wrong = _no_longer_right(session, user, reply, request, now)
            if wrong:
                withdraw_unsent(session, request, now, wrong)
                request.state = "open"
                put_before(session, request, wrong, now)
            if wrong is None or wrong:
                continue
        reply.state, reply.held_until = "sending", now + HELD_FOR
        reply.attempts += 1
        return Claimed(outgoing, reply.attempts)
    return None


def _no_longer_right(session: Session, user: User, reply: Reply, request: Request, now: datetime) -> str | None:
    """Why an automatic answer must not leave any more; "" where it may, None where it has to wait for the calendar."""
    if halt := halted(session, user):
        return halt
    if not user.automation:
        return "you have turned automation off"
    if reply.answer != "ACCEPTED":
        return ""
    unread = cannot_decide(user, now)
    if unread:
        is_late = now > min(reply.due_at + WAITS_FOR, request.starts_at)
        return f"{unread}, and it could not wait any longer" if is_late else None
    last = latest_decision(session, request.id)
    if last is not None and last.rule and "overlap" in last.rule:
        return ""
    return overlap_veto(session, user, request, now)


def deliver(claimed: Claimed, deliverer: Deliverer) -> Exception | None:
    """Hand a reply to its deliverer, outside of any transaction; what went wrong, or None."""
    try:
        deliverer.deliver(claimed.outgoing)
    except NotDelivered as error:
        return error
    except Exception as error:
        _log.exception("The deliverer failed on reply %s", claimed.outgoing.reply_id)
        # A deliverer that breaks says nothing of whether the answer has left.
        return error if may_repeat(deliverer, claimed.outgoing) else PerhapsDelivered(_sentence(error))
    return None


def settle(session: Session, address: str, claimed: Claimed, error: Exception | None, now: datetime) -> None:
    """Write down how a delivery ended."""
    lock_user(session, address)
    reply, request = own_reply(session, address, claimed.outgoing.reply_id)
    if reply.attempts != claimed.attempt or reply.state not in ("sending", "uncertain"):
        return
    reply.held_until = None
    if error is None:
        reply.state, reply.sent_at, reply.error = "sent", now, ""
        told = f"The {CALLED[reply.answer]} to “{request.summary}” was sent."
        tell(session, request.user, now, reply.by, "sent", told, request)
    elif isinstance(error, PerhapsDelivered):
        _uncertain(session, reply, request, now, _sentence(error))
    elif any(one.id > reply.id for one in replies(session, request.id)) or request.state not in ("open", "answered"):
        reply.state, reply.error = "withdrawn", _sentence(error)
    else:
        delay = min(_FIRST_DELAY * 2 ** min(reply.attempts - 1, 20), _LONGEST_DELAY)
        reply.state, reply.due_at, reply.error = "failed", now + delay, _sentence(error)
        text = f"The {CALLED[reply.answer]} to “{request.summary}” could not be sent: {reply.error}"
        tell(session, request.user, now, "assistant", "failed", text, request)


def send_again(session: Session, address: str, reply_id: int, now: datetime) -> None:
    """Have a reply sent of which it is not known whether it was, or that failed too often: the user says so."""
    lock_user(session, address)
    reply, request = own_reply(session, address, reply_id)
    if reply.state not in ("uncertain", "failed"):
        raise NotNow(f"The answer is {reply.state}; only one that failed, or may have, can be sent again.")
    if request.state != "answered" or any(one.id > reply.id for one in replies(session, request.id)):
        raise NotNow("This answer is no longer the one to be given; answer the request instead.")
    reply.state, reply.due_at, reply.attempts, reply.held_until = "prepared", now, 0, None
    tell(
        session,
        request.user,
        now,
        "user",
        "sent again",
        f"The {CALLED[reply.answer]} to “{request.summary}” is sent again.",
        request,
    )


def _due(now: datetime) -> ColumnElement[bool]:
    waiting = and_(Reply.state.in_(["prepared", "failed"]), Reply.due_at <= now, Reply.attempts < MOST_ATTEMPTS)
    return or_(waiting, and_(Reply.state == "sending", Reply.held_until <= now))


def _outgoing(reply: Reply, request: Request) -> Outgoing:
    texts = [reply.text, request.text]
    if request.sent_to:
        texts = [renamed(text, request.user, request.sent_to) for text in texts]
    return Outgoing(
        reply_id=reply.id,
        user=request.user,
        organiser=request.organiser,
        uid=request.uid,
        recurrence_id=request.recurrence_id,
        answer=reply.answer,
        text=texts[0],
        request_text=texts[1],
        source_ref=request.source_ref,
        message_id=f"<reply-{reply.id}-{reply.made_at:%Y%m%d%H%M%S%f}@{request.user.rpartition('@')[2]}>",
        sent_to=request.sent_to,
        made_at=reply.made_at,
    )


def _uncertain(session: Session, reply: Reply, request: Request, now: datetime, why: str) -> None:
    reply.state, reply.held_until, reply.error = "uncertain", None, why
    text = f"Whether the {CALLED[reply.answer]} to “{request.summary}” was sent is not known: {why}."
    tell(session, request.user, now, "assistant", "uncertain", text, request)


def _sentence(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:500]
