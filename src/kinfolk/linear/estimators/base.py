"""What partially pooled models have in common: the way in, their columns, and what a fit leaves behind."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from kinfolk.checkpoints import check_checkpoint
from kinfolk.estimator import TaskRouting
from kinfolk.interrupts import raise_if_interrupted
from kinfolk.linear.answers.archive import FittedModel, bends_of, read, to_archive
from kinfolk.linear.inference.own_columns import choose_own_columns
from kinfolk.linear.model.rows import LinearRows, lay_out_rows
from kinfolk.linear.model.values import Groups, Options
from kinfolk.maths.arrays import Floats
from kinfolk.parameters import check_whole
from kinfolk.posterior import Archive, unplain
from kinfolk.tasks.answering import tell
from kinfolk.tasks.design import Design, learn_design
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.training import Arrival

# With weights that differ by more, rounding takes more than the sixth digit of weights of columns.
_FACTOR = 1_000_000


class Prepared(NamedTuple):
    """A training table as inference takes it: the design, rows that count, and who has weights of their own."""

    design: Design
    order: NDArray[np.int64]
    groups: Groups
    X: Floats
    weights: Floats | None
    place: NDArray[np.int64]
    n_tasks: int

    def rows(self, y: Floats) -> LinearRows:
        """The rows with targets."""
        rows = lay_out_rows(self.X, y, self.weights, self.place, self.n_tasks, self.groups.own)
        return rows._replace(bends=self.groups.bends)


class PartiallyPooled(TaskRouting, BaseEstimator):
    """Base class; a subclass reads targets, and says which inference and which predictor are its own."""

    # Parameters, set by the subclasses' constructors.
    slopes: str | Sequence[Any]
    categorical_features: str | Sequence[Any]
    max_iter: int
    tol: float
    task_column: str | int | None
    new_tasks: str
    checkpoint: str | PathLike[str] | None

    def _check_parameters(self) -> None:
        if isinstance(self.slopes, str) and self.slopes not in ("auto", "all", "none"):
            raise ValueError(f'slopes={self.slopes!r}: "auto", "all", "none" or a list of columns is needed')
        if not isinstance(self.slopes, str) and not hasattr(self.slopes, "__iter__"):
            raise ValueError(f'slopes={self.slopes!r}: "auto", "all", "none" or a list of columns is needed')
        check_whole("max_iter", self.max_iter, 1)
        if not (isinstance(self.tol, int | float | np.number) and 0 < self.tol < np.inf):
            raise ValueError(f"tol={self.tol!r}: a positive number is needed")

    def _prepare(self, arrival: Arrival, has_target: NDArray[np.bool_], targets: Floats) -> Prepared:
        """Learn the design of a table, and keep the rows that have a target and count."""
        kept = arrival.counted & has_target
        left_out = int((arrival.counted & ~has_target).sum())
        if left_out:
            plural = "s are" if left_out > 1 else " is"
            warnings.warn(f"{left_out:,} row{plural} left out, without a target", UserWarning, stacklevel=4)
        table = arrival.table.rows(kept)
        weights = None if arrival.weights is None else arrival.weights[kept]
        if weights is not None:
            _tell_of_unlike(weights[weights > 0])
        design = learn_design(table, weights, self.categorical_features, arrival.declared)
        matrix, place, n_tasks = design.encode(table), arrival.place[kept], len(arrival.known.tasks)
        # What one task has of its own is what all have in common.
        may = self._may_have_slopes(arrival, design) & (n_tasks > 1)
        if isinstance(self.slopes, str) and self.slopes == "auto":
            may = choose_own_columns(matrix, targets[kept], weights, place, n_tasks, design.group, may)
        order = np.argsort(~may, kind="stable")
        own = np.unique(design.group[order[: int(may.sum())]], return_inverse=True)[1] + 1
        groups = Groups(np.append(0, own).astype(np.int64), bends_of(design, order))
        return Prepared(design, order, groups, matrix[:, order], weights, place, n_tasks)

    def _may_have_slopes(self, arrival: Arrival, design: Design) -> NDArray[np.bool_]:
        """Columns of the design of which tasks may have weights of their own."""
        if isinstance(self.slopes, str):
            # Values beside a number, and gaps, tell little each.
            small = [kind == "gap" or (kind == "level" and design.terms[f].is_whole) for f, kind in _columns(design)]
            return np.full(len(small), self.slopes != "none") & ~(np.array(small, dtype=bool) & (self.slopes == "auto"))
        wanted = {arrival.table.position(column) for column in self.slopes}
        return np.array([f in wanted for f in design.feature.tolist()], dtype=bool)

    def _options(self) -> Options:
        # Partial pooling has no random numbers, and so needs no seed to be found again.
        keep = check_checkpoint(self.checkpoint, getattr(self, "random_state", 0))
        return Options(int(self.max_iter), float(self.tol), checkpoint=keep)

    def _keep(self, model: FittedModel, predictor: Any) -> Self:
        """Become the estimator of a fit, all at once."""
        self._model, self._answers = model, predictor
        self._remember_columns(model.known)
        self.tasks_ = model.known.tasks
        self.hyper_, self.posterior_ = model.hypers, model.fits
        self.log_evidence_ = float(sum(fit.bound[-1] for fit in model.fits))
        self.log_evidence_kind_ = "lower bound"
        self.n_iter_ = max(len(fit.bound) for fit in model.fits)
        self.converged_ = all(fit.converged for fit in model.fits)
        return self

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the fit early: what there was by then is here."""
        check_is_fitted(self)
        return self._model.interrupted

    def _tell_of_the_end(self) -> Self:
        """Say that the fit was ended early, or that it should have gone on."""
        if not (self.converged_ or self.interrupted_):
            warnings.warn(
                f"the fit had not settled after max_iter={self.max_iter} iterations: its predictions may still change "
                "a little with more",
                ConvergenceWarning,
                stacklevel=3,
            )
        return raise_if_interrupted(self)

    def _fitted_predictor(self) -> Any:
        check_is_fitted(self)
        return self._answers

    def weights(self) -> Any:
        """Weights of every task, per standard unit of each column of the design matrix, with standard deviations.

        Returns
        -------
        frame
            Columns task, column, weight, common (what all tasks have), std_own and spread (the standard deviation
            between tasks); before them label, where there are more than two. Intercepts stand as "(intercept)".

        See Also
        --------
        scales : How much tasks differ, column by column.
        """
        check_is_fitted(self)
        model = self._model
        names = ["(intercept)", *(model.design.names[i] for i in model.order)]
        columns: dict[str, list[Any]] = {}
        for label, hyper, fit in zip(self._fit_labels(), model.hypers, model.fits, strict=True):
            found = fit.weights
            n_tasks, n_columns = len(found.own), len(names)
            spread, deviation = np.zeros(n_columns), np.zeros((n_tasks, n_columns))
            spread[: found.n_own] = hyper.spread(model.groups)
            deviation[:, : found.n_own] = np.sqrt(found.own_variances())
            parts = {
                "label": [label] * (n_tasks * n_columns),
                "task": np.repeat(self.tasks_, n_columns).tolist(),
                "column": names * n_tasks,
                "weight": found.means.ravel().tolist(),
                "common": np.tile(found.common, n_tasks).tolist(),
                "std_own": deviation.ravel().tolist(),
                "spread": np.tile(spread, n_tasks).tolist(),
            }
            for name, values in parts.items():
                columns.setdefault(name, []).extend(values)
        if len(model.fits) == 1:
            del columns["label"]
        return make_frame(columns, model.backend)

    def scales(self) -> Any:
        """How much tasks differ in each group of columns: standard deviations of weights between tasks.

        Returns
        -------
        frame
            Columns group and spread; before them label, where there are more than two. Groups that do not differ
            between tasks, as chosen, have none.

        See Also
        --------
        weights : The weights themselves.
        """
        check_is_fitted(self)
        model = self._model
        first = [int(np.flatnonzero(model.groups.own == g)[0]) for g in range(1, int(model.groups.own.max()) + 1)]
        names = ["(intercept)", *(model.design.group_names[model.design.group[model.order[j - 1]]] for j in first)]
        columns: dict[str, list[Any]] = {"label": [], "group": [], "spread": []}
        for label, hyper in zip(self._fit_labels(), model.hypers, strict=True):
            columns["label"] += [label] * len(names)
            columns["group"] += names
            columns["spread"] += hyper.own.tolist()
        if len(model.fits) == 1:
            del columns["label"]
        return make_frame(columns, model.backend)

    def _fit_labels(self) -> list[Any]:
        """Whose each fit is."""
        classes = self._model.classes
        return [None] if classes is None or len(self._model.fits) == 1 else classes.tolist()

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        # A folder of checkpoints is of this machine alone.
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "checkpoint"}
        return to_archive(self._model, params)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model = cls(**{name: unplain(value) for name, value in archive.about["params"].items()})
        model._check_parameters()
        return model._keep_read(read(archive))

    def _keep_read(self, model: FittedModel) -> Self:
        raise NotImplementedError  # abstract

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")


def _columns(design: Design) -> Any:
    return zip(design.feature.tolist(), design.kinds, strict=True)


def _tell_of_unlike(weights: Floats) -> None:
    """Warn of rows that weigh so much that what others say is lost to rounding."""
    if weights.max(initial=0.0) > _FACTOR * weights.min(initial=np.inf):
        tell(
            f"sample_weight lies between {weights.min():g} and {weights.max():g}: beside a row that weighs more than "
            f"{_FACTOR:,} times as much, partially pooled models lose digits of what other rows say",
            UserWarning,
        )
