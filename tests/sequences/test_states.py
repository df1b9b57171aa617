"""Hidden states: how often tasks are in them, what they are called, which are alike, and segments of sequences."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import kinfolk
from kinfolk import NestedIHMM, SharedIHMM, SingleIHMM
from kinfolk.sequences.answers.layout import Channel, Layout
from kinfolk.sequences.answers.predictor import SequencesPredictor
from kinfolk.sequences.answers.states import expected_shares, names_of, state_distances, states_of
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.families import side_by_side
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.tasks.answering import Known
from tests.sequences.test_prediction import keep, random_draw
from tests.sequences.toy import QUICK, toy_numbers, toy_sequences

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_expected_shares_are_those_of_all_paths():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), size=4)
    shares = np.zeros(3)
    for path in itertools.product(range(3), repeat=4):
        probability, before = 1.0, 0
        for state in path:
            probability, before = probability * rows[before, state], state + 1
        np.add.at(shares, list(path), probability / 4)
    np.testing.assert_allclose(expected_shares(rows, 4), shares)


def bits_between(one, other):
    """The Jensen–Shannon divergence of two densities, by quadrature."""

    def integrand(x):
        p, q = one.pdf(x), other.pdf(x)
        return sum(r * np.log2(2 * r / (p + q)) for r in (p, q)) / 2

    return quad(integrand, -12, 12)[0]


def test_states_of_numbers_are_as_far_apart_as_their_densities():
    emission = GaussianDiagonal(np.zeros(1), np.ones(1), 1.0)
    parameters = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1 / 9]])  # means and precisions
    means, squares = emission.means(parameters)[0], emission.mean_squares(parameters)[0]
    shapes = [norm(mean, np.sqrt(square - mean**2)) for mean, square in zip(means[:, 0], squares[:, 0], strict=True)]
    expected = [[bits_between(one, other) if one is not other else 0.0 for other in shapes] for one in shapes]
    np.testing.assert_allclose(state_distances(parameters, emission), expected, atol=0.03)
    assert expected[0][1] > 0.1


def test_states_that_never_show_a_symbol_are_alike_however_small_its_share_is():
    shares = np.array([[0.9, 0.1 - 1e-9, 1e-9], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    with np.errstate(divide="ignore"):
        log_shares = np.maximum(np.log(shares), -5000.0)
    parameters = np.concatenate([log_shares, np.full((3, 1), -5.0)], axis=1)
    found = state_distances(parameters, Categorical(3))
    assert found[0, 1] < 0.01
    np.testing.assert_allclose(found[0:2, 2], 1.0, atol=1e-6)
    np.testing.assert_array_equal(found, found.T)


@pytest.fixture
def two_clusters():
    """Three tasks: the first two show a and b, the third b and c, of four states of which one is never used."""
    shares = np.full((2, 4, 4), 1e-9)
    for cluster, state, code in ((0, 0, 0), (0, 1, 1), (1, 2, 1), (1, 3, 2)):
        shares[cluster, state, code] = 1.0
    parameters = np.log(np.concatenate([shares, np.full((2, 4, 1), 1e-3)], axis=2))
    draw = random_draw(np.random.default_rng(0), n_tasks=3, n_states=4)._replace(
        cluster=np.array([0, 0, 1]), parameters=parameters, n_states=np.array([2, 1, 2])
    )
    rows = np.full((3, 5, 4), 1e-4)
    rows[0, :, 0], rows[0, :, 1] = 0.25, 0.75
    rows[1, :, 1] = 1.0
    rows[2, :, 2] = rows[2, :, 3] = 0.5
    draw = draw._replace(transitions=rows / rows.sum(axis=2, keepdims=True))
    layout = Layout(None, 1, True, (Channel("categorical", (0,), ("a", "b", "c", "d")),))
    known = Known("NestedIHMM", None, 1, None, np.array(["ann", "bob", "eve"]))
    return SequencesPredictor(known, layout, keep([draw], Categorical(4, 0.5)))


def test_states_are_those_that_tasks_use_with_shares_and_durations(two_clusters):
    table = two_clusters.states()
    assert list(zip(table["cluster"], table["state"], table["name"], table["n_tasks"], strict=True)) == [
        (0, 0, "a", 1),
        (0, 1, "b", 2),
        (1, 2, "b", 1),
        (1, 3, "c", 1),
    ]
    np.testing.assert_allclose(table["share"], [0.25, (0.75 + 1.0) / 2, 0.5, 0.5], atol=1e-3)
    # A stay of which each step is the last with probability 1 − p lasts 1 / (1 − p) steps.
    np.testing.assert_allclose(np.array(table["duration"])[[0, 2, 3]], [4 / 3, 2.0, 2.0], atol=1e-2)


def test_pairs_of_states_are_alike_within_a_threshold(two_clusters):
    alike = two_clusters.similar_states()
    assert (alike["cluster"], alike["state"], alike["other_cluster"], alike["other_state"]) == ([0], [1], [1], [2])
    assert (alike["name"], alike["other_name"]) == (["b"], ["b"])
    assert len(two_clusters.similar_states(1.0)["distance"]) == 6
    for wrong in (-0.1, 2, "near", True):
        with pytest.raises(ValueError, match="a number from 0 to 1"):
            two_clusters.similar_states(wrong)


def test_states_that_no_other_group_has_differ(two_clusters):
    found = two_clusters.differing_states()
    rows = list(zip(found["group"], found["name"], found["nearest"], found["differs"], strict=True))
    assert [row[:2] + row[3:] for row in rows] == [(0, "a", True), (0, "b", False), (1, "c", True), (1, "b", False)]
    np.testing.assert_allclose(found["share"], [0.125, 0.875, 0.5, 0.5], atol=1e-3)
    assert found["share_elsewhere"][0] == 0.0
    # The first two tasks have a state in common, which is no distance from itself.
    found = two_clusters.differing_states({"ann": "x", "bob": "y", "eve": "x"})
    of_y = found["group"].index("y")
    assert (found["name"][of_y], found["distance"][of_y], found["differs"][of_y]) == ("b", 0.0, False)
    assert found["share_elsewhere"][of_y] == pytest.approx(0.375, abs=1e-3)


def test_groups_that_do_not_fit_get_one_sentence(two_clusters):
    with pytest.raises(ValueError, match="groups has none for task 'eve'"):
        two_clusters.differing_states({"ann": 1, "bob": 1})
    with pytest.raises(ValueError, match=r"groups has 2 entries.*each of the 3 tasks"):
        two_clusters.differing_states([1, 2])
    with pytest.raises(ValueError, match="all tasks are of one group"):
        two_clusters.differing_states([1, 1, 1])


def test_a_name_has_the_columns_in_which_a_state_stands_out():
    emission = side_by_side([Categorical(3, 0.5), GaussianDiagonal(np.zeros(4), np.ones(4), 0.5)])
    symbols = np.log([[0.5, 0.4, 0.1, 1e-3]] * 2)
    numbers = np.array([[5.0, 0.0, -5.0, 1.0, *np.ones(4)], [-5.0, 0.0, 5.0, -1.0, *np.ones(4)]])
    draw = random_draw(np.random.default_rng(0), n_tasks=1, n_clusters=1, emission=emission, n_states=2)
    draw = draw._replace(
        parameters=np.concatenate([symbols, numbers], axis=1)[None], transitions=np.full((1, 3, 2), 0.5)
    )
    channels = (Channel("categorical", (0,), ("x", "y", "z")), Channel("gaussian", (1, 2, 3, 4)))
    layout = Layout(("tone", "up", "flat", "down", "near"), 5, False, channels)
    kept = keep([draw], emission)
    assert states_of(kept, layout).name == [
        "up: 5 ± 1, down: -5 ± 1, near: 1 ± 1",
        "up: -5 ± 1, down: 5 ± 1, near: -1 ± 1",
    ]
    only_tone = Layout(None, 1, True, channels[:1])
    first = keep([draw._replace(parameters=symbols[None])], Categorical(3, 0.5))
    # As many symbols as make up four fifths; of two states of one name in a cluster, the second is numbered.
    assert names_of(first, only_tone) == {(0, 0): "x or y", (0, 1): "x or y (2)"}


def test_states_of_booleans_and_of_autoregressions_are_called_by_what_they_do():
    bits = np.tile(np.repeat([[1, 0], [0, 0]], 10, axis=0), (4, 1))
    model = SharedIHMM(emission="bernoulli", **QUICK).fit(bits, [40, 40], task=["ann", "bob"])
    shares = [[int(part.split()[-1].rstrip("%")) for part in name.split(",")] for name in model.states()["name"]]
    assert {tuple(round(share / 100) for share in row) for row in shares} == {(1, 0), (0, 0)}
    rng = np.random.default_rng(0)
    up = np.cumsum(rng.normal(size=60) * 0.1) + np.linspace(0, 5, 60)
    model = SharedIHMM(emission="ar", **{**QUICK, "n_states": 1}).fit(up, [60])
    (name,) = model.states()["name"]
    slope, _ = name.split(" of the last, ")
    assert float(slope) == pytest.approx(np.polyfit(up[:-1], up[1:], 1)[0], abs=0.2)


def test_marginal_decoding_takes_every_step_by_itself():
    # Of the paths 00, 10 and 11, the likeliest is 00; yet the first step is most probably in state 1.
    rows = np.array([[0.4, 0.6], [1.0, 0.0], [0.5, 0.5]])
    draw = random_draw(np.random.default_rng(0), n_tasks=1, n_clusters=1, n_states=2)._replace(
        transitions=rows[None], parameters=np.log(np.full((1, 2, 5), 0.2))
    )
    layout = Layout(None, 1, True, (Channel("categorical", (0,), tuple("abcd")),))
    model = SequencesPredictor(Known("SharedIHMM", None, 1, None, np.array([0])), layout, keep([draw]))
    assert model.predict(["a", "a"]).tolist() == [0, 0]
    assert model.predict(["a", "a"], decoding="marginal").tolist() == [1, 0]
    assert model.segments(["a", "a"], decoding="marginal")["state"] == [1, 0]
    for ask in (model.predict, model.segments):
        with pytest.raises(ValueError, match='decoding=\'map\': give "viterbi" or "marginal"'):
            ask(["a"], decoding="map")


RAGGED = [7, 24, 1, 16]


def parts_of(X, lengths, takes):
    ends = np.cumsum(lengths)
    return [X[end - n : end][:take] for n, end, take in zip(lengths, ends, takes, strict=False)]


@pytest.mark.parametrize("make", [toy_sequences, toy_numbers])
@pytest.mark.parametrize("estimator", [NestedIHMM, SharedIHMM, SingleIHMM])
def test_segments_of_ragged_sequences_are_the_runs_of_predicted_states(estimator, make, tmp_path):
    X, lengths, task = make()
    model = estimator(**QUICK).fit(X, lengths, task=task)
    parts, who = parts_of(X, lengths, RAGGED), ["ann", "ann", "zoe", "bob"]
    kinfolk.save(model, tmp_path / "m.kin")
    loaded = kinfolk.load(tmp_path / "m.kin")
    for decoding in ("viterbi", "marginal"):
        states = model.predict(parts, task=who, decoding=decoding)
        table = model.segments(parts, task=who, decoding=decoding)
        assert table["duration"].to_list() == (table["stop"] - table["start"]).to_list()
        unrolled = np.repeat(table["state"].to_numpy(), table["duration"].to_numpy())
        np.testing.assert_array_equal(unrolled, states)
        assert (
            table.group_by("sequence", maintain_order=True).agg(pl.col("duration").sum())["duration"].to_list()
            == RAGGED
        )
        assert [who[i] for i in table["sequence"]] == table["task"].to_list()
        of_states = {(row["cluster"], row["state"]): row["name"] for row in model.states().to_dicts()}
        for row in table.to_dicts():
            assert of_states.get((row["cluster"], row["state"]), row["name"]) == row["name"]
        proba = model.predict_proba(parts, task=who)[np.arange(len(states)), states]
        ends = np.cumsum(table["duration"])
        means = [proba[end - n : end].mean() for n, end in zip(table["duration"], ends, strict=True)]
        np.testing.assert_allclose(table["probability"], means)
        plain = loaded.segments(parts, task=who, decoding=decoding)
        assert plain["state"] == table["state"].to_list()
        np.testing.assert_allclose(plain["probability"], table["probability"], atol=1e-9)
    assert model.segments(parts[0][:0], task=[]).shape == (0, 9)


def test_tables_come_in_the_library_that_they_were_asked_with():
    X, lengths, task = toy_sequences()
    frame = pd.DataFrame({"tone": X})
    model = SharedIHMM(**QUICK).fit(frame, lengths, task=task)
    assert isinstance(model.states(), pd.DataFrame)
    assert isinstance(model.segments(frame, lengths, task=task), pd.DataFrame)
    assert isinstance(model.segments([pl.from_pandas(frame[:5])], task=["ann"]), pl.DataFrame)


def test_the_number_of_clusters_has_a_posterior():
    X, lengths, task = toy_sequences()
    model = NestedIHMM(**QUICK).fit(X, lengths, task=task)
    partitions = model.posterior_.traces.partitions.reshape(-1, 4)
    counted = [len(set(drawn)) for drawn in partitions.tolist()]
    np.testing.assert_allclose(model.n_clusters_, np.bincount(counted) / len(counted))
    assert SingleIHMM(**QUICK).fit(X, lengths, task=task).n_clusters_.tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("n_draws", [3, 7, 49])
def test_tasks_that_always_share_do_so_with_a_probability_of_one(n_draws):
    X, lengths, task = toy_sequences()
    model = SharedIHMM(**{**QUICK, "n_draws": n_draws, "n_chains": 3}).fit(X, lengths, task=task)
    np.testing.assert_array_equal(model.similarity_, np.ones((4, 4)))


def test_chains_count_by_their_weights_in_who_is_kin_and_in_how_many_clusters_there_are():
    X, lengths, task = toy_sequences()
    model = NestedIHMM(**QUICK).fit(X, lengths, task=task)
    traces = model.posterior_.traces
    together, apart = np.zeros((1, 6, 4), dtype=np.int32), np.tile(np.arange(4, dtype=np.int32), (1, 6, 1))
    model.posterior_ = model.posterior_._replace(
        traces=traces._replace(partitions=np.concatenate([together, apart])), chain_weights=np.array([0.9, 0.1])
    )
    np.testing.assert_allclose(model.n_clusters_, [0, 0.9, 0, 0, 0.1])
    np.testing.assert_allclose(model.similarity_, 0.9 + 0.1 * np.eye(4))
    assert model.partition_.tolist() == [0, 0, 0, 0]
    model.posterior_ = model.posterior_._replace(chain_weights=np.array([0.1, 0.9]))
    assert model.partition_.tolist() == [0, 1, 2, 3]
