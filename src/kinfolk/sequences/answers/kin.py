"""With whom a new task shares its hidden states: the posterior of its cluster, over draws of all the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.answers.new_tasks import joining_weights, pseudo_counts
from kinfolk.sequences.answers.prediction import Kept
from kinfolk.sequences.model.draw import Draw
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import scaled, smooth
from kinfolk.sequences.model.sequences import Sequences

# Each cluster of a draw takes an iteration of its own; so many draws answer well enough.
_MOST_DRAWS = 50
_MOST_ITERATIONS, _SETTLED = 30, 1e-3


class Kin(NamedTuple):
    """With whom a new task shares: the probability for each known task, and that it is like none of them."""

    probability: Floats
    alone: float


def kin_of(kept: Kept, sequences: Sequences, log_evidence_alone: float) -> Kin:
    """Posterior of the cluster of a new task that all these sequences are of.

    The evidence of a cluster is that of its emissions with the task's own transition rows integrated out, by a
    variational bound; that of a cluster of its own, with everything integrated out, is given.
    """
    n_draws = min(len(kept.draws), _MOST_DRAWS)
    chosen = np.unique(np.linspace(0, len(kept.draws) - 1, n_draws).round().astype(np.int64))
    n_tasks = len(kept.draws[0].cluster)
    # A draw counts by how well it explains the new task: all weights are shares of one total.
    weights, members, alone = [], [np.zeros(n_tasks)], []
    for place in chosen.tolist():
        draw, share = kept.draws[place], float(np.log(kept.shares[place]))
        joins, empty = joining_weights(draw, kept.room(place))
        for cluster, weight in enumerate(joins.tolist()):
            if weight > 0.0:
                weights.append(share + np.log(weight) + bound_on_evidence(draw, cluster, kept.emission, sequences))
                members.append((draw.cluster == cluster).astype(np.float64))
        if empty > 0.0:
            alone.append(share + np.log(empty) + log_evidence_alone)
    total = logsumexp([*weights, *alone])
    shares = np.exp(np.array([-np.inf, *weights]) - total)
    return Kin(np.asarray(shares @ np.array(members)), float(np.exp(np.array(alone) - total).sum()))


def bound_on_evidence(draw: Draw, cluster: int, emission: Emission, sequences: Sequences) -> float:
    """Lower bound on log p(O | θ, β, α) of a task in a cluster, by mean field over its states and transition rows."""
    rows = pseudo_counts(draw.base_weights[cluster], draw.hyper)
    densities = scaled(emission.log_densities(draw.parameters[cluster], sequences.observations))
    given = densities, sequences.layout
    counts = smooth(*given, (rows / rows.sum(axis=1, keepdims=True))[None]).counts[0]
    bound = -np.inf
    for _ in range(_MOST_ITERATIONS):
        before = bound
        posterior = rows + counts
        expected_log = digamma(posterior) - digamma(posterior.sum(axis=1, keepdims=True))
        found = smooth(*given, np.exp(expected_log)[None])
        bound = float(found.of_tasks[0]) - _divergence(rows, counts, expected_log)
        if bound - before < _SETTLED:
            break
        counts = found.counts[0]
    return bound


def _divergence(rows: Floats, counts: Floats, expected_log: Floats) -> float:
    """KL(Dir(rows + counts) ‖ Dir(rows)), all rows added up."""
    of_rows = gammaln((rows + counts).sum(axis=1)) - gammaln(rows.sum(axis=1))
    return float((counts * expected_log - gammaln(rows + counts) + gammaln(rows)).sum() + of_rows.sum())
