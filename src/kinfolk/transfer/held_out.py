"""What models say of rows that they have not seen: held out of every task, and with their whole tasks.

Rows are held out in parts. With each part some tasks are held out whole, so that one fit tells of known tasks and of
new ones. The first part is a first round: a model that the average of the others would only lose by is left out of the
next: its weight has fallen to little, and far below what it was believed before, for small tasks and large ones. What
models find out on the way, such as where to begin, they find out in the first round alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from kinfolk.checkpoints import Checkpoint, column_key
from kinfolk.interrupts import stops_safely
from kinfolk.maths.arrays import Floats
from kinfolk.maths.blas import one_blas_thread
from kinfolk.pieces import delayed
from kinfolk.tasks.answering import Asked
from kinfolk.tasks.schema import encode
from kinfolk.tasks.table import Coded
from kinfolk.tasks.training import Labelled
from kinfolk.transfer.members import Chosen
from kinfolk.transfer.models import Member, codings_of
from kinfolk.transfer.scales import Scales, learn_scales, mix, no_scales, pooled_scales
from kinfolk.transfer.sizes import SizeWeights, choose_sizes, hats
from kinfolk.transfer.weights import by_sizes, make_folds

# The least that a log probability counts as, where one has rounded to zero.
_LEAST = -700.0
# Rows from which weights are known well enough, and from which a first round can leave a model out. Weights of k models
# learnt from n rows predict worse than the best ones by about (k − 1)/2n nats a row: here by less than 0.001.
_ENOUGH_ROWS = 5_000
_FEWEST_FOR_A_ROUND = 30
# A model is left out whose weights are below both: so little, and so small a part of its share beforehand.
_LITTLE = 0.05
_FALLEN = 0.3
# A member that is believed less by tasks of every size is not fitted to all rows.
_HARDLY = 0.01
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

    def scored(self) -> HeldOut:
        """Log probabilities are the score."""
        return self


class HeldOutNumbers(NamedTuple):
    """Targets of rows that are numbers, and the mean and the deviation that each model gave them (rows, models)."""

    target: Floats
    mean: Floats
    deviation: Floats
    weights: Floats
    n_rows: Floats

    def only(self, models: NDArray[Any]) -> HeldOutNumbers:
        """What some of the models said."""
        return self._replace(mean=self.mean[:, models], deviation=self.deviation[:, models])

    def scales(self) -> Scales:
        """How far off models are."""
        return learn_scales(self.target, self.mean, self.deviation, self.weights, self.n_rows)

    def pooled_scales(self, believed: SizeWeights) -> Scales:
        """How far off models are together, each believed so far, and how many numbers lie below their quantiles."""
        weights, is_known = believed.of(self.n_rows), self.n_rows > 0.0
        scales = pooled_scales(self.scales(), self.target, self.mean, self.deviation, self.weights, weights, ~is_known)
        said = mix(weights, scales, self.mean, self.deviation, is_known)
        return scales.counted(said, self.target, self.weights, is_known)

    def scored(self) -> HeldOut:
        """The log densities of targets, once it is known how far off models are."""
        log_density = self.scales().log_density(self.target, self.mean, self.deviation, self.n_rows > 0.0)
        return HeldOut(log_density, self.weights, self.n_rows)


Part = TypeVar("Part", HeldOut, HeldOutNumbers)


def joined(parts: Sequence[Part]) -> Part:
    """Parts as one."""
    return type(parts[0])(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def tasks_held_out(place: NDArray[np.int64], n_tasks: int, n_parts: int, rng: np.random.Generator) -> list[Any]:
    """For each part the rows of the tasks that are held out whole with it."""
    none = [np.zeros(len(place), dtype=bool)] * n_parts
    if n_tasks < _FEWEST_TASKS:
        return none
    n_out = max(1, int(_SHARE_OF_TASKS * n_tasks))
    order = rng.permutation(n_tasks)
    return [np.isin(place, np.take(order, np.arange(p * n_out, (p + 1) * n_out), mode="wrap")) for p in range(n_parts)]


def rows_of_every_task(table: Labelled) -> Floats:
    """How many rows with a target every task has, by their weights; at the end none, for new tasks."""
    arrival, n_tasks = table.arrival, len(table.arrival.known.tasks)
    counts = np.ones(len(arrival.place)) if arrival.weights is None else arrival.weights
    counts = np.where(table.labels.codes >= 0, counts, 0.0)
    return np.append(np.bincount(arrival.place, counts, minlength=n_tasks)[:n_tasks], 0.0)


def table_key(table: Labelled) -> tuple[Any, ...]:
    """A table as that which results depend on."""
    arrival, labels = table.arrival, table.labels
    columns = [column if isinstance(column, Coded) else column_key(column) for column in arrival.table.columns]
    declared = {place: column_key(values) for place, values in arrival.declared.items()}
    targets = column_key(labels.classes), labels.codes, table.numbers
    return arrival.known.columns, columns, declared, column_key(arrival.known.tasks), arrival.place, targets


class Folds(NamedTuple):
    """Parts of the rows to hold out, and what is needed to ask models about them, once for each model and part."""

    table: Labelled
    parts: list[NDArray[np.bool_]]
    counts: Floats
    checkpoint: Checkpoint = Checkpoint()

    @classmethod
    def of(
        cls,
        table: Labelled,
        n_folds: int,
        rng: np.random.Generator,
        beside: Any = None,
        checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
    ) -> Folds:
        """Divide rows, labels spread evenly; with ``beside`` (see :func:`tasks_held_out`) some tasks whole as well."""
        code, weights = table.labels.codes, table.arrival.weights
        counts = np.ones(len(code)) if weights is None else weights
        fold = make_folds(code, counts, n_folds, rng)
        whole = None if beside is None else beside(table.arrival.place, len(table.arrival.known.tasks), n_folds, rng)
        parts = [(fold == p) if whole is None else (fold == p) | whole[p] for p in range(n_folds) if (fold == p).any()]
        known = (code >= 0) & (counts > 0)
        # There must be something left to tell apart.
        targets = code if table.numbers is None else table.numbers
        parts = [part for part in parts if len(np.unique(targets[~part & known])) > 1]
        keep = checkpoint if checkpoint.folder is None else checkpoint.of("held out", table_key(table), counts)
        return cls(table, parts, counts, keep)

    def tested(self, part: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows of a part that have a target and count."""
        return part & (self.table.labels.codes >= 0) & (self.counts > 0)

    def labels_of(
        self, members: Sequence[Member], part: NDArray[np.bool_], n_jobs: int | None, advance: Callable[[int], None]
    ) -> tuple[HeldOut, list[Member]]:
        """The log probabilities that members give labels of a part of the rows; members that know what they found."""
        table, tested, learnt_from = self.table, self.tested(part), self.table.take(~part)
        asked = table.asked(tested, learnt_from.arrival.known)
        # A label that only a row held out has: no member could know it.
        labels = table.labels.classes[table.labels.codes[tested]]
        place = encode(labels, learnt_from.labels.classes.tolist())

        def say(answers: Any, coded: Any) -> Floats:
            log_p = np.maximum(answers.log_predictive(coded), _LEAST)
            return np.where(place >= 0, log_p[np.arange(len(place)), place], 0.0)

        own, knowing = _said(members, learnt_from, asked, say, self.checkpoint.of(part), n_jobs, advance)
        n_rows = rows_of_every_task(learnt_from)
        return HeldOut(np.column_stack(own), self.counts[tested], n_rows[asked.place]), knowing

    def numbers_of(
        self, members: Sequence[Member], part: NDArray[np.bool_], n_jobs: int | None, advance: Callable[[int], None]
    ) -> tuple[HeldOutNumbers, list[Member]]:
        """The means and deviations that members give the numbers of a part of the rows; members likewise."""
        table, tested, learnt_from = self.table, self.tested(part), self.table.take(~part)
        assert table.numbers is not None
        asked = table.asked(tested, learnt_from.arrival.known)
        keep, say = self.checkpoint.of(part), lambda answers, coded: answers.moments(coded)
        own, knowing = _said(members, learnt_from, asked, say, keep, n_jobs, advance)
        mean, deviation = (np.column_stack(each) for each in zip(*own, strict=True))
        n_rows = rows_of_every_task(learnt_from)
        return HeldOutNumbers(table.numbers[tested], mean, deviation, self.counts[tested], n_rows[asked.place]), knowing


