"""Draws have the distribution that they are given."""

import numpy as np
import pytest

from kinfolk.maths.draws import draw_index


def test_an_index_is_drawn_as_often_as_its_weight_says():
    weights = np.array([0.1, 0.0, 0.6, 0.3, 9.0])
    log_weights = np.log(weights, where=weights > 0, out=np.full(5, -np.inf)) - 700.0
    drawn = np.bincount([draw_index(log_weights, 4, (i + 0.5) / 1000) for i in range(1000)], minlength=5)
    np.testing.assert_array_equal(drawn, [100, 0, 600, 300, 0])


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2.0**-53])
def test_the_ends_of_the_uniform_numbers_draw_what_has_weight(uniform):
    assert draw_index(np.array([-np.inf, 3.0, -np.inf]), 3, uniform) == 1
