"""Whatever is handed in gives a sensible result, or one clear sentence."""

import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from kinfolk import NestedIHMM, SharedIHMM, SingleIHMM
from tests.sequences.toy import QUICK, toy_numbers, toy_sequences

X, LENGTHS, TASK = toy_sequences()
MODELS = [NestedIHMM(n_clusters=3, **QUICK), SharedIHMM(**QUICK), SingleIHMM(**QUICK)]


@pytest.fixture(scope="module")
def fitted():
    return NestedIHMM(n_clusters=3, **QUICK).fit(X, LENGTHS, task=TASK)


def quick(**changes):
    return NestedIHMM(**{"n_clusters": 3, **QUICK, **changes})


def assert_refused(match, call, *args, error=ValueError, **kwargs):
    with pytest.raises(error, match=match) as refusal:
        call(*args, **kwargs)
    assert "\n" not in str(refusal.value)


# What must work.


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_one_task_only(model):
    model = clone(model).fit(X, LENGTHS, task=["ann"] * len(LENGTHS))
    assert model.partition_.tolist() == [0]
    assert model.similarity_.tolist() == [[1.0]]
    assert np.isfinite(model.score(X, LENGTHS))


def test_all_tasks_identical():
    one = list("aaaaabbbbbaaaaabbbbbb")
    model = quick().fit(one * 5, [len(one)] * 5, task=list(range(5)))
    assert model.partition_.tolist() == [0] * 5


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("value", ["a", 3, 2.5], ids=["symbol", "whole number", "number"])
def test_a_constant_sequence(model, value):
    model = clone(model).set_params(emission="gaussian" if value == 2.5 else "auto").fit([value] * 30)
    assert np.isfinite(model.score([value] * 10))
    assert model.sample(4, random_state=0)[0].tolist() == [value] * 4


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_single_step(model):
    model = clone(model).fit(["a"])
    assert model.predict(["a"]).shape == (1,)
    assert np.isfinite(model.score_samples(["a", "b"]))


@pytest.mark.parametrize("emission", ["gaussian", "gaussian-full"])
def test_nan_in_places(emission):
    numbers, lengths, task = toy_numbers()
    numbers[::5, 0] = np.nan
    numbers[3] = np.nan
    model = quick(emission=emission).fit(numbers, lengths, task=task)
    assert model.partition_.tolist() == [0, 0, 1, 1]
    assert np.isfinite(model.score_samples(numbers, lengths, task=task)).all()


@pytest.mark.filterwarnings("ignore::kinfolk.UnseenWarning")
def test_a_symbol_not_seen_in_training_is_never_impossible(fitted):
    for strange in (["z"], ["z"] * 50, ["a", 3, None, "ü"]):
        found = fitted.score_samples(strange, task=["ann"])
        assert np.isfinite(found).all()
        assert np.isfinite(fitted.score_samples(strange, task=["new"])).all()
        assert np.isfinite(fitted.predict_proba(strange, task=["ann"])).all()


def test_tasks_with_one_short_sequence_beside_long_ones():
    symbols = [*X.tolist(), "a", "a", "c"]
    model = quick().fit(symbols, [*LENGTHS, 2, 1], task=[*TASK, "short", "shorter"])
    assert model.tasks_.tolist() == ["ann", "bob", "cid", "dot", "short", "shorter"]
    assert model.similarity_[4, 0] > model.similarity_[4, 2]


def test_thousands_of_tasks_of_one_step_each():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 6_000)
    began = time.process_time()
    model = NestedIHMM(n_states=3, n_clusters=3, n_chains=1, n_burn_in=1, n_draws=4, random_state=0)
    model.fit(codes, np.ones(6_000, dtype=int), task=np.arange(6_000))
    assert time.process_time() - began < 30
    assert model.partition_.shape == (6_000,)
    shares = np.exp([model.score_samples([code], task=[-1])[0] for code in range(3)])
    np.testing.assert_allclose(shares, 1 / 3, atol=0.12)
    assert model.similarity([3, 5, 9]).shape == (3, 3)
    assert_refused("similarity_ of 6,000 tasks", lambda: model.similarity_)


