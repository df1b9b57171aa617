"""Search over orders of variables (Teyssier and Koller 2005), one variable at a time to its best place.

Given an order, every variable takes parents from those before it, one by one, each time the change that gains most, as
long as any does: greedy, but no cycle can close, so that no variable waits for another. Moving one variable through the
whole order asks for each other variable's parents with it and without it, and the sums over the order say where it is
best (Andrews et al. 2023, who call it the best order score search). The best order is then disturbed, and searched from
again.

Most of these questions need no answer. Of every variable it is remembered which others were ever taken up on the way to
its parents, and by how much each other fell short of being taken up instead (its ``surplus``, then below zero). To take
a variable away that was never taken up, or to add one that would never have been, leaves the way as it is.

Several tasks with a joint prior have one order: a step then changes the arc between two variables in any subset of the
tasks, the best by the prior's own rule (``joint_states``), and the sums are joint log posteriors. Structures that point
opposite ways in different tasks are left to the climb that comes after.

References
----------
M. Teyssier and D. Koller, "Ordering-based search: a simple and effective algorithm for learning Bayesian networks", UAI
2005.

B. Andrews, J. Ramsey, R. Sanchez-Romero, J. Camchong and E. Kummerfeld, "Fast scalable and accurate discovery of DAGs
using the best order score search and grow-shrink trees", NeurIPS 2023.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.interrupts import asked
from kinfolk.maths.compiled import compiled
from kinfolk.networks.inference.joint_states import best_states, cost_of
from kinfolk.networks.model.bits import among, include
from kinfolk.networks.model.family_scores import (
    TIE,
    Found,
    Problem,
    Questions,
    answer,
    ask,
    clear,
    no_questions,
    pieces_at_once,
)
from kinfolk.networks.model.kernels import inner, int64, spliced
from kinfolk.networks.model.network import Adjacency, Structures, topological_order
from kinfolk.networks.model.priors import Prior

Whole = NDArray[np.int64]

# Whose parents are chosen: those of the variable that is moved, or of another with it before that, and without it.
_ITSELF, _WITH, _WITHOUT = 0, 1, 2
# Steps of a climb that take about as long as looking for one variable's best place.
_STEPS_A_TURN = 10


class Ways(NamedTuple):
    """Of every variable, how it came to its parents: its score, what was ever taken up, what nearly was.

    ``surplus[v, u]`` is the most by which u's gain exceeded that of the change made, over the steps on which u was no
    parent of v in some task; −inf where it might never be one. The last row is for ways that are only tried.
    """

    score: NDArray[np.float64]
    surplus: NDArray[np.float64]
    tried: NDArray[np.bool_]


class Turns(NamedTuple):
    """How often a variable was looked at, and how many of the last ones have stayed."""

    taken: Whole
    stayed: Whole


class Space(NamedTuple):
    """What a search of some tasks, ``members``, writes into.

    ``present`` tells which variables any of them has. Of the variable that is moved: the ``others`` in their order;
    ``scores`` at every place, of the variable itself, of the other there with it before that, and without; whether the
    two differ. ``before`` tells which variables may be parents. The rest is of the pair that is looked at: tasks that
    have it, their states, what these gain and cost.
    """

    members: Whole
    present: NDArray[np.bool_]
    others: Whole
    place: Whole
    scores: NDArray[np.float64]
    changes: NDArray[np.bool_]
    before: NDArray[np.bool_]
    who: Whole
    tasks: Whole
    current: Whole
    states: Whole
    gains: NDArray[np.float64]
    chosen_who: Whole
    chosen: Whole
    penalties: NDArray[np.float64]


def search_orders(problem: Problem, prior: Prior, members: Whole, start: Structures, n_disturbed: int) -> Found:
    """Search from the order of given structures of some tasks, then as often as asked from the best order disturbed.

    Parameters
    ----------
    problem : Problem
        Cases, score and constraints.
    prior : Prior
        Of the tasks' structures together.
    members : int array
        Which tasks.
    start : bool array of shape (n_members, n_variables, n_variables)
        Structures with all required arcs; the variables' order in them, or its mean, is the first.
    n_disturbed : int
        How often a fifth of the variables are moved to random places, and all of them searched again. The places are
        the same in every search: what is found hangs on the rows alone.

    Returns
    -------
    Found
        The structures of the best order, their score, and how often a variable was looked at. Ctrl-C ends the search
        early, if it is part of work that leaves what there is.
    """
    k, n = start.shape[:2]
    required = problem.constraints.required
    present = np.asarray(problem.cases.present[members].any(axis=0))
    ranks = np.mean([np.argsort(topological_order(structure)) for structure in start], axis=0)
    in_order = np.argsort(ranks, kind="stable")
    best_order = _held_to(in_order[present[in_order]], required)
    questions = no_questions(k, problem.cases)
    ways = Ways(np.zeros(n + 1), np.zeros((n + 1, n)), np.zeros((n + 1, n), dtype=np.bool_))
    whole = np.zeros((7, max(n, k)), dtype=np.int64)
    space = Space(
        members=members,
        present=present,
        others=whole[0],
        place=whole[1],
        scores=np.zeros((3, n)),
        changes=np.zeros(n, dtype=np.bool_),
        before=np.zeros(n, dtype=np.bool_),
        who=whole[2],
        tasks=whole[3],
        current=whole[4],
        states=whole[5],
        gains=np.zeros((k, 3)),
        chosen_who=whole[6],
        chosen=np.zeros(k, dtype=np.int64),
        penalties=np.zeros(n),
    )
    rng = np.random.default_rng(n)
    at_once = max(pieces_at_once(problem, members) // _STEPS_A_TURN, 1)
    best, best_score, n_turns = np.zeros((k, n, n), dtype=bool), -np.inf, 0
    for turn in range(1 + n_disturbed if len(best_order) > 1 else 1):
        order, found = best_order.copy(), np.zeros((k, n, n), dtype=bool)
        if turn:
            order = _disturbed(order, required, rng)
        turns = Turns(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        given = problem, questions, prior, space, ways, turns, order
        more = _settle(*given, True, 0 if asked() else at_once)
        while more and not asked():
            more = _settle(*given, False, at_once)
        score = _structures_of(problem, questions, prior, space, ways, order, found)
        n_turns += int(turns.taken[0])
        if score > best_score + TIE:
            best, best_score, best_order = found, score, order
        if asked():
            break
    return Found(best, float(best_score), n_turns)


def _disturbed(order: Whole, required: Adjacency, rng: np.random.Generator) -> Whole:
    """Move a fifth of the variables, three at least, to random places; then put required parents before children."""
    n = len(order)
    places = rng.integers(n, size=(max(3, n // 5), 2)).tolist()
    moved = order.tolist()
    for old, new in places:
        moved.insert(new, moved.pop(old))
    return _held_to(np.array(moved, dtype=np.int64), required)


def _held_to(order: Whole, required: Adjacency) -> Whole:
    """The same order but for required parents, which come before their children."""
    if not required.any():
        return order
    waiting, held = order.tolist(), []
    while waiting:
        held.append(next(v for v in waiting if not required[waiting, v].any()))
        waiting.remove(held[-1])
    return np.array(held, dtype=np.int64)


@compiled
def _settle(
    problem: Problem,
    questions: Questions,
    prior: Prior,
    space: Space,
    ways: Ways,
    turns: Turns,
    order: Whole,
    begins: bool,
    at_once: int,
) -> bool:
    """Move variables to their best places, in turn, until all have stayed, but so many at most.

    Tells whether there are more to look at.
    """
    n = len(space.before)
    before, others, place_of, changes = space.before, space.others, space.place, space.changes
    required, spare = problem.constraints.required, int64(n)
    if begins:
        for v in range(n):
            before[v] = False
        for place in range(len(order)):
            place_of[order[place]] = place
            _take_way(problem, questions, prior, space, ways, order[place], order[place])
            before[order[place]] = True
    n_turns, n_stayed = turns.taken[0], turns.stayed[0]
    last = n_turns + at_once
    while n_stayed < n and n_turns < last:
        v = n_turns % n
        n_turns += 1
        n_stayed += 1
        if not space.present[v]:
            continue
        now, n_others = place_of[v], 0
        for place in range(len(order)):
            before[order[place]] = False
            if place != now:
                others[n_others] = order[place]
                n_others += 1
        _take_way(problem, questions, prior, space, ways, v, spare)
        for place in range(len(order)):
            space.scores[_ITSELF, place] = ways.score[spare]
            if place < n_others:
                before[others[place]] = True
                # One more may come before it, which need not make a difference.
                if required[others[place], v] or ways.surplus[spare, others[place]] > -TIE:
                    _take_way(problem, questions, prior, space, ways, v, spare)
        for place in range(n_others):
            before[others[place]] = False
        total = 0.0
        for place in range(n_others):
            child = others[place]
            space.scores[_WITH, place] = space.scores[_WITHOUT, place] = ways.score[child]
            ahead = place_of[child] < now
            changes[child] = ways.surplus[child, v] > -TIE if ahead else required[v, child] or ways.tried[child, v]
            if changes[child]:
                before[v] = ahead
                _take_way(problem, questions, prior, space, ways, child, spare)
                space.scores[_WITH if ahead else _WITHOUT, place] = ways.score[spare]
                before[v] = False
            before[child] = True
            total += space.scores[_WITH, place]
        place = _best_place(space.scores, total, now, len(order))
        if place == now:
            continue
        n_stayed = 0
        for a in range(len(order)):
            order[a] = others[a] if a < place else v if a == place else others[a - 1]
            place_of[order[a]] = a
            before[order[a]] = False
        for a in range(len(order)):
            between = min(now, place) <= a <= max(now, place)
            if between and (order[a] == v or changes[order[a]]):
                _take_way(problem, questions, prior, space, ways, order[a], order[a])
            before[order[a]] = True
    turns.taken[0], turns.stayed[0] = n_turns, n_stayed
    return bool(n_stayed < n)


@compiled
def _structures_of(
    problem: Problem,
    questions: Questions,
    prior: Prior,
    space: Space,
    ways: Ways,
    order: Whole,
    adjacency: NDArray[np.bool_],
) -> float:
    """Write the structures of an order; return their score."""
    k, n, before, spare = adjacency.shape[0], adjacency.shape[1], space.before, int64(adjacency.shape[1])
    for v in range(n):
        before[v] = False
    total = 0.0
    for place in range(len(order)):
        v = order[place]
        _take_way(problem, questions, prior, space, ways, v, spare)
        total += ways.score[spare]
        for m in range(k):
            for p in range(n):
                adjacency[m, p, v] = among(questions.parents, m, p)
        before[v] = True
    return total


@spliced
def _best_place(scores: NDArray[np.float64], total: float, now: int, n: int) -> int:
    """Find a variable's best place, where it is if no other gains; ``total`` is of all others with it before them."""
    best, best_place, here = -np.inf, int64(0), -np.inf
    for place in range(n):
        value = total + scores[_ITSELF, place]
        if place == now:
            here = value
        if value > best + TIE:
            best, best_place = value, place
        # One place further on, one more does without it.
        if place < n - 1:
            total += scores[_WITHOUT, place] - scores[_WITH, place]
    return best_place if best > here + TIE else now


