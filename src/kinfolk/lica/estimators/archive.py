"""A fitted linear model of many tasks as plain data, and back.

How sure an empirical Bayes fit is about a prediction hangs on how near the training rows are, so that these rows'
features (not their targets) are part of the file, sparse ones as such; point estimates are saved without any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kinfolk.lica.answers.predictor import classes_from, features_from, posteriors_from, prior_from, tasks_from
from kinfolk.lica.inference.infer import Learnt
from kinfolk.lica.inference.number_of_sources import Choice
from kinfolk.lica.model.row_products import SparseRows
from kinfolk.posterior import Archive, plain, plain_names, unplain
from kinfolk.tasks.table import Backend
from kinfolk.tasks.values import as_ids

if TYPE_CHECKING:
    from kinfolk.lica.estimators.base import SharedWeights
    from kinfolk.lica.model.prior import TaskPosterior

    Model = TypeVar("Model", bound=SharedWeights)


def to_archive(model: SharedWeights) -> Archive:
    """Everything that a fitted estimator knows."""
    prior, learnt, seed = model.prior_, model._learnt, model._plan.seed
    params = model.get_params(deep=False)
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = seed
    chosen = None
    if learnt.choice is not None:
        chosen = [plain(part, "n_sources_curve_") for part in learnt.choice]
    about = {
        "family": "lica",
        "estimator": type(model).__name__,
        "params": {name: plain(value, name) for name, value in params.items()},
        "link": model._plan.link,
        "classes": plain_names(model.classes_, "a label") if hasattr(model, "classes_") else None,
        "tasks": plain_names(model.tasks_, "a task"),
        "is_matrix": model._is_matrix,
        "features": model._features,
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": plain(getattr(model, "feature_names_in_", None), "a column"),
        "backend": model._backend,
        "seed": seed,
        "source_scale": float(prior.source_scale),
        "intercept_variance": float(prior.intercept_variance),
        "intercept_mean": float(prior.intercept_mean),
        "residual_variance": float(prior.residual_variance),
        "loading_variance": float(learnt.loading_variance),
        "target_mean": float(model._target_mean),
        "converged": bool(learnt.converged),
        "choice": chosen,
    }
    arrays: dict[str, NDArray[Any]] = {
        "loadings": prior.loadings,
        "noise": prior.noise,
        "objective": learnt.objective,
        "weights": model.coef_,
        "intercepts": model.intercept_,
        "sources": model.sources_,
        "source_spreads": np.sqrt(0.5 * model.source_variances_),
        **_reach_arrays(model.posteriors_),
    }
    if prior.mean is not None:
        arrays["mean"] = prior.mean
    variances = [posterior.weight_variance for posterior in model.posteriors_]
    if all(variance is not None for variance in variances):
        arrays["weight_variances"] = np.array(variances)
    return Archive(about, arrays)


def _reach_arrays(posteriors: list[TaskPosterior]) -> dict[str, NDArray[Any]]:
    """Training rows of every task: which table, which of its rows, with which precision; and the tables."""
    tables: list[Any] = []
    of_task = np.full(len(posteriors), -1, dtype=np.int32)
    rows: list[NDArray[Any]] = [np.zeros(0, dtype=np.int64)] * len(posteriors)
    precision = [np.zeros(0)] * len(posteriors)
    for k, posterior in enumerate(posteriors):
        if posterior.reach is not None:
            table, rows[k], precision[k] = posterior.reach
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
        if sparse.issparse(table):
            parts = {"data": table.data, "indices": table.indices, "ends": table.indptr}
            arrays |= {f"table.{t}.{name}": part for name, part in parts.items()}
        else:
            arrays[f"table.{t}"] = table
    return arrays


def from_archive(model_class: type[Model], archive: Archive) -> Model:
    """A fitted estimator as it was saved."""
    about = archive.about
    model = model_class(**{name: unplain(value) for name, value in about["params"].items()})
    model._check_parameters()
    prior, classes = prior_from(archive), classes_from(archive)
    model.tasks_, model._is_matrix = as_ids(tasks_from(archive)), bool(about["is_matrix"])
    if model._link() != about["link"]:
        raise ValueError(f"its link {about['link']!r} is not that of its parameters")
    if classes is not None:
        model.classes_ = classes
    model.n_features_in_ = int(about["n_features_in"])
    columns = about.get("feature_names_in")
    if columns is not None:
        if len(columns) != model.n_features_in_ or not all(isinstance(name, str) for name in columns):
            raise ValueError("the names of its columns are not text, or not one for each")
        model.feature_names_in_ = np.array(columns, dtype=object)
    model._features = features_from(archive, prior.n_features)
    if about["backend"] not in get_args(Backend):
        raise ValueError(f"its backend {about['backend']!r} is not a library of tables")
    model._target_mean = float(about["target_mean"])
    model._backend, model._plan = about["backend"], model._make_plan(int(about["seed"]))
    model._keep(
        Learnt(
            prior,
            _with_scipy(posteriors_from(archive, prior)),
            np.array(archive.array("objective", "f", (None,)), dtype=np.float64),
            bool(about["converged"]),
            float(about["loading_variance"]),
            _choice(about.get("choice")),
        )
    )
    return model


def _choice(saved: Any) -> Choice | None:
    if saved is None:
        return None
    n_sources, tried, scores = saved
    if len(tried) != len(scores):
        raise ValueError("the numbers of sources that it tried have not as many scores")
    return Choice(int(n_sources), tuple(int(number) for number in tried), tuple(float(score) for score in scores))


def _with_scipy(posteriors: list[TaskPosterior]) -> list[TaskPosterior]:
    """The same with scipy's sparse matrices, a table that tasks share staying one."""
    made: dict[int, Any] = {}
    found = []
    for posterior in posteriors:
        reach = posterior.reach
        if reach is not None and isinstance(reach.X, SparseRows):
            table = reach.X
            if id(table) not in made:
                made[id(table)] = sparse.csr_matrix((table.data, table.indices, table.ends), shape=table.shape)
            posterior = posterior._replace(reach=reach._replace(X=made[id(table)]))
        found.append(posterior)
    return found
