"""What the linear models of many tasks have in common: the way in, the fit, and what it leaves behind."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.checkpoints import check_checkpoint
from kinfolk.estimator import TaskRouting
from kinfolk.interrupts import raise_if_interrupted
from kinfolk.lica.answers.archive import FittedModel, read, to_archive
from kinfolk.lica.answers.predictor import LICAPredictor
from kinfolk.lica.answers.top_features import top_features
from kinfolk.lica.estimators.targets import Targets, check_tasks, lay_out, receive_targets
from kinfolk.lica.inference.infer import Options, infer, infer_task
from kinfolk.lica.model.fitted import Begun
from kinfolk.lica.model.scaling import measure
from kinfolk.maths.arrays import Floats
from kinfolk.parameters import check_choice, check_whole
from kinfolk.posterior import Archive, unplain
from kinfolk.progress import progress_bar, progress_wanted
from kinfolk.tasks.answering import receive_rows
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.schema import as_matrix, encode
from kinfolk.tasks.table import column_names, n_rows
from kinfolk.tasks.training import check_weights, need_some, receive_table

_CHOICES = {
    "inference": ("eb", "map"),
    "sharing": ("sources", "individual", "pooled", "hierarchical"),
    "noise": ("isotropic", "diagonal"),
    "source_prior": ("laplace", "gaussian"),
}


class SharedWeights(TaskRouting, BaseEstimator):
    """Base class; a subclass says whether targets are labels or numbers, and turns linear predictors into answers."""

    _classification: ClassVar[bool]
    # Where empirical Bayes begins, if an average knows it from a fit to most of the rows.
    _begun: Begun | None = None

    # Parameters, set by the subclasses' constructors.
    n_sources: int | None
    inference: str
    sharing: str
    link: str
    noise: str
    source_prior: str
    loading_variance: float | None
    shared_mean: bool
    intercept_variance: float | None
    class_weight: Any
    max_iter: int
    tol: float
    warm_start: bool
    weight_variances: bool
    scale: str | bool
    task_column: str | int | None
    new_tasks: str
    random_state: Any
    n_jobs: int | None
    verbose: bool | None
    checkpoint: str | PathLike[str] | None

    def _check_parameters(self) -> Options:
        """Refuse wrong parameters, and give them as options of inference."""
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        if self._classification:
            check_choice("link", self.link, ("logistic", "probit"))
        if self.n_sources is not None:
            check_whole("n_sources", self.n_sources, 1)
        check_whole("max_iter", self.max_iter, 1)
        for name in ("tol", "intercept_variance", "loading_variance"):
            value = getattr(self, name)
            chosen_later = value is None and name != "tol"
            if not (chosen_later or (isinstance(value, int | float | np.number) and 0 < value < np.inf)):
                raise ValueError(f"{name}={value!r}: a positive number is needed")
        if self.scale not in ("auto", True, False):
            raise ValueError(f"scale={self.scale!r}: 'auto', True or False is needed")
        if self.source_prior == "gaussian" and self.sharing == "sources" and self.inference == "map":
            raise ValueError("source_prior='gaussian' needs inference='eb': point estimates have Laplace sources")
        return Options(
            link=self.link,
            sharing=self.sharing,
            inference=self.inference,
            n_sources=self.n_sources,
            noise=self.noise,
            source_prior=self.source_prior,
            loading_variance=self.loading_variance,
            shared_mean=bool(self.shared_mean),
            intercept_variance=None if self.intercept_variance is None else float(self.intercept_variance),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            weight_variances=bool(self.weight_variances),
            n_jobs=self.n_jobs,
            checkpoint=check_checkpoint(self.checkpoint, self.random_state),
            begun=self._begun,
        )

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows of all tasks.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix of shape (n_rows, n_features)
            Numbers; sparse tables stay sparse.
        y : array-like of shape (n_rows,) or (n_rows, n_tasks)
            One target for each row, with ``task`` or ``task_column``; or a matrix with a column for each task, whose
            rows all tasks share. ``None`` or NaN where a target is unknown.
        task : array-like of shape (n_rows,), optional
            The task that each row belongs to. Without it, one target for each row makes one task.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows, one of weight 0 not at all.

        Returns
        -------
        self

        See Also
        --------
        predict : Answers for rows of known and of new tasks.
        kinfolk.save : Keep what was learnt in a file.
        """
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        options = self._check_parameters()
        named = task is not None or self.task_column is not None
        arrival = receive_table(
            X,
            model=type(self).__name__,
            task=task,
            task_column=self.task_column,
            new_tasks=self.new_tasks,
            shares=len(getattr(y, "shape", ())) != 2,  # the columns of a matrix are tasks
            sample_weight=sample_weight,
            sparse=True,
        )
        features, known = as_matrix(arrival.table), arrival.known
        kind = {"classification": self._classification, "named": named}
        targets = receive_targets(y, arrival.place, known.tasks, **kind)
        check_tasks(targets)
        data = lay_out(features, targets, arrival.weights, self.class_weight)
        scaling, drowning = measure(data, self.scale)
        if drowning is not None:
            warnings.warn(
                f"{arrival.table.labels[drowning] if arrival.table.labels else f'column {drowning}'} is more than a "
                "hundred times as large as most columns, which hardly count beside it: a table that is mostly zeros "
                "keeps its scale; scale=True brings its columns to one, scale=False leaves them without this warning",
                UserWarning,
                stacklevel=2,
            )
        before: FittedModel | None = getattr(self, "_model", None) if self.warm_start else None
        if before is not None:
            if (before.scaling is None) != (scaling is None) or len(before.prior.noise) != features.shape[1]:
                before = None  # what was learnt in other units is no start
            else:
                scaling = before.scaling
        if scaling is not None:
            data = data._replace(X=scaling.apply(data.X))
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        learnt = None if before is None else before.prior, None if before is None else before.fitted
        with progress_bar("Learning", None, True) if progress_wanted(self.verbose) else nullcontext() as advance:
            prior, fitted = infer(data, learnt[0], options, seed, learnt[1], advance)
        self._keep(
            FittedModel(
                known._replace(tasks=targets.tasks),
                prior,
                fitted,
                self.link,
                targets.classes,
                targets.is_matrix,
                arrival.table.names,
                arrival.backend,
                seed,
                scaling,
            )
        )
        return raise_if_interrupted(self)

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the fit early: what there was by then is here."""
        check_is_fitted(self)
        return self._model.fitted.interrupted

    def _keep(self, model: FittedModel) -> None:
        known, fitted = model.known, model.fitted
        self._remember_columns(known)
        self._model, self._answers = model, LICAPredictor(model)
        self.tasks_, self.prior_, self.posteriors_ = known.tasks, model.prior, list(fitted.tasks)
        self.scaling_ = model.scaling
        if model.classes is not None:
            self.classes_ = model.classes
        self.n_sources_ = int(model.prior.loadings.shape[1])
        self.objective_ = fitted.objective
        self.n_iter_ = max(len(fitted.objective) - 1, 1)
        self.converged_ = fitted.converged
        if fitted.choice is not None:
            columns = {"n_sources": list(fitted.choice.tried), "score": list(fitted.choice.scores)}
            self.n_sources_curve_ = make_frame(columns, model.backend)

    def _fitted_predictor(self) -> LICAPredictor:
        """The object that answers."""
        check_is_fitted(self)
        return self._answers

    def fit_task(self, X: Any, y: Any, *, task: Any) -> Self:
        """Add one task, or learn one again, while everything that tasks share stays unchanged.

        Parameters
        ----------
        X, y
            Rows of the one task and their targets.
        task
            Its name.

        Returns
        -------
        self

        See Also
        --------
        fit : Learns what tasks have in common as well.
        """
        check_is_fitted(self)
        model, known = self._model, self._model.known
        column = known.task_column
        # A column of tasks may be there or not: the task is named beside the table.
        beside = column is not None and column not in (column_names(X) or ())
        asked = receive_rows(X, known, task=[task] * n_rows(X) if beside else None, needs_task=False, sparse=True)
        need_some(asked.table)
        targets = self._targets_of_one_task(y, asked.table.n_rows)
        features = as_matrix(asked.table)
        if model.scaling is not None:
            features = model.scaling.apply(features)
        data = lay_out(features, targets, None, self.class_weight)
        posterior = infer_task(data, model.prior, self._check_parameters(), model.fitted.target_mean)
        names, tasks = known.tasks.tolist(), list(model.fitted.tasks)
        if task in names:
            tasks[names.index(task)] = posterior
        else:
            names, tasks = [*names, task], [*tasks, posterior]
        known, fitted = known._replace(tasks=as_ids(names)), model.fitted._replace(tasks=tuple(tasks))
        self._keep(model._replace(known=known, fitted=fitted))
        return self

    def _targets_of_one_task(self, y: Any, n_of_rows: int) -> Targets:
        targets = self._targets_beside(y, n_of_rows)
        if targets.is_matrix:
            raise ValueError("y has several columns: fit_task takes one task")
        check_tasks(targets)
        if targets.classes is None:
            return targets
        labels = self.classes_.tolist()
        new = [label for label in targets.classes.tolist() if label not in labels]
        if new:
            raise ValueError(f"label {new[0]!r} is not among the labels {labels}")
        own = targets.classes[targets.values[0].astype(np.int64)]
        return targets._replace(values=(encode(own, labels).astype(np.float64),), classes=self.classes_)

    def _targets_beside(self, y: Any, n_of_rows: int) -> Targets:
        """Targets of rows whose tasks do not matter."""
        nowhere = np.zeros(n_of_rows, dtype=np.int64)
        return receive_targets(y, nowhere, np.zeros(1), classification=self._classification, named=False)

    @property
    def coef_(self) -> Floats:
        """Weights of every task, in the units of the table.

        Returns
        -------
        ndarray of shape (n_tasks, n_features)

        See Also
        --------
        intercept_ : What a row of zeros has instead.
        """
        return self._fitted_predictor().coef_

    @property
    def intercept_(self) -> Floats:
        """Linear predictor of every task at a row of zeros.

        Returns
        -------
        ndarray of shape (n_tasks,)

        See Also
        --------
        coef_ : The weights of features.
        """
        return self._fitted_predictor().intercept_

    @property
    def sources_(self) -> Floats:
        """How much of each source every task has.

        Returns
        -------
        ndarray of shape (n_tasks, n_sources)

        See Also
        --------
        components_ : What the sources are made of.
        source_variances_ : How sure they are.
        """
        check_is_fitted(self)
        return np.array([posterior.sources for posterior in self.posteriors_]).reshape(len(self.tasks_), -1)

    @property
    def source_variances_(self) -> Floats:
        """Posterior variance of every task's sources; zero for point estimates.

        Returns
        -------
        ndarray of shape (n_tasks, n_sources)

        See Also
        --------
        sources_ : Their means.
        """
        check_is_fitted(self)
        spread = np.array([posterior.source_spread for posterior in self.posteriors_]).reshape(len(self.tasks_), -1)
        return 2.0 * spread**2

    @property
    def components_(self) -> Floats:
        """The basic models that weights are mixed from, in the units of the table.

        Weights are ``common_weights_ + sources_ @ components_`` and what is a task's own.

        Returns
        -------
        ndarray of shape (n_sources, n_features)

        See Also
        --------
        top_features : The largest of them.
        """
        check_is_fitted(self)
        return self._in_units_of_the_table(self.prior_.loadings.T)

    @property
    def common_weights_(self) -> Floats:
        """What the weights of all tasks have in common beside their sources; zeros where nothing.

        Returns
        -------
        ndarray of shape (n_features,)

        See Also
        --------
        coef_ : The weights of each task.
        """
        check_is_fitted(self)
        mean = self.prior_.mean
        return self._in_units_of_the_table(np.zeros(len(self.prior_.noise)) if mean is None else mean)

    @property
    def weight_variances_(self) -> Floats:
        """Posterior variance of every weight, where ``weight_variances=True`` asked for it.

        Returns
        -------
        ndarray of shape (n_tasks, n_features)

        See Also
        --------
        coef_ : The weights' means.
        """
        check_is_fitted(self)
        found = [posterior.weight_variance for posterior in self.posteriors_]
        if any(variance is None for variance in found):
            raise AttributeError('weight_variances_ needs inference="eb", sharing="sources" and weight_variances=True')
        # A variance has the square of its weight's unit.
        return self._in_units_of_the_table(self._in_units_of_the_table(np.array(found)))

    def _in_units_of_the_table(self, weights: Floats) -> Floats:
        scaling = self._model.scaling
        return np.asarray(weights if scaling is None else weights / scaling.unit)

    @property
    def source_similarity_(self) -> Floats:
        """Cosine of the angle between tasks' sources; 0 between tasks that share none.

        Returns
        -------
        ndarray of shape (n_tasks, n_tasks)

        See Also
        --------
        sources_ : What is compared.
        """
        sources = self.sources_
        lengths = np.linalg.norm(sources, axis=1, keepdims=True)
        unit = np.divide(sources, lengths, out=np.zeros_like(sources), where=lengths > 0)
        similarity = np.clip(unit @ unit.T, -1.0, 1.0)
        np.fill_diagonal(similarity, 1.0)
        return np.asarray(similarity)

    def top_features(self, n_features: int = 10) -> Any:
        """Features that weigh most in each source.

        Parameters
        ----------
        n_features : int, default=10
            How many of each source.

        Returns
        -------
        frame with columns source, feature and weight
            The weights are those of ``components_``; where columns were brought to one scale, the features are those
            that matter most there, since a weight in the units of the table is large where the unit is.

        See Also
        --------
        components_ : The weights of all features.
        """
        check_is_fitted(self)
        model, loadings = self._model, self.prior_.loadings.T
        return top_features(self.components_, loadings, model.features, n_features, model.backend)

    def _compare(self, predicted: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
        """Known targets, what was predicted for them, and their weights, for each column of ``y``."""
        targets = self._targets_beside(y, len(predicted))
        weights = check_weights(sample_weight, len(predicted))
        columns = np.zeros(1, dtype=np.int64)
        if self._model.is_matrix:
            columns = encode(targets.tasks, self.tasks_.tolist()).astype(np.int64)
            if (columns < 0).any() and len(columns) != len(self.tasks_):
                raise ValueError(f"y has {len(columns)} columns, and the model {len(self.tasks_)} tasks")
            if (columns < 0).any():  # columns without names are tasks in order
                columns = np.arange(len(columns))
        guesses = predicted if self._model.is_matrix else predicted[:, None]
        return [
            (
                values if targets.classes is None else targets.classes[values.astype(np.int64)],
                guesses[rows, k],
                None if weights is None else weights[rows],
            )
            for k, rows, values in zip(columns, targets.rows, targets.values, strict=True)
            if len(rows)
        ]

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        params = self.get_params(deep=False)
        del params["checkpoint"]  # of this machine alone
        if not isinstance(params["random_state"], int | np.integer | None):
            params["random_state"] = self._model.seed
        return to_archive(self._model, params)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        # Files of before there was a scale were fitted to columns as they are.
        params = {"scale": False, **archive.about["params"]}
        model = cls(**{name: unplain(value) for name, value in params.items()})
        model._check_parameters()
        saved = read(archive)
        if model.link != saved.link:
            raise ValueError(f"its link {saved.link!r} is not that of its parameters")
        model._keep(saved)
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "prior_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
