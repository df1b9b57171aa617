"""Where chains and variational inference start when there are more tasks than can be compared pair by pair."""

import numpy as np
import pytest

from kinfolk import NestedIHMM
from kinfolk.sequences.estimators.nested import starting_partition
from kinfolk.sequences.inference.gibbs import fitted_start
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences

SLOW, FAST = np.tile(np.repeat([0, 1], 10), 3), np.tile([1, 2], 30)
N_TASKS = 8


@pytest.fixture(autouse=True)
def few_tasks_are_many(monkeypatch):
    for module in ("gibbs", "variational"):
        monkeypatch.setattr(f"kinfolk.sequences.inference.{module}.MOST_TASKS_TO_AGGLOMERATE", 5)


@pytest.mark.parametrize("partition", [np.arange(N_TASKS) % 2, np.repeat([0, 1], [6, 2]) * 1, np.zeros(N_TASKS, int)])
def test_many_tasks_in_given_clusters_start_with_states_that_are_fitted_to_them(partition):
    observed = np.concatenate([SLOW if task % 2 == 0 else FAST for task in range(N_TASKS)])
    sequences = Sequences((observed,), np.arange(0, len(observed) + 1, 60), np.arange(N_TASKS + 1))
    begin = fitted_start(sequences, Categorical(3), Priors(), 4, 5, partition, seed=0)
    np.testing.assert_array_equal(begin.partition, partition)
    # A symbol tells its state: in every cluster each state has emitted one symbol only.
    cluster = np.repeat(partition, 60)
    for k in np.unique(partition):
        pairs = np.unique(np.column_stack([begin.states, observed])[cluster == k], axis=0)
        assert len(np.unique(pairs[:, 0])) == len(pairs)


def test_variational_inference_over_many_tasks_says_that_a_start_is_left_aside():
    X = np.concatenate([SLOW if task % 2 == 0 else FAST for task in range(N_TASKS)])[:, None].astype(str)
    task, lengths = [f"t{i}" for i in range(N_TASKS)], [60] * N_TASKS
    model = NestedIHMM(inference="variational", start="together", n_states=5, n_clusters=4, random_state=0)
    with pytest.warns(UserWarning, match="start is left aside"):
        model.fit(X, lengths=lengths, task=task)
    # Without a start of one's own there is nothing to say.
    model.set_params(start="agglomerate").fit(X, lengths=lengths, task=task)


def test_more_tasks_than_clusters_cannot_all_start_apart_and_are_told_so():
    tasks = np.array(["ann", "bob", "cid"])
    with pytest.warns(UserWarning, match='start="apart": 3 tasks are more than n_clusters=2'):
        assert starting_partition("apart", tasks, 2).tolist() == [0, 1, 0]
    assert starting_partition("apart", tasks, 3).tolist() == [0, 1, 2]
