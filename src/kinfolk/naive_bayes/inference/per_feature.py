"""Clustered naive Bayes with a partition of the tasks for every feature, which thesis section 2.5 argues against.

Each feature f has its own z^f ~ CRP(a), shared over labels, and θ^f_{c,y} ~ Dir(β) for its clusters. Given labelled
rows, features are independent a posteriori, and the next row of task u has

    p(x, y | u, D) = φ_{u,y} ∏_f Σ_k w^f_{u,k} θ^f_{k,y,x_f},

w^f_{u,k} being the probability that u is in block k of feature f and θ^f_k that block's posterior mean. The product of
averages makes one block per task, with averaged rates, exact; the same holds for a task never seen. Unlabelled rows
would tie features together; they are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence, Kind
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut
from kinfolk.naive_bayes.model.averaged_counts import averaged_counts
from kinfolk.naive_bayes.model.fitted import Entry, Fitted, Problem, make_blocks
from kinfolk.partition.agreement import central_partition
from kinfolk.tasks.statistics import Layout, Rows, no_rows

# Beyond this a similarity of all pairs is not kept; most probable partitions then tell who shares with whom.
_MOST_SIMILARITY_TASKS = 5_000


def fit_per_feature(
    problem: Problem, infer: Callable[[Problem, int], Fitted], seed: int, n_jobs: int | None = None
) -> tuple[Fitted, list[Fitted]]:
    """Infer every feature's partition by itself, from its own counts; what was found, joined and feature by feature.

    ``infer`` fits a problem of one feature with a seed: by hierarchical clustering, say, or exactly. The cost is that
    of so many clusterings, each on one feature's cells.

    What is joined: ``partitions`` (1, features, tasks) holds each feature's most probable partition; similarity is the
    average over features, the probability that two tasks share a feature picked blindly (that they share all of them
    vanishes as features grow in number, whoever the tasks are); ``partition`` is the features' partition that agrees
    best with those of the others. Evidence adds up, with the labels' own counted once; it is None if any feature's is.
    """
    n_features = len(problem.statistics.layout.n_values)
    seeds = [int(part.generate_state(1)[0] >> 1) for part in np.random.SeedSequence(seed).spawn(n_features)]
    parts = [feature_problem(problem, f) for f in range(n_features)]
    by_feature = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(infer)(part, part_seed) for part, part_seed in zip(parts, seeds, strict=True)
    )
    n_tasks = len(problem.statistics.tasks)
    counts, sizes = _joined(problem, parts, by_feature)
    own_rates = problem.log_rates(problem.statistics.label_counts)
    no_rates = problem.log_rates(np.zeros_like(problem.label_prior))
    owners = np.arange(n_tasks + 1)
    entry = Entry(owners, owners, np.zeros(n_tasks + 1), np.concatenate([own_rates, no_rates[None]]))
    partitions = np.array([fitted.partition for fitted in by_feature])
    similarity = None
    if n_tasks <= _MOST_SIMILARITY_TASKS:
        similarity = sum(fitted.similarity() for fitted in by_feature) / n_features
    joined = Fitted(
        blocks=make_blocks(problem, counts, sizes, [entry]),
        partition=central_partition(partitions),
        evidence=_added_up(problem, [fitted.evidence for fitted in by_feature]),
        partitions=partitions[None],
        co_clustering=similarity,
        convergence=_joined_convergence([fitted.convergence for fitted in by_feature]),
    )
    return joined, by_feature


def _joined_convergence(parts: list[Convergence | None]) -> Convergence | None:
    """What is known of every feature's chains, under names that tell them apart; None where nothing was sampled."""
    sampled = [(f, part) for f, part in enumerate(parts) if part is not None]
    if not sampled:
        return None
    return Convergence(
        {f"{name} of feature {f}": value for f, part in sampled for name, value in part.r_hat.items()},
        {f"{name} of feature {f}": value for f, part in sampled for name, value in part.ess.items()},
    )


