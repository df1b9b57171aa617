"""From coded tables to the structures of all tasks, by the way of sharing that was asked for.

In the papers: Niculescu-Mizil and Caruana (2012), eq. (3)–(5), section 3.1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.networks.inference.classes import search_class
from kinfolk.networks.inference.problem import Problem, make_problem
from kinfolk.networks.inference.restarts import Effort
from kinfolk.networks.inference.together import learn_separately, learn_together
from kinfolk.networks.model.cases import Cases, lay_out
from kinfolk.networks.model.configurations import edit_costs, edits, pair_costs, paired_penalty
from kinfolk.networks.model.constraints import Constraints, Structures
from kinfolk.networks.model.priors import Prior, joint_prior, no_sharing
from kinfolk.networks.model.strength import best_strength, log_strength_posterior, pair_spectrum

_MOST_TURNS = 20


class Plan(NamedTuple):
    """All that decides how structures are learnt from given cases.

    ``strengths`` is λ for every pair of variables; where ``learnt`` it is a factor on the λ to be inferred. ``starts``
    are structures of every task to begin with; ``by_classes`` has each task's own search begin with its classes.
    """

    sharing: str
    prior: str
    costs: Mapping[str, float]
    criterion: str
    ess: float
    constraints: Constraints
    log_odds: NDArray[np.float64]
    strengths: NDArray[np.float64]
    task_strengths: NDArray[np.float64] | None
    learnt: bool
    starts: Structures
    effort: Effort
    by_classes: bool
    n_jobs: int | None


class Outcome(NamedTuple):
    """Structures of all tasks, their log score up to the prior's normaliser, and the λ that held them together."""

    structures: Structures
    score: float
    strength: float


def learn_structures(
    plan: Plan, cases: Cases, seed: int, advance: Callable[[int], None] = lambda steps: None
) -> Outcome:
    """Learn the structures of all tasks."""
    rng = np.random.default_rng(seed)
    seeds = rng.integers(1 << 32, size=cases.n_tasks, dtype=np.uint32)
    joint_seed = int(rng.integers(1 << 32))
    if plan.sharing == "pooled":
        return _learn_as_one(plan, cases, joint_seed, advance, own_tables=False)
    if plan.sharing == "identical" or _is_total(plan):
        # At δ = 1 the joint prior leaves identical structures alone, and the score is that of the paper's TSK.
        return _learn_identical(plan, cases, joint_seed, advance)
    problem = make_problem(cases, plan.criterion, plan.ess, plan.constraints)
    alone = no_sharing(cases.n_tasks, plan.log_odds)
    starts = _class_starts(plan, problem) if plan.by_classes else plan.starts
    separate = learn_separately(problem, alone, starts, plan.effort, seeds, plan.n_jobs, advance)
    if plan.sharing == "none" or cases.n_tasks == 1 or _is_nothing(plan):
        return Outcome(*separate, 0.0)
    ends = [separate.structures]
    if plan.effort.tabu or plan.effort.restarts or _is_partly_total(plan):
        # Tasks searched separately may all miss what they would find as one; a plain climb has the paper's start alone.
        ends.append(_learn_identical(plan, cases, joint_seed, advance).structures)
    if _is_partly_total(plan):
        # Separate structures may differ where they must not: no score could compare them with any other.
        ends = ends[1:]
    if plan.learnt:
        tried = [_learn_with_strength(plan, problem, end, joint_seed, advance) for end in ends]
        return max(tried, key=lambda one: one[1])[0]
    together = learn_together(problem, _prior(plan, cases), ends, plan.effort, joint_seed, advance)
    return Outcome(*together, float(plan.strengths.max()))


def _class_starts(plan: Plan, problem: Problem) -> Structures:
    """A member of the class that a search over equivalence classes finds for each task, from its own start."""

    def one(t: int) -> NDArray[np.bool_]:
        start = plan.starts[t]
        return search_class(problem, t, start if start.any() else None).adjacency

    found = Parallel(n_jobs=plan.n_jobs, prefer="threads")(delayed(one)(t) for t in range(problem.cases.n_tasks))
    return np.stack(found)


def _is_total(plan: Plan) -> bool:
    """Whether all structures must be identical."""
    every = plan.task_strengths is None and bool(np.isinf(plan.strengths).all())
    return plan.sharing == "joint" and every and all(cost > 0 for cost in plan.costs.values())


def _is_partly_total(plan: Plan) -> bool:
    """Whether some differences between structures must not be."""
    between = plan.strengths if plan.task_strengths is None else plan.task_strengths
    return bool(np.isinf(between).any())


def _is_nothing(plan: Plan) -> bool:
    between = plan.strengths if plan.task_strengths is None else plan.task_strengths
    return not plan.learnt and not between.any()


def _prior(plan: Plan, cases: Cases, factor: float = 1.0) -> Prior:
    return joint_prior(
        plan.prior, factor * plan.strengths, cases.n_tasks, plan.log_odds, plan.costs, plan.task_strengths
    )


