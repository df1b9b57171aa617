"""How near the truth structures of single tasks come, beside other packages, on networks of the public repository."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kinfolk.datasets import load_network
from kinfolk.experiments.measuring import mean_and_error
from kinfolk.experiments.networks.peers import PEERS, Answer, is_installed, learn_within
from kinfolk.experiments.networks.problems import CLEAR, plus_minus
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.networks.estimators.bayes_nets import BayesNets
from kinfolk.networks.model.equivalence import completed
from kinfolk.networks.model.network import Adjacency, Network, parents_of
from kinfolk.networks.model.parameters import learn_tables
from kinfolk.plots import style
from kinfolk.progress import progress_bar

NETWORKS = ("alarm", "insurance", "child", "hepar2", "water", "andes", "munin1", "pigs")
SIZES = (250, 1_000, 5_000)
LIMIT = 600.0
# A peer that takes longer than this gets fewer draws.
SLOW, FEW_DRAWS = 60.0, 3
N_HELD_OUT = 5_000
DEFAULT, CLIMB, CLASSES = "kinfolk", "kinfolk, plain climb", "kinfolk, classes"
# The default where a column's categories are those that its rows have, which is all that causal-learn knows of them;
# all other methods are told every state of the network.
SEEN = "kinfolk, states seen"
OURS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    SEEN: {},
    "kinfolk, uniform prior": {"structure_prior": "uniform"},
    CLIMB: {"tabu": 0},
    CLASSES: {"search": "classes"},
}
# As it comes, for its seconds; and for its structures, which are the same but for ties, with the same score made quick.
BOSS, QUICK_BOSS = "causal-learn BOSS, BDeu", "causal-learn BOSS, quick BDeu"
MEASURES = ("shd", "f1", "log_likelihood", "seconds")
# What names one result.
CELL = ("network", "rows", "draw", "method")
# Columns of which a file that has none of their values does not tell what they hold.
_PUBLISHED = dict.fromkeys((*MEASURES[1:], "limit"), pl.Float64) | {"shd": pl.Int64}

ABOUT = About(
    "B. Andrews, J. Ramsey, R. Sanchez-Romero, J. Camchong and E. Kummerfeld, “Fast Scalable and Accurate Discovery of "
    "DAGs Using the Best Order Score Search and Grow-Shrink Trees”, NeurIPS 2023; and the packages by their names.",
    "Learnt structures from rows of known networks, and counted what differs from the truth.",
    "Rows are drawn from networks of the public repository, in `KINFOLK_DATA/bayesnets`.",
    (
        "Searches over orders of variables find structures that are nearer the truth than greedy climbs do.",
        "They take longer than greedy climbs.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    networks: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    n_draws: int | None = None,
    peers: Sequence[str] | None = None,
    limit: float = LIMIT,
    budget: float = math.inf,
    kept: Path | None = None,
    earlier: Path | None = None,
) -> Study:
    """Learn every network from every number of rows by every method, each on the same draws.

    Parameters
    ----------
    quick, seed
        As for every study.
    networks, sizes, n_draws
        Names of networks, numbers of rows, and how often rows are drawn.
    peers : sequence of str, optional
        Names of other packages' methods; all that are installed by default, none where ``quick``.
    limit : float
        Processor seconds that a peer may take. One that timed out is not run on more rows of the same network.
    budget : float
        Processor seconds that a method may take on one network in all: once they are spent, it gets no more draws of
        it. With 0, only what is kept is shown.
    kept : Path, optional
        A file of results so far, which are not made again; results are added to it as they come.
    earlier : Path, optional
        The numbers that an earlier run with the same seed published, ``networks-accuracy.csv``, which are not made
        again either.
    """
    networks = networks or (("asia",) if quick else NETWORKS)
    sizes = sizes or (SIZES[:2] if quick else SIZES)
    n_draws = n_draws or (2 if quick else 10)
    if peers is None:
        peers = [] if quick else [peer.name for peer in PEERS if is_installed(peer)]
    published = [] if earlier is None else pl.read_csv(earlier, schema_overrides=_PUBLISHED).to_dicts()
    # Of a cell that both have, what was kept was measured later.
    done = list({tuple(one[key] for key in CELL): one for one in (*published, *_read(kept))}.values())
    known = {tuple(one[key] for key in CELL) for one in done}
    jobs: list[dict[str, Any]] = [
        dict(zip(CELL, cell, strict=True))
        for draw in range(n_draws)
        for cell in product(networks, sizes, (draw,), (*OURS, *peers))
        if cell not in known
    ]
    if budget and any(about["method"] in OURS for about in jobs):
        _warm_up()
    with progress_bar("Learning networks by every method", len(jobs), True) as advance:
        for about in jobs:
            if not _is_left_out(done, about, budget):
                name, n_rows, draw, method = about.values()
                done.append(about | _measure(load_network(name), n_rows, draw, method, seed, limit))
                if kept is not None:
                    with kept.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(done[-1]) + "\n")
            advance(1)
    scores = pl.DataFrame(done, infer_schema_length=None).sort(CELL)
    left_out = sorted({peer.name for peer in PEERS} - set(scores["method"]))
    setting = (
        f"{', '.join(networks)}; {', '.join(f'{n:,}' for n in sizes)} rows; {n_draws} draws; of a peer that took over "
        f"{SLOW:g} s {FEW_DRAWS} at most, and where tables have fewer they say how many. A peer is ended after "
        f"{_limits(scores, limit)}, and is then not run on more rows. Seed {seed}; ± are standard "
        f"errors over draws. Structural Hamming distance between completed graphs; F1 of the arcs without their "
        f"directions; mean log likelihood of {N_HELD_OUT:,} rows held out, tables learnt by BDeu of the structure "
        f"found, missing where a variable has too many parents for a table; seconds of the processor. Other packages "
        f"get columns in a random order. "
        f"Not run at all: {', '.join(left_out) or 'none'}."
    )
    return Study(scores, _draw(scores), _compare(scores), setting, _details(scores, n_draws), _judge(scores))


def _read(kept: Path | None) -> list[dict[str, Any]]:
    if kept is None or not kept.exists():
        return []
    content = kept.read_bytes()
    # What was being written when the study was killed has no end, and is measured again.
    whole = content[: content.rfind(b"\n") + 1]
    os.truncate(kept, len(whole))
    return [json.loads(line) for line in whole.splitlines()]


def _is_left_out(done: Sequence[dict[str, Any]], about: dict[str, Any], budget: float) -> bool:
    """Whether a method spent its budget; a peer, whether it timed out on as few rows or fewer, or has had its draws."""
    same = [one for one in done if (one["network"], one["method"]) == (about["network"], about["method"])]
    if sum(one["limit"] if one["seconds"] is None else one["seconds"] for one in same) >= budget:
        return True
    if about["method"] in OURS:
        return False
    if any(one["limit"] is not None and one["rows"] <= about["rows"] for one in same):
        return True
    here = [one["seconds"] for one in same if one["rows"] == about["rows"]]
    return bool(about["draw"] >= FEW_DRAWS and here and max(here) > SLOW)


def _warm_up() -> None:
    """Load what is compiled, which is no part of a method's time."""
    for method in OURS:
        _measure(load_network("asia"), 50, 0, method, 0, math.inf)


