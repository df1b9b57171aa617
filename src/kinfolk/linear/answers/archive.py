"""A partially pooled linear model as one value, and that value as plain data and back; with numpy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from kinfolk.linear.model.values import ClusterDraws, Fitted, Groups, Hyper, Noise
from kinfolk.linear.model.weights import TaskWeights
from kinfolk.maths.arrays import Floats
from kinfolk.posterior import (
    Archive,
    design_about,
    design_from,
    known_about,
    known_from,
    names_from,
    plain,
    plain_names,
)
from kinfolk.tasks.answering import Known
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.design import Design
from kinfolk.tasks.table import Backend


class FittedModel(NamedTuple):
    """All that a fit leaves behind: what inference returned, and the words that answers are given in.

    ``order`` are the design's columns as the model has them, those first of which tasks have weights of their own. Of
    two labels there is one fit, for the second; of more, one for each. A regression's ``classes`` are None; its targets
    are learnt as (y − centre)/unit. ``clusters`` are draws of partitions, where tasks are clustered; ``interrupted``
    tells that the fit was ended early, with what there was.
    """

    known: Known
    design: Design
    order: NDArray[np.int64]
    groups: Groups
    hypers: tuple[Hyper, ...]
    fits: tuple[Fitted, ...]
    classes: NDArray[Any] | None
    centre: float
    unit: float
    backend: Backend
    clusters: ClusterDraws | None = None
    interrupted: bool = False


def to_archive(model: FittedModel, params: Mapping[str, Any]) -> Archive:
    """A fitted estimator as plain data."""
    about = {
        "family": "linear" if model.classes is not None else "linear_regression",
        **known_about(model.known),
        "params": {name: plain(value, name) for name, value in params.items()},
        "design": design_about(model.design),
        "classes": None if model.classes is None else plain_names(model.classes, "a label"),
        "centre": model.centre,
        "unit": model.unit,
        "backend": model.backend,
        "common_scales": [hyper.common for hyper in model.hypers],
        "bend_scales": [hyper.bends for hyper in model.hypers if hyper.bends is not None],
        "converged": [fit.converged for fit in model.fits],
        "interrupted": model.interrupted,
    }
    arrays: dict[str, NDArray[Any]] = {"order": model.order, "groups": model.groups.own}
    for k, (hyper, fit) in enumerate(zip(model.hypers, model.fits, strict=True)):
        arrays |= {f"{k}.own_scales": hyper.own, f"{k}.bound": fit.bound}
        arrays |= {f"{k}.{name}": value for name, value in fit.weights._asdict().items()}
        if fit.noise is not None:
            about |= {"new_shape": fit.noise.new_shape, "new_rate": fit.noise.new_rate}
            arrays |= {"noise.shape": fit.noise.shape, "noise.rate": fit.noise.rate}
    if model.clusters is not None:
        draws = model.clusters._asdict()
        about["chains"] = draws.pop("n_chains")
        arrays |= {f"clusters.{name}": value for name, value in draws.items()}
    return Archive(about, arrays)


def read(archive: Archive) -> FittedModel:
    """Rebuild a fitted model, checking that its parts fit together."""
    about, known, design = archive.about, known_from(archive), design_from(archive)
    classes = None if about["classes"] is None else as_ids(names_from(about["classes"], "labels"))
    n_columns, backend = len(design.names), about["backend"]
    order = archive.array("order", "i", (n_columns,)).astype(np.int64)
    own = archive.array("groups", "i", (None,)).astype(np.int64)
    if sorted(order.tolist()) != list(range(n_columns)) or not 1 <= len(own) <= n_columns + 1:
        raise ValueError("the order of its columns is none")
    if own[0] != 0 or sorted(set(own.tolist())) != list(range(int(own.max()) + 1)) or (own[1:] == 0).any():
        raise ValueError("its groups of columns are not counted from 0")
    if backend not in get_args(Backend):
        raise ValueError(f"its library of tables {backend!r} is unknown")
    scales, converged = about["common_scales"], about["converged"]
    n_fits = 1 if classes is None or len(classes) <= 2 else len(classes)
    if len(scales) != n_fits or len(converged) != n_fits or (classes is not None and not len(classes)):
        raise ValueError("it has not one fit for each of its labels")
    if len(design.terms) != known.n_columns - (known.task_column is not None):
        raise ValueError("its columns are not those of its design matrix")
    centre, unit = float(about["centre"]), float(about["unit"])
    if not (np.isfinite(centre) and 0.0 < unit < np.inf and all(0.0 < float(scale) < np.inf for scale in scales)):
        raise ValueError("its units are not positive numbers")
    bends = about.get("bend_scales", [])
    if bends and (len(bends) != n_fits or not all(0.0 < float(scale) < np.inf for scale in bends)):
        raise ValueError("its scales of values beside numbers are not positive numbers")
    groups = Groups(own, bends_of(design, order) if bends else None)
    hypers = tuple(
        Hyper(
            _above_zero(archive, f"{k}.own_scales", int(own.max()) + 1),
            float(scales[k]),
            float(bends[k]) if bends else None,
        )
        for k in range(n_fits)
    )
    noise = _noise(archive, len(known.tasks)) if classes is None else None
    fits = tuple(
        Fitted(_weights(archive, k, len(known.tasks), len(own), n_columns + 1), _floats(archive, f"{k}.bound", (None,)),
               bool(converged[k]), noise)
        for k in range(n_fits)
    )  # fmt: skip
    has_clusters = "clusters.seats" in archive.arrays
    clusters = _clusters(archive, len(known.tasks), n_fits, len(own)) if has_clusters else None
    words = classes, centre, unit, backend, clusters, bool(about.get("interrupted", False))
    return FittedModel(known, design, order, groups, hypers, fits, *words)


def bends_of(design: Design, order: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Which columns, the constant first, are values beside a number; None where there are none."""
    columns = zip(design.feature.tolist(), design.kinds, strict=True)
    found = np.array([kind == "level" and design.terms[f].is_whole for f, kind in columns], dtype=bool)
    return np.append(False, found[order]) if found.any() else None


