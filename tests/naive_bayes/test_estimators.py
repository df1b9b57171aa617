"""Estimators against scikit-learn's CategoricalNB, rows added in parts, and the rules of prediction."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import CategoricalNB

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB
from tests import oracle
from tests.problems import PLAIN, as_arguments, as_rows, priors, random_problems

N_VALUES = (2, 3, 5)
N_LABELS = 3
TASKS = ("ann", "bob", "eve", "kim")
EVERY = [
    NoSharingNB(),
    CompleteSharingNB(),
    CompleteSharingNB(share_labels=False),
    ClusteredNB(),
    ClusteredNB(predictive="averaged"),
    ClusteredNB(inference="exact"),
    ClusteredNB(inference="gibbs", n_chains=2, n_burn_in=5, n_draws=5, random_state=0),
]


@pytest.fixture(params=EVERY, ids=repr)
def model(request):
    return clone(request.param)


class Data:
    """Random coded rows in which every task has every label, as a numpy array of codes and as a frame."""

    def __init__(self, seed=0, n_rows=120):
        rng = np.random.default_rng(seed)
        self.codes = np.column_stack([rng.integers(0, v, n_rows) for v in N_VALUES])
        self.y = rng.integers(0, N_LABELS, n_rows)
        self.y[: N_LABELS * len(TASKS)] = np.tile(np.arange(N_LABELS), len(TASKS))
        self.task = rng.choice(TASKS, n_rows)
        self.task[: N_LABELS * len(TASKS)] = np.repeat(TASKS, N_LABELS)
        self.weights = rng.uniform(0.1, 3.0, n_rows)
        self.X = as_frame(self.codes)
        self.new = np.column_stack([rng.integers(0, v, 30) for v in N_VALUES])
        self.new_task = rng.choice(TASKS, 30)


def as_frame(codes):
    return pd.DataFrame(
        {f"f{f}": pd.Categorical(codes[:, f], categories=list(range(v))) for f, v in enumerate(N_VALUES)}
    )


DATA = Data()


def categorical_nb(codes, y, new, alpha, label_prior, weights):
    """Scikit-learn's answer with our posterior mean of the label rates."""
    weights = np.ones(len(y)) if weights is None else weights
    counts = np.bincount(y, weights, minlength=N_LABELS) + label_prior
    reference = CategoricalNB(alpha=alpha, min_categories=list(N_VALUES), class_prior=counts / counts.sum())
    return reference.fit(codes, y, sample_weight=weights).predict_proba(new)


@pytest.mark.parametrize("weights", [None, DATA.weights], ids=["plain", "weighted"])
@pytest.mark.parametrize(("feature_prior", "label_prior"), [(1.0, 1.0), (0.3, 2.0)])
def test_no_sharing_equals_scikit_learns_categorical_nb_fitted_per_task(weights, feature_prior, label_prior):
    model = NoSharingNB(feature_prior=feature_prior, label_prior=label_prior, temper=1.0)
    model.fit(DATA.X, DATA.y, task=DATA.task, sample_weight=weights)
    for task in TASKS:
        of_task = task == DATA.task
        expected = categorical_nb(
            DATA.codes[of_task],
            DATA.y[of_task],
            DATA.new,
            feature_prior,
            label_prior,
            None if weights is None else weights[of_task],
        )
        found = model.predict_proba(as_frame(DATA.new), task=[task] * len(DATA.new))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", [None, DATA.weights], ids=["plain", "weighted"])
def test_complete_sharing_equals_scikit_learns_categorical_nb_on_all_rows(weights):
    model = CompleteSharingNB(feature_prior=0.7, label_prior=1.5, temper=1.0)
    model.fit(DATA.X, DATA.y, task=DATA.task, sample_weight=weights)
    expected = categorical_nb(DATA.codes, DATA.y, DATA.new, 0.7, 1.5, weights)
    for task in (DATA.new_task, ["somebody new"] * len(DATA.new)):
        np.testing.assert_allclose(model.predict_proba(as_frame(DATA.new), task=task), expected, rtol=0, atol=1e-12)


