"""Weights of models: by evidence and by stacking, against closed forms and a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from threadpoolctl import threadpool_info, threadpool_limits

from kinfolk.transfer.held_out import side_by_side
from kinfolk.transfer.weights import by_evidence, by_stacking


def test_weights_by_evidence_are_posterior_probabilities_of_equally_probable_models():
    log_evidence = np.array([-1003.0, -1001.0, -1e6])
    assert np.allclose(by_evidence(log_evidence), softmax(log_evidence))
    assert np.allclose(
        by_evidence(log_evidence, np.log([0.9, 0.1, 0.0 + 1e-9])), softmax(log_evidence + np.log([0.9, 0.1, 1e-9]))
    )


@pytest.mark.parametrize("shares", [np.full(3, 1 / 3), np.array([0.1, 0.6, 0.3])])
def test_stacking_finds_the_maximum_that_a_general_optimiser_finds(shares):
    rng = np.random.default_rng(0)
    log_p, weights = np.log(rng.uniform(0.05, 0.95, size=(80, 3))), rng.uniform(0.5, 2.0, size=80)

    def loss(free):
        w = softmax(np.append(free, 0.0))
        return w @ np.log(w / shares) - weights @ np.log(np.exp(log_p) @ w)

    expected = softmax(np.append(minimize(loss, np.zeros(2), tol=1e-12).x, 0.0))
    assert np.allclose(by_stacking(log_p, weights, shares), expected, atol=1e-4)


def test_a_row_of_weight_two_counts_as_two_rows():
    log_p = np.log(np.random.default_rng(1).uniform(0.05, 0.95, size=(10, 2)))
    twice = np.repeat([1, 2], 5)
    assert np.allclose(
        by_stacking(log_p, twice.astype(float)), by_stacking(np.repeat(log_p, twice, axis=0), np.ones(15))
    )


def test_no_model_is_ruled_out_by_a_few_rows():
    certain, hopeless = -1e-9, -800.0
    few = by_stacking(np.array([[certain, hopeless]] * 3), np.ones(3))
    many = by_stacking(np.array([[certain, hopeless]] * 3000), np.ones(3000))
    # The slope 3/w is that of the divergence, log w/(1 − w).
    assert np.log(few[0] / few[1]) == pytest.approx(3 / few[0], abs=1e-3)
    assert many[1] < 0.001


def test_models_side_by_side_have_a_thread_of_blas_each():
    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        assert side_by_side(2, [(threads,), (threads,)]) == [{1}, {1}]
        assert threads() == {2}
