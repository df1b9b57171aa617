"""A chain's state is a value: stopped, written down and gone on from, it draws what it would have drawn."""

import numpy as np
import pytest

from kinfolk import ClusteredNB, PrototypeNB
from kinfolk.naive_bayes.inference import gibbs, noisy_sampling, prototype_unlabelled
from kinfolk.naive_bayes.inference.options import Schedule
from kinfolk.naive_bayes.model.noisy_copies import noise_model
from kinfolk.naive_bayes.model.values import feature_product
from kinfolk.partition.concentration import GammaPrior
from tests.naive_bayes.posed import posed_to

RNG = np.random.default_rng(0)
X, TASK = RNG.integers(3, size=(80, 2)).astype(str), np.arange(80) % 8
Y = np.where(RNG.random(80) < 0.2, None, RNG.integers(2, size=80))
SHORT = {"inference": "gibbs", "n_chains": 1, "n_burn_in": 0, "n_draws": 4, "random_state": 0}


@pytest.mark.parametrize("prior", [None, GammaPrior()], ids=["given concentration", "drawn concentration"])
def test_a_chain_over_seats_and_labels_goes_on_where_it_stood(prior):
    data, hyper = posed_to(ClusteredNB(**SHORT).fit(X, Y, task=TASK))
    hyper = hyper._replace(concentration_prior=prior)

    def chain():
        return gibbs.Chain(data, hyper, feature_product(data, hyper))

    seed = np.random.SeedSequence(1)
    whole, end = gibbs.run_chain(chain(), Schedule(1, 0, 12), seed)
    _, halfway = gibbs.run_chain(chain(), Schedule(1, 0, 7), np.random.SeedSequence(1))
    rest, resumed_end = gibbs.run_chain(chain(), Schedule(1, 0, 5), halfway)
    np.testing.assert_array_equal(rest.seats, whole.seats[7:])
    np.testing.assert_array_equal(rest.label_counts, whole.label_counts[7:])
    np.testing.assert_allclose(rest.log_joint, whole.log_joint[7:], rtol=1e-12)
    np.testing.assert_array_equal(resumed_end.labels, end.labels)
    assert resumed_end.generator == end.generator


def test_a_chain_over_noisy_copies_goes_on_where_it_stood():
    known = np.array([label is not None for label in Y])
    data, hyper = posed_to(ClusteredNB(**SHORT).fit(X[known], Y[known], task=TASK[known]))
    hyper = hyper._replace(concentration_prior=GammaPrior())
    model = noise_model(hyper.feature_prior, data.statistics.layout, (1.0, 0.01))
    kept, back = np.array([0]), np.arange(8)

    def run(n, begin):
        chain = noisy_sampling.NoisyChain(data, hyper, model)
        return noisy_sampling.run_chain(chain, Schedule(1, 0, n), kept, back, begin)

    whole, _ = run(12, np.random.SeedSequence(2))
    _, halfway = run(7, np.random.SeedSequence(2))
    rest, _ = run(5, halfway)
    np.testing.assert_array_equal(rest.seats, whole.seats[7:])
    np.testing.assert_allclose(rest.strengths, whole.strengths[7:], rtol=1e-12)


def test_a_prototypes_chain_goes_on_where_it_stood():
    data, hyper = posed_to(PrototypeNB(n_chains=1, n_burn_in=0, n_draws=4, random_state=0).fit(X, Y, task=TASK))
    model = noise_model(hyper.feature_prior, data.statistics.layout, (1.0, 0.01))

    def run(n, begin):
        chain = prototype_unlabelled.PrototypeChain(data, hyper, model)
        return prototype_unlabelled.run_chain(chain, Schedule(1, 0, n), np.arange(n), begin)

    whole, end = run(12, np.random.SeedSequence(3))
    _, halfway = run(7, np.random.SeedSequence(3))
    rest, resumed_end = run(5, halfway)
    np.testing.assert_array_equal(rest.counts, whole.counts[7:])
    np.testing.assert_allclose(rest.draws.strengths, whole.draws.strengths[7:], rtol=1e-12)
    np.testing.assert_allclose(rest.log_joint, whole.log_joint[7:], rtol=1e-12)
    np.testing.assert_array_equal(resumed_end.labels, end.labels)
    assert resumed_end.generator == end.generator
