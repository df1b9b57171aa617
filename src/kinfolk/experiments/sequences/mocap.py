"""Six recordings of exercises, whose steps are labelled: which exercise is done when, and who does which.

The data are those of Fox, Hughes, Sudderth and Jordan (2014); Ni, Carin and Dunson (2007) did not use them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import kinfolk
from kinfolk.experiments.cells import checkpoint
from kinfolk.experiments.measuring import average
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.experiments.sequences.models import N_JOBS, QUICK, fit_quietly, seeds_of
from kinfolk.plots import style
from kinfolk.progress import progress_bar

# What every method is told: how many exercises there are.
N_ACTIONS = 12
FEATURE, PLAIN, SHARED, NESTED = "FeatureIHMM", "FeatureIHMM, Gaussian", "SharedIHMM", "NestedIHMM"
HMMLEARN, DYNAMAX, DYNAMAX_PLAIN = "hmmlearn, Gaussian", "dynamax", "dynamax, Gaussian"
ORDER = (FEATURE, PLAIN, SHARED, NESTED, HMMLEARN, DYNAMAX, DYNAMAX_PLAIN)
# An exercise lasts for seconds, which are tens of steps: with a dozen states to go to, about 300/12. Of one, two and
# three steps back, the joint density of states and data is by far the highest with three.
LASTING: dict[str, Any] = {"stickiness": 300.0, "transition_concentration": 1.0}
# Chains stay near where they start, so that many short ones tell more than few long ones; these take two cores less
# than half a minute.
CHAINS: dict[str, Any] = {"n_chains": 24, "n_burn_in": 10, "n_draws": 10}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    FEATURE: ("FeatureIHMM", {"emission": "ar-3", **CHAINS, **LASTING}),
    PLAIN: ("FeatureIHMM", {"emission": "gaussian-full", **CHAINS, **LASTING}),
    SHARED: ("SharedIHMM", {"emission": "ar-3", "stickiness": 300.0}),
    # Two chains, since agglomerating the recordings takes each of them half a minute.
    NESTED: ("NestedIHMM", {"emission": "ar-3", "stickiness": 300.0, "n_clusters": 6, "n_chains": 2}),
}
Build = Callable[..., Any]

ABOUT = About(
    "E. B. Fox, M. C. Hughes, E. B. Sudderth and M. I. Jordan, “Joint Modeling of Multiple Time Series via the Beta "
    "Process with Application to Motion Capture Segmentation”, Annals of Applied Statistics 8, 2014.",
    "Six recordings of two people who do some of twelve exercises each, 12 joint angles ten times a second, were cut "
    "into exercises by hand; a beta-process HMM with autoregressive emissions was to find them without labels.",
    "The data of Fox et al. themselves (`load_mocap`), 2,058 steps. Every method is told that there are twelve "
    "exercises, as the most states or as their number.",
    (
        "States that recordings choose from, with autoregressive emissions, agree with the labels better than a hidden "
        "Markov model with Gaussian emissions does.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    n_repeats: int | None = None,
    load: Callable[[], Any] | None = None,
    build: Build | None = None,
    methods: Sequence[str] = tuple(MODELS),
    earlier: Path | None = None,
) -> Study:
    """Learn all recordings without labels by every method, and count steps that are labelled wrongly.

    Rows of ``earlier``, a table that this study has published for the same seed, are not measured again.
    """
    n_repeats = n_repeats or (1 if quick else 5)
    data = (load or _load)()
    published = [] if earlier is None else pl.read_csv(earlier).to_dicts()
    rows = []
    with progress_bar("Segmenting exercises", n_repeats, True) as advance:
        for repeat in range(n_repeats):
            own_seed = seeds_of(seed, repeat)
            known = {row["method"]: row for row in published if row["repeat"] == repeat}
            made = segment(data, methods, build or build_model, QUICK if quick else {}, own_seed, tuple(known))
            for method, states in made.items():
                wrong = share_of_wrong_labels(states, data.action)
                known[method] = {"method": method, "repeat": repeat, "wrong": wrong, "states": len(np.unique(states))}
            rows += [known[method] for method in ORDER if method in known]
            advance(1)
    table = pl.DataFrame(rows)
    has_dynamax = DYNAMAX in set(table["method"])
    setting = (
        f"All {len(data.action):,} steps of {len(data.lengths)} recordings, {n_repeats} seeds from {seed}; a step is "
        f"wrong where its state is not that of its label, by the best one-to-one matching of states and labels; at "
        f"most {N_ACTIONS} states, of autoregressions on three steps unless it says Gaussian, with stickiness "
        f"{LASTING['stickiness']:g}; ± are standard errors over seeds."
        + (f" FeatureIHMM has {CHAINS['n_chains']} chains, and tells each step by itself." if not quick else "")
        + (f" {NESTED} has two chains." if NESTED in methods else "")
        + (" dynamax has steps back and stickiness as ours, and takes the recordings end to end." * has_dynamax)
        + "".join(
            f" {name} is not installed here, and so was not run."
            for name, method in (("hmmlearn", HMMLEARN), ("dynamax", DYNAMAX))
            if method not in set(table["method"])
        )
    )
    return Study(table, _draw(table), (_compare(table),), setting, _details(table), (_judge(table),))


def _load() -> Any:
    from kinfolk.datasets.mocap import load_mocap

    return load_mocap()


def build_model(method: str, **parameters: Any) -> Any:
    """Make one of the estimators, which goes on where it was stopped if the study does."""
    name, own = MODELS[method]
    given = {"n_states": N_ACTIONS, "n_jobs": N_JOBS, "checkpoint": checkpoint().folder, **own, **parameters}
    return getattr(kinfolk, name)(**given)


def segment(
    data: Any,
    methods: Sequence[str],
    build: Build,
    parameters: dict[str, Any],
    seed: int,
    known: Sequence[str] = (),
) -> dict[str, NDArray[np.int64]]:
    """The state of every step by each method that is not known; states of two clusters are two states."""
    found = {}
    for method in methods:
        if method in known:
            continue
        model = fit_quietly(build(method, random_state=seed, **parameters), data.X, data.lengths, data.task)
        # Step by step, all draws tell the states of FeatureIHMM; those of the others are of one draw.
        how = {"decoding": "marginal"} if method in (FEATURE, PLAIN) else {}
        states = model.predict(data.X, data.lengths, task=data.task, **how)
        if method == NESTED:
            states = states + N_ACTIONS * np.repeat(model.partition_, data.lengths)
        found[method] = np.asarray(states)
    for peer, gives in ((by_hmmlearn, {HMMLEARN}), (by_dynamax, {DYNAMAX, DYNAMAX_PLAIN})):
        if not gives <= set(known):
            found |= peer(data, seed)
    return found


def by_hmmlearn(data: Any, seed: int) -> dict[str, NDArray[np.int64]]:
    """States by hmmlearn, where it is installed."""
    try:
        hmm = import_module("hmmlearn.hmm")
    except ImportError:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = hmm.GaussianHMM(N_ACTIONS, covariance_type="full", random_state=seed % 2**31, n_iter=50)
        return {HMMLEARN: model.fit(data.X, data.lengths).predict(data.X, data.lengths)}


def by_dynamax(data: Any, seed: int) -> dict[str, NDArray[np.int64]]:
    """States by dynamax, where it is installed: autoregressions on three steps, and Gaussians, by EM from k-means.

    It takes sequences of one length side by side, or one; recordings are put end to end, each with its own steps back.
    """
    try:
        hmm: Any = import_module("dynamax.hidden_markov_model")
        jax: Any = import_module("jax")
    except ImportError:
        return {}
    order, stickiness = 3, LASTING["stickiness"]
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    # The first steps of a recording go on from where it began.
    before = np.concatenate([np.maximum(np.arange(n)[:, None] - 1 - np.arange(order), 0) for n in data.lengths])
    before += np.repeat(np.cumsum(data.lengths) - data.lengths, data.lengths)[:, None]
    inputs = {DYNAMAX: X[before].reshape(len(X), -1), DYNAMAX_PLAIN: None}
    found = {}
    # In single precision, its default, an autoregression ended with numbers that are none.
    with jax.enable_x64(True):
        models = {
            DYNAMAX: hmm.LinearAutoregressiveHMM(
                N_ACTIONS, X.shape[1], num_lags=order, transition_matrix_stickiness=stickiness
            ),
            DYNAMAX_PLAIN: hmm.GaussianHMM(N_ACTIONS, X.shape[1], transition_matrix_stickiness=stickiness),
        }
        for name, model in models.items():
            parameters, properties = model.initialize(jax.random.PRNGKey(seed % 2**31), method="kmeans", emissions=X)
            parameters, _ = model.fit_em(parameters, properties, X, inputs[name], num_iters=50, verbose=False)
            found[name] = np.asarray(model.most_likely_states(parameters, X, inputs[name]), dtype=np.int64)
    return found


def share_of_wrong_labels(states: NDArray[np.int64], labels: NDArray[Any]) -> float:
    """Share of steps whose state is not that of its label, states and labels matched one to one as well as can be.

    Examples
    --------
    >>> share_of_wrong_labels(np.array([3, 3, 5, 5, 8]), np.array(["run", "run", "sit", "run", "sit"]))
    0.4
    """
    one, other = (np.unique(given, return_inverse=True)[1] for given in (states, labels))
    together = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(together, (one, other), 1.0)
    return float(1.0 - together[linear_sum_assignment(-together)].sum() / len(one))


def _averages(table: pl.DataFrame) -> pl.DataFrame:
    return average(table, ["method"], ["wrong", "states"])


def _draw(table: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    ax = figure.subplots()
    methods = list(dict.fromkeys(table["method"].to_list()))
    for place, method in enumerate(methods):
        wrong = table.filter(pl.col("method") == method)["wrong"].to_numpy()
        ax.plot(wrong, np.full(len(wrong), place), "o", color=style.PALETTE[0] if place == 0 else style.ALONE)
    ax.set_yticks(range(len(methods)), methods)
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("share of steps with a wrong label, each dot a seed")
    return figure


def _compare(table: pl.DataFrame) -> str:
    found = [
        f"{method} {wrong:.3f}" + ("" if error is None or not np.isfinite(error) else f" ± {error:.3f}")
        for method, wrong, error in _averages(table).select("method", "wrong", "wrong_error").iter_rows()
    ]
    return f"Share of steps with a wrong label: {', '.join(found)}."


def _judge(table: pl.DataFrame) -> Verdict:
    """Whether the model of features is better than the peer, on average over runs."""
    own = table.filter(pl.col("method") == FEATURE)["wrong"].to_numpy()
    peer = table.filter(pl.col("method") == HMMLEARN)["wrong"].to_numpy()
    return judge(None if not len(peer) or not len(own) else bool(own.mean() < peer.mean()))


def _details(table: pl.DataFrame) -> str:
    spread = table.group_by("method", maintain_order=True).agg(
        pl.col("wrong").min().alias("least"), pl.col("wrong").max().alias("most"), pl.col("states").mean()
    )
    lines = ["| method | wrong labels, least | most | states in use |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {least:.3f} | {most:.3f} | {n:.1f} |" for name, least, most, n in spread.iter_rows()]
    return "\n".join(lines)
