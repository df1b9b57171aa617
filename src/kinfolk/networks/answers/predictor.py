"""What saved Bayes nets say about rows, with numpy alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.answers.bif import MOST_VARIABLES
from kinfolk.networks.answers.rows import by_task, check_known, encode_part, score_by_task, score_rows
from kinfolk.networks.model.data import states_of
from kinfolk.networks.model.elimination import log_probability
from kinfolk.networks.model.network import Codes, Network, make_network
from kinfolk.posterior import Archive, known_from, names_from, schema_from
from kinfolk.predictor import Predictor
from kinfolk.tasks.answering import Known, encode_rows, receive_rows
from kinfolk.tasks.schema import Column, Schema
from kinfolk.tasks.table import Table, read_table

# Rows of saved tables sum to one but for rounding; whatever is further off was not saved by us.
_ROUNDING = 1e-9


class NetworksPredictor(Predictor):
    """Fitted Bayes nets reduced to what the probability of rows needs; made by :func:`kinfolk.load`.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    networks_ : dict
        A :class:`~kinfolk.networks.model.network.Network` for each task.
    feature_names_in_ : list of str
        Variables of all tasks, in order, the task column left out.
    """

    def __init__(self, known: Known, schema: Schema, networks: dict[Any, Network]) -> None:
        self.known = known
        self._schema = schema
        self.tasks_ = known.tasks
        self.networks_ = networks
        self.feature_names_in_ = schema.names

    @classmethod
    def from_archive(cls, archive: Archive) -> NetworksPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        schema, known = variables_from(archive), known_from(archive)
        return cls(known, schema, networks_from(archive, schema, known.tasks.tolist()))

    def score_samples(self, X: Any, *, task: Any = None) -> Any:
        """Natural log of the probability of each row under its task's network.

        Of one table for all tasks, columns that no network has are left aside. A missing value, or one never seen in
        training, is summed out. A task never seen is like one of the known ones, each as likely.

        Parameters
        ----------
        X : frame or array, or mapping from tasks to these
        task : array-like of shape (n_rows,), optional
            The task of each row; it may be left out where there is only one.

        Returns
        -------
        ndarray of shape (n_rows,), or a dict of them by task where a mapping was given
        """
        if by_task(X):
            return {name: self._score_table(read_table(part), name) for name, part in X.items()}
        asked = receive_rows(X, self.known, task=task)
        assert asked.place is not None
        return score_by_task(self.networks_, self._schema.names, encode_rows(asked.table, self._schema), asked.place)

    def _score_table(self, table: Table, task: Any) -> NDArray[np.float64]:
        """Scores of one task's own table, which may lack variables, as the tables learnt from may."""
        check_known(table, self._schema, task)
        return self._of_task(encode_part(table, self._schema)[0], task)

    def _of_task(self, codes: Codes, task: Any) -> NDArray[np.float64]:
        return score_rows(self.networks_, self._schema.names, codes, task)


class MultinetPredictor(Predictor):
    """A fitted classifier with a network for each class, reduced to what prediction needs.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    networks_ : dict
        A :class:`~kinfolk.networks.model.network.Network` for each label.
    feature_names_in_ : list of str
        Variables, in order.
    """

    def __init__(self, nets: NetworksPredictor, class_log_prior: NDArray[np.float64]) -> None:
        self._nets, self.known = nets, nets.known
        self._class_log_prior = class_log_prior
        self.classes_, self.networks_, self.feature_names_in_ = nets.tasks_, nets.networks_, nets.feature_names_in_

    @classmethod
    def from_archive(cls, archive: Archive) -> MultinetPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        nets = NetworksPredictor.from_archive(archive)
        return cls(nets, archive.array("class_log_prior", "f", (len(nets.tasks_),)))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log probability of each label (rows, classes)."""
        joint = self.log_joint(self.codes(X))
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def codes(self, X: Any) -> Codes:
        """Codes of rows over all variables, −1 where a value is missing or was never seen."""
        return encode_rows(receive_rows(X, self._nets.known, needs_task=False).table, self._nets._schema)

    def log_joint(self, codes: Codes) -> NDArray[np.float64]:
        """Natural log of p(c) p(x | B_c) of coded rows, of shape (rows, classes)."""
        of_classes = [log_probability(network, codes) for network in self.networks_.values()]
        return np.asarray(np.column_stack(of_classes) + self._class_log_prior)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each label (rows, classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row."""
        return np.asarray(self.classes_[self.predict_log_proba(X).argmax(axis=1)])


