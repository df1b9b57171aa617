"""Results depend on what tasks hold, and on nothing else: not on order, names, threads or Python's hash seed."""

import hashlib
import os
import subprocess
import sys
import warnings
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB
from kinfolk.partition.crp import canonical

SAMPLING = {"n_chains": 2, "n_burn_in": 3, "n_draws": 10, "random_state": 0}
MODELS = {
    "no sharing": NoSharingNB(**SAMPLING),
    "complete sharing": CompleteSharingNB(**SAMPLING),
    "complete sharing, own labels": CompleteSharingNB(share_labels=False, **SAMPLING),
    "exact": ClusteredNB(inference="exact"),
    "bhc": ClusteredNB(inference="bhc"),
    "gibbs": ClusteredNB(inference="gibbs", **SAMPLING),
}
TASKS = ["ann", "bob", "cyd", "dee"]
LABELS = ["no", "yes"]
VALUES = (["a", "b", None], ["x", "y", "z", None])
GRID = [[first, second] for first in VALUES[0] for second in VALUES[1]]
examples = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.filter_too_much],
)


pytestmark = pytest.mark.filterwarnings("ignore:.*unlabelled rows? (is|are) left out")


class Table(NamedTuple):
    """Rows of tasks: features, a label or none, a task."""

    X: list[list[str | None]]
    y: list[str | None]
    task: list[str]

    def rows(self, order: list[int]) -> "Table":
        return Table(*([column[i] for i in order] for column in self))

    def renamed(self, names: dict[str, str]) -> "Table":
        return self._replace(task=[names[task] for task in self.task])

    def content(self, task: str) -> list[Any]:
        """What a task holds, whatever the order of its rows."""
        return sorted([*map(str, x), str(y)] for x, y, t in zip(*self, strict=True) if t == task)


@st.composite
def tables(draw: Any, unlabelled: bool = True) -> Table:
    """Up to ten rows of up to four tasks; every label is seen, so that they are the same for all orders of rows."""
    rows = draw(
        st.lists(
            st.tuples(
                st.tuples(*(st.sampled_from(values) for values in VALUES)),
                st.sampled_from([*LABELS, None] if unlabelled else LABELS),
                st.sampled_from(TASKS),
            ),
            min_size=2,
            max_size=10,
        )
    )
    assume({label for _, label, _ in rows} >= set(LABELS))
    return Table([list(x) for x, _, _ in rows], [y for _, y, _ in rows], [task for _, _, task in rows])


class Results(NamedTuple):
    """What a fit says, task by task."""

    similarity: np.ndarray
    partition: np.ndarray
    predictions: np.ndarray  # (tasks and a new one, rows of the grid, labels)


def results(model: Any, table: Table, names: list[str]) -> Results:
    model.fit(np.array(table.X, dtype=object), np.array(table.y, dtype=object), task=table.task)
    place = [model.tasks_.tolist().index(name) for name in names]
    grid = np.array(GRID * (len(names) + 1), dtype=object)
    predictions = model.predict_proba(grid, task=np.repeat([*names, "someone new"], len(GRID)))
    return Results(
        model.similarity_[np.ix_(place, place)],
        canonical(model.partition_[place]),
        predictions.reshape(len(names) + 1, len(GRID), len(LABELS)),
    )


def names_of(table: Table) -> list[str]:
    return sorted(set(table.task))


