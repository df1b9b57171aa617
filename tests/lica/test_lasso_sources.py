import numpy as np
import pytest
from sklearn.linear_model import Lasso

from kinfolk.lica.model.lasso_sources import fit_lasso_sources
from kinfolk.lica.model.prior import TaskPrior


def draw(seed=0, n_features=40, n_sources=8, n_tasks=30):
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(n_features, n_sources)) @ (np.eye(n_sources) + 0.5)
    prior = TaskPrior(loadings, rng.uniform(5.0, 50.0, n_features))
    return prior, loadings @ rng.laplace(size=(n_sources, n_tasks)) + rng.normal(size=(n_features, n_tasks))


def test_it_is_scikit_learns_lasso_on_weights_divided_by_their_noise():
    prior, weights = draw()
    root = np.sqrt(prior.noise)[:, None]
    # Theirs is ‖y − Xw‖²/(2n) + α‖w‖₁.
    theirs = Lasso(alpha=1.0 / prior.source_scale / 40, fit_intercept=False, tol=1e-14, max_iter=1_000_000)
    theirs.fit(prior.loadings / root, weights / root)
    found = fit_lasso_sources(prior, weights)
    np.testing.assert_allclose(found, theirs.coef_, atol=1e-7)
    np.testing.assert_array_equal(found == 0.0, np.abs(theirs.coef_) < 1e-9)
    assert 0.1 < np.mean(found == 0.0) < 0.9


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_the_conditions_of_an_optimum_hold(scale):
    prior, weights = draw(1)
    prior = prior._replace(source_scale=scale)
    found = fit_lasso_sources(prior, weights)
    slope = ((weights - prior.loadings @ found.T) / prior.noise[:, None]).T @ prior.loadings
    np.testing.assert_allclose(slope[found != 0.0], np.sign(found[found != 0.0]) / scale, atol=1e-7)
    assert np.abs(slope[found == 0.0]).max() <= 1.0 / scale + 1e-7


def test_orthogonal_loadings_give_soft_thresholding():
    prior = TaskPrior(2.0 * np.eye(3), np.full(3, 4.0), source_scale=0.5)  # G = 1, h = θ/2, threshold 2
    found = fit_lasso_sources(prior, np.array([[10.0], [-10.0], [3.9]]))
    np.testing.assert_allclose(found, [[3.0, -3.0, 0.0]])


def test_a_source_without_loadings_is_zero_whatever_it_starts_from():
    prior = TaskPrior(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2))
    found = fit_lasso_sources(prior, np.full((2, 1), 5.0), start=np.ones((1, 2)))
    assert found[0, 1] == 0.0
    assert found[0, 0] == pytest.approx((10.0 - np.sqrt(2.0)) / 2.0)


def test_the_start_does_not_matter():
    prior, weights = draw(2)
    far = np.random.default_rng(0).normal(size=(30, 8)) * 20
    np.testing.assert_allclose(
        fit_lasso_sources(prior, weights, start=far), fit_lasso_sources(prior, weights), atol=1e-8
    )
