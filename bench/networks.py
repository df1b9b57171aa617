"""Structure learning: one hill climb against PyBNesian and pyAgrum, and how joint search grows with tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyagrum
import pybnesian

from bench.measure import Comparison, once, peak_gib
from kinfolk import BayesNets
from kinfolk.datasets import load_network, make_random_network, make_related_networks, sample_tasks
from kinfolk.networks.inference.climb import Effort, climb
from kinfolk.networks.inference.structures import learn_separately
from kinfolk.networks.model.data import lay_out
from kinfolk.networks.model.family_scores import make_problem
from kinfolk.networks.model.network import Constraints, Network
from kinfolk.networks.model.priors import joint_prior, no_sharing
from kinfolk.networks.model.scores import CRITERIA

WANTED = "at least 3×"
# From a frame to structure and tables, against the fastest peer, by the number of rows.
WANTED_OF_FASTEST = {1_000: "at least 6×", 10_000: "at least 10×"}
PLAIN = Effort(tabu=0, restarts=0, changes=0)
SEEDS = np.zeros(100, dtype=np.uint32)


class Cost(NamedTuple):
    """Seconds by the clock and seconds of the processor, each the least of several runs."""

    wall: float
    cpu: float


def cost_of(job: Callable[[], object], repeats: int = 7) -> Cost:
    costs = []
    for _ in range(repeats):
        wall, cpu = perf_counter(), process_time()
        job()
        costs.append(Cost(perf_counter() - wall, process_time() - cpu))
    return Cost(min(c.wall for c in costs), min(c.cpu for c in costs))


def known_network() -> tuple[str, Network]:
    """ALARM where its file is there, else a made-up network of its size."""
    if "KINFOLK_DATA" in os.environ:
        return "ALARM", load_network("alarm")
    return "a made-up network of ALARM's size", make_random_network(37, n_arcs=46, random_state=0)


def compare(
    job: str, peer: str, ours: Cost, theirs: Cost, first: float | None = None, wanted: str = WANTED
) -> Comparison:
    cpu = f"processor time {ours.cpu * 1e3:.1f} ms against {theirs.cpu * 1e3:.1f} ms"
    return Comparison(f"{job}; {cpu}", peer, ours.wall, theirs.wall, wanted, first)


def plain_frame(network: Network, n_rows: int) -> Any:
    """Rows as a pandas frame of categories, which both peers take."""
    codes = network.sample(n_rows, np.random.default_rng(0))
    columns = {}
    for v, (name, states) in enumerate(zip(network.variables, network.states, strict=True)):
        columns[name] = pd.Categorical.from_codes(codes[:, v], pd.Index(list(map(str, states)), dtype=object))
    return pd.DataFrame(columns)


def hill_climbs(n_rows: int) -> list[Comparison]:
    """From a frame to structure and tables; then the search by itself, from what each library prepares."""
    name, network = known_network()
    frame = plain_frame(network, n_rows)
    variables = list(network.variables)
    model = BayesNets(sharing="none", tabu=0, structure_prior="uniform")  # as the peers have it
    first = once(lambda: model.fit(frame))
    whole = cost_of(lambda: model.fit(frame))

    def pybnesian_job(score: Any = None) -> None:
        prepared = pybnesian.BDe(frame, iss=1) if score is None else score
        found = pybnesian.GreedyHillClimbing().estimate(
            pybnesian.ArcOperatorSet(), prepared, pybnesian.DiscreteBN(variables)
        )
        if score is None:
            found.fit(frame)

    def learner() -> Any:
        prepared = pyagrum.BNLearner(frame)
        prepared.useScoreBDeu()
        prepared.useGreedyHillClimbing()
        prepared.setNumberOfThreads(1)
        return prepared

    job = f"hill climb on {name}, {n_rows:,} rows"
    from_frame = f"{job}: frame to structure and tables"
    results = [
        compare(from_frame, "PyBNesian", whole, cost_of(pybnesian_job), first, WANTED_OF_FASTEST.get(n_rows, WANTED)),
        compare(from_frame, "pyAgrum", whole, cost_of(lambda: learner().learnBN(), repeats=3)),
    ]
    n = len(variables)
    cases = lay_out([np.stack([frame[v].cat.codes for v in variables], axis=1)], network.cards)
    constraints = Constraints(~np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool), n)

    def search() -> None:
        problem = make_problem(cases, CRITERIA["bdeu"], 1.0, constraints)
        learn_separately(problem, no_sharing(1, np.zeros((n, n))), np.zeros((1, n, n), dtype=bool), PLAIN, SEEDS[:1])

    prepared_score, prepared_learner = pybnesian.BDe(frame, iss=1), learner()
    alone = cost_of(search)
    return [
        *results,
        compare(f"{job}: search alone", "PyBNesian", alone, cost_of(lambda: pybnesian_job(prepared_score))),
        compare(f"{job}: search alone", "pyAgrum", alone, cost_of(prepared_learner.learnDAG, repeats=3)),
    ]


def joint_growth() -> list[Comparison]:
    """Joint search from the separate solutions: its cost beside theirs, and a step's cost as tasks grow."""
    name, network = known_network()
    results = []
    for n_tasks in (5, 10, 20, 50, 100):
        tasks = make_related_networks(network, n_tasks, p_delete=0.05, random_state=0)
        n = len(network.variables)
        codes = [task.sample(1_000, np.random.default_rng(t)) for t, task in enumerate(tasks)]
        cases = lay_out(codes, network.cards)
        constraints = Constraints(~np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool), n)
        problem = make_problem(cases, CRITERIA["bdeu"], 1.0, constraints)
        zero, empty = np.zeros((n, n)), np.zeros((n_tasks, n, n), dtype=bool)
        start = perf_counter()
        separate = learn_separately(problem, no_sharing(n_tasks, zero), empty, PLAIN, SEEDS[:n_tasks])
        alone = perf_counter() - start
        prior = joint_prior("edit", np.full((n, n), 5.0), n_tasks, zero, {})
        start = perf_counter()
        n_steps = climb(problem, prior, np.arange(n_tasks), separate.structures, 0).n_steps
        joint = perf_counter() - start
        step = joint / max(n_steps, 1) * 1e6
        job = (
            f"joint search over {n_tasks} tasks of {name} from the separate solutions: {n_steps} steps, "
            f"{step:.0f} µs a step, {step / n_tasks:.1f} µs a step and task; "
            f"{joint / alone:.2f} times the separate climbs ({alone * 1e3:.0f} ms)"
        )
        results.append(Comparison(job, "", joint, None, "at most 2 times" if n_tasks == 5 else "linear in tasks"))
    return results


def large_network() -> list[Comparison]:
    """The 223 variables of andes, where its file is there."""
    if "KINFOLK_DATA" not in os.environ:
        return []
    tasks = make_related_networks("andes", 5, p_delete=0.05, random_state=0)
    tables = sample_tasks(tasks, 2_000, random_state=0)
    seconds = once(lambda: BayesNets(random_state=0, n_jobs=2).fit(tables))
    peak = peak_gib()
    job = f"BayesNets on 5 tasks of andes (223 variables), 2,000 rows each, two threads: peak {peak:.1f} GiB"
    return [Comparison(job, "", seconds, None, "under 2 min, 2 GiB")]


def run() -> list[Comparison]:
    return [*hill_climbs(1_000), *hill_climbs(10_000), *joint_growth(), *large_network()]
