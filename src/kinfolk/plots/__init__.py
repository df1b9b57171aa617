"""Pictures of what a model found: each function draws on Matplotlib axes and returns them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinfolk.plots.dendrogram import tree
    from kinfolk.plots.evolution import cluster_evolution
    from kinfolk.plots.graph_drawing import networks
    from kinfolk.plots.hinton_diagram import hinton
    from kinfolk.plots.noisy_dirichlet import noise_model

__all__ = ["cluster_evolution", "hinton", "networks", "noise_model", "tree"]

# No file is named like its function: importing kinfolk.plots.tree would put the module in the function's place.
_HOMES = {
    "cluster_evolution": "kinfolk.plots.evolution",
    "hinton": "kinfolk.plots.hinton_diagram",
    "networks": "kinfolk.plots.graph_drawing",
    "noise_model": "kinfolk.plots.noisy_dirichlet",
    "tree": "kinfolk.plots.dendrogram",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