def _limits(scores: pl.DataFrame, limit: float) -> str:
    """The limits of time that peers had: that of the run, and those under which they were ended."""
    ended = scores.drop_nulls("limit").group_by("limit", maintain_order=True).agg(pl.col("network").unique().sort())
    others = [f"{own:g} s on {', '.join(names)}" for own, names in ended.sort("limit").iter_rows() if own != limit]
    return f"{limit:g} s of the processor{' (' * bool(others)}{'; '.join(others)}{')' * bool(others)}"


def _measure(network: Network, n_rows: int, draw: int, method: str, seed: int, limit: float) -> dict[str, Any]:
    """Learn from one draw by one method; all measures are missing where it took too long."""
    rng = np.random.default_rng([seed, draw, n_rows])
    codes, held_out = network.sample(n_rows, rng), network.sample(N_HELD_OUT, rng)
    if method in OURS:
        states: Iterable[Iterable[int]] = (
            [np.unique(column) for column in codes.T] if method == SEEN else map(range, network.cards)
        )
        table = pl.DataFrame(
            {
                name: pl.Series(column).cast(pl.String).cast(pl.Enum([str(x) for x in its]))
                for name, column, its in zip(network.variables, codes.T, states, strict=True)
            }
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="columns? .* same value in every row")
            begun = process_time()
            model = BayesNets(sharing="none", random_state=seed, n_jobs=1, **OURS[method]).fit(table, task=[0] * n_rows)
            seconds = process_time() - begun
        found = model.networks_[0].adjacency()
    else:
        answer = _learn_shuffled(method, codes, network.cards, limit, np.random.default_rng([seed, draw, n_rows, 1]))
        if answer is None:
            return dict.fromkeys(MEASURES) | {"limit": limit}
        found, seconds = answer
    truth = completed(network.adjacency())
    graph = found if (found & found.T).any() else completed(found)
    return {
        "shd": int(np.triu((graph != truth) | (graph != truth).T).sum()),
        "f1": _f1(truth | truth.T, graph | graph.T),
        "log_likelihood": _held_out(network, extension(found), codes, held_out),
        "seconds": seconds,
        "limit": None,
    }


