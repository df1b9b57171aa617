"""Trees in files: those of before intercepts were crossed answer as they did, and new ones as the estimator does."""

from pathlib import Path

import numpy as np
import pytest

import kinfolk
from kinfolk import TransferClassifier, TransferRegressor

ARCHIVES = Path(__file__).parents[1] / "archives"
ASKED = {"a": [-1.0, 0.5, None, 1.0], "k": ["k3", "never", "k7", None]}
# What the estimators said of these rows on the day that they were saved, of tasks 0, 3, 5 and a new one.
NUMBERS = [-3.357936970939377, 1.215282393699469, -7.699711063549588, 1.3732514029866338]
LABELS = [0.007914186106633763, 0.9904075814277645, 0.0006515676911287907, 0.9854050950323713]


@pytest.mark.parametrize("estimator", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_trees_of_before_intercepts_were_crossed_answer_as_they_did(estimator):
    numbers, labels = (
        kinfolk.load(ARCHIVES / f"trees-of-{what}.kin", estimator=estimator) for what in ("numbers", "labels")
    )
    asked = {"X": ASKED, "task": [0, 3, 5, 99]}
    assert np.allclose(numbers.predict(**asked), NUMBERS, rtol=1e-10)
    assert np.allclose(labels.predict_proba(**asked)[:, 1], LABELS, rtol=1e-10)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 50, 500)
    X = {"size": rng.normal(size=500), "kind": np.array([f"k{value}" for value in kind])}
    task = rng.choice(12, 500, p=np.arange(1, 13) / 78)
    y = X["size"] * (task % 2) + rng.normal(size=50)[kind] + rng.normal(size=12)[task] + 0.3 * rng.normal(size=500)
    return X, y, task


@pytest.mark.parametrize("of_labels", [False, True])
def test_a_file_with_crossed_intercepts_answers_and_explains_as_the_estimator(rows, tmp_path, of_labels):
    X, y, task = rows
    if of_labels:
        model = TransferClassifier(["interactions"], random_state=0).fit(X, y > 0, task=task)
    else:
        model = TransferRegressor(["interactions"], random_state=0).fit(X, y, task=task)
    assert list(model.members_["interactions"].crossed) == [1]
    kinfolk.save(model, tmp_path / "model.kin")
    answer = model.predict_proba if of_labels else model.predict
    for estimator in (False, True):
        loaded = kinfolk.load(tmp_path / "model.kin", estimator=estimator)
        again = loaded.predict_proba if of_labels else loaded.predict
        assert np.array_equal(answer(X, task=task), again(X, task=task))
    explained = model.explain(X, task=task)
    if not of_labels:
        assert np.allclose(explained.level + explained.feature_part.sum(axis=1), answer(X, task=task))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kinds_that_were_not_seen_have_the_mean_and_missing_ones_nothing(rows):
    X, y, task = rows
    model = TransferRegressor(["interactions"], random_state=0, new_tasks="expected").fit(X, y, task=task)
    forest = model.members_["interactions"]
    nothing = forest._replace(crossed={})
    asked = np.array([[0.0, np.nan]])
    assert forest.score(asked, np.zeros(1, int)) == nothing.score(asked, np.zeros(1, int))
    unseen = model.predict({"size": [0.1], "kind": ["never"]}, task=[0])
    assert np.array_equal(unseen, model.predict({"size": [0.1], "kind": [None]}, task=[0]))
