"""What pages and commands read: the inbox, one request, the record of how often the assistant was right."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Row, Select, and_, bindparam, func, or_, select
from sqlalchemy.orm import Session, aliased

from kinfolk_assistant.learning.costs import Costs
from kinfolk_assistant.ledger.requests import (
    LEFT,
    MOST_ATTEMPTS,
    latest_decision_id,
    latest_reply_id,
    own_request,
    replies,
)
from kinfolk_assistant.ledger.tables import Decision, Deed, Moment, Reply, Request
from kinfolk_assistant.service.models import Models
from kinfolk_assistant.service.values import (
    ENOUGH_TO_JUDGE,
    Answered,
    Detail,
    Prepared,
    Preview,
    Readiness,
    Score,
    Tally,
)
from kinfolk_assistant.service.weighing import weigh

_ON_THE_WAY = ("prepared", "sending", "failed", "uncertain")
_LABELS = {"ACCEPTED": "accept", "DECLINED": "decline"}
_RECENT = 200
_MOST_DEEDS = 200
_MOST_WORDS = 8
MOST_FOUND = 100
"""So many requests a search gives."""


def inbox(session: Session, user: str, now: datetime) -> list[Prepared]:
    """Give the requests that wait for an answer, and those whose answer is on its way, by when the meetings are.

    What waits and is over leaves by itself; a series stays.
    """
    shown = [_prepare(row) for row in session.execute(_inbox_query(), {"owner": user, "now": now})]
    return [one for one in shown if one.state == "open" or one.reply_state in _ON_THE_WAY]


def search(session: Session, user: str, words: str) -> list[Prepared]:
    """Give a user's requests, of the imported past too, whose title, organiser or place has all of some words."""
    query = _prepared().where(Request.user == user)
    for word in words.split()[:_MOST_WORDS]:
        fields = (Request.summary, Request.organiser, Request.organiser_name, Request.location)
        query = query.where(or_(*(field.icontains(word, autoescape=True) for field in fields)))
    query = query.order_by(Request.starts_at.desc(), Request.id.desc()).limit(MOST_FOUND)
    return [_prepare(row) for row in session.execute(query)]


def readiness(session: Session, user: str) -> Readiness:
    """Say of the latest answers by hand how often what had been prepared was the same.

    The decision that counts is the first: it was made before the answer was known.
    """
    first = select(func.min(Decision.id)).where(Decision.request_id == Request.id).correlate(Request).scalar_subquery()
    query = (
        select(Decision.action, Request.label)
        .join(Request, Decision.id == first)
        .where(Request.user == user, Request.label.is_not(None), Decision.action != "ask")
        .order_by(Decision.id.desc())
        .limit(ENOUGH_TO_JUDGE)
    )
    both = [(row[0], row[1]) for row in session.execute(query)]
    return Readiness(len(both), sum(action == label for action, label in both))


def detail(session: Session, user: str, request_id: int) -> Detail:
    """Give one request with everything that is known of it."""
    request = own_request(session, user, request_id)
    shown = _prepare(session.execute(_prepared().where(Request.id == request.id)).one())
    last = session.scalars(
        select(Decision).where(Decision.request_id == request.id).order_by(Decision.id.desc()).limit(1)
    ).one_or_none()
    given = replies(session, request.id)
    left = [one for one in given if one.state in LEFT]
    deeds = session.scalars(
        select(Deed).where(Deed.request_id == request.id).order_by(Deed.id.desc()).limit(_MOST_DEEDS)
    )
    return Detail(
        *shown,
        label=request.label,
        shadow=last is None or last.shadow,
        why="" if last is None else last.why,
        at_organiser=_LABELS.get(left[-1].answer, "") if left and request.state == "open" else "",
        rule="" if last is None else last.rule,
        features=request.features or {},
        unknown=request.unknown or {},
        reasons=[] if last is None else last.reasons,
        kin=[] if last is None else last.kin,
        expected_losses={} if last is None else last.expected_losses,
        replies=[
            Answered(
                one.id,
                one.by,
                one.answer,
                one.state,
                one.made_at,
                one.due_at,
                one.sent_at,
                one.error,
                one.state == "failed" and one.attempts < MOST_ATTEMPTS,
            )
            for one in given
        ],
        deeds=list(deeds),
    )