def test_a_fit_that_fails_leaves_the_model_as_it_was(fitted):
    before = fitted.score(X, LENGTHS, task=TASK)
    assert_refused("lengths add up", fitted.fit, X, [3])
    assert fitted.score(X, LENGTHS, task=TASK) == before


# What is refused.


@pytest.mark.parametrize(
    ("lengths", "match"),
    [
        ([24] * 7, "lengths add up to 168 steps, but X has 192 rows"),
        ([24] * 7 + [25], "lengths add up to 193 steps, but X has 192 rows"),
        ([24] * 8 + [0], "sequence 8 has length 0: every sequence needs at least one step"),
        ([192, -24, 24], "sequence 1 has length -24"),
        ([96.5, 95.5], "a whole number for each sequence is needed"),
        (["long"], "a whole number for each sequence is needed"),
        ([np.nan, 192], "a whole number for each sequence is needed"),
        ([[96, 96]], "lengths holds lists or arrays"),
        ([], "lengths"),
        (192, "lengths"),
    ],
    ids=str,
)
def test_lengths_that_are_none(fitted, lengths, match):
    assert_refused(match, quick().fit, X, lengths)
    assert_refused(match, fitted.score_samples, X, lengths)


@pytest.mark.parametrize(
    ("task", "match"),
    [
        (TASK[:-1], "task has 7 entries for 8 sequences"),
        (np.repeat(TASK, 24), "task has 192 entries for 8 sequences: give one for each sequence, not for each row"),
        ([*TASK[:-1], None], "task, sequence 7: a task is missing"),
        ([*range(7), np.nan], "task, sequence 7: a task is missing"),
        ([*range(7), np.inf], "infinity"),
    ],
)
def test_tasks_that_are_none(fitted, task, match):
    assert_refused(match, quick().fit, X, LENGTHS, task=task)
    assert_refused(match, fitted.score_samples, X, LENGTHS, task=task)


