"""What can be asked of fitted Bayes nets: how likely rows are, new rows, graphs, and files for other programs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kinfolk.networks.bif import write_bif
from kinfolk.networks.elimination import log_probability
from kinfolk.networks.network import Network
from kinfolk.networks.pgmpy_model import to_pgmpy
from kinfolk.networks.tables import by_task, encode_part
from kinfolk.tasks.door import receive
from kinfolk.tasks.frames import Backend, make_frame
from kinfolk.tasks.schema import Schema, encode
from kinfolk.tasks.table import read_table

if TYPE_CHECKING:
    import networkx as nx


class Answers:
    """Mixin of an estimator that has learnt ``networks_``, a network for each of ``tasks_``."""

    networks_: dict[Any, Network]
    tasks_: NDArray[Any]
    feature_names_in_: NDArray[Any]
    task_column: str | int | None
    _schema: Schema
    _backend: Backend

    @property
    def graphs_(self) -> dict[Any, nx.DiGraph]:
        """Structure of every task."""
        check_is_fitted(self)
        return {name: network.graph() for name, network in self.networks_.items()}

    def score_samples(self, X: Any, *, task: Any = None) -> Any:
        """Natural log of the probability of each row under its task's network.

        A missing value, or one never seen in training, is summed out. A task never seen is like one of the known ones,
        each as likely.

        Parameters
        ----------
        X : frame or array, or mapping from tasks to these
        task : array-like of shape (n_rows,), optional

        Returns
        -------
        ndarray of shape (n_rows,), or a dict of them by task where a mapping was given
        """
        check_is_fitted(self)
        if by_task(X):
            place = {name: v for v, name in enumerate(self._schema.names)}
            answers = {}
            for name, table in X.items():
                read = read_table(table)
                unknown = [column for column in (read.names or map(str, read.places)) if column not in place]
                if unknown:
                    raise ValueError(f"task {name!r}: column {unknown[0]!r} was not there in training")
                codes, _ = encode_part(read, place, self._schema)
                answers[name] = self._log_probability(codes, name)
            return answers
        self._check_columns(X)
        table, given = receive(X, task, self.task_column)
        if given is None and len(self.tasks_) > 1:
            raise ValueError("the model knows several tasks: say with task= which one each row belongs to")
        codes = self._schema.encode(table)
        if given is None:
            return self._log_probability(codes, self.tasks_.tolist()[0])
        known = self.tasks_.tolist()
        of_row = encode(given, known)
        scores = np.empty(table.n_rows)
        for t in np.unique(of_row):
            its = of_row == t
            scores[its] = self._log_probability(codes[its], known[t] if t >= 0 else None)
        return scores

    def _check_columns(self, X: Any) -> None:
        if not isinstance(X, Mapping):
            validate_data(self, X, skip_check_array=True, reset=False)
        elif list(X) != list(self.feature_names_in_):
            raise ValueError(f"the columns should be {list(self.feature_names_in_)}, as in fit, not {list(X)}")

    def _log_probability(self, codes: NDArray[np.int32], name: Any) -> NDArray[np.float64]:
        names = self._schema.names

        def under(network: Network) -> NDArray[np.float64]:
            return log_probability(network, codes[:, [names.index(variable) for variable in network.variables]])

        if name in self.networks_:
            return under(self.networks_[name])
        whole = [network for network in self.networks_.values() if len(network.variables) == len(names)]
        if not whole:
            raise ValueError(f"task {name!r} is new, and no known task has all variables: nothing can be said of it")
        return np.asarray(np.logaddexp.reduce([under(network) for network in whole], axis=0) - math.log(len(whole)))

    def score(self, X: Any, y: None = None, *, task: Any = None) -> float:
        """Mean of :meth:`score_samples`, over all rows."""
        scores = self.score_samples(X, task=task)
        return float(np.mean(np.concatenate(list(scores.values())) if isinstance(scores, dict) else scores))

    def sample(self, n_rows: int = 1, *, task: Any = None, random_state: Any = None) -> Any:
        """Draw rows of one task's network as a frame of its variables' states.

        Parameters
        ----------
        n_rows : int
        task : optional
            May be left out where there is only one.
        random_state : int, RandomState or None
        """
        network = self._network(task)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        codes = network.sample(n_rows, np.random.default_rng(seed))
        columns = {
            name: [states[code] for code in codes[:, v].tolist()]
            for v, (name, states) in enumerate(zip(network.variables, network.states, strict=True))
        }
        return make_frame(columns, self._backend)

    def _network(self, task: Any) -> Network:
        check_is_fitted(self)
        if task is None and len(self.networks_) == 1:
            return next(iter(self.networks_.values()))
        if task not in self.networks_:
            raise ValueError(f"task={task!r}: one of the tasks {list(self.networks_)} is needed")
        return self.networks_[task]

    def to_bif(self, path: str | os.PathLike[str], *, task: Any = None, quote: bool = False) -> None:
        """Write one task's network to a BIF file, gzipped where its name ends in ``.gz``.

        Parameters
        ----------
        path : str or path
        task : optional
            May be left out where there is only one.
        quote : bool, default=False
            Whether names that hold blanks or commas are put in quotes, which not every program reads.
        """
        write_bif(self._network(task), path, quote=quote)

    def to_pgmpy(self, *, task: Any = None) -> Any:
        """One task's network as a pgmpy model; pgmpy must be installed."""
        return to_pgmpy(self._network(task))
