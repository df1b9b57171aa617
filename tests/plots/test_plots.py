"""The Hinton diagram and the tree: what is drawn must be what is true."""

import subprocess
import sys
from itertools import pairwise
from time import process_time
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.cluster.hierarchy import linkage as average_linkage
from scipy.spatial.distance import squareform

mpl.use("Agg")
import matplotlib.pyplot as plt

import kinfolk.plots
from kinfolk import ClusteredNB, LICAClassifier
from kinfolk.plots import cluster_evolution, hinton, style, tree

# The partition that Roy (2006), table 4.1, reports for its 21 users.
GROUPS_OF_21 = [0, 0, 0, 1, 0, 0, 1, 0, 2, 3, 2, 4, 5, 3, 3, 6, 4, 7, 8, 4, 3]


def similarity_for(groups, seed=0):
    rng = np.random.default_rng(seed)
    same = np.equal.outer(groups, groups)
    upper = np.triu(np.where(same, rng.uniform(0.6, 1.0, same.shape), rng.uniform(0.0, 0.3, same.shape)), 1)
    return upper + upper.T + np.eye(len(groups))


def linkage_for(groups, seed=0):
    rng = np.random.default_rng(seed)
    same = np.equal.outer(groups, groups)
    upper = np.triu(np.where(same, rng.uniform(0, 0.5, same.shape), rng.uniform(5, 4000, same.shape)), 1)
    return average_linkage(squareform(upper + upper.T), "average")


