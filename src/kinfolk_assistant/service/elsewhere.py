"""Answers that a user gives in another program: they show in the calendar, and are the user's hand like any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.deeds import ask_for_training, tell
from kinfolk_assistant.ledger.requests import LEFT, replies
from kinfolk_assistant.ledger.tables import Entry, Request
from kinfolk_assistant.meeting import Meeting
from kinfolk_assistant.service.standing import parsed
from kinfolk_assistant.service.withdrawing import withdraw_unsent

_LABELS = {"ACCEPTED": "accept", "DECLINED": "decline"}


def answers_in(text: str, user: str) -> dict[str, str]:
    """Give what the user has answered in an object of the calendar, by occurrence."""
    return {meeting.recurrence_id: meeting.answer_of(user) for one in parsed(text) for meeting in one.meetings}


def follow(
    session: Session, user: str, asked: Iterable[Request], meeting: Meeting, before: Mapping[str, str], now: datetime
) -> None:
    """Take over what the user has answered since the calendar was last seen.

    An answer that was there ``before`` says nothing new: some servers carry it over to a meeting that the organiser has
    changed. What the assistant has sent comes back in the calendar just so, and is no label either.
    """
    answer = meeting.answer_of(user)
    was = before.get(meeting.recurrence_id, before.get("", ""))
    if answer not in _LABELS or answer == was:
        return
    for request in asked:
        if request.recurrence_id != meeting.recurrence_id or request.sequence > meeting.sequence:
            continue
        # Once the calendar has shown the user's own answer, nothing that was sent earlier can still come back in it.
        has_settled = request.label is not None and _LABELS.get(was) == request.label
        sent = any(one.answer == answer and one.state in LEFT for one in replies(session, request.id))
        if request.label != _LABELS[answer] and (has_settled or not sent):
            _take_over(session, request, answer, now)


def follow_earlier(session: Session, request: Request, now: datetime) -> None:
    """Take over what the user has answered before the request itself was seen here for the first time."""
    query = select(Entry.text).where(Entry.user == request.user, Entry.uid == request.uid, Entry.gone_at.is_(None))
    for one in parsed(session.scalars(query).one_or_none() or ""):
        for meeting in one.meetings:
            answer = meeting.answer_of(request.user)
            is_it = meeting.recurrence_id == request.recurrence_id and meeting.sequence >= request.sequence
            if is_it and answer in _LABELS:
                _take_over(session, request, answer, now)


def _take_over(session: Session, request: Request, answer: str, now: datetime) -> None:
    request.state, request.label = "answered", _LABELS[answer]
    withdraw_unsent(session, request, now, "you answered it elsewhere")
    text = f"You answered “{request.summary}” in your calendar: {_LABELS[answer]}."
    tell(session, request.user, now, "user", "answered", text, request)
    ask_for_training(session, now, "label")
