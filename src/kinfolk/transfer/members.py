"""The naive Bayes models that are averaged: four by default, each with what the average was told, or a user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.naive_bayes.estimators.complete_sharing import CompleteSharingNB
from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
from kinfolk.naive_bayes.estimators.parameters import is_learn
from kinfolk.naive_bayes.estimators.prototype import PrototypeNB

MEMBERS: dict[str, type[SharingNB]] = {
    each.__name__: each for each in (NoSharingNB, CompleteSharingNB, PrototypeNB, ClusteredNB)
}
# How far the default members are believed before any row is seen. With up to four rows of a task (18 sizes of the six
# real sets of `kinfolk reproduce sharing-real`), complete sharing was best 10 times and prototypes and clusters 4 times
# each; where it was not the best it lost little, and where it was the others lost much. Where tasks are of other kinds,
# a few dozen rows show it.
BELIEVED = {"no sharing": 0.01, "complete sharing": 0.87, "prototype": 0.10, "clustered": 0.02}
# Parameters that all members have from the average, and those that the default ones have beside.
_OF_THE_AVERAGE = ("task_column", "new_tasks", "unlabelled")
_COMMON = (*_OF_THE_AVERAGE, "categorical_features", "bins", "numeric", "verbose")
_PLAIN = {"label_prior": 1.0, "feature_prior": 1.0, "temper": 1.0}


def default_members(average: Any, seed: int, plain_only: bool) -> dict[str, SharingNB]:
    """The default members by name, with the parameters of the average; ``plain_only`` where evidence weighs them."""
    # Learnt priors have seen the labels whose evidence they are to be weighed by.
    common = {name: getattr(average, name) for name in _COMMON} | (_PLAIN if plain_only else {})
    common["random_state"] = seed
    in_bins = common | {"numeric": _in_bins(average.numeric)}
    return {
        "no sharing": NoSharingNB(**common),
        "complete sharing": CompleteSharingNB(share_labels=False, **common),
        "prototype": PrototypeNB(**in_bins),
        "clustered": ClusteredNB(**common),
    }


def own_members(given: Any, average: Any, seed: int, plain_only: bool) -> dict[str, SharingNB]:
    """A user's own members by name, as copies; those without a seed of their own have the average's."""
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise ValueError(f"members={given!r}: a list or a mapping of naive Bayes models is needed")
    named = given if isinstance(given, Mapping) else {f"{i + 1}: {type(m).__name__}": m for i, m in enumerate(given)}
    if not named:
        raise ValueError("members is empty: at least one model is needed")
    for name, member in named.items():
        if not isinstance(member, SharingNB):
            raise ValueError(f"member {name!r} is a {type(member).__name__}, not a naive Bayes model of kinfolk")
        learns = [key for key in ("label_prior", "feature_prior") if is_learn(getattr(member, key))]
        if plain_only and learns:
            raise ValueError(
                f'member {name!r} has {learns[0]}="learn": what was learnt has seen the labels whose evidence is '
                'to weigh it, so give numbers, or weigh by "held-out"'
            )
        if plain_only and not (isinstance(member.temper, int | float | np.number) and member.temper == 1.0):
            raise ValueError(
                f"member {name!r} has temper={member.temper!r}: evidence knows no tempering, so weigh by "
                '"held-out" or "leave-one-out"'
            )
    for_all = {name: getattr(average, name) for name in _OF_THE_AVERAGE}
    return {
        name: clone(member).set_params(
            **for_all, random_state=seed if member.random_state is None else member.random_state
        )
        for name, member in named.items()
    }


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
