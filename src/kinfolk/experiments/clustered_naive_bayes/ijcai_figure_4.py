"""Figure 4 of Roy and Kaelbling (2007): the trees that Bayesian hierarchical clustering finds as examples are added."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from kinfolk.datasets.meetings import make_meetings
from kinfolk.experiments.cells import cells
from kinfolk.experiments.clustered_naive_bayes.stand_in import KINDS, MADE_UP_MEETINGS, PAPER, in_blocks, kind_of
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.plots import style, tree
from kinfolk.progress import progress_bar
from kinfolk.tasks.selection.splitters import FewPerTask

SIZES = (16, 32, 64, 128)

ABOUT = About(
    PAPER,
    "Built the BHC tree of the 21 users from 16, 32, 64 and 128 examples of each, and marked every user as (M)ilitary, "
    "(P)rofessor or (S)RI researcher.",
    MADE_UP_MEETINGS,
    (
        "Military personnel are most often grouped with other military personnel.",
        "Professors and SRI researchers are grouped together until there is enough data to warrant splitting them "
        "apart.",
    ),
)


def study(*, quick: bool = False, seed: int = 0, sizes: tuple[int, ...] = SIZES) -> Study:
    """Grow the trees over several splits; the picture shows those of the first."""
    meetings = make_meetings(random_state=seed)
    n_splits = 3 if quick else 20
    jobs = [
        (size, split, train)
        for size in sizes
        for split, (train, _) in enumerate(
            FewPerTask(size, n_splits, random_state=seed).split(meetings.data, meetings.target, task=meetings.task)
        )
    ]
    rows: list[dict[str, Any]] = []
    with progress_bar("Growing trees", len(jobs), True) as advance:
        for row in cells(partial(_describe, meetings), jobs):
            rows.append(row)
            advance(1)
    table = pl.DataFrame(rows)
    setting = (
        f"{n_splits} random splits, nested from size to size; seed {seed}. The picture shows the first split, the "
        "numbers are means over all. Users with fewer requests than a size give all of theirs."
    )
    first = {size: _grow(meetings, train) for size, split, train in jobs if split == 0}
    return Study(table, _draw(first, meetings.people), _compare(table), setting, held=_judge(table))


def _grow(meetings: Any, train: NDArray[np.intp]) -> ClusteredNB:
    return ClusteredNB(inference="bhc").fit(meetings.data[train], meetings.target[train], task=meetings.task[train])


def _describe(meetings: Any, size: int, split: int, train: NDArray[np.intp]) -> dict[str, Any]:
    """How a tree's best partition stands to the users' kinds and to the groups that they were made from."""
    model, people = _grow(meetings, train), meetings.people
    partition = model.partition_
    kinds = np.array([kind_of(person.institution) for person in people])
    groups = [person.group for person in people]
    return {
        "examples": size,
        "split": split,
        "clusters": int(partition.max()) + 1,
        "purity": _purity(partition, kinds),
        "ari_kinds": float(adjusted_rand_score(kinds, partition)),
        "ari_groups": float(adjusted_rand_score(groups, partition)),
        "military_with_others": _pairs_together(partition, kinds == "M", kinds != "M"),
        "professors_with_sri": _pairs_together(partition, kinds == "P", kinds == "S"),
        "partition": " | ".join(" ".join(block) for block in in_blocks(partition, model.tasks_.tolist())),
    }


def _purity(partition: NDArray[np.int64], kinds: NDArray[Any]) -> float:
    """Share of users whose kind is the most common one of their cluster."""
    most = [Counter(kinds[partition == block].tolist()).most_common(1)[0][1] for block in np.unique(partition)]
    return sum(most) / len(partition)


def _pairs_together(partition: NDArray[np.int64], one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """Share of the pairs between two sets of users that are in one cluster."""
    return float((partition[one][:, None] == partition[other][None, :]).mean())


def _draw(models: dict[int, ClusteredNB], people: Any) -> Figure:
    figure = Figure(figsize=(13, 7.2), layout="constrained")
    labels = [f"{kind_of(person.institution)} {person.id}" for person in people]
    panels = figure.subplots(2, -(-len(models) // 2), squeeze=False).ravel()
    for ax, (size, model) in zip(panels, models.items(), strict=False):
        tree(model, labels, ax=ax, title=f"{size} examples")
    for ax in panels[len(models) :]:
        ax.set_visible(False)
    key = ", ".join(f"{letter}: {kind}" for letter, kind in KINDS.items())
    figure.supxlabel(f"{key}; colours: clusters of the most probable partition", fontsize=9, color=style.ALONE)
    return figure


def _compare(table: pl.DataFrame) -> tuple[str, str]:
    measures = ("clusters", "purity", "ari_groups", "military_with_others", "professors_with_sri")
    means = table.group_by("examples", maintain_order=True).agg(pl.col(measures).mean())
    rows = list(means.iter_rows(named=True))

    def along(measure: str, form: str) -> str:
        return ", ".join(f"{row[measure]:{form}} ({row['examples']})" for row in rows)

    return (
        f"Of all pairs of a military user with another, so many are put together: "
        f"{along('military_with_others', '.0%')}. Purity of clusters by kind: {along('purity', '.0%')}.",
        f"Of all pairs of a professor with an SRI researcher, so many are put together: "
        f"{along('professors_with_sri', '.0%')}. The number of clusters grows: {along('clusters', '.1f')}; agreement "
        f"with the nine groups that were put in (adjusted Rand index): {along('ari_groups', '.2f')}.",
    )


def _judge(table: pl.DataFrame) -> tuple[Verdict, Verdict]:
    """Whether military users stay among themselves, and others are together first and apart later."""
    means = table.group_by("examples", maintain_order=True).agg(
        pl.col("military_with_others", "professors_with_sri").mean()
    )
    mixed, others = means["military_with_others"].to_list(), means["professors_with_sri"].to_list()
    return judge(max(mixed) < 0.1), judge(others[0] > 0.1, others[-1] < others[0])
