"""The estimators: what they say of their data, whichever form it comes in, and how good it is."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import integrate, sparse, stats
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss

import kinfolk
from kinfolk import LICAClassifier, LICARegressor
from kinfolk.datasets import make_lica_tasks
from kinfolk.lica.inference import infer

MADE = make_lica_tasks(12, 25, 30, 2, random_state=0)
RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(70, 15))
LABELS = (SHARED @ RNG.normal(size=(15, 2)) @ RNG.laplace(size=(2, 6)) + RNG.logistic(size=(70, 6)) > 0).astype(float)
GAPS = np.where(RNG.random(LABELS.shape) < 0.25, np.nan, LABELS)
KINDS = [
    {"n_sources": 2},
    {"n_sources": 2, "inference": "map"},
    {"sharing": "individual"},
    {"sharing": "pooled"},
    {"sharing": "hierarchical"},
]
NAMES = ["eb", "map", "individual", "pooled", "hierarchical"]


def fitted(made=MADE, **params):
    return LICAClassifier(random_state=0, new_tasks="expected", **params).fit(made.X, made.y, task=made.task)


@pytest.fixture(scope="module")
def bayes():
    return fitted(n_sources=2)


def as_long(X, Y):
    """The known labels of a matrix, one after the other, with their rows and tasks."""
    task, row = np.nonzero(~np.isnan(Y.T))
    return X[row], Y[row, task], task


# Held-out rows are drawn row by row, and the long form has more of them, so that "map" is compared at given variances
# elsewhere.
def test_the_long_form_and_the_matrix_form_agree():
    X, y, task = as_long(SHARED, GAPS)
    long = LICAClassifier(n_sources=2, loading_variance=0.5, tol=1e-9, max_iter=3000).fit(X, y, task=task)
    matrix = LICAClassifier(n_sources=2, loading_variance=0.5, tol=1e-9, max_iter=3000).fit(SHARED, GAPS)
    every = np.arange(len(GAPS))
    found = np.stack([long.predict_proba(SHARED, task=np.full(len(every), k))[:, 1] for k in range(6)], axis=1)
    np.testing.assert_allclose(found, matrix.predict_proba(SHARED), atol=2e-3)
    np.testing.assert_array_equal(found > 0.5, matrix.predict(SHARED) == 1)


@pytest.mark.parametrize("params", KINDS, ids=NAMES)
def test_sparse_and_dense_tables_give_the_same(params):
    dense = np.where(np.abs(MADE.X) > 1, MADE.X, 0.0)
    model = LICAClassifier(random_state=0, **params)
    expected = model.fit(dense, MADE.y, task=MADE.task).predict_proba(dense, task=MADE.task)
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.dok_matrix):
        table = kind(dense)
        found = model.fit(table, MADE.y, task=MADE.task).predict_proba(table, task=MADE.task)
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("params", KINDS, ids=NAMES)
def test_the_number_of_jobs_and_a_second_fit_change_nothing(params):
    first = fitted(**params)
    for n_jobs in (1, 2):
        again = fitted(n_jobs=n_jobs, **params)
        np.testing.assert_array_equal(again.coef_, first.coef_)
        np.testing.assert_array_equal(again.sources_, first.sources_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_features_and_tasks_come_out_again(frame):
    names = [f"f{j}" for j in range(15)]
    X = frame(dict(zip(names, SHARED.T, strict=True)))
    Y = frame({name: GAPS[:, k] for k, name in enumerate("abcdef")})
    model = LICAClassifier(n_sources=2).fit(X, Y)
    assert model.feature_names_in_.tolist() == names
    assert model.tasks_.tolist() == list("abcdef")
    top = model.top_features(3)
    assert type(top) is frame
    assert list(top["source"]) == [0, 0, 0, 1, 1, 1]
    for h in range(2):
        order = np.argsort(-np.abs(model.components_[h] * model.scaling_.unit))[:3]
        assert list(top["feature"])[3 * h : 3 * h + 3] == [names[j] for j in order]
        np.testing.assert_array_equal(list(top["weight"])[3 * h : 3 * h + 3], model.components_[h, order])
    assert model.score(X, Y[list("fedcba")]) == model.score(X, Y)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_task_column_says_the_same_as_task(bayes, frame):
    columns = {f"f{j}": column for j, column in enumerate(MADE.X.T)}
    X = frame({"who": MADE.task, **columns})
    model = LICAClassifier(n_sources=2, task_column="who", random_state=0).fit(X, MADE.y)
    expected = bayes.predict_proba(MADE.X, task=MADE.task)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert "who" not in list(model.top_features(25)["feature"])
    model.fit_task(X[:30], MADE.y[:30], task="added")
    assert model.tasks_.tolist()[-1] == "added"


def test_a_row_of_weight_two_counts_as_two_rows_and_one_of_weight_zero_not_at_all():
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 3, len(MADE.y))
    copies = np.repeat(np.arange(len(MADE.y)), weights)
    model = LICAClassifier(n_sources=2, loading_variance=0.5, tol=1e-9, max_iter=5000)
    weighted = model.fit(MADE.X, MADE.y, task=MADE.task, sample_weight=weights).predict_proba(MADE.X, task=MADE.task)
    repeated = model.fit(MADE.X[copies], MADE.y[copies], task=MADE.task[copies]).predict_proba(MADE.X, task=MADE.task)
    np.testing.assert_allclose(weighted, repeated, atol=2e-3)


@pytest.mark.parametrize("params", KINDS, ids=NAMES)
def test_a_row_of_weight_zero_might_as_well_be_absent(params):
    kept = np.arange(len(MADE.y)) % 5 > 0
    model = LICAClassifier(random_state=0, **params)
    weighted = model.fit(MADE.X, MADE.y, task=MADE.task, sample_weight=kept).coef_
    without = model.fit(MADE.X[kept], MADE.y[kept], task=MADE.task[kept]).coef_
    np.testing.assert_array_equal(weighted, without)


def test_class_weights_are_weights_of_rows():
    model = LICAClassifier(n_sources=2, class_weight={0: 3.0, 1: 0.5}, random_state=0)
    found = model.fit(MADE.X, MADE.y, task=MADE.task).coef_
    by_rows = LICAClassifier(n_sources=2, random_state=0)
    by_rows.fit(MADE.X, MADE.y, task=MADE.task, sample_weight=np.where(MADE.y == 0, 3.0, 0.5))
    np.testing.assert_array_equal(found, by_rows.coef_)


def test_balanced_classes_weigh_the_same_in_every_task():
    y = np.where(np.arange(len(MADE.y)) % 3 == 0, MADE.y, 0)
    weights = np.ones(len(y))
    for k in range(12):
        its = MADE.task == k
        rate = y[its].mean()
        weights[its] = np.where(y[its] == 1, 0.5 / rate, 0.5 / (1 - rate))
    balanced = LICAClassifier(n_sources=2, class_weight="balanced", random_state=0).fit(MADE.X, y, task=MADE.task)
    by_rows = LICAClassifier(n_sources=2, random_state=0).fit(MADE.X, y, task=MADE.task, sample_weight=weights)
    np.testing.assert_allclose(balanced.coef_, by_rows.coef_, atol=1e-9)


@pytest.mark.parametrize("params", KINDS[:2], ids=NAMES[:2])
def test_a_task_with_one_class_only_learns_from_the_others(params):
    # Each task's weights are the same but for their size: those of a task that has positive rows alone included.
    rng = np.random.default_rng(5)
    X, task = rng.normal(size=(400, 10)), np.repeat(np.arange(10), 40)
    truth = 2.0 * rng.normal(size=10)
    y = (X @ truth + rng.logistic(size=400) > 0).astype(int)
    kept = (task != 0) | (y == 1)
    model = LICAClassifier(random_state=0, **(params | {"n_sources": 1})).fit(X[kept], y[kept], task=task[kept])
    assert np.corrcoef(model.coef_[0], truth)[0, 1] > 0.7
    assert model.predict_proba(X[:40], task=task[:40])[y[:40] == 1, 1].mean() > 0.8
    assert np.isfinite(model.intercept_).all()


def test_a_new_task_gets_what_its_prior_says(bayes):
    asked = MADE.X[:40]
    drawn = np.random.default_rng(0)
    n = 200_000
    prior, scaled = bayes.prior_, bayes.scaling_.apply(asked)
    intercepts = np.array([posterior.intercept for posterior in bayes.posteriors_])
    sources = drawn.laplace(scale=prior.source_scale, size=(n, 2))
    spread = np.sqrt(np.sum(scaled**2 * prior.noise, axis=1) + intercepts.var())
    for i in range(3):
        f = sources @ (prior.loadings.T @ scaled[i]) + spread[i] * drawn.normal(size=n) + intercepts.mean()
        f += scaled[i] @ prior.mean
        found = bayes.predict_proba(asked[[i]], task=["new"])[0, 1]
        assert found == pytest.approx(expit(f).mean(), abs=0.03)
        mean, variance = bayes._fitted_predictor()._moments(asked[[i]], ["new"])
        assert mean[0] == pytest.approx(f.mean(), abs=0.05)
        assert variance[0] == pytest.approx(f.var(), rel=0.05)


def test_a_new_task_of_pooled_tasks_is_like_all_others():
    model = fitted(sharing="pooled")
    known = model.decision_function(MADE.X[:5], task=MADE.task[:5])
    np.testing.assert_allclose(model.decision_function(MADE.X[:5], task=["new"] * 5), known, rtol=1e-9)


@pytest.mark.parametrize("params", KINDS[:2], ids=NAMES[:2])
def test_fitting_the_rows_of_a_known_task_gives_about_its_own_fit(params):
    model = fitted(tol=1e-8, max_iter=1000, **params)
    its = MADE.task == 4
    before = model.coef_[4].copy()
    model.fit_task(MADE.X[its], MADE.y[its], task="again")
    assert model.tasks_.tolist() == [*range(12), "again"]
    assert np.linalg.norm(model.coef_[-1] - before) < 0.05 * np.linalg.norm(before)
    model.fit_task(MADE.X[its], MADE.y[its], task=4)
    assert len(model.tasks_) == 13
    np.testing.assert_array_equal(model.coef_[4], model.coef_[-1])


@pytest.mark.parametrize("params", KINDS[:2], ids=NAMES[:2])
def test_a_warm_start_takes_fewer_iterations_and_does_not_fall_behind(params):
    model = fitted(warm_start=True, **params)
    cold, reached = model.n_iter_, model.objective_[-1]
    assert model.converged_
    model.fit(MADE.X, MADE.y, task=MADE.task)
    assert model.n_iter_ < cold
    assert model.objective_[-1] >= reached - 1e-3 * abs(reached)


def test_a_warm_start_with_other_features_begins_anew():
    model = fitted(warm_start=True, n_sources=2)
    model.fit(MADE.X[:, :10], MADE.y, task=MADE.task)
    fresh = LICAClassifier(n_sources=2, random_state=0).fit(MADE.X[:, :10], MADE.y, task=MADE.task)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)


@pytest.mark.parametrize("params", [{}, {"inference": "map"}])
def test_the_number_of_sources_is_chosen_and_the_choice_shown(params):
    made = make_lica_tasks(8, 15, 20, 1, random_state=0)
    model = fitted(made, **params)
    curve = model.n_sources_curve_
    scores = dict(zip(curve["n_sources"], curve["score"], strict=True))
    assert model.n_sources_ == max(scores, key=scores.get)
    assert model.components_.shape == (model.n_sources_, 15)
    assert len(scores) > 1


@pytest.mark.parametrize("n_sources", [12, 13])
def test_no_fewer_sources_than_tasks_are_warned_of(n_sources):
    with pytest.warns(UserWarning, match=f"n_sources={n_sources} is no fewer than the 12 tasks"):
        model = fitted(n_sources=n_sources, max_iter=500)
    assert np.isfinite(model.coef_).all()


def test_running_out_of_iterations_is_warned_of():
    for inference in ("eb", "map"):
        with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=1"):
            model = fitted(n_sources=2, max_iter=1, inference=inference)
        assert not model.converged_


@pytest.mark.parametrize("inference", ["eb", "map"])
def test_a_task_that_has_not_converged_is_warned_of(inference, monkeypatch):
    monkeypatch.setattr(infer, "_EB_ROUNDS", 1)
    monkeypatch.setattr(infer, "_MAP_ROUNDS", 1)
    model, its = fitted(n_sources=2, inference=inference), MADE.task == 4  # which has sources
    with pytest.warns(ConvergenceWarning, match="the task did not converge within max_iter=1"):
        model.fit_task(MADE.X[its], MADE.y[its], task="new")


def test_a_hierarchy_that_has_not_settled_is_warned_of(monkeypatch):
    monkeypatch.setattr(infer, "HIERARCHY_ROUNDS", 1)
    with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=1"):
        model = fitted(sharing="hierarchical", max_iter=1)
    assert not model.converged_


@pytest.mark.parametrize("params", KINDS, ids=NAMES)
def test_the_decision_function_is_linear_in_the_weights_that_are_shown(params):
    model = fitted(**params)
    expected = np.sum(MADE.X * model.coef_[MADE.task], axis=1) + model.intercept_[MADE.task]
    np.testing.assert_allclose(model.decision_function(MADE.X, task=MADE.task), expected, atol=1e-10)
    assert model.sources_.shape == (12, model.n_sources_)
    assert model.components_.shape == (model.n_sources_, 25)
    assert model.source_similarity_.shape == (12, 12)
    assert (np.diag(model.source_similarity_) == 1.0).all()


def test_sources_times_components_are_the_larger_part_of_the_weights(bayes):
    mixed = bayes.sources_ @ bayes.components_
    assert np.sum((bayes.coef_ - mixed) ** 2) < 0.5 * np.sum(bayes.coef_**2)
    assert (bayes.source_variances_ > 0).all()


def test_tasks_asked_together_answer_as_one_by_one():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(30, 50)), np.where(rng.random((30, 4)) < 0.2, np.nan, rng.integers(0, 2, (30, 4)))
    model = LICAClassifier(n_sources=1, random_state=0).fit(X, Y)
    asked = rng.normal(size=(9, 50))
    alone = [model.predict_proba(asked, task=[k] * 9) for k in range(4)]
    together = model.predict_proba(asked)
    for k in range(4):
        np.testing.assert_allclose(together[:, k], alone[k], atol=1e-12)


def test_the_posterior_variance_of_weights_is_below_the_prior_s():
    model = fitted(n_sources=2, weight_variances=True)
    assert model.weight_variances_.shape == (12, 25)
    assert (model.weight_variances_ > 0).all()
    assert (model.weight_variances_ < model.prior_.noise / model.scaling_.unit**2).all()
    with pytest.raises(AttributeError, match="weight_variances_ needs"):
        _ = fitted(n_sources=2, inference="map").weight_variances_


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_probabilities_average_over_the_weights_and_so_lie_nearer_one_half(link):
    model = fitted(n_sources=2, link=link)
    f = model.decision_function(MADE.X, task=MADE.task)
    plain = expit(f) if link == "logistic" else stats.norm.cdf(f)
    moderated = model.predict_proba(MADE.X, task=MADE.task)[:, 1]
    assert (np.abs(moderated - 0.5) <= np.abs(plain - 0.5)).all()
    np.testing.assert_array_equal(moderated > 0.5, f > 0)
    _, variance = model._fitted_predictor()._moments(MADE.X[:5], MADE.task[:5])
    response = expit if link == "logistic" else stats.norm.cdf
    assert (variance > 0).all()
    for i in range(5):
        deviation = np.sqrt(variance[i])
        exact, _ = integrate.quad(
            lambda z, i=i, deviation=deviation: response(f[i] + deviation * z) * stats.norm.pdf(z), -9, 9
        )
        assert moderated[i] == pytest.approx(exact, abs=0.02 if link == "logistic" else 1e-8)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_tasks_of_a_link_are_predicted_better_by_it_than_by_chance(link):
    made = make_lica_tasks(12, 25, 60, 2, link=link, random_state=1)
    train = np.arange(len(made.y)) % 2 == 0
    model = LICAClassifier(n_sources=2, link=link, random_state=0)
    model.fit(made.X[train], made.y[train], task=made.task[train])
    probability = model.predict_proba(made.X[~train], task=made.task[~train])
    assert log_loss(made.y[~train], probability) < np.log(2) - 0.05
    np.testing.assert_allclose(
        np.exp(model.predict_log_proba(made.X, task=made.task)), model.predict_proba(made.X, task=made.task)
    )


def test_individual_tasks_are_ridge_logistic_regressions():
    model = fitted(sharing="individual", scale=False)
    strength = float(model.prior_.noise[0])
    for k in (0, 7):
        its = MADE.task == k
        # scikit-learn shrinks no intercept, and ours has a prior of variance 100: nothing at this size.
        alone = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000).fit(MADE.X[its], MADE.y[its])
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=0.02 * np.abs(alone.coef_).max())


def split(made):
    train = np.arange(len(made.y)) % 2 == 0
    return (made.X[train], made.y[train], made.task[train]), (made.X[~train], made.y[~train], made.task[~train])


def test_with_true_sources_lica_predicts_better_than_individual_and_pooled_tasks():
    losses = {"sources": [], "individual": [], "pooled": []}
    for seed in range(3):
        (X, y, task), (X_new, y_new, task_new) = split(make_lica_tasks(20, 30, 50, 2, random_state=seed))
        for sharing in losses:
            model = LICAClassifier(n_sources=2, sharing=sharing, random_state=0).fit(X, y, task=task)
            losses[sharing].append(log_loss(y_new, model.predict_proba(X_new, task=task_new)))
    mean = {sharing: np.mean(values) for sharing, values in losses.items()}
    assert mean["sources"] < mean["individual"] - 0.02
    assert mean["sources"] < mean["pooled"] - 0.02


def calibration_error(y, probability):
    """Expected calibration error over ten bins of equal width."""
    place = np.minimum((probability * 10).astype(int), 9)
    return sum(abs(np.sum(probability[place == b] - y[place == b])) for b in range(10)) / len(y)


def test_empirical_bayes_is_better_calibrated_than_the_point_estimate():
    errors = {"eb": [], "map": []}
    for seed in range(3):
        (X, y, task), (X_new, y_new, task_new) = split(make_lica_tasks(20, 40, 40, 2, random_state=seed))
        for inference in errors:
            model = LICAClassifier(n_sources=2, inference=inference, random_state=0).fit(X, y, task=task)
            errors[inference].append(calibration_error(y_new, model.predict_proba(X_new, task=task_new)[:, 1]))
    assert np.mean(errors["eb"]) < np.mean(errors["map"])


def test_intervals_are_wide_enough_where_features_are_more_than_rows():
    # With σ² learnt from the rows themselves, 69 % were covered.
    covered = []
    for seed in range(2):
        made = make_lica_tasks(15, 40, 40, 2, link="gaussian", random_state=seed)
        learnt = np.concatenate([np.flatnonzero(made.task == k)[:20] for k in range(15)])
        new = np.setdiff1d(np.arange(len(made.y)), learnt)
        model = LICARegressor(2, random_state=0).fit(made.X[learnt], made.y[learnt], task=made.task[learnt])
        mean, deviation = model.predict(made.X[new], task=made.task[new], return_std=True)
        covered.append(np.mean(np.abs(made.y[new] - mean) < 1.6449 * deviation))
    assert 0.85 < np.mean(covered) < 0.98


def test_a_regressions_intervals_hold_as_many_targets_as_they_say():
    covered = []
    for seed in range(3):
        made = make_lica_tasks(15, 20, 60, 2, link="gaussian", random_state=seed)
        (X, y, task), (X_new, y_new, task_new) = split(made)
        mean, deviation = (
            LICARegressor(n_sources=2, random_state=0)
            .fit(X, y, task=task)
            .predict(X_new, task=task_new, return_std=True)
        )
        covered.append(np.mean(np.abs(y_new - mean) < 1.6449 * deviation))
    assert 0.86 < np.mean(covered) < 0.96


def test_a_regression_without_sharing_is_ridge_regression():
    made = make_lica_tasks(6, 10, 40, 2, link="gaussian", random_state=0)
    model = LICARegressor(sharing="individual", scale=False, random_state=0).fit(made.X, made.y, task=made.task)
    its = made.task == 2
    ridge = Ridge(alpha=model.prior_.residual_variance / model.prior_.noise[0]).fit(made.X[its], made.y[its])
    np.testing.assert_allclose(model.coef_[2], ridge.coef_, atol=0.01 * np.abs(ridge.coef_).max())


def test_a_matrix_of_numbers_with_gaps_is_scored_task_by_task():
    rng = np.random.default_rng(1)
    Y = SHARED @ rng.normal(size=(15, 4)) + rng.normal(size=(70, 4))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    model = LICARegressor(n_sources=1).fit(SHARED, Y)
    predicted = model.predict(SHARED)
    scores = []
    for k in range(4):
        known = ~np.isnan(Y[:, k])
        error = Y[known, k] - predicted[known, k]
        scores.append(1 - np.sum(error**2) / np.sum((Y[known, k] - Y[known, k].mean()) ** 2))
    assert model.score(SHARED, Y) == pytest.approx(np.mean(scores))


def test_the_score_of_labels_is_the_share_of_known_ones_that_are_right():
    model = LICAClassifier(n_sources=2).fit(SHARED, GAPS)
    known = ~np.isnan(GAPS)
    right = model.predict(SHARED)[known] == GAPS[known]
    assert model.score(SHARED, GAPS) == pytest.approx(right.mean())
    weights = np.arange(70.0)
    per_label = np.broadcast_to(weights[:, None], GAPS.shape)[known]
    assert model.score(SHARED, GAPS, sample_weight=weights) == pytest.approx(np.average(right, weights=per_label))


def test_labels_may_be_text_or_booleans(bayes):
    expected = bayes.predict_proba(MADE.X, task=MADE.task)
    for labels in (np.array(["no", "yes"]), np.array([False, True])):
        model = LICAClassifier(n_sources=2, random_state=0).fit(MADE.X, labels[MADE.y], task=MADE.task)
        assert model.classes_.tolist() == labels.tolist()
        np.testing.assert_array_equal(model.predict_proba(MADE.X, task=MADE.task), expected)
        assert set(model.predict(MADE.X, task=MADE.task)) == set(labels.tolist())


def test_progress_is_shown_on_standard_error_alone(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(n_sources=1, verbose=True)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err
    fitted(n_sources=1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "parameters", [{"n_sources": 2}, {"n_sources": 2, "inference": "map"}, {"sharing": "individual"}]
)
def test_a_regression_far_from_zero_is_the_one_near_it_moved(parameters):
    data = make_lica_tasks(6, 8, 25, 2, link="gaussian", random_state=0)
    near = LICARegressor(random_state=0, **parameters).fit(data.X, data.y, task=data.task)
    far = LICARegressor(random_state=0, **parameters).fit(data.X, data.y + 1e4, task=data.task)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
    np.testing.assert_allclose(far.intercept_ - 1e4, near.intercept_, atol=1e-5)
    far.fit_task(data.X[:25], data.y[:25] + 1e4, task="again")
    near.fit_task(data.X[:25], data.y[:25], task="again")
    moved = far.predict(data.X[:3], task=["again"] * 3) - near.predict(data.X[:3], task=["again"] * 3)
    np.testing.assert_allclose(moved, 1e4, rtol=1e-8)


@pytest.mark.parametrize("estimator", [LICAClassifier, LICARegressor])
def test_score_takes_weights_third_and_tasks_by_keyword_alone(estimator):
    y = MADE.y if estimator is LICAClassifier else MADE.X[:, 0]
    model = estimator(n_sources=1, random_state=0, max_iter=500).fit(MADE.X, y, task=MADE.task)
    weights = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    twice = np.repeat(np.arange(len(y)), weights.astype(int))
    expected = model.score(MADE.X[twice], y[twice], task=MADE.task[twice])
    assert model.score(MADE.X, y, weights, task=MADE.task) == pytest.approx(expected)
    with pytest.raises(TypeError, match="positional"):
        model.score(MADE.X, y, weights, MADE.task)


def test_an_estimator_holds_the_predictor_that_a_file_gives(tmp_path):
    model = fitted(n_sources=2)
    kinfolk.save(model, tmp_path / "model.kin")
    loaded = kinfolk.load(tmp_path / "model.kin")
    own = model._fitted_predictor()
    assert type(own) is type(loaded)
    for mine, theirs in zip(own._model.prior, loaded._model.prior, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert own._model.fitted._fields == loaded._model.fitted._fields
    np.testing.assert_array_equal(
        own.predict_proba(MADE.X, task=MADE.task), loaded.predict_proba(MADE.X, task=MADE.task)
    )
