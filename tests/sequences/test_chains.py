"""Chains keep what they should, repeat themselves whatever the threads, and say when they disagree with each other."""

from typing import NamedTuple

import numpy as np
import pytest

from kinfolk.checkpoints import Checkpoint
from kinfolk.sequences.inference import gibbs
from kinfolk.sequences.inference.gibbs import (
    GibbsSampler,
    go_on,
    run_chains,
    run_side_by_side,
    start_chain,
)
from kinfolk.sequences.inference.options import Schedule
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.fitted import fitted_to_draws, put_together
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences


def a_draw(log_joint, cluster=(0, 0, 1), n_states=(1, 2, 2)):
    cluster, n_tasks = np.array(cluster), len(cluster)
    n_clusters = int(cluster.max()) + 1
    base, rows = np.full((n_clusters, 2), 0.5), np.full((n_tasks, 3, 2), 0.5)
    theta = np.zeros((n_clusters, 2, 4)) + log_joint
    return Draw(cluster, base, theta, rows, HyperParameters(1.0, 2.0, 3.0, 0.5), float(log_joint), np.array(n_states))


class Counter(NamedTuple):
    """A sampler whose state is the number of sweeps, and whose log joint shows it."""

    begins: tuple[float, ...] = (0.0,)
    noise: float = 0.0

    def start(self, rng):
        return rng.choice(self.begins)

    def sweep(self, state, rng):
        return state + 1 + self.noise * rng.normal()

    def draw(self, state):
        return a_draw(state)


def test_draws_come_after_burn_in_and_once_in_so_many_sweeps():
    fitted = run_chains(Counter(), Schedule(2, 10, 4, thin=3), seed=0)
    np.testing.assert_array_equal(fitted.traces.log_joint, [[13, 16, 19, 22]] * 2)
    assert [draw.log_joint for draw in fitted.draws] == [13, 16, 19, 22] * 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_sweep_is_reported_from_wherever_it_is_made(n_jobs):
    done = []
    run_chains(Counter(), Schedule(2, 10, 4, thin=3), seed=0, n_jobs=n_jobs, progress=done.append)
    assert sum(done) == 2 * (10 + 12)


def test_traces_have_the_partitions_of_draws_and_shares_of_numbers_of_states():
    class Sampler(Counter):
        def draw(self, state):
            return a_draw(state, cluster=(0, 1, 0), n_states=(1, 2, 2 if state == 1 else 0))

    fitted = run_chains(Sampler(), Schedule(1, 0, 4), seed=0)
    assert fitted.traces.partitions.tolist() == [[[0, 1, 0]] * 4]
    np.testing.assert_array_equal(fitted.traces.n_states, [[0, 1, 0], [0, 0, 1], [0.75, 0, 0.25]])
    assert fitted.traces.hyper_parameters["alpha"].tolist() == [[3.0] * 4]


def test_results_do_not_depend_on_the_number_of_processes_but_on_the_seed():
    sampler, schedule = Counter(noise=1.0), Schedule(4, 5, 30)
    one, many = (run_chains(sampler, schedule, seed=3, n_jobs=n_jobs).traces.log_joint for n_jobs in (1, 3))
    np.testing.assert_array_equal(one, many)
    assert len(np.unique(one[:, 0])) == 4
    assert (run_chains(sampler, schedule, seed=4).traces.log_joint != one).any()


def test_chains_that_disagree_are_told():
    agreed = run_chains(Counter(noise=100.0), Schedule(4, 0, 50), seed=0)
    assert not run_chains(Counter(begins=(0.0, 1e6)), Schedule(4, 0, 20), seed=0).convergence.converged
    assert set(agreed.convergence.r_hat) == {"log joint", "number of clusters"}
    assert agreed.convergence.r_hat["number of clusters"] == 1.0


