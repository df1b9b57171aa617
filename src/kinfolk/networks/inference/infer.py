"""From the rows of all tasks to their networks: ``infer`` learns structures, then probability tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kinfolk.interrupts import asked, stops_safely
from kinfolk.networks.inference.bootstrap import arc_confidence
from kinfolk.networks.inference.em import learn_from_incomplete
from kinfolk.networks.inference.structures import Hyper, Options, learn_structures
from kinfolk.networks.inference.validate import choose_strength
from kinfolk.networks.model.data import Data
from kinfolk.networks.model.fitted import Fitted
from kinfolk.networks.model.network import parents_of
from kinfolk.networks.model.parameters import learn_networks
from kinfolk.networks.model.shared_parameters import learn_shared_tables
from kinfolk.progress import no_progress


def infer(
    data: Data, hyper: Hyper, options: Options, seed: int, advance: Callable[[int], None] = no_progress
) -> tuple[Hyper, Fitted]:
    """Learn a network for every task; Ctrl-C ends that early, with the best structures so far.

    Parameters
    ----------
    data : Data
    hyper : Hyper
        How strongly structures are held together, or that it is to be inferred.
    options : Options
    seed : int
    advance : callable, optional
        Told of steps done.

    Returns
    -------
    hyper : Hyper
        With the λ that was used.
    fitted : Fitted
    """
    with stops_safely() as stop:
        hyper, fitted = _infer(data, hyper, options, seed, advance)
        return hyper, fitted._replace(interrupted=stop.asked())


def _infer(
    data: Data, hyper: Hyper, options: Options, seed: int, advance: Callable[[int], None]
) -> tuple[Hyper, Fitted]:
    curve = n_rounds = shares = shared = None
    if options.validation:
        curve = choose_strength(options, hyper, data, seed, advance)
        hyper = hyper.fixed(curve.best)
    if data.complete:
        rows, outcome = data, learn_structures(options, hyper, data, seed)
    else:
        rows, outcome, n_rounds = learn_from_incomplete(options, hyper, data, seed, advance)
    hyper = hyper.fixed(outcome.strength) if hyper.learnt else hyper._replace(strength=outcome.strength)
    hyper = hyper._replace(arc_log_odds=outcome.arc_log_odds, arcs_learnt=False)
    if options.sharing == "pooled":
        k, weights = len(rows.codes), rows.weights
        weights = None if weights is None else (np.concatenate(weights),) * k
        rows = rows._replace(codes=(np.concatenate(rows.codes),) * k, weights=weights)
    elif options.share_tables:
        parents = [parents_of(structure) for structure in outcome.structures]
        shared = learn_shared_tables(
            rows.codes, parents, rows.cards, options.criterion, options.ess, rows.weights, rows.variables
        ).tables
    networks = learn_networks(outcome.structures, rows, options.criterion, options.ess, shared)
    if options.bootstrap and not asked():
        # One strength for all resamples: confidence is about arcs, given how alike the tasks were found to be.
        shares = arc_confidence(options, hyper, data, seed, advance)
    return hyper, Fitted(networks, outcome.score, curve, n_rounds, shares)
