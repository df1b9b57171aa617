"""The study of accuracy: what it measures, what it goes on from, and peers that are slow, broken or not there."""

import json
import math
import time

import numpy as np
import polars as pl
import pytest

from kinfolk.datasets import load_network, make_random_network
from kinfolk.experiments import publishing
from kinfolk.experiments.networks import accuracy, peers
from kinfolk.experiments.networks.accuracy import DEFAULT, OURS, extension, study
from kinfolk.experiments.networks.peers import Peer
from kinfolk.experiments.registry import find
from kinfolk.networks.estimators.bayes_nets import BayesNets
from kinfolk.networks.model.distances import shd
from kinfolk.networks.model.equivalence import completed, same_class

SMALL = {"networks": ("asia",), "sizes": (100,), "n_draws": 2, "peers": ()}


def test_the_truth_is_at_distance_zero_and_other_graphs_where_the_distance_of_structures_says(monkeypatch):
    network = load_network("asia")
    other = make_random_network(8, random_state=0).adjacency()
    for found in (network.adjacency(), completed(network.adjacency()), other):
        monkeypatch.setattr(accuracy, "_learn_shuffled", lambda *given, found=found: peers.Answer(found, 1.5))
        measured = accuracy._measure(network, 50, 0, "someone", 0, 1.0)
        truth = found is not other
        assert measured["shd"] == (0 if truth else shd(network.adjacency(), other))
        assert measured["f1"] == 1 if truth else measured["f1"] < 1
        assert measured["seconds"] == 1.5


def test_peers_get_columns_in_any_order_and_arcs_come_back_to_where_they_stood(monkeypatch):
    cards, given = np.array([5, 3, 4, 2, 6]), []

    def from_few_to_many(method, codes, cards, limit):
        given.append(cards.tolist())
        assert (codes.max(axis=0) + 1 == cards).all()
        return peers.Answer(cards[:, None] < cards[None, :], 1.0)

    monkeypatch.setattr(accuracy, "learn_within", from_few_to_many)
    codes = np.tile(np.arange(6)[:, None], 5) % cards
    for seed in range(4):
        found = accuracy._learn_shuffled("someone", codes, cards, 1.0, np.random.default_rng(seed))
        assert (found.adjacency == (cards[:, None] < cards[None, :])).all()
    assert cards.tolist() not in given
    monkeypatch.setattr(accuracy, "learn_within", lambda *given: None)
    assert accuracy._learn_shuffled("someone", codes, cards, 1.0, np.random.default_rng(0)) is None


def test_states_that_rows_lack_are_known_to_all_methods_of_ours_but_one(monkeypatch):
    given = []

    class Listening(BayesNets):
        def fit(self, X, y=None, *, task=None):
            given.append({name: X[name].dtype.categories.to_list() for name in X.columns})
            return super().fit(X, y, task=task)

    monkeypatch.setattr(accuracy, "BayesNets", Listening)
    network = load_network("asia")
    rows = network.sample(20, np.random.default_rng([0, 0, 20]))
    seen = [sorted({str(x) for x in column}) for column in rows.T]
    assert ["0"] in seen or ["1"] in seen
    for method in OURS:
        measured = accuracy._measure(network, 20, 0, method, 0, 1.0)
        assert list(given[-1].values()) == (seen if method == accuracy.SEEN else [["0", "1"]] * 8)
        assert math.isfinite(measured["log_likelihood"])


def test_a_member_of_a_class_is_found_from_its_completed_graph():
    for seed in range(10):
        dag = make_random_network(9, random_state=seed).adjacency()
        assert same_class(extension(completed(dag)), dag)
        assert (extension(dag) == dag).all()


def test_a_study_that_was_stopped_goes_on_from_what_it_kept(tmp_path, monkeypatch):
    kept = tmp_path / "kept.jsonl"
    whole = study(kept=kept, **SMALL)
    lines = kept.read_text().splitlines()
    assert len(lines) == 2 * len(OURS)
    kept.write_text("\n".join(lines[:-1]) + "\n")
    measured = []
    real = accuracy._measure
    monkeypatch.setattr(accuracy, "_measure", lambda *given: (measured.append(given), real(*given))[1])
    again = study(kept=kept, **SMALL)
    # One of each is measured first, to load what is compiled.
    assert len(measured) == len(OURS) + 1
    assert again.table.drop("seconds").equals(whole.table.drop("seconds"))


def test_a_cell_that_was_being_written_when_the_study_was_killed_is_measured_again(tmp_path):
    kept = tmp_path / "kept.jsonl"
    whole = study(kept=kept, **SMALL)
    lines = kept.read_text().splitlines(keepends=True)
    for torn in (lines[-1][:9], lines[-1].rstrip()):
        kept.write_text("".join(lines[:-1]) + torn)
        again = study(kept=kept, **SMALL)
        assert again.table.drop("seconds").equals(whole.table.drop("seconds"))
        assert len([json.loads(line) for line in kept.read_text().splitlines()]) == len(lines)


