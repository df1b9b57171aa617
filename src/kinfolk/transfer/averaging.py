"""What all averages of models have in common: members fitted to all rows, what they are, and how they are saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kinfolk.checkpoints import Checkpoint, check_checkpoint
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.estimators.fitted_attributes import MAX_SIMILARITY_TASKS
from kinfolk.parameters import check_whole
from kinfolk.posterior import Archive, known_about, plain, plain_names, unplain
from kinfolk.progress import progress_bar
from kinfolk.tasks.answering import Known
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import Backend
from kinfolk.tasks.training import Labelled
from kinfolk.tasks.whole_fits import all_or_nothing
from kinfolk.transfer.held_out import Folds, believe, rows_of_every_task, side_by_side, tasks_held_out
from kinfolk.transfer.members import Chosen, Sizes, names_of, sizes_of
from kinfolk.transfer.models import MODELS, Member, codings_of
from kinfolk.transfer.predictor import classes_of, known_of, member_archives
from kinfolk.transfer.scales import Scales, scales_of, unit_of
from kinfolk.transfer.sizes import SizeWeights

# Weights below this are not told in a summary.
_TOLD = 0.005


class Average(NamedTuple):
    """All that a fit leaves behind.

    ``n_rows`` are the labelled rows of every task, with a zero for new ones at the end; ``classes`` are None, and
    ``scales`` how far off members were, where targets are numbers.
    """

    known: Known
    classes: NDArray[Any] | None
    members: dict[str, Member]
    weights: SizeWeights
    n_rows: Floats
    seed: int
    backend: Backend
    scales: Scales | None = None


def _members_learn_more(model: ModelAverage) -> bool:
    """Refuse, with a sentence, to add rows to members that cannot learn from them."""
    if not hasattr(model, "weights_"):
        return model._counts_alone()
    unable = [name for name, member in model._average.members.items() if not hasattr(member, "learn_more")]
    if unable:
        raise AttributeError(
            f"{', '.join(unable)}: such members of {type(model).__name__} learn from all rows at once, so fit it to "
            "all of them again; members of naive Bayes alone, as AveragedNB has, learn from further rows"
        )
    return True


class ModelAverage(BaseEstimator):
    """Base class; a subclass says which members there are, how they are weighed, and what it answers."""

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
    checkpoint: str | PathLike[str] | None

    def _choose(self, seed: int, sizes: Sizes) -> Chosen:
        """The members to weigh."""
        raise NotImplementedError  # abstract

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows."""
        raise NotImplementedError  # abstract

    def _make_predictor(self, average: Average) -> Any:
        """The object that answers, of a fitted average."""
        raise NotImplementedError  # abstract

    def _remember_columns(self, known: Known) -> None:
        raise NotImplementedError  # TaskRouting has it, which stands before this class

    def _predictor(self) -> Any:
        check_is_fitted(self)
        return self._answering

    def _check_parameters(self) -> None:
        check_whole("n_folds", self.n_folds, 2)

    def _members_for(self, sizes: Sizes, seed: int) -> tuple[Chosen, Checkpoint]:
        """The members to weigh, checked, and where their fits are kept."""
        checkpoint = check_checkpoint(self.checkpoint, self.random_state)
        chosen = self._choose(seed, sizes)
        for member in chosen.members.values():
            member.check()
        kept = {name: member.kept_in(checkpoint) for name, member in chosen.members.items()}
        return chosen._replace(members=kept), checkpoint

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _transfer(self, table: Labelled) -> None:
        """Weigh members by rows and tasks held out, and fit those that are believed to all rows."""
        arrival, seed = table.arrival, self._draw_seed()
        unit = None if table.numbers is None else unit_of(table.numbers, arrival.weights)
        if unit is not None and table.numbers is not None:
            table = table._replace(numbers=(table.numbers - unit[0]) / unit[1])
        classes = table.labels.classes if table.numbers is None else None
        chosen, checkpoint = self._members_for(sizes_of(table), seed)
        n_fits = len(chosen.members) * (1 + self.n_folds)
        with all_or_nothing(self), progress_bar("Fitting models", n_fits, self.verbose) as advance:
            folds = Folds.of(table, self.n_folds, np.random.default_rng(seed), tasks_held_out, checkpoint)
            believed = believe(chosen, folds, advance, self.n_jobs)
            codings = codings_of(believed.members.values(), table)
            with warnings.catch_warnings():
                if self.members is None:
                    # Nobody has made the default members, or can set them.
                    warnings.simplefilter("ignore")
                whole = self._learn_whole(believed.members, codings, advance)
            n_rows, backend = rows_of_every_task(table), arrival.backend
            scales = None if unit is None else believed.scales._replace(unit=unit)
            self._keep(Average(arrival.known, classes, whole, believed.weights, n_rows, seed, backend, scales))

    @available_if(_members_learn_more)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Add rows, of known tasks or new ones, to what members have learnt; their weights stay unchanged.

        It is there if all members that are believed learn from further rows, as naive Bayes does: their counts add up,
        so that each is what a fit to all rows gives with the same categories and bins. The first call is a :meth:`fit`,
        by which alone members are weighed; the weights of a task move with its rows all the same, where they depend on
        how many there are.

        Parameters
        ----------
        X, y, task, sample_weight
            As in :meth:`fit`; labels are those of the first call.
        classes : array-like, optional
            All labels that will ever be seen; the first call must have rows of each.

        Returns
        -------
        self

        See Also
        --------
        fit : Learn from all rows at once, and weigh members by them.
        """
        if not hasattr(self, "weights_"):
            with all_or_nothing(self):
                self.fit(X, y, task=task, sample_weight=sample_weight)
                self._check_classes(classes)
            return self
        average, members = self._average, dict[str, Member]()
        with all_or_nothing(self):
            for name, member in average.members.items():
                with warnings.catch_warnings():
                    if members:
                        # What is to be told of the rows was told by the first.
                        warnings.simplefilter("ignore")
                    members[name] = member.learn_more(X, y, task, sample_weight)  # type: ignore[attr-defined]
            self._keep_members(members)
        return self

    @available_if(_members_learn_more)
    def forget(self, task: Any) -> Self:
        """Remove a task from what members have learnt.

        It is there where :meth:`partial_fit` is, since counts add up: each member is then what a fit to the rows of
        the other tasks gives with the same categories and bins. Weights that were learnt from rows held out, the task's
        among them, stay unchanged; weights by evidence are those of the other tasks.

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
        """
        check_is_fitted(self)
        with all_or_nothing(self):
            self._keep_members({name: member.forget(task) for name, member in self._average.members.items()})  # type: ignore[attr-defined]
        return self

    def _keep_members(self, members: dict[str, Member]) -> None:
        """Average members that have learnt from other rows than before."""
        learnt = next(iter(members.values())).fitted._result
        n_rows = np.append(learnt.data.statistics.label_counts.sum(axis=1).astype(np.float64), 0.0)
        known, weights = learnt.known._replace(model=type(self).__name__), self._weighed_anew(members)
        self._keep(self._average._replace(known=known, members=members, weights=weights, n_rows=n_rows))

    def _check_classes(self, classes: Any) -> None:
        """Refuse labels that no row of the first call had."""
        seen = [] if self._average.classes is None else self._average.classes.tolist()
        missing = [] if classes is None else [label for label in np.asarray(classes).tolist() if label not in seen]
        if missing:
            raise ValueError(
                f"no row has label {missing[0]!r} of classes: members are weighed by the rows of the first call, which "
                "needs some of every label"
            )

    def _counts_alone(self) -> bool:
        """Whether all members that may be believed learn from counts, which add up."""
        return False

    def _weighed_anew(self, members: Mapping[str, Member]) -> SizeWeights:
        """The weights of members that have learnt from further rows: those of before."""
        return self._average.weights

    def _learn_whole(
        self, members: Mapping[str, Member], codings: Mapping[Any, Any], advance: Callable[[int], None]
    ) -> dict[str, Member]:
        """Members fitted to all rows."""

        def learnt(member: Member, coded: Any) -> Member:
            found = member.learn(coded)
            advance(1)
            return found

        # Codings are found by what is here, which members that are sent elsewhere are not.
        done = side_by_side(self.n_jobs, [(learnt, one, codings[one.coding()]) for one in members.values()])
        return dict(zip(members, done, strict=True))

    def _keep(self, average: Average) -> None:
        """Become the estimator of a fit, all at once."""
        self._average = average
        self._answering = self._make_predictor(average)
        self.members_ = {name: member.fitted for name, member in average.members.items()}
        self.tasks_ = average.known.tasks
        self._remember_columns(average.known)
        believed = average.weights.of(average.n_rows[:-1]).mean(axis=0)
        self.weights_ = dict(zip(average.members, believed.tolist(), strict=True))

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

    @property
    def weights_by_rows_(self) -> Any:
        """The weight of each member by how many rows a task has, 0 for new tasks, as a table."""
        check_is_fitted(self)
        sizes, weights = self._average.weights
        names = list(self.members_)
        columns = {
            "rows": np.repeat(sizes, len(names)).tolist(),
            "member": names * len(sizes),
            "weight": weights.ravel().tolist(),
        }
        return make_frame(columns, self._average.backend)

    def summary(self) -> str:
        """What was found, in a few sentences: members' weights by how many rows a task has, and who is kin.

        Returns
        -------
        str

        See Also
        --------
        weights_by_rows_ : The weights as a table.
        report : A page about all that was found.

        Examples
        --------
        >>> from kinfolk import TransferClassifier
        >>> X, y, task = [["red"], ["blue"]] * 30, ["stop", "go"] * 30, ["ann"] * 20 + ["bob"] * 40
        >>> print(TransferClassifier(["no sharing"], random_state=0).fit(X, y, task=task).summary())
        TransferClassifier of 2 tasks and 60 rows.
        Tasks of any number of rows: no sharing 100%.
        Kin: 2 clusters, the largest of 1 task.
        """
        check_is_fitted(self)
        average, sizes = self._average, self._average.weights.sizes
        lines = [f"{type(self).__name__} of {len(self.tasks_):,} tasks and {average.n_rows.sum():,.0f} rows."]
        for size, weights in zip(sizes, average.weights.weights, strict=True):
            of = f"Tasks of {size:,.0f} rows" if size else "New tasks"
            of = of if len(sizes) > 1 else "Tasks of any number of rows"
            believed = sorted(zip(average.members, weights.tolist(), strict=True), key=lambda item: -item[1])
            told = [f"{name} {weight:.0%}" for name, weight in believed if weight >= _TOLD]
            lines.append(f"{of}: {', '.join(told)}.")
        if any(member.partition() is not None for member in average.members.values()):
            n_tasks = np.bincount(self.partition_)
            largest = f"{n_tasks.max():,} task{'s' if n_tasks.max() > 1 else ''}"
            lines.append(f"Kin: {len(n_tasks):,} cluster{'s' if len(n_tasks) > 1 else ''}, the largest of {largest}.")
        return "\n".join(lines)

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        average = self._average
        archives = [member.archive() for member in average.members.values()]
        params = self.get_params(deep=False) | {"members": None}
        del params["checkpoint"]  # of this machine alone
        if not isinstance(params["random_state"], int | np.integer | None):
            params["random_state"] = average.seed
        about = {
            "family": "averaged" if average.scales is None else "averaged numbers",
            **known_about(average.known),
            "params": {name: plain(value, name) for name, value in params.items()},
            "classes": None if average.classes is None else plain_names(average.classes, "a label"),
            "names": list(average.members),
            "own_members": self.members is not None,
            # Default ones that were chosen by name.
            "member_names": names_of(self.members),
            "seed": average.seed,
            "backend": average.backend,
            "sizes": average.weights.sizes.tolist(),
            "weights": average.weights.weights.tolist(),
            "members": [archive.about for archive in archives],
        }
        arrays = {f"{i}.{name}": array for i, archive in enumerate(archives) for name, array in archive.arrays.items()}
        arrays["n_rows"] = average.n_rows[:-1]
        if average.scales is not None:
            arrays |= {f"scales.{name}": values for name, values in average.scales._asdict().items()}
        return Archive(about, arrays)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        about = archive.about
        model = cls(**{name: unplain(value) for name, value in about["params"].items()})
        parts, weights, n_rows = member_archives(archive)
        members = [MODELS[part.about["family"]].from_archive(part) for part in parts]
        named = dict(zip(about["names"], members, strict=True))
        backend = about.get("backend", "polars")
        known, scales = known_of(archive), scales_of(archive, len(members))
        classes = classes_of(archive) if scales is None else None
        model._keep(Average(known, classes, named, weights, n_rows, int(about["seed"]), backend, scales))
        if about["own_members"]:
            names = about.get("member_names")
            if not names and not all(hasattr(member, "get_params") for member in model.members_.values()):
                # Nobody can have made such a member: it was chosen by name, which earlier files do not say.
                names = about["names"]
            model.members = names or {name: clone(member) for name, member in model.members_.items()}
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")
