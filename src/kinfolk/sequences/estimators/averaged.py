"""AveragedIHMM: single, shared and nested hidden Markov models, weighed by sequences that they have not seen."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kinfolk.maths.arrays import Floats
from kinfolk.maths.stacking import by_stacking
from kinfolk.parameters import check_whole
from kinfolk.sequences.answers.layout import arrange
from kinfolk.sequences.answers.prediction import log_predictive
from kinfolk.sequences.estimators.base import INFERENCE, SequenceModel
from kinfolk.sequences.inference.options import Options
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.fitted import Fitted, name_of, pooled
from kinfolk.sequences.model.sequences import Sequences

# Chains of a fit to a part of the sequences, and the weight below which a model is left out.
_CHAINS_OF_PARTS = 2
_HARDLY = 0.01


class AveragedIHMM(SequenceModel):
    """Hidden Markov models of the sequences of many tasks, averaged over how much tasks share.

    Three models are fitted: one for each task alone (:class:`~kinfolk.SingleIHMM`), one whose states all tasks share
    (:class:`~kinfolk.SharedIHMM`), and one that infers who shares (:class:`~kinfolk.NestedIHMM`). Sequences are held
    out in parts, and the models are weighted such that their average predicts these best (stacking). You need not know
    beforehand whether tasks are kin.

    Parameters
    ----------
    n_states, n_clusters, emission, symbols, emission_strength
        As in :class:`~kinfolk.NestedIHMM`.
    concentration, state_concentration, transition_concentration, stickiness, inference
        As in :class:`~kinfolk.NestedIHMM`.
    n_folds : int, default=4
        Parts that are held out in turn. Fits to the others have two chains for each model.
    n_chains, n_burn_in, n_draws, thin, task_column, sequence_column, order_column, new_tasks, random_state
        As in :class:`~kinfolk.NestedIHMM`; chains are those of each model.
    n_jobs, verbose
        As in :class:`~kinfolk.NestedIHMM`.
    checkpoint : path, optional
        As in :class:`~kinfolk.NestedIHMM`.

    Attributes
    ----------
    weights_ : dict
        How much each model is believed; the weights add up to one. A model below 0.01 is left out.
    tasks_ : ndarray
        Ids of the tasks, sorted.
    partition_, similarity_ : ndarrays
        Cluster of each task, and the probability that two share, averaged over models.
    n_states_, log_joint_, convergence_, converged_, posterior_, emission_
        As in :class:`~kinfolk.NestedIHMM`; chains of all models, one model after the other.

    Notes
    -----
    ``predict`` and ``predict_proba`` tell the states of the model that is believed most: states of different models
    have nothing to do with each other.

    Sequences are held out of tasks that have others; where no task has two, whole tasks are.

    References
    ----------
    Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using Stacking to Average Bayesian Predictive Distributions",
    Bayesian Analysis 13, 2018.

    Examples
    --------
    >>> from kinfolk import AveragedIHMM
    >>> slow, quick = ["a"] * 10 + ["b"] * 10, ["c", "d"] * 10
    >>> model = AveragedIHMM(n_states=4, n_clusters=3, n_chains=1, n_burn_in=10, n_draws=10, n_folds=2, random_state=0)
    >>> X, lengths = 4 * slow + 4 * quick, [20] * 8
    >>> model = model.fit(X, lengths, task=["ann", "bob"] * 2 + ["cid", "dot"] * 2)
    >>> list(model.weights_)
    ['single', 'shared', 'nested']
    >>> model.score(slow, task=["ann"]) > model.score(slow, task=["cid"])
    True
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
        n_folds: int = 4,
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
        self.n_folds = n_folds
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

    @property
    def weights_(self) -> dict[str, float]:
        """How much each model is believed, by name."""
        check_is_fitted(self)
        fitted = self.posterior_
        assert fitted.rooms is not None
        assert fitted.chain_weights is not None
        weights = {name_of(room): 0.0 for room in self._rooms(len(self.tasks_))}
        for room, weight in zip(fitted.rooms, fitted.chain_weights.tolist(), strict=True):
            weights[name_of(room)] += weight
        return weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole("n_folds", self.n_folds, 2)

    def _n_clusters(self) -> int | None:
        return int(self.n_clusters)

    def _rooms(self, n_tasks: int) -> tuple[int | None, ...]:
        """How many clusters each model has room for; those that would be the same are there once."""
        rooms = (None, 1, int(self.n_clusters))
        return rooms[:1] if n_tasks == 1 else rooms[:2] if self.n_clusters == 1 else rooms

    def _infer(
        self, sequences: Sequences, emission: Emission, options: Options, seed: int
    ) -> tuple[HyperParameters, Fitted]:
        rooms = self._rooms(sequences.n_tasks)
        weights = self._weigh(sequences, emission, options, seed, rooms)
        believed = [place for place, weight in enumerate(weights.tolist()) if weight >= _HARDLY]
        parts = [self._infer_one(sequences, emission, options, seed, rooms[place]) for place in believed]
        shares = weights[believed] / weights[believed].sum()
        fitted = pooled(parts, [rooms[place] for place in believed], shares.tolist())
        return fitted.mean_hyper(), fitted

    def _infer_one(
        self, sequences: Sequences, emission: Emission, options: Options, seed: int, room: int | None
    ) -> Fitted:
        """One of the models, as its own estimator fits it; tasks that may share are agglomerated."""
        together = np.zeros(sequences.n_tasks, dtype=np.int64)
        is_open = room is not None and room > 1 and sequences.n_tasks > 1
        own = options._replace(n_clusters=room, partition=None if is_open else together)
        # Models without room for clusters do not learn how ready tasks are to start some.
        priors = self._priors() if room is not None and room > 1 else self._priors()._replace(eta=1.0)
        fitted = INFERENCE[self.inference](sequences, emission, priors, own, seed)[1]
        if fitted.interrupted:
            # Without all models, and what they predict of all parts, there is nothing to weigh.
            raise KeyboardInterrupt
        return fitted

    def _weigh(
        self, sequences: Sequences, emission: Emission, options: Options, seed: int, rooms: tuple[int | None, ...]
    ) -> Floats:
        """How much each model is believed, by what it predicts of sequences held out."""
        alike = np.full(len(rooms), 1.0 / len(rooms))
        if len(rooms) == 1:
            return alike
        schedule = options.schedule._replace(n_chains=min(options.schedule.n_chains, _CHAINS_OF_PARTS))
        own = options._replace(schedule=schedule)
        held_out = []
        with warnings.catch_warnings():
            # What there is to tell is told of fits to all sequences.
            warnings.simplefilter("ignore")
            for learnt_from, asked in hold_out(sequences, self.n_folds, np.random.default_rng([seed, 5])):
                found = []
                for room in rooms:
                    kept = self._kept(self._infer_one(learnt_from, emission, own, seed, room), emission, room, seed)
                    found.append(log_predictive(kept, asked))
                held_out.append(np.column_stack(found))
        if not held_out:
            return alike
        log_probability = np.concatenate(held_out)
        return by_stacking(log_probability, np.ones(len(log_probability)))


