import numpy as np
import pytest
from scipy.stats import kurtosis

from kinfolk.datasets import make_lica_tasks


def test_shapes_follow_the_sizes_asked_for():
    made = make_lica_tasks(3, 5, 7, 2, random_state=0)
    assert (made.X.shape, made.y.shape, made.task.shape) == ((21, 5), (21,), (21,))
    assert (made.loadings.shape, made.sources.shape, made.weights.shape) == ((5, 2), (3, 2), (3, 5))
    np.testing.assert_array_equal(np.bincount(made.task), [7, 7, 7])


def test_without_noise_weights_are_mixtures_of_the_loadings():
    made = make_lica_tasks(10, 6, 2, 3, noise=0.0, random_state=0)
    np.testing.assert_allclose(made.weights, made.sources @ made.loadings.T)


@pytest.mark.parametrize("sparsity", [0.0, 0.7])
@pytest.mark.parametrize("noise", [0.0, 0.4, 1.0])
def test_the_predictor_has_the_standard_deviation_asked_for_and_noise_its_share(sparsity, noise):
    made = make_lica_tasks(400, 200, 1, 20, sparsity=sparsity, noise=noise, signal=2.0, random_state=0)
    assert np.sum(made.weights**2, axis=1).mean() == pytest.approx(4.0, rel=0.1)
    rest = made.weights - made.sources @ made.loadings.T
    assert np.sum(rest**2, axis=1).mean() == pytest.approx(4.0 * noise, rel=0.1, abs=1e-12)


def test_sources_have_unit_variance_and_the_tails_of_their_distribution():
    laplace = make_lica_tasks(20_000, 1, 1, 3, random_state=0).sources
    gaussian = make_lica_tasks(20_000, 1, 1, 3, source="gaussian", random_state=0).sources
    assert laplace.var() == pytest.approx(1.0, rel=0.05)
    assert gaussian.var() == pytest.approx(1.0, rel=0.05)
    assert kurtosis(laplace, axis=None) == pytest.approx(3.0, abs=0.5)
    assert kurtosis(gaussian, axis=None) == pytest.approx(0.0, abs=0.1)


def test_sparsity_is_the_share_of_sources_that_are_zero():
    sources = make_lica_tasks(5_000, 1, 1, 4, sparsity=0.3, random_state=0).sources
    assert np.mean(sources == 0.0) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(("link", "slope"), [("logistic", 1.0), ("probit", 1.0)])
def test_labels_follow_the_link(link, slope):
    from scipy.special import expit, ndtr

    made = make_lica_tasks(4, 3, 20_000, 1, link=link, random_state=0)
    f = np.sum(made.X * made.weights[made.task], axis=1)
    mean = {"logistic": expit, "probit": ndtr}[link]
    assert set(np.unique(made.y)) == {0, 1}
    for low, high in ((-3, -1), (-0.5, 0.5), (1, 3)):
        near = (f > low) & (f < high)
        assert made.y[near].mean() == pytest.approx(mean(slope * f[near]).mean(), abs=0.02)


def test_a_gaussian_link_adds_a_standard_normal_residual():
    made = make_lica_tasks(4, 3, 5_000, 1, link="gaussian", random_state=0)
    assert np.std(made.y - np.sum(made.X * made.weights[made.task], axis=1)) == pytest.approx(1.0, rel=0.03)


def test_the_same_seed_gives_the_same_tasks():
    one, two = (make_lica_tasks(3, 4, 5, 2, random_state=7) for _ in range(2))
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_tasks": 0}, r"^n_tasks is 0; it needs to be 1 or more\.$"),
        ({"sparsity": 1.0}, r"^sparsity is 1\.0; it needs to be at least 0 and below 1\.$"),
        ({"noise": -0.1}, r"^noise is -0\.1; it needs to be from 0 to 1\.$"),
        ({"source": "cauchy"}, r"^source is 'cauchy'; it needs to be one of laplace, gaussian\.$"),
        ({"link": "tanh"}, r"^link is 'tanh'; it needs to be one of logistic, probit, gaussian\.$"),
    ],
)
def test_a_number_out_of_range_is_refused_with_one_sentence(given, message):
    sizes = {"n_tasks": 2, "n_features": 2, "n_rows": 2, "n_sources": 1}
    with pytest.raises(ValueError, match=message):
        make_lica_tasks(**(sizes | given))
