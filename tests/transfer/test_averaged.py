"""The average of models: its weights, its predictions, and that it is safe where one of its members is wrong."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kinfolk
from kinfolk import AveragedNB, ClusteredNB, CompleteSharingNB, NoSharingNB
from kinfolk.tasks import training

PLAIN = {"label_prior": 1.0, "feature_prior": 1.0, "temper": 1.0}


def made_up_tasks(seed, n_tasks=12, n_rows=30, alike=True):
    """Tasks that all follow one rule, or each one of its own."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = rng.integers(2, size=len(task))
    sign = np.ones(n_tasks, dtype=int) if alike else rng.integers(2, size=n_tasks)
    follows = rng.random((len(task), 3)) < 0.8
    X = np.where(follows, (y ^ (1 - sign[task]))[:, None], rng.integers(2, size=(len(task), 3)))
    return X.astype(str), y, task


def log_loss(model, X, y, task):
    return -model.predict_log_proba(X, task=task)[np.arange(len(y)), y].mean()


@pytest.fixture(scope="module")
def averaged():
    X, y, task = made_up_tasks(0)
    return AveragedNB(random_state=0).fit(X, y, task=task)


def test_the_average_is_the_members_probabilities_weighed(averaged):
    X, _, task = made_up_tasks(1)
    expected = sum(
        averaged.weights_[name] * member.predict_proba(X, task=task) for name, member in averaged.members_.items()
    )
    np.testing.assert_allclose(averaged.predict_proba(X, task=task), expected, atol=1e-12)
    assert sum(averaged.weights_.values()) == pytest.approx(1.0)
    similarity = sum(averaged.weights_[name] * member.similarity_ for name, member in averaged.members_.items())
    np.testing.assert_allclose(averaged.similarity_, similarity)


@pytest.mark.parametrize("weigh_by", ["held-out", "leave-one-out"])
@pytest.mark.parametrize(("alike", "right"), [(True, "complete"), (False, "none")])
def test_the_model_that_is_right_is_believed_most(weigh_by, alike, right):
    X, y, task = made_up_tasks(2, alike=alike)
    members = {"none": NoSharingNB(**PLAIN), "complete": CompleteSharingNB(**PLAIN)}
    model = AveragedNB(members, weigh_by=weigh_by, random_state=0).fit(X, y, task=task)
    assert max(model.weights_, key=model.weights_.get) == right
    assert model.weights_[right] > 0.7


@pytest.mark.parametrize("alike", [True, False])
def test_the_average_is_close_to_the_best_of_its_members(alike):
    X, y, task = made_up_tasks(3, n_rows=60, alike=alike)
    train = np.arange(len(y)) % 60 < 12
    model = AveragedNB(random_state=0).fit(X[train], y[train], task=task[train])
    losses = [log_loss(member, X[~train], y[~train], task[~train]) for member in model.members_.values()]
    assert log_loss(model, X[~train], y[~train], task[~train]) < min(losses) + 0.02


def test_weights_by_evidence_are_those_of_the_members_log_evidence():
    X, y, task = made_up_tasks(4, n_tasks=4, n_rows=6)
    members = [NoSharingNB(**PLAIN), CompleteSharingNB(share_labels=False, **PLAIN)]
    model = AveragedNB(members, weigh_by="evidence").fit(X, y, task=task)
    values = np.array([member.log_evidence_ for member in model.members_.values()])
    odds = np.exp(values[0] - values[1])
    assert list(model.weights_.values()) == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])
    assert model.log_evidence_ == pytest.approx(np.logaddexp(*values) - np.log(2))


def test_weights_by_conditional_evidence_follow_the_labels_given_the_features():
    X, y, task = made_up_tasks(5, n_tasks=3, n_rows=8)
    members = [NoSharingNB(**PLAIN), CompleteSharingNB(share_labels=False, **PLAIN)]
    model = AveragedNB(members, weigh_by="conditional-evidence", random_state=0).fit(X, y, task=task)
    values = [member.conditional_evidence(random_state=0).value for member in model.members_.values()]
    assert model.weights_["2: CompleteSharingNB"] == pytest.approx(1 / (1 + np.exp(values[0] - values[1])), abs=0.1)