def squares(ax):
    """Centre, side and colour of every square drawn."""
    (drawn,) = (artist for artist in ax.collections if isinstance(artist, PolyCollection))
    paths = drawn.get_paths()
    colours = [to_hex(colour) for colour in drawn.get_facecolor()]
    for path, colour in zip(paths, colours * (len(paths) // len(colours)), strict=True):
        low, high = path.vertices.min(axis=0), path.vertices.max(axis=0)
        width, height = high - low
        assert width == pytest.approx(height)
        yield (low + high) / 2, width, colour


def branches(ax):
    (drawn,) = (artist for artist in ax.collections if isinstance(artist, LineCollection))
    return list(zip(drawn.get_segments(), [to_hex(colour) for colour in drawn.get_color()], strict=True))


def names_below(ax):
    return [tick.get_text() for tick in ax.get_xticklabels()]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


class TestHinton:
    def test_the_area_of_a_square_is_proportional_to_the_probability(self):
        table = similarity_for(GROUPS_OF_21)
        order = np.random.default_rng(1).permutation(21)
        ax = hinton(table, order=order)
        found = np.zeros((21, 21))
        for (across, down), side, _ in squares(ax):
            found[order[round(down)], order[round(across)]] = side**2
        np.testing.assert_allclose(found / found[0, 0], np.where(table > 1e-4, table, 0.0), rtol=1e-9)
        assert found.max() <= 1, "squares must not overlap"

    def test_the_first_row_is_at_the_top(self):
        ax = hinton(similarity_for([0, 0, 1]))
        top, bottom = ax.transData.transform([(0, 0), (0, 2)])[:, 1]
        assert top > bottom

    @pytest.mark.parametrize("seed", range(5))
    def test_kin_stand_together_even_when_no_groups_are_given(self, seed):
        groups = np.random.default_rng(seed).permutation(GROUPS_OF_21)
        ax = hinton(similarity_for(groups, seed), labels=groups)
        along = names_below(ax)
        assert [tick.get_text() for tick in ax.get_yticklabels()] == along
        changes = sum(here != there for here, there in pairwise(along))
        assert changes == 9 - 1

    def test_given_groups_stand_together_even_against_the_probabilities(self):
        rng = np.random.default_rng(2)
        ax = hinton(similarity_for(rng.permutation(GROUPS_OF_21)), labels=GROUPS_OF_21, groups=GROUPS_OF_21)
        along = names_below(ax)
        assert sum(here != there for here, there in pairwise(along)) == 9 - 1

    def test_boxes_surround_exactly_the_groups_of_two_or_more(self):
        ax = hinton(similarity_for(GROUPS_OF_21), labels=GROUPS_OF_21, groups=GROUPS_OF_21)
        along = names_below(ax)
        boxed = []
        for box in (patch for patch in ax.patches if isinstance(patch, Rectangle)):
            start, end = box.get_x() + 0.5, box.get_x() + box.get_width() + 0.5
            assert (box.get_x(), box.get_width()) == (box.get_y(), box.get_height())
            inside = along[round(start) : round(end)]
            assert len(set(inside)) == 1
            boxed.append(len(inside))
        assert sorted(boxed) == [2, 2, 3, 4, 6]

    def test_squares_of_one_group_share_a_colour_that_no_other_square_has(self):
        ax = hinton(similarity_for(GROUPS_OF_21), labels=GROUPS_OF_21, groups=GROUPS_OF_21)
        along = names_below(ax)
        colours_of = {}
        for (across, down), _, colour in squares(ax):
            group = along[round(across)]
            inside = group == along[round(down)] and along.count(group) > 1
            colours_of.setdefault(group if inside else "none", set()).add(colour)
        assert all(len(colours) == 1 for colours in colours_of.values())
        assert len(set.union(*colours_of.values())) == 5 + 1

    @pytest.mark.parametrize(("n_tasks", "expected"), [(1, 1), (2, 2), (60, 60), (61, 31), (200, 50)])
    def test_every_task_is_named_up_to_sixty_and_every_few_beyond(self, n_tasks, expected):
        ax = hinton(similarity_for(list(range(n_tasks))))
        assert len(names_below(ax)) == len(ax.get_yticklabels()) == expected

    def test_a_frame_names_the_tasks(self):
        frame = pd.DataFrame([[1.0, 0.2], [0.2, 1.0]], columns=["Ann", "Bob"])
        assert names_below(hinton(frame)) == ["Ann", "Bob"]

    def test_a_fitted_model_gives_probabilities_names_and_groups(self):
        groups = np.array([0, 1, 0, 1])
        model = SimpleNamespace(similarity_=similarity_for(groups), tasks_=np.array(list("abcd")), partition_=groups)
        ax = hinton(model)
        assert names_below(ax) in (
            ["a", "c", "b", "d"],
            ["a", "c", "d", "b"],
            ["c", "a", "b", "d"],
            ["c", "a", "d", "b"],
        )
        assert len(ax.patches) == 2
        assert set(names_below(hinton(model, labels="wxyz"))) == set("wxyz")

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ({"similarity": np.ones((2, 3))}, r"similarity has shape \(2, 3\);"),
            ({"similarity": np.ones((0, 0))}, r"similarity has shape \(0, 0\);"),
            ({"similarity": [[1, -0.5], [-0.5, 1]]}, r"similarity holds -0\.5 in row 0, column 1;"),
            ({"similarity": [[1, np.nan], [np.nan, 1]]}, "similarity holds nan in row 0, column 1;"),
            ({"similarity": [[1, 0.5], [0.4, 1]]}, r"similarity holds 0\.5 in row 0, column 1, but 0\.4 the"),
            ({"similarity": np.eye(2), "labels": "abc"}, "labels names 3 tasks, but there are 2"),
            ({"similarity": np.eye(2), "groups": [0]}, "groups gives a group to 1 tasks, but there are 2"),
            ({"similarity": np.eye(2), "order": [0, 0]}, r"order must hold each position from 0 to 1 once;"),
        ],
    )
    def test_bad_input_is_refused_in_one_sentence(self, arguments, sentence):
        with pytest.raises(ValueError, match=sentence):
            hinton(**arguments)


def shades(ax):
    """The image of a diagram of many tasks, as amounts of ink from 0 to 1."""
    (image,) = ax.images
    return 1.0 - np.asarray(image.get_array(), dtype=float) / 255.0


