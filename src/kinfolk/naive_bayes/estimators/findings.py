"""What a fitted naive Bayes model tells about its tasks: partition, similarity, evidence, parameters, explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.answers.explanation import Explanation, explain_rows
from kinfolk.naive_bayes.answers.parameters import (
    dirichlet_estimate,
    label_pair,
    mean_label_rates,
    mean_over_blocks,
    moments,
    moments_over_blocks,
    nulls,
)
from kinfolk.naive_bayes.model.fitted import Fitted, Problem
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.statistics import add_expected
from kinfolk.tasks.table import Backend
from kinfolk.tasks.values import as_column, encode

if TYPE_CHECKING:
    from kinfolk.tasks.schema import Schema
    from kinfolk.tasks.statistics import Statistics, Values

MAX_SIMILARITY_TASKS = 5_000


class Findings:
    """Everything that can be read off a fit; mixed into every naive Bayes estimator."""

    classes_: NDArray[Any]
    tasks_: NDArray[Any]
    posterior_: Fitted
    temper_: NDArray[np.float64]
    _schema: Schema
    _statistics: Statistics
    _backend: Backend
    _evidence_value: Evidence | None

    if TYPE_CHECKING:

        def _problem(self) -> Problem: ...
        def _encode(self, X: Any, task: Any) -> tuple[Values, NDArray[np.int64]]: ...
        def _averaged(self) -> bool: ...

    def _estimate_evidence(self) -> Evidence:
        raise NotImplementedError  # abstract

    @property
    def partition_(self) -> NDArray[np.int64]:
        """Cluster of each task of ``tasks_``, numbered in the order in which they appear."""
        check_is_fitted(self)
        return self.posterior_.partition

    @property
    def similarity_(self) -> NDArray[np.float64]:
        """Posterior probability that two tasks share their feature rates, in the order of ``tasks_``."""
        check_is_fitted(self)
        n_tasks = len(self.tasks_)
        if n_tasks > MAX_SIMILARITY_TASKS:
            raise ValueError(
                f"similarity_ of {n_tasks:,} tasks is a matrix too large to be useful: ask for some of them with "
                "similarity(tasks)"
            )
        return self.posterior_.similarity()

    def similarity(self, tasks: Any) -> NDArray[np.float64]:
        """Posterior probability that two of the given tasks share their feature rates."""
        check_is_fitted(self)
        asked = as_column(tasks, "tasks")
        place = encode(asked, self.tasks_.tolist())
        if (place < 0).any():
            raise ValueError(f"task {asked[np.argmax(place < 0)]!r} was not in the training data")
        return self.posterior_.similarity(place.astype(np.int64))

    @property
    def convergence_(self) -> Convergence | None:
        """R-hat and effective sample sizes of the chains; None where nothing was sampled."""
        check_is_fitted(self)
        return self.posterior_.convergence

    @property
    def converged_(self) -> bool:
        """Whether the chains have converged; true where nothing was sampled."""
        return self.convergence_ is None or self.convergence_.converged

    def _evidence(self) -> Evidence:
        check_is_fitted(self)
        if self.posterior_.evidence is not None:
            return self.posterior_.evidence
        if self._evidence_value is None:
            self._evidence_value = self._estimate_evidence()
        return self._evidence_value

    @property
    def log_evidence_(self) -> float:
        """Natural log of p(X, Y) of the training rows as an ordered sequence, unknown labels summed over."""
        return self._evidence().value

    @property
    def log_evidence_kind_(self) -> str:
        """What kind of number ``log_evidence_`` is: "exact", "estimate" or "lower bound"."""
        return self._evidence().kind

    @property
    def log_evidence_error_(self) -> float:
        """Standard error of ``log_evidence_`` where it is an estimate, else zero."""
        return self._evidence().error

    def explain(self, X: Any, task: Any = None) -> Explanation:
        """What each feature added to the log odds of each row, and whose data stood behind it.

        Returns
        -------
        Explanation
            Its ``table(row)`` is meant for reading, its arrays for computing.
        """
        rows, place = self._encode(X, task)
        problem = self._problem()
        parts = explain_rows(
            self.posterior_.blocks,
            self._own_counts(problem),
            problem.statistics.layout,
            problem.feature_prior,
            rows,
            place,
            self.temper_[self._schema.coded_first],
            self._averaged(),
            None if self.posterior_.behind is None else self.posterior_.behind.own,
        )
        values = self._schema.read_back(*rows)
        return Explanation(self.classes_, self._schema.names, values, *parts, backend=self._backend)

    def _own_counts(self, problem: Problem) -> NDArray[Any]:
        """Feature counts that each task has brought itself, unlabelled rows by the probabilities of their labels."""
        counts, probability = problem.statistics.feature_counts, self.posterior_.label_probability
        if probability is None or not len(probability):
            return counts
        counts = counts.astype(np.float64)
        add_expected(counts, problem.unlabelled, problem.statistics.layout, probability)
        return counts

    def _label_counts(self, problem: Problem) -> NDArray[Any]:
        """Label counts behind each task's label rates."""
        return problem.statistics.label_counts

    def label_rates(self, estimate: str = "mean") -> Any:
        """Label rates of every task as a table: task, label, probability.

        Parameters
        ----------
        estimate : {"mean", "map", "ml"}
            Posterior mean (over everything unknown), posterior mode, or maximum likelihood, the latter two from the
            labelled rows; maximum likelihood is null for a task without any.
        """
        check_is_fitted(self)
        problem = self._problem()
        n_tasks, n_labels = problem.statistics.label_counts.shape
        if estimate == "mean":
            rates = mean_label_rates(self.posterior_.blocks.mixture, n_tasks)
        else:
            rates = dirichlet_estimate(
                self._label_counts(problem), problem.label_prior, np.array([0, n_labels]), estimate
            )
        return make_frame(
            {
                "task": np.repeat(self.tasks_, n_labels).tolist(),
                "label": self.classes_.tolist() * n_tasks,
                "probability": nulls(rates),
            },
            self._backend,
        )

    def feature_rates(self, by: str = "cluster", estimate: str = "mean") -> Any:
        """Feature rates of every cluster or task as a table: cluster or task, label, feature, value, probability.

        Columns taken as numbers have no such rates: ``numeric_rates`` has theirs.

        Parameters
        ----------
        by : {"cluster", "task"}
            Clusters are those of ``partition_``. A task's posterior mean is taken over all clusters that it may belong
            to; its other estimates are those of its cluster.
        estimate : {"mean", "map", "ml"}
            Posterior mean, posterior mode, or maximum likelihood (null where there is no data).
        """
        owners, rates = self._rates(by, estimate)
        names = self._cell_names()
        n_labels, width = len(self.classes_), len(names)
        return make_frame(
            {
                by: np.repeat(owners, n_labels * width).tolist(),
                "label": np.tile(np.repeat(self.classes_, width), len(owners)).tolist(),
                "feature": [feature for feature, _ in names] * (n_labels * len(owners)),
                "value": [value for _, value in names] * (n_labels * len(owners)),
                "probability": nulls(rates),
            },
            self._backend,
        )

    def numeric_rates(self, by: str = "cluster") -> Any:
        """Columns of numbers as a table: cluster or task, label, feature, family, mean, standard_deviation.

        Posterior means in the columns' own units; the standard deviation is that of the numbers, not of their mean. A
        task's are taken over all clusters that it may belong to.

        Parameters
        ----------
        by : {"cluster", "task"}
            Clusters are those of ``partition_``.
        """
        if by not in ("cluster", "task"):
            raise ValueError(f'by={by!r}: give "cluster" or "task"')
        check_is_fitted(self)
        statistics = self._problem().statistics
        layout = statistics.layout
        if by == "cluster":
            sums = np.zeros((int(self.partition_.max()) + 1, layout.n_cells))
            np.add.at(sums, self.partition_, statistics.feature_counts)
            owners, found = np.arange(len(sums)), moments(layout.sums_of_numbers(sums), layout.numbers)
        else:
            blocks = self.posterior_.blocks
            of_blocks = moments(layout.sums_of_numbers(blocks.counts), layout.numbers)
            owners, found = self.tasks_, moments_over_blocks(blocks.mixture, len(self.tasks_), of_blocks)
        names = [column.name for column in self._schema.columns if column.number is not None]
        n_labels, n_numbers = layout.n_labels, len(names)
        return make_frame(
            {
                by: np.repeat(owners, n_labels * n_numbers).tolist(),
                "label": np.tile(np.repeat(self.classes_, n_numbers), len(owners)).tolist(),
                "feature": names * (n_labels * len(owners)),
                "family": [number.family for number in layout.numbers] * (n_labels * len(owners)),
                "mean": found.mean.ravel().tolist(),
                "standard_deviation": np.sqrt(found.variance).ravel().tolist(),
            },
            self._backend,
        )

    def log_ratios(self, label: Any = None, against: Any = None, by: str = "cluster", estimate: str = "map") -> Any:
        """Log ratio of a feature's probability under two labels, for every value, as a table (thesis figure 4-2).

        Positive numbers speak for ``label`` (by default the last of the classes), negative ones for ``against`` (the
        first); null where either probability is zero or unknown.
        """
        owners, rates = self._rates(by, estimate)
        y, other = label_pair(self.classes_, label, against)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(rates[:, y]) - np.log(rates[:, other])
        names = self._cell_names()
        return make_frame(
            {
                by: np.repeat(owners, len(names)).tolist(),
                "feature": [feature for feature, _ in names] * len(owners),
                "value": [value for _, value in names] * len(owners),
                "log_ratio": nulls(np.where(np.isfinite(ratio), ratio, np.nan)),
            },
            self._backend,
        )

    def _rates(self, by: str, estimate: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Owners and their rates (owners, labels, values of all features)."""
        if by not in ("cluster", "task"):
            raise ValueError(f'by={by!r}: give "cluster" or "task"')
        check_is_fitted(self)
        problem = self._problem()
        layout = problem.statistics.layout
        if by == "task" and estimate == "mean":
            means = mean_over_blocks(self.posterior_.blocks.mixture, len(self.tasks_))
            return self.tasks_, means.transpose(0, 2, 1)
        partition = self.partition_
        counts = np.zeros((int(partition.max()) + 1, layout.n_cells))
        np.add.at(counts, partition, problem.statistics.feature_counts)
        rates = dirichlet_estimate(counts, problem.feature_prior, layout.group_start, estimate)
        rates = rates.reshape(len(counts), layout.n_labels, layout.width)
        return (np.arange(len(counts)), rates) if by == "cluster" else (self.tasks_, rates[partition])

    def _cell_names(self) -> list[tuple[str, str]]:
        return [(column.name, value) for column in self._schema.columns for value in column.value_names]
