"""Categories and bin edges: what is learnt from a column, and what its values are coded as."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfolk.tasks.columns import distinct, learn_schema, sort_values
from kinfolk.tasks.schema import Column, encode
from kinfolk.tasks.table import declared_categories, read_table

quick = settings(deadline=None, max_examples=60)
whole_weights = st.integers(0, 4)
numbers = st.floats(-50, 50, allow_nan=False).map(lambda v: round(v, 2))


def schema_of(X, weights=None, categorical_features="auto", bins=8):
    return learn_schema(read_table(X), weights, categorical_features, bins, declared_categories(X))


def only_column(X, **options):
    (column,) = schema_of(X, **options).columns
    return column


def edges_of(values, weights=None, bins=8):
    return only_column({"v": values}, weights=weights, categorical_features=[], bins=bins).edges


@quick
@given(st.lists(numbers, min_size=1, max_size=60), st.integers(1, 12))
def test_quantile_edges_are_those_of_the_inverted_distribution_function(values, n_bins):
    found = edges_of(np.array(values), bins=n_bins)
    ordered = sorted(values)
    # The k-th quantile is the smallest value that at least k/n of the rows do not exceed.
    at = [ordered[math.ceil(k * len(values) / n_bins) - 1] for k in range(1, n_bins)]
    expected = sorted({edge for edge in at if edge < ordered[-1]})
    assert found.tolist() == expected


@quick
@given(st.lists(st.tuples(numbers, whole_weights), min_size=1, max_size=40), st.integers(1, 9))
def test_a_row_of_weight_w_moves_the_edges_like_w_rows(rows, n_bins):
    values, weights = np.array([v for v, _ in rows]), np.array([float(w) for _, w in rows])
    if not weights.any():
        weights[0] = 1.0
    kept = weights > 0
    weighted = edges_of(values[kept], weights=weights[kept], bins=n_bins)
    np.testing.assert_array_equal(weighted, edges_of(np.repeat(values, weights.astype(int)), bins=n_bins))


@quick
@given(st.lists(st.tuples(numbers, st.integers(1, 5)), min_size=1, max_size=40), st.sampled_from([1 / 3, 0.1, 7.0]))
def test_edges_depend_on_the_ratios_of_weights_only(rows, scale):
    values, weights = np.array([v for v, _ in rows]), np.array([float(w) for _, w in rows])
    np.testing.assert_array_equal(edges_of(values, weights=weights), edges_of(values, weights=weights * scale))


def test_a_value_on_an_edge_belongs_to_the_bin_below():
    column = Column("size", None, np.array([1.0, 2.0]))
    values = np.array([-9.0, 1.0, 1.001, 2.0, 2.001, 9.0, np.nan])
    assert column.encode(values).tolist() == [0, 0, 1, 1, 2, 2, -1]
    assert column.n_values == 3


def test_bins_are_named_by_their_edges():
    assert Column("size", None, np.array([0.5, 2.0])).value_names == ["up to 0.5", "0.5 to 2", "over 2"]
    assert Column("size", None, np.array([])).value_names == ["any"]


def test_every_bin_of_distinct_numbers_holds_its_share_of_the_rows():
    values = np.random.default_rng(0).permutation(np.linspace(0.05, 0.95, 80))
    column = only_column({"v": values}, bins=8)
    assert np.bincount(column.encode(values)).tolist() == [10] * 8


def test_a_column_of_one_number_has_one_bin():
    assert edges_of(np.full(5, 2.5)).tolist() == []


def test_users_edges_are_kept_as_they_are_for_the_column_they_name():
    X = pd.DataFrame({"age": [1.5, 2.5, 70.25], "pay": [0.1, 0.2, 0.3]})
    age, pay = schema_of(X, bins={"age": [18, 65]}).columns
    assert age.edges.tolist() == [18.0, 65.0]
    assert age.encode(np.array([17.0, 18.0, 18.5, 99.0])).tolist() == [0, 0, 1, 2]
    assert pay.edges.tolist() == [0.1, 0.2]


def test_bins_of_a_named_column_can_be_a_number_and_others_keep_the_default():
    X = pd.DataFrame({"age": np.linspace(0.5, 9.7, 64), "pay": np.linspace(0.5, 9.7, 64)})
    assert schema_of(X, bins={"age": 4}).n_values.tolist() == [4, 8]


def test_edges_make_bins_even_of_few_whole_numbers():
    assert only_column({"v": [1, 2, 3, 4]}, bins={"v": [2.5]}).edges.tolist() == [2.5]


@pytest.mark.parametrize("offset", [0, -30, 10**6, 2**40])
@pytest.mark.parametrize("gap", [1, 1000, 10**7])
def test_whole_numbers_are_categories_up_to_64_different_ones_and_bins_beyond(offset, gap):
    few, many = offset + gap * np.arange(64), offset + gap * np.arange(65)
    assert only_column({"v": few}).categories == tuple(few.tolist())
    assert only_column({"v": many}).categories is None


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_whole_numbers_of_every_width_are_categories_up_to_their_extremes(dtype):
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -(2**52)), min(limits.max, 2**52)
    values = np.array([low, 1, high, 1], dtype=dtype)
    column = only_column({"v": values})
    assert column.categories == tuple(sorted({low, 1, high}))
    assert column.encode(values).tolist() == [column.categories.index(v) for v in values.tolist()]


@pytest.mark.parametrize(
    "values",
    [
        np.array([-(2**63), 2**63 - 1]),
        np.array([-(2**63), 1 - 2**63]),
        pytest.param(
            np.array([2**63 + 1, 2**63 + 2], dtype=np.uint64),
        ),
    ],
    ids=["both ends", "lowest", "above int64"],
)
def test_whole_numbers_at_the_ends_of_64_bits_are_categories_too(values):
    column = only_column({"v": values})
    assert column.categories == tuple(values.tolist())
    assert column.encode(values).tolist() == [0, 1]


def test_whole_numbers_that_arrive_as_floats_for_the_sake_of_missing_ones_are_categories():
    column = only_column({"v": np.array([3.0, np.nan, 1.0])})
    assert column.categories == (1, 3)
    assert column.encode(np.array([1, 3, 2])).tolist() == [0, 1, -1]
    assert column.encode(np.array([3.0, np.nan])).tolist() == [1, -1]


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"v": pd.array([3, None, 1], dtype="Int64")}),
        pl.DataFrame({"v": [3, None, 1]}),
        pa.table({"v": [3, None, 1]}),
        np.array([[3], [None], [1]], dtype=object),
    ],
    ids=["pandas", "polars", "pyarrow", "numpy"],
)
def test_whole_numbers_among_missing_ones_keep_the_names_they_came_with(X):
    assert only_column(X).value_names == ["1", "3"]


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (["b", None, "a"], ("a", "b")),
        ([True, None, False], (False, True)),
        (np.array([True, False]), (False, True)),
        (np.array(["b", "a"]), ("a", "b")),
        (["a", 2, "b", 1], (1, 2, "a", "b")),
        ([None, None], ()),
        ([np.nan, np.nan], ()),
    ],
    ids=str,
)
def test_text_booleans_and_mixtures_are_categories_in_order(values, categories):
    column = only_column({"v": np.array(values, dtype=object) if isinstance(values, list) else values})
    assert column.categories == categories
    assert column.n_values == max(1, len(categories))


def test_a_column_of_missing_values_has_a_place_and_codes_nothing():
    column = only_column({"v": np.array([None, None], dtype=object)})
    assert column.value_names == ["(none seen)"]
    assert column.encode(np.array(["x", None], dtype=object)).tolist() == [-1, -1]


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"v": pd.Categorical(["b", None, "a"], categories=["c", "a", "b"])}),
        pd.DataFrame({"v": pd.Categorical(["b", None, "a"], categories=["c", "a", "b"], ordered=True)}),
        pl.DataFrame({"v": pl.Series(["b", None, "a"], dtype=pl.Enum(["c", "a", "b"]))}),
    ],
    ids=["pandas", "pandas, ordered", "polars Enum"],
)
def test_declared_categories_count_though_no_row_has_them(X):
    column = only_column(X)
    assert column.categories == ("c", "a", "b")
    assert column.encode(read_table(X).values(0)).tolist() == [2, -1, 1]


def test_pyarrow_dictionaries_are_text_whose_missing_values_are_missing():
    X = pa.table({"v": pa.DictionaryArray.from_arrays(pa.array([2, None, 1]), ["c", "a", "b"])})
    column = only_column(X)
    assert column.categories == ("a", "b")
    assert column.encode(read_table(X).columns[0]).tolist() == [1, -1, 0]


def test_polars_categoricals_share_a_pool_of_strings_but_not_their_categories():
    X = pl.DataFrame(
        {
            "colour": pl.Series(["red", "blue"], dtype=pl.Categorical),
            "animal": pl.Series(["cat", None], dtype=pl.Categorical),
        }
    )
    colour, animal = schema_of(X).columns
    assert sorted(colour.categories) == ["blue", "red"]
    assert animal.categories == ("cat",)


def test_declared_categories_count_in_a_frame_whose_columns_are_numbered():
    X = pd.DataFrame({0: pd.Categorical(["a", "b"], categories=["a", "b", "c"])})
    assert only_column(X).categories == ("a", "b", "c")


def test_categorical_features_may_be_names_positions_or_flags():
    X = pd.DataFrame({"a": np.arange(100), "b": np.arange(100), "c": np.arange(100)})
    ways = [
        ["a", "c"],
        [0, 2],
        [0, -1],
        [True, False, True],
        np.array([True, False, True]),
        np.array([0, 2]),
        ("c", "a"),
    ]
    for way in ways:
        assert schema_of(X, categorical_features=way).n_values.tolist() == [100, 8, 100], way


def test_a_list_of_categorical_features_overrides_the_types_of_the_columns():
    X = pd.DataFrame({"few": [1, 2, 1, 2], "real": [0.5, 1.5, 0.5, 2.5]})
    few, real = schema_of(X, categorical_features=["real"]).columns
    assert few.edges.tolist() == [1.0]
    assert real.categories == (0.5, 1.5, 2.5)


def test_numbers_in_object_columns_are_numbers():
    X = np.array([[1.5, "a"], [2.5, "b"], [None, "a"], [np.nan, None]], dtype=object)
    size, letter = schema_of(X).columns
    assert size.edges.tolist() == [1.5]
    assert letter.categories == ("a", "b")
    assert schema_of(X).names == ["0", "1"]


def test_text_where_numbers_were_binned_is_refused_unless_it_reads_as_one():
    column = Column("size", None, np.array([1.0]))
    assert column.encode(np.array(["3", None, 3], dtype=object)).tolist() == [1, -1, 1]
    with pytest.raises(ValueError, match="column 'size', row 1: 'big' is not a number"):
        column.encode(np.array([1.0, "big"], dtype=object))
    with pytest.raises(ValueError, match="row 0: infinity"):
        column.encode(np.array(["inf"], dtype=object))


@quick
@given(
    st.lists(st.integers(-5, 5) | st.integers(-(10**9), 10**9), min_size=1, unique=True),
    st.lists(st.integers(-6, 6) | st.integers(-(10**9), 10**9)),
    st.sampled_from([np.int64, np.float64, object]),
)
def test_codes_are_positions_among_the_categories(categories, values, dtype):
    expected = [categories.index(v) if v in categories else -1 for v in values]
    assert encode(np.array(values, dtype=dtype), categories).tolist() == expected


@quick
@given(st.lists(st.one_of(st.none(), st.text(max_size=2), st.integers(0, 3), st.booleans())))
def test_codes_of_mixed_values_follow_equality(values):
    column = np.fromiter(values, dtype=object, count=len(values))
    categories = distinct(column, "v")
    codes = encode(column, categories)
    for value, code in zip(values, codes.tolist(), strict=True):
        assert (code == -1) if value is None else categories[code] == value


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_zero_and_one_are_the_booleans_that_they_equal(dtype):
    assert encode(np.array([1, 0, 2], dtype=dtype), (False, True)).tolist() == [1, 0, -1]


def test_booleans_are_the_numbers_that_they_equal():
    assert encode(np.array([True, False], dtype=object), (0, 1, 2)).tolist() == [1, 0]


def test_an_unhashable_value_is_an_unknown_category_at_prediction():
    values = np.empty(2, dtype=object)
    values[:] = [["nested"], "a"]
    assert encode(values, ("a",)).tolist() == [-1, 0]


def test_values_that_do_not_compare_are_sorted_by_type():
    assert sort_values(["b", 10, "a", 9.5]) == [9.5, 10, "a", "b"]
    assert sort_values([3, 1, 2]) == [1, 2, 3]


def test_a_mapping_of_columns_is_a_table():
    table = read_table({"a": [1, 2], "b": ["x", None]})
    assert table.names == ["a", "b"]
    assert [column.tolist() for column in table.columns] == [[1, 2], ["x", None]]


def test_nan_beside_text_in_a_list_of_rows_is_missing():
    assert only_column([["a"], ["b"], [float("nan")]]).categories == ("a", "b")


def test_numbers_beside_text_in_a_list_of_rows_stay_numbers():
    letter, size = schema_of([["a", 1.5], ["b", 2.5], ["a", 0.5]]).columns
    assert letter.categories == ("a", "b")
    assert size.edges.tolist() == [0.5, 1.5]
