"""The experiments on latent independent sources: what they measure is right, and they run, here with stand-ins.

The stand-ins learn every task alone by scikit-learn's logistic or ridge regression and have made-up sources.
"""

import re
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import ortho_group
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, log_loss, r2_score, roc_auc_score

import kinfolk
from kinfolk.experiments.lica import figure_2_rcv1, figure_2_reuters, methods, numeric, synthetic
from kinfolk.experiments.lica.methods import AS_PRINTED, INDIVIDUAL, METHODS, POINT, gains, write_trend
from kinfolk.experiments.lica.methods import write_verdict as verdict
from kinfolk.experiments.lica.numeric import draw_splits, explained_variance, mean_area
from kinfolk.experiments.lica.synthetic import compare_sources, matched_cosine
from kinfolk.experiments.lica.text import Corpus, best_thresholds, plan, score_topics, try_methods
from kinfolk.experiments.publishing import publish
from kinfolk.experiments.registry import find

NAMES = ["lica-figure-2-rcv1", "lica-figure-2-reuters", "lica-numeric", "lica-synthetic"]
N_TOPICS, N_SOURCES = 3, 2


class StandIn:
    def __init__(
        self, n_sources=None, inference="eb", sharing="sources", shared_mean=True, random_state=None, seen=None
    ):
        self.n_sources_ = n_sources or N_SOURCES
        self.sharing = sharing
        self.seen = seen

    def fit(self, X, y, task=None):
        if task is None:
            if self.seen is not None:
                self.seen.append((self.sharing, X.toarray()[:, 0].tolist()))
            self.models = [self._learn(X, y[:, k]) for k in range(y.shape[1])]
        else:
            self.models = {one: self._learn(X[task == one], y[task == one]) for one in np.unique(task)}
        # One source of each task is not zero, and all of them are for the last task.
        self.sources_ = np.eye(len(self.models), self.n_sources_)
        self.sources_[-1] = 1.0
        return self

    def _learn(self, X, y):
        return LogisticRegression(solver="liblinear").fit(X, y) if len(set(y)) == 2 else float(np.mean(y))

    def predict_proba(self, X, task=None):
        if task is None:
            return np.column_stack([self._present(model, X) for model in self.models])
        present = np.empty(len(X))
        for one in np.unique(task):
            present[task == one] = self._present(self.models[one], X[task == one])
        return np.column_stack([1 - present, present])

    def _present(self, model, X):
        return np.full(X.shape[0], model) if isinstance(model, float) else model.predict_proba(X)[:, 1]


class StandInForNumbers(StandIn):
    def _learn(self, X, y):
        return Ridge().fit(X, y)

    def predict(self, X, task):
        return np.array([self.models[one].predict(row[None])[0] for row, one in zip(X, task, strict=True)])


def some_corpus(seed=0):
    rng = np.random.default_rng(seed)
    data = csr_matrix(rng.normal(size=(120, 6)))
    topics = (data @ rng.normal(size=(6, N_TOPICS)) > 0.5).astype(float)
    return Corpus(data[:80], topics[:80], data[80:], topics[80:])


def some_tasks(name):
    rng = np.random.default_rng(5)
    data, task = rng.normal(size=(90, 3)), np.repeat([1, 2, 3], 30)
    value = data @ np.array([1.0, -1.0, 0.5]) + 0.5 * rng.normal(size=90)
    kept = np.tile(np.arange(30) < 24, 3) if name == "lenk_ratings" else None
    target = value if name == "lenk_ratings" else (value > 0).astype(float)
    return SimpleNamespace(data=data, target=target, task=task, is_train=kept)


def known_sources(n_tasks, n_features, n_rows, n_sources, source, random_state):
    rng = np.random.default_rng(random_state)
    true = rng.laplace(size=(n_tasks, n_sources))
    rotation = ortho_group.rvs(n_sources, random_state=random_state)
    learnt = {"laplace": -2 * true[:, ::-1], "gaussian": true @ rotation}[source]
    return SimpleNamespace(X=learnt, y=None, task=None, sources=true)


def reading_them_off(**parameters):
    kinfolk.LICAClassifier(**parameters)  # which has them all
    return SimpleNamespace(fit=lambda X, y, task: SimpleNamespace(sources_=X))


