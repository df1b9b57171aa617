"""Counts of features and labels per task: against counting by hand, and that they add up."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.statistics import Layout, Rows, count, positions, union

quick = settings(deadline=None, max_examples=40)
N_VALUES = (3, 2)
LAYOUT = Layout(2, np.array(N_VALUES))
rows_of_two_tasks = st.lists(
    st.tuples(
        st.integers(-1, 2), st.integers(-1, 1), st.integers(-1, 1), st.integers(0, 1), st.sampled_from([1.0, 2.0])
    ),
    max_size=12,
)


def as_rows(drawn, weighted=True):
    table = np.array(drawn, dtype=float).reshape(len(drawn), 5)
    codes, labels, task = table[:, :2].astype(np.int32), table[:, 2].astype(np.int32), table[:, 3].astype(np.int64)
    return Rows(codes, labels, task, table[:, 4] if weighted else None)


def counted_by_hand(drawn, scale=1.0):
    features, labels = Counter(), Counter()
    for x0, x1, y, u, w in drawn:
        if y >= 0:
            labels[u, y] += w * scale
            for f, x in enumerate((x0, x1)):
                if x >= 0:
                    features[u, y, f, x] += w * scale
    return features, labels


@quick
@given(rows_of_two_tasks)
def test_counts_are_those_of_a_loop_over_labelled_rows_and_present_values(drawn):
    found = count(as_rows(drawn), LAYOUT, np.array([10, 20]))
    features, labels = counted_by_hand(drawn)
    for u in range(2):
        for y in range(2):
            assert found.label_counts[u, y] == labels[u, y]
            for f in range(2):
                for x in range(N_VALUES[f]):
                    cell = y * LAYOUT.width + LAYOUT.offsets[f] + x
                    assert found.feature_counts[u, cell] == features[u, y, f, x]


@quick
@given(rows_of_two_tasks, rows_of_two_tasks)
def test_statistics_of_two_shards_add_up_to_those_of_both(first, second):
    tasks = np.array(["ann", "bob"])
    both = count(as_rows(first + second), LAYOUT, tasks)
    added = count(as_rows(first), LAYOUT, tasks) + count(as_rows(second), LAYOUT, tasks)
    np.testing.assert_array_equal(added.feature_counts, both.feature_counts)
    np.testing.assert_array_equal(added.label_counts, both.label_counts)
    assert added.tasks.tolist() == ["ann", "bob"]


def test_adding_keeps_the_tasks_that_only_one_shard_has_in_sorted_order():
    row = (0, 0, 1, 0, 1.0)
    added = count(as_rows([row]), LAYOUT, np.array(["zoe"])) + count(as_rows([row, row]), LAYOUT, np.array(["ann"]))
    assert added.tasks.tolist() == ["ann", "zoe"]
    assert added.label_counts.tolist() == [[0, 2], [0, 1]]


def test_statistics_of_different_schemas_do_not_add_up():
    one = count(as_rows([]), LAYOUT, np.array([1]))
    other = count(Rows(np.empty((0, 1), np.int32), *as_rows([])[1:]), Layout(2, np.array([3])), np.array([1]))
    with pytest.raises(ValueError, match="different schemas do not add up"):
        one + other


def test_whole_weights_are_counted_in_integers_and_others_in_floats():
    row = (0, 0, 1, 0, 2.0)
    assert count(as_rows([row]), LAYOUT, np.array([1])).feature_counts.dtype.kind == "i"
    halves = as_rows([row])._replace(weights=np.array([0.5]))
    assert count(halves, LAYOUT, np.array([1])).label_counts.tolist() == [[0, 0.5]]


@pytest.mark.parametrize("weights", [[3e9], [2.0**31 - 1, 1.0]])
def test_whole_weights_beyond_32_bits_are_counted_right(weights):
    rows = as_rows([(0, 0, 1, 0, 1.0)] * len(weights))._replace(weights=np.array(weights))
    found = count(rows, LAYOUT, np.array([1]))
    assert found.label_counts.tolist() == [[0, sum(weights)]]
    assert found.feature_counts.sum() == 2 * sum(weights)


def test_sums_of_counts_beyond_32_bits_are_right():
    rows = as_rows([(0, 0, 1, 0, 2.0**31 - 1)])
    one, other = (count(rows, LAYOUT, np.array([task])) for task in ("ann", "bob"))
    assert (one + one).label_counts.tolist() == [[0, 2**32 - 2]]
    assert (one + other).pooled().label_counts.tolist() == [[0, 2**32 - 2]]


def test_pooling_makes_one_task_of_all():
    rows = as_rows([(0, 0, 1, 0, 1.0), (2, 1, 1, 1, 1.0)])
    pooled = count(rows, LAYOUT, np.array(["ann", "bob"])).pooled()
    assert pooled.label_counts.tolist() == [[0, 2]]
    assert pooled.feature_counts.shape == (1, LAYOUT.n_cells)


def test_groups_of_cells_follow_label_then_feature():
    assert LAYOUT.offsets.tolist() == [0, 3, 5]
    assert LAYOUT.group_start.tolist() == [0, 3, 5, 8, 10]
    assert (LAYOUT.width, LAYOUT.n_cells) == (5, 10)


def test_more_counts_than_memory_should_hold_are_refused():
    wide = Layout(2, np.array([1 << 20]))
    with pytest.raises(ValueError, match=r"^1,000 tasks times 2,097,152 counts each are too many to hold: .*needed$"):
        count(Rows(np.empty((0, 1), np.int32), *as_rows([])[1:]), wide, np.arange(1000))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "i"),
        (["a", "b"], "U"),
        ([True, False], "b"),
        (["a", 1], "O"),
        ([True, 2], "O"),
        ([(1, 2), (3, 4)], "O"),
        ([0.5, 1.0], "f"),
        ([(1, 2), (3,)], "O"),
    ],
    ids=str,
)
def test_ids_are_plain_arrays_where_all_are_of_one_plain_type(values, kind):
    ids = as_ids(values)
    assert ids.dtype.kind == kind
    assert ids.tolist() == values
    assert [type(v) for v in ids.tolist()] == [type(v) for v in values]


def test_ids_of_two_arrays_are_joined_sorted_and_found_again():
    joined = union(np.array(["b", "d"]), np.array(["a", "d"]))
    assert joined.tolist() == ["a", "b", "d"]
    assert positions(np.array(["d", "a"]), joined).tolist() == [2, 0]
