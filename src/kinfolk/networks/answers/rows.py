"""Rows of tasks that need not have the same variables, and how likely networks find them; with numpy alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.elimination import log_probability
from kinfolk.networks.model.network import Codes, Network
from kinfolk.tasks.schema import Schema, encode_column, rows_of_tasks
from kinfolk.tasks.table import Table


def by_task(X: Any) -> bool:
    """Tell whether data came as one table for each task, in a mapping."""
    # A mapping may be of columns, and one kind of sparse matrix is a mapping too.
    if not isinstance(X, Mapping) or hasattr(X, "toarray") or not X:
        return False
    return all(isinstance(table, Mapping) or len(getattr(table, "shape", ())) == 2 for table in X.values())


def names_of(table: Table) -> list[str]:
    """Names of a table's columns; their places where they have none."""
    return [str(place) for place in table.places] if table.names is None else table.names


def encode_part(table: Table, schema: Schema) -> tuple[Codes, NDArray[np.bool_]]:
    """Code a table over all variables of a schema, −1 where it has none; also tell which of them it has."""
    place = {name: v for v, name in enumerate(schema.names)}
    codes = np.full((table.n_rows, len(schema.columns)), -1, dtype=np.int32, order="F")
    here = np.zeros(len(schema.columns), dtype=bool)
    for i, (values, name) in enumerate(zip(table.columns, names_of(table), strict=True)):
        v = place[name]
        codes[:, v] = encode_column(schema.columns[v], values, table.coded[i])
        here[v] = True
    return codes, here


def check_known(table: Table, schema: Schema, task: Any) -> None:
    """Refuse a column of one task's own table that was not there in training."""
    unknown = [name for name in names_of(table) if name not in schema.names]
    if unknown:
        raise ValueError(f"task {task!r}: column {unknown[0]!r} was not there in training")


def score_by_task(
    networks: Mapping[Any, Network],
    names: list[str],
    codes: NDArray[np.int32],
    place: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Log probability of coded rows, each under the network of its task's place; that of one never seen is last."""
    known = list(networks)
    scores = np.empty(len(codes))
    for t, rows in enumerate(rows_of_tasks(place, len(known) + 1)):
        if len(rows):
            scores[rows] = score_rows(networks, names, codes[rows], known[t] if t < len(known) else None)
    return scores


def score_rows(
    networks: Mapping[Any, Network], names: list[str], codes: NDArray[np.int32], task: Any
) -> NDArray[np.float64]:
    """Log probability of coded rows of one task; a task never seen is like one of the known ones, each as likely."""

    def under(network: Network) -> NDArray[np.float64]:
        return log_probability(network, codes[:, [names.index(variable) for variable in network.variables]])

    if task in networks:
        return under(networks[task])
    whole = [network for network in networks.values() if len(network.variables) == len(names)]
    if not whole:
        new = "a task" if task is None else f"task {task!r}"
        raise ValueError(f"{new} is new, and no known task has all variables: nothing can be said of it")
    return np.asarray(np.logaddexp.reduce([under(network) for network in whole], axis=0) - math.log(len(whole)))
