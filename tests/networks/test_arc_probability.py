"""One probability for all arcs, given or learnt, against enumeration of all structures of four variables."""

from itertools import combinations, product
from math import log

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk import BayesNets
from kinfolk.networks.inference import structures
from tests.networks.oracle import (
    Rules,
    Scorer,
    Task,
    as_frame,
    as_matrix,
    is_acyclic,
    no_rules,
    random_dag,
    random_rows,
)

N = 4
PAIRS = list(combinations(range(N), 2))


def all_structures():
    """All 543 directed acyclic graphs of four variables."""
    out = []
    for states in product(range(3), repeat=len(PAIRS)):
        adjacency = np.zeros((N, N), dtype=bool)
        for (i, j), state in zip(PAIRS, states, strict=True):
            adjacency[i, j], adjacency[j, i] = state == 1, state == 2
        if is_acyclic(adjacency):
            out.append(adjacency)
    return out


STRUCTURES = all_structures()


def problem(seed, n_rows=60):
    rng = np.random.default_rng(seed)
    cards = np.array([2, 3, 2, 2])
    return random_rows(rng, random_dag(rng, N, 0.6), cards, n_rows, 0.5), cards


def scorer(codes, cards, p):
    everything = no_rules(N)
    arcs = np.full((N, N), log(p / (1 - p)))
    return Scorer([Task(codes, tuple(range(N)))], cards, Rules(*everything[:3], arcs))


def found(model):
    return as_matrix(next(iter(model.graphs_.values())), N)


def test_there_are_as_many_structures_as_is_known():
    assert len(STRUCTURES) == 543


@pytest.mark.parametrize("search", ["classes", "climb"])
@pytest.mark.parametrize("p", [0.02, 0.2, 0.7])
def test_the_best_of_all_structures_is_found_and_its_posterior_told(search, p):
    for seed in range(4):
        codes, cards = problem(seed)
        by_hand = scorer(codes, cards, p)
        best = max(by_hand.total(structure[None]) for structure in STRUCTURES)
        model = BayesNets(structure_prior=p, search=search, restarts=10, random_state=0)
        model.fit(as_frame(codes, cards))
        assert model.log_score_ == pytest.approx(best, abs=1e-7)
        assert by_hand.total(found(model)[None]) == pytest.approx(best, abs=1e-7)
        assert model.arc_probability_ == pytest.approx(p)


@pytest.mark.parametrize("sharing", ["none", "joint", "identical", "pooled"])
def test_by_default_every_arc_has_the_probability_of_one_in_as_many_as_there_are_variables(sharing):
    frames = {t: as_frame(*problem(30 + t, 50)) for t in range(2)}
    default = BayesNets(sharing=sharing, random_state=0).fit(frames)
    named = BayesNets(sharing=sharing, structure_prior=1 / N, random_state=0).fit(frames)
    assert default.arc_probability_ == pytest.approx(1 / N)
    assert default.log_score_ == named.log_score_
    uniform = [
        BayesNets(sharing=sharing, structure_prior=p, random_state=0).fit(frames) for p in (None, "uniform", 0.5)
    ]
    assert len({model.log_score_ for model in uniform}) == 1
    assert uniform[0].arc_probability_ == 0.5


def test_of_all_543_structures_the_most_probable_by_default_is_found():
    for seed in range(6):
        codes, cards = problem(40 + seed, 80)
        by_hand = scorer(codes, cards, 1 / N)
        model = BayesNets(random_state=0).fit(as_frame(codes, cards))
        best = max(by_hand.total(structure[None]) for structure in STRUCTURES)
        assert model.log_score_ == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("by_arc", [False, True])
def test_a_search_over_classes_alone_ends_where_no_member_of_the_class_can_be_bettered(by_arc):
    from kinfolk.networks.inference.classes import search_class
    from kinfolk.networks.model.data import lay_out
    from kinfolk.networks.model.equivalence import same_class
    from kinfolk.networks.model.family_scores import make_problem
    from kinfolk.networks.model.network import Constraints
    from kinfolk.networks.model.scores import CRITERIA

    for seed in range(6):
        codes, cards = problem(seed, 40)
        arcs = np.full((N, N), log(0.1 / 0.9))
        if by_arc:
            arcs = np.random.default_rng(seed).normal(-1.0, 3.0, (N, N))
            arcs += arcs.T
        by_hand = Scorer([Task(codes, tuple(range(N)))], cards, Rules(*no_rules(N)[:3], arcs))
        prepared = make_problem(lay_out([codes], cards), CRITERIA["bdeu"], 1.0, Constraints(*no_rules(N)[:3]))
        end = search_class(prepared, 0, None, arcs if by_arc else log(0.1 / 0.9))
        assert end.score == pytest.approx(by_hand.total(end.adjacency[None]), abs=1e-7)
        for member in STRUCTURES:
            if same_class(member, end.adjacency):
                assert all(gain <= 1e-7 for gain, _ in by_hand.neighbours(member[None]))


