"""Clustered naive Bayes with a partition of the tasks for every feature, which thesis section 2.5 argues against.

Each feature f has its own z^f ~ CRP(a), shared over labels, and θ^f_{c,y} ~ Dir(β) for its clusters. Given labelled
rows, features are independent a posteriori, and the next row of task u has

    p(x, y | u, D) = φ_{u,y} ∏_f Σ_k w^f_{u,k} θ^f_{k,y,x_f},

w^f_{u,k} being the probability that u is in block k of feature f and θ^f_k that block's posterior mean. The product of
averages makes one block per task, with averaged rates, exact; the same holds for a task never seen. Unlabelled rows
would tie features together; they are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence, Kind
from kinfolk.interrupts import stops_safely
from kinfolk.naive_bayes.inference.clustered import learn_from_blocks
from kinfolk.naive_bayes.inference.fitting import LeftOut, SharingModel
from kinfolk.naive_bayes.inference.options import Effort, Options
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, Memberships, TrainingData, make_blocks
from kinfolk.partition.agreement import central_partition
from kinfolk.pieces import delayed
from kinfolk.tasks.statistics import Layout, Rows, no_rows

# Beyond this a similarity of all pairs is not kept; most probable partitions then tell who shares with whom.
_MOST_SIMILARITY_TASKS = 5_000


class PerFeature(NamedTuple):
    """A model of tasks that cluster, for every feature by itself."""

    inner: SharingModel

    def infer(
        self, data: TrainingData, hyper: HyperParameters, options: Options, seed: int
    ) -> tuple[HyperParameters, Fitted]:
        """Infer every feature's partition by itself, from its own counts, and join what was found.

        The cost is that of so many clusterings, each on one feature's cells. What is joined: ``partitions`` (1,
        features, tasks) holds each feature's most probable partition; similarity is the average over features, the
        probability that two tasks share a feature picked blindly (that they share all of them vanishes as features grow
        in number, whoever the tasks are); ``partition`` is the features' partition that agrees best with those of the
        others. Evidence adds up, with the labels' own counted once; it is None if any feature's is.
        """
        hyper, draft = learn_from_blocks(data, hyper, options, seed)
        if draft is not None and draft.interrupted:
            raise KeyboardInterrupt
        learns = frozenset() if hyper.concentration_prior is None else frozenset({"concentration"})
        n_features = len(data.statistics.layout.n_values)
        seeds = [int(part.generate_state(1)[0] >> 1) for part in np.random.SeedSequence(seed).spawn(n_features)]
        parts = [one_feature(data, hyper, f) for f in range(n_features)]
        with stops_safely() as stop:
            found = Parallel(n_jobs=options.n_jobs, prefer="threads")(
                delayed(self.inner.infer)(
                    of_feature,
                    HyperParameters(
                        part.label_prior, part.feature_prior, part.temper, part.concentration, learns=learns
                    ),
                    options,
                    part_seed,
                )
                for (of_feature, part), part_seed in zip(parts, seeds, strict=True)
            )
        by_feature = tuple(fitted for _, fitted in found)
        drawn = [fitted.concentrations for fitted in by_feature if fitted.concentrations is not None]
        if drawn:
            hyper = hyper._replace(concentration=float(np.mean(drawn)))
        return hyper, joined(data, hyper, parts, by_feature)._replace(interrupted=stop.asked())

    def evidence(self, data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
        """Log p(X, Y), the features' added up."""
        parts = [one_feature(data, hyper, f) for f in range(len(data.statistics.layout.n_values))]
        found = [self.inner.evidence(*part, options, seed + f) for f, part in enumerate(parts)]
        return _added_up(data, hyper, found)

    def leave_out(
        self, data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options
    ) -> LeftOut:
        """What is said of each labelled row by all others, in the form that is known of one partition for all features.

        What the row takes with it of the knowledge about a feature's blocks is that feature's own, so that blocks are
        summed over feature by feature.
        """
        assert fitted.by_feature is not None
        parts = [
            self.inner.leave_out(
                *one_feature(data, hyper, f),
                of_feature,
                rows._replace(codes=np.ascontiguousarray(rows.codes[:, [f]])),
                options,
            )
            for f, of_feature in enumerate(fitted.by_feature)
        ]
        n_rows = len(rows.labels)
        log_fit = np.stack([_summed_over_blocks(part) for part in parts], axis=1)
        return parts[0]._replace(start=np.arange(n_rows + 1), log_weight=np.zeros(n_rows), log_fit=log_fit)

    def labels_given_features(
        self, data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
    ) -> Evidence:
        """Refuse: features that share no partition are not annealed together."""
        raise ValueError('conditional_evidence knows partition_per="task" with within="same" alone')


def joined(
    data: TrainingData,
    hyper: HyperParameters,
    parts: list[tuple[TrainingData, HyperParameters]],
    by_feature: tuple[Fitted, ...],
) -> Fitted:
    """What was found feature by feature, as one."""
    statistics = data.statistics
    n_tasks = len(statistics.tasks)
    counts, sizes = _joined_counts(data, parts, by_feature)
    own_rates = hyper.log_label_rates(statistics.label_counts)
    no_rates = hyper.log_label_rates(np.zeros_like(hyper.label_prior))
    tasks = np.arange(n_tasks + 1)
    memberships = Memberships(tasks, tasks, np.zeros(n_tasks + 1), np.concatenate([own_rates, no_rates[None]]))
    partitions = np.array([fitted.partition for fitted in by_feature])
    similarity = None
    if n_tasks <= _MOST_SIMILARITY_TASKS:
        similarity = np.asarray(sum(fitted.similarity() for fitted in by_feature) / len(by_feature))
    return Fitted(
        blocks=make_blocks(data, hyper, counts, sizes, [memberships]),
        partition=central_partition(partitions),
        evidence=_added_up_if_known(data, hyper, [fitted.evidence for fitted in by_feature]),
        partitions=partitions[None],
        co_clustering=similarity,
        convergence=_joined_convergence([fitted.convergence for fitted in by_feature]),
        by_feature=by_feature,
    )