def test_cells_of_another_seed_are_others(tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy, "SIZES", (60, 80))
    find("networks-accuracy").run(tmp_path / "other", quick=True, seed=1, shown=False)
    expected = pl.read_csv(tmp_path / "other" / "networks-accuracy.csv")
    publish = publishing.publish

    def killed(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(publishing, "publish", killed)
    with pytest.raises(KeyboardInterrupt):
        find("networks-accuracy").run(tmp_path / "here", quick=True, seed=0, shown=False)
    monkeypatch.setattr(publishing, "publish", publish)
    find("networks-accuracy").run(tmp_path / "here", quick=True, seed=1, shown=False)
    found = pl.read_csv(tmp_path / "here" / "networks-accuracy.csv")
    assert found.drop("seconds").equals(expected.drop("seconds"))


def test_what_is_kept_is_deleted_when_a_study_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy, "SIZES", (60, 80))
    find("networks-accuracy").run(tmp_path, quick=True, shown=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"networks-accuracy.{kind}" for kind in ("csv", "md", "png")
    ]


def test_a_method_that_timed_out_is_not_run_on_more_rows_and_is_told_of(monkeypatch):
    asked = []

    def too_slow(peer, codes, cards, limit):
        asked.append(len(codes))
        return None

    monkeypatch.setattr(accuracy, "learn_within", too_slow)
    ours = study(networks=("asia",), sizes=(50, 100), n_draws=2, peers=("someone",))
    assert asked == [50]
    assert "| asia, someone | over 600 s | not run |" in ours.details
    assert "A peer is ended after 600 s of the processor" in ours.setting
    assert "Not run at all: PyBNesian climb, BDeu, XGES, quick BDeu, causal-learn BOSS, BDeu" in ours.setting


def test_a_limit_under_which_an_earlier_run_ended_a_peer_is_told_of_with_the_network(tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy, "learn_within", lambda *given: None)
    few = {"networks": ("asia",), "sizes": (50,), "n_draws": 1, "kept": tmp_path / "kept.jsonl"}
    study(limit=7.0, peers=("someone",), **few)
    ours = study(limit=600.0, peers=(), **few)
    assert "A peer is ended after 600 s of the processor (7 s on asia)" in ours.setting
    assert "| asia, someone | over 7 s |" in ours.details


@pytest.mark.parametrize(("budget", "draws"), [(15.0, 2), (math.inf, 4)])
def test_a_peer_that_has_spent_its_budget_gets_no_more_draws_and_those_it_has_are_counted(monkeypatch, budget, draws):
    empty = np.zeros((8, 8), dtype=bool)
    monkeypatch.setattr(accuracy, "learn_within", lambda *given: peers.Answer(empty, 10.0))
    ours = study(networks=("asia",), sizes=(50,), n_draws=4, peers=("someone",), budget=budget)
    assert len(ours.table.filter(pl.col("method") == "someone")) == draws
    assert ("| asia, someone | 8.0 ± 0.0 (2 draws) |" in ours.details) == (draws == 2)
    assert ("| asia, someone | 8.0 ± 0.0 |" in ours.details) == (draws == 4)


def test_without_a_budget_only_what_is_kept_is_shown(tmp_path, monkeypatch):
    kept = tmp_path / "kept.jsonl"
    whole = study(kept=kept, **SMALL)
    monkeypatch.setattr(accuracy, "_measure", None)
    ours = study(kept=kept, budget=0.0, **SMALL | {"n_draws": 3})
    assert ours.table.equals(whole.table)
    assert "(2 draws)" in ours.details


def test_what_an_earlier_run_published_is_not_made_again_but_for_what_was_kept_since(tmp_path, monkeypatch):
    empty, truth = np.zeros((8, 8), dtype=bool), load_network("asia").adjacency()
    few = {"networks": ("asia",), "sizes": (50, 100), "n_draws": 1, "limit": 9.0}

    def answering(answer):
        monkeypatch.setattr(accuracy, "learn_within", lambda peer, codes, *given: answer(peer, codes))

    # One that answers with few rows alone, and one that never answers.
    slow = {"slow": peers.Answer(empty, 2.0), "never": None}
    answering(lambda peer, codes: slow[peer] if len(codes) == 50 else None)
    published = study(peers=tuple(slow), **few)
    csv = tmp_path / "networks-accuracy.csv"
    csv.write_bytes(published.table.write_csv(float_precision=6).encode())
    monkeypatch.setattr(accuracy, "_measure", None)
    again = study(peers=tuple(slow), earlier=csv, **few)
    for column in published.table.columns:
        expected = published.table[column]
        same = (
            again.table[column] == expected.round(6)
            if expected.dtype == pl.Float64
            else again.table[column] == expected
        )
        assert same.all(), column
    assert again.table["limit"].to_list() == published.table["limit"].to_list()
    monkeypatch.undo()
    # What was kept since counts, and what is new is kept alone.
    kept = tmp_path / "kept.jsonl"
    row = again.table.filter((pl.col("method") == "slow") & (pl.col("rows") == 50)).to_dicts()[0]
    kept.write_text(json.dumps(row | {"shd": 3}) + "\n")
    answering(lambda peer, codes: peers.Answer(truth, 1.0))
    more = study(peers=("new",), earlier=csv, kept=kept, **few)
    assert len(more.table) == len(published.table) + 2
    assert more.table.filter((pl.col("method") == "slow") & (pl.col("rows") == 50))["shd"].to_list() == [3]
    assert [json.loads(line)["method"] for line in kept.read_text().splitlines()] == ["slow", "new", "new"]


