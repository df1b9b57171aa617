"""The exact oracle for clustered naive Bayes: every partition of the tasks and every labelling, one by one.

The model is that of the thesis's appendix A.1 and of the IJCAI-07 paper:

    z ~ CRP(a) over tasks          theta[c, y, f] ~ Dir(beta[y][f]), one per cluster of tasks
    phi[u] ~ Dir(alpha), one per task, never shared (except in the complete-sharing model, A.31)
    Y ~ phi[u]                     X_f ~ theta[z_u, Y, f]

The probability of a data set comes from the chain rule: each label and each value is a draw from a Pólya urn.
Nothing here is shared with the library under test, and nothing is fast: six tasks and a few unlabelled rows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Partition = tuple[int, ...]
Among = Sequence[Partition] | None
MODELS = ("clustered", "none", "complete", "complete-own-labels")


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of several tasks, and the priors; code -1 is a missing value, label -1 an unlabelled row."""

    codes: Ints  # (rows, features)
    labels: Ints  # (rows,)
    task: Ints  # (rows,), in 0..n_tasks-1; a task may have no rows
    n_labels: int
    n_values: tuple[int, ...]  # one per feature
    n_tasks: int
    alpha: Floats  # (n_labels,)
    beta: tuple[tuple[Floats, ...], ...]  # beta[label][feature], of length n_values[feature]
    concentration: float
    weights: Floats  # (rows,); a row of weight w counts w times in every statistic

    def __post_init__(self) -> None:
        rows, values = len(self.labels), np.array(self.n_values)
        fits = (
            self.codes.shape == (rows, len(values))
            and self.task.shape == self.weights.shape == (rows,)
            and self.alpha.shape == (self.n_labels,)
            and np.array_equal([[b.size for b in of_label] for of_label in self.beta], [values] * self.n_labels)
            and np.all((self.codes >= -1) & (self.codes < values))
            and np.all((self.labels >= -1) & (self.labels < self.n_labels))
            and np.all((self.task >= 0) & (self.task < self.n_tasks))
        )
        if not fits:
            raise ValueError("Codes, labels, tasks, weights and priors must fit n_labels, n_values and n_tasks.")
        if np.any(self.weights[self.labels < 0] != 1):
            raise ValueError("An unlabelled row must have weight 1.")


def make_problem(
    codes: ArrayLike,
    labels: ArrayLike,
    task: ArrayLike,
    *,
    n_labels: int,
    n_values: Sequence[int],
    n_tasks: int | None = None,
    alpha: ArrayLike = 1.0,
    beta: float | Sequence[Sequence[ArrayLike]] = 1.0,
    concentration: float = 1.0,
    weights: ArrayLike | None = None,
) -> Problem:
    """A problem from plain lists; a number for ``alpha`` or ``beta`` stands for a symmetric prior."""
    labels = np.asarray(labels, dtype=np.int64)
    task = np.asarray(task, dtype=np.int64)
    if isinstance(beta, int | float):
        beta = [[np.full(v, beta) for v in n_values] for _ in range(n_labels)]
    return Problem(
        codes=np.asarray(codes, dtype=np.int64).reshape(len(labels), len(n_values)),
        labels=labels,
        task=task,
        n_labels=n_labels,
        n_values=tuple(n_values),
        n_tasks=int(task.max(initial=-1)) + 1 if n_tasks is None else n_tasks,
        alpha=np.broadcast_to(np.asarray(alpha, dtype=float), (n_labels,)),
        beta=tuple(tuple(np.asarray(b, dtype=float) for b in of_label) for of_label in beta),
        concentration=float(concentration),
        weights=np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=float),
    )


def partitions(n: int) -> list[Partition]:
    """All set partitions of n tasks as restricted growth strings: clusters numbered as they appear."""
    return [()] if n == 0 else extended(partitions(n - 1))


def extended(smaller: Sequence[Partition]) -> list[Partition]:
    """Each partition with one more task, which joins any cluster or starts its own."""
    return [(*z, c) for z in smaller for c in range(len(set(z)) + 1)]


def log_crp(partition: Partition, concentration: float) -> float:
    """The log probability that tasks, seated one after another, take these tables."""
    total = 0.0
    for seated, table in enumerate(partition):
        company = partition[:seated].count(table)
        total += math.log((company or concentration) / (seated + concentration))
    return total


def tree_consistent_partitions(children: Sequence[tuple[int, int]], n: int) -> list[Partition]:
    """All partitions whose every cluster is a node of the tree; merge k of ``children`` makes node n + k."""
    # For each node: its leaves, and every way to cut its subtree into clusters, each a node's leaves.
    nodes: list[tuple[list[int], list[list[list[int]]]]] = [([leaf], [[[leaf]]]) for leaf in range(n)]
    for left, right in children:
        leaves = nodes[left][0] + nodes[right][0]
        cuts = [cut_l + cut_r for cut_l, cut_r in product(nodes[left][1], nodes[right][1])]
        nodes.append((leaves, [[leaves], *cuts]))
    whole, cuts = nodes[-1]
    if sorted(whole) != list(range(n)):
        raise ValueError(f"The tree's last node holds the leaves {sorted(whole)}, and must hold all {n}.")
    return sorted(_canonical(cut, n) for cut in cuts)


