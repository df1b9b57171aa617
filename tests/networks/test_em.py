"""Structural EM, against complete rows, rows left out, and expected counts by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from kinfolk import BayesNets
from kinfolk.datasets import make_related_networks, sample_tasks
from kinfolk.networks.model.distances import shd


def with_gaps(table, share, rng):
    return table.astype(object).mask(rng.random(table.shape) < share)


@pytest.fixture(scope="module")
def asia():
    networks = make_related_networks("asia", 3, p_delete=0.1, random_state=2)
    return sample_tasks(networks, 300, frame="pandas", random_state=2)


def test_cells_missing_at_random_cost_little_and_less_than_leaving_their_rows_out():
    wrong = {"complete": 0, "em": 0, "left out": 0}
    for seed in range(6):
        networks = make_related_networks("asia", 4, p_delete=0.1, random_state=seed)
        complete = sample_tasks(networks, 400, frame="pandas", random_state=seed)
        rng = np.random.default_rng(seed)
        gappy = {name: with_gaps(table, 0.1, rng) for name, table in complete.items()}
        fits = {
            "complete": BayesNets(random_state=0).fit(complete),
            "em": BayesNets(random_state=0, missing="em").fit(gappy),
            "left out": BayesNets(random_state=0).fit({name: table.dropna() for name, table in gappy.items()}),
        }
        for way, model in fits.items():
            wrong[way] += sum(shd(model.graphs_[t], network) for t, network in enumerate(networks))
    assert wrong["em"] < 1.25 * wrong["complete"]
    assert wrong["em"] < 0.85 * wrong["left out"]


@pytest.mark.parametrize("sharing", ["joint", "none", "identical", "pooled"])
def test_without_missing_cells_em_is_the_plain_fit(asia, sharing):
    plain = BayesNets(sharing=sharing, random_state=0).fit(asia)
    em = BayesNets(sharing=sharing, missing="em", random_state=0).fit(asia)
    assert em.log_score_ == plain.log_score_
    for name, network in plain.networks_.items():
        assert em.networks_[name].parents == network.parents
        assert all((a == b).all() for a, b in zip(em.networks_[name].tables, network.tables, strict=True))


def test_rounds_that_end_before_the_networks_settle_are_told(asia, monkeypatch):
    gappy = {name: with_gaps(table, 0.1, np.random.default_rng(0)) for name, table in asia.items()}
    monkeypatch.setattr("kinfolk.networks.inference.em.MOST_ROUNDS", 1)
    with pytest.warns(ConvergenceWarning, match="still changing the networks after 1 rounds"):
        BayesNets(missing="em", penalty=1.0, random_state=0).fit(gappy)


def by_hand(rows, n_rounds, ess=1.0):
    """Parametric EM of a → b, both of two states, from tables of the values that are there."""
    known = [r[0] for r in rows if r[0] is not None]
    a = (np.bincount(known, minlength=2) + ess / 2) / (len(known) + ess)
    pairs = np.zeros((2, 2))
    for x, y in rows:
        if x is not None and y is not None:
            pairs[x, y] += 1
    b = (pairs + ess / 4) / (pairs.sum(axis=1, keepdims=True) + ess / 2)
    for _ in range(n_rounds):
        counts = np.zeros((2, 2))
        for x, y in rows:
            joint = a[:, None] * b
            if x is not None:
                joint[1 - x] = 0
            if y is not None:
                joint[:, 1 - y] = 0
            counts += joint / joint.sum()
        a = (counts.sum(axis=1) + ess / 2) / (counts.sum() + ess)
        b = (counts + ess / 4) / (counts.sum(axis=1, keepdims=True) + ess / 2)
    return a, b


def test_expected_counts_of_few_missing_cells_are_exact():
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(80):
        x = int(rng.random() < 0.4)
        y = int(rng.random() < (0.9 if x else 0.2))
        gap = rng.random()
        rows.append((None if gap < 0.15 else x, None if 0.1 < gap < 0.25 else y))
    table = pd.DataFrame(
        {name: [None if row[v] is None else ["no", "yes"][row[v]] for row in rows] for v, name in enumerate("ab")}
    )
    model = BayesNets(missing="em", required=[("a", "b")]).fit(table)
    a, b = by_hand(rows, model.n_iter_)
    assert model.networks_[0].tables[0] == pytest.approx(a, abs=1e-10)
    assert model.networks_[0].tables[1] == pytest.approx(b, abs=1e-10)


def test_em_repeats_exactly_with_the_same_seed_and_any_number_of_threads(asia):
    rng = np.random.default_rng(5)
    gappy = {name: with_gaps(table, 0.4, rng) for name, table in asia.items()}
    first, second, threads = (
        BayesNets(missing="em", random_state=1, n_jobs=n_jobs).fit(gappy) for n_jobs in (None, None, 2)
    )
    assert first.log_score_ == second.log_score_ == threads.log_score_
    for name, network in first.networks_.items():
        for again in (second, threads):
            assert again.networks_[name].parents == network.parents
            assert all((a == b).all() for a, b in zip(again.networks_[name].tables, network.tables, strict=True))


def test_required_and_forbidden_arcs_and_starts_hold_with_missing_cells(asia):
    rng = np.random.default_rng(6)
    gappy = {name: with_gaps(table, 0.1, rng) for name, table in asia.items()}
    free = BayesNets(missing="em").fit(gappy).graphs_[0]
    banned = next(iter(free.edges))
    model = BayesNets(missing="em", required=[("xray", "asia")], forbidden=[banned], max_parents=1).fit(gappy)
    for graph in model.graphs_.values():
        assert graph.has_edge("xray", "asia")
        assert not graph.has_edge(*banned)
        assert max(degree for _, degree in graph.in_degree) == 1


def test_tasks_that_lack_a_variable_are_not_taken_as_missing_it(asia):
    partly = {0: asia[0].drop(columns="xray"), 1: asia[1], 2: asia[2]}
    plain = BayesNets(random_state=0).fit(partly)
    em = BayesNets(missing="em", random_state=0).fit(partly)
    assert em.log_score_ == plain.log_score_
    rng = np.random.default_rng(7)
    gappy = {name: with_gaps(table, 0.05, rng) for name, table in partly.items()}
    model = BayesNets(missing="em", random_state=0).fit(gappy)
    assert "xray" not in model.graphs_[0]
    assert np.isfinite(model.score(gappy))


def test_one_missing_cell_in_many_rows_changes_nothing_but_that_cell(asia):
    table = asia[0].astype(object)
    plain = BayesNets(random_state=0).fit(table)
    table.loc[5, "dysp"] = None
    model = BayesNets(missing="em", random_state=0).fit(table)
    assert set(model.graphs_[0].edges) == set(plain.graphs_[0].edges)
    for ours, theirs in zip(model.networks_[0].tables, plain.networks_[0].tables, strict=True):
        assert ours == pytest.approx(theirs, abs=0.05)
    assert model.log_score_ == pytest.approx(plain.log_score_, abs=2)


@pytest.mark.parametrize("tables", ["independent", "shared"])
def test_tables_learnt_by_em_are_distributions(asia, tables):
    rng = np.random.default_rng(8)
    gappy = {name: with_gaps(table, 0.2, rng) for name, table in asia.items()}
    model = BayesNets(missing="em", tables=tables, random_state=0).fit(gappy)
    for network in model.networks_.values():
        for table in network.tables:
            assert (table > 0).all()
            assert table.sum(axis=-1) == pytest.approx(np.ones(table.shape[:-1]))
