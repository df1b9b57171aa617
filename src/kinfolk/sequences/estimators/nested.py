"""NestedIHMM, the nDP-iHMM: infinite hidden Markov models of tasks, shared among kin (Ni et al. 2007)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.partition.crp import canonical
from kinfolk.sequences.estimators.base import SequenceModel
from kinfolk.tasks.table import as_column, is_missing

STARTS = ("agglomerate", "together", "apart")


class NestedIHMM(SequenceModel):
    """Hidden Markov models of many tasks; which tasks share hidden states, and how many there are, is inferred.

    Tasks of a cluster have the same hidden states, with the same emissions; every task has its own transitions, which
    are drawn towards those of its cluster. The numbers of clusters and of states are inferred: ``n_clusters`` and
    ``n_states`` are only upper bounds (the weak limit of the nested Dirichlet process).

    Parameters
    ----------
    n_states : int, default=20
        The most hidden states that a cluster may have.
    n_clusters : int, default=20
        The most clusters that there may be.
    emission : str or list of str, default="auto"
        What a state shows, for all columns or for each: "categorical" (symbols), "poisson" (counts), "bernoulli"
        (columns of 0 and 1, or booleans), "gaussian" (independent columns), "student-t" (the same, with outliers),
        "gaussian-full" (columns together) or "ar" (columns together, around a linear function of the step before;
        "ar-2" and so on of more steps). "auto" takes text, booleans, categoricals, and whole numbers with at most 64
        values as categorical, other numbers as Gaussian. Missing values are left out; "gaussian-full" leaves out a step
        with one of them, "ar" also the steps that look back at it and the first of each sequence. With "student-t"
        Gibbs sampling moves tasks between clusters one by one, without the moves that split and merge clusters.
    symbols : list, or mapping from columns to lists, optional
        All symbols that there are, where training data may not have each. By default those of a frame's categorical
        column, or else those seen; one that was not seen has a probability from the prior, whatever it is.
    emission_strength : float or "learn", default="learn"
        Weight of the emissions' prior: the pseudo-count of every symbol, or how many observations the prior of numbers
        counts for. It decides, more than any other, whether tasks share.
    concentration : float or "learn", default="learn"
        Readiness to start new clusters (η).
    state_concentration : float or "learn", default="learn"
        Readiness to use new states (γ).
    transition_concentration : float or "learn", default="learn"
        How close a task's transitions are to those of its cluster (α).
    stickiness : float or "learn", default=0
        Bias of states to stay (κ).
    inference : {"gibbs", "variational"}, default="gibbs"
        Gibbs sampling, or a variational approximation, for large data.
    start : {"agglomerate", "together", "apart"}, or a cluster for each task, default="agglomerate"
        Where chains start. Agglomeration joins tasks by variational evidence, of more than 100 tasks those of a few
        that the others are put to. Clusters are given as a mapping from tasks, or in the order of the sorted tasks.
    n_chains, n_burn_in, n_draws, thin : int, default=8, 100, 50, 1
        Chains of the sampler; sweeps thrown away, draws of each, and sweeps for a draw. Splits and merges of clusters
        learn from the sweeps that are thrown away: without any, clusters are found less often.
    task_column, sequence_column : str or int, optional
        Columns of a long table that hold the task and the sequence of each row, instead of ``task`` and ``lengths``.
        Sequences are told apart within a task; without a ``sequence_column``, all rows of a task are one. Rows of a
        sequence follow each other, in its order, unless there is an ``order_column``.
    order_column : str or int, optional
        Column of a long table that tells the order of a sequence's rows: numbers, dates or text. Rows may then stand
        anywhere in the table; answers about steps are in the order of the table.
    new_tasks : {"warn", "expected"}, default="warn"
        Whether to warn where most sequences to be answered are of tasks never seen (:class:`~kinfolk.UnseenWarning`).
    random_state : int, RandomState or None
    n_jobs : int or None
        Processes over chains, or threads over the tasks of a lone one, and over draws in prediction; results do not
        depend on it.
    verbose : bool, optional
        Show progress on standard error; by default on a terminal, once it takes more than a second.
    checkpoint : path, optional
        A folder in which sampling, or variational inference, keeps how far it got: a fit that was killed and is started
        again, with the same data, parameters and ``random_state``, goes on there and ends as if nothing had happened.
        The folder may hold checkpoints of any number of fits, and may be deleted after them.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks, sorted.
    partition_, similarity_ : ndarrays
        Cluster of each task, and the posterior probability that two share.
    n_states_ : ndarray of shape (n_tasks, n_states + 1)
        Posterior probability that a task uses 0, 1, … states.
    n_clusters_ : ndarray
        Posterior probability that there are 0, 1, … clusters.
    log_joint_ : ndarray of shape (n_chains, n_draws)
    convergence_, converged_
        R-hat and effective sample sizes of the log joint, of the number of clusters, and of how well chains predict
        training sequences that are left out of what they counted; and whether they suffice.
    posterior_ : Fitted
        Draws and traces of the chains.
    emission_ : Emission
        Families of the channels, with their priors.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early; what is here is then made of the draws so far.

    References
    ----------
    K. Ni, L. Carin and D. Dunson, "Multi-Task Learning for Sequential Data via iHMMs and the Nested Dirichlet Process",
    ICML 2007.

    Examples
    --------
    >>> from kinfolk import NestedIHMM
    >>> slow, quick = ["a"] * 10 + ["b"] * 10, ["c", "d"] * 10
    >>> model = NestedIHMM(n_states=4, n_clusters=3, n_chains=2, n_burn_in=20, n_draws=20, random_state=0)
    >>> X, lengths = 6 * slow + 6 * quick, [20] * 12
    >>> model = model.fit(X, lengths, task=["ann", "bob", "cid"] * 2 + ["dot", "eve", "fay"] * 2)
    >>> dict(zip(model.tasks_.tolist(), model.partition_.tolist()))
    {'ann': 0, 'bob': 0, 'cid': 0, 'dot': 1, 'eve': 1, 'fay': 1}
    >>> model.tasks_[model.classify(quick)[0] > 0.1].tolist()
    ['dot', 'eve', 'fay']
    """

    def __init__(
        self,
        n_states: int = 20,
        n_clusters: int = 20,
        *,
        emission: Any = "auto",
        symbols: Any = None,
        emission_strength: float | str = "learn",
        concentration: float | str = "learn",
        state_concentration: float | str = "learn",
        transition_concentration: float | str = "learn",
        stickiness: float | str = 0.0,
        inference: str = "gibbs",
        start: Any = "agglomerate",
        n_chains: int = 8,
        n_burn_in: int = 100,
        n_draws: int = 50,
        thin: int = 1,
        task_column: str | int | None = None,
        sequence_column: str | int | None = None,
        order_column: str | int | None = None,
        new_tasks: str = "warn",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_states = n_states
        self.n_clusters = n_clusters
        self.emission = emission
        self.symbols = symbols
        self.emission_strength = emission_strength
        self.concentration = concentration
        self.state_concentration = state_concentration
        self.transition_concentration = transition_concentration
        self.stickiness = stickiness
        self.inference = inference
        self.start = start
        self.n_chains = n_chains
        self.n_burn_in = n_burn_in
        self.n_draws = n_draws
        self.thin = thin
        self.task_column = task_column
        self.sequence_column = sequence_column
        self.order_column = order_column
        self.new_tasks = new_tasks
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _n_clusters(self) -> int | None:
        return int(self.n_clusters)

    def _starting_partition(self, tasks: NDArray[Any]) -> NDArray[np.int64] | None:
        return starting_partition(self.start, tasks, int(self.n_clusters))


def starting_partition(start: Any, tasks: NDArray[Any], n_clusters: int) -> NDArray[np.int64] | None:
    """The cluster of each task at the start; None where it is to be found by agglomeration.

    Examples
    --------
    >>> starting_partition({"ann": 1, "bob": 2, "eve": 1}, np.array(["ann", "bob", "eve"]), 20).tolist()
    [0, 1, 0]
    """
    n_tasks = len(tasks)
    if isinstance(start, str):
        if start not in STARTS:
            known = ", ".join(f'"{way}"' for way in STARTS)
            raise ValueError(f"start={start!r}: give {known}, or a cluster for each task")
        if start == "apart":
            if n_tasks > n_clusters:
                warnings.warn(
                    f'start="apart": {n_tasks} tasks are more than n_clusters={n_clusters}, so some begin together',
                    UserWarning,
                    stacklevel=2,
                )
            return np.arange(n_tasks) % n_clusters
        if start == "together" or n_tasks == 1:
            return np.zeros(n_tasks, dtype=np.int64)
        return None
    if isinstance(start, Mapping):
        without = [task for task in tasks.tolist() if task not in start]
        if without:
            raise ValueError(f"start has no cluster for task {without[0]!r}: every task needs one")
        start = [start[task] for task in tasks.tolist()]
    if not hasattr(start, "__len__"):
        raise ValueError(f"start={start!r}: give one of {', '.join(map(repr, STARTS))}, or a cluster for each task")
    labels = as_column(start, "start")
    if len(labels) != n_tasks:
        raise ValueError(f"start has {len(labels)} clusters for {n_tasks} tasks: one for each, as sorted, is needed")
    if is_missing(labels).any():
        raise ValueError(f"start has no cluster for task {tasks.tolist()[int(np.argmax(is_missing(labels)))]!r}")
    place = {label: code for code, label in enumerate(dict.fromkeys(labels.tolist()))}
    partition = canonical(np.array([place[label] for label in labels.tolist()], dtype=np.int64))
    if partition.max() >= n_clusters:
        raise ValueError(f"start has {partition.max() + 1} clusters, and n_clusters={n_clusters} has no room for them")
    return partition