def test_the_searches_are_judged_by_how_near_and_how_slow_they_are_on_the_same_draws():
    def judged(*differences, seconds=2.0):
        """With so much less or more of the default than of the plain climb, at 10 edits."""
        rows = [
            {"network": network, "rows": 100, "draw": draw, "method": method}
            | {
                "shd": 10 + (by + draw % 2 if method == DEFAULT else 0),
                "seconds": seconds if method == DEFAULT else 1.0,
            }
            for network, by in enumerate(differences)
            for draw in range(4)
            for method in (DEFAULT, accuracy.CLIMB)
        ]
        return accuracy._judge(pl.DataFrame(rows))

    assert judged(-8, -9, -7) == ("held", "held")
    assert judged(-8, -9, -7, -8, 2) == ("partly", "held")
    assert judged(3, 4, 5, seconds=0.5) == ("not held", "not held")


def test_a_method_is_farther_where_the_mean_over_draws_is_by_two_standard_errors(monkeypatch):
    # An empty graph misses the eight edges of ASIA, and the true one none.
    truth = load_network("asia").adjacency()
    found = {"worse": np.zeros((8, 8), dtype=bool), "better": truth}
    monkeypatch.setattr(accuracy, "_learn_shuffled", lambda peer, *given: peers.Answer(found[peer], 1.0))
    ours = study(networks=("asia",), sizes=(200,), n_draws=3, peers=tuple(found))
    lines = {line.split(" | ")[0]: line for line in ours.details.splitlines()}
    assert "| 1 | 1 | 0 | – |" in lines["| worse"]
    assert "| 1 | 0 | 1 | asia 200 |" in lines["| better"]


def test_a_structure_whose_tables_do_not_fit_is_measured_by_its_arcs_alone(monkeypatch):
    # The last of 37 variables has all others as its parents.
    star = np.zeros((37, 37), dtype=bool)
    star[:-1, -1] = True
    monkeypatch.setattr(accuracy, "_learn_shuffled", lambda *given: peers.Answer(star, 1.0))
    ours = study(networks=("alarm",), sizes=(50,), n_draws=1, peers=("crowded",))
    measured = ours.table.filter(pl.col("method") == "crowded").to_dicts()[0]
    assert measured["log_likelihood"] is None
    assert measured["shd"] == shd(load_network("alarm").adjacency(), star)
    lines = [line for line in ours.details.splitlines() if line.startswith("| alarm, crowded")]
    assert lines[2] == "| alarm, crowded | too many parents |"
    assert lines[0] == f"| alarm, crowded | {measured['shd']:.1f} |"


def test_a_peer_that_is_not_installed_is_known_without_importing_it():
    assert not peers.is_installed(Peer("nobody", "a_package_that_nobody_wrote", lambda codes, cards: codes))
    assert peers.is_installed(Peer("numpy", "numpy", lambda codes, cards: codes))


def test_a_process_of_a_peer_is_ended_after_its_time_and_its_errors_come_with_its_name():
    codes, cards = np.zeros((5, 2), dtype=np.int32), np.array([2, 2])
    missing = [peer for peer in peers.PEERS if not peers.is_installed(peer)]
    if not missing:
        pytest.skip("all peers are installed")
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match=f"^{missing[0].name}: ModuleNotFoundError"):
        peers.learn_within(missing[0].name, codes, cards, 30.0)
    assert time.monotonic() - begun < 120


@pytest.mark.skipif(not peers.is_installed(Peer("", "pybnesian", lambda codes, cards: codes)), reason="no PyBNesian")
def test_a_peer_that_takes_more_of_the_processor_than_its_limit_has_no_answer():
    network = make_random_network(400, random_state=0)
    codes = network.sample(1_000, np.random.default_rng(0))
    assert peers.learn_within("PyBNesian climb, BDeu", codes, network.cards, 0.1) is None
    assert peers.learn_within("PyBNesian climb, BDeu", codes[:, :3], network.cards[:3], 60.0) is not None


def test_results_are_kept_as_lines_of_json(tmp_path):
    kept = tmp_path / "kept.jsonl"
    study(kept=kept, **SMALL | {"n_draws": 1})
    first = json.loads(kept.read_text().splitlines()[0])
    assert first["method"] == DEFAULT
    assert set(first) == {"network", "rows", "draw", "method", *accuracy.MEASURES, "limit"}


def test_a_fit_that_took_no_measurable_time_spends_nothing_of_its_budget():
    about = {"network": "asia", "rows": 100, "draw": 1, "method": "some package"}
    done = [
        about | {"draw": 0, "seconds": 0.0, "limit": None},
        about | {"network": "alarm", "seconds": 9.0, "limit": None},
    ]
    assert not accuracy._is_left_out(done, about, budget=1.0)
    assert accuracy._is_left_out([done[0] | {"seconds": None, "limit": 2.0}], about, budget=1.0)
