"""The hierarchical Dirichlet score, against the exact sum over tables, quadrature, and its formula in scipy."""

from itertools import combinations
from math import inf, log

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp, psi

import kinfolk
from kinfolk import BayesNets
from kinfolk.networks.model.data import lay_out
from kinfolk.networks.model.families import family_gains, room_to_count
from kinfolk.networks.model.scores import CRITERIA
from tests.networks.oracle import as_frame, as_matrix, log_family, random_dag, random_rows

STRENGTHS = (inf, 128.0, 32.0, 8.0, 2.0)


def pooled(n, a):
    """Log marginal of the rows of all tasks as one sample."""
    total = n.sum(axis=0)
    return gammaln(len(total) * a) - gammaln(len(total) * a + total.sum()) + (gammaln(a + total) - gammaln(a)).sum()


def stirling(n):
    """Logs of the unsigned Stirling numbers of the first kind, by their recurrence."""
    row = np.array([0.0])
    for i in range(n):
        row = np.logaddexp(np.append(-inf, row), np.append(row, -inf) + (log(i) if i else -inf))
    return row


def convolved(one, other):
    out = np.full(len(one) + len(other) - 1, -inf)
    for i, value in enumerate(one):
        out[i : i + len(other)] = np.logaddexp(out[i : i + len(other)], value + other)
    return out


def exact(n, s, a):
    """Log marginal of counts (task, value): Γ(sα + n) / Γ(sα) is a polynomial in α, so that the integral is a sum."""
    rows, r = n.sum(axis=1), n.shape[1]
    both = np.array([0.0])
    for k in range(r):
        of_value = np.array([0.0])
        for count in n[:, k].astype(int):
            of_value = convolved(of_value, stirling(count))
        tables = np.arange(len(of_value))
        both = convolved(both, of_value + tables * log(s) + gammaln(a + tables) - gammaln(a))
    tables = np.arange(len(both))
    normal = gammaln(r * a) - gammaln(r * a + tables)
    return (gammaln(s) - gammaln(s + rows)).sum() + logsumexp(both + normal)


def bound(n, a):
    """The lower bound of every finite s, from the highest to the lowest, each in two rounds."""
    n = n.astype(float)
    r, total = n.shape[1], n.sum(axis=0)
    seen = total > 0
    share = ((a + total) / (r * a + total.sum()))[seen]
    own, out = n[:, seen], []

    def tables_at(s, share):
        return (s * share * (psi(s * share + own) - psi(s * share))).sum(axis=0)

    for s in STRENGTHS[1:]:
        tables = tables_at(s, share)
        share = np.exp(psi(a + tables) - psi(r * a + tables.sum()))
        tables = tables_at(s, share)
        fit = (gammaln(s * share + own) - gammaln(s * share)).sum() - (tables * np.log(share)).sum()
        fit += (gammaln(s) - gammaln(s + n.sum(axis=1))).sum() + (gammaln(a + tables) - gammaln(a)).sum()
        out.append(fit + gammaln(r * a) - gammaln(r * a + tables.sum()))
    return np.array(out)


def tables_of(codes, cards, part, n_parts, child, parents, weights=None):
    """Counts (task, value) of every configuration of the parents that any row has."""
    found = {}
    weights = np.ones(len(codes)) if weights is None else weights
    for row, f, weight in zip(codes.tolist(), part.tolist(), weights, strict=True):
        own = found.setdefault(tuple(row[p] for p in parents), np.zeros((n_parts, cards[child])))
        own[f, row[child]] += weight
    return list(found.values())


def by_hand(codes, cards, part, n_parts, child, parents, ess=1.0, weights=None):
    a = ess / np.prod(cards[[*parents, child]])
    tables = tables_of(codes, cards, part, n_parts, child, parents, weights)
    levels = np.append(sum(pooled(n, a) for n in tables), sum(bound(n, a) for n in tables))
    return logsumexp(levels) - log(len(levels))


