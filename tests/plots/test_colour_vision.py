"""Colours of the pictures are told apart with any colour vision, simulated as in G. M. Machado, M. M. Oliveira and
L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15, 2009.
"""

from itertools import combinations

import numpy as np
import pytest

from kinfolk.plots.style import DIVERGING, PALETTE

# Linear RGB as it is seen without one kind of cones.
SEEN_WITHOUT = {
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "none": np.eye(3),
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
WHITE = [0.95047, 1.0, 1.08883]
# A difference of 2.3 in CIELAB is just seen; this is four times as much, seen in thin lines too.
CLEAR = 10.0


def lab(colour, without):
    rgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x = np.array(TO_XYZ) @ np.clip(np.array(SEEN_WITHOUT[without]) @ linear, 0.0, 1.0) / WHITE
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_red_and_olive_are_confused_without_green_cones():
    red, olive = "#C0504D", "#6E6B16"
    gap = {without: np.linalg.norm(lab(red, without) - lab(olive, without)) for without in ("none", "green")}
    assert gap["green"] < gap["none"] / 3.0


@pytest.mark.parametrize("without", SEEN_WITHOUT)
def test_groups_have_colours_that_differ(without):
    seen = [lab(colour, without) for colour in PALETTE]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > CLEAR


@pytest.mark.parametrize("without", SEEN_WITHOUT)
def test_below_zero_and_above_differ(without):
    assert np.linalg.norm(lab(DIVERGING[0], without) - lab(DIVERGING[-1], without)) > 4 * CLEAR