def preview(session: Session, user: str, costs: Costs, models: Models) -> Preview:
    """Say what costs would do with the user's recent requests.

    The probability is the one that was given before the user answered; a request of the imported past has none, so the
    model in use is asked, which may remember the answer.
    """
    query = (
        select(Request.features, Request.label, Decision.probability)
        .outerjoin(Decision, Decision.id == latest_decision_id())
        .where(Request.user == user, Request.features.is_not(None))
        .order_by(Request.received_at.desc(), Request.id.desc())
        .limit(_RECENT)
    )
    model = models.of(session, user).model
    labels: list[str | None] = []
    probabilities: list[float | None] = []
    remembered = 0
    for features, label, probability in session.execute(query):
        if probability is None and model is not None:
            probability = model.probability(features, user)
            remembered += probability is not None
        labels.append(label)
        probabilities.append(probability)
    counts = {"accept": 0, "decline": 0, "ask": 0}
    answered = right = 0
    for label, weighed in zip(labels, weigh(probabilities, costs), strict=True):
        action = weighed.action
        counts[action] += 1
        if label is not None and action != "ask":
            answered += 1
            right += label == action
    return Preview(
        sum(counts.values()), counts["accept"], counts["decline"], counts["ask"], answered, right, remembered
    )


def score(session: Session, user: str) -> Score:
    """Say how often decisions were what the user then did by hand; the imported past was never decided about."""
    query = (
        select(Decision.action, Request.label, func.count())
        .join(Request, Decision.id == latest_decision_id())
        .where(Request.user == user, Request.label.is_not(None))
        .group_by(Decision.action, Request.label)
    )
    counts = {(action, label): n for action, label, n in session.execute(query)}
    tallies = {
        action: Tally(sum(n for (chosen, _), n in counts.items() if chosen == action), counts.get((action, action), 0))
        for action in ("accept", "decline")
    }
    automatic = session.scalars(
        select(func.count()).select_from(Reply).join(Request).where(Request.user == user, Reply.by == "assistant")
    ).one()
    undone = session.scalars(
        select(func.count(Deed.request_id.distinct())).where(Deed.user == user, Deed.kind == "undone")
    ).one()
    asked = sum(n for (action, _), n in counts.items() if action == "ask")
    return Score(tallies["accept"], tallies["decline"], asked, automatic, undone)


@cache  # to put it together takes longer than to run it
def _inbox_query() -> Select[*tuple[Any, ...]]:
    # Replies on their way are few among all users; the last reply of every request ever answered is not looked up.
    moving = aliased(Reply)
    replied = select(moving.request_id).where(moving.state.in_(_ON_THE_WAY))
    answered = and_(Request.state == "answered", Request.id.in_(replied))
    ahead = or_(Request.ends_at > bindparam("now", type_=Moment), Request.recurs.is_not(False))
    waiting = and_(Request.state == "open", ahead)
    query = _prepared().where(Request.user == bindparam("owner"), or_(waiting, answered))
    return query.order_by(Request.starts_at, Request.received_at, Request.id)


def _prepared() -> Select[*tuple[Any, ...]]:
    """Everything the inbox shows in one query, without the texts."""
    return (
        select(
            Request.id,
            Request.summary,
            Request.organiser,
            Request.organiser_name,
            Request.starts_at,
            Request.ends_at,
            Request.all_day,
            Request.location,
            Request.received_at,
            Decision.action,
            Decision.probability,
            Request.state,
            Reply.state,
            Request.features["conflict"].as_string(),
            Request.snoozed_until,
        )
        .outerjoin(Decision, Decision.id == latest_decision_id())
        .outerjoin(Reply, Reply.id == latest_reply_id())
    )


def _prepare(row: Row[*tuple[Any, ...]]) -> Prepared:
    shown = Prepared._make(row)
    conflict = row[Prepared._fields.index("conflict")] == "yes"
    return shown._replace(action=shown.action or "", reply_state=shown.reply_state or "", conflict=conflict)
