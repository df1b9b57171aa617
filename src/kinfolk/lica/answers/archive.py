"""A fitted linear model of many tasks as one value, and that value as plain data and back; with numpy alone.

How sure an empirical Bayes fit is about a prediction hangs on how near the training rows are, so that these rows'
features (not their targets) are part of the file, sparse ones as such; point estimates are saved without any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.model.fitted import Choice, Fitted
from kinfolk.lica.model.prior import Reach, TaskPosterior, TaskPrior
from kinfolk.lica.model.row_products import SparseRows
from kinfolk.lica.model.scaling import Scaling
from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive, known_about, known_from, names_from, plain, plain_names
from kinfolk.tasks.answering import Known
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.table import Backend

_LINKS = ("logistic", "probit", "gaussian")


class FittedModel(NamedTuple):
    """All that a fit leaves behind: what inference returned, and the words that answers are given in.

    Parameters
    ----------
    known : Known
        What is remembered of tables and tasks.
    prior, fitted : TaskPrior and Fitted
        What tasks have in common, and what is known of each.
    link : str
        "logistic", "probit" or "gaussian".
    classes : ndarray or None
        The labels; None in a regression.
    is_matrix : bool
        Whether targets came as a matrix with a column for each task.
    features : list of str or None
        Names of the features, where they had any.
    backend : str
        The library of tables that frames are given in.
    seed : int
    scaling : Scaling or None
        How columns were brought to one scale: ``prior`` and ``fitted`` speak of columns in these units. None where
        columns kept their own.
    """

    known: Known
    prior: TaskPrior
    fitted: Fitted
    link: Any
    classes: NDArray[Any] | None
    is_matrix: bool
    features: list[str] | None
    backend: Backend
    seed: int
    scaling: Scaling | None = None


def to_archive(model: FittedModel, params: Mapping[str, Any]) -> Archive:
    """A fitted estimator as plain data."""
    prior, fitted = model.prior, model.fitted
    about = {
        "family": "lica",
        **known_about(model.known),
        "params": {name: plain(value, name) for name, value in params.items()},
        "link": model.link,
        "classes": None if model.classes is None else plain_names(model.classes, "a label"),
        "is_matrix": model.is_matrix,
        "features": model.features,
        "backend": model.backend,
        "seed": model.seed,
        "source_scale": float(prior.source_scale),
        "intercept_variance": float(prior.intercept_variance),
        "intercept_mean": float(prior.intercept_mean),
        "residual_variance": float(prior.residual_variance),
        "loading_variance": float(fitted.loading_variance),
        "target_mean": float(fitted.target_mean),
        "converged": bool(fitted.converged),
        "interrupted": fitted.interrupted,
        "choice": None if fitted.choice is None else [plain(part, "n_sources_curve_") for part in fitted.choice],
    }
    tasks = fitted.tasks
    arrays: dict[str, NDArray[Any]] = {
        "loadings": prior.loadings,
        "noise": prior.noise,
        "objective": fitted.objective,
        "weights": np.array([task.weights for task in tasks]),
        "intercepts": np.array([task.intercept for task in tasks]),
        "sources": np.array([task.sources for task in tasks]).reshape(len(tasks), -1),
        "source_spreads": np.array([task.source_spread for task in tasks]).reshape(len(tasks), -1),
        **_reach_arrays(tasks),
    }
    if prior.mean is not None:
        arrays["mean"] = prior.mean
    if model.scaling is not None:
        # A column that never varied is in units without end, which a file has no number for.
        unit = model.scaling.unit
        arrays |= {"scaling.centre": model.scaling.centre, "scaling.unit": np.where(np.isinf(unit), 0.0, unit)}
    if all(task.weight_variance is not None for task in tasks):
        arrays["weight_variances"] = np.array([task.weight_variance for task in tasks])
    return Archive(about, arrays)


def _reach_arrays(tasks: Sequence[TaskPosterior]) -> dict[str, NDArray[Any]]:
    """Training rows of every task: which table, which of its rows, with which precision; and the tables."""
    tables: list[Any] = []
    of_task = np.full(len(tasks), -1, dtype=np.int32)
    rows: list[NDArray[Any]] = [np.zeros(0, dtype=np.int64)] * len(tasks)
    precision = [np.zeros(0)] * len(tasks)
    for k, task in enumerate(tasks):
        if task.reach is not None:
            table, rows[k], precision[k] = task.reach
            if not any(table is other for other in tables):
                tables.append(table)
            of_task[k] = next(t for t, other in enumerate(tables) if other is table)
    arrays: dict[str, NDArray[Any]] = {
        "reach.table": of_task,
        "reach.rows": np.concatenate(rows),
        "reach.ends": np.cumsum([len(its) for its in rows]),
        "reach.precision": np.concatenate(precision),
    }
    for t, table in enumerate(tables):
        if isinstance(table, np.ndarray):
            arrays[f"table.{t}"] = table
        else:
            ends = table.ends if isinstance(table, SparseRows) else table.indptr
            parts = {"data": table.data, "indices": table.indices, "ends": ends}
            arrays |= {f"table.{t}.{name}": part for name, part in parts.items()}
    return arrays


def read(archive: Archive) -> FittedModel:
    """What a saved model knows, once its parts are found to fit together; sparse rows as :class:`SparseRows`."""
    about = archive.about
    known, prior = known_from(archive), _prior(archive)
    if about["backend"] not in get_args(Backend):
        raise ValueError(f"its backend {about['backend']!r} is not a library of tables")
    if prior.n_features != known.n_columns - (known.task_column is not None):
        raise ValueError(f"it has {prior.n_features} features and {known.n_columns} columns")
    fitted = Fitted(
        _posteriors(archive, prior, len(known.tasks)),
        _floats(archive, "objective", (None,)),
        bool(about["converged"]),
        float(about["loading_variance"]),
        _choice(about.get("choice")),
        float(about["target_mean"]),
        bool(about.get("interrupted", False)),
    )
    return FittedModel(
        known,
        prior,
        fitted,
        about["link"],
        _classes(archive),
        bool(about["is_matrix"]),
        _names(about.get("features"), prior.n_features),
        about["backend"],
        int(about["seed"]),
        _scaling(archive, prior.n_features),
    )


def _classes(archive: Archive) -> NDArray[Any] | None:
    """The labels of a saved classifier; None for a regression."""
    link, classes = archive.about["link"], archive.about.get("classes")
    if link not in _LINKS or (link == "gaussian") != (classes is None):
        raise ValueError(f"its link {link!r} does not go with its labels")
    if classes is None:
        return None
    labels = names_from(classes, "labels")
    if not 1 <= len(labels) <= 2:
        raise ValueError(f"it has {len(labels)} labels: 1 or 2 can be")
    return as_ids(labels)


def _names(names: Any, n_features: int) -> list[str] | None:
    """Names of the features, where there are any."""
    if names is not None and (len(names) != n_features or not all(isinstance(name, str) for name in names)):
        raise ValueError("the names of its features are not text, or not one for each")
    return names if names is None else list(names)


def _choice(saved: Any) -> Choice | None:
    if saved is None:
        return None
    n_sources, tried, scores = saved
    if len(tried) != len(scores):
        raise ValueError("the numbers of sources that it tried have not as many scores")
    return Choice(int(n_sources), tuple(int(number) for number in tried), tuple(float(score) for score in scores))


def _prior(archive: Archive) -> TaskPrior:
    """What the tasks of a saved model have in common."""
    loadings = _floats(archive, "loadings", (None, None))
    n_features = len(loadings)
    scale, intercept, residual = (
        float(archive.about[name]) for name in ("source_scale", "intercept_variance", "residual_variance")
    )
    noise = _floats(archive, "noise", (n_features,))
    if not (n_features and (noise > 0).all() and all(0 < value < math.inf for value in (scale, intercept, residual))):
        raise ValueError("it has no features, or variances that are not positive")
    mean = _floats(archive, "mean", (n_features,)) if "mean" in archive.arrays else None
    centre = float(archive.about["intercept_mean"])
    if not math.isfinite(centre):
        raise ValueError("the mean of its intercepts is not a number")
    return TaskPrior(loadings, noise, scale, intercept, residual, mean, centre)


def _scaling(archive: Archive, n_features: int) -> Scaling | None:
    """How columns were brought to one scale; files of before there was any have none."""
    if "scaling.unit" not in archive.arrays:
        return None
    centre, unit = (_floats(archive, f"scaling.{name}", (n_features,)) for name in ("centre", "unit"))
    if (unit < 0.0).any():
        raise ValueError("its columns have units below zero")
    return Scaling(centre, np.where(unit > 0.0, unit, np.inf))


def _posteriors(archive: Archive, prior: TaskPrior, n_tasks: int) -> tuple[TaskPosterior, ...]:
    """What is known of each task of a saved model."""
    n_features, n_sources = prior.n_features, prior.n_sources
    weights = _floats(archive, "weights", (n_tasks, n_features))
    intercepts = _floats(archive, "intercepts", (n_tasks,))
    sources = _floats(archive, "sources", (n_tasks, n_sources))
    spreads = _floats(archive, "source_spreads", (n_tasks, n_sources))
    variances: Any = [None] * n_tasks
    if "weight_variances" in archive.arrays:
        variances = _floats(archive, "weight_variances", (n_tasks, n_features))
    return tuple(
        TaskPosterior(weights[k], float(intercepts[k]), sources[k], spreads[k], variances[k], reach)
        for k, reach in enumerate(_reaches(archive, n_tasks, n_features))
    )


def _reaches(archive: Archive, n_tasks: int, n_features: int) -> list[Reach | None]:
    of_task = archive.array("reach.table", "i", (n_tasks,)).tolist()
    ends = archive.array("reach.ends", "i", (n_tasks,)).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]])
    rows = archive.array("reach.rows", "i", (int(ends[-1]),)).astype(np.int64)
    precision = _floats(archive, "reach.precision", (len(rows),))
    if (starts > ends).any() or (precision < 0).any():
        raise ValueError("its training rows are not in order, or have precisions below zero")
    tables = {t: _table(archive, t, n_features) for t in sorted(set(of_task)) if t >= 0}
    reaches: list[Reach | None] = []
    for t, start, end in zip(of_task, starts, ends, strict=True):
        its = rows[start:end]
        if t < 0:
            reaches.append(None)
        elif len(its) and not 0 <= its.min() <= its.max() < tables[t].shape[0]:
            raise ValueError("its tasks name training rows that it does not have")
        else:
            reaches.append(Reach(tables[t], its, precision[start:end]))
    return reaches


def _table(archive: Archive, place: int, n_features: int) -> Any:
    name = f"table.{place}"
    if name in archive.arrays:
        return _floats(archive, name, (None, n_features))
    data = _floats(archive, f"{name}.data", (None,))
    indices = archive.array(f"{name}.indices", "i", (len(data),))
    ends = archive.array(f"{name}.ends", "i", (None,)).astype(np.int64)
    if (len(data) and not 0 <= indices.min() <= indices.max() < n_features) or len(ends) < 2:
        raise ValueError("its training rows name features that it does not have")
    if ends[0] != 0 or ends[-1] != len(data) or (np.diff(ends) < 0).any():
        raise ValueError("its training rows are not in order")
    return SparseRows(data, indices.astype(np.int64), ends, n_features)


def _floats(archive: Archive, name: str, shape: tuple[int | None, ...]) -> Floats:
    return np.array(archive.array(name, "f", shape), dtype=np.float64)