def _canonical(blocks: Sequence[Sequence[int]], n: int) -> Partition:
    by_first_member = sorted(blocks, key=min)
    return tuple(next(c for c, block in enumerate(by_first_member) if u in block) for u in range(n))


def _draws(
    problem: Problem, partition: Partition, labels: ArrayLike, share_labels: bool
) -> Iterator[tuple[tuple[object, ...], Floats, int, float]]:
    """Every label and present value in order: its Dirichlet's name and prior, its code and its weight."""
    for i, y in enumerate(np.asarray(labels).tolist()):
        if y < 0:
            raise ValueError(f"Row {i} has no label, and the joint probability needs one for every row.")
        u, weight = int(problem.task[i]), float(problem.weights[i])
        yield ("phi", "all" if share_labels else u), problem.alpha, y, weight
        for f, x in enumerate(problem.codes[i].tolist()):
            if x >= 0:
                yield ("theta", partition[u], y, f), problem.beta[y][f], x, weight


def log_data(problem: Problem, partition: Partition, labels: ArrayLike, *, share_labels: bool = False) -> float:
    """log p(X, Y | z) of the rows as an ordered sequence, each draw predicted from those before it.

    Weighted rows have no chain rule: each Dirichlet gives B(prior + count) / B(prior), as in A.30.
    """
    total = 0.0
    urns: dict[tuple[object, ...], list[float]] = {}
    priors: dict[tuple[object, ...], list[float]] = {}
    for name, prior, colour, weight in _draws(problem, partition, labels, share_labels):
        priors[name] = prior.tolist()
        urn = urns.setdefault(name, prior.tolist())
        total += math.log(urn[colour] / sum(urn))
        urn[colour] += weight
    if np.all(problem.weights == 1):
        return total
    return sum(_log_beta(urns[name]) - _log_beta(priors[name]) for name in urns)


def _log_beta(a: list[float]) -> float:
    return sum(math.lgamma(x) for x in a) - math.lgamma(sum(a))


def log_joint(problem: Problem, partition: Partition, labels: ArrayLike) -> float:
    """log p(X, Y, z) with the given labels for all rows."""
    return log_crp(partition, problem.concentration) + log_data(problem, partition, labels)


def labellings(problem: Problem) -> Ints:
    """Every completion of the unlabelled rows, one a line."""
    unknown = np.flatnonzero(problem.labels < 0)
    completions = np.array(list(product(range(problem.n_labels), repeat=len(unknown))), dtype=np.int64)
    complete = np.tile(problem.labels, (len(completions), 1))
    complete[:, unknown] = completions.reshape(len(completions), len(unknown))
    return complete


def _enumerate(problem: Problem, model: str, among: Among) -> tuple[list[Partition], Ints, Floats]:
    """Partitions, labellings, and the table of log p(X, Y, z); a fixed partition has no CRP factor."""
    if model not in MODELS:
        raise ValueError(f"The model is {model!r}, and must be one of {MODELS}.")
    if among is not None and model != "clustered":
        raise ValueError(f"Only the clustered model sums over given partitions, not {model!r}.")
    n, completions = problem.n_tasks, labellings(problem)
    if model == "clustered":
        zs = partitions(n) if among is None else list(among)
        table = [[log_joint(problem, z, y) for y in completions] for z in zs]
    else:
        zs = [tuple(range(n)) if model == "none" else (0,) * n]
        table = [[log_data(problem, z, y, share_labels=model == "complete") for y in completions] for z in zs]
    return zs, completions, np.array(table)


def log_evidence(problem: Problem, model: str = "clustered", *, among: Among = None) -> float:
    """log p(X, known Y), summed over partitions (or only those ``among``) and over unknown labels."""
    return float(logsumexp(_enumerate(problem, model, among)[2]))


def log_evidence_no_sharing(problem: Problem) -> float:
    """Log evidence when every task is alone."""
    return log_evidence(problem, "none")


def log_evidence_complete(problem: Problem, share_labels: bool = True) -> float:
    """Log evidence when all tasks are one cluster; ``share_labels`` pools phi as well (A.38)."""
    return log_evidence(problem, "complete" if share_labels else "complete-own-labels")


def log_tree_sum(problem: Problem, children: Sequence[tuple[int, int]]) -> float:
    """Log of the sum of p(D, z) over the partitions consistent with a tree."""
    return log_evidence(problem, among=tree_consistent_partitions(children, problem.n_tasks))


def partition_posterior(problem: Problem, *, among: Among = None) -> dict[Partition, float]:
    """p(z | D) for every partition (or within those ``among``)."""
    zs, _, table = _enumerate(problem, "clustered", among)
    return dict(zip(zs, softmax(logsumexp(table, axis=1)).tolist(), strict=True))


def map_partition(problem: Problem) -> Partition:
    """The most probable partition."""
    posterior = partition_posterior(problem)
    return max(posterior, key=posterior.__getitem__)