@inner
def _take_way(problem: Problem, questions: Questions, prior: Prior, space: Space, ways: Ways, v: int, row: int) -> None:
    """Choose a variable's parents in all tasks from those before it, greedily; they stand in the questions.

    How that went is written into a row of ``ways``. Where a required parent is not before it, the score is −inf.
    """
    k, n, before, required = len(space.members), len(space.before), space.before, problem.constraints.required
    parents, present, who, tasks, current = (
        questions.parents,
        problem.cases.present,
        space.who,
        space.tasks,
        space.current,
    )
    states, gains, penalties, chosen, chosen_who = (
        space.states,
        space.gains,
        space.penalties,
        space.chosen,
        space.chosen_who,
    )
    surplus, tried = ways.surplus, ways.tried
    believed, ended = 0.0, False
    for p in range(n):
        surplus[row, p], tried[row, p], penalties[p] = -np.inf, False, 0.0
    for m in range(k):
        task = space.members[m]
        for w in range(parents.shape[1]):
            parents[m, w] = np.uint64(0)
        for p in range(n):
            if required[p, v] and present[task, p] and present[task, v]:
                include(parents, m, p)
                believed += prior.exponent[task] * prior.log_odds[p, v] if before[p] else -np.inf
    while not ended:
        clear(questions)
        for m in range(k):
            if present[space.members[m], v]:
                ask(problem.scores, questions, space.members[m], v)
            else:
                questions.score[m], questions.answered[m] = 0.0, True
                questions.n[0] += 1
        if questions.n_open[0]:
            answer(problem, questions)
        best, best_p, n_chosen = TIE, int64(-1), 0
        # First those that may be taken up; then, by how much the others would have exceeded the best of them.
        for outside in range(2):
            for p in range(n):
                if before[p] == (outside == 1) or p == v:
                    continue
                n_who, ceiling = 0, penalties[p]
                for m in range(k):
                    task = space.members[m]
                    if not (present[task, p] and present[task, v]):
                        continue
                    inside = among(parents, m, p)
                    odds = prior.exponent[task] * prior.log_odds[p, v]
                    gain = questions.gains[m, p] + (-odds if inside else odds)
                    if inside and required[p, v]:
                        gain = -np.inf
                    gains[n_who, 0] = gain if inside else 0.0
                    gains[n_who, 1] = 0.0 if inside else gain
                    gains[n_who, 2] = -np.inf
                    ceiling += max(gain, 0.0) if k > 1 else gain
                    who[n_who], tasks[n_who], current[n_who] = m, task, inside
                    n_who += 1
                if n_who == 0:
                    continue
                if outside:
                    surplus[row, p] = max(surplus[row, p], ceiling - best)
                    continue
                if ceiling <= best:
                    continue
                gain = penalties[p] + best_states(
                    prior, tasks[:n_who], gains[:n_who], current[:n_who], p, v, states[:n_who]
                )
                if gain > best:
                    best, best_p, n_chosen = gain, p, n_who
                    for a in range(n_who):
                        chosen[a], chosen_who[a] = states[a], who[a]
        ended = best_p < 0
        if not ended:
            tried[row, best_p] = True
            for a in range(n_chosen):
                m = chosen_who[a]
                tasks[a] = space.members[m]
                if among(parents, m, best_p) != (chosen[a] == 1):
                    odds = prior.exponent[tasks[a]] * prior.log_odds[best_p, v]
                    believed += odds if chosen[a] == 1 else -odds
                    parents[m, best_p >> 6] ^= np.uint64(1) << np.uint64(best_p & 63)
            if n_chosen > 1:
                penalties[best_p] = cost_of(prior, tasks[:n_chosen], chosen[:n_chosen], best_p, v)
    total = believed
    for m in range(k):
        total += questions.score[m]
    for p in range(n):
        total -= penalties[p]
    ways.score[row] = total
