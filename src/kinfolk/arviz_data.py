"""What chains drew, handed to ArviZ: an InferenceData of its versions before 1, an xarray DataTree since."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.partition.crp import canonical
from kinfolk.sequences.model.fitted import name_of

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
        drawn; group ``sample_stats`` with ``lp``, the log joint density. Where every feature has a partition of its
        own, ``cluster``, ``n_clusters`` and ``lp`` are by feature. Where chains are of several models, their names are
        those of the coordinate ``chain``: only chains of one model can be compared.
    """
    found = _drawn(estimator)
    if found is None:
        raise ValueError(_nothing_drawn(estimator))
    try:
        arviz = import_module("arviz")
    except ModuleNotFoundError as error:
        if error.name == "arviz":
            raise ImportError("to_arviz needs ArviZ, which is not installed: pip install arviz") from None
        raise ImportError(f"to_arviz needs ArviZ, which cannot be imported here: {error}") from error
    except Exception as error:  # whatever a package that does not fit its neighbours raises
        raise ImportError(f"to_arviz needs ArviZ, which cannot be imported here: {error}") from error
    groups = {"posterior": found.posterior, "sample_stats": found.stats}
    named = {name: list(dims) for name, dims in found.dims.items() if any(name in group for group in groups.values())}
    if "posterior" in inspect.signature(arviz.from_dict).parameters:
        return arviz.from_dict(**groups, coords=found.coords, dims=named)
    return arviz.from_dict(groups, coords=found.coords, dims=named)


class Drawn(NamedTuple):
    """What chains drew, each (chain, draw, …), with the names of further dimensions and of places along them."""

    posterior: Draws
    stats: Draws
    dims: dict[str, tuple[str, ...]]
    coords: dict[str, list[str]]


def _drawn(estimator: Any) -> Drawn | None:
    """What the chains of an estimator drew; None where it has none."""
    posterior = getattr(estimator, "posterior_", None)
    clusters = getattr(getattr(estimator, "_model", None), "clusters", None)
    if hasattr(posterior, "blocks"):
        return _naive_bayes(estimator, posterior)
    return _sequences(estimator, posterior) if clusters is None else _linear(estimator, clusters)


def _nothing_drawn(estimator: Any) -> str:
    members = getattr(estimator, "members_", None)
    sampling = []
    if isinstance(members, Mapping):
        sampling = [name for name, member in members.items() if _drawn(member) is not None]
    if sampling:
        asked = ", ".join(f"members_[{name!r}].to_arviz()" for name in sampling)
        return f"{type(estimator).__name__} is an average and has no chains of its own: take {asked}"
    return (
        f"{type(estimator).__name__} was not fitted by sampling and has no chains to hand on: take "
        'inference="gibbs" where there is a choice'
    )


def _tasks_of(estimator: Any) -> dict[str, list[str]]:
    return {"task": [str(task) for task in estimator.tasks_]}


def _naive_bayes(estimator: Any, posterior: Any) -> Drawn | None:
    if posterior.by_feature is not None:
        return _by_feature(estimator, posterior.by_feature)
    if posterior.log_joint is None:
        return None
    draws = _of_partitions(posterior.partitions)
    dims: dict[str, tuple[str, ...]] = {"cluster": ("task",)}
    if posterior.concentrations is not None:
        draws["concentration"] = np.asarray(posterior.concentrations)
    if posterior.prototypes is not None:
        draws["strength"] = np.asarray(posterior.prototypes.strengths)
        draws["prototype"] = np.asarray(posterior.prototypes.prototypes)
        dims |= {"strength": ("label_and_feature",), "prototype": ("label_feature_and_value",)}
    coords = _tasks_of(estimator) if "cluster" in draws else {}
    return Drawn(draws, {"lp": np.asarray(posterior.log_joint)}, dims, coords)


def _by_feature(estimator: Any, fits: Sequence[Any]) -> Drawn | None:
    """Draws of models in which every feature has its own partition of the tasks, and its own chains."""
    if any(fit.log_joint is None for fit in fits):
        return None
    draws = {name: np.stack(drawn, axis=2) for name, drawn in _each(_of_partitions(fit.partitions) for fit in fits)}
    if all(fit.concentrations is not None for fit in fits):
        draws["concentration"] = np.stack([np.asarray(fit.concentrations) for fit in fits], axis=2)
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(("n_clusters", "concentration", "lp"), ("feature",))
    coords = _tasks_of(estimator) | {"feature": [str(name) for name in estimator._result.schema.names]}
    lp = np.stack([np.asarray(fit.log_joint) for fit in fits], axis=2)
    return Drawn(draws, {"lp": lp}, dims | {"cluster": ("feature", "task")}, coords)


def _each(found: Iterable[Draws]) -> Iterable[tuple[str, list[NDArray[Any]]]]:
    """Draws of several fits by name."""
    several = list(found)
    return [(name, [draws[name] for draws in several]) for name in several[0]]


def _linear(estimator: Any, clusters: Any) -> Drawn:
    """Draws of partitions by clustered regressions, which are kept chain after chain."""
    by_chain = (clusters.n_chains, -1)
    seats = np.asarray(clusters.seats)
    partitions = np.array([canonical(seat) for seat in seats]).reshape(*by_chain, seats.shape[1])
    draws = _of_partitions(partitions) | {"concentration": np.asarray(clusters.concentration).reshape(by_chain)}
    evidence = np.asarray(clusters.log_evidence).reshape(by_chain)
    return Drawn(draws, {"log_evidence": evidence}, {"cluster": ("task",)}, _tasks_of(estimator))


def _sequences(estimator: Any, posterior: Any) -> Drawn | None:
    traces = getattr(posterior, "traces", None)
    if traces is None or getattr(posterior, "convergence", None) is None:
        return None
    draws = _of_partitions(traces.partitions)
    draws |= {name: np.asarray(values) for name, values in traces.hyper_parameters.items()}
    coords = _tasks_of(estimator)
    if posterior.rooms is not None:
        seen: Counter[str] = Counter()
        names = [name_of(room) for room in posterior.rooms]
        coords["chain"] = []
        for name in names:
            seen[name] += 1
            coords["chain"].append(f"{name} {seen[name]}")
    return Drawn(draws, {"lp": np.asarray(traces.log_joint)}, {"cluster": ("task",)}, coords)


def _of_partitions(partitions: Any) -> Draws:
    if partitions is None:
        return {}
    clusters = np.asarray(partitions)
    return {"cluster": clusters, "n_clusters": clusters.max(axis=-1) + 1}
