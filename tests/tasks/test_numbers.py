"""Columns of numbers at the door: units, missing values, and the family that "auto" gives them."""

import numpy as np
import pytest

from kinfolk.tasks.columns import learn_number, learn_schema
from kinfolk.tasks.schema import Number
from kinfolk.tasks.statistics import Layout, Rows, count
from kinfolk.tasks.table import declared_categories, read_table

LABEL = "column 'x'"


def schema_of(X, numeric, labels=None, **how):
    given = {"categorical_features": "auto", "bins": 8, "weights": None, **how}
    return learn_schema(
        read_table(X),
        given["weights"],
        given["categorical_features"],
        given["bins"],
        declared_categories(X),
        numeric,
        labels,
    )


def family_of(values, labels=None, **how):
    column = schema_of({"x": values}, "auto", labels, **how).columns[0]
    if column.number is not None:
        return column.number.family
    return "bin" if column.categories is None else "category"


def test_a_gaussian_column_is_standardised_and_read_back():
    values = np.array([2.0, 4.0, np.nan, 9.0])
    number = learn_number(values, None, "gaussian", LABEL)
    z = number.standardised(values)
    assert np.nanmean(z) == pytest.approx(0.0, abs=1e-15)
    assert np.nanstd(z) == pytest.approx(1.0)
    assert np.isnan(z[2])
    assert number.raw(z) == pytest.approx(values, nan_ok=True)


def test_a_row_of_weight_two_counts_as_two_in_the_units():
    weighted = learn_number(np.array([1.0, 4.0]), np.array([2.0, 1.0]), "gaussian", LABEL)
    repeated = learn_number(np.array([1.0, 1.0, 4.0]), None, "gaussian", LABEL)
    assert weighted[1:] == pytest.approx(repeated[1:])


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e12, -1e300, 1e-310])
def test_a_constant_column_stands_at_zero(constant):
    number = learn_number(np.full(7, constant), None, "gaussian", LABEL)
    assert number.scale == (1.0 if abs(constant) < 1e14 else pytest.approx(1e285, rel=1.0))
    assert number.standardised(np.array([constant])).tolist() == [0.0]


def test_huge_numbers_have_finite_units():
    number = learn_number(np.array([-1.7e308, 1.7e308]), None, "gaussian", LABEL)
    assert number.standardised(np.array([-1.7e308, 1.7e308])) == pytest.approx([-1.0, 1.0])


def test_numbers_far_from_those_of_training_stay_finite():
    assert np.isfinite(Number("gaussian", 0.0, 1e-300).standardised(np.array([1e300, -1e300]))).all()


def test_what_is_no_count_is_left_out_when_predicting():
    counts = Number("count", 0.0, 1.0).standardised(np.array([3.0, -1.0, 1.5, np.nan, 1e300]))
    assert counts[0] == 3.0
    assert np.isnan(counts[1:]).all()


def test_what_is_no_count_is_an_error_when_fitting():
    with pytest.raises(ValueError, match=r"column 'x', row 1: -2 is not a count"):
        schema_of({"x": np.array([1.5e9, -2.0])}, {"x": "count"})


def test_text_is_no_number():
    with pytest.raises(ValueError, match="column 'x' holds text: numeric='gaussian' is for numbers"):
        schema_of({"x": ["a", "b"]}, {"x": "gaussian"})


def test_bins_and_a_family_for_one_column_contradict_each_other():
    with pytest.raises(ValueError, match="column 'x' has bins= of its own"):
        schema_of({"x": [0.5, 1.5]}, {"x": "gaussian"}, bins={"x": 2})


def test_a_category_and_a_family_for_one_column_contradict_each_other():
    with pytest.raises(ValueError, match="column 'x' is named in categorical_features and in numeric="):
        schema_of({"x": [0.5, 1.5]}, {"x": "gaussian"}, categorical_features=["x"])


def test_a_general_family_leaves_categories_and_columns_with_bins_alone():
    X = {"kind": ["a", "b", "a"], "few": [1, 2, 1], "x": [0.1, 0.2, 0.7], "binned": [0.1, 0.2, 0.7]}
    columns = schema_of(X, "gaussian", bins={"binned": 2}).columns
    assert [column.number is not None for column in columns] == [False, False, True, False]


