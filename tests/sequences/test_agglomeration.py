"""Tasks agglomerated by variational evidence find the clusters that generated them."""

from math import log

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from kinfolk.datasets.sequences import make_sequences
from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.inference.agglomeration import (
    Agglomeration,
    SetFits,
    agglomerate,
    at_most,
    find_clusters,
    log_score,
    log_seats,
    promise_of_joining,
)
from kinfolk.sequences.inference.mean_field import learn_hyper, most_probable
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors
from kinfolk.sequences.model.sequences import Sequences

FIXED = Priors(1.0, 1.0, 1.0, 0.3, 0.0)


def paper_tasks(seed, n_sequences=50):
    made = make_sequences(n_sequences=n_sequences, random_state=seed)
    codes = np.asarray(made.X).ravel().astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(made.lengths)]).astype(np.int64)
    return Sequences((codes,), bounds, np.arange(0, 12 * n_sequences + 1, n_sequences)), made.partition


def two_kinds():
    """Four tasks: the first and third go slowly between codes 0 and 1, the others fast between 1 and 2."""
    slow, fast = np.tile(np.repeat([0, 1], 10), 4), np.tile([1, 2], 40)
    return Sequences((np.concatenate([slow, fast, slow, fast]),), np.arange(0, 321, 80), np.arange(5))


def test_the_three_clusters_of_the_paper_are_found():
    sequences, truth = paper_tasks(0, n_sequences=20)
    found = find_clusters(sequences, Categorical(8), Priors(), 10, n_starts=2)
    assert adjusted_rand_score(truth, found.partition) == 1.0


def test_tasks_of_two_kinds_are_told_apart_and_named_in_order():
    found = find_clusters(two_kinds(), Categorical(3), Priors(), 6)
    assert found.partition.tolist() == [0, 1, 0, 1]
    assert sorted(found.clusters) == [(0, 2), (1, 3)]
    assert [len(fit.counts) for fit in found.fits] == [2, 2]


def test_the_gain_of_a_join_is_the_difference_of_scores():
    references = SetFits.of_data(two_kinds(), Categorical(3), ClusterPrior(n_states=6), n_starts=2)
    found = agglomerate(references, 0.7)
    apart = found._replace(clusters=((0,), (1,), (2,), (3,)))
    fixed = Priors(0.7, 1.0, 1.0, 0.3, 0.0)
    gained = sum(gain for _, _, gain in found.joins)
    assert log_score(found, fixed) - log_score(apart, fixed) == pytest.approx(gained, abs=1e-9)
    assert all(gain > 0.0 for _, _, gain in found.joins)


def test_seats_are_those_of_a_chinese_restaurant():
    # Three tasks, a = 0.5: p(all in one) = 2/((1.5)(2.5)), p(two and one, of a kind) = 0.5/((1.5)(2.5)).
    assert log_seats((2, 1), 0.5) == pytest.approx(log(2.0 / 0.5))


def test_a_promise_is_never_above_what_the_refined_join_gains():
    references = SetFits.of_data(two_kinds(), Categorical(3), ClusterPrior(n_states=6), n_starts=2)
    for first, second in (((0,), (2,)), ((0,), (1,)), ((1,), (3,))):
        promised = promise_of_joining(references, first, second)
        bounds = references.of(first).bound + references.of(second).bound
        assert promised <= references.together([first, second]).bound - bounds + 1e-6


def test_fixed_hyper_parameters_stay():
    found = find_clusters(two_kinds(), Categorical(3), Priors(0.8, 1.5, 2.0, 0.25, 0.5), 6)
    assert found.set_fits.hyper == ClusterPrior(1.5, 2.0, 0.5, 6)
    assert found.set_fits.emission.strength == 0.25
    assert found.eta == 0.8


def test_one_task_is_one_cluster():
    sequences = two_kinds().of_tasks([0])
    assert find_clusters(sequences, Categorical(3), Priors(), 6).partition.tolist() == [0]


def test_tasks_of_one_step_and_identical_tasks_are_clustered():
    steps = Sequences((np.array([0, 0, 1, 0]),), np.arange(5), np.arange(5))
    assert len(find_clusters(steps, Categorical(2), Priors(), 5).partition) == 4
    same = Sequences((np.tile([0, 1, 1, 0], 12),), np.arange(0, 49, 16), np.arange(4))
    assert find_clusters(same, Categorical(2), Priors(), 5).partition.tolist() == [0, 0, 0]


def test_the_same_seed_finds_the_same():
    first, second = (find_clusters(two_kinds(), Categorical(3), Priors(), 6, seed=3) for _ in range(2))
    assert log_score(first, Priors()) == log_score(second, Priors())


def test_a_hyper_parameter_is_the_best_of_a_grid():
    prior = GammaPrior(2.0, 3.0)

    def value(x):
        return 5.0 * log(x) - 4.0 * x

    grid = np.geomspace(0.05, 20.0, 20_001)
    best = grid[np.argmax([value(x) + prior.log_density(x) for x in grid])]
    # The closed form: (5 + 2)/(4 + 3).
    assert best == pytest.approx(1.0, rel=1e-3)
    assert most_probable(value, 0.6, prior) == pytest.approx(1.0, rel=0.01)
    assert most_probable(value, 0.6, 4.0) == 4.0


def test_learning_hyper_parameters_raises_the_score():
    references = SetFits.of_data(two_kinds(), Categorical(3), ClusterPrior(n_states=6), n_starts=2)
    found = agglomerate(references, 1.0)
    before = sum(fit.bound for fit in found.fits)
    _, emission = learn_hyper(found.fits, references.emission, references.hyper, FIXED._replace(strength=GammaPrior()))
    # Each state shows one code: a prior of little weight says so.
    assert emission.strength < 0.3
    learnt = SetFits.of_data(references.sequences, emission, references.hyper, earlier=references, n_starts=1)
    assert sum(learnt.of(tasks).bound for tasks in found.clusters) > before


def test_clusters_beyond_those_of_the_model_are_joined_by_what_they_lose_and_this_is_told():
    set_fits = SetFits.of_data(two_kinds(), Categorical(3), ClusterPrior(n_states=6), n_starts=2)
    apart = Agglomeration(tuple((task,) for task in range(4)), set_fits, 1.0, ())
    with pytest.warns(UserWarning, match="found 4 clusters, and n_clusters=2 has no room for them"):
        found = at_most(apart, 2)
    assert found.partition.tolist() == [0, 1, 0, 1]
    assert at_most(apart, 4) is apart
    assert at_most(apart, 1).partition.tolist() == [0, 0, 0, 0]
