"""The picture of several structures: every arc is drawn, from the right box to the right box, in the right colour."""

from itertools import combinations

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

mpl.use("Agg")
import matplotlib.pyplot as plt

from kinfolk import BayesNets
from kinfolk.datasets import load_network, make_random_network, make_related_networks, sample_tasks
from kinfolk.plots import networks, style
from kinfolk.plots.graph_drawing import COMMON, SOME, TURNED
from kinfolk.plots.layered_layout import lay_out_in_layers


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def boxes(ax):
    """Place of every variable's box: left, right, lower and upper edge."""
    drawn = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    found = {}
    for patch in drawn:
        x, y, width, height = patch.get_x(), patch.get_y(), patch.get_width(), patch.get_height()
        (name,) = (
            text.get_text().replace("\n", " ")
            for text in ax.texts
            if x < text.get_position()[0] < x + width and y < text.get_position()[1] < y + height
        )
        found[name] = (x, x + width, y, y + height)
    return found


def arcs(ax):
    """Every arrow as (tail, head, colour, width), by the boxes at which it begins and ends."""
    places = boxes(ax)

    def at(point):
        (name,) = (
            name
            for name, (left, right, low, high) in places.items()
            if left < point[0] < right and min(abs(point[1] - low), abs(point[1] - high)) < 1e-9
        )
        return name

    found = []
    for patch in ax.patches:
        if isinstance(patch, FancyArrowPatch):
            points = patch._path_original.vertices
            found.append((at(points[0]), at(points[-1]), to_hex(patch.get_edgecolor()), patch.get_linewidth()))
    return found


def test_colours_tell_arcs_of_all_tasks_from_those_of_some_and_from_those_turned_round():
    ax = networks(
        {
            "north": nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d")]),
            "south": nx.DiGraph([("a", "b"), ("c", "b"), ("c", "d")]),
            "west": nx.DiGraph([("a", "b"), ("c", "b"), ("a", "d")]),
        }
    )
    drawn = {(tail, head): colour for tail, head, colour, _ in arcs(ax)}
    assert drawn == {
        ("a", "b"): to_hex(COMMON),
        ("b", "c"): to_hex(TURNED),
        ("c", "b"): to_hex(TURNED),
        ("c", "d"): to_hex(SOME),
        ("a", "d"): to_hex(SOME),
    }
    key = [text.get_text() for text in ax.get_legend().get_texts()]
    assert key == ["in all 3 tasks", "in some; thicker, in more", "turned round by others"]


def test_an_arc_is_thicker_the_more_tasks_have_it():
    graphs = [nx.DiGraph([("a", "b")]) for _ in range(4)]
    for graph, extra in zip(graphs, ([("a", "c"), ("a", "d")], [("a", "d")], [("a", "d")], []), strict=True):
        graph.add_nodes_from("cd")
        graph.add_edges_from(extra)
    width = {(tail, head): width for tail, head, _, width in arcs(networks(graphs))}
    assert width["a", "c"] < width["a", "d"]


def test_a_task_that_lacks_a_variable_does_not_speak_against_its_arcs():
    ax = networks([nx.DiGraph([("a", "b"), ("b", "c")]), nx.DiGraph([("a", "b")])])
    assert {colour for _, _, colour, _ in arcs(ax)} == {to_hex(COMMON)}
    dashed = [patch.get_linestyle() != "solid" for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert dashed == [False, False, True]


@pytest.mark.parametrize("seed", range(3))
def test_every_arc_of_every_task_is_drawn_and_no_two_names_overlap_with_37_variables(seed):
    tasks = make_related_networks(make_random_network(37, random_state=seed), 5, kind="subgraphs", random_state=seed)
    ax = networks(tasks)
    wanted = {(tail, head) for task in tasks for tail, head in task.graph().edges}
    assert {(tail, head) for tail, head, _, _ in arcs(ax)} == wanted
    places = boxes(ax)
    assert len(places) == 37
    for (left, right, low, high), (left2, right2, low2, high2) in combinations(places.values(), 2):
        assert right < left2 or right2 < left or high < low2 or high2 < low


def test_arcs_lead_down_unless_the_tasks_contradict_each_other():
    places = boxes(networks(load_network("asia")))
    for tail, head in load_network("asia").graph().edges:
        assert places[tail][2] > places[head][3]


def test_names_fit_into_their_boxes():
    long = "a variable with a long name $x$ and $y$"
    ax = networks(nx.DiGraph([("short", long), ("short", "middling name")]))
    ax.figure.canvas.draw()
    for text in ax.texts:
        box = text.get_window_extent()
        for patch in ax.patches:
            outer = patch.get_window_extent()
            if isinstance(patch, FancyBboxPatch) and outer.contains(*box.get_points().mean(axis=0)):
                assert outer.x0 < box.x0
                assert box.x1 < outer.x1
                assert outer.y0 < box.y0
                assert box.y1 < outer.y1


def test_a_fitted_model_its_graphs_and_its_networks_give_the_same_picture_and_one_task_has_no_key():
    model = BayesNets(random_state=0).fit(
        sample_tasks(make_related_networks("asia", 2, random_state=0), 300, random_state=0)
    )
    drawn = arcs(networks(model, title="Two clinics"))
    assert arcs(networks(model.graphs_)) == drawn
    assert arcs(networks(list(model.networks_.values()))) == drawn
    ax = Figure().subplots()
    assert networks(model.networks_[0], ax=ax) is ax
    assert ax.get_legend() is None


def test_a_graph_without_arcs_and_one_of_a_single_variable_can_be_drawn():
    lonely = nx.DiGraph()
    lonely.add_nodes_from("ab")
    assert set(boxes(networks([lonely, lonely]))) == {"a", "b"}
    only = nx.DiGraph()
    only.add_node("x")
    assert set(boxes(networks(only))) == {"x"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "there are no graphs to draw"),
        (3, "a int was given; a fitted model, a graph, or graphs by task are needed"),
        (["a"], "a list was given"),
        (nx.DiGraph(), "the graphs have no variables"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(given, message):
    with pytest.raises(ValueError, match=message):
        networks(given)


def test_an_arc_that_passes_layers_keeps_off_the_boxes_between():
    layout = lay_out_in_layers([(0, 1), (1, 2), (2, 3), (0, 3)], np.ones(4), 0.3, 1.0)
    long = layout.routes[3]
    for passed in (1, 2):
        (at,) = long[long[:, 1] == layout.centre[passed, 1], 0]
        assert abs(at - layout.centre[passed, 0]) > 0.5


def test_arcs_that_need_not_cross_do_not():
    # Listed so that the order of the table crosses all three.
    layout = lay_out_in_layers([(0, 5), (1, 4), (2, 3)], np.full(6, 0.5), 0.3, 1.0)
    upper, lower = layout.centre[[0, 1, 2], 0], layout.centre[[5, 4, 3], 0]
    np.testing.assert_array_equal(np.argsort(upper), np.argsort(lower))
    assert style.INK == COMMON
