"""From structures and rows to the networks of all tasks, tables learnt for each alone, shared, or from pooled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.inference.structures import Plan
from kinfolk.networks.model.constraints import Structures
from kinfolk.networks.model.data import Data, states_of
from kinfolk.networks.model.network import Network, parents_of
from kinfolk.networks.model.parameters import learn_tables
from kinfolk.networks.model.shared_parameters import learn_shared_tables


def assemble(
    plan: Plan,
    structures: Structures,
    tables: Data,
    codes: list[NDArray[np.int32]],
    weights: list[NDArray[np.float64]] | None,
    share_tables: bool,
) -> dict[Any, Network]:
    """Give every task's structure its tables; rows may be completions, with weights."""
    cards, tasks = tables.cards, tables.tasks.tolist()
    parents = [parents_of(structure) for structure in structures]
    shared = None
    if plan.sharing == "pooled":
        codes = [np.concatenate(codes)] * len(tasks)
        weights = None if weights is None else [np.concatenate(weights)] * len(tasks)
    elif share_tables:
        shared = learn_shared_tables(
            codes,
            parents,
            cards,
            plan.criterion,
            ess=plan.ess,
            weights_per_task=weights,
            variables=tables.variables,
        ).tables
    networks = {}
    for t, task in enumerate(tasks):
        own = np.flatnonzero(tables.present[t])
        place = {int(v): i for i, v in enumerate(own)}
        its_parents = [tuple(place[p] for p in parents[t][v]) for v in own]
        names = [tables.variables[v] for v in own]
        if shared is None:
            its_tables: Sequence[NDArray[np.float64]] = learn_tables(
                codes[t][:, own],
                its_parents,
                cards[own],
                plan.criterion,
                ess=plan.ess,
                weights=None if weights is None else weights[t],
                variables=names,
            )
        else:
            its_tables = [shared[t][v] for v in own]
        states = tuple(states_of(tables.schema.columns[v]) for v in own)
        networks[task] = Network(tuple(names), states, tuple(its_parents), tuple(its_tables))
    return networks
