"""Prototype sharing: every task a noisy copy of one prototype (thesis section 2.4, eq. 2.25–2.31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma
from sklearn.utils.validation import check_is_fitted

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.answers.explanation import Explanation
from kinfolk.naive_bayes.answers.parameters import dirichlet_estimate, mean_over_blocks
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.inference.gibbs import Schedule
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut, belonging, leave_out
from kinfolk.naive_bayes.inference.prototype import TINY, PrototypeDraws, fit_prototype, noise_model
from kinfolk.naive_bayes.inference.prototype_evidence import prototype_evidence
from kinfolk.naive_bayes.inference.prototype_unlabelled import fit_with_unlabelled
from kinfolk.naive_bayes.model.fitted import Fitted, Problem
from kinfolk.naive_bayes.model.priors import check_strength_prior
from kinfolk.naive_bayes.model.tallies import Floats, tally
from kinfolk.posterior import Archive
from kinfolk.progress import progress_bar
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.statistics import Rows


class PrototypeNB(SharingNB):
    """Naive Bayes in which every task's feature rates are a noisy copy of one prototype, shared by all.

    How noisy is inferred, for every label and feature apart: its strength K says how many rows of a task's own the
    prototype is worth. Where tasks are nearly alike K is large, and a task with few rows leans on the prototype. The
    noise has a single mode, so that the model is brittle: where there are two groups of tasks that contradict each
    other, K falls towards zero and nothing is shared, and :class:`ClusteredNB` is the model to use. Every task keeps
    label rates of its own.

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
    categorical_features : "auto" or sequence, default="auto"
        Columns to treat as categories. "auto" takes text, booleans, categoricals, and whole numbers with at most 64
        different values; other numbers are binned.
    bins : int or mapping, default=8
        Number of quantile bins of numeric columns, or for named columns a number or the inner edges.
    unlabelled : optional
        A value of ``y`` that marks a row without a label, beside ``None`` and NaN.
    n_chains, n_burn_in, n_draws : int, default=4, 100, 200
        Chains of the sampler, sweeps thrown away and draws kept of each.
    random_state : int, RandomState or None
        Seed of the sampler.
    n_jobs : int or None
        Labels and features (or chains, where there are unlabelled rows) sampled side by side (threads, through joblib);
        the result does not depend on it.
    verbose : bool, default=False
        Show progress on standard error.

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
    posterior_ : Fitted
        Everything that inference left behind.

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

    _draws: PrototypeDraws
    _tasks_share_rates = True

    def __init__(
        self,
        *,
        strength_prior: tuple[float, float] = (1.0, 0.01),
        label_prior: float | ArrayLike | Mapping[Any, Any] | str = "learn",
        feature_prior: float | ArrayLike | Mapping[Any, Any] | str = "learn",
        temper: float | str = "learn",
        task_column: str | int | None = None,
        categorical_features: str | Sequence[Any] = "auto",
        bins: int | Mapping[Any, Any] = 8,
        unlabelled: Any = None,
        n_chains: int = 4,
        n_burn_in: int = 100,
        n_draws: int = 200,
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
        self.strength_prior = strength_prior

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_strength_prior(self.strength_prior)

    def _infer(self, problem: Problem) -> Fitted:
        schedule = Schedule(self.n_chains, self.n_burn_in, self.n_draws)
        model = noise_model(problem, self.strength_prior)
        n_sweeps = model.n_groups * self.n_chains * (self.n_burn_in + self.n_draws)
        sample = fit_with_unlabelled if len(problem.unlabelled.labels) else fit_prototype
        with progress_bar("Sampling", n_sweeps, bool(self.verbose)) as advance:
            fitted, self._draws = sample(problem, model, schedule, self._seed, self.n_jobs, advance)
        return fitted

    def _estimate_evidence(self) -> Evidence:
        problem = self._problem()
        return prototype_evidence(problem, noise_model(problem, self.strength_prior), self._seed, self.n_jobs)

    @property
    def prototypes_(self) -> Any:
        """The prototypes as a table: label, feature, value, mean, 5%, 95%."""
        check_is_fitted(self)
        names = self._cell_names()
        n_labels = len(self.classes_)
        columns = {
            "label": np.repeat(self.classes_, len(names)).tolist(),
            "feature": [feature for feature, _ in names] * n_labels,
            "value": [value for _, value in names] * n_labels,
        }
        return make_frame({**columns, **_summary(self._draws.prototypes)}, self._backend)

    @property
    def strengths_(self) -> Any:
        """The strengths as a table: label, feature, mean, 5%, 95%."""
        check_is_fitted(self)
        names = self._schema.names
        columns = {
            "label": np.repeat(self.classes_, len(names)).tolist(),
            "feature": names * len(self.classes_),
        }
        return make_frame({**columns, **_summary(self._draws.strengths)}, self._backend)

    def explain(self, X: Any, task: Any = None) -> Explanation:
        """What each feature added to the log odds of each row, and whose data stood behind it.

        A task's rates are made of its own N rows and of K rows of the prototype's. The prototype in turn is made of the
        prior's pseudo-counts and of votes of the tasks: of its n rows with a value, a task is expected to have drawn
        a (ψ(a + n) − ψ(a)) from the prototype and the others from those before them, a being K θ̄. So ``everybody`` is
        the part of the prototype that other tasks voted for, the task's own votes count as its ``own``, and ``kin`` is
        zero.

        Returns
        -------
        Explanation
            Its ``table(row)`` is meant for reading, its arrays for computing.
        """
        explanation = super().explain(X, task)
        codes, place = self._encode(X, task)
        asked, row_of = np.unique(place, return_inverse=True)
        probability = np.exp(self._log_predictive(codes, place))
        own, everybody, prior = np.einsum("ry,sryf->srf", probability, self._sources(asked)[:, row_of])
        return explanation._replace(own=own, kin=np.zeros_like(own), everybody=everybody, prior=prior)

    def _sources(self, tasks: NDArray[np.int64]) -> Floats:
        """Shares of own data, others' data and prior behind rates, (3, tasks, labels, features)."""
        problem = self._problem()
        layout = problem.statistics.layout
        starts = layout.group_start[:-1]
        counts, pseudo = self._mean_counts(), self._pseudo_counts()
        all_votes = np.add.reduceat(self._all_votes(counts, pseudo), starts)
        weight = np.add.reduceat(problem.feature_prior, starts)
        asked = counts[tasks]
        own_votes = np.add.reduceat(_votes(pseudo, asked), starts, axis=1)
        totals = np.add.reduceat(asked, starts, axis=1)
        strengths = np.maximum(self._draws.strengths.reshape(-1, len(starts)), TINY)
        pull = np.array([(strengths / (total + strengths)).mean(axis=0) for total in totals])
        others = pull * np.maximum(all_votes - own_votes, 0.0) / (weight + all_votes)
        prior = np.broadcast_to(weight / (weight + all_votes), pull.shape) * pull
        return np.array([1.0 - others - prior, others, prior]).reshape(3, len(tasks), layout.n_labels, -1)

    def _mean_counts(self) -> Floats:
        """Counts of every task, averaged over draws of unknown labels; the last row is a new task's."""
        # Blocks follow draw by draw; the last task of each draw is a new one.
        counts = self.posterior_.blocks.counts
        return np.asarray(counts.reshape(-1, len(self.tasks_) + 1, counts.shape[1]).mean(axis=0))

    def _all_votes(self, counts: Floats, pseudo: Floats) -> Floats:
        """How many rows of all tasks are expected to have drawn each cell from the prototype."""
        # Means are fractional, so that every term of the tallies is a count and the number of tasks that have it.
        tallies = tally(counts, self._statistics.layout.group_start)
        cell = np.repeat(np.arange(len(pseudo)), np.diff(tallies.start)[: len(pseudo)])
        votes = tallies.weight[: len(cell)] * _votes(pseudo[cell], tallies.at[: len(cell)])
        return np.bincount(cell, votes, len(pseudo)).astype(np.float64)

    def _left_out(self, rows: Rows) -> LeftOut:
        """Take rows out of their tasks and, by their votes, out of the prototype; strengths stay as they are."""
        problem, pseudo = self._problem(), self._pseudo_counts()
        votes = problem.feature_prior + self._all_votes(self._mean_counts(), pseudo)
        problem = problem._replace(feature_prior=pseudo, votes=votes)
        return leave_out(problem, belonging(self.posterior_), rows, problem.statistics.label_counts)

    def _pseudo_counts(self) -> Floats:
        """Posterior mean of K θ̄, cell by cell."""
        layout = self._statistics.layout
        strengths = np.repeat(self._draws.strengths, np.diff(layout.group_start), axis=2)
        return np.asarray(np.maximum((strengths * self._draws.prototypes).mean(axis=(0, 1)), TINY))

    def _rates(self, by: str, estimate: str) -> tuple[NDArray[Any], Floats]:
        """Owners and their rates (owners, labels, values of all features); each task is a cluster of its own.

        The posterior mode is that of a task's rates given the posterior mean of K θ̄.
        """
        if by not in ("cluster", "task"):
            raise ValueError(f'by={by!r}: give "cluster" or "task"')
        check_is_fitted(self)
        owners = self.tasks_ if by == "task" else self.partition_
        if estimate == "mean":
            return owners, mean_over_blocks(self.posterior_.blocks.mixture, len(self.tasks_)).transpose(0, 2, 1)
        statistics = self._problem().statistics
        layout = statistics.layout
        rates = dirichlet_estimate(statistics.feature_counts, self._pseudo_counts(), layout.group_start, estimate)
        return owners, rates.reshape(len(owners), layout.n_labels, layout.width)

    def _to_archive(self) -> Archive:
        archive = super()._to_archive()
        drawn = {f"prototype.{name}": values for name, values in self._draws._asdict().items()}
        return archive._replace(arrays={**archive.arrays, **drawn})

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model = super()._from_archive(archive)
        layout = model._statistics.layout
        strengths = archive.array("prototype.strengths", "f", (None, None, len(layout.group_start) - 1))
        prototypes = archive.array("prototype.prototypes", "f", (*strengths.shape[:2], layout.n_cells))
        model._draws = PrototypeDraws(strengths, prototypes)
        # JSON knows lists only.
        shape, rate = model.strength_prior
        model.strength_prior = (shape, rate)
        return model


def _votes(pseudo: Floats, counts: Floats) -> Floats:
    """How many of a task's rows with a value are expected to have drawn it from the prototype."""
    return np.asarray(pseudo * (digamma(pseudo + counts) - digamma(pseudo)))


def _summary(draws: Floats) -> dict[str, list[float]]:
    """Posterior mean and 5% and 95% points of each column of draws."""
    low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    return {"mean": draws.mean(axis=(0, 1)).tolist(), "5%": low.tolist(), "95%": high.tolist()}
