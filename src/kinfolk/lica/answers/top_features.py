"""Which features a source is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import Backend


def top_features(
    components: Floats, loadings: Floats, names: list[str] | None, n_features: int, backend: Backend
) -> Any:
    """Features of the largest loadings of each source, as a frame: source, feature, weight (that of the component)."""
    columns: dict[str, list[Any]] = {"source": [], "feature": [], "weight": []}
    for h, component in enumerate(components):
        for j in np.argsort(-np.abs(loadings[h]), kind="stable")[:n_features]:
            columns["source"].append(h)
            columns["feature"].append(str(j) if names is None else names[j])
            columns["weight"].append(float(component[j]))
    return make_frame(columns, backend)
