"""Tables counted by other engines, where they are: the same counts, bins and sentences as counted here."""

import numpy as np
import polars as pl
import pytest

from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
from kinfolk.tasks.streaming.counting import count_rows
from tests.tasks.test_counting import make_rows

FEATURES = ["sky", "yes", "few", "gaps", "many", "size", "half", "kind", "tiny", "none"]


def duckdb_relation(rows, folder):
    duckdb = pytest.importorskip("duckdb")
    rows.write_parquet(folder / "rows.parquet")
    return duckdb.read_parquet(str(folder / "rows.parquet"))


def dask_frame(rows, folder):
    dask_dataframe = pytest.importorskip("dask.dataframe")
    rows[:400].write_parquet(folder / "a.parquet")
    rows[400:].write_parquet(folder / "b.parquet")
    return dask_dataframe.read_parquet(sorted(folder.glob("*.parquet")), dtype_backend="numpy_nullable")


def spark_frame(rows, folder):
    sql = pytest.importorskip("pyspark.sql")
    session = sql.SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    rows.write_parquet(folder / "rows.parquet")
    return session.read.parquet(str(folder / "rows.parquet"))


ENGINES = {"duckdb": duckdb_relation, "dask": dask_frame, "spark": spark_frame}


@pytest.fixture(params=ENGINES)
def hold(request, tmp_path):
    """Gives a table to an engine."""
    pytest.importorskip({"spark": "pyspark"}.get(request.param, request.param))
    return lambda rows: ENGINES[request.param](rows, tmp_path)


def plain(rows):
    """A table whose types all engines have: Parquet keeps the order of categories for none of them."""
    return rows.with_columns(pl.col("kind").cast(pl.String), pl.col("tiny").cast(pl.Int64)).drop("pool", "odd")


def assert_same(own, other, within=0.0):
    assert own.schema.names == other.schema.names
    for mine, theirs in zip(own.schema.columns, other.schema.columns, strict=True):
        assert mine.categories == theirs.categories
        if mine.categories is None:
            np.testing.assert_array_equal(mine.edges, theirs.edges)
    assert own.classes.tolist() == other.classes.tolist()
    assert own.tasks.tolist() == other.tasks.tolist()
    assert (own.n_rows, own.n_unlabelled) == (other.n_rows, other.n_unlabelled)
    np.testing.assert_allclose(own.statistics.label_counts, other.statistics.label_counts, rtol=within, atol=0)
    np.testing.assert_allclose(own.statistics.feature_counts, other.statistics.feature_counts, rtol=within, atol=0)
    assert own.statistics.feature_counts.dtype.kind == other.statistics.feature_counts.dtype.kind


def test_whole_counts_and_bins_are_those_of_the_table_read_here(hold):
    rows = plain(make_rows())
    counts = count_rows(hold(rows), label="label", task="task", features=FEATURES, sample_rows=200)
    assert_same(counts, count_rows(rows, label="label", task="task", features=FEATURES))
    assert counts.statistics.feature_counts.dtype.kind == "i"
    assert 100 < len(counts.rows.labels) <= 200


def test_given_bins_and_categories_are_handed_to_every_engine(hold):
    rows = plain(make_rows())
    options = {
        "bins": {"size": [-1.0, 0.0, 0.5], "many": [10.0, 200.0]},
        "categories": {"sky": ["red", "grün", "blue", "only here"]},
        "features": ["size", "many", "sky"],
    }
    assert_same(
        count_rows(hold(rows), label="label", task="task", **options),
        count_rows(rows, label="label", task="task", **options),
    )


def test_weighted_sums_agree_to_twelve_digits_and_rows_without_weight_do_not_count(hold):
    rows = plain(make_rows()).with_columns(
        weight=pl.when(pl.int_range(pl.len()) % 7 > 0)
        .then(pl.Series(np.random.default_rng(1).gamma(1.0, size=1_000)))
        .otherwise(0.0)
    )
    ghost = {"sky": "ghost", "label": "ghost", "task": 77, "weight": 0.0, "few": 9_999}
    rows = pl.concat([rows, pl.DataFrame([ghost])], how="diagonal_relaxed")
    options = {"label": "label", "task": "task", "weight": "weight", "features": FEATURES}
    counts = count_rows(hold(rows), **options)
    assert_same(counts, count_rows(rows, **options), within=1e-12)
    assert "ghost" not in counts.classes.tolist()


