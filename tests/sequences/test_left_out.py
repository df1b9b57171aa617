"""Chains are judged by what they say of sequences without the counts that came from these, summed over all paths."""

import itertools

import numpy as np
import pytest

from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.fitted import Traces, judge
from kinfolk.sequences.model.ndp_ihmm import State, chosen_to_leave_out, kept
from kinfolk.sequences.model.sequences import Sequences

L, N_CODES = 2, 3
EMISSION = Categorical(N_CODES)
HYPER = HyperParameters(eta=1.0, gamma=1.0, alpha=0.8, strength=0.4, stickiness=0.5)
CODES = [[0, 2, 1], [1, 1, 2], [2, 0]]
STATES = [[0, 0, 1], [1, 1, 0], [0, 1]]
TASK = [0, 0, 1]


def a_chain(cluster):
    rng = np.random.default_rng(0)
    sequences = Sequences((np.concatenate(CODES),), np.array([0, 3, 6, 8]), np.array([0, 2, 3]))
    state = State(
        np.array(cluster),
        np.concatenate(STATES),
        rng.dirichlet(np.ones(L), size=2),
        EMISSION.draw_parameters(np.zeros((2, L, N_CODES)), rng),
        rng.dirichlet(np.ones(L), size=(2, L + 1)),
        HYPER,
    )
    return state, sequences


def expected(state, left_out):
    """Log probability of a sequence by hand: counts of all others, of its task and of its cluster."""
    task = TASK[left_out]
    cluster = state.cluster[task]
    rows = np.tile(HYPER.alpha * state.base_weights[cluster], (L + 1, 1))
    rows[[1, 2], [0, 1]] += HYPER.stickiness
    shares = np.full((L, N_CODES), HYPER.strength)
    for i, (codes, states) in enumerate(zip(CODES, STATES, strict=True)):
        if i == left_out:
            continue
        for t, (code, now) in enumerate(zip(codes, states, strict=True)):
            if TASK[i] == task:
                rows[0 if t == 0 else states[t - 1] + 1, now] += 1
            if state.cluster[TASK[i]] == cluster:
                shares[now, code] += 1
    rows, shares = rows / rows.sum(axis=1, keepdims=True), shares / shares.sum(axis=1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(L), repeat=len(CODES[left_out])):
        probability, row = 1.0, 0
        for code, now in zip(CODES[left_out], path, strict=True):
            probability *= rows[row, now] * shares[now, code]
            row = now + 1
        total += probability
    return np.log(total)


@pytest.mark.parametrize("cluster", [(0, 0), (0, 1)], ids=["together", "apart"])
def test_sequences_left_out_are_as_probable_as_the_counts_of_all_others_make_them(cluster):
    state, sequences = a_chain(cluster)
    found = kept(state, sequences, EMISSION).left_out
    assert found == pytest.approx(np.mean([expected(state, i) for i in range(3)]), rel=1e-6)


def test_of_many_sequences_a_few_are_left_out_from_the_first_to_the_last():
    many = Sequences((np.zeros(300, dtype=np.int64),), np.arange(0, 301, 3), np.array([0, 40, 100]))
    chosen = chosen_to_leave_out(many)
    assert len(chosen) == 8
    assert (chosen[0], chosen[-1]) == (0, 99)


def test_chains_that_predict_differently_have_not_converged():
    rng = np.random.default_rng(0)
    partitions, hyper = np.zeros((4, 100, 2), dtype=np.int32), {"eta": np.ones((4, 100))}
    alike = Traces(partitions, rng.normal(size=(4, 100)), hyper, np.ones((2, 3)), rng.normal(size=(4, 100)))
    assert judge(alike).converged
    assert alike.left_out is not None
    apart = judge(alike._replace(left_out=alike.left_out + np.arange(4.0)[:, None]))
    assert not apart.converged
    assert "held-out prediction" in apart.advice()
    assert "held-out prediction" not in judge(alike._replace(left_out=None)).r_hat
