"""Dirichlet-multinomial marginals of counts that add up, compiled.

A *product* is a set of independent Dirichlet-multinomial groups laid out side by side in one flat row of cells; the
cells of group g are ``group_start[g]:group_start[g + 1]``. For counts n and prior pseudo-counts a of one group,

    log p(data) = log B(a + n) − log B(a),        B(a) = ∏Γ(a_i) / Γ(Σa_i),

the probability of the observations as an ordered sequence (thesis eq. A.29–A.30, without multinomial coefficients).
"""

from __future__ import annotations

from math import lgamma
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

# Beyond this many table entries the tables leave the processor's caches and a call of lgamma is as fast.
_MAX_TABLE = 1 << 20


class DirichletProduct(NamedTuple):
    """Prior of a product of Dirichlet-multinomial groups, with look-up tables of lgamma for whole counts.

    Row r of ``tables`` holds lgamma(p + n) − lgamma(p) for n = 0, 1, …, where p is the r-th distinct pseudo-count;
    a table of zero width means that every value is computed directly (fractional counts).
    """

    group_start: NDArray[np.int64]
    prior: NDArray[np.float64]
    group_prior: NDArray[np.float64]
    cell_table: NDArray[np.int64]
    group_table: NDArray[np.int64]
    tables: NDArray[np.float64]


def dirichlet_product(
    prior: NDArray[np.float64], group_start: NDArray[np.int64], largest_count: int
) -> DirichletProduct:
    """Lay out a product with tables that reach whole counts up to ``largest_count`` (0: no tables)."""
    group_prior = np.add.reduceat(prior, group_start[:-1]) if len(prior) else np.zeros(0)
    distinct, index = np.unique(np.concatenate([prior, group_prior]), return_inverse=True)
    width = largest_count + 1 if largest_count > 0 else 0
    width = min(width, _MAX_TABLE // max(len(distinct), 1))
    counts = np.arange(width, dtype=np.float64)
    tables = gammaln(distinct[:, None] + counts) - gammaln(distinct[:, None])
    return DirichletProduct(
        np.ascontiguousarray(group_start, dtype=np.int64),
        np.ascontiguousarray(prior, dtype=np.float64),
        np.ascontiguousarray(group_prior, dtype=np.float64),
        index[: len(prior)].astype(np.int64),
        index[len(prior) :].astype(np.int64),
        np.ascontiguousarray(tables.reshape(len(distinct), width)),
    )


@numba.njit(cache=True, nogil=True, inline="always")
def _rising(prior, table_row, count, width):  # type: ignore[no-untyped-def]
    """lgamma(prior + count) − lgamma(prior), from a table where it reaches."""
    if count < width:
        return table_row[int(count)]
    return lgamma(prior + count) - lgamma(prior)


@numba.njit(cache=True, nogil=True)
def log_marginal_of_sum(a, b, product):  # type: ignore[no-untyped-def]
    """Log marginal of the added counts a + b, without forming the sum. O(cells)."""
    width = product.tables.shape[1]
    total = 0.0
    for g in range(len(product.group_prior)):
        in_group = a[0] * 0 + b[0] * 0
        for c in range(product.group_start[g], product.group_start[g + 1]):
            count = a[c] + b[c]
            if count > 0:
                total += _rising(product.prior[c], product.tables[product.cell_table[c]], count, width)
                in_group += count
        if in_group > 0:
            total -= _rising(product.group_prior[g], product.tables[product.group_table[g]], in_group, width)
    return total


@numba.njit(cache=True, nogil=True)
def log_marginals(counts, product):  # type: ignore[no-untyped-def]
    """Log marginal of every row of counts, each on its own."""
    nothing = np.zeros(counts.shape[1], dtype=counts.dtype)
    out = np.empty(len(counts))
    for i in range(len(counts)):
        out[i] = log_marginal_of_sum(counts[i], nothing, product)
    return out


@numba.njit(cache=True, nogil=True)
def log_marginals_joined(counts, one, others, product):  # type: ignore[no-untyped-def]
    """Log marginal of row ``one`` joined with each row of ``others``."""
    out = np.empty(len(others))
    for k in range(len(others)):
        out[k] = log_marginal_of_sum(counts[one], counts[others[k]], product)
    return out