@pytest.mark.parametrize("prior", ["edit", "paired"])
def test_a_number_is_the_same_probability_for_every_arc_in_joint_and_identical_search_too(prior):
    frames = {t: as_frame(*problem(20 + t, 50)) for t in range(3)}
    names = list(frames[0].columns)
    by_arc = {(a, b): 0.1 for a in names for b in names if a != b}
    for options in ({"penalty": 0.7}, {"penalty": "learn"}, {"sharing": "identical"}, {"sharing": "pooled"}):
        common = {"prior": prior, "search": "climb", "random_state": 0, **options}
        one = BayesNets(structure_prior=0.1, **common).fit(frames)
        other = BayesNets(structure_prior=by_arc, **common).fit(frames)
        assert one.log_score_ == pytest.approx(other.log_score_)
        assert [set(g.edges) for g in one.graphs_.values()] == [set(g.edges) for g in other.graphs_.values()]


def test_a_learnt_probability_is_the_mode_given_the_structures_which_it_finds_again():
    for seed in range(4):
        codes, cards = problem(seed, 150)
        model = BayesNets(structure_prior="learn", restarts=5, random_state=0).fit(as_frame(codes, cards))
        p, m = model.arc_probability_, found(model).sum()
        grid = np.linspace(1e-4, 0.9, 200_000)
        odds = grid / (1 - grid)
        # One pair more with an arc, one more without.
        wanted = grid[np.argmax((m + 1) * np.log(2 * odds) - (len(PAIRS) + 2) * np.log1p(2 * odds))]
        assert p == pytest.approx(wanted, abs=1e-4)
        again = BayesNets(structure_prior=p, restarts=5, random_state=0).fit(as_frame(codes, cards))
        assert set(map(tuple, np.argwhere(found(again)))) == set(map(tuple, np.argwhere(found(model))))


def test_sparse_truths_are_learnt_with_fewer_superfluous_arcs():
    rng = np.random.default_rng(0)
    frame = as_frame(rng.integers(0, 3, (60, 8)), np.full(8, 3))
    uniform = BayesNets(ess=5.0, structure_prior="uniform").fit(frame)
    learnt = BayesNets(ess=5.0, structure_prior="learn").fit(frame)
    assert learnt.graphs_[0].number_of_edges() < uniform.graphs_[0].number_of_edges()
    assert learnt.arc_probability_ < 0.1


def test_turns_that_end_before_the_probability_settles_are_told(monkeypatch):
    monkeypatch.setattr(structures, "_MOST_TURNS", 1)
    codes, cards = problem(0, 150)
    with pytest.warns(ConvergenceWarning, match="the odds of an arc were still changing after 1 turns"):
        BayesNets(structure_prior="learn", random_state=0).fit(as_frame(codes, cards))


def test_what_was_learnt_is_kept_by_resamples_files_and_completions(tmp_path):
    codes, cards = problem(1, 80)
    frame = as_frame(codes, cards)
    model = BayesNets(structure_prior="learn", bootstrap=3, random_state=0).fit(frame)
    kinfolk.save(model, tmp_path / "nets.kin")
    loaded = kinfolk.load(tmp_path / "nets.kin", estimator=True)
    assert loaded.arc_probability_ == model.arc_probability_
    assert loaded.structure_prior == "learn"
    number = BayesNets(structure_prior=0.25).fit(frame)
    kinfolk.save(number, tmp_path / "nets.kin")
    assert kinfolk.load(tmp_path / "nets.kin", estimator=True).structure_prior == 0.25
    gaps = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05)
    assert 0 < BayesNets(structure_prior="learn", missing="em", random_state=0).fit(gaps).arc_probability_ < 1


@pytest.mark.parametrize("sharing", ["none", "joint", "identical", "pooled"])
def test_structural_em_and_resamples_believe_what_is_believed_of_arcs(sharing):
    # 60 rows of two or three states are worth 66 nats at most: less than the first belief takes for an arc, while the
    # second gives more for one than any table can cost.
    believed = {1e-60: 0, 1 - 1e-15: len(PAIRS)}
    whole = {t: as_frame(*problem(50 + t, 60)) for t in range(2)}
    gaps = {t: table.mask(np.random.default_rng(t).random(table.shape) < 0.02) for t, table in whole.items()}
    assert all(table.isna().to_numpy().any() for table in gaps.values())
    for p, n_arcs in believed.items():
        common = {"sharing": sharing, "structure_prior": p, "ess": 10.0, "random_state": 0}
        em = BayesNets(missing="em", **common).fit(gaps)
        assert [graph.number_of_edges() for graph in em.graphs_.values()] == [n_arcs] * 2
        resampled = BayesNets(bootstrap=3, **common).fit(whole).arc_confidence_
        assert resampled["confidence"].sum() == pytest.approx(2 * n_arcs)


@pytest.mark.parametrize("wrong", [0, 1, -0.1, 7, True, "dense", float("nan")])
def test_what_is_no_probability_is_named(wrong):
    with pytest.raises(ValueError, match=f"structure_prior={wrong!r}: a probability between 0 and 1"):
        BayesNets(structure_prior=wrong).fit(as_frame(*problem(0)))
