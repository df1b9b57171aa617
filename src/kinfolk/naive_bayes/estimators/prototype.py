"""Prototype sharing: every task a noisy copy of one prototype (thesis section 2.4, eq. 2.25–2.31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kinfolk.naive_bayes.answers import tables
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.parameters import check_strength_prior
from kinfolk.naive_bayes.inference import prototype
from kinfolk.naive_bayes.inference.fitting import Sharing
from kinfolk.posterior import Archive


class PrototypeNB(SharingNB):
    """Naive Bayes in which every task's feature rates are a noisy copy of one prototype, shared by all.

    How noisy is inferred separately for every label and feature: the strength K says how many of a task's own rows the
    prototype is worth. If tasks are nearly alike, K is large, and a task with few rows relies on the prototype. The
    noise has a single mode, which makes the model brittle: if two groups of tasks contradict each other, K falls
    towards zero and nothing is shared; :class:`ClusteredNB` is then the model to use. Every task keeps its own label
    rates.

    Parameters
    ----------
    strength_prior : (float, float), default=(1, 0.01)
        Shape and rate of the Gamma distribution that strengths come from. By default an exponential distribution with
        mean 100, flat over the strengths that a few dozen rows a task can tell apart, so that the data decide; where
        they cannot, tasks lean on the prototype.
    label_prior : float, array of shape (n_classes,), mapping or "learn", default="learn"
        Dirichlet pseudo-counts of the labels. "learn" draws the tasks' label rates towards the common ones, as far as
        they are alike: with few rows a task's own rates are little more than chance.
    feature_prior : float, sequence, mapping or "learn", default="learn"
        Dirichlet pseudo-counts of the prototypes: one number, or per feature a number or an array of shape (values,) or
        (classes, values). "learn" is a strength for every feature and the rates of its values whatever the label, as of
        :class:`CompleteSharingNB`, which this model is where strengths are infinite.
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
    numeric : {"bin", "auto"} or mapping, default="bin"
        What to do with numeric columns that are not categories: put them into bins. "auto" weighs whole numbers of 17
        to 64 values as categories and as bins, and takes what makes the training rows most probable, all tasks pooled.
        A mapping says so for named columns. "gaussian" and "count", which other models take, are refused: noise is
        that of the rates of values here, and a density of numbers has none.
    unlabelled : optional
        A value of ``y`` that marks a row without a label, beside ``None`` and NaN.
    n_chains, n_burn_in, n_draws : int, default=4, 100, 200
        Chains of the sampler, sweeps thrown away and draws kept of each.
    random_state : int, RandomState or None
        Seed of the sampler.
    n_jobs : int or None
        Labels and features (or chains, where there are unlabelled rows) sampled side by side (threads, through joblib);
        the result does not depend on it.
    verbose : bool, optional
        Show progress on standard error; by default on a terminal, once it takes more than a second.
    checkpoint : path, optional
        A folder in which sampling keeps how far it got: a fit that was killed and is started again, with the same data,
        parameters and ``random_state``, goes on there and ends as if nothing had happened. Ctrl-C then stops after the
        sweep at work. The folder may hold checkpoints of any number of fits, and may be deleted after them.

    Attributes
    ----------
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    prototypes_ : frame
        Posterior mean and 5% and 95% points of the prototypes: label, feature, value, mean, 5%, 95%.
    strengths_ : frame
        The same of the strengths: label, feature, mean, 5%, 95%.
    partition_, similarity_ : arrays
        No two tasks have the very same rates in this model: each is a cluster of its own, and the probability that two
        different tasks share is zero. How alike tasks are is told by ``strengths_``.
    log_evidence_, log_evidence_kind_, log_evidence_error_
        Natural log of the evidence, what kind of number it is, and its standard error.
    label_distributions_, transduction_ : arrays
        For the rows of the last call to ``fit``: probabilities of the labels, and the most probable one.
    label_prior_, temper_ : arrays
        Pseudo-counts of the labels and powers of the features, as given or as learnt.
    feature_prior_ : dict
        Pseudo-counts of every feature's values (classes, values), as given or as learnt, by the feature's name.
    posterior_ : Fitted
        Everything that inference left behind.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early; what is here is then made of the draws so far.

    References
    ----------
    D. M. Roy, "Clustered Naive Bayes", M.Eng. thesis, MIT, 2006, section 2.4.

    Examples
    --------
    >>> from kinfolk import PrototypeNB
    >>> X = [["red"], ["blue"]] * 13
    >>> y = ["stop", "go"] * 12 + ["go", "stop"]
    >>> task = ["ann"] * 8 + ["bob"] * 8 + ["cid"] * 8 + ["eve"] * 2
    >>> model = PrototypeNB(random_state=0).fit(X, y, task=task)

    Eve, of whom little is known, is taken to be like the others; so is a task never seen.

    >>> model.predict([["red"], ["red"]], task=["eve", "fay"]).tolist()
    ['stop', 'stop']
    >>> model.strengths_.columns
    ['label', 'feature', 'mean', '5%', '95%']
    """

    _shares_rates = True

    def __init__(
        self,
        *,
        strength_prior: tuple[float, float] = (1.0, 0.01),
        label_prior: float | ArrayLike | Mapping[Any, Any] | str = "learn",
        feature_prior: float | ArrayLike | Mapping[Any, Any] | str = "learn",
        temper: float | str = "learn",
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        categorical_features: str | Sequence[Any] = "auto",
        bins: int | Mapping[Any, Any] = 8,
        numeric: str | Mapping[Any, str] = "bin",
        unlabelled: Any = None,
        n_chains: int = 4,
        n_burn_in: int = 100,
        n_draws: int = 200,
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
        self.strength_prior = strength_prior

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_strength_prior(self.strength_prior)

    def _counts_alone(self) -> str:
        return type(self).__name__

    def _sharing(self) -> Sharing:
        shape, rate = self.strength_prior
        return Sharing(prototype, self._options()._replace(strength_prior=(float(shape), float(rate))))

    @property
    def prototypes_(self) -> Any:
        """The prototypes as a table: label, feature, value, mean, 5%, 95%."""
        check_is_fitted(self)
        return tables.prototypes(self._result)

    @property
    def strengths_(self) -> Any:
        """The strengths as a table: label, feature, mean, 5%, 95%."""
        check_is_fitted(self)
        return tables.strengths(self._result)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model = super()._from_archive(archive)
        # JSON knows lists only.
        shape, rate = model.strength_prior
        model.strength_prior = (shape, rate)
        return model
