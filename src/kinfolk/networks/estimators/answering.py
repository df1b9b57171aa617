"""What can be asked of fitted Bayes nets: how likely rows are, new rows, graphs, and files for other programs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.networks.answers.bif import read_bif, write_bif
from kinfolk.networks.answers.pgmpy_model import to_pgmpy
from kinfolk.networks.answers.predictor import NetworksPredictor
from kinfolk.networks.model.network import Network
from kinfolk.parameters import check_whole
from kinfolk.tasks.answering import Known
from kinfolk.tasks.columns import ONE_TASK, as_ids
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.schema import Column, Schema
from kinfolk.tasks.table import Backend

if TYPE_CHECKING:
    import networkx as nx


class Answers:
    """Mixin of an estimator that has learnt ``networks_``, a network for each of ``tasks_``."""

    networks_: dict[Any, Network]
    tasks_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    task_column: str | int | None
    new_tasks: str
    _schema: Schema
    _backend: Backend
    _seed: int
    log_score_: float
    strength_: float
    penalty_: float

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

        See Also
        --------
        score : The mean over all rows.
        """
        return self._predictor().score_samples(X, task=task)

    def _predictor(self) -> NetworksPredictor:
        """The object that answers, which is what :func:`kinfolk.load` gives."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        columns = None if names is None else tuple(names)
        known = Known(type(self).__name__, columns, self.n_features_in_, self.task_column, self.tasks_, self.new_tasks)
        return NetworksPredictor(known, self._schema, self.networks_)

    def score(self, X: Any, y: None = None, *, task: Any = None) -> float:
        """Mean of :meth:`score_samples`, over all rows.

        Parameters
        ----------
        X : frame or array, or mapping from tasks to these
        y : None
            Not used.
        task : array-like of shape (n_rows,), optional

        Returns
        -------
        float

        See Also
        --------
        score_samples : The same of each row.
        """
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
        check_whole("n_rows", n_rows, 1)
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

    @classmethod
    def from_bif(cls, paths: Any, **parameters: Any) -> Self:
        """Build a fitted estimator from BIF files.

        Parameters
        ----------
        paths : path, or mapping from tasks to paths
            A variable that several files have must have the same states in all of them.
        **parameters
            Of the estimator.

        Returns
        -------
        estimator
        """
        if not isinstance(paths, Mapping):
            paths = {ONE_TASK: paths}
        networks = {name: read_bif(path) for name, path in paths.items()}
        states: dict[str, tuple[Any, ...]] = {}
        for name, network in networks.items():
            for variable, its in zip(network.variables, network.states, strict=True):
                if states.setdefault(variable, its) != its:
                    raise ValueError(
                        f"task {name!r}: variable {variable!r} has the states {list(its)}, in another file "
                        f"{list(states[variable])}; they must be the same"
                    )
        model = cls(**parameters)
        model.networks_ = networks
        model.tasks_ = as_ids(list(networks))
        model._schema = Schema(tuple(Column(variable, its, None) for variable, its in states.items()))
        model._backend, model._seed = "polars", 0
        # Nothing was learnt: neither has a value.
        model.log_score_ = model.strength_ = model.penalty_ = math.nan
        model.n_features_in_, model.feature_names_in_ = len(states), np.array(list(states), dtype=object)
        return model

    def to_pgmpy(self, *, task: Any = None) -> Any:
        """One task's network as a pgmpy model; pgmpy must be installed."""
        return to_pgmpy(self._network(task))
