"""Why a linear model gives a row its label: parts of the linear predictor, and whose data stand behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.explanation import Explanation
from kinfolk.linear.model.weights import TaskWeights
from kinfolk.maths.arrays import Floats
from kinfolk.tasks.design import Design
from kinfolk.tasks.table import Backend, Table


class Shares(NamedTuple):
    """What is known of the weights for each fit, and from where.

    ``spreads`` are the prior standard deviations of own columns, ``scales`` those of common weights; ``own_share``
    (tasks, fits, own columns), where tasks are clustered, is how much of a cluster's data is the task's own.
    """

    weights: Sequence[TaskWeights]
    spreads: Sequence[Floats]
    scales: Sequence[Floats]
    own_share: Floats | None


def linear_explanation(
    table: Table,
    X: Floats,
    place: NDArray[np.int64],
    shares: Shares,
    log_proba: Floats,
    design: Design,
    order: NDArray[np.int64],
    classes: NDArray[Any],
    backend: Backend,
) -> Explanation:
    """Parts of each row's log odds; what averaging over unknown weights takes from them is the rest.

    Of a column, the data settled 1 − Var(b)/τ² of a task's own weight: that is its own, or its cluster's, of which a
    part is its own and the rest its kin's. Of what is left, the common weight's 1 − Var(μ)/σ² is everybody's, and the
    rest the prior's. A feature of several columns has the mean of theirs, counted by what they add.
    """
    n_rows, n_features = len(X), len(design.terms)
    label_part, feature_part = np.zeros((n_rows, len(classes))), np.zeros((n_rows, n_features, len(classes)))
    parts_of = np.zeros((3, n_rows, n_features))
    mass = np.zeros((n_rows, n_features))
    for k, found in enumerate(shares.weights if len(classes) > 1 else ()):
        label = 1 if len(shares.weights) == 1 else k
        parts = X * found.means[place]
        label_part[:, label] = parts[:, 0]
        own, kin, common = (part[place] for part in _sources(found, shares, k))
        for j, f in enumerate(design.feature[order].tolist(), start=1):
            feature_part[:, f, label] += parts[:, j]
            # A feature that adds nothing has shares too.
            size = np.abs(parts[:, j]) + 1e-12
            mass[:, f] += size
            parts_of[:, :, f] += size * np.stack([own[:, j], kin[:, j], common[:, j]])
    np.divide(parts_of, mass, out=parts_of, where=mass > 0.0)
    remainder = log_proba - label_part - feature_part.sum(axis=1)
    names = [term.name for term in design.terms]
    own, kin, everybody = parts_of
    prior = np.maximum(1.0 - own - kin - everybody, 0.0)
    values = design.read_back(table)
    return Explanation(classes, names, values, label_part, feature_part, remainder, own, kin, everybody, prior, backend)


def _sources(found: TaskWeights, shares: Shares, k: int) -> tuple[Floats, Floats, Floats]:
    """How much of every task's weights (tasks, columns) the task settled, its kin, and everybody."""
    n_tasks, n_own, n_columns = found.gain.shape
    settled = np.zeros((n_tasks, n_columns))
    variance = np.einsum("taa->ta", found.own_covariance)
    settled[:, :n_own] = np.clip(1.0 - variance / shares.spreads[k] ** 2, 0.0, 1.0)
    share = np.ones((n_tasks, n_columns))
    if shares.own_share is not None:
        # The last task is one never seen, which has no rows of its own.
        share[:, :n_own] = np.append(np.clip(shares.own_share[:, k], 0.0, 1.0), np.zeros((1, n_own)), axis=0)
    common = np.clip(1.0 - np.diag(found.common_covariance) / shares.scales[k] ** 2, 0.0, 1.0)
    return settled * share, settled * (1.0 - share), (1.0 - settled) * common
