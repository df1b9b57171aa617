"""The layout of the Hinton diagram and the tree."""

from __future__ import annotations

import numpy as np

from kinfolk_assistant.web.kin_drawing import STEM, WIDEST_SIDE, draw_kin

NAMES = ["Ann", "Bob", "Cat", "Dan"]
# Ann and Cat are kin, and so are Bob and Dan; average linkage joins the pairs at 1 − (0.1 + 0.2 + 0.1 + 0.2) / 4.
SIMILARITY = np.array(
    [
        [1.0, 0.1, 0.9, 0.2],
        [0.1, 1.0, 0.1, 0.6],
        [0.9, 0.1, 1.0, 0.2],
        [0.2, 0.6, 0.2, 1.0],
    ]
)


def test_kin_stand_beside_each_other_and_areas_are_probabilities() -> None:
    drawing = draw_kin(NAMES, SIMILARITY)
    assert {frozenset(drawing.names[:2]), frozenset(drawing.names[2:])} == {
        frozenset({"Ann", "Cat"}),
        frozenset({"Bob", "Dan"}),
    }
    for cell in drawing.cells:
        first, second = NAMES.index(drawing.names[cell.row]), NAMES.index(drawing.names[cell.column])
        assert np.isclose((cell.side / WIDEST_SIDE) ** 2, SIMILARITY[first, second])
    assert len(drawing.cells) == 16


def test_twigs_meet_where_average_linkage_joins() -> None:
    drawing = draw_kin(NAMES, SIMILARITY)
    assert np.allclose(sorted(twig.height for twig in drawing.twigs), [0.1, 0.1, 0.4, 0.4, 0.85, 0.85])
    leaves = [twig for twig in drawing.twigs if twig.start == -STEM]
    assert sorted(twig.row for twig in leaves) == [0, 1, 2, 3]
    inner = [twig for twig in drawing.twigs if twig.start != -STEM]
    assert sorted(twig.row for twig in inner) == [0.5, 2.5]
    assert {twig.to_row for twig in inner} == {1.5}


def test_only_the_path_from_oneself_to_the_root_is_ones_own() -> None:
    drawing = draw_kin(NAMES, SIMILARITY, you=3)
    assert drawing.names[drawing.you] == "Dan"
    mine = [(round(twig.start, 3), round(twig.height, 3)) for twig in drawing.twigs if twig.yours]
    assert mine == [(-STEM, 0.4), (0.4, 0.85)]


def test_one_person_and_two_can_be_drawn() -> None:
    alone = draw_kin(["Ann"], np.ones((1, 1)), 0)
    assert (alone.names, alone.you, alone.twigs, len(alone.cells)) == (["Ann"], 0, [], 1)
    pair = draw_kin(["Ann", "Bob"], np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert len(pair.cells) == 2
    assert [twig.height for twig in pair.twigs] == [1.0, 1.0]
