"""Fitted Bayes nets as plain data, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.answers.bif import MOST_VARIABLES
from kinfolk.networks.answers.predictor import networks_from, present_from, tasks_from, variables_from
from kinfolk.networks.model.network import Network
from kinfolk.networks.model.priors import penalty_of
from kinfolk.posterior import Archive, plain, plain_names, schema_about, unplain
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import Backend

_ARCS = ("start", "required", "forbidden")


def to_archive(model: Any) -> Archive:
    """Everything that a fitted estimator knows; graphs among its parameters become lists of arcs."""
    names, tasks = model._schema.names, model.tasks_.tolist()
    if len(names) > MOST_VARIABLES:
        raise ValueError(f"a model of {len(names):,} variables cannot be saved: at most {MOST_VARIABLES:,} fit")
    params = model.get_params(deep=False)
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = model._seed
    about = {
        "family": "networks",
        "estimator": "BayesNets",
        "params": {name: plain(_without_graphs(name, value), name) for name, value in params.items()},
        "schema": schema_about(model._schema),
        "tasks": plain_names(model.tasks_, "a task"),
        "n_features_in": int(model.n_features_in_),
        "backend": model._backend,
        "seed": model._seed,
        "log_score": _number(model.log_score_),
        "strength": _number(model.strength_),
    }
    if hasattr(model, "feature_names_in_"):
        about["feature_names_in"] = plain(model.feature_names_in_, "a column")
    if hasattr(model, "n_iter_"):
        about["n_iter"] = int(model.n_iter_)
    if hasattr(model, "penalty_curve_"):
        curve = [_values(model.penalty_curve_, name) for name in ("strength", "log_likelihood")]
        about["penalty_curve"] = [[_number(value) for value in column] for column in curve]
    place = {name: v for v, name in enumerate(names)}
    networks = [model.networks_[task] for task in tasks]
    present = np.array([[name in network.variables for name in names] for network in networks], dtype=np.uint8)
    arcs = [(t, place[parent], place[child]) for t, network in enumerate(networks) for parent, child in _arcs(network)]
    arrays: dict[str, NDArray[Any]] = {
        "present": present,
        "arcs": np.array(arcs, dtype=np.int32).reshape(-1, 3),
        "tables": np.concatenate([table.ravel() for network in networks for table in network.tables]),
    }
    if hasattr(model, "arc_confidence_"):
        arrays |= _confidence_arrays(model.arc_confidence_, tasks, place)
    return Archive(about, arrays)


def from_archive(model_class: Any, archive: Archive) -> Any:
    """A fitted estimator as it was saved."""
    about = archive.about
    model = model_class(**{name: _with_arcs(name, value) for name, value in about["params"].items()})
    schema, tasks = variables_from(archive), tasks_from(archive)
    model.networks_ = networks_from(archive, schema, tasks)
    model._schema, model.tasks_, model._present = schema, as_ids(tasks), present_from(archive, schema, tasks)
    model.n_features_in_ = int(about["n_features_in"])
    if "feature_names_in" in about:
        columns = about["feature_names_in"]
        if len(columns) != model.n_features_in_ or not all(isinstance(name, str) for name in columns):
            raise ValueError("the names of its columns are not text, or not one for each")
        model.feature_names_in_ = np.array(columns, dtype=object)
    if about["backend"] not in get_args(Backend):
        raise ValueError(f"its backend {about['backend']!r} is not a library of tables")
    model._backend, model._seed = about["backend"], int(about["seed"])
    model.log_score_, model.strength_ = float(about["log_score"]), float(about["strength"])
    model.penalty_ = penalty_of(model.strength_)
    if "n_iter" in about:
        model.n_iter_ = int(about["n_iter"])
    if "penalty_curve" in about:
        strengths, likelihoods = ([float(value) for value in column] for column in about["penalty_curve"])
        if len(strengths) != len(likelihoods):
            raise ValueError("its penalty curve has not as many penalties as values")
        curve = {
            "penalty": [penalty_of(value) for value in strengths],
            "strength": strengths,
            "log_likelihood": likelihoods,
        }
        model.penalty_curve_ = make_frame(curve, model._backend)
    if "confidence.arcs" in archive.arrays:
        model.arc_confidence_ = _confidence_from(archive, tasks, schema.names, model._backend)
    return model


def _number(value: float) -> float | str:
    """A number as JSON holds it, which has no infinity: a penalty of 1 is one of infinite strength."""
    return float(value) if math.isfinite(value) else str(float(value))


def _arcs(graph: Any) -> list[tuple[Any, Any]]:
    """Arcs of a network of ours, of a networkx graph, or of a list of arcs."""
    if isinstance(graph, Network):
        names = graph.variables
        return [(names[p], names[v]) for v, parents in enumerate(graph.parents) for p in parents]
    return [tuple(arc)[:2] for arc in (graph.edges if hasattr(graph, "edges") else graph)]


def _without_graphs(name: str, value: Any) -> Any:
    """A parameter with lists of arcs in place of graphs."""
    if value is None or (isinstance(value, Mapping) and name != "start"):
        return value
    if name == "structure_prior":
        graph, factor = value
        return [_arcs(graph), factor]
    if name in _ARCS:
        return {task: _arcs(graph) for task, graph in value.items()} if isinstance(value, Mapping) else _arcs(value)
    return value


def _with_arcs(name: str, value: Any) -> Any:
    """A saved parameter; arcs and pairs of tasks, which JSON has only as lists, are pairs again."""
    if isinstance(value, dict):
        pairs = {tuple(key) if isinstance(key, list) else key: own for key, own in value["pairs"]}
        return {key: _pairs(own) if name == "start" else unplain(own) for key, own in pairs.items()}
    if name == "structure_prior" and value is not None:
        arcs, factor = value
        return _pairs(arcs), factor
    return _pairs(value) if name in _ARCS and value is not None else unplain(value)


def _pairs(arcs: Any) -> list[tuple[str, str]]:
    return [(parent, child) for parent, child in arcs]


def _values(frame: Any, column: str) -> list[Any]:
    import narwhals.stable.v2 as nw

    values: list[Any] = nw.from_native(frame, eager_only=True)[column].to_list()
    return values


def _confidence_arrays(frame: Any, tasks: list[Any], place: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    # Tasks of mixed types stand in the table as text.
    of_task = {str(task): t for t, task in enumerate(tasks)} | {task: t for t, task in enumerate(tasks)}
    parents, children = ([place[name] for name in _values(frame, column)] for column in ("parent", "child"))
    arcs = [[of_task[task] for task in _values(frame, "task")], parents, children]
    shares = [_values(frame, column) for column in ("confidence", "either_way")]
    return {
        "confidence.arcs": np.array(arcs, dtype=np.int32).T,
        "confidence.shares": np.array(shares, dtype=np.float64).T,
    }


def _confidence_from(archive: Archive, tasks: list[Any], names: list[str], backend: Backend) -> Any:
    arcs = archive.array("confidence.arcs", "i", (None, 3))
    shares = archive.array("confidence.shares", "f", (len(arcs), 2))
    if ((arcs < 0) | (arcs >= (len(tasks), len(names), len(names)))).any():
        raise ValueError("its resampled arcs name tasks or variables that it does not have")
    if ((shares < 0) | (shares > 1 + 1e-9)).any():
        raise ValueError("the confidence of its arcs is not a share from 0 to 1")
    columns = {
        "task": [tasks[t] for t in arcs[:, 0]],
        "parent": [names[v] for v in arcs[:, 1]],
        "child": [names[v] for v in arcs[:, 2]],
        "confidence": shares[:, 0].tolist(),
        "either_way": shares[:, 1].tolist(),
    }
    return make_frame(columns, backend)
