"""How each kind of model inside an average learns from a table that has come through the door, and explains itself.

A kind of model is a class with the same few names: ``coding`` and ``code`` say how it wants rows, ``learn`` gives a
fitted copy, ``answers`` what that says of rows, ``archive`` and ``from_archive`` how it is saved, ``explain`` what its
answers are made of. ``found_out`` and ``knowing`` spare fits to other rows of the same table what the first has found
out, where it hardly depends on which rows these are. One whose counts add up has ``learn_more`` too, for rows that come
later. Nothing else of an average knows one kind from another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from copy import copy
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor

from kinfolk.checkpoints import Checkpoint, check_checkpoint, parameters_of
from kinfolk.explanation import NumberExplanation
from kinfolk.lica.estimators.classifier import LICAClassifier
from kinfolk.lica.estimators.regressor import LICARegressor
from kinfolk.lica.model.fitted import Begun
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.answers.explanation import explain as explain_naive_bayes
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.complete_sharing import CompleteSharingNB
from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
from kinfolk.posterior import Archive, design_about, design_from, estimator_from
from kinfolk.tasks.answering import Asked
from kinfolk.tasks.design import Design, learn_design
from kinfolk.tasks.schema import encode
from kinfolk.tasks.table import as_column
from kinfolk.tasks.training import Columns, Labelled, Training
from kinfolk.transfer.answers import (
    Answers,
    HierarchicalAnswers,
    LICAAnswers,
    NaiveBayesAnswers,
    TreesAnswers,
    some_column,
)
from kinfolk.transfer.trees.forest import Forest, forest_arrays, forest_from
from kinfolk.transfer.trees.learning import learn_forest


class Parts(NamedTuple):
    """What a member's log probabilities are made of: arrays as in :class:`~kinfolk.explanation.Explanation`.

    Where numbers are predicted, what the expected number is made of, as if there were one label.
    ``interactions`` (rows, labels) is what is no single feature's; ``values`` are None where a model has no words of
    its own for those of the rows.
    """

    label_part: Floats
    feature_part: Floats
    interactions: Floats
    own: Floats
    kin: Floats
    everybody: Floats
    prior: Floats
    values: list[list[str]] | None = None


class Member(Protocol):
    """A model inside an average, fitted or not."""

    @property
    def fitted(self) -> Any:
        """What users find in ``members_``."""

    def check(self) -> None:
        """Refuse wrong parameters."""

    def brief(self) -> Self:
        """The same as it is fitted to some of the rows, in order to weigh it."""

    def key(self) -> Any:
        """What tells its fits from those of others, as a value."""

    def kept_in(self, checkpoint: Checkpoint) -> Self:
        """The same, which goes on there where it was stopped, if it can."""

    def coding(self) -> Hashable:
        """What tells one way to code rows from another."""

    def code(self, table: Labelled) -> Any:
        """Training rows as the model wants them."""

    def learn(self, coded: Any) -> Self:
        """A copy that has learnt from rows."""

    def found_out(self) -> Any:
        """What a fit has found out that fits to other rows of the table need not, as a value; None if nothing."""

    def knowing(self, found: Any) -> Self:
        """The same, which knows what another fit has found out."""

    def answers(self) -> Answers:
        """What answers for it."""

    def archive(self) -> Archive:
        """What was learnt, as plain data."""

    def explain(self, asked: Asked) -> Parts:
        """What its log probabilities, or expected numbers, of rows are made of."""

    def similarity(self, tasks: NDArray[Any] | None) -> Floats | None:
        """Probability that two of the tasks, or of all, share; None where the model has no such thing."""

    def partition(self) -> NDArray[np.int64] | None:
        """Cluster of each task; None where the model has no clusters."""


def codings_of(members: Iterable[Member], table: Labelled) -> dict[Any, Any]:
    """The table in each coding that members learn from, made once for all that share it."""
    of_codings: dict[Any, Member] = {}
    for member in members:
        of_codings.setdefault(member.coding(), member)
    return {coding: member.code(table) for coding, member in of_codings.items()}


def _kept_in(estimator: Any, checkpoint: Checkpoint) -> Any:
    """An estimator that keeps what it has reached, unless it does, or cannot."""
    given = estimator.get_params(deep=False)
    if checkpoint.folder is None or given.get("checkpoint", checkpoint.folder) is not None:
        return estimator
    check_checkpoint(checkpoint.folder, given.get("random_state", 0))
    return clone(estimator).set_params(checkpoint=checkpoint.folder)


class NaiveBayesMember(NamedTuple):
    """A naive Bayes model of kinfolk."""

    fitted: SharingNB
    shortened: bool = False

    def check(self) -> None:
        """Refuse wrong parameters."""
        self.fitted._check_parameters()

    def brief(self) -> NaiveBayesMember:
        """A default one that samples: one short chain is enough to weigh it."""
        if not self.shortened:
            return self
        return self._replace(fitted=clone(self.fitted).set_params(n_chains=1, n_burn_in=50, n_draws=50))

    def key(self) -> Any:
        """Kind and parameters."""
        return parameters_of(self.fitted)

    def kept_in(self, checkpoint: Checkpoint) -> NaiveBayesMember:
        """One that samples goes on where it was stopped; one that may count without a seed is left as it is."""
        if self.fitted.random_state is None and isinstance(self.fitted, NoSharingNB | CompleteSharingNB):
            return self
        return self._replace(fitted=_kept_in(self.fitted, checkpoint))

    def coding(self) -> Hashable:
        """Bins are the same whether or not a model has densities."""
        columns: Columns = self.fitted._columns()
        given = columns.categorical_features, columns.bins, columns.numeric
        return *map(id, given), columns.weighs, columns.numeric != "bin" and columns.counts_alone is not None

    def code(self, table: Labelled) -> Training:
        """Rows in categories and bins."""
        return table.coded(self.fitted._columns())

    def learn(self, coded: Training) -> NaiveBayesMember:
        """A copy that has learnt from rows."""
        known = coded.known._replace(model=type(self.fitted).__name__)
        return self._replace(fitted=clone(self.fitted)._learn_training(coded._replace(known=known)))

    def learn_more(self, X: Any, y: Any, task: Any, sample_weight: Any) -> NaiveBayesMember:
        """A copy that has learnt from further rows: counts add up."""
        return self._replace(fitted=copy(self.fitted).partial_fit(X, y, task=task, sample_weight=sample_weight))

    def found_out(self) -> None:
        """Every fit finds out all there is."""

    def knowing(self, found: None) -> NaiveBayesMember:
        """The same."""
        return self

    def forget(self, task: Any) -> NaiveBayesMember:
        """A copy without a task: counts add up."""
        return self._replace(fitted=copy(self.fitted).forget(task))

    def answers(self) -> NaiveBayesAnswers:
        """What answers for it."""
        return NaiveBayesAnswers(self.fitted._predictor())

    def archive(self) -> Archive:
        """As the model is saved alone."""
        return self.fitted._to_archive()

    @classmethod
    def from_archive(cls, archive: Archive) -> NaiveBayesMember:
        """Rebuild from plain data."""
        return cls(estimator_from(archive))

    def explain(self, asked: Asked) -> Parts:
        """As the model explains itself; what it cannot tell apart stays with the average's rest."""
        found = explain_naive_bayes(self.fitted._result, self.fitted._predictor(), self.fitted._predictor().code(asked))
        nothing = np.zeros_like(found.label_part)
        shares = found.own, found.kin, found.everybody, found.prior
        return Parts(found.label_part, found.feature_part, nothing, *shares, found.values)

    def similarity(self, tasks: NDArray[Any] | None) -> Floats:
        """Probability that two tasks share their feature rates."""
        return self.fitted.similarity_ if tasks is None else self.fitted.similarity(tasks)

    def partition(self) -> NDArray[np.int64]:
        """Cluster of each task."""
        return self.fitted.partition_


