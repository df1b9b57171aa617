"""Infinite hidden Markov models in files: nothing is lost, numpy alone reads them, and damage costs one sentence."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import kinfolk
from kinfolk import NestedIHMM, SharedIHMM, SingleIHMM
from tests.saved_models import saved
from tests.sequences.toy import QUICK, toy_numbers, toy_sequences
from tests.test_hostile_files import array_of, assert_refused, edited

SYMBOLS, LENGTHS, TASK = toy_sequences()
NUMBERS, _, _ = toy_numbers()
TABLE = pd.DataFrame(
    {
        "symbol": SYMBOLS,
        "level": np.where(np.arange(len(SYMBOLS)) % 9 == 0, np.nan, NUMBERS[:, 0]),
        "height": NUMBERS[:, 1],
        "calls": np.round(np.abs(NUMBERS[:, 1])),
        "flag": SYMBOLS == "a",
    }
)
KINDS = ["categorical", "gaussian", "gaussian", "poisson", "categorical"]
JOINT = ["gaussian-full", "gaussian-full"]
FITS = {
    "nested": (NestedIHMM(n_clusters=3, start={"ann": 0, "bob": 0, "cid": 1, "dot": 1}, **QUICK), SYMBOLS),
    "shared": (SharedIHMM(symbols=range(9), stickiness="learn", **QUICK), np.searchsorted(list("abcd"), SYMBOLS)),
    "single": (SingleIHMM(emission="gaussian", **QUICK), NUMBERS[:, 0]),
    "joint numbers": (NestedIHMM(n_clusters=2, emission=JOINT, **QUICK), NUMBERS),
    "autoregressive": (SharedIHMM(emission="ar-2", **QUICK), NUMBERS),
    "all kinds": (NestedIHMM(n_clusters=2, emission=KINDS, **QUICK), TABLE),
}
ASKED = [*TASK[:-1], "somebody new"]


@pytest.fixture(scope="module")
def models():
    return {name: (clone(model).fit(X, LENGTHS, task=TASK), X) for name, (model, X) in FITS.items()}


@pytest.fixture
def file(models, path):
    return saved(models["nested"][0], path)


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_predictor_answers_as_the_model(models, path, name):
    model, X = models[name]
    predictor = kinfolk.load(saved(model, path))
    assert predictor.tasks_.tolist() == model.tasks_.tolist()
    expected = model.score_samples(X, LENGTHS, task=ASKED)
    np.testing.assert_allclose(predictor.score_samples(X, LENGTHS, task=ASKED), expected, rtol=1e-9)
    assert predictor.score(X, LENGTHS, task=ASKED) == pytest.approx(expected.mean())
    np.testing.assert_allclose(
        predictor.predict_proba(X, LENGTHS, task=ASKED), model.predict_proba(X, LENGTHS, task=ASKED), atol=1e-9
    )
    np.testing.assert_array_equal(predictor.predict(X, LENGTHS, task=ASKED), model.predict(X, LENGTHS, task=ASKED))
    np.testing.assert_allclose(predictor.classify(X, LENGTHS), model.classify(X, LENGTHS), atol=1e-9)


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_estimator_knows_what_the_saved_one_knew(models, path, name):
    model, X = models[name]
    again = kinfolk.load(saved(model, path), estimator=True)
    assert type(again) is type(model)
    assert {k: v for k, v in again.get_params().items() if k != "symbols"} == {
        k: v for k, v in model.get_params().items() if k != "symbols"
    }
    for attribute in ("tasks_", "partition_", "similarity_", "n_states_", "log_joint_"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))
    assert again.convergence_ == model.convergence_
    np.testing.assert_array_equal(
        again.score_samples(X, LENGTHS, task=ASKED), model.score_samples(X, LENGTHS, task=ASKED)
    )
    some = X.iloc[:5] if isinstance(X, pd.DataFrame) else X[:5]
    for ask in (
        lambda one: one.sample(30, task="cid", random_state=0)[0].astype(str),
        lambda one: one.forecast(some, task=["bob"], random_state=0).samples.astype(str),
        lambda one: one.kin(some).probability,
    ):
        np.testing.assert_array_equal(ask(again), ask(model))
    assert again.n_features_in_ == model.n_features_in_
    assert (
        getattr(again, "feature_names_in_", np.array(0)).tolist()
        == getattr(model, "feature_names_in_", np.array(0)).tolist()
    )


def test_named_symbols_come_back(models, path):
    again = kinfolk.load(saved(models["shared"][0], path), estimator=True)
    assert list(again.symbols) == list(range(9))


def test_a_symbol_never_seen_is_met_by_a_predictor_as_by_the_model(models, path):
    model, _ = models["nested"]
    predictor = kinfolk.load(saved(model, path))
    strange = ["a", "z", None, "a"]
    expected = model.score_samples(strange, task=["ann"])
    np.testing.assert_allclose(predictor.score_samples(strange, task=["ann"]), expected, rtol=1e-9)


def test_many_draws_of_numbers_alone_are_loaded(path):
    """Their counts of codes have many rows and no cells."""
    many = {**QUICK, "n_chains": 1, "n_burn_in": 1, "n_draws": 300}
    model = SharedIHMM(emission="gaussian", **many).fit(NUMBERS, LENGTHS, task=TASK)
    assert len(model.posterior_.draws) > 130
    found = kinfolk.load(saved(model, path)).score_samples(NUMBERS[:24], task=["ann"])
    np.testing.assert_allclose(found, model.score_samples(NUMBERS[:24], task=["ann"]), rtol=1e-9)


FORBIDDEN = ["numba", "sklearn", "scipy", "joblib", "narwhals", "polars", "pandas", "pyarrow", "llvmlite"]


def test_a_predictor_needs_numpy_alone(models, path):
    model, X = models["joint numbers"]
    saved(model, path)
    np.save(path.with_suffix(".npy"), X)
    script = (
        "import sys, json, numpy as np, kinfolk\n"
        f"predictor, X = kinfolk.load({str(path)!r}), np.load({str(path.with_suffix('.npy'))!r})\n"
        f"found = predictor.score_samples(X, {LENGTHS!r}, task={ASKED!r})\n"
        "predictor.predict(X[:3], task=['ann'])\n"
        f"print(json.dumps([found.tolist(), sorted(set({FORBIDDEN!r}) & set(sys.modules))]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    found, loaded = json.loads(done.stdout)
    assert loaded == []
    np.testing.assert_allclose(found, model.score_samples(X, LENGTHS, task=ASKED), rtol=1e-9)


def test_a_predictor_refuses_what_the_model_refuses(file):
    predictor = kinfolk.load(file)
    with pytest.raises(ValueError, match="fitted to 4 tasks: say which"):
        predictor.score_samples(["a"])
    with pytest.raises(ValueError, match="lengths add up to 3 steps, but X has 1 rows"):
        predictor.score_samples(["a"], [3], task=["ann"])
    with pytest.raises(ValueError, match="X has 2 features"):
        predictor.score_samples([["a", "b"]], task=["ann"])


def test_columns_in_another_order_are_refused(models, path):
    predictor = kinfolk.load(saved(models["all kinds"][0], path))
    with pytest.raises(ValueError, match="must be in the same order"):
        predictor.score_samples(TABLE[list(TABLE)[::-1]], LENGTHS, task=TASK)


# Damage.

ARRAYS = [
    "draws.ends",
    "draws.base_weights",
    "draws.parameters",
    "draws.transitions",
    "draws.cluster",
    "draws.n_states",
    "draws.eta",
    "draws.log_joint",
    "draws.stickiness",
    "empty.base_weights",
    "empty.parameters",
]


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("estimator", [False, True])
def test_a_missing_array_is_named(file, name, estimator):
    assert_refused(edited(file, arrays={name: None}), f"array '{name}' is missing", estimator=estimator)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_is_too_short_is_refused(file, name):
    assert_refused(edited(file, arrays={name: array_of(file, name)[:-1]}), "is damaged")


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("draws.transitions", lambda a: -a, "add up to one"),
        ("draws.transitions", lambda a: 2 * a, "add up to one"),
        ("draws.base_weights", lambda a: a * np.nan, "NaN or infinity"),
        ("draws.cluster", lambda a: a + 50, "clusters that it does not have"),
        ("draws.cluster", lambda a: a - 1, "clusters that it does not have"),
        ("draws.ends", lambda a: a[::-1].copy(), "is damaged"),
        ("draws.alpha", lambda a: 0 * a, "not above zero"),
        ("draws.log_joint", lambda a: a[:0], "has no draws"),
        ("draws.stickiness", lambda a: a - 1.0, "below zero"),
        ("draws.parameters", lambda a: a[..., :-1], "has shape"),
        ("empty.base_weights", lambda a: a + 1.0, "add up to one"),
    ],
)
def test_an_array_that_cannot_be_is_refused(file, name, change, match):
    assert_refused(edited(file, arrays={name: change(array_of(file, name))}), match)


CHANNELS = [["categorical", [0], ["a"]]]


@pytest.mark.parametrize(
    ("about", "match"),
    [
        ({"tasks": []}, "no tasks"),
        ({"tasks": ["ann", "bob", "cid", "cid"]}, "twice"),
        ({"tasks": ["ann"]}, "has shape"),
        (
            {"layout": {"names": None, "n_columns": 2, "is_flat": True, "channels": [["categorical", [0], ["a"]]]}},
            "just once",
        ),
        ({"layout": {"names": None, "n_columns": 1, "is_flat": True, "channels": [["laplace", [0], None]]}}, "laplace"),
        (
            {"layout": {"names": None, "n_columns": 1, "is_flat": True, "channels": [["categorical", [0], None]]}},
            "kind",
        ),
        (
            {"layout": {"names": None, "n_columns": 1, "is_flat": True, "channels": [["categorical", [0], ["a"]]]}},
            "shape",
        ),
        *[
            (
                {"layout": {"names": names, "n_columns": 1, "is_flat": True, "channels": CHANNELS}},
                "names of its columns",
            )
            for names in ([3], ["a", "b"])
        ],
        ({"layout": 3}, "is damaged"),
        ({"emissions": []}, "is damaged"),
        ({"n_clusters": 0}, "below what it can be"),
        ({"seed": -1}, "below what it can be"),
    ],
    ids=str,
)
def test_a_story_that_cannot_be_is_refused(file, about, match):
    assert_refused(edited(file, about=about), match)


def test_a_scale_below_zero_is_refused(models, path):
    file = saved(models["single"][0], path)
    assert_refused(edited(file, about={"emissions": [{"centre": [0.0], "scale": [-1.0]}]}), "scale .* below zero")


@pytest.mark.parametrize(
    ("about", "arrays", "match"),
    [
        ({"n_clusters": 7}, {}, "room for 7 clusters, its parameters for 3"),
        ({"params": {"n_states": 0}}, {}, "n_states=0"),
        ({"params": {"nonsense": 1}}, {}, "nonsense"),
        ({"feature_names_in": ["a", "b"]}, {}, "names of its columns"),
        ({"strength": -1.0}, {}, "strength"),
        (None, {"traces.log_joint": None}, "'traces.log_joint' is missing"),
        (None, {"traces.partitions": np.full((2, 6, 4), -1)}, "clusters that it does not have"),
        (None, {"traces.n_states": np.zeros((4, 2))}, "has shape"),
    ],
    ids=str,
)
def test_an_estimator_that_cannot_be_is_refused(file, about, arrays, match):
    assert_refused(edited(file, about=about, arrays=arrays), match, estimator=True)


def test_a_task_that_json_cannot_hold_is_refused(path):
    model = SingleIHMM(**QUICK).fit(["a", "b"], [1, 1], task=[(1, 2), (3, 4)])
    with pytest.raises(ValueError, match=r"a task is .* which cannot be saved"):
        saved(model, path)
