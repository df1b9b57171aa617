"""Scores of families as searches ask for them, remembered, so that what is passed again is not counted again.

A search does not count rows itself: it writes down the families whose scores and gains it needs, as questions, and goes
on when they are answered. So the kernels that search and the kernel that counts are compiled apart, each but once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.bits import Bits, among
from kinfolk.networks.model.data import Cases
from kinfolk.networks.model.families import MOST_CELLS, Room, family_gains, room_to_count
from kinfolk.networks.model.kernels import inner, spliced
from kinfolk.networks.model.network import Constraints
from kinfolk.networks.model.scores.criterion import Criterion

# Gains closer than this are ties. Structures that encode the same independences have the same score but for rounding,
# and rounding must not choose between them: the table's first pair of variables wins, then the first state.
TIE = 1e-8
# What all remembered gains may take, in bytes, and how many families of one task are remembered at most.
_MEMORY = 256 * 2**20
# Looks at a value of a row between two questions whether to end, some tenths of a second, and most steps between them.
_LOOKS, _MOST_PIECES = 10**8, 10**4
_MOST_SLOTS = 1 << 16
# With so many, few families of a task have a slot in common.
_SLOTS_A_FAMILY = 4


class FamilyScores(NamedTuple):
    """Score and gains of (task, child, parents), each in the one slot that its hash names; a newer replaces an older.

    Memory is bounded, by ``_MEMORY`` for all tasks together, whatever a search does. Tasks have slots of their own, so
    that threads may search different tasks.
    """

    child: NDArray[np.int32]
    parents: NDArray[np.uint64]
    score: NDArray[np.float64]
    gains: NDArray[np.float64]


class Questions(NamedTuple):
    """Families that a search asks about: ``n`` of them, each with its score and gains where it is ``answered``.

    ``gains[q, v]`` is what family q's score gains by taking v up among the parents, or by leaving it out. ``places``,
    ``candidates`` and ``room`` are for whoever answers.
    """

    n: NDArray[np.int64]
    n_open: NDArray[np.int64]
    task: NDArray[np.int64]
    child: NDArray[np.int64]
    parents: Bits
    answered: NDArray[np.bool_]
    score: NDArray[np.float64]
    gains: NDArray[np.float64]
    places: NDArray[np.int64]
    candidates: NDArray[np.bool_]
    room: Room


class Problem(NamedTuple):
    """What a search is given: cases with their score, constraints, and the scores of families counted so far."""

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
    cases: Cases, criterion: Criterion, ess: float, constraints: Constraints, n_rows: NDArray[np.float64] | None = None
) -> Problem:
    """Set up a search; ``n_rows`` is what the score takes for every task's number of rows, if not that number."""
    n_tasks, n = cases.present.shape
    # Of few variables there are no more families than this; memory that is not needed takes time to be had.
    n_families = n << min(n - 1, 30)
    slots = max(1, min(_MOST_SLOTS, _SLOTS_A_FAMILY * n_families, _MEMORY // (8 * n * n_tasks)))
    scores = FamilyScores(
        child=np.full((n_tasks, slots), -1, dtype=np.int32),
        parents=np.zeros((n_tasks, slots, -(-n // 64)), dtype=np.uint64),
        score=np.empty((n_tasks, slots)),
        gains=np.empty((n_tasks, slots, n)),
    )
    score = criterion.make(ess, cases.total_weight if n_rows is None else n_rows, cases.n_parts)
    return Problem(cases, score, constraints, scores)


def pieces_at_once(problem: Problem, members: NDArray[np.int64]) -> int:
    """How many steps a kernel takes before it is asked whether the search is to end: so many as take a moment.

    A step asks for about one column of gains of each task, and so looks at each row once for each variable.
    """
    n_rows = int(problem.cases.n_rows[members].sum())
    return min(max(_LOOKS // (len(problem.cases.cards) * max(n_rows, 1)), 1), _MOST_PIECES)


def no_questions(most: int, cases: Cases) -> Questions:
    """Make room for a number of questions at a time."""
    n_variables = len(cases.cards)
    return Questions(
        n=np.zeros(1, dtype=np.int64),
        n_open=np.zeros(1, dtype=np.int64),
        task=np.zeros(most, dtype=np.int64),
        child=np.zeros(most, dtype=np.int64),
        parents=np.zeros((most, -(-n_variables // 64)), dtype=np.uint64),
        answered=np.zeros(most, dtype=np.bool_),
        score=np.zeros(most),
        gains=np.zeros((most, n_variables)),
        places=np.zeros(n_variables, dtype=np.int64),
        candidates=np.zeros(n_variables, dtype=np.bool_),
        room=room_to_count(cases),
    )


@spliced
def clear(questions: Questions) -> None:
    """Forget all questions."""
    questions.n[0] = questions.n_open[0] = 0


@inner
def ask(scores: FamilyScores, questions: Questions, task: int, child: int) -> int:
    """Ask about the family of a child with the parents that stand in the next row; return that row.

    What is remembered is answered at once.
    """
    row = questions.n[0]
    questions.n[0] += 1
    questions.task[row], questions.child[row] = task, child
    slot = _slot(scores, questions, row)
    known = scores.child[task, slot] == child
    for w in range(questions.parents.shape[1]):
        known = known and scores.parents[task, slot, w] == questions.parents[row, w]
    questions.answered[row] = known
    if known:
        questions.score[row] = scores.score[task, slot]
        for v in range(questions.gains.shape[1]):
            questions.gains[row, v] = scores.gains[task, slot, v]
    else:
        questions.n_open[0] += 1
    return int(row)


@spliced
def _slot(scores: FamilyScores, questions: Questions, row: int) -> int:
    mix = np.uint64(questions.child[row]) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(questions.parents.shape[1]):
        mix = (mix ^ questions.parents[row, w]) * np.uint64(0xBF58476D1CE4E5B9)
        mix ^= mix >> np.uint64(29)
    return int(mix % np.uint64(scores.child.shape[1]))


@inner
def answer(problem: Problem, questions: Questions) -> None:
    """Count and score the families of all open questions, and remember them."""
    cases, constraints, scores = problem.cases, problem.constraints, problem.scores
    n, places, candidates = len(cases.cards), questions.places, questions.candidates
    for row in range(questions.n[0]):
        if questions.answered[row]:
            continue
        task, child = questions.task[row], questions.child[row]
        n_parents, n_cells = 0, float(cases.cards[child])
        for v in range(n):
            if among(questions.parents, row, v):
                places[n_parents] = v
                n_parents += 1
                n_cells *= cases.cards[v]
        for v in range(n):
            fits = n_parents < constraints.most_parents and n_cells * cases.cards[v] <= MOST_CELLS
            allowed = constraints.allowed[v, child] and cases.present[task, v]
            candidates[v] = fits and allowed and not among(questions.parents, row, v)
        parents, gains = places[:n_parents], questions.gains[row]
        found = family_gains(cases, problem.score, task, child, parents, candidates, questions.room, gains)
        questions.score[row], questions.answered[row] = found, True
        slot = _slot(scores, questions, row)
        scores.child[task, slot], scores.score[task, slot] = child, found
        for w in range(questions.parents.shape[1]):
            scores.parents[task, slot, w] = questions.parents[row, w]
        for v in range(n):
            scores.gains[task, slot, v] = questions.gains[row, v]
    questions.n_open[0] = 0
