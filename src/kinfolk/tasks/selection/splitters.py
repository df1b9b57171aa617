"""Cross-validation that knows the tasks: few examples each, one task with few, whole tasks left out, folds.

scikit-learn's ``KFold`` does not shuffle unless told to. On a table sorted by task, which is how such tables
usually come, each of its folds is a block of whole tasks: it silently tests tasks that the model has never
seen, and makes every method that shares nothing look hopeless. `TaskKFold` tests known tasks, `LeaveTasksOut`
tests new ones, and each says which.

Every splitter here takes the task of each row in one of three ways: ``task=``, which scikit-learn passes on
where metadata routing is enabled (``cross_validate(..., params={"task": task})``); ``groups=``, its way
without routing; or the constructor's ``task_column=``. And all of them keep rows without a label in every
training set and out of every test set.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kinfolk.parameters import check_whole
from kinfolk.tasks.answering import expect_new
from kinfolk.tasks.selection.splitting import Indices, RowsByTask, TaskSplitter


class _FewExamples(TaskSplitter):
    """Draw a few labelled rows of a task to train on; what is drawn depends on the seed, repeat and task."""

    _fewest: int

    def __init__(
        self,
        n_examples: int,
        n_splits: int = 20,
        *,
        random_state: Any = None,
        task_column: int | str | None = None,
        unlabelled: int | str | None = None,
    ) -> None:
        self.n_examples = n_examples
        self.n_splits = n_splits
        self.random_state = random_state
        self.task_column = task_column
        self.unlabelled = unlabelled

    def _check(self) -> None:
        check_whole("n_examples", self.n_examples, self._fewest)
        check_whole("n_splits", self.n_splits, 1)

    def _read(self, X: Any, y: Any, groups: Any, task: Any) -> RowsByTask:
        table = super()._read(X, y, groups, task)
        largest = max(table.labelled, key=len)
        if len(largest) <= self.n_examples:
            raise ValueError(
                f"n_examples={self.n_examples} leaves nothing to test, because no task has more than "
                f"{len(largest)} labelled rows."
            )
        return table

    def _left_to_test(self, table: RowsByTask, task: int, seed: int, repeat: int) -> Indices:
        # The whole task is shuffled, however few rows are taken: that nests the examples.
        shuffled = np.random.default_rng([seed, repeat, task]).permutation(table.labelled[task])
        return shuffled[self.n_examples :]


class FewPerTask(_FewExamples):
    """Train on a few labelled examples of every task, test on all the others.

    For one `random_state` the training rows are nested: those of ``FewPerTask(8)`` in its third split include
    those of ``FewPerTask(4)`` in its third split, so that a learning curve compares like with like. A task
    with `n_examples` labelled rows or fewer gives them all to training.

    Parameters
    ----------
    n_examples : int
        Labelled rows of each task to train on.
    n_splits : int
        How often to draw them.
    random_state : int, RandomState or None
        An integer makes every call give the same splits, and only then are they nested.
    task_column : str or int, optional
        Name or position of the column of `X` that holds the task.
    unlabelled : int or str, optional
        A label that means "no label", besides ``None`` and NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.tasks.selection.splitters import FewPerTask
    >>> task = np.repeat(["ann", "bob"], [3, 4])
    >>> for train, test in FewPerTask(1, n_splits=2, random_state=0).split(np.zeros((7, 1)), task=task):
    ...     print(task[train], len(test))
    ['ann' 'bob'] 5
    ['ann' 'bob'] 5
    """

    _fewest = 1

    def _test_rows(self, table: RowsByTask) -> Iterator[Indices]:
        seed = self._seed()
        for repeat in range(self.n_splits):
            yield np.concatenate([self._left_to_test(table, task, seed, repeat) for task in range(len(table.tasks))])


class OneTaskFew(_FewExamples):
    """Train on a few labelled examples of one task and all of every other's; test on the rest of that task.

    This is how Roy and Kaelbling measure transfer: a user with few data, while everybody else is known. There is
    one split for each task and each repeat: all repeats of the first task in sorted order, then of the next,
    so that scores reshape to ``(-1, n_splits)``. A task with `n_examples` labelled rows or fewer has nothing
    left to test and gets no split. Training rows are nested as those of `FewPerTask`, with the same draws.

    Parameters
    ----------
    n_examples : int
        Labelled rows of the one task to train on; with 0, not one of its labels is known.
    n_splits : int
        How often to draw them for each task.
    random_state : int, RandomState or None
        An integer makes every call give the same splits, and only then are they nested.
    task_column : str or int, optional
        Name or position of the column of `X` that holds the task.
    unlabelled : int or str, optional
        A label that means "no label", besides ``None`` and NaN.

    References
    ----------
    D. M. Roy and L. P. Kaelbling, "Efficient Bayesian task-level transfer learning", IJCAI 2007, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.tasks.selection.splitters import OneTaskFew
    >>> task = np.repeat(["ann", "bob"], [3, 4])
    >>> for train, test in OneTaskFew(1, n_splits=1, random_state=0).split(np.zeros((7, 1)), task=task):
    ...     print(task[train], task[test])
    ['ann' 'bob' 'bob' 'bob' 'bob'] ['ann' 'ann']
    ['ann' 'ann' 'ann' 'bob'] ['bob' 'bob' 'bob']
    """

    _fewest = 0

    def _count(self, X: Any, y: Any, groups: Any, task: Any) -> int:
        return int(self.n_splits) * len(self._testable(self._read(X, y, groups, task)))

    def _testable(self, table: RowsByTask) -> list[int]:
        return [task for task, rows in enumerate(table.labelled) if len(rows) > self.n_examples]

    def _test_rows(self, table: RowsByTask) -> Iterator[Indices]:
        seed = self._seed()
        for task in self._testable(table):
            for repeat in range(self.n_splits):
                yield self._left_to_test(table, task, seed, repeat)


class LeaveTasksOut(TaskSplitter):
    """Hold whole tasks out: how well is a task predicted before its first label?

    A task whose rows all lack labels is never held out, since nothing could be tested. The unlabelled rows of
    a held-out task stay in training like all others; drop them first to test tasks that are new altogether.

    Parameters
    ----------
    n_tasks : int
        How many tasks to hold out at a time.
    n_splits : int, optional
        How often to draw them at random. Without it each task is held out exactly once: one by one in sorted
        order where `n_tasks` is 1, else in random groups of at most `n_tasks`, as equal as can be.
    random_state : int, RandomState or None
        An integer makes every call give the same splits.
    task_column : str or int, optional
        Name or position of the column of `X` that holds the task.
    unlabelled : int or str, optional
        A label that means "no label", besides ``None`` and NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.tasks.selection.splitters import LeaveTasksOut
    >>> task = np.array(["ann", "bob", "cat", "ann"])
    >>> for train, test in LeaveTasksOut().split(np.zeros((4, 1)), task=task):
    ...     print(task[train], task[test])
    ['bob' 'cat'] ['ann' 'ann']
    ['ann' 'cat' 'ann'] ['bob']
    ['ann' 'bob' 'ann'] ['cat']
    """

    def __init__(
        self,
        n_tasks: int = 1,
        n_splits: int | None = None,
        *,
        random_state: Any = None,
        task_column: int | str | None = None,
        unlabelled: int | str | None = None,
    ) -> None:
        self.n_tasks = n_tasks
        self.n_splits = n_splits
        self.random_state = random_state
        self.task_column = task_column
        self.unlabelled = unlabelled

    def _check(self) -> None:
        check_whole("n_tasks", self.n_tasks, 1)
        if self.n_splits is not None:
            check_whole("n_splits", self.n_splits, 1)

    def _count(self, X: Any, y: Any, groups: Any, task: Any) -> int:
        if self.n_splits is not None:
            return int(self.n_splits)
        return self._n_groups(self._testable(self._read(X, y, groups, task)))

    def _testable(self, table: RowsByTask) -> list[Indices]:
        tasks = [rows for rows in table.labelled if len(rows)]
        if len(tasks) <= self.n_tasks:
            raise ValueError(
                f"n_tasks={self.n_tasks} leaves no task to train on, because only {len(tasks)} have labels."
            )
        return tasks

    def _n_groups(self, tasks: list[Indices]) -> int:
        return -(-len(tasks) // self.n_tasks)

    def _test_rows(self, table: RowsByTask) -> Iterator[Indices]:
        tasks = self._testable(table)
        expect_new(table.tasks)
        rng = np.random.default_rng(self._seed())
        if self.n_splits is not None:
            groups = [rng.permutation(len(tasks))[: self.n_tasks] for _ in range(self.n_splits)]
        else:
            order = np.arange(len(tasks)) if self.n_tasks == 1 else rng.permutation(len(tasks))
            groups = np.array_split(order, self._n_groups(tasks))
        for group in groups:
            yield np.concatenate([tasks[task] for task in group])


class TaskKFold(TaskSplitter):
    """Spread the labelled rows of every task evenly over folds, so that no fold tests a task without training rows.

    Within a task, the sizes of any two folds differ by one row at most, and so do their counts of each label.
    What is left over goes to the folds with fewest rows so far, and among those to the ones with fewest rows
    of that label. A task with fewer labelled rows than folds is tested in as many folds as it has rows; one
    with a single labelled row is never tested, because there would be nothing of it to train on.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    shuffle : bool
        Whether chance decides which rows of a task and label go where; otherwise their order does.
    random_state : int, RandomState or None
        An integer makes every call give the same splits.
    task_column : str or int, optional
        Name or position of the column of `X` that holds the task.
    unlabelled : int or str, optional
        A label that means "no label", besides ``None`` and NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.tasks.selection.splitters import TaskKFold
    >>> task = np.repeat(["ann", "bob"], 4)
    >>> y = np.array([0, 0, 1, 1, 0, 1, 0, 1])
    >>> for train, test in TaskKFold(2, shuffle=False).split(np.zeros((8, 1)), y, task=task):
    ...     print(task[test], y[test])
    ['ann' 'ann' 'bob' 'bob'] [0 1 0 1]
    ['ann' 'ann' 'bob' 'bob'] [0 1 0 1]
    """

    def __init__(
        self,
        n_splits: int = 5,
        shuffle: bool = True,
        *,
        random_state: Any = None,
        task_column: int | str | None = None,
        unlabelled: int | str | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.task_column = task_column
        self.unlabelled = unlabelled

    def _check(self) -> None:
        check_whole("n_splits", self.n_splits, 2)

    def _test_rows(self, table: RowsByTask) -> Iterator[Indices]:
        tasks = [rows for rows in table.labelled if len(rows) > 1]
        n_testable = sum(map(len, tasks))
        if n_testable < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} folds need as many rows to test, but the tasks with two labelled "
                f"rows or more have only {n_testable} together."
            )
        rng = np.random.default_rng(self._seed()) if self.shuffle else None
        in_fold = np.zeros(self.n_splits, dtype=np.intp)
        label_in_fold = np.zeros((table.labels.max() + 1, self.n_splits), dtype=np.intp)
        fold_of = np.full(table.n_rows, -1)
        for rows in tasks:
            _deal(rows, table.labels, in_fold, label_in_fold, rng, fold_of)
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of == fold)


def _deal(
    rows: Indices,
    labels: Indices,
    in_fold: Indices,
    label_in_fold: Indices,
    rng: np.random.Generator | None,
    fold_of: Indices,
) -> None:
    """Deal one task's rows to the folds, label by label; update the counts and `fold_of`.

    Each round gives every fold one row of the task. A label that ends within a round leaves the other folds
    of that round to the next label, and one that ends in a later round starts it with the folds that hold
    fewest of it: hence the counts of the task, and of each of its labels, differ by one at most.
    """
    n_folds = len(in_fold)
    if rng is not None:
        rows = rng.permutation(rows)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    waiting = np.arange(n_folds)
    for same_label in np.split(rows, np.flatnonzero(np.diff(labels[rows])) + 1):
        of_label = label_in_fold[labels[same_label[0]]]
        of_task_and_label = np.zeros(n_folds, dtype=np.intp)
        while len(same_label):
            last_resort = np.arange(n_folds) if rng is None else rng.permutation(n_folds)
            keys = np.stack([last_resort, of_label, in_fold, of_task_and_label])[:, waiting]
            order = waiting[np.lexsort(keys)]
            whole_rounds = len(same_label) // n_folds if len(waiting) == n_folds else 0
            chosen = np.tile(order, whole_rounds) if whole_rounds else order[: len(same_label)]
            fold_of[same_label[: len(chosen)]] = chosen
            same_label = same_label[len(chosen) :]
            for count in (in_fold, of_label, of_task_and_label):
                count += np.bincount(chosen, minlength=n_folds)
            waiting = np.setdiff1d(waiting, chosen)
            if len(waiting) == 0:
                waiting = np.arange(n_folds)