def test_tempered_members_cannot_be_weighed_by_evidence():
    with pytest.raises(ValueError, match=r"member 'sly' has temper=0\.5: evidence knows no tempering"):
        AveragedNB({"sly": NoSharingNB(**PLAIN | {"temper": 0.5})}, weigh_by="evidence").fit([["a"], ["b"]], [0, 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weigh_by": "luck"}, "weigh_by='luck' is not one of"),
        ({"n_folds": 1}, "n_folds=1: a whole number of at least 2"),
        ({"members": []}, "members is empty"),
        ({"members": {"odd": "NoSharingNB"}}, "member 'odd' is a str, not a naive Bayes model"),
        ({"members": NoSharingNB()}, "a list or a mapping of naive Bayes models is needed"),
        (
            {"members": [NoSharingNB()], "bins": 2},
            "and categorical_features belong to the default members",
        ),
        ({"members": [NoSharingNB(temper=1.0)], "weigh_by": "evidence"}, 'has label_prior="learn": what was learnt'),
    ],
)
def test_bad_parameters_are_told_in_one_sentence(given, message):
    with pytest.raises(ValueError, match=message):
        AveragedNB(**given).fit([["a"], ["b"]], [0, 1])


def test_so_few_rows_that_no_fold_can_be_learnt_from_give_equal_weights():
    # Whichever row is held out, one label is left.
    rows = [["a"], ["b"]]
    model = AveragedNB({"one": NoSharingNB(), "other": CompleteSharingNB()}, random_state=0).fit(rows, [0, 1])
    assert list(model.weights_.values()) == [0.5, 0.5]
    each = [member.predict_proba(rows) for member in model.members_.values()]
    np.testing.assert_allclose(model.predict_proba(rows), np.mean(each, axis=0), atol=1e-12)


def test_frames_of_pandas_and_polars_and_the_task_column_give_the_same():
    X, y, task = made_up_tasks(6, n_tasks=4)
    table = {f"f{i}": X[:, i] for i in range(3)} | {"who": task}
    members = {"one": NoSharingNB(), "all": CompleteSharingNB()}
    arrays = AveragedNB(members, random_state=0).fit(X, y, task=task).predict_proba(X, task=task)
    for make in (pd.DataFrame, pl.DataFrame):
        model = AveragedNB(members, task_column="who", random_state=0).fit(make(table), y)
        np.testing.assert_allclose(model.predict_proba(make(table)), arrays, atol=1e-12)


