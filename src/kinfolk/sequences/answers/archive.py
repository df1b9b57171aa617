"""A fitted infinite hidden Markov model as plain data, and back; numpy alone is imported to read what predicts.

Draws take most of a file: a transition matrix for each task in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive, known_about, known_from, names_from, plain, plain_names
from kinfolk.sequences.answers.layout import Channel, Layout
from kinfolk.sequences.answers.new_tasks import Empty
from kinfolk.sequences.answers.prediction import Filters, Kept
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.emission import Asked, Emission
from kinfolk.sequences.model.emissions.families import kind_named, side_by_side
from kinfolk.sequences.model.emissions.summed_out import SummedOut

if TYPE_CHECKING:
    from kinfolk.sequences.model.fitted import Fitted
    from kinfolk.tasks.answering import Known

_STRENGTH = HyperParameters._fields.index("strength")
_BY_TASK = ("cluster", "transitions", "n_states")


def to_archive(params: Mapping[str, Any], known: Known, layout: Layout, kept: Kept, fitted: Fitted) -> Archive:
    """Everything that a fitted estimator knows."""
    about = {
        "family": "sequences",
        **known_about(known),
        "params": {name: plain(_listed(value), name) for name, value in params.items()},
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
        "emissions": [family.plain() for family in kept.emission.channels],
        "strength": float(kept.emission.strength),
        "n_clusters": kept.n_clusters,
        "seed": kept.seed,
        "sampled": fitted.convergence is not None,
        "bound": fitted.bound,
        "interrupted": fitted.interrupted,
    }
    draws, traces = fitted.draws, fitted.traces
    arrays: dict[str, NDArray[Any]] = {
        "draws.ends": np.cumsum([len(draw.base_weights) for draw in draws]),
        "draws.base_weights": np.concatenate([draw.base_weights for draw in draws]),
        "draws.parameters": np.concatenate([draw.parameters for draw in draws]),
        **{f"draws.{name}": np.array([getattr(draw, name) for draw in draws]) for name in _BY_TASK},
        "draws.log_joint": np.array([draw.log_joint for draw in draws]),
        **{
            f"draws.{name}": np.array([getattr(draw.hyper, name) for draw in draws]) for name in HyperParameters._fields
        },
        **_urns_to(draws),
        "empty.base_weights": kept.empty.base_weights,
        "empty.parameters": kept.empty.parameters,
        "traces.partitions": traces.partitions,
        "traces.log_joint": traces.log_joint,
        "traces.n_states": traces.n_states,
        **{f"traces.{name}": drawn for name, drawn in traces.hyper_parameters.items()},
    }
    if traces.left_out is not None:
        arrays["traces.left_out"] = traces.left_out
    if fitted.chain_weights is not None:
        arrays["chain_weights"] = fitted.chain_weights
    if fitted.rooms is not None:
        about["rooms"] = list(fitted.rooms)
    if fitted.central is not None:
        about["central"] = fitted.central
    if draws[0].features is not None:
        arrays["draws.features"] = np.array([draw.features for draw in draws], dtype=np.int8)
    return Archive(about, arrays)


def _urns_to(draws: Sequence[Draw]) -> dict[str, NDArray[Any]]:
    """What draws say that their transitions, their shares of codes and the rest of θ were drawn by."""
    rows, codes = [draw.row_counts for draw in draws], [draw.code_counts for draw in draws]
    if rows[0] is None or codes[0] is None:
        return {}
    urns = {"draws.row_counts": np.array(rows), "draws.code_counts": np.concatenate(codes)}  # type: ignore[arg-type]
    statistics = [draw.statistics for draw in draws if draw.statistics is not None]
    return urns | {"draws.statistics": np.concatenate(statistics)} if len(statistics) == len(draws) else urns


def _listed(value: Any) -> Any:
    """Symbols and labels as lists, whatever sequence they came in."""
    if isinstance(value, Mapping):
        return {key: _listed(own) for key, own in value.items()}
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else value


def layout_from(archive: Archive) -> Layout:
    """The columns of a saved model, and the channels that they make."""
    about = archive.about["layout"]
    names, n_columns = about["names"], int(about["n_columns"])
    if names is not None and (len(names) != n_columns or not all(isinstance(name, str) for name in names)):
        raise ValueError("the names of its columns are not text, or not one for each")
    channels = []
    for kind, columns, symbols in about["channels"]:
        named = kind_named(kind)
        if named is None or (symbols is None) != (named.family.reads != "symbols"):
            raise ValueError(f"its channel of kind {kind!r} is not one that this version knows")
        known = None if symbols is None else tuple(names_from(symbols, "symbols"))
        channels.append(Channel(kind, tuple(int(column) for column in columns), known))
    together = sorted(column for channel in channels for column in channel.columns)
    if together != list(range(n_columns)) or any(len(c.columns) > 1 and c.reads != "numbers" for c in channels):
        raise ValueError("its channels do not have every column just once")
    return Layout(None if names is None else tuple(names), n_columns, bool(about["is_flat"]), tuple(channels))


def kept_from(archive: Archive, filters: Callable[[Emission], Filters]) -> Kept:
    """The draws of a saved model, and what is needed to predict by them."""
    emission = _emission_from(archive)
    sizes = _sizes(archive, emission)
    return Kept(
        _draws_from(archive, *sizes),
        _empty_from(archive, *sizes),
        *_clusters_and_seed_from(archive),
        emission,
        filters(emission),
        _draw_weights_from(archive, sizes[0]),
        _each_draw(_rooms_from(archive), sizes[0]),
        _central_from(archive, sizes[0]),
    )


def fitted_from(archive: Archive, kept: Kept) -> Fitted:
    """All that inference left behind in a saved estimator."""
    from kinfolk.sequences.model.fitted import HYPER_PARAMETERS, Fitted, Traces, judge

    log_joint = np.array(archive.array("traces.log_joint", "f", (None, None)), dtype=np.float64)
    shape = log_joint.shape
    if not all(shape):
        raise ValueError("its chains have no draws")
    n_tasks, n_rows, _ = kept.draws[0].transitions.shape
    partitions = archive.array("traces.partitions", "i", (*shape, n_tasks)).astype(np.int32)
    if (partitions < 0).any():
        raise ValueError("its tasks name clusters that it does not have")
    hyper = {name: np.array(archive.array(f"traces.{name}", "f", shape)) for name in HYPER_PARAMETERS}
    used = np.array(archive.array("traces.n_states", "f", (n_tasks, n_rows)), dtype=np.float64)
    left_out = None
    if "traces.left_out" in archive.arrays:
        left_out = np.array(archive.array("traces.left_out", "f", shape, missing=True), dtype=np.float64)
    traces, bound = Traces(partitions, log_joint, hyper, used, left_out), archive.about.get("bound")
    rooms = _rooms_from(archive)
    convergence = judge(traces, rooms) if archive.about["sampled"] else None
    return Fitted(
        tuple(kept.draws),
        traces,
        convergence,
        None if bound is None else float(bound),
        _chain_weights_from(archive),
        rooms,
        bool(archive.about.get("interrupted", False)),
        kept.central,
    )


def _emission_from(archive: Archive) -> Emission:
    strength = float(archive.about["strength"])
    families = []
    for channel, about in zip(layout_from(archive).channels, archive.about["emissions"], strict=True):
        kind = kind_named(channel.kind)
        assert kind is not None  # layout_from has seen to it
        n_codes = None if channel.symbols is None else len(channel.symbols)
        asked = Asked(channel.kind, n_codes, kind.order)
        families.append(kind.family.from_plain(about, len(channel.columns), asked, strength))
    return side_by_side(families)


def _sizes(archive: Archive, emission: Emission) -> tuple[int, int, int, int]:
    """Numbers of draws, tasks, states and parameters."""
    base = archive.arrays.get("draws.base_weights")
    if base is None or base.ndim != 2 or not all(base.shape):
        raise ValueError("its array 'draws.base_weights' is missing or empty")
    n_draws = len(archive.array("draws.log_joint", "f", (None,)))
    if not n_draws:
        raise ValueError("it has no draws")
    return n_draws, len(known_from(archive).tasks), base.shape[1], emission.n_parameters


def _draws_from(archive: Archive, n_draws: int, n_tasks: int, n_states: int, width: int) -> list[Draw]:
    ends = archive.array("draws.ends", "i", (n_draws,)).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]])
    n_all = int(ends[-1])
    cluster = archive.array("draws.cluster", "i", (n_draws, n_tasks)).astype(np.int64)
    if (ends <= starts).any() or (cluster < 0).any() or (cluster >= (ends - starts)[:, None]).any():
        raise ValueError("its tasks name clusters that it does not have")
    base = _shares(archive, "draws.base_weights", (n_all, n_states))
    parameters = _floats(archive, "draws.parameters", (n_all, n_states, width))
    transitions = _shares(archive, "draws.transitions", (n_draws, n_tasks, n_states + 1, n_states))
    n_used = archive.array("draws.n_states", "i", (n_draws, n_tasks)).astype(np.int64)
    log_joint = _floats(archive, "draws.log_joint", (n_draws,))
    hyper = np.array([_floats(archive, f"draws.{name}", (n_draws,)) for name in HyperParameters._fields])
    features: Any = [None] * n_draws
    if "draws.features" in archive.arrays:
        features = archive.array("draws.features", "i", (n_draws, n_tasks, n_states)) > 0
        if not features.any(axis=2).all():
            raise ValueError("a task in it has none of its states")
    if (hyper[:-1] <= 0.0).any():
        raise ValueError("a concentration in it is not above zero")
    if (hyper[-1] < 0.0).any():
        raise ValueError("a stickiness in it is below zero")
    rows, codes = _urns_from(archive, n_draws, n_tasks, n_states, n_all)
    statistics = _statistics_from(archive, n_states, np.repeat(hyper[_STRENGTH], ends - starts))
    return [
        Draw(
            cluster[d],
            base[starts[d] : ends[d]],
            parameters[starts[d] : ends[d]],
            transitions[d],
            HyperParameters(*hyper[:, d].tolist()),
            float(log_joint[d]),
            n_used[d],
            None if rows is None else rows[d],
            None if codes is None else codes[starts[d] : ends[d]],
            features=features[d],
            statistics=None if statistics is None else statistics[starts[d] : ends[d]],
        )
        for d in range(n_draws)
    ]


def _urns_from(
    archive: Archive, n_draws: int, n_tasks: int, n_states: int, n_all: int
) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
    """Pseudo-counts of transitions and of codes; None in files of earlier versions."""
    if "draws.row_counts" not in archive.arrays:
        return None, None
    n_codes = sum(family.n_statistics for family in _emission_from(archive).channels if family.counts_codes)
    rows = archive.array("draws.row_counts", "f", (n_draws, n_tasks, n_states + 1, n_states))
    codes = archive.array("draws.code_counts", "f", (n_all, n_states, n_codes))
    if (rows < 0.0).any() or (rows.sum(axis=-1) <= 0.0).any() or (codes <= 0.0).any():
        raise ValueError("its pseudo-counts of transitions or of codes are not above zero")
    return rows.astype(np.float32), codes.astype(np.float32)


def _statistics_from(archive: Archive, n_states: int, strength: Floats) -> Floats | None:
    """Of states' training steps, in channels whose θ is summed out by them; None in files of earlier versions.

    ``strength`` is that of each cluster's prior.
    """
    if "draws.statistics" not in archive.arrays:
        return None
    summed = SummedOut.of(_emission_from(archive))
    statistics = _floats(archive, "draws.statistics", (len(strength), n_states, summed.n_statistics))
    if not summed.can_be(statistics, strength[:, None]):
        raise ValueError("its statistics of states are not those of any steps")
    return statistics


def _chain_weights_from(archive: Archive) -> Floats | None:
    """How much each chain counts; None where all count alike, as in files of earlier versions."""
    if "chain_weights" not in archive.arrays:
        return None
    return _shares(archive, "chain_weights", (None,))


def _rooms_from(archive: Archive) -> tuple[int | None, ...] | None:
    """How many clusters the model of each chain has room for, where chains are of several models."""
    rooms = archive.about.get("rooms")
    if rooms is None:
        return None
    if not isinstance(rooms, list) or not rooms or any(r is not None and int(r) < 1 for r in rooms):
        raise ValueError("the models of its chains have no room for clusters")
    return tuple(None if room is None else int(room) for room in rooms)


def _central_from(archive: Archive, n_draws: int) -> int | None:
    """The draw that tells hidden states; None where the log joint says which, as in files of earlier versions."""
    central = archive.about.get("central")
    if central is None:
        return None
    if not isinstance(central, int) or not 0 <= central < n_draws:
        raise ValueError("the draw that tells its hidden states is none that it has")
    return central


def _each_draw(of_chains: tuple[int | None, ...] | None, n_draws: int) -> tuple[int | None, ...] | None:
    """What is known of chains, for each of their draws."""
    if of_chains is None:
        return None
    if n_draws % len(of_chains):
        raise ValueError("its chains do not have as many draws each")
    return tuple(own for own in of_chains for _ in range(n_draws // len(of_chains)))


def _draw_weights_from(archive: Archive, n_draws: int) -> Floats | None:
    weights = _chain_weights_from(archive)
    if weights is None:
        return None
    if not len(weights) or n_draws % len(weights) or (weights <= 0.0).any():
        raise ValueError("its chains do not have as many draws each, or one of them counts for nothing")
    n_each = n_draws // len(weights)
    return np.repeat(weights / n_each, n_each)


def _empty_from(archive: Archive, n_draws: int, n_tasks: int, n_states: int, width: int) -> Empty:
    base = _shares(archive, "empty.base_weights", (n_draws, n_states))
    return Empty(base, _floats(archive, "empty.parameters", (n_draws, n_states, width)))


def _clusters_and_seed_from(archive: Archive) -> tuple[int | None, int]:
    """How many clusters a saved model has room for, None where tasks never share; and its seed."""
    n_clusters, seed = archive.about["n_clusters"], int(archive.about["seed"])
    if seed < 0 or (n_clusters is not None and int(n_clusters) < 1):
        raise ValueError("its number of clusters, or its seed, is below what it can be")
    return None if n_clusters is None else int(n_clusters), seed


def _floats(archive: Archive, name: str, shape: tuple[int | None, ...]) -> Floats:
    return np.array(archive.array(name, "f", shape), dtype=np.float64)


def _shares(archive: Archive, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Probabilities that add up to one along the last axis."""
    shares = _floats(archive, name, shape)
    if (shares < 0.0).any() or not np.allclose(shares.sum(axis=-1), 1.0, atol=1e-6):
        raise ValueError(f"its array {name!r} does not hold probabilities that add up to one")
    return shares
