"""Why an average of models says what it says of a row: members' parts, averaged by their weights.

Parts of labels are of log probabilities, those of numbers of the expected number, as if of a single label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.tasks.answering import Asked
from kinfolk.tasks.table import Table
from kinfolk.transfer.models import Member, Parts

INTERACTIONS = "interactions"


class AveragedParts(NamedTuple):
    """What an average's answers are made of; where members see interactions, these are the last feature."""

    names: list[str]
    values: list[list[str]]
    label_part: Floats
    feature_part: Floats
    own: Floats
    kin: Floats
    everybody: Floats
    prior: Floats
    weights: dict[str, Floats]

    @property
    def shares(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Whose data stood behind features."""
        return self.own, self.kin, self.everybody, self.prior


def averaged_parts(members: Mapping[str, Member], predictor: Any, asked: Asked) -> AveragedParts:
    """Average what members say of rows that have come through the door."""
    weights = predictor.weights_of(asked.place)
    parts = [member.explain(asked) for member in members.values()]

    def mean(field: str) -> Floats:
        each = [getattr(part, field) for part in parts]
        return np.asarray(sum(weights[:, m].reshape(-1, *[1] * (one.ndim - 1)) * one for m, one in enumerate(each)))

    label_part, feature_part, interactions = mean("label_part"), mean("feature_part"), mean("interactions")
    # Members without parts of a feature say nothing of whose data stood behind it.
    sources = np.array([mean(source) for source in ("own", "kin", "everybody", "prior")])
    total = np.broadcast_to(sources.sum(axis=0), sources.shape)
    sources = np.divide(sources, total, out=np.zeros_like(sources), where=total > 0.0)
    names, values = list(predictor.feature_names_in_), _values(parts, asked.table)
    if np.any(interactions):
        names, values = [*names, INTERACTIONS], [[*row, ""] for row in values]
        feature_part = np.concatenate([feature_part, interactions[:, None]], axis=1)
        # Trees are everybody's.
        of_trees = np.broadcast_to(np.array([0.0, 0.0, 1.0, 0.0])[:, None, None], (4, len(values), 1))
        sources = np.concatenate([sources, of_trees], axis=2)
    of_members = dict(zip(members, weights.T, strict=True))
    own, kin, everybody, prior = sources
    return AveragedParts(names, values, label_part, feature_part, own, kin, everybody, prior, of_members)


def _values(parts: list[Parts], table: Table) -> list[list[str]]:
    """Values of rows to be read: in a member's words, or as they came, with nothing where one is missing."""
    told = next((part.values for part in parts if part.values is not None), None)
    if told:
        return told
    columns = [
        ["" if value is None or value != value else str(value) for value in each.tolist()]
        for each in table.all_values()
    ]
    return [list(row) for row in zip(*columns, strict=True)]