def test_with_no_task_all_rows_are_one_task(model):
    model.set_params(feature_prior=0.7, label_prior=1.5, temper=1.0).fit(DATA.X, DATA.y)
    assert len(model.tasks_) == 1
    expected = categorical_nb(DATA.codes, DATA.y, DATA.new, 0.7, 1.5, None)
    np.testing.assert_allclose(model.predict_proba(as_frame(DATA.new)), expected, rtol=0, atol=1e-12)


def parts(n_first=60):
    """The rows in two parts: the second has a task of its own and misses another."""
    first = np.arange(len(DATA.y)) < n_first
    task = DATA.task.copy()
    task[~first & (task == "kim")] = "zoe"
    return first, task


def assert_alike(model, other, task):
    assert model.tasks_.tolist() == other.tasks_.tolist()
    assert model.classes_.tolist() == other.classes_.tolist()
    np.testing.assert_array_equal(model.partition_, other.partition_)
    np.testing.assert_allclose(model.similarity_, other.similarity_, atol=1e-12)
    assert model.log_evidence_ == pytest.approx(other.log_evidence_, abs=1e-9)
    new = as_frame(DATA.new)
    for asked in (np.resize(np.unique(task), len(DATA.new)), ["somebody new"] * len(DATA.new)):
        np.testing.assert_allclose(
            model.predict_proba(new, task=asked), other.predict_proba(new, task=asked), atol=1e-12
        )


@pytest.mark.parametrize("weights", [None, DATA.weights], ids=["plain", "weighted"])
def test_adding_rows_in_two_parts_equals_fitting_all_at_once(model, weights):
    first, task = parts()
    weights_of = (lambda rows: None) if weights is None else (lambda rows: weights[rows])
    every = np.ones(len(first), dtype=bool)
    model.fit(DATA.X, DATA.y, task=task, sample_weight=weights_of(every))
    added = clone(model)
    for rows in (first, ~first):
        added.partial_fit(DATA.X[rows], DATA.y[rows], task=task[rows], sample_weight=weights_of(rows))
    assert_alike(added, model, task)


@pytest.mark.parametrize("weighted", [(False, False), (True, True), (False, True), (True, False)], ids=str)
def test_unlabelled_rows_and_weights_add_up_in_parts_too(weighted):
    rng = np.random.default_rng(8)
    codes, task = rng.integers(0, 2, (24, 3)), np.array(["c"] * 6 + ["a"] * 6 + ["b"] * 6 + ["a", "d"] * 3)
    y = np.where(np.arange(24) % 4 == 3, None, rng.choice(["no", "yes"], 24))
    weights = rng.uniform(0.5, 2.0, 24)
    first = np.arange(24) < 12
    weights[first & (not weighted[0])] = 1.0
    weights[~first & (not weighted[1])] = 1.0
    X = as_frame(codes)
    whole = ClusteredNB(inference="exact").fit(X, y, task=task, sample_weight=weights)
    added = ClusteredNB(inference="exact")
    for rows, weigh in zip((first, ~first), weighted, strict=True):
        added.partial_fit(X[rows], y[rows], task=task[rows], sample_weight=weights[rows] if weigh else None)
    assert_alike(added, whole, task)
    # The rows of the last call only.
    np.testing.assert_allclose(added.label_distributions_, whole.label_distributions_[~first], atol=1e-12)


def test_unlabelled_rows_of_parts_are_sampled_like_those_of_one_table():
    problem = random_problems(1, seed=3, n_tasks=3, n_rows=12, unlabelled=0.34)[0]
    arguments = as_arguments(problem)
    order = np.argsort(arguments["task"], kind="stable")
    model = ClusteredNB(inference="exact", concentration=problem.concentration, **priors(problem))
    for rows in np.array_split(order, 2):
        model.partial_fit(
            arguments["X"].iloc[rows], arguments["y"][rows], classes=["y0", "y1"], task=arguments["task"][rows]
        )
    assert model.log_evidence_ == pytest.approx(oracle.log_evidence(problem), abs=1e-10)
    np.testing.assert_allclose(
        model.label_distributions_, oracle.label_marginals(problem)[np.array_split(order, 2)[1]], atol=1e-10
    )


