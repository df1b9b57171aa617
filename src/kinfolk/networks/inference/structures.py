"""Structures of all tasks: each by itself, one for all, or held together by a prior (sections 3.1 and 3.2).

In the papers: Niculescu-Mizil and Caruana (2012), eq. (3)–(5), section 3.1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from joblib import Parallel, effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.checkpoints import Checkpoint
from kinfolk.interrupts import asked
from kinfolk.networks.inference.classes import search_class
from kinfolk.networks.inference.climb import Effort, climb, search
from kinfolk.networks.inference.orders import search_orders
from kinfolk.networks.model.data import Data, lay_out
from kinfolk.networks.model.family_scores import TIE, Found, Problem, make_problem
from kinfolk.networks.model.network import Constraints, Structures
from kinfolk.networks.model.priors import (
    Prior,
    best_strength,
    edit_costs,
    joint_prior,
    log_strength_posterior,
    no_sharing,
    pair_costs,
    pair_spectrum,
    total_cost,
)
from kinfolk.networks.model.scores.bdeu import CRITERION as BDEU
from kinfolk.networks.model.scores.criterion import Criterion
from kinfolk.pieces import delayed

_MOST_TURNS = 20


class Hyper(NamedTuple):
    """How strongly structures are held together: λ of every pair of variables, and of tasks where these have their own.

    Where ``learnt``, they are factors on one λ that is to be inferred. ``strength`` is that λ, or the highest that was
    given; NaN where it is not known yet. ``arc_log_odds`` is what every arc adds to log P(G) of one structure, beside
    what is believed of single arcs; where ``arcs_learnt``, it is where learning it begins.
    """

    strengths: NDArray[np.float64]
    task_strengths: NDArray[np.float64] | None
    learnt: bool
    strength: float = math.nan
    arc_log_odds: float = 0.0
    arcs_learnt: bool = False

    def fixed(self, strength: float) -> Hyper:
        """The same with a known λ; a pair with factor 0 is never held together, however strong the others are."""
        factors = self.strengths
        scaled = np.where(factors == 0, 0.0, np.where(factors == 0, 1.0, factors) * strength)
        return self._replace(strengths=scaled, learnt=False, strength=strength)


class Options(NamedTuple):
    """All that decides how networks are learnt, hyper-parameters aside.

    ``log_odds[i, j]`` is what log P(G) of one structure gains by the arc i → j. ``starts`` are structures of every task
    to begin with; ``first`` says which search each structure's own climb goes on from: "orders", "classes" or none,
    "climb". ``validation`` is the share of rows
    held out to choose λ by, 0 where it is not chosen so; ``bootstrap`` the number of resamples.
    """

    sharing: str
    prior: str
    costs: Mapping[str, float]
    criterion: Criterion
    ess: float
    constraints: Constraints
    log_odds: NDArray[np.float64]
    starts: Structures
    effort: Effort
    first: str
    share_tables: bool = False
    validation: float = 0.0
    bootstrap: int = 0
    n_jobs: int | None = None
    checkpoint: Checkpoint = Checkpoint()

    def kept(self, what: str, hyper: Hyper, data: Data, seed: int) -> Checkpoint:
        """Where work is kept that depends on all of these."""
        rows = data.cards, data.codes, data.present, data.weights
        beside = ("criterion", "n_jobs", "checkpoint")
        own = {name: value for name, value in self._asdict().items() if name not in beside}
        return self.checkpoint.of(what, self.criterion.name, own, hyper, rows, seed)


class Outcome(NamedTuple):
    """Structures of all tasks, their log score up to the prior's normaliser, and the λ that held them together."""

    structures: Structures
    score: float
    strength: float
    arc_log_odds: float = 0.0


