"""Rows counted batch by batch: the same as counting the table read whole, in any format and any size of batch."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
from kinfolk.tasks.streaming import counting
from kinfolk.tasks.streaming.counting import count_rows
from kinfolk.tasks.streaming.quantiles import N_PASSES, QuantileSearch

N_ROWS = 1_000
FEATURES = ["sky", "yes", "few", "gaps", "many", "size", "half", "odd", "kind", "pool", "tiny", "none"]


def make_rows(seed=0):
    """A table with columns of all kinds, values missing in most; late rows bring new tasks, labels and values."""
    rng = np.random.default_rng(seed)
    late = np.arange(N_ROWS) > 800

    def holes(values, share=0.1):
        return [None if gone else value for value, gone in zip(values, rng.random(N_ROWS) < share, strict=True)]

    sizes = rng.normal(size=N_ROWS).round(3)
    sizes[::17] = np.nan
    rows = pl.DataFrame(
        {
            "sky": holes(rng.choice(["red", "blue", "grün"], N_ROWS).tolist()),
            "task": np.where(late, rng.integers(5, 9, N_ROWS), rng.integers(-3, 5, N_ROWS)),
            "yes": holes(rng.integers(2, size=N_ROWS).astype(bool).tolist()),
            "few": np.where(late, 40 - rng.integers(0, 4, N_ROWS), rng.integers(0, 30, N_ROWS)),
            "gaps": holes(rng.integers(-2, 3, N_ROWS).tolist()),
            "many": holes(rng.integers(0, 400, N_ROWS).tolist()),
            "label": holes(np.where(late, "maybe", rng.choice(["no", "yes"], N_ROWS)).tolist()),
            "size": sizes,
            "half": holes(rng.choice([0.0, -0.0, 0.5, 2.5, -1.5], N_ROWS).tolist()),
            "odd": pl.Series(rng.integers(1 << 62, 1 << 63, 3, dtype=np.int64)[rng.integers(3, size=N_ROWS)]),
            "kind": pl.Series(
                rng.choice(["b", "a"], N_ROWS).tolist(), dtype=pl.Enum(["b", "never", "a"])
            ),  # declares one that no row has
            "pool": pl.Series(holes(rng.choice(["x", "y"], N_ROWS).tolist()), dtype=pl.Categorical),
            "tiny": pl.Series(rng.integers(0, 70, N_ROWS), dtype=pl.UInt8),
            "none": pl.Series([None] * N_ROWS, dtype=pl.Float64),
            "weight": rng.choice([0.0, 1.0, 2.0, 5.0], N_ROWS),
        }
    )
    # A task and a value that only a row without a label has exist all the same.
    alone = pl.int_range(pl.len()) == 5
    only = {"task": 99, "sky": "only here", "weight": 1.0, "label": None}
    return rows.with_columns(pl.when(alone).then(pl.lit(v)).otherwise(name).alias(name) for name, v in only.items())


def read_whole(rows, weight=None, features=FEATURES, **options):
    """What an estimator's fit makes of the table."""
    model = NoSharingNB(n_chains=1, n_burn_in=0, n_draws=1, random_state=0, **options)
    weights = None if weight is None else rows[weight].to_numpy()
    return model.fit(rows.select(features), rows["label"], task=rows["task"], sample_weight=weights)


def assert_same(counts, model):
    assert counts.schema.names == model._result.schema.names
    for own, other in zip(counts.schema.columns, model._result.schema.columns, strict=True):
        assert own.categories == other.categories
        if other.categories is not None:
            assert [type(c) for c in own.categories] == [type(c) for c in other.categories]
        else:
            np.testing.assert_array_equal(own.edges, other.edges)
    assert counts.classes.tolist() == model.classes_.tolist()
    assert counts.tasks.tolist() == model.tasks_.tolist()
    assert counts.statistics.layout == model._result.data.statistics.layout
    np.testing.assert_array_equal(counts.statistics.label_counts, model._result.data.statistics.label_counts)
    np.testing.assert_array_equal(counts.statistics.feature_counts, model._result.data.statistics.feature_counts)
    assert counts.statistics.feature_counts.dtype.kind == model._result.data.statistics.feature_counts.dtype.kind


