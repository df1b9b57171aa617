"""What a search for structures is given, and what it finds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.cases import Cases
from kinfolk.networks.model.constraints import Constraints
from kinfolk.networks.model.family_scores import FamilyScores, no_scores
from kinfolk.networks.model.scores import criterion_named

# Gains closer than this are ties. Structures that encode the same independences have the same score but for rounding,
# and rounding must not choose between them: the table's first pair of variables wins, then the first state.
TIE = 1e-8


class Problem(NamedTuple):
    """The cases with their score, the constraints, and the scores of families counted so far."""

    cases: Cases
    score: Any
    constraints: Constraints
    scores: FamilyScores


class Found(NamedTuple):
    """Where a search ended: the best structures seen, and their score."""

    adjacency: NDArray[np.bool_]
    score: float
    n_steps: int


def make_problem(
    cases: Cases, criterion: str, ess: float, constraints: Constraints, n_rows: NDArray[np.float64] | None = None
) -> Problem:
    """Set up a search; ``n_rows`` is what the score takes for every task's number of rows, if not that number."""
    score = criterion_named(criterion).make(ess, cases.total_weight if n_rows is None else n_rows)
    return Problem(cases, score, constraints, no_scores(cases))