def learn_structures(options: Options, hyper: Hyper, data: Data, seed: int) -> Outcome:
    """Learn the structures of all tasks from complete rows, and how common arcs are where that is to be learnt.

    Given structures with m arcs in the mean, of N pairs of variables that might have one, the odds o of an arc maximise
    m log o − N log(1 + 2o), acyclicity left aside, with one pair more that has an arc and one that has none. Structures
    and odds are found in turn until the structures stay.

    Where Ctrl-C ends searches early, the best structures by then are left: those to begin with, of tasks that were not
    looked at.
    """
    rows = data.cards, data.codes, data.present, data.weights
    keep = options.checkpoint.of("structures", rows, options.criterion.name, options.ess, options.constraints)
    options = options._replace(checkpoint=keep)
    n_pairs = float(np.triu(options.constraints.allowed | options.constraints.allowed.T, 1).sum())
    seen: list[bytes] = []
    for _ in range(_MOST_TURNS):
        outcome = _learn_given_odds(options, hyper, data, seed)._replace(arc_log_odds=hyper.arc_log_odds)
        if not hyper.arcs_learnt or asked() or outcome.structures.tobytes() in seen:
            return outcome
        seen.append(outcome.structures.tobytes())
        m = float(outcome.structures.sum(axis=(1, 2)).mean())
        hyper = hyper._replace(arc_log_odds=math.log((m + 1) / (2 * (n_pairs - m + 1))))
    _warn_unsettled("the odds of an arc", "structure_prior")
    return outcome


def _learn_given_odds(options: Options, hyper: Hyper, data: Data, seed: int) -> Outcome:
    n_tasks = len(data.codes)
    options = options._replace(log_odds=options.log_odds + hyper.arc_log_odds)
    rng = np.random.default_rng(seed)
    seeds = rng.integers(1 << 32, size=n_tasks, dtype=np.uint32)
    joint_seed = int(rng.integers(1 << 32))
    if options.sharing == "pooled":
        return _learn_as_one(options, data, joint_seed, own_tables=False)
    between = hyper.strengths if hyper.task_strengths is None else hyper.task_strengths
    all_alike = hyper.task_strengths is None and bool(np.isinf(between).all()) and all(options.costs.values())
    if options.sharing == "identical" or (options.sharing == "joint" and all_alike):
        # At δ = 1 the joint prior leaves identical structures alone, and the score is that of the paper's TSK.
        return _learn_identical(options, data, joint_seed)
    cases = lay_out(data.codes, data.cards, data.present, data.weights)
    problem = make_problem(cases, options.criterion, options.ess, options.constraints)
    alone = no_sharing(n_tasks, options.log_odds)
    starts = _better_starts(options, problem, alone)
    separate = learn_separately(problem, alone, starts, options.effort, seeds, options.n_jobs, options.checkpoint)
    if options.sharing == "none" or n_tasks == 1 or not (hyper.learnt or between.any()):
        return separate
    ends, partly_alike = [separate.structures], bool(np.isinf(between).any())
    if options.effort.tabu or options.effort.restarts or partly_alike:
        # Tasks searched separately may all miss what they would find as one; a plain climb has the paper's start alone.
        ends.append(_learn_identical(options, data, joint_seed).structures)
    if partly_alike:
        # Separate structures may differ where they must not: no score could compare them with any other.
        ends = ends[1:]
    if hyper.learnt:
        tried = [_learn_with_strength(options, hyper, problem, end, joint_seed) for end in ends]
        return max(tried, key=lambda one: one[1])[0]
    prior = joint_prior(options.prior, hyper.strengths, n_tasks, options.log_odds, options.costs, hyper.task_strengths)
    found = learn_together(problem, prior, ends, options.effort, joint_seed, options.checkpoint)
    found = _through_orders(options, problem, prior, found, joint_seed)
    return Outcome(found.adjacency, found.score, float(hyper.strengths.max()))


def learn_separately(
    problem: Problem,
    prior: Prior,
    starts: Structures,
    effort: Effort,
    seeds: NDArray[np.uint32],
    n_jobs: int | None = None,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
) -> Outcome:
    """Learn every task's structure by itself; threads share the work, and the result does not depend on how many."""

    def one(t: int) -> Found:
        place = checkpoint.place("alone", t, prior, starts[t], effort, seeds[t])
        return search(problem, prior, np.array([t]), starts[t : t + 1], effort, np.random.default_rng(seeds[t]), place)

    # A pool for one thread would take longer than a small search.
    if effective_n_jobs(n_jobs) == 1:
        found = [one(t) for t in range(len(starts))]
    else:
        found = Parallel(n_jobs=n_jobs, prefer="threads", max_nbytes=None)(delayed(one)(t) for t in range(len(starts)))
    return Outcome(np.concatenate([one.adjacency for one in found]), sum(one.score for one in found), 0.0)