class Designed(NamedTuple):
    """Rows that have a target and count, with the design of their columns; without labels, targets are numbers."""

    design: Design
    rows: Any
    target: NDArray[Any]
    place: NDArray[np.int64]
    weights: Floats | None
    n_tasks: int
    n_labels: int


def designed(table: Labelled) -> Designed:
    """Rows for models of numbers; those without a label, or without a weight, are left out."""
    arrival = table.arrival
    kept = arrival.counted & (table.labels.codes >= 0)
    rows = arrival.table if kept.all() else arrival.table.rows(kept)
    weights = None if arrival.weights is None else arrival.weights[kept]
    return Designed(
        learn_design(rows, weights, "auto", arrival.declared),
        rows,
        table.labels.codes[kept].astype(np.int64) if table.numbers is None else table.numbers[kept],
        arrival.place[kept],
        weights,
        len(arrival.known.tasks),
        len(table.labels.classes) if table.numbers is None else 0,
    )


class SourcesMember(NamedTuple):
    """LICA on a design matrix."""

    fitted: LICAClassifier | LICARegressor
    design: Design | None = None
    begun: Begun | None = None

    def check(self) -> None:
        """Refuse wrong parameters."""
        self.fitted._check_parameters()

    def brief(self) -> SourcesMember:
        """The same."""
        return self

    def key(self) -> Any:
        """Kind and parameters, and where it begins."""
        return parameters_of(self.fitted), self.begun

    def kept_in(self, checkpoint: Checkpoint) -> SourcesMember:
        """It goes on where it was stopped."""
        return self._replace(fitted=_kept_in(self.fitted, checkpoint))

    def coding(self) -> Hashable:
        """One design for all models of numbers."""
        return "design"

    def code(self, table: Labelled) -> Designed:
        """Rows for a design matrix."""
        return designed(table)

    def learn(self, coded: Designed) -> SourcesMember:
        """A copy that has learnt from rows; tasks are named by their places."""
        model = clone(self.fitted).set_params(new_tasks="expected", task_column=None)
        model._begun = self.begun
        matrix = some_column(coded.design.encode(coded.rows))
        model.fit(matrix, coded.target, task=coded.place, sample_weight=coded.weights)
        return SourcesMember(model, coded.design, self.begun)

    def found_out(self) -> Begun | None:
        """Where empirical Bayes is to begin, and how large a regression's errors are, which takes most of its time."""
        return self.fitted._model.fitted.begun

    def knowing(self, found: Begun | None) -> SourcesMember:
        """The same, which begins there."""
        return self._replace(begun=found)

    def answers(self) -> LICAAnswers:
        """What answers for it."""
        assert self.design is not None
        return LICAAnswers(self.design, self.fitted._fitted_predictor())

    def archive(self) -> Archive:
        """The model and its design."""
        assert self.design is not None
        inner = self.fitted._to_archive()
        about = {"family": "designed lica", "design": design_about(self.design), "lica": inner.about}
        return Archive(about, inner.arrays)

    @classmethod
    def from_archive(cls, archive: Archive) -> SourcesMember:
        """Rebuild from plain data."""
        return cls(estimator_from(Archive(archive.about["lica"], archive.arrays)), design_from(archive))

    def explain(self, asked: Asked) -> Parts:
        """Weights times columns; behind them what all tasks have in common, their sources, and what is a task's own."""
        assert asked.place is not None
        model, answers = self.fitted, self.answers()
        coded = answers.code(asked)
        # A place for new tasks, which have what all tasks have in common.
        common, sources = model.common_weights_, model.sources_ @ model.components_
        places = {int(task): k for k, task in enumerate(model.tasks_.tolist())}
        k = np.array([places.get(int(place), len(places)) for place in asked.place], dtype=np.int64)
        kin = np.vstack([sources, np.zeros_like(common)])[k] * coded.matrix
        whole = np.vstack([model.coef_, common])[k] * coded.matrix
        of_all = common * coded.matrix
        feature = answers.design.feature if len(answers.design.feature) else np.zeros(1, dtype=np.int64)
        of_features = _sums_by(feature, len(answers.design.terms))
        parts = [np.abs(part) @ of_features for part in (whole - kin - of_all, kin, of_all)]
        total = sum(parts)
        own, its_kin, everybody = (np.divide(p, total, out=np.zeros_like(p), where=total > 0) for p in parts)
        answer, drawn, n_labels = self._answer(coded)
        added = drawn[:, None] * (whole @ of_features)
        feature_part = np.zeros((*added.shape, n_labels))
        label_part = np.zeros((len(k), n_labels))
        feature_part[:, :, -1] = added
        label_part[:, -1] = answer - added.sum(axis=1)
        prior = 1.0 - own - its_kin - everybody
        return Parts(label_part, feature_part, np.zeros_like(label_part), own, its_kin, everybody, prior)

    def _answer(self, coded: Any) -> tuple[Floats, Floats, int]:
        """Expected numbers or log odds of rows, how far they are drawn to zero, and of how many labels they are."""
        model, answers = self.fitted, self.answers()
        if is_regressor(model):
            expected, _ = answers.moments(coded)
            return expected, np.ones_like(expected), 1
        n_labels, log_odds = len(model.classes_), np.zeros(len(coded.place))
        if n_labels == 2:
            log_p = answers.log_predictive(coded)
            log_odds = log_p[:, 1] - log_p[:, 0]
        linear = model.decision_function(coded.matrix, task=coded.place)
        # Averaged over what is not known of the weights, a linear predictor is drawn to zero.
        drawn = np.divide(log_odds, linear, out=np.ones_like(linear), where=np.abs(linear) > 1e-12)
        return log_odds, drawn, n_labels

    def similarity(self, tasks: NDArray[Any] | None) -> None:
        """Tasks resemble each other by degrees here; there is no probability that they share."""

    def partition(self) -> None:
        """No clusters."""


