"""The models that are averaged: default ones, each a line of a table, or a user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from kinfolk.lica.estimators.classifier import LICAClassifier
from kinfolk.lica.estimators.regressor import LICARegressor
from kinfolk.linear.estimators.classifier import HierarchicalClassifier
from kinfolk.linear.estimators.clustered import ClusteredClassifier
from kinfolk.linear.estimators.regressor import HierarchicalRegressor
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.naive_bayes.estimators.complete_sharing import CompleteSharingNB
from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
from kinfolk.naive_bayes.estimators.parameters import is_learn
from kinfolk.naive_bayes.estimators.prototype import PrototypeNB
from kinfolk.tasks.training import Labelled
from kinfolk.transfer.models import (
    HierarchicalMember,
    Member,
    NaiveBayesMember,
    SourcesMember,
    TreesMember,
)

_MOST_SOURCES = 4
# LICA keeps a covariance of each task's weights: 80 MB of them, and no more. On wages (4,544 tasks × 53 columns) it
# took most of 216 processor seconds, and all other members, which predict as well (0.0796, with it 0.0795), took 10.
_MOST_COVARIANCES = 1e7
# Partial pooling goes through rows × columns² again and again: 32,961 directors × 160 columns (imdb) take minutes.
_MOST_POOLED = 3e8


class Sizes(NamedTuple):
    """How many tasks, labels (none where targets are numbers) and columns a table has."""

    n_tasks: int
    n_labels: int
    n_columns: int


def sizes_of(table: Labelled) -> Sizes:
    """The sizes of a table that has come through the door."""
    known = table.arrival.known
    return Sizes(len(known.tasks), len(table.labels.classes) if table.numbers is None else 0, known.n_columns)


class Told(NamedTuple):
    """What a default member is told: parameters that all have, the seed, and how many tasks, labels and columns."""

    common: dict[str, Any]
    seed: int
    n_tasks: int
    n_labels: int
    n_columns: int


class Line(NamedTuple):
    """A default member: how it is made, and how far it is believed before any row is seen.

    ``most_labels`` and ``fewest_tasks`` are what its model needs; ``most_weights`` bounds tasks × columns², the size of
    what some models keep.
    """

    make: Callable[[Told], Member]
    share: float
    most_labels: int | None = None
    fewest_tasks: int = 1
    most_weights: float = np.inf

    def suits(self, told: Told) -> bool:
        """Whether its model is one for these data."""
        fits = told.n_tasks >= self.fewest_tasks and told.n_tasks * told.n_columns**2 <= self.most_weights
        return fits and (self.most_labels is None or told.n_labels <= self.most_labels)


def _naive_bayes(build: Callable[..., Any], **own: Any) -> Callable[[Told], Member]:
    return lambda told: NaiveBayesMember(build(**told.common | {"random_state": told.seed} | own), shortened=True)


def _prototype(told: Told) -> Member:
    return _naive_bayes(PrototypeNB, numeric=_in_bins(told.common["numeric"]))(told)


def _lica(build: Callable[..., Any]) -> Callable[[Told], Member]:
    def make(told: Told) -> Member:
        n_sources = min(_MOST_SOURCES, max(1, told.n_tasks // 3))
        return SourcesMember(build(n_sources, random_state=told.seed, verbose=False))

    return make


def _hierarchical(build: Callable[..., Any], one_task: bool = False) -> Callable[[Told], Member]:
    def make(told: Told) -> Member:
        return HierarchicalMember(build(**{name: told.common[name] for name in ("task_column", "new_tasks")}), one_task)

    return make


# How far the default members are believed before any row is seen. With up to four rows of a task (18 sizes of the six
# real sets of `kinfolk reproduce sharing-real`), complete sharing was best 10 times and prototypes and clusters 4 times
# each; where it was not the best it lost little, and where it was the others lost much. Where tasks are of other kinds,
# a few dozen rows show it.
NAIVE_BAYES: dict[str, Line] = {
    "no sharing": Line(_naive_bayes(NoSharingNB), 0.01),
    "complete sharing": Line(_naive_bayes(CompleteSharingNB, share_labels=False), 0.87),
    "prototype": Line(_prototype, 0.10),
    "clustered": Line(_naive_bayes(ClusteredNB), 0.02),
}
# Beside them, partial pooling was the best single model on twelve real sets of 2, 8 and 16 rows a task (three splits);
# shares from 1 to 4 of it, 0.1 to 1 of sources and 0.02 to 0.3 of trees changed the mean log loss by less than 0.0005.
# Clustered weights (ClusteredClassifier) predict as partial pooling does and take ten times as long: not by default.
CLASSIFIERS: dict[str, Line] = NAIVE_BAYES | {
    "partly pooled": Line(_hierarchical(HierarchicalClassifier), 4.0),
    "sources": Line(_lica(LICAClassifier), 0.50, most_labels=2, fewest_tasks=3, most_weights=_MOST_COVARIANCES),
    "interactions": Line(lambda told: TreesMember(told.seed), 0.10),
}
REGRESSORS: dict[str, Line] = {
    "sources": Line(_lica(LICARegressor), 0.40, fewest_tasks=3, most_weights=_MOST_COVARIANCES),
    "partly pooled": Line(_hierarchical(HierarchicalRegressor), 0.50, most_weights=_MOST_POOLED),
    "pooled": Line(_hierarchical(HierarchicalRegressor, one_task=True), 0.10),
    "interactions": Line(lambda told: TreesMember(told.seed), 0.10),
}
# What a user's own members may be, each by the kind of model that it is.
NAIVE_BAYES_KINDS: dict[type[Any], Callable[[Any], Member]] = dict.fromkeys(
    (NoSharingNB, CompleteSharingNB, PrototypeNB, ClusteredNB), NaiveBayesMember
)
CLASSIFIER_KINDS = NAIVE_BAYES_KINDS | {
    LICAClassifier: SourcesMember,
    HierarchicalClassifier: HierarchicalMember,
    ClusteredClassifier: HierarchicalMember,
}
REGRESSOR_KINDS: dict[type[Any], Callable[[Any], Member]] = {
    LICARegressor: SourcesMember,
    HierarchicalRegressor: HierarchicalMember,
}
# Parameters that all members have from the average, and those that the default ones have beside.
_OF_THE_AVERAGE = ("task_column", "new_tasks", "unlabelled")
_COMMON = (*_OF_THE_AVERAGE, "categorical_features", "bins", "numeric", "verbose")
_PLAIN = {"label_prior": 1.0, "feature_prior": 1.0, "temper": 1.0}


class Chosen(NamedTuple):
    """Members to fit, by name, and how far each is believed before any row is seen."""

    members: dict[str, Member]
    shares: np.ndarray[Any, np.dtype[np.float64]]


def default_members(
    lines: Mapping[str, Line], average: Any, seed: int, sizes: Sizes, plain_only: bool = False
) -> Chosen:
    """Default members with the parameters of the average; ``plain_only`` where evidence weighs them."""
    # Learnt priors have seen the labels whose evidence they are to be weighed by.
    common = {name: getattr(average, name) for name in _COMMON} | (_PLAIN if plain_only else {})
    told = Told(common, seed, *sizes)
    suited = {name: line for name, line in lines.items() if line.suits(told)}
    if not suited:
        raise ValueError(
            f"none of the members {', '.join(lines)} suits {sizes.n_tasks} tasks, {sizes.n_labels} labels and "
            f"{sizes.n_columns} columns"
        )
    shares = np.array([line.share for line in suited.values()])
    return Chosen({name: line.make(told) for name, line in suited.items()}, shares / shares.sum())


def own_members(
    given: Any, average: Any, seed: int, kinds: Mapping[type[Any], Callable[[Any], Member]], plain_only: bool = False
) -> Chosen:
    """A user's own members by name, as copies, all believed alike; those without a seed have the average's."""
    known = "naive Bayes models" if kinds is NAIVE_BAYES_KINDS else "models"
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise ValueError(f"members={given!r}: a list or a mapping of {known} is needed")
    named = given if isinstance(given, Mapping) else {f"{i + 1}: {type(m).__name__}": m for i, m in enumerate(given)}
    if not named:
        raise ValueError("members is empty: at least one model is needed")
    members = {}
    for name, member in named.items():
        if type(member) not in kinds:
            what = "a naive Bayes model of kinfolk" if kinds is NAIVE_BAYES_KINDS else "a model that can be averaged"
            raise ValueError(f"member {name!r} is a {type(member).__name__}, not {what}")
        if plain_only:
            _refuse_learnt(name, member)
        own = member.get_params(deep=False)
        told = {key: getattr(average, key) for key in _OF_THE_AVERAGE if key in own}
        if "random_state" in own and own["random_state"] is None:
            told["random_state"] = seed
        copy = clone(member).set_params(**told)
        members[name] = kinds[type(member)](copy)
    return Chosen(members, np.full(len(members), 1.0 / len(members)))


def chosen_members(
    given: Any,
    lines: Mapping[str, Line],
    kinds: Mapping[type[Any], Callable[[Any], Member]],
    average: Any,
    seed: int,
    sizes: Sizes,
) -> Chosen:
    """All default members, those of some names, or a user's own."""
    if given is None:
        return default_members(lines, average, seed, sizes)
    names = names_of(given)
    if names is not None:
        unknown = next((name for name in names if name not in lines), None)
        if unknown is not None or not names:
            raise ValueError(f"members={given!r}: names are needed of {', '.join(lines)}")
        return default_members({name: lines[name] for name in names}, average, seed, sizes)
    return own_members(given, average, seed, kinds)


