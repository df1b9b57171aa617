"""Sets with numbers as features load as their READMEs say; skipped by name where they are not."""

import numpy as np
import pytest

from kinfolk.datasets import load_numeric
from kinfolk.datasets.numeric_tasks import SCHOOL_BLOCKS

# Rows, features without the constant one, tasks, and rows of the smallest and the largest task, as the READMEs of the
# sets count them.
COUNTS = {
    "landmine": (14_820, 9, 29, 445, 690),
    "lenk_ratings": (3_600, 13, 180, 20, 20),
    "lenk_likes": (3_600, 13, 180, 20, 20),
    "school": (15_362, 27, 139, 22, 251),
    "parkinsons": (5_875, 19, 42, 101, 168),
}


def numeric(name):
    try:
        return load_numeric(name)
    except FileNotFoundError as absent:
        pytest.skip(f"the real data set {name} is not here: {absent}")


@pytest.mark.parametrize("name", COUNTS)
def test_a_set_has_the_rows_features_and_tasks_that_its_readme_counts(name):
    data = numeric(name)
    rows_of_tasks = np.unique(data.task, return_counts=True)[1]
    assert (*data.data.shape, len(rows_of_tasks), rows_of_tasks.min(), rows_of_tasks.max()) == COUNTS[name]
    assert len(data.data) == len(data.target) == len(data.task)
    assert len(data.feature_names) == len(set(data.feature_names)) == data.data.shape[1]


@pytest.mark.parametrize("name", COUNTS)
def test_no_feature_is_constant_and_none_is_missing(name):
    data = numeric(name)
    assert (np.ptp(data.data, axis=0) > 0).all()
    assert np.isfinite(data.data).all()
    assert np.isfinite(data.target).all()


def test_six_in_a_hundred_echoes_are_mines():
    data = numeric("landmine")
    mines = np.bincount(data.task, weights=data.target)[1:]
    assert (mines.sum(), mines.min(), mines.max()) == (904, 15, 48)


def test_every_person_has_sixteen_computers_to_learn_from_and_four_to_test():
    data = numeric("lenk_ratings")
    assert (np.bincount(data.task[data.is_train])[1:] == 16).all()
    assert (np.bincount(data.task[~data.is_train])[1:] == 4).all()
    assert sorted(np.unique(data.target)) == list(range(11))
    # Persons are the same in both parts: the README gives 0.78 for the correlation of their means.
    means = [np.bincount(data.task[part], data.target[part])[1:] for part in (data.is_train, ~data.is_train)]
    assert np.corrcoef(means)[0, 1] == pytest.approx(0.78, abs=0.005)


def test_a_computer_is_liked_from_a_rating_of_six():
    assert ((numeric("lenk_ratings").target >= 6) == (numeric("lenk_likes").target == 1)).all()


def test_columns_of_the_school_set_are_what_they_are_called():
    data = numeric("school")
    assert sum(SCHOOL_BLOCKS.values()) == len(data.feature_names)
    for block in ("year", "gender", "ethnic group", "gender of the school", "denomination of the school"):
        columns = [j for j, name in enumerate(data.feature_names) if name in _values(block)]
        assert (data.data[:, columns].sum(axis=1) == 1).all()
        of_schools = [np.ptp(data.data[np.ix_(data.task == school, columns)], axis=0) for school in range(1, 140)]
        assert (not np.any(of_schools)) == block.endswith("of the school")


def _values(block):
    return [f"{block} {value + 1}" for value in range(SCHOOL_BLOCKS[block])]


def test_a_set_that_is_not_there_is_asked_for_by_name(monkeypatch, tmp_path):
    monkeypatch.delenv("KINFOLK_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="KINFOLK_DATA is not set: it names the folder that holds school/"):
        load_numeric("school")
    monkeypatch.setenv("KINFOLK_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"LandmineData\.mat is not there"):
        load_numeric("landmine")
    with pytest.raises(ValueError, match="there is no data set 'nonsense': the known ones are landmine, lenk_ratings"):
        load_numeric("nonsense")
