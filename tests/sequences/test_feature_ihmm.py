"""FeatureIHMM: who has which states, starts, numbering of states, archives, and tasks that were not met."""

import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk import FeatureIHMM
from kinfolk.sequences.answers.new_tasks import base_of_a_new_task
from kinfolk.sequences.answers.predictor import SequencesPredictor
from kinfolk.sequences.inference import feature_gibbs
from kinfolk.sequences.inference.feature_gibbs import central_draw, numbered_alike
from kinfolk.sequences.inference.feature_starts import cut_into_blocks, start_paths
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.sequences import Sequences

CENTRES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])
# Which behaviours each task has; all have the first.
HAS = {"ann": [0, 1], "bob": [0, 1, 2], "cid": [0, 3], "dot": [0, 2]}


def recordings(n_sequences=2, length=30, seed=0):
    """Numbers around a behaviour's centre for some steps, then another of the task's; what was done at each step."""
    rng = np.random.default_rng(seed)
    rows, did, tasks = [], [], []
    for task, own in HAS.items():
        for _ in range(n_sequences):
            path = np.repeat(rng.permutation(np.resize(own, 6)), length // 6)
            rows.append(CENTRES[path] + 0.5 * rng.normal(size=(length, 2)))
            did.append(path)
            tasks.append(task)
    return np.concatenate(rows), [length] * len(tasks), tasks, np.concatenate(did)


def fitted(**parameters):
    X, lengths, tasks, did = recordings()
    given = {"n_states": 8, "n_chains": 2, "n_burn_in": 25, "n_draws": 15, "random_state": 0} | parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return FeatureIHMM(**given).fit(X, lengths, task=tasks), X, lengths, tasks, did


@pytest.fixture(scope="module")
def model():
    return fitted()


def test_every_task_is_found_to_have_its_own_behaviours(model):
    feature, X, lengths, tasks, did = model
    states = feature.predict(X, lengths, task=tasks)
    names = [np.bincount(states[did == behaviour]).argmax() for behaviour in range(4)]
    assert len(set(names)) == 4
    assert np.mean(np.array(names)[did] == states) > 0.98
    wanted = np.array([[behaviour in own for behaviour in range(4)] for own in HAS.values()])
    found = feature.features_[:, names]
    assert found[wanted].min() > 0.95
    # A feature that a task has had no step of is hardly to be told from one that it has not.
    assert found[~wanted].max() < 0.6


def test_tasks_are_as_similar_as_the_states_they_have_in_common(model):
    similar = model[0].similarity_
    assert np.allclose(np.diag(similar), 1.0)
    assert np.allclose(similar, similar.T)
    assert similar[0, 1] > similar[0, 2]


def test_more_jobs_give_the_same_bits():
    one, two = fitted(n_jobs=1)[0], fitted(n_jobs=2)[0]
    np.testing.assert_array_equal(one.log_joint_, two.log_joint_)
    np.testing.assert_array_equal(one.features_, two.features_)


def test_a_saved_model_answers_as_the_estimator_does(model, tmp_path):
    feature, X = model[:2]
    kinfolk.save(feature, tmp_path / "feature.kinfolk")
    predictor, again = (
        kinfolk.load(tmp_path / "feature.kinfolk"),
        kinfolk.load(tmp_path / "feature.kinfolk", estimator=True),
    )
    some = X[:30], [30]
    for task in (["ann"], ["somebody new"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kinfolk.UnseenWarning)
            wanted = feature.score_samples(*some, task=task)
            assert predictor.score_samples(*some, task=task) == pytest.approx(wanted, rel=1e-6)
            assert again.score_samples(*some, task=task) == pytest.approx(wanted, rel=1e-9)
            np.testing.assert_array_equal(predictor.predict(*some, task=task), feature.predict(*some, task=task))
    np.testing.assert_array_equal(again.features_, feature.features_)


def test_an_archive_whose_task_has_no_state_is_refused(model, tmp_path):
    archive = model[0]._to_archive()
    archive.arrays["draws.features"][0, 0] = 0
    with pytest.raises(ValueError, match="none of its states"):
        FeatureIHMM._from_archive(archive)


def test_a_sequence_of_a_new_task_is_explained_by_states_that_others_have(model):
    feature, X, lengths, tasks, did = model
    known, odd = CENTRES[np.repeat([0, 3], 10)], np.full((20, 2), 30.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kinfolk.UnseenWarning)
        scores = feature.score_samples(np.concatenate([known, odd]), [20, 20], task=["new", "new"])
        states = feature.predict(known, task=["new"])
    assert scores[0] > scores[1] + 20.0
    assert states[5] == np.bincount(feature.predict(X, lengths, task=tasks)[did == 0]).argmax()


def test_sample_and_forecast_give_what_the_task_does(model):
    feature, *_ = model
    X, states = feature.sample(60, task="cid", random_state=1)
    far = np.abs(X[:, None] - CENTRES[[0, 3]]).max(axis=2).min(axis=1)
    assert np.quantile(far, 0.9) < 4.0
    forecast = feature.forecast(CENTRES[[3] * 8], task=["cid"], random_state=0)
    assert abs(forecast.mean[0][0, 0] - 8.0) < 2.5
    assert len(states) == 60


def test_columns_with_names_are_taken_and_the_task_from_a_column():
    X, lengths, tasks, _ = recordings()
    frame = pd.DataFrame(
        {"who": np.repeat(tasks, lengths), "take": np.repeat(np.arange(8), 30), "x": X[:, 0], "y": X[:, 1]}
    )
    parameters = {"n_states": 6, "n_chains": 1, "n_burn_in": 5, "n_draws": 4, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = FeatureIHMM(task_column="who", sequence_column="take", **parameters).fit(frame)
    assert model.tasks_.tolist() == list(HAS)
    assert model.features_.shape == (4, 6)


def test_autoregressive_emissions_tell_steps_apart_that_are_alike_one_by_one():
    rng = np.random.default_rng(0)
    turns = np.tile(np.repeat([0, 1], 20), 4)
    x = np.ones(160)
    for t in range(1, 160):
        x[t] = (-0.95 if turns[t] else 0.95) * x[t - 1] + 0.1 * rng.normal()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = FeatureIHMM(6, emission="ar", n_chains=1, n_burn_in=20, n_draws=10, random_state=0)
        model.fit(x[:, None], [80, 80], task=["a", "b"])
    states = model.predict(x[:, None], [80, 80], task=["a", "b"])
    both = np.array([np.bincount(states[turns == k], minlength=6) for k in range(2)])
    assert both.max(axis=0).sum() > 0.9 * 160


def test_parameters_that_cannot_be_are_refused_by_name():
    for wrong in ({"n_states": 0}, {"concentration": -1.0}, {"stickiness": "much"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            FeatureIHMM(**wrong).fit([1.0, 2.0])


def test_blocks_do_not_cross_sequences():
    data = Sequences((np.zeros(50),), np.array([0, 17, 17, 50]), np.array([0, 2, 3]))
    block, task = cut_into_blocks(data, 6.0, np.random.default_rng(0))
    assert set(block[:17]).isdisjoint(block[17:])
    assert (np.diff(block) >= 0).all()
    assert np.bincount(block).max() <= 6
    assert task.tolist() == [0] * (block[16] + 1) + [1] * (block[-1] - block[16])


def test_a_start_finds_behaviours_that_last():
    X, lengths, _, did = recordings(length=120)
    bounds = np.append(0, np.cumsum(lengths))
    data = Sequences((X,), bounds, np.arange(5) * 2)
    emission = GaussianDiagonal(X.mean(axis=0), X.std(axis=0))
    found = start_paths(data, emission, HyperParameters(1.0, 1.0, 1.0, 1.0), 8, np.random.default_rng(0))
    assert [states.max() + 1 for states in found] == sorted({states.max() + 1 for states in found}, reverse=True)
    states = found[0]
    assert states.max() < 8
    agree = np.zeros((8, 4))
    np.add.at(agree, (states, did), 1)
    assert agree.max(axis=1).sum() > 0.75 * len(did)


def test_states_of_all_draws_are_numbered_by_the_steps_they_share(model):
    """Any numbering of one draw's states is undone by another's steps."""
    draw = model[0].posterior_.draws[0]
    steps = np.repeat(np.arange(8), [9, 7, 6, 5, 4, 3, 2, 1])
    order = np.random.default_rng(0).permutation(8)
    rows = np.concatenate([[0], order + 1])
    place = np.argsort(order)
    shuffled = draw._replace(
        parameters=draw.parameters[:, order], base_weights=draw.base_weights[:, order],
        features=draw.features[:, order],
        transitions=draw.transitions[:, rows][:, :, order], row_counts=draw.row_counts[:, rows][:, :, order],
        code_counts=draw.code_counts[:, order], states=place[steps], log_joint=draw.log_joint - 1.0,
    )  # fmt: skip
    one, other = numbered_alike([draw._replace(states=steps), shuffled], 0)
    for name in ("parameters", "base_weights", "features", "transitions", "row_counts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_state_that_the_central_draw_has_not_gets_one_number_in_all_others(model):
    """Whatever its number was: matched with the central draw alone, it is left over, and goes by what it was called."""
    draw = model[0].posterior_.draws[0]
    whole, halves, rng = np.repeat([0, 1], [9, 4]), np.repeat([0, 2, 1], [5, 4, 4]), np.random.default_rng(2)
    draws, has = [draw._replace(states=whole)], np.zeros((1, 8), dtype=bool)
    for _ in range(5):
        place = rng.permutation(8)
        path = place[halves]
        shown = np.full((1, 8, 1), -1.0)
        shown[0, path, 0] = halves
        draws.append(draw._replace(states=path, parameters=shown, features=has))
    numbered = numbered_alike(draws, 0)
    assert [own.parameters[0, :3, 0].tolist() for own in numbered[1:]] == 5 * [[0.0, 1.0, 2.0]]
    assert {own.states is None for own in numbered} == {True}


def test_states_are_told_by_the_draw_that_agrees_best_with_all_however_probable_another_is(model):
    """Against a search over every matching of states, on paths whose states are numbered at will."""
    draw = model[0].posterior_.draws[0]
    rng = np.random.default_rng(1)
    small = draw._replace(base_weights=np.full((1, 3), 1 / 3))
    for _ in range(20):
        truth = rng.integers(3, size=12)
        paths = [rng.permutation(3)[np.where(rng.random(12) < 0.3, rng.integers(3, size=12), truth)] for _ in range(5)]
        matchings = [np.array(order) for order in permutations(range(3))]
        alike = [sum(max((order[own] == other).sum() for order in matchings) for other in paths) for own in paths]
        draws = [small._replace(states=path, log_joint=float(place)) for place, path in enumerate(paths)]
        assert alike[central_draw(draws)] == max(alike)


def test_states_of_a_file_are_those_of_its_central_draw_or_where_it_has_none_of_the_most_probable(model):
    feature = model[0]
    fitted = feature.posterior_
    probable = int(np.argmax([draw.log_joint for draw in fitted.draws]))
    other = next(place for place in range(len(fitted.draws)) if place not in (probable, fitted.central))
    archive = feature._to_archive()
    assert archive.about["central"] == fitted.central
    for central, wanted in ((other, other), (None, probable)):
        archive.about["central"] = central
        assert FeatureIHMM._from_archive(archive)._predictor().kept.best_place == wanted
    for central in (-1, len(fitted.draws), 0.5, "0"):
        archive.about["central"] = central
        with pytest.raises(ValueError, match="tells its hidden states"):
            FeatureIHMM._from_archive(archive)


def test_probabilities_of_states_are_those_of_all_draws_on_average(model):
    feature, X, lengths, tasks, _ = model
    kept = feature._predictor().kept
    assert len(kept.draws) <= 60
    # Between behaviours, where draws differ.
    X = X + np.random.default_rng(0).normal(scale=3.0, size=X.shape)
    told = SequencesPredictor(feature._predictor().known, feature._predictor().layout, kept)
    each = []
    for place in range(len(kept.draws)):
        told.kept = kept._replace(draws=kept.draws[place : place + 1], central=None)
        each.append(told.predict_proba(X, lengths, task=tasks))
    assert np.abs(np.diff(each, axis=0)).max() > 0.05
    found = feature.predict_proba(X, lengths, task=tasks)
    np.testing.assert_allclose(found, np.mean(each, axis=0), atol=1e-12)
    np.testing.assert_array_equal(feature.predict(X, lengths, task=tasks, decoding="marginal"), found.argmax(axis=1))


def test_of_many_draws_some_are_compared(model, monkeypatch):
    monkeypatch.setattr(feature_gibbs, "_DRAWS_COMPARED", 4)
    draw = model[0].posterior_.draws[0]
    draws = [
        draw._replace(states=np.repeat([0, 1], [4, 4]) if place in (3, 6, 9) else np.arange(8)) for place in range(10)
    ]
    # Of all ten the others are more, but not of the first, the fourth, the seventh and the last.
    assert central_draw(draws) == 3


def test_a_new_task_has_states_as_often_as_the_others_say():
    """m/(c + J) of those that m have, and a task never has none."""
    draw = fitted(n_draws=1, n_chains=1, n_burn_in=2)[0].posterior_.draws[0]
    features = np.zeros((4, 8), dtype=bool)
    features[:, 0], features[0, 1] = True, True
    draw = draw._replace(features=features, hyper=HyperParameters(1.0, 0.5, 1.0, 1.0))
    rng = np.random.default_rng(0)
    chosen = np.array([base_of_a_new_task(draw, np.full(8, 0.125), rng) for _ in range(4_000)])
    assert chosen.any(axis=1).all()
    # One that would have none, with probability 0.2 × 0.8 × 0.9, has any.
    assert chosen.mean(axis=0)[:2] == pytest.approx([0.8 + 0.144 / 8, 0.2 + 0.144 / 8], abs=0.03)
