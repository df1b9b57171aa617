"""What can be asked of fitted Bayes nets: how likely rows are, variables given others, new rows, graphs, files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.networks.answers.archive import FittedNets
from kinfolk.networks.answers.bif import read_bif, write_bif
from kinfolk.networks.answers.by_task import is_by_task
from kinfolk.networks.answers.pgmpy_model import to_pgmpy
from kinfolk.networks.answers.predictor import NetworksPredictor, Posterior
from kinfolk.networks.model.fitted import Fitted
from kinfolk.networks.model.network import Network
from kinfolk.parameters import check_whole
from kinfolk.tasks.answering import Known
from kinfolk.tasks.columns import ONE_TASK, as_ids
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.schema import Column, Schema

if TYPE_CHECKING:
    import networkx as nx


class Answers:
    """Mixin of an estimator that has learnt ``networks_``, a network for each of ``tasks_``; a predictor answers."""

    networks_: dict[Any, Network]
    task_column: str | int | None
    new_tasks: str
    _model: FittedNets
    _answers: NetworksPredictor

    def _keep(self, model: FittedNets) -> None:
        """Remember what was learnt."""
        raise NotImplementedError  # abstract

    def _predictor(self) -> NetworksPredictor:
        """The object that answers, which is what :func:`kinfolk.load` gives."""
        check_is_fitted(self)
        return self._answers

    @property
    def graphs_(self) -> dict[Any, nx.DiGraph]:
        """Structure of every task."""
        check_is_fitted(self)
        return {name: network.graph() for name, network in self.networks_.items()}

    def score_samples(self, X: Any, *, task: Any = None) -> Any:
        """Natural log of the probability of each row under its task's network.

        A missing value is summed out. A value never seen in training counts, in every table that it enters, with the
        smallest probability that the table has for a known one: it never makes a row more likely. A task never seen is
        like one of the known ones, each as likely.

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
        query : The distribution of some variables given others.
        """
        return self._predictor().score_samples(X, task=task)

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
        return self._predictor().score(X, task=task)

    def query(
        self, variables: str | Sequence[str], evidence: Mapping[str, Any] | None = None, *, task: Any = None
    ) -> Posterior:
        """The joint distribution of some variables given the values of others, by variable elimination.

        Parameters
        ----------
        variables : str or sequence of str
            What is asked about.
        evidence : mapping, optional
            Values of other variables, as they stand in tables; a number for a variable that was cut into bins.
        task : optional
            May be left out where there is only one. A task never seen is like one of the known ones, each as likely.

        Returns
        -------
        Posterior
            ``probabilities`` has an axis for each variable, along which its ``states`` stand; ``marginal(variable)``
            gives them by state, ``most_probable()`` the best states of all together.

        See Also
        --------
        impute : The same question of every missing value of a table.

        Examples
        --------
        >>> import kinfolk
        >>> rows = {"rain": ["no"] * 60 + ["yes"] * 40, "wet": ["no"] * 55 + ["yes"] * 5 + ["no"] * 4 + ["yes"] * 36}
        >>> model = kinfolk.BayesNets().fit(rows)
        >>> {state: round(p, 1) for state, p in model.query("rain", {"wet": "yes"}).marginal("rain").items()}
        {'no': 0.1, 'yes': 0.9}
        """
        return self._predictor().query(variables, evidence, task=task)

    def impute(self, X: Any, *, task: Any = None) -> Any:
        """Replace each missing value by its most probable state, given the rest of its row.

        Every missing value is predicted by itself, by variable elimination: it is the state of highest posterior
        probability, the first of equals. A value never seen in training counts as missing.

        Parameters
        ----------
        X : frame or array, or mapping from tasks to these
        task : array-like of shape (n_rows,), optional

        Returns
        -------
        frame, or a dict of frames by task where a mapping was given
            States of all variables, bins by name, as :meth:`sample` gives them.

        See Also
        --------
        query : Probabilities, and those of several variables together.
        """
        filled = self._predictor().impute(X, task=task)
        if is_by_task(X):
            return {name: make_frame(columns, self._model.backend) for name, columns in filled.items()}
        return make_frame(filled, self._model.backend)

    def sample(self, n_rows: int = 1, *, task: Any = None, random_state: Any = None) -> Any:
        """Draw rows of one task's network.

        Parameters
        ----------
        n_rows : int
        task : optional
            May be left out where there is only one.
        random_state : int, RandomState or None

        Returns
        -------
        frame
            States of the network's variables, bins by name.

        See Also
        --------
        score_samples : How likely rows are.
        """
        check_whole("n_rows", n_rows, 1)
        answers = self._predictor()
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        return make_frame(answers.sample(n_rows, task=task, random_state=seed), self._model.backend)

    def to_bif(self, path: str | os.PathLike[str], *, task: Any = None, quote: bool = False) -> None:
        """Write one task's network to a BIF file, gzipped where its name ends in ``.gz``.

        Parameters
        ----------
        path : str or path
        task : optional
            May be left out where there is only one.
        quote : bool, default=False
            Whether names that hold blanks or commas are put in quotes, which not every program reads.

        See Also
        --------
        from_bif : The way back.
        to_pgmpy : The network as a model of pgmpy.
        """
        write_bif(self._predictor().network(task), path, quote=quote)

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

        See Also
        --------
        to_bif : Writes such files.
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
        schema = Schema(tuple(Column(variable, its, None) for variable, its in states.items()))
        tasks = as_ids(list(networks))
        known = Known(cls.__name__, tuple(states), len(states), model.task_column, tasks, model.new_tasks)
        # Nothing was learnt: neither score nor strength has a value.
        model._keep(FittedNets(known, schema, "polars", 0, math.nan, Fitted(tuple(networks.values()), math.nan)))
        return model

    def to_pgmpy(self, *, task: Any = None) -> Any:
        """One task's network as a model of pgmpy, which must be installed.

        Parameters
        ----------
        task : optional
            May be left out where there is only one.

        Returns
        -------
        pgmpy.models.DiscreteBayesianNetwork

        See Also
        --------
        to_bif : A file that other programs read.
        """
        return to_pgmpy(self._predictor().network(task))
