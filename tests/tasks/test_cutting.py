"""One long sequence cut into tasks: by a length, by a column, by a value for each step."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk import SharedIHMM, cut_sequence

TONES = list("aabbabababbbaab")
DAYS = ["mon"] * 4 + ["tue"] * 6 + ["mon"] * 5


@pytest.mark.parametrize("length", [1, 4, 5, 15, 40])
def test_pieces_of_a_length_are_all_of_the_sequence(length):
    X, lengths, task = cut_sequence(TONES, length=length)
    assert X is TONES
    assert lengths.sum() == 15
    assert (lengths[:-1] == length).all()
    assert 1 <= lengths[-1] <= length
    assert task.tolist() == list(range(len(lengths)))


@pytest.mark.parametrize(
    "make",
    [dict, pd.DataFrame, pl.DataFrame, lambda columns: np.array(list(columns.values()), dtype=object).T],
    ids=["mapping", "pandas", "polars", "array"],
)
def test_runs_of_a_columns_values_are_sequences_of_their_tasks(make):
    table = make({"day": DAYS, "tone": TONES})
    cut = cut_sequence(table, by=0 if isinstance(table, np.ndarray) else "day")
    assert cut.lengths.tolist() == [4, 6, 5]
    assert cut.task.tolist() == ["mon", "tue", "mon"]
    assert type(cut.X) is type(table)
    model = SharedIHMM(n_states=3, n_chains=2, n_burn_in=4, n_draws=4, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(cut.X, cut.lengths, task=cut.task)
    assert model.tasks_.tolist() == ["mon", "tue"]
    assert model.n_features_in_ == 1
    beside = cut_sequence(TONES, by=DAYS)
    assert (beside.lengths.tolist(), beside.task.tolist()) == (cut.lengths.tolist(), cut.task.tolist())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "give length=.*or by="),
        ({"length": 3, "by": DAYS}, "give length=.*or by="),
        ({"length": 0}, "length=0: a whole number of at least 1"),
        ({"length": 2.5}, "a whole number of at least 1"),
        ({"by": DAYS[:-1]}, "by has 14 entries for 15 steps"),
        ({"by": [None, *DAYS[1:]]}, "by, row 0: a value is missing"),
    ],
)
def test_cuts_that_cannot_be_get_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cut_sequence(TONES, **options)


def test_nothing_is_cut_into_nothing():
    assert cut_sequence([], length=3).lengths.tolist() == []
    assert cut_sequence([], by=[]).task.tolist() == []


def test_a_sequence_whose_parts_differ_is_cut_into_tasks_of_two_kinds():
    rng = np.random.default_rng(0)
    noise = [rng.choice(list("ab"), 120), rng.choice(list("cd"), 120)]
    cut = cut_sequence(np.concatenate(noise), length=40)
    model = kinfolk.NestedIHMM(n_states=4, n_chains=2, n_burn_in=30, n_draws=20, random_state=0)
    model.fit(cut.X, cut.lengths, task=cut.task)
    assert model.partition_.tolist() == [0, 0, 0, 1, 1, 1]
