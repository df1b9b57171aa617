"""Nine speakers, told apart by few utterances: infinite hidden Markov models that share, and ones that do not.

The data are the Japanese Vowels of Kudo, Toyama and Shimbo (1999); Ni, Carin and Dunson (2007) did not use them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kinfolk.experiments.drawing import draw_methods
from kinfolk.experiments.measuring import average, tabulate, write_gain
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.experiments.sequences.models import (
    CLUSTERING,
    ESTIMATORS,
    LOOKS,
    NESTED,
    QUICK,
    SINGLE,
    Build,
    build_model,
    fit_quietly,
    gain_over,
    seeds_of,
    steps_of,
    write_gain_over_best,
)
from kinfolk.plots import style
from kinfolk.plots.style import write_key
from kinfolk.progress import progress_bar

SIZES = (1, 2, 4, 8, 15, 30)
HMMLEARN, NEAREST = "hmmlearn, 5 states", "nearest mean frame"
N_STATES, N_CLUSTERS = 15, 10
# What the authors of the data report for all 30 training utterances of each speaker.
PUBLISHED = {"passing-through regions (Kudo et al.)": 0.941, "5-state HMM (Kudo et al.)": 0.962}

Ints = NDArray[np.int64]

ABOUT = About(
    "K. Ni, L. Carin and D. Dunson (2007), on data of M. Kudo, J. Toyama and M. Shimbo, “Multidimensional curve "
    "classification using passing-through regions”, Pattern Recognition Letters 20, 1999.",
    "Ni et al. did not use these data. Kudo et al. told nine speakers apart by two vowels, with 30 utterances of each "
    "to learn from.",
    "The data of Kudo et al. themselves (`load_vowels`): 12 cepstral coefficients a frame, 270 utterances to learn "
    "from and 370 to test, from 7 to 29 frames long.",
    (
        "Kudo et al.: their method names 94.1% of the test speakers rightly, a five-state hidden Markov model 96.2%.",
        "Ni et al., on music: sharing among kin helps most where training data are few.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    sizes: Sequence[int] | None = None,
    n_repeats: int | None = None,
    load: Callable[[], Any] | None = None,
    build: Build = build_model,
    earlier: Path | None = None,
) -> Study:
    """Learn speakers from few utterances of each by every method, and name the speakers of the test utterances.

    Rows of ``earlier``, a table that this study has published for the same seed, are not measured again.
    """
    sizes = tuple(sizes or ((1, 4) if quick else SIZES))
    n_repeats = n_repeats or (1 if quick else 5)
    vowels = (load or _load)()
    parameters: dict[str, Any] = {"n_states": N_STATES, **(QUICK if quick else {})}
    test = np.flatnonzero(~vowels.is_train)
    published = [] if earlier is None else pl.read_csv(earlier).to_dicts()
    rows: list[dict[str, Any]] = []
    # All utterances that there are can be chosen in one way only.
    runs = [(size, repeat) for size in sizes for repeat in range(n_repeats if size < _fewest(vowels) else 1)]
    with progress_bar("Telling speakers apart", len(runs), True) as advance:
        for size, repeat in runs:
            chosen = choose(vowels, size, seeds_of(seed, repeat))
            known = {row["method"]: row for row in published if (row["examples"], row["repeat"]) == (size, repeat)}
            made = name_speakers(vowels, chosen, test, build, parameters, seed, tuple(known))
            for method, answer in made.items():
                right = float(np.mean(answer.named == vowels.task[test]))
                row = {"method": method, "examples": size, "repeat": repeat, "accuracy": right}
                known[method] = row | {"log_likelihood": answer.log_likelihood}
            rows += [known[method] for method in (*ESTIMATORS, NEAREST, HMMLEARN) if method in known]
            advance(1)
    table = pl.DataFrame(rows)
    setting = (
        f"{', '.join(map(str, sizes))} training utterances of each speaker, chosen at random "
        f"{'once' if n_repeats == 1 else f'{n_repeats} times (once where all are used)'}; all {len(test)} test "
        f"utterances; diagonal Gaussian emissions, at most {N_STATES} states; seed {seed}; ± are standard "
        "errors over choices, gains are paired by choice."
        + ("" if HMMLEARN in set(table["method"]) else " hmmlearn is not installed here, and so was not run.")
    )
    return Study(table, _draw(table), _compare(table), setting, _details(table), _judge(table))


def _load() -> Any:
    from kinfolk.datasets.vowels import load_vowels

    return load_vowels()


def _fewest(vowels: Any) -> int:
    return int(np.unique(vowels.task[vowels.is_train], return_counts=True)[1].min())


def choose(vowels: Any, size: int, seed: int) -> Ints:
    """So many training utterances of each speaker; those of a smaller size are among those of a larger one."""
    rng = np.random.default_rng(seed)
    chosen = []
    for speaker in np.unique(vowels.task):
        of_speaker = rng.permutation(np.flatnonzero(vowels.is_train & (vowels.task == speaker)))
        chosen.append(np.sort(of_speaker[:size]))
    return np.concatenate(chosen)


class Answer(NamedTuple):
    """What a method says of the test utterances."""

    named: NDArray[Any]  # the speaker of each
    log_likelihood: float | None = None  # mean over utterances, under the model of who did speak


def name_speakers(
    vowels: Any,
    chosen: Ints,
    test: Ints,
    build: Build,
    parameters: dict[str, Any],
    seed: int,
    known: Sequence[str] = (),
) -> dict[str, Answer]:
    """The speaker that each method names for each test utterance, and how probable it finds utterances of its own.

    Methods that are known are left out.
    """
    train_X, test_X = (vowels.X[steps_of(vowels.lengths, part)] for part in (chosen, test))
    task = vowels.task[chosen]
    answers: dict[str, Answer] = {}
    for method in ESTIMATORS:
        if method in known:
            continue
        own = {"n_clusters": N_CLUSTERS} if method in CLUSTERING else {}
        model = build(method, emission="gaussian", random_state=seed, **own, **parameters)
        fit_quietly(model, train_X, vowels.lengths[chosen], task)
        named = np.asarray(model.tasks_)[model.classify(test_X, vowels.lengths[test]).argmax(axis=1)]
        scores = model.score_samples(test_X, vowels.lengths[test], task=vowels.task[test])
        answers[method] = Answer(named, float(np.mean(scores)))
    if NEAREST not in known:
        answers[NEAREST] = Answer(nearest_mean(vowels, chosen, test))
    if HMMLEARN in known:
        return answers
    try:
        hmm = import_module("hmmlearn.hmm")
    except ImportError:
        return answers
    answers[HMMLEARN] = Answer(by_hmmlearn(hmm, vowels, chosen, test, seed))
    return answers


def nearest_mean(vowels: Any, chosen: Ints, test: Ints) -> NDArray[Any]:
    """The speaker of the training utterance whose mean frame is the nearest."""
    starts = np.cumsum(vowels.lengths) - vowels.lengths
    means = np.add.reduceat(vowels.X, starts, axis=0) / vowels.lengths[:, None]
    distance = ((means[test][:, None, :] - means[chosen]) ** 2).sum(axis=2)
    return np.asarray(vowels.task[chosen][distance.argmin(axis=1)])


def by_hmmlearn(hmm: Any, vowels: Any, chosen: Ints, test: Ints, seed: int) -> NDArray[Any]:
    """The speaker whose own five-state model, fitted by hmmlearn, gives an utterance the highest likelihood."""
    speakers = np.unique(vowels.task[chosen])
    scores = np.empty((len(test), len(speakers)))
    spread = vowels.X[steps_of(vowels.lengths, chosen)].var(axis=0).mean()
    for place, speaker in enumerate(speakers):
        own = chosen[vowels.task[chosen] == speaker]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = _fitted_by_hmmlearn(
                hmm, vowels.X[steps_of(vowels.lengths, own)], vowels.lengths[own], 0.05 * spread, seed
            )
            scores[:, place] = [
                model.score(vowels.X[steps_of(vowels.lengths, np.array([utterance]))]) for utterance in test
            ]
    return np.asarray(speakers[scores.argmax(axis=1)])


def _fitted_by_hmmlearn(hmm: Any, X: Any, lengths: Any, least_variance: float, seed: int) -> Any:
    """A model of five states, or of as many as hmmlearn finds without NaN, which it does not always from one utterance.

    Variances have a floor, without which few frames give a state a variance of zero.
    """
    for n_states in range(5, 0, -1):
        model = hmm.GaussianHMM(
            n_states, covariance_type="diag", min_covar=least_variance, random_state=seed, n_iter=50
        )
        model.fit(X, lengths)
        # A state that was never left or entered has rows of zeros, which hmmlearn itself refuses to use.
        model.transmat_ = _stochastic(model.transmat_)
        if all(np.isfinite(part).all() for part in (model.startprob_, model.transmat_, model.means_, model._covars_)):
            return model
    raise ValueError("hmmlearn found no model without NaN, not even of one state")


def _stochastic(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    total = rows.sum(axis=1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0 / rows.shape[1])


def _draw(table: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(8, 5), layout="constrained")
    ax = figure.subplots()
    for rate in PUBLISHED.values():
        ax.axhline(rate, color=style.APART, linewidth=1.0, linestyle="--")
    averages = average(table, ["method", "examples"], ["accuracy"])
    draw_methods(ax, averages, "accuracy", "speakers named rightly", "training utterances of a speaker", LOOKS)
    write_key(ax)
    ax.set_title("dashed: published rates, with all 30 utterances", fontsize=9, color=style.ALONE)
    return figure


def _compare(table: pl.DataFrame) -> tuple[str, str]:
    averages = average(table, ["method", "examples"], ["accuracy"])
    most = max(averages["examples"].to_list())
    at_most = averages.filter(pl.col("examples") == most)
    listed = ", ".join(f"{m} {100 * a:.1f}%" for m, a in at_most.select("method", "accuracy").iter_rows())
    others = [method for method in (SINGLE, HMMLEARN) if method in set(table["method"])]
    gained = [
        f"{NESTED} above {other}: {write_gain(gain_over(table, NESTED, other, 'accuracy', 'repeat'), 3)}"
        for other in others
    ]
    # Weights of the average are chosen by how probable sequences held out are, not by whose they are.
    probable = write_gain_over_best(table, "log_likelihood", "repeat", 2)
    return (
        f"With {most} utterances of each speaker: {listed}.",
        f"{'; '.join(gained)}. Share of speakers named: {write_gain_over_best(table, 'accuracy', 'repeat', 3)} "
        f"Nats a test utterance, by its speaker's model: {probable}",
    )


def _judge(table: pl.DataFrame) -> tuple[Verdict, Verdict]:
    """Whether the published rates are reached with all utterances, and sharing helps most with the fewest."""
    averages = average(table, ["method", "examples"], ["accuracy"])
    full = averages.filter((pl.col("examples") == SIZES[-1]) & pl.col("method").is_in(list(ESTIMATORS)))
    reached = None if not full.height else max(full["accuracy"].to_list()) >= max(PUBLISHED.values())
    gain = gain_over(table, NESTED, SINGLE, "accuracy", "repeat")["gain"].to_numpy()
    return judge(reached), judge(gain[0] > 0, int(gain.argmax()) == 0)


def _details(table: pl.DataFrame) -> str:
    averages = average(table, ["method", "examples"], ["accuracy"])
    probable = average(table.drop_nulls("log_likelihood"), ["method", "examples"], ["log_likelihood"])
    published = ", ".join(f"{name} {rate:.3f}" for name, rate in PUBLISHED.items())
    return (
        f"Share of test utterances whose speaker is named rightly, by training utterances of each.\n\n"
        f"{tabulate(averages, 'accuracy')}\n\nPublished, with 30: {published}.\n\n"
        f"Mean log likelihood of a test utterance (nats) under the model of its speaker.\n\n"
        f"{tabulate(probable, 'log_likelihood')}"
    )
