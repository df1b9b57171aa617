"""Tables as they are: columns that never vary, an order of time, columns in any order, graphs to start from."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk import BayesMultinet, BayesNets
from kinfolk.datasets import load_network, make_related_networks, sample_tasks
from kinfolk.networks.model.distances import shd
from tests.networks.oracle import Rules, Scorer, Task, as_frame, as_matrix, is_acyclic, random_dag, random_rows

NETWORKS = make_related_networks("asia", 2, p_delete=0.1, random_state=0)
TABLES = sample_tasks(NETWORKS, 300, frame="pandas", random_state=0)


def arcs(model):
    return {task: set(graph.edges) for task, graph in model.graphs_.items()}


@pytest.mark.parametrize("search", ["auto", "classes", "climb"])
@pytest.mark.parametrize("declared", [False, True])
def test_columns_that_never_vary_become_variables_without_arcs_and_change_nothing_else(search, declared):
    same = pd.Categorical(["x"] * 300, ["x", "y", "z"]) if declared else "x"
    wider = {task: table.assign(Same=same, other=same) for task, table in TABLES.items()}
    with pytest.warns(UserWarning, match="columns 'Same', 'other' hold the same value in every row") as told:
        model = BayesNets(search=search, random_state=0).fit(wider)
    assert len(told) == 1
    without = BayesNets(search=search, random_state=0).fit(TABLES)
    for task, graph in without.graphs_.items():
        assert not set(dict(model.graphs_[task].in_degree(["Same", "other"])).values()) - {0}
        assert shd(model.graphs_[task].subgraph(graph.nodes), graph) == 0
        assert model.graphs_[task].number_of_edges() == graph.number_of_edges()
    assert model.strength_ == pytest.approx(without.strength_)
    assert set(model.graphs_[0].nodes) == {*without.graphs_[0].nodes, "Same", "other"}
    assert model.query("Same", task=0).marginal("Same")["x"] > 0.99
    assert np.isfinite(model.score(wider))


def test_one_such_column_is_told_of_by_its_name_and_a_required_arc_of_it_stays():
    one = TABLES[0].assign(same=1)
    with pytest.warns(UserWarning, match="^column 'same' holds the same value in every row: it becomes a variable"):
        model = BayesNets(required=[("same", "xray")], random_state=0).fit(one)
    assert [arc for arc in model.graphs_[0].edges if "same" in arc] == [("same", "xray")]


def test_a_column_that_varies_in_some_tasks_alone_is_not_told_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesNets(random_state=0).fit({0: TABLES[0].assign(asia="no"), 1: TABLES[1]})
        BayesMultinet().fit(TABLES[0].drop(columns="dysp").assign(same="x"), TABLES[0]["dysp"])
    assert set(model.graphs_[0].nodes) == set(TABLES[0].columns)


@pytest.mark.parametrize("options", [{}, {"tabu": 0}, {"sharing": "none"}, {"sharing": "identical", "restarts": 2}])
def test_no_arc_leads_to_an_earlier_tier(options):
    tiers = [["dysp", "xray"], ["either"]]
    model = BayesNets(tiers=tiers, random_state=0, **options).fit(TABLES)
    for edges in arcs(model).values():
        assert not edges & {("either", "dysp"), ("either", "xray")}
    assert any(("xray", "either") in edges for edges in arcs(model).values())
    forbidden = [("either", "dysp"), ("either", "xray")]
    same = BayesNets(forbidden=forbidden, random_state=0, **options).fit(TABLES)
    assert arcs(same) == arcs(model)


def test_with_tiers_a_plain_climb_takes_the_best_of_the_changes_that_are_left():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        cards = np.array([2, 3, 2, 2])
        codes = random_rows(rng, random_dag(rng, 4, 0.7), cards, 120)
        when = np.array([1, 0, 1, 2])
        arcs_allowed = ~np.eye(4, dtype=bool) & (when[:, None] <= when[None, :])
        rules = Rules(arcs_allowed, np.zeros((4, 4), dtype=bool), 4, np.full((4, 4), -np.log(3)))
        tiers = [["b"], ["a", "c"], ["d"]]
        model = BayesNets(tiers=tiers, tabu=0).fit(as_frame(codes, cards))
        scorer = Scorer([Task(codes, tuple(range(4)))], cards, rules)
        found = as_matrix(model.graphs_[0], 4)
        assert any((found == end[0]).all() for end in scorer.ends(np.zeros((1, 4, 4), dtype=bool)))
        assert is_acyclic(found)


def test_tiers_are_saved_and_known_to_the_classifier(tmp_path):
    tiers = [["xray"], ["lung"]]
    kinfolk.save(BayesNets(tiers=tiers, random_state=0).fit(TABLES), tmp_path / "nets.kin")
    assert kinfolk.load(tmp_path / "nets.kin", estimator=True).tiers == tiers
    model = BayesMultinet(tiers=tiers).fit(TABLES[0].drop(columns="dysp"), TABLES[0]["dysp"])
    assert not any(graph.has_edge("lung", "xray") for graph in model.graphs_.values())


def with_gaps(table):
    return table.astype(object).mask(np.random.default_rng(0).random(table.shape) < 0.04)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sharing": "none", "restarts": 3},
        {"sharing": "identical"},
        {"prior": "paired", "penalty": 0.8},
        {"search": "classes", "tables": "shared"},
        {"structure_prior": "learn", "bootstrap": 2},
        {"missing": "em"},
        {"structure_prior": {("smoke", "lung"): 0.9}, "forbidden": [("xray", "dysp")]},
    ],
)
def test_where_named_columns_stand_changes_no_answer(options):
    tables = {task: with_gaps(table) for task, table in TABLES.items()} if "missing" in options else TABLES
    first = BayesNets(random_state=0, **options).fit(tables)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(TABLES[0].columns)
        turned = {task: table[list(order)] for task, table in tables.items()}
        model = BayesNets(random_state=0, **options).fit(turned)
        assert arcs(model) == arcs(first)
        assert model.log_score_ == pytest.approx(first.log_score_, abs=1e-9)
        assert list(model.networks_[0].variables) == list(order)
        both = zip(model.score_samples(turned).values(), first.score_samples(tables).values(), strict=True)
        for mine, theirs in both:
            np.testing.assert_allclose(mine, theirs, atol=1e-9)
        if "bootstrap" in options:
            mine, theirs = (
                {row[:3]: row[3:] for row in one.arc_confidence_.itertuples(index=False, name=None)}
                for one in (model, first)
            )
            assert mine == theirs


@pytest.mark.parametrize("options", [{"tabu": 0}, {}, {"search": "classes"}, {"search": "climb", "restarts": 2}])
def test_a_search_goes_on_from_the_graph_that_it_is_given_wherever_columns_stand(options):
    truth = load_network("asia")
    table = sample_tasks([truth], 500, frame="pandas", random_state=1)[0]
    turned = table[table.columns[::-1]]
    for start in (truth.graph(), list(truth.graph().edges), nx.DiGraph([("xray", "lung")])):
        one, other = (BayesNets(start=start, random_state=0, **options).fit(rows) for rows in (table, turned))
        assert arcs(one) == arcs(other)
        plain = BayesNets(random_state=0, **options).fit(table)
        assert one.log_score_ >= plain.log_score_ - 40


def test_a_network_in_another_order_gives_rows_the_same_probability():
    network = load_network("asia")
    order = np.random.default_rng(0).permutation(len(network.variables))
    turned = network.reordered([network.variables[v] for v in order])
    rows = network.sample(50, np.random.default_rng(1))
    np.testing.assert_allclose(turned.log_probability(rows[:, order]), network.log_probability(rows))
    assert set(turned.graph().edges) == set(network.graph().edges)
    assert all(list(parents) == sorted(parents) for parents in turned.parents)
