"""Compiled sweeps over small tasks are those of the general path, which sparse features take, number by number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kinfolk.lica.inference.designs import Designs
from kinfolk.lica.inference.eb import fit_empirical_bayes
from kinfolk.lica.inference.expectation import Family, fresh_states, update_tasks
from kinfolk.lica.inference.small_updates import MOST_WORK
from kinfolk.lica.model.data import make_linear_tasks
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.lica.model.site_kernels import match_row
from kinfolk.lica.model.sites import Rows, match
from kinfolk.lica.model.small_posterior import factorise, invert_lower

LINKS = ["logistic", "probit", "gaussian"]
WIDE, TALL = (6, 14), (30, 4)  # rows and features of a task: handled by rows, by features
SAME = {"rtol": 1e-9, "atol": 1e-11}


def both_ways(shape, link, seed=0, n_tasks=5, one_class=False):
    """The same tasks, some rows of which they share, over a dense and over a sparse table."""
    rng = np.random.default_rng(seed)
    n_rows, n_features = shape
    X = rng.normal(size=(2 * n_rows, n_features))
    rows = [rng.choice(2 * n_rows, size=n_rows + k % 2, replace=False) for k in range(n_tasks)]
    f = [X[place] @ rng.normal(size=n_features) * 0.7 + 0.3 for place in rows]
    y = [one + rng.normal(size=len(one)) for one in f]
    if link != "gaussian":
        y = [np.ones(len(one)) if one_class else np.where(one > 0.0, 1.0, -1.0) for one in y]
    weights = [rng.choice([0.5, 1.0, 2.0], size=len(one)) for one in y]
    return [make_linear_tasks(table, rows, y, weights) for table in (X, sparse.csr_matrix(X))]


def a_prior(n_features, n_sources=3, isotropic=True, shared_mean=True, seed=1):
    rng = np.random.default_rng(seed)
    return TaskPrior(
        rng.normal(size=(n_features, n_sources)) * 0.5,
        np.full(n_features, 0.4) if isotropic else rng.gamma(2.0, 0.3, n_features),
        intercept_variance=3.0,
        residual_variance=0.8,
        mean=rng.normal(size=n_features) if shared_mean else None,
        intercept_mean=-0.4,
    )


def swept(problem, prior, family, isotropic=True, states=None, **how):
    designs = Designs(problem, isotropic)
    states = fresh_states(problem, prior, family) if states is None else states
    return designs, update_tasks(designs, prior, states, family, n_jobs=1, **how)


def assert_same(compiled, general):
    for one, other in zip(compiled, general, strict=True):
        for field in one._fields:
            left, right = getattr(one, field), getattr(other, field)
            if left is None or right is None:
                assert left is right
            else:
                np.testing.assert_allclose(left, right, **SAME, err_msg=field)


@pytest.mark.parametrize("shared_mean", [True, False])
@pytest.mark.parametrize("bound", ["average", "tangent"])
@pytest.mark.parametrize("sources", ["laplace", "gaussian"])
@pytest.mark.parametrize("shape", [WIDE, TALL])
@pytest.mark.parametrize("link", LINKS)
def test_a_posterior_after_some_sweeps_is_that_of_the_general_path(link, shape, sources, bound, shared_mean):
    family, isotropic = Family(link, sources, bound), shape == WIDE
    prior = a_prior(shape[1], isotropic=isotropic, shared_mean=shared_mean)
    how = {"isotropic": isotropic, "want_variances": not isotropic, "n_sweeps": 4}
    (designs, compiled), (others, general) = (
        swept(problem, prior, family, **how) for problem in both_ways(shape, link)
    )
    assert designs.small.tasks == [0, 1, 2, 3, 4]
    assert others.small.tasks == []
    assert_same(compiled, general)


@pytest.mark.parametrize("same_prior", [True, False])
@pytest.mark.parametrize("link", LINKS)
def test_sweeps_go_on_from_states_of_another_prior_and_of_the_same(link, same_prior):
    family, prior = Family(link), a_prior(WIDE[1])
    later = prior if same_prior else prior._replace(noise=prior.noise * 2.0, residual_variance=1.7)
    found = []
    for problem in both_ways(WIDE, link):
        _, states = swept(problem, prior, family, n_sweeps=2)
        found.append(swept(problem, later, family, states=states, n_sweeps=2, same_prior=same_prior)[1])
    assert_same(*found)


def test_steps_that_would_lower_the_bound_are_halved_alike_and_remembered():
    # Tasks of one class overshoot where little holds their intercept.
    prior, family = a_prior(WIDE[1])._replace(intercept_variance=100.0), Family("logistic")
    problems = both_ways(WIDE, "logistic", one_class=True)
    found = [swept(problem, prior, family, n_sweeps=20)[1] for problem in problems]
    assert min(state.step for state in found[0]) < 1.0
    assert_same(*found)
    later = prior._replace(noise=prior.noise * 2.0)
    assert_same(*(swept(which, later, family, states=states)[1] for which, states in zip(problems, found, strict=True)))


def test_a_task_that_no_sweep_improves_stays_the_very_same():
    problem, _ = both_ways(WIDE, "gaussian")
    prior, family = a_prior(WIDE[1]), Family("gaussian")
    _, states = swept(problem, prior, family)
    states = [state._replace(bound=state.bound + 1.0) for state in states]  # more than any sweep can reach
    _, after = swept(problem, prior, family, states=states, n_sweeps=3, same_prior=True)
    assert all(one is other for one, other in zip(after, states, strict=True))


def test_sweeps_end_where_they_gain_less_than_the_tolerance():
    problem, _ = both_ways(WIDE, "logistic")
    prior, family = a_prior(WIDE[1]), Family("logistic")
    one, some, many = (
        np.array([state.bound for state in swept(problem, prior, family, n_sweeps=n, tol=tol)[1]])
        for n, tol in ((1, 0.0), (50, np.inf), (50, 1e-10))
    )
    two = np.array([state.bound for state in swept(problem, prior, family, n_sweeps=2)[1]])
    np.testing.assert_array_equal(some, two)  # the first sweep beyond one gains less than infinity
    assert np.all(many > two)
    assert np.all(two >= one)


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
@pytest.mark.parametrize("link", LINKS)
def test_a_fit_of_small_dense_tasks_is_that_of_the_same_tasks_in_a_sparse_table(link, noise):
    settings = {"link": link, "n_sources": 2, "noise": noise, "shared_mean": True, "shared_intercepts": True}
    dense, general = (
        fit_empirical_bayes(problem, **settings, max_iter=6, n_jobs=1) for problem in both_ways(WIDE, link, n_tasks=9)
    )
    np.testing.assert_allclose(dense.bound, general.bound, rtol=1e-8)
    np.testing.assert_allclose(dense.prior.noise, general.prior.noise, rtol=1e-6)
    np.testing.assert_allclose(dense.tasks[4].weights, general.tasks[4].weights, rtol=1e-5, atol=1e-7)


def test_large_tasks_beside_small_ones_and_tasks_without_rows_each_go_their_way():
    rng = np.random.default_rng(0)
    n_features = 60
    n_large = int(MOST_WORK / (n_features + 1) ** 2) + 1
    X = rng.normal(size=(n_large + 10, n_features))
    rows = [np.arange(5), np.arange(n_large + 10), np.zeros(0, dtype=np.int64), np.arange(4, 9)]
    y = [np.where(rng.random(len(place)) < 0.5, -1.0, 1.0) for place in rows]
    prior, family = a_prior(n_features), Family("logistic")
    found = []
    for table in (X, sparse.csr_matrix(X)):
        designs, states = swept(make_linear_tasks(table, rows, y), prior, family, n_sweeps=3)
        found.append(states)
        assert designs.small.tasks == ([0, 3] if table is X else [])
    assert_same(*found)


def test_any_number_of_threads_gives_the_same_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_300, 3))  # tasks of one row: more than one thread takes at a time
    problem = make_linear_tasks(X, np.arange(1_300)[:, None], np.sign(X[:, :1]))
    prior, family = a_prior(3), Family("logistic")
    designs, states = Designs(problem, True), fresh_states(problem, prior, family)
    assert designs.small.n_chunks == 3
    alone, together = (update_tasks(designs, prior, states, family, n_sweeps=2, n_jobs=n) for n in (1, 3))
    for one, other in zip(alone, together, strict=True):
        assert one.bound == other.bound
        np.testing.assert_array_equal(one.predictor, other.predictor)


@pytest.mark.parametrize("bound", ["average", "tangent"])
@pytest.mark.parametrize("link", LINKS)
def test_the_site_of_one_row_is_that_of_many(link, bound):
    rng = np.random.default_rng(0)
    y = rng.normal(size=40) if link == "gaussian" else rng.choice([-1.0, 1.0], size=40)
    mean, variance = rng.normal(size=40) * 6.0, rng.gamma(1.0, 4.0, 40)
    mean[0], variance[0] = 0.0, 1e-12  # where the logistic's tangent has a series
    weights = rng.gamma(2.0, 0.5, 40)
    sites, value = match(Rows(link, y, weights, 0.7, bound), mean, variance)
    code = LINKS.index(link)
    rows = [
        match_row(code, bound == "average", *of_row)
        for of_row in zip(y, weights, np.full(40, 0.7), mean, variance, strict=True)
    ]
    precision, shift, values = np.array(rows).T
    np.testing.assert_allclose(precision, sites.precision, rtol=1e-10)
    np.testing.assert_allclose(shift, sites.shift, rtol=1e-9, atol=1e-12)
    assert np.sum(values) == pytest.approx(value, rel=1e-11)


def test_factor_and_inverse_are_those_of_numpy():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(9, 9))
    matrix = root @ root.T + np.eye(9)
    lower = matrix.copy()
    assert factorise(lower) == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12)
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(invert_lower(lower) @ np.tril(lower), np.eye(9), atol=1e-13)
