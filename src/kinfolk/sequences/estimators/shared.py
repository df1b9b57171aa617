"""SharedIHMM, the DP-iHMM: one hidden Markov model whose states all tasks share (Ni et al. 2007, section 4.2)."""

from __future__ import annotations

from os import PathLike
from typing import Any

from kinfolk.sequences.estimators.base import SequenceModel


class SharedIHMM(SequenceModel):
    """Hidden Markov models of the sequences of many tasks, all of which have the same hidden states.

    This is :class:`~kinfolk.NestedIHMM` with a single cluster: states and what they emit are common to all tasks, and
    every task has its own transitions. The number of states is inferred.

    Parameters
    ----------
    n_states : int, default=20
        The most hidden states that there may be.
    emission, symbols, emission_strength, state_concentration, transition_concentration, stickiness, inference
        As in :class:`~kinfolk.NestedIHMM`.
    n_chains, n_burn_in, n_draws, thin, task_column, sequence_column, order_column, new_tasks, random_state
        As in :class:`~kinfolk.NestedIHMM`.
    n_jobs, verbose
        As in :class:`~kinfolk.NestedIHMM`.
    checkpoint : path, optional
        As in :class:`~kinfolk.NestedIHMM`.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks, sorted.
    partition_, similarity_ : ndarrays
        All tasks in one cluster.
    n_states_, n_clusters_, log_joint_, convergence_, converged_, interrupted_, posterior_, emission_
        As in :class:`~kinfolk.NestedIHMM`.

    References
    ----------
    K. Ni, L. Carin and D. Dunson, "Multi-Task Learning for Sequential Data via iHMMs and the Nested Dirichlet Process",
    ICML 2007, section 4.2.
    Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, "Hierarchical Dirichlet Processes", JASA 101, 2006.

    Examples
    --------
    >>> from kinfolk import SharedIHMM
    >>> model = SharedIHMM(n_states=4, n_chains=2, n_burn_in=20, n_draws=20, random_state=0)
    >>> model = model.fit(["a", "b"] * 30, [20, 20, 20], task=["ann", "ann", "bob"])
    >>> forecast = model.forecast(["a", "b", "a"], task=["bob"])
    >>> bool(forecast.probability[0]["b"] > 0.9)
    True
    """

    def __init__(
        self,
        n_states: int = 20,
        *,
        emission: Any = "auto",
        symbols: Any = None,
        emission_strength: float | str = "learn",
        state_concentration: float | str = "learn",
        transition_concentration: float | str = "learn",
        stickiness: float | str = 0.0,
        inference: str = "gibbs",
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
        self.emission = emission
        self.symbols = symbols
        self.emission_strength = emission_strength
        self.state_concentration = state_concentration
        self.transition_concentration = transition_concentration
        self.stickiness = stickiness
        self.inference = inference
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
        return 1
