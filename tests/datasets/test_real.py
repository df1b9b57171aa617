"""The real data sets load as their READMEs say, and the models learn from them; skipped by name where they are not."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from kinfolk import ClusteredNB, FewPerTask, NoSharingNB
from kinfolk.datasets import load_real
from tests.problems import PLAIN

# Rows, tasks and rows of the second label, as the READMEs of the sets count them.
COUNTS = {
    "contraception": (1_934, 60, 759),
    "guimmun": (2_159, 161, 964),
    "bank_choice": (14_799, 946, 6_473),
    "insteval": (73_421, 1_128, 32_675),
    "heart_disease": (920, 4, 509),
    "adult": (48_842, 42, 11_687),
}


def real(name):
    try:
        return load_real(name)
    except FileNotFoundError as absent:
        pytest.skip(f"the real data set {name} is not here: {absent}")


@pytest.mark.parametrize("name", COUNTS)
def test_a_set_has_the_rows_tasks_and_labels_that_its_readme_counts(name):
    data = real(name)
    assert (len(data.target), len(np.unique(data.task)), (data.target == np.unique(data.target)[1]).sum()) == COUNTS[
        name
    ]
    assert len(data.data) == len(data.target) == len(data.task)


@pytest.mark.parametrize("name", ["contraception", "guimmun"])
def test_kin_improve_on_no_sharing_with_few_rows_per_task(name):
    data = real(name)
    losses = {"clustered": [], "alone": []}
    for train, test in FewPerTask(8, n_splits=5, random_state=0).split(data.data, data.target, task=data.task):
        for kind, model in (("clustered", ClusteredNB(**PLAIN)), ("alone", NoSharingNB(**PLAIN))):
            model.fit(data.data[train], data.target[train], task=data.task[train])
            proba = model.predict_proba(data.data[test], task=data.task[test])
            losses[kind].append(log_loss(data.target[test], proba))
    gain = np.subtract(losses["alone"], losses["clustered"])
    assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_missing_values_of_four_hospitals_are_no_obstacle():
    data = real("heart_disease")
    assert data.data.null_count().sum_horizontal()[0] > 1_000
    model = ClusteredNB(inference="exact").fit(data.data, data.target, task=data.task)
    proba = model.predict_proba(data.data, task=data.task)
    assert np.isfinite(proba).all()
    assert (model.classes_[proba.argmax(axis=1)] == data.target).mean() > 0.8


def test_a_set_that_is_not_there_is_asked_for_by_name(monkeypatch, tmp_path):
    monkeypatch.delenv("KINFOLK_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="KINFOLK_DATA is not set"):
        load_real("contraception")
    monkeypatch.setenv("KINFOLK_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"adult\.csv\.gz is not there"):
        load_real("adult")
    with pytest.raises(ValueError, match="there is no data set 'nonsense'"):
        load_real("nonsense")
