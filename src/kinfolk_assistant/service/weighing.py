"""Choosing anew where only the costs have changed: probabilities already given, held against a user's losses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from kinfolk.decisions.choosing import decide, expected_loss
from kinfolk_assistant.learning.costs import ANSWERS, Costs
from kinfolk_assistant.ledger.requests import latest_decision_id
from kinfolk_assistant.ledger.tables import Decision, Request, User


class Weighed(NamedTuple):
    """The action of least expected loss, and the expected loss of each."""

    action: str
    expected_losses: dict[str, float]


def costs_of(user: User) -> Costs:
    """Give a user's own costs."""
    return Costs(user.cost_false_accept, user.cost_false_decline, user.cost_ask)


def weigh(probabilities: Sequence[float | None], costs: Costs) -> list[Weighed]:
    """Choose for each probability of "accept"; "ask" where there is none.

    Examples
    --------
    >>> [one.action for one in weigh([0.95, 0.5, None], Costs(1.0, 1.0, 0.1))]
    ['accept', 'ask', 'ask']
    """
    known = np.array([one for one in probabilities if one is not None], dtype=np.float64)
    loss = costs.loss()
    rows = np.stack([known, 1.0 - known], axis=1)
    chosen = iter(
        [
            Weighed(str(action), dict(zip(map(str, loss.actions or ()), losses, strict=True)))
            for action, losses in zip(
                decide(rows, loss, classes=ANSWERS),
                expected_loss(rows, loss, classes=ANSWERS).tolist(),
                strict=True,
            )
        ]
        if len(known)
        else []
    )
    return [Weighed("ask", {}) if one is None else next(chosen) for one in probabilities]


def weigh_again(session: Session, user: User, now: datetime) -> int:
    """Choose anew for all the user's open requests; how many there are. Such a choice is only ever shown."""
    query = (
        select(Decision)
        .join(Request, Decision.id == latest_decision_id())
        .where(Request.user == user.address, Request.state == "open", Decision.probability.is_not(None))
        .order_by(Decision.id)
    )
    last = list(session.scalars(query))
    for old, weighed in zip(last, weigh([one.probability for one in last], costs_of(user)), strict=True):
        session.add(
            Decision(
                request_id=old.request_id,
                made_at=now,
                action=old.action if old.rule else weighed.action,
                probability=old.probability,
                expected_losses=weighed.expected_losses,
                reasons=old.reasons,
                kin=old.kin,
                model_id=old.model_id,
                shadow=True,
                rule=old.rule,
                why="" if weighed.action == "ask" else "your costs changed after you could see it here",
            )
        )
    return len(last)