@pytest.mark.parametrize("batch_rows", [1, 37, 999, 5_000])
def test_counts_are_those_of_the_table_read_whole_whatever_the_batches(batch_rows):
    rows = make_rows().head(60 if batch_rows == 1 else N_ROWS)
    counts = count_rows(rows, label="label", task="task", features=FEATURES, batch_rows=batch_rows)
    assert_same(counts, read_whole(rows))
    assert (counts.n_rows, counts.n_unlabelled) == (rows.height, rows["label"].null_count())


@pytest.mark.parametrize("weights", ["whole", "fractional"])
def test_weighted_counts_are_those_of_the_table_read_whole(weights):
    rows = make_rows()
    # Values, a label and a task that only rows of no weight have do not exist.
    ghost = {"sky": "ghost", "few": 9_999, "label": "ghost", "task": 77, "weight": 0.0}
    # Beside a missing value, whole numbers of 63 bits would lose their last ones in a table read whole.
    ghost["odd"] = rows["odd"][0]
    rows = pl.concat([rows, pl.DataFrame([ghost], schema_overrides={"few": pl.Int64})], how="diagonal")
    if weights == "fractional":
        # Eighths add up exactly, in any order.
        rows = rows.with_columns(pl.col("weight") / 8)
    counts = count_rows(rows, label="label", task="task", weight="weight", features=FEATURES, batch_rows=64)
    assert_same(counts, read_whole(rows, weight="weight"))
    assert 77 not in counts.tasks.tolist()
    assert "ghost" not in counts.classes.tolist()


def test_values_of_rows_without_weight_and_a_second_zero_do_not_make_64_values_too_many():
    numbers = [*range(64), 64] * 2
    rows = pl.DataFrame(
        {
            "whole": numbers,
            "float": [-0.0 if i == 65 else float(n) for i, n in enumerate(numbers)],
            "task": "ann",
            "label": ["yes", "no"] * 65,
            "weight": [float(n < 64) for n in numbers],
        }
    )
    counts = count_rows(rows, label="label", task="task", weight="weight", bins=64, batch_rows=13)
    assert [column.categories for column in counts.schema.columns] == [tuple(range(64))] * 2
    assert_same(counts, read_whole(rows, weight="weight", features=["whole", "float"], bins=64))


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "csv.gz", "tsv", "query"])
def test_counts_do_not_depend_on_the_format(ending, tmp_path):
    rows = make_rows()
    path = tmp_path / f"rows.{ending}"
    if ending == "parquet":
        rows.write_parquet(path, row_group_size=113)
    elif ending == "arrow":
        rows.write_ipc(path, record_batch_size=113)
    elif ending == "query":
        path = rows.lazy()
    else:
        rows.write_csv(
            path, separator="\t" if ending == "tsv" else ",", compression="gzip" if "gz" in ending else "uncompressed"
        )
    counts = count_rows(path, label="label", task="task", features=FEATURES, batch_rows=200)
    if "sv" in ending:
        rows = pl.read_csv(path, separator="\t" if ending == "tsv" else ",", infer_schema_length=None)
    assert_same(counts, read_whole(rows))


def test_text_names_of_tasks_and_numbers_as_labels_keep_their_order(tmp_path):
    rows = make_rows().with_columns(
        pl.format("person {}", "task").alias("task"), pl.col("gaps").cast(pl.Float64).alias("label")
    )
    counts = count_rows(rows, label="label", task="task", features=["sky"], batch_rows=50)
    assert counts.tasks.tolist() == sorted(rows["task"].unique().to_list())
    assert counts.classes.tolist() == [-2, -1, 0, 1, 2]
    assert counts.classes.dtype.kind == "i"
    by_hand = Counter(rows.select("task", "label", "sky").drop_nulls().rows())
    columns = counts.schema.columns[0].categories
    cells = counts.statistics.feature_counts.reshape(len(counts.tasks), 5, len(columns))
    for (task, label, sky), n in by_hand.items():
        assert cells[counts.tasks.tolist().index(task), int(label) + 2, columns.index(sky)] == n
    assert cells.sum() == sum(by_hand.values())


