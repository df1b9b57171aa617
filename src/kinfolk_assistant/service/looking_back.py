"""What the assistant would have answered lately, by what it could have learnt before: a fair look back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import select

from kinfolk_assistant.learning.judging import judge
from kinfolk_assistant.learning.model import TeamModel
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Request
from kinfolk_assistant.ledger.users import find_user
from kinfolk_assistant.service.retraining import make_lessons
from kinfolk_assistant.service.weighing import costs_of

MONTH = timedelta(days=30)


class LookBack(NamedTuple):
    """How many invitations of some time it would have accepted, declined and asked about, and how many rightly."""

    n: int
    accept: int
    decline: int
    ask: int
    right: int

    def __str__(self) -> str:
        if not self.n:
            return "In the last month no invitation was answered, so there is nothing to try it on."
        answered = self.accept + self.decline
        head = f"Of {self.n} invitations that you answered in the last month, it would have accepted {self.accept}, "
        told = f"{head}declined {self.decline} and asked about {self.ask}, by what it could have learnt before"
        return f"{told}; {self.right} of these {answered} answers were yours." if answered else f"{told}."


def look_back(ledger: Ledger, user: str, now: datetime, span: timedelta = MONTH) -> LookBack:
    """Learn from what was answered before a time, and judge what was answered since.

    Rules and vetoes are left aside: they turn answers into questions, and are the user's own.
    """
    with ledger.read() as session:
        owner = find_user(session, user)
        costs = costs_of(owner)
        answered = select(Request.features, Request.label).where(
            Request.user == owner.address, Request.label.is_not(None), Request.features.is_not(None)
        )
        lately = [(row[0], row[1]) for row in session.execute(answered.where(Request.received_at >= now - span))]
        lessons = make_lessons(session, before=now - span)
    own = [one for one in lessons if owner.address in one.users]
    if not lately or not own:
        return LookBack(len(lately), 0, 0, len(lately), 0)
    model = TeamModel.fit(own[-1].rows)
    actions = [(judge(model, features, owner.address, costs).action, label) for features, label in lately]
    chosen = [action for action, _ in actions]
    right = sum(action == label for action, label in actions)
    return LookBack(len(lately), chosen.count("accept"), chosen.count("decline"), chosen.count("ask"), right)
