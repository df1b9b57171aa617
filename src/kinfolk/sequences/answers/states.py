"""What hidden states are: how often tasks are in them, what they are called by what they emit, and which are alike.

All of it is told of one draw of the posterior, the one that tells the states of sequences (``Kept.best``): states of
two draws are numbered at will. Only numpy is imported here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.answers.distances import distances
from kinfolk.sequences.answers.layout import Layout
from kinfolk.sequences.answers.prediction import Kept
from kinfolk.sequences.model.draw import Draw
from kinfolk.sequences.model.emissions.emission import Emission

# A task's share of steps in a state is that of the first so many steps of its sequences.
_HORIZON = 100
# Draws from each state that distances are estimated from: so many stays of so many steps, for states with a memory.
_SIMULATED = (50, 20)
# A name tells the symbols that make up so much of what a state shows, and so many of them and of columns at most.
_TOLD, _MOST_SYMBOLS, _MOST_COLUMNS = 0.8, 3, 3
# States are taken to be alike up to this distance, that of normal distributions 1.1 standard deviations apart.
NEAR = 0.2

Columns = dict[str, list[Any]]


class States(NamedTuple):
    """The states of a draw that tasks use, and how far apart they are.

    Attributes
    ----------
    cluster, state : int64 ndarrays of shape (n,)
        Which they are: a cluster of the draw, and a state of it.
    name : list of str
        What each is called.
    shares : ndarray of shape (n_tasks, n)
        Expected share of a task's steps in each.
    stays : ndarray of shape (n_tasks, n)
        Probability that a task stays there for another step; NaN where it is not the task's.
    used : bool ndarray of shape (n_tasks, n)
        Which states a task uses.
    parameters : ndarray of shape (n, n_parameters)
    """

    cluster: NDArray[np.int64]
    state: NDArray[np.int64]
    name: list[str]
    shares: Floats
    stays: Floats
    used: NDArray[np.bool_]
    parameters: Floats


def expected_shares(transitions: Floats, n_steps: int = _HORIZON) -> Floats:
    """Expected share of the first steps of a sequence in each state (…, L), given transitions (…, L + 1, L).

    Examples
    --------
    >>> expected_shares(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])).tolist()
    [0.5, 0.5]
    """
    here = transitions[..., 0, :]
    total = here.copy()
    for _ in range(n_steps - 1):
        here = np.einsum("...i,...ij->...j", here, transitions[..., 1:, :])
        total += here
    return np.asarray(total / n_steps)


def states_of(kept: Kept, layout: Layout) -> States:
    """The states that tasks use: of each task as many as it used, those that it is in most."""
    draw = kept.best
    of_task = expected_shares(draw.transitions)
    order = np.argsort(np.argsort(-of_task, axis=1, kind="stable"), axis=1)
    is_used = order < draw.n_states[:, None]
    n_tasks, n_states = of_task.shape
    used = np.zeros((n_tasks, len(draw.base_weights), n_states), dtype=bool)
    used[np.arange(n_tasks), draw.cluster] = is_used
    shares, stays = np.zeros(used.shape), np.full(used.shape, np.nan)
    shares[np.arange(n_tasks), draw.cluster] = of_task
    stays[np.arange(n_tasks), draw.cluster] = np.diagonal(draw.transitions[:, 1:], axis1=1, axis2=2)
    cluster, state = np.nonzero(used.any(axis=0))
    parameters = draw.parameters[cluster, state]
    weights = shares[:, cluster, state].sum(axis=0)
    names = _told_apart(_names(kept.emission, layout, parameters, weights), cluster.tolist())
    given = shares[:, cluster, state], stays[:, cluster, state], used[:, cluster, state]
    return States(cluster, state, names, *given, parameters)


def names_of(kept: Kept, layout: Layout) -> dict[tuple[int, int], str]:
    """What every state of that draw is called, those that no task uses too, by cluster and state."""
    known, draw = states_of(kept, layout), kept.best
    cluster, state = (places.ravel() for places in np.indices(draw.parameters.shape[:2]))
    weights = np.zeros(draw.parameters.shape[:2])
    weights[known.cluster, known.state] = known.shares.sum(axis=0)
    every = _names(kept.emission, layout, draw.parameters.reshape(len(cluster), -1), weights.ravel())
    names = dict(zip(zip(cluster.tolist(), state.tolist(), strict=True), every, strict=True))
    return names | dict(zip(zip(known.cluster.tolist(), known.state.tolist(), strict=True), known.name, strict=True))


def _names(emission: Emission, layout: Layout, parameters: Floats, weights: Floats) -> list[str]:
    """What states emit, in a few words: the columns in which each differs most from all of them together."""
    weights = weights / weights.sum()
    said: list[list[tuple[float, str]]] = [[] for _ in parameters]
    n_columns = layout.n_columns
    families = emission.channels
    own_parameters = np.split(parameters, np.cumsum([family.n_parameters for family in families])[:-1], axis=-1)
    for channel, family, own in zip(layout.channels, families, own_parameters, strict=True):
        (means,), (squares,) = family.means(own), family.mean_squares(own)
        for place, column in enumerate(channel.columns):
            called = f"column {column}" if layout.names is None else layout.names[column]
            title = "" if n_columns == 1 else f"{called}: "
            if channel.symbols is not None:
                surprises, texts = _symbols_told(means, weights, channel.symbols)
            else:
                assert squares is not None
                surprises = _how_far_out(means[:, place], squares[:, place], weights)
                texts = family.told(own, place)
            for of_state, surprise, text in zip(said, surprises, texts, strict=True):
                of_state.append((surprise, title + text))
    # The columns that tell most, in the order of the table.
    names = []
    for of_state in said:
        most = np.argsort([-surprise for surprise, _ in of_state], kind="stable")[:_MOST_COLUMNS]
        names.append(", ".join(of_state[at][1] for at in sorted(most)))
    return names


def _symbols_told(shares: Floats, weights: Floats, symbols: Sequence[Any]) -> tuple[list[float], list[str]]:
    """Of each state, the divergence of its symbols from those of all states, and the likeliest symbols."""
    together = np.maximum(weights @ shares, np.finfo(float).tiny)
    surprises, told = [], []
    for own in shares:
        surprises.append(float((own * np.log(np.maximum(own, np.finfo(float).tiny) / together)).sum()))
        order = np.argsort(-own, kind="stable")
        n = min(int(np.searchsorted(own[order].cumsum(), _TOLD)) + 1, _MOST_SYMBOLS, len(symbols))
        told.append(" or ".join(str(symbols[code]) for code in order[:n]))
    return surprises, told


def _how_far_out(means: Floats, squares: Floats, weights: Floats) -> list[float]:
    """How far the mean of each state is from that of all of them together, in the units of these, squared."""
    centre = float(weights @ means)
    spread = max(float(weights @ squares) - centre**2, np.finfo(float).tiny)
    return ((means - centre) ** 2 / spread).tolist()  # type: ignore[no-any-return]


def _told_apart(names: list[str], cluster: Sequence[int]) -> list[str]:
    """Names of which no two of a cluster are the same: the second of a name is numbered, and all after it."""
    met: Counter[tuple[int, str]] = Counter()
    found = []
    for name, of in zip(names, cluster, strict=True):
        met[of, name] += 1
        found.append(name if met[of, name] == 1 else f"{name} ({met[of, name]})")
    return found


def state_distances(parameters: Floats, emission: Emission, seed: int = 0) -> Floats:
    """How far states are apart (n, n): how much of which of two it came from one observation tells, from 0 to 1.

    That is the Jensen–Shannon divergence of what they emit, in bits: the mean of the divergences of both from their
    mixture. By the distance of models (eq. 11 of Ni et al. 2007) it would be the divergences of one from the other,
    which the share of a symbol that neither has ever shown makes arbitrarily large.
    """

    def simulate(i: int) -> tuple[Floats, Floats]:
        """Log densities of draws from state i, in it and in all states."""
        states, rng = np.full(_SIMULATED, i), np.random.default_rng([seed, i])
        rows, row = emission.log_densities(parameters, emission.draw_observations(parameters, states, rng))
        return rows[row, i], rows[row]

    def in_mixture(drawn: tuple[Floats, Floats], j: int) -> Floats:
        return np.asarray(np.logaddexp(drawn[0], drawn[1][:, j]) - np.log(2.0))

    found = distances(len(parameters), simulate, in_mixture) / np.log(2.0)
    return np.asarray(np.clip(found, 0.0, 1.0))


def state_table(states: States) -> Columns:
    """The states that tasks use: how often their tasks are there, how long they stay, and how many use each."""
    share, stay = [], []
    for place in range(len(states.name)):
        users = states.used[:, place]
        share.append(float(states.shares[users, place].mean()))
        # Of a stay of at most so many steps, the k-th takes place with probability p^(k − 1).
        stay.append(float((states.stays[users, place, None] ** np.arange(_HORIZON)).sum(axis=1).mean()))
    return {
        "cluster": states.cluster.tolist(),
        "state": states.state.tolist(),
        "name": list(states.name),
        "share": share,
        "duration": stay,
        "n_tasks": states.used.sum(axis=0).tolist(),
    }


def similar_states(states: States, emission: Emission, threshold: float, seed: int = 0) -> Columns:
    """Pairs of states at most so far apart, the closest first."""
    check_threshold(threshold)
    distance = state_distances(states.parameters, emission, seed)
    first, second = np.triu_indices(len(distance), 1)
    near = distance[first, second] <= threshold
    first, second = first[near], second[near]
    order = np.argsort(distance[first, second], kind="stable")
    first, second = first[order], second[order]
    return {
        "cluster": states.cluster[first].tolist(),
        "state": states.state[first].tolist(),
        "name": [states.name[i] for i in first],
        "other_cluster": states.cluster[second].tolist(),
        "other_state": states.state[second].tolist(),
        "other_name": [states.name[i] for i in second],
        "distance": distance[first, second].tolist(),
    }


def differing_states(
    states: States, emission: Emission, groups: Sequence[Any], threshold: float, seed: int = 0
) -> Columns:
    """The states of each group of tasks, and the nearest to each that tasks of other groups use.

    ``groups`` has a group for each task.
    """
    check_threshold(threshold)
    names = list(dict.fromkeys(groups))
    if len(names) < 2:
        raise ValueError(f"all tasks are of one group, {names[0]!r}: states differ between two groups or more")
    distance = state_distances(states.parameters, emission, seed)
    of_group = np.array([names.index(group) for group in groups])
    rows: list[tuple[Any, ...]] = []
    for place, group in enumerate(names):
        inside = of_group == place
        others = np.flatnonzero(states.used[~inside].any(axis=0))
        found = []
        for i in np.flatnonzero(states.used[inside].any(axis=0)):
            nearest = others[int(np.argmin(distance[i, others]))]
            share, elsewhere = states.shares[inside, i].mean(), states.shares[~inside, i].mean()
            apart = float(distance[i, nearest])
            own = int(states.cluster[i]), int(states.state[i]), states.name[i], float(share), float(elsewhere)
            found.append((group, *own, states.name[nearest], apart, apart > threshold))
        rows += sorted(found, key=lambda row: (-row[-2], -row[4]))
    titles = ("group", "cluster", "state", "name", "share", "share_elsewhere", "nearest", "distance", "differs")
    return {title: [row[at] for row in rows] for at, title in enumerate(titles)}


def groups_of_tasks(groups: Any, draw: Draw, tasks: Sequence[Any]) -> list[Any]:
    """The group of each task: its cluster in the draw, unless a mapping or one for each task is given."""
    if groups is None:
        if len(draw.base_weights) == 1:
            raise ValueError("all tasks share their states: say which tasks are to be compared, groups=...")
        return [int(cluster) for cluster in draw.cluster]
    if isinstance(groups, Mapping):
        without = [task for task in tasks if task not in groups]
        if without:
            raise ValueError(f"groups has none for task {without[0]!r}: every task needs one")
        return [groups[task] for task in tasks]
    given = list(groups) if hasattr(groups, "__iter__") and not isinstance(groups, str) else None
    if given is None or len(given) != len(tasks):
        of = f"{groups!r}" if given is None else f"has {len(given)} entries"
        raise ValueError(f"groups {of}: a mapping from tasks, or a group for each of the {len(tasks)} tasks, is needed")
    return given


def check_threshold(threshold: Any) -> None:
    """Refuse a distance that is none."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or not 0 <= threshold <= 1:
        raise ValueError(f"threshold={threshold!r}: a distance is needed, a number from 0 to 1")
