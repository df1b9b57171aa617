"""Naive Bayes models averaged, so that nobody needs to know beforehand how much his tasks share (thesis 3.2.2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from kinfolk.checkpoints import Checkpoint
from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.pieces import delayed
from kinfolk.posterior import Archive, schema_about
from kinfolk.progress import progress_bar
from kinfolk.tasks.answering import tell
from kinfolk.tasks.keywords import third_by_keyword
from kinfolk.tasks.streaming.counts import Counts
from kinfolk.tasks.training import Labelled
from kinfolk.tasks.whole_fits import all_or_nothing
from kinfolk.transfer.averaging import Average
from kinfolk.transfer.held_out import Folds, joined, quietly, rows_of_every_task
from kinfolk.transfer.label_average import LabelAverage
from kinfolk.transfer.members import (
    NAIVE_BAYES,
    NAIVE_BAYES_KINDS,
    Chosen,
    Sizes,
    default_members,
    own_members,
    sizes_of,
)
from kinfolk.transfer.models import Member, codings_of
from kinfolk.transfer.sizes import SizeWeights
from kinfolk.transfer.weights import by_evidence, by_stacking

WEIGH_BY = ("held-out", "leave-one-out", "evidence", "conditional-evidence")


class AveragedNB(LabelAverage):
    """The average of several naive Bayes models, weighted by how well each predicts held-out rows.

    By default these are the models of the thesis: no sharing, complete sharing with label rates for each task, the
    prototype and the clustered model. Which of them is best depends on the data set and on the number of rows; the
    average is close to the best of them, and you need not choose.

    Parameters
    ----------
    members : mapping or sequence of estimators, optional
        Naive Bayes estimators of kinfolk, by names of your own if given as a mapping. They keep their own parameters,
        but for ``task_column``, ``new_tasks`` and ``unlabelled``, which are the average's, and the seed, if they have
        none.
    weigh_by : {"held-out", "leave-one-out", "evidence", "conditional-evidence"}, default="held-out"
        "held-out" stacks: rows are held out in ``n_folds`` parts, and members weighed so that their average predicts
        them best. "leave-one-out" does the same in closed form, without fitting again; since a member's partition has
        seen the rows, it thinks better of the clustered model than it should. "evidence" and "conditional-evidence"
        are p(X, Y | member) and p(Y | X, member); members must then not be tempered, which evidence knows nothing of.
    n_folds : int, default=5
        Parts that are held out in turn.
    task_column, new_tasks, categorical_features, bins, numeric, unlabelled
        As in the models that are averaged by default, to which they are passed on. The prototype model, which has no
        densities of numbers, has bins where others take a column as Gaussian or as counts.
    random_state : int, RandomState or None
        Seed of the folds and of the members that sample.
    n_jobs : int or None
        Fits run side by side (threads, through joblib); the result does not depend on it.
    verbose : bool, optional
        Show progress on standard error; by default on a terminal, once it takes more than a second.
    checkpoint : path, optional
        A folder in which a fit keeps what members said of rows held out, and what those that sample have reached: one
        that was stopped, by ``kill -9`` even, goes on when it is started again, and ends with the same result to the
        last bit. It needs a whole number as ``random_state``.

    Attributes
    ----------
    members_ : dict
        The members fitted to all rows, by name.
    weights_ : dict
        The weight of each; the weights add up to one.
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    similarity_, partition_ : arrays
        The members' probabilities that two tasks share, averaged; and the one of their partitions that agrees best.

    References
    ----------
    D. M. Roy, "Clustered Naive Bayes", M.Eng. thesis, MIT, 2006, section 3.2.2.
    D. H. Wolpert, "Stacked Generalization", Neural Networks 5, 1992.
    Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using Stacking to Average Bayesian Predictive Distributions",
    Bayesian Analysis 13, 2018.

    Examples
    --------
    >>> from kinfolk import AveragedNB
    >>> X = [["red"], ["blue"]] * 30
    >>> y = ["stop", "go"] * 20 + ["go", "stop"] * 10
    >>> task = ["ann"] * 20 + ["bob"] * 20 + ["eve"] * 20
    >>> model = AveragedNB(random_state=0).fit(X, y, task=task)
    >>> model.predict([["red"], ["red"]], task=["ann", "eve"]).tolist()
    ['stop', 'go']
    >>> list(model.weights_)
    ['no sharing', 'complete sharing', 'prototype', 'clustered']
    """

    def __init__(
        self,
        members: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        weigh_by: Literal["held-out", "leave-one-out", "evidence", "conditional-evidence"] = "held-out",
        n_folds: int = 5,
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        categorical_features: str | Sequence[Any] = "auto",
        bins: int | Mapping[Any, Any] = 8,
        numeric: str | Mapping[Any, str] = "bin",
        unlabelled: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.members = members
        self.weigh_by = weigh_by
        self.n_folds = n_folds
        self.task_column = task_column
        self.new_tasks = new_tasks
        self.categorical_features = categorical_features
        self.bins = bins
        self.numeric = numeric
        self.unlabelled = unlabelled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Fit every member to all rows, and find the weight of each.

        Parameters
        ----------
        X, y, task, sample_weight
            As in the members.

        Returns
        -------
        self

        See Also
        --------
        partial_fit : Add rows to what was learnt.
        fit_statistics : Learn from counts instead of rows.
        explain : What each feature, and each member, adds to the log odds.
        """
        self._check_parameters()
        table = self._receive(X, y, task, sample_weight)
        seed = self._draw_seed()
        (members, shares), checkpoint = self._members_for(sizes_of(table), seed)
        n_fits = len(members) * (1 + (self.n_folds if self.weigh_by == "held-out" else 0))
        with all_or_nothing(self), progress_bar("Fitting models", n_fits, self.verbose) as advance:
            codings = codings_of(members.values(), table)
            with warnings.catch_warnings(record=self.members is None) as caught:
                if caught is not None:
                    warnings.simplefilter("always")
                whole = self._learn_whole(members, codings, advance)
            if caught is not None:
                self._tell(caught, int(((table.labels.codes < 0) & table.arrival.counted).sum()))
            self._log_evidence: list[Evidence] = []
            believed = shares
            if self.weigh_by == "held-out":
                believed = self._by_folds(members, shares, table, seed, advance, checkpoint)
            elif self.weigh_by == "leave-one-out":
                believed = self._by_rows_left_out(whole, shares)
            else:
                believed, self._log_evidence = self._by_evidence(whole)
            arrival, labels = table.arrival, table.labels.classes
            weights = SizeWeights(np.ones(1), believed[None])
            n_rows = rows_of_every_task(table)
            self._keep(Average(arrival.known, labels, whole, weights, n_rows, seed, arrival.backend))
        return self

    def _tell(self, caught: Sequence[warnings.WarningMessage], n_unlabelled: int) -> None:
        """Say what the default members have to tell in words of the average: nobody has made them, or can set them."""
        if n_unlabelled:
            plural = "s are" if n_unlabelled > 1 else " is"
            tell(
                f"{n_unlabelled} unlabelled row{plural} left out where tasks are clustered: give members of your own, "
                'with ClusteredNB(inference="gibbs") among them, to learn from such rows there too',
                UserWarning,
            )
        if any(issubclass(one.category, ConvergenceWarning) for one in caught):
            tell(
                "one of the averaged models ended before it had settled: members_ has them; give members of your own "
                "to let them run for longer",
                ConvergenceWarning,
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.weigh_by not in WEIGH_BY:
            known = ", ".join(f'"{way}"' for way in WEIGH_BY)
            raise ValueError(f"weigh_by={self.weigh_by!r} is not one of {known}")
        told_otherwise = self.bins != 8 or self.categorical_features != "auto" or self.numeric != "bin"
        if self.members is not None and told_otherwise:
            raise ValueError(
                "bins, numeric and categorical_features belong to the default members: give yours their own"
            )

    def _choose(self, seed: int, sizes: Sizes) -> Chosen:
        plain_only = self.weigh_by in ("evidence", "conditional-evidence")
        if self.members is None:
            return default_members(NAIVE_BAYES, self, seed, sizes, plain_only)
        return own_members(self.members, self, seed, NAIVE_BAYES_KINDS, plain_only)

    def _by_folds(
        self,
        members: dict[str, Member],
        shares: Floats,
        table: Labelled,
        seed: int,
        advance: Callable[[int], None],
        checkpoint: Checkpoint,
    ) -> Floats:
        """Hold rows out in parts, and stack what members fitted to the others say of them."""
        folds = Folds.of(table, self.n_folds, np.random.default_rng(seed), checkpoint=checkpoint)
        if not folds.parts:
            return shares
        every = list(members.values())
        parts = quietly(self.n_jobs, [(folds.labels_of, every, part, 1, advance) for part in folds.parts])
        found = joined([held_out for held_out, _ in parts])
        return by_stacking(found.log_probability, found.weights, shares)

    def _by_rows_left_out(self, members: Mapping[str, Any], shares: Floats) -> Floats:
        """Stack what members say of each row in closed form, as if they had not seen it."""
        models = [member.fitted for member in members.values()]
        left_out = [model._leave_out(model._result.rows) for model in models]
        own = [
            each.log_predictive(model.temper_, model._result.averaged)[np.arange(len(each.labels)), each.labels]
            for each, model in zip(left_out, models, strict=True)
        ]
        return by_stacking(np.column_stack(own), left_out[0].weights, shares)

    def _by_evidence(self, members: Mapping[str, Any]) -> tuple[Floats, list[Evidence]]:
        """Posterior probabilities of members that were equally probable, and their evidence."""
        models = {name: member.fitted for name, member in members.items()}
        if self.weigh_by == "evidence":
            _check_evidence_is_of_the_same(models)
            found = [model._evidence() for model in models.values()]
        else:
            found = [model.conditional_evidence() for model in models.values()]
        return by_evidence(np.array([evidence.value for evidence in found])), found

    def _counts_alone(self) -> bool:
        return True

    def _weighed_anew(self, members: Mapping[str, Member]) -> SizeWeights:
        """By the evidence of all rows, where evidence weighs; else as before."""
        if not self._log_evidence:
            return super()._weighed_anew(members)
        believed, self._log_evidence = self._by_evidence(members)
        return SizeWeights(np.ones(1), believed[None])

    def fit_statistics(
        self,
        feature_counts: ArrayLike | Counts,
        label_counts: ArrayLike | None = None,
        tasks: Any = None,
        *,
        n_values: ArrayLike | None = None,
    ) -> Self:
        """Learn from counts instead of rows; with ``weigh_by="evidence"`` alone, since counts have no rows to hold out.

        Parameters
        ----------
        feature_counts, label_counts, tasks, n_values
            As in the members.

        Returns
        -------
        self

        See Also
        --------
        fit : Learn from rows.
        kinfolk.count_rows : The counts of a table that is too large for memory.

        Examples
        --------
        >>> alike = np.tile([[[30, 10]], [[10, 30]]], (5, 1, 1, 1))
        >>> model = AveragedNB(weigh_by="evidence", random_state=0).fit_statistics(alike, np.full((5, 2), 40))
        >>> max(model.weights_, key=model.weights_.get)
        'complete sharing'
        """
        if self.weigh_by != "evidence":
            raise ValueError(
                f"weigh_by={self.weigh_by!r} weighs models by what they say of single rows, which counts do not hold: "
                'give weigh_by="evidence"'
            )
        self._check_parameters()
        seed = self._draw_seed()
        (members, _), _ = self._members_for(Sizes(1, 1, 1), seed)
        with (
            all_or_nothing(self),
            progress_bar("Fitting models", len(members), self.verbose) as advance,
        ):

            def learnt(member: Any) -> Any:
                model = clone(member.fitted).fit_statistics(feature_counts, label_counts, tasks, n_values=n_values)
                advance(1)
                return member._replace(fitted=model)

            done = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(learnt)(one) for one in members.values())
            believed, self._log_evidence = self._by_evidence(dict(zip(members, done, strict=True)))
            fit = done[0].fitted._result
            n_rows = np.append(fit.data.statistics.label_counts.sum(axis=1).astype(np.float64), 0.0)
            weights = SizeWeights(np.ones(1), believed[None])
            known = fit.known._replace(model=type(self).__name__)
            named = dict(zip(members, done, strict=True))
            self._keep(Average(known, fit.classes, named, weights, n_rows, seed, fit.backend))
        return self

    @property
    def log_evidence_(self) -> float:
        """Natural log of the average evidence of the members, p(X, Y) or p(Y | X) as they were weighed."""
        check_is_fitted(self)
        if not self._log_evidence:
            raise AttributeError('log_evidence_ comes with weigh_by="evidence" or "conditional-evidence"')
        values = [evidence.value for evidence in self._log_evidence]
        return float(logsumexp(values) - np.log(len(values)))

    @third_by_keyword
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> float:
        """Share of labelled rows whose label is predicted correctly.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            True labels; rows without one are left out.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts; by its name alone for now, because ``task`` stood in its place before.
        task : array-like of shape (n_rows,), optional
            The task of each row.

        Returns
        -------
        float

        See Also
        --------
        kinfolk.task_scorer : Any other score of scikit-learn, over all rows or task by task.
        """
        return super().score(X, y, sample_weight, task=task)

    def _to_archive(self) -> Archive:
        archive = super()._to_archive()
        return archive._replace(about=archive.about | {"evidence": [list(evidence) for evidence in self._log_evidence]})

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model = super()._from_archive(archive)
        model._log_evidence = [Evidence(*evidence) for evidence in archive.about["evidence"]]
        return model


def _check_evidence_is_of_the_same(members: Mapping[str, SharingNB]) -> None:
    """Refuse members whose evidence is of other data than that of the first: of other values, or other rows."""
    (first_name, first), *others = members.items()
    for name, member in others:
        if schema_about(member._result.schema) != schema_about(first._result.schema):
            raise ValueError(
                f"members {first_name!r} and {name!r} have other categories, bins or densities of their columns, "
                'so that their evidence is of different data: make them alike, or weigh by "held-out"'
            )
    using = {name: member._uses_unlabelled() for name, member in members.items()}
    if first._result.data.n_unlabelled and len(set(using.values())) > 1:
        left_out = next(name for name, uses in using.items() if not uses)
        raise ValueError(
            f"member {left_out!r} leaves rows without a label out and others use them, so that their evidence is "
            'of different rows: take inference="gibbs", or weigh by "held-out"'
        )
