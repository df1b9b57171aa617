"""Fitted Bayes nets as one frozen value, as plain data, and back; with numpy alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.answers.bif import MOST_VARIABLES
from kinfolk.networks.answers.by_task import states_of
from kinfolk.networks.model.fitted import Curve, Fitted
from kinfolk.networks.model.network import Network, listed_arcs, make_network
from kinfolk.posterior import Archive, known_about, known_from, plain, schema_about, schema_from, unplain
from kinfolk.tasks.answering import Known
from kinfolk.tasks.schema import Schema
from kinfolk.tasks.table import Backend

_ARCS = ("start", "required", "forbidden")
# Rows of saved tables sum to one but for rounding; whatever is further off was not saved by us.
_ROUNDING = 1e-9


class FittedNets(NamedTuple):
    """All that a fit leaves behind: what is known of users' tables, λ, and the networks in the order of the tasks."""

    known: Known
    schema: Schema
    backend: Backend
    seed: int
    strength: float
    fitted: Fitted
    arc_log_odds: float = 0.0


def to_archive(model: FittedNets, params: Mapping[str, Any]) -> Archive:
    """Everything that a fitted estimator knows; graphs among its parameters become lists of arcs."""
    names, fitted = model.schema.names, model.fitted
    if len(names) > MOST_VARIABLES:
        raise ValueError(f"a model of {len(names):,} variables cannot be saved: at most {MOST_VARIABLES:,} fit")
    if not isinstance(params["random_state"], int | np.integer | None):
        params = {**params, "random_state": model.seed}
    about = {
        "family": "networks",
        "params": {name: plain(_without_graphs(name, value), name) for name, value in params.items()},
        "schema": schema_about(model.schema),
        "backend": model.backend,
        "seed": model.seed,
        "log_score": _number(fitted.log_score),
        "strength": _number(model.strength),
        "arc_log_odds": model.arc_log_odds,
        "interrupted": fitted.interrupted,
        **known_about(model.known),
    }
    if fitted.n_rounds is not None:
        about["n_iter"] = fitted.n_rounds
    if fitted.curve is not None:
        columns = fitted.curve.strengths, fitted.curve.log_likelihood
        about["penalty_curve"] = [[_number(value) for value in column] for column in columns]
    place = {name: v for v, name in enumerate(names)}
    networks = fitted.networks
    arcs = [(t, place[i], place[j]) for t, network in enumerate(networks) for i, j in listed_arcs(network)]
    arrays: dict[str, NDArray[Any]] = {
        "present": np.array([[name in network.variables for name in names] for network in networks], dtype=np.uint8),
        "arcs": np.array(arcs, dtype=np.int32).reshape(-1, 3),
        "tables": np.concatenate([table.ravel() for network in networks for table in network.tables]),
    }
    if fitted.arc_confidence is not None:
        found = np.argwhere(fitted.arc_confidence > 0).astype(np.int32)
        t, i, j = found.T
        one_way = fitted.arc_confidence[t, i, j]
        arrays["confidence.arcs"] = found
        arrays["confidence.shares"] = np.stack([one_way, one_way + fitted.arc_confidence[t, j, i]], axis=1)
    return Archive(about, arrays)


def read(archive: Archive) -> FittedNets:
    """What was saved, if its parts fit together."""
    about, known, schema = archive.about, known_from(archive), schema_from(archive)
    if not 0 < len(schema.columns) <= MOST_VARIABLES:
        raise ValueError(f"it has {len(schema.columns)} variables: from 1 to {MOST_VARIABLES:,} can be")
    if about["backend"] not in get_args(Backend):
        raise ValueError(f"its backend {about['backend']!r} is not a library of tables")
    networks = _networks_from(archive, schema, known.tasks.tolist())
    n_rounds = int(about["n_iter"]) if "n_iter" in about else None
    fitted = Fitted(
        networks,
        float(about["log_score"]),
        _curve_from(about),
        n_rounds,
        _confidence_from(archive, len(networks), len(schema.columns)),
        bool(about.get("interrupted", False)),
    )
    seed, strength, odds = int(about["seed"]), float(about["strength"]), float(about.get("arc_log_odds", 0.0))
    return FittedNets(known, schema, about["backend"], seed, strength, fitted, odds)


def read_parameters(archive: Archive) -> dict[str, Any]:
    """The parameters of the estimator that was saved; arcs and pairs of tasks, lists in JSON, are pairs again."""
    return {name: _with_arcs(name, value) for name, value in archive.about["params"].items()}


def _number(value: float) -> float | str:
    """A number as JSON holds it, which has no infinity: a penalty of 1 is one of infinite strength."""
    return float(value) if math.isfinite(value) else str(float(value))