def _said(
    members: Sequence[Member],
    table: Labelled,
    asked: Asked,
    say: Callable[[Any, Any], Any],
    checkpoint: Checkpoint,
    n_jobs: int | None,
    advance: Callable[[int], None],
) -> tuple[list[Any], list[Member]]:
    """What members that have learnt from a table say of rows, and members that know what they found out."""
    # Members side by side find the table coded; one after the other, each codes it when nobody did before.
    alone = n_jobs in (None, 1)
    codings: dict[Any, Any] = {} if alone else codings_of(members, table)
    asked_as: dict[int, tuple[Any, Any]] = {}

    def learn_and_say(member: Member) -> Any:
        if member.coding() not in codings:
            codings[member.coding()] = member.code(table)
        learnt = member.brief().learn(codings[member.coding()])
        answers = learnt.answers()
        columns = answers.columns
        if id(columns) not in asked_as:
            # Columns are kept with the rows, so that no others are given their address.
            asked_as[id(columns)] = columns, answers.code(asked)
        return say(answers, asked_as[id(columns)][1]), learnt.found_out()

    def one(member: Member) -> Any:
        done = checkpoint.done(partial(learn_and_say, member), member.brief().key())
        advance(1)
        return done

    done = [one(member) for member in members] if alone else side_by_side(n_jobs, [(one, each) for each in members])
    return [own for own, _ in done], [member.knowing(found) for member, (_, found) in zip(members, done, strict=True)]


