"""A column of unique text looks like an identifier: it is told of, and costs nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest

from kinfolk import AveragedNB, ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB

N = 200
RNG = np.random.default_rng(0)
Y, TASK = RNG.integers(2, size=N), np.arange(N) % 5
TABLE = pd.DataFrame({"colour": np.where(RNG.random(N) < 0.7, Y, RNG.integers(3, size=N)).astype(str)})
WITH_ID = TABLE.assign(number=[f"u{i}" for i in RNG.permutation(N)])
SAID = r"^column 'number' looks like an identifier: 200 different values in 200 rows, at least 90% of them; its values"


@pytest.mark.parametrize(
    "model", [NoSharingNB(), CompleteSharingNB(), ClusteredNB(), PrototypeNB(random_state=0)], ids=repr
)
def test_a_column_of_unique_text_is_told_of_and_changes_no_prediction(model):
    plain = model.fit(TABLE, Y, task=TASK).predict_proba(TABLE, task=TASK)
    with pytest.warns(UserWarning, match=SAID) as told:
        model.fit(WITH_ID, Y, task=TASK)
    assert sum("identifier" in str(warning.message) for warning in told) == 1
    assert model._result.data.statistics.feature_counts.shape[1] == 2 * (3 + 1)
    np.testing.assert_allclose(model.predict_proba(WITH_ID, task=TASK), plain, atol=0.03)


@pytest.mark.parametrize(
    ("table", "chosen"),
    [
        (WITH_ID, ["colour", "number"]),
        (WITH_ID.astype({"number": "category"}), "auto"),
        (TABLE.assign(number=[f"u{i % 150}" for i in range(N)]), "auto"),
        (WITH_ID[:60], "auto"),
    ],
    ids=["named", "declared", "values that come back", "few"],
)
def test_values_that_are_wanted_or_may_tell_something_are_counted(table, chosen):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NoSharingNB(categorical_features=chosen).fit(table, Y[: len(table)], task=TASK[: len(table)])
    assert model._result.data.statistics.feature_counts.shape[1] == 2 * (3 + table["number"].nunique())


def test_an_average_says_it_too():
    with pytest.warns(UserWarning, match=SAID):
        AveragedNB(n_folds=2, random_state=0).fit(WITH_ID, Y, task=TASK)
