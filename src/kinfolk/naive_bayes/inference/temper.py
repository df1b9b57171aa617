"""Powers on the features' likelihoods, chosen so that training rows, each left out in turn, are predicted best."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from kinfolk.maths.arrays import Floats
from kinfolk.maths.blas import one_blas_thread
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.mixture import MAX_TEMPER, Mixture
from kinfolk.tasks.statistics import Rows

# Half the precision of powers about their mean: a priori they differ by about 0.2.
_CLOSENESS = 10.0
_START = 0.5
# Rows by which the powers are chosen, at most, and numbers held for them: rows · blocks · features · labels.
MAX_ROWS_LEFT_OUT = 1_000
MAX_TERMS_LEFT_OUT = 1 << 24
# Rows by which they are chosen where the others are not at hand: at least so many, or such a share of all.
_FEW_ROWS, _ENOUGH_OF_ROWS = 1_000, 0.5


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
    with one_blas_thread():
        found = minimize(loss, np.full(n_features, _START), jac=True, method="L-BFGS-B", bounds=bounds)
    if not found.success:
        warnings.warn(
            f"temper had not settled after {found.nit} steps ({found.message}): give numbers, or look at temper_",
            ConvergenceWarning,
            stacklevel=2,
        )
    return np.asarray(np.clip(found.x, 0.0, MAX_TEMPER))


def are_enough(rows: Rows, data: TrainingData) -> bool:
    """Whether rows may settle the powers: a few must not overrule the many whose counts alone are left.

    Counts alone are left of a file that was counted, and of a saved model.
    """
    n_known = len(rows.labels) if rows.weights is None else float(rows.weights.sum())
    return n_known >= _ENOUGH_OF_ROWS * float(data.statistics.label_counts.sum()) or len(rows.labels) >= _FEW_ROWS


def some_rows(rows: Rows, data: TrainingData, mixture: Mixture) -> Rows:
    """The rows, or a thousand of them, which say it well enough: more would only take more time.

    They come in an order that depends on what they hold, so that sums do not depend on theirs.
    """
    rank = np.argsort(data.canonical_order())
    counted = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    rows = rows.take(np.lexsort([counted, *rows.codes.T, rows.labels, rank[rows.task]]))
    n_features = rows.codes.shape[1] + (0 if rows.numbers is None else rows.numbers.shape[1])
    n_terms = np.diff(mixture.start)[rows.task].mean() * mixture.n_labels * n_features
    most = int(min(MAX_ROWS_LEFT_OUT, max(MAX_TERMS_LEFT_OUT / n_terms, 1)))
    if len(rows.labels) <= most:
        return rows
    # The same rows each time, so that fitting in parts gives what one fit gives.
    return rows.take(np.sort(np.random.default_rng(0).permutation(len(rows.labels))[:most]))
