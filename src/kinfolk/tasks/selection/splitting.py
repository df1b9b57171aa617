"""What the task-aware splitters share: reading the tasks and labels of rows, and training on what is not tested."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from kinfolk.tasks.columns import in_order
from kinfolk.tasks.table import Table, as_column, check_tasks, column_names, n_rows, unlabelled_rows

Indices = NDArray[np.intp]


class RowsByTask(NamedTuple):
    """What a splitter needs to know of a table."""

    n_rows: int
    tasks: list[Any]
    """Names in sorted order, of tasks without a labelled row too."""
    labelled: list[Indices]
    """The labelled rows of each task, in the table's order."""
    labels: Indices
    """The label of each row, coded; 0 where there is none."""


class TaskSplitter(BaseCrossValidator):
    """What the splitters share: reading the table, and training on whatever is not tested."""

    __metadata_request__split: ClassVar = {"task": True, "groups": True}

    def split(
        self, X: Any, y: Any = None, groups: Any = None, *, task: Any = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """Give the rows to train on and the rows to test on, split by split.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Looked into only for `task_column`.
        y : array-like of shape (n_rows,), optional
            Labels; without them every row counts as labelled.
        groups, task : array-like of shape (n_rows,), optional
            The task of each row, under scikit-learn's name or under its own.

        Yields
        ------
        train, test : ndarray of int
            Row numbers, ascending.
        """
        self._check()
        return self._splits(self._read(X, y, groups, task))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, *, task: Any = None) -> int:
        """Count the splits.

        Parameters
        ----------
        X, y, groups, task
            As in `split`; needed only where the number of splits depends on the tasks.

        Returns
        -------
        int
        """
        self._check()
        return self._count(X, y, groups, task)

    def get_metadata_routing(self) -> Any:
        """Say which metadata `split` wants: the task, unless a column of the table holds it.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
        """
        request = super().get_metadata_routing()
        if self.task_column is not None:
            request.split.add_request(param="task", alias=False)
        return request

    def _check(self) -> None:
        raise NotImplementedError  # abstract

    def _count(self, X: Any, y: Any, groups: Any, task: Any) -> int:
        return int(self.n_splits)

    def _test_rows(self, table: RowsByTask) -> Iterator[Indices]:
        raise NotImplementedError  # abstract

    def _splits(self, table: RowsByTask) -> Iterator[tuple[Indices, Indices]]:
        for test in self._test_rows(table):
            tested = np.zeros(table.n_rows, dtype=bool)
            tested[test] = True
            yield np.flatnonzero(~tested), np.flatnonzero(tested)

    def _read(self, X: Any, y: Any, groups: Any, task: Any) -> RowsByTask:
        task = tasks_of_rows(X, task, groups, self.task_column)
        n_rows = len(task)
        labels = np.zeros(n_rows, dtype=np.intp)
        with_label = np.ones(n_rows, dtype=bool)
        if y is not None:
            y = as_column(y)
            if len(y) != n_rows:
                raise ValueError(f"y must have a label for each of the {n_rows} rows of X, not {len(y)}.")
            with_label = ~unlabelled_rows(y, self.unlabelled)
            labels[with_label] = in_order(y[with_label])[1]
        if not with_label.any():
            raise ValueError(f"There is nothing to test, because none of the {n_rows} rows has a label.")
        tasks, codes = in_order(task)
        rows = np.flatnonzero(with_label)
        rows = rows[np.argsort(codes[rows], kind="stable")]
        ends = np.cumsum(np.bincount(codes[rows], minlength=len(tasks)))
        return RowsByTask(n_rows, tasks, np.split(rows, ends[:-1]), labels)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))


def tasks_of_rows(X: Any, task: Any = None, groups: Any = None, task_column: int | str | None = None) -> NDArray[Any]:
    """The task of each row, which must be given in exactly one of three ways; no other column is looked at.

    Parameters
    ----------
    X : table
        Looked into only for `task_column`: a frame or a 2-d array. None where it is not at hand.
    task, groups : array-like of shape (n_rows,), optional
        The task of each row; `groups` is scikit-learn's word for it.
    task_column : str or int, optional
        Name or place of the column of `X` that holds the task.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> tasks_of_rows([["ann", 3], ["bob", 4]], task_column=0)
    array(['ann', 'bob'], dtype=object)
    """
    ways = {"task": task, "groups": groups, "task_column": task_column}
    given = [way for way, value in ways.items() if value is not None]
    if len(given) != 1:
        came = " and ".join(f"{way}=" for way in given) or "none of them"
        raise ValueError(f"the task of each row must be given once, as task=, groups= or task_column=, but {came} came")
    if task_column is not None:
        return check_tasks(_one_column(X, task_column), f"task column {task_column!r}", n_rows(X))
    values = as_column(ways[given[0]], given[0])
    return check_tasks(values, given[0], len(values) if X is None else n_rows(X))


def _one_column(X: Any, column: int | str) -> Any:
    """A column of a frame or a 2-d array, the others left alone."""
    names = column_names(X)
    frame = X if hasattr(X, "shape") or names is not None else np.array(X, dtype=object)
    if len(getattr(frame, "shape", ())) != 2 or hasattr(X, "toarray"):
        raise ValueError(f"task_column={column!r} needs X to be a data frame or a 2-d array")
    width = frame.shape[1]
    place = Table(names, [], [], list(range(width)), width, 0, []).position(column)
    return frame.iloc[:, place] if hasattr(frame, "iloc") else frame[:, place]