def in_rounds(
    members: Sequence[Member],
    shares: Floats,
    parts: Sequence[NDArray[np.bool_]],
    hold_out: Callable[[Sequence[Member], NDArray[np.bool_], int | None], tuple[Part, list[Member]]],
    n_jobs: int | None,
) -> tuple[NDArray[np.int64], list[Member], Part]:
    """Hold parts out until enough rows are known, without the models that the first part rules out.

    Returns
    -------
    kept : array
        Places of the models that are still in.
    still : list of Member
        These, which know what the first round found out.
    held_out : HeldOut or HeldOutNumbers
        What these said.
    """
    kept = np.arange(len(members))
    ((first, knowing),) = quietly(None, [(hold_out, members, parts[0], n_jobs)])
    if len(first.weights) >= _FEWEST_FOR_A_ROUND:
        kept = np.flatnonzero(~ruled_out(first.scored(), shares))
    found, rest = [first.only(kept)], list(parts[1:])
    still = [knowing[i] for i in kept.tolist()]
    n_more = -(-max(_ENOUGH_ROWS - len(first.weights), 0) // max(len(first.weights), 1))
    found += [part for part, _ in quietly(n_jobs, [(hold_out, still, part, 1) for part in rest[:n_more]])]
    return kept, still, joined(found)


class Believed(NamedTuple):
    """Members that are believed, how far by how many rows a task has, and how far off they are in numbers."""

    members: dict[str, Member]
    weights: SizeWeights
    scales: Scales


def believe(chosen: Chosen, folds: Folds, advance: Callable[[int], None], n_jobs: int | None) -> Believed:
    """Weigh members by what they say of rows and tasks that they have not seen."""
    names, every, shares = list(chosen.members), list(chosen.members.values()), chosen.shares
    of_numbers = folds.table.numbers is not None
    if not folds.parts or (len(every) == 1 and not of_numbers):
        return Believed(chosen.members, SizeWeights(np.ones(1), shares[None]), no_scales(len(every)))
    ask: Any = folds.numbers_of if of_numbers else folds.labels_of
    kept, still, held_out = in_rounds(every, shares, folds.parts, partial(ask, advance=advance), n_jobs)
    weights = weigh(held_out.scored(), shares[kept] / shares[kept].sum())
    hardly = weights.weights.max(axis=0) < _HARDLY
    of_sizes = weights.weights[:, ~hardly]
    # A member alone is as it is by itself, so that it finds out all there is once more.
    learners = [every[i] for i in kept] if len(every) == 1 else still
    members = {names[i]: member for i, member, out in zip(kept, learners, hardly, strict=True) if not out}
    believed = weights._replace(weights=of_sizes / of_sizes.sum(axis=1, keepdims=True))
    if not of_numbers:
        return Believed(members, believed, no_scales(len(members)))
    return Believed(members, believed, held_out.only(np.flatnonzero(~hardly)).pooled_scales(believed))


def quietly(n_jobs: int | None, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Make calls side by side; what there is to tell is told when models are fitted to all rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return side_by_side(n_jobs, calls)


def side_by_side(n_jobs: int | None, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Make calls in threads, none of which begins another after Ctrl-C.

    BLAS has one thread for each call: its matrices are small, and threads of BLAS beside ours wait for each other by
    spinning.
    """
    with stops_safely(n_jobs not in (None, 1)) as stop, one_blas_thread():

        def make(call: Any, *given: Any) -> Any:
            if stop.asked():
                raise KeyboardInterrupt
            return call(*given)

        return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(make)(*one) for one in calls))


def weigh(held_out: HeldOut, shares: Floats) -> SizeWeights:
    """Weights by stacking for every number of rows that tasks have."""
    sizes = choose_sizes(held_out.n_rows)
    of_sizes, _ = by_sizes(held_out.log_probability, held_out.weights, hats(held_out.n_rows, sizes), shares)
    return SizeWeights(sizes, of_sizes)


def ruled_out(held_out: HeldOut, shares: Floats) -> NDArray[np.bool_]:
    """Models that are hardly believed any more, whatever the number of a task's rows."""
    highest = weigh(held_out, shares).weights.max(axis=0)
    return np.asarray((highest < _LITTLE) & (highest < _FALLEN * shares))
