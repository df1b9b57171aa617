"""Pictures of what a model found: each function draws on Matplotlib axes and returns them.

hinton_diagram       ``hinton``: the probabilities that tasks are kin
dendrogram           ``tree``: the tree of Bayesian hierarchical clustering
graph_drawing        ``networks``: the structures of several tasks' Bayes nets, placed by ``layered_layout``
evolution            ``cluster_evolution``: the cluster of every task, iteration by iteration
noisy_dirichlet      ``noise_model``: samples of the prototype model's noise
profiles             ``cluster_profiles``: what tells labels apart in clusters, as shades
log_ratio_bars       ``log_ratios``: what speaks for a label in some tasks, as bars
reliance_bars        ``reliance``: whose rows a task's answers rest on
gain_by_task         ``gain``: what sharing brings every task
curves               ``learning_curves``: a measure against the number of examples, with bands
reliability_diagram  ``reliability``: observed rates against predicted probabilities
asymmetry            ``loss_by_asymmetry``: what decisions cost as mistakes become uneven
posterior_numbers    ``number_of``: the posterior of the number of clusters, or of states
chain_traces         ``traces``: what chains drew, with R-hat
source_table         ``sources``: how much of each latent source tasks have
emission_table       ``emissions``: what hidden states emit
segments             ``state_sequences``: sequences cut into segments by their hidden states
style                what the pictures share: colours, axes, names of tasks
"""

from typing import TYPE_CHECKING

from kinfolk.lazy import lazily

if TYPE_CHECKING:
    from kinfolk.plots.asymmetry import loss_by_asymmetry
    from kinfolk.plots.chain_traces import traces
    from kinfolk.plots.curves import learning_curves
    from kinfolk.plots.dendrogram import tree
    from kinfolk.plots.emission_table import emissions
    from kinfolk.plots.evolution import cluster_evolution
    from kinfolk.plots.gain_by_task import gain
    from kinfolk.plots.graph_drawing import networks
    from kinfolk.plots.hinton_diagram import hinton
    from kinfolk.plots.log_ratio_bars import log_ratios
    from kinfolk.plots.noisy_dirichlet import noise_model
    from kinfolk.plots.posterior_numbers import number_of
    from kinfolk.plots.profiles import cluster_profiles
    from kinfolk.plots.reliability_diagram import reliability
    from kinfolk.plots.reliance_bars import reliance
    from kinfolk.plots.segments import state_sequences
    from kinfolk.plots.source_table import sources

__all__ = [
    "cluster_evolution",
    "cluster_profiles",
    "emissions",
    "gain",
    "hinton",
    "learning_curves",
    "log_ratios",
    "loss_by_asymmetry",
    "networks",
    "noise_model",
    "number_of",
    "reliability",
    "reliance",
    "sources",
    "state_sequences",
    "traces",
    "tree",
]

# No file is named like its function: importing kinfolk.plots.tree would put the module in the function's place.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "cluster_evolution": "evolution",
        "cluster_profiles": "profiles",
        "emissions": "emission_table",
        "gain": "gain_by_task",
        "hinton": "hinton_diagram",
        "learning_curves": "curves",
        "log_ratios": "log_ratio_bars",
        "loss_by_asymmetry": "asymmetry",
        "networks": "graph_drawing",
        "noise_model": "noisy_dirichlet",
        "number_of": "posterior_numbers",
        "reliability": "reliability_diagram",
        "reliance": "reliance_bars",
        "sources": "source_table",
        "state_sequences": "segments",
        "traces": "chain_traces",
        "tree": "dendrogram",
    },
)
