"""What inference leaves behind: draws of the posterior, traces of all draws, and whether the chains agree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.convergence import Convergence, diagnose
from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.draw import Draw, HyperParameters

HYPER_PARAMETERS = ("eta", "gamma", "alpha", "strength")


class Traces(NamedTuple):
    """What is recorded of every draw, a row for each chain.

    Attributes
    ----------
    partitions : int32 ndarray of shape (n_chains, n_draws, n_tasks)
        Cluster of each task, in the order in which clusters appear.
    log_joint : ndarray of shape (n_chains, n_draws)
        Log joint of clusters, states, observations and base weights.
    hyper_parameters : dict of ndarrays of shape (n_chains, n_draws)
        The concentrations η ("eta"), γ ("gamma") and α ("alpha"), and the strength h of the emissions' prior.
    n_states : ndarray of shape (n_tasks, most_states + 1)
        Share of draws in which each task used so many states.
    """

    partitions: NDArray[np.int32]
    log_joint: Floats
    hyper_parameters: dict[str, Floats]
    n_states: Floats


class Fitted(NamedTuple):
    """All that inference leaves behind; plain data, nothing hidden.

    ``convergence`` is None where nothing was sampled, and ``bound`` where nothing was approximated.
    """

    draws: tuple[Draw, ...]
    traces: Traces
    convergence: Convergence | None
    bound: float | None = None

    def mean_hyper(self) -> HyperParameters:
        """The means of the hyper-parameters, over all draws of which they are recorded."""
        means = {name: float(drawn.mean()) for name, drawn in self.traces.hyper_parameters.items()}
        return HyperParameters(**means, stickiness=float(np.mean([draw.hyper.stickiness for draw in self.draws])))


def judge(traces: Traces) -> Convergence:
    """Judge chains by what does not depend on how clusters and states are numbered."""
    quantities: dict[str, NDArray[Any]] = {"log joint": traces.log_joint}
    if traces.partitions.shape[2] > 1:
        quantities["number of clusters"] = traces.partitions.max(axis=2) + 1
    return diagnose(quantities)
