"""Why a linear model says what it says of a row: parts of the linear predictor, and whose data stand behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.explanation import Explanation, NumberExplanation
from kinfolk.linear.model.weights import TaskWeights
from kinfolk.maths.arrays import Floats
from kinfolk.tasks.design import Design
from kinfolk.tasks.table import Backend


class Shares(NamedTuple):
    """What is known of the weights for each fit, and from where.

    ``spreads`` are the prior standard deviations of own columns, ``scales`` those of common weights; ``own_share``
    (tasks, fits, own columns), where tasks are clustered, is how much of a cluster's data is the task's own.
    """

    weights: Sequence[TaskWeights]
    spreads: Sequence[Floats]
    scales: Sequence[Floats]
    own_share: Floats | None


class LinearParts(NamedTuple):
    """Parts of linear predictors: constants (rows, fits) and features' (rows, features, fits), and shares of sources.

    Of a column, the data settled 1 − Var(b)/τ² of a task's own weight: that is its own, or its cluster's, of which a
    part is its own and the rest its kin's. Of what is left, the common weight's 1 − Var(μ)/σ² is everybody's, and the
    rest the prior's. A feature of several columns has the mean of theirs, counted by what they add.
    """

    constant: Floats
    of_features: Floats
    own: Floats
    kin: Floats
    everybody: Floats
    prior: Floats


def linear_parts(
    X: Floats, place: NDArray[np.int64], shares: Shares, design: Design, order: NDArray[np.int64]
) -> LinearParts:
    """What linear predictors of rows of the design matrix are made of."""
    n_rows, n_features, n_fits = len(X), len(design.terms), len(shares.weights)
    constant, of_features = np.zeros((n_rows, n_fits)), np.zeros((n_rows, n_features, n_fits))
    sources, mass = np.zeros((3, n_rows, n_features)), np.zeros((n_rows, n_features))
    for k, found in enumerate(shares.weights):
        parts = X * found.means[place]
        constant[:, k] = parts[:, 0]
        own, kin, common = (part[place] for part in _sources(found, shares, k))
        for j, f in enumerate(design.feature[order].tolist(), start=1):
            of_features[:, f, k] += parts[:, j]
            # A feature that adds nothing has shares too.
            size = np.abs(parts[:, j]) + 1e-12
            mass[:, f] += size
            sources[:, :, f] += size * np.stack([own[:, j], kin[:, j], common[:, j]])
    np.divide(sources, mass, out=sources, where=mass > 0.0)
    own, kin, everybody = sources
    prior = np.maximum(1.0 - own - kin - everybody, 0.0)
    return LinearParts(constant, of_features, own, kin, everybody, prior)


def explain_labels(
    parts: LinearParts, log_proba: Floats, values: list[list[str]], names: list[str], classes: Any, backend: Backend
) -> Explanation:
    """Parts of each row's log odds; what averaging over unknown weights takes from them is the rest."""
    n_rows, n_features, n_fits = parts.of_features.shape
    label_part, feature_part = np.zeros((n_rows, len(classes))), np.zeros((n_rows, n_features, len(classes)))
    if len(classes) > 1:
        # Of two labels the fit is the second's.
        label_part[:, -n_fits:], feature_part[..., -n_fits:] = parts.constant, parts.of_features
    remainder = log_proba - label_part - feature_part.sum(axis=1)
    shares = parts.own, parts.kin, parts.everybody, parts.prior
    return Explanation(classes, names, values, label_part, feature_part, remainder, *shares, backend)


def explain_numbers(
    parts: LinearParts, centre: float, unit: float, values: list[list[str]], names: list[str], backend: Backend
) -> NumberExplanation:
    """Parts of each row's expected number, which add up to it; targets were learnt as (y − centre)/unit."""
    level, added = centre + unit * parts.constant[:, 0], unit * parts.of_features[..., 0]
    shares = parts.own, parts.kin, parts.everybody, parts.prior
    return NumberExplanation(names, values, level, added, *shares, backend)


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