def tasks_from(archive: Archive) -> list[Any]:
    """The tasks of a saved model."""
    tasks = names_from(archive.about["tasks"], "tasks")
    if not tasks:
        raise ValueError("it has no tasks")
    return tasks


def variables_from(archive: Archive) -> Schema:
    """The variables of a saved model with their states."""
    schema = schema_from(archive)
    if not 0 < len(schema.columns) <= MOST_VARIABLES:
        raise ValueError(f"it has {len(schema.columns)} variables: from 1 to {MOST_VARIABLES:,} can be")
    return schema


def present_from(archive: Archive, schema: Schema, tasks: list[Any]) -> NDArray[np.bool_]:
    """Which task (row) has which variable (column)."""
    present = archive.array("present", "i", (len(tasks), len(schema.columns)))
    if not np.isin(present, (0, 1)).all() or not present.any(axis=1).all():
        raise ValueError("it does not tell which variables each task has")
    return present.astype(bool)


def networks_from(archive: Archive, schema: Schema, tasks: list[Any]) -> dict[Any, Network]:
    """The networks of a saved model, if its arcs and tables fit its variables and tasks.

    ``arcs`` has a row for each arc, the places of its task, parent and child; ``tables`` holds the tables of all tasks'
    variables one after the other.
    """
    n_tasks, n_variables = len(tasks), len(schema.columns)
    present = present_from(archive, schema, tasks)
    arcs = archive.array("arcs", "i", (None, 3)).astype(np.int64)
    if ((arcs < 0) | (arcs >= (n_tasks, n_variables, n_variables))).any():
        raise ValueError("its arcs name tasks or variables that it does not have")
    if not (present[arcs[:, 0], arcs[:, 1]] & present[arcs[:, 0], arcs[:, 2]]).all():
        raise ValueError("its arcs name variables that their task does not have")
    parents: list[dict[int, list[int]]] = [{} for _ in tasks]
    for t, parent, child in arcs.tolist():
        parents[t].setdefault(child, []).append(parent)
    tables = archive.array("tables", "f", (None,)).astype(np.float64)
    cards = schema.n_values.tolist()
    networks, used = {}, 0
    for t, task in enumerate(tasks):
        own = np.flatnonzero(present[t]).tolist()
        place = {v: i for i, v in enumerate(own)}
        its_parents, its_tables = [], []
        for v in own:
            given = sorted(parents[t].get(v, ()))
            shape = [cards[u] for u in (*given, v)]
            size = math.prod(shape)
            if used + size > len(tables):
                raise ValueError("its tables are too few for its arcs")
            its_tables.append(tables[used : used + size].reshape(shape))
            its_parents.append([place[p] for p in given])
            used += size
        networks[task] = _network([schema.columns[v] for v in own], its_parents, its_tables)
    if used < len(tables):
        raise ValueError("its tables are too many for its arcs")
    return networks


def _network(columns: list[Column], parents: list[list[int]], tables: list[NDArray[np.float64]]) -> Network:
    names = [column.name for column in columns]
    network = make_network(names, [states_of(column) for column in columns], parents, tables)
    for name, table in zip(names, tables, strict=True):
        if (np.abs(table.sum(axis=-1) - 1) > _ROUNDING).any():
            raise ValueError(f"variable {name!r}: its table holds a row that does not sum to one")
    # As they were saved: scaled to sum to one a second time, their last bits would change.
    return network._replace(tables=tuple(tables))
