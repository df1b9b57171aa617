"""Figure 2-7 of Roy (2006): where customers of the Chinese restaurant process sit; how many tables there are."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from kinfolk.experiments.clustered_naive_bayes.stand_in import THESIS
from kinfolk.experiments.publishing import About, Study, judge
from kinfolk.partition.crp import joining_weights
from kinfolk.plots import style

ALPHA = 1.0
SHOWN = ((1,), (1, 1), (2, 1), (3, 1, 1))
SIZES = (10, 100, 1_000)

ABOUT = About(
    f"{THESIS} The growth of the number of tables is that of Roy and Kaelbling (2007), section 2.2.",
    "Drew tables with the probabilities that the next customer sits there.",
    "Nothing: the process itself, with a concentration α of 1.",
    (
        "The second customer sits with the first with probability 1/(1+α) and at a new table with α/(1+α).",
        "The number of occupied tables after n customers is of the order of log n in expectation.",
    ),
)


def study(*, quick: bool = False, seed: int = 0, n_runs: int | None = None) -> Study:
    """Seat customers many times, and count tables and who sits with whom."""
    n_runs = n_runs or (200 if quick else 5_000)
    rng = np.random.default_rng(seed)
    seatings = [seat_customers(SIZES[-1], rng) for _ in range(n_runs)]
    together = float(np.mean([tables[1] == 1 for tables in seatings]))
    chance_error = float(np.sqrt(together * (1 - together) / n_runs))
    rows = []
    for size in SIZES:
        counts = np.array([tables[size - 1] for tables in seatings], dtype=float)
        expected = float((ALPHA / (ALPHA + np.arange(size))).sum())
        rows.append(
            {
                "customers": size,
                "tables": float(counts.mean()),
                "tables_error": float(counts.std(ddof=1) / np.sqrt(n_runs)),
                "expected": expected,
                "per_log": float(counts.mean() / np.log(size)),
            }
        )
    table = pl.DataFrame(rows)
    near = [abs(row["tables"] - row["expected"]) < 4 * row["tables_error"] for row in rows]
    ours = (
        f"Together in {together:.3f} ± {chance_error:.3f} of {n_runs:,} runs; 1/(1+α) is {1 / (1 + ALPHA):.3f}.",
        "Tables: "
        + ", ".join(
            f"{row['tables']:.2f} ± {row['tables_error']:.2f} ({row['customers']:,}; exactly {row['expected']:.2f})"
            for row in rows
        )
        + ".",
    )
    held = (judge(abs(together - 1 / (1 + ALPHA)) < 4 * chance_error), judge(all(near)))
    return Study(
        table, _draw(), ours, f"{n_runs:,} runs of {SIZES[-1]:,} customers; α = {ALPHA:g}; seed {seed}.", "", held
    )


def seat_customers(n_customers: int, rng: np.random.Generator) -> list[int]:
    """The number of occupied tables after each customer.

    Examples
    --------
    >>> seat_customers(3, np.random.default_rng(0))[0]
    1
    """
    sizes, occupied = np.zeros(n_customers), 0
    after = []
    for customer in range(n_customers):
        joins, _ = joining_weights(sizes[:occupied], customer, ALPHA)
        place = int(np.searchsorted(np.cumsum(joins), rng.random(), side="right"))
        sizes[place] += 1
        occupied = max(occupied, place + 1)
        after.append(occupied)
    return after


def _draw() -> Figure:
    figure = Figure(figsize=(8, 5.6), layout="constrained")
    ax = figure.subplots()
    for line, sizes in enumerate(SHOWN):
        n = sum(sizes)
        joins, new = joining_weights(np.array(sizes), n, ALPHA)
        tables = [*zip(sizes, joins, strict=True), (0, new)]
        ax.text(-0.9, -line, f"{n} seated", ha="right", va="center", fontsize=9, color=style.ALONE)
        for place, (size, chance) in enumerate(tables):
            edge = style.INK if size else style.APART
            ax.add_patch(Circle((place, -line), 0.36, fill=False, edgecolor=edge, linestyle="-" if size else "--"))
            share = f"{round(chance * (n + ALPHA)):d}/{n + ALPHA:g}"
            ax.text(place, -line, share, ha="center", va="center", fontsize=11, color=style.INK)
            if size:
                ax.text(place, -line - 0.24, "•" * size, ha="center", va="center", fontsize=9, color=style.PALETTE[0])
    ax.set_xlim(-2.2, 4.2)
    ax.set_ylim(-len(SHOWN) + 0.4, 0.6)
    ax.set_aspect("equal")
    ax.set_axis_off()
    style.write_title(ax, "Where the next customer sits; dashed: a new table; dots: customers")
    return figure
