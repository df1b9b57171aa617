"""Learning curves: scores agree with scikit-learn's, averages with closed forms, and kin help where data is scarce."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from kinfolk import ClusteredNB, FewPerTask, NoSharingNB, OneTaskFew
from kinfolk.datasets.meetings import make_meetings
from kinfolk.experiments.clustered_naive_bayes.learning_curves import (
    CLUSTERED,
    NO_SHARING,
    average_gain,
    average_over_people,
    everybody_with_few,
    gain_over_no_sharing,
    one_person_with_few,
    papers_models,
    sharing_models,
)
from kinfolk.experiments.measuring import area_under_curve

MEETINGS = make_meetings(random_state=5)


def silently(steps):
    """Advance no progress bar."""


@pytest.mark.parametrize("seed", range(5))
def test_the_area_under_the_curve_is_that_of_scikit_learn_with_ties_too(seed):
    rng = np.random.default_rng(seed)
    truth = rng.random(40) < 0.4
    score = rng.integers(0, 6, 40).astype(float)
    assert area_under_curve(truth, score) == pytest.approx(roc_auc_score(truth, score), abs=1e-12)


def test_scores_of_everybody_with_few_are_those_of_a_plain_fit():
    scores = everybody_with_few(MEETINGS, {NO_SHARING: NoSharingNB()}, (16,), 2, 3, silently)
    splits = FewPerTask(16, 2, random_state=3).split(MEETINGS.data, MEETINGS.target, task=MEETINGS.task)
    train, test = list(splits)[1]
    model = NoSharingNB().fit(MEETINGS.data[train], MEETINGS.target[train], task=MEETINGS.task[train])
    mine = test[MEETINGS.task[test] == 7]
    probability = model.predict_proba(MEETINGS.data[mine], task=MEETINGS.task[mine])
    accepted = MEETINGS.target[mine] == "accept"
    found = scores.filter(split=1, person=7).to_dicts()
    assert len(found) == 1
    assert found[0]["auc"] == pytest.approx(roc_auc_score(accepted, probability[:, 0]), abs=1e-12)
    assert found[0]["log_loss"] == pytest.approx(log_loss(accepted, probability[:, 0]), abs=1e-12)


def test_the_same_seed_gives_the_same_scores_and_another_gives_others():
    first, second, other = (everybody_with_few(MEETINGS, sharing_models(), (16,), 1, s, silently) for s in (3, 3, 4))
    assert first.equals(second)
    assert not first.equals(other)


def test_scores_of_one_person_with_few_are_those_of_one_fit_to_all_training_rows():
    scores = one_person_with_few(MEETINGS, {CLUSTERED: ClusteredNB()}, (8,), 2, 3, silently, people=[7])
    splits = OneTaskFew(8, 2, random_state=3).split(MEETINGS.data, MEETINGS.target, task=MEETINGS.task)
    train, test = next((train, test) for train, test in splits if MEETINGS.task[test[0]] == 7)
    model = ClusteredNB().fit(MEETINGS.data[train], MEETINGS.target[train], task=MEETINGS.task[train])
    probability = model.predict_proba(MEETINGS.data[test], task=MEETINGS.task[test])
    accepted = MEETINGS.target[test] == "accept"
    first = scores.filter(split=0).to_dicts()
    assert len(first) == 1
    assert first[0]["auc"] == pytest.approx(roc_auc_score(accepted, probability[:, 0]), abs=1e-12)
    assert first[0]["log_loss"] == pytest.approx(log_loss(accepted, probability[:, 0]), abs=1e-12)
    kin = model.tasks_[model.partition_ == model.partition_[model.tasks_ == 7]]
    assert first[0]["kin"] == " ".join(map(str, kin))


def test_a_person_with_too_few_requests_left_to_test_is_left_out():
    meetings = make_meetings(n_people=3, n_requests=(30, 60), random_state=0)
    sizes = {person: int((meetings.task == person).sum()) for person in (1, 2, 3)}
    scores = everybody_with_few(meetings, {NO_SHARING: NoSharingNB()}, (16,), 1, 0, silently)
    assert scores["person"].to_list() == [person for person, size in sizes.items() if size - 16 >= 20]
    assert scores.height < 3


def test_averages_are_over_splits_first_and_errors_over_people():
    scores = pl.DataFrame(
        {
            "model": [NO_SHARING] * 4,
            "examples": [1] * 4,
            "person": [1, 1, 2, 2],
            "auc": [0.5, 0.7, 0.8, 1.0],
            "log_loss": [1.0, 1.0, 2.0, 2.0],
        }
    )
    (row,) = average_over_people(scores).to_dicts()
    # Two people, with means 0.6 and 0.9 (1 and 2): half their difference is the error of their mean.
    assert row["people"] == 2
    assert (row["auc"], row["auc_error"]) == pytest.approx((0.75, 0.15))
    assert (row["log_loss"], row["log_loss_error"]) == pytest.approx((1.5, 0.5))


def test_gains_compare_the_same_person_on_the_same_split_and_are_positive_where_sharing_is_better():
    scores = pl.DataFrame(
        {
            "model": [NO_SHARING, NO_SHARING, CLUSTERED, CLUSTERED],
            "examples": [4, 4, 4, 4],
            "split": [0, 0, 0, 0],
            "person": [1, 2, 2, 1],
            "auc": [0.6, 0.9, 0.8, 0.9],
            "log_loss": [1.0, 0.5, 0.6, 0.4],
        }
    )
    gains = gain_over_no_sharing(scores).sort("person")
    assert gains["auc"].to_list() == pytest.approx([0.3, -0.1])
    assert gains["log_loss"].to_list() == pytest.approx([0.6, -0.1])


def test_a_person_with_few_examples_gains_from_kin_by_more_than_the_standard_error():
    meetings = make_meetings(random_state=1)
    scores = one_person_with_few(meetings, papers_models(), (1, 4), 2, 1, silently)
    gain = average_gain(gain_over_no_sharing(scores))
    assert gain["people"].to_list() == [21, 21]
    assert (gain["auc"] > gain["auc_error"]).all()


def test_with_plenty_of_examples_clustering_beats_both_ways_not_to_choose():
    scores = everybody_with_few(MEETINGS, sharing_models(), (64,), 3, 0, silently)
    auc = {row["model"]: row["auc"] for row in average_over_people(scores).to_dicts()}
    assert auc[CLUSTERED] > auc[NO_SHARING] > auc["complete sharing"]
