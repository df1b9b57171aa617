"""Related networks and their rows, against the paper's description and the published tables of asia."""

import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import kinfolk.datasets
from kinfolk.datasets import load_network, make_random_network, make_related_networks, sample_tasks
from kinfolk.datasets.related_networks import split_variables
from kinfolk.networks.answers.bif import write_bif
from kinfolk.networks.model.network import make_network


def from_file(name):
    from kinfolk.datasets.real import data_file

    try:
        return load_network(data_file("bayesnets", f"{name}.bif.gz"))
    except FileNotFoundError as absent:
        pytest.skip(f"the network {name} is not here: {absent}")


def same(a, b):
    return a[:3] == b[:3] and all(np.array_equal(s, t) for s, t in zip(a.tables, b.tables, strict=True))


@pytest.fixture(scope="module")
def large():
    return make_random_network(40, n_arcs=60, random_state=1)


# Lauritzen and Spiegelhalter (1988), table 1.
def test_asia_has_its_published_probabilities():
    asia = load_network("asia")
    place = {name: v for v, name in enumerate(asia.variables)}

    def p(child, **parents):
        at = [place[parent] for parent in parents]
        assert sorted(at) == list(asia.parents[place[child]])
        ordered = sorted(zip(at, parents.values(), strict=True))
        return asia.tables[place[child]][tuple("yn".index(state) for _, state in ordered)][0]

    assert p("asia") == 0.01
    assert p("smoke") == 0.5
    assert [p("tub", asia=a) for a in "yn"] == [0.05, 0.01]
    assert [p("lung", smoke=s) for s in "yn"] == [0.1, 0.01]
    assert [p("bronc", smoke=s) for s in "yn"] == [0.6, 0.3]
    assert [p("either", tub=t, lung=c) for t in "yn" for c in "yn"] == [1, 1, 1, 0]
    assert [p("xray", either=e) for e in "yn"] == [0.98, 0.05]
    assert [p("dysp", either=e, bronc=b) for e in "yn" for b in "yn"] == [0.9, 0.7, 0.8, 0.1]


def test_asia_equals_its_file():
    ours, theirs = load_network("asia"), from_file("asia")
    assert ours[:3] == theirs[:3]
    for a, b in zip(ours.tables, theirs.tables, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-15)


def test_a_network_is_loaded_by_name_by_path_or_as_it_is(tmp_path, monkeypatch, large):
    assert load_network(large) is large
    path = tmp_path / "bayesnets" / "mine.bif.gz"
    path.parent.mkdir()
    write_bif(large, path)
    assert same(load_network(path), large)
    assert same(load_network(str(path)), large)
    monkeypatch.setenv("KINFOLK_DATA", str(tmp_path))
    assert same(load_network("mine"), large)
    monkeypatch.chdir(path.parent)
    assert same(load_network("mine.bif.gz"), large)
    with pytest.raises(FileNotFoundError, match=r"other\.bif\.gz is not there: KINFOLK_DATA names the folder"):
        load_network("other")
    monkeypatch.delenv("KINFOLK_DATA")
    with pytest.raises(FileNotFoundError, match=r"KINFOLK_DATA is not set: .* holds bayesnets/alarm\.bif\.gz"):
        make_related_networks("alarm")


def test_the_new_names_are_exported():
    for name in ("load_network", "make_random_network", "make_related_networks", "sample_tasks"):
        assert name in kinfolk.datasets.__all__
        assert getattr(kinfolk.datasets, name) is globals()[name]


# --- random networks


@pytest.mark.parametrize(("n", "n_arcs", "max_parents"), [(1, 0, 3), (5, 9, 3), (12, 20, 2), (50, 49, 1), (60, 171, 3)])
def test_a_random_network_has_the_arcs_parents_and_states_asked_for(n, n_arcs, max_parents):
    network = make_random_network(n, n_arcs=n_arcs, max_parents=max_parents, n_states=(2, 5), random_state=n)
    assert len(network.variables) == n
    assert network.n_arcs == n_arcs
    assert max(map(len, network.parents)) <= max_parents
    assert 2 <= network.cards.min() <= network.cards.max() <= 5
    assert nx.is_directed_acyclic_graph(network.graph())


def test_the_order_of_a_random_networks_variables_tells_nothing_of_its_arcs():
    forwards = np.concatenate([np.argwhere(make_random_network(30, random_state=s).adjacency()) for s in range(20)])
    share = (forwards[:, 0] < forwards[:, 1]).mean()
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(len(forwards))


