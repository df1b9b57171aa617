"""Tasks and weights go by their names: what stood in their places before is told apart, not taken for the other."""

import numpy as np
import pytest

import kinfolk
from kinfolk import AveragedNB, ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB

RNG = np.random.default_rng(0)
X, Y = RNG.integers(3, size=(60, 2)), RNG.integers(2, size=60)
TASK = np.arange(60) % 3
SHORT = {"n_chains": 1, "n_burn_in": 2, "n_draws": 4, "random_state": 0}
MODELS = [
    NoSharingNB(),
    CompleteSharingNB(),
    ClusteredNB(),
    PrototypeNB(**SHORT),
    AveragedNB([NoSharingNB(), CompleteSharingNB()], random_state=0),
]


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request):
    return request.param.fit(X, Y, task=TASK)


def test_a_third_argument_of_score_is_refused_and_both_names_are_told(model):
    with pytest.raises(TypeError, match="sample_weight= for the weights of the rows, task= for their tasks"):
        model.score(X, Y, TASK)


def test_score_weighs_rows_and_knows_their_tasks_by_name(model):
    right = model.predict(X, task=TASK) == Y
    assert model.score(X, Y, task=TASK) == pytest.approx(right.mean())
    assert model.score(X, Y, sample_weight=right.astype(float), task=TASK) == 1.0


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
def test_a_task_in_second_place_is_still_taken_with_a_warning(model, method, tmp_path):
    kinfolk.save(model, tmp_path / "model.kin")
    for answering in (model, kinfolk.load(tmp_path / "model.kin")):
        ask = getattr(answering, method)
        with pytest.warns(FutureWarning, match=r"write predict.*\(X, task=...\)"):
            found = ask(X, TASK)
        np.testing.assert_array_equal(found, ask(X, task=TASK))


def test_the_estimator_and_the_loaded_model_answer_by_the_same_code(model, tmp_path):
    kinfolk.save(model, tmp_path / "model.kin")
    loaded = kinfolk.load(tmp_path / "model.kin")
    assert type(loaded) is type(model._predictor())
    np.testing.assert_array_equal(loaded.predict_log_proba(X, task=TASK), model.predict_log_proba(X, task=TASK))
    assert model.predict_proba(X[:0], task=TASK[:0]).shape == (0, 2)


@pytest.mark.parametrize("model", MODELS[:4], ids=lambda model: type(model).__name__)
def test_the_features_prior_is_told_as_it_was_given_or_learnt(model):
    given = type(model)(**{**model.get_params(), "feature_prior": {"1": 2.5}}).fit(X, Y, task=TASK).feature_prior_
    assert list(given) == ["0", "1"]
    np.testing.assert_array_equal(given["0"], np.ones((2, 3)))
    np.testing.assert_array_equal(given["1"], np.full((2, 3), 2.5))
    learnt = type(model)(**{**model.get_params(), "feature_prior": "learn"}).fit(X, Y, task=TASK)
    again = type(model)(**{**model.get_params(), "feature_prior": learnt.feature_prior_}).fit(X, Y, task=TASK)
    for name, prior in learnt.feature_prior_.items():
        assert not np.allclose(prior, 1.0)
        np.testing.assert_allclose(again.feature_prior_[name], prior)
