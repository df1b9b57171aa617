"""Files of averages that cannot be are refused in a sentence: widths, units, trees."""

import json

import numpy as np
import pytest

from kinfolk import TransferRegressor
from tests.saved_models import saved
from tests.test_hostile_files import array_of, assert_refused, edited, members_of
from tests.transfer.test_regressor import any_table


@pytest.fixture(scope="module")
def average():
    X, y, task = any_table(0, n_tasks=4, n_rows=10)
    return TransferRegressor(["pooled", "interactions"], n_folds=2, random_state=0).fit(X, y, task=task)


@pytest.fixture
def file(average, path):
    return saved(average, path)


def with_one(array, value):
    changed = array.copy()
    changed.flat[0] = value
    return changed


def around_nothing(array):
    """Rows that add up to one, with an entry below zero."""
    changed = np.zeros_like(array)
    changed[:, :2] = -1.0, 2.0
    return changed


@pytest.mark.parametrize("estimator", [False, True])
@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("scales.known", around_nothing, "weights of widths do not add up to one"),
        ("scales.new", lambda a: 2 * a, "weights of widths do not add up to one"),
        ("scales.unit", lambda a: np.array([a[0], 0.0]), "unit of numbers is not above zero"),
        ("1.forest.column", lambda a: with_one(a, 99), "trees look at columns that it does not have"),
        ("1.forest.column", lambda a: with_one(a, -1), "trees look at columns that it does not have"),
        ("1.forest.leaf", lambda a: a[..., :-1], "trees have|has shape"),
        ("1.sizes.task", lambda a: a[:0], "its effects are of nothing"),
        ("1.sizes.task", lambda a: a[:, None], "has shape"),
    ],
)
def test_an_array_that_cannot_be_is_refused(file, name, change, match, estimator):
    assert_refused(edited(file, arrays={name: change(array_of(file, name))}), match, estimator=estimator)


@pytest.mark.parametrize("estimator", [False, True])
@pytest.mark.parametrize(
    ("about", "match"),
    [
        ({"noise": 0.0}, r"its noise is 0\.0"),
        ({"noise": -1.0}, r"its noise is -1\.0"),
        ({"kind": "colours"}, "its kind of targets is 'colours'"),
    ],
)
def test_trees_that_cannot_be_are_refused(file, about, match, estimator):
    members = json.loads(members_of(file)["model.json"])["members"]
    members[1] |= about
    assert_refused(edited(file, about={"members": members}), match, estimator=estimator)


@pytest.mark.parametrize("what", ["effects", "crossed", "sizes"])
@pytest.mark.parametrize("place", ["9", "colour"])
def test_effects_of_a_column_that_is_not_there_are_refused(file, what, place):
    moved = {"1.effects.1": None, f"1.{what}.{place}": array_of(file, "1.effects.1")}
    assert_refused(edited(file, arrays=moved), "its effects are not of its columns")
