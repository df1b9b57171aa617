"""What a fitted naive Bayes estimator tells about its tasks: who shares, with what evidence, and with what rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence
from kinfolk.explanation import Explanation
from kinfolk.naive_bayes.answers import tables
from kinfolk.naive_bayes.answers.explanation import explain
from kinfolk.naive_bayes.answers.predictor import NaiveBayesPredictor
from kinfolk.naive_bayes.model.values import NaiveBayesFit
from kinfolk.tasks.keywords import task_by_keyword
from kinfolk.tasks.schema import encode
from kinfolk.tasks.table import as_column

MAX_SIMILARITY_TASKS = 5_000


class FittedAttributes:
    """Everything that can be read off a fit; mixed into every naive Bayes estimator."""

    _result: NaiveBayesFit

    def _predictor(self) -> NaiveBayesPredictor:
        raise NotImplementedError  # abstract

    def _evidence(self) -> Evidence:
        raise NotImplementedError  # abstract

    @property
    def partition_(self) -> NDArray[np.int64]:
        """Cluster of each task of ``tasks_``, numbered in the order in which they appear."""
        check_is_fitted(self)
        return self._result.posterior.partition

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the fit early: what there was by then is here."""
        check_is_fitted(self)
        return self._result.posterior.interrupted

    @property
    def similarity_(self) -> NDArray[np.float64]:
        """Posterior probability that two tasks share their feature rates, in the order of ``tasks_``."""
        check_is_fitted(self)
        n_tasks = len(self._result.known.tasks)
        if n_tasks > MAX_SIMILARITY_TASKS:
            raise ValueError(
                f"similarity_ of {n_tasks:,} tasks is a matrix too large to be useful: ask for some of them with "
                "similarity(tasks)"
            )
        return self._result.posterior.similarity()

    def similarity(self, tasks: Any) -> NDArray[np.float64]:
        """Posterior probability that two of the given tasks share their feature rates.

        Parameters
        ----------
        tasks : array-like of shape (n,)
            Tasks of the training data.

        Returns
        -------
        ndarray of shape (n, n)

        See Also
        --------
        similarity_ : The same for all tasks.
        """
        check_is_fitted(self)
        asked = as_column(tasks, "tasks")
        place = encode(asked, self._result.known.tasks.tolist())
        if (place < 0).any():
            raise ValueError(f"task {asked[np.argmax(place < 0)]!r} was not in the training data")
        return self._result.posterior.similarity(place.astype(np.int64))

    @property
    def convergence_(self) -> Convergence | None:
        """R-hat and effective sample sizes of the chains; None where nothing was sampled."""
        check_is_fitted(self)
        return self._result.posterior.convergence

    @property
    def converged_(self) -> bool:
        """Whether the chains have converged; true where nothing was sampled."""
        return self.convergence_ is None or self.convergence_.converged

    @property
    def feature_prior_(self) -> dict[str, NDArray[np.float64]]:
        """Pseudo-counts of every feature's values (classes, values), as given or as learnt, by the feature's name."""
        check_is_fitted(self)
        return tables.feature_prior(self._result)

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

    @task_by_keyword
    def explain(self, X: Any, *, task: Any = None) -> Explanation:
        """What each feature added to the log odds of each row, and whose data this rests on.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row; it may be left out where there is only one, or a column holds it.

        Returns
        -------
        Explanation
            Its ``table(row)`` is meant for reading, its arrays for computing. In the prototype model nobody is kin:
            ``everybody`` is the part of the prototype that other tasks stand behind.

        See Also
        --------
        log_ratios : What every value of a feature says, cluster by cluster.
        """
        predictor = self._predictor()
        return explain(self._result, predictor, predictor.receive(X, task))

    def _label_counts(self) -> NDArray[Any]:
        """Label counts behind each task's label rates."""
        return self._result.data.statistics.label_counts

    def label_rates(self, estimate: str = "mean") -> Any:
        """Label rates of every task as a table: task, label, probability.

        Parameters
        ----------
        estimate : {"mean", "map", "ml"}
            Posterior mean (over everything unknown), posterior mode, or maximum likelihood, the latter two from the
            labelled rows; maximum likelihood is null for a task without any.

        Returns
        -------
        frame

        See Also
        --------
        feature_rates : The same of the features.
        """
        check_is_fitted(self)
        return tables.label_rates(self._result, self._label_counts(), estimate)

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

        Returns
        -------
        frame

        See Also
        --------
        numeric_rates : Columns of numbers.
        log_ratios : Two labels held against each other.
        """
        check_is_fitted(self)
        return tables.feature_rates(self._result, by, estimate)

    def numeric_rates(self, by: str = "cluster") -> Any:
        """Columns of numbers as a table: cluster or task, label, feature, family, mean, standard_deviation.

        Posterior means in the columns' own units; the standard deviation is that of the numbers, not of their mean. A
        task's are taken over all clusters that it may belong to.

        Parameters
        ----------
        by : {"cluster", "task"}
            Clusters are those of ``partition_``.

        Returns
        -------
        frame

        See Also
        --------
        feature_rates : Columns of categories and bins.
        """
        check_is_fitted(self)
        return tables.numeric_rates(self._result, by)

    def log_ratios(self, label: Any = None, against: Any = None, by: str = "cluster", estimate: str = "map") -> Any:
        """Log ratio of a feature's probability under two labels, for every value, as a table (thesis figure 4-2).

        Positive numbers speak for ``label`` (by default the last of the classes), negative ones for ``against`` (the
        first); null where either probability is zero or unknown.

        Parameters
        ----------
        label, against : optional
            Two of the classes.
        by : {"cluster", "task"}
            As in :meth:`feature_rates`.
        estimate : {"mean", "map", "ml"}
            As in :meth:`feature_rates`.

        Returns
        -------
        frame

        See Also
        --------
        explain : What the features of one row said.
        """
        check_is_fitted(self)
        return tables.log_ratios(self._result, label, against, by, estimate)
