"""Tasks of sequences drawn from hidden Markov models, some of which are kin (Ni et al. 2007, section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from kinfolk.datasets.networks import Seed, check_count, seed_of
from kinfolk.maths.arrays import Floats

if TYPE_CHECKING:
    from sklearn.utils import Bunch

Ints = NDArray[np.int64]

# Section 4.1: start, transition and emission probabilities of the three clusters, and how many tasks each has.
STARTS = np.array([[0.6950, 0.3050], [0.8724, 0.1276], [0.4729, 0.5271]])
TRANSITIONS = np.array([[[0.8, 0.2], [0.2, 0.8]], [[0.2, 0.8], [0.8, 0.2]], [[0.5, 0.5], [0.5, 0.5]]])
_PEAK = (0.05, 0.1, 0.7, 0.1, 0.05)
# Where the peak of five codes begins, of eight codes in a ring, in each state of each cluster.
_PEAK_BEGINS = ((0, 3), (2, 1), (4, 5))
EMISSIONS = np.array([[np.roll([*_PEAK, 0.0, 0.0, 0.0], begin) for begin in begins] for begins in _PEAK_BEGINS])
CLUSTER_SIZES = (3, 4, 5)


def make_sequences(
    *,
    n_sequences: int = 50,
    length: int = 20,
    distortion: float = 0.05,
    random_state: Seed = None,
) -> Bunch:
    """Draw the twelve tasks of section 4.1 of the paper [1]_: three clusters of hidden Markov models of eight codes.

    A task's transition and emission probabilities are its cluster's, each non-zero one raised by a distortion of its
    own, and then scaled to add up to one.

    Parameters
    ----------
    n_sequences : int, default=50
        Sequences of each task.
    length : int, default=20
        Steps of each sequence.
    distortion : float, default=0.05
        Distortions are drawn uniformly from 0 to this.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``X`` (n_steps, 1) codes, ``lengths`` and ``task`` of each sequence, ``partition`` (the true cluster of each
        task), ``states`` (the hidden state of each step), and by task ``starts``, ``transitions`` and ``emissions``.

    References
    ----------
    .. [1] K. Ni, L. Carin and D. Dunson, "Multi-Task Learning for Sequential Data via iHMMs and the Nested Dirichlet
       Process", ICML 2007.

    Examples
    --------
    >>> from kinfolk.datasets.sequences import make_sequences
    >>> made = make_sequences(random_state=0)
    >>> made.X.shape, len(made.lengths), made.partition.tolist()
    ((12000, 1), 600, [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    """
    check_count("n_sequences", n_sequences, 1)
    check_count("length", length, 1)
    if isinstance(distortion, bool) or not isinstance(distortion, int | float) or not 0 <= distortion < np.inf:
        raise ValueError(f"distortion is {distortion!r}, but must be a number of at least 0")
    rng = np.random.default_rng(seed_of(random_state))
    partition = np.repeat(np.arange(3, dtype=np.int64), CLUSTER_SIZES)
    transitions, emissions = (
        _distorted(probabilities[partition], distortion, rng) for probabilities in (TRANSITIONS, EMISSIONS)
    )
    lengths = np.full(len(partition) * n_sequences, length, dtype=np.int64)
    task = np.repeat(np.arange(len(partition), dtype=np.int64), n_sequences)
    states = draw_states(STARTS[partition], transitions, task, lengths, rng)
    return _bunch(
        X=_draw_codes(emissions[np.repeat(task, lengths), states], rng)[:, None],
        lengths=lengths,
        task=task,
        partition=partition,
        states=states,
        starts=STARTS[partition],
        transitions=transitions,
        emissions=emissions,
    )


def make_kin_sequences(
    n_tasks: int = 10,
    n_clusters: int = 3,
    n_states: int = 4,
    *,
    emission: Literal["categorical", "gaussian", "poisson"] = "categorical",
    n_values: int = 16,
    n_sequences: int = 20,
    length: int | tuple[int, int] = 40,
    likeness: float = 20.0,
    sharpness: float = 5.0,
    missing: float = 0.0,
    random_state: Seed = None,
) -> Bunch:
    """Draw tasks of which kin share what their states emit, and have transitions of their own that are alike.

    Parameters
    ----------
    n_tasks, n_clusters, n_states : int
        Tasks belong to clusters in turn, so that these are equally large.
    emission : {"categorical", "gaussian", "poisson"}, default="categorical"
        What a step has: a code, or numbers that are normally distributed in each state, or counts.
    n_values : int, default=16
        How many codes there are, or how many numbers or counts a step has.
    n_sequences : int, default=20
        Sequences of each task.
    length : int or (int, int), default=40
        Steps of each sequence, or the least and the most, drawn uniformly.
    likeness : float, default=20.0
        A row of a task's transitions is drawn from a Dirichlet distribution around its cluster's with so much weight.
    sharpness : float, default=5.0
        How well states are told apart: codes of a state are drawn from a Dirichlet distribution with one part in this
        for each; means are about so many standard deviations apart; rates are drawn from a Gamma distribution with this
        mean, of shape 1.
    missing : float, default=0.0
        Share of steps whose observation is missing: NaN, beside codes too, which are then floats.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``X``, ``lengths``, ``task``, ``partition``, ``states``, ``starts``, ``transitions`` as `make_sequences` gives
        them; ``emissions``, by task the probabilities of codes, the means or the rates in each state.

    Examples
    --------
    >>> from kinfolk.datasets.sequences import make_kin_sequences
    >>> made = make_kin_sequences(4, 2, 3, emission="gaussian", n_values=2, length=(5, 9), random_state=0)
    >>> made.X.shape[1], made.lengths.min() >= 5, made.partition.tolist()
    (2, np.True_, [0, 1, 0, 1])
    """
    counts = {"n_tasks": n_tasks, "n_clusters": n_clusters, "n_states": n_states, "n_values": n_values}
    for name, count in {**counts, "n_sequences": n_sequences}.items():
        check_count(name, count, 1)
    if n_clusters > n_tasks:
        raise ValueError(f"n_clusters is {n_clusters}, but must be at most the number of tasks, {n_tasks}")
    if emission not in ("categorical", "gaussian", "poisson"):
        raise ValueError(f'emission is {emission!r}, but must be "categorical", "gaussian" or "poisson"')
    shortest, longest = (length, length) if isinstance(length, int) else length
    check_count("length", shortest, 1)
    check_count("length", longest, shortest)
    for name, value in (("likeness", likeness), ("sharpness", sharpness)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} is {value!r}, but must be a number above 0")
    if not 0 <= missing < 1:
        raise ValueError(f"missing is {missing!r}, but must be a share of at least 0 and below 1")
    rng = np.random.default_rng(seed_of(random_state))
    partition = np.arange(n_tasks, dtype=np.int64) % n_clusters
    centres = rng.dirichlet(np.ones(n_states), size=(n_clusters, n_states + 1))
    # Never zero, which no Dirichlet distribution takes.
    weights = likeness * centres[partition] + 1e-3
    rows = rng.gamma(weights) + 1e-300
    rows /= rows.sum(axis=2, keepdims=True)
    task = np.repeat(np.arange(n_tasks, dtype=np.int64), n_sequences)
    lengths = rng.integers(shortest, longest + 1, size=len(task))
    states = draw_states(rows[:, 0], rows[:, 1:], task, lengths, rng)
    of_step = np.repeat(task, lengths)
    shape = (n_clusters, n_states, n_values)
    X: Floats | Ints
    if emission == "categorical":
        drawn = rng.gamma(1.0 / sharpness, size=shape) + 1e-300
        emissions = (drawn / drawn.sum(axis=2, keepdims=True))[partition]
        X = _draw_codes(emissions[of_step, states], rng)[:, None]
    elif emission == "gaussian":
        emissions = rng.normal(scale=sharpness / 2**0.5, size=shape)[partition]
        X = rng.normal(emissions[of_step, states])
    else:
        emissions = rng.exponential(sharpness, size=shape)[partition]
        X = rng.poisson(emissions[of_step, states]).astype(np.float64)
    if missing:
        X = np.where((rng.random(len(X)) < missing)[:, None], np.nan, X)
    return _bunch(
        X=X,
        lengths=lengths,
        task=task,
        partition=partition,
        states=states,
        starts=rows[:, 0],
        transitions=rows[:, 1:],
        emissions=emissions,
    )


def draw_states(starts: Floats, transitions: Floats, task: Ints, lengths: Ints, rng: np.random.Generator) -> Ints:
    """Hidden states of sequences, one after the other; all sequences are advanced at once.

    Parameters
    ----------
    starts : ndarray of shape (n_tasks, n_states)
    transitions : ndarray of shape (n_tasks, n_states, n_states)
    task, lengths : ndarray of shape (n_sequences,)
    rng : Generator

    Returns
    -------
    ndarray of shape (n_steps,)
    """
    longest = int(lengths.max())
    table = np.empty((len(lengths), longest), dtype=np.int64)
    rows = starts[task]
    for t in range(longest):
        table[:, t] = _draw_codes(rows, rng)
        rows = transitions[task, table[:, t]]
    return table[np.arange(longest) < lengths[:, None]]


def _draw_codes(probabilities: Floats, rng: np.random.Generator) -> Ints:
    """A category for each row of probabilities."""
    cumulative = np.cumsum(probabilities, axis=1)
    below = rng.random(len(cumulative))[:, None] * cumulative[:, -1:] >= cumulative
    return np.asarray(below.sum(axis=1), dtype=np.int64)


def _distorted(probabilities: Floats, distortion: float, rng: np.random.Generator) -> Floats:
    raised = probabilities + (probabilities > 0) * rng.uniform(0.0, distortion, size=probabilities.shape)
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _bunch(**parts: NDArray[np.generic]) -> Bunch:
    from sklearn.utils import Bunch

    return Bunch(**parts)
