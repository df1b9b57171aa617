"""What averages of classifiers have in common: how members are weighed and fitted, and what the average answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.estimator import TaskClassifier
from kinfolk.explanation import Explanation
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.estimators.fitted_attributes import MAX_SIMILARITY_TASKS
from kinfolk.parameters import check_whole
from kinfolk.posterior import Archive, known_about, plain, plain_names, unplain
from kinfolk.tasks.answering import Known, receive_rows
from kinfolk.tasks.keywords import task_by_keyword
from kinfolk.tasks.schema import encode
from kinfolk.tasks.table import Backend, Table
from kinfolk.tasks.training import Labelled, receive_labelled
from kinfolk.transfer.held_out import HeldOut
from kinfolk.transfer.members import Chosen
from kinfolk.transfer.models import MODELS, Member
from kinfolk.transfer.predictor import AveragedPredictor, classes_of, known_of, member_archives
from kinfolk.transfer.sizes import SizeWeights
from kinfolk.transfer.weights import make_folds

# The least that a log probability counts as, where one has rounded to zero.
_LEAST = -700.0
_INTERACTIONS = "interactions"


class Average(NamedTuple):
    """All that a fit leaves behind.

    ``n_rows`` are the labelled rows of every task, with a zero for new ones at the end.
    """

    known: Known
    classes: NDArray[Any]
    members: dict[str, Member]
    weights: SizeWeights
    n_rows: Floats
    seed: int
    backend: Backend


class ModelAverage(TaskClassifier, ClassifierMixin, BaseEstimator):
    """Base class; a subclass says which members there are, and how they are weighed."""

    classes_: NDArray[Any]
    tasks_: NDArray[Any]
    members_: dict[str, Any]
    weights_: dict[str, float]

    # Parameters, set by the subclasses' constructors.
    members: Any
    n_folds: int
    task_column: str | int | None
    new_tasks: str
    unlabelled: Any
    random_state: Any
    n_jobs: int | None
    verbose: bool | None

    def _choose(self, seed: int, n_tasks: int, n_labels: int) -> Chosen:
        """The members to weigh."""
        raise NotImplementedError  # abstract

    def _check_parameters(self) -> None:
        check_whole("n_folds", self.n_folds, 2)

    def _receive(self, X: Any, y: Any, task: Any, sample_weight: Any) -> Labelled:
        return receive_labelled(
            X,
            y,
            model=type(self).__name__,
            task=task,
            task_column=self.task_column,
            new_tasks=self.new_tasks,
            sample_weight=sample_weight,
            unlabelled=self.unlabelled,
        )

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _learn_whole(
        self, members: Mapping[str, Member], table: Labelled, advance: Callable[[int], None]
    ) -> dict[str, Member]:
        """Members fitted to all rows."""
        codings: dict[Any, Any] = {}
        for member in members.values():
            if member.coding() not in codings:
                codings[member.coding()] = member.code(table)

        def learnt(member: Member) -> Member:
            found = member.learn(codings[member.coding()])
            advance(1)
            return found

        done = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(learnt)(one) for one in members.values())
        return dict(zip(members, done, strict=True))

    def _keep(self, average: Average) -> None:
        """Become the estimator of a fit, all at once."""
        self._average = average
        self._answering = AveragedPredictor(
            [member.answers() for member in average.members.values()],
            average.weights,
            average.n_rows,
            average.known,
            average.classes,
        )
        self.members_ = {name: member.fitted for name, member in average.members.items()}
        self.classes_, self.tasks_ = average.classes, average.known.tasks
        self._remember_columns(average.known)
        believed = average.weights.of(average.n_rows[:-1]).mean(axis=0)
        self.weights_ = dict(zip(average.members, believed.tolist(), strict=True))

    def _predictor(self) -> AveragedPredictor:
        check_is_fitted(self)
        return self._answering

    @property
    def similarity_(self) -> Floats:
        """Probability that two tasks share their feature rates, the members' averaged by their weights."""
        return self._similarity(None)

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
        return self._similarity(tasks)

    def _similarity(self, tasks: Any) -> Floats:
        check_is_fitted(self)
        found = {name: member.similarity(tasks) for name, member in self._average.members.items()}
        known = {name: self.weights_[name] for name, each in found.items() if each is not None}
        if not known:
            raise AttributeError("no believed member has a probability that two tasks share")
        total = sum(known.values())
        return np.asarray(np.sum([weight / total * np.asarray(found[name]) for name, weight in known.items()], axis=0))

    @property
    def partition_(self) -> NDArray[np.int64]:
        """The partition of a member that agrees best with the averaged similarity, summed over pairs of tasks."""
        check_is_fitted(self)
        found = {name: member.partition() for name, member in self._average.members.items()}
        partitions = {name: each for name, each in found.items() if each is not None}
        if not partitions:
            raise AttributeError("no believed member has clusters of tasks")
        if len(self.tasks_) > MAX_SIMILARITY_TASKS:
            return np.asarray(partitions[max(partitions, key=lambda name: self.weights_[name])])
        similarity = self.similarity_
        return np.asarray(
            min(partitions.values(), key=lambda z: float(np.abs((z[:, None] == z[None, :]) - similarity).sum()))
        )

    @task_by_keyword
    def explain(self, X: Any, *, task: Any = None) -> Explanation:
        """What each feature added to the log odds of each row, members' explanations averaged by their weights.

        What the logarithm of an average has beyond the average of logarithms is in the remainder; what trees see in
        several features at once is one line, "interactions".

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
        members_ : The models that are averaged.
        """
        predictor = self._predictor()
        asked = receive_rows(X, predictor.known, task=task)
        weights = predictor.weights_of(asked.place)
        parts = [member.explain(asked) for member in self._average.members.values()]
        averaged: dict[str, Any] = {
            field: sum(
                weights[:, m].reshape(-1, *[1] * (getattr(part, field).ndim - 1)) * getattr(part, field)
                for m, part in enumerate(parts)
            )
            for field in parts[0]._fields[:-1]
        }
        # Members without parts of a feature say nothing of whose data stood behind it.
        shares = ("own", "kin", "everybody", "prior")
        total = sum(averaged[share] for share in shares)
        for share in shares:
            averaged[share] = np.divide(averaged[share], total, out=np.zeros_like(total), where=total > 0.0)
        names = list(predictor.feature_names_in_)
        values = next((part.values for part in parts if part.values is not None), None) or _values(asked.table)
        interactions = averaged.pop("interactions")
        if np.any(interactions):
            names, values = [*names, _INTERACTIONS], [[*row, ""] for row in values]
            averaged["feature_part"] = np.concatenate([averaged["feature_part"], interactions[:, None]], axis=1)
            for share in shares:
                # Trees are everybody's.
                averaged[share] = np.column_stack([averaged[share], np.full(len(values), float(share == "everybody"))])
        log_p = predictor.log_predictive(asked)
        remainder = log_p - averaged["label_part"] - averaged["feature_part"].sum(axis=1)
        return Explanation(self.classes_, names, values, remainder=remainder, backend=self._average.backend, **averaged)

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        average = self._average
        archives = [member.archive() for member in average.members.values()]
        params = self.get_params(deep=False) | {"members": None}
        if not isinstance(params["random_state"], int | np.integer | None):
            params["random_state"] = average.seed
        about = {
            "family": "averaged",
            **known_about(average.known),
            "params": {name: plain(value, name) for name, value in params.items()},
            "classes": plain_names(average.classes, "a label"),
            "names": list(average.members),
            "own_members": self.members is not None,
            "seed": average.seed,
            "backend": average.backend,
            "sizes": average.weights.sizes.tolist(),
            "weights": average.weights.weights.tolist(),
            "members": [archive.about for archive in archives],
        }
        arrays = {f"{i}.{name}": array for i, archive in enumerate(archives) for name, array in archive.arrays.items()}
        return Archive(about, arrays | {"n_rows": average.n_rows[:-1]})

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        about = archive.about
        model = cls(**{name: unplain(value) for name, value in about["params"].items()})
        parts, weights, n_rows = member_archives(archive)
        members = [MODELS[part.about["family"]].from_archive(part) for part in parts]
        named = dict(zip(about["names"], members, strict=True))
        backend = about.get("backend", "polars")
        known, classes = known_of(archive), classes_of(archive)
        model._keep(Average(known, classes, named, weights, n_rows, int(about["seed"]), backend))
        if about["own_members"]:
            model.members = {name: clone(member) for name, member in model.members_.items()}
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")