def learn_together(
    problem: Problem,
    prior: Prior,
    starts: list[Structures],
    effort: Effort,
    seed: int,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
) -> Found:
    """Search over all tasks' structures at once, from each of several starts; of equal ends the first is kept."""
    members = np.arange(len(starts[0]))
    ends = []
    for start in starts:
        place = checkpoint.place("together", prior, start, effort, seed)
        ends.append(search(problem, prior, members, start, effort, np.random.default_rng(seed), place))
    best = ends[0]
    for end in ends[1:]:
        if end.score > best.score + TIE:
            best = end
    return best


def _through_orders(options: Options, problem: Problem, prior: Prior, best: Found, seed: int) -> Found:
    """Search over orders that all tasks have in common, and from what that finds again; the better of the two ends."""
    members = np.arange(len(best.adjacency))
    if options.first != "orders" or asked():
        return best
    keep, n_disturbed = options.checkpoint, options.effort.orders // len(members)
    found = keep.done(
        lambda: search_orders(problem, prior, members, best.adjacency, n_disturbed),
        *("orders", prior, best.adjacency, n_disturbed),
    )
    return learn_together(problem, prior, [best.adjacency, found.adjacency], options.effort, seed, keep)


def _better_starts(options: Options, problem: Problem, alone: Prior) -> Structures:
    """A structure for each task to begin the last search with: what ``options.first`` finds from the given one."""
    tasks, n_disturbed = range(len(problem.cases.n_rows)), options.effort.orders

    def one(t: int) -> NDArray[np.bool_]:
        own = t, options.starts[t], options.first, alone, n_disturbed
        return options.checkpoint.done(lambda: find(t), "start", *own)

    def find(t: int) -> NDArray[np.bool_]:
        start = options.starts[t]
        if asked():
            return np.asarray(start)
        if options.first == "classes":
            return search_class(problem, t, start if start.any() else None, alone.log_odds).adjacency
        climbed = climb(problem, alone, np.array([t]), start[None], 0)
        found = search_orders(problem, alone, np.array([t]), climbed.adjacency, n_disturbed)
        better: NDArray[np.bool_] = (found if found.score > climbed.score + TIE else climbed).adjacency[0]
        return better

    if options.first == "climb":
        return options.starts
    return np.stack(Parallel(n_jobs=options.n_jobs, prefer="threads", max_nbytes=None)(delayed(one)(t) for t in tasks))


def _learn_as_one(options: Options, data: Data, seed: int, own_tables: bool) -> Outcome:
    """Learn one structure from the rows of all tasks, which have the same variables.

    With tables of their own, the rows are counted task by task, as if the task were a parent of every variable: the
    paper's TSK (section 3.1). With n_tasks · ess for all, each task's part of a family's prior is then what it would be
    for the task alone, so that BDeu and K2 are the sums of the tasks' scores. A hierarchical score takes the counts of
    all tasks together. Without tables of their own, rows are simply pooled.
    """
    k = len(data.codes)
    apart = own_tables and not options.criterion.hierarchical
    weights = None if data.weights is None else [np.concatenate(data.weights)]
    task = [np.repeat(np.arange(k, dtype=np.int32), [len(codes) for codes in data.codes])] if own_tables else None
    rows = [np.concatenate(data.codes)]
    cases = lay_out(rows, data.cards, None, weights, strata=task if apart else None, parts=None if apart else task)
    problem = make_problem(cases, options.criterion, options.ess * (k if apart else 1), options.constraints)
    alone = no_sharing(1, options.log_odds)
    keep = options.checkpoint.of("as one", own_tables, options.criterion.name)
    one = options._replace(starts=options.starts[:1], checkpoint=keep)
    if options.criterion.hierarchical and options.first == "orders":
        # What BDeu finds of pooled rows and of tasks by themselves is there in a tenth of the time, and near.
        bdeu, plain = options._replace(criterion=BDEU), options.effort._replace(tabu=0, restarts=0)
        ends = [_learn_as_one(bdeu, data, seed, own).structures[:1] for own in (True, False)]
        nearest = learn_together(problem, alone, [one.starts, *ends], plain, seed, keep)
        one = one._replace(starts=nearest.adjacency)
    start = _better_starts(one, problem, alone)
    found = learn_together(problem, alone, [start], options.effort, seed, keep)
    return Outcome(np.repeat(found.adjacency, k, axis=0), found.score, math.inf)