def _learn_as_one(plan: Plan, cases: Cases, seed: int, advance: Callable[[int], None], own_tables: bool) -> Outcome:
    """Learn one structure from the rows of all tasks, which have the same variables.

    With tables of their own, the rows are counted task by task, as if the task were a parent of every variable: the
    paper's TSK (section 3.1). With n_tasks · ess for all, each task's part of a family's prior is then what it would be
    for the task alone, so that BDeu and K2 are the sums of the tasks' scores. Without, rows are simply pooled.
    """
    n, k = cases.n_variables, cases.n_tasks
    columns = [
        cases.codes[start : start + rows * n].reshape(n, rows).T
        for start, rows in zip(cases.code_start, cases.n_rows, strict=True)
    ]
    weights = [cases.weights] if len(cases.weights) else None
    strata = [np.repeat(np.arange(k, dtype=np.int32), cases.n_rows)] if own_tables else None
    table = lay_out([np.concatenate(columns)], cases.cards, None, weights, strata)
    problem = make_problem(table, plan.criterion, plan.ess * (k if own_tables else 1), plan.constraints)
    start = _class_starts(plan, problem) if plan.by_classes else plan.starts[:1]
    found = learn_together(problem, no_sharing(1, plan.log_odds), [start], plan.effort, seed, advance)
    return Outcome(np.repeat(found.structures, k, axis=0), found.score, math.inf)


def _learn_identical(plan: Plan, cases: Cases, seed: int, advance: Callable[[int], None]) -> Outcome:
    """Let all tasks have one structure and tables of their own.

    Where a task lacks a variable the construction with a task variable does not apply, and the joint search under an
    infinite penalty does the same: each task's structure is the common one without the variables it lacks.
    """
    if cases.present.all() and (plan.starts == plan.starts[0]).all():
        return _learn_as_one(plan, cases, seed, advance, own_tables=True)
    # BIC counts the rows of all tasks, as it does where the task is a variable.
    n_rows = np.full(cases.n_tasks, cases.total_weight.sum())
    problem = make_problem(cases, plan.criterion, plan.ess, plan.constraints, n_rows)
    n = cases.n_variables
    prior = joint_prior("edit", np.full((n, n), math.inf), cases.n_tasks, plan.log_odds, {})
    both = cases.present[:, :, None] & cases.present[:, None, :]
    start = (plan.constraints.required | plan.starts.all(axis=0)) & both
    found = learn_together(problem, prior, [start], plan.effort, seed, advance)
    return Outcome(*found, math.inf)


def _learn_with_strength(
    plan: Plan, problem: Problem, start: Structures, seed: int, advance: Callable[[int], None]
) -> tuple[Outcome, float]:
    """Improve structures and the prior's strength in turn (see ``penalty``); also give their joint log posterior."""
    cases = problem.cases
    costs = edit_costs(**plan.costs) if plan.prior == "edit" else pair_costs(**plan.costs)
    divisor = 1.0 if plan.prior == "edit" else max(cases.n_tasks - 1, 1)
    varied = cases.present & (cases.cards > 1)  # what is constant has no arcs to differ in
    both = np.triu(varied.T.astype(int) @ varied.astype(int), 1)
    kinds, numbers = np.unique(np.stack([both, plan.strengths], axis=-1)[both > 1], axis=0, return_counts=True)
    spectra = [pair_spectrum(plan.prior, int(k), costs, divisor / factor) for k, factor in kinds if factor > 0]
    numbers = numbers[kinds[:, 1] > 0]
    structures = start
    for _ in range(_MOST_TURNS):
        cost = total_cost(plan.prior, costs, structures, cases.present, plan.strengths) / divisor
        strength = best_strength(cost, spectra, numbers.tolist())
        found = learn_together(problem, _prior(plan, cases, strength), [structures], plan.effort, seed, advance)
        if np.array_equal(found.structures, structures):
            break
        structures = found.structures
    else:
        warnings.warn(
            f"Structures and the penalty's strength were still changing after {_MOST_TURNS} turns: the last of them "
            "are kept. Give penalty a number to compare with.",
            ConvergenceWarning,
            stacklevel=2,
        )
    # The score has the penalty already; what is left of λ's posterior is its prior and the normaliser.
    return Outcome(*found, strength), found.score + log_strength_posterior(strength, 0.0, spectra, numbers.tolist())


def total_cost(
    kind: str,
    costs: NDArray[np.float64],
    structures: Structures,
    present: NDArray[np.bool_],
    factors: NDArray[np.float64],
) -> float:
    """What the structures' differences cost, over all pairs of variables, each among the tasks that have the pair."""
    total = 0.0
    states = structures + 2 * structures.transpose(0, 2, 1)
    for i, j in np.argwhere(np.triu(states.max(axis=0), 1)):
        its = states[present[:, i] & present[:, j], i, j].astype(np.int64)
        total += factors[i, j] * (edits(its, costs) if kind == "edit" else paired_penalty(its, costs))
    return float(total)
