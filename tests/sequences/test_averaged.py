"""AveragedIHMM is its members' draws, weighed by what they predict of sequences held out."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

import kinfolk
from kinfolk import AveragedIHMM, NestedIHMM, SharedIHMM, SingleIHMM
from kinfolk.maths.stacking import by_stacking
from kinfolk.sequences.estimators.averaged import hold_out
from kinfolk.sequences.estimators.base import INFERENCE
from kinfolk.sequences.model.sequences import Sequences
from tests.sequences.toy import QUICK, toy_sequences

X, LENGTHS, TASK = toy_sequences()
MEMBERS = {"single": SingleIHMM(**QUICK), "shared": SharedIHMM(**QUICK), "nested": NestedIHMM(n_clusters=3, **QUICK)}
AVERAGE = AveragedIHMM(n_clusters=3, n_folds=2, **QUICK)


@pytest.fixture(scope="module")
def averaged():
    return clone(AVERAGE).fit(X, LENGTHS, task=TASK)


def test_weights_of_the_models_add_up_to_one(averaged):
    assert list(averaged.weights_) == list(MEMBERS)
    assert sum(averaged.weights_.values()) == pytest.approx(1.0)


def test_one_step_is_as_probable_as_its_members_say_on_average(averaged):
    """One step needs no particles, so that averages of likelihoods are exact."""
    members = {name: clone(model).fit(X, LENGTHS, task=TASK) for name, model in MEMBERS.items()}
    shares = np.array([averaged.weights_[name] for name in MEMBERS])
    assert (shares > 0.0).sum() > 1
    for task in ("ann", "never seen"):
        by_member = np.array([members[name].score_samples(list("abcd"), [1] * 4, task=[task] * 4) for name in MEMBERS])
        with np.errstate(divide="ignore"):
            expected = logsumexp(by_member + np.log(shares)[:, None], axis=0)
        # Fewer draws of each member are kept in the average.
        np.testing.assert_allclose(averaged.score_samples(list("abcd"), [1] * 4, task=[task] * 4), expected, atol=0.15)


def test_numbers_of_states_are_those_of_the_models_on_average(averaged):
    members = [clone(MEMBERS[name]).fit(X, LENGTHS, task=TASK).n_states_ for name in MEMBERS]
    shares = list(averaged.weights_.values())
    assert len(set(np.round(shares, 3))) > 1
    np.testing.assert_allclose(averaged.n_states_, np.tensordot(shares, members, 1), atol=1e-9)


def test_members_are_the_models_of_that_name_draw_by_draw(averaged):
    """Of the same seed and chains, so that a folder of checkpoints has what was sampled before."""
    firsts = {room: chain for chain, room in reversed(list(enumerate(averaged.posterior_.rooms)))}
    for name, room in (("single", None), ("shared", 1), ("nested", 3)):
        if room not in firsts:
            continue
        member = clone(MEMBERS[name]).fit(X, LENGTHS, task=TASK)
        chains = slice(firsts[room], firsts[room] + QUICK["n_chains"])
        np.testing.assert_array_equal(averaged.log_joint_[chains], member.log_joint_)


def test_similarity_is_that_of_the_models_on_average(averaged):
    members = [clone(MEMBERS[name]).fit(X, LENGTHS, task=TASK).similarity_ for name in MEMBERS]
    shares = list(averaged.weights_.values())
    np.testing.assert_allclose(averaged.similarity_, np.tensordot(shares, members, 1), atol=1e-9)


def test_states_are_those_of_the_model_that_is_believed_most(averaged):
    first = max(averaged.weights_, key=averaged.weights_.__getitem__)
    rooms = {"single": None, "shared": 1, "nested": 3}
    kept = averaged._predictor().kept
    assert kept.room(kept.best_place) == rooms[first]


def test_no_model_is_judged_by_chains_of_another(averaged):
    believed = {name for name, weight in averaged.weights_.items() if weight > 0.0}
    assert {name.split(" of ")[-1] for name in averaged.convergence_.r_hat} == believed


def test_a_file_answers_as_the_estimator_does(averaged, tmp_path):
    kinfolk.save(averaged, tmp_path / "model.kin")
    loaded = kinfolk.load(tmp_path / "model.kin")
    estimator = kinfolk.load(tmp_path / "model.kin", estimator=True)
    asked = [*TASK[:-1], "somebody new"]
    expected = averaged.score_samples(X, LENGTHS, task=asked)
    np.testing.assert_allclose(loaded.score_samples(X, LENGTHS, task=asked), expected, rtol=1e-9)
    np.testing.assert_array_equal(estimator.score_samples(X, LENGTHS, task=asked), expected)
    assert estimator.weights_ == averaged.weights_
    assert estimator.convergence_ == averaged.convergence_
    np.testing.assert_allclose(loaded.classify(X[:20]), averaged.classify(X[:20]), rtol=1e-9)


def test_the_result_does_not_depend_on_the_number_of_processes(averaged):
    other = clone(AVERAGE).set_params(n_jobs=2).fit(X, LENGTHS, task=TASK)
    assert other.weights_ == averaged.weights_
    np.testing.assert_array_equal(
        other.score_samples(X, LENGTHS, task=TASK), averaged.score_samples(X, LENGTHS, task=TASK)
    )


def test_a_fit_that_was_stopped_between_two_models_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    model = AveragedIHMM(
        n_states=3, n_clusters=2, n_folds=2, n_chains=1, n_burn_in=2, n_draws=2, random_state=0, checkpoint=tmp_path
    )
    given = {"lengths": LENGTHS, "task": TASK}
    at_once = clone(model).set_params(checkpoint=None).fit(X, **given)
    infer, calls = INFERENCE["gibbs"], []

    def stops_at_the_fourth(*asked):
        calls.append(asked)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return infer(*asked)

    monkeypatch.setitem(INFERENCE, "gibbs", stops_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(X, **given)
    assert not hasattr(model, "posterior_")
    monkeypatch.undo()
    assert list(tmp_path.iterdir())
    again = clone(model).fit(X, **given)
    assert again.weights_ == at_once.weights_
    np.testing.assert_array_equal(again.score_samples(X, **given), at_once.score_samples(X, **given))


def test_of_one_task_there_is_nothing_to_weigh():
    assert clone(AVERAGE).fit(X[:40], [20, 20]).weights_ == {"single": 1.0}


def test_models_that_would_be_the_same_are_there_once():
    model = AveragedIHMM(n_clusters=1, n_folds=2, **QUICK).fit(X, LENGTHS, task=TASK)
    assert list(model.weights_) == ["single", "shared"]


def test_models_are_weighed_as_stacking_weighs_them(monkeypatch):
    seen = []

    def spy(log_probability, weights):
        seen.append(log_probability)
        return by_stacking(log_probability, weights)

    monkeypatch.setattr("kinfolk.sequences.estimators.averaged.by_stacking", spy)
    model = clone(AVERAGE).fit(X, LENGTHS, task=TASK)
    (log_probability,) = seen
    assert log_probability.shape == (len(LENGTHS), 3)
    weights = by_stacking(log_probability, np.ones(len(log_probability)))
    weights = np.where(weights < 0.01, 0.0, weights)
    np.testing.assert_allclose(list(model.weights_.values()), weights / weights.sum())


def a_table(n_of_tasks):
    """Sequences whose steps all show their number."""
    n = sum(n_of_tasks)
    return Sequences((np.repeat(np.arange(n), 3),), 3 * np.arange(n + 1), np.append(0, np.cumsum(n_of_tasks)))


def test_every_sequence_of_a_task_with_others_is_held_out_once_and_something_is_left_of_each_task():
    parts = hold_out(a_table([3, 1, 5]), 4, np.random.default_rng(0))
    assert sorted(np.concatenate([asked.observations[0][::3] for _, asked in parts])) == [0, 1, 2, 4, 5, 6, 7, 8]
    for learnt_from, asked in parts:
        assert learnt_from.n_tasks == 3
        assert not set(learnt_from.observations[0]) & set(asked.observations[0])
        assert learnt_from.n_sequences + asked.n_sequences == 9
        # Group j + 1 has sequences of task j.
        first, _, last = (set(range(a, b)) for a, b in ((0, 3), (3, 4), (4, 9)))
        groups = [set(asked.between(g, g + 1).observations[0].tolist()) for g in range(4)]
        assert groups[0] == groups[2] == set()
        assert groups[1] <= first
        assert groups[3] <= last


def test_where_no_task_has_two_sequences_tasks_are_held_out():
    parts = hold_out(a_table([1, 1, 1, 1]), 2, np.random.default_rng(0))
    assert sorted(np.concatenate([asked.observations[0][::3] for _, asked in parts])) == [0, 1, 2, 3]
    for learnt_from, asked in parts:
        assert learnt_from.n_tasks == 2
        assert asked.task_bounds.tolist() == [0, 2, 2, 2]


def test_one_sequence_leaves_nothing_to_hold_out():
    assert hold_out(a_table([1]), 4, np.random.default_rng(0)) == []


def test_fewer_than_two_parts_are_refused():
    with pytest.raises(ValueError, match="n_folds=1: a whole number of at least 2 is needed"):
        clone(AVERAGE).set_params(n_folds=1).fit(X, LENGTHS, task=TASK)