def test_strength_is_the_sharpness_of_a_random_networks_rows():
    # E Σp² of a symmetric Dirichlet with parameter α over r states is (α + 1)/(rα + 1). With two per cent of a uniform
    # distribution, Σ(0.98p + 0.02/r)² = 0.98² Σp² + (1 − 0.98²)/r.
    for strength in (0.5, 1.0, 4.0):
        network = make_random_network(300, n_states=3, strength=strength, random_state=0)
        rows = np.concatenate([table.reshape(-1, 3) for table in network.tables])
        expected = 0.98**2 * (1 / strength + 1) / (3 / strength + 1) + (1 - 0.98**2) / 3
        squares = (rows**2).sum(axis=1)
        assert abs(squares.mean() - expected) < 4 * squares.std() / np.sqrt(len(squares))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_variables": 0}, "n_variables is 0"),
        ({"n_variables": 2.5}, r"n_variables is 2\.5"),
        ({"n_variables": 4, "n_arcs": 7, "max_parents": 3}, "n_arcs is 7, but 4 variables .* have 6"),
        ({"n_variables": 4, "n_states": (3, 2)}, "the most of n_states is 2"),
        ({"n_variables": 4, "n_states": 0}, "the fewest of n_states is 0"),
        ({"n_variables": 4, "strength": 0}, "strength is 0"),
        ({"n_variables": 4, "max_parents": -1}, "max_parents is -1"),
    ],
)
def test_a_random_network_that_cannot_be_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_random_network(**arguments)


# --- tasks that lose arcs


@pytest.mark.parametrize("p_delete", [0.05, 0.3])
def test_each_arc_is_lost_with_the_probability_given(large, p_delete):
    tasks = make_related_networks(large, 200, p_delete=p_delete, parameters="independent", random_state=0)
    arcs = large.adjacency()
    kept = np.array([task.adjacency() for task in tasks])
    assert not kept[:, ~arcs].any()
    rates = 1 - kept[:, arcs].mean(axis=0)
    error = np.sqrt(p_delete * (1 - p_delete) / 200)
    assert abs(rates.mean() - p_delete) < 4 * error / np.sqrt(arcs.sum())
    # Arcs fall by themselves: the rates scatter as the means of independent draws do.
    assert 0.6 < (rates.std() / error) < 1.4
    assert 0.7 < kept[:, arcs].sum(axis=1).std() / np.sqrt(arcs.sum() * p_delete * (1 - p_delete)) < 1.3


def test_without_deletion_correlated_tasks_are_the_original(large):
    assert all(same(task, large) for task in make_related_networks(large, 3, p_delete=0, random_state=0))


def test_with_certain_deletion_no_arc_is_left(large):
    assert [task.n_arcs for task in make_related_networks(large, 3, p_delete=1, random_state=0)] == [0, 0, 0]


def test_a_correlated_task_keeps_the_table_of_every_family_that_lost_no_parent(large):
    n_lost = 0
    for task in make_related_networks(large, 5, p_delete=0.2, random_state=0):
        for v in range(len(large.variables)):
            if task.parents[v] == large.parents[v]:
                assert np.array_equal(task.tables[v], large.tables[v])
            else:
                n_lost += 1
                assert set(task.parents[v]) < set(large.parents[v])
                assert task.tables[v].shape == tuple(large.cards[[*task.parents[v], v]])
    assert n_lost > 10


def test_a_lost_parent_is_averaged_out_with_its_own_probability():
    """By hand: the weights of the two states of b are 0.3 and 0.7, whatever a is; of both lost, a's times b's."""
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 2))
    a, b = np.array([0.6, 0.4]), np.array([0.3, 0.7])
    network = make_network(["a", "b", "c"], [["0", "1"]] * 2 + [["0", "1", "2"]], [[], [], [0, 1]], [a, b, table])
    expected = {
        (0,): np.einsum("b,abc->ac", b, table),
        (1,): np.einsum("a,abc->bc", a, table),
        (): np.einsum("a,b,abc->c", a, b, table),
    }
    seen = set()
    for task in make_related_networks(network, 30, p_delete=0.5, random_state=0):
        if task.parents[2] != (0, 1):
            seen.add(task.parents[2])
            # Four standard errors of a share of 20,000 rows.
            np.testing.assert_allclose(task.tables[2], expected[task.parents[2]], atol=4 * 0.5 / np.sqrt(20_000))
            np.testing.assert_allclose(task.tables[2].sum(axis=-1), 1, atol=1e-14)
    assert seen == set(expected)