def hold_out(sequences: Sequences, n_folds: int, rng: np.random.Generator) -> list[tuple[Sequences, Sequences]]:
    """Parts of the sequences in turn: those to learn from, and the others in groups as answers take them.

    Group 0 has those of tasks that nothing is left of, group j + 1 those of the j-th task that something is left of.

    Examples
    --------
    >>> four = Sequences((np.arange(8),), np.array([0, 2, 4, 6, 8]), np.array([0, 2, 3, 4]))
    >>> parts = hold_out(four, 4, np.random.default_rng(0))
    >>> [asked.task_bounds.tolist() for _, asked in parts]
    [[0, 0, 1, 1, 1], [0, 0, 1, 1, 1]]
    """
    lengths, n_of_task = np.diff(sequences.bounds), np.diff(sequences.task_bounds)
    task = np.repeat(np.arange(sequences.n_tasks), n_of_task)
    fold = np.full(len(task), -1)
    if n_of_task.max() > 1:
        for own in np.flatnonzero(n_of_task > 1).tolist():
            places = rng.permutation(n_of_task[own]) + rng.integers(n_folds)
            # No part has all sequences of a task.
            fold[task == own] = places % min(n_folds, int(n_of_task[own]))
    else:
        fold = rng.permutation(len(task)) % min(n_folds, len(task))
    parts = []
    for number in range(n_folds):
        out = fold == number
        if not out.any() or out.all():
            continue
        left = np.unique(task[~out])
        place = np.searchsorted(left, task)
        group = np.where(np.isin(task, left), place + 1, 0)
        parts.append(
            (
                _some(sequences, lengths, ~out, place[~out], len(left)),
                _some(sequences, lengths, out, group[out], len(left) + 1),
            )
        )
    return parts


def _some(
    sequences: Sequences, lengths: NDArray[np.int64], chosen: NDArray[np.bool_], place: NDArray[np.int64], n: int
) -> Sequences:
    steps = np.repeat(chosen, lengths)
    return arrange(sequences.observations_at(steps), lengths[chosen], place, n).sequences
