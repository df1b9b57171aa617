"""What a user has answered by their own hand, in the past and here, and whether that is enough to answer for them."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.tables import Request

NEEDED = 3
"""So many noes of the user's own must be known before a yes is sent for them, and so many yeses before a no."""

_OTHER = {"accept": "decline", "decline": "accept"}
_DONE = {"accept": "accepted", "decline": "declined"}


class OwnAnswers(NamedTuple):
    """How often a user accepted and declined, and whether the imported past has answers of one kind alone."""

    accept: int
    decline: int
    one_sided: str
    """"accept" or "decline" where the imported past has no other answer, else ""."""

    def waits(self, action: str) -> str:
        """Say why answers of a kind are not sent yet; "" where they may be.

        Examples
        --------
        >>> OwnAnswers(57, 0, "accept").waits("accept")
        'you have declined 0 invitations so far, and no yes is sent for you before 3'
        >>> OwnAnswers(57, 3, "accept").waits("accept"), OwnAnswers(57, 0, "accept").waits("decline")
        ('', '')
        """
        other = _OTHER[action]
        n = getattr(self, other)
        if n >= NEEDED:
            return ""
        answers = {"accept": "yes", "decline": "no"}
        some = "1 invitation" if n == 1 else f"{n} invitations"
        return f"you have {_DONE[other]} {some} so far, and no {answers[action]} is sent for you before {NEEDED}"


def own_answers(session: Session, user: str) -> OwnAnswers:
    """Count a user's own answers: those of the imported past, and those given since."""
    query = (
        select(Request.label, func.count())
        .where(Request.user == user, Request.label.is_not(None))
        .group_by(Request.label)
    )
    counts: dict[str | None, int] = {row[0]: row[1] for row in session.execute(query)}
    return OwnAnswers(counts.get("accept", 0), counts.get("decline", 0), one_sided_pasts(session, user).get(user, ""))


def one_sided_pasts(session: Session, user: str | None = None) -> dict[str, str]:
    """Give the users (or the one user) whose imported past has answers of one kind alone, and which.

    Servers drop what is declined, and exports what was never accepted: the other answers are missing, not absent.
    """
    query = (
        select(Request.user, func.min(Request.label), func.max(Request.label))
        .where(Request.source == "history", Request.label.is_not(None))
        .group_by(Request.user)
    )
    query = query if user is None else query.where(Request.user == user)
    return {user: str(least) for user, least, most in session.execute(query) if least == most}