def test_a_named_family_overrides_what_auto_would_call_categorical():
    columns = schema_of({"x": [1, 2, 1], "y": [1, 2, 1]}, {"x": "count"}).columns
    assert columns[0].number.family == "count"
    assert columns[1].categories == (1, 2)


class TestAuto:
    """The most probable family of the training rows wins."""

    def test_gaussian_numbers_are_gaussian(self):
        assert family_of(np.random.default_rng(0).normal(5.0, 3.0, 400)) == "gaussian"

    def test_a_mixture_by_label_is_gaussian_where_labels_are_known(self):
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 2, 400).astype(np.int32)
        values = rng.normal(6.0 * labels, 1.0)
        assert family_of(values, labels) == "gaussian"
        assert family_of(values) == "bin"

    def test_skewed_numbers_are_binned(self):
        assert family_of(np.random.default_rng(0).lognormal(0.0, 1.5, 400)) == "bin"

    def test_a_value_that_many_rows_share_is_binned(self):
        rng = np.random.default_rng(0)
        assert family_of(np.where(rng.random(400) < 0.4, 0.0, rng.normal(3.0, 1.0, 400))) == "bin"

    def test_poisson_counts_are_counts(self):
        assert family_of(np.random.default_rng(0).poisson(20.0, 400)) == "count"

    def test_whole_numbers_far_from_zero_are_gaussian(self):
        assert family_of(np.random.default_rng(0).normal(1000.0, 8.0, 400).round().astype(int)) == "gaussian"

    def test_many_codes_without_order_are_categories(self):
        codes = np.random.default_rng(0).choice(
            np.arange(0, 120, 4), 4000, p=np.random.default_rng(1).dirichlet(np.full(30, 0.1))
        )
        assert family_of(codes) == "category"

    def test_few_whole_numbers_are_categories(self):
        assert family_of(np.random.default_rng(0).poisson(2.0, 400)) == "category"

    def test_what_the_user_calls_categorical_is(self):
        values = np.random.default_rng(0).poisson(20.0, 400)
        assert family_of(values, categorical_features=["x"]) == "category"

    @pytest.mark.parametrize("values", [np.full(5, 0.5), np.array([np.nan, np.nan]), np.array([0.5])])
    def test_columns_without_two_values_do_not_fail(self, values):
        assert family_of(values) in ("bin", "category")


def test_sums_of_numbers_are_those_of_plain_arithmetic():
    layout = Layout(2, np.array([2]), (Number("gaussian", 0.0, 1.0), Number("count", 0.0, 1.0)))
    numbers = np.array([[0.5, 2.0], [np.nan, 3.0], [-1.0, 0.0], [2.0, 1.0]])
    rows = Rows(
        np.array([[0], [1], [-1], [0]], dtype=np.int32),
        np.array([0, 0, 1, -1], dtype=np.int32),
        np.array([0, 0, 1, 1]),
        np.array([2.0, 1.0, 1.0, 1.0]),
        numbers,
    )
    statistics = count(rows, layout, np.array(["a", "b"]))
    assert statistics.feature_counts.tolist() == [
        [2, 1, 0, 0, 2, 1.0, 0.5, 3, 7.0, pytest.approx(2 * np.log(2) + np.log(6)), 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -1.0, 1.0, 1, 0.0, 0.0],
    ]
    assert statistics.label_counts.dtype.kind == "i"
    assert statistics.whole
    halves = [count(rows.take(np.arange(4) % 2 == part), layout, np.array(["a", "b"])) for part in (0, 1)]
    assert (halves[0] + halves[1]).feature_counts == pytest.approx(statistics.feature_counts)


def test_the_order_of_rows_changes_no_bit_of_the_sums():
    rng = np.random.default_rng(3)
    layout = Layout(1, np.zeros(0, dtype=np.int64), (Number("gaussian", 0.0, 1.0),))
    rows = Rows(
        np.zeros((500, 0), np.int32), np.zeros(500, np.int32), rng.integers(0, 2, 500), None, rng.normal(size=(500, 1))
    )
    shuffled = rows.take(rng.permutation(500))
    tasks = np.array([0, 1])
    assert np.array_equal(count(rows, layout, tasks).feature_counts, count(shuffled, layout, tasks).feature_counts)