def test_categories_edges_and_choices_of_the_user_are_kept():
    rows = make_rows()
    options = {"bins": {"size": [-1.0, 0.5, 99.0, 100.0], "few": 3, "many": 5}}
    features = ["size", "few", "many", "odd"]
    assert_same(
        count_rows(rows, label="label", task="task", features=features, batch_rows=90, **options),
        read_whole(rows, features=features, **options),
    )
    options = {"bins": 1}
    assert_same(
        count_rows(rows, label="label", task="task", features=features, batch_rows=90, **options),
        read_whole(rows, features=features, **options),
    )
    options = {"categorical_features": ["many", "half"], "bins": 3}
    features = ["many", "half", "gaps"]
    assert_same(
        count_rows(rows, label="label", task="task", features=features, batch_rows=90, **options),
        read_whole(rows, features=features, **options),
    )
    given = {"sky": ["red", "green", "grün", "only here", "blue"], "many": list(range(400))[::-1]}
    counts = count_rows(rows, label="label", task="task", features=["sky", "many"], categories=given)
    sky = rows["sky"].cast(pl.Enum(given["sky"]))
    many = rows["many"].cast(pl.String).cast(pl.Enum([str(i) for i in given["many"]]))
    declared = read_whole(rows.with_columns(sky, many), features=["sky", "many"])
    assert counts.schema.columns[0].categories == tuple(given["sky"])
    assert counts.schema.columns[1].categories == tuple(given["many"])
    np.testing.assert_array_equal(counts.statistics.feature_counts, declared._result.data.statistics.feature_counts)


def test_all_other_columns_are_features_and_keep_the_order_of_the_table():
    rows = make_rows().select("sky", "task", "label", "yes", "weight")
    counts = count_rows(rows, label="label", task="task", weight="weight")
    assert counts.features == ["sky", "yes"]
    assert counts.columns == ("sky", "task", "yes")
    assert repr(counts) == (
        f"Counts(1,000 rows ({rows['label'].null_count()} without a label), 13 tasks, 3 labels, 2 features)"
    )


def test_a_label_may_mark_rows_without_one():
    rows = make_rows()
    for marked, mark in (("label", "no"), ("few", 3), ("yes", False), ("kind", "a")):
        counts = count_rows(rows, label=marked, task="task", features=["sky"], unlabelled=mark)
        assert mark not in counts.classes.tolist()
        assert counts.n_unlabelled == rows.filter(pl.col(marked).is_null() | (pl.col(marked) == mark)).height


@pytest.mark.parametrize("weight", [None, "weight"])
def test_the_sample_of_rows_is_one_of_the_labelled_rows_that_count(weight):
    rows = make_rows().filter(pl.col("sky").is_not_null())
    counts = count_rows(rows, label="label", task="task", weight=weight, features=FEATURES, sample_rows=10_000)
    model = read_whole(rows, weight=weight)
    whole = np.concatenate(
        [model._result.rows.codes, model._result.rows.labels[:, None], model._result.rows.task[:, None]], axis=1
    )
    kept = np.concatenate([counts.rows.codes, counts.rows.labels[:, None], counts.rows.task[:, None]], axis=1)
    np.testing.assert_array_equal(kept, whole)
    if weight is not None:
        np.testing.assert_array_equal(counts.rows.weights, model._result.rows.weights)
    some = count_rows(rows, label="label", task="task", weight=weight, features=FEATURES, sample_rows=100).rows
    assert 50 < len(some.labels) <= 100
    assert set(map(bytes, some.codes)) <= set(map(bytes, counts.rows.codes))
    assert not len(count_rows(rows, label="label", task="task", sample_rows=0).rows.labels)


def test_no_more_rows_than_asked_for_are_held(monkeypatch):
    sizes = []
    add = counting.GrowingTables.add

    def noted(tables, batch, again=False):
        sizes.append(len(batch.task))
        add(tables, batch, again)

    monkeypatch.setattr(counting.GrowingTables, "add", noted)
    count_rows(make_rows(), label="label", task="task", batch_rows=64)
    assert max(sizes) <= 64
    assert sum(sizes) == 2 * N_ROWS  # once for categories, once for bins


