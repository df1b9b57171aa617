"""Figure 2, left, of Zhang, Ghahramani and Yang (2005): nine correlated topics of Reuters-21578."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from kinfolk.experiments.lica.methods import (
    AS_PRINTED,
    METHODS,
    PAPER,
    Build,
    classifier,
    gains,
    judge_alike,
    judge_gains,
    judge_trend,
    write_gains,
    write_trend,
    write_verdict,
)
from kinfolk.experiments.lica.text import MEASURES, THRESHOLDS, WITH_SOURCES, Corpus, draw_f1, plan, try_methods
from kinfolk.experiments.measuring import average, tabulate
from kinfolk.experiments.publishing import About, Study
from kinfolk.progress import progress_bar

SIZES = (50, 100, 200, 500)
MAIN = "macro_f1"

ABOUT = About(
    PAPER,
    "Nine categories of Reuters-21578 that are often correlated, 3,358 features; 50 to 500 training documents, ten "
    "repeats; empirical Bayes with as many sources as categories, against regularised logistic regression of each "
    "category alone; Macro-F1.",
    "The same collection and split (`KINFOLK_DATA/reuters21578`, ModApte), documents with at least one of the nine "
    "topics that `load_reuters` takes and gives reasons for: grain, corn, wheat, money-fx, dlr, interest, crude, "
    "nat-gas, ship. The paper does not name its nine, its stop words or its stemmer.",
    (
        "LICA is above individual learning at every training size.",
        "Its advantage is the largest where training documents are few.",
        "In Micro-F1 both are almost the same.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    sizes: tuple[int, ...] | None = None,
    n_repeats: int | None = None,
    methods: Mapping[str, Mapping[str, Any]] | None = None,
    corpus: Corpus | None = None,
    build: Build = classifier,
) -> Study:
    """Learn the topics from few documents by every method, and score them on the documents of the test part."""
    corpus = load_corpus() if corpus is None else corpus
    sizes = sizes or ((50, 200) if quick else SIZES)
    n_repeats = n_repeats or (2 if quick else 10)
    n_topics = corpus.learn_topics.shape[1]
    chosen = methods or METHODS | {AS_PRINTED: {"inference": "eb", "n_sources": n_topics, "shared_mean": False}}
    trials = plan(chosen, sizes, n_repeats)
    with progress_bar("Learning topics of Reuters-21578", len(trials), True) as advance:
        scores = try_methods(corpus, trials, seed, build, advance)
    gained = gains(scores, MAIN).filter(pl.col("method").is_in(WITH_SOURCES))
    setting = (
        f"{n_topics} topics, {corpus.learn.shape[1]:,} features; {', '.join(f'{size:,}' for size in sizes)} of "
        f"{corpus.learn.shape[0]:,} documents of the training part, {n_repeats} random draws, small sets within larger "
        f"ones; {corpus.test.shape[0]:,} documents of the test part; seed {seed}; ± are standard errors over draws, of "
        f"gains those of paired differences. {AS_PRINTED} is empirical Bayes with a source for each topic and no "
        f"mean beside them, the others choose the number of sources. {THRESHOLDS}"
    )
    of_all = gains(scores, "micro_f1").filter(pl.col("method").is_in(WITH_SOURCES))
    ours = (
        f"{write_verdict(gained)}. {write_gains(gained)}.",
        f"{write_trend(gained)}.",
        f"Gains in Micro-F1: {write_gains(of_all)}.",
    )
    held = judge_gains(gained), judge_trend(gained), judge_alike(of_all)
    return Study(scores, draw_f1(scores, MAIN, "Macro-F1"), ours, setting, _details(scores), held)


def load_corpus() -> Corpus:
    """Read the documents of the nine topics, by the collection's split."""
    from kinfolk.datasets.text_topics import load_reuters

    reuters = load_reuters()
    train, test = reuters.is_train, ~reuters.is_train
    return Corpus(reuters.data[train], reuters.target[train], reuters.data[test], reuters.target[test])


def _details(scores: pl.DataFrame) -> str:
    averages = average(scores, ["method", "examples"], MEASURES)
    shown = {
        "macro_f1": "Macro-F1 at 0.5",
        "macro_f1_tuned": "Macro-F1 at thresholds chosen on the training documents",
        "auc": "Area under the ROC curve, mean over topics",
        "log_loss": "Log loss, mean over topics",
    }
    return "\n\n".join(
        f"{title}, by training documents:\n\n{tabulate(averages, measure)}" for measure, title in shown.items()
    )
