"""Clustered naive Bayes: a Dirichlet process over tasks' models (paper 000; thesis sections 2.5 and A.1.3)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.approximated import fit_variationally
from kinfolk.naive_bayes.base import SharingNB
from kinfolk.naive_bayes.enumerated import fit_exactly
from kinfolk.naive_bayes.fitted import Fitted, Problem
from kinfolk.naive_bayes.hierarchical import fit_hierarchically
from kinfolk.naive_bayes.sampled import sampled_evidence
from kinfolk.partition.tree import TaskTree
from kinfolk.progress import progress_bar

_METHODS = ("bhc", "randomised-bhc", "gibbs", "exact", "variational")


class ClusteredNB(SharingNB):
    """Naive Bayes in which tasks that are kin share their feature rates, and which tasks are kin is inferred.

    Every task keeps label rates of its own. Predictions average over all partitions of the tasks that the method
    considers, weighed by their posterior probability.

    A method that leaves unlabelled rows out leaves them out of ``log_evidence_`` too, which then speaks of the labelled
    rows. With a method that uses them, ``partition_`` is that of the most probable state of partition and labels.

    Parameters
    ----------
    inference : {"bhc", "randomised-bhc", "gibbs", "exact", "variational"}, default="bhc"
        Bayesian hierarchical clustering, in O(tasks²), or from random parts, in O(tasks · log tasks); Gibbs sampling;
        the exact sum over all partitions, for at most 10 tasks; or variational inference, for very many tasks. Gibbs
        sampling and exact sums use unlabelled rows, the others leave them out.
    concentration : float, default=1
        Readiness to start new clusters (of the Chinese restaurant process).
    predictive : {"full", "averaged"}, default="full"
        Whether a row to be predicted also tells about the cluster that it came from, as the model implies ("full"), or
        clusters' predictions are averaged with fixed weights, as eq. (4) of the paper prints it ("averaged").
    label_prior : float, array of shape (n_classes,) or mapping, default=1
        Dirichlet pseudo-counts of the labels.
    feature_prior : float, sequence or mapping, default=1
        Dirichlet pseudo-counts of the feature values: one number, or per feature a number or an array of shape
        (values,) or (classes, values).
    temper : float, default=1
        Power, from 0 to 1, on the feature likelihood in predictions. Below 1 it makes up for naive Bayes counting
        correlated features twice. Evidence always uses 1.
    task_column : str or int, optional
        Column of ``X`` that holds the task, instead of ``task=``: for scikit-learn tools that route no metadata.
    categorical_features : "auto" or sequence, default="auto"
        Columns to treat as categories. "auto" takes text, booleans, categoricals, and whole numbers with at most 64
        different values; other numbers are binned.
    bins : int or mapping, default=8
        Number of quantile bins of numeric columns, or for named columns a number or the inner edges.
    unlabelled : optional
        A value of ``y`` that marks a row without a label, beside ``None`` and NaN.
    n_chains, n_burn_in, n_draws : int, default=4, 100, 100
        Chains of the Gibbs sampler, sweeps thrown away and draws kept of each. Used where sampling is.
    random_state : int, RandomState or None
        Seed of the sampler.
    n_jobs : int or None
        Chains run side by side (threads, through joblib).
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    partition_, similarity_ : arrays
        Cluster of each task, and the posterior probability that two tasks share.
    log_evidence_, log_evidence_kind_, log_evidence_error_
        Natural log of the evidence, what kind of number it is, and its standard error.
    label_distributions_, transduction_ : arrays
        For the rows of the last call to ``fit``: probabilities of the labels, and the most probable one.
    posterior_ : Fitted
        Everything that inference left behind.
    tree_ : TaskTree
        With "bhc": the tree of merges; ``tree_.linkage()`` is SciPy's form of it.

    References
    ----------
    D. M. Roy and L. P. Kaelbling, "Efficient Bayesian Task-Level Transfer Learning", IJCAI 2007.
    D. M. Roy, "Clustered Naive Bayes", M.Eng. thesis, MIT, 2006.
    K. Heller and Z. Ghahramani, "Bayesian Hierarchical Clustering", ICML 2005.

    Examples
    --------
    >>> from kinfolk import ClusteredNB
    >>> X = [["red"], ["blue"]] * 12
    >>> y = ["stop", "go"] * 8 + ["go", "stop"] * 4
    >>> task = ["ann"] * 8 + ["bob"] * 8 + ["eve"] * 8
    >>> model = ClusteredNB().fit(X, y, task=task)
    >>> dict(zip(model.tasks_.tolist(), model.partition_.tolist()))
    {'ann': 0, 'bob': 0, 'eve': 1}
    >>> model.predict([["red"], ["red"]], task=["ann", "eve"]).tolist()
    ['stop', 'go']
    """

    def __init__(
        self,
        *,
        inference: Literal["bhc", "randomised-bhc", "gibbs", "exact", "variational"] = "bhc",
        concentration: float = 1.0,
        predictive: Literal["full", "averaged"] = "full",
        label_prior: float | ArrayLike = 1.0,
        feature_prior: float | ArrayLike | Mapping[Any, Any] = 1.0,
        temper: float = 1.0,
        task_column: str | int | None = None,
        categorical_features: str | Sequence[Any] = "auto",
        bins: int | Mapping[Any, Any] = 8,
        unlabelled: Any = None,
        n_chains: int = 4,
        n_burn_in: int = 100,
        n_draws: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            label_prior=label_prior,
            feature_prior=feature_prior,
            temper=temper,
            task_column=task_column,
            categorical_features=categorical_features,
            bins=bins,
            unlabelled=unlabelled,
            n_chains=n_chains,
            n_burn_in=n_burn_in,
            n_draws=n_draws,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.inference = inference
        self.concentration = concentration
        self.predictive = predictive

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.inference not in _METHODS:
            known = ", ".join(f'"{method}"' for method in _METHODS)
            raise ValueError(f"inference={self.inference!r} is not one of {known}")
        if self.predictive not in ("full", "averaged"):
            raise ValueError(f'predictive={self.predictive!r}: give "full" or "averaged"')
        a = self.concentration
        if not isinstance(a, int | float | np.number) or not np.isfinite(a) or a <= 0:
            raise ValueError(f"concentration={a!r}: a finite number above zero is needed")

    def _averaged(self) -> bool:
        return self.predictive == "averaged"

    def _infer(self, problem: Problem) -> Fitted:
        concentration = float(self.concentration)
        n_unlabelled = len(problem.unlabelled.labels)
        if self.inference == "exact":
            return fit_exactly(problem, concentration)
        if self.inference == "gibbs":
            return self._sample(problem, concentration, None)
        if n_unlabelled:
            left_out = f"{n_unlabelled} unlabelled row{'s are' if n_unlabelled > 1 else ' is'} left out"
            warnings.warn(
                f'{left_out} by inference="{self.inference}"; inference="gibbs" learns from such rows too',
                UserWarning,
                stacklevel=4,
            )
        if self.inference == "variational":
            with progress_bar("Sweeping over tasks", None, bool(self.verbose)) as advance:
                return fit_variationally(problem, concentration, self._seed, advance)
        n_merges = len(problem.statistics.tasks) - 1
        with progress_bar("Joining tasks", n_merges, bool(self.verbose)) as advance:
            seed = self._seed if self.inference == "randomised-bhc" else None
            return fit_hierarchically(problem, concentration, advance, seed, self.n_jobs)

    def _takes_narrow_counts(self) -> bool:
        return self.inference == "variational"

    def _estimate_evidence(self) -> Evidence:
        return sampled_evidence(self._problem(), float(self.concentration), self._seed, self.n_jobs)

    @property
    def tree_(self) -> TaskTree:
        """The tree of merges that hierarchical clustering built."""
        check_is_fitted(self)
        if self.posterior_.tree is None:
            raise AttributeError(f'tree_ comes with inference="bhc"; this model was fitted with {self.inference!r}')
        return self.posterior_.tree
