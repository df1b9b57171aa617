"""The E-step over tasks side by side: each is what it is alone, dense or sparse, filled up or not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kinfolk.lica.inference.eb import fit_empirical_bayes
from kinfolk.lica.inference.expectation import Family, Sweeps, fresh_states, update_tasks, variances_of_weights
from kinfolk.lica.inference.layout import lay_out
from kinfolk.lica.model.data import make_linear_tasks
from kinfolk.lica.model.prior import TaskPrior
from tests.lica.sweeps import each

LINKS = ["logistic", "probit", "gaussian"]
WIDE, TALL = (6, 14), (30, 4)  # rows and features of a task: handled by rows, by features
SAME = {"rtol": 1e-9, "atol": 1e-11}


def both_ways(shape, link, seed=0, n_tasks=5, one_class=False):
    """The same tasks of unequal sizes, some rows of which they share, over a dense and over a sparse table."""
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


def swept(data, prior, family, sweeps, isotropic=True, want_variances=False, states=None):
    layout = lay_out(data, isotropic)
    states = fresh_states(layout, prior, family) if states is None else states
    return layout, update_tasks(layout, prior, states, family, sweeps, want_variances=want_variances, n_jobs=1)


def assert_same(some, others, link="logistic"):
    for one, other in zip(some, others, strict=True):
        for field in one._fields:
            if link == "gaussian" and field == "step":
                continue  # sites that are exact do not move: whether a step was halved is a matter of rounding
            np.testing.assert_allclose(getattr(one, field), getattr(other, field), **SAME, err_msg=field)


@pytest.mark.parametrize("shared_mean", [True, False])
@pytest.mark.parametrize("bound", ["average", "tangent"])
@pytest.mark.parametrize("sources", ["laplace", "gaussian"])
@pytest.mark.parametrize("shape", [WIDE, TALL])
@pytest.mark.parametrize("link", LINKS)
def test_a_posterior_after_some_sweeps_is_that_of_the_task_alone_dense_or_sparse(
    link, shape, sources, bound, shared_mean
):
    family, isotropic = Family(link, sources, bound), shape == WIDE
    prior = a_prior(shape[1], isotropic=isotropic, shared_mean=shared_mean)
    how = {"isotropic": isotropic, "want_variances": not isotropic}
    dense, thin = both_ways(shape, link)
    together, table = swept(dense, prior, family, Sweeps(4), **how), swept(thin, prior, family, Sweeps(4), **how)
    assert_same(each(*together), each(*table), link)
    alone = [each(*swept(dense.of_tasks([k]), prior, family, Sweeps(4), **how))[0] for k in range(dense.n_tasks)]
    assert_same(each(*together), alone, link)


def test_rows_that_fill_tasks_up_change_nothing():
    rng = np.random.default_rng(0)
    sizes = [0, 1, 16, 17, 18, 33, 34, 35, 36, 70, 71, 80]  # 17 is filled up to 18, 33 to 36, 70 to 72
    X = rng.normal(size=(sum(sizes), 50))
    rows = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    y = [np.where(rng.random(size) < 0.5, -1.0, 1.0) for size in sizes]
    data, prior, family = make_linear_tasks(X, rows, y), a_prior(50, isotropic=False), Family("logistic")
    layout, states = swept(data, prior, family, Sweeps(3), False, True)
    assert len(layout.batches) < len(sizes)
    assert any(not batch.here.all() for batch in layout.batches)
    assert sorted(np.concatenate([batch.tasks for batch in layout.batches])) == list(range(len(sizes)))
    alone = [each(*swept(data.of_tasks([k]), prior, family, Sweeps(3), False, True))[0] for k in range(len(sizes))]
    assert_same(each(layout, states), alone)


@pytest.mark.parametrize("same_prior", [True, False])
@pytest.mark.parametrize("link", LINKS)
def test_sweeps_go_on_from_states_of_another_prior_and_of_the_same(link, same_prior):
    family, prior = Family(link), a_prior(WIDE[1])
    later = prior if same_prior else prior._replace(noise=prior.noise * 2.0, residual_variance=1.7)
    found = []
    for data in both_ways(WIDE, link):
        _, states = swept(data, prior, family, Sweeps(2))
        found.append(each(*swept(data, later, family, Sweeps(2, same_prior=same_prior), states=states)))
    assert_same(*found, link)


def test_steps_that_would_lower_the_bound_are_halved_and_remembered_task_by_task():
    # Tasks of one class overshoot where little holds their intercept.
    prior, family = a_prior(WIDE[1])._replace(intercept_variance=100.0), Family("logistic")
    data = both_ways(WIDE, "logistic", one_class=True)[0]
    layout, states = swept(data, prior, family, Sweeps(20))
    assert states.step.min() < 1.0
    alone = [swept(data.of_tasks([k]), prior, family, Sweeps(20)) for k in range(data.n_tasks)]
    assert_same(each(layout, states), [each(*one)[0] for one in alone])
    later = prior._replace(noise=prior.noise * 2.0)
    again = swept(data, later, family, Sweeps(), states=states)
    one_by_one = [
        each(*swept(data.of_tasks([k]), later, family, Sweeps(), states=one[1]))[0] for k, one in enumerate(alone)
    ]
    assert_same(each(*again), one_by_one)


def test_a_task_that_no_sweep_improves_stays_the_very_same():
    data, _ = both_ways(WIDE, "gaussian")
    prior, family = a_prior(WIDE[1]), Family("gaussian")
    _, states = swept(data, prior, family, Sweeps())
    states = states._replace(bound=states.bound + 1.0)  # more than any sweep can reach
    _, after = swept(data, prior, family, Sweeps(3, same_prior=True), states=states)
    for one, other in zip(after, states, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sweeps_end_where_they_gain_less_than_the_tolerance():
    data, _ = both_ways(WIDE, "logistic")
    prior, family = a_prior(WIDE[1]), Family("logistic")
    one, two, some, many = (
        swept(data, prior, family, sweeps)[1].bound
        for sweeps in (Sweeps(1), Sweeps(2), Sweeps(50, np.inf), Sweeps(50, 1e-10))
    )
    np.testing.assert_array_equal(some, two)  # the first sweep beyond one gains less than infinity
    assert np.all(many > two)
    assert np.all(two >= one)


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
@pytest.mark.parametrize("link", LINKS)
def test_a_fit_of_dense_tasks_is_that_of_the_same_tasks_in_a_sparse_table(link, noise):
    settings = {"link": link, "n_sources": 2, "noise": noise, "shared_mean": True, "shared_intercepts": True}
    dense, thin = (
        fit_empirical_bayes(data, **settings, max_iter=6, n_jobs=1) for data in both_ways(WIDE, link, n_tasks=9)
    )
    np.testing.assert_allclose(dense.objective, thin.objective, rtol=1e-8)
    np.testing.assert_allclose(dense.prior.noise, thin.prior.noise, rtol=1e-6)
    np.testing.assert_allclose(dense.tasks[4].weights, thin.tasks[4].weights, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_variances_of_weights_asked_for_later_are_those_found_on_the_way(shape):
    prior, family = a_prior(shape[1]), Family("logistic")
    for data in both_ways(shape, "logistic"):
        layout, states = swept(data, prior, family, Sweeps(2), want_variances=True)
        np.testing.assert_allclose(variances_of_weights(layout, prior, states), states.weight_variance, rtol=1e-9)


def many_tasks(isotropic):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, size=300)
    X = rng.normal(size=(sizes.sum(), 20))
    rows = np.split(np.arange(len(X)), np.cumsum(sizes)[:-1])
    data = make_linear_tasks(sparse.csr_matrix(X), rows, [np.sign(X[its, 0]) for its in rows])
    return lay_out(data, isotropic), a_prior(20, isotropic=isotropic), Family("logistic")


def contents(value):
    """All arrays of a layout, copied."""
    if isinstance(value, tuple):
        return [array for part in value for array in contents(part)]
    if sparse.issparse(value):
        return contents((value.data, value.indices, value.indptr))
    return [value.copy()] if isinstance(value, np.ndarray) else []


@pytest.mark.parametrize("isotropic", [True, False])
def test_threads_share_a_layout_that_none_of_them_changes(isotropic):
    layout, prior, family = many_tasks(isotropic)
    assert len(layout.batches) > 4  # more than threads
    before = contents(layout)
    states = fresh_states(layout, prior, family)
    alone, *others = (
        update_tasks(layout, prior, states, family, Sweeps(2), want_variances=not isotropic, n_jobs=n)
        for n in (1, 4, 4, 4)
    )
    for together in others:
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, other)
    for was, now in zip(before, contents(layout), strict=True):
        np.testing.assert_array_equal(was, now)
