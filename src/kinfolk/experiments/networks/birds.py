"""The bird problem of Niculescu-Mizil and Caruana, section 4.2, with other feeders: splits by site, and scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from kinfolk.networks.estimators.bayes_nets import BayesNets

TRAINING_SITES = 0.6
FEEDERS = (
    "The paper's extract of FeederWatch, six Bird Conservation Regions of earlier years, is not published. Real "
    "FeederWatch checklists of Washington and Oregon stand in, from the R package PFW "
    "(`KINFOLK_DATA/feederwatch_wa_or`): two states in four winters are eight tasks, whose variables are which species "
    "were seen, effort, snow and month. Many sites report in several winters, so these tasks are more alike than "
    "regions. Species seen on fewer than 5% of a task's checklists are left out of it, so that variables differ "
    "between tasks. Features of the surroundings, which the paper has, are not in the data."
)


class Split(NamedTuple):
    """Rows to learn from and rows to test on, for each task; no site has rows in both."""

    training: dict[Any, pl.DataFrame]
    test: dict[Any, pl.DataFrame]
    seed: int


def split_by_site(birds: Any, number: int, seed: int) -> Split:
    """Give each site's rows, of all tasks, to the one side or the other; rows to learn from come in random order."""
    rng = np.random.default_rng([seed, number])
    sites = np.unique(np.concatenate(list(birds.site.values())))
    for_training = rng.permutation(sites)[: round(TRAINING_SITES * len(sites))]
    training, test = {}, {}
    for task, table in birds.data.items():
        known = np.isin(birds.site[task], for_training)
        training[task] = table[rng.permutation(np.flatnonzero(known))]
        test[task] = table[np.flatnonzero(~known)]
    return Split(training, test, int(rng.integers(2**31)))


def first_rows(tables: Mapping[Any, pl.DataFrame], n_rows: int) -> dict[Any, pl.DataFrame]:
    """Take so many rows of each task, or all there are, without the columns that have one value in all of them."""
    heads = {task: table.head(n_rows) for task, table in tables.items()}
    columns = dict.fromkeys(column for table in heads.values() for column in table.columns)
    told = [
        column
        for column in columns
        if pl.concat([table[column] for table in heads.values() if column in table.columns]).n_unique() > 1
    ]
    return {task: table.select([column for column in told if column in table.columns]) for task, table in heads.items()}


def mean_log_likelihood(model: BayesNets, test: Mapping[Any, pl.DataFrame]) -> float:
    """Mean log likelihood of test rows, averaged over tasks."""
    known = {task: table.select(model.networks_[task].variables) for task, table in test.items()}
    return float(np.mean([scores.mean() for scores in model.score_samples(known).values()]))
