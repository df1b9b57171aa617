"""Fitting clustered naive Bayes to a team's rows so that its probabilities can be trusted with decisions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk_assistant.learning.costs import ANSWERS
from kinfolk_assistant.learning.rows import CENSORED

# All figures here are log losses on made-up teams of 21. Gibbs sampling, because hierarchical clustering cannot use
# rows without an answer; on the others the two did alike (after two answers of a newcomer 0.62 against 0.64). Eight
# chains, or 100 sweeps of burn-in, changed nothing by more than 0.01.
CHAINS: dict[str, Any] = {"n_chains": 4, "n_burn_in": 30, "n_draws": 10}
# A row without an answer says what requests a person gets, and so who is kin. But people do not decide as naive Bayes
# would have it, and whole rows pull the two answers towards two kinds of requests: 60 of them beside a newcomer's 20
# answers made 0.84 of the 0.57 without them. At a tenth of a row each it stayed 0.57, and a newcomer with 20 such rows
# and no answer at all went from 0.65 to 0.60.
UNLABELLED_WEIGHT = 0.1
# Pseudo-counts in the proportions of the whole team's requests and answers: where a person or a cluster has seldom
# given an answer, the features that go with it are taken to be everybody's, not evenly spread over all values.
FEATURE_PRIOR = 12.0
LABEL_PRIOR = 12.0
# Above one, so that people are less readily taken for kin: after two answers of a newcomer it made 0.61 of 0.62, after
# 80 answers of each no difference.
CONCENTRATION = 5.0


def fit_team(rows: pl.DataFrame, seed: int, verbose: bool) -> ClusteredNB:
    """Fit to checked rows, of which at least one has an answer.

    O(sweeps · (users · clusters · values + rows · features)): 200 users with 500 rows each, a tenth without an answer,
    take 15 seconds of one core and leave an archive of 9 megabytes.
    """
    model = ClusteredNB(
        inference="gibbs",
        concentration=CONCENTRATION,
        label_prior=_label_prior(rows),
        feature_prior=_feature_prior(rows),
        temper=1.0,  # by the number of a user's answers instead, when a request is judged
        new_tasks="expected",  # people who join are judged before they have answered anything
        **CHAINS,
        random_state=seed,
        verbose=verbose,
    )
    unlabelled = rows["answer"].is_null().to_numpy()
    weights = np.where(unlabelled, UNLABELLED_WEIGHT, 1.0) if unlabelled.any() else None
    with warnings.catch_warnings():
        # Forty draws are enough to average over, though too few to prove that the chains have converged.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # partial_fit, because an answer that nobody has given yet is an answer all the same.
        return model.partial_fit(
            rows.select(*MEETING_FEATURES),
            rows["answer"].to_list(),
            list(ANSWERS),
            task=rows["user"].to_list(),
            sample_weight=weights,
        )


def label_totals(rows: pl.DataFrame) -> dict[str, list[float]]:
    """Give answers and pseudo-counts behind the rates of those whose past is censored, by user.

    A calendar whose server drops what is declined shows only yeses. They tell what a user says yes to, and nothing of
    how often; so the rates of such a user are the team's, and what they have answered otherwise.
    """
    prior = _label_prior(rows)
    users = rows.filter(pl.col(CENSORED))["user"].unique().to_list()
    counted = rows.filter(~pl.col(CENSORED) & pl.col("answer").is_not_null())
    own = {
        user: [counted.filter((pl.col("user") == user) & (pl.col("answer") == one)).height for one in ANSWERS]
        for user in users
    }
    return {user: [before + n for before, n in zip(prior, own[user], strict=True)] for user in sorted(users)}


def _label_prior(rows: pl.DataFrame) -> list[float]:
    """Pseudo-counts of the answers, in the team's proportions as far as answers tell them."""
    given = rows.filter(~pl.col(CENSORED))["answer"].drop_nulls()
    accepted = (float((given == "accept").sum()) + LABEL_PRIOR / 2) / (len(given) + LABEL_PRIOR)
    return [LABEL_PRIOR * accepted, LABEL_PRIOR * (1.0 - accepted)]


def _feature_prior(rows: pl.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Pseudo-counts of each feature's values, in the proportions of all requests."""
    prior = {}
    for name, values in MEETING_FEATURES.items():
        codes = rows[name].to_physical().drop_nulls().to_numpy()
        seen = np.bincount(codes, minlength=len(values)) + 1.0
        prior[name] = FEATURE_PRIOR * seen / seen.sum()
    return prior