def scored(codes, cards, part, child, parents, ess=1.0, weights=None):
    cases = lay_out([codes], cards, None, None if weights is None else [weights], None, [part])
    rule = CRITERIA["bhd"].make(ess, cases.total_weight, cases.n_parts)
    candidates = np.array([v != child and v not in parents for v in range(len(cards))])
    gains = np.empty(len(cards))
    where = np.array(parents, dtype=np.int64)
    return family_gains(cases, rule, 0, child, where, candidates, room_to_count(cases), gains), gains


@pytest.mark.parametrize("s", [0.5, 8.0, 100.0])
def test_the_sum_over_tables_is_the_integral_over_what_tasks_have_in_common(s):
    rng = np.random.default_rng(1)
    for a in (0.3, 1.0, 2.5):
        n = rng.integers(0, 7, (3, 2))

        def density(x, n=n, a=a):
            alpha = s * np.array([x, 1 - x])
            value = (gammaln(alpha + n) - gammaln(alpha)).sum() + (gammaln(s) - gammaln(s + n.sum(axis=1))).sum()
            return np.exp(value) * (x * (1 - x)) ** (a - 1) * np.exp(gammaln(2 * a) - 2 * gammaln(a))

        assert exact(n, s, a) == pytest.approx(log(quad(density, 0, 1, epsabs=0, epsrel=1e-10)[0]), abs=1e-7)


@pytest.mark.parametrize("r", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.5, 5.0, 500.0])
def test_the_bound_is_below_the_exact_score_and_within_half_a_nat_for_each_free_probability(r, spread):
    rng = np.random.default_rng(int(spread))
    for a in (0.02, 1 / r):
        common = rng.dirichlet(np.ones(r))
        n = np.array([rng.multinomial(25, rng.dirichlet(spread * common + 1e-6)) for _ in range(4)])
        for s, found in zip(STRENGTHS[1:], bound(n, a), strict=True):
            missing = exact(n, s, a) - found
            assert -1e-9 < missing < 0.5 * (r - 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_and_gains_are_the_formula_for_any_number_of_parents(weighted):
    rng = np.random.default_rng(3)
    cards, n_parts = np.array([3, 2, 4, 2, 40]), 4
    codes = rng.integers(0, cards, (150, 5))
    part = np.sort(rng.integers(0, n_parts, 150)).astype(np.int32)
    part[-1] = n_parts - 1
    weights = rng.gamma(1.0, 1.0, 150) if weighted else None
    for n_parents in range(5):
        for parents in combinations(range(1, 5), n_parents):
            here, gains = scored(codes, cards, part, 0, parents, 2.0, weights)
            assert here == pytest.approx(by_hand(codes, cards, part, n_parts, 0, parents, 2.0, weights), abs=1e-8)
            for v in range(1, 5):
                other = tuple(sorted(set(parents) ^ {v}))
                wanted = by_hand(codes, cards, part, n_parts, 0, other, 2.0, weights) - here
                assert gains[v] == pytest.approx(wanted, abs=1e-8)


def test_a_value_that_no_row_has_and_a_task_without_rows_of_a_configuration_change_nothing_but_the_prior():
    cards = np.array([4, 2])
    codes = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [1, 0]])
    part = np.array([0, 0, 1, 1, 1], dtype=np.int32)
    for parents in [(), (1,)]:
        assert scored(codes, cards, part, 0, parents)[0] == pytest.approx(
            by_hand(codes, cards, part, 2, 0, parents), abs=1e-10
        )


def test_the_score_is_never_behind_bdeu_of_pooled_rows_by_more_than_the_choice_of_five():
    rng = np.random.default_rng(5)
    cards = np.array([3, 2, 2])
    codes = rng.integers(0, cards, (600, 3))
    part = np.repeat(np.arange(3, dtype=np.int32), 200)
    for parents in [(), (1,), (1, 2)]:
        alone = log_family(codes, cards, 0, parents)
        found = scored(codes, cards, part, 0, parents)[0]
        assert alone - log(5) <= found + 1e-9
        # Rows that are alike leave little to gain by letting tasks differ.
        assert found < alone