def test_many_small_parts_equal_one_table():
    model, whole = ClusteredNB(), ClusteredNB().fit(DATA.X, DATA.y, task=DATA.task)
    for rows in np.array_split(np.arange(len(DATA.y)), 12):
        model.partial_fit(DATA.X.iloc[rows], DATA.y[rows], classes=[0, 1, 2], task=DATA.task[rows])
    assert_alike(model, whole, DATA.task)


def test_fit_after_partial_fit_starts_anew():
    model = ClusteredNB().partial_fit(DATA.X, DATA.y, classes=[0, 1, 2, 3], task=DATA.task)
    model.fit(DATA.X[:40], DATA.y[:40], task=DATA.task[:40])
    assert_alike(model, ClusteredNB().fit(DATA.X[:40], DATA.y[:40], task=DATA.task[:40]), DATA.task[:40])


def test_the_first_part_fixes_bin_edges_and_categories():
    first = pl.DataFrame({"size": [0.5, 1.5, 2.5, 3.5], "colour": ["red", "blue", "red", "blue"]})
    model = NoSharingNB(bins=2, **PLAIN).partial_fit(first, [0, 1, 0, 1])
    values = model.feature_rates()["value"].to_list()
    model.partial_fit(pl.DataFrame({"size": [90.5, 91.5], "colour": ["green", "red"]}), [1, 1])
    assert model.feature_rates()["value"].to_list() == values == ["up to 1.5", "over 1.5", "blue", "red"] * 2
    rates = model.feature_rates().filter(pl.col("label") == 1)["probability"].to_list()
    # Both new sizes fall above the old edge; green, never seen before, is left out: means (n + 1) / (N + 2).
    assert rates == pytest.approx([2 / 6, 4 / 6, 3 / 5, 2 / 5])


def test_classes_named_in_the_first_part_may_come_later():
    model = NoSharingNB(**PLAIN).partial_fit([["a"]], ["no"], classes=["yes", "no"])
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.label_rates()["probability"].to_list() == pytest.approx([2 / 3, 1 / 3])
    model.partial_fit([["a"]], ["yes"])
    assert model.label_rates()["probability"].to_list() == pytest.approx([1 / 2, 1 / 2])


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ({"y": ["maybe"]}, "label 'maybe' is not among the classes"),
        ({"y": ["no"], "classes": ["no", "maybe"]}, "differs from those of the first call"),
    ],
)
def test_a_class_that_was_not_named_at_first_is_refused_and_nothing_is_lost(later, message):
    model = NoSharingNB().partial_fit([["a"], ["b"]], ["no", "yes"])
    before = model.predict_proba([["a"]])
    with pytest.raises(ValueError, match=message):
        model.partial_fit([["a"]], **later)
    np.testing.assert_array_equal(model.predict_proba([["a"]]), before)


def test_a_part_that_inference_refuses_leaves_the_model_as_it_was():
    model = ClusteredNB(inference="exact").fit([["a"], ["b"]] * 10, [0, 1] * 10, task=np.repeat(np.arange(10), 2))
    ask = {"X": [["a"]] * 2, "task": [3, 99]}
    before = model.predict_proba(**ask)
    with pytest.raises(ValueError, match="at most 10 tasks"):
        model.partial_fit([["a"]], [0], task=[10])
    assert model.tasks_.tolist() == list(range(10))
    np.testing.assert_array_equal(model.predict_proba(**ask), before)


def test_a_label_outside_the_named_classes_is_refused_in_the_first_part():
    with pytest.raises(ValueError, match=r"label 'maybe' is not among the classes \['no', 'yes'\]"):
        NoSharingNB().partial_fit([["a"]], ["maybe"], classes=["no", "yes"])


def test_named_classes_may_be_of_mixed_types():
    assert NoSharingNB().partial_fit([["a"]], ["a"], classes=["a", 1]).classes_.tolist() == [1, "a"]


