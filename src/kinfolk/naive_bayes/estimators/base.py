"""What all naive Bayes estimators of kinfolk have in common: parameters, checks, and the values of a fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.checkpoints import check_checkpoint
from kinfolk.estimator import TaskClassifier
from kinfolk.evidence import Evidence
from kinfolk.interrupts import raise_if_interrupted
from kinfolk.naive_bayes.answers.archive import from_archive, to_archive
from kinfolk.naive_bayes.answers.predictor import CodedRows, NaiveBayesPredictor
from kinfolk.naive_bayes.estimators.fitted_attributes import FittedAttributes
from kinfolk.naive_bayes.estimators.parameters import hyper_parameters, is_learn
from kinfolk.naive_bayes.inference.conditional_evidence import training_rows
from kinfolk.naive_bayes.inference.fitting import LeftOut, Sharing
from kinfolk.naive_bayes.inference.options import Effort, Options, Schedule
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, NaiveBayesFit, TrainingData
from kinfolk.posterior import Archive, names_from, schema_from, unplain
from kinfolk.tasks.answering import Known
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.keywords import third_by_keyword
from kinfolk.tasks.schema import Column, Schema
from kinfolk.tasks.statistics import Layout, Rows, layout_of, no_rows, positions, statistics_from_counts
from kinfolk.tasks.streaming.counts import Counts
from kinfolk.tasks.training import Columns, Training, receive_training


class SharingNB(TaskClassifier, FittedAttributes, ClassifierMixin, BaseEstimator):
    """Base class; a subclass says which model it is and how that is to be inferred, by ``_sharing``."""

    classes_: NDArray[Any]
    tasks_: NDArray[Any]
    posterior_: Fitted
    label_prior_: NDArray[np.float64]
    temper_: NDArray[np.float64]
    label_distributions_: NDArray[np.float64]
    transduction_: NDArray[Any]

    # Whether tasks learn from each other.
    _shares: ClassVar[bool] = True
    # Whether all tasks share feature rates, or a prototype of them, whose prior then is learnt from all rows.
    _shares_rates: ClassVar[bool] = False
    # Parameters that are hyper-parameters of the model, which the data may settle.
    _hyper_names: ClassVar[tuple[str, ...]] = ("label_prior", "feature_prior", "temper")

    def __init__(
        self,
        *,
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
        n_draws: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.label_prior = label_prior
        self.feature_prior = feature_prior
        self.temper = temper
        self.task_column = task_column
        self.new_tasks = new_tasks
        self.categorical_features = categorical_features
        self.bins = bins
        self.numeric = numeric
        self.unlabelled = unlabelled
        self.n_chains = n_chains
        self.n_burn_in = n_burn_in
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _columns(self) -> Columns:
        """How the parameters want columns read."""
        by_value = not isinstance(self.feature_prior, str | float | int | np.number)
        return Columns(self.categorical_features, self.bins, self.numeric, self._counts_alone(), weighs=not by_value)

    def _counts_alone(self) -> str | None:
        """What has no densities of numbers, if something has none: a model or a choice."""
        return None

    def _sharing(self) -> Sharing:
        """How tasks share, and what the parameters say of how inference is to go about it."""
        raise NotImplementedError  # abstract

    def _options(self) -> Options:
        """What the parameters that all estimators have say of how inference is to go about it."""
        schedule = Schedule(self.n_chains, self.n_burn_in, self.n_draws)
        options = Options(schedule=schedule, n_jobs=self.n_jobs, verbose=self.verbose)
        return options._replace(checkpoint=check_checkpoint(self.checkpoint, self.random_state))

    def _uses_unlabelled(self) -> bool:
        """Whether rows without a label are learnt from."""
        return self._sharing().uses_unlabelled

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows of all tasks.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            pandas, polars, pyarrow or numpy.
        y : array-like of shape (n_rows,)
            Labels of any type; ``None`` or NaN (or the value of ``unlabelled``) where there is none.
        task : array-like of shape (n_rows,), optional
            The task that each row belongs to. Without it, and without ``task_column``, all rows are one task.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows, one of weight 0 not at all.

        Returns
        -------
        self

        See Also
        --------
        partial_fit : Add rows to what was learnt before.
        fit_statistics : Learn from counts instead of rows.
        """
        return self._learn(X, y, task, sample_weight, None, None)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Add rows, of known tasks or new ones, to what was learnt before.

        The first call fixes the categories and bin edges of every column; a category first seen later is left out, as
        it is in prediction. Counts add up and the partition is inferred anew, so that two calls give what one ``fit``
        to all rows gives under the same categories and edges. Only tempering is learnt from rows, which a saved model
        does not keep: after loading, from the new ones.

        Parameters
        ----------
        X, y, task, sample_weight
            As in :meth:`fit`.
        classes : array-like, optional
            All labels that will ever be seen; needed in the first call if its rows do not have them all.

        Returns
        -------
        self

        See Also
        --------
        fit : Learn from all rows at once.
        """
        return self._learn(X, y, task, sample_weight, classes, getattr(self, "_result", None))

    def forget(self, task: Any) -> Self:
        """Remove a task from what was learnt, and infer again from the others.

        Statistics add up, so nobody's rows are needed for it; the model is then the one that the other tasks' rows give
        with the same categories, bins and classes, which stay even where only this task had them.

        Parameters
        ----------
        task : object
            Id of the task.

        Returns
        -------
        self

        See Also
        --------
        partial_fit : Learn from more rows.

        Examples
        --------
        >>> from kinfolk import NoSharingNB
        >>> model = NoSharingNB().fit([["red"], ["blue"]] * 4, [0, 1] * 4, task=["ann", "ann", "bob", "bob"] * 2)
        >>> model.forget("ann").tasks_.tolist()
        ['bob']
        """
        check_is_fitted(self)
        before = self._result
        tasks = before.known.tasks.tolist()
        if task not in tasks:
            raise ValueError(f"task {task!r} is not among those learnt from: {', '.join(map(repr, tasks[:20]))}")
        if len(tasks) == 1:
            raise ValueError(f"task {task!r} is the only one: nothing would be left to learn from")
        gone = tasks.index(task)
        kept = np.arange(len(tasks)) != gone
        own = before.data.statistics
        statistics = own._replace(
            tasks=own.tasks[kept], feature_counts=own.feature_counts[kept], label_counts=own.label_counts[kept]
        )
        place = np.cumsum(kept) - 1
        labelled, unlabelled = (
            rows.take(rows.task != gone).moved(place) for rows in (before.rows, before.data.unlabelled)
        )
        known = before.known._replace(tasks=before.known.tasks[kept])
        training = _training_before(before)._replace(known=known, statistics=statistics, rows=no_rows(own.layout))
        return raise_if_interrupted(self._keep(self._infer(training, TrainingData(statistics, unlabelled), labelled)))

    def _learn(self, X: Any, y: Any, task: Any, sample_weight: Any, classes: Any, before: NaiveBayesFit | None) -> Self:
        self._check_parameters()
        training = receive_training(
            X,
            y,
            model=type(self).__name__,
            task=task,
            task_column=self.task_column,
            new_tasks=self.new_tasks,
            shares=self._shares,
            sample_weight=sample_weight,
            unlabelled=self.unlabelled,
            classes=classes,
            columns=self._columns(),
            before=None if before is None else _training_before(before),
        )
        return self._learn_training(training, before)

    def _learn_training(self, training: Training, before: NaiveBayesFit | None = None) -> Self:
        """Learn from rows that have come through the door."""
        rows = training.rows if training.rows.weights is None else training.rows.take(training.counted)
        rows, statistics = rows._replace(codes=np.ascontiguousarray(rows.codes)), training.statistics
        labelled, unlabelled = rows.take(rows.labels >= 0), rows.take(rows.labels < 0)
        if before is not None:
            then = positions(before.known.tasks, training.known.tasks)
            statistics = before.data.statistics + statistics
            labelled = before.rows.moved(then).followed_by(labelled)
            unlabelled = before.data.unlabelled.moved(then).followed_by(unlabelled)
        fit = self._infer(training, TrainingData(statistics, unlabelled), labelled, before)
        return raise_if_interrupted(self._keep(fit._replace(label_distributions=_label_rows(fit, training))))

    def _infer(
        self, training: Training, data: TrainingData, labelled: Rows, before: NaiveBayesFit | None = None
    ) -> NaiveBayesFit:
        """Infer from data, hyper-parameters that are to be learnt included; nothing of the estimator changes."""
        sharing = self._sharing()
        n_unlabelled = len(data.unlabelled.labels)
        if n_unlabelled and not sharing.uses_unlabelled:
            self._tell_of_rows_left_out(n_unlabelled)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        hyper = self._hyper_parameters(training.schema, training.classes, data.statistics.layout)
        temper_before = None if before is None else before.hyper.temper
        hyper, posterior = sharing.fit(data, labelled, hyper, seed, temper_before)
        judged = None if posterior.interrupted else posterior.convergence
        if judged is not None and not judged.converged:
            warnings.warn(judged.advice(), ConvergenceWarning, stacklevel=4)
        return NaiveBayesFit(
            training.known,
            training.schema,
            training.classes,
            training.backend,
            data,
            labelled,
            hyper,
            posterior,
            sharing.averaged,
            seed,
            np.zeros((0, len(training.classes))),
        )

    def _hyper_parameters(self, schema: Schema, classes: NDArray[Any], layout: Layout) -> HyperParameters:
        """Hyper-parameters as the parameters give them."""
        return hyper_parameters({name: getattr(self, name) for name in self._hyper_names}, schema, classes, layout)

    def _tell_of_rows_left_out(self, n_unlabelled: int) -> None:
        """Warn where rows without a label are not learnt from."""

    def _keep(self, fit: NaiveBayesFit) -> Self:
        """Become the estimator of a fit, all at once."""
        self._result, self._answering = fit, _predictor_of(fit)
        self._evidence_found: Evidence | None = None
        self._remember_columns(fit.known)
        self.classes_, self.tasks_, self.posterior_ = fit.classes, fit.known.tasks, fit.posterior
        self.label_prior_, self.temper_ = fit.hyper.label_prior, fit.hyper.temper
        self.label_distributions_ = fit.label_distributions
        self.transduction_ = fit.classes[fit.label_distributions.argmax(axis=1)]
        return self

    def fit_statistics(
        self,
        feature_counts: ArrayLike | Counts,
        label_counts: ArrayLike | None = None,
        tasks: Any = None,
        *,
        n_values: ArrayLike | None = None,
    ) -> Self:
        """Learn from counts instead of rows; whole counts are taken as they are, in any integer type, without a copy.

        Labels, features and values are named by their places: rows to predict hold values 0, 1, … of feature 0, 1, ….
        Counts that :func:`kinfolk.count_rows` made of a table keep that table's names: rows to predict look like it.

        Parameters
        ----------
        feature_counts : array of shape (n_tasks, n_labels, n_features, n_values), or Counts
            How often each value was seen with each label; fewer than ``label_counts`` where values were missing. With
            the counts of a table, nothing else is given.
        label_counts : array of shape (n_tasks, n_labels)
            How many rows had each label.
        tasks : array-like of shape (n_tasks,), optional
            Ids of the tasks; 0, 1, … by default.
        n_values : array-like of shape (n_features,), optional
            Number of values of each feature, where some have fewer than the array has room for.

        Returns
        -------
        self

        See Also
        --------
        kinfolk.count_rows : The counts of a table that is too large for memory.
        """
        self._check_parameters()
        if isinstance(feature_counts, Counts):
            if not (label_counts is None and tasks is None and n_values is None):
                raise ValueError("the counts of a table hold its labels, tasks and values: give nothing beside them")
            return self._learn_counts(feature_counts)
        if self.task_column is not None:
            raise ValueError("task_column names a column of rows: with counts, give tasks= instead")
        if label_counts is None:
            raise ValueError("label_counts is needed beside feature_counts: how many rows of a task had each label")
        statistics = statistics_from_counts(feature_counts, label_counts, tasks, n_values)
        layout = statistics.layout
        schema = Schema(tuple(Column(str(f), tuple(range(int(n))), None) for f, n in enumerate(layout.n_values)))
        known = Known(type(self).__name__, None, len(schema.columns), None, statistics.tasks, self.new_tasks)
        rows = no_rows(layout)
        training = Training(
            known, schema, np.arange(layout.n_labels), rows, statistics, np.ones(0, dtype=bool), "polars"
        )
        return raise_if_interrupted(self._keep(self._infer(training, TrainingData(statistics, rows), rows)))

    def _learn_counts(self, counts: Counts) -> Self:
        """Learn from the counts of a table, whose columns keep their names."""
        if self.task_column not in (None, counts.task_column):
            raise ValueError(
                f"task_column={self.task_column!r}, but the table was counted with tasks in column "
                f"{counts.task_column!r}"
            )
        if counts.n_unlabelled:
            plural = "s are" if counts.n_unlabelled > 1 else " is"
            warnings.warn(
                f"{counts.n_unlabelled:,} unlabelled row{plural} left out: counts hold labelled rows alone",
                UserWarning,
                stacklevel=3,
            )
        names = tuple(counts.features if self.task_column is None else counts.columns)
        known = Known(type(self).__name__, names, len(names), self.task_column, counts.statistics.tasks, self.new_tasks)
        statistics, none = counts.statistics, no_rows(counts.statistics.layout)
        training = Training(known, counts.schema, counts.classes, none, statistics, np.ones(0, dtype=bool), "polars")
        return raise_if_interrupted(self._keep(self._infer(training, TrainingData(statistics, none), counts.rows)))

    def _check_parameters(self) -> None:
        temper = self.temper
        if not is_learn(temper) and not (isinstance(temper, int | float | np.number) and 0.0 <= temper <= 1.0):
            raise ValueError(f'temper={temper!r}: a power from 0 to 1 or "learn" is needed')
        for name, least in (("n_chains", 1), ("n_burn_in", 0), ("n_draws", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name}={value!r}: a whole number of at least {least} is needed")

    def _predictor(self) -> NaiveBayesPredictor:
        check_is_fitted(self)
        return self._answering

    def _evidence(self) -> Evidence:
        """Evidence as inference left it, or estimated once it is asked for."""
        check_is_fitted(self)
        fit = self._result
        if fit.posterior.evidence is not None:
            return fit.posterior.evidence
        if self._evidence_found is None:
            sharing = self._sharing()
            data = sharing.prepared(fit.data)
            self._evidence_found = sharing.model.evidence(data, fit.hyper, sharing.options, fit.seed)
        return self._evidence_found

    def _leave_out(self, rows: Rows) -> LeftOut:
        """What the model says of each of these training rows without it."""
        fit, sharing = self._result, self._sharing()
        data = sharing.prepared(fit.data)
        return sharing.model.leave_out(data, fit.hyper, fit.posterior, rows, sharing.options)

    def conditional_evidence(
        self, *, n_runs: int = 32, random_state: Any = None, target_error: float = 0.1, max_powers: int = 500
    ) -> Evidence:
        """Estimate the log probability of the training rows' known labels given all their features (thesis eq. 4.4).

        It weighs models by how well they tell labels, where ``log_evidence_`` weighs how well they tell features too. A
        training row of whole weight w is w rows; one of another weight has a single label, which counts w.

        Parameters
        ----------
        n_runs : int, default=32
            Annealed runs to average, at least 2.
        random_state : int, RandomState or None
            Seed of the runs; by default that of the fit.
        target_error : float, default=0.1
            Standard error to aim at.
        max_powers : int, default=500
            Most steps of a run; where the aim asks for more, the error tells how far it was missed.

        Returns
        -------
        Evidence
            With the standard error of numerator and denominator together.

        See Also
        --------
        log_evidence_ : Evidence of labels and features together.

        Examples
        --------
        Two features that always agree with the label leave little doubt about labels, but for which is which: about one
        chance in two.

        >>> from kinfolk import NoSharingNB
        >>> model = NoSharingNB(label_prior=1.0, feature_prior=1.0, random_state=0)
        >>> model = model.fit([["a", "b"], ["c", "d"]] * 5, ["yes", "no"] * 5)
        >>> found = model.conditional_evidence()
        >>> found.kind, round(found.value, 0), found.error < 0.1
        ('estimate', -1.0, True)
        """
        check_is_fitted(self)
        if n_runs < 2:
            raise ValueError(f"n_runs={n_runs!r}: a standard error needs at least 2 runs")
        fit, sharing = self._result, self._sharing()
        seed = fit.seed if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        data, rows = training_rows(sharing.prepared(fit.data), fit.rows, sharing.uses_unlabelled)
        effort = Effort(n_runs, target_error, max_powers, seed, self.n_jobs)
        return sharing.model.labels_given_features(data, fit.hyper, fit.posterior, rows, sharing.options, effort)

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
        check_is_fitted(self)
        evidence = self._result.posterior.evidence or self._evidence_found
        # A folder of checkpoints is of this machine alone.
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "checkpoint"}
        return to_archive(self._result, params, evidence)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model = cls(**{name: unplain(value) for name, value in archive.about["params"].items()})
        given = None
        if "label_prior" not in archive.arrays:
            classes = as_ids(names_from(archive.about["classes"], "labels"))
            schema = schema_from(archive)
            given = model._hyper_parameters(schema, classes, layout_of(schema, len(classes)))
        return model._keep(from_archive(archive, given, cls._shares_rates))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_result")


def _predictor_of(fit: NaiveBayesFit) -> NaiveBayesPredictor:
    """What answers for a fit, here and from its file."""
    mixture = fit.posterior.blocks.mixture
    return NaiveBayesPredictor(fit.known, fit.schema, fit.classes, mixture, fit.hyper.temper, fit.averaged)


def _training_before(fit: NaiveBayesFit) -> Training:
    """What earlier rows were like, as the door takes it."""
    nobody = np.ones(0, dtype=bool)
    return Training(fit.known, fit.schema, fit.classes, fit.rows, fit.data.statistics, nobody, fit.backend)


def _label_rows(fit: NaiveBayesFit, training: Training) -> NDArray[np.float64]:
    """Probabilities of the labels of the rows of this call: certain where known, inferred where not."""
    rows = training.rows
    distribution = np.zeros((len(rows.labels), len(fit.classes)))
    known = rows.labels >= 0
    distribution[known, rows.labels[known]] = 1.0
    if not known.all():
        unknown = rows.take(~known)
        asked = CodedRows(unknown.codes, unknown.numbers, unknown.task)
        distribution[~known] = np.exp(_predictor_of(fit).log_predictive(asked))
        inferred = fit.posterior.label_probability
        if inferred is not None:
            of_this_call = np.flatnonzero(training.counted & ~known)
            distribution[of_this_call] = inferred[len(inferred) - len(of_this_call) :]
    return distribution
