"""Hyper-parameters from what a user gives: a prior is one number, an array, or a number or array per feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.model.values import HyperParameters
from kinfolk.tasks.schema import Schema
from kinfolk.tasks.statistics import Layout

# What a hyper-parameter is set to that the data are to settle.
_LEARN = "learn"


def is_learn(given: Any) -> bool:
    """Whether a hyper-parameter is to be learnt."""
    return isinstance(given, str) and given == _LEARN


def hyper_parameters(given: dict[str, Any], schema: Schema, classes: NDArray[Any], layout: Layout) -> HyperParameters:
    """Hyper-parameters from what a user gives by their names; those to be learnt start at one.

    A prior of labels or features has one pseudo-count per value until it is learnt, and powers are one.
    """
    learns = frozenset(name for name, value in given.items() if is_learn(value))
    start = {name: 1.0 if name in learns else value for name, value in given.items()}
    return HyperParameters(
        label_pseudo_counts(start["label_prior"], classes),
        feature_pseudo_counts(start["feature_prior"], schema, layout),
        np.full(len(schema.columns), start["temper"], dtype=np.float64),
        float(start.get("concentration", 1.0)),
        learns=learns,
    )


def label_pseudo_counts(given: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Pseudo-counts of the labels, in the order of the classes.

    Examples
    --------
    >>> label_pseudo_counts({"no": 2, "yes": 1}, np.array(["no", "yes"])).tolist()
    [2.0, 1.0]
    """
    if isinstance(given, Mapping):
        unknown = [label for label in given if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"label_prior names {unknown[0]!r}, which is not one of the labels {classes.tolist()}")
        given = [given.get(label, 1.0) for label in classes.tolist()]
    prior = _positive(given, "label_prior")
    if prior.ndim == 0:
        return np.full(len(classes), float(prior))
    if prior.shape != (len(classes),):
        raise ValueError(f"label_prior has shape {prior.shape} for {len(classes)} labels, {classes.tolist()}")
    return prior


def feature_pseudo_counts(given: Any, schema: Schema, layout: Layout) -> NDArray[np.float64]:
    """Pseudo-counts of all cells of a layout.

    A number serves everywhere. A sequence has an item per feature and a mapping one per named feature (the others have
    1), each a number, or an array of shape (values,) or (labels, values). Columns of numbers have no pseudo-counts:
    their items of a sequence are not looked at.
    """
    if not isinstance(given, Mapping | list | tuple) and np.ndim(given) == 0:
        return np.full(layout.n_counts, float(_positive(given, "feature_prior")))
    items: list[Any]
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in schema.names]
        if unknown:
            raise ValueError(f"feature_prior names column {unknown[0]!r}, which is not one of {schema.names}")
        items = [given.get(name, 1.0) for name in schema.names]
    else:
        items = list(given)
        if len(items) != len(schema.names):
            raise ValueError(f"feature_prior has {len(items)} items for {len(schema.names)} features")
    prior = np.empty((layout.n_labels, layout.width))
    numbers = [column.name for column in schema.columns if column.number is not None]
    named = [name for name in numbers if isinstance(given, Mapping) and name in given]
    if named:
        raise ValueError(f"feature_prior names column {named[0]!r}, which is taken as numbers: it has no pseudo-counts")
    coded = [f for f, column in enumerate(schema.columns) if column.number is None]
    names = [schema.names[f] for f in coded]
    for f, item in enumerate(items[f] for f in coded):
        part = _positive(item, f"feature_prior of column {names[f]!r}")
        try:
            prior[:, layout.offsets[f] : layout.offsets[f + 1]] = part
        except ValueError:
            shape = (layout.n_labels, int(layout.n_values[f]))
            raise ValueError(
                f"feature_prior of column {names[f]!r} has shape {part.shape}: a number or an array of shape "
                f"{shape[1:]} or {shape} fits"
            ) from None
    return prior.ravel()


def check_strength_prior(given: Any) -> None:
    """Refuse what is not a shape and a rate of a Gamma distribution."""
    try:
        shape, rate = (float(number) for number in given)
    except (TypeError, ValueError):
        shape = rate = np.nan
    if not (0.0 < shape < np.inf and 0.0 < rate < np.inf):
        raise ValueError(f"strength_prior={given!r}: two finite numbers above zero are needed, shape and rate")


def _positive(given: Any, what: str) -> NDArray[np.float64]:
    try:
        prior = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}={given!r}: a number or an array of numbers is needed") from None
    if not (np.isfinite(prior).all() and (prior > 0).all()):
        raise ValueError(f"{what}={given!r}: pseudo-counts must be finite and above zero")
    return prior
