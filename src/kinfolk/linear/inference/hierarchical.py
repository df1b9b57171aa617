"""Partially pooled logistic regression by a Gaussian variational posterior; scales by empirical Bayes.

The posterior of all weights is approximated by the Gaussian q that is best for the bound (Opper and Archambeau 2009)

    F = Σ_i m_i (y_i E η_i − E log(1 + e^{η_i})) − KL(q ‖ p(w | τ, σ)),         m_i the weight of a row,

whose precision has the form of the prior's plus Gaussian sites, A_t = Σ_i m_i E σ′(η_i) x_i x_iᵀ: averages over q, not
values at a mode. With two rows a task a Laplace approximation's curvature is that of a point that knows too much, and
its τ is too small (Breslow and Lin 1995); averages have neither fault. A step that would lower F is halved. After every
step τ and σ move towards their most probable values given q.

One iteration is O(rows × columns²) and what ``model.weights`` takes; there are ten to fifty. Ctrl-C ends after one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfolk.interrupts import stops_safely
from kinfolk.linear.model.logistic import averages
from kinfolk.linear.model.rows import LinearRows
from kinfolk.linear.model.scales import Pace, better_scales, first_pace, log_prior
from kinfolk.linear.model.values import COMMON_WIDTH, Fitted, Groups, Hyper, Options, first_hyper
from kinfolk.linear.model.weights import Moments, Sites, TaskWeights, weights_given_sites
from kinfolk.maths.arrays import Floats
from kinfolk.maths.blas import one_blas_thread

# A step is not cut shorter than this.
_SHORTEST = 1e-3
# Scales that change by less, in logs, have settled.
_SETTLED = 0.05
# How far a first guess of label rates may be from one half, and what is not known of linear predictors then.
_RARE = 0.02
_AT_FIRST = 0.5


class _State(NamedTuple):
    """A Gaussian posterior, the sites it came from, those it asks for, and the expected log likelihood."""

    weights: TaskWeights
    moments: Moments
    sites: Sites
    wanted: Sites
    log_likelihood: float


@one_blas_thread()
def infer(rows: LinearRows, hyper: Hyper | None = None, options: Options | None = None) -> tuple[Hyper, Fitted]:
    """Learn scales and weights from labels 0 and 1; no step is random.

    Parameters
    ----------
    rows : LinearRows
    hyper : Hyper, optional
        Where to start from.
    options : Options, optional

    Returns
    -------
    hyper : Hyper
    fitted : Fitted
    """
    groups, options = Groups(rows.own_group, rows.bends), Options() if options is None else options
    hyper = first_hyper(groups) if hyper is None else hyper
    place = options.place("labels", rows, hyper)
    if (kept := place.load()) is not None:
        hyper, state, bounds, converged, paces = kept
    else:
        state, bounds, converged, paces = _first(rows, groups, hyper), list[float](), False, first_paces(groups)
    value = _bound(state, hyper, groups)
    with stops_safely() as stop:
        while not converged and len(bounds) < options.max_iter and not (bounds and stop.asked()):
            if place.due():
                place.save((hyper, state, bounds, converged, paces))
            state, better = _step(rows, groups, hyper, state, value)
            gain = better - value
            bounds.append(better + log_prior_of(hyper, groups))
            before = hyper
            if options.learn_scales:
                hyper, paces = better_hyper(hyper, groups, state.moments, paces)
            value = _bound(state, hyper, groups)
            converged = bool(abs(gain) < options.enough(rows) and hyper_change(before, hyper) < _SETTLED)
        (place.save if stop.asked() else place.end)((hyper, state, bounds, converged, paces))
    return hyper, Fitted(state.weights, np.array(bounds), converged)


def _first(rows: LinearRows, groups: Groups, hyper: Hyper) -> _State:
    """Sites at the label rate of all rows."""
    total = sum(float(block.weights.sum()) for block in rows.blocks)
    positive = sum(float((block.weights * block.y).sum()) for block in rows.blocks) / total
    rate = np.clip(positive, _RARE, 1.0 - _RARE)
    means = np.zeros((rows.n_tasks, rows.n_columns))
    means[:, 0] = np.log(rate) - np.log1p(-rate)
    sites, _ = sites_at(rows, means, [np.full(block.y.shape, _AT_FIRST) for block in rows.blocks])
    return _given(rows, groups, hyper, sites)


def _given(rows: LinearRows, groups: Groups, hyper: Hyper, sites: Sites) -> _State:
    weights = weights_given_sites(sites, hyper.spread(groups), hyper.scale(rows.n_columns, groups))
    wanted, log_likelihood = sites_at(rows, weights.means, [weights.variances(b.X, b.tasks) for b in rows.blocks])
    return _State(weights, weights.moments(), sites, wanted, log_likelihood)


def _step(rows: LinearRows, groups: Groups, hyper: Hyper, state: _State, value: float) -> tuple[_State, float]:
    """Go to the sites that are asked for, or part of the way, so that the bound does not fall.

    Where rounding leaves nothing finite even near, as under weights of very different sizes, the state stays.
    """
    step = 1.0
    while True:
        found = _given(rows, groups, hyper, state.sites.towards(state.wanted, step))
        better = _bound(found, hyper, groups)
        if better >= value - 1e-9 * abs(value) or step < _SHORTEST:
            return (found, better) if np.isfinite(better) else (state, value)
        step *= 0.5


def sites_at(rows: LinearRows, means: Floats, variances: list[Floats]) -> tuple[Sites, float]:
    """Sites at Gaussian linear predictors, and the expected log likelihood there."""
    n_own, n_columns = rows.n_own, rows.n_columns
    precision, shift = np.zeros((rows.n_tasks, n_own, n_columns)), np.zeros((rows.n_tasks, n_own))
    total_precision, total_shift, log_likelihood = np.zeros((n_columns, n_columns)), np.zeros(n_columns), 0.0
    for block, variance in zip(rows.blocks, variances, strict=True):
        X, own = block.X, block.of_tasks(means)
        at = np.matmul(X, own[..., None])[..., 0]
        mean = averages(at, variance)
        log_likelihood += float((block.weights * (block.y * at - mean.log_total)).sum())
        # As of a least-squares problem with these curvatures, whose solution is the next mean.
        curvature = block.weights * mean.slope
        working = curvature * at + block.weights * (block.y - mean.rate)
        weighted = curvature[..., None] * X
        turned = X[..., :n_own].transpose(0, 2, 1)
        precision[block.tasks] = turned @ weighted
        shift[block.tasks] = np.matmul(turned, working[..., None])[..., 0]
        flat = X.reshape(-1, n_columns)
        total_precision += flat.T @ weighted.reshape(-1, n_columns)
        total_shift += flat.T @ working.ravel()
    return Sites(precision, shift, total_precision, total_shift), log_likelihood


def _bound(state: _State, hyper: Hyper, groups: Groups) -> float:
    scale = hyper.scale(len(state.weights.common), groups)
    return state.log_likelihood - state.moments.divergence(hyper.spread(groups), scale)


def log_prior_of(hyper: Hyper, groups: Groups) -> float:
    """Log density of the standard deviations."""
    return log_prior(hyper.own, groups.widths) + log_prior(hyper.commons, COMMON_WIDTH[: len(hyper.commons)])


Paces = tuple[Pace, Pace]


def first_paces(groups: Groups) -> Paces:
    """The paces of own and of common weights' scales before any step."""
    return first_pace(len(groups.widths)), first_pace(1 if groups.bends is None else 2)


def better_hyper(hyper: Hyper, groups: Groups, moments: Moments, paces: Paces) -> tuple[Hyper, Paces]:
    """Standard deviations nearer to the most probable ones, given what is known of the weights."""
    spread = hyper.spread(groups)
    settled = 1.0 - moments.own_known / spread**2
    own, of_own = better_scales(hyper.own, groups.widths, groups.own, moments.own_squares, settled, paces[0])
    slopes, variance = moments.common[1:], np.diag(moments.common_covariance)[1:]
    common, of_common = hyper.commons, paces[1]
    if len(slopes):
        group = np.zeros(len(slopes), dtype=np.int64) if groups.bends is None else groups.common
        squares, known = (slopes**2 + variance)[None], (1.0 - variance / common[group] ** 2)[None]
        common, of_common = better_scales(common, COMMON_WIDTH[: len(common)], group, squares, known, of_common)
    return Hyper(own, *common.tolist()), (of_own, of_common)


def hyper_change(before: Hyper, after: Hyper) -> float:
    """The largest change of a log standard deviation."""
    of_own, of_common = np.log(after.own / before.own), np.log(after.commons / before.commons)
    return float(max(np.abs(of_own).max(), np.abs(of_common).max()))