def _learn_shuffled(
    method: str, codes: NDArray[np.int32], cards: NDArray[np.int64], limit: float, rng: np.random.Generator
) -> Answer | None:
    """Let a peer learn from columns in a random order.

    Some begin with the order of the columns, or take the first of equal changes, and files often have causes before
    effects: all arcs of HEPAR2 and of WATER go forward there. With columns in that order BOSS is nearer to them than
    any search that knows of nothing but the rows. Ours do not depend on where columns stand.
    """
    order = rng.permutation(len(cards))
    answer = learn_within(method, codes[:, order], cards[order], limit)
    if answer is None:
        return None
    found = np.zeros_like(answer.adjacency)
    found[np.ix_(order, order)] = answer.adjacency
    return answer._replace(adjacency=found)


def _held_out(
    network: Network, found: Adjacency, codes: NDArray[np.int32], held_out: NDArray[np.int32]
) -> float | None:
    """Mean log likelihood of other rows; None where a variable has so many parents that its table does not fit."""
    parents = parents_of(found)
    try:
        tables = learn_tables(codes, parents, network.cards)
    except ValueError:
        return None
    learnt = Network(network.variables, network.states, tuple(map(tuple, parents)), tables)
    return float(learnt.log_probability(held_out).mean())


def _f1(truth: Adjacency, found: Adjacency) -> float:
    both = int((truth & found).sum())
    return 2 * both / max(int(truth.sum() + found.sum()), 1)


def extension(graph: NDArray[np.bool_]) -> Adjacency:
    """A directed acyclic graph of the class that a graph with edges both ways stands for (Dor and Tarsi 1992).

    Where there is none, what is left is directed from the first variables to the last.

    Examples
    --------
    >>> extension(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    """
    left, out = graph.copy(), graph & ~graph.T
    waiting = list(range(len(graph)))
    while waiting:
        edges = left & left.T
        adjacent = left | left.T
        for v in waiting:
            sink = not (left[v] & ~edges[v]).any()
            its = np.flatnonzero(edges[v])
            clique = all(adjacent[u, w] for u in its for w in np.flatnonzero(adjacent[v]) if u != w)
            if sink and clique:
                break
        else:
            out |= np.triu(edges)
            break
        out[its, v] = True
        left[v] = left[:, v] = False
        waiting.remove(v)
    return np.asarray(out)


def _draw(scores: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    sizes = sorted(scores["rows"].unique().to_list())
    networks = scores["network"].unique(maintain_order=True).to_list()
    methods = scores["method"].unique(maintain_order=True).to_list()
    width = 0.8 / len(methods)
    for ax, n_rows in zip(np.atleast_1d(figure.subplots(1, len(sizes))), sizes, strict=True):
        for place, method in enumerate(methods):
            its = scores.filter((pl.col("rows") == n_rows) & (pl.col("method") == method)).drop_nulls("shd")
            means = its.group_by("network").agg(*mean_and_error(("shd",)))
            x = [networks.index(name) + (place - (len(methods) - 1) / 2) * width for name in means["network"]]
            n_colours = len(style.PALETTE)
            hatch = "////" if place >= n_colours else None
            look = {"color": style.PALETTE[place % n_colours], "hatch": hatch, "edgecolor": "white", "linewidth": 0}
            ax.bar(x, means["shd"], width, yerr=means["shd_error"], label=method, **look)
        ax.set_xticks(range(len(networks)), networks, fontsize=7)
        ax.set_title(f"{n_rows:,} rows")
    figure.axes[0].set_ylabel("structural Hamming distance")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=7)
    return figure


def _compare(scores: pl.DataFrame) -> tuple[str, ...]:
    return (
        f"Default less plain climb, distance: {_differences(scores, CLIMB)}. "
        f"Default less BOSS with BDeu: {_differences(scores, QUICK_BOSS)}. With the very states that BOSS scores, "
        f"those seen: {_differences(scores, QUICK_BOSS, SEEN)}.",
        f"Times the default's seconds: plain climb {_ratio(scores, CLIMB)}, BOSS {_ratio(scores, BOSS)}, with a quick "
        f"score {_ratio(scores, QUICK_BOSS)}.",
    )


def _judge(scores: pl.DataFrame) -> tuple[Verdict, Verdict]:
    """Whether the default, which searches over orders, is nearer the truth than the plain climb, and slower.

    Nearer: on the mean over networks and numbers of rows, and farther on none, by two standard errors. Slower: mostly.
    """
    cells = _by_cell(scores, CLIMB)
    mean, error = cells.select(*mean_and_error(("difference",))).row(0)
    pairs = _paired(scores, CLIMB, "seconds")
    nearer = mean < -CLEAR * error, not len(_clear(cells).filter(pl.col("difference") > 0))
    return judge(*nearer), judge(*(pairs["ours"] > pairs["theirs"]), most=True)


