"""ClusteredClassifier: logistic regression in which tasks of one cluster have the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.checkpoints import Checkpoint
from kinfolk.linear.answers.archive import FittedModel
from kinfolk.linear.estimators.classifier import HierarchicalClassifier
from kinfolk.linear.inference.clustered import Sampling, infer
from kinfolk.maths.arrays import Floats
from kinfolk.parameters import check_whole
from kinfolk.partition.agreement import central_partition
from kinfolk.partition.crp import canonical

_MOST_TASKS = 5_000


class ClusteredClassifier(HierarchicalClassifier):
    """Logistic regression in which tasks of a cluster have the same weights; the clusters are inferred.

    A Dirichlet process over the weights of tasks: partitions of the tasks are drawn by Gibbs sampling, and
    probabilities are averaged over them and over the posterior of the weights. With more than two labels there is a
    model for each, against all others, and one partition for all.

    Parameters
    ----------
    slopes : {"auto", "all", "none"} or list of columns, default="auto"
        Columns whose weights differ between clusters; "auto" takes the 24 columns of the design matrix in which tasks
        differ most, all where there are fewer. The others have common weights.
    own_intercepts : bool, default=True
        Whether each task has an intercept of its own beside its cluster's. Without, predictions are a little better
        where clusters are clear and rows many, and worse with few rows a task.
    concentration : float or "learn", default="learn"
        How ready tasks are to start new clusters; drawn with the partitions by default.
    categorical_features, max_iter, tol, task_column, new_tasks, unlabelled
        As for :class:`~kinfolk.HierarchicalClassifier`.
    n_chains, n_burn_in, n_draws : int, default=2, 20, 30
        Chains, and sweeps of each before and while partitions are kept.
    random_state : int, RandomState or None
    n_jobs : int or None
        Chains run side by side (threads, through joblib).
    checkpoint : path, optional
        As for :class:`~kinfolk.HierarchicalClassifier`; ``random_state`` must be a whole number then.

    Attributes
    ----------
    classes_, tasks_ : ndarray
        The labels, and ids of the tasks.
    partition_ : ndarray of int
        The drawn partition that agrees best with all others: a label per task.
    similarity_ : ndarray of shape (n_tasks, n_tasks)
        Posterior probability that two tasks share weights.
    concentration_ : float
        Mean of the concentrations that were drawn.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early; what is here is then made of the draws so far.
    hyper_, posterior_, n_iter_, converged_
        As for :class:`~kinfolk.HierarchicalClassifier`, whose fit comes first: what clusters' weights are drawn from
        has the mean and spread that it found.

    Notes
    -----
    A sweep takes O(tasks × clusters × columns³) for each label, beside the partially pooled fit: 19 tasks of 160 rows
    and 9 numbers take a quarter of a second.

    References
    ----------
    Y. Xue, X. Liao, L. Carin and B. Krishnapuram, "Multi-task learning for classification with Dirichlet process
    priors", Journal of Machine Learning Research 8, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(240, 2)), np.repeat(["a", "b", "c", "d"], 60)
    >>> slope = np.repeat([2.0, 2.0, -2.0, -2.0], 60)
    >>> y = np.where(slope * X[:, 0] + rng.logistic(size=240) > 0, "yes", "no")
    >>> model = ClusteredClassifier(random_state=0).fit(X, y, task=task)
    >>> model.partition_.tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        *,
        slopes: str | Sequence[Any] = "auto",
        own_intercepts: bool = True,
        concentration: float | str = "learn",
        categorical_features: str | Sequence[Any] = "auto",
        max_iter: int = 300,
        tol: float = 1e-2,
        n_chains: int = 2,
        n_burn_in: int = 20,
        n_draws: int = 30,
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        unlabelled: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            slopes=slopes,
            categorical_features=categorical_features,
            max_iter=max_iter,
            tol=tol,
            task_column=task_column,
            new_tasks=new_tasks,
            unlabelled=unlabelled,
            checkpoint=checkpoint,
        )
        self.own_intercepts = own_intercepts
        self.concentration = concentration
        self.n_chains = n_chains
        self.n_burn_in = n_burn_in
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, least in (("n_chains", 1), ("n_burn_in", 0), ("n_draws", 1)):
            check_whole(name, getattr(self, name), least)
        value = self.concentration
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value != "learn" and not (is_number and 0 < float(value) < np.inf):
            raise ValueError(f'concentration={value!r}: a positive number or "learn" is needed')

    def _learn(self, rows: Any, hypers: Any, fits: Any, checkpoint: Checkpoint) -> Any:
        """Cluster tasks, given their partially pooled fits."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        concentration = None if isinstance(self.concentration, str) else float(self.concentration)
        sampling = Sampling(self.n_chains, self.n_burn_in, self.n_draws, concentration, bool(self.own_intercepts))
        found = infer(rows, hypers, fits, sampling, seed, checkpoint, self.n_jobs)
        return tuple(fit._replace(weights=w) for fit, w in zip(fits, found.weights, strict=True)), found.draws

    def _keep_read(self, model: FittedModel) -> Self:
        if model.clusters is None:
            raise ValueError("its draws of partitions are missing")
        super()._keep_read(model)
        del self.log_evidence_, self.log_evidence_kind_  # those of the partially pooled fit, which this is not
        self.partition_ = canonical(central_partition(model.clusters.seats))
        self.concentration_ = float(model.clusters.concentration.mean())
        return self

    @property
    def similarity_(self) -> Floats:
        """Posterior probability that two tasks share weights, for up to 5,000 tasks.

        Returns
        -------
        ndarray of shape (n_tasks, n_tasks)

        See Also
        --------
        similarity : Of some of the tasks.
        """
        check_is_fitted(self)
        if len(self.tasks_) > _MOST_TASKS:
            raise ValueError(f"similarity_ is for up to {_MOST_TASKS:,} tasks: similarity(tasks) gives some of it")
        return self._shared(np.arange(len(self.tasks_)))

    def similarity(self, tasks: Any) -> Floats:
        """Posterior probability that two of some tasks share weights.

        Parameters
        ----------
        tasks : sequence
            Ids of tasks.

        Returns
        -------
        ndarray of shape (n_tasks, n_tasks)

        See Also
        --------
        similarity_ : Of all tasks.
        """
        check_is_fitted(self)
        known = self.tasks_.tolist()
        unknown = [task for task in tasks if task not in known]
        if unknown:
            raise ValueError(f"task {unknown[0]!r} is not one that the model was fitted to")
        return self._shared(np.array([known.index(task) for task in tasks]))

    def _shared(self, places: NDArray[np.int64]) -> Floats:
        assert self._model.clusters is not None
        seats = self._model.clusters.seats[:, places]
        shared = np.zeros((len(places), len(places)))
        for seat in seats:
            shared += seat[:, None] == seat
        return np.asarray(shared / len(seats))
