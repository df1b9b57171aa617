"""FeatureIHMM, the beta-process HMM: every task uses some of the hidden states that all have in common."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kinfolk.maths.arrays import Floats
from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.estimators.base import LEARN, SequenceModel
from kinfolk.sequences.inference import feature_gibbs
from kinfolk.sequences.inference.options import Options
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.fitted import Fitted
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences

# Behaviours last: a broad prior of the bias to stay, in which a state may as well be left after a few steps.
_STICKINESS = GammaPrior(1.0, 0.01)


class FeatureIHMM(SequenceModel):
    """Hidden Markov models of the sequences of many tasks, each of which uses some of a common set of states.

    Two recordings may have some behaviours in common and not others, which clusters of whole tasks cannot express. Here
    each task has a subset of common states, its features, and its own transitions among them; what a state emits is the
    same for all tasks that have it. Which states there are, and which task has which, is inferred (Indian buffet
    process).

    Parameters
    ----------
    n_states : int, default=30
        The most hidden states that there may be in all.
    emission, symbols, emission_strength
        As in :class:`~kinfolk.NestedIHMM`; "student-t" is refused.
    concentration : float or "learn", default="learn"
        How much tasks differ in the states that they have: near zero nearly all have the same, if it is large hardly
        any two do.
    state_concentration : float or "learn", default="learn"
        How many states a task is expected to have.
    transition_concentration : float or "learn", default="learn"
        Weight of the prior of each transition between states of a task.
    stickiness : float or "learn", default="learn"
        Bias of states to stay, added to that weight where a state follows itself.
    n_chains : int, default=8
        Chains, each from a start of its own. They rarely come to the same states, so that the more there are, the less
        the answer hangs on the seed.
    n_burn_in, n_draws, thin, task_column, sequence_column, order_column, new_tasks, random_state, n_jobs
        As in :class:`~kinfolk.NestedIHMM`.
    verbose, checkpoint
        As in :class:`~kinfolk.NestedIHMM`.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks, sorted.
    features_ : ndarray of shape (n_tasks, n_states)
        Posterior probability that each task has each state; states are numbered as :meth:`predict` does.
    similarity_ : ndarray of shape (n_tasks, n_tasks)
        The share of the states of two tasks that both have, as expected.
    n_states_, log_joint_, convergence_, converged_, interrupted_, posterior_, emission_
        As in :class:`~kinfolk.NestedIHMM`.

    Notes
    -----
    Hidden states are told by one draw of the posterior: the one that has the fewest steps of the training sequences in
    another state than all draws of all chains have them in, on average. Recordings of movement were further from their
    labels in the draw with the highest log joint, and hung more on the seed. ``predict_proba``, and ``predict`` with
    ``decoding="marginal"``, average over draws.

    References
    ----------
    E. B. Fox, M. C. Hughes, E. B. Sudderth and M. I. Jordan, "Joint Modeling of Multiple Time Series via the Beta
    Process with Application to Motion Capture Segmentation", Annals of Applied Statistics 8, 2014.
    M. C. Hughes, E. B. Fox and E. B. Sudderth, "Effective Split-Merge Monte Carlo Methods for Nonparametric Models of
    Sequential Data", NIPS 2012.

    Examples
    --------
    Ann walks and sits, bob walks and runs:

    >>> from kinfolk import FeatureIHMM
    >>> walk, sit, run = ["left", "right"] * 10, ["chair"] * 20, ["jump", "land"] * 10
    >>> model = FeatureIHMM(n_states=8, n_chains=2, n_burn_in=30, n_draws=20, random_state=0)
    >>> model = model.fit(2 * (walk + sit) + 2 * (walk + run), [40] * 4, task=["ann", "ann", "bob", "bob"])
    >>> chair = model.predict(sit, task=["ann"])[10]
    >>> (model.features_[:, chair] > 0.5).tolist()
    [True, False]
    """

    inference = "gibbs"

    def __init__(
        self,
        n_states: int = 30,
        *,
        emission: Any = "auto",
        symbols: Any = None,
        emission_strength: float | str = "learn",
        concentration: float | str = "learn",
        state_concentration: float | str = "learn",
        transition_concentration: float | str = "learn",
        stickiness: float | str = "learn",
        n_chains: int = 8,
        n_burn_in: int = 50,
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
        self.concentration = concentration
        self.state_concentration = state_concentration
        self.transition_concentration = transition_concentration
        self.stickiness = stickiness
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
    def features_(self) -> Floats:
        """Posterior probability (n_tasks, n_states) that each task has each state, numbered as by :meth:`predict`."""
        check_is_fitted(self)
        return np.asarray(self._features().mean(axis=0))

    def _features(self) -> Floats:
        """Which states each task has in every draw that is kept, (n_draws, n_tasks, n_states)."""
        return np.array([draw.features for draw in self.posterior_.draws], dtype=np.float64)

    def _similarity(self, places: NDArray[np.int64]) -> Floats:
        """States in common by states that either has, averaged over draws."""
        has = self._features()[:, places]
        both = has @ has.swapaxes(1, 2)
        each = has.sum(axis=2)
        return np.asarray((both / (each[:, :, None] + each[:, None, :] - both)).mean(axis=0))

    def _infer(
        self, sequences: Sequences, emission: Emission, options: Options, seed: int
    ) -> tuple[HyperParameters, Fitted]:
        if not emission.is_conjugate:
            raise ValueError(
                'FeatureIHMM integrates the parameters of states out, which emission="student-t" does not allow: '
                'give "gaussian", or use NestedIHMM or SharedIHMM'
            )
        return feature_gibbs.infer(sequences, emission, self._priors(), options, seed)

    def _n_clusters(self) -> int | None:
        return 1

    def _priors(self) -> Priors:
        priors = super()._priors()
        return priors._replace(stickiness=_STICKINESS) if self.stickiness == LEARN else priors