def test_more_rows_than_32_bits_count_are_counted_in_64(monkeypatch):
    monkeypatch.setattr(counting, "_MOST_32_BIT_ROWS", 500)
    rows = make_rows()
    counts = count_rows(rows, label="label", task="task", features=FEATURES, batch_rows=100)
    assert counts.statistics.feature_counts.dtype == np.int64
    assert_same(counts, read_whole(rows))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=True, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0, 2.0]), st.integers(0, 4)
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 9),
    st.booleans(),
)
def test_edges_found_in_passes_are_quantiles_of_the_sorted_values(drawn, n_bins, weighted):
    numbers = np.array([value for value, _ in drawn])
    weights = np.array([float(weight) for _, weight in drawn]) if weighted else np.empty(0)
    repeated = np.repeat(numbers, weights.astype(int)) if weighted else numbers
    ordered = np.sort(repeated[~np.isnan(repeated)])
    if not len(ordered):
        return
    search = QuantileSearch(n_bins)
    for _ in range(N_PASSES):
        for half in (slice(None, len(numbers) // 2), slice(len(numbers) // 2, None)):
            if len(numbers[half]):
                search.add(numbers[half], weights[half] if weighted else weights)
        search.narrow()
    # The least value that at least k / n of all are not above.
    wanted = {ordered[-(-k * len(ordered) // n_bins) - 1] for k in range(1, n_bins)}
    assert search.edges.tolist() == sorted({value + 0.0 for value in wanted if value < ordered[-1]})


def damaged(folder, how):
    path = folder / "rows.parquet"
    make_rows().write_parquet(path)
    whole = path.read_bytes()
    if how == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "holed":
        path.write_bytes(whole[:100] + bytes(len(whole) // 3) + whole[100 + len(whole) // 3 :])
    else:
        path.write_bytes(b"rows of no known kind")
    return path


@pytest.mark.parametrize("how", ["cut", "holed", "other"])
def test_a_corrupt_file_gets_one_sentence(how, tmp_path):
    with pytest.raises(ValueError, match=r"rows\.parquet cannot be read as a Parquet table: [^\n]+$"):
        count_rows(damaged(tmp_path, how), label="label", task="task")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.parquet"):
        count_rows(tmp_path / "nowhere.parquet", label="label", task="task")
    with pytest.raises(ValueError, match=r"rows\.xlsx is not a kind of table that is known: \.csv, .* are read$"):
        count_rows(tmp_path / "rows.xlsx", label="label", task="task")
    with pytest.raises(TypeError, match="not in list"):
        count_rows([1], label="label", task="task")


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {},
            {"label": "lable"},
            r"^column 'lable' is not in the table \(did you mean 'label'\?\): its columns are sky",
        ),
        ({}, {"features": ["sky", "skies"]}, "^column 'skies' is not in the table"),
        ({}, {"features": ["sky", "label"]}, "^column 'label' was given as label and as feature"),
        ({}, {"features": []}, "^the table has no feature beside 'task', 'label': one is needed$"),
        ({"label": pl.lit(None, pl.String)}, {}, "^label column 'label' has no label in any row"),
        ({"label": pl.lit(None)}, {}, "^label column 'label' has no label in any row"),
        (
            {"label": pl.col("size")},
            {},
            "^label column 'label' holds .*: labels are text, true/false or whole numbers$",
        ),
        ({"task": pl.col("many")}, {}, r"^task column 'task', row \d+: a task is missing, every row needs one$"),
        ({"sky": pl.date(2020, 1, 1)}, {}, "^column 'sky' of the table holds Date: turn it into text"),
        ({"size": pl.lit(np.inf)}, {}, "^column 'size', row 0: infinity is not a value to learn from$"),
        ({"size": pl.when(pl.int_range(pl.len()) == 700).then(np.inf).otherwise("size")}, {}, "'size', row 700: inf"),
        ({}, {"categories": {"sky": ["red", "blue"]}}, "^column 'sky' holds 'grün', which is not among the categories"),
        ({}, {"categories": {"few": range(40)}}, "^column 'few' holds 40, which is not among the categories"),
        ({}, {"categories": {"sky": ["red", "red"]}}, "^categories of column 'sky' must be from 1 to 65,536 different"),
        ({}, {"categories": {"sky": "red"}}, "^categories of column 'sky' must be a list of values, not 'red'$"),
        ({}, {"categories": {"skies": []}}, "^categories names column 'skies', which is not a feature$"),
        ({}, {"bins": 0}, "^bins=0: a whole number of at least 1 is needed"),
        ({}, {"bins": {"size": [2.0, 1.0]}}, "^column 'size': bins=.* is neither a number of at least 1 nor edges"),
        ({}, {"bins": {"sky": 3}}, "^column 'sky' holds text: it has no bins"),
        ({}, {"bins": {"few": 3}, "categories": {"few": [1]}}, "^column 'few' has both categories and bins"),
        ({}, {"categorical_features": "sky"}, "^categorical_features='sky': give \"auto\" or a list of columns$"),
        ({}, {"unlabelled": 3}, "^unlabelled=3 cannot stand in label column 'label', of type String$"),
        ({}, {"batch_rows": 0}, "^batch_rows=0: a whole number of at least 1 is needed$"),
        ({}, {"sample_rows": -1}, "^sample_rows=-1: a whole number of at least 0 is needed$"),
        ({"weight": pl.lit(0.0)}, {"weight": "weight"}, "^weight column 'weight' is zero in every row with a label"),
        ({"weight": pl.lit(-1.0)}, {"weight": "weight"}, r"^weight column 'weight', row 0: -1.0 is not a weight"),
        (
            {"weight": pl.lit(None, pl.Int8)},
            {"weight": "weight"},
            "^weight column 'weight', row 0: nan is not a weight",
        ),
        ({}, {"weight": "sky"}, "^weight column 'sky' holds String values: weights are numbers$"),
    ],
)
def test_input_that_cannot_be_counted_gets_one_sentence(change, options, message):
    rows = make_rows().with_columns(**change)
    options = {"label": "label", "task": "task", "batch_rows": 300, **options}
    with pytest.raises(ValueError, match=message) as caught:
        count_rows(rows, **options)
    assert "\n" not in str(caught.value)


def test_tables_without_rows_and_with_too_many_values_get_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"^the table has no rows$"):
        count_rows(make_rows().head(0), label="label", task="task")
    many = pl.DataFrame({"task": 0, "label": ["a", "b"] * 35_000, "name": [f"n{i}" for i in range(70_000)]})
    with pytest.raises(ValueError, match=r"^column 'name' has more than 65,536 different values: too many"):
        count_rows(many, label="label", task="task")
    numbers = many.with_columns(name=pl.int_range(pl.len()))
    with pytest.raises(ValueError, match=r"^column 'name' has more than 65,536 different values: too many"):
        count_rows(numbers, label="label", task="task", categorical_features=["name"])
    crowd = pl.DataFrame(
        {"task": np.arange(60_000), "label": ["a", "b"] * 30_000, "name": [f"n{i}" for i in range(60_000)]}
    )
    with pytest.raises(ValueError, match=r"tasks times .* counts each are too many to hold"):
        count_rows(crowd, label="label", task="task")
    twice = tmp_path / "twice.csv"
    twice.write_text("task,label,x,x\n1,a,2,3\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"twice\.csv has 2 columns named 'x': every column needs a name of its own$"):
        count_rows(twice, label="label", task="task")


# What getrusage tells begins at the peak of the process that started this one.
PEAK = """
import re, sys
from pathlib import Path
import numpy as np
import polars as pl
from kinfolk.tasks.streaming.scanning import scan
rows = np.arange(50_000, 40_000_000, 100_000)
assert scan(sys.argv[1]).take([pl.all()], rows, 1 << 16)["f0"].to_list() == (rows % 2_000_000).tolist()
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text("ascii"))[1]) / 2**20)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
def test_a_sample_of_a_large_table_does_not_hold_the_table(tmp_path):
    row = pl.int_range(2_000_000, eager=True)
    pl.DataFrame({f"f{i}": row + i for i in range(10)}).write_parquet(tmp_path / "0.parquet")
    for i in range(1, 20):
        os.link(tmp_path / "0.parquet", tmp_path / f"{i}.parquet")
    told = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path)], check=True, stdout=subprocess.PIPE, text=True)
    # All rows are 3 GiB.
    assert float(told.stdout) < 1.2