def related(seed, n, n_tasks=3, n_rows=80):
    rng = np.random.default_rng(seed)
    structure, cards = random_dag(rng, n, 0.5), rng.integers(2, 4, n)
    return [random_rows(np.random.default_rng([seed, t]), structure, cards, n_rows) for t in range(n_tasks)], cards


def test_names_and_order_of_tasks_and_columns_change_nothing():
    tables, cards = related(0, 4)
    frames = [as_frame(codes, cards) for codes in tables]
    one = BayesNets(sharing="identical", criterion="bhd").fit(dict(enumerate(frames)))
    other = BayesNets(sharing="identical", criterion="bhd").fit({2 - t: f[list("dbca")] for t, f in enumerate(frames)})
    assert set(one.graphs_[0].edges) == set(other.graphs_[0].edges)
    assert one.log_score_ == pytest.approx(other.log_score_, abs=1e-9)


def test_em_the_bootstrap_and_saving_work_with_it(tmp_path):
    tables, cards = related(1, 4)
    frames = {t: as_frame(codes, cards) for t, codes in enumerate(tables)}
    model = BayesNets(sharing="identical", criterion="bhd", bootstrap=3, random_state=0).fit(frames)
    assert model.arc_confidence_["confidence"].between(0, 1).all()
    kinfolk.save(model, tmp_path / "nets.kin")
    again = kinfolk.load(tmp_path / "nets.kin", estimator=True)
    assert again.criterion == "bhd"
    frames[0].loc[3, "a"] = None
    gaps = BayesNets(sharing="identical", criterion="bhd", missing="em", random_state=0).fit(frames)
    assert len({frozenset(graph.edges) for graph in gaps.graphs_.values()}) == 1


@pytest.mark.parametrize("sharing", ["joint", "none", "pooled"])
def test_other_ways_to_share_refuse_it(sharing):
    tables, cards = related(2, 4)
    with pytest.raises(ValueError, match=f"needs sharing='identical', not '{sharing}'"):
        BayesNets(sharing=sharing, criterion="bhd").fit({t: as_frame(codes, cards) for t, codes in enumerate(tables)})


def test_tasks_that_lack_a_variable_and_starts_that_differ_are_refused_by_name():
    tables, cards = related(2, 4)
    frames = {t: as_frame(codes, cards) for t, codes in enumerate(tables)}
    model = BayesNets(sharing="identical", criterion="bhd")
    with pytest.raises(ValueError, match="start= differs between tasks"):
        BayesNets(sharing="identical", criterion="bhd", start={0: [("a", "b")]}).fit(frames)
    with pytest.raises(ValueError, match="task 1 has no variable 'b'"):
        model.fit(frames | {1: frames[1].drop(columns="b")})
    with pytest.raises(ValueError, match="search"):
        BayesNets(sharing="identical", criterion="bhd", search="classes").fit(frames)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_scores_no_less_than_what_bdeu_finds_of_pooled_rows(seed):
    n = 8
    tables, cards = related(10 + seed, n, n_tasks=4, n_rows=150)
    rows, part = np.concatenate(tables), np.repeat(np.arange(4, dtype=np.int32), 150)
    frames = {t: as_frame(codes, cards) for t, codes in enumerate(tables)}
    pooled_rows = as_matrix(BayesNets(sharing="pooled", random_state=0).fit(frames).graphs_[0], n)
    known = sum(by_hand(rows, cards, part, 4, v, tuple(np.flatnonzero(pooled_rows[:, v]).tolist())) for v in range(n))
    model = BayesNets(sharing="identical", criterion="bhd", random_state=0).fit(frames)
    assert model.log_score_ >= known + pooled_rows.sum() * log((1 / n) / (1 - 1 / n)) - 1e-7
