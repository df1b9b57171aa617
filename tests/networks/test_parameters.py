"""Tables by Bayesian updating against counting by hand and the marginal likelihood whose prior they update."""

from math import lgamma

import numpy as np
import pytest

from kinfolk.networks.model import parameters
from kinfolk.networks.model.parameters import learn_tables
from kinfolk.networks.model.scores import CRITERIA

CARDS = np.array([2, 3, 2])
PARENTS = [[], [0], [1, 0]]


def some_rows(n_rows=60, seed=0):
    return np.random.default_rng(seed).integers(0, CARDS, size=(n_rows, 3))


def counted(rows, weights=None):
    """Oracle: counts of every family, one row at a time."""
    counts = [np.zeros(tuple(CARDS[u] for u in (*its, v))) for v, its in enumerate(PARENTS)]
    for i, row in enumerate(rows):
        for v, its in enumerate(PARENTS):
            family = (*its, v)
            if all(row[u] >= 0 for u in family):
                counts[v][tuple(row[u] for u in family)] += 1 if weights is None else weights[i]
    return counts


@pytest.mark.parametrize(("score", "ess"), [("bdeu", 1.0), ("bdeu", 7.5), ("k2", 1.0), ("bic", 1.0)])
def test_tables_are_the_posterior_means_of_counts_made_row_by_row(score, ess):
    rows = some_rows()
    rows[np.random.default_rng(1).random(rows.shape) < 0.1] = -1
    weights = np.random.default_rng(2).random(len(rows))
    for v, (table, counts) in enumerate(
        zip(
            learn_tables(rows, PARENTS, CARDS, CRITERIA[score], ess=ess, weights=weights),
            counted(rows, weights),
            strict=True,
        )
    ):
        prior = 1.0 if score == "k2" else ess / counts.size
        expected = (counts + prior) / (counts + prior).sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(table, expected, rtol=1e-12, err_msg=f"variable {v}")


@pytest.mark.parametrize("score", ["bdeu", "k2"])
def test_a_tables_cell_is_the_probability_of_the_next_row(score):
    """p(next = k | u, rows) is the ratio of the marginal likelihoods with and without that row."""

    def log_marginal(counts):
        prior = 1.0 if score == "k2" else 1.0 / counts.size
        total = 0.0
        for n in counts.reshape(-1, counts.shape[-1]):
            total += lgamma(prior * len(n)) - lgamma(prior * len(n) + n.sum())
            total += sum(lgamma(prior + x) - lgamma(prior) for x in n)
        return total

    rows = some_rows(25)
    table = learn_tables(rows, PARENTS, CARDS, CRITERIA[score])[2]
    before = counted(rows)[2]
    for cell in np.ndindex(*before.shape):
        after = before.copy()
        after[cell] += 1
        assert table[cell] == pytest.approx(np.exp(log_marginal(after) - log_marginal(before)), rel=1e-9)


def test_a_configuration_never_seen_gives_the_uniform_distribution():
    rows = np.array([[0, 0, 0]] * 5)
    table = learn_tables(rows, PARENTS, CARDS)[1]
    np.testing.assert_allclose(table[1], 1 / 3)
    assert all((table > 0).all() for table in learn_tables(rows, PARENTS, CARDS, CRITERIA["bic"]))


def test_a_row_of_weight_two_counts_as_two_rows():
    rows = some_rows(10)
    weights = np.where(np.arange(10) < 4, 2.0, 1.0)
    for weighted, doubled in zip(
        learn_tables(rows, PARENTS, CARDS, weights=weights),
        learn_tables(np.concatenate([rows, rows[:4]]), PARENTS, CARDS),
        strict=True,
    ):
        np.testing.assert_allclose(weighted, doubled, rtol=1e-12)


def test_a_table_too_large_is_refused_by_the_variables_name(monkeypatch):
    n, rows = 60, np.zeros((4, 60), dtype=int)
    parents = [*[()] * (n - 1), tuple(range(n - 1))]
    with pytest.raises(ValueError, match=r"^variable 'x59': with its 59 parents its table would .* 16777216"):
        learn_tables(rows, parents, np.full(n, 3), variables=[f"x{v}" for v in range(n)])
    monkeypatch.setattr(parameters, "LARGEST_TABLE", 12)
    assert len(learn_tables(some_rows(), PARENTS, CARDS)) == 3
    monkeypatch.setattr(parameters, "LARGEST_TABLE", 11)
    with pytest.raises(ValueError, match=r"^variable 2: with its 2 parents"):
        learn_tables(some_rows(), PARENTS, CARDS)
