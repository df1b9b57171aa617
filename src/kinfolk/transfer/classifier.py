"""TransferClassifier: one classifier for people who do not want to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

from kinfolk.transfer.label_average import LabelAverage
from kinfolk.transfer.members import (
    CLASSIFIER_KINDS,
    CLASSIFIERS,
    NAIVE_BAYES,
    NAIVE_BAYES_KINDS,
    Chosen,
    Sizes,
    chosen_members,
)


class TransferClassifier(LabelAverage):
    """The classifier to take if you do not want to choose: several kinds of models, weighted by how well they predict.

    Naive Bayes that shares in four ways, linear models with latent sources, and boosted trees learn from any table.
    They are weighted by how well each predicts held-out rows of tasks, and whole tasks that are held out. The weights
    depend on how many rows a task has: large tasks can rely on their own rows, small and new ones on others.

    Parameters
    ----------
    members : sequence of str, mapping or sequence of estimators, optional
        Which models to weigh: some of the names in ``kinfolk.transfer.members.CLASSIFIERS``, or estimators of kinfolk,
        by names of your own if given as a mapping. All of the former by default.
    n_folds : int, default=5
        Parts of the rows that are held out in turn; where rows are many, fewer are enough.
    task_column : str or int, optional
        The column of the table that holds the task.
    new_tasks : {"warn", "expected"}, default="warn"
        Whether to warn where most rows to be answered are of tasks never seen (:class:`~kinfolk.UnseenWarning`).
    unlabelled : optional
        A label that marks a row without one, beside None and NaN.
    random_state : int, RandomState or None
        Seed of what is held out and of the members that sample.
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
        The members with a weight, fitted to all rows, by name.
    weights_ : dict
        The weight of each, averaged over tasks; the weights add up to one.
    weights_by_rows_ : frame
        The weight of each by how many rows a task has, 0 for new tasks: rows, member, weight.
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    similarity_, partition_ : arrays
        Of the members that cluster tasks: probabilities that two tasks share, averaged; and the one of their
        partitions that agrees best.

    See Also
    --------
    AveragedNB : The same restricted to naive Bayes.
    TransferRegressor : The same for numbers.
    evaluate : Compare models on rows held out.

    References
    ----------
    D. H. Wolpert, "Stacked Generalization", Neural Networks 5, 1992.
    Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using Stacking to Average Bayesian Predictive Distributions",
    Bayesian Analysis 13, 2018.

    Examples
    --------
    >>> from kinfolk import TransferClassifier
    >>> X = [["red", 1.5], ["blue", 2.5]] * 30
    >>> y = ["stop", "go"] * 20 + ["go", "stop"] * 10
    >>> task = ["ann"] * 20 + ["bob"] * 20 + ["eve"] * 20
    >>> model = TransferClassifier(random_state=0).fit(X, y, task=task)
    >>> model.predict([["red", None], ["red", 2.0]], task=["ann", "eve"]).tolist()
    ['stop', 'go']
    >>> round(sum(model.weights_.values()), 6)
    1.0
    """

    # The default members read columns as they come.
    categorical_features = "auto"
    bins = 8
    numeric = "bin"

    def __init__(
        self,
        members: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        n_folds: int = 5,
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        unlabelled: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.members = members
        self.n_folds = n_folds
        self.task_column = task_column
        self.new_tasks = new_tasks
        self.unlabelled = unlabelled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Weight the members by held-out rows and tasks, and fit those with a weight to all rows.

        Parameters
        ----------
        X : frame, array or mapping from columns to values
            Text, categories, truth values and numbers, with gaps where values are missing.
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
        weights_by_rows_ : The weights.
        explain : What each feature, and whose data, stood behind a prediction.
        """
        self._check_parameters()
        self._transfer(self._receive(X, y, task, sample_weight))
        return self

    def _choose(self, seed: int, sizes: Sizes) -> Chosen:
        return chosen_members(self.members, CLASSIFIERS, CLASSIFIER_KINDS, self, seed, sizes)

    def _counts_alone(self) -> bool:
        given = () if self.members is None else self.members
        every = list(given.values()) if isinstance(given, Mapping) else list(given)
        of_counts = [one in NAIVE_BAYES if isinstance(one, str) else type(one) in NAIVE_BAYES_KINDS for one in every]
        return bool(every) and all(of_counts)