def rows_of_every_task(table: Labelled) -> Floats:
    """How many rows with a label every task has, by their weights; at the end none, for new tasks."""
    arrival = table.arrival
    counts = np.ones(len(arrival.place)) if arrival.weights is None else arrival.weights
    counts = np.where(table.labels.codes >= 0, counts, 0.0)
    return np.append(
        np.bincount(arrival.place, counts, minlength=len(arrival.known.tasks))[: len(arrival.known.tasks)], 0.0
    )


class Folds(NamedTuple):
    """Parts of the rows to hold out, and what is needed to ask models about them."""

    table: Labelled
    parts: list[NDArray[np.bool_]]
    counts: Floats

    @classmethod
    def of(cls, table: Labelled, n_folds: int, rng: np.random.Generator, beside: Any = None) -> Folds:
        """Divide rows, labels spread evenly; with ``beside`` (see :func:`tasks_held_out`) some tasks whole as well."""
        code, weights = table.labels.codes, table.arrival.weights
        counts = np.ones(len(code)) if weights is None else weights
        fold = make_folds(code, counts, n_folds, rng)
        whole = None if beside is None else beside(table.arrival.place, len(table.arrival.known.tasks), n_folds, rng)
        parts = [(fold == p) if whole is None else (fold == p) | whole[p] for p in range(n_folds) if (fold == p).any()]
        labelled = (code >= 0) & (counts > 0)
        return cls(table, [part for part in parts if len(np.unique(code[~part & labelled])) > 1], counts)

    def hold_out(self, members: Sequence[Member], part: NDArray[np.bool_], advance: Callable[[int], None]) -> HeldOut:
        """What members that have learnt from all other rows give those of a part."""
        table = self.table
        learnt_from, tested = table.take(~part), part & (table.labels.codes >= 0) & (self.counts > 0)
        asked = table.asked(tested, learnt_from.arrival.known)
        # A label that only a row held out has: no member could know it.
        labels = table.labels.classes[table.labels.codes[tested]]
        place = encode(labels, learnt_from.labels.classes.tolist())
        codings: dict[Any, Any] = {}
        asked_as: dict[int, Any] = {}
        own = []
        for member in members:
            if member.coding() not in codings:
                codings[member.coding()] = member.code(learnt_from)
            answers = member.brief().learn(codings[member.coding()]).answers()
            if id(answers.columns) not in asked_as:
                asked_as[id(answers.columns)] = answers.code(asked)
            log_p = np.maximum(answers.log_predictive(asked_as[id(answers.columns)]), _LEAST)
            own.append(np.where(place >= 0, log_p[np.arange(len(place)), place], 0.0))
            advance(1)
        n_rows = rows_of_every_task(learnt_from)
        return HeldOut(np.column_stack(own), self.counts[tested], n_rows[asked.place])


def _values(table: Table) -> list[list[str]]:
    """Values of rows as they came, to be read; nothing where one is missing."""
    columns = [
        ["" if value is None or value != value else str(value) for value in each.tolist()] for each in table.columns
    ]
    return [list(row) for row in zip(*columns, strict=True)]
