"""Small fits of every estimator with its main options: together they run what there is to compile.

Fits of a group share kernels and run one after the other; groups share few, so that they may run side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import kinfolk

_FEW: dict[str, Any] = {"n_chains": 2, "n_burn_in": 3, "n_draws": 3, "random_state": 0}
_GIBBS = {"inference": "gibbs", **_FEW}
_STATES = {"n_states": 3, **_FEW}
_SHORT = {"max_iter": 3, "random_state": 0}
_NUMBERS = {"numeric": {"size": "gaussian", "visits": "count"}}
_LEARNT = {"concentration": "learn", "feature_prior": "learn"}


class Fit(NamedTuple):
    """An estimator by name, its options, and which of the tables below it learns from."""

    estimator: str
    options: Mapping[str, Any] = MappingProxyType({})
    data: str = "rows"


# The longest first, each of another kind, so that processes that start together do not compile the same.
GROUPS: dict[str, tuple[Fit, ...]] = {
    "nested sequences": (
        Fit("NestedIHMM", {"n_clusters": 3, **_STATES}, "symbols"),
        Fit("NestedIHMM", {"n_clusters": 3, "stickiness": "learn", **_STATES}, "symbols"),
        Fit("NestedIHMM", {"n_clusters": 3, "emission": ["categorical", "gaussian", "poisson"], **_STATES}, "mixed"),
        Fit("NestedIHMM", {"n_clusters": 3, "emission": "gaussian-full", **_STATES}, "measured"),
        Fit("NestedIHMM", {"n_clusters": 3, "start": "apart", **_STATES, "n_chains": 1, "n_jobs": 2}, "symbols"),
    ),
    "joint networks": (
        Fit("BayesNets", {"random_state": 0}, "arcs"),
        Fit("BayesNets", {"random_state": 0, "restarts": 2}, "arcs"),
        Fit("BayesNets", {"random_state": 0}, "parts"),
        Fit("BayesNets", {"random_state": 0, "criterion": "bic", "search": "climb"}, "arcs"),
        Fit("BayesNets", {"random_state": 0, "tables": "shared"}, "arcs"),
    ),
    "LICA": (
        Fit("LICAClassifier", {"n_sources": 2, **_SHORT}, "numbers"),
        Fit("LICARegressor", {"n_sources": 2, **_SHORT}, "targets"),
        Fit("LICAClassifier", {"n_sources": 1, **_SHORT}, "labels"),
        Fit("LICAClassifier", {"n_sources": 1, "link": "probit", **_SHORT}, "many tasks"),
        Fit("LICAClassifier", {"n_sources": 2, **_SHORT}, "many tasks"),
    ),
    "Gibbs sampling of clusters": (
        Fit("ClusteredNB", _GIBBS),
        Fit("ClusteredNB", {**_LEARNT, **_GIBBS}, "some labels"),
        Fit("ClusteredNB", {**_NUMBERS, **_GIBBS}, "some labels"),
        Fit("ClusteredNB", _GIBBS, "weights"),
        Fit("ClusteredNB", _GIBBS, "some labels and weights"),
        Fit("ClusteredNB", {"partition_per": "feature", **_GIBBS}, "some labels"),
        Fit("ClusteredNB", {"inference": "exact"}),
    ),
    "noisy copies": (
        Fit("PrototypeNB", _FEW),
        Fit("PrototypeNB", _FEW, "some labels"),
        Fit("PrototypeNB", _FEW, "weights"),
        Fit("ClusteredNB", {"within": "noisy", **_GIBBS}),
        Fit("ClusteredNB", {"within": "noisy", **_GIBBS}, "some labels"),
        Fit("ClusteredNB", {"within": "noisy", "random_state": 0}),
    ),
    "clusters by trees": (
        Fit("NoSharingNB"),
        Fit("NoSharingNB", {"numeric": "auto"}),
        Fit("ClusteredNB"),
        Fit("ClusteredNB", _NUMBERS),
        Fit("ClusteredNB", {}, "weights"),
        Fit("ClusteredNB", _LEARNT),
        Fit("ClusteredNB", {"partition_per": "feature"}),
        Fit("ClusteredNB", {"inference": "randomised-bhc", "random_state": 0}),
        Fit("ClusteredNB", {"inference": "variational", "random_state": 0}),
        Fit("NoSharingNB", _NUMBERS | _FEW, "some labels"),
        Fit("CompleteSharingNB", {"share_labels": False}),
        Fit("AveragedNB", {"random_state": 0, "n_folds": 2}),
        Fit("TransferClassifier", {"random_state": 0, "n_folds": 2}),
        Fit("TransferRegressor", {"random_state": 0, "n_folds": 2}, "targets"),
    ),
    "LICA, sparse tables": (
        Fit("LICAClassifier", {"n_sources": 1, **_SHORT}, "sparse"),
        Fit("LICAClassifier", {"n_sources": 1, "inference": "map", **_SHORT}, "sparse"),
        Fit("LICAClassifier", {"n_sources": 2, "inference": "map", **_SHORT}, "numbers"),
        Fit("LICARegressor", {"n_sources": 2, "inference": "map", **_SHORT}, "targets"),
        Fit("LICAClassifier", {"sharing": "hierarchical", **_SHORT}, "numbers"),
        Fit("LICARegressor", {"sharing": "pooled", **_SHORT}, "targets"),
        Fit("HierarchicalRegressor", {}, "targets"),
    ),
    "single sequences": (
        Fit("SingleIHMM", _STATES, "symbols"),
        Fit("SharedIHMM", _STATES, "symbols"),
        Fit("SharedIHMM", {"emission": "gaussian", **_STATES}, "measured"),
        Fit("NestedIHMM", {"n_clusters": 3, "inference": "variational", **_STATES}, "symbols"),
        Fit("NestedIHMM", {"n_clusters": 3, "inference": "variational", "stickiness": "learn", **_STATES}, "symbols"),
        Fit("SharedIHMM", {"inference": "variational", **_STATES}, "measured"),
        Fit("AveragedIHMM", {"n_clusters": 3, "n_folds": 2, **_STATES}, "symbols"),
        Fit("FeatureIHMM", _STATES, "symbols"),
    ),
    "other networks": (
        Fit("BayesNets", {"random_state": 0, "prior": "paired"}, "arcs"),
        Fit("BayesNets", {"random_state": 0, "forbidden": [("a", "d")], "max_parents": 2}, "arcs"),
        Fit("BayesNets", {"random_state": 0, "sharing": "none"}, "arcs"),
        Fit("BayesNets", {"random_state": 0, "sharing": "identical"}, "arcs"),
        Fit("BayesNets", {"random_state": 0, "missing": "em"}, "gaps"),
        Fit("BayesMultinet", {"random_state": 0}, "arcs"),
    ),
}


@cache
def _tables() -> dict[str, dict[str, Any]]:
    """Arguments of ``fit`` by name."""
    import polars as pl
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    n = 48
    task = np.array(["ann", "bob", "eve", "dan"])[np.arange(n) % 4]
    label = rng.choice(["no", "yes"], n)
    yes = label == "yes"
    rows = pl.DataFrame(
        {
            "colour": np.where(yes, "red", rng.choice(["blue", "grey"], n)),
            "number": rng.integers(0, 4, n),
            "size": np.where(np.arange(n) % 9 == 0, np.nan, rng.normal(yes, 1.0)),
            "visits": rng.poisson(40 + 30 * yes),
        }
    )
    known = {"X": rows, "y": label, "task": task}
    some = np.array([None if i % 12 == 0 else value for i, value in enumerate(label)], dtype=object)
    weights = rng.uniform(0.5, 2.0, n)
    numbers = rng.normal(size=(n, 5)) + yes[:, np.newaxis]
    arcs = pl.DataFrame({name: rng.integers(0, 2, n) for name in "abcd"}).with_columns(d=pl.col("a"))
    three = np.repeat(["one", "two", "three"], n // 3)
    parts = {name: arcs.filter(three == name).select(list(has)) for name, has in [("one", "abc"), ("two", "bcd")]}
    symbols = rng.integers(0, 3, n)
    sequences = {"lengths": [6] * 8, "task": ["ann", "bob", "cid", "dee"] * 2}
    measured = pl.DataFrame({"x": rng.normal(symbols), "y": rng.normal(-symbols)})
    mixed = measured.select(s=pl.Series(symbols).cast(pl.String), x="x", k=pl.Series(rng.poisson(1 + 3 * symbols)))
    return {
        "rows": known,
        "some labels": known | {"y": some},
        "weights": known | {"sample_weight": weights},
        "some labels and weights": known | {"y": some, "sample_weight": weights},
        "numbers": {"X": numbers, "y": label, "task": task},
        "targets": {"X": numbers, "y": numbers @ np.arange(5.0), "task": task},
        "labels": {"X": numbers, "y": np.column_stack([yes, ~yes, rng.random(n) < 0.5]).astype(float)},
        "many tasks": {"X": numbers, "y": label, "task": np.arange(n) % 12},
        "sparse": {"X": csr_array(np.where(abs(numbers) > 0.8, numbers, 0.0)), "y": label, "task": task},
        "arcs": {"X": arcs, "y": label, "task": three},
        "gaps": {"X": arcs.with_columns(a=pl.Series([None if i % 9 == 0 else i % 2 for i in range(n)])), "task": three},
        "parts": {"X": parts},
        "symbols": {"X": symbols, **sequences},
        "measured": {"X": measured, **sequences},
        "mixed": {"X": mixed, **sequences},
    }


def run(group: str) -> None:
    """Fit the models of a group, and ask each what it can be asked."""
    for fit in GROUPS[group]:
        model, data = getattr(kinfolk, fit.estimator)(**fit.options), dict(_tables()[fit.data])
        if fit.estimator == "BayesMultinet":
            del data["task"]
        elif fit.estimator == "BayesNets":
            data.pop("y", None)
        model.fit(**data)
        asked = {name: value for name, value in data.items() if name not in ("y", "sample_weight")}
        for method in ("predict_proba", "predict", "score_samples", "explain"):
            if hasattr(model, method) and not (fit.data == "gaps" or (method == "explain" and fit.data == "labels")):
                getattr(model, method)(**asked)
