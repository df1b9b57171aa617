"""The few-shot benchmark: splits, results that resume, ranks with critical differences."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from bench.fewshot import cells, marks, verdicts
from bench.fewshot.measures import of_numbers, of_probabilities
from bench.fewshot.models import Model
from bench.fewshot.page import read
from bench.fewshot.ranks import against, rank
from bench.fewshot.sets import Rows, listed
from bench.fewshot.splits import draw


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    task = np.repeat([f"t{k}" for k in range(12)], 15)
    return Rows(pl.DataFrame({"x": rng.normal(size=180)}), (rng.random(180) < 0.5).astype(float), task)


def test_a_split_learns_from_as_many_rows_of_each_task_and_judges_others(rows):
    split = draw(rows, "made up", 4, 0)
    known = rows.task[split.train]
    assert set(np.unique(known, return_counts=True)[1].tolist()) == {4}
    assert set(rows.task[split.test]) == set(known)
    assert not set(rows.task[split.new]) & set(known)
    assert not set(split.train) & set(split.test)
    assert all(np.array_equal(a, b) for a, b in zip(split, draw(rows, "made up", 4, 0), strict=True))
    assert draw(rows, "made up", 14, 0) is None


def test_results_resume_after_a_line_that_was_cut_off(tmp_path, rows):
    path = tmp_path / "results.csv"
    models = {"half": Model("classification", lambda train, seed: lambda judged: (np.full(len(judged.y), 0.5), None))}
    order = list(cells.in_order({"made, up": {"kind": "classification"}}, [2, 4], 2, models))
    for cell in order[:2]:
        cells.add(path, cells.run(cell, models["half"], rows, draw(rows, cell.set, cell.size, cell.split)))
    with path.open("a") as file:
        file.write("made up,4,1")
    assert cells.read_done(path) == set(order[:2])
    assert path.read_bytes().endswith(b"\n")
    assert pl.read_csv(path)["log_loss"].to_list() == pytest.approx([np.log(2.0)] * 4, rel=1e-5)


def test_a_model_that_fails_leaves_a_row_with_the_error(rows):
    def fit(train, seed):
        raise RuntimeError("no luck")

    (row,) = cells.run(cells.Cell("s", 4, 0, "m"), Model("classification", fit), rows, draw(rows, "s", 4, 0))
    assert row["error"] == "RuntimeError: no luck"
    assert "log_loss" not in row


def test_measures_of_a_few_rows():
    y, p = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.8, 0.4, 0.6, 0.2])
    found = of_probabilities(y, p)
    assert found["log_loss"] == pytest.approx(-np.log([0.8, 0.6, 0.6, 0.8]).mean())
    assert found["brier"] == pytest.approx((0.04 + 0.16 + 0.16 + 0.04) / 4)
    assert found["auc"] == 1.0
    assert found["calibration"] == pytest.approx((0.2 + 0.4 + 0.4 + 0.2) / 4)  # a row a bin
    assert of_numbers(y, y + 1.0, np.ones(4)) == {"squared_error": 1.0, "coverage": 1.0}


def test_ranks_are_averaged_over_sets_with_nemenyis_critical_difference():
    losses = {"a": (0.1, 0.2, 0.1), "b": (0.2, 0.1, 0.2), "c": (0.3, 0.3, 0.3)}
    table = pl.DataFrame(
        [
            {"set": f"s{i}", "size": 8.0, "split": split, "model": name, "loss": value + 0.01 * split}
            for name, values in losses.items()
            for i, value in enumerate(values)
            for split in (0.0, 1.0)
        ]
    )
    found = rank(table, "loss")
    assert found.ranks == pytest.approx({"a": 4 / 3, "b": 5 / 3, "c": 3.0})
    # q of three models at 5 % is 2.343 (Demšar 2006, table 5).
    assert found.critical == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 3)), abs=2e-3)
    gaps = against(table, "loss", "a", ["b", "c"])
    assert gaps["peer"].to_list() == ["b", "b", "b"]
    assert gaps["difference"].to_list() == pytest.approx([-0.1, 0.1, -0.1])
    assert gaps["error"].to_list() == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)


def test_models_are_ranked_on_splits_that_all_of_them_have():
    rows = [
        {"set": "s", "size": 8.0, "split": split, "model": m, "loss": 0.5 + split} for split in (0.0, 1.0) for m in "ab"
    ]
    rows += [{"set": "s", "size": 8.0, "split": 2.0, "model": "a", "loss": 0.0}]  # an easy split, which b lacks
    table = pl.DataFrame(rows)
    assert rank(table, "loss").ranks == pytest.approx({"a": 1.5, "b": 1.5})
    assert against(table, "loss", "b", ["a"])["difference"].to_list() == pytest.approx([0.0])


def test_intervals_may_be_given_by_their_ends():
    ends = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert of_numbers(np.array([0.5, 2.0]), np.zeros(2), ends)["coverage"] == 0.5


def test_the_error_of_a_share_of_tasks_is_that_of_as_many_tosses_where_rows_of_a_task_agree():
    inside = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    alone = of_numbers(inside, np.ones(6), np.full(6, 0.1), np.arange(6))
    assert alone["coverage"] == pytest.approx(4 / 6)
    assert alone["coverage_error"] == pytest.approx(np.sqrt(4 / 6 * 2 / 6 / 5))
    twice = of_numbers(inside.repeat(3), np.ones(18), np.full(18, 0.1), np.arange(6).repeat(3))
    assert twice["coverage_error"] == pytest.approx(alone["coverage_error"])


def gaps_of_sizes(name, of_sizes):
    return [
        {"set": name, "size": size, "split": float(split), "model": model, "part": "test", "loss": loss}
        for size, gaps in of_sizes.items()
        for split, gap in enumerate(gaps)
        for model, loss in (("ours", 1.0 + gap), ("peer", 1.0))
    ]


def test_all_sizes_together_tell_how_much_splits_differ():
    table = pl.DataFrame(gaps_of_sizes("s", {2.0: [0.1, 0.3], 8.0: [0.5, 0.7, 0.9], 16.0: [1.0]}))
    (found,) = against(table, "loss", "ours", ["peer"]).iter_rows(named=True)
    assert found["difference"] == pytest.approx((0.2 + 0.7 + 1.0) / 3)
    variance = (2 * 0.1**2 + 2 * 0.2**2) / 3  # of one split about the mean of its size, three degrees of freedom
    assert (found["freedom"], found["error"]) == (3, pytest.approx(np.sqrt(variance * (1 / 2 + 1 / 3 + 1)) / 3))


def test_the_best_peer_may_be_that_by_another_measure():
    table = pl.DataFrame(
        [
            {"set": "s", "size": 8.0, "split": 0.0, "model": model, "loss": loss, "calibration": calibration}
            for model, loss, calibration in (("ours", 0.5, 0.2), ("b", 0.4, 0.3), ("c", 0.6, 0.1))
        ]
    )
    assert against(table, "calibration", "ours", ["b", "c"])["peer"].to_list() == ["c"]
    (found,) = against(table, "calibration", "ours", ["b", "c"], best_by="loss").iter_rows(named=True)
    assert (found["peer"], found["difference"]) == ("b", pytest.approx(-0.1))


def test_of_many_sets_one_that_is_a_little_behind_is_not_surely_so():
    rng = np.random.default_rng(0)
    even = [row for k in range(11) for row in gaps_of_sizes(f"s{k}", {8.0: rng.permutation([-0.1, 0.0, 0.1, 0.0])})]
    little, far = ({8.0: [m - 0.1, m + 0.1, m, m]} for m in (0.12, 1.0))
    groups, parts = {"all sets": pl.lit(True)}, {"test": "rows"}
    for last, surely in ((little, "none"), (far, "1 (last +1")):
        table = pl.DataFrame(even + gaps_of_sizes("last", last))
        (line,) = verdicts.behind(table, "loss", ["ours"], groups, parts)
        assert "on 1 (last" in line
        assert f"of 12 sets; corrected for their number, on {surely}" in line


def test_results_of_before_a_column_came_are_read(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(f"{','.join(cells.COLUMNS)}\ns,8,0,m,regression,test,3,24,9,,,,,0.5,0.9,0.1,0.1,\n")
    (row,) = read(path).iter_rows(named=True)
    assert (row["coverage"], row["coverage_error"], row["error"]) == (0.9, None, "")


def test_a_split_by_labels_has_the_rare_one_in_its_rate_and_at_least_once():
    task = np.repeat(["a", "b"], 100)
    y = np.concatenate([np.arange(100) < 20, np.arange(100) < 1]).astype(float)
    many = Rows(pl.DataFrame({"x": np.zeros(200)}), y, task)
    train, test = marks.rows_of_tasks(10, ["a", "b"], stratified=True)(many, np.random.default_rng(0))
    assert [y[train][task[train] == name].sum() for name in "ab"] == [2.0, 1.0]
    assert sorted([*train, *test]) == list(range(200))


def test_every_set_of_the_list_says_what_it_needs():
    for entry in listed().values():
        assert entry["kind"] in ("classification", "regression")
        assert "dataset" in entry or {"file", "task", "label"} <= set(entry)
