"""What the linear models of many tasks have in common: the way in, the fit, and what it leaves behind."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kinfolk.lica.answers.features import Features, receive_features
from kinfolk.lica.answers.moments import moments, moments_of_tasks
from kinfolk.lica.answers.new_task import moments_of_rows
from kinfolk.lica.estimators.archive import from_archive, to_archive
from kinfolk.lica.estimators.targets import Targets, check_tasks, lay_out, receive_targets
from kinfolk.lica.inference.infer import Learnt, Plan, learn, learn_one
from kinfolk.lica.model.data import LinearTasks
from kinfolk.lica.model.prior import TaskPosterior
from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive
from kinfolk.progress import progress_bar
from kinfolk.tasks.door import check_weights
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import backend_of, column_names
from kinfolk.tasks.values import as_ids, encode
from kinfolk.tasks.whole_fits import all_or_nothing

_CHOICES = {
    "inference": ("eb", "map"),
    "sharing": ("sources", "individual", "pooled", "hierarchical"),
    "noise": ("isotropic", "diagonal"),
    "source_prior": ("laplace", "gaussian"),
}


class SharedWeights(BaseEstimator):
    """Base class; a subclass says whether targets are labels or numbers, and turns linear predictors into answers."""

    _classification: ClassVar[bool]

    # scikit-learn's metadata routing passes ``task`` on without further requests.
    __metadata_request__fit: ClassVar = {"task": True}
    __metadata_request__predict: ClassVar = {"task": True}
    __metadata_request__score: ClassVar = {"task": True}

    # Parameters, set by the subclasses' constructors.
    n_sources: int | None
    inference: str
    sharing: str
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
    task_column: str | int | None
    random_state: Any
    n_jobs: int | None
    verbose: bool

    def _link(self) -> str:
        raise NotImplementedError  # abstract

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"{name}={value!r}: one of {', '.join(map(repr, choices))} is needed")
        n_sources = self.n_sources
        if n_sources is not None and (
            isinstance(n_sources, bool) or not isinstance(n_sources, int | np.integer) or n_sources < 1
        ):
            raise ValueError(f"n_sources={n_sources!r}: a whole number of at least 1, or None to choose it, is needed")
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter!r}: a whole number of at least 1 is needed")
        for name in ("tol", "intercept_variance", "loading_variance"):
            value = getattr(self, name)
            chosen_later = value is None and name != "tol"
            if not (chosen_later or (isinstance(value, int | float | np.number) and 0 < value < np.inf)):
                raise ValueError(f"{name}={value!r}: a positive number is needed")
        if self.source_prior == "gaussian" and self.sharing == "sources" and self.inference == "map":
            raise ValueError("source_prior='gaussian' needs inference='eb': point estimates have Laplace sources")

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
        """
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        self._check_parameters()
        with all_or_nothing(self):
            features = receive_features(X, task, self.task_column)
            self._check_columns(X, reset=True)
            targets = receive_targets(features, y, self._classification)
            check_tasks(targets)
            problem = lay_out(features, targets, sample_weight, self.class_weight)
            self._learn(X, features, targets, problem)
        return self

    def _check_columns(self, X: Any, reset: bool) -> None:
        if hasattr(X, "columns") or hasattr(X, "shape") or isinstance(X, list | tuple):
            validate_data(self, X, skip_check_array=True, reset=reset)

    def _learn(self, X: Any, features: Features, targets: Targets, problem: LinearTasks) -> None:
        self._backend = "polars" if sparse.issparse(X) else backend_of(X)
        self._features = features.names
        start = getattr(self, "_learnt", None) if self.warm_start else None
        plan = self._make_plan(int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)))
        # Intercepts have a prior around zero: targets far from it would be drawn there.
        self._target_mean = 0.0 if self._classification else _mean_target(problem)
        with progress_bar("Learning", None, bool(self.verbose)) as advance:
            learnt = learn(_moved(problem, -self._target_mean), plan, start, advance)
        learnt = learnt._replace(tasks=[self._at_home(posterior) for posterior in learnt.tasks])
        self._plan = plan
        self.tasks_, self._is_matrix = targets.tasks, targets.is_matrix
        if targets.classes is not None:
            self.classes_ = targets.classes
        self._keep(learnt)

    def _make_plan(self, seed: int) -> Plan:
        return Plan(
            link=self._link(),
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
            seed=seed,
        )

    def _keep(self, learnt: Learnt) -> None:
        self._learnt = learnt
        self.prior_ = learnt.prior
        self.posteriors_ = list(learnt.tasks)
        self.n_sources_ = learnt.prior.n_sources
        self.objective_ = learnt.objective
        self.n_iter_ = max(len(learnt.objective) - 1, 1)
        self.converged_ = learnt.converged
        if learnt.choice is not None:
            columns = {"n_sources": list(learnt.choice.tried), "score": list(learnt.choice.scores)}
            self.n_sources_curve_ = make_frame(columns, self._backend)

    def fit_task(self, X: Any, y: Any, *, task: Any) -> Self:
        """Add one task, or learn one anew, with all that tasks have in common held as it is.

        Parameters
        ----------
        X, y
            Rows of the one task and their targets.
        task
            Its name.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        its_own = isinstance(self.task_column, str) and self.task_column in (column_names(X) or ())
        features = receive_features(X, None, self.task_column if its_own else None)._replace(task=None)
        self._check_width(features)
        for given, fitted in zip(features.names or (), self._features or (), strict=False):
            if given != fitted:
                raise ValueError(f"column {given!r} stands where the model was fitted to column {fitted!r}")
        targets = receive_targets(features, y, self._classification)
        if targets.is_matrix:
            raise ValueError("y has several columns: fit_task takes one task")
        check_tasks(targets)
        if targets.classes is not None:
            known = self.classes_.tolist()
            new = [label for label in targets.classes.tolist() if label not in known]
            if new:
                raise ValueError(f"label {new[0]!r} is not among the labels {known}")
            own = targets.classes[targets.values[0].astype(np.int64)]
            targets = targets._replace(values=(encode(own, known).astype(np.float64),), classes=self.classes_)
        problem = lay_out(features, targets, None, self.class_weight)
        moved = _moved(problem, -self._target_mean)
        posterior = self._at_home(learn_one(moved, self._plan, self.prior_))
        names = self.tasks_.tolist()
        if task in names:
            self.posteriors_ = [
                posterior if name == task else old for name, old in zip(names, self.posteriors_, strict=True)
            ]
        else:
            self.tasks_, self.posteriors_ = as_ids([*names, task]), [*self.posteriors_, posterior]
        return self

    def _at_home(self, posterior: TaskPosterior) -> TaskPosterior:
        """A task as it is for targets that were not moved."""
        return posterior._replace(intercept=posterior.intercept + self._target_mean)

    def _check_width(self, features: Features) -> None:
        if features.X.shape[1] != self.prior_.n_features:
            raise ValueError(
                f"X has {features.X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.prior_.n_features} features as input"
            )

    @property
    def coef_(self) -> Floats:
        """Weights of every task, (tasks, features)."""
        check_is_fitted(self)
        return np.array([posterior.weights for posterior in self.posteriors_])

    @property
    def intercept_(self) -> Floats:
        """Intercept of every task."""
        check_is_fitted(self)
        return np.array([posterior.intercept for posterior in self.posteriors_])

    @property
    def sources_(self) -> Floats:
        """How much of each source every task has, (tasks, sources)."""
        check_is_fitted(self)
        return np.array([posterior.sources for posterior in self.posteriors_]).reshape(len(self.tasks_), -1)

    @property
    def source_variances_(self) -> Floats:
        """Posterior variance of every task's sources, (tasks, sources); zero for point estimates."""
        check_is_fitted(self)
        spread = np.array([posterior.source_spread for posterior in self.posteriors_]).reshape(len(self.tasks_), -1)
        return 2.0 * spread**2

    @property
    def components_(self) -> Floats:
        """The basic models that weights are mixed from, (sources, features)."""
        check_is_fitted(self)
        return np.asarray(self.prior_.loadings.T)

    @property
    def common_weights_(self) -> Floats:
        """What the weights of all tasks have in common beside their sources, (features,); zeros where nothing."""
        check_is_fitted(self)
        return np.zeros(self.prior_.n_features) if self.prior_.mean is None else self.prior_.mean

    @property
    def weight_variances_(self) -> Floats:
        """Posterior variance of every weight, (tasks, features), where ``weight_variances=True`` asked for it."""
        check_is_fitted(self)
        found = [posterior.weight_variance for posterior in self.posteriors_]
        if any(variance is None for variance in found):
            raise AttributeError('weight_variances_ needs inference="eb", sharing="sources" and weight_variances=True')
        return np.array(found)

    @property
    def source_similarity_(self) -> Floats:
        """Cosine of the angle between tasks' sources, (tasks, tasks); 0 between tasks that share none."""
        sources = self.sources_
        lengths = np.linalg.norm(sources, axis=1, keepdims=True)
        unit = np.divide(sources, lengths, out=np.zeros_like(sources), where=lengths > 0)
        similarity = np.clip(unit @ unit.T, -1.0, 1.0)
        np.fill_diagonal(similarity, 1.0)
        return np.asarray(similarity)

    def top_features(self, n_features: int = 10) -> Any:
        """Features that weigh most in each source, as a frame: source, feature, weight."""
        components = self.components_
        names = self._features or [str(j) for j in range(components.shape[1])]
        columns: dict[str, list[Any]] = {"source": [], "feature": [], "weight": []}
        for h, component in enumerate(components):
            for j in np.argsort(-np.abs(component), kind="stable")[:n_features]:
                columns["source"].append(h)
                columns["feature"].append(names[j])
                columns["weight"].append(float(component[j]))
        return make_frame(columns, self._backend)

    def _moments(self, X: Any, task: Any) -> tuple[Floats, Floats]:
        """Mean and variance of the linear predictor: of each row's task, or of every task (rows, tasks)."""
        check_is_fitted(self)
        features = receive_features(X, task, self.task_column)
        self._check_columns(X, reset=False)
        self._check_width(features)
        if features.task is None and (self._is_matrix or len(self.tasks_) == 1):
            mean, variance = moments_of_tasks(self.prior_, self.posteriors_, features.X)
            return (mean, variance) if self._is_matrix else (mean[:, 0], variance[:, 0])
        if features.task is None:
            raise ValueError("the model knows several tasks: say with task= which one each row belongs to")
        place = encode(features.task, self.tasks_.tolist())
        return moments_of_rows(self.prior_, self.posteriors_, features.X, place, moments)

    def _compare(self, predicted: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
        """Known targets, what was predicted for them, and their weights, for each column of ``y``."""
        targets = receive_targets(Features(predicted, None, None), y, self._classification)
        weights = check_weights(sample_weight, len(predicted))
        columns = np.zeros(1, dtype=np.int64)
        if self._is_matrix:
            columns = encode(targets.tasks, self.tasks_.tolist()).astype(np.int64)
            if (columns < 0).any() and len(columns) != len(self.tasks_):
                raise ValueError(f"y has {len(columns)} columns, and the model {len(self.tasks_)} tasks")
            if (columns < 0).any():  # columns without names are tasks in order
                columns = np.arange(len(columns))
        guesses = predicted if self._is_matrix else predicted[:, None]
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
        return to_archive(self)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        return from_archive(cls, archive)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "prior_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _mean_target(problem: LinearTasks) -> float:
    """Mean of the targets of all tasks, weights counted."""
    weights = np.concatenate(problem.weights)
    return float(np.average(np.concatenate(problem.y), weights=weights if weights.any() else None))


def _moved(problem: LinearTasks, by: float) -> LinearTasks:
    return problem._replace(y=tuple(targets + by for targets in problem.y)) if by else problem
