"""Any table as a design matrix: units, levels, gaps, values never seen, groups, and what a file keeps of it."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kinfolk.posterior import Archive, design_about, design_from
from kinfolk.tasks.answering import UnseenWarning
from kinfolk.tasks.design import MAX_LEVELS, Term, design_rows, learn_design
from kinfolk.tasks.table import declared_categories, read_table

MIXED = {
    "size": [1.5, 2.5, None, 4.0, 0.5, 2.0],
    "rooms": [1, 2, 3, 1, 2, 3],
    "colour": ["red", "blue", "green", "red", "blue", None],
    "new": [True, False, True, True, None, True],
    "same": [5, 5, 5, 5, 5, 5],
}


def design_of(X, **how):
    return learn_design(read_table(X), declared=declared_categories(X), **how)


def matrix(X, **how):
    design = design_of(X, **how)
    return design, design.encode(read_table(X))


def test_every_column_has_mean_zero_over_the_training_rows_and_all_are_finite():
    design, X = matrix(MIXED)
    assert np.isfinite(X).all()
    assert X.mean(axis=0) == pytest.approx(np.zeros(X.shape[1]), abs=1e-12)
    assert design.names[:2] == ["size", "size is missing"]
    assert "same" not in design.names


def test_a_row_of_weight_two_is_encoded_by_the_same_design_as_two_rows():
    weighted = learn_design(read_table(MIXED), np.array([2.0, 1.0, 1.0, 1.0, 2.0, 1.0]))
    repeated = design_of({name: [*values, values[0], values[4]] for name, values in MIXED.items()})
    assert weighted.names == repeated.names
    assert weighted.encode(read_table(MIXED)) == pytest.approx(repeated.encode(read_table(MIXED)))


def test_two_values_in_one_column_give_the_covariance_that_two_columns_of_one_prior_give():
    two = np.array([0.0, 1.0])
    _, X = matrix({"a": ["n", "y", "y", "n"]})
    one_hot = np.column_stack([1.0 - two[[0, 1, 1, 0]], two[[0, 1, 1, 0]]])
    centred = one_hot - one_hot.mean(axis=0)
    assert pytest.approx(centred @ centred.T) == X @ X.T
    assert matrix({"a": [0, 1, 1, 0]})[1] == pytest.approx(X)


def test_values_that_were_never_seen_and_gaps_add_what_the_average_row_has():
    design = design_of({"colour": ["red", "blue", "green"] * 4, "size": np.arange(12) / 7})
    unknown = design.encode(read_table({"colour": ["mauve", None], "size": [None, np.nan]}))
    assert unknown.tolist() == np.zeros((2, 4)).tolist()


def test_a_gap_in_training_has_a_column_of_its_own_and_all_such_columns_are_one_group():
    design, X = matrix(MIXED)
    gaps = [i for i, kind in enumerate(design.kinds) if kind == "gap"]
    assert [design.names[i] for i in gaps] == ["size is missing", "colour is missing", "new is missing"]
    assert len(set(design.group[gaps])) == 1
    assert X[:, gaps[0]] == pytest.approx(np.array([0, 0, 1, 0, 0, 0]) - 1 / 6)


def test_whole_numbers_of_few_values_are_a_number_with_a_column_for_each_value_beside_it():
    design = design_of({"rooms": [1, 2, 3] * 4, "age": range(12)})
    assert design.names == ["rooms", "rooms=1", "rooms=2", "rooms=3", "age"]
    assert design.group_names == ["rooms", "values of rooms", "age"]
    assert design_of({"rooms": [1, 2, 3] * 4}, categorical_features=[]).names == ["rooms"]
    assert design_of({"rooms": [1, 2, 3] * 4}, categorical_features=["rooms"]).names == [
        "rooms=1",
        "rooms=2",
        "rooms=3",
    ]


def test_whole_numbers_of_which_one_value_is_in_more_than_one_row_are_numbers_alone():
    design = design_of({"rooms": [1, 1, 2, 3]})
    assert design.names == ["rooms"]
    assert design_of({"rooms": [1, 1, 2, 2, 3]}).names == ["rooms", "rooms=1", "rooms=2"]
    assert design.encode(read_table({"rooms": [9]})).shape == (1, 1)


def test_of_many_values_the_most_frequent_have_columns():
    values = [f"v{i:02}" for i in range(40) for _ in range(i + 2)]
    design = design_of({"x": values})
    assert len(design.names) == MAX_LEVELS
    assert design.names[0] == "x=v08"
    assert design.encode(read_table({"x": ["v00"]})).tolist() == [[0.0] * MAX_LEVELS]


def test_an_identifier_is_left_out_with_a_warning():
    X = {"id": [f"person {i}" for i in range(100)], "size": np.arange(100) / 3}
    with pytest.warns(UserWarning, match="column 'id' looks like an identifier"):
        assert design_of(X).names == ["size"]


def test_frames_and_mappings_give_one_matrix():
    _, X = matrix(MIXED)
    for frame in (pd.DataFrame(MIXED), pl.DataFrame(MIXED)):
        assert design_of(frame).encode(read_table(frame)) == pytest.approx(X)


def test_a_category_that_a_frame_declares_is_one_though_it_is_written_as_a_number():
    frame = pd.DataFrame({"code": pd.Categorical([1, 2, 3] * 3)})
    assert design_of(frame).names == ["code=1", "code=2", "code=3"]


def test_text_in_a_column_of_numbers_is_refused_with_its_place():
    design = design_of({"size": [1.0, 2.0, 3.5]})
    with pytest.raises(ValueError, match=r"column 'size', row 1: 'big' is not a number"):
        design.encode(read_table({"size": [1.0, "big"]}))


def test_a_column_of_values_that_nobody_has_seen_is_told_of():
    design = design_of({"colour": ["red", "blue"] * 10})
    with pytest.warns(UnseenWarning, match="column 'colour' has no value that the model knows"):
        design_rows(read_table({"colour": ["rouge", "bleu"] * 10}), design)


def test_trees_get_a_number_or_the_place_of_a_level_and_nothing_where_nothing_is_known():
    design = design_of({"size": [1.0, 3.5, 4.5], "colour": ["red", "blue", "red"]})
    X = design.ordinals(read_table({"size": [3.0, None], "colour": ["red", "mauve"]}))
    assert X[:, 1].tolist()[0] == 1.0
    assert X[0, 0] == pytest.approx(0.0)
    assert np.isnan(X[1]).all()


def test_a_file_keeps_the_design():
    design, X = matrix(MIXED)
    about = {"design": json.loads(json.dumps(design_about(design)))}
    assert design_from(Archive(about, {})).terms == design.terms
    assert design_from(Archive(about, {})).encode(read_table(MIXED)) == pytest.approx(X)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"shares": [0.5]}, "not a share for each"),
        ({"shares": [0.5, 1.5]}, "between 0 and 1"),
        ({"missing": -1.0}, "between 0 and 1"),
        ({"number": ["gaussian", 0.0, 0.0]}, "a scale above zero"),
        ({"levels": ["a", "a"]}, "stands there twice"),
    ],
)
def test_a_damaged_design_is_refused(wrong, sentence):
    about = design_about(design_of({"x": ["a", "b"]}))
    with pytest.raises(ValueError, match=sentence):
        design_from(Archive({"design": [{**about[0], **wrong}]}, {}))


def test_a_term_of_nothing_has_no_columns():
    assert Term("x", None, (), (), 0.0).names == []


def test_values_too_many_for_columns_of_their_own_still_have_places_for_trees():
    values = [*np.repeat([f"v{k:02d}" for k in range(40)], np.arange(41, 1, -1)).tolist(), "once"]
    table = read_table({"it": values})
    design = learn_design(table)
    (term,) = design.terms
    assert len(term.levels) == MAX_LEVELS
    assert set(term.levels + term.rare) == {f"v{k:02d}" for k in range(40)}
    assert design.encode(table).shape[1] == MAX_LEVELS
    ordinals = design.ordinals(table)[:, 0]
    assert len(np.unique(ordinals[:-1])) == 40
    assert np.isnan(ordinals[-1])
    again = design_from(Archive({"design": design_about(design)}, {}))
    assert again.terms == design.terms
