"""Columns of any unit: they are brought to one scale inside, and what is shown of weights is in the user's units."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import kinfolk
from kinfolk import LICAClassifier, LICARegressor
from kinfolk.lica.model.data import make_linear_tasks
from kinfolk.lica.model.scaling import measure
from tests.saved_models import saved
from tests.test_hostile_files import array_of, assert_refused, edited

N_TASKS, N_ROWS, N_FEATURES = 6, 40, 4
WAYS = {
    "eb": {"n_sources": 1},
    "map": {"n_sources": 1, "inference": "map"},
    "individual": {"sharing": "individual"},
    "pooled": {"sharing": "pooled"},
    "hierarchical": {"sharing": "hierarchical"},
}
ways = pytest.mark.parametrize("way", WAYS)
kinds = pytest.mark.parametrize("kind", [LICAClassifier, LICARegressor])


def make_tasks(seed=0):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(N_TASKS), N_ROWS)
    X = rng.normal(size=(len(task), N_FEATURES))
    shared = rng.normal(size=N_FEATURES)
    weights = 1.5 * shared + 0.5 * rng.normal(size=(N_TASKS, N_FEATURES))
    return X, np.einsum("ij,ij->i", X, weights[task]) + 0.3 + 0.7 * rng.normal(size=len(task)), task


X, TARGET, TASK = make_tasks()
HELD = np.tile(np.arange(N_ROWS) >= N_ROWS // 2, N_TASKS)
FACTORS, SHIFTS = np.array([1e4, 1e-3, -2.0, 50.0]), np.array([3e5, 1.0, -7.0, 1e3])
THIN = np.where(np.abs(X) > 1.2, X, 0.0)  # of whose cells four in five are zero


def target_of(kind, table=TARGET):
    return (table > 0).astype(int) if kind is LICAClassifier else table


def fitted(kind, table, way="eb", y=None, task=TASK, **params):
    model = kind(random_state=0, max_iter=200, new_tasks="expected", **WAYS[way], **params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(table, target_of(kind) if y is None else y, task=task)


def answers(model, table, task=TASK):
    if isinstance(model, LICAClassifier):
        return model.predict_proba(table, task=task)
    return np.stack(model.predict(table, task=task, return_std=True))


@ways
@kinds
@pytest.mark.parametrize("column", [(60_000.0, 1e3), (300.0, 100.0)], ids=["60,000", "300"])
def test_an_irrelevant_column_of_another_scale_does_not_keep_a_model_from_learning(kind, way, column):
    mean, deviation = column
    wide = np.column_stack([X, mean + deviation * np.random.default_rng(1).normal(size=len(X))])
    y = target_of(kind)
    scores = []
    for table in (X, wide):
        model = fitted(kind, table[~HELD], way, y[~HELD], TASK[~HELD])
        scores.append(model.score(table[HELD], y[HELD], task=TASK[HELD]))
    assert scores[0] > 0.6
    assert scores[1] > scores[0] - 0.07


@ways
@kinds
def test_columns_may_be_multiplied_and_shifted(kind, way):
    here, there = fitted(kind, X, way), fitted(kind, X * FACTORS + SHIFTS, way)
    asked = np.where(np.arange(len(X)) % 7 == 0, "new", TASK.astype(str))
    np.testing.assert_allclose(answers(there, X * FACTORS + SHIFTS, asked), answers(here, X, asked), rtol=1e-6)
    np.testing.assert_allclose(there.coef_ * FACTORS, here.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(there.intercept_ + there.coef_ @ SHIFTS, here.intercept_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(there.common_weights_ * FACTORS, here.common_weights_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(there.components_ * FACTORS, here.components_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(there.sources_, here.sources_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(there.objective_[-1], here.objective_[-1], rtol=1e-7)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from([LICAClassifier, LICARegressor]),
    way=st.sampled_from(sorted(WAYS)),
    as_matrix=st.booleans(),
    factors=st.lists(st.floats(-4.0, 4.0), min_size=N_FEATURES, max_size=N_FEATURES),
    shifts=st.lists(st.floats(-1e4, 1e4), min_size=N_FEATURES, max_size=N_FEATURES),
    scale=st.sampled_from(["auto", True]),
)
def test_units_never_change_an_answer(kind, way, as_matrix, factors, shifts, scale):
    rows = slice(0, 3 * N_ROWS)
    table, y, task = X[rows], target_of(kind)[rows], TASK[rows]
    if as_matrix:
        y, task = np.column_stack([y, y[::-1], np.roll(y, 1)]).astype(float), None
        y[::5, 1] = np.nan
    moved = (table + shifts) * 10.0 ** np.array(factors)
    params = {"random_state": 0, "scale": scale, "max_iter": 200, **WAYS[way]}
    here, there = (kind(**params).fit(one, y, task=task) for one in (table, moved))
    np.testing.assert_allclose(answers(there, moved, task), answers(here, table, task), rtol=1e-4, atol=1e-6)


@ways
@kinds
def test_it_is_as_if_the_columns_had_been_standardised_before(kind, way):
    table = X * FACTORS + SHIFTS
    mean, deviation = table.mean(axis=0), table.std(axis=0)
    here, there = fitted(kind, table, way), fitted(kind, (table - mean) / deviation, way, scale=False)
    np.testing.assert_allclose(here.coef_, there.coef_ / deviation, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(answers(here, table), answers(there, (table - mean) / deviation), rtol=1e-6)
    expected = np.einsum("ij,ij->i", table, here.coef_[TASK]) + here.intercept_[TASK]
    found = here.decision_function(table, task=TASK) if kind is LICAClassifier else here.predict(table, task=TASK)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_variances_of_weights_have_the_square_of_their_unit():
    plain = fitted(LICAClassifier, X, weight_variances=True)
    moved = fitted(LICAClassifier, X * FACTORS, weight_variances=True)
    np.testing.assert_allclose(moved.weight_variances_ * FACTORS**2, plain.weight_variances_, rtol=1e-6)


def test_top_features_are_those_that_matter_whatever_their_unit():
    plain, moved = fitted(LICAClassifier, X), fitted(LICAClassifier, X * FACTORS)
    assert list(moved.top_features(2)["feature"]) == list(plain.top_features(2)["feature"])
    first = moved.top_features(1)
    np.testing.assert_allclose(first["weight"][0], moved.components_[0, int(first["feature"][0])])


@ways
@pytest.mark.parametrize("scale", ["auto", True])
@pytest.mark.parametrize("table", [THIN, X], ids=["mostly zeros", "hardly any zero"])
def test_a_table_gives_the_same_fit_dense_or_sparse(way, table, scale):
    dense, thin = (fitted(LICAClassifier, one, way, scale=scale) for one in (table, sparse.csr_matrix(table)))
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-4, atol=1e-6)
    for asked in (table, sparse.csr_matrix(table)):
        np.testing.assert_allclose(answers(thin, asked), answers(dense, asked), rtol=1e-4)


@ways
def test_tables_that_are_mostly_zeros_keep_their_scale_unless_told(way):
    table = THIN * np.array([1.0, 3.0, 0.2, 5.0])
    for one in (table, sparse.csr_matrix(table)):
        kept, as_is = fitted(LICAClassifier, one, way), fitted(LICAClassifier, one, way, scale=False)
        np.testing.assert_array_equal(kept.coef_, as_is.coef_)
        told, of_units = (fitted(LICAClassifier, t, way, scale=True) for t in (one, sparse.csr_matrix(THIN)))
        np.testing.assert_allclose(told.coef_ * np.array([1.0, 3.0, 0.2, 5.0]), of_units.coef_, rtol=1e-4, atol=1e-6)


def test_numbers_beside_many_zeros_are_told_of_and_brought_to_scale_when_asked():
    rng = np.random.default_rng(3)
    table = np.column_stack([THIN, np.eye(12)[rng.integers(0, 12, len(X))], 6e4 + 100 * rng.normal(size=len(X))])
    y = (TARGET > 0).astype(int)
    model = LICAClassifier(n_sources=1, random_state=0)
    for one in (table, sparse.csr_matrix(table)):
        with pytest.warns(UserWarning, match="column 16 is more than a hundred times as large as most columns"):
            model.set_params(scale="auto").fit(one, y, task=TASK)
        model.set_params(scale=True).fit(one, y, task=TASK)
        assert model.score(one, y, task=TASK) > 0.75
    model.set_params(scale=False, max_iter=500).fit(table, y, task=TASK)  # without a warning: it was asked for


@ways
@kinds
def test_a_column_that_never_varies_has_no_weight(kind, way):
    table = np.column_stack([X, np.full(len(X), 0.1)])
    model = fitted(kind, table, way)
    assert (model.coef_[:, -1] == 0.0).all()
    other = np.column_stack([X, np.full(len(X), 1e6)])
    np.testing.assert_array_equal(answers(model, other), answers(model, table))


def test_rows_of_weight_two_count_twice_and_rows_without_a_target_not_at_all():
    times = np.random.default_rng(2).integers(0, 3, len(X))
    weighted = LICARegressor(n_sources=1).fit(X, TARGET, task=TASK, sample_weight=times).scaling_
    repeated = LICARegressor(n_sources=1).fit(*(np.repeat(a, times, axis=0) for a in (X, TARGET)), task=None).scaling_
    np.testing.assert_allclose(weighted.centre, repeated.centre, rtol=1e-12)
    np.testing.assert_allclose(weighted.unit, repeated.unit, rtol=1e-12)
    some = np.where(np.arange(len(X)) < 100, TARGET, np.nan)
    task = np.where(np.arange(len(X)) < 50, "a", "b")
    model = LICARegressor(n_sources=1).fit(X, some, task=task)
    np.testing.assert_allclose(model.scaling_.unit, X[:100].std(axis=0), rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-180, 1e180])
def test_very_large_and_very_small_numbers_have_a_deviation(factor):
    found, _ = measure(make_linear_tasks(X * factor, [np.arange(len(X))], [TARGET]), "auto")
    np.testing.assert_allclose(found.unit / factor, X.std(axis=0), rtol=1e-12)


@pytest.mark.parametrize("way", ["eb", "map"])
@kinds
def test_a_file_keeps_the_units(kind, way, path):
    table = np.column_stack([X * FACTORS + SHIFTS, np.ones(len(X))])
    model = fitted(kind, table, way)
    predictor, again = kinfolk.load(saved(model, path)), kinfolk.load(path, estimator=True)
    for one in (predictor, again):
        np.testing.assert_array_equal(one.coef_, model.coef_)
        np.testing.assert_array_equal(one.intercept_, model.intercept_)
    np.testing.assert_allclose(answers(again, table), answers(model, table), rtol=1e-12)
    np.testing.assert_array_equal(again.components_, model.components_)
    if kind is LICAClassifier:
        np.testing.assert_allclose(predictor.predict_proba(table, task=TASK), answers(model, table), rtol=1e-12)


def test_a_file_with_units_below_zero_is_refused(path):
    saved(fitted(LICAClassifier, X), path)
    edited(path, arrays={"scaling.unit": -array_of(path, "scaling.unit")})
    assert_refused(path, "units below zero")


def test_a_task_is_added_in_the_units_of_the_others():
    here, there = fitted(LICAClassifier, X), fitted(LICAClassifier, X * FACTORS + SHIFTS)
    y = (TARGET > 0).astype(int)
    here.fit_task(X[:20], y[:20], task="more")
    there.fit_task(X[:20] * FACTORS + SHIFTS, y[:20], task="more")
    np.testing.assert_allclose(there.coef_[-1] * FACTORS, here.coef_[-1], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("way", ["eb", "map"])
def test_a_warm_start_goes_on_in_the_units_that_it_started_in(way):
    found = []
    y, moved = (TARGET > 0).astype(int), X * FACTORS + SHIFTS
    for table in (X, moved):
        model = fitted(LICAClassifier, table[~HELD], way, y[~HELD], TASK[~HELD]).set_params(warm_start=True)
        found.append(model.fit(table, y, task=TASK))
    np.testing.assert_allclose(found[1].coef_ * FACTORS, found[0].coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found[0].scaling_.centre, X[~HELD].mean(axis=0), rtol=1e-12)
    again = found[0].set_params(scale=False).fit(X, y, task=TASK)
    np.testing.assert_allclose(again.coef_, fitted(LICAClassifier, X, way, scale=False).coef_, rtol=1e-9)


@pytest.mark.parametrize("scale", ["yes", None, 2.0])
def test_another_scale_is_refused(scale):
    with pytest.raises(ValueError, match=f"scale={scale!r}: 'auto', True or False is needed"):
        LICAClassifier(scale=scale).fit(X, TARGET > 0, task=TASK)
