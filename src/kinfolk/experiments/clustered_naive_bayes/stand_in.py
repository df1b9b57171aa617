"""The data that stands in for the meeting requests of the papers, and how the papers speak of its people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PAPER = (
    "D. M. Roy and L. P. Kaelbling, “Efficient Bayesian Task-Level Transfer Learning”, "
    "International Joint Conference on Artificial Intelligence, 2007."
)
THESIS = "D. M. Roy, “Clustered Naive Bayes”, M.Eng. thesis, Massachusetts Institute of Technology, 2006."

MADE_UP_MEETINGS = (
    "The papers' meeting requests are not public. Made-up ones stand in (`make_meetings`): the thesis's fifteen "
    "features, its 21 users in the nine groups of table 4.1, and 3966 requests, 100 to 400 a user. People of a group "
    "get similar requests and answer them by nearly the same rules, with noise and personal quirks; no naive Bayes "
    "model has a part in it. Groups that were put in can be found more easily than real people's, so what counts is "
    "the shape of the result, not its size."
)

# Figure 4's key: (M)ilitary, (P)rofessor, (S)RI researcher.
KINDS = {"M": "military", "P": "professors", "S": "SRI researchers"}


def kind_of(institution: str) -> str:
    """The letter of figure 4 for an institution.

    Examples
    --------
    >>> [kind_of(institution) for institution in ("Military", "MIT", "SRI")]
    ['M', 'P', 'S']
    """
    return {"Military": "M", "SRI": "S"}.get(institution, "P")


def in_blocks(partition: Iterable[int], names: Iterable[object]) -> list[list[str]]:
    """The names in each block of a partition, blocks in the order of their numbers.

    Examples
    --------
    >>> in_blocks([0, 1, 0], ["ann", "bob", "cat"])
    [['ann', 'cat'], ['bob']]
    """
    blocks: dict[int, list[str]] = {}
    for block, name in zip(partition, names, strict=True):
        blocks.setdefault(int(block), []).append(str(name))
    return [blocks[block] for block in sorted(blocks)]


def meetings_problem(seed: int) -> Any:
    """The made-up meetings with the label as a truth: whether the request was accepted."""
    from sklearn.utils import Bunch

    from kinfolk.datasets.meetings import make_meetings

    meetings = make_meetings(random_state=seed)
    return Bunch(data=meetings.data, target=meetings.target == "accept", task=meetings.task, people=meetings.people)
