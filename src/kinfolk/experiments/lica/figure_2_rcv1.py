"""Figure 2, right, of Zhang, Ghahramani and Yang (2005): all topics of RCV1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from kinfolk.experiments.lica.methods import (
    AS_PRINTED,
    BAYES,
    METHODS,
    OURS,
    PAPER,
    Build,
    classifier,
    gains,
    judge_gains,
    judge_trend,
    write_gains,
    write_trend,
    write_verdict,
)
from kinfolk.experiments.lica.text import (
    MEASURES,
    THRESHOLDS,
    WITH_SOURCES,
    Corpus,
    draw_f1,
    plan,
    try_methods,
    write_sparsity,
)
from kinfolk.experiments.measuring import average, tabulate
from kinfolk.experiments.publishing import About, Study, judge
from kinfolk.progress import progress_bar

SIZES = (100, 200, 500, 1000)
N_TEST = 3000
MAIN = "micro_f1"
# Choosing it anew for every draw, by rows held out, would take many times as long as the fits themselves.
N_SOURCES = 8

ABOUT = About(
    PAPER,
    "All 116 topics of RCV1, 47,236 features; 100 to 1,000 training documents, ten repeats, 10,000 test documents; the "
    "point estimate with as many sources as topics, against regularised logistic regression of each topic alone; "
    "Micro-F1.",
    "The same features for 27,613 documents of RCV1-v2 with 101 of its topics (`KINFOLK_DATA/rcv1_subsets`: five "
    "samples put together, each document once), not the whole corpus of the paper.",
    (
        "LICA is above individual learning at every training size.",
        "Its advantage is the largest where training documents are few.",
        "For most topics fewer than 5 of 116 sources are not zero.",
        "The trend in Macro-F1 is similar.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    sizes: tuple[int, ...] | None = None,
    n_repeats: int | None = None,
    n_test: int = N_TEST,
    methods: Mapping[str, Mapping[str, Any]] | None = None,
    corpus: Corpus | None = None,
    build: Build = classifier,
) -> Study:
    """Learn the topics from few documents by every method, and score them on others: an hour of one core in full.

    Most of it goes to empirical Bayes, which takes minutes a fit over 101 topics; ``quick`` leaves it out.
    """
    corpus = load_corpus(n_test, seed) if corpus is None else corpus
    sizes = sizes or ((100,) if quick else SIZES)
    n_repeats = n_repeats or (2 if quick else 10)
    n_topics = corpus.learn_topics.shape[1]
    told = {method: METHODS[method] | {"n_sources": N_SOURCES} for method in OURS}
    chosen = methods or METHODS | told | {AS_PRINTED: {"inference": "map", "n_sources": n_topics, "shared_mean": False}}
    if quick:
        chosen = {method: parameters for method, parameters in chosen.items() if method != BAYES}
    trials = plan(chosen, sizes, n_repeats)
    with progress_bar("Learning topics of RCV1", len(trials), True) as advance:
        scores = try_methods(corpus, trials, seed, build, advance)
    gained = gains(scores, MAIN).filter(pl.col("method").is_in(WITH_SOURCES))
    of_means = gains(scores, "macro_f1").filter(pl.col("method").is_in(WITH_SOURCES))
    ours = (
        f"{write_verdict(gained)}. {write_gains(gained)}.",
        f"{write_trend(gained)}.",
        f"{write_sparsity(scores)}.",
        f"In Macro-F1 {write_verdict(of_means)}. {write_gains(of_means)}.",
    )
    setting = (
        f"{n_topics} topics, {corpus.learn.shape[1]:,} features; {', '.join(f'{size:,}' for size in sizes)} of "
        f"{corpus.learn.shape[0]:,} training documents, {n_repeats} random draws, small sets within larger ones; "
        f"{corpus.test.shape[0]:,} test documents, the same for all; seed {seed}; ± are standard errors over draws, of "
        f"gains those of paired differences. {AS_PRINTED} is the point estimate with a "
        f"source for each topic and no mean beside them, the others have {N_SOURCES} sources. {THRESHOLDS}"
    )
    # The paper has as many sources as topics, and so has the model whose zeros are counted.
    few = scores.filter(pl.col("method") == AS_PRINTED).group_by("examples").agg(pl.col("share_with_few").mean())
    sparse = judge(*(few["share_with_few"] > 0.5).to_list())
    held = judge_gains(gained), judge_trend(gained), sparse, judge_gains(of_means)
    return Study(scores, draw_f1(scores, MAIN, "Micro-F1"), ours, setting, _details(scores), held)


def load_corpus(n_test: int, seed: int) -> Corpus:
    """Read all training documents, and so many of the others."""
    from kinfolk.datasets.text_topics import load_rcv1

    rcv1 = load_rcv1()
    train, others = np.flatnonzero(rcv1.is_train), np.flatnonzero(~rcv1.is_train)
    test = np.sort(np.random.default_rng(seed).permutation(others)[:n_test])
    return Corpus(rcv1.data[train], rcv1.target[train].toarray(), rcv1.data[test], rcv1.target[test].toarray())


def _details(scores: pl.DataFrame) -> str:
    averages = average(scores, ["method", "examples"], MEASURES)
    shown = {
        "micro_f1": "Micro-F1 at 0.5",
        "micro_f1_tuned": "Micro-F1 at thresholds chosen on the training documents",
        "macro_f1": "Macro-F1 at 0.5",
        "auc": "Area under the ROC curve, mean over topics",
        "log_loss": "Log loss, mean over topics",
    }
    return "\n\n".join(
        f"{title}, by training documents:\n\n{tabulate(averages, measure)}" for measure, title in shown.items()
    )