def _learn_identical(options: Options, data: Data, seed: int) -> Outcome:
    """Let all tasks have one structure and tables of their own.

    Where a task lacks a variable the construction with a task variable does not apply, and the joint search under an
    infinite penalty does the same: each task's structure is the common one without the variables it lacks.
    """
    if data.present.all() and (options.starts == options.starts[0]).all():
        return _learn_as_one(options, data, seed, own_tables=True)
    k, n = data.present.shape
    cases = lay_out(data.codes, data.cards, data.present, data.weights)
    # BIC counts the rows of all tasks, as it does where the task is a variable.
    n_rows = np.full(k, cases.total_weight.sum())
    problem = make_problem(cases, options.criterion, options.ess, options.constraints, n_rows)
    prior = joint_prior("edit", np.full((n, n), math.inf), k, options.log_odds, {})
    both = data.present[:, :, None] & data.present[:, None, :]
    start = (options.constraints.required | options.starts.all(axis=0)) & both
    found = learn_together(problem, prior, [start], options.effort, seed, options.checkpoint.of("identical"))
    return Outcome(found.adjacency, found.score, math.inf)


def _learn_with_strength(
    options: Options, hyper: Hyper, problem: Problem, start: Structures, seed: int
) -> tuple[Outcome, float]:
    """Improve structures and the prior's strength in turn (see ``priors``); also give their joint log posterior."""
    cases, factors = problem.cases, hyper.strengths
    n_tasks = len(cases.n_rows)
    costs = edit_costs(**options.costs) if options.prior == "edit" else pair_costs(**options.costs)
    divisor = 1.0 if options.prior == "edit" else max(n_tasks - 1, 1)
    both = np.triu(cases.present.T.astype(int) @ cases.present.astype(int), 1)
    both[~(problem.constraints.allowed | problem.constraints.allowed.T)] = 0  # no arcs to differ in
    kinds, numbers = np.unique(np.stack([both, factors], axis=-1)[both > 1], axis=0, return_counts=True)
    spectra = [pair_spectrum(options.prior, int(k), costs, divisor / factor) for k, factor in kinds if factor > 0]
    numbers = numbers[kinds[:, 1] > 0]
    structures = start
    for _ in range(_MOST_TURNS):
        cost = total_cost(options.prior, costs, structures, cases.present, factors) / divisor
        strength = best_strength(cost, spectra, numbers.tolist())
        # A search's score has the penalty already; what is left of λ's posterior is its prior and the normaliser.
        left = log_strength_posterior(strength, 0.0, spectra, numbers.tolist())
        prior = joint_prior(options.prior, strength * factors, n_tasks, options.log_odds, options.costs)
        found = learn_together(problem, prior, [structures], options.effort, seed, options.checkpoint)
        if np.array_equal(found.adjacency, structures):
            found = _through_orders(options, problem, prior, found, seed)
            if np.array_equal(found.adjacency, structures):
                break
        structures = found.adjacency
    else:
        _warn_unsettled("the penalty's strength", "penalty")
    return Outcome(found.adjacency, found.score, strength), found.score + left


def _warn_unsettled(what: str, parameter: str) -> None:
    warnings.warn(
        f"Structures and {what} were still changing after {_MOST_TURNS} turns: the last of them are kept. Give "
        f"{parameter} a number to compare with.",
        ConvergenceWarning,
        stacklevel=3,
    )
