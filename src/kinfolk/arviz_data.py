"""What chains drew, handed to ArviZ: an InferenceData of its versions before 1, an xarray DataTree since."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Draws = dict[str, NDArray[Any]]


def to_arviz(estimator: Any) -> Any:
    """Draws of a fitted model that samples, as ArviZ takes them.

    Parameters
    ----------
    estimator : fitted kinfolk estimator

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        Group ``posterior`` with ``cluster`` (chain, draw, task), ``n_clusters`` and the hyper-parameters that were
        drawn; group ``sample_stats`` with ``lp``, the log joint density.
    """
    posterior = getattr(estimator, "posterior_", None)
    draws, stats = _naive_bayes(posterior) if hasattr(posterior, "blocks") else _sequences(posterior)
    if not stats:
        raise ValueError(
            f"{type(estimator).__name__} was not fitted by sampling and has no chains to hand on: take "
            'inference="gibbs" where there is a choice'
        )
    try:
        arviz = import_module("arviz")
    except ModuleNotFoundError as error:
        if error.name == "arviz":
            raise ImportError("to_arviz needs ArviZ, which is not installed: pip install arviz") from None
        raise ImportError(f"to_arviz needs ArviZ, which cannot be imported here: {error}") from error
    except Exception as error:  # whatever a package that does not fit its neighbours raises
        raise ImportError(f"to_arviz needs ArviZ, which cannot be imported here: {error}") from error
    dims = {name: [_DIMENSIONS[name]] for name, values in draws.items() if values.ndim > 2}
    coords = {"task": [str(task) for task in estimator.tasks_]} if "cluster" in draws else {}
    groups = {"posterior": draws, "sample_stats": stats}
    if "posterior" in inspect.signature(arviz.from_dict).parameters:
        return arviz.from_dict(**groups, coords=coords, dims=dims)
    return arviz.from_dict(groups, coords=coords, dims=dims)


_DIMENSIONS = {"cluster": "task", "strength": "label_and_feature", "prototype": "label_feature_and_value"}


def _naive_bayes(posterior: Any) -> tuple[Draws, Draws]:
    if posterior.log_joint is None:
        return {}, {}
    draws = _of_partitions(posterior.partitions)
    if posterior.concentrations is not None:
        draws["concentration"] = np.asarray(posterior.concentrations)
    if posterior.prototypes is not None:
        draws["strength"] = np.asarray(posterior.prototypes.strengths)
        draws["prototype"] = np.asarray(posterior.prototypes.prototypes)
    return draws, {"lp": np.asarray(posterior.log_joint)}


def _sequences(posterior: Any) -> tuple[Draws, Draws]:
    traces = getattr(posterior, "traces", None)
    if traces is None or getattr(posterior, "convergence", None) is None:
        return {}, {}
    draws = _of_partitions(traces.partitions)
    draws |= {name: np.asarray(values) for name, values in traces.hyper_parameters.items()}
    return draws, {"lp": np.asarray(traces.log_joint)}


def _of_partitions(partitions: Any) -> Draws:
    if partitions is None:
        return {}
    clusters = np.asarray(partitions)
    return {"cluster": clusters, "n_clusters": clusters.max(axis=-1) + 1}