def _sums_by(group: NDArray[np.int64], n_groups: int) -> Floats:
    """A matrix that sums columns by groups, multiplied from the right."""
    sums = np.zeros((len(group), n_groups))
    sums[np.arange(len(group)), group] = 1.0
    return sums


class TreesMember(NamedTuple):
    """Boosted trees, which see interactions."""

    seed: int
    fitted: Forest | None = None
    design: Design | None = None

    def check(self) -> None:
        """Nothing is to be set."""

    def brief(self) -> TreesMember:
        """The same."""
        return self

    def key(self) -> Any:
        """The seed."""
        return "trees", self.seed

    def kept_in(self, checkpoint: Checkpoint) -> TreesMember:
        """The same: a fit is short."""
        return self

    def coding(self) -> Hashable:
        """One design for all models of numbers."""
        return "design"

    def code(self, table: Labelled) -> Designed:
        """Rows for trees."""
        return designed(table)

    def learn(self, coded: Designed) -> TreesMember:
        """A copy that has learnt from rows."""
        forest = learn_forest(
            coded.design.ordinals(coded.rows),
            coded.place,
            coded.target,
            np.ones(len(coded.target)) if coded.weights is None else coded.weights,
            n_tasks=coded.n_tasks,
            n_labels=coded.n_labels,
            n_levels={j: term.n_values for j, term in enumerate(coded.design.terms) if term.n_values},
            seed=self.seed,
        )
        return self._replace(fitted=forest, design=coded.design)

    def found_out(self) -> None:
        """Every fit finds out all there is."""

    def knowing(self, found: None) -> TreesMember:
        """The same."""
        return self

    def answers(self) -> TreesAnswers:
        """What answers for it."""
        assert self.design is not None
        assert self.fitted is not None
        return TreesAnswers(self.design, self.fitted)

    def archive(self) -> Archive:
        """Arrays of trees and effects, and the design."""
        assert self.design is not None
        assert self.fitted is not None
        about: dict[str, Any] = {"family": "trees", "design": design_about(self.design), "kind": self.fitted.kind}
        about |= {"noise": self.fitted.noise, "seed": self.seed}
        return Archive(about, forest_arrays(self.fitted))

    @classmethod
    def from_archive(cls, archive: Archive) -> TreesMember:
        """Rebuild from plain data."""
        design = design_from(archive)
        forest = forest_from(archive, len(design.terms))
        return cls(int(archive.about["seed"]), forest, design)

    def explain(self, asked: Asked) -> Parts:
        """What the task's rows say, and all trees in one line: they do not add up over features."""
        assert asked.place is not None
        assert self.fitted is not None
        answers = self.answers()
        coded, of_numbers = answers.code(asked), self.fitted.kind == "numbers"
        answer = answers.moments(coded)[0][:, None] if of_numbers else answers.log_predictive(coded)
        of_task = self.fitted.effects.of(asked.place)
        label_part = np.hstack([np.zeros_like(of_task), of_task]) if self.fitted.kind == "two labels" else of_task
        n_rows, n_features = len(answer), len(answers.design.terms)
        nothing = np.zeros((n_rows, n_features))
        parts = np.zeros((n_rows, n_features, answer.shape[1]))
        return Parts(label_part, parts, answer - label_part, nothing, nothing, nothing, nothing)

    def similarity(self, tasks: NDArray[Any] | None) -> None:
        """Trees are everybody's."""

    def partition(self) -> None:
        """No clusters."""