def names_of(given: Any) -> list[str] | None:
    """Default members chosen by name, if that is how they were given."""
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(one, str) for one in given):
        return None
    return list(given)


def _refuse_learnt(name: str, member: Any) -> None:
    """Refuse a member whose evidence would be of what has seen the labels."""
    learns = [key for key in ("label_prior", "feature_prior") if is_learn(getattr(member, key))]
    if learns:
        raise ValueError(
            f'member {name!r} has {learns[0]}="learn": what was learnt has seen the labels whose evidence is '
            'to weigh it, so give numbers, or weigh by "held-out"'
        )
    if not (isinstance(member.temper, int | float | np.number) and member.temper == 1.0):
        raise ValueError(
            f"member {name!r} has temper={member.temper!r}: evidence knows no tempering, so weigh by "
            '"held-out" or "leave-one-out"'
        )


def _in_bins(numeric: Any) -> Any:
    """The same for a model without densities of numbers.

    Examples
    --------
    >>> _in_bins("gaussian"), _in_bins("auto"), _in_bins({"size": "count", "age": "auto"})
    ('bin', 'auto', {'size': 'bin', 'age': 'auto'})
    """
    if isinstance(numeric, Mapping):
        return {column: _in_bins(kind) for column, kind in numeric.items()}
    return "bin" if isinstance(numeric, str) and numeric in ("gaussian", "count") else numeric
