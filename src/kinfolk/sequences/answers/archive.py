"""A fitted infinite hidden Markov model as plain data, and back.

Draws take most of a file: a transition matrix for each task in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.posterior import Archive, plain, plain_names, unplain
from kinfolk.sequences.answers.predictor import (
    clusters_and_seed_from,
    draws_from,
    empty_from,
    families_from,
    layout_from,
    tasks_from,
)
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.channels import Channels
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull
from kinfolk.sequences.model.emissions.poisson import Poisson
from kinfolk.sequences.model.fitted import HYPER_PARAMETERS, Fitted, Traces, judge
from kinfolk.sequences.model.ndp_ihmm import Draw
from kinfolk.tasks.values import as_ids

_MADE_OF = {
    "categorical": Categorical,
    "gaussian": GaussianDiagonal,
    "gaussian-full": GaussianFull,
    "poisson": Poisson,
}
_BY_TASK = ("cluster", "transitions", "n_states")
_BY_DRAW = (*HYPER_PARAMETERS, "log_joint", "stickiness")


def to_archive(model: Any) -> Archive:
    """Everything that a fitted estimator knows."""
    fitted, layout, kept = model.posterior_, model._layout, model._kept
    params = model.get_params(deep=False)
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = model._seed
    about = {
        "family": "sequences",
        "estimator": type(model).__name__,
        "params": {name: plain(_listed(value), name) for name, value in params.items()},
        "tasks": plain_names(model.tasks_, "a task"),
        "layout": {
            "names": None if layout.names is None else list(layout.names),
            "n_columns": layout.n_columns,
            "is_flat": layout.is_flat,
            "channels": [
                [
                    channel.kind,
                    list(channel.columns),
                    None if channel.symbols is None else plain_names(channel.symbols, "a symbol"),
                ]
                for channel in layout.channels
            ],
        },
        "emissions": [_family_about(family) for family in _families(model.emission_)],
        "strength": float(model.emission_.strength),
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": plain(getattr(model, "feature_names_in_", None), "a column"),
        "n_clusters": kept.n_clusters,
        "seed": model._seed,
        "sampled": fitted.convergence is not None,
        "bound": fitted.bound,
    }
    draws, traces = fitted.draws, fitted.traces
    arrays: dict[str, NDArray[Any]] = {
        "draws.ends": np.cumsum([len(draw.base_weights) for draw in draws]),
        "draws.base_weights": np.concatenate([draw.base_weights for draw in draws]),
        "draws.parameters": np.concatenate([draw.parameters for draw in draws]),
        **{f"draws.{name}": np.array([getattr(draw, name) for draw in draws]) for name in (*_BY_TASK, *_BY_DRAW)},
        "empty.base_weights": kept.empty.base_weights,
        "empty.parameters": kept.empty.parameters,
        "traces.partitions": traces.partitions,
        "traces.log_joint": traces.log_joint,
        "traces.n_states": traces.n_states,
        **{f"traces.{name}": drawn for name, drawn in traces.hyper_parameters.items()},
    }
    return Archive(about, arrays)


def _listed(value: Any) -> Any:
    """Symbols and labels as lists, whatever sequence they came in."""
    if isinstance(value, Mapping):
        return {key: _listed(own) for key, own in value.items()}
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else value


def _families(emission: Emission) -> tuple[Emission, ...]:
    return emission.emissions if isinstance(emission, Channels) else (emission,)


def _family_about(family: Emission) -> dict[str, Any]:
    if isinstance(family, Categorical):
        return {"n_codes": family.n_codes}
    fields = {GaussianDiagonal: ("centre", "scale"), GaussianFull: ("centre", "whiten", "colour", "log_volume")}
    return {name: plain(getattr(family, name), name) for name in fields.get(type(family), ("mean",))}


def from_archive(model_class: type[Any], archive: Archive) -> Any:
    """A fitted estimator as it was saved."""
    about = archive.about
    model = model_class(**{name: unplain(value) for name, value in about["params"].items()})
    model._check_parameters()
    model.tasks_, model._layout = as_ids(tasks_from(archive)), layout_from(archive)
    n_clusters, model._seed = clusters_and_seed_from(archive)
    if n_clusters != model._n_clusters():
        raise ValueError(f"it has room for {n_clusters} clusters, its parameters for {model._n_clusters()}")
    model.n_features_in_ = int(about["n_features_in"])
    columns = about.get("feature_names_in")
    if columns is not None:
        if len(columns) != model.n_features_in_ or not all(isinstance(name, str) for name in columns):
            raise ValueError("the names of its columns are not text, or not one for each")
        model.feature_names_in_ = np.array(columns, dtype=object)
    draws = tuple(Draw(*draw) for draw in draws_from(archive))
    traces = _traces_from(archive, len(model.tasks_), draws[0].base_weights.shape[1])
    bound = about.get("bound")
    fitted = Fitted(draws, traces, judge(traces) if about["sampled"] else None, None if bound is None else float(bound))
    model._keep(fitted, _emission_from(archive, model), empty_from(archive))
    return model


def _emission_from(archive: Archive, model: Any) -> Emission:
    strength = float(archive.about["strength"])
    emissions = []
    for family in families_from(archive, model._layout):
        fields = {name: value for name, value in family.items() if name != "kind"}
        emissions.append(_MADE_OF[family["kind"]](**fields, strength=strength))
    return emissions[0] if len(emissions) == 1 else Channels(tuple(emissions))


def _traces_from(archive: Archive, n_tasks: int, n_states: int) -> Traces:
    log_joint = np.array(archive.array("traces.log_joint", "f", (None, None)), dtype=np.float64)
    shape = log_joint.shape
    if not all(shape):
        raise ValueError("its chains have no draws")
    partitions = archive.array("traces.partitions", "i", (*shape, n_tasks)).astype(np.int32)
    if (partitions < 0).any():
        raise ValueError("its tasks name clusters that it does not have")
    hyper = {name: np.array(archive.array(f"traces.{name}", "f", shape)) for name in HYPER_PARAMETERS}
    used = np.array(archive.array("traces.n_states", "f", (n_tasks, n_states + 1)), dtype=np.float64)
    return Traces(partitions, log_joint, hyper, used)