def leave_out_per_feature(problem: Problem, rows: Rows, leave: Callable[[int, Problem, Rows], LeftOut]) -> LeftOut:
    """What is said of each labelled row by all others, in the form that is known of one partition for all features.

    ``leave`` takes rows out of one feature's fit. What the row takes with it of the knowledge about a feature's blocks
    is that feature's own, so that blocks are summed over feature by feature.
    """
    parts = []
    for f in range(len(problem.statistics.layout.n_values)):
        codes = np.ascontiguousarray(rows.codes[:, [f]])
        parts.append(leave(f, feature_problem(problem, f), rows._replace(codes=codes)))
    n_rows = len(rows.labels)
    log_fit = np.stack([_summed_over_blocks(part) for part in parts], axis=1)
    return parts[0]._replace(start=np.arange(n_rows + 1), log_weight=np.zeros(n_rows), log_fit=log_fit)


def _summed_over_blocks(left_out: LeftOut) -> NDArray[np.float64]:
    """Log likelihood of each row's only feature under each label (rows, labels)."""
    first = left_out.start[:-1]
    log_fit = left_out.log_fit[:, 0] + left_out.log_weight[:, None]
    highest = np.maximum.reduceat(log_fit, first, axis=0)
    return np.asarray(highest + np.log(np.add.reduceat(np.exp(log_fit - highest[left_out.row]), first, axis=0)))


def feature_problem(problem: Problem, feature: int) -> Problem:
    """The same tasks and labels with one feature alone, unlabelled rows left out."""
    statistics = problem.statistics
    cells = feature_cells(statistics.layout, feature)
    layout = Layout(statistics.layout.n_labels, statistics.layout.n_values[[feature]])
    counts = np.ascontiguousarray(statistics.feature_counts[:, cells])
    return problem._replace(
        statistics=statistics._replace(layout=layout, feature_counts=counts),
        unlabelled=no_rows(layout),
        feature_prior=problem.feature_prior[cells],
        votes=None if problem.votes is None else problem.votes[cells],
    )


def feature_cells(layout: Layout, feature: int) -> NDArray[np.int64]:
    """The cells of a feature, label after label."""
    values = np.arange(layout.offsets[feature], layout.offsets[feature + 1])
    return np.asarray((np.arange(layout.n_labels)[:, None] * layout.width + values).ravel())


def _joined(
    problem: Problem, parts: list[Problem], by_feature: list[Fitted]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Counts and sizes of one block per task, and of one for a new task.

    Sizes are the numbers of tasks that share with each on average over features, rounded up.
    """
    layout = problem.statistics.layout
    n_owners = len(problem.statistics.tasks) + 1
    counts, size = np.empty((n_owners, layout.n_cells)), np.zeros(n_owners)
    for f, (part, fitted) in enumerate(zip(parts, by_feature, strict=True)):
        blocks, mixture, cells = fitted.blocks, fitted.blocks.mixture, feature_cells(layout, f)
        group_start = part.statistics.layout.group_start
        for owner in range(n_owners):
            entries = mixture.entries(owner)
            block, weight = mixture.block[entries], np.exp(mixture.log_weight[entries])
            counts[owner, cells] = averaged_counts(blocks.counts[block], weight, part.feature_prior, group_start)
            size[owner] += weight @ blocks.sizes[block] / weight.sum() / len(parts)
    return counts, np.ceil(size - 1e-9).astype(np.int64)


def _added_up(problem: Problem, found: list[Evidence | None]) -> Evidence | None:
    """Evidence of all features, each of which has counted the labels' own."""
    every = [evidence for evidence in found if evidence is not None]
    if len(every) < len(found):
        return None
    labels = problem.log_label_evidence()
    value = labels + sum(evidence.value - labels for evidence in every)
    kinds: dict[Kind, None] = {evidence.kind: None for evidence in every}
    kind: Kind = "estimate" if "estimate" in kinds else "lower bound" if "lower bound" in kinds else "exact"
    return Evidence(float(value), kind, float(np.sqrt(sum(evidence.error**2 for evidence in every))))
