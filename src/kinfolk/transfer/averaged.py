"""Naive Bayes models averaged, so that nobody needs to know beforehand how much his tasks share (thesis 3.2.2)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.estimator import TaskClassifier
from kinfolk.evidence import Evidence
from kinfolk.explanation import Explanation
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.fitted_attributes import MAX_SIMILARITY_TASKS
from kinfolk.posterior import Archive, plain, schema_about, unplain
from kinfolk.progress import progress_bar
from kinfolk.tasks.answering import tell
from kinfolk.tasks.keywords import task_by_keyword, third_by_keyword
from kinfolk.tasks.schema import encode
from kinfolk.tasks.streaming.counts import Counts
from kinfolk.tasks.training import Columns, Labelled, Training, receive_labelled
from kinfolk.tasks.whole_fits import all_or_nothing
from kinfolk.transfer.members import BELIEVED, MEMBERS, default_members, own_members
from kinfolk.transfer.predictor import AveragedPredictor, member_archives
from kinfolk.transfer.weights import by_evidence, by_stacking, make_folds

WEIGH_BY = ("held-out", "leave-one-out", "evidence", "conditional-evidence")


class AveragedNB(TaskClassifier, ClassifierMixin, BaseEstimator):
    """The predictions of several naive Bayes models, averaged by how much each is to be believed.

    By default these are the models of the thesis: no sharing, complete sharing with label rates of the tasks' own, the
    prototype and the clustered model. Which of them is right differs from data set to data set, and with the number of
    rows; the average is close to the best of them without anybody having to choose.

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

    Attributes
    ----------
    members_ : dict
        The members fitted to all rows, by name.
    weights_ : dict
        How much each is believed; the weights add up to one.
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

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Fit every member to all rows, and find out how much each is to be believed.

        Parameters
        ----------
        X, y, task, sample_weight
            As in the members.

        Returns
        -------
        self

        See Also
        --------
        fit_statistics : Learn from counts instead of rows.
        explain : What each feature, and each member, adds to the log odds.
        """
        seed = self._draw_seed()
        members = self._chosen_members(seed)
        for member in members.values():
            member._check_parameters()
        table = receive_labelled(
            X,
            y,
            model=type(self).__name__,
            task=task,
            task_column=self.task_column,
            new_tasks=self.new_tasks,
            sample_weight=sample_weight,
            unlabelled=self.unlabelled,
        )
        n_fits = len(members) * (1 + (self.n_folds if self.weigh_by == "held-out" else 0))
        with all_or_nothing(self), progress_bar("Fitting models", n_fits, self.verbose) as advance:

            def fitted(member: SharingNB, training: Training) -> SharingNB:
                known = training.known._replace(model=type(member).__name__)
                model: SharingNB = clone(member)._learn_training(training._replace(known=known))
                advance(1)
                return model

            jobs = zip(members.values(), self._codings(members, table), strict=True)
            with warnings.catch_warnings(record=self.members is None) as caught:
                if caught is not None:
                    warnings.simplefilter("always")
                whole = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(fitted)(*job) for job in jobs)
            if caught is not None:
                self._tell(caught, int(((table.labels.codes < 0) & table.arrival.counted).sum()))
            self._keep(dict(zip(members, whole, strict=True)), seed)
            if self.weigh_by == "held-out":
                believed = self._by_folds(members, fitted, table)
            elif self.weigh_by == "leave-one-out":
                believed = self._by_rows_left_out()
            else:
                believed = self._by_evidence()
            self.weights_ = dict(zip(members, believed.tolist(), strict=True))
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

    def _codings(self, members: Mapping[str, SharingNB], table: Labelled) -> list[Training]:
        """Rows coded as each member wants them; the default members, given the same values, want them alike."""
        codings: dict[tuple[Any, ...], Training] = {}
        for columns in (member._columns() for member in members.values()):
            same = _named(columns)
            codings[same] = codings[same] if same in codings else table.coded(columns)
        return [codings[_named(member._columns())] for member in members.values()]

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
        seed = self._draw_seed()
        members = self._chosen_members(seed)
        with (
            all_or_nothing(self),
            progress_bar("Fitting models", len(members), self.verbose) as advance,
        ):

            def fitted(member: SharingNB) -> SharingNB:
                model: SharingNB = clone(member).fit_statistics(feature_counts, label_counts, tasks, n_values=n_values)
                advance(1)
                return model

            whole = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(fitted)(one) for one in members.values())
            self._keep(dict(zip(members, whole, strict=True)), seed)
            self.weights_ = dict(zip(members, self._by_evidence().tolist(), strict=True))
        return self

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _keep(self, members: dict[str, SharingNB], seed: int) -> None:
        """Keep fitted members, and what all of them know of the data."""
        self.members_, self._seed = members, seed
        self._log_evidence: list[Evidence] = []
        first = next(iter(members.values()))
        self.classes_, self.tasks_ = first.classes_, first.tasks_
        self._remember_columns(first._result.known)

    def _chosen_members(self, seed: int) -> dict[str, SharingNB]:
        """The members to fit, by name."""
        if self.weigh_by not in WEIGH_BY:
            known = ", ".join(f'"{way}"' for way in WEIGH_BY)
            raise ValueError(f"weigh_by={self.weigh_by!r} is not one of {known}")
        if not isinstance(self.n_folds, int | np.integer) or self.n_folds < 2:
            raise ValueError(f"n_folds={self.n_folds!r}: a whole number of at least 2 is needed")
        plain_only = self.weigh_by in ("evidence", "conditional-evidence")
        if self.members is None:
            return default_members(self, seed, plain_only)
        if self.bins != 8 or self.categorical_features != "auto" or self.numeric != "bin":
            raise ValueError(
                "bins, numeric and categorical_features belong to the default members: give yours their own"
            )
        return own_members(self.members, self, seed, plain_only)

    def _shares(self, members: Mapping[str, SharingNB]) -> Floats:
        """How far members are believed before any row is seen: a user's own, all alike."""
        if self.members is not None:
            return np.full(len(members), 1.0 / len(members))
        return np.array([BELIEVED[name] for name in members])

    def _by_folds(self, members: dict[str, SharingNB], fitted: Any, table: Labelled) -> Floats:
        """Hold rows out in parts, and stack what members fitted to the others say of them."""
        code, weights = table.labels.codes, table.arrival.weights
        counts = np.ones(len(code)) if weights is None else weights
        fold = make_folds(code, counts, self.n_folds, np.random.default_rng(self._seed))
        held = [fold == part for part in range(self.n_folds) if (fold == part).any()]
        kept = [part for part in held if len(np.unique(code[~part & (code >= 0) & (counts > 0)])) > 1]
        if not kept:
            return self._shares(members)

        def held_out(part: NDArray[np.bool_]) -> Floats:
            learnt_from = table.take(~part)
            asked = table.asked(part, learnt_from.arrival.known)
            # A label that only a row held out has: no member could know it.
            place = encode(self.classes_[code[part]], learnt_from.labels.classes.tolist())
            own = []
            for member, training in zip(members.values(), self._codings(members, learnt_from), strict=True):
                answering = fitted(self._for_weighing(member), training)._predictor()
                log_p = answering.log_predictive(answering.code(asked))
                own.append(np.where(place >= 0, log_p[np.arange(len(place)), place], 0.0))
            return np.column_stack(own)

        with warnings.catch_warnings():
            # What there is to tell about a member was told when it was fitted to all rows.
            warnings.simplefilter("ignore")
            done = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(held_out)(part) for part in kept)
        return by_stacking(np.concatenate(done), np.concatenate([counts[part] for part in kept]), self._shares(members))

    def _for_weighing(self, member: SharingNB) -> SharingNB:
        """A member as it is fitted to some of the rows: a default one samples one short chain, enough to weigh it."""
        return clone(member).set_params(n_chains=1, n_burn_in=50, n_draws=50) if self.members is None else member

    def _by_rows_left_out(self) -> Floats:
        """Stack what members say of each row in closed form, as if they had not seen it."""
        left_out = [member._leave_out(member._result.rows) for member in self.members_.values()]
        own = [
            each.log_predictive(member.temper_, member._result.averaged)[np.arange(len(each.labels)), each.labels]
            for each, member in zip(left_out, self.members_.values(), strict=True)
        ]
        return by_stacking(np.column_stack(own), left_out[0].weights, self._shares(self.members_))

    def _by_evidence(self) -> Floats:
        """Posterior probabilities of members that were equally probable."""
        if self.weigh_by == "evidence":
            self._check_evidence_is_of_the_same()
            self._log_evidence = [member._evidence() for member in self.members_.values()]
        else:
            self._log_evidence = [member.conditional_evidence() for member in self.members_.values()]
        return by_evidence(np.array([evidence.value for evidence in self._log_evidence]))

    def _check_evidence_is_of_the_same(self) -> None:
        """Refuse members whose evidence is of other data than that of the first: of other values, or other rows."""
        (first_name, first), *others = self.members_.items()
        for name, member in others:
            if schema_about(member._result.schema) != schema_about(first._result.schema):
                raise ValueError(
                    f"members {first_name!r} and {name!r} have other categories, bins or densities of their columns, "
                    'so that their evidence is of different data: make them alike, or weigh by "held-out"'
                )
        using = {name: member._uses_unlabelled() for name, member in self.members_.items()}
        if first._result.data.n_unlabelled and len(set(using.values())) > 1:
            left_out = next(name for name, uses in using.items() if not uses)
            raise ValueError(
                f"member {left_out!r} leaves rows without a label out and others use them, so that their evidence is "
                'of different rows: take inference="gibbs", or weigh by "held-out"'
            )

    @property
    def log_evidence_(self) -> float:
        """Natural log of the average evidence of the members, p(X, Y) or p(Y | X) as they were weighed."""
        check_is_fitted(self)
        if not self._log_evidence:
            raise AttributeError('log_evidence_ comes with weigh_by="evidence" or "conditional-evidence"')
        values = [evidence.value for evidence in self._log_evidence]
        return float(logsumexp(values) - np.log(len(values)))

    @property
    def similarity_(self) -> Floats:
        """Probability that two tasks share their feature rates, the members' averaged by their weights."""
        return self._average(lambda member: member.similarity_)

    def similarity(self, tasks: Any) -> Floats:
        """Probability that two of the given tasks share their feature rates.

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
        return self._average(lambda member: member.similarity(tasks))

    @property
    def partition_(self) -> NDArray[np.int64]:
        """The partition of a member that agrees best with the averaged similarity, summed over pairs of tasks."""
        check_is_fitted(self)
        partitions = [member.partition_ for member in self.members_.values()]
        if len(self.tasks_) > MAX_SIMILARITY_TASKS:
            return np.asarray(partitions[int(np.argmax(list(self.weights_.values())))])
        similarity = self.similarity_
        loss = [np.abs((z[:, None] == z[None, :]) - similarity).sum() for z in partitions]
        return np.asarray(partitions[int(np.argmin(loss))])

    def _average(self, ask: Any) -> Floats:
        check_is_fitted(self)
        return np.asarray(sum(self.weights_[name] * ask(member) for name, member in self.members_.items()))

    def _predictor(self) -> AveragedPredictor:
        check_is_fitted(self)
        return AveragedPredictor(
            [member._predictor() for member in self.members_.values()], np.array(list(self.weights_.values()))
        )

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

    @task_by_keyword
    def explain(self, X: Any, *, task: Any = None) -> Explanation:
        """What each feature added to the log odds of each row, members' explanations averaged by their weights.

        What the logarithm of an average has beyond the average of logarithms is in the remainder.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row; it may be left out where there is only one, or a column holds it.

        Returns
        -------
        Explanation

        See Also
        --------
        members_ : The models that are averaged, each of which explains itself.
        """
        check_is_fitted(self)
        parts = {name: member.explain(X, task=task) for name, member in self.members_.items()}
        first: Explanation = next(iter(parts.values()))
        averaged: dict[str, Any] = {
            field: sum(self.weights_[name] * getattr(part, field) for name, part in parts.items())
            for field in ("label_part", "feature_part", "own", "kin", "everybody", "prior")
        }
        remainder = self.predict_log_proba(X, task=task) - averaged["label_part"] - averaged["feature_part"].sum(axis=1)
        return first._replace(**averaged, remainder=remainder)

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        archives = [member._to_archive() for member in self.members_.values()]
        params = self.get_params(deep=False) | {"members": None}
        if not isinstance(params["random_state"], int | np.integer | None):
            params["random_state"] = self._seed
        about = {
            "family": "averaged",
            "estimator": type(self).__name__,
            "params": {name: plain(value, name) for name, value in params.items()},
            "names": list(self.members_),
            "own_members": self.members is not None,
            "seed": self._seed,
            "weights": list(self.weights_.values()),
            "evidence": [list(evidence) for evidence in self._log_evidence],
            "members": [archive.about for archive in archives],
        }
        arrays = {f"{i}.{name}": array for i, archive in enumerate(archives) for name, array in archive.arrays.items()}
        return Archive(about, arrays)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        about = archive.about
        model = cls(**{name: unplain(value) for name, value in about["params"].items()})
        parts, weights = member_archives(archive)
        fitted = [MEMBERS[part.about["estimator"]]._from_archive(part) for part in parts]
        model._keep(dict(zip(about["names"], fitted, strict=True)), int(about["seed"]))
        model.weights_ = dict(zip(about["names"], weights.tolist(), strict=True))
        if about["own_members"]:
            model.members = {name: clone(member) for name, member in model.members_.items()}
        model._log_evidence = [Evidence(*evidence) for evidence in about["evidence"]]
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")


def _named(columns: Columns) -> tuple[Any, ...]:
    """What tells a way to read columns from another: bins are the same whether or not a model has densities."""
    given = columns.categorical_features, columns.bins, columns.numeric
    return *map(id, given), columns.weighs, columns.numeric != "bin" and columns.counts_alone is not None
