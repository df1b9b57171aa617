"""Structures of several tasks: learnt separately, as one, or jointly (sections 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kinfolk.networks.inference.problem import TIE, Found, Problem
from kinfolk.networks.inference.restarts import Effort, search
from kinfolk.networks.model.constraints import Structures
from kinfolk.networks.model.priors import Prior


class Learnt(NamedTuple):
    """Structures of all tasks, and the log score that led to them (up to the prior's normaliser)."""

    structures: Structures
    score: float


def learn_separately(
    problem: Problem,
    prior: Prior,
    starts: Structures,
    effort: Effort,
    seeds: NDArray[np.uint32],
    n_jobs: int | None = None,
    advance: Callable[[int], None] = lambda steps: None,
) -> Learnt:
    """Learn every task's structure by itself; threads share the work, and the result does not depend on how many."""

    def one(t: int) -> Found:
        rng = np.random.default_rng(seeds[t])
        return search(problem, prior, np.array([t]), starts[t : t + 1], effort, rng, advance)

    # A pool for one thread would take longer than a small search.
    if n_jobs in (None, 1):
        found = [one(t) for t in range(len(starts))]
    else:
        found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(t) for t in range(len(starts)))
    return Learnt(np.concatenate([one.adjacency for one in found]), sum(one.score for one in found))


def learn_together(
    problem: Problem,
    prior: Prior,
    starts: list[Structures],
    effort: Effort,
    seed: int,
    advance: Callable[[int], None] = lambda steps: None,
) -> Learnt:
    """Search over all tasks' structures at once, from each of several starts; of equal ends the first is kept."""
    members = np.arange(problem.cases.n_tasks)
    best: Found | None = None
    for start in starts:
        found = search(problem, prior, members, start, effort, np.random.default_rng(seed), advance)
        if best is None or found.score > best.score + TIE:
            best = found
    assert best is not None
    return Learnt(best.adjacency, best.score)
