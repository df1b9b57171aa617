"""The judgement of one request: the action of least expected loss (Roy 2006, equations 1.2 and 3.1), and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kinfolk.decisions.choosing import decide, expected_loss
from kinfolk_assistant.learning.costs import ANSWERS, Costs
from kinfolk_assistant.learning.model import Kin, Reason, TeamModel


class Judgement(NamedTuple):
    """What to do with a request, and what speaks for it.

    ``probability`` is that of "accept", ``expected_losses`` has one for each of accept, decline and ask. Where nothing
    is learnt the action is "ask", the probability None, and the rest is empty.
    """

    action: str
    probability: float | None
    expected_losses: dict[str, float]
    reasons: list[Reason]
    kin: list[Kin]


def judge(model: TeamModel | None, values: Mapping[str, str | None], user: str, costs: Costs) -> Judgement:
    """Choose the action with the smallest expected loss to this user.

    Parameters
    ----------
    model : TeamModel or None
        What was learnt; None where there is no model yet.
    values : mapping
        The request's features, None where a value is not known.
    user : str
        The address of the person asked.
    costs : Costs
        That person's own costs.

    Returns
    -------
    Judgement

    Examples
    --------
    >>> judge(None, {"conflict": "yes"}, "ann@example.org", Costs()).action
    'ask'
    """
    loss = costs.loss()
    probability = None if model is None else model.probability(values, user)
    if model is None or probability is None:
        return Judgement("ask", None, {}, [], [])
    row = [[probability, 1.0 - probability]]
    losses = expected_loss(row, loss, classes=ANSWERS)[0].tolist()
    action = str(decide(row, loss, classes=ANSWERS)[0])
    named = dict(zip(loss.actions or (), losses, strict=True))
    return Judgement(
        action,
        probability,
        {name: named[name] for name in (*ANSWERS, "ask")},
        model.reasons(values, user),
        model.kin(user),
    )
