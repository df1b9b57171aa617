"""Pictures of what a model found: each function draws on Matplotlib axes and returns them.

hinton_diagram   ``hinton``: the probabilities that tasks are kin
dendrogram       ``tree``: the tree of Bayesian hierarchical clustering
graph_drawing    ``networks``: the structures of several tasks' Bayes nets, placed by ``layered_layout``
evolution        ``cluster_evolution``: the cluster of every task, iteration by iteration
noisy_dirichlet  ``noise_model``: samples of the prototype model's noise
style            what the pictures share: colours, axes, names of tasks
"""

from typing import TYPE_CHECKING

from kinfolk.lazy import lazily

if TYPE_CHECKING:
    from kinfolk.plots.dendrogram import tree
    from kinfolk.plots.evolution import cluster_evolution
    from kinfolk.plots.graph_drawing import networks
    from kinfolk.plots.hinton_diagram import hinton
    from kinfolk.plots.noisy_dirichlet import noise_model

__all__ = ["cluster_evolution", "hinton", "networks", "noise_model", "tree"]

# No file is named like its function: importing kinfolk.plots.tree would put the module in the function's place.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "cluster_evolution": "evolution",
        "hinton": "hinton_diagram",
        "networks": "graph_drawing",
        "noise_model": "noisy_dirichlet",
        "tree": "dendrogram",
    },
)
