"""A draw of the posterior of the nDP-iHMM, enough to predict; only numpy is imported here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats


class HyperParameters(NamedTuple):
    """The hyper-parameters of the model; see `kinfolk.sequences.model.ndp_ihmm`.

    Attributes
    ----------
    eta : float
        η, concentration of the clusters.
    gamma : float
        γ, concentration of the states.
    alpha : float
        α, concentration of the transition rows.
    strength : float
        h, weight of the emissions' prior.
    stickiness : float
        κ, bias of states to stay.
    """

    eta: float
    gamma: float
    alpha: float
    strength: float
    stickiness: float = 0.0


class Draw(NamedTuple):
    """One state of a chain as it is kept; clusters are those that have tasks, in the order of their first ones.

    Attributes
    ----------
    cluster : array of shape (J,)
        Cluster of each task.
    base_weights : array of shape (K, L)
        β.
    parameters : array of shape (K, L, P)
        θ.
    transitions : array of shape (J, L + 1, L)
        W.
    hyper : HyperParameters
    log_joint : float
        See `kinfolk.sequences.model.ndp_ihmm.log_joint`.
    n_states : array of shape (J,)
        How many states each task uses.
    row_counts : float32 array of shape (J, L + 1, L), or None
        Pseudo-counts of the Dirichlet distributions that W was drawn from: αβ + κe_r and the transitions counted.
    code_counts : float32 array of shape (K, L, C), or None
        Those that shares of codes were drawn from, h and the codes counted, channels of symbols side by side. Both are
        None in draws that files of earlier versions hold.
    left_out : float
        Mean log probability of a few training sequences, each left out of what was counted; NaN where not known.
    features : bool array of shape (J, L), or None
        Which states each task has, where tasks choose (`kinfolk.sequences.model.bp_hmm`). Base weights are then shares
        of a new task's chances to have each state, and of the hyper-parameters η and γ are c and γ there.
    states : int array, or None
        Hidden states of some training steps, while draws are compared.
    statistics : float64 array of shape (K, L, S), or None
        Of the training steps in each state, by which θ of numbers and counts was drawn: of all channels of which
        answers sum it out, side by side. In all bits, because squares cancel. None where there is no such channel, and
        in draws that files of earlier versions hold.
    """

    cluster: NDArray[np.int64]
    base_weights: Floats
    parameters: Floats
    transitions: Floats
    hyper: HyperParameters
    log_joint: float
    n_states: NDArray[np.int64]
    row_counts: NDArray[np.float32] | None = None
    code_counts: NDArray[np.float32] | None = None
    left_out: float = np.nan
    features: NDArray[np.bool_] | None = None
    states: NDArray[np.integer[Any]] | None = None
    statistics: Floats | None = None


def chances_of_features(features: NDArray[np.bool_], hyper: HyperParameters) -> Floats:
    """Probability that one more task has each state, given those that the others have (J, L).

    It has a state of m tasks with probability m/(c + J), and Poisson(γc/(c + J)) that nobody has; these are of the
    columns that are empty.

    Examples
    --------
    >>> some = np.array([[True, True, False], [True, False, False]])
    >>> chances_of_features(some, HyperParameters(2.0, 1.0, 1.0, 1.0)).tolist()
    [0.5, 0.25, 0.5]
    """
    n_tasks, sizes = len(features), features.sum(axis=0)
    is_empty = sizes == 0
    new = hyper.gamma * hyper.eta / (n_tasks + hyper.eta) / max(int(is_empty.sum()), 1)
    return np.asarray(np.where(is_empty, min(new, 1.0), sizes / (n_tasks + hyper.eta)))
