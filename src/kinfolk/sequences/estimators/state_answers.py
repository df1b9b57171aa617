"""What can be asked of a fitted model's hidden states: which there are, which are alike, and who is in them when."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from kinfolk.sequences.answers.predictor import SequencesPredictor
from kinfolk.sequences.answers.states import NEAR
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import Backend, backend_of


class StateAnswers:
    """Mixin of an estimator whose predictor knows hidden states."""

    # The library of tables that the model was fitted to.
    _backend: Backend = "polars"

    def _predictor(self) -> SequencesPredictor:
        raise NotImplementedError  # the estimator's

    def states(self) -> Any:
        """The hidden states that tasks use, and what each shows, in the draw of :meth:`predict`.

        That is one draw of the posterior, the most probable of those that are kept. States have no numbers that all
        draws share, so the table does not tell how sure it is: :attr:`n_states_` is an average over all draws, and
        fits with other seeds show which states come back.

        Returns
        -------
        frame
            A row for each: ``cluster`` and ``state``; ``name``, made of what it emits: its likeliest symbols, or means
            and standard deviations, of the columns in which it differs most from the others; ``share``, the expected
            share of the first 100 steps that tasks which use it are there; ``duration``, the expected number of steps
            that they stay, up to 100; ``n_tasks``, how many tasks use it.

        See Also
        --------
        n_states_ : How many states tasks use, over all draws.
        similar_states : Which of them are alike.
        segments : Where sequences are in which.

        Examples
        --------
        >>> from kinfolk import SharedIHMM
        >>> model = SharedIHMM(n_chains=2, n_burn_in=20, n_draws=20, random_state=0)
        >>> model = model.fit((["low"] * 10 + ["high"] * 10) * 4, [40, 40], task=["ann", "bob"])
        >>> sorted(model.states()["name"].to_list())
        ['high', 'low']
        """
        check_is_fitted(self)
        return make_frame(self._predictor().states(), self._backend)

    def similar_states(self, threshold: float = NEAR) -> Any:
        """Pairs of hidden states that emit alike, within a cluster or of two, in the draw of :meth:`predict`.

        How far two states are apart is how much of which of the two it came from one observation tells: 0 where they
        emit the same, 1 where every observation tells (the Jensen–Shannon divergence in bits, estimated from 1,000
        observations of each). That of two normal distributions one standard deviation apart is 0.16, of two 0.49.
        One draw of the posterior is looked at, as in :meth:`states`.

        Parameters
        ----------
        threshold : float, default=0.2
            How far apart states may be; 1 gives all pairs.

        Returns
        -------
        frame
            ``cluster``, ``state`` and ``name`` of the one, ``other_cluster``, ``other_state`` and ``other_name``, and
            their ``distance``, the closest first.

        See Also
        --------
        differing_states : Which states other tasks do not have.
        states : All states.
        """
        check_is_fitted(self)
        return make_frame(self._predictor().similar_states(threshold), self._backend)

    def differing_states(self, groups: Any = None, threshold: float = NEAR) -> Any:
        """The states of each group of tasks, and the nearest to each that tasks of other groups use.

        One draw of the posterior is looked at, as in :meth:`states`: a state that is rare may be in it by chance.

        Parameters
        ----------
        groups : mapping from tasks, or array-like of shape (n_tasks,), optional
            The group of each task, in the order of ``tasks_``; by default the clusters of the draw of :meth:`predict`.
        threshold : float, default=0.2
            A state differs that is farther from all states of other groups, as in :meth:`similar_states`.

        Returns
        -------
        frame
            ``group``; ``cluster``, ``state`` and ``name``; ``share``, the expected share of steps in it of the group's
            tasks, and ``share_elsewhere``, of all others; ``nearest``, the name of the state of others that is most
            like it, and its ``distance``, which is zero where they use the same one; ``differs``. Within a group those
            that differ most come first.

        See Also
        --------
        similar_states : Which states are alike.
        """
        check_is_fitted(self)
        return make_frame(self._predictor().differing_states(groups, threshold), self._backend)

    def segments(self, X: Any, lengths: Any = None, *, task: Any = None, decoding: str = "viterbi") -> Any:
        """Sequences cut into segments: runs of steps in one hidden state.

        Parameters
        ----------
        X, lengths, task
            As in :meth:`score_samples`.
        decoding : {"viterbi", "marginal"}, default="viterbi"
            How states are told, as in :meth:`predict`.

        Returns
        -------
        frame
            A row for each segment: ``task`` and ``sequence``, its number or what ``sequence_column`` calls it;
            ``start`` and ``stop``, counted from 0 within the sequence, without ``stop``; ``duration``; ``cluster``,
            ``state`` and ``name`` as in :meth:`states`; ``probability``, the mean over its steps of how probable the
            state is.

        See Also
        --------
        predict : The state of every step.
        states : What the states are.

        Examples
        --------
        >>> from kinfolk import SingleIHMM
        >>> X = ["low"] * 12 + ["high"] * 9
        >>> model = SingleIHMM(n_chains=2, n_burn_in=20, n_draws=20, random_state=0).fit(X * 3, [21, 21, 21])
        >>> model.segments(X[5:]).select("start", "stop", "duration", "name").rows()
        [(0, 7, 7, 'low'), (7, 16, 9, 'high')]
        """
        check_is_fitted(self)
        first = X[0] if isinstance(X, list | tuple) and len(X) else X
        found = self._predictor().segments(X, lengths, task=task, decoding=decoding)
        return make_frame(found, backend_of(first))