def test_predicting_without_a_task_after_many_is_refused(model):
    model.fit(DATA.X, DATA.y, task=DATA.task)
    for method in (model.predict, model.predict_proba, model.predict_log_proba, model.explain):
        with pytest.raises(ValueError, match=r"fitted to 4 tasks: say which task each row belongs to, task=\.\.\."):
            method(DATA.X)


def test_all_unseen_tasks_are_the_same_new_task(model):
    model.fit(DATA.X, DATA.y, task=DATA.task)
    new = as_frame(DATA.new)
    named = [model.predict_proba(new, task=[name] * len(new)) for name in ("zoe", 17, ("a", "b"))]
    np.testing.assert_array_equal(named[0], named[1])
    np.testing.assert_array_equal(named[0], named[2])


def test_a_new_task_has_prior_label_rates_and_under_no_sharing_nothing_else():
    model = NoSharingNB(label_prior=[1.0, 2.0, 5.0], feature_prior=1.0).fit(DATA.X, DATA.y, task=DATA.task)
    found = model.predict_proba(as_frame(DATA.new[:2]), task=["zoe", "zoe"])
    np.testing.assert_allclose(found, [[1 / 8, 2 / 8, 5 / 8]] * 2, atol=1e-14)


def test_an_unseen_category_is_a_missing_value(model):
    X = pd.DataFrame({"a": DATA.codes[:, 0].astype(str), "b": DATA.codes[:, 1].astype(str)})
    model.fit(X, DATA.y, task=DATA.task)
    task = ["ann", "somebody new"]
    unseen = pd.DataFrame({"a": ["never", "never"], "b": ["0", "1"]})
    missing = pd.DataFrame({"a": [None, None], "b": ["0", "1"]})
    np.testing.assert_array_equal(model.predict_proba(unseen, task=task), model.predict_proba(missing, task=task))


def test_a_row_of_missing_values_gets_the_label_rates():
    model = NoSharingNB(label_prior=2.0).fit(DATA.X, DATA.y, task=DATA.task)
    missing = pd.DataFrame({name: [None] for name in DATA.X}, dtype=object)
    counts = np.bincount(DATA.y[DATA.task == "bob"], minlength=3) + 2.0
    np.testing.assert_allclose(model.predict_proba(missing, task=["bob"]), [counts / counts.sum()], atol=1e-14)


def test_temper_zero_gives_the_label_rates(model):
    pooled = isinstance(model, CompleteSharingNB) and model.share_labels
    counts = 1 + np.bincount(DATA.y if pooled else DATA.y[DATA.task == "eve"], minlength=3)
    model.set_params(temper=0, label_prior=1.0).fit(DATA.X, DATA.y, task=DATA.task)
    found = model.predict_proba(as_frame(DATA.new), task=["eve"] * len(DATA.new))
    np.testing.assert_allclose(found, np.tile(counts / counts.sum(), (len(DATA.new), 1)), atol=1e-12)


@pytest.mark.parametrize("temper", [0.25, 0.5, 0.9])
def test_temper_is_a_power_on_the_feature_likelihood(temper):
    plain = NoSharingNB(temper=1.0).fit(DATA.X, DATA.y, task=DATA.task)
    rates_only = NoSharingNB(temper=0).fit(DATA.X, DATA.y, task=DATA.task)
    tempered = NoSharingNB(temper=temper).fit(DATA.X, DATA.y, task=DATA.task)
    ask = {"X": as_frame(DATA.new), "task": DATA.new_task}
    # φ_y ∏θ^t is φ_y^(1 − t) (φ_y ∏θ)^t, up to a constant.
    mixed = (1 - temper) * rates_only.predict_log_proba(**ask) + temper * plain.predict_log_proba(**ask)
    expected = np.exp(mixed) / np.exp(mixed).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tempered.predict_proba(**ask), expected, atol=1e-12)
    assert tempered.log_evidence_ == plain.log_evidence_


