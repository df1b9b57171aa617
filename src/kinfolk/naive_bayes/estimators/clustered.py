"""Clustered naive Bayes: a Dirichlet process over tasks' models (Roy and Kaelbling 2007; thesis 2.5 and A.1.3)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.parameters import check_strength_prior, is_learn
from kinfolk.naive_bayes.inference import clustered, noisy
from kinfolk.naive_bayes.inference.fitting import Sharing, SharingModel
from kinfolk.naive_bayes.inference.per_feature import PerFeature
from kinfolk.partition.concentration import GammaPrior
from kinfolk.partition.tree import TaskTree
from kinfolk.posterior import Archive

# The models, by what the tasks of a cluster share: partition_per and within.
_MODELS: dict[tuple[str, str], SharingModel] = {
    ("task", "same"): clustered,
    ("task", "noisy"): noisy,
    ("feature", "same"): PerFeature(clustered),
    ("feature", "noisy"): PerFeature(noisy),
}
# The model of the papers: one partition for all features, rates the same within clusters.
_PLAIN = ("task", "same")


class ClusteredNB(SharingNB):
    """Naive Bayes in which tasks that are kin share their feature rates, and which tasks are kin is inferred.

    Every task keeps its own label rates. Predictions average over all partitions of the tasks that the method
    considers, weighted by their posterior probability.

    If a method leaves unlabelled rows out, ``log_evidence_`` is that of the labelled rows. If it uses them,
    ``partition_`` belongs to the most probable state of partition and labels.

    Parameters
    ----------
    inference : {"bhc", "randomised-bhc", "gibbs", "exact", "variational"}, default="bhc"
        Bayesian hierarchical clustering, in O(tasks²), or from random parts, in O(tasks · log tasks); Gibbs sampling;
        the exact sum over all partitions, for at most 10 tasks; or variational inference, for very many tasks. Gibbs
        sampling and exact sums use unlabelled rows, the others leave them out.
    concentration : float or "learn", default=1
        Readiness to start new clusters (of the Chinese restaurant process). "learn" gives it a Gamma prior with shape
        and rate 1: Gibbs sampling then draws it, the other methods take its most probable value. On real data it makes
        no difference to predictions.
    predictive : {"full", "averaged"}, default="full"
        Whether a row to be predicted also tells about the cluster that it came from, as the model implies ("full"), or
        clusters' predictions are averaged with fixed weights, as eq. (4) of the paper prints it ("averaged").
    partition_per : {"task", "feature"}, default="task"
        Whether kin tasks share the rates of all features, as in the papers, or every feature has a partition of the
        tasks for itself, against which section 2.5 of the thesis argues.
    within : {"same", "noisy"}, default="same"
        Whether tasks of a cluster have the very same rates or, prototype-style, noisy copies of the cluster's: "noisy"
        samples, whatever ``inference`` says. Like ``partition_per="feature"`` it leaves unlabelled rows out.
    strength_prior : (shape, rate), default=(1, 0.01)
        Gamma prior of the strengths K of ``within="noisy"``, as in :class:`PrototypeNB`.
    batch_size : int, optional
        With "variational": tasks that are looked at before clusters are updated, instead of all of them.
    device : str, optional
        With "variational": where tasks' counts are held and multiplied, such as "cuda", by torch (the extra ``gpu``);
        by default in this computer's memory, by numpy.
    label_prior : float, array of shape (n_classes,), mapping or "learn", default="learn"
        Dirichlet pseudo-counts of the labels. "learn" draws the tasks' label rates towards the common ones, as far as
        they are alike: with few rows a task's own rates are little more than chance.
    feature_prior : float, sequence, mapping or "learn", default=1
        Dirichlet pseudo-counts of the feature values: one number, or per feature a number or an array of shape
        (values,) or (classes, values). "learn" is a
        strength for every feature and rates that all clusters have in common; on real data it predicts no better
        than 1, and with two rows a task worse.
    temper : float or "learn", default="learn"
        Power, from 0 to 1, on the feature likelihood in predictions. Below 1 it makes up for naive Bayes counting
        correlated features twice. "learn" gives every feature its own, up to 2, so that training rows, each left out
        in turn, are predicted best; counts do not tell which values came together, so that with them alone it is 1.
        Evidence always uses 1.
    task_column : str or int, optional
        Column of ``X`` that holds the task, instead of ``task=``: for scikit-learn tools that route no metadata.
        To those that hold rows out, give ``cv=kinfolk.TaskKFold(5, task_column=...)``.
    new_tasks : {"warn", "expected"}, default="warn"
        Whether to warn where most rows to be answered are of tasks never seen (:class:`~kinfolk.UnseenWarning`).
    categorical_features : "auto" or sequence, default="auto"
        Columns to treat as categories. "auto" takes text, booleans, categoricals, and whole numbers with at most 64
        different values; other numbers are binned. Whole numbers with more values than ``bins`` are binned, too, where
        that makes the labels of the training rows more probable.
    bins : int or mapping, default=8
        Number of quantile bins of numeric columns, or for named columns a number or the inner edges.
    numeric : {"bin", "gaussian", "count", "auto"} or mapping, default="bin"
        What to do with numeric columns that are not categories: put them into bins, or take them as Gaussian or as
        Poisson counts, with parameters for each label. "auto" takes, column by column, what makes the training rows
        most probable, all tasks pooled, and weighs whole numbers of 17 to 64 values as categories too. A mapping says
        so for named columns, whatever "auto" would call categorical; others have bins.
    unlabelled : optional
        A value of ``y`` that marks a row without a label, beside ``None`` and NaN.
    n_chains, n_burn_in, n_draws : int, default=4, 100, 100
        Chains of the Gibbs sampler, sweeps thrown away and draws kept of each. Used where sampling is.
    random_state : int, RandomState or None
        Seed of the sampler.
    n_jobs : int or None
        Chains run side by side (threads, through joblib).
    verbose : bool, optional
        Show progress on standard error; by default on a terminal, once it takes more than a second.
    checkpoint : path, optional
        A folder in which sampling, or variational inference, keeps how far it got: a fit that was killed and is started
        again, with the same data, parameters and ``random_state``, goes on there and ends as if nothing had happened.
        The folder may hold checkpoints of any number of fits, and may be deleted after them.

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
    label_prior_, temper_ : arrays
        Pseudo-counts of the labels and powers of the features, as given or as learnt.
    feature_prior_ : dict
        Pseudo-counts of every feature's values (classes, values), as given or as learnt, by the feature's name.
    concentration_ : float
        The concentration, as given or as learnt; the mean of the draws where it was sampled.
    posterior_ : Fitted
        Everything that inference left behind.
    feature_partitions_ : dict
        With ``partition_per="feature"``: the cluster of each task, by feature; ``partition_`` is the one of these that
        agrees best with the others, and ``similarity_`` their average.
    tree_ : TaskTree
        With "bhc": the tree of merges; ``tree_.linkage()`` is SciPy's form of it.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early, after a sweep; what is here is then made of the draws, or sweeps, so far.

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

    _hyper_names = (*SharingNB._hyper_names, "concentration")

    def __init__(
        self,
        *,
        inference: Literal["bhc", "randomised-bhc", "gibbs", "exact", "variational"] = "bhc",
        concentration: float | str = 1.0,
        predictive: Literal["full", "averaged"] = "full",
        partition_per: Literal["task", "feature"] = "task",
        within: Literal["same", "noisy"] = "same",
        strength_prior: tuple[float, float] = (1.0, 0.01),
        batch_size: int | None = None,
        device: str | None = None,
        label_prior: float | ArrayLike | Mapping[Any, Any] | str = "learn",
        feature_prior: float | ArrayLike | Mapping[Any, Any] | str = 1.0,
        temper: float | str = "learn",
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        categorical_features: str | Sequence[Any] = "auto",
        bins: int | Mapping[Any, Any] = 8,
        numeric: str | Mapping[Any, str] = "bin",
        unlabelled: Any = None,
        n_chains: int = 4,
        n_burn_in: int = 100,
        n_draws: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            label_prior=label_prior,
            feature_prior=feature_prior,
            temper=temper,
            task_column=task_column,
            new_tasks=new_tasks,
            categorical_features=categorical_features,
            bins=bins,
            numeric=numeric,
            unlabelled=unlabelled,
            n_chains=n_chains,
            n_burn_in=n_burn_in,
            n_draws=n_draws,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            checkpoint=checkpoint,
        )
        self.inference = inference
        self.concentration = concentration
        self.predictive = predictive
        self.partition_per = partition_per
        self.within = within
        self.strength_prior = strength_prior
        self.batch_size = batch_size
        self.device = device

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.inference not in clustered.ALGORITHMS:
            known = ", ".join(f'"{method}"' for method in clustered.ALGORITHMS)
            raise ValueError(f"inference={self.inference!r} is not one of {known}")
        if self.predictive not in ("full", "averaged"):
            raise ValueError(f'predictive={self.predictive!r}: give "full" or "averaged"')
        for name, ways in (("partition_per", ("task", "feature")), ("within", ("same", "noisy"))):
            if getattr(self, name) not in ways:
                raise ValueError(f'{name}={getattr(self, name)!r}: give "{ways[0]}" or "{ways[1]}"')
        check_strength_prior(self.strength_prior)
        if self.batch_size is not None and not (isinstance(self.batch_size, int | np.integer) and self.batch_size >= 1):
            raise ValueError(f"batch_size={self.batch_size!r}: a whole number of at least 1 is needed, or None")
        for name in ("batch_size", "device"):
            if getattr(self, name) is not None and self.inference != "variational":
                raise ValueError(f'{name}={getattr(self, name)!r} goes with inference="variational" alone')
        a = self.concentration
        if not is_learn(a) and not (isinstance(a, int | float | np.number) and np.isfinite(a) and a > 0):
            raise ValueError(f'concentration={a!r}: a finite number above zero or "learn" is needed')

    def _sharing(self) -> Sharing:
        shape, rate = self.strength_prior
        # Noisy copies are sampled, whatever is asked for.
        options = self._options()._replace(
            inference="gibbs" if self.within == "noisy" else self.inference,
            strength_prior=(float(shape), float(rate)),
            batch_size=self.batch_size,
            device=self.device,
        )
        return Sharing(
            _MODELS[self.partition_per, self.within],
            options,
            averaged=self.predictive == "averaged",
            uses_unlabelled=self._is_plain() and self.inference in clustered.USE_UNLABELLED,
            narrow=self.inference == "variational",
        )

    def _is_plain(self) -> bool:
        return (self.partition_per, self.within) == _PLAIN

    def _way(self) -> str:
        """What tells the model from that of the papers or, if nothing does, how it is inferred."""
        if self.partition_per == "feature":
            return 'partition_per="feature"'
        return 'within="noisy"' if self.within == "noisy" else f'inference="{self.inference}"'

    def _counts_alone(self) -> str | None:
        return None if self._is_plain() and self.inference != "variational" else self._way()

    def _tell_of_rows_left_out(self, n_unlabelled: int) -> None:
        instead = 'inference="gibbs"' if self._is_plain() else 'inference="gibbs" without it'
        warnings.warn(
            f"{n_unlabelled} unlabelled row{'s are' if n_unlabelled > 1 else ' is'} left out by {self._way()}; "
            f"{instead} learns from such rows too",
            UserWarning,
            stacklevel=5,
        )

    @property
    def concentration_(self) -> float:
        """Readiness to start new clusters, as given, as learnt, or as drawn on average."""
        check_is_fitted(self)
        return self._result.hyper.concentration

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model = super()._from_archive(archive)
        # JSON knows lists only.
        shape, rate = model.strength_prior
        model.strength_prior = (shape, rate)
        if is_learn(model.concentration) and model._sharing().options.inference == "gibbs":
            hyper = model._result.hyper._replace(concentration_prior=GammaPrior())
            model._keep(model._result._replace(hyper=hyper))
        return model

    def evidence(self, method: Literal["fit", "search", "annealed"] = "fit") -> Evidence:
        """Log evidence of the training rows, by a method of your choice.

        Parameters
        ----------
        method : {"fit", "search", "annealed"}, default="fit"
            "fit" is ``log_evidence_`` as inference left it (a lower bound with "bhc" and "variational"); "search" sums
            over the partitions that a search meets, a lower bound that is never below that of "bhc" (thesis eq.
            4.11–4.15); "annealed" is an estimate with a standard error (thesis A.2).

        Returns
        -------
        Evidence

        See Also
        --------
        conditional_evidence : Evidence of the labels given the features.
        """
        check_is_fitted(self)
        if method == "fit":
            return self._evidence()
        if method not in ("search", "annealed"):
            raise ValueError(f'method={method!r}: give "fit", "search" or "annealed"')
        if method == "search" and not self._is_plain():
            raise ValueError('method="search" knows one partition for all features, the same rates within clusters')
        fit, sharing = self._result, self._sharing()
        data = sharing.prepared(fit.data)
        if not sharing.uses_unlabelled:
            data = data.labelled_only()
        if method == "annealed":
            return sharing.model.evidence(data, fit.hyper, sharing.options, fit.seed)
        if fit.hyper.concentration_prior is not None:
            raise ValueError('method="search" takes one concentration, and this model drew many: use "annealed"')
        if data.n_unlabelled:
            n = data.n_unlabelled
            raise ValueError(f'method="search" takes labelled rows alone, and {n} of these rows have no label')
        return clustered.searched_evidence(data, fit.hyper, fit.seed, fit.posterior.tree)

    @property
    def feature_partitions_(self) -> dict[str, NDArray[np.int64]]:
        """With ``partition_per="feature"``: the cluster of each task, feature by feature."""
        check_is_fitted(self)
        if self.partition_per != "feature" or self.posterior_.partitions is None:
            raise AttributeError('feature_partitions_ comes with partition_per="feature"')
        return dict(zip(self._result.schema.names, self.posterior_.partitions[0], strict=True))

    @property
    def tree_(self) -> TaskTree:
        """The tree of merges that hierarchical clustering built."""
        check_is_fitted(self)
        if self.posterior_.tree is None:
            raise AttributeError(f'tree_ comes with inference="bhc"; this model was fitted with {self.inference!r}')
        return self.posterior_.tree
