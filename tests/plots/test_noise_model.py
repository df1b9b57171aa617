"""Samples of the noise model: what is drawn must come from the noisy Dirichlet of thesis eq. 2.30."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Polygon

from kinfolk.plots.noisy_dirichlet import noise_model

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def copies(ax) -> np.ndarray:
    """Probabilities of the dots drawn, from their places in the triangle."""
    dots = ax.collections[0].get_offsets().data
    return np.linalg.solve(np.vstack([CORNERS.T, np.ones(3)]), np.column_stack([dots, np.ones(len(dots))]).T).T


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


def test_there_is_a_triangle_for_each_strength_of_figure_2_5_with_a_thousand_samples():
    axes = noise_model()
    assert [ax.get_title() for ax in axes] == ["K = 100", "K = 10", "K = 3", "K = 0.5", "K = 0.1", "K = 0.01"]
    for ax in axes:
        assert copies(ax).shape == (1000, 3)
        (triangle,) = (patch for patch in ax.patches if isinstance(patch, Polygon))
        np.testing.assert_allclose(triangle.get_xy()[:3], CORNERS)
        assert ax.get_aspect() == 1.0, "a triangle of three equal sides must look like one"


@pytest.mark.parametrize("strength", [20.0, 3.0, 0.4])
def test_the_dots_are_draws_of_the_noisy_dirichlet(strength):
    prototype = np.array([0.5, 0.3, 0.2])
    (ax,) = noise_model(prototype, [strength], n_samples=4000)
    drawn = np.clip(copies(ax), 0.0, 1.0)
    for x, share in enumerate(prototype):
        # Each rate of a Dirichlet is a Beta.
        assert stats.kstest(drawn[:, x], stats.beta(strength * share, strength * (1 - share)).cdf).pvalue > 1e-3


def test_the_prototype_is_marked():
    prototype = np.array([0.5, 0.3, 0.2])
    (ax,) = noise_model(prototype, [5.0])
    np.testing.assert_allclose(ax.collections[1].get_offsets().data[0], prototype @ CORNERS)


def test_the_share_of_copies_at_a_corner_is_written_there():
    strong, weak = noise_model(strengths=[10.0, 0.01])
    assert texts(strong) == []
    shares = [round(100 * share) for share in (copies(weak) >= 0.99).mean(axis=0)]
    assert texts(weak) == [f"{share}%" for share in shares]
    assert min(shares) > 25


def test_values_are_named_at_the_corners_of_the_first_triangle_alone():
    first, second = noise_model(strengths=[10.0, 20.0], values=["$a$ or $b$", 2, "three"])
    assert texts(first) == ["$a$ or $b$", "2", "three"]
    assert texts(second) == []
    first.figure.canvas.draw()


def test_the_same_seed_gives_the_same_picture_on_axes_of_ones_own():
    _, axes = plt.subplots(2, 1)
    drawn = noise_model(strengths=[4.0, 1.0], axes=axes, random_state=3)
    again = noise_model(strengths=[4.0, 1.0], random_state=3)
    assert drawn.tolist() == axes.tolist()
    for one, other in zip(drawn, again, strict=True):
        np.testing.assert_array_equal(copies(one), copies(other))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prototype": [0.5, 0.5]}, r"prototype is \[0.5, 0.5\]; it needs three probabilities"),
        ({"prototype": [0.5, 0.5, 0.5]}, "add up to one"),
        ({"prototype": [1.0, 0.0, 0.0]}, "above zero"),
        ({"strengths": [1.0, -2.0]}, r"strengths holds -2.0; every strength"),
        ({"strengths": []}, "strengths is empty"),
        ({"values": ["a", "b"]}, "values names 2 values"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(arguments, message):
    with pytest.raises(ValueError, match=message):
        noise_model(**arguments)


def test_the_number_of_axes_must_be_that_of_the_strengths():
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="axes holds 1 axes for 6 strengths"):
        noise_model(axes=[ax])
