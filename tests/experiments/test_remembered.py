"""The quick BDeu that searches of other packages are given, against one by counting and causal-learn's own."""

from math import log

import numpy as np
import pytest

from kinfolk.experiments.networks.peers import PEERS, is_installed, learn_within
from kinfolk.experiments.networks.remembered import ForCausalLearn, RememberedBDeu
from tests.networks.oracle import log_family, random_dag, random_rows

FAMILIES = [(0, ()), (0, (1,)), (3, (0, 2)), (2, (4, 1, 0)), (4, (3, 2, 1, 0))]


def rows(n_rows=80):
    rng = np.random.default_rng(0)
    cards = np.array([2, 3, 4, 2, 3])
    return random_rows(rng, random_dag(rng, 5), cards, n_rows), cards


def test_families_are_scored_as_by_counting_and_asked_for_in_any_order():
    codes, cards = rows()
    cards = cards + 1  # states that no row has
    score = RememberedBDeu(codes, cards, arc=-1.5, no_arc=-0.2)
    for child, parents in FAMILIES:
        by_hand = log_family(codes, cards, child, parents) - 1.5 * len(parents) - 0.2 * (4 - len(parents))
        assert score.family(child, parents) == pytest.approx(by_hand, abs=1e-9)
        assert score.family(child, list(parents)[::-1]) == score.family(child, parents)


def test_for_causal_learn_an_arc_has_the_probability_of_one_in_as_many_as_there_are_others():
    codes, _ = rows()
    codes[:, 1] *= 7  # states are those that rows have, whatever their numbers
    score = ForCausalLearn(codes.astype(float))
    cards = np.array([len(np.unique(column)) for column in codes.T])
    for child, parents in FAMILIES:
        believed = len(parents) * log(1 / 4) + (4 - len(parents)) * log(3 / 4)
        assert score.score(child, list(parents)) == pytest.approx(log_family(codes, cards, child, parents) + believed)


def test_it_is_the_score_of_causal_learn():
    module = pytest.importorskip("causallearn.score.LocalScoreFunction")
    codes, _ = rows()
    score = ForCausalLearn(codes.astype(float))
    for child, parents in FAMILIES:
        theirs = module.local_score_BDeu(codes.astype(float), child, list(parents))
        assert score.score(child, parents) == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize("search", ["BOSS", "GRaSP", "GES"])
def test_searches_find_the_same_by_it(search):
    own, quick = (
        next(peer for peer in PEERS if peer.name == f"causal-learn {search}, {how}BDeu") for how in ("", "quick ")
    )
    if not is_installed(own):
        pytest.skip("causal-learn is not installed")
    codes, cards = rows(300)
    found = [learn_within(peer.name, codes, cards, 60.0).adjacency for peer in (own, quick)]
    assert found[0].any()
    assert (found[0] == found[1]).all()