class HierarchicalMember(NamedTuple):
    """A linear model of any table, of labels or of numbers: partially pooled, or clustered.

    Where ``one_task``, it takes all rows as those of one task, and so has no weights but common ones.
    """

    fitted: Any
    one_task: bool = False

    def check(self) -> None:
        """Refuse wrong parameters."""
        self.fitted._check_parameters()

    def brief(self) -> HierarchicalMember:
        """The same."""
        return self

    def key(self) -> Any:
        """Kind and parameters."""
        return parameters_of(self.fitted), self.one_task

    def kept_in(self, checkpoint: Checkpoint) -> HierarchicalMember:
        """It goes on where it was stopped."""
        return self._replace(fitted=_kept_in(self.fitted, checkpoint))

    def coding(self) -> Hashable:
        """It reads the table itself, since which columns tasks differ in hangs on the targets."""
        return "one task" if self.one_task else "table"

    def code(self, table: Labelled) -> Labelled:
        """Rows that have a target."""
        known = table.labels.codes >= 0
        table = table if known.all() else table.take(known)
        if not self.one_task:
            return table
        arrival, one = table.arrival, np.zeros(len(table.arrival.place), dtype=np.int64)
        return table._replace(arrival=arrival._replace(known=arrival.known._replace(tasks=np.zeros(1)), place=one))

    def learn(self, coded: Labelled) -> HierarchicalMember:
        """A copy that has learnt from rows."""
        return self._replace(fitted=clone(self.fitted)._learn_table(coded))

    def found_out(self) -> None:
        """Every fit finds out all there is."""

    def knowing(self, found: None) -> HierarchicalMember:
        """The same."""
        return self

    def answers(self) -> HierarchicalAnswers:
        """What answers for it."""
        return HierarchicalAnswers(self.fitted._fitted_predictor(), self.one_task)

    def archive(self) -> Archive:
        """As the model is saved alone."""
        found: Archive = self.fitted._to_archive()
        return found._replace(about=found.about | {"one_task": True}) if self.one_task else found

    @classmethod
    def from_archive(cls, archive: Archive) -> HierarchicalMember:
        """Rebuild from plain data."""
        return cls(estimator_from(archive), bool(archive.about.get("one_task", False)))

    def explain(self, asked: Asked) -> Parts:
        """As the model explains itself; what one task of all says is everybody's."""
        predictor = self.fitted._predictor()
        found = predictor.explain_rows(self.answers().code(asked))
        if isinstance(found, NumberExplanation):
            level, added = found.level[:, None], found.feature_part[..., None]
        else:
            level, added = found.label_part, found.feature_part
        shares = found.own, found.kin, found.everybody, found.prior
        if self.one_task:
            shares = np.zeros_like(found.own), found.kin, found.own + found.everybody, found.prior
        return Parts(level, added, np.zeros_like(level), *shares)

    def similarity(self, tasks: NDArray[Any] | None) -> Floats | None:
        """Probability that two tasks share their weights, where they are clustered."""
        every: Floats | None = getattr(self.fitted, "similarity_", None)
        if every is None or tasks is None:
            return every
        asked = as_column(tasks, "tasks")
        place = encode(asked, self.fitted.tasks_.tolist()).astype(np.int64)
        if (place < 0).any():
            raise ValueError(f"task {asked[np.argmax(place < 0)]!r} was not in the training data")
        return every[place][:, place]

    def partition(self) -> NDArray[np.int64] | None:
        """Cluster of each task, where they are clustered."""
        found: NDArray[np.int64] | None = getattr(self.fitted, "partition_", None)
        return found


MODELS: dict[str, Any] = {
    "naive_bayes": NaiveBayesMember,
    "linear": HierarchicalMember,
    "linear_regression": HierarchicalMember,
    "designed lica": SourcesMember,
    "trees": TreesMember,
}