def check(found: Results, expected: Results, tolerance: float) -> None:
    np.testing.assert_allclose(found.similarity, expected.similarity, rtol=0, atol=tolerance)
    np.testing.assert_allclose(found.predictions, expected.predictions, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(found.partition, expected.partition)


@pytest.mark.parametrize("name", MODELS)
@examples
@given(data=st.data())
def test_the_order_of_rows_changes_nothing(name, data):
    table = data.draw(tables())
    order = data.draw(st.permutations(range(len(table.y))))
    first = results(MODELS[name], table, names_of(table))
    # Exact sums over labellings go through the unlabelled rows in their order; all else adds whole numbers.
    check(results(MODELS[name], table.rows(order), names_of(table)), first, 1e-12 if name == "exact" else 0.0)


@pytest.mark.parametrize("name", MODELS)
@examples
@given(data=st.data())
def test_the_order_of_rows_changes_no_label_distribution(name, data):
    table = data.draw(tables())
    order = data.draw(st.permutations(range(len(table.y))))
    results(MODELS[name], table, names_of(table))
    first = MODELS[name].label_distributions_
    results(MODELS[name], table.rows(order), names_of(table))
    again = np.empty_like(first)
    again[order] = MODELS[name].label_distributions_
    np.testing.assert_allclose(again, first, rtol=0, atol=1e-12)


def test_unlabelled_rows_alike_have_the_same_label_distribution():
    table = Table([["a", "x"], ["b", "x"], ["a", "y"], ["a", "y"]], ["no", "yes", None, None], ["ann"] * 4)
    results(MODELS["gibbs"], table, ["ann"])
    third, fourth = MODELS["gibbs"].label_distributions_[2:]
    np.testing.assert_allclose(third, fourth, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@examples
@given(data=st.data())
def test_names_of_tasks_and_so_their_order_change_nothing(name, data):
    table = data.draw(tables())
    old = names_of(table)
    contents = [table.content(task) for task in old]
    # Two tasks that hold the same cannot be told apart but by name, and what is sampled must tell them apart.
    assume(all(contents.count(content) == 1 for content in contents))
    new = dict(zip(old, data.draw(st.permutations(["zoe", "bea", "mo", "al"])), strict=False))
    first = results(MODELS[name], table, old)
    renamed = results(MODELS[name], table.renamed(new), [new[task] for task in old])
    check(renamed, first, 1e-9)


@pytest.mark.parametrize("inference", ["exact", "bhc"])
def test_names_do_not_choose_between_equally_probable_partitions(inference):
    # The third task is as close to the first as to the second, and those two differ.
    X = np.array([["a"]] * 6 + [["b"]] * 6 + [["a"], ["b"]], dtype=object)
    y = ["no"] * len(X)
    found = set()
    for names in permutations(["ann", "bob", "cyd"]):
        model = ClusteredNB(inference=inference, concentration=0.3).fit(X, y, task=np.repeat(names, [6, 6, 2]))
        clusters = dict(zip(model.tasks_.tolist(), model.partition_.tolist(), strict=True))
        found.add(tuple(canonical(np.array([clusters[name] for name in names])).tolist()))
    assert found in ({(0, 1, 0)}, {(0, 1, 1)})


SOME_TABLE = Table(
    [["a", "x"], ["b", None], ["a", "z"], ["a", "y"], ["b", "z"], ["b", "x"], [None, "y"], ["a", "x"], ["b", "y"]],
    ["no", "yes", "yes", None, "no", "yes", "no", None, "yes"],
    ["dee", "ann", "ann", "ann", "bob", "bob", "cyd", "bob", "cyd"],
)


def evidence_of(model: Any, table: Table) -> float:
    results(model, table, names_of(table))
    return float(model.log_evidence_)


@pytest.mark.parametrize("name", MODELS)
def test_neither_order_nor_names_change_the_evidence(name):
    model = MODELS[name]
    first = evidence_of(model, SOME_TABLE)
    backwards = evidence_of(model, SOME_TABLE.rows(list(range(len(SOME_TABLE.y)))[::-1]))
    renamed = evidence_of(model, SOME_TABLE.renamed({"ann": "zoe", "bob": "mo", "cyd": "al", "dee": "bea"}))
    assert backwards == pytest.approx(first, abs=1e-12)
    assert renamed == pytest.approx(first, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("exact", "bhc")])
def test_the_number_of_threads_changes_nothing(name):
    one, two = clone(MODELS[name]).set_params(n_jobs=1), clone(MODELS[name]).set_params(n_jobs=2)
    check(results(two, SOME_TABLE, names_of(SOME_TABLE)), results(one, SOME_TABLE, names_of(SOME_TABLE)), 0.0)
    np.testing.assert_array_equal(two.label_distributions_, one.label_distributions_)
    assert two.log_evidence_ == one.log_evidence_


def digest() -> str:
    """Everything that the models say about one table, to the last bit."""
    said = hashlib.sha256()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in MODELS.values():
            for part in results(model, SOME_TABLE, names_of(SOME_TABLE)):
                said.update(np.ascontiguousarray(part).tobytes())
            said.update(model.label_distributions_.tobytes())
        said.update(np.float64(MODELS["gibbs"].log_evidence_).tobytes())
    return said.hexdigest()


def test_the_hash_seed_changes_nothing():
    command = [sys.executable, "-c", "from tests.naive_bayes.test_invariance import digest; print(digest())"]
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen(
            command, cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, text=True
        )
        for seed in ("1", "20")
    ]
    said = {process.communicate()[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(said) == 1


def test_tasks_that_differ_in_unlabelled_rows_alone_may_come_in_any_order():
    X = [["a", "x"]] * 3 + [["b", "y"], ["a", "x"], ["b", "x"]]
    y = ["no"] * 3 + [None] * 3
    model = MODELS["gibbs"]
    found = []
    for names in permutations(["ann", "bob", "cyd"]):
        fitted = clone(model).fit(X, y, task=[*names, *names])
        order = [fitted.tasks_.tolist().index(name) for name in names]
        found.append((fitted.similarity_[np.ix_(order, order)], fitted.predict_proba(X[3:], task=list(names))))
    for similarity, probabilities in found[1:]:
        np.testing.assert_array_equal(similarity, found[0][0])
        np.testing.assert_array_equal(probabilities, found[0][1])
