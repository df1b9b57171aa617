"""Table 4.1 of Roy (2006): the most common partition of users in the posterior of the clustered model."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from kinfolk.datasets.meetings import make_meetings
from kinfolk.experiments.cells import checkpoint
from kinfolk.experiments.clustered_naive_bayes.learning_curves import CLUSTERED, NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, in_blocks, kind_of
from kinfolk.experiments.clustered_naive_bayes.thesis_models import thesis_models
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.plots import hinton

N_CHAINS = 4

ABOUT = About(
    THESIS,
    "Sampled partitions of the 21 users given all their requests by Gibbs sampling, and listed the most common one "
    "(section 4.3, table 4.1); bounded the evidence of the clustered model from below (equation 4.15).",
    f"{MADE_UP_MEETINGS} Table 4.1 itself is what the groups were made from: to find it again is to find what was put "
    "in.",
    (
        "The posterior over partitions is peaked around a single mode with nine groups.",
        "Only military personnel are grouped with military personnel, only SRI researchers with SRI researchers, and "
        "only professors with professors.",
        "There are four singleton groups.",
        "Table 4.1: 1 2 3 5 6 8 · 4 7 · 9 11 · 10 14 15 21 · 12 17 20 · 13 · 16 · 18 · 19.",
        "The data favour the clustered model over no sharing by at least 364 nats of log evidence.",
    ),
)


class Mode(NamedTuple):
    """The partition that the most draws have, their share of all draws, and in how many chains it is the mode."""

    partition: NDArray[np.int64]
    share: float
    n_chains: int


def study(*, quick: bool = False, seed: int = 0) -> Study:
    """Sample partitions given everything, and find the most common."""
    meetings = make_meetings(random_state=seed)
    n_burn_in, n_draws = (100, 250) if quick else (1_000, 5_000)
    model = ClusteredNB(
        inference="gibbs",
        n_chains=N_CHAINS,
        n_burn_in=n_burn_in,
        n_draws=n_draws,
        random_state=seed,
        verbose=True,
        checkpoint=checkpoint().folder,
    ).fit(meetings.data, meetings.target, task=meetings.task)
    mode = find_mode(model.posterior_.partitions)
    setting = (
        f"{len(meetings.target)} requests of {len(meetings.people)} users; {N_CHAINS} chains of {n_burn_in:,} sweeps "
        f"thrown away and {n_draws:,} kept; seed {seed}."
    )
    return Study(
        _tabulate(meetings.people, mode, model),
        _draw(model, meetings.people, mode),
        *_compare(meetings, mode, setting),
    )


def find_mode(partitions: Any) -> Mode:
    """Find the most common partition among draws of shape (chains, draws, tasks).

    Examples
    --------
    >>> find_mode([[[0, 0], [0, 1], [0, 1]], [[0, 0], [0, 0], [0, 0]]])
    Mode(partition=array([0, 0]), share=0.6666666666666666, n_chains=1)
    """
    of_chains = [Counter(map(tuple, np.asarray(chain).tolist())) for chain in partitions]
    together: Counter[tuple[int, ...]] = sum(of_chains, Counter())
    mode, n_draws = together.most_common(1)[0]
    n_chains = sum(chain.most_common(1)[0][0] == mode for chain in of_chains)
    return Mode(np.array(mode), n_draws / together.total(), n_chains)


def _tabulate(people: Any, mode: Mode, model: ClusteredNB) -> pl.DataFrame:
    """A row for each user: table 4.1's group, the group found, and how sure it is that the user's kin are kin."""
    found = mode.partition
    kin = [(found == seat) & (np.arange(len(found)) != place) for place, seat in enumerate(found)]
    surest = [row[others].min() if others.any() else None for row, others in zip(model.similarity_, kin, strict=True)]
    return pl.DataFrame(
        {
            "user": [person.id for person in people],
            "name": [person.name for person in people],
            "institution": [person.institution for person in people],
            "group_in_table_4_1": [person.group for person in people],
            "group_found": (found + 1).tolist(),
            "least_probability_of_kin": surest,
        },
        schema_overrides={"least_probability_of_kin": pl.Float64},
    )


def _list_groups(people: Any, mode: Mode) -> str:
    """The groups found in the form of table 4.1, with the groups that their users were made from."""
    rows = ["| Group found | Users | Institutions | Group in table 4.1 |", "| --- | --- | --- | --- |"]
    for number in range(int(mode.partition.max()) + 1):
        members = [person for person, seat in zip(people, mode.partition, strict=True) if seat == number]
        users, institutions, groups = (
            ", ".join(dict.fromkeys(str(getattr(person, what)) for person in members))
            for what in ("id", "institution", "group")
        )
        rows.append(f"| {number + 1} | {users} | {institutions} | {groups} |")
    return "\n".join(rows)


def _draw(model: ClusteredNB, people: Any, mode: Mode) -> Figure:
    figure = Figure(figsize=(7.4, 7.4), layout="constrained")
    ax = figure.subplots()
    labels = [f"{person.name} ({kind_of(person.institution)} {person.id})" for person in people]
    found = mode.partition
    order = np.argsort(found, kind="stable").tolist()
    hinton(model.similarity_, labels, order=order, groups=found.tolist(), ax=ax, title="Who is kin, given all requests")
    return figure


def _compare(meetings: Any, mode: Mode, setting: str) -> tuple[tuple[str, ...], str, str, tuple[Verdict, ...]]:
    """Ours, setting, details and verdicts, in the order of a Study."""
    people = meetings.people
    kinds = [kind_of(person.institution) for person in people]
    blocks = in_blocks(mode.partition, [person.id for person in people])
    mixed = sum(len(set(block)) > 1 for block in in_blocks(mode.partition, kinds))
    agreement = adjusted_rand_score([person.group for person in people], mode.partition)
    # Priors as the thesis has them: with priors learnt by each model for itself their evidence compares other things.
    given = thesis_models()
    tree, alone = (
        given[name].fit(meetings.data, meetings.target, task=meetings.task) for name in (CLUSTERED, NO_SHARING)
    )
    ratio = tree.log_evidence_ - alone.log_evidence_
    alone_in_it = sum(len(block) == 1 for block in blocks)
    ours = (
        f"The most common partition has {len(blocks)} groups and {mode.share:.1%} of the draws; it is the most common "
        f"in {mode.n_chains} of {N_CHAINS} chains.",
        "So it is here: no group is mixed." if mixed == 0 else f"Different here: {mixed} groups are mixed.",
        f"Singleton groups: {alone_in_it}.",
        f"{' · '.join(' '.join(block) for block in blocks)}. Agreement with table 4.1 (adjusted Rand index): "
        f"{agreement:.2f}.",
        f"At least {ratio:,.0f} nats, by the {tree.log_evidence_kind_} that BHC gives.",
    )
    held = (
        judge(mode.share > 0.5, len(blocks) == 9),
        judge(mixed == 0),
        judge(alone_in_it == 4),
        judge(agreement == 1.0) if agreement in (0.0, 1.0) else "partly",
        judge(ratio > 100),
    )
    return ours, setting, _list_groups(people, mode), held