@pytest.mark.parametrize(
    ("table", "match", "error"),
    [
        ([], "0 sample", ValueError),
        (np.zeros((0, 2)), "0 sample", ValueError),
        (np.zeros((4, 0)), "0 feature", ValueError),
        (np.zeros((2, 2, 2)), "dim 3", ValueError),
        (np.array(3.0), "scalar", ValueError),
        ([[1, 2], [3]], "number 0 of 2 and number 1 of 1 values", ValueError),
        (np.array([1.5, np.inf, 2.0]), "row 1: infinity is not a value", ValueError),
        (pd.DataFrame({"a": [1.5, 2.5], "b": [np.inf, 1.0]}), "column 'b', row 0: infinity", ValueError),
        (np.array([1 + 2j, 3.0]), "omplex", ValueError),
        (pd.Series(pd.date_range("2020", periods=3)), "dates or times", ValueError),
        ([None, None], "has no value at all", ValueError),
        (pd.DataFrame({"a": [1.5, 2.5], "b": [np.nan, np.nan]}), "column 'b' has no value at all", ValueError),
        (sparse.csr_matrix(np.eye(3)), "sparse", TypeError),
        (pl.LazyFrame({"a": [1.0]}), "lazy", ValueError),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tables_that_are_none(table, match, error):
    assert_refused(match, quick().fit, table, error=error)


@pytest.mark.parametrize(
    ("emission", "match"),
    [
        ("laplace", 'give "auto", one of "categorical"'),
        (["gaussian"], "emission names 1 kinds for 2 columns"),
        (["gaussian", "laplace"], 'give "auto"'),
        (3, 'give "auto"'),
        (["gaussian", "categorical"], "column 'level', row 0: 'x' is no number, which emission='gaussian' needs"),
        (["categorical", "poisson"], "column 'count', row 1: -1 is not a count"),
    ],
    ids=str,
)
def test_emissions_that_are_none(emission, match):
    table = pd.DataFrame({"level": ["x", "y", "x"], "count": [2, -1, 3]})
    assert_refused(match, quick(emission=emission).fit, table)


def test_counts_are_checked_in_prediction_too():
    model = quick(emission="poisson").fit([3, 4, 5] * 10)
    assert_refused("row 1: 2.5 is not a count", model.score_samples, [3.0, 2.5])


@pytest.mark.parametrize(
    ("symbols", "match"),
    [
        ("abcd", "a list of symbols, or a mapping"),
        (7, "a list of symbols, or a mapping"),
        (list("abc"), f"row {np.argmax(X == 'd')}: 'd' is not among the symbols that were named"),
        (list("abcdd"), "different from each other"),
        ({"nothing": list("ab")}, "column 'nothing' is not in the table"),
    ],
    ids=str,
)
def test_symbols_that_are_none(symbols, match):
    assert_refused(match, quick(symbols=symbols).fit, X, LENGTHS, task=TASK)


def test_symbols_of_numbers_are_refused():
    assert_refused("which holds numbers of kind 'gaussian'", quick(symbols={0: [1, 2]}).fit, np.linspace(0, 1, 100))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"n_states": 0}, "n_states=0: a whole number of at least 1"),
        ({"n_states": 2.5}, "n_states=2.5"),
        ({"n_clusters": 0}, "n_clusters=0"),
        ({"n_clusters": True}, "n_clusters=True"),
        ({"n_chains": 0}, "n_chains=0"),
        ({"n_burn_in": -1}, "n_burn_in=-1: a whole number of at least 0"),
        ({"n_draws": 0}, "n_draws=0"),
        ({"thin": 0}, "thin=0"),
        ({"concentration": 0.0}, "concentration=0.0: a finite number above zero"),
        ({"state_concentration": -1}, "state_concentration=-1"),
        ({"transition_concentration": np.inf}, "transition_concentration=inf"),
        ({"emission_strength": "strong"}, "emission_strength='strong'"),
        ({"emission_strength": True}, "emission_strength=True"),
        ({"stickiness": -0.5}, "stickiness=-0.5: a finite number not below zero"),
        ({"inference": "exact"}, "inference='exact'"),
        ({"start": "middle"}, "start='middle'"),
        ({"start": 3}, "start=3"),
        ({"start": [0, 1]}, "start has 2 clusters for 4 tasks"),
        ({"start": {"ann": 0}}, "start has no cluster for task 'bob'"),
        ({"start": [0, 1, None, 1]}, "start has no cluster for task 'cid'"),
        ({"start": [0, 1, 2, 3]}, "start has 4 clusters, and n_clusters=3 has no room"),
    ],
    ids=str,
)
def test_parameters_that_are_none(changes, match):
    assert_refused(match, quick(**changes).fit, X, LENGTHS, task=TASK)


def test_a_model_of_several_tasks_asks_which_one(fitted):
    for ask in (fitted.score_samples, fitted.predict, fitted.forecast):
        assert_refused("fitted to 4 tasks: say which", ask, ["a", "b"])
    assert_refused("fitted to 4 tasks: say which", fitted.sample)


def test_other_columns_than_those_of_training_are_refused(fitted):
    assert_refused("X has 2 features, but", fitted.score_samples, np.zeros((3, 2)), task=["ann"])
    table = pd.DataFrame({"first": X, "second": X})
    model = quick().fit(table, LENGTHS, task=TASK)
    assert_refused("feature names", _first_line(model.score_samples), table[["second", "first"]], LENGTHS, task=TASK)


def _first_line(call):
    """The same with only the first line of a message: scikit-learn's own has several."""

    def called(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except ValueError as error:
            raise ValueError(str(error).splitlines()[0]) from None

    return called


@pytest.mark.parametrize("value", [0, 2.5, True])
def test_lengths_of_the_future_are_whole_numbers(fitted, value):
    assert_refused("n_steps=", fitted.forecast, ["a"], task=["ann"], n_steps=value)
    assert_refused("n_samples=", fitted.forecast, ["a"], task=["ann"], n_samples=value)
    assert_refused("n_samples=", fitted.sample, value, task="ann")


def test_similarity_is_asked_of_tasks_that_are_there(fitted):
    assert_refused("task 'zoe' was not in the training data", fitted.similarity, ["ann", "zoe"])
    assert_refused("task has 2 entries for 3 sequences", fitted.sample, lengths=[1, 1, 1], task=["ann", "bob"])