PROBLEMS = {name: numeric.PROBLEMS[name]._replace(quick_sizes=(8, 24)) for name in ("landmine", "lenk_ratings")}
STUDIES = {
    "lica-figure-2-rcv1": lambda seed: figure_2_rcv1.study(
        sizes=(20, 40), n_repeats=3, corpus=some_corpus(), build=StandIn, seed=seed
    ),
    "lica-figure-2-reuters": lambda seed: figure_2_reuters.study(
        sizes=(20, 40), n_repeats=2, corpus=some_corpus(), build=StandIn, seed=seed
    ),
    "lica-numeric": lambda seed: numeric.study(
        quick=True,
        problems=PROBLEMS,
        load=some_tasks,
        builds=(StandIn, StandInForNumbers),
        seed=seed,
    ),
    "lica-synthetic": lambda seed: synthetic.study(
        n_tasks=(10, 20), n_repeats=3, make=known_sources, build=reading_them_off, seed=seed
    ),
}


def published(name, folder, seed=0):
    experiment = find(name)
    return publish(folder, name, experiment.title, experiment.about, STUDIES[name](seed))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lica")
    return {name: published(name, folder) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_writes_numbers_picture_and_report(outcomes, name):
    outcome = outcomes[name]
    assert outcome.png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert pl.read_csv(outcome.csv).shape == outcome.table.shape
    report = outcome.markdown.read_text()
    assert all(f"| {finding} | " in report for finding in find(name).about.found)
    assert not re.search(r"\bnan\b|\bNone\b", report)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_numbers_and_another_gives_others(outcomes, tmp_path, name):
    assert published(name, tmp_path).csv.read_bytes() == outcomes[name].csv.read_bytes()
    assert published(name, tmp_path, seed=1).csv.read_bytes() != outcomes[name].csv.read_bytes()


def test_every_method_runs_at_every_size_as_often_as_the_others(outcomes):
    runs = outcomes["lica-figure-2-rcv1"].table.group_by("method", maintain_order=True).agg("examples")
    assert dict(runs.iter_rows()) == {key: [20, 20, 20, 40, 40, 40] for key in [*METHODS, AS_PRINTED]}
    assert "| LICA, Bayes |" in outcomes["lica-figure-2-rcv1"].report


def test_sources_that_are_not_zero_are_counted_by_topic(outcomes):
    table = outcomes["lica-figure-2-rcv1"].table
    point, printed, alone = (table.filter(pl.col("method") == name) for name in (POINT, AS_PRINTED, INDIVIDUAL))
    # The stand-in has 1, 1 and all its sources at the three topics.
    assert point["sources"].unique().to_list() == [figure_2_rcv1.N_SOURCES]
    assert printed["sources"].unique().to_list() == [N_TOPICS]
    assert point["nonzero_sources"].unique().to_list() == [1]
    assert point["share_with_few"].unique().to_list() == [pytest.approx(2 / 3)]  # the last topic has all eight
    assert alone["sources"].null_count() == alone.height


def test_all_methods_learn_from_the_same_documents_and_small_sets_lie_within_larger_ones():
    seen = []
    methods = {name: METHODS[name] | {"seen": seen} for name in (INDIVIDUAL, POINT)}
    trials = plan(methods, (10, 30), 1)
    try_methods(some_corpus(), trials, 0, StandIn, lambda steps: None)
    (_, few), (_, also_few), (_, many), (_, also_many) = seen
    assert few == also_few
    assert many == also_many
    assert (len(few), len(many)) == (10, 30)
    assert set(few) < set(many)


def test_scores_of_topics_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth = (rng.random((50, 4)) < 0.4).astype(float)
    probability = np.clip(0.3 * truth + 0.7 * rng.random((50, 4)), 0.01, 0.99)
    thresholds = np.array([0.2, 0.4, 0.6, 0.3])
    scores = score_topics(truth, probability, thresholds)
    for kind in ("macro", "micro"):
        assert scores[f"{kind}_f1"] == pytest.approx(f1_score(truth, probability >= 0.5, average=kind))
        assert scores[f"{kind}_f1_tuned"] == pytest.approx(f1_score(truth, probability >= thresholds, average=kind))
    assert scores["auc"] == pytest.approx(roc_auc_score(truth, probability))
    losses = [log_loss(truth[:, k], probability[:, k]) for k in range(4)]
    assert scores["log_loss"] == pytest.approx(np.mean(losses))


def test_a_topic_that_no_test_document_has_counts_in_micro_f1_alone():
    truth = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    scores = score_topics(truth, np.array([[0.9, 0.8], [0.1, 0.1], [0.7, 0.1]]), np.array([0.5, 0.5]))
    assert scores["macro_f1"] == scores["auc"] == 1
    assert scores["micro_f1"] == pytest.approx(2 * 2 / (2 * 2 + 1))


def test_no_threshold_has_a_higher_f1_on_the_training_documents():
    rng = np.random.default_rng(1)
    truth = (rng.random((40, 3)) < 0.3).astype(float)
    probability = np.round(0.2 * truth + 0.6 * rng.random((40, 3)), 1)
    thresholds = best_thresholds(truth, probability)
    for k, threshold in enumerate(thresholds):
        reached = f1_score(truth[:, k], probability[:, k] >= threshold)
        tried = [f1_score(truth[:, k], probability[:, k] >= t) for t in np.linspace(0, 0.8, 17)]
        assert reached == pytest.approx(max(tried))


SCORES = pl.DataFrame(
    {
        "method": [INDIVIDUAL] * 4 + [POINT] * 4,
        "examples": [50, 50, 100, 100] * 2,
        "repeat": [0, 1, 0, 1] * 2,
        "f1": [0.2, 0.4, 0.5, 0.7, 0.3, 0.6, 0.5, 0.6],
    }
)


def test_gains_are_paired_by_repeat():
    gained = gains(SCORES, "f1")
    # Differences 0.1 and 0.2 at 50, 0 and −0.1 at 100; two values have the standard error of half their distance.
    assert gained["examples"].to_list() == [50, 100]
    assert gained["gain"].to_list() == pytest.approx([0.15, -0.05])
    assert gained["gain_error"].to_list() == pytest.approx([0.05, 0.05])


def test_the_verdict_counts_gains_beyond_two_standard_errors():
    gained = gains(SCORES, "f1")
    assert verdict(gained) == (
        "LICA, point is above individual learning by more than 2 standard errors at 1 of 2 sizes and below it at 0"
    )
    assert write_trend(gained) == "LICA, point gains most at 50, of 50 to 100"
    assert verdict(gains(SCORES.filter(pl.col("repeat") == 0), "f1")).startswith("Each size was run once")
    equal = SCORES.with_columns(f1=pl.lit(0.5))
    assert verdict(gains(equal, "f1")).endswith("at 0 of 2 sizes and below it at 0")


def test_verdicts_ask_for_clear_gains_at_every_size_and_for_the_largest_at_the_smallest():
    def gained(gains, errors, repeats=10):
        sizes = [10, 20][: len(gains)]
        return pl.DataFrame(
            {"method": "ours", "examples": sizes, "repeats": repeats, "gain": gains, "gain_error": errors}
        )

    clear, unclear = gained([0.3, 0.2], [0.1, 0.05]), gained([0.1, 0.2], [0.1, 0.05])
    assert [methods.judge_gains(one) for one in (clear, unclear)] == ["held", "partly"]
    assert methods.judge_gains(gained([0.0, 0.0], [0.1, 0.1])) == "not held"
    assert methods.judge_gains(gained([0.3, 0.2], [0.1, 0.05], repeats=1)) == "open"
    assert [methods.judge_trend(one) for one in (clear, unclear)] == ["held", "not held"]
    assert methods.judge_trend(gained([0.3], [0.1])) == "open"


def test_laplace_sources_are_said_to_be_found_where_gaussian_ones_are_not():
    def averages(laplace, gaussian):
        rows = [
            {
                "kind": kind,
                "method": method,
                "examples": n,
                "recovered": found,
                "recovered_error": 0.01,
                "by_chance": 0.8,
            }
            for kind, curve in (("laplace", laplace), ("gaussian", gaussian))
            for method in (methods.POINT, methods.BAYES)
            for n, found in zip((10, 160), curve, strict=True)
        ]
        return pl.DataFrame(rows)

    assert synthetic._judge(averages((0.8, 0.95), (0.8, 0.75))) == ("held", "held")
    assert synthetic._judge(averages((0.9, 0.85), (0.8, 0.95))) == ("partly", "not held")


def test_rows_of_tasks_are_drawn_nested_and_the_rest_is_tested():
    data = SimpleNamespace(task=np.repeat([3, 1], [10, 20]), is_train=None)
    few, many = (list(draw_splits(data, size, False, 3, 0)) for size in (4, 8))
    for (train, test), (more, _) in zip(few, many, strict=True):
        assert [(data.task[train] == one).sum() for one in (1, 3)] == [4, 4]
        assert set(train) < set(more)
        assert sorted([*train, *test]) == list(range(30))
    assert any(set(few[0][0]) != set(train) for train, _ in few[1:])
    (train, _), *_ = draw_splits(data, 50, True, 1, 0)
    assert [(data.task[train] == one).sum() for one in (1, 3)] == [10, 5]


def test_rows_kept_for_testing_are_tested_and_all_others_give_one_split():
    data = SimpleNamespace(task=np.repeat([1, 2], 5), is_train=np.tile([True, True, True, False, True], 2))
    assert len(list(draw_splits(data, 2, False, 3, 0))) == 3
    ((train, test),) = draw_splits(data, 4, False, 3, 0)
    assert test.tolist() == [3, 8]
    assert train.tolist() == [0, 1, 2, 4, 5, 6, 7, 9]


def test_explained_variance_and_area_are_those_of_scikit_learn():
    rng = np.random.default_rng(2)
    truth, predicted = rng.normal(size=(2, 30))
    assert explained_variance(truth, predicted) == pytest.approx(r2_score(truth, predicted))
    group = np.repeat([0, 1], 15)
    areas = [roc_auc_score(truth[group == g] > 0, predicted[group == g]) for g in (0, 1)]
    assert mean_area(truth > 0, predicted, group) == pytest.approx(np.mean(areas))


def test_numeric_scores_do_not_hang_on_the_units_of_features_and_targets():
    def in_other_units(name):
        tasks = some_tasks(name)
        target = 40 + 10 * tasks.target if name == "lenk_ratings" else tasks.target
        return SimpleNamespace(data=7 + 100 * tasks.data, target=target, task=tasks.task, is_train=tasks.is_train)

    tables = [
        numeric.study(
            quick=True, problems=PROBLEMS, load=load, builds=(StandIn, StandInForNumbers), methods={INDIVIDUAL: {}}
        ).table
        for load in (some_tasks, in_other_units)
    ]
    np.testing.assert_allclose(tables[0]["score"], tables[1]["score"], atol=1e-6)


def test_sources_are_recovered_up_to_order_sign_and_scale():
    true = np.random.default_rng(3).laplace(size=(40, 3))
    compared = compare_sources(true, true[:, [2, 0, 1]] * [-2.0, 0.1, 5.0], seed=0)
    assert compared["recovered"] == pytest.approx(1)
    assert compared["space"] == pytest.approx(1)
    assert compared["by_chance"] < 0.95


def test_rotated_sources_span_the_same_space_and_are_not_recovered():
    true = np.random.default_rng(4).laplace(size=(40, 3))
    rotated = compare_sources(true, true @ ortho_group.rvs(3, random_state=7), seed=0)
    assert rotated["space"] == pytest.approx(1)
    assert rotated["recovered"] < 0.95


def test_no_other_pairing_of_sources_has_a_higher_mean_cosine():
    rng = np.random.default_rng(6)
    true, found = rng.normal(size=(2, 9, 4))
    cosine = np.abs(true.T @ found) / np.outer(np.linalg.norm(true, axis=0), np.linalg.norm(found, axis=0))
    best = max(np.mean([cosine[i, order[i]] for i in range(4)]) for order in permutations(range(4)))
    assert matched_cosine(true, found) == pytest.approx(best)


def test_laplace_sources_that_the_stand_in_finds_are_reported_as_found(outcomes):
    means = outcomes["lica-synthetic"].table.group_by("kind").agg(pl.col("recovered").mean(), pl.col("space").mean())
    found = {kind: (recovered, space) for kind, recovered, space in means.iter_rows()}
    assert found["laplace"] == pytest.approx((1, 1))
    assert found["gaussian"][0] < 0.95
    assert found["gaussian"][1] == pytest.approx(1)
