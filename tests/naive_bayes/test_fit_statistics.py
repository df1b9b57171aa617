"""Counts handed in give what the rows that they count give."""

import numpy as np
import pytest

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB
from kinfolk.tasks.statistics import Layout, Statistics

N_TASKS, N_LABELS, N_VALUES = 6, 2, np.array([3, 4])
MODELS = [
    NoSharingNB(),
    CompleteSharingNB(),
    CompleteSharingNB(share_labels=False),
    ClusteredNB(),
    ClusteredNB(inference="exact"),
    ClusteredNB(inference="gibbs", n_burn_in=5, n_draws=20, random_state=0),
    ClusteredNB(inference="variational", random_state=0),
]


def rows_and_counts(dtype=np.uint8):
    rng = np.random.default_rng(0)
    n_rows = 240
    X = np.stack([rng.integers(n, size=n_rows) for n in N_VALUES], axis=1)
    # Every value, label and task occurs, so that both ways in know of them.
    X[:4] = [[0, 0], [1, 1], [2, 2], [0, 3]]
    y, task = np.arange(n_rows) % N_LABELS, np.arange(n_rows) % N_TASKS
    feature_counts = np.zeros((N_TASKS, N_LABELS, 2, 4), dtype=dtype)
    label_counts = np.zeros((N_TASKS, N_LABELS), dtype=dtype)
    np.add.at(label_counts, (task, y), 1)
    for f in range(2):
        np.add.at(feature_counts, (task, y, f, X[:, f]), 1)
    return X, y, task, feature_counts, label_counts


@pytest.mark.parametrize("model", MODELS)
def test_counts_and_rows_give_the_same_model(model):
    X, y, task, feature_counts, label_counts = rows_and_counts()
    # Counts do not tell which values came together, which tempering is learnt from.
    from_rows = model.set_params(temper=1.0).fit(X, y, task=task)
    proba, evidence = from_rows.predict_proba(X, task=task), from_rows.log_evidence_
    model.fit_statistics(feature_counts, label_counts, n_values=N_VALUES)
    np.testing.assert_allclose(model.predict_proba(X, task=task), proba, atol=1e-12)
    assert model.log_evidence_ == pytest.approx(evidence, abs=1e-8)


def test_one_byte_counts_do_not_overflow_when_tasks_are_added_up():
    feature_counts = np.full((3, 2, 1, 2), 200, dtype=np.uint8)
    label_counts = np.full((3, 2), 400, dtype=np.uint16)
    for model in (CompleteSharingNB(), ClusteredNB(), ClusteredNB(inference="exact")):
        narrow = model.fit_statistics(feature_counts, label_counts).predict_proba([[0]], task=[0])
        wide = model.fit_statistics(feature_counts.astype(float), label_counts.astype(float))
        np.testing.assert_allclose(narrow, wide.predict_proba([[0]], task=[0]), atol=1e-12)


def test_one_byte_counts_do_not_overflow_in_variational_inference():
    rng = np.random.default_rng(1)
    feature_counts = rng.integers(100, 250, size=(40, 2, 3, 4)).astype(np.uint8)
    label_counts = feature_counts.sum(axis=-1).max(axis=-1)
    X, task = rng.integers(4, size=(5, 3)), np.arange(5)
    narrow, wide = (
        ClusteredNB(inference="variational", random_state=0).fit_statistics(counts, label_counts)
        for counts in (feature_counts, feature_counts.astype(float))
    )
    np.testing.assert_allclose(narrow.predict_proba(X, task=task), wide.predict_proba(X, task=task), atol=1e-12)
    assert narrow.log_evidence_ == pytest.approx(wide.log_evidence_, rel=1e-12)
    for part in ("own", "kin", "everybody"):
        shares = [getattr(model.explain(X, task=task), part) for model in (narrow, wide)]
        np.testing.assert_allclose(*shares, atol=1e-12)


def test_one_byte_counts_that_are_added_widen_past_255():
    layout = Layout(2, np.array([2]))
    part = Statistics(layout, np.array(["a"]), np.full((1, 4), 200, np.uint8), np.full((1, 2), 250, np.uint8))
    both = part + part
    assert both.feature_counts.tolist() == [[400] * 4]
    assert both.label_counts.tolist() == [[500, 500]]
    assert part.pooled().feature_counts.tolist() == [[200] * 4]


def test_whole_counts_are_not_copied():
    counts = np.ones((4, 2, 3, 5), dtype=np.uint8)
    model = ClusteredNB(inference="variational").fit_statistics(counts, np.full((4, 2), 5, dtype=np.uint8))
    assert np.shares_memory(model._result.data.statistics.feature_counts, counts)


def test_tasks_keep_their_names():
    _, _, _, feature_counts, label_counts = rows_and_counts()
    model = NoSharingNB().fit_statistics(feature_counts, label_counts, tasks=list("fedcba"), n_values=N_VALUES)
    assert model.tasks_.tolist() == list("fedcba")
    reference = NoSharingNB().fit_statistics(feature_counts, label_counts, n_values=N_VALUES)
    np.testing.assert_array_equal(
        model.predict_proba([[0, 3]], task=["e"]), reference.predict_proba([[0, 3]], task=[1])
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature_counts": np.ones((2, 2, 3))}, "shape"),
        ({"label_counts": np.ones((2, 3))}, "shape"),
        ({"feature_counts": -np.ones((2, 2, 1, 2))}, "feature_counts holds a negative"),
        ({"label_counts": np.full((2, 2), np.nan)}, "label_counts holds a negative number, NaN"),
        ({"n_values": [1]}, "past those that n_values allows"),
        ({"n_values": [9]}, "from 1 to 2"),
        ({"tasks": ["a", "a"]}, "once"),
        ({"label_counts": np.ones((2, 2)), "tasks": ["a", "b"]}, "feature 0 of task 'a' was seen 2 times with label 0"),
        ({"feature_counts": np.zeros((2, 2, 0, 2))}, "nothing to learn from"),
    ],
)
def test_counts_that_make_no_sense_get_one_sentence(change, message):
    arguments = {"feature_counts": np.ones((2, 2, 1, 2)), "label_counts": np.full((2, 2), 2.0), **change}
    with pytest.raises(ValueError, match=message):
        NoSharingNB().fit_statistics(**arguments)
