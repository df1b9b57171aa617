"""The study on real sets: its splits, scores and verdicts, on made-up rows."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from kinfolk.experiments.clustered_naive_bayes import sharing_real
from kinfolk.experiments.clustered_naive_bayes.sharing_real import LOSSES, Problem, ranks, score, study


def made_up(name, n_tasks=6, n_rows=30):
    """Tasks of one rule; rows enough for every size."""
    rng = np.random.default_rng(len(name))
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = rng.random(len(task)) < 0.5
    columns = {f"f{i}": np.where(rng.random(len(task)) < 0.7, y, ~y).astype(int).astype(str) for i in range(3)}
    return Problem(pl.DataFrame(columns), y, task)


@pytest.fixture(scope="module")
def outcome():
    return study(sets={"one": "One"}, sizes=(2, 4), n_splits=1, load=made_up, n_jobs=1)


def test_every_model_is_scored_at_every_size_and_split(outcome):
    assert outcome.table.height == 2 * len(sharing_real.LOOKS)
    assert set(outcome.table["method"]) == set(sharing_real.LOOKS)
    assert outcome.table["log_loss"].is_finite().all()
    assert len(outcome.ours) == len(sharing_real.ABOUT.found)


def test_scores_are_scikit_learns():
    rng = np.random.default_rng(0)
    truth, probability = rng.random(50) < 0.4, rng.uniform(0.05, 0.95, size=50)
    found = score(truth, probability)
    assert found["log_loss"] == pytest.approx(log_loss(truth, probability))
    assert found["auc"] == pytest.approx(roc_auc_score(truth, probability))


def test_losses_are_those_of_thresholding_at_the_thesis_threshold():
    """Eq. 3.1: the positive class is chosen above 1/(1 + 2ⁿ); a miss costs 2ⁿ, a false alarm 1."""
    rng = np.random.default_rng(1)
    truth, p = rng.random(200) < 0.4, rng.uniform(size=200)
    found = score(truth, p)
    for n in LOSSES:
        chosen = p > 1 / (1 + 2.0**n)
        expected = np.where(truth & ~chosen, 2.0**n, np.where(~truth & chosen, 1.0, 0.0)).mean()
        assert found[f"loss_{n}"] == pytest.approx(expected)


def test_training_rows_are_nested_and_never_tested():
    problem = made_up("one")
    small, large = (sharing_real._split(problem, size, 1, 0) for size in (2, 8))
    assert set(small[0]) < set(large[0])
    for train, test in (small, large):
        assert not set(train) & set(test)
        assert len(np.unique(problem.target[train])) == 2


def test_sizes_that_leave_nothing_to_test_are_left_out():
    table = study(sets={"one": "One"}, sizes=(2, 64), n_splits=1, load=made_up, n_jobs=1).table
    assert table["examples"].unique().to_list() == [2]


def test_ranks_are_means_over_sets_and_sizes():
    table = pl.DataFrame(
        {
            "set": ["a"] * 4,
            "examples": [1, 1, 2, 2],
            "method": ["x", "y", "x", "y"],
            "repeat": [0] * 4,
            "log_loss": [0.1, 0.2, 0.4, 0.3],
        }
    )
    assert dict(ranks(table).iter_rows()) == {"x": 1.5, "y": 1.5}