def _clusters(archive: Archive, n_tasks: int, n_fits: int, n_own: int) -> ClusterDraws:
    concentration = _floats(archive, "clusters.concentration", (None,))
    n_draws = len(concentration)
    seats = archive.array("clusters.seats", "i", (n_draws, n_tasks)).astype(np.int64)
    # Archives of before had as many chains as were asked for.
    n_chains = int(archive.about.get("chains", archive.about["params"].get("n_chains", 1)))
    is_divided = n_draws > 0 and n_chains > 0 and n_draws % n_chains == 0
    if not is_divided or (seats < 0).any() or (seats >= n_tasks).any() or not (concentration > 0.0).all():
        raise ValueError("its draws of partitions are none")
    return ClusterDraws(
        seats,
        concentration,
        _floats(archive, "clusters.log_evidence", (n_draws,)),
        _floats(archive, "clusters.base_scale", (n_fits, n_own)),
        _floats(archive, "clusters.new_mean", (n_fits, n_own)),
        _floats(archive, "clusters.new_covariance", (n_fits, n_own, n_own)),
        _floats(archive, "clusters.own_share", (n_tasks, n_fits, n_own)),
        n_chains,
    )


def _weights(archive: Archive, k: int, n_tasks: int, n_own: int, n_columns: int) -> TaskWeights:
    return TaskWeights(
        _floats(archive, f"{k}.common", (n_columns,)),
        _floats(archive, f"{k}.common_covariance", (n_columns, n_columns)),
        _floats(archive, f"{k}.own", (n_tasks, n_own)),
        _floats(archive, f"{k}.own_covariance", (n_tasks, n_own, n_own)),
        _floats(archive, f"{k}.gain", (n_tasks, n_own, n_columns)),
        _floats(archive, f"{k}.log_det", (n_tasks,)),
    )


def _noise(archive: Archive, n_tasks: int) -> Noise:
    shape, rate = _above_zero(archive, "noise.shape", n_tasks), _above_zero(archive, "noise.rate", n_tasks)
    new_shape, new_rate = float(archive.about["new_shape"]), float(archive.about["new_rate"])
    if not ((shape > 1.0).all() and 1.0 < new_shape < np.inf and 0.0 < new_rate < np.inf):
        raise ValueError("its noise has no variance")
    return Noise(shape, rate, new_shape, new_rate)


def _above_zero(archive: Archive, name: str, size: int) -> Floats:
    found = _floats(archive, name, (size,))
    if not (found > 0.0).all():
        raise ValueError(f"its array {name!r} holds numbers that are not above zero")
    return found


def _floats(archive: Archive, name: str, shape: tuple[int | None, ...]) -> Floats:
    return np.array(archive.array(name, "f", shape), dtype=np.float64)
