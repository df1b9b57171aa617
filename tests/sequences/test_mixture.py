"""The whole model by mean field: its bound against enumeration, its draws, and many tasks a batch at a time."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from kinfolk.sequences.inference import stochastic_variational
from kinfolk.sequences.inference.agglomeration import find_clusters
from kinfolk.sequences.inference.mean_field_mixture import fit_mixture, start_mixture, to_draws, with_responsibilities
from kinfolk.sequences.inference.stochastic_variational import fit_stochastically
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences
from tests.sequences.oracle import exact_posterior
from tests.sequences.test_agglomeration import paper_tasks, two_kinds


@pytest.fixture(scope="module")
def found():
    return find_clusters(two_kinds(), Categorical(3), Priors(), 6)


@pytest.mark.parametrize("data", [([0, 0, 0, 0], [1, 1, 1, 1]), ([0, 1, 0, 1], [0, 1, 1]), ([0], [0])])
def test_bound_is_below_the_exact_evidence_of_two_tasks(data):
    fixed = Priors(0.8, 1.0, 1.2, 0.4, 0.3)
    exact = exact_posterior(data, 2, 3, eta=0.8, gamma=1.0, alpha=1.2, kappa=0.3, strength=0.4)
    bounds = np.array([0, len(data[0]), len(data[0]) + len(data[1])])
    sequences = Sequences((np.concatenate(data),), bounds, np.array([0, 1, 2]))
    found = find_clusters(sequences, Categorical(2), fixed, 2)
    fit = fit_mixture(sequences, fixed, start_mixture(found, 3))
    assert exact.log_evidence - 6.0 < fit.bound < exact.log_evidence


def test_bound_rises_with_every_iteration_though_hyper_parameters_are_learnt():
    sequences, _ = paper_tasks(0, n_sequences=3)
    found = find_clusters(sequences, Categorical(8), Priors(1.0, 1.0, 1.0, 1.0, 0.0), 6, n_starts=1)
    start = start_mixture(found, 10)
    blurred = 0.6 * start.responsibilities + 0.4 / start.responsibilities.shape[1]
    fit = fit_mixture(sequences, Priors(), start._replace(responsibilities=blurred), tolerance=1e-6)
    assert len(fit.trace) > 5
    assert (np.diff(fit.trace) > -1e-8).all()


def test_with_room_for_one_cluster_the_bound_is_that_of_the_cluster():
    """Sizes of clusters are certain then, so that the partition adds nothing, whatever its concentration."""
    sequences, fixed = two_kinds().of_tasks(np.array([0, 2])), Priors(0.8, 1.0, 1.2, 0.4, 0.3)
    found = find_clusters(sequences, Categorical(3), fixed, 4)
    assert found.clusters == ((0, 1),)
    fit = fit_mixture(sequences, fixed, start_mixture(found, 1))
    assert fit.bound == pytest.approx(found.fits[0].bound, abs=1e-3)


def test_clusters_of_the_paper_stay_when_they_are_found():
    sequences, truth = paper_tasks(0, n_sequences=15)
    found = find_clusters(sequences, Categorical(8), Priors(), 6, n_starts=2)
    fit = fit_mixture(sequences, Priors(), start_mixture(found, 20))
    assert adjusted_rand_score(truth, fit.partition) == 1.0
    assert fit.responsibilities.sum(axis=1) == pytest.approx(np.ones(12))


def test_a_task_in_the_wrong_cluster_moves_to_its_kin(found):
    sequences = two_kinds()
    start = start_mixture(found, 20)
    wrong = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.0, 1.0]])
    fit = fit_mixture(sequences, Priors(), start._replace(responsibilities=wrong))
    assert fit.partition[2] == fit.partition[0] != fit.partition[1]


def test_responsibilities_are_softmax_of_expected_log_weights_and_local_bounds(found):
    start = start_mixture(found, 20)._replace(eta=1.0)
    local = np.array([[0.0, -1.0], [-2.0, 0.0], [0.0, 0.0], [-1.0, -1.5]])
    found_now = with_responsibilities(start, local).responsibilities
    # Two tasks are in each cluster at the start, so that expected log weights are equal.
    assert found_now == pytest.approx(np.exp(local - logsumexp(local, axis=1, keepdims=True)))


def test_draws_have_the_shapes_and_the_moments_of_the_posterior(found):
    sequences = two_kinds()
    fit = fit_mixture(sequences, Priors(), start_mixture(found, 20))
    draws = to_draws(fit, 400, np.random.default_rng(0))
    assert {tuple(draw.cluster.tolist()) for draw in draws} == {(0, 1, 0, 1)}
    assert draws[0].base_weights.shape == (2, 6)
    assert draws[0].transitions.shape == (4, 7, 6)
    for draw in draws[:5]:
        assert draw.transitions.sum(axis=2) == pytest.approx(np.ones((4, 7)))
        assert draw.base_weights.sum(axis=1) == pytest.approx(np.ones(2))
        assert draw.n_states.tolist() == [2, 2, 2, 2]
    own = fit.fits[int(fit.partition[0])]
    expected = own.statistics[0] + fit.emission.strength
    mean = np.exp([draw.parameters[0, 0, :3] for draw in draws]).mean(axis=0)
    assert mean == pytest.approx(expected / expected.sum(), abs=0.02)
    rows = np.array([draw.transitions[0, 1] for draw in draws]).mean(axis=0)
    counted = own.counts[0, 1] / own.counts[0, 1].sum()
    assert rows[: len(counted)] == pytest.approx(counted, abs=0.1)


def test_clusters_beyond_those_of_the_model_are_taken_in_by_others(found):
    fit = fit_mixture(two_kinds(), Priors(), start_mixture(found, 1))
    assert fit.partition.tolist() == [0, 0, 0, 0]


def test_batches_find_the_kinds_of_many_tasks():
    sequences, truth = paper_tasks(1, n_sequences=60)
    # The same sequences as tasks of four sequences each.
    many = Sequences(sequences.observations, sequences.bounds, np.arange(0, 721, 4))
    fit = fit_stochastically(many, Categorical(8), Priors(), n_clusters=20, n_states=6)
    assert adjusted_rand_score(np.repeat(truth, 15), fit.partition) > 0.95
    assert (np.diff(fit.trace) > -1e-8).all()


def test_thousands_of_tasks_of_one_step_have_nearly_the_evidence_of_independent_codes():
    codes = np.random.default_rng(0).choice(4, p=[0.4, 0.3, 0.2, 0.1], size=3_000)
    sequences = Sequences((codes,), np.arange(3_001), np.arange(3_001))
    emission = Categorical(4)
    fit = fit_stochastically(sequences, emission, Priors(), n_clusters=20, n_states=10)
    pooled = float(emission.log_marginal(np.bincount(codes)[None].astype(float))[0])
    assert pooled - 15.0 < fit.bound < pooled + 1.0


def test_steps_get_shorter_from_batch_to_batch(monkeypatch):
    lengths = []

    def recorded(globals_, batch, n_tasks, length):
        lengths.append(length)
        return globals_

    monkeypatch.setattr(stochastic_variational, "_step", recorded)
    monkeypatch.setattr(stochastic_variational, "_FEWEST_OF_BATCH", 2)
    monkeypatch.setattr(stochastic_variational, "_STEPS_OF_BATCH", 1)
    codes = np.tile([0, 1], 20)
    few = Sequences((codes,), np.arange(0, 41, 10), np.arange(5))
    fit_stochastically(few, Categorical(2), Priors(), n_clusters=2, n_states=2, n_passes=2)
    assert lengths == pytest.approx([(i + 2.0) ** -0.6 for i in range(4)])