class TestHintonOfManyTasks:
    def test_a_thousand_tasks_are_drawn_and_saved_within_seconds(self, tmp_path):
        groups = np.random.default_rng(0).integers(0, 40, 1000)
        start = process_time()
        ax = hinton(similarity_for(groups), groups=groups)
        ax.figure.savefig(tmp_path / "picture.png")
        assert process_time() - start < 5  # an image takes 2, squares take 7
        assert not any(isinstance(artist, PolyCollection) for artist in ax.collections)

    def test_a_point_is_the_darker_the_more_probable_it_is(self):
        table = similarity_for([*range(100), *range(101)])
        places = np.random.default_rng(1).permutation(201)
        shown = shades(hinton(table, order=places)).sum(axis=2)
        np.testing.assert_allclose(shown / shown[0, 0], table[np.ix_(places, places)], atol=0.01)
        assert hinton(table).get_xlabel().startswith("shade")
        assert hinton(table[:200, :200]).get_xlabel().startswith("area")

    def test_pairs_of_one_group_have_its_colour_and_all_others_are_grey(self):
        groups = np.repeat([0, 1, 2], 80)
        ax = hinton(np.ones((240, 240)), groups=groups, order=range(240))
        found = [to_hex(1.0 - shades(ax)[i, j]) for i, j in ((0, 79), (100, 90), (239, 200), (0, 239))]
        assert found == [*(colour.lower() for colour in style.PALETTE[:3]), style.ALONE.lower()]
        assert len(ax.patches) == 3


