"""The number of sources, chosen on tasks whose number is known."""

from __future__ import annotations

import numpy as np
import pytest

from kinfolk.lica.inference.number_of_sources import choose_n_sources
from kinfolk.lica.model.data import make_linear_tasks


def tasks(n_sources, seed, n_tasks=30, n_rows=60, n_features=20):
    rng = np.random.default_rng(seed)
    loadings, sources = rng.normal(size=(n_features, n_sources)), rng.laplace(size=(n_tasks, n_sources))
    X = rng.normal(size=(n_tasks * n_rows, n_features))
    rows = np.arange(len(X)).reshape(n_tasks, n_rows)
    f = [X[row] @ loadings @ s for row, s in zip(rows, sources, strict=True)]
    return make_linear_tasks(X, rows, [np.where(one + rng.logistic(size=n_rows) > 0, 1.0, -1.0) for one in f])


@pytest.mark.parametrize("n_sources", [1, 3])
def test_the_true_number_is_chosen(n_sources):
    choice = choose_n_sources(tasks(n_sources, seed=0), "logistic", n_jobs=1)
    assert choice.n_sources == n_sources
    assert choice.n_sources == choice.tried[int(np.argmax(choice.scores))]


def test_trying_ends_after_two_numbers_that_predict_worse():
    choice = choose_n_sources(tasks(1, seed=0), "logistic", n_jobs=1)
    assert choice.tried == (1, 2, 3)
    assert choice.scores[0] > max(choice.scores[1:])


def test_scores_are_log_probabilities_of_every_row_once():
    # Four folds judge each of the 1,800 rows once, and no worse than a coin does.
    choice = choose_n_sources(tasks(1, seed=0), "logistic", candidates=[1, 2], n_jobs=1)
    assert 1_800 * np.log(0.5) < choice.scores[0] < -0.2 * 1_800
    assert choice.tried == (1, 2)


def test_one_task_has_one_source():
    problem = tasks(1, seed=0).of_tasks([0])
    assert choose_n_sources(problem, "logistic", n_jobs=1).n_sources == 1


def test_no_more_sources_than_half_the_tasks_are_tried():
    assert choose_n_sources(tasks(1, seed=0).of_tasks([0, 1, 2]), "logistic", n_jobs=1).tried == (1,)


def test_the_choice_does_not_hang_on_the_number_of_threads():
    problem = tasks(1, seed=1, n_tasks=8, n_rows=20)
    first, second = (choose_n_sources(problem, "logistic", candidates=[1, 2], n_jobs=n) for n in (1, 2))
    assert first == second


def test_tasks_with_many_rows_are_thinned():
    problem = tasks(1, seed=2, n_tasks=4, n_rows=900, n_features=5)
    choice = choose_n_sources(problem, "logistic", candidates=[1, 2], n_jobs=1)
    assert choice.scores[0] > 4 * 450 * np.log(0.5)