def test_tasks_that_lost_the_same_parents_share_the_table(large):
    tasks = make_related_networks(large, 2, p_delete=1, random_state=0)
    assert same(*tasks)


def test_independent_tasks_have_the_structures_of_correlated_ones_and_none_of_their_tables(large):
    correlated = make_related_networks(large, 4, p_delete=0.2, random_state=3)
    independent = make_related_networks(large, 4, p_delete=0.2, parameters="independent", random_state=3)
    assert [task.parents for task in correlated] == [task.parents for task in independent]
    for ours, theirs in zip(correlated, independent, strict=True):
        assert not any(np.array_equal(a, b) for a, b in zip(ours.tables, theirs.tables, strict=True))
        make_network(*theirs)  # checks the shapes and the rows of all tables


def test_the_parameters_of_independent_tasks_are_not_correlated(large):
    tasks = [large, *make_related_networks(large, 4, p_delete=0, parameters="independent", random_state=0)]
    first_state = [np.concatenate([t[..., 0].ravel() - 1 / t.shape[-1] for t in task.tables]) for task in tasks]
    correlation = np.corrcoef(first_state)[np.triu_indices(5, 1)]
    assert abs(correlation).max() < 4 / np.sqrt(len(first_state[0]))


def test_independent_tables_are_as_sharp_as_the_original(large):
    tasks = make_related_networks(large, 200, p_delete=0, parameters="independent", random_state=0)
    squares = np.array([[(table**2).sum(axis=-1).mean() for table in task.tables] for task in tasks])
    original = np.array([(table**2).sum(axis=-1).mean() for table in large.tables])
    # Beyond this, a table is sharper than any that is drawn: α is 0.05 at the least.
    sharpest = 0.98**2 * 1.05 / (0.05 * large.cards + 1) + (1 - 0.98**2) / large.cards
    drawn = original < sharpest
    assert drawn.sum() > 30
    off, error = squares.mean(axis=0) - original, squares.std(axis=0) / np.sqrt(200)
    assert abs(off / error)[drawn].max() < 4
    assert abs(off[drawn].mean()) < 4 * np.sqrt((error[drawn] ** 2).mean() / drawn.sum())


def test_certainties_and_fair_coins_can_be_drawn_for_too():
    tables = [np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones((2, 1))]
    states = [["0", "1"], ["0", "1"], ["only"]]
    network = make_network(["fair", "sure", "constant"], states, [[], [0], [1]], tables)
    for task in make_related_networks(network, 20, p_delete=0.3, parameters="independent", random_state=0):
        assert all(np.isfinite(table).all() and (table >= 0).all() for table in task.tables)
        assert (task.tables[2] == 1).all()
        assert min(table.min() for table in task.tables) >= 0.01


# --- tasks that change subgraphs


@pytest.mark.parametrize("seed", range(3))
def test_four_parts_of_connected_variables_are_about_the_same_size(seed):
    network = make_random_network(40, n_arcs=60, random_state=seed)
    parts = split_variables(network)
    assert sorted(v for part in parts for v in part) == list(range(40))
    assert len(parts) == 4
    assert min(map(len, parts)) >= 4
    whole = nx.from_numpy_array(network.adjacency() | network.adjacency().T)
    if nx.is_connected(whole):
        assert all(nx.is_connected(whole.subgraph(part)) for part in parts)


def chain(n, n_isolated=0):
    """Each variable has the one before it as its parent, but for some at the end that have no arcs."""
    parents = [[v - 1] if 0 < v < n else [] for v in range(n + n_isolated)]
    tables = [np.array([[0.9, 0.1], [0.2, 0.8]]) if its else np.array([0.7, 0.3]) for its in parents]
    return make_network([f"v{v}" for v in range(n + n_isolated)], [["0", "1"]] * len(parents), parents, tables)


def test_a_chain_is_split_into_runs():
    assert all(part == tuple(range(part[0], part[0] + len(part))) for part in split_variables(chain(20)))


def test_variables_without_arcs_are_not_parts_of_their_own():
    parts = split_variables(chain(20, n_isolated=4))
    assert sorted(v for part in parts for v in part) == list(range(24))
    assert min(len([v for v in part if v < 20]) for part in parts) >= 4
    empty = make_random_network(8, n_arcs=0, random_state=0)
    assert sorted(map(len, split_variables(empty))) == [2, 2, 2, 2]


