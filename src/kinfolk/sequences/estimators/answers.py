"""What can be asked of fitted infinite hidden Markov models: who is kin, how likely sequences are, and what is next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kinfolk.convergence import Convergence
from kinfolk.maths.arrays import Floats
from kinfolk.partition.agreement import central_partition
from kinfolk.sequences.answers.forecasting import Forecast
from kinfolk.sequences.answers.kin import Kin, kin_of
from kinfolk.sequences.estimators.state_answers import StateAnswers
from kinfolk.sequences.model.fitted import Fitted
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.schema import places_of
from kinfolk.tasks.table import as_column

MAX_SIMILARITY_TASKS = 5_000


class Answers(StateAnswers):
    """Mixin of an estimator that has drawn from the posterior of infinite hidden Markov models."""

    tasks_: NDArray[Any]
    posterior_: Fitted

    @property
    def partition_(self) -> NDArray[np.int64]:
        """Cluster of each task, in the order of ``tasks_``: the draw that agrees best with all draws."""
        check_is_fitted(self)
        partitions = self.posterior_.traces.partitions
        named = partitions.reshape(-1, partitions.shape[-1]).astype(np.int64)
        return central_partition(named, self.posterior_.trace_weights)

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
        """Posterior probability that two of the given tasks share their states.

        Parameters
        ----------
        tasks : array-like of shape (n,)
            Some of ``tasks_``.

        Returns
        -------
        ndarray of shape (n, n)

        See Also
        --------
        similarity_ : Of all tasks.
        """
        check_is_fitted(self)
        asked = as_column(tasks, "tasks")
        place = places_of(asked, self.tasks_)
        unknown = place == len(self.tasks_)
        if unknown.any():
            raise ValueError(f"task {asked[np.argmax(unknown)]!r} was not in the training data")
        return self._similarity(place)

    def _similarity(self, places: NDArray[np.int64]) -> Floats:
        partitions = self.posterior_.traces.partitions
        seats = partitions.reshape(-1, partitions.shape[-1])[:, places]
        distinct, which = np.unique(seats, axis=0, return_inverse=True)
        times = np.bincount(which.ravel(), self.posterior_.trace_weights)
        together = np.zeros((len(places), len(places)))
        for seat, n in zip(distinct, times, strict=True):
            together += n * (seat[:, None] == seat[None, :])
        # What is certain is one, whatever rounding makes of the sum of all weights.
        return np.asarray(np.minimum(together / times.sum(), 1.0).round(12))

    @property
    def n_states_(self) -> Floats:
        """Posterior probability (n_tasks, n_states + 1) that each task uses 0, 1, … hidden states."""
        check_is_fitted(self)
        return self.posterior_.traces.n_states

    @property
    def n_clusters_(self) -> Floats:
        """Posterior probability (n_clusters + 1,) that tasks fall into 0, 1, … clusters."""
        check_is_fitted(self)
        numbers = self.posterior_.traces.partitions.max(axis=-1).ravel() + 1
        times = np.bincount(numbers, self.posterior_.trace_weights)
        return np.asarray(times / times.sum())

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

    def score_samples(self, X: Any, lengths: Any = None, *, task: Any = None) -> Floats:
        """Natural log of the posterior predictive likelihood of each sequence.

        Likelihoods, with hidden states, transitions and what states emit summed out, are averaged over the draws of the
        posterior, and their logarithm is taken last. A sequence tells about itself as it goes on: what it has shown
        once is less of a surprise again, numbers and counts as well as symbols. (With emissions of kind "student-t",
        and in files of earlier versions, numbers have the parameters of each draw.) The sum is an estimate, for which
        every sequence meets the same random numbers. hmmlearn's ``score_samples`` gives the log likelihood of all
        sequences together under one point estimate, and posteriors of the states beside it; these are in
        :meth:`predict_proba` here.

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

        See Also
        --------
        score : Their mean.
        """
        return self._predictor().score_samples(X, lengths, task=task)

    def score(self, X: Any, lengths: Any = None, *, task: Any = None) -> float:
        """Mean of :meth:`score_samples` over sequences; hmmlearn's ``score`` adds sequences up instead.

        Parameters
        ----------
        X, lengths, task
            As in :meth:`score_samples`.

        Returns
        -------
        float

        See Also
        --------
        score_samples : The score of each sequence.
        """
        return self._predictor().score(X, lengths, task=task)

    def predict(self, X: Any, lengths: Any = None, *, task: Any = None, decoding: str = "viterbi") -> NDArray[np.int64]:
        """Hidden states of every step, in one draw of the posterior.

        That is the draw with the highest log joint; of :class:`~kinfolk.FeatureIHMM` it is the one that has the fewest
        steps of the training sequences in another state than all draws have them in, on average.

        States are numbered within a cluster of that draw, so that they mean the same in two tasks that share one. A
        sequence of a new task has those of the cluster that explains it best.

        Parameters
        ----------
        X, lengths, task
            As in :meth:`score_samples`.
        decoding : {"viterbi", "marginal"}, default="viterbi"
            The most probable path of the whole sequence, or the most probable state of each step by itself, which is
            wrong least often, though its path may be one that cannot be (hmmlearn's ``algorithm="map"``).

        Returns
        -------
        ndarray of shape (n_steps,)

        See Also
        --------
        predict_proba : How probable each state is.
        segments : Runs of steps in one state, as a table.
        """
        return self._predictor().predict(X, lengths, task=task, decoding=decoding)

    def predict_proba(self, X: Any, lengths: Any = None, *, task: Any = None) -> Floats:
        """Probability of each hidden state of every step, given its whole sequence, in the draw of :meth:`predict`.

        Of :class:`~kinfolk.FeatureIHMM`, states of all draws are numbered alike, and probabilities are averaged over up
        to 60 of them.

        Parameters
        ----------
        X, lengths, task
            As in :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (n_steps, n_states)

        See Also
        --------
        predict : The most probable path.
        """
        return self._predictor().predict_proba(X, lengths, task=task)

    def classify(self, X: Any, lengths: Any = None) -> Floats:
        """Probability that each sequence belongs to each known task, all being equally probable a priori.

        What numbers and counts are like is what training has told of each task. By :meth:`score_samples` a sequence
        tells about itself, too, which makes it more probable, but tells tasks apart less well.

        Parameters
        ----------
        X, lengths
            As in :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (n_sequences, n_tasks)
            Columns in the order of ``tasks_``.

        See Also
        --------
        kin : With whom a new task shares.
        """
        return self._predictor().classify(X, lengths)

    def kin(self, X: Any, lengths: Any = None) -> Kin:
        """With which tasks a new task, to which all these sequences belong, shares its states.

        The evidence of each cluster is a variational bound, in which the new task's own transitions are integrated out;
        that of a cluster of its own is the bound of a fit to its sequences alone.

        Parameters
        ----------
        X, lengths
            As in :meth:`score_samples`.

        Returns
        -------
        Kin
            ``probability``, that it is kin to each task of ``tasks_``, and ``alone``, that it is like none.

        See Also
        --------
        classify : Of which known task a sequence is.
        """
        predictor = self._predictor()
        sequences = predictor.receive_of_no_task(X, lengths)
        if not sequences.n_sequences:
            raise ValueError("a new task without sequences is kin to nobody: give at least one")
        return kin_of(predictor.kept, sequences, self._log_evidence_alone(sequences))

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

        See Also
        --------
        forecast : What comes after sequences.
        """
        return self._predictor().sample(n_samples, lengths=lengths, task=task, random_state=random_state)

    def forecast(
        self,
        X: Any,
        lengths: Any = None,
        *,
        task: Any = None,
        n_steps: int = 1,
        n_samples: int = 1000,
        quantiles: Any = None,
        random_state: Any = None,
    ) -> Forecast:
        """How the observations after the end of each sequence are distributed.

        Draws of the posterior count by how well they explain the sequence so far, and states that it has been in have
        learnt from it.

        Parameters
        ----------
        X, lengths, task
            As in :meth:`score_samples`.
        n_steps : int, default=1
            How far to look.
        n_samples : int, default=1000
            Draws of the future, of which quantiles are taken.
        quantiles : array-like of shape (n_quantiles,), optional
            Of each column of numbers, each between 0 and 1; by default 0.05, 0.5 and 0.95, so that nine in ten lie
            between the first and the last.
        random_state : int, RandomState or None
            Of the draws; all else has no chance in it.

        Returns
        -------
        Forecast
            For symbols ``probability``, for numbers ``mean``, ``deviation`` and ``quantiles``, each by column.

        See Also
        --------
        sample : New sequences.

        Examples
        --------
        >>> import numpy as np
        >>> from kinfolk import SharedIHMM
        >>> X = np.tile([0.0, 0.0, 0.0, 9.0, 9.0, 9.0], 20) + np.random.default_rng(0).normal(size=120)
        >>> model = SharedIHMM(n_chains=2, n_burn_in=20, n_draws=20, random_state=0).fit(X, [60, 60], task=["a", "b"])
        >>> next_two = model.forecast(X[:50], task=["a"], n_steps=2, random_state=0)
        >>> next_two.quantiles[0].shape, next_two.levels
        ((1, 2, 3), (0.05, 0.5, 0.95))
        """
        how: dict[str, Any] = {"n_steps": n_steps, "n_samples": n_samples, "quantiles": quantiles}
        return self._predictor().forecast(X, lengths, task=task, random_state=random_state, **how)
