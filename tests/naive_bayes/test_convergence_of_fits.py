"""What sampling leaves behind says whether its chains have converged."""

import numpy as np
import pytest

from kinfolk import ClusteredNB, PrototypeNB
from kinfolk.convergence import bulk_ess, r_hat
from kinfolk.maths.dirichlet import dirichlet_product
from kinfolk.naive_bayes.inference.gibbs import convergence_of_draws
from kinfolk.naive_bayes.inference.prototype_labelled import convergence_of_prototypes
from kinfolk.partition.gibbs import Seating
from kinfolk.partition.split_merge import split_and_merge
from tests.problems import as_arguments, random_problems

(PROBLEM,) = random_problems(1, seed=400, n_tasks=4, n_rows=16)


def test_clustered_chains_are_judged_by_log_joint_and_number_of_clusters():
    posterior = ClusteredNB(inference="gibbs", random_state=0).fit(**as_arguments(PROBLEM)).posterior_
    assert posterior.convergence.converged
    clusters = np.array([[len(set(seats)) for seats in chain] for chain in posterior.partitions.tolist()])
    assert posterior.convergence.r_hat["number of clusters"] == pytest.approx(r_hat(clusters.astype(float)))
    assert posterior.convergence.ess["log joint"] == pytest.approx(bulk_ess(posterior.log_joint), rel=0.05)


def test_prototype_chains_are_judged_by_log_joint_and_the_worst_strength():
    model = PrototypeNB(random_state=0).fit(**as_arguments(PROBLEM))
    verdict, strengths = model.posterior_.convergence, model.posterior_.prototypes.strengths
    assert verdict.converged
    groups = range(strengths.shape[2])
    assert verdict.r_hat["strengths"] == pytest.approx(max(r_hat(strengths[:, :, g]) for g in groups))
    assert verdict.ess["strengths"] == pytest.approx(min(bulk_ess(strengths[:, :, g]) for g in groups))
    stuck = strengths.copy()
    stuck[0, :, 1] *= 100
    assert not convergence_of_prototypes(model.posterior_.log_joint, stuck).converged


@pytest.mark.parametrize("with_moves", [False, True])
def test_chains_that_start_apart_meet_with_splits_and_merges_and_do_not_without(with_moves):
    # Two kinds of tasks of two rows each; two of the chains start with all of them together, two with each kind apart.
    counts = np.repeat(np.array([[2, 0], [0, 2]], dtype=np.int32), 50, axis=0)
    product = dirichlet_product(np.ones(2), np.array([0, 2]), int(counts.sum()))
    log_joint = np.empty((4, 100))
    for chain, kept in enumerate(log_joint):
        rng = np.random.default_rng(chain)
        seating = Seating(counts, product, 1e-4)
        seating.place(np.repeat([0, chain % 2], 50))
        for sweep in range(-20, 100):
            seating.sweep(rng.random(100))
            if with_moves:
                split_and_merge(seating, rng)
            if sweep >= 0:
                kept[sweep] = seating.log_likelihood + seating.log_prior
    verdict = convergence_of_draws(log_joint)
    assert verdict.converged == with_moves
    assert ("nothing needs to be done" if with_moves else "disagree about the log joint") in verdict.advice()
