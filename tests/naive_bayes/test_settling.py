"""Hyper-parameters that have not settled are told of; models with missing numbers are saved; rows are split once."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk import ClusteredNB, NoSharingNB
from kinfolk.naive_bayes.inference import clustered, empirical_bayes, fitting

RNG = np.random.default_rng(0)
X, Y = RNG.integers(3, size=(90, 2)).astype(str), RNG.integers(2, size=90)
TASK = np.arange(90) % 6


class Unsettled:
    """What a search returns that ran out of steps."""

    success, nit, message = False, 3, "out of steps"

    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize(("given", "what"), [("temper", "label_prior"), ("label_prior", "temper")])
def test_a_search_that_runs_out_of_steps_says_so(given, what, monkeypatch):
    monkeypatch.setattr(fitting, "minimize", lambda loss, start, **_: Unsettled(start))
    with pytest.warns(ConvergenceWarning, match=f"{what} had not settled"):
        NoSharingNB(feature_prior=1.0, **{given: 1.0}).fit(X, Y, task=TASK)


def test_strengths_that_do_not_settle_say_so(monkeypatch):
    monkeypatch.setattr(empirical_bayes, "_ENOUGH", -1.0)
    monkeypatch.setattr(empirical_bayes, "_best_log_strength", lambda *_: 0.5)
    with pytest.warns(ConvergenceWarning, match="feature_prior had not settled after 25 steps"):
        NoSharingNB(temper=1.0).fit(X, Y, task=TASK)


def test_rounds_of_clustering_and_learning_that_do_not_settle_say_so(monkeypatch):
    monkeypatch.setattr(clustered, "_SETTLED", -1.0)
    with pytest.warns(ConvergenceWarning, match="had not settled after 4 rounds"):
        ClusteredNB(concentration="learn").fit(X, Y, task=TASK)


def test_a_model_with_missing_numbers_in_unlabelled_rows_loads_as_the_estimator_that_it_was(tmp_path):
    numbers = RNG.normal(size=(60, 2))
    numbers[::5, 0] = np.nan
    labels = np.where(np.arange(60) % 5 == 0, None, RNG.integers(2, size=60))
    model = ClusteredNB(inference="gibbs", numeric="gaussian", n_chains=1, n_draws=5, n_burn_in=5, random_state=0)
    model.fit(numbers, labels, task=np.arange(60) % 3)
    kinfolk.save(model, tmp_path / "model.kin")
    again = kinfolk.load(tmp_path / "model.kin", estimator=True)
    task = np.arange(60) % 3
    np.testing.assert_array_equal(again.predict_proba(numbers, task=task), model.predict_proba(numbers, task=task))
    more = [each.partial_fit(numbers[:9], labels[1:10], task=task[:9]) for each in (again, model)]
    assert more[0]._result.data.n_unlabelled == more[1]._result.data.n_unlabelled


def test_rows_of_many_tasks_in_any_order_are_explained_each_for_itself():
    model = ClusteredNB().fit(X, Y, task=TASK)
    mixed = RNG.permutation(90)[:20]
    together = model.explain(X[mixed], task=TASK[mixed])
    for i, row in enumerate(mixed):
        alone = model.explain(X[[row]], task=TASK[[row]])
        np.testing.assert_allclose(together.feature_part[i], alone.feature_part[0], atol=1e-12)
        np.testing.assert_allclose(together.own[i], alone.own[0], atol=1e-12)
