"""What all naive Bayes models of kinfolk have in common: the way in, the way out, and scikit-learn's contract."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.estimators.archive import from_archive, to_archive
from kinfolk.naive_bayes.estimators.findings import Findings
from kinfolk.naive_bayes.estimators.learnt import LearntParameters, is_learn
from kinfolk.naive_bayes.inference.gibbs import Schedule, fit_by_sampling
from kinfolk.naive_bayes.model.fitted import CommonRates, Fitted, Problem
from kinfolk.partition.concentration import GammaPrior
from kinfolk.posterior import Archive
from kinfolk.progress import progress_bar
from kinfolk.tasks.door import check_labels, check_weights, receive, task_ids
from kinfolk.tasks.schema import Column, Schema, check_numeric, learn_schema
from kinfolk.tasks.statistics import (
    Rows,
    Statistics,
    Values,
    count,
    layout_of,
    no_rows,
    positions,
    statistics_from_counts,
)
from kinfolk.tasks.streaming.counts import Counts
from kinfolk.tasks.table import backend_of, declared_categories
from kinfolk.tasks.values import as_column, as_ids, distinct, encode, sort_values
from kinfolk.tasks.whole_fits import all_or_nothing


class SharingNB(LearntParameters, Findings, ClassifierMixin, BaseEstimator):
    """Base class; a subclass says how tasks share, by writing ``_infer`` and ``_estimate_evidence``."""

    _rows: Rows
    _unlabelled: Rows

    # scikit-learn's metadata routing passes ``task`` on without further requests.
    __metadata_request__fit: ClassVar = {"task": True}
    __metadata_request__partial_fit: ClassVar = {"task": True}
    __metadata_request__predict: ClassVar = {"task": True}
    __metadata_request__predict_proba: ClassVar = {"task": True}
    __metadata_request__predict_log_proba: ClassVar = {"task": True}
    __metadata_request__score: ClassVar = {"task": True}

    def __init__(
        self,
        *,
        label_prior: float | ArrayLike | Mapping[Any, Any] | str = "learn",
        feature_prior: float | ArrayLike | Mapping[Any, Any] | str = "learn",
        temper: float | str = "learn",
        task_column: str | int | None = None,
        categorical_features: str | Sequence[Any] = "auto",
        bins: int | Mapping[Any, Any] = 8,
        numeric: str | Mapping[Any, str] = "bin",
        unlabelled: Any = None,
        n_chains: int = 4,
        n_burn_in: int = 100,
        n_draws: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.label_prior = label_prior
        self.feature_prior = feature_prior
        self.temper = temper
        self.task_column = task_column
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
        """
        with all_or_nothing(self):
            return self._learn(X, y, task, sample_weight, classes=None, again=False)

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
        """
        with all_or_nothing(self):
            return self._learn(X, y, task, sample_weight, classes=classes, again=hasattr(self, "_statistics"))

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
        columns = [Column(str(f), tuple(range(int(n))), None) for f, n in enumerate(layout.n_values)]
        classes = np.arange(layout.n_labels)
        return self._learn_statistics(statistics, Schema(tuple(columns)), classes, no_rows(layout), None)

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
        names = counts.features if self.task_column is None else counts.columns
        return self._learn_statistics(counts.statistics, counts.schema, counts.classes, counts.rows, names)

    def _learn_statistics(
        self,
        statistics: Statistics,
        schema: Schema,
        classes: NDArray[Any],
        rows: Rows,
        names: Sequence[str] | None,
    ) -> Self:
        """Learn from statistics; ``names`` are the columns that rows to predict will have, where they have names."""
        with all_or_nothing(self):
            self._statistics, self._unlabelled, self._rows = statistics, no_rows(statistics.layout), rows
            self._schema, self.classes_, self.tasks_ = schema, classes, statistics.tasks
            self.n_features_in_ = len(schema.columns) if names is None else len(names)
            self.__dict__.pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            self._backend = "polars"
            self._conclude()
            self.label_distributions_ = np.zeros((0, len(classes)))
            self.transduction_ = self.classes_[:0]
        return self

    def _conclude(self) -> None:
        """Infer from the statistics as they now are, hyper-parameters that are to be learnt included."""
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self._evidence_value = None
        self._settle_priors()
        self.posterior_: Fitted = self._infer(self._problem())
        convergence = self.posterior_.convergence
        if convergence is not None and not convergence.converged:
            warnings.warn(convergence.advice(), ConvergenceWarning, stacklevel=4)
        n_features = len(self._schema.columns)
        self.temper_: NDArray[np.float64] = (
            self._learn_temper() if is_learn(self.temper) else np.full(n_features, self.temper, dtype=np.float64)
        )

    def _learn(self, X: Any, y: Any, task: Any, sample_weight: Any, classes: Any, again: bool) -> Self:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        self._check_parameters()
        table, tasks = receive(X, task, self.task_column)
        self._check_columns(X, reset=not again)
        labels, missing = check_labels(X, flat(y), table.n_rows, self.unlabelled)
        weights = check_weights(sample_weight, table.n_rows)
        counted = np.ones(table.n_rows, dtype=bool) if weights is None else weights > 0
        if not (counted & ~missing).any():
            raise ValueError("Input y contains NaN, None or weight zero everywhere: no row with a label counts")
        self._settle_classes(labels[counted & ~missing], classes, again)
        if not again:
            kept = table if weights is None else table.rows(counted)
            kept_weights = None if weights is None else weights[counted]
            declared = declared_categories(X)
            known = encode(labels, self.classes_.tolist())
            known = np.where(missing, -1, known).astype(np.int32)[counted]
            self._schema = learn_schema(
                kept, kept_weights, self.categorical_features, self.bins, declared, self.numeric, known
            )
            self._backend = backend_of(X)
        ids = task_ids(tasks if tasks is None or weights is None else tasks[counted])
        rows = Rows(
            self._schema.encode(table),
            np.where(missing, -1, encode(labels, self.classes_.tolist())).astype(np.int32),
            np.zeros(table.n_rows, dtype=np.int64) if tasks is None else encode(tasks, ids.tolist()).astype(np.int64),
            weights,
            self._schema.encode_numbers(table),
        )
        self._add(rows if weights is None else rows.take(counted), ids, again)
        self._conclude()
        self._label_training_rows(rows, ids, counted)
        return self

    def _check_parameters(self) -> None:
        temper = self.temper
        if not is_learn(temper) and not (isinstance(temper, int | float | np.number) and 0.0 <= temper <= 1.0):
            raise ValueError(f'temper={temper!r}: a power from 0 to 1 or "learn" is needed')
        check_numeric(self.numeric)
        for name, least in (("n_chains", 1), ("n_burn_in", 0), ("n_draws", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name}={value!r}: a whole number of at least {least} is needed")

    def _check_columns(self, X: Any, reset: bool) -> None:
        """Hold columns to scikit-learn's rules: their number and names are those seen at fit."""
        if not isinstance(X, Mapping):
            validate_data(self, X, skip_check_array=True, reset=reset)
        elif reset:
            self.n_features_in_, self.feature_names_in_ = len(X), np.array(list(X), dtype=object)
        elif (known := getattr(self, "feature_names_in_", None)) is not None and list(X) != list(known):
            raise ValueError(f"the feature names should be those that were seen at fit, {list(known)}, not {list(X)}")

    def _settle_classes(self, labels: NDArray[Any], classes: Any, again: bool) -> None:
        """Learn the labels, or check that none is new."""
        if labels.dtype.kind == "f":
            check_classification_targets(labels)
            found = np.unique(labels)
        else:
            found = as_ids(list(distinct(labels, "y")))
        given = None if classes is None else as_column(classes, "classes").tolist()
        if not again:
            self.classes_ = found if given is None else as_ids(sort_values(list(dict.fromkeys(given))))
        elif given is not None and set(given) != set(self.classes_.tolist()):
            raise ValueError(f"classes={given} differs from those of the first call, {self.classes_.tolist()}")
        new = [label for label in found.tolist() if label not in set(self.classes_.tolist())]
        if new:
            raise ValueError(f"label {new[0]!r} is not among the classes {self.classes_.tolist()}")

    def _add(self, rows: Rows, ids: NDArray[Any], again: bool) -> None:
        """Add coded rows to the statistics and to the unlabelled rows."""
        layout = layout_of(self._schema, len(self.classes_))
        statistics = count(rows, layout, ids)
        rows = rows._replace(codes=np.ascontiguousarray(rows.codes))
        labelled, unlabelled = rows.take(rows.labels >= 0), rows.take(rows.labels < 0)
        if again:
            before = self._statistics
            statistics = before + statistics
            now, then = positions(ids, statistics.tasks), positions(before.tasks, statistics.tasks)
            labelled = self._rows.moved(then).followed_by(labelled.moved(now))
            unlabelled = self._unlabelled.moved(then).followed_by(unlabelled.moved(now))
        self._statistics, self._unlabelled, self._rows = statistics, unlabelled, labelled
        self.tasks_ = statistics.tasks

    def _problem(self) -> Problem:
        """What there is to infer from."""
        statistics, unlabelled = self._statistics, self._unlabelled
        weights = unlabelled.weights
        if weights is not None and (weights != np.floor(weights)).any():
            statistics = statistics._replace(
                feature_counts=statistics.feature_counts.astype(np.float64),
                label_counts=statistics.label_counts.astype(np.float64),
            )
        elif not self._takes_narrow_counts():
            statistics = statistics.widened()
        problem = Problem(statistics, unlabelled, self.label_prior_, self._feature_prior)
        if self._tasks_share_rates and self._votes is not None:
            return problem._replace(common=CommonRates(self._feature_prior, self._votes))
        return problem._replace(votes=self._votes)

    def _uses_unlabelled(self) -> bool:
        """Whether rows without a label are learnt from."""
        return True

    def _takes_narrow_counts(self) -> bool:
        """Whether inference never adds counts in their own type, so that one byte each is enough."""
        return False

    def _sample(self, problem: Problem, concentration: float | GammaPrior, fixed: NDArray[np.int64] | None) -> Fitted:
        """Run the Gibbs sampler as the parameters say, with seats that move or are held."""
        schedule = Schedule(self.n_chains, self.n_burn_in, self.n_draws)
        n_sweeps = self.n_chains * (self.n_burn_in + self.n_draws)
        with progress_bar("Sampling", n_sweeps, bool(self.verbose)) as advance:
            return fit_by_sampling(problem, concentration, schedule, self._seed, self.n_jobs, fixed, advance)

    def _infer(self, problem: Problem) -> Fitted:
        raise NotImplementedError  # abstract

    def _label_training_rows(self, rows: Rows, ids: NDArray[Any], counted: NDArray[np.bool_]) -> None:
        """Probabilities of the labels of the rows of this call: certain where known, inferred where not."""
        n_labels = len(self.classes_)
        distribution = np.zeros((len(rows.labels), n_labels))
        known = rows.labels >= 0
        distribution[known, rows.labels[known]] = 1.0
        if not known.all():
            # A row that does not count may be of a task (place −1) that no other row knows: a new one.
            places = np.append(positions(ids, self.tasks_), len(self.tasks_))
            task = places[rows.task[~known]]
            distribution[~known] = np.exp(self._log_predictive(rows.take(~known).values, task))
            inferred = self.posterior_.label_probability
            if inferred is not None:
                of_this_call = np.flatnonzero(counted & ~known)
                distribution[of_this_call] = inferred[len(inferred) - len(of_this_call) :]
        self.label_distributions_ = distribution
        self.transduction_ = self.classes_[distribution.argmax(axis=1)]

    def _log_predictive(self, values: Values, task: NDArray[np.int64]) -> NDArray[np.float64]:
        temper = self.temper_[self._schema.coded_first]
        return self.posterior_.blocks.mixture.log_predictive(
            values.codes, task, temper, self._averaged(), values.numbers
        )

    def _averaged(self) -> bool:
        return False

    def _encode(self, X: Any, task: Any) -> tuple[Values, NDArray[np.int64]]:
        """Values and task places of new rows; a task never seen has the place after the last."""
        check_is_fitted(self)
        table, tasks = receive(X, task, self.task_column)
        self._check_columns(X, reset=False)
        if tasks is None:
            if len(self.tasks_) > 1:
                raise ValueError(
                    f"the model was fitted to {len(self.tasks_)} tasks: say which task each row belongs to, task=..."
                )
            place = np.zeros(table.n_rows, dtype=np.int64)
        else:
            place = encode(tasks, self.tasks_.tolist()).astype(np.int64)
            place[place < 0] = len(self.tasks_)
        return Values(self._schema.encode(table), self._schema.encode_numbers(table)), place

    def predict_log_proba(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """Log probability of each label (rows, classes); see :meth:`predict_proba`."""
        return self._log_predictive(*self._encode(X, task))

    def predict_proba(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """Probability of each label (rows, classes).

        A task never seen gets the model's prediction for a new one; a category never seen, or a missing value, is left
        out of the product.
        """
        return np.asarray(np.exp(self.predict_log_proba(X, task)))

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """The most probable label of each row."""
        best = self.predict_log_proba(X, task).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Share of labelled rows whose label is predicted correctly."""
        predicted = self.predict(X, task)
        labels, missing = check_labels(None, flat(y), len(predicted), self.unlabelled)
        weights = None if sample_weight is None else np.asarray(sample_weight)[~missing]
        # Compared as codes, since labels may be of types that scikit-learn does not mix.
        known = self.classes_.tolist()
        truth = encode(labels[~missing], known)
        return float(accuracy_score(truth, encode(predicted[~missing], known), sample_weight=weights))

    def conditional_evidence(self, *, n_runs: int = 32, random_state: Any = None) -> Evidence:
        """Estimate the log probability of the training rows' known labels given all their features (thesis eq. 4.4).

        See :func:`kinfolk.naive_bayes.estimators.conditional_evidence.conditional_evidence`.
        """
        from kinfolk.naive_bayes.estimators.conditional_evidence import conditional_evidence

        return conditional_evidence(self, n_runs=n_runs, random_state=random_state)

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        return to_archive(self)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        return from_archive(cls, archive)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")


def flat(y: Any) -> Any:
    """A column of labels as one row of them, with scikit-learn's own warning."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        return np.asarray(y).ravel()
    return y