def test_a_network_too_small_to_split_is_refused():
    with pytest.raises(ValueError, match="the network has 7 variables, but a split into 4 parts needs 8"):
        make_related_networks(make_random_network(7, random_state=0), kind="subgraphs")


def changed_parts(original, task, parts):
    """Parts with another arc or another table; the rest is asserted to be as it was."""
    part_of = np.empty(len(original.variables), dtype=int)
    for number, part in enumerate(parts):
        part_of[list(part)] = number
    across = part_of[:, None] != part_of
    before, after = original.adjacency(), task.adjacency()
    assert np.array_equal(before & across, after & across)
    changed = set()
    for number, part in enumerate(parts):
        inside = np.ix_(part, part)
        tables = [np.array_equal(original.tables[v], task.tables[v]) for v in part]
        if not np.array_equal(before[inside], after[inside]):
            changed.add(number)
            assert not any(tables)
        else:
            assert all(tables)
    return changed


def test_a_task_changes_none_one_or_two_subgraphs_and_nothing_else(large):
    tasks = make_related_networks(large, 150, kind="subgraphs", random_state=0)
    parts = split_variables(large)
    changed = [changed_parts(large, task, parts) for task in tasks]
    counts = np.bincount([len(numbers) for numbers in changed])
    assert len(counts) == 3
    assert (abs(counts - 50) < 4 * np.sqrt(150 * 2 / 9)).all()
    often = np.bincount([number for numbers in changed for number in numbers], minlength=4)
    assert often.min() > 15
    for task in tasks:
        assert nx.is_directed_acyclic_graph(task.graph())
        assert max(map(len, task.parents)) <= max(map(len, large.parents))
        assert max(t.size for t in task.tables) <= max(t.size for t in large.tables)
        assert abs(task.n_arcs - large.n_arcs) <= 2
        make_network(*task)  # checks the shapes and the rows of all tables


def test_a_changed_subgraph_never_keeps_its_arcs_where_there_are_others():
    """In a part of three variables of a chain, one draw of arcs in three would be the original."""
    network = chain(12)
    parts = split_variables(network)
    assert [len(part) for part in parts] == [3, 3, 3, 3]
    tasks = make_related_networks(network, 60, kind="subgraphs", random_state=0)
    assert sum(len(changed_parts(network, task, parts)) for task in tasks) > 30


def test_changed_subgraphs_of_two_tasks_are_unrelated(large):
    tasks = make_related_networks(large, 60, kind="subgraphs", random_state=1)
    part = list(split_variables(large)[0])
    versions = {task.adjacency()[np.ix_(part, part)].tobytes() for task in tasks}
    altered = [not np.array_equal(task.tables[part[0]], large.tables[part[0]]) for task in tasks]
    assert len(versions) == 1 + sum(altered)


def test_subgraphs_with_independent_parameters_draw_all_tables_anew(large):
    tasks = make_related_networks(large, 3, kind="subgraphs", parameters="independent", random_state=0)
    again = make_related_networks(large, 3, kind="subgraphs", random_state=0)
    assert [task.parents for task in tasks] == [task.parents for task in again]
    assert not any(np.array_equal(t, o) for task in tasks for t, o in zip(task.tables, large.tables, strict=True))


@pytest.mark.parametrize("name", ["alarm", "insurance"])
def test_the_papers_networks_are_perturbed_as_it_says(name):
    network = from_file(name)
    parts = split_variables(network)
    assert min(map(len, parts)) >= 5
    tasks = make_related_networks(network, 5, kind="subgraphs", random_state=0)
    assert all(len(changed_parts(network, task, parts)) <= 2 for task in tasks)
    deleted = make_related_networks(network, 5, p_delete=0.1, random_state=0)
    assert 0 < sum(network.n_arcs - task.n_arcs for task in deleted) < 50


# --- seeds and errors


@pytest.mark.parametrize("kind", ["delete", "subgraphs"])
@pytest.mark.parametrize("parameters", ["correlated", "independent"])
def test_the_same_seed_gives_the_same_tasks_and_more_tasks_change_none(large, kind, parameters):
    def make(n_tasks, seed):
        return make_related_networks(large, n_tasks, p_delete=0.2, kind=kind, parameters=parameters, random_state=seed)

    first = make(4, 5)
    assert all(map(same, first, make(4, 5)))
    assert all(map(same, first[:2], make(2, 5)))
    assert not all(map(same, first, make(4, 6)))
    assert all(map(same, make(2, np.random.RandomState(7)), make(2, 7)))