class TestModelsThatCannotBeDrawn:
    @pytest.mark.parametrize("draw", [hinton, tree, cluster_evolution])
    def test_a_model_that_is_not_fitted_is_told_so(self, draw):
        with pytest.raises(ValueError, match=r"^this ClusteredNB is not fitted yet: call fit before it is drawn$"):
            draw(ClusteredNB())

    def test_a_model_without_a_tree_is_told_which_has_one(self):
        model = ClusteredNB(inference="exact").fit([["a"], ["b"], ["a"]], [0, 1, 0], task=[0, 1, 2])
        with pytest.raises(ValueError, match=r"tree_ comes with inference=.bhc.; .*'exact'; ClusteredNB with"):
            tree(model)
        alone = LICAClassifier(n_sources=1).fit(np.eye(8), np.arange(8) % 2, task=np.arange(8) // 4)
        with pytest.raises(ValueError, match=r"^LICAClassifier has no tree_; ClusteredNB with"):
            tree(alone)
        with pytest.raises(ValueError, match=r"^LICAClassifier has no similarity_; a model that clusters"):
            hinton(alone)
        for one in (alone, model):
            with pytest.raises(ValueError, match=r"draw partitions$"):
                cluster_evolution(one)


class TestTree:
    def test_every_merge_is_drawn_at_its_height_over_the_middle_of_its_parts(self):
        merges = linkage_for(GROUPS_OF_21)
        ax = tree(merges)
        drawn = [segment for segment, _ in branches(ax)]
        np.testing.assert_allclose(sorted(s[1, 1] for s in drawn), merges[:, 2])
        tops = {(round((s[1, 0] + s[2, 0]) / 2, 6), round(s[1, 1], 6)) for s in drawn}
        leaf_tips = ax.get_ylim()[0]
        for segment in drawn:
            for across, foot in (segment[0], segment[3]):
                if foot == leaf_tips:
                    assert across == int(across)
                else:
                    assert (round(across, 6), round(foot, 6)) in tops

    def test_every_task_is_named_once_and_no_branches_cross(self):
        merges = linkage_for(GROUPS_OF_21)
        names = [f"user {number}" for number in range(1, 22)]
        along = names_below(tree(merges, names))
        assert sorted(along) == sorted(names)
        members = [[name] for name in names]
        for left, right in merges[:, :2].astype(int):
            members.append(members[left] + members[right])
            places = sorted(along.index(name) for name in members[-1])
            assert places == list(range(places[0], places[0] + len(places)))

    def test_branches_inside_a_cluster_have_its_colour_and_all_others_are_grey(self):
        merges = linkage_for(GROUPS_OF_21)
        ax = tree(merges, GROUPS_OF_21, partition=GROUPS_OF_21)
        along = names_below(ax)
        height_of_clusters = 0.5  # the highest merge inside a cluster, by construction
        colours_of = {}
        for segment, colour in branches(ax):
            left, right = segment[0, 0], segment[2, 0]
            if segment[1, 1] > height_of_clusters:
                assert colour == style.APART.lower()
            else:
                under = set(along[int(np.ceil(left)) : int(right) + 1])
                assert len(under) == 1
                colours_of.setdefault(under.pop(), set()).add(colour)
        for tick in ax.get_xticklabels():
            if tick.get_text() in colours_of:
                colours_of[tick.get_text()].add(to_hex(tick.get_color()))
        assert len(colours_of) == 5
        assert all(len(colours) == 1 for colours in colours_of.values())
        assert len(set.union(*colours_of.values())) == 5

    def test_a_cluster_that_the_tree_does_not_hold_together_is_coloured_where_it_is_whole(self):
        merges = [[0, 1, 0.1, 2], [2, 3, 0.2, 2], [4, 5, 9.0, 4]]
        drawn = {segment[1, 1]: colour for segment, colour in branches(tree(merges, partition=[0, 0, 0, 1]))}
        assert drawn == {
            0.1: style.PALETTE[0].lower(),
            0.2: style.APART.lower(),
            9.0: style.APART.lower(),
        }

    def test_a_cluster_has_the_same_colour_in_both_pictures(self):
        box_of = {}
        ax = hinton(similarity_for(GROUPS_OF_21), labels=GROUPS_OF_21, groups=GROUPS_OF_21)
        for box in ax.patches:
            box_of[names_below(ax)[round(box.get_x() + 0.5)]] = to_hex(box.get_edgecolor())
        ax = tree(linkage_for(GROUPS_OF_21), GROUPS_OF_21, partition=GROUPS_OF_21)
        for tick in ax.get_xticklabels():
            assert to_hex(tick.get_color()) == box_of.get(tick.get_text(), style.ALONE.lower())

    def test_thousands_of_nats_leave_a_merge_at_one_nat_visible(self):
        ax = tree([[0, 1, 0.0, 2], [2, 4, 1.0, 3], [3, 5, 5000.0, 4]])
        places = ax.transAxes.inverted().transform(ax.transData.transform([(0, 0), (0, 1), (0, 5000)]))[:, 1]
        assert places[0] > 0.03, "a merge at height 0 needs a stem below it"
        assert places[1] - places[0] > 0.05
        assert 0.9 < places[2] < 1

    def test_a_tree_of_strongly_related_tasks_looks_flat(self):
        ax = tree([[0, 1, 0.001, 2], [2, 3, 0.002, 3]])
        place = ax.transAxes.inverted().transform(ax.transData.transform((0, 0.002)))[1]
        assert place < 0.1

    def test_equal_trees_look_equal_whichever_side_a_merge_was_written(self):
        merges = linkage_for(GROUPS_OF_21)
        turned = merges.copy()
        turned[::2, :2] = turned[::2, 1::-1]
        assert names_below(tree(merges)) == names_below(tree(turned))

    def test_one_task_is_a_single_leaf_with_a_sentence(self):
        ax = tree(np.empty((0, 4)), ["Ann"], partition=[0], title="alone")
        assert names_below(ax) == ["Ann"]
        assert len(ax.lines) == 1
        assert [text.get_text() for text in ax.texts] == ["One task: there is nothing to merge."]

    @pytest.mark.parametrize(("n_tasks", "expected"), [(2, 2), (60, 60), (200, 50)])
    def test_every_task_is_named_up_to_sixty_and_every_few_beyond(self, n_tasks, expected):
        assert len(names_below(tree(linkage_for(list(range(n_tasks)))))) == expected

    def test_a_chain_of_three_thousand_tasks_is_drawn(self):
        n = 3000
        chain = [[0, 1, 0.0, 2]] + [[k + 1, n + k - 1, float(k), k + 2] for k in range(1, n - 1)]
        assert len(branches(tree(chain))) == n - 1

    def test_a_fitted_model_gives_merges_names_and_clusters(self):
        merges = [[0, 2, 0.1, 2], [1, 3, 40.0, 3]]
        model = SimpleNamespace(
            tree_=SimpleNamespace(linkage=lambda: np.array(merges)),
            tasks_=np.array(["Ann", "Bob", "Cat"]),
            partition_=np.array([0, 1, 0]),
        )
        ax = tree(model)
        assert names_below(ax) == ["Ann", "Cat", "Bob"]
        assert {colour for _, colour in branches(ax)} == {style.PALETTE[0].lower(), style.APART.lower()}

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ({"linkage": np.ones((2, 3))}, r"linkage has shape \(2, 3\);"),
            ({"linkage": [[0, 1, -1.0, 2]]}, r"Merge 0 of linkage has height -1\.0;"),
            ({"linkage": [[0, 1, np.inf, 2]]}, "Merge 0 of linkage has height inf;"),
            ({"linkage": [[0, 1, 0.0, 2], [0, 3, 1.0, 3]]}, "linkage does not describe a tree:"),
            ({"linkage": [[0, 1, 2.0, 2], [2, 3, 1.0, 3]]}, "Merge 1 of linkage has height 1, lower than"),
            ({"linkage": [[0, 1, 0.0, 2]], "labels": "a"}, "labels names 1 tasks, but there are 2"),
            ({"linkage": [[0, 1, 0.0, 2]], "partition": [1]}, "partition gives a group to 1 tasks, but there"),
        ],
    )
    def test_bad_input_is_refused_in_one_sentence(self, arguments, sentence):
        with pytest.raises(ValueError, match=sentence):
            tree(**arguments)


