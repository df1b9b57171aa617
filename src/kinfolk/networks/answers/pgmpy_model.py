"""A network as a model of pgmpy, where that is installed."""

from __future__ import annotations

from typing import Any

from kinfolk.networks.model.network import Network


def to_pgmpy(network: Network) -> Any:
    """Build a ``pgmpy.models.DiscreteBayesianNetwork`` with the same variables, states and tables."""
    try:
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork
    except ImportError:
        raise ImportError("pgmpy is not installed: 'pip install pgmpy' brings it") from None
    model = DiscreteBayesianNetwork()
    model.add_nodes_from(network.variables)
    names = dict(zip(network.variables, map(list, network.states), strict=True))
    for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        own, theirs = network.variables[v], [network.variables[p] for p in parents]
        model.add_edges_from((parent, own) for parent in theirs)
        # pgmpy wants the variable's own values down the rows, the parents' configurations across.
        values = table.reshape(-1, table.shape[-1]).T
        cards = [len(names[parent]) for parent in theirs]
        known = {name: names[name] for name in (own, *theirs)}
        model.add_cpds(TabularCPD(own, len(names[own]), values, theirs or None, cards or None, state_names=known))
    return model
