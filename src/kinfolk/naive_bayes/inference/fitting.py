"""A fit, whatever the model: the model's own inference between what all models learn alike.

A model is four functions, which a module holds. Before it infers, the pseudo-counts α of the labels are learnt: they
maximise ∏_u DM(m_u | α) over the tasks' label counts, so that how much the tasks' own label rates differ says how far
each is to be drawn to the common ones. After it, powers on the features' likelihoods are: those under which training
rows, each left out in turn, are predicted best.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.maths.blas import one_blas_thread
from kinfolk.naive_bayes.inference.options import Effort, Options
from kinfolk.naive_bayes.model.mixture import MAX_TEMPER, Mixture
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, TrainingData
from kinfolk.tasks.statistics import Rows

# The strength of the labels' prior has a Gamma prior with this mean and shape. Tasks of one row each, which say nothing
# of it, have this strength; real sets of tasks have 5 to 50.
_LABEL_STRENGTH = 20.0
_STRENGTH_SHAPE = 2.0
# Bounds of log pseudo-counts of the labels, so that no step of the search leaves what floats can hold.
_LOG_COUNT_BOUNDS = (-7.0, 12.0)
# Tasks that are looked at, at most: a few numbers are learnt from them, and more would not change these.
_MAX_TASKS = 50_000
# What a label has at least that no block leaves any chance, so that its logarithm is not −inf.
_TINY = float(np.finfo(np.float64).tiny)
# Half the precision of powers about their mean: a priori they differ by about 0.2.
_CLOSENESS = 10.0
_START = 0.5
# Rows by which the powers are chosen, at most, and numbers held for them: rows · blocks · features · labels.
MAX_ROWS_LEFT_OUT = 1_000
MAX_TERMS_LEFT_OUT = 1 << 24
# Rows by which they are chosen where the others are not at hand: at least so many, or such a share of all.
_FEW_ROWS, _ENOUGH_OF_ROWS = 1_000, 0.5
# Codes are packed into whole numbers up to this.
_MOST_PACKED = 1 << 62


class SharingModel(Protocol):
    """How tasks share: what every naive Bayes model knows how to do."""

    def infer(
        self, data: TrainingData, hyper: HyperParameters, options: Options, seed: int
    ) -> tuple[HyperParameters, Fitted]:
        """Learn priors of features and the concentration where that is asked for, and infer the rest."""

    def evidence(self, data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
        """Log p(X, Y), where inference has not left it behind."""

    def leave_out(
        self, data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options
    ) -> LeftOut:
        """What is said of each of these training rows by all others."""

    def labels_given_features(
        self, data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
    ) -> Evidence:
        """Log p(Y | X); ``rows`` are all rows of the data, labelled or not."""


class Sharing(NamedTuple):
    """A model with the options and the predictive rule that it is fitted with.

    ``uses_unlabelled`` says whether it learns from rows without a label, and ``narrow`` that it never adds counts in
    their own type, so that one byte each is enough.
    """

    model: SharingModel
    options: Options
    averaged: bool = False
    uses_unlabelled: bool = True
    narrow: bool = False

    @one_blas_thread()
    def fit(
        self, data: TrainingData, rows: Rows, hyper: HyperParameters, seed: int, temper_before: Floats | None = None
    ) -> tuple[HyperParameters, Fitted]:
        """Hyper-parameters, given or learnt, and what else was inferred.

        Powers are learnt from the labelled ``rows``; where these are too few beside what is counted, they stay as they
        were before, or one.
        """
        data = self.prepared(data)
        if "label_prior" in hyper.learns:
            of_tasks = data.statistics.label_counts
            shared = of_tasks.sum(axis=0, keepdims=True) if self.options.share_labels else of_tasks
            hyper = hyper._replace(label_prior=learn_label_prior(shared))
        hyper, fitted = self.model.infer(data, hyper, self.options, seed)
        if "temper" not in hyper.learns:
            return hyper, fitted
        if _are_enough(rows, data):
            some = _some_rows(rows, data, fitted.blocks.mixture)
            left_out = self.model.leave_out(data, hyper, fitted, some, self.options)
            return hyper._replace(temper=learn_temper(left_out, self.averaged)), fitted
        return hyper if temper_before is None else hyper._replace(temper=np.asarray(temper_before)), fitted

    def prepared(self, data: TrainingData) -> TrainingData:
        """Data in types that inference can add up in."""
        statistics, weights = data.statistics, data.unlabelled.weights
        if weights is not None and (weights != np.floor(weights)).any():
            statistics = statistics._replace(
                feature_counts=statistics.feature_counts.astype(np.float64),
                label_counts=statistics.label_counts.astype(np.float64),
            )
        elif not self.narrow:
            n_rows, counts = statistics.label_counts.sum(), (statistics.feature_counts, statistics.label_counts)
            whole = [part.dtype for part in counts if part.dtype.kind in "iu"]
            if any(dtype.itemsize < 4 or n_rows > np.iinfo(dtype).max for dtype in whole):
                statistics = statistics.widened()
        return TrainingData(statistics, data.unlabelled)


def learn_label_prior(label_counts: NDArray[Any]) -> Floats:
    """Pseudo-counts of the labels that explain best how tasks' label counts (tasks, labels) differ.

    Examples
    --------
    >>> alike, unlike = np.array([[20, 10]] * 40), np.array([[30, 0], [0, 30]] * 20)
    >>> [round(float(learn_label_prior(counts).sum()), 2) for counts in (alike, unlike)]
    [76.75, 0.03]
    """
    label_counts = some_of(label_counts, _MAX_TASKS)
    patterns, times = np.unique(label_counts, axis=0, return_counts=True)
    patterns = patterns.astype(np.float64)
    totals, n_labels = patterns.sum(axis=1), patterns.shape[1]
    n_tasks = times.sum()

    def loss(log_counts: Floats) -> tuple[float, Floats]:
        prior = np.exp(log_counts)
        strength = prior.sum()
        log_marginal = times @ (gammaln(prior + patterns).sum(axis=1) - gammaln(strength + totals))
        log_marginal -= n_tasks * (gammaln(prior).sum() - gammaln(strength))
        slope = times @ digamma(prior + patterns) - times @ digamma(strength + totals)
        slope -= n_tasks * (digamma(prior) - digamma(strength))
        # The labels' common rates have a Dirichlet prior with two pseudo-counts each: no label is ever impossible.
        log_prior = np.log(prior / strength).sum() + _STRENGTH_SHAPE * (np.log(strength) - strength / _LABEL_STRENGTH)
        slope_prior = 1.0 - n_labels * prior / strength
        slope_prior += _STRENGTH_SHAPE * (prior / strength - prior / _LABEL_STRENGTH)
        return -float(log_marginal + log_prior), -(slope * prior + slope_prior)

    rates = (label_counts.sum(axis=0) + 1.0) / (label_counts.sum() + n_labels)
    bounds = [_LOG_COUNT_BOUNDS] * n_labels
    found = _minimised(loss, np.log(10.0 * rates), bounds, "label_prior")
    return np.asarray(np.exp(found))


def _minimised(
    loss: Callable[[Floats], tuple[float, Floats]], start: Floats, bounds: list[tuple[float, float]], what: str
) -> Floats:
    """Where a loss, given with its slope, is the least."""
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    if not found.success:
        warnings.warn(
            f"{what} had not settled after {found.nit} steps ({found.message}): give numbers, or look at {what}_",
            ConvergenceWarning,
            stacklevel=3,
        )
    return np.asarray(found.x)


def some_of(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """So many of the rows at most, in their order and the same ones each time."""
    if len(rows) <= most:
        return rows
    return np.asarray(rows[np.sort(np.random.default_rng(0).permutation(len(rows))[:most])])


class LeftOut(NamedTuple):
    """For every row taken out, what each block that its task may belong to says of it.

    Entries ``start[i]:start[i + 1]`` are those of row i: log weights of the blocks without the row, and the log
    likelihood of each of its features under each label (entries, features, labels). ``log_rates`` (rows, labels) are
    those of the labels, ``labels`` and ``weights`` those of the rows.
    """

    start: NDArray[np.int64]
    log_weight: Floats
    log_fit: Floats
    log_rates: Floats
    labels: NDArray[np.int32]
    weights: Floats

    @property
    def row(self) -> NDArray[np.int64]:
        """The row that each entry belongs to."""
        return np.repeat(np.arange(len(self.labels)), np.diff(self.start))

    def joint(self, powers: Floats, averaged: bool = False) -> Floats:
        """Probability of labels and blocks (labels, entries), up to a factor for each row; labels first, for speed."""
        row = self.row
        log_joint = self.log_fit.transpose(2, 0, 1) @ powers + self.log_rates.T[:, row]
        if averaged:
            log_joint -= logsumexp(log_joint, axis=0)
        log_joint += self.log_weight
        highest = np.maximum.reduceat(log_joint.max(axis=0), self.start[:-1])
        return np.asarray(np.exp(log_joint - highest[row]))

    def log_predictive(self, powers: Floats, averaged: bool = False) -> Floats:
        """Log probability of every label of every row, given all other rows (rows, labels)."""
        summed = np.add.reduceat(self.joint(powers, averaged), self.start[:-1], axis=1).T
        log_sum = np.log(np.maximum(summed, _TINY))
        return np.asarray(log_sum - logsumexp(log_sum, axis=1, keepdims=True))

    def score(self, powers: Floats, averaged: bool = False) -> tuple[float, Floats]:
        """Log probability of the rows' own labels, added up by the rows' weights, and its slope by each power."""
        joint, first, row = self.joint(powers, averaged), self.start[:-1], self.row
        is_own = self.labels[row] == np.arange(len(joint))[:, None]
        of_entry, own = joint.sum(axis=0), (joint * is_own).sum(axis=0)
        of_all, of_own = np.add.reduceat(of_entry, first), np.maximum(np.add.reduceat(own, first), _TINY)
        given_own = own / of_own[row]
        # Averaged, each block's own prediction changes; its weight does not.
        among = joint * (given_own / np.maximum(of_entry, _TINY) if averaged else 1.0 / of_all[row])
        change = self.weights[row] * (given_own * is_own - among)
        slope = (change[:, None] @ self.log_fit.transpose(2, 0, 1)).sum(axis=(0, 1))
        return float(self.weights @ np.log(of_own / of_all)), np.asarray(slope)


def learn_temper(left_out: LeftOut, averaged: bool = False) -> Floats:
    """Powers on the features' likelihoods under which the rows' labels are the most probable.

    A priori features have powers close to each other, wherever that is: together they make up for naive Bayes counting
    correlated features twice, apart for some of them being more so than others. For one block the score is concave.
    """
    n_features = left_out.log_fit.shape[1]

    def loss(powers: Floats) -> tuple[float, Floats]:
        apart = powers - powers.mean()
        score, slope = left_out.score(powers, averaged)
        return _CLOSENESS * float(apart @ apart) - score, 2.0 * _CLOSENESS * apart - slope

    bounds = [(0.0, MAX_TEMPER)] * n_features
    found = _minimised(loss, np.full(n_features, _START), bounds, "temper")
    return np.asarray(np.clip(found, 0.0, MAX_TEMPER))


def _are_enough(rows: Rows, data: TrainingData) -> bool:
    """Whether rows may settle the powers: a few must not overrule the many whose counts alone are left.

    Counts alone are left of a file that was counted, and of a saved model.
    """
    n_known = len(rows.labels) if rows.weights is None else float(rows.weights.sum())
    return n_known >= _ENOUGH_OF_ROWS * float(data.statistics.label_counts.sum()) or len(rows.labels) >= _FEW_ROWS


def _some_rows(rows: Rows, data: TrainingData, mixture: Mixture) -> Rows:
    """The rows, or a thousand of them, which say it well enough: more would only take more time.

    They come in an order that depends on what they hold, so that sums do not depend on theirs.
    """
    layout, rank = data.statistics.layout, np.argsort(data.canonical_order)
    columns = [*rows.codes.T, rows.labels, rank[rows.task]]
    packed = packed_keys(columns, [*layout.n_values.tolist(), layout.n_labels, len(rank)])
    order = np.lexsort(packed if rows.weights is None else [rows.weights, *packed])
    n_features = rows.codes.shape[1] + (0 if rows.numbers is None else rows.numbers.shape[1])
    n_terms = np.diff(mixture.start)[rows.task].mean() * layout.n_labels * n_features
    most = int(min(MAX_ROWS_LEFT_OUT, max(MAX_TERMS_LEFT_OUT / n_terms, 1)))
    # The same rows each time, so that fitting in parts gives what one fit gives.
    return rows.take(some_of(order, most))


def packed_keys(columns: Sequence[NDArray[Any]], n_values: Sequence[int]) -> list[NDArray[np.int64]]:
    """Codes from −1 to below ``n_values`` as few whole numbers that sort alike; the last column decides first.

    Sorting by one key takes a quarter of the time that sorting by seventeen takes.

    Examples
    --------
    >>> [keys.tolist() for keys in packed_keys([np.array([1, -1, 0]), np.array([0, 1, 0])], [2, 2])]
    [[5, 6, 4]]
    """
    keys: list[NDArray[np.int64]] = []
    packed, room = np.zeros(len(columns[0]), dtype=np.int64), 1
    for codes, n in zip(columns, n_values, strict=True):
        if room * (n + 1) > _MOST_PACKED:
            keys.append(packed)
            packed, room = np.zeros(len(codes), dtype=np.int64), 1
        packed = packed + room * (codes.astype(np.int64) + 1)
        room *= n + 1
    return [*keys, packed]
