r"""BHD: one structure for related tables, whose probabilities differ around common ones.

The model is that of Azzimonti, Corani and Scutari, "A Bayesian hierarchical score for structure learning from related
data sets" (2022): for configuration u of a family's parents and task f,

    n_fu ~ Mult(θ_fu),        θ_fu ~ Dir(s·α_u),        α_u ~ Dir(a, …, a),        a = ess / (q·r).

Theirs are the hierarchy and the variational approximation of its marginal likelihood. Their formulas were not at hand,
so that the following are ours. As a function of log α, log Γ(sα + n) − log Γ(sα) is convex: it lies above its tangent
at any α̂, which has the slope m = sα̂ (ψ(sα̂ + n) − ψ(sα̂)), the expected number of tables at which n guests of a Chinese
restaurant sit. With the tangents in its place the integral over α_u is a Dirichlet's, and a lower bound of it all is

    log p(n_u | s) ≥ Σ_f log Γ(s) / Γ(s + N_fu) + Σ_fk [log Γ(sα̂_k + n_fuk) / Γ(sα̂_k) − m_fuk log α̂_k]
                     + log B(a + M_u) / B(a),        M_uk = Σ_f m_fuk,

which is highest where α̂_k = exp(ψ(a + M_uk) − ψ(Σ_k (a + M_uk))). A few rounds of that come within thousandths of it,
and the bound within tenths of the integral for each free probability (tests compare it with the exact sum).

How alike tasks are is not given: each family has an s of its own, any of ``STRENGTHS`` before the rows, and its score
is the log of the mean over them. The first, infinity, is BDeu of the rows of all tasks as one table, exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.digamma import digamma
from kinfolk.networks.model.data import MOST_STATES
from kinfolk.networks.model.kernels import inner
from kinfolk.networks.model.scores.criterion import Criterion
from kinfolk.networks.model.scores.dirichlet import log_gamma, log_rise

# s in rows, the highest first: each begins with the α̂ of the one before.
STRENGTHS = (math.inf, 128.0, 32.0, 8.0, 2.0)
_FINITE = np.array(STRENGTHS[1:])
_ROUNDS = 2
# Up to this number of rows, what is added up row by row is sooner there than series.
_FEW = 12


class BHD(NamedTuple):
    """Equivalent sample size, number of tasks, and room: by value for α̂ and M, by s for the scores of a family."""

    ess: float
    n_tasks: int
    shares: NDArray[np.float64]
    tables: NDArray[np.float64]
    totals: NDArray[np.float64]


@inner
def _rise(a: float, n: float, whole: bool) -> float:
    """By how much log Γ rises from a to a + n."""
    if not whole or n > _FEW:
        return float(log_rise(a, n, log_gamma(a)))
    product = 1.0
    for i in range(int(n)):
        product *= a + i
    return math.log(product)


@inner
def _slope(a: float, n: float, whole: bool) -> float:
    """By how much ψ rises from a to a + n."""
    if not whole or n > _FEW:
        return float(digamma(a + n) - digamma(a))
    total = 0.0
    for i in range(int(n)):
        total += 1.0 / (a + i)
    return total


@inner
def bhd(
    counts: NDArray[np.float64], shape: tuple[int, int, int], q: float, score: BHD, task: int, whole: bool
) -> float:
    """Score a table of counts, whose own values are those of the first task, then those of the second, and so on."""
    n_numbers, n_columns, card = shape
    n_tasks, shares, tables, totals = score.n_tasks, score.shares, score.tables, score.totals
    r = n_columns // n_tasks
    a = score.ess / (q * r)
    for level in range(len(totals)):
        totals[level] = 0.0
    for u in range(n_numbers):
        for v in range(card):
            first = u * n_columns * card + v
            rows = 0.0
            for k in range(r):
                tables[k] = 0.0
                for f in range(n_tasks):
                    tables[k] += counts[first + (f * r + k) * card]
                rows += tables[k]
            if rows == 0.0:
                continue
            totals[0] -= _rise(r * a, rows, whole)
            for k in range(r):
                if tables[k] > 0.0:
                    totals[0] += _rise(a, tables[k], whole)
                shares[k] = (a + tables[k]) / (r * a + rows)
            for level in range(1, len(totals)):
                totals[level] += _bound(counts, first, card, r, a, _FINITE[level - 1], score, whole)
    best = totals[0]
    for level in range(1, len(totals)):
        best = max(best, totals[level])
    likely = 0.0
    for level in range(len(totals)):
        likely += math.exp(totals[level] - best)
    return float(best + math.log(likely / len(totals)))


@inner
def _bound(
    counts: NDArray[np.float64], first: int, card: int, r: int, a: float, s: float, score: BHD, whole: bool
) -> float:
    """Bound log p(n_u | s) from the α̂ at hand, which is improved on the way."""
    n_tasks, shares, tables = score.n_tasks, score.shares, score.tables
    n_tables, fit = 0.0, 0.0
    for turn in range(_ROUNDS):
        if turn:
            common = digamma(r * a + n_tables)
            for k in range(r):
                if tables[k] > 0.0:
                    shares[k] = math.exp(max(digamma(a + tables[k]) - common, -600.0))
        n_tables = 0.0
        for k in range(r):
            if tables[k] > 0.0:
                alpha, slopes = s * shares[k], 0.0
                for f in range(n_tasks):
                    n = counts[first + (f * r + k) * card]
                    if n > 0.0:
                        slopes += _slope(alpha, n, whole)
                tables[k] = alpha * slopes
                n_tables += tables[k]
    for f in range(n_tasks):
        rows = 0.0
        for k in range(r):
            n = counts[first + (f * r + k) * card]
            if n > 0.0:
                rows += n
                fit += _rise(s * shares[k], n, whole)
        if rows > 0.0:
            fit -= _rise(s, rows, whole)
    for k in range(r):
        if tables[k] > 0.0:
            fit += log_gamma(a + tables[k]) - log_gamma(a) - tables[k] * math.log(shares[k])
    return float(fit + log_gamma(r * a) - log_gamma(r * a + n_tables))


CRITERION = Criterion(
    name="bhd",
    kind=BHD,
    kernel=bhd,
    make=lambda ess, n_rows, n_parts: BHD(
        float(ess), n_parts, np.empty(MOST_STATES), np.empty(MOST_STATES), np.empty(len(STRENGTHS))
    ),
    cell_prior=lambda ess, n_cells: ess / n_cells,
    equivalent=False,
    hierarchical=True,
)