def test_memory_is_bounded_by_keeping_draws_evenly(monkeypatch):
    monkeypatch.setattr(gibbs, "MOST_DRAWS", 8)
    fitted = run_chains(Counter(), Schedule(2, 0, 20), seed=0)
    assert [draw.log_joint for draw in fitted.draws] == [5, 10, 15, 20] * 2
    assert fitted.traces.log_joint.shape == (2, 20)
    # Where the number kept does not divide that of all draws, those after the last that is kept are left out.
    fitted = run_chains(Counter(), Schedule(1, 0, 20), seed=0)
    assert [draw.log_joint for draw in fitted.draws] == [3, 6, 9, 12, 15, 18]


def test_five_hundred_small_draws_are_all_kept():
    assert len(run_chains(Counter(), Schedule(2, 0, 250), seed=0).draws) == 500


@pytest.mark.parametrize(("most", "kept"), [(10_000, 20), (1000, 2), (1, 1)])
def test_memory_is_bounded_by_the_size_of_draws(monkeypatch, most, kept):
    monkeypatch.setattr(gibbs, "MOST_BYTES", most)
    draw = a_draw(0.0)
    size = draw.transitions.nbytes + draw.parameters.nbytes + draw.base_weights.nbytes + 2 * draw.cluster.nbytes
    assert size == 8 * (18 + 16 + 4 + 6)
    assert len(run_chains(Counter(), Schedule(1, 0, 20), seed=0).draws) == kept


def test_tasks_learnt_one_by_one_are_put_side_by_side():
    class One(Counter):
        def draw(self, state):
            return a_draw(state, cluster=(0,), n_states=(2,))

    parts = run_side_by_side([One(), One(begins=(100.0,)), One()], Schedule(2, 0, 4), seed=0)
    together = put_together(parts)
    assert together.traces.partitions.shape == (2, 4, 3)
    assert together.traces.partitions[0, 0].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(together.traces.log_joint, [[103, 106, 109, 112]] * 2)
    draw = together.draws[1]
    assert draw.cluster.tolist() == [0, 1, 2]
    assert draw.transitions.shape == (3, 3, 2)
    assert draw.parameters[:, 0, 0].tolist() == [2, 102, 2]
    assert draw.log_joint == 106


def test_samplers_side_by_side_have_seeds_of_their_own():
    parts = run_side_by_side([Counter(noise=1.0)] * 2, Schedule(1, 0, 4), seed=0)
    assert (parts[0].traces.log_joint != parts[1].traces.log_joint).all()


def test_draws_of_an_approximation_are_a_chain_without_diagnostics():
    fitted = fitted_to_draws([a_draw(1.0), a_draw(2.0)], bound=-5.0)
    assert fitted.convergence is None
    assert fitted.bound == -5.0
    assert fitted.traces.log_joint.tolist() == [[1.0, 2.0]]
    assert fitted.traces.partitions.shape == (1, 2, 3)


@pytest.mark.parametrize("n_learning", [0, 4])
def test_a_chain_that_was_put_away_goes_on_as_if_it_had_not_been(n_learning, tmp_path):
    rng = np.random.default_rng(0)
    codes = np.concatenate([rng.integers(0, 2, 60), rng.integers(2, 4, 60), rng.integers(0, 4, 60)])
    data = Sequences((codes,), np.arange(0, 181, 30), np.array([0, 2, 4, 6]))
    emission = Categorical(4)
    sampler = GibbsSampler(data, emission, Priors(), 4, 3, None, n_learning=n_learning)
    begun = start_chain(sampler, 5)
    at_once = go_on(sampler, begun, 7)
    half = go_on(sampler, begun, 3)
    Checkpoint(tmp_path).place("a chain").save(half)
    read = Checkpoint(tmp_path).place("a chain").load()
    for chain in (half, read):
        again = go_on(sampler, chain, 4)
        for ours, theirs in zip(again.position.state, at_once.position.state, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert again.generator == at_once.generator
        assert again.position.n_learning == at_once.position.n_learning
    # Going on left the values that it began with as they were.
    np.testing.assert_array_equal(go_on(sampler, begun, 7).position.state.states, at_once.position.state.states)
