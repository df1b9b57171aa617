"""One structure from related tables: the hierarchical Dirichlet score beside BDeu of pooled rows and of each task's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from time import thread_time
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.datasets import load_network, sample_tasks
from kinfolk.experiments.measuring import mean_and_error
from kinfolk.experiments.networks.drawing import draw_line, dress
from kinfolk.experiments.networks.problems import over_draws, plus_minus
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.networks.estimators.bayes_nets import BayesNets
from kinfolk.networks.model.equivalence import completed
from kinfolk.networks.model.network import Network

NETWORKS = ("alarm", "child", "insurance")
SIZES = (200, 1_000)
# How closely tables follow common ones, in rows; the first are those of one network for all.
STRENGTHS = (math.inf, 100.0, 20.0, 5.0, 1.0)
# From here on tasks differ.
DIFFER = 20.0
N_TASKS = 5
POOLED, SUMMED, BHD = "BDeu, pooled rows", "BDeu, tasks' scores added up", "BHD"
METHODS: dict[str, dict[str, Any]] = {
    POOLED: {"sharing": "pooled"},
    SUMMED: {"sharing": "identical"},
    BHD: {"sharing": "identical", "criterion": "bhd"},
}
MEASURES = ("shd", "superfluous", "missing", "seconds")

ABOUT = About(
    "L. Azzimonti, G. Corani and M. Scutari, “A Bayesian Hierarchical Score for Structure Learning from Related Data "
    "Sets”, International Journal of Approximate Reasoning 142, 2022 (arXiv 2008.01683).",
    "Learnt one structure from several tables, whose probabilities are alike or differ, with the new score and with "
    "BDeu, and counted what differs from the truth.",
    "Rows of networks of the public repository, in `KINFOLK_DATA/bayesnets`. Only the paper's abstract was at hand: "
    "its simulations are not these, and its variational approximation is not the bound used here.",
    (
        "When data sets differ, BHD is nearer the true structure than BDeu.",
        "When they are alike, it is as near as BDeu.",
        "It finds fewer superfluous arcs.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    networks: Sequence[str | Network] | None = None,
    sizes: Sequence[int] | None = None,
    strengths: Sequence[float] | None = None,
    n_draws: int | None = None,
) -> Study:
    """Learn the structure of every network from five tables in every way, on the same draws."""
    networks = networks or (("asia",) if quick else NETWORKS)
    sizes = sizes or (SIZES[:1] if quick else SIZES)
    strengths = strengths or ((math.inf, 5.0) if quick else STRENGTHS)
    n_draws = n_draws or (2 if quick else 10)

    def one(given: str | Network, n_rows: int, strength: float, draw: int) -> list[dict[str, Any]]:
        network = load_network(given)
        rng = np.random.default_rng([seed, draw])
        tasks = related_tables(network, N_TASKS, strength, rng)
        tables = sample_tasks(tasks, n_rows, random_state=int(rng.integers(2**31)))
        about = {
            "network": given if isinstance(given, str) else "a network",
            "rows": n_rows,
            "strength": strength,
            "draw": draw,
        }
        return [about | {"method": method} | _measure(network, tables, seed, **METHODS[method]) for method in METHODS]

    jobs = [(name, size, s, draw) for name in networks for size in sizes for s in strengths for draw in range(n_draws)]
    with warnings.catch_warnings():
        # Threads have these settings in common, so that none may change them.
        warnings.filterwarnings("ignore", message="columns? .* same value in every row")
        scores = over_draws("Learning one structure from related tables", jobs, one)
    setting = (
        f"{N_TASKS} tasks of {', '.join(f'{n:,}' for n in sizes)} rows each; {n_draws} draws; seed {seed}; ± are "
        "standard errors over draws; seconds of the processor, the first with compiling. Tables of a task are drawn "
        "from Dirichlet distributions around the network's own, which count as so many rows: infinitely many are one "
        "network for all, one row is next to nothing in common. This is the model of the score, which so has the "
        "advantage. All search as the estimator does by default."
    )
    ours, held = _compare(scores)
    return Study(scores, _draw(scores), ours, setting, _details(scores), held)


def related_tables(network: Network, n_tasks: int, strength: float, rng: np.random.Generator) -> list[Network]:
    """Networks of one structure, whose tables are drawn around a network's own; what is impossible there stays so.

    Examples
    --------
    >>> from kinfolk.datasets import make_random_network
    >>> truth = make_random_network(4, random_state=0)
    >>> near, far = (related_tables(truth, 1, s, np.random.default_rng(0))[0].tables[0] for s in (1e9, 1.0))
    >>> bool(np.abs(near - truth.tables[0]).max() < 1e-3 < np.abs(far - truth.tables[0]).max())
    True
    """
    if math.isinf(strength):
        return [network] * n_tasks
    tasks = []
    for _ in range(n_tasks):
        tables = []
        for table in network.tables:
            drawn = rng.gamma(strength * table)
            total = drawn.sum(axis=-1, keepdims=True)
            # Where all have come out as nothing, one value has all, and it is the most probable.
            certain = np.eye(table.shape[-1])[table.argmax(axis=-1)]
            tables.append(np.where(total > 0, drawn / np.where(total > 0, total, 1.0), certain))
        tasks.append(network._replace(tables=tuple(tables)))
    return tasks


def _measure(network: Network, tables: dict[Any, pl.DataFrame], seed: int, **parameters: Any) -> dict[str, Any]:
    begun = thread_time()
    model = BayesNets(random_state=seed, n_jobs=1, **parameters).fit(tables)
    seconds = thread_time() - begun
    found = model.networks_[0].reordered(network.variables).adjacency()
    truth = network.adjacency()
    graph, true_graph = completed(found), completed(truth)
    linked, truly = found | found.T, truth | truth.T
    return {
        "shd": int(np.triu((graph != true_graph) | (graph != true_graph).T).sum()),
        "superfluous": int(np.triu(linked & ~truly).sum()),
        "missing": int(np.triu(truly & ~linked).sum()),
        "seconds": seconds,
    }


def _draw(scores: pl.DataFrame) -> Figure:
    networks = scores["network"].unique(maintain_order=True).to_list()
    sizes = scores["rows"].unique(maintain_order=True).to_list()
    strengths = scores["strength"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(4 * len(networks), 2.9 * len(sizes)), layout="constrained")
    panels = figure.subplots(len(sizes), len(networks), squeeze=False)
    for line, n_rows in zip(panels, sizes, strict=True):
        for ax, name in zip(line, networks, strict=True):
            here = scores.filter((pl.col("network") == name) & (pl.col("rows") == n_rows))
            for place, method in enumerate(METHODS):
                its = here.filter(pl.col("method") == method)
                means = its.group_by("strength", maintain_order=True).agg(*mean_and_error(MEASURES))
                draw_line(ax, place, range(len(means)), means["shd"], means["shd_error"], method)
            ax.set_xticks(range(len(strengths)), ["∞" if math.isinf(s) else f"{s:g}" for s in strengths])
            dress(ax, "rows that common tables count as", "structural Hamming distance", f"{name}, {n_rows:,} rows")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    return figure


def _difference(scores: pl.DataFrame, other: str, measure: str) -> tuple[float, float]:
    """BHD less another method on the same draws: the mean and its standard error."""
    keys = ["network", "rows", "strength", "draw"]
    ours, theirs = (
        scores.filter(pl.col("method") == method).select(*keys, pl.col(measure).alias(name))
        for method, name in ((BHD, "ours"), (other, "theirs"))
    )
    pairs = ours.join(theirs, on=keys).select(difference=pl.col("ours") - pl.col("theirs"))
    mean, error = pairs.select(*mean_and_error(("difference",))).row(0)
    return float(mean), float(error)


def _compare(scores: pl.DataFrame) -> tuple[tuple[str, ...], tuple[Verdict, ...]]:
    """What came out beside the paper's findings, and whether they hold: beyond two standard errors, or within two.

    That tables which are the same do no harm is asked of every network and size, the other findings of all together.
    """
    differ, alike = scores.filter(pl.col("strength") <= DIFFER), scores.filter(pl.col("strength").is_infinite())
    others = (POOLED, SUMMED)
    nearer = [_difference(differ, other, "shd") for other in others]
    same = [_difference(alike, other, "shd") for other in others]
    each = {
        f"{name}, {n_rows:,} rows": _difference(its, POOLED, "shd")
        for (name, n_rows), its in alike.group_by("network", "rows", maintain_order=True)
    }
    fewer = [_difference(scores, other, "superfluous") for other in others]

    def told(found: list[tuple[float, float]]) -> str:
        return ", ".join(f"{plus_minus(*pair)} against {other}" for other, pair in zip(others, found, strict=True))

    said = (
        f"BHD less BDeu, structural Hamming distance where common tables count as {DIFFER:g} rows or fewer: "
        f"{told(nearer)}.",
        f"Where tables are the same: {told(same)}; against pooled rows, which are then right, "
        f"{', '.join(f'{where} {plus_minus(*pair)}' for where, pair in each.items())}.",
        f"Superfluous arcs, over all: {told(fewer)}.",
    )
    held = (
        judge(*(mean < -2 * error for mean, error in nearer)),
        judge(*(mean <= 2 * error for mean, error in (*same, *each.values()))),
        judge(*(mean < -2 * error for mean, error in fewer)),
    )
    return said, held


def _details(scores: pl.DataFrame) -> str:
    lines = []
    strengths = scores["strength"].unique(maintain_order=True).to_list()
    heads = " | ".join("the same" if math.isinf(s) else f"{s:g} rows" for s in strengths)
    for measured, digits in (("shd", 1), ("superfluous", 1), ("missing", 1), ("seconds", 2)):
        lines += [
            f"{measured}:",
            "",
            f"| network, rows a task, score | {heads} |",
            "| --- " * (1 + len(strengths)) + "|",
        ]
        for (name, n_rows, method), its in scores.group_by("network", "rows", "method", maintain_order=True):
            means = its.group_by("strength", maintain_order=True).agg(*mean_and_error((measured,)))
            cells = [plus_minus(row[measured], row[f"{measured}_error"], digits) for row in means.iter_rows(named=True)]
            lines.append(f"| {name}, {n_rows:,}, {method} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip()