def _without_graphs(name: str, value: Any) -> Any:
    """A parameter with lists of arcs in place of graphs."""
    if value is None or (isinstance(value, Mapping) and name != "start"):
        return value
    if name == "structure_prior" and not isinstance(value, str | int | float | np.number):
        graph, factor = value
        return [_ends(graph), factor]
    if name in _ARCS and isinstance(value, Mapping):
        return {task: _ends(graph) for task, graph in value.items()}
    return _ends(value) if name in _ARCS else value


def _with_arcs(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        pairs = {tuple(key) if isinstance(key, list) else key: own for key, own in value["pairs"]}
        return {key: _pairs(own) if name == "start" else unplain(own) for key, own in pairs.items()}
    if name == "structure_prior" and isinstance(value, list):
        arcs, factor = value
        return _pairs(arcs), factor
    return _pairs(value) if name in _ARCS and value is not None else unplain(value)


def _ends(graph: Any) -> list[Any]:
    return [tuple(arc)[:2] for arc in listed_arcs(graph)]


def _pairs(arcs: Any) -> list[tuple[str, str]]:
    return [(parent, child) for parent, child in arcs]


def _networks_from(archive: Archive, schema: Schema, tasks: list[Any]) -> tuple[Network, ...]:
    """The networks of a saved model, if its arcs and tables fit its variables and tasks.

    ``present`` tells which task (row) has which variable (column); ``arcs`` has a row for each arc, the places of its
    task, parent and child; ``tables`` holds the tables of all tasks' variables one after the other.
    """
    n_tasks, n_variables = len(tasks), len(schema.columns)
    present = archive.array("present", "i", (n_tasks, n_variables))
    if not np.isin(present, (0, 1)).all() or not present.any(axis=1).all():
        raise ValueError("it does not tell which variables each task has")
    arcs = archive.array("arcs", "i", (None, 3)).astype(np.int64)
    if ((arcs < 0) | (arcs >= (n_tasks, n_variables, n_variables))).any():
        raise ValueError("its arcs name tasks or variables that it does not have")
    if not (present[arcs[:, 0], arcs[:, 1]] & present[arcs[:, 0], arcs[:, 2]]).all():
        raise ValueError("its arcs name variables that their task does not have")
    parents: list[dict[int, list[int]]] = [{} for _ in tasks]
    for t, parent, child in arcs.tolist():
        parents[t].setdefault(child, []).append(parent)
    tables = archive.array("tables", "f", (None,)).astype(np.float64)
    cards, states = schema.n_values.tolist(), [states_of(column) for column in schema.columns]
    networks, used = [], 0
    for t in range(n_tasks):
        own = np.flatnonzero(present[t]).tolist()
        place = {v: i for i, v in enumerate(own)}
        its_parents, its_tables = [], []
        for v in own:
            given = sorted(parents[t].get(v, ()))
            shape = [cards[u] for u in (*given, v)]
            size = math.prod(shape)
            if used + size > len(tables):
                raise ValueError("its tables are too few for its arcs")
            table = tables[used : used + size].reshape(shape)
            if (np.abs(table.sum(axis=-1) - 1) > _ROUNDING).any():
                raise ValueError(f"variable {schema.names[v]!r}: its table holds a row that does not sum to one")
            its_tables.append(table)
            its_parents.append([place[p] for p in given])
            used += size
        network = make_network([schema.names[v] for v in own], [states[v] for v in own], its_parents, its_tables)
        # As they were saved: scaled to sum to one a second time, their last bits would change.
        networks.append(network._replace(tables=tuple(its_tables)))
    if used < len(tables):
        raise ValueError("its tables are too many for its arcs")
    return tuple(networks)


def _curve_from(about: dict[str, Any]) -> Curve | None:
    if "penalty_curve" not in about:
        return None
    strengths, likelihoods = (np.array([float(value) for value in column]) for column in about["penalty_curve"])
    if len(strengths) != len(likelihoods):
        raise ValueError("its penalty curve has not as many penalties as values")
    return Curve(strengths, likelihoods, float(strengths[int(np.argmax(likelihoods))]))


def _confidence_from(archive: Archive, n_tasks: int, n_variables: int) -> NDArray[np.float64] | None:
    if "confidence.arcs" not in archive.arrays:
        return None
    arcs = archive.array("confidence.arcs", "i", (None, 3))
    shares = archive.array("confidence.shares", "f", (len(arcs), 2))
    if ((arcs < 0) | (arcs >= (n_tasks, n_variables, n_variables))).any():
        raise ValueError("its resampled arcs name tasks or variables that it does not have")
    if ((shares < 0) | (shares > 1 + 1e-9)).any():
        raise ValueError("the confidence of its arcs is not a share from 0 to 1")
    confidence = np.zeros((n_tasks, n_variables, n_variables))
    confidence[tuple(arcs.T)] = shares[:, 0]
    return confidence
