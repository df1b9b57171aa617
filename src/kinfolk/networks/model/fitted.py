"""What learning leaves behind, as a frozen value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.network import Network


class Curve(NamedTuple):
    """Mean log likelihood of held-out rows for each λ, averaged over tasks, and the best λ, the weakest of equals."""

    strengths: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    best: float


class Fitted(NamedTuple):
    """The network of every task, and the log score of their structures, up to the joint prior's normaliser.

    ``curve`` is there where λ was chosen by rows held out, ``n_rounds`` where values were missing; ``arc_confidence``,
    of shape (n_tasks, n_variables, n_variables), where rows were drawn anew.
    """

    networks: tuple[Network, ...]
    log_score: float
    curve: Curve | None = None
    n_rounds: int | None = None
    arc_confidence: NDArray[np.float64] | None = None
