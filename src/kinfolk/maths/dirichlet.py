"""Marginals of statistics that add up, compiled: Dirichlet-multinomial counts, and numbers beside them.

A *product* is a set of independent Dirichlet-multinomial groups laid out side by side in one flat row of cells; the
cells of group g are ``group_start[g]:group_start[g + 1]``. For counts n and prior pseudo-counts a of one group,

    log p(data) = log B(a + n) − log B(a),        B(a) = ∏Γ(a_i) / Γ(Σa_i),

the probability of the observations as an ordered sequence (thesis eq. A.29–A.30, without multinomial coefficients).
Groups of numbers, Gaussian or counts, may follow (see ``conjugate``); the cells of a row are then floats.

In the papers: Roy (2006), eq. A.22.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import N_CELLS, NumberGroups, log_marginal_of_number, prior_of
from kinfolk.maths.rising import rising, risings

# Beyond this many table entries the tables leave the processor's caches and a call of lgamma is as fast.
_MAX_TABLE = 1 << 20


class DirichletProduct(NamedTuple):
    """Prior of a product of Dirichlet-multinomial groups, with look-up tables of lgamma for whole counts.

    Row r of ``tables`` holds lgamma(p + n) − lgamma(p) for n = 0, 1, …, where p is the r-th distinct pseudo-count;
    a table of zero width means that every value is computed directly (fractional counts). ``numbers`` are groups of
    numbers in the cells after those of counts.
    """

    group_start: NDArray[np.int64]
    prior: NDArray[np.float64]
    group_prior: NDArray[np.float64]
    cell_table: NDArray[np.int64]
    group_table: NDArray[np.int64]
    tables: NDArray[np.float64]
    numbers: NumberGroups


def dirichlet_product(
    prior: NDArray[np.float64],
    group_start: NDArray[np.int64],
    largest_count: int,
    numbers: NumberGroups | None = None,
) -> DirichletProduct:
    """Lay out a product with tables that reach whole counts up to ``largest_count`` (0: no tables)."""
    group_prior = np.add.reduceat(prior, group_start[:-1]) if len(prior) else np.zeros(0)
    distinct, index = np.unique(np.concatenate([prior, group_prior]), return_inverse=True)
    width = largest_count + 1 if largest_count > 0 else 0
    width = min(width, _MAX_TABLE // max(len(distinct), 1))
    counts = np.arange(width, dtype=np.float64)
    tables = risings(distinct[:, None], counts)
    return DirichletProduct(
        np.ascontiguousarray(group_start, dtype=np.int64),
        np.ascontiguousarray(prior, dtype=np.float64),
        np.ascontiguousarray(group_prior, dtype=np.float64),
        index[: len(prior)].astype(np.int64),
        index[len(prior) :].astype(np.int64),
        np.ascontiguousarray(tables.reshape(len(distinct), width)),
        NumberGroups(len(prior), np.zeros(0, dtype=np.int64), np.zeros((0, 5))) if numbers is None else numbers,
    )


@compiled(inline="always")
def _rising(prior, tables, row, count, width):  # type: ignore[no-untyped-def]
    """lgamma(prior + count) − lgamma(prior), from a table where it reaches."""
    if count < width:
        # Unsigned, because a signed index is first checked for being negative.
        return tables[np.uint64(row), np.uint64(count)]
    return rising(prior, count)


# Inlined by force: a call hands all arrays of the product on and counts a reference for each, a third of the time.
@compiled(forceinline=True)
def log_marginal_of_sum(a, b, product):  # type: ignore[no-untyped-def]
    """Log marginal of the added statistics a + b, without forming the sum. O(cells)."""
    # By names of their own, because taking an array out of a tuple in a loop counts a reference each time.
    prior, group_start, group_prior = product.prior, product.group_start, product.group_prior
    cell_table, group_table, tables = product.cell_table, product.group_table, product.tables
    width = tables.shape[1]
    total = 0.0
    for g in range(len(group_prior)):
        in_group = a[0] * 0 + b[0] * 0
        for c in range(group_start[g], group_start[g + 1]):
            count = a[c] + b[c]
            if count > 0:
                total += _rising(prior[c], tables, cell_table[c], count, width)
                in_group += count
        if in_group > 0:
            total -= _rising(group_prior[g], tables, group_table[g], in_group, width)
    numbers = product.numbers
    for g in range(len(numbers.family)):
        c, own = numbers.first + N_CELLS * g, prior_of(numbers, g)
        total += log_marginal_of_number(a[c] + b[c], a[c + 1] + b[c + 1], a[c + 2] + b[c + 2], numbers.family[g], own)
    return total


@compiled
def log_marginals(counts, product):  # type: ignore[no-untyped-def]
    """Log marginal of every row of statistics, each on its own."""
    nothing = np.zeros(counts.shape[1], dtype=counts.dtype)
    out = np.empty(len(counts))
    for i in range(len(counts)):
        out[i] = log_marginal_of_sum(counts[i], nothing, product)
    return out
