"""What each task-aware splitter promises, on random tables and inside scikit-learn's own tools."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

from kinfolk.tasks.selection.splitters import FewPerTask, LeaveTasksOut, OneTaskFew, TaskKFold

rows = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from([0, 1, 1, 2, None])), max_size=40)
# One large task and three of a single row make every request below one that can be met.
ENOUGH = [*(("f", label) for label in [0, 1, 1, 0, 1, 0, 1, 1, 2]), ("g", 0), ("h", 1), ("i", 1)]
tables = rows.flatmap(lambda some: st.randoms().map(lambda chance: chance.sample(some + ENOUGH, len(some + ENOUGH))))
seeds = st.integers(0, 100)
splitters = st.one_of(
    st.builds(FewPerTask, st.integers(1, 6), st.integers(1, 3), random_state=seeds),
    st.builds(OneTaskFew, st.integers(0, 6), st.integers(1, 3), random_state=seeds),
    st.builds(LeaveTasksOut, st.integers(1, 3), st.none() | st.integers(1, 3), random_state=seeds),
    st.builds(TaskKFold, st.integers(2, 6), st.just(True), random_state=seeds),
    st.builds(TaskKFold, st.integers(2, 6), st.just(False)),
)
EVERY = [
    FewPerTask(2, 3, random_state=5),
    OneTaskFew(2, 3, random_state=5),
    LeaveTasksOut(2, random_state=5),
    LeaveTasksOut(2, 3, random_state=5),
    TaskKFold(3, random_state=5),
]
quick = settings(max_examples=60, deadline=None)


class Majority(DummyClassifier):
    """A model that does not mind missing labels."""

    def fit(self, X, y):
        return super().fit(X, np.nan_to_num(y))


def columns(table):
    task = np.array([task for task, _ in table])
    y = np.array([label for _, label in table], dtype=object)
    return np.zeros((len(table), 1)), y, task, np.array([label is not None for label in y])


def example(seed=0, n_rows=60):
    rng = np.random.default_rng(seed)
    y = rng.choice(np.array([0, 1, None], dtype=object), n_rows)
    return np.zeros((n_rows, 1)), y, rng.choice(["ann", "bob", "cat", "dan"], n_rows)


def same_splits(some, others):
    some, others = list(some), list(others)
    assert len(some) == len(others)
    for (train, test), (other_train, other_test) in zip(some, others, strict=True):
        np.testing.assert_array_equal(train, other_train)
        np.testing.assert_array_equal(test, other_test)


@quick
@given(tables, splitters)
def test_every_split_parts_all_rows_and_tests_labelled_ones_only(table, splitter):
    X, y, task, labelled = columns(table)
    splits = list(splitter.split(X, y, task=task))
    assert len(splits) == splitter.get_n_splits(X, y, task=task)
    for train, test in splits:
        assert len(test) > 0
        assert sorted([*train, *test]) == list(range(len(table)))
        assert labelled[test].all()


@quick
@given(tables, splitters)
def test_the_same_random_state_gives_the_same_splits(table, splitter):
    X, y, task, _ = columns(table)
    same_splits(splitter.split(X, y, task=task), splitter.split(X, y, task=task))


@quick
@given(tables, st.integers(1, 6), seeds)
def test_few_per_task_trains_on_that_many_labelled_rows_of_each_task_or_all_there_are(table, k, seed):
    X, y, task, labelled = columns(table)
    available = Counter(task[labelled])
    for train, _ in FewPerTask(k, 3, random_state=seed).split(X, y, task=task):
        assert Counter(task[train][labelled[train]]) == {name: min(k, n) for name, n in available.items()}


@quick
@given(tables, st.integers(1, 4), seeds)
def test_few_per_task_nests_the_training_rows_of_k_in_those_of_twice_k(table, k, seed):
    X, y, task, _ = columns(table)
    twice = FewPerTask(2 * k, 3, random_state=seed).split(X, y, task=task)
    once = FewPerTask(k, 3, random_state=seed).split(X, y, task=task)
    for (few, _), (more, _) in zip(once, twice, strict=True):
        assert set(few) <= set(more)


@quick
@given(tables, st.integers(0, 5), seeds)
def test_one_task_few_hides_rows_of_one_task_only_and_visits_each_task_in_turn(table, k, seed):
    X, y, task, labelled = columns(table)
    splits = list(OneTaskFew(k, 2, random_state=seed).split(X, y, task=task))
    available = Counter(task[labelled])
    visited = [task[test][0] for _, test in splits]
    assert visited == [name for name in sorted(available) if available[name] > k for _ in range(2)]
    for (_, test), name in zip(splits, visited, strict=True):
        assert set(task[test]) == {name}
        assert len(test) == available[name] - k


def test_one_task_few_draws_the_examples_that_few_per_task_draws():
    X, y, task = example()
    everywhere = [set(train) for train, _ in FewPerTask(3, 4, random_state=1).split(X, y, task=task)]
    for i, (train, test) in enumerate(OneTaskFew(3, 4, random_state=1).split(X, y, task=task)):
        own = task == task[test][0]
        assert {row for row in train if own[row]} == {row for row in everywhere[i % 4] if own[row]}


def test_one_task_few_gives_no_split_to_a_task_too_small_to_test():
    task = np.repeat(["large", "small"], [5, 2])
    splits = list(OneTaskFew(2, 3, random_state=0).split(np.zeros((7, 1)), task=task))
    assert [set(task[test]) for _, test in splits] == [{"large"}] * 3


def test_each_row_of_a_task_is_drawn_equally_often_and_each_repeat_anew():
    task = np.repeat(["a", "b"], [4, 6])
    drawn = Counter(
        int(train[task[train] == "a"][0])
        for train, _ in FewPerTask(1, 2000, random_state=3).split(np.zeros((10, 1)), task=task)
    )
    assert stats.chisquare([drawn[row] for row in range(4)]).pvalue > 0.001


def test_what_is_drawn_from_one_task_says_nothing_about_another_of_the_same_size():
    task = np.repeat(["a", "b"], 3)
    pairs = Counter(
        tuple(train.tolist()) for train, _ in FewPerTask(1, 900, random_state=3).split(np.zeros((6, 1)), task=task)
    )
    assert stats.chisquare([pairs[i, 3 + j] for i in range(3) for j in range(3)]).pvalue > 0.001


@quick
@given(tables, st.integers(1, 3), seeds)
def test_leave_tasks_out_tests_each_task_once_and_whole(table, n_tasks, seed):
    X, y, task, labelled = columns(table)
    splits = list(LeaveTasksOut(n_tasks, random_state=seed).split(X, y, task=task))
    held_out = [sorted(set(task[test])) for _, test in splits]
    assert sorted(name for names in held_out for name in names) == sorted(set(task[labelled]))
    assert max(map(len, held_out)) <= n_tasks
    assert max(map(len, held_out)) - min(map(len, held_out)) <= 1
    for train, test in splits:
        assert not set(task[train][labelled[train]]) & set(task[test])


def test_leave_tasks_out_one_by_one_goes_through_them_in_sorted_order():
    X, y, task = example()
    assert [set(task[test]) for _, test in LeaveTasksOut().split(X, y, task=task)] == [
        {"ann"},
        {"bob"},
        {"cat"},
        {"dan"},
    ]


def test_leave_tasks_out_draws_every_pair_of_tasks_when_asked_for_many_random_splits():
    X, y, task = example()
    splits = LeaveTasksOut(2, 200, random_state=0).split(X, y, task=task)
    assert len({tuple(sorted(set(task[test]))) for _, test in splits}) == 6


def test_leave_tasks_out_keeps_the_unlabelled_rows_of_a_held_out_task_in_training():
    task = np.array(["a", "a", "b", "c"])
    y = np.array([1.0, np.nan, 0.0, np.nan])
    splits = [(train.tolist(), test.tolist()) for train, test in LeaveTasksOut().split(np.zeros((4, 1)), y, task=task)]
    assert splits == [([1, 2, 3], [0]), ([0, 1, 3], [2])]


@quick
@given(tables, st.integers(2, 6), st.booleans(), seeds)
def test_task_k_fold_tests_each_row_once_evenly_by_task_and_by_label_within_it(table, n_splits, shuffle, seed):
    X, y, task, labelled = columns(table)
    splits = list(TaskKFold(n_splits, shuffle, random_state=seed).split(X, y, task=task))
    available = Counter(task[labelled])
    testable = [row for row in np.flatnonzero(labelled) if available[task[row]] > 1]
    assert sorted(row for _, test in splits for row in test) == testable
    for name in set(task[testable]):
        of_task = [(task[test] == name).sum() for _, test in splits]
        assert max(of_task) - min(of_task) <= 1
        for label in (0, 1, 2):
            of_label = [((task[test] == name) & (y[test] == label)).sum() for _, test in splits]
            assert max(of_label) - min(of_label) <= 1


def test_task_k_fold_puts_an_even_spread_within_a_task_before_one_over_all_tasks():
    task, y = np.array(list("aabbb")), np.array([1, 0, 1, 1, 0])
    for _, test in TaskKFold(2, shuffle=False).split(np.zeros((5, 1)), y, task=task):
        assert (y[test][task[test] == "b"] == 1).sum() == 1


@quick
@given(tables, st.integers(2, 6), st.booleans(), seeds)
def test_task_k_fold_never_tests_a_task_without_labelled_rows_to_train_on(table, n_splits, shuffle, seed):
    X, y, task, labelled = columns(table)
    for train, test in TaskKFold(n_splits, shuffle, random_state=seed).split(X, y, task=task):
        assert set(task[test]) <= set(task[train][labelled[train]])


def test_task_k_fold_mixes_the_labels_of_tasks_with_one_row_each():
    task, y = np.repeat(np.arange(10), 2), np.tile([0, 1], 10)
    for _, test in TaskKFold(2, shuffle=False).split(np.zeros((20, 1)), y, task=task):
        assert Counter(y[test]) == {0: 5, 1: 5}


@pytest.mark.parametrize("shuffle", [True, False])
def test_task_k_fold_leaves_no_fold_empty_where_tasks_are_smaller_than_their_number(shuffle):
    splits = TaskKFold(5, shuffle).split(np.zeros((6, 1)), [0, 1] * 3, task=list("aabbcc"))
    assert sorted(len(test) for _, test in splits) == [1, 1, 1, 1, 2]


def test_unshuffled_k_fold_of_scikit_learn_tests_unseen_tasks_on_a_sorted_table():
    X, task = np.zeros((20, 1)), np.repeat(list("abcde"), 4)
    for train, test in KFold(5).split(X):
        assert not set(task[test]) & set(task[train])


def test_task_k_fold_shuffles_unless_told_not_to():
    X, task = np.zeros((40, 1)), np.repeat(["a", "b"], 20)
    same_splits(TaskKFold(shuffle=False).split(X, task=task), TaskKFold(shuffle=False).split(X, task=task))
    one, other = (next(TaskKFold(random_state=seed).split(X, task=task))[1] for seed in (0, 1))
    assert one.tolist() != other.tolist()


def test_task_k_fold_lets_chance_put_any_two_rows_of_a_task_together():
    X, task = np.zeros((20, 1)), np.repeat("a", 20)
    firsts = [next(TaskKFold(random_state=seed).split(X, task=task))[1] for seed in range(300)]
    together = [(row, other) for test in firsts for row in test for other in test if row < other]
    assert len(set(together)) == 20 * 19 / 2


@pytest.mark.parametrize("splitter", EVERY, ids=repr)
def test_a_named_integer_marks_unlabelled_rows_like_none_does(splitter):
    X, y, task = example()
    marked = np.where(np.equal(y, None), -1, y).astype(int)
    same_splits(
        clone(splitter, safe=False).split(X, y, task=task),
        type(splitter)(**{**vars(splitter), "unlabelled": -1}).split(X, marked, task=task),
    )


@pytest.mark.parametrize("splitter", EVERY, ids=repr)
def test_without_labels_every_row_counts_as_labelled(splitter):
    X, _, task = example()
    same_splits(splitter.split(X, task=task), splitter.split(X, np.zeros(len(X)), task=task))


@pytest.mark.parametrize("splitter", EVERY, ids=repr)
@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_a_task_column_gives_the_splits_of_the_same_tasks_given_by_hand(splitter, kind):
    X, y, task = example()
    table = {
        "pandas": pd.DataFrame({"x": X[:, 0], "user": task}),
        "polars": pl.DataFrame({"x": X[:, 0], "user": task}),
        "array": np.column_stack([X.astype(object), task]),
    }[kind]
    by_column = type(splitter)(**{**vars(splitter), "task_column": 1 if kind == "array" else "user"})
    same_splits(by_column.split(table, y), splitter.split(X, y, task=task))
    assert by_column.get_n_splits(table, y) == splitter.get_n_splits(X, y, task=task)


@pytest.mark.parametrize("splitter", EVERY, ids=repr)
def test_where_the_tasks_blocks_stand_in_the_table_does_not_change_what_is_drawn(splitter):
    _, y, task = example()
    order = np.concatenate([np.flatnonzero(task == name) for name in ["cat", "ann", "dan", "bob"]])
    sorted_by_task = np.argsort(task, kind="stable")
    X = np.zeros((len(task), 1))
    one = [set(order[test]) for _, test in splitter.split(X, y[order], task=task[order])]
    other = [set(sorted_by_task[test]) for _, test in splitter.split(X, y[sorted_by_task], task=task[sorted_by_task])]
    assert one == other


def test_splits_do_not_depend_on_the_hash_seed():
    code = (
        "import numpy as np\n"
        "from kinfolk.tasks.selection.splitters import *\n"
        "task = np.array(['ann', 'bob', 3, ('c', 1)], dtype=object)[np.arange(40) % 4]\n"
        "y = np.array(['yes', 'no', 'maybe'])[np.arange(40) % 3]\n"
        "for s in (FewPerTask(2, 2, random_state=0), OneTaskFew(2, 2, random_state=0),\n"
        "          LeaveTasksOut(2, random_state=0), TaskKFold(random_state=0)):\n"
        "    print([test.tolist() for _, test in s.split(np.zeros((40, 1)), y, task=task)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("splitter", EVERY, ids=repr)
def test_cross_validate_passes_the_task_by_routing_or_as_groups_alike(splitter):
    X, y, task = example()
    y = np.where(np.equal(y, None), np.nan, y).astype(float)
    asked = {"cv": splitter, "return_indices": True, "error_score": "raise"}
    expected = [test for _, test in splitter.split(X, y, task=task)]
    runs = [cross_validate(Majority(), X, y, groups=task, **asked)]
    with sklearn.config_context(enable_metadata_routing=True):
        runs.append(cross_validate(Majority(), X, y, params={"task": task}, **asked))
        runs.append(cross_validate(Majority(), X, y, params={"groups": task}, **asked))
    for run in runs:
        for found, wanted in zip(run["indices"]["test"], expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("splitter", EVERY, ids=repr)
def test_grid_search_counts_as_many_splits_as_it_is_given(splitter):
    X, y, task = example()
    y = np.where(np.equal(y, None), np.nan, y).astype(float)
    n_splits = splitter.get_n_splits(X, y, task=task)
    grid = {"strategy": ["prior", "most_frequent"]}
    searches = [GridSearchCV(Majority(), grid, cv=splitter).fit(X, y, groups=task)]
    with sklearn.config_context(enable_metadata_routing=True):
        searches.append(GridSearchCV(Majority(), grid, cv=splitter).fit(X, y, task=task))
    assert [search.n_splits_ for search in searches] == [n_splits, n_splits]


def test_a_splitter_with_a_task_column_does_not_ask_for_the_task_that_others_are_given():
    X = np.column_stack([np.arange(12) % 3, np.zeros(12)])
    with sklearn.config_context(enable_metadata_routing=True):
        requests = TaskKFold(task_column=0).get_metadata_routing().split.requests
        assert requests["task"] is False
        assert TaskKFold().get_metadata_routing().split.requests["task"] is True
    assert len(list(TaskKFold(2, task_column=0).split(X))) == 2


@pytest.mark.parametrize("splitter", EVERY, ids=repr)
def test_the_repr_shows_the_parameters_that_rebuild_the_splitter(splitter):
    assert vars(eval(repr(splitter))) == vars(splitter)


def test_a_random_state_object_moves_on_from_call_to_call():
    X, y, task = example()
    splitter = FewPerTask(2, 1, random_state=np.random.RandomState(0))
    one, other = (next(splitter.split(X, y, task=task))[0] for _ in range(2))
    assert one.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("splitter", "message"),
    [
        (FewPerTask(0), "n_examples=0: a whole number of at least 1 is needed"),
        (FewPerTask(2.5), "n_examples=2.5: a whole number of at least 1 is needed"),
        (FewPerTask(2, n_splits=0), "n_splits=0: a whole number of at least 1 is needed"),
        (FewPerTask(5), "n_examples=5 leaves nothing to test, because no task has more than 4 labelled rows"),
        (OneTaskFew(-1), "n_examples=-1: a whole number of at least 0 is needed"),
        (OneTaskFew(4), "n_examples=4 leaves nothing to test"),
        (LeaveTasksOut(0), "n_tasks=0: a whole number of at least 1 is needed"),
        (LeaveTasksOut(1, n_splits=True), "n_splits=True: a whole number of at least 1 is needed"),
        (LeaveTasksOut(2), "n_tasks=2 leaves no task to train on, because only 2 have labels"),
        (TaskKFold(1), "n_splits=1: a whole number of at least 2 is needed"),
        (TaskKFold(5), "n_splits=5 folds need as many rows to test, but .* have only 4 together"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
def test_requests_that_cannot_be_met_are_refused_in_a_sentence(splitter, message):
    task, y = list("aaaabcc"), [1, 0, 1, 0, 1, None, None]
    with pytest.raises(ValueError, match=message):
        list(splitter.split(np.zeros((7, 1)), y, task=task))


@pytest.mark.parametrize("splitter", EVERY, ids=repr)
def test_rows_that_a_splitter_cannot_use_are_refused_before_the_first_split(splitter):
    X = np.zeros((3, 1))
    with pytest.raises(ValueError, match="task of each row must be given once"):
        splitter.split(X)
    with pytest.raises(ValueError, match="a label for each of the 3 rows of X, not 2"):
        splitter.split(X, [0, 1], task=list("aab"))
    with pytest.raises(ValueError, match="none of the 3 rows has a label"):
        splitter.split(X, [None] * 3, task=list("aab"))
