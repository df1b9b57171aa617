"""What learning leaves behind, as a frozen value."""

from __future__ import annotations

from collections.abc import Sequence
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
    of shape (n_tasks, n_variables, n_variables), where rows were drawn anew. ``interrupted`` tells that
    searches, rounds of EM or resamples ended earlier than they should have.
    """

    networks: tuple[Network, ...]
    log_score: float
    curve: Curve | None = None
    n_rounds: int | None = None
    arc_confidence: NDArray[np.float64] | None = None
    interrupted: bool = False

    def reordered(self, variables: Sequence[str], names: Sequence[str]) -> Fitted:
        """The same, learnt of variables in one order, with them in another."""
        if list(variables) == list(names):
            return self
        networks = tuple(one.reordered([name for name in names if name in one.variables]) for one in self.networks)
        confidence = self.arc_confidence
        if confidence is not None:
            place = {name: v for v, name in enumerate(variables)}
            order = [place[name] for name in names]
            confidence = confidence[:, order][:, :, order]
        return self._replace(networks=networks, arc_confidence=confidence)
