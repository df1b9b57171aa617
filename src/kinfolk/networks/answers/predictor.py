"""What fitted Bayes nets say about rows and variables, with numpy alone; estimators answer through it too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.answers.archive import FittedNets, read
from kinfolk.networks.answers.by_task import Part, encode_part, is_by_task, read_parts, states_of
from kinfolk.networks.model.elimination import log_probability
from kinfolk.networks.model.network import Codes, Network
from kinfolk.posterior import Archive
from kinfolk.predictor import Predictor
from kinfolk.tasks.answering import encode_rows, receive_names, receive_rows
from kinfolk.tasks.schema import rows_of_tasks
from kinfolk.tasks.table import Table, is_missing

# Most combinations of states that one question may have.
MOST_COMBINATIONS = 1 << 20
# The code of a value that no row of training had; that of a missing one is −1.
_NEVER_SEEN = -2


class Posterior(NamedTuple):
    """The joint distribution of some variables, given what was known of others.

    ``probabilities`` has an axis for each of ``variables``, in order, along which its ``states`` stand; all sum to one.
    """

    variables: tuple[str, ...]
    states: tuple[tuple[Any, ...], ...]
    probabilities: NDArray[np.float64]

    def marginal(self, variable: str) -> dict[Any, float]:
        """Probability of each state of one of the variables."""
        axis = self.variables.index(variable)
        others = tuple(i for i in range(len(self.variables)) if i != axis)
        return dict(zip(self.states[axis], self.probabilities.sum(axis=others).tolist(), strict=True))

    def most_probable(self) -> dict[str, Any]:
        """The most probable states of all variables together, the first of equals."""
        at = np.unravel_index(int(np.argmax(self.probabilities)), self.probabilities.shape)
        return {name: its[i] for name, its, i in zip(self.variables, self.states, at, strict=True)}


class NetworksPredictor(Predictor):
    """Fitted Bayes nets, of an estimator or of a file; made by :func:`kinfolk.load`.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    networks_ : dict
        A :class:`~kinfolk.networks.model.network.Network` for each task.
    feature_names_in_ : list of str
        Variables of all tasks, in order, the task column left out.
    """

    def __init__(self, model: FittedNets) -> None:
        self.known, self._schema, self.tasks_ = model.known, model.schema, model.known.tasks
        self.networks_: dict[Any, Network] = dict(zip(model.known.tasks.tolist(), model.fitted.networks, strict=True))
        self.feature_names_in_ = model.schema.names

    @classmethod
    def from_archive(cls, archive: Archive) -> NetworksPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        return cls(read(archive))

    def score_samples(self, X: Any, *, task: Any = None) -> Any:
        """Natural log of the probability of each row under its task's network, as by ``BayesNets.score_samples``.

        Of one table for all tasks, columns that no network has are left aside.
        """
        if is_by_task(X):
            return {
                name: self._log_probability(self._mark_never_seen(codes, *part), task)
                for name, task, part, codes, _ in self._parts(X)
            }
        codes, place = self._encode(X, task)
        return self._by_place(self._log_probability, codes, place)

    def score(self, X: Any, y: None = None, *, task: Any = None) -> float:
        """Mean of :meth:`score_samples`, over all rows."""
        scores = self.score_samples(X, task=task)
        return float(np.mean(np.concatenate(list(scores.values())) if isinstance(scores, dict) else scores))

    def query(
        self, variables: str | Sequence[str], evidence: Mapping[str, Any] | None = None, *, task: Any = None
    ) -> Posterior:
        """The joint distribution of some variables given the values of others, as by ``BayesNets.query``."""
        asked = (variables,) if isinstance(variables, str) else tuple(variables)
        names, evidence = self._schema.names, {} if evidence is None else evidence
        for name in (*asked, *evidence):
            if name not in names:
                raise ValueError(f"{name!r} is not a variable; the variables are {', '.join(names)}")
        twice = [name for name in asked if asked.count(name) > 1 or name in evidence]
        if twice or not asked:
            raise ValueError(f"variables={list(asked)!r}: each once, and none of the evidence, is needed")
        columns = [self._schema.columns[names.index(name)] for name in asked]
        states = tuple(states_of(column) for column in columns)
        shape = tuple(len(its) for its in states)
        if math.prod(shape) > MOST_COMBINATIONS:
            raise ValueError(f"variables have {math.prod(shape):,} combinations: at most {MOST_COMBINATIONS:,} fit")
        codes = np.full((math.prod(shape), len(names)), -1, dtype=np.int32)
        for name, value in evidence.items():
            column = self._schema.columns[names.index(name)]
            (code,) = column.encode(np.array([value], dtype=object))
            if code < 0:
                known = ", ".join(map(str, states_of(column)))
                raise ValueError(f"evidence: {value!r} is not a value of {name!r}; {known} are")
            codes[:, names.index(name)] = code
        for axis, name in enumerate(asked):
            codes[:, names.index(name)] = np.indices(shape)[axis].ravel()
        if task is None:
            self.network(None)  # an error where there are several
            task = next(iter(self.networks_))
        (task,) = receive_names([task], [1], self.known)
        own = self.networks_[task].variables if task in self.networks_ else names
        for name in (*asked, *evidence):
            if name not in own:
                raise ValueError(f"task {task!r} has no variable {name!r}")
        scores = self._log_probability(codes, task)
        if scores.max() == -np.inf:
            raise ValueError(f"evidence={dict(evidence)!r} has probability zero under the network")
        weights = np.exp(scores - scores.max())
        return Posterior(asked, states, (weights / weights.sum()).reshape(shape))

    def impute(self, X: Any, *, task: Any = None) -> Any:
        """States of all variables, each missing one the most probable given its row, as by ``BayesNets.impute``.

        A dict of lists by variable, bins by name; a dict of these by task where a mapping was given.
        """
        if is_by_task(X):
            return {
                name: self._states(self._most_probable(codes, task, here), np.flatnonzero(here))
                for name, task, _, codes, here in self._parts(X)
            }
        codes, place = self._encode(X, task, never_seen=-1)
        everything = np.arange(codes.shape[1])
        return self._states(self._by_place(self._most_probable, codes, place), everything)

    def sample(self, n_rows: int = 1, *, task: Any = None, random_state: Any = None) -> dict[str, list[Any]]:
        """Draw rows of one task's network: a dict of lists of states by variable, bins by name."""
        network = self.network(task)
        codes = network.sample(n_rows, np.random.default_rng(random_state))
        return {
            name: [states[code] for code in codes[:, v].tolist()]
            for v, (name, states) in enumerate(zip(network.variables, network.states, strict=True))
        }

    def network(self, task: Any = None) -> Network:
        """The network of one task, which may be left out where there is only one."""
        if task is None and len(self.networks_) == 1:
            return next(iter(self.networks_.values()))
        if task not in self.networks_:
            raise ValueError(f"task={task!r}: one of the tasks {list(self.networks_)} is needed")
        return self.networks_[task]

    def _parts(self, X: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Part, Codes, NDArray[np.bool_]]]:
        """Tables by task: the task as it came and as the model writes it, the table, codes, and variables it has."""
        parts = read_parts(X, self._schema)
        tasks = receive_names(list(parts), [part.table.n_rows for part in parts.values()], self.known)
        for (name, part), task in zip(parts.items(), tasks, strict=True):
            yield name, task, part, *encode_part(part, self._schema)

    def _encode(self, X: Any, task: Any, never_seen: int = _NEVER_SEEN) -> tuple[Codes, NDArray[np.int64]]:
        asked = receive_rows(X, self.known, task=task)
        assert asked.place is not None
        codes = encode_rows(asked.table, self._schema)
        if never_seen == _NEVER_SEEN:
            codes = self._mark_never_seen(codes, asked.table, self._schema.names)
        return codes, asked.place

    def _mark_never_seen(self, codes: Codes, table: Table, names: list[str]) -> Codes:
        for i, name in enumerate(names):
            v = self._schema.names.index(name)
            unknown = np.flatnonzero(codes[:, v] < 0)
            if len(unknown):
                codes[unknown, v] = np.where(is_missing(table.values(i)[unknown]), -1, _NEVER_SEEN)
        return codes

    def _by_place(self, answer: Any, codes: Codes, place: NDArray[np.int64]) -> Any:
        """Answer of coded rows, each under the network of its task's place; that of one never seen is last."""
        known, out = list(self.networks_), None
        for t, rows in enumerate(rows_of_tasks(place, len(known) + 1)):
            if len(rows) or (out is None and t == len(known)):
                its = answer(codes[rows], known[t] if t < len(known) else None)
                out = np.empty((len(codes), *its.shape[1:]), dtype=its.dtype) if out is None else out
                out[rows] = its
        return out

    def _log_probability(self, codes: Codes, task: Any) -> NDArray[np.float64]:
        """Log probability of coded rows of one task; a new one is like one of those known, each as likely."""
        networks = [self.networks_[task]] if task in self.networks_ else self._whole_networks(task)
        place = {name: v for v, name in enumerate(self._schema.names)}
        scores = [
            _with_never_seen(network, codes[:, [place[name] for name in network.variables]]) for network in networks
        ]
        return scores[0] if len(scores) == 1 else np.logaddexp.reduce(scores, axis=0) - math.log(len(scores))

    def _whole_networks(self, task: Any) -> list[Network]:
        whole = [one for one in self.networks_.values() if len(one.variables) == len(self._schema.names)]
        if not whole:
            new = "a task" if task is None else f"task {task!r}"
            raise ValueError(f"{new} is new, and no known task has all variables: nothing can be said of it")
        return whole

    def _most_probable(self, codes: Codes, task: Any, here: NDArray[np.bool_] | None = None) -> Codes:
        """Codes with those below zero replaced, of variables that the task has."""
        filled = codes.copy()
        own = self.networks_[task].variables if task in self.networks_ else self._schema.names
        for v, (name, card) in enumerate(zip(self._schema.names, self._schema.n_values.tolist(), strict=True)):
            rows = np.flatnonzero(codes[:, v] < 0)
            if not len(rows) or name not in own or not (here is None or here[v]):
                continue
            each = np.repeat(codes[rows], card, axis=0)
            each[:, v] = np.tile(np.arange(card), len(rows))
            filled[rows, v] = self._log_probability(each, task).reshape(-1, card).argmax(axis=1)
        return filled

    def _states(self, codes: Codes, variables: NDArray[np.int64]) -> dict[str, list[Any]]:
        columns = {}
        for v in variables.tolist():
            states = [*states_of(self._schema.columns[v]), None]
            columns[self._schema.names[v]] = [states[code] for code in codes[:, v].tolist()]
        return columns


