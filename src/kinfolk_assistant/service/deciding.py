"""Deciding about a request, and preparing the answer where the user has said that it may be given.

In the papers: Roy (2006), section 3.1.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk_assistant.features.people import People
from kinfolk_assistant.features.row import FeatureRow, feature_row, without_calendar
from kinfolk_assistant.learning.judging import Judgement, judge
from kinfolk_assistant.ledger.calendar_read import NEVER_READ, STALE, cannot_decide, cannot_describe
from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.own_answers import own_answers
from kinfolk_assistant.ledger.requests import (
    latest_decision_id,
    next_undecided,
)
from kinfolk_assistant.ledger.tables import Contact, Decision, Reply, Request, User
from kinfolk_assistant.ledger.users import find_user, lock_user
from kinfolk_assistant.reading.reply import make_reply
from kinfolk_assistant.reading.trust import Trust
from kinfolk_assistant.service.models import InUse, Models, model_id_of
from kinfolk_assistant.service.operating import halted, in_shadow
from kinfolk_assistant.service.rules import Ruled, decide_by, facts_of, rules_of, vetoed
from kinfolk_assistant.service.standing import meeting_of, past_of
from kinfolk_assistant.service.strangers import forged, is_stranger, over_cap
from kinfolk_assistant.service.today import overlap_veto, owner_of
from kinfolk_assistant.service.weighing import costs_of

ANSWERS = {"accept": "ACCEPTED", "decline": "DECLINED"}
"""What an action is called in iCalendar (RFC 5545 3.2.12)."""

_BATCH = 100


def people_of(session: Session, user: str) -> People:
    """Give a user's table of people and topics."""
    return People.from_contacts(list(session.scalars(select(Contact).where(Contact.user == user))))


def decide_next(session: Session, address: str, models: Models, now: datetime, trust: Trust) -> bool:
    """Decide about the user's request that came first of those that are undecided; whether there was one.

    All in the transaction of the session, with the user locked: the features see every meeting accepted before, and
    the decision and the answer that it prepares are kept together or not at all.
    """
    user = lock_user(session, address)
    request = next_undecided(session, user.address)
    if request is None:
        return False
    if request.features is None:
        try:
            row = describe(session, user, request)
        except ValueError as error:
            put_before(session, request, str(error), now)
            return True
        request.features, request.unknown = dict(row.values), dict(row.unknown)
    using = models.of(session, user.address)
    judgement, ruled = _judged(session, user, request, using)
    held_back = (
        "" if judgement.action == "ask" else _held_back(session, user, request, judgement.action, ruled, trust, now)
    )
    shadow = bool(held_back)
    record(session, request, judgement, using, now, shadow=shadow, why=held_back, ruled=ruled)
    by = f" by your rule {ruled.words}" if ruled else ""
    if judgement.action == "ask":
        text = f"“{request.summary}” is put before you{by}."
    else:
        but = f", but {held_back}" if held_back and user.automation else ""
        text = f"Would {judgement.action} “{request.summary}”{by}{but}."
    tell(session, user.address, now, "assistant", "decided", text, request)
    if not shadow and judgement.action != "ask":
        _answer_automatically(session, user, request, judgement.action, now)
    return True


def _judged(session: Session, user: User, request: Request, using: InUse) -> tuple[Judgement, Ruled | None]:
    """Judge a request by what was learnt, and then by the user's own rules, which have the last word."""
    judgement = judge(using.model, request.features or {}, user.address, costs_of(user))
    meeting = meeting_of(request)
    rules = rules_of(session, user.address) if meeting is not None else []
    ruled = decide_by(rules, facts_of(user, request, meeting)) if meeting is not None and rules else None
    return (judgement if ruled is None else judgement._replace(action=ruled.action)), ruled


def look_ahead(session: Session, address: str, models: Models) -> None:
    """Read, without writing anything, what deciding about the user's next request will need."""
    user = find_user(session, address)
    request = next_undecided(session, user.address)
    if request is not None and request.features is None:
        models.of(session, user.address)
        with suppress(Exception):
            describe(session, user, request)


def give_up_next(session: Session, address: str, now: datetime) -> bool:
    """Put the user's next request before them after judging it has failed by a fault of the program."""
    user = lock_user(session, address)
    request = next_undecided(session, user.address)
    if request is not None:
        put_before(session, request, "the assistant failed on it", now)
    return request is not None


def put_before(session: Session, request: Request, why: str, now: datetime) -> None:
    """Put a request before its user, whatever was decided before, and say why."""
    record(session, request, Judgement("ask", None, {}, [], []), InUse(None, None), now, shadow=True, why=why[:300])
    text = f"“{request.summary}” is put before you: {why[:300]}"
    tell(session, request.user, now, "assistant", "decided", text, request)


def describe(session: Session, user: User, request: Request) -> FeatureRow:
    """Give the fifteen features of a request as it came."""
    meeting = meeting_of(request)
    if meeting is None:
        raise ValueError(f"Request {request.id} has no event {request.uid!r} in its text.")
    past = past_of(session, user, request)
    row = feature_row(meeting, owner_of(user), past, people_of(session, user.address), request.received_at)
    not_known = cannot_describe(user, request.received_at)
    return without_calendar(row, not_known) if not_known else row


