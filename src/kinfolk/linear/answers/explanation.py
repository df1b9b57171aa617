"""Why a linear model gives a row its label: parts of the linear predictor, and whose data stand behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.explanation import Explanation
from kinfolk.linear.model.weights import TaskWeights
from kinfolk.maths.arrays import Floats
from kinfolk.tasks.design import Design
from kinfolk.tasks.table import Backend, Table


def linear_explanation(
    table: Table,
    X: Floats,
    place: NDArray[np.int64],
    design: Design,
    order: NDArray[np.int64],
    classes: NDArray[Any],
    weights: Sequence[TaskWeights],
    spreads: Sequence[Floats],
    scales: Sequence[Floats],
    log_proba: Floats,
    backend: Backend,
) -> Explanation:
    """Parts of each row's log odds; what averaging over unknown weights takes from them is the rest.

    The share of a column that is a task's own is how far its rows settled its own weight, 1 − Var(b)/τ²; of what is
    left, the common weight's 1 − Var(μ)/σ² is everybody's, and the rest the prior's. A feature of several columns has
    the mean of theirs, counted by what they add.
    """
    n_rows, n_features = len(X), len(design.terms)
    feature = design.feature[order]
    label_part, feature_part = np.zeros((n_rows, len(classes))), np.zeros((n_rows, n_features, len(classes)))
    own, everybody = np.zeros((n_rows, n_features)), np.zeros((n_rows, n_features))
    mass = np.zeros((n_rows, n_features))
    for k, (found, spread, scale) in enumerate(zip(weights, spreads, scales, strict=True)):
        if len(classes) == 1:
            break
        label = 1 if len(weights) == 1 else k
        parts = X * found.means[place]
        label_part[:, label] = parts[:, 0]
        settled = np.zeros((len(found.own), X.shape[1]))
        settled[:, : found.n_own] = 1.0 - np.einsum("taa->ta", found.own_covariance) / spread**2
        common = 1.0 - np.diag(found.common_covariance) / scale**2
        for j, f in enumerate(feature):
            added, its = parts[:, j + 1], settled[place, j + 1]
            feature_part[:, f, label] += added
            size = np.abs(added) + 1e-12
            mass[:, f] += size
            own[:, f] += size * its
            everybody[:, f] += size * (1.0 - its) * common[j + 1]
    there = mass > 0.0
    own, everybody = (
        np.clip(np.divide(part, mass, out=np.zeros_like(part), where=there), 0.0, 1.0) for part in (own, everybody)
    )
    remainder = log_proba - label_part - feature_part.sum(axis=1)
    names = [term.name for term in design.terms]
    shares = own, np.zeros_like(own), everybody, 1.0 - own - everybody
    return Explanation(classes, names, design.read_back(table), label_part, feature_part, remainder, *shares, backend)