DRAWINGS = {
    "hinton": lambda **options: hinton(similarity_for(GROUPS_OF_21), groups=GROUPS_OF_21, **options),
    "tree": lambda **options: tree(linkage_for(GROUPS_OF_21), partition=GROUPS_OF_21, **options),
}


@pytest.mark.parametrize("name", DRAWINGS)
class TestBoth:
    def test_given_axes_are_used_and_pyplot_is_left_alone(self, name):
        ax = Figure().add_subplot()
        assert DRAWINGS[name](ax=ax, title="kin") is ax
        assert ax.get_title() == "kin"
        assert plt.get_fignums() == []

    def test_without_axes_a_figure_is_made_that_saves_at_once(self, name, tmp_path):
        DRAWINGS[name]().figure.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 1000

    def test_a_name_with_dollar_signs_is_text_and_not_a_formula(self, name, tmp_path):
        ax = DRAWINGS[name](labels=[rf"$\bad_{number}$" for number in range(21)])
        ax.figure.savefig(tmp_path / "picture.png")

    def test_no_name_runs_into_the_next(self, name):
        for labels in (None, [f"a rather long name {number}" for number in range(21)]):
            ax = DRAWINGS[name](labels=labels)
            ax.figure.canvas.draw()
            boxes = [tick.get_window_extent() for tick in ax.get_xticklabels()]
            assert all(here.x1 < there.x0 for here, there in pairwise(boxes))


def test_the_package_imports_matplotlib_only_when_a_picture_is_asked_for():
    code = (
        "import sys; import kinfolk.plots; [getattr(kinfolk.plots, name) for name in dir(kinfolk.plots)]; "
        "from kinfolk.plots import hinton; "
        "print([m for m in ('matplotlib', 'networkx', 'numba', 'pandas', 'scipy', 'sklearn') if m in sys.modules]); "
        "from matplotlib.figure import Figure; hinton([[1.0]], ax=Figure().subplots()); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["[]", "False"]


def test_an_unknown_picture_is_an_attribute_error():
    assert set(dir(kinfolk.plots)) == set(kinfolk.plots.__all__) >= {"cluster_evolution", "hinton", "traces", "tree"}
    with pytest.raises(AttributeError, match="has no attribute 'pie'"):
        _ = kinfolk.plots.pie
