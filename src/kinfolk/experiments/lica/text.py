"""Figure 2 of Zhang, Ghahramani and Yang (2005): topics of documents learnt from few of them, on either collection."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kinfolk.experiments.cells import cells
from kinfolk.experiments.drawing import draw_methods
from kinfolk.experiments.lica.methods import AS_PRINTED, LOOKS, OURS, POINT, Build
from kinfolk.experiments.measuring import area_under_curve, average
from kinfolk.plots import style
from kinfolk.plots.style import write_key

FEW_SOURCES = 5
MEASURES = ("macro_f1", "micro_f1", "macro_f1_tuned", "micro_f1_tuned", "auc", "log_loss")
WITH_SOURCES = (*OURS, AS_PRINTED)
THRESHOLDS = (
    "F1's threshold is not stated in the paper: the main picture takes a topic as present where its probability is "
    "0.5 or more; beside it each topic's threshold is the one with the highest F1 on the training documents. F1 at 0.5 "
    "hangs on how far probabilities are shrunk as much as on how documents are ranked, which the area under the ROC "
    "curve alone measures."
)

Matrix = NDArray[np.float64]


class Corpus(NamedTuple):
    """Documents to learn from and to test on: features (sparse), and 1.0 or 0.0 for each topic."""

    learn: Any
    learn_topics: Matrix
    test: Any
    test_topics: Matrix


class Trial(NamedTuple):
    """A method to be tried on the first documents of shuffled ones."""

    method: str
    parameters: Mapping[str, Any]
    examples: int
    repeat: int


def plan(
    methods: Mapping[str, Mapping[str, Any]],
    sizes: Sequence[int],
    n_repeats: int,
) -> list[Trial]:
    """List what is to be run: every method at every size, as often as said.

    Parameters
    ----------
    methods : mapping of str to mapping
        Parameters of the estimator by name of the method.
    sizes : sequence of int
    n_repeats : int

    Examples
    --------
    >>> [trial[2:] for trial in plan({"alone": {}}, (50, 100), 2)]
    [(50, 0), (50, 1), (100, 0), (100, 1)]
    """
    return [
        Trial(method, parameters, size, repeat)
        for size in sizes
        for repeat in range(n_repeats)
        for method, parameters in methods.items()
    ]


def try_methods(
    corpus: Corpus, trials: Sequence[Trial], seed: int, build: Build, advance: Callable[[int], None]
) -> pl.DataFrame:
    """Fit each method of a plan to its documents, the same for all methods and small sets within larger ones.

    Parameters
    ----------
    corpus : Corpus
    trials : sequence of Trial
    seed : int
        Of the order of the documents and of the estimators.
    build : callable
        Makes an estimator from its parameters and ``random_state``.
    advance : callable
        Called with 1 after each trial.

    Returns
    -------
    polars.DataFrame
        A row for each trial, with the measures and, for models with sources, ``sources``, ``nonzero_sources`` (the
        median over topics) and ``share_with_few`` (of topics with fewer than five sources that are not zero).
    """

    def measure(trial: Trial) -> dict[str, Any]:
        order = np.random.default_rng([seed, trial.repeat]).permutation(corpus.learn.shape[0])
        chosen = np.sort(order[: trial.examples])
        documents, topics = corpus.learn[chosen], corpus.learn_topics[chosen]
        model = build(random_state=seed + trial.repeat, **trial.parameters)
        with warnings.catch_warnings():
            # The paper has as many sources as topics.
            warnings.filterwarnings("ignore", message=r"n_sources=\d+ is no fewer than")
            model.fit(documents, topics)
        thresholds = best_thresholds(topics, model.predict_proba(documents))
        probability = model.predict_proba(corpus.test)
        about = {"method": trial.method, "examples": trial.examples, "repeat": trial.repeat}
        scores = score_topics(corpus.test_topics, probability, thresholds)
        return about | scores | _count_sources(model, trial.method)

    rows = []
    for row in cells(measure, ((trial,) for trial in trials)):
        rows.append(row)
        advance(1)
    return pl.DataFrame(rows, infer_schema_length=None)


def score_topics(truth: Matrix, probability: Matrix, thresholds: Matrix) -> dict[str, float]:
    """F1 at 0.5 and at each topic's threshold, mean area under the ROC curve, and mean log loss.

    Topics that no document of the test has are left out of macro F1 and of the area, which they do not define.

    Examples
    --------
    One topic is found in one of its two documents, the other in its only one and in one too many:

    >>> truth = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> probability = np.array([[0.9, 0.6], [0.4, 0.7], [0.2, 0.1]])
    >>> scores = score_topics(truth, probability, np.array([0.3, 0.65]))
    >>> round(scores["macro_f1"], 3), round(scores["micro_f1"], 3), scores["macro_f1_tuned"]
    (0.667, 0.667, 1.0)
    """
    asked = truth.any(axis=0) & ~truth.all(axis=0)
    truly = truth > 0
    measured: dict[str, float] = {}
    for name, said in (("", probability >= 0.5), ("_tuned", probability >= thresholds)):
        right, wrong, missed = (truly & said).sum(axis=0), (~truly & said).sum(axis=0), (truly & ~said).sum(axis=0)
        of_topics = 2 * right[asked] / (2 * right + wrong + missed)[asked]
        measured[f"macro_f1{name}"] = float(of_topics.mean())
        measured[f"micro_f1{name}"] = float(2 * right.sum() / (2 * right + wrong + missed).sum())
    areas = [area_under_curve(truly[:, k], probability[:, k]) for k in np.flatnonzero(asked)]
    measured["auc"] = float(np.mean(areas))
    kept = np.clip(np.where(truly, probability, 1 - probability), 1e-12, 1.0)
    measured["log_loss"] = float(-np.log(kept).mean())
    return measured


def best_thresholds(truth: Matrix, probability: Matrix) -> Matrix:
    """Each topic's threshold with the highest F1: half-way between neighbouring probabilities, the lowest of equals.

    A topic that no document has keeps 0.5.

    Examples
    --------
    >>> truth = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    >>> best_thresholds(truth, np.array([[0.1, 0.3], [0.2, 0.3], [0.02, 0.3], [0.4, 0.3]])).round(3).tolist()
    [0.15, 0.5]
    """
    thresholds = np.full(truth.shape[1], 0.5)
    for k in np.flatnonzero(truth.any(axis=0)):
        order = np.argsort(-probability[:, k], kind="stable")
        sorted_p = probability[order, k]
        right = np.cumsum(truth[order, k])
        said = np.arange(1, len(order) + 1)
        f1 = 2 * right / (said + right[-1])
        # Documents with the same probability are taken together or not at all.
        last = np.append(sorted_p[1:] < sorted_p[:-1], True)
        best = np.flatnonzero(last)[::-1][np.argmax(f1[last][::-1])]
        below = sorted_p[best + 1] if best + 1 < len(order) else 0.0
        thresholds[k] = (sorted_p[best] + below) / 2
    return thresholds


def _count_sources(model: Any, method: str) -> dict[str, float | None]:
    if method not in WITH_SOURCES:
        return {"sources": None, "nonzero_sources": None, "share_with_few": None}
    nonzero = np.count_nonzero(np.asarray(model.sources_), axis=1)
    return {
        "sources": float(model.n_sources_),
        "nonzero_sources": float(np.median(nonzero)),
        "share_with_few": float((nonzero < FEW_SOURCES).mean()),
    }


def draw_f1(scores: pl.DataFrame, measure: str, name: str) -> Figure:
    """Draw F1 against the number of training documents, at 0.5 and at thresholds of the training documents."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    averages = average(scores, ["method", "examples"], MEASURES)
    panels = {measure: "threshold 0.5", f"{measure}_tuned": "thresholds chosen on the training documents"}
    axes = figure.subplots(1, len(panels), sharey=True)
    for ax, (shown, title) in zip(axes, panels.items(), strict=True):
        draw_methods(ax, averages, shown, name, "training documents", LOOKS)
        style.write_title(ax, title)
    write_key(axes[0])
    return figure


def write_sparsity(scores: pl.DataFrame) -> str:
    """Say how many sources the point estimates leave, by number of training documents."""
    parts = []
    for (method,), rows in scores.filter(pl.col("method").is_in([POINT, AS_PRINTED])).group_by(
        "method", maintain_order=True
    ):
        means = average(rows, ["examples"], ["sources", "nonzero_sources", "share_with_few"]).sort("examples")
        listed = ", ".join(
            f"{row['nonzero_sources']:.1f} of {row['sources']:.1f}, {row['share_with_few']:.0%} of topics below "
            f"{FEW_SOURCES} ({row['examples']:,})"
            for row in means.iter_rows(named=True)
        )
        parts.append(f"{method}: median {listed}")
    return "; ".join(parts)