def test_the_number_of_jobs_changes_nothing():
    X, y, task = made_up_tasks(7, n_tasks=4)
    one, two = (
        AveragedNB(random_state=0, n_jobs=n_jobs).fit(X, y, task=task).predict_proba(X, task=task) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_rows_without_a_label_are_never_held_out(monkeypatch):
    X, y, task = made_up_tasks(8, n_tasks=4)
    some = np.where(np.arange(len(y)) % 7 == 0, None, y)
    held_out = []
    asked = training.Labelled.asked

    def watched(table, part, known):
        held_out.extend(table.labels.codes[part])
        return asked(table, part, known)

    monkeypatch.setattr(training.Labelled, "asked", watched)
    model = AveragedNB({"one": NoSharingNB(n_draws=5), "all": CompleteSharingNB(n_draws=5)}, random_state=0)
    model.fit(X, some, task=task)
    # Every labelled row once, and no other.
    assert -1 not in held_out
    assert len(held_out) == sum(label is not None for label in some)


def test_the_table_is_read_once_for_all_members_and_folds(monkeypatch):
    X, y, task = made_up_tasks(8, n_tasks=4)
    read_table, read = training.read_table, []
    monkeypatch.setattr(training, "read_table", lambda X, **how: read.append(X) or read_table(X, **how))
    AveragedNB({"one": NoSharingNB(), "all": CompleteSharingNB()}, n_folds=2, random_state=0).fit(X, y, task=task)
    assert len(read) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_of_a_table_is_coded_as_if_nothing_else_had_come(weighted):
    X, y, task = made_up_tasks(8, n_tasks=4)
    X = np.column_stack([X, np.where(task == 3, "seldom", "often"), np.arange(len(y)) ** 1.5]).astype(object)
    X[:, -1] = X[:, -1].astype(float)
    y = np.where(task == 3, "third", y.astype(str))
    weights = np.where(task == 2, 0.0, 2.0) if weighted else None
    keep = (task != 3) & (np.arange(len(y)) % 5 > 0)
    whole = training.receive_labelled(X, y, model="NoSharingNB", task=task, sample_weight=weights)
    part = whole.take(keep).coded(training.Columns())
    alone = training.receive_training(
        X[keep], y[keep], model="NoSharingNB", task=task[keep], sample_weight=None if weights is None else weights[keep]
    )
    assert part.known.tasks.tolist() == alone.known.tasks.tolist()
    assert part.classes.tolist() == alone.classes.tolist()
    assert [c.categories for c in part.schema.columns] == [c.categories for c in alone.schema.columns]
    np.testing.assert_array_equal(part.schema.columns[-1].edges, alone.schema.columns[-1].edges)
    for mine, theirs in zip(part.rows, alone.rows, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_explanations_add_up_to_the_predictions(averaged):
    X, _, task = made_up_tasks(9)
    explained = averaged.explain(X[:5], task=task[:5])
    total = explained.label_part + explained.feature_part.sum(axis=1) + explained.remainder
    np.testing.assert_allclose(total, averaged.predict_log_proba(X[:5], task=task[:5]), atol=1e-10)
    parts = [member.explain(X[:5], task=task[:5]) for member in averaged.members_.values()]
    weights = list(averaged.weights_.values())
    for name in ("label_part", "feature_part", "own", "kin", "everybody", "prior"):
        expected = np.average([getattr(part, name) for part in parts], axis=0, weights=weights)
        np.testing.assert_allclose(getattr(explained, name), expected, atol=1e-12)
    # The members nearly agree, so that hardly anything remains.
    assert np.ptp(explained.remainder, axis=1).max() < 0.1
    assert np.ptp(explained.feature_part, axis=2).max() > 0.5


def test_a_saved_average_predicts_as_it_did(averaged, tmp_path):
    X, _, task = made_up_tasks(10)
    kinfolk.save(averaged, tmp_path / "team.kin")
    expected = averaged.predict_proba(X, task=task)
    np.testing.assert_allclose(kinfolk.load(tmp_path / "team.kin").predict_proba(X, task=task), expected, atol=1e-12)
    again = kinfolk.load(tmp_path / "team.kin", estimator=True)
    np.testing.assert_allclose(again.predict_proba(X, task=task), expected, atol=1e-12)
    assert again.weights_ == averaged.weights_


def test_the_partition_is_that_of_the_member_that_agrees_best_with_all():
    X, y, task = made_up_tasks(11, alike=True)
    model = AveragedNB({"none": NoSharingNB(), "all": CompleteSharingNB(), "kin": ClusteredNB()}, random_state=0)
    assert model.fit(X, y, task=task).partition_.tolist() == [0] * 12


def test_a_fit_that_fails_leaves_the_average_as_it_was(averaged):
    X, y, task = made_up_tasks(12)
    before = averaged.predict_proba(X, task=task)
    with pytest.raises(ValueError, match="task has 3 entries"):
        averaged.fit(X, y, task=[1, 2, 3])
    np.testing.assert_array_equal(averaged.predict_proba(X, task=task), before)


def test_evidence_of_other_bins_or_other_rows_is_not_compared():
    X, y, task = made_up_tasks(13, n_tasks=4)
    numbers = np.random.default_rng(0).normal(size=(len(y), 1))
    coarse = {"eight": NoSharingNB(**PLAIN), "two": NoSharingNB(bins=2, **PLAIN)}
    with pytest.raises(ValueError, match="members 'eight' and 'two' have other categories, bins or densities"):
        AveragedNB(coarse, weigh_by="evidence").fit(numbers, y, task=task)
    some = np.where(np.arange(len(y)) % 7 == 0, None, y)
    mixed = {"kin": ClusteredNB(**PLAIN), "all": CompleteSharingNB(n_draws=5, **PLAIN)}
    with (
        pytest.warns(UserWarning, match="unlabelled rows are left out"),
        pytest.raises(ValueError, match="member 'kin' leaves rows without a label out"),
    ):
        AveragedNB(mixed, weigh_by="evidence").fit(X, some, task=task)


def test_a_loaded_average_fits_as_the_saved_one_would(tmp_path):
    X, y, task = made_up_tasks(14, n_tasks=4)
    model = AveragedNB([NoSharingNB(), CompleteSharingNB()], random_state=0).fit(X, y, task=task)
    kinfolk.save(model, tmp_path / "team.kin")
    again = kinfolk.load(tmp_path / "team.kin", estimator=True)
    assert again.random_state == 0
    assert again.fit(X, y, task=task).weights_ == model.weights_


def test_names_of_columns_are_forgotten_where_the_next_table_has_none():
    X, y, task = made_up_tasks(15, n_tasks=4)
    model = AveragedNB([NoSharingNB()], random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y, task=task)
    assert not hasattr(model.fit(X, y, task=task), "feature_names_in_")


def counted(X, y, task):
    """Counts of rows: of features and labels."""
    values = X.astype(int)
    feature_counts = np.zeros((task.max() + 1, 2, X.shape[1], 2), dtype=int)
    for f in range(X.shape[1]):
        np.add.at(feature_counts, (task, y, f, values[:, f]), 1)
    label_counts = np.zeros((task.max() + 1, 2), dtype=int)
    np.add.at(label_counts, (task, y), 1)
    return feature_counts, label_counts


def test_counts_teach_what_their_rows_teach():
    X, y, task = made_up_tasks(4)
    by_rows = AveragedNB(weigh_by="evidence", random_state=0).fit(X, y, task=task)
    by_counts = AveragedNB(weigh_by="evidence", random_state=0).fit_statistics(*counted(X, y, task))
    assert by_counts.weights_ == pytest.approx(by_rows.weights_, abs=1e-6)
    assert by_counts.log_evidence_ == pytest.approx(by_rows.log_evidence_, abs=1e-6)
    np.testing.assert_allclose(
        by_counts.predict_proba(X.astype(int), task=task), by_rows.predict_proba(X, task=task), atol=1e-6
    )


@pytest.mark.parametrize("weigh_by", ["held-out", "leave-one-out", "conditional-evidence"])
def test_counts_have_no_rows_to_weigh_models_by(weigh_by):
    with pytest.raises(ValueError, match='give weigh_by="evidence"'):
        AveragedNB(weigh_by=weigh_by).fit_statistics(*counted(*made_up_tasks(4)))


def test_what_the_default_members_have_to_tell_is_said_of_the_average():
    X, y, task = made_up_tasks(8, n_tasks=4)
    some = np.where(np.arange(len(y)) % 7 == 0, None, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AveragedNB(n_folds=2, random_state=0).fit(X, some, task=task)
    said = {str(one.message).partition(":")[0] for one in caught}
    assert said <= {
        "18 unlabelled rows are left out where tasks are clustered",
        "one of the averaged models ended before it had settled",
    }
    assert "18 unlabelled rows are left out where tasks are clustered" in said
    assert all(one.filename == __file__ for one in caught)


def test_members_of_ones_own_speak_for_themselves():
    X, y, task = made_up_tasks(8, n_tasks=4)
    some = np.where(np.arange(len(y)) % 7 == 0, None, y)
    with pytest.warns(UserWarning, match='left out by inference="bhc"'):
        AveragedNB([ClusteredNB()], n_folds=2, random_state=0).fit(X, some, task=task)


@pytest.mark.parametrize("numeric", ["gaussian", {"size": "gaussian"}])
def test_numbers_are_read_as_the_members_read_them(numeric):
    rng = np.random.default_rng(0)
    y, task = rng.integers(2, size=80), np.repeat(np.arange(4), 20)
    X = pd.DataFrame({"size": rng.normal(y), "kind": rng.choice(["a", "b"], 80)})
    model = AveragedNB(numeric=numeric, n_folds=2, random_state=0).fit(X, y, task=task)
    alone = NoSharingNB(numeric=numeric, random_state=0).fit(X, y, task=task)
    np.testing.assert_allclose(
        model.members_["no sharing"].predict_proba(X, task=task), alone.predict_proba(X, task=task), rtol=1e-10
    )
    assert model.members_["clustered"].numeric == numeric


def test_members_that_read_columns_alike_are_given_the_same_rows(monkeypatch):
    read, coded = [], training.Labelled.coded
    monkeypatch.setattr(training.Labelled, "coded", lambda table, how: read.append(how) or coded(table, how))
    X, y, task = made_up_tasks(9, n_tasks=3, n_rows=20)
    AveragedNB(weigh_by="leave-one-out", random_state=0).fit(X, y, task=task)
    assert len(read) == 1
    # Numbers may become densities, which the prototype model does not have.
    AveragedNB(weigh_by="leave-one-out", random_state=0, numeric="auto").fit(X, y, task=task)
    assert len(read) == 3


def test_rows_added_later_make_members_what_a_fit_to_all_rows_makes_them_and_leave_the_weights():
    X, y, task = made_up_tasks(3, alike=False)
    first = (np.arange(len(y)) % 2 == 0) & (task < 11)  # the last task comes later
    average = AveragedNB(random_state=0).fit(X[first], y[first], task=task[first])
    weights = average.weights_by_rows_
    average.partial_fit(X[~first], y[~first], task=task[~first])
    assert average.tasks_.tolist() == list(range(12))
    assert average.weights_by_rows_.equals(weights)
    order = np.append(np.flatnonzero(first), np.flatnonzero(~first))
    whole = AveragedNB(random_state=0).fit(X[order], y[order], task=task[order])
    for name, member in whole.members_.items():
        found = average.members_[name].predict_proba(X, task=task)
        np.testing.assert_allclose(found, member.predict_proba(X, task=task), atol=1e-9)
    expected = sum(average.weights_[name] * m.predict_proba(X, task=task) for name, m in whole.members_.items())
    np.testing.assert_allclose(average.predict_proba(X, task=task), expected, atol=1e-9)


def test_rows_added_later_count_by_their_weights_as_the_first_do():
    X, y, task = made_up_tasks(5)
    weights = np.random.default_rng(0).uniform(0.1, 5.0, size=len(y))
    first = np.arange(len(y)) % 2 == 0
    average = AveragedNB(random_state=0).partial_fit(X[first], y[first], task=task[first], sample_weight=weights[first])
    at_first = AveragedNB(random_state=0).fit(X[first], y[first], task=task[first], sample_weight=weights[first])
    np.testing.assert_array_equal(average.predict_proba(X, task=task), at_first.predict_proba(X, task=task))
    average.partial_fit(X[~first], y[~first], task=task[~first], sample_weight=weights[~first])
    order = np.append(np.flatnonzero(first), np.flatnonzero(~first))
    whole = AveragedNB(random_state=0).fit(X[order], y[order], task=task[order], sample_weight=weights[order])
    for name, member in whole.members_.items():
        if name in average.members_:
            found = average.members_[name].predict_proba(X, task=task)
            np.testing.assert_allclose(found, member.predict_proba(X, task=task), atol=1e-9)


def test_rows_added_later_change_weights_that_are_evidence():
    X, y, task = made_up_tasks(4)
    members = {"alone": NoSharingNB(**PLAIN), "alike": CompleteSharingNB(**PLAIN)}
    first = np.arange(len(y)) % 3 == 0
    average = AveragedNB(members, weigh_by="evidence", random_state=0).fit(X[first], y[first], task=task[first])
    average.partial_fit(X[~first], y[~first], task=task[~first])
    whole = AveragedNB(members, weigh_by="evidence", random_state=0).fit(X, y, task=task)
    assert average.log_evidence_ == pytest.approx(whole.log_evidence_)
    assert average.weights_ == pytest.approx(whole.weights_)


def test_a_label_that_was_not_in_the_fit_leaves_the_average_as_it_was(averaged):
    X, _, task = made_up_tasks(1)
    before = averaged.predict_proba(X, task=task)
    with pytest.raises(ValueError, match="label 7"):
        averaged.partial_fit(X[:2], [0, 7], task=task[:2])
    np.testing.assert_array_equal(averaged.predict_proba(X, task=task), before)


def test_the_first_rows_are_those_of_a_fit_and_have_every_label():
    X, y, task = made_up_tasks(0)
    first = AveragedNB(random_state=0).partial_fit(X, y, classes=[0, 1], task=task)
    whole = AveragedNB(random_state=0).fit(X, y, task=task)
    np.testing.assert_array_equal(first.predict_proba(X, task=task), whole.predict_proba(X, task=task))
    untouched = AveragedNB(random_state=0)
    with pytest.raises(ValueError, match="no row has label 2 of classes"):
        untouched.partial_fit(X, y, classes=[0, 1, 2], task=task)
    assert not hasattr(untouched, "weights_")