def test_numbers_of_very_different_sizes_have_exact_quantiles(hold):
    rng = np.random.default_rng(0)
    wild = rng.choice([-1.0, 1.0], 900) * 10.0 ** rng.uniform(-12, 12, 900)
    rows = pl.DataFrame({"task": "a", "label": ["x", "y"] * 450, "wild": wild, "near": 1 + np.arange(900) * 2.0**-52})
    counts = count_rows(hold(rows), label="label", task="task", bins=5)
    for column, values in zip(counts.schema.columns, (wild, rows["near"].to_numpy()), strict=True):
        # The least values that a fifth, two fifths and so on of all values do not exceed.
        np.testing.assert_array_equal(column.edges, np.sort(values)[np.arange(1, 5) * 180 - 1])


def test_a_model_fitted_to_another_engines_counts_answers_as_one_fitted_here(hold):
    rows = plain(make_rows()).drop_nulls("label")
    options = {"label": "label", "task": "task", "features": FEATURES, "sample_rows": 0}
    asked = rows.select(FEATURES).head(20)
    found = [
        NoSharingNB(label_prior=1.0, feature_prior=1.0, temper=1.0)
        .fit_statistics(count_rows(source, **options))
        .predict_proba(asked, task=rows["task"].head(20))
        for source in (hold(rows), rows)
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"label": "lable"}, r"^column 'lable' is not in the .* \(did you mean 'label'\?\)"),
        ({"task": pl.lit(None, pl.Int64)}, {}, "^task column 'task': a task is missing, every row needs one$"),
        ({"label": pl.lit(None, pl.String)}, {}, "^label column 'label' has no label in any row"),
        ({"size": pl.lit(np.inf)}, {}, "^column 'size': infinity is not a value to learn from$"),
        ({"size": pl.col("many") + pl.lit(np.inf)}, {"bins": {"size": [1.0]}}, "^column 'size': infinity is not"),
        ({"sky": pl.date(2020, 1, 1)}, {}, "^column 'sky' of the .* holds Date: turn it into text"),
        ({"weight": pl.lit(-1.0)}, {"weight": "weight"}, "^weight column 'weight': -1.0 is not a weight"),
        ({"weight": pl.lit(None, pl.Float64)}, {"weight": "weight"}, "^weight column 'weight': None is not a weight"),
        ({"weight": pl.lit(1e16)}, {"weight": "weight"}, "^weight column 'weight': 1e\\+16 is too large a weight"),
        ({"weight": pl.lit(0.0)}, {"weight": "weight"}, "^weight column 'weight' is zero in every row with a label"),
    ],
)
def test_what_cannot_be_counted_gets_one_sentence_in_every_engine(hold, change, options, message):
    rows = plain(make_rows()).with_columns(**change)
    with pytest.raises(ValueError, match=message) as caught:
        count_rows(hold(rows), **{"label": "label", "task": "task", **options})
    assert "\n" not in str(caught.value)


def test_columns_of_too_many_texts_are_refused_before_their_values_travel(hold):
    rows = pl.DataFrame({"task": 0, "label": ["a", "b"] * 35_000, "name": [f"n{i}" for i in range(70_000)]})
    with pytest.raises(ValueError, match=r"^column 'name' has more than 65,536 different values: too many"):
        count_rows(hold(rows), label="label", task="task")


def test_a_folder_of_parquet_files_is_one_table_and_names_of_folders_are_columns(tmp_path):
    rows = make_rows().with_columns(site=pl.when(pl.col("task") > 2).then(pl.lit("north")).otherwise(pl.lit("south")))
    for site in ("north", "south"):
        part = tmp_path / "rows" / f"site={site}"
        part.mkdir(parents=True)
        rows.filter(pl.col("site") == site).drop("site").write_parquet(part / "part-0.parquet")
    features = ["sky", "few", "size", "site"]
    counts = count_rows(tmp_path / "rows", label="label", task="task", features=features)
    assert_same(counts, count_rows(rows, label="label", task="task", features=features))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty is a folder without a \.parquet file$"):
        count_rows(tmp_path / "empty", label="label", task="task")