def _joined_convergence(parts: list[Convergence | None]) -> Convergence | None:
    """What is known of every feature's chains, under names that tell them apart; None where nothing was sampled."""
    sampled = [(f, part) for f, part in enumerate(parts) if part is not None]
    if not sampled:
        return None
    return Convergence(
        {f"{name} of feature {f}": value for f, part in sampled for name, value in part.r_hat.items()},
        {f"{name} of feature {f}": value for f, part in sampled for name, value in part.ess.items()},
    )


def _summed_over_blocks(left_out: LeftOut) -> NDArray[np.float64]:
    """Log likelihood of each row's only feature under each label (rows, labels)."""
    first = left_out.start[:-1]
    log_fit = left_out.log_fit[:, 0] + left_out.log_weight[:, None]
    highest = np.maximum.reduceat(log_fit, first, axis=0)
    return np.asarray(highest + np.log(np.add.reduceat(np.exp(log_fit - highest[left_out.row]), first, axis=0)))


def one_feature(data: TrainingData, hyper: HyperParameters, feature: int) -> tuple[TrainingData, HyperParameters]:
    """The same tasks and labels with one feature alone, unlabelled rows left out."""
    statistics = data.statistics
    cells = feature_cells(statistics.layout, feature)
    layout = Layout(statistics.layout.n_labels, statistics.layout.n_values[[feature]])
    counts = np.ascontiguousarray(statistics.feature_counts[:, cells])
    of_feature = TrainingData(statistics._replace(layout=layout, feature_counts=counts), no_rows(layout))
    votes = None if hyper.votes is None else hyper.votes[cells]
    return of_feature, hyper._replace(
        feature_prior=hyper.feature_prior[cells], temper=hyper.temper[[feature]], votes=votes
    )


def feature_cells(layout: Layout, feature: int) -> NDArray[np.int64]:
    """The cells of a feature, label after label."""
    values = np.arange(layout.offsets[feature], layout.offsets[feature + 1])
    return np.asarray((np.arange(layout.n_labels)[:, None] * layout.width + values).ravel())


def _joined_counts(
    data: TrainingData, parts: list[tuple[TrainingData, HyperParameters]], by_feature: tuple[Fitted, ...]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Counts and sizes of one block per task, and of one for a new task.

    Sizes are the numbers of tasks that share with each on average over features, rounded up.
    """
    layout = data.statistics.layout
    n_owners = len(data.statistics.tasks) + 1
    counts, size = np.empty((n_owners, layout.n_cells)), np.zeros(n_owners)
    for f, ((of_feature, part), fitted) in enumerate(zip(parts, by_feature, strict=True)):
        blocks, mixture, cells = fitted.blocks, fitted.blocks.mixture, feature_cells(layout, f)
        group_start = of_feature.statistics.layout.group_start
        for owner in range(n_owners):
            entries = mixture.entries(owner)
            block, weight = mixture.block[entries], np.exp(mixture.log_weight[entries])
            counts[owner, cells] = averaged_counts(blocks.counts[block], weight, part.feature_prior, group_start)
            size[owner] += weight @ blocks.sizes[block] / weight.sum() / len(parts)
    return counts, np.ceil(size - 1e-9).astype(np.int64)


def averaged_counts(
    counts: NDArray[Any],
    weights: NDArray[np.float64],
    prior: NDArray[np.float64],
    group_start: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Counts (cells,) of one block that stands for the blocks ``counts`` (blocks, cells) with these weights.

    A block with counts n_k has the rates (n_k + β) / (N_k + B) in a group of cells, N_k and B being the sums of counts
    and pseudo-counts. The average of these rates with weights w_k is the rate of one block whose counts are

        n = Σ_k ω_k n_k,        ω_k ∝ w_k / (N_k + B),        Σ_k ω_k = 1,

    group by group; and the share of the prior behind it, B / (N + B), is the average of the shares too.

    Examples
    --------
    >>> counts = np.array([[9, 1], [0, 0]])
    >>> n = averaged_counts(counts, np.array([0.5, 0.5]), np.ones(2), np.array([0, 2]))
    >>> (n + 1) / (n + 1).sum()  # the average of 10/12 and 1/2
    array([0.66666667, 0.33333333])
    """
    totals = np.add.reduceat(counts, group_start[:-1], axis=1) + np.add.reduceat(prior, group_start[:-1])
    share = weights[:, None] / totals
    share /= share.sum(axis=0)
    return np.asarray((np.repeat(share, np.diff(group_start), axis=1) * counts).sum(axis=0))


def _added_up_if_known(data: TrainingData, hyper: HyperParameters, found: list[Evidence | None]) -> Evidence | None:
    known = [evidence for evidence in found if evidence is not None]
    return _added_up(data, hyper, known) if len(known) == len(found) else None


def _added_up(data: TrainingData, hyper: HyperParameters, found: list[Evidence]) -> Evidence:
    """Evidence of all features, each of which has counted the labels' own."""
    labels = hyper.log_label_evidence(data.statistics.label_counts)
    value = labels + sum(evidence.value - labels for evidence in found)
    kinds: dict[Kind, None] = {evidence.kind: None for evidence in found}
    kind: Kind = "estimate" if "estimate" in kinds else "lower bound" if "lower bound" in kinds else "exact"
    return Evidence(float(value), kind, float(np.sqrt(sum(evidence.error**2 for evidence in found))))
