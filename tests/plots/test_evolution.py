"""The evolution of clusters: colours follow clusters, not the names that a sampler gives them."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

mpl.use("Agg")
import matplotlib.pyplot as plt

from kinfolk import ClusteredNB, NestedIHMM
from kinfolk.plots.evolution import align, cluster_evolution
from kinfolk.plots.style import PALETTE


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def same_blocks(one, other):
    return np.array_equal(np.equal.outer(one, one), np.equal.outer(other, other))


def test_alignment_keeps_every_partition_as_it_is():
    rng = np.random.default_rng(0)
    partitions = rng.integers(0, 4, size=(50, 7))
    for before, after in zip(partitions, align(partitions), strict=True):
        assert same_blocks(before, after)


def test_renaming_clusters_at_any_time_changes_nothing():
    rng = np.random.default_rng(1)
    truth = np.repeat([[0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2]], [5, 5], axis=0)
    renamed = np.array([rng.permutation(9)[row] for row in truth])
    assert align(renamed).tolist() == align(truth).tolist() == truth.tolist()


def test_as_few_tasks_as_possible_change_their_number():
    found = align(np.array([[0, 0, 0, 0, 1], [5, 5, 5, 6, 6], [8, 7, 7, 7, 7], [1, 1, 1, 1, 1]]))
    # Of the ways to number the third, 0 1 1 1 1 keeps three tasks as they were, and 1 0 0 0 0 two.
    assert found.tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 1, 1], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]


def test_tasks_of_one_last_cluster_stand_together_in_its_colour():
    clusters = np.array([[0, 0, 0, 0]] * 3 + [[3, 1, 3, 1]] * 5)
    ax = cluster_evolution(clusters, ["a", "b", "c", "d"], title="Chain 1")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "c", "b", "d"]
    assert ax.get_title() == "Chain 1"
    (image,) = ax.images
    shown = np.asarray(image.get_array())
    assert shown.shape == (4, 8)
    assert shown[:, 0].tolist() == [0, 0, 0, 0]
    assert shown[:, -1].tolist() == [0, 0, 1, 1]
    assert mpl.colors.to_hex(image.cmap(image.norm(1))).upper() == PALETTE[1]
    assert list(image.get_extent()) == [0.5, 8.5, 3.5, -0.5]
    # Without colours, lines tell where another cluster begins: below a and c from the fourth iteration on, and at it.
    below, beside = ([path.vertices.tolist() for path in lines.get_paths()] for lines in ax.collections[1:])
    assert below == [[[start + 0.5, 1.5], [start + 1.5, 1.5]] for start in range(3, 8)]
    assert beside == [[[3.5, row - 0.5], [3.5, row + 0.5]] for row in (2, 3)]


def test_axes_can_be_given_and_rows_ordered_and_iterations_counted_from_anywhere():
    given = Figure().subplots()
    ax = cluster_evolution([[0, 1], [1, 0]], ["$x$", "y$"], order=[1, 0], first=100, ax=given)
    assert ax is given
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["y$", "$x$"]
    assert list(ax.images[0].get_extent()[:2]) == [99.5, 101.5]
    ax.figure.draw_without_rendering()


def test_a_model_that_was_fitted_by_sampling_gives_its_draws_and_tasks():
    rng = np.random.default_rng(0)
    X, task = rng.integers(0, 3, (40, 2)), np.repeat(["a", "b", "c", "d"], 10)
    model = ClusteredNB(inference="gibbs", n_chains=2, n_burn_in=2, n_draws=6, random_state=0)
    model.fit(X, X[:, 0] > 0, task=task)
    for chain in (0, 1):
        ax = cluster_evolution(model, chain=chain, order=range(4))
        assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b", "c", "d"]
        shown = np.asarray(ax.images[0].get_array())
        assert np.array_equal(shown.T, align(model.posterior_.partitions[chain]))
    with pytest.raises(ValueError, match="chain=2: the model has 2 chains, numbered from 0"):
        cluster_evolution(model, chain=2)


def test_infinite_hidden_markov_models_give_their_draws():
    symbols = np.random.default_rng(0).integers(0, 3, (60, 1))
    model = NestedIHMM(n_states=2, n_clusters=2, n_chains=1, n_burn_in=2, n_draws=4, random_state=0)
    model.fit(symbols, [10] * 6, task=["a", "b", "c"] * 2)
    ax = cluster_evolution(model, ["x", "y", "z"], order=range(3))
    assert np.asarray(ax.images[0].get_array()).shape == (3, 4)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["x", "y", "z"]


def test_very_many_iterations_are_thinned_out():
    ax = cluster_evolution(np.zeros((10_001, 3), dtype=int))
    assert np.asarray(ax.images[0].get_array()).shape[1] <= 2_000
    assert ax.images[0].get_extent()[1] == 10_001.5


@pytest.mark.parametrize(
    ("clusters", "options", "sentence"),
    [
        ([0, 1], {}, r"clusters has shape \(2,\)"),
        ([[0.5, 1.0]], {}, "type float64"),
        (np.zeros((0, 3), dtype=int), {}, r"shape \(0, 3\)"),
        ([[0, 1]], {"order": [0, 0]}, "order must hold each position from 0 to 1 once"),
        ([[0, 1]], {"labels": ["a"]}, "labels names 1 tasks, but there are 2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(clusters, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cluster_evolution(clusters, **options)


def test_with_many_tasks_no_line_hides_their_colours():
    last = np.repeat(np.arange(20), 25)
    ax = cluster_evolution(np.tile(last, (30, 1)), ax=Figure().add_subplot())
    (lines,) = ax.collections
    assert [path.vertices[0, 1] for path in lines.get_paths()] == [25 * k - 0.5 for k in range(1, 20)]
    assert mpl.colors.to_hex(lines.get_colors()[0]) == "#000000"
    assert len(ax.get_yticks()) <= 60
