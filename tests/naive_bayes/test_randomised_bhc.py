"""ClusteredNB with a tree built from random parts."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, log_loss

from kinfolk import ClusteredNB
from kinfolk.datasets import make_meetings

N_TASKS, N_CLUSTERS = 2_500, 6


def many_tasks():
    rng = np.random.default_rng(0)
    rates = rng.dirichlet(np.ones(4), size=(N_CLUSTERS, 2, 6))
    cluster = rng.integers(N_CLUSTERS, size=N_TASKS)
    labels = rng.binomial(20, 0.5, size=N_TASKS)
    label_counts = np.stack([20 - labels, labels], axis=1)
    draw = lambda: np.stack(  # noqa: E731 - two draws of the same tasks, to learn from and to test
        [
            np.stack([rng.multinomial(label_counts[:, y], rates[cluster, y, f]) for f in range(6)], axis=1)
            for y in range(2)
        ],
        axis=1,
    )
    return draw(), label_counts, cluster


def test_up_to_one_part_of_tasks_it_is_the_greedy_tree():
    team = make_meetings(random_state=0)
    greedy, randomised = (
        ClusteredNB(inference=inference, random_state=0).fit(team.data, team.target, task=team.task)
        for inference in ("bhc", "randomised-bhc")
    )
    np.testing.assert_array_equal(randomised.tree_.children, greedy.tree_.children)
    np.testing.assert_array_equal(
        randomised.predict_proba(team.data, task=team.task), greedy.predict_proba(team.data, task=team.task)
    )


def test_many_tasks_are_found_as_the_greedy_tree_finds_them_and_predicted_as_well():
    counts, label_counts, cluster = many_tasks()
    rng = np.random.default_rng(1)
    rows = rng.integers(4, size=(N_TASKS, 6))
    answers = {}
    for inference in ("bhc", "randomised-bhc"):
        model = ClusteredNB(inference=inference, random_state=0).fit_statistics(counts, label_counts)
        assert adjusted_rand_score(cluster, model.partition_) > 0.97
        assert model.log_evidence_kind_ == "lower bound"
        answers[inference] = model.predict_proba(rows, task=np.arange(N_TASKS))
    # Labels drawn from the greedy tree's own probabilities: log loss differs by how far the other's are from them.
    drawn = (rng.random(N_TASKS) < answers["bhc"][:, 1]).astype(int)
    greedy, randomised = (log_loss(drawn, answers[inference]) for inference in ("bhc", "randomised-bhc"))
    assert randomised == pytest.approx(greedy, rel=0.005)


def test_the_same_seed_gives_the_same_answer_whatever_the_number_of_jobs():
    counts, label_counts, _ = many_tasks()
    first, second = (
        ClusteredNB(inference="randomised-bhc", random_state=3, n_jobs=n_jobs).fit_statistics(counts, label_counts)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(first.tree_.children, second.tree_.children)
    assert first.log_evidence_ == second.log_evidence_