def test_results_do_not_hang_on_the_hash_seed():
    program = (
        "from kinfolk.datasets import make_related_networks as m, sample_tasks as s;"
        "print([t.parents for k in ('delete', 'subgraphs') for t in m('asia', 3, kind=k, p_delete=.3, random_state=0)],"
        "s(m('asia', 2, random_state=1), 5, form='long', random_state=0).rows())"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_tasks": 0}, "n_tasks is 0"),
        ({"p_delete": 1.5}, r"p_delete is 1\.5, but must be a number from 0 to 1"),
        ({"parameters": "shared"}, "parameters is 'shared'"),
        ({"kind": "add"}, "kind is 'add'"),
    ],
)
def test_what_cannot_be_made_is_refused_by_name(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_related_networks("asia", **arguments)


# --- rows


def test_rows_come_as_a_frame_for_each_task_or_as_one(large):
    networks = make_related_networks(large, 3, random_state=0)
    tables = sample_tasks(networks, [5, 0, 7], random_state=0)
    assert list(tables) == [0, 1, 2]
    assert [table.shape for table in tables.values()] == [(5, 40), (0, 40), (7, 40)]
    for variable, states in zip(large.variables, large.states, strict=True):
        assert tables[0][variable].dtype == pl.Enum(states)
    together = sample_tasks(networks, [5, 0, 7], form="long", random_state=0)
    assert together.columns == ["task", *large.variables]
    assert together["task"].to_list() == [0] * 5 + [2] * 7
    assert together.drop("task").equals(pl.concat(tables.values()))


def test_pandas_frames_hold_the_same_rows(large):
    named = {"ann": large, "bob": large}
    ours = sample_tasks(named, 20, form="long", random_state=0)
    theirs = sample_tasks(named, 20, form="long", frame="pandas", random_state=0)
    assert isinstance(theirs, pd.DataFrame)
    assert theirs["task"].tolist() == ["ann"] * 20 + ["bob"] * 20 == ours["task"].to_list()
    for variable, states in zip(large.variables, large.states, strict=True):
        assert theirs[variable].cat.categories.tolist() == list(states)
        assert theirs[variable].tolist() == ours[variable].to_list()


def test_rows_follow_their_network():
    asia = load_network("asia")
    table = sample_tasks([asia], 50_000, random_state=0)[0]
    smokers = table.filter(pl.col("smoke") == "yes")
    assert abs((smokers["bronc"] == "yes").mean() - 0.6) < 4 * 0.5 / np.sqrt(len(smokers))
    assert ((table["tub"] == "yes") | (table["lung"] == "yes")).equals(table["either"] == "yes")


def test_states_that_are_not_text_keep_their_type():
    network = make_network(["n", "mixed"], [[1, 2], [1, "one"]], [[], []], [np.array([0.5, 0.5])] * 2)
    table = sample_tasks([network], 50, random_state=0)[0]
    assert set(table["n"]) == {1, 2}
    assert set(table["mixed"]) == {"1", "one"}
    assert set(sample_tasks([network], 50, frame="pandas", random_state=0)[0]["mixed"]) == {1, "one"}


def test_a_tasks_rows_hang_on_the_seed_and_not_on_later_tasks(large):
    three = sample_tasks([large] * 3, 10, random_state=0)
    assert three[1].equals(sample_tasks([large] * 2, 10, random_state=0)[1])
    assert not three[0].equals(three[1])
    assert not three[0].equals(sample_tasks([large], 10, random_state=1)[0])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_rows": [1, 2]}, "n_rows gives 2 numbers, but there are 1 tasks"),
        ({"n_rows": -1}, "n_rows is -1"),
        ({"form": "wide"}, "form is 'wide'"),
        ({"frame": "pyarrow"}, "frame is 'pyarrow'"),
        ({"networks": []}, "needs the network of at least one task"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused_by_name(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        sample_tasks(**{"networks": [load_network("asia")], **arguments})


def test_one_frame_needs_the_same_variables_and_no_variable_called_task(large):
    with pytest.raises(ValueError, match="task 'b' has other variables or states"):
        sample_tasks({"a": load_network("asia"), "b": large}, 5, form="long")
    task = make_network(["task"], [["0", "1"]], [[]], [np.array([0.5, 0.5])])
    with pytest.raises(ValueError, match='a variable is called "task"'):
        sample_tasks([task], 5, form="long")
    assert sample_tasks([task], 5)[0].columns == ["task"]
