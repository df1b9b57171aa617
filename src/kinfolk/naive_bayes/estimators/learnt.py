"""Hyper-parameters of an estimator: taken as they were given, or settled by the data where "learn" was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.inference.empirical_bayes import learn_feature_prior, learn_label_prior
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut, belonging, learn_temper, leave_out
from kinfolk.naive_bayes.model.fitted import Fitted, Problem
from kinfolk.naive_bayes.model.priors import feature_prior, label_prior

if TYPE_CHECKING:
    from kinfolk.tasks.schema import Schema
    from kinfolk.tasks.statistics import Rows, Statistics

# What a hyper-parameter is set to that the data are to settle.
LEARN = "learn"
# Rows by which the tempering is chosen, at most, and numbers held for them: rows · blocks · features · labels.
MAX_ROWS_LEFT_OUT = 1_000
MAX_TERMS_LEFT_OUT = 1 << 24
# Rows by which it is chosen where the others are not at hand: at least so many, or such a share of all.
_FEW_ROWS, _ENOUGH_OF_ROWS = 1_000, 0.5


def is_learn(given: Any) -> bool:
    """Whether a hyper-parameter is to be learnt."""
    return isinstance(given, str) and given == LEARN


class LearntParameters:
    """Priors and powers of a naive Bayes estimator; mixed into every one of them."""

    label_prior: Any
    feature_prior: Any
    classes_: NDArray[Any]
    posterior_: Fitted
    temper_: NDArray[np.float64]
    _rows: Rows
    _schema: Schema
    _statistics: Statistics
    # Whether all tasks share feature rates, or a prototype of them, whose prior then is learnt from all rows.
    _tasks_share_rates = False

    if TYPE_CHECKING:

        def _problem(self) -> Problem: ...
        def _label_counts(self, problem: Problem) -> NDArray[Any]: ...
        def _averaged(self) -> bool: ...

    def _settle_priors(self) -> None:
        """Take the priors that were given; learn those of labels, and those of features where tasks have their blocks.

        A model that infers blocks learns the features' prior while it does so.
        """
        self.label_prior_ = (
            learn_label_prior(self._label_groups(self._statistics))
            if is_learn(self.label_prior)
            else label_prior(self.label_prior, self.classes_)
        )
        given = 1.0 if is_learn(self.feature_prior) else self.feature_prior
        self._feature_prior = feature_prior(given, self._schema, self._statistics.layout)
        self._votes: NDArray[np.float64] | None = None
        groups = self._feature_groups(self._statistics) if is_learn(self.feature_prior) else None
        if groups is not None:
            self._learn_feature_prior(groups)

    def _learn_feature_prior(self, counts: NDArray[Any], probability: NDArray[np.float64] | None = None) -> None:
        """Settle the features' prior by blocks of tasks with these counts, each certain unless probabilities say."""
        layout = self._statistics.layout
        probability = np.ones(len(counts)) if probability is None else probability
        learnt = learn_feature_prior(counts, probability, layout, same_for_labels=self._tasks_share_rates)
        self._feature_prior, self._votes = learnt.pseudo_counts(layout), learnt.votes

    def _label_groups(self, statistics: Statistics) -> NDArray[Any]:
        """Label counts of those that have label rates of their own."""
        return statistics.label_counts

    def _feature_groups(self, statistics: Statistics) -> NDArray[Any] | None:
        """Feature counts of those that have feature rates of their own, where that is known beforehand."""
        return statistics.pooled().feature_counts if self._tasks_share_rates else statistics.feature_counts

    def _left_out(self, rows: Rows) -> LeftOut:
        """What the model says of each of these training rows without it."""
        problem = self._problem()
        return leave_out(problem, belonging(self.posterior_), rows, self._label_counts(problem))

    def _learn_temper(self) -> NDArray[np.float64]:
        """The powers that predict training rows best, each by all the others; as they were, or 1, without the rows.

        A thousand rows say it well enough: more would only take more time.
        """
        rows, mixture = self._rows, self.posterior_.blocks.mixture
        n_known = len(rows.labels) if rows.weights is None else float(rows.weights.sum())
        # A few rows must not overrule the many whose counts alone are left, of a file or of a saved model.
        if n_known < _ENOUGH_OF_ROWS * float(self._statistics.label_counts.sum()) and len(rows.labels) < _FEW_ROWS:
            return np.asarray(getattr(self, "temper_", np.ones(len(self._schema.columns))))
        # In an order that depends on what the rows hold, so that sums do not depend on theirs.
        rank = np.argsort(self._problem().canonical_order())
        counted = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
        rows = rows.take(np.lexsort([counted, *rows.codes.T, rows.labels, rank[rows.task]]))
        n_terms = np.diff(mixture.start)[rows.task].mean() * mixture.n_labels * len(self._schema.columns)
        most = int(min(MAX_ROWS_LEFT_OUT, max(MAX_TERMS_LEFT_OUT / n_terms, 1)))
        if len(rows.labels) > most:
            # The same rows each time, so that fitting in parts gives what one fit gives.
            rng = np.random.default_rng(0)
            rows = rows.take(np.sort(rng.permutation(len(rows.labels))[:most]))
        return learn_temper(self._left_out(rows), self._averaged())
