"""What a fitted model found, read off it into one value: tasks, who is kin, whose data answers rest on, chains.

What is particular to a family of models stands in a file of its own: `naive_bayes`, `linear`, `partially_pooled`,
`networks`, `sequences`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.tasks.schema import Schema

# A matrix of more tasks is neither shown nor looked through.
MOST_COMPARED = 2_000
SOURCES = ("own", "kin", "everybody", "prior")


@dataclass(frozen=True)
class Findings:
    """What can be told of a fitted model without any rows.

    Parameters
    ----------
    estimator : estimator
        The model itself.
    family : {"naive Bayes", "linear", "partially pooled", "networks", "sequences", "other"}
    tasks : list
        Names of tasks.
    labels : list or None
        Labels that are told apart; None where there are none.
    features : list of str
    partition : ndarray or None
        Cluster of each task, where the model has clusters.
    similarity : ndarray or None
        Probability that two tasks are kin; None without clusters, or with more tasks than anybody looks through.
    rows, unlabelled : ndarray or None
        How many rows with a label, and without, every task brought.
    shares : ndarray of shape (n_tasks, 4) or None
        How much of what a task's answers rest on is its own, its kin's, everybody's, and the prior's.
    label_counts : ndarray of shape (n_tasks, n_labels) or None
    feature_counts : mapping or None
        For every feature counts of its values under each label (labels, values), all tasks together.
    schema : Schema or None
        How columns were read.
    convergence : Convergence or None
    draws : mapping
        Quantities that chains drew, by name (chains, draws).
    evidence : Evidence or None
    weights : mapping or None
        How much each member of an average weighs.
    details : mapping
        What a family's own section shows.
    unit : str
        What the tasks of this model are: of a classifier with a network for each class, classes.
    """

    estimator: Any
    family: str
    tasks: list[Any]
    labels: list[Any] | None
    features: list[str]
    partition: NDArray[np.int64] | None = None
    similarity: Floats | None = None
    rows: NDArray[Any] | None = None
    unlabelled: NDArray[Any] | None = None
    shares: Floats | None = None
    label_counts: NDArray[Any] | None = None
    feature_counts: Mapping[str, NDArray[Any]] | None = None
    schema: Schema | None = None
    convergence: Convergence | None = None
    draws: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    evidence: Evidence | None = None
    weights: Mapping[str, float] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    unit: str = "task"

    @property
    def n_tasks_told(self) -> str:
        """The number of tasks, or of what stands in their place, in words."""
        n = len(self.tasks)
        return f"{n:,} {self.unit}{'' if n == 1 else 'es' if self.unit.endswith('s') else 's'}"

    @property
    def model(self) -> str:
        """The name of the model's class."""
        return type(self.estimator).__name__

    @property
    def clusters(self) -> list[NDArray[np.int64]]:
        """Places of the tasks of every cluster, the largest cluster first."""
        if self.partition is None:
            return []
        members = [np.flatnonzero(self.partition == number) for number in np.unique(self.partition)]
        return sorted(members, key=lambda own: (-len(own), int(own[0])))

    def certainty(self) -> Floats | None:
        """How sure it is that a task belongs where it was put.

        The mean probability that it is kin to the others of its cluster; of a task that is alone, that it is kin to
        nobody that it could most probably be kin to.
        """
        if self.partition is None or self.similarity is None:
            return None
        same = self.partition[:, None] == self.partition[None, :]
        np.fill_diagonal(same, False)
        others = self.similarity - np.eye(len(same))
        n_kin = same.sum(axis=1)
        inside = (others * same).sum(axis=1) / np.maximum(n_kin, 1)
        return np.asarray(np.where(n_kin > 0, inside, 1.0 - others.max(axis=1, initial=0.0)))


def findings_of(estimator: Any) -> Findings:
    """Read a fitted model, of whatever family.

    Parameters
    ----------
    estimator : fitted kinfolk estimator

    Returns
    -------
    Findings
    """
    if not hasattr(estimator, "tasks_") and not hasattr(estimator, "nets_"):
        raise ValueError(f"{type(estimator).__name__} is not fitted yet, or has no tasks: there is nothing to report")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Findings = _reader(estimator)(estimator)
        return found


def _reader(estimator: Any) -> Any:
    # Imported when they are needed: a page about naive Bayes reads nothing of networks.
    if hasattr(estimator, "networks_"):
        from kinfolk.reporting.networks import read
    elif hasattr(estimator, "n_states_"):
        from kinfolk.reporting.sequences import read
    elif hasattr(estimator, "source_similarity_"):
        from kinfolk.reporting.linear import read
    elif hasattr(estimator, "scales"):
        from kinfolk.reporting.partially_pooled import read
    else:
        from kinfolk.reporting.naive_bayes import read
    return read


def similarity_of(estimator: Any) -> Floats | None:
    """The probabilities that tasks are kin, if there are few enough tasks and the model has them."""
    if len(estimator.tasks_) > MOST_COMPARED:
        return None
    try:
        return np.asarray(estimator.similarity_)
    except (AttributeError, ValueError):
        return None
