"""What models say of rows that they have not seen: held out of every task, and with their whole tasks.

Rows are held out in parts. With each part some tasks are held out whole, so that one fit tells of known tasks and of
new ones. The first part is a first round: a model that the average of the others would only lose by is left out of the
next: its weight has fallen to little, and far below what it was believed before, for small tasks and large ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.transfer.models import Member
from kinfolk.transfer.sizes import SizeWeights, choose_sizes, hats
from kinfolk.transfer.weights import by_sizes

# Rows from which weights are known well enough, and from which a first round can leave a model out.
_ENOUGH_ROWS = 10_000
_FEWEST_FOR_A_ROUND = 30
# A model is left out whose weights are below both: so little, and so small a part of its share beforehand.
_LITTLE = 0.05
_FALLEN = 0.3
# Tasks of which some can be held out whole, and what part of them, with each part of the rows.
_FEWEST_TASKS = 5
_SHARE_OF_TASKS = 0.1


class HeldOut(NamedTuple):
    """What each model gave the rows' targets (rows, models), how often rows count, and how many others a task had."""

    log_probability: Floats
    weights: Floats
    n_rows: Floats

    def only(self, models: NDArray[Any]) -> HeldOut:
        """What some of the models said."""
        return self._replace(log_probability=self.log_probability[:, models])


def joined(parts: Sequence[HeldOut]) -> HeldOut:
    """Parts as one."""
    return HeldOut(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def tasks_held_out(place: NDArray[np.int64], n_tasks: int, n_parts: int, rng: np.random.Generator) -> list[Any]:
    """For each part the rows of the tasks that are held out whole with it."""
    none = [np.zeros(len(place), dtype=bool)] * n_parts
    if n_tasks < _FEWEST_TASKS:
        return none
    n_out = max(1, int(_SHARE_OF_TASKS * n_tasks))
    order = rng.permutation(n_tasks)
    return [np.isin(place, np.take(order, np.arange(p * n_out, (p + 1) * n_out), mode="wrap")) for p in range(n_parts)]


def in_rounds(
    members: Sequence[Member],
    shares: Floats,
    parts: Sequence[NDArray[np.bool_]],
    hold_out: Callable[[Sequence[Member], NDArray[np.bool_]], HeldOut],
    n_jobs: int | None,
) -> tuple[NDArray[np.int64], HeldOut]:
    """Hold parts out until enough rows are known, without the models that the first part rules out.

    Returns
    -------
    kept : array
        Places of the models that are still in.
    held_out : HeldOut
        What these said.
    """
    kept = np.arange(len(members))
    (first,) = quietly(None, [(hold_out, members, parts[0])])
    if len(first.weights) >= _FEWEST_FOR_A_ROUND:
        kept = np.flatnonzero(~ruled_out(first, shares))
    found, rest = [first.only(kept)], list(parts[1:])
    still = [members[i] for i in kept.tolist()]
    n_more = -(-max(_ENOUGH_ROWS - len(first.weights), 0) // max(len(first.weights), 1))
    found += quietly(n_jobs, [(hold_out, still, part) for part in rest[:n_more]])
    return kept, joined(found)


def quietly(n_jobs: int | None, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Make calls side by side; what there is to tell is told when models are fitted to all rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(call)(*given) for call, *given in calls))


def weigh(held_out: HeldOut, shares: Floats) -> SizeWeights:
    """Weights by stacking for every number of rows that tasks have."""
    sizes = choose_sizes(held_out.n_rows)
    of_sizes, _ = by_sizes(held_out.log_probability, held_out.weights, hats(held_out.n_rows, sizes), shares)
    return SizeWeights(sizes, of_sizes)


def ruled_out(held_out: HeldOut, shares: Floats) -> NDArray[np.bool_]:
    """Models that are hardly believed any more, whatever the number of a task's rows."""
    highest = weigh(held_out, shares).weights.max(axis=0)
    return np.asarray((highest < _LITTLE) & (highest < _FALLEN * shares))