def _clear(cells: pl.DataFrame) -> pl.DataFrame:
    """Networks and numbers of rows with several draws whose difference is one of over two standard errors."""
    return cells.filter((pl.col("n") > 1) & (pl.col("difference").abs() > CLEAR * pl.col("difference_error")))


def _paired(scores: pl.DataFrame, method: str, measure: str, own: str = DEFAULT) -> pl.DataFrame:
    """The measure of the default, or of another of ours, beside another method's on the same draws."""
    keys = ["network", "rows", "draw"]
    ours = scores.filter(pl.col("method") == own).select(*keys, pl.col(measure).alias("ours"))
    theirs = scores.filter(pl.col("method") == method).drop_nulls(measure)
    return theirs.select(*keys, pl.col(measure).alias("theirs")).join(ours, on=keys).sort(keys)


def _by_cell(scores: pl.DataFrame, method: str, own: str = DEFAULT) -> pl.DataFrame:
    """Our distance less another method's by network and number of rows: mean, its error, number of draws."""
    pairs = _paired(scores, method, "shd", own).with_columns(difference=pl.col("ours") - pl.col("theirs"))
    return pairs.group_by("network", "rows", maintain_order=True).agg(*mean_and_error(("difference",)), n=pl.len())


def _differences(scores: pl.DataFrame, method: str, own: str = DEFAULT) -> str:
    parts = [
        f"{name} {n_rows:,} rows {plus_minus(mean, error, 1) if n > 1 else f'{mean:.1f} (1 draw)'}"
        for name, n_rows, mean, error, n in _by_cell(scores, method, own).iter_rows()
    ]
    return "; ".join(parts) or "not run"


def _ratio(scores: pl.DataFrame, method: str) -> str:
    pairs = _paired(scores, method, "seconds")
    if not len(pairs):
        return "not run"
    ratios = (pairs["theirs"] / pairs["ours"]).to_numpy()
    return f"{np.median(ratios):.2g} (median; {ratios.min():.2g} to {ratios.max():.2g})"


def _details(scores: pl.DataFrame, n_draws: int) -> str:
    lines = []
    sizes = sorted(scores["rows"].unique().to_list())
    for measured, digits in (("shd", 1), ("f1", 3), ("log_likelihood", 3), ("seconds", 2)):
        lines += [f"{measured}:", "", f"| network, method | {' | '.join(f'{n:,}' for n in sizes)} |"]
        lines += ["| --- " * (1 + len(sizes)) + "|"]
        for (name, method), its in scores.group_by("network", "method", maintain_order=True):
            cells = [_cell(its.filter(pl.col("rows") == n_rows), measured, digits, n_draws) for n_rows in sizes]
            lines.append(f"| {name}, {method} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, *_against_all(scores)])


def _cell(here: pl.DataFrame, measured: str, digits: int, n_draws: int) -> str:
    """The mean of a method's draws with its error, or why there is none."""
    known = here.drop_nulls(measured)
    if not len(known):
        limits = here["limit"].drop_nulls()
        return f"over {limits[0]:g} s" if len(limits) else "too many parents" if len(here) else "not run"
    mean, error = known.select(*mean_and_error((measured,))).row(0)
    few = len(known) < n_draws
    if len(known) == 1:
        return f"{mean:.{digits}f} (1 draw)" if few else f"{mean:.{digits}f}"
    return plus_minus(mean, error, digits) + (f" ({len(known)} draws)" if few else "")


def _against_all(scores: pl.DataFrame) -> list[str]:
    """Beside every other method: the difference over networks and sizes, and where it is one of two standard errors."""
    lines = [
        "Default less other methods, structural Hamming distance, over networks and numbers of rows that both have "
        "(nearer, farther: by over two standard errors, of those with at least two draws), and how many times the "
        "default's seconds they take:",
        "",
        "| method | difference | cells | nearer | farther | farther where | seconds (median, least, most) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method in sorted(set(scores["method"]) - {DEFAULT}):
        cells = _by_cell(scores, method)
        if not len(cells):
            continue
        mean, error = cells.select(*mean_and_error(("difference",))).row(0)
        clear = _clear(cells)
        worse = clear.filter(pl.col("difference") > 0)
        where = ", ".join(f"{name} {n_rows:,}" for name, n_rows in worse.select("network", "rows").iter_rows())
        lines.append(
            f"| {method} | {plus_minus(mean, error)} | {len(cells)} | {len(clear) - len(worse)} | {len(worse)} | "
            f"{where or '–'} | {_ratio(scores, method)} |"
        )
    return lines