def co_clustering(problem: Problem, *, among: Among = None) -> Floats:
    """The posterior probability, for each pair of tasks, that they share a cluster."""
    shared = np.zeros((problem.n_tasks, problem.n_tasks))
    for z, p in partition_posterior(problem, among=among).items():
        shared += p * np.equal.outer(z, z)
    return shared


def label_marginals(problem: Problem, model: str = "clustered", *, among: Among = None) -> Floats:
    """p(label of row | D), rows by labels; one-hot where the label is known."""
    _, completions, table = _enumerate(problem, model, among)
    return np.tensordot(softmax(logsumexp(table, axis=0)), np.eye(problem.n_labels)[completions], axes=1)


def predictive(
    problem: Problem,
    x: ArrayLike,
    task: int | None = None,
    *,
    model: str = "clustered",
    among: Among = None,
) -> Floats:
    """p(y | x, D) for a new row, from the evidence of the data with that row under each label.

    A ``task`` of None or n_tasks is new: it joins each partition ``among``, of known tasks, in every way.
    """
    problem, task, among = _seated(problem, task, among)
    scores = [log_evidence(appended, model, among=among) for appended in _with_row(problem, x, task)]
    return np.asarray(softmax(scores))


def predictive_paper(problem: Problem, x: ArrayLike, task: int | None = None, *, among: Among = None) -> Floats:
    """The form of (4), IJCAI-07: sum over z of p(z | D) p(y | x, D, z), where x says nothing of z."""
    problem, task, among = _seated(problem, task, among)
    posterior = partition_posterior(problem, among=among)
    log_with_row = [
        logsumexp(_enumerate(appended, "clustered", among)[2], axis=1) for appended in _with_row(problem, x, task)
    ]
    return np.asarray(softmax(log_with_row, axis=0) @ list(posterior.values()))


def _seated(problem: Problem, task: int | None, among: Among) -> tuple[Problem, int, Among]:
    if task is not None and task != problem.n_tasks:
        return problem, task, among
    new = problem.n_tasks
    return replace(problem, n_tasks=new + 1), new, None if among is None else extended(among)


def _with_row(problem: Problem, x: ArrayLike, task: int) -> list[Problem]:
    """The problem with one more row, once for each label it could have."""
    return [
        replace(
            problem,
            codes=np.vstack([problem.codes, np.asarray(x, dtype=np.int64)]),
            labels=np.append(problem.labels, y),
            task=np.append(problem.task, task),
            weights=np.append(problem.weights, 1.0),
        )
        for y in range(problem.n_labels)
    ]


def random_problem(
    rng: np.random.Generator,
    *,
    n_tasks: int = 3,
    n_rows: int = 9,
    n_features: int = 2,
    n_labels: int = 2,
    n_values: int | Sequence[int] = 3,
    unlabelled: float = 0.0,
    missing: float = 0.0,
    concentration: float | None = None,
    symmetric: bool = False,
) -> Problem:
    """A small random problem: half of them noise alike in all tasks, half from clusters of tasks that differ.

    ``n_rows`` counts all tasks together, so a task may be empty. Exactly round(unlabelled * n_rows) rows are
    unlabelled; each value is missing with probability ``missing``. Priors are uneven unless ``symmetric``.
    """
    values = (n_values,) * n_features if isinstance(n_values, int) else tuple(n_values)
    cluster = rng.integers(0, n_tasks, size=n_tasks)
    sharpness = rng.choice([0.3, 1e6])  # 1e6: all clusters and labels alike, no structure to find
    theta = [rng.dirichlet(np.full(v, sharpness), size=(n_tasks, n_labels)) for v in values]
    task = rng.integers(0, n_tasks, size=n_rows)
    labels = rng.integers(0, n_labels, size=n_rows)
    codes = np.full((n_rows, len(values)), -1)
    for (i, f), present in np.ndenumerate(rng.random(codes.shape) >= missing):
        if present:
            codes[i, f] = rng.choice(values[f], p=theta[f][cluster[task[i]], labels[i]])
    labels[rng.permutation(n_rows)[: round(unlabelled * n_rows)]] = -1
    uneven = [[rng.uniform(0.3, 2.0, size=v) for v in values] for _ in range(n_labels)]
    return make_problem(
        codes,
        labels,
        task,
        n_labels=n_labels,
        n_values=values,
        n_tasks=n_tasks,
        alpha=rng.uniform(0.3, 2.0, size=1 if symmetric else n_labels),
        beta=rng.uniform(0.3, 2.0) if symmetric else uneven,
        concentration=rng.uniform(0.3, 3.0) if concentration is None else concentration,
    )


def all_data_sets(template: Problem) -> Iterator[Problem]:
    """Every X, and every Y of labelled rows, with the template's tasks, missing values, unlabelled rows."""
    present = np.argwhere(template.codes >= 0)
    known = np.flatnonzero(template.labels >= 0)
    choices = [range(template.n_values[f]) for _, f in present] + [range(template.n_labels)] * len(known)
    for filled in product(*choices):
        codes, labels = template.codes.copy(), template.labels.copy()
        codes[tuple(present.T)] = filled[: len(present)]
        labels[known] = filled[len(present) :]
        yield replace(template, codes=codes, labels=labels)