def record(
    session: Session,
    request: Request,
    judgement: Judgement,
    using: InUse,
    now: datetime,
    *,
    shadow: bool,
    why: str = "",
    ruled: Ruled | None = None,
) -> None:
    """Write a decision down, why it is only shown where something holds it back, and the rule behind it."""
    decision = Decision(
        request_id=request.id,
        made_at=now,
        action=judgement.action,
        probability=judgement.probability,
        expected_losses=dict(judgement.expected_losses),
        reasons=[dict(one._asdict()) for one in judgement.reasons],
        kin=[dict(one._asdict()) for one in judgement.kin],
        model_id=using.id,
        shadow=shadow,
        why=why,
        rule=ruled.words if ruled else "",
    )
    session.add(decision)
    request.decided = True
    session.flush()


def _held_back(
    session: Session, user: User, request: Request, action: str, ruled: Ruled | None, trust: Trust, now: datetime
) -> str:
    """Why an answer is not given automatically; "" where nothing speaks against it."""
    if not user.automation:
        return "automation is off"
    if halt := halted(session, user) or in_shadow(user, trust, now):
        return halt
    meeting = meeting_of(request)
    if meeting is None or not meeting.answer_of(user.address):
        return "you are not among those invited by name"
    if request.starts_at <= now and not meeting.repeats:
        return "it has begun already"
    if unread := cannot_decide(user, now):
        return unread
    if user.answers not in ("both", action):
        return f"by your settings only {'yeses' if user.answers == 'accept' else 'noes'} are sent for you"
    if ruled is None and (waits := own_answers(session, user.address).waits(action)):
        return waits
    if doubt := forged(request, meeting, trust):
        return doubt
    vetoes = user.vetoes.split()
    named = ruled is not None and ruled.names("organiser", "domain")
    if "stranger" in vetoes and not named and is_stranger(session, user, request.organiser, trust):
        return f"you have never met {request.organiser}"
    if veto := vetoed(user, facts_of(user, request, meeting), action, ruled):
        return veto
    if capped := over_cap(session, user, request.organiser, trust, now):
        return capped
    return overlap_veto(session, user, request, now, ruled) if action == "accept" else ""


def _answer_automatically(session: Session, user: User, request: Request, action: str, now: datetime) -> None:
    answer = ANSWERS[action]
    try:
        text = make_reply(request.text, request.uid, request.recurrence_id, user.address, answer, now)
    except ValueError as error:
        tell(
            session,
            user.address,
            now,
            "assistant",
            "held back",
            f"“{request.summary}” is put before you: {error}",
            request,
        )
        return
    due_at = now + timedelta(minutes=user.undo_minutes)
    reply = Reply(
        request_id=request.id, once=request.id, by="assistant", answer=answer, text=text, made_at=now, due_at=due_at
    )
    session.add(reply)
    request.state = "answered"
    tell(session, user.address, now, "assistant", "prepared", f"Will {action} “{request.summary}”.", request)
    session.flush()


def judge_again(session: Session, address: str, models: Models, now: datetime) -> int:
    """Judge open requests anew whose decision is by a model that is no longer in use; how many there were.

    Such a decision is only ever shown: what a user has seen as a proposal is not turned into an answer behind their
    back.
    """
    user = lock_user(session, address)
    using = models.of(session, user.address)
    if using.model is None:
        return 0
    query = (
        select(Request)
        .join(Decision, Decision.id == latest_decision_id())
        .where(Request.user == user.address, Request.state == "open")
        .where(Decision.model_id.is_distinct_from(using.id))
        .order_by(Request.received_at, Request.id)
        .limit(_BATCH)
    )
    requests = [one for one in session.scalars(query) if one.features is not None]
    for request in requests:
        judgement, ruled = _judged(session, user, request, using)
        why = "" if judgement.action == "ask" else "it was judged anew after you could see it here"
        record(session, request, judgement, using, now, shadow=True, why=why, ruled=ruled)
    return len(requests)


def look_again(session: Session, address: str, models: Models, now: datetime) -> int:
    """Describe and judge open requests anew that came while the calendar was not known; how many there were.

    Like what `judge_again` decides, this is only ever shown.
    """
    user = lock_user(session, address)
    using = models.of(session, user.address)
    query = select(Request).where(Request.user == user.address, Request.state == "open", Request.features.is_not(None))
    waiting = session.scalars(query.order_by(Request.received_at.desc(), Request.id.desc()).limit(_BATCH))
    blind = [one for one in waiting if {NEVER_READ, STALE} & set((one.unknown or {}).values())]
    for request in reversed(blind):
        with suppress(ValueError):
            row = describe(session, user, request)
            request.features, request.unknown = dict(row.values), dict(row.unknown)
            judgement, ruled = _judged(session, user, request, using)
            why = "your calendar was not known when it came"
            record(session, request, judgement, using, now, shadow=True, why=why, ruled=ruled)
    return len(blind)


def users_to_judge_again(session: Session) -> list[str]:
    """Give the users with open requests that were decided by a model which is no longer in use."""
    query = (
        select(Request.user, Decision.model_id)
        .join(Decision, Decision.id == latest_decision_id())
        .where(Request.state == "open", Request.features.is_not(None))
        .distinct()
    )
    found: dict[str, None] = {}
    current: dict[str, int | None] = {}
    for user, model_id in session.execute(query):
        if user not in current:
            current[user] = model_id_of(session, user)
        if current[user] is not None and current[user] != model_id:
            found[user] = None
    return list(found)
