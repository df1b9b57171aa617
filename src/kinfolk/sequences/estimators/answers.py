"""What can be asked of fitted infinite hidden Markov models: who is kin, how likely sequences are, and what is next."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.convergence import Convergence
from kinfolk.partition.agreement import central_partition
from kinfolk.sequences.answers.door import Arranged, Arrival, Layout, arrange, check_lengths, known_places, receive
from kinfolk.sequences.answers.forecasting import draw_sequences, look_ahead
from kinfolk.sequences.answers.kin import Kin, kin_of
from kinfolk.sequences.answers.prediction import Kept, log_predictive, log_predictive_of_tasks, smooth
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.fitted import Fitted
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.values import as_column, encode

Floats = NDArray[np.float64]

MAX_SIMILARITY_TASKS = 5_000
_N_PATHS = 100


class Forecast(NamedTuple):
    """What may come after a sequence, for each column of the table.

    Attributes
    ----------
    probability : dict
        For every column of symbols, by its name or place: a mapping from symbols to probabilities, each an array
        (n_sequences, n_steps).
    mean, deviation : dict
        For every column of numbers: expected values and standard deviations, (n_sequences, n_steps).
    samples : ndarray of shape (n_sequences, n_samples, n_steps) or (n_sequences, n_samples, n_steps, n_columns)
        Draws of the future, in the user's own symbols and numbers.
    """

    probability: dict[Any, dict[Any, Floats]]
    mean: dict[Any, Floats]
    deviation: dict[Any, Floats]
    samples: NDArray[Any]


class Answers:
    """Mixin of an estimator that has drawn from the posterior of infinite hidden Markov models."""

    tasks_: NDArray[Any]
    posterior_: Fitted
    emission_: Emission
    n_jobs: int | None
    random_state: Any
    _kept: Kept
    _layout: Layout
    _seed: int

    def _check_columns(self, X: Any, arrival: Arrival, reset: bool) -> None:
        raise NotImplementedError  # the estimator's

    @property
    def partition_(self) -> NDArray[np.int64]:
        """Cluster of each task, in the order of ``tasks_``: the draw that agrees best with all draws."""
        check_is_fitted(self)
        partitions = self.posterior_.traces.partitions
        return central_partition(partitions.reshape(-1, partitions.shape[-1]).astype(np.int64))

    @property
    def similarity_(self) -> Floats:
        """Posterior probability that two tasks share their states, in the order of ``tasks_``."""
        check_is_fitted(self)
        n_tasks = len(self.tasks_)
        if n_tasks > MAX_SIMILARITY_TASKS:
            raise ValueError(
                f"similarity_ of {n_tasks:,} tasks is a matrix too large to be useful: ask for some of them with "
                "similarity(tasks)"
            )
        return self._similarity(np.arange(n_tasks))

    def similarity(self, tasks: Any) -> Floats:
        """Posterior probability that two of the given tasks share their states."""
        check_is_fitted(self)
        asked = as_column(tasks, "tasks")
        place = encode(asked, self.tasks_.tolist()).astype(np.int64)
        if (place < 0).any():
            raise ValueError(f"task {asked[np.argmax(place < 0)]!r} was not in the training data")
        return self._similarity(place)

    def _similarity(self, places: NDArray[np.int64]) -> Floats:
        partitions = self.posterior_.traces.partitions
        seats = partitions.reshape(-1, partitions.shape[-1])[:, places]
        distinct, times = np.unique(seats, axis=0, return_counts=True)
        together = np.zeros((len(places), len(places)))
        for seat, n in zip(distinct, times, strict=True):
            together += n * (seat[:, None] == seat[None, :])
        return together / len(seats)

    @property
    def n_states_(self) -> Floats:
        """Posterior probability (n_tasks, n_states + 1) that each task uses 0, 1, … hidden states."""
        check_is_fitted(self)
        return self.posterior_.traces.n_states

    @property
    def log_joint_(self) -> Floats:
        """Log joint of clusters, states, observations and base weights in every draw, (n_chains, n_draws)."""
        check_is_fitted(self)
        return self.posterior_.traces.log_joint

    @property
    def lower_bound_(self) -> float:
        """With "variational": lower bound on the log evidence of the training sequences, given hyper-parameters."""
        check_is_fitted(self)
        if self.posterior_.bound is None:
            raise AttributeError('lower_bound_ needs inference="variational"')
        return self.posterior_.bound

    @property
    def convergence_(self) -> Convergence | None:
        """R-hat and effective sample sizes of the chains; None where nothing was sampled."""
        check_is_fitted(self)
        return self.posterior_.convergence

    @property
    def converged_(self) -> bool:
        """Whether the chains have converged; true where nothing was sampled."""
        return self.convergence_ is None or self.convergence_.converged

    def _receive(self, X: Any, lengths: Any, task: Any) -> tuple[Arrival, Arranged]:
        """New sequences, coded and laid out: those of new tasks first, then those of each known task."""
        check_is_fitted(self)
        arrival = receive(X, lengths, task)
        self._check_columns(X, arrival, reset=False)
        place = known_places(arrival, self.tasks_)
        return arrival, arrange(self._layout.observations(arrival.table), arrival.lengths, place + 1)

    def _receive_of_no_task(self, X: Any, lengths: Any) -> Sequences:
        """New sequences as if of one task."""
        check_is_fitted(self)
        arrival = receive(X, lengths, None)
        self._check_columns(X, arrival, reset=False)
        place = np.zeros(len(arrival.lengths), dtype=np.int64)
        return arrange(self._layout.observations(arrival.table), arrival.lengths, place).sequences

    def score_samples(self, X: Any, lengths: Any = None, *, task: Any = None) -> Floats:
        """Natural log of the posterior predictive likelihood of each sequence.

        Likelihoods, with hidden states summed out, are averaged over the draws of the posterior, and their logarithm is
        taken last. hmmlearn's ``score_samples`` gives the log likelihood of all sequences together under one point
        estimate, and posteriors of the states beside it; these are in :meth:`predict_proba` here.

        A symbol that was not seen in training has a probability from the prior, and a missing observation is summed
        out. A sequence of a task that was not seen is met as the first of a new task: of one of the clusters, or of a
        new one, with transitions that nothing is known of but the cluster's prior.

        Parameters
        ----------
        X, lengths, task
            As in :meth:`fit`; ``task`` is needed where the model knows more than one.

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        _, arranged = self._receive(X, lengths, task)
        found = np.empty(arranged.sequences.n_sequences)
        found[arranged.origin] = log_predictive(self._kept, arranged.sequences)
        return found

    def score(self, X: Any, lengths: Any = None, *, task: Any = None) -> float:
        """Mean of :meth:`score_samples` over sequences; hmmlearn's ``score`` adds sequences up instead."""
        return float(self.score_samples(X, lengths, task=task).mean())

    def predict(self, X: Any, lengths: Any = None, *, task: Any = None) -> NDArray[np.int64]:
        """Hidden states of every step: the most probable path (Viterbi) in the draw with the highest log joint.

        States are numbered within a cluster of that draw, so that they mean the same in two tasks that share one. A
        sequence of a new task has those of the cluster that explains it best.

        Returns
        -------
        ndarray of shape (n_steps,)
        """
        _, arranged = self._receive(X, lengths, task)
        states = np.empty(len(arranged.steps), dtype=np.int64)
        states[arranged.steps] = smooth(self._kept, arranged.sequences).path
        return states

    def predict_proba(self, X: Any, lengths: Any = None, *, task: Any = None) -> Floats:
        """Probability of each hidden state of every step, given its whole sequence, in the draw of :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_steps, n_states)
        """
        _, arranged = self._receive(X, lengths, task)
        probability = smooth(self._kept, arranged.sequences).probability
        back = np.empty_like(probability)
        back[arranged.steps] = probability
        return back

    def classify(self, X: Any, lengths: Any = None) -> Floats:
        """Probability that each sequence is of each known task, all being equally probable beforehand.

        Returns
        -------
        ndarray of shape (n_sequences, n_tasks)
            Columns in the order of ``tasks_``.
        """
        sequences = self._receive_of_no_task(X, lengths)
        return np.asarray(softmax(log_predictive_of_tasks(self._kept, sequences), axis=1))

    def kin(self, X: Any, lengths: Any = None) -> Kin:
        """With whom a new task shares its states, all these sequences being of it.

        The evidence of each cluster is a variational bound, in which the new task's own transitions are integrated out;
        that of a cluster of its own is the bound of a fit to its sequences alone.

        Returns
        -------
        Kin
            ``probability``, that it is kin to each task of ``tasks_``, and ``alone``, that it is like none.
        """
        sequences = self._receive_of_no_task(X, lengths)
        return kin_of(self._kept, self.emission_, sequences, self._log_evidence_alone(sequences))

    def _log_evidence_alone(self, sequences: Sequences) -> float:
        raise NotImplementedError  # the estimator's

    def sample(
        self, n_samples: int = 1, *, lengths: Any = None, task: Any = None, random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Draw new sequences, each from a draw of the posterior that is chosen at random.

        Parameters
        ----------
        n_samples : int, default=1
            Steps in all.
        lengths : array-like of shape (n_sequences,), optional
            Steps of each sequence, adding up to ``n_samples`` unless that is left out; one sequence by default.
        task : optional
            The task of all sequences, or an array with that of each; one not known is a new task.
        random_state : int, RandomState or None

        Returns
        -------
        X : ndarray of shape (n_samples,) or (n_samples, n_columns)
            In the symbols and numbers of the training data.
        states : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise ValueError(f"n_samples={n_samples!r}: a whole number of at least 1 is needed")
        total = int(np.sum(lengths)) if lengths is not None and n_samples == 1 else int(n_samples)
        steps = check_lengths(lengths, total)
        places = self._places_of(task, len(steps))
        rng = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        observations, states = draw_sequences(self._kept, self.emission_, places.tolist(), steps.tolist(), rng)
        return self._layout.values(observations), states

    def _places_of(self, task: Any, n_sequences: int) -> NDArray[np.int64]:
        if task is None:
            if len(self.tasks_) > 1:
                raise ValueError(f"the model was fitted to {len(self.tasks_)} tasks: say which one to draw, task=...")
            return np.zeros(n_sequences, dtype=np.int64)
        tasks = np.atleast_1d(np.asarray(task)) if np.ndim(task) == 0 else as_column(task, "task")
        if len(tasks) not in (1, n_sequences):
            raise ValueError(f"task has {len(tasks)} entries for {n_sequences} sequences")
        place = encode(tasks, self.tasks_.tolist()).astype(np.int64)
        return np.broadcast_to(place, n_sequences)

    def forecast(
        self,
        X: Any,
        lengths: Any = None,
        *,
        task: Any = None,
        n_steps: int = 1,
        n_samples: int = _N_PATHS,
        random_state: Any = None,
    ) -> Forecast:
        """How the observations after the end of each sequence are distributed.

        Draws of the posterior count by how well they explain the sequence so far.

        Parameters
        ----------
        X, lengths, task
            As in :meth:`score_samples`.
        n_steps : int, default=1
            How far to look.
        n_samples : int, default=100
            Draws of the future.
        random_state : int, RandomState or None
            Of the draws; all else has no chance in it.

        Returns
        -------
        Forecast
        """
        for name, value in (("n_steps", n_steps), ("n_samples", n_samples)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name}={value!r}: a whole number of at least 1 is needed")
        arrival, arranged = self._receive(X, lengths, task)
        rng = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        outlook = look_ahead(self._kept, self.emission_, arranged.sequences, int(n_steps), int(n_samples), rng)
        back = np.argsort(arranged.origin)
        layout = self._layout
        forecast = Forecast({}, {}, {}, np.empty(0))
        for channel, moments in zip(layout.channels, outlook.moments, strict=True):
            for place, column in enumerate(channel.columns):
                called: Any = column if layout.names is None else layout.names[column]
                if channel.symbols is not None:
                    shares = moments.mean[back]
                    forecast.probability[called] = {
                        symbol: shares[:, :, code] for code, symbol in enumerate(channel.symbols)
                    }
                else:
                    forecast.mean[called] = moments.mean[back][:, :, place]
                    assert moments.deviation is not None
                    forecast.deviation[called] = moments.deviation[back][:, :, place]
        values = layout.values(outlook.paths)
        shape = (len(arrival.lengths), int(n_samples), int(n_steps), *values.shape[1:])
        return forecast._replace(samples=values.reshape(shape)[back])
