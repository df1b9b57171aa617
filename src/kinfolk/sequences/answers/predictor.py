"""What a saved infinite hidden Markov model predicts, with numpy alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.posterior import Archive, names_from
from kinfolk.sequences.answers.door import KINDS, Arranged, Channel, Layout, arrange, known_places, receive
from kinfolk.sequences.answers.new_tasks import Empty
from kinfolk.sequences.answers.plain_filters import PlainFilters, n_parameters
from kinfolk.sequences.answers.prediction import Kept, log_predictive, log_predictive_of_tasks, smooth
from kinfolk.tasks.values import as_ids

Floats = NDArray[np.float64]


class SavedDraw(NamedTuple):
    """A draw as a file has it; fields are those of :class:`~kinfolk.sequences.model.ndp_ihmm.Draw`."""

    cluster: NDArray[np.int64]
    base_weights: Floats
    parameters: Floats
    transitions: Floats
    eta: float
    gamma: float
    alpha: float
    strength: float
    log_joint: float
    n_states: NDArray[np.int64]
    stickiness: float


class SequencesPredictor:
    """A fitted infinite hidden Markov model reduced to what prediction needs; made by :func:`kinfolk.load`.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    """

    def __init__(self, archive: Archive) -> None:
        self.tasks_ = as_ids(tasks_from(archive))
        self._layout = layout_from(archive)
        filters = PlainFilters(families_from(archive, self._layout))
        self._kept = Kept(draws_from(archive), empty_from(archive), *clusters_and_seed_from(archive), filters)

    @classmethod
    def from_archive(cls, archive: Archive) -> SequencesPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        return cls(archive)

    def score_samples(self, X: Any, lengths: Any = None, *, task: Any = None) -> Floats:
        """Natural log of the posterior predictive likelihood of each sequence, as the estimator gives it."""
        arranged = self._receive(X, lengths, task)
        found = np.empty(arranged.sequences.n_sequences)
        found[arranged.origin] = log_predictive(self._kept, arranged.sequences)
        return found

    def score(self, X: Any, lengths: Any = None, *, task: Any = None) -> float:
        """Mean of :meth:`score_samples` over sequences."""
        return float(self.score_samples(X, lengths, task=task).mean())

    def predict(self, X: Any, lengths: Any = None, *, task: Any = None) -> NDArray[np.int64]:
        """Hidden states of every step: the most probable path in the draw with the highest log joint."""
        arranged = self._receive(X, lengths, task)
        states = np.empty(len(arranged.steps), dtype=np.int64)
        states[arranged.steps] = smooth(self._kept, arranged.sequences).path
        return states

    def predict_proba(self, X: Any, lengths: Any = None, *, task: Any = None) -> Floats:
        """Probability of each hidden state of every step, in the draw of :meth:`predict`."""
        arranged = self._receive(X, lengths, task)
        probability = smooth(self._kept, arranged.sequences).probability
        back = np.empty_like(probability)
        back[arranged.steps] = probability
        return back

    def classify(self, X: Any, lengths: Any = None) -> Floats:
        """Probability that each sequence is of each known task (n_sequences, n_tasks)."""
        arrival = receive(X, lengths, None)
        place = np.zeros(len(arrival.lengths), dtype=np.int64)
        sequences = arrange(self._layout.observations(arrival.table), arrival.lengths, place).sequences
        found = log_predictive_of_tasks(self._kept, sequences)
        shares = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _receive(self, X: Any, lengths: Any, task: Any) -> Arranged:
        arrival = receive(X, lengths, task)
        place = known_places(arrival, self.tasks_)
        return arrange(self._layout.observations(arrival.table), arrival.lengths, place + 1)


def tasks_from(archive: Archive) -> list[Any]:
    """The tasks of a saved model."""
    tasks = names_from(archive.about["tasks"], "tasks")
    if not tasks:
        raise ValueError("it has no tasks")
    return tasks


def layout_from(archive: Archive) -> Layout:
    """The columns of a saved model, and the channels that they make."""
    about = archive.about["layout"]
    names, n_columns = about["names"], int(about["n_columns"])
    if names is not None and (len(names) != n_columns or not all(isinstance(name, str) for name in names)):
        raise ValueError("the names of its columns are not text, or not one for each")
    channels = []
    for kind, columns, symbols in about["channels"]:
        if kind not in KINDS or (symbols is None) != (kind != "categorical"):
            raise ValueError(f"its channel of kind {kind!r} is not one that this version knows")
        known = None if symbols is None else tuple(names_from(symbols, "symbols"))
        channels.append(Channel(kind, tuple(int(column) for column in columns), known))
    together = sorted(column for channel in channels for column in channel.columns)
    if together != list(range(n_columns)) or any(len(c.columns) > 1 and "gaussian" not in c.kind for c in channels):
        raise ValueError("its channels do not have every column just once")
    return Layout(None if names is None else tuple(names), n_columns, bool(about["is_flat"]), tuple(channels))


def families_from(archive: Archive, layout: Layout) -> list[Mapping[str, Any]]:
    """The emissions of a saved model, one a channel, with arrays of numbers for lists of them."""
    families: list[Mapping[str, Any]] = []
    for channel, about in zip(layout.channels, archive.about["emissions"], strict=True):
        family: dict[str, Any] = {"kind": channel.kind}
        width = len(channel.columns)
        if channel.symbols is not None:
            family["n_codes"] = len(channel.symbols)
        elif channel.kind == "poisson":
            family["mean"] = _positive(about["mean"], "mean of a count")
        else:
            family["centre"] = _numbers(about["centre"], (width,))
            if channel.kind == "gaussian":
                family["scale"] = _numbers(about["scale"], (width,))
                if (family["scale"] < 0.0).any():
                    raise ValueError("a scale of its numbers is below zero")
            else:
                size = len(about["colour"])
                family["whiten"] = _numbers(about["whiten"], (width, size))
                family["colour"] = _numbers(about["colour"], (size, width))
                family["log_volume"] = float(_numbers(about["log_volume"], ()))
        families.append(family)
    return families


def _numbers(value: Any, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if array.size == 0 and math.prod(shape) == 0:
        return np.zeros(shape)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"numbers of its emissions have shape {array.shape}, not {shape}, or are not finite")
    return array


def _positive(value: Any, what: str) -> float:
    number = float(value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"its {what} is {number}, which is not above zero")
    return number


def _sizes(archive: Archive) -> tuple[int, int, int, int]:
    """Numbers of draws, tasks, states and parameters."""
    layout = layout_from(archive)
    width = sum(n_parameters(family) for family in families_from(archive, layout))
    base = archive.arrays.get("draws.base_weights")
    if base is None or base.ndim != 2 or not all(base.shape):
        raise ValueError("its array 'draws.base_weights' is missing or empty")
    n_draws = len(archive.array("draws.log_joint", "f", (None,)))
    if not n_draws:
        raise ValueError("it has no draws")
    return n_draws, len(tasks_from(archive)), base.shape[1], width


def draws_from(archive: Archive) -> list[SavedDraw]:
    """The draws of a saved model."""
    n_draws, n_tasks, n_states, width = _sizes(archive)
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
    hyper = {name: _floats(archive, f"draws.{name}", (n_draws,)) for name in ("eta", "gamma", "alpha", "strength")}
    if any((drawn <= 0.0).any() for drawn in hyper.values()):
        raise ValueError("a concentration in it is not above zero")
    stickiness = _floats(archive, "draws.stickiness", (n_draws,))
    if (stickiness < 0.0).any():
        raise ValueError("a stickiness in it is below zero")
    return [
        SavedDraw(
            cluster[d],
            base[starts[d] : ends[d]],
            parameters[starts[d] : ends[d]],
            transitions[d],
            float(hyper["eta"][d]),
            float(hyper["gamma"][d]),
            float(hyper["alpha"][d]),
            float(hyper["strength"][d]),
            float(log_joint[d]),
            n_used[d],
            float(stickiness[d]),
        )
        for d in range(n_draws)
    ]


def empty_from(archive: Archive) -> Empty:
    """The clusters without tasks of a saved model."""
    n_draws, _, n_states, width = _sizes(archive)
    base = _shares(archive, "empty.base_weights", (n_draws, n_states))
    return Empty(base, _floats(archive, "empty.parameters", (n_draws, n_states, width)))


def clusters_and_seed_from(archive: Archive) -> tuple[int | None, int]:
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
