"""Merges of states: what they cost is what recounting says, and they only ever raise the bound."""

import numpy as np
import pytest

from kinfolk.sequences.inference.agglomeration import SetFits
from kinfolk.sequences.inference.mean_field import (
    Start,
    base_bound,
    base_of,
    first_weights,
    fit_cluster,
    log_rising,
    start_from_posteriors,
    weigh_states,
)
from kinfolk.sequences.inference.state_merges import (
    fit_from_blocks,
    merge_gains,
    merge_states,
    merged_start,
    merged_weights,
    random_blocks,
    squeezed,
    stacked,
)
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior
from kinfolk.sequences.model.sequences import Sequences
from tests.sequences.oracle import log_dirichlet_multinomial


def three_states(n_steps=300, seed=0):
    """Codes of three sure states that follow each other in a ring, staying ten steps in the mean."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(n_steps) < 0.1) % 3
    return Sequences((2 * states + rng.integers(2, size=n_steps),), np.array([0, n_steps]), np.array([0, 1]))


def hard_start(sequences, states, n_states, emission):
    return start_from_posteriors(sequences, emission, np.eye(n_states)[states])


@pytest.mark.parametrize("stickiness", [0.0, 1.3])
def test_gain_of_a_merge_is_the_change_of_the_evidence_of_relabelled_states(stickiness):
    rng = np.random.default_rng(1)
    sequences = Sequences((rng.integers(3, size=50),), np.array([0, 20, 35, 50]), np.array([0, 1, 3]))
    states = rng.integers(4, size=50)
    emission, hyper = Categorical(3, 0.4), ClusterPrior(1.0, 1.5, stickiness, 6)
    start = hard_start(sequences, states, 4, emission)
    weights = weigh_states(start.counts, np.ones(2), first_weights(start.counts, hyper), hyper, 5)
    base = base_of(weights, hyper)

    def evidence(start, base):
        """Codes and transitions with θ and W integrated out, one Dirichlet at a time; a cell for unused states."""
        total = sum(log_dirichlet_multinomial(row, np.full(3, 0.4)) for row in start.statistics)
        for counts in start.counts:
            for r, row in enumerate(counts):
                prior = hyper.alpha * base
                if r > 0:
                    prior[r - 1] += stickiness
                total += log_dirichlet_multinomial([*row, 0.0], [*prior, hyper.alpha * (1 - base.sum())])
        return total

    gains = merge_gains(start, weights, emission, hyper)
    kept_base = {}
    for first, second in ((0, 1), (1, 3), (2, 3)):
        relabelled = np.where(states == second, first, states)
        relabelled = np.searchsorted(np.unique(relabelled), relabelled)
        merged = hard_start(sequences, relabelled, 3, emission)
        by_adding = merged_start(start, first, second)
        assert by_adding.counts == pytest.approx(merged.counts)
        assert by_adding.statistics == pytest.approx(merged.statistics)
        joined = base.copy()
        joined[first] += joined[second]
        joined = np.delete(joined, second)
        kept_base[first, second] = evidence(merged, joined) - evidence(start, base)
    for pair, change in kept_base.items():
        saved = base_bound(merged_weights(weights, *pair, hyper), hyper, 0.0) - base_bound(weights, hyper, 0.0)
        assert gains[pair] == pytest.approx(change + saved, abs=1e-8)


def test_merging_finds_the_three_states_that_there_are():
    sequences, emission, hyper = three_states(), Categorical(6), ClusterPrior(n_states=12)
    fit = fit_from_blocks(sequences, emission, hyper, np.random.default_rng(0))
    assert len(fit.weights) == 3
    # Each state shows two codes of its own.
    assert ((fit.statistics > 1.0).sum(axis=1) == 2).all()
    assert ((fit.statistics > 1.0).sum(axis=0) == 1).all()


def test_states_that_alternate_are_found():
    sequences = Sequences((np.tile([0, 1], 40),), np.array([0, 80]), np.array([0, 1]))
    fit = fit_from_blocks(sequences, Categorical(2), ClusterPrior(n_states=8), np.random.default_rng(0))
    assert np.sort(fit.statistics.round(3), axis=None).tolist() == [0.0, 0.0, 40.0, 40.0]


def test_merging_never_lowers_the_bound():
    sequences, emission, hyper = three_states(seed=2), Categorical(6), ClusterPrior(n_states=12)
    for seed in range(3):
        blocks = random_blocks(sequences.n_steps, 12, 8, np.random.default_rng(seed))
        fit = fit_cluster(sequences, emission, hyper, start_from_posteriors(sequences, emission, blocks))
        merged = merge_states(sequences, emission, hyper, fit)
        assert merged.bound >= fit.bound
        assert len(merged.weights) <= len(fit.weights)


def test_states_side_by_side_are_used_by_their_own_tasks_alone():
    sequences = three_states()
    both = Sequences((np.tile(sequences.observations[0], 2),), np.array([0, 300, 600]), np.array([0, 1, 2]))
    references = SetFits.of_data(both, Categorical(6), ClusterPrior(n_states=12), n_starts=2)
    fits = [references.alone(0), references.alone(1)]
    start = stacked(fits)
    assert start.statistics.sum() == pytest.approx(600)
    assert start.counts.sum(axis=(1, 2)) == pytest.approx([300, 300])
    assert start.counts[0, :, 3:].sum() == 0.0
    assert start.counts[1, :, :3].sum() == 0.0
    assert log_rising(start.counts, np.ones(2), np.full(6, 0.1), ClusterPrior())[1].shape == (6,)


def test_no_more_states_than_the_model_has_are_left_after_squeezing():
    sequences, emission, hyper = three_states(), Categorical(6), ClusterPrior(n_states=4)
    start = hard_start(sequences, np.random.default_rng(0).integers(9, size=300), 9, emission)
    weights = np.full(9, 2.0)
    squeezed_start, left = squeezed(start, weights, emission, hyper)
    assert len(left) == 4
    assert squeezed_start.counts.sum() == pytest.approx(start.counts.sum())
    assert squeezed_start.statistics.sum() == pytest.approx(300)


def test_a_union_keeps_the_order_of_its_tasks():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.full(30, 0), np.full(20, 1), rng.integers(2, size=10)])
    sequences = Sequences((codes,), np.array([0, 30, 50, 60]), np.array([0, 1, 2, 3]))
    references = SetFits.of_data(sequences, Categorical(2), ClusterPrior(n_states=4), n_starts=1)
    fit = references.together([(2,), (0, 1)])
    assert fit.counts.sum(axis=(1, 2)) == pytest.approx([30, 20, 10])
    assert references.of([1, 0, 2]) is fit


def test_a_merge_leaves_start_as_it_was():
    start = Start(np.ones((1, 4, 3)), np.ones((3, 2)))
    merged_start(start, 0, 2)
    assert start.counts.sum() == 12.0
    assert start.statistics.sum() == 6.0