def _with_never_seen(network: Network, codes: Codes) -> NDArray[np.float64]:
    """Log probability of rows; what was never seen is as unlikely, in each table, as the least likely known state.

    For rows with the same variables never seen, these have one state, with the smallest probability of all in every
    table that they enter. Each row is then at most as likely as with any known states in their place.
    """
    never = codes == _NEVER_SEEN
    if not never.any():
        return log_probability(network, codes)
    scores = np.empty(len(codes))
    patterns, which = np.unique(never, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows, own = np.flatnonzero(which.reshape(-1) == number), codes[which.reshape(-1) == number]
        tables = []
        for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
            axes = tuple(axis for axis, u in enumerate((*parents, v)) if pattern[u])
            tables.append(table.min(axis=axes, keepdims=True) if axes else table)
        states = tuple((None,) if new else its for its, new in zip(network.states, pattern, strict=True))
        own[:, pattern] = 0
        scores[rows] = log_probability(network._replace(states=states, tables=tuple(tables)), own)
    return scores


class MultinetPredictor(Predictor):
    """A fitted classifier with a network for each class, of an estimator or of a file.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    networks_ : dict
        A :class:`~kinfolk.networks.model.network.Network` for each label.
    feature_names_in_ : list of str
        Variables, in order.
    """

    def __init__(self, model: FittedNets, class_log_prior: NDArray[np.float64]) -> None:
        nets = NetworksPredictor(model)
        self.known, self._schema, self._class_log_prior = nets.known, model.schema, class_log_prior
        self.classes_, self.networks_, self.feature_names_in_ = nets.tasks_, nets.networks_, nets.feature_names_in_

    @classmethod
    def from_archive(cls, archive: Archive) -> MultinetPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        model = read(archive)
        return cls(model, archive.array("class_log_prior", "f", (len(model.known.tasks),)))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log probability of each label (rows, classes)."""
        joint = self.log_joint(self.codes(X))
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def codes(self, X: Any) -> Codes:
        """Codes of rows over all variables, −1 where a value is missing or was never seen."""
        return encode_rows(receive_rows(X, self.known, needs_task=False).table, self._schema)

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