def test_temper_leaves_evidence_partition_and_similarity_alone(model):
    plain = model.fit(DATA.X, DATA.y, task=DATA.task)
    found = plain.log_evidence_, plain.partition_, plain.similarity_
    tempered = clone(model).set_params(temper=0.3).fit(DATA.X, DATA.y, task=DATA.task)
    assert tempered.log_evidence_ == found[0]
    np.testing.assert_array_equal(tempered.partition_, found[1])
    np.testing.assert_array_equal(tempered.similarity_, found[2])


def test_predictions_are_probabilities_and_agree_with_each_other(model):
    model.fit(DATA.X, DATA.y, task=DATA.task)
    ask = {"X": as_frame(DATA.new), "task": DATA.new_task}
    proba = model.predict_proba(**ask)
    assert proba.shape == (30, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(**ask)), proba, atol=1e-15)
    np.testing.assert_array_equal(model.predict(**ask), model.classes_[proba.argmax(axis=1)])
    y = DATA.y[:30]
    assert model.score(y=y, **ask) == pytest.approx(np.mean(model.predict(**ask) == y))
    weights = DATA.weights[:30]
    expected = np.average(model.predict(**ask) == y, weights=weights)
    assert model.score(y=y, sample_weight=weights, **ask) == pytest.approx(expected)


def test_the_score_leaves_unlabelled_rows_out():
    model = NoSharingNB().fit([["a"], ["b"]], ["no", "yes"])
    assert model.score([["a"], ["b"], ["a"]], ["no", None, "yes"]) == 0.5


def test_boolean_labels_can_be_scored_against_zeros_and_ones():
    model = NoSharingNB().fit([["a"], ["b"]], np.array([True, False]))
    assert model.score([["a"], ["b"]], np.array([1, 0])) == 1.0


def test_weights_in_the_billions_are_counted_right():
    X, y = [["a"], ["b"], ["a"], ["b"]], [0, 1, 1, 0]
    scaled = NoSharingNB(feature_prior=4e9, label_prior=4e9, temper=1.0).fit(X, y, sample_weight=[3e9, 1e9, 1e9, 1e9])
    small = NoSharingNB(feature_prior=4, label_prior=4, temper=1.0).fit(X, y, sample_weight=[3, 1, 1, 1])
    np.testing.assert_allclose(scaled.predict_proba(X), small.predict_proba(X), rtol=1e-12)


def test_priors_may_be_given_by_name():
    X = pd.DataFrame({"a": pd.Categorical(["p", "q"], categories=["p", "q"]), "b": ["x", "y"]})
    model = NoSharingNB(label_prior={"yes": 3}, feature_prior={"a": [5.0, 1.0]}).fit(X, ["no", "yes"])
    assert model.label_rates()["probability"].tolist() == pytest.approx([2 / 6, 4 / 6])
    rates = model.feature_rates()["probability"].tolist()
    assert rates == pytest.approx([6 / 7, 1 / 7, 2 / 3, 1 / 3, 5 / 7, 2 / 7, 1 / 3, 2 / 3])


def test_priors_may_differ_by_label_and_value():
    prior = np.array([[1.0, 2.0], [3.0, 4.0]])
    model = NoSharingNB(feature_prior=[prior]).fit([["p"], ["q"]], ["no", "yes"])
    assert model.feature_rates()["probability"].to_list() == pytest.approx([2 / 4, 2 / 4, 3 / 8, 5 / 8])


def test_asking_an_unfitted_model_for_predictions_says_so(model):
    for method in (model.predict, model.predict_proba, model.predict_log_proba, model.explain):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            method([["a"]])


def test_rows_of_codes_past_the_known_ones_are_left_out_like_the_oracle_leaves_out_missing_ones():
    problem = random_problems(1, seed=21, n_tasks=3, n_rows=10)[0]
    model = ClusteredNB(inference="exact", concentration=problem.concentration, **priors(problem))
    model.fit(**as_arguments(problem))
    expected = oracle.predictive(problem, [-1, 0], 1)
    np.testing.assert_allclose(model.predict_proba(as_rows(np.array([[99, 0]])), task=[1]), [expected], atol=1e-10)
