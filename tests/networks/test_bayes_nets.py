"""The estimator of related Bayes nets, as a user meets it."""

from itertools import product
from math import log

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kinfolk import BayesNets
from kinfolk.datasets import load_network, make_random_network, make_related_networks, sample_tasks
from kinfolk.networks.answers.bif import read_bif
from kinfolk.networks.model.distances import edit_distance, kl_divergence
from kinfolk.networks.model.network import make_network
from tests.networks.oracle import as_frame

ASIA = make_related_networks("asia", 3, p_delete=0.15, random_state=1)


@pytest.fixture(scope="module")
def tables():
    return sample_tasks(ASIA, 300, frame="pandas", random_state=0)


@pytest.fixture(scope="module")
def model(tables):
    return BayesNets(random_state=0).fit(tables)


def same_answers(a, b):
    assert a.log_score_ == pytest.approx(b.log_score_, abs=1e-8)
    assert a.tasks_.tolist() == b.tasks_.tolist()
    for name, graph in a.graphs_.items():
        assert set(b.graphs_[name].edges) == set(graph.edges)
        assert list(b.graphs_[name].nodes) == list(graph.nodes)


def codes_of(network, frame):
    """A frame's rows as places among a network's states."""
    return np.array(
        [
            [list(states).index(value) for value in frame[name].tolist()]
            for name, states in zip(network.variables, network.states, strict=True)
        ]
    ).T


def test_joint_structures_are_nearer_the_truth_than_separate_ones():
    wrong = {"joint": 0, "none": 0, "pooled": 0}
    for seed in range(6):
        networks = make_related_networks("asia", 5, p_delete=0.1, random_state=seed)
        drawn = sample_tasks(networks, 200, random_state=seed)
        for sharing in wrong:
            graphs = BayesNets(sharing=sharing, random_state=0).fit(drawn).graphs_
            wrong[sharing] += sum(edit_distance(graphs[t], network) for t, network in enumerate(networks))
    assert wrong["joint"] < 0.8 * wrong["none"]
    assert wrong["joint"] < wrong["pooled"]


def test_one_table_a_task_and_one_table_for_all_agree(tables, model):
    stacked = pd.concat(tables.values(), ignore_index=True)
    of_row = np.repeat(list(tables), [len(table) for table in tables.values()])
    by_argument = BayesNets(random_state=0).fit(stacked, task=of_row)
    by_column = BayesNets(random_state=0, task_column="task").fit(stacked.assign(task=of_row))
    same_answers(model, by_argument)
    same_answers(model, by_column)
    scores = model.score_samples(tables)
    assert by_argument.score_samples(stacked, task=of_row) == pytest.approx(np.concatenate(list(scores.values())))
    assert by_column.score_samples(stacked.assign(task=of_row)) == pytest.approx(np.concatenate(list(scores.values())))
    assert by_argument.score(stacked, task=of_row) == pytest.approx(model.score(tables))


@pytest.mark.parametrize("library", ["polars", "arrow", "dict", "text"])
def test_every_kind_of_table_gives_the_same_networks(tables, model, library):
    make = {
        "polars": pl.from_pandas,
        "arrow": lambda table: pl.from_pandas(table).to_arrow(),
        "dict": lambda table: {name: table[name].tolist() for name in table.columns},
        "text": lambda table: table.astype(str).astype(object),
    }[library]
    if library == "arrow":
        pytest.importorskip("pyarrow")
    again = BayesNets(random_state=0).fit({name: make(table) for name, table in tables.items()})
    same_answers(model, again)


def test_arrays_have_variables_named_by_their_places():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 200)
    codes = np.stack([first, (first + (rng.random(200) < 0.1)) % 3, rng.integers(0, 2, 200)], axis=1)
    by_rows = BayesNets(sharing="none").fit(codes)
    assert list(by_rows.graphs_[0].nodes) == ["0", "1", "2"]
    assert list(by_rows.graphs_[0].edges) == [("0", "1")]
    by_task = BayesNets(sharing="none").fit({"x": codes, "y": codes})
    assert list(by_task.graphs_["x"].edges) == list(by_task.graphs_["y"].edges) == [("0", "1")]
    assert by_rows.score(codes) == pytest.approx(by_task.score({"x": codes}))


def test_without_tasks_all_rows_are_one_task(tables):
    one = BayesNets().fit(tables[0])
    assert one.tasks_.tolist() == [0]
    assert set(one.graphs_[0].edges) == set(BayesNets(sharing="none").fit(tables[0]).graphs_[0].edges)
    assert one.score_samples(tables[0]).shape == (300,)


def test_categories_that_one_task_alone_shows_are_states_everywhere():
    left = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["p", "q"] * 20})
    right = pd.DataFrame({"a": ["x", "z"] * 20, "b": ["p", "q"] * 20, "c": ["s", "t", "t", "s"] * 10})
    model = BayesNets(criterion="k2").fit({"left": left, "right": right})
    assert model.networks_["left"].states == (("x", "y", "z"), ("p", "q"))
    assert model.networks_["right"].variables == ("a", "b", "c")
    network = model.networks_["left"]
    assert network.parents == ((), (0,))
    # 20 of 40 rows have x, none has z; each state counts one more.
    assert network.tables[0].tolist() == pytest.approx([21 / 43, 21 / 43, 1 / 43])
    assert network.tables[1][2].tolist() == pytest.approx([0.5, 0.5])


def test_declared_categories_are_states_though_no_row_has_them():
    kinds = pd.CategoricalDtype(["low", "mid", "high"])
    table = pd.DataFrame({"a": pd.Series(["low", "high"] * 10, dtype=kinds), "b": ["p", "q"] * 10})
    assert BayesNets().fit(table).networks_[0].states[0] == ("low", "mid", "high")


def test_tables_are_the_posterior_means_of_their_task(tables, model):
    for name, network in model.networks_.items():
        codes = codes_of(network, tables[name])
        for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
            cell = 1 / table.size
            for configuration in product(*(range(network.cards[p]) for p in parents)):
                its = (codes[:, parents] == configuration).all(axis=1)
                counts = np.bincount(codes[its, v], minlength=network.cards[v])
                wanted = (counts + cell) / (counts.sum() + cell * network.cards[v])
                assert table[configuration].tolist() == pytest.approx(wanted.tolist())


def test_scores_are_the_products_of_the_networks_tables(tables, model):
    for name, scores in model.score_samples(tables).items():
        network = model.networks_[name]
        for row, score in zip(codes_of(network, tables[name])[:40], scores, strict=False):
            wanted = sum(
                log(table[(*(row[p] for p in parents), row[v])])
                for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True))
            )
            assert score == pytest.approx(wanted)
    assert model.score(tables) == pytest.approx(np.concatenate(list(model.score_samples(tables).values())).mean())


def with_states(network, row, names):
    """Codes of a row with every combination of states in place of some variables' own."""
    places = [network.variables.index(name) for name in names]
    filled = np.repeat(codes_of(network, row), 2 ** len(places), axis=0)
    filled[:, places] = np.array(list(product(range(2), repeat=len(places)))).reshape(len(filled), -1)
    return filled


def test_what_is_missing_is_summed_out(tables, model):
    network = model.networks_[0]
    rows = tables[0].head(3).astype(object)
    rows.loc[0, "bronc"] = None
    rows.loc[1, ["smoke", "dysp"]] = [np.nan, None]
    gaps = {0: ["bronc"], 1: ["smoke", "dysp"], 2: []}
    scores = model.score_samples({0: rows})[0]
    for row, missing in gaps.items():
        filled = with_states(network, tables[0].iloc[[row]], missing)
        assert scores[row] == pytest.approx(np.logaddexp.reduce(network.log_probability(filled)))
    without = model.score_samples({0: tables[0].drop(columns="xray").head(2)})[0]
    blanked = tables[0].head(2).astype(object).assign(xray=None)
    assert without == pytest.approx(model.score_samples({0: blanked})[0])


@pytest.mark.parametrize("new", [["bronc"], ["either"], ["smoke", "dysp"], ["asia", "tub", "either"]])
@pytest.mark.filterwarnings("ignore::kinfolk.UnseenWarning")
def test_a_state_never_seen_makes_no_row_more_likely_than_any_known_states_would(tables, model, new):
    network = model.networks_[0]
    rows = tables[0].head(60).astype(object)
    known = model.score_samples({0: rows})[0]
    strange = model.score_samples({0: rows.assign(**dict.fromkeys(new, "a value never seen"))})[0]
    assert (strange <= known).all()
    assert np.isfinite(strange).all()
    for row in range(10):
        assert strange[row] <= network.log_probability(with_states(network, rows.iloc[[row]], new)).min() + 1e-12
    # One variable without children: exactly as unlikely as its least likely state.
    leaf = next(v for v in range(8) if not network.adjacency()[v].any())
    name = network.variables[leaf]
    lone = model.score_samples({0: rows.head(1).assign(**{name: "never seen"})})[0][0]
    least = network.log_probability(np.delete(codes_of(network, rows.head(1)), [], axis=1))[0]
    own = network.tables[leaf][tuple(codes_of(network, rows.head(1))[0, p] for p in network.parents[leaf])]
    assert lone == pytest.approx(least - np.log(own[codes_of(network, rows.head(1))[0, leaf]]) + np.log(own.min()))


def test_a_state_never_seen_beside_a_missing_one_sums_the_missing_one_out(tables, model):
    network = model.networks_[0]
    row = tables[0].head(1).astype(object)
    score = model.score_samples({0: row.assign(either="never seen", smoke=None)})[0][0]
    at_least = [
        np.logaddexp.reduce(network.log_probability(with_states(network, row.assign(either=state), ["smoke"])))
        for state in ("no", "yes")
    ]
    assert score <= min(at_least)
    assert score == pytest.approx(min(at_least), abs=3)


def test_a_new_task_is_like_each_known_one_with_the_same_chance(tables, model):
    rows = tables[1].head(20)
    each = np.array([model.score_samples({name: rows})[name] for name in model.tasks_.tolist()])
    wanted = np.logaddexp.reduce(each, axis=0) - log(3)
    assert model.score_samples({"never seen": rows})["never seen"] == pytest.approx(wanted)
    stacked = pd.concat([rows, rows], ignore_index=True)
    in_one = BayesNets(random_state=0).fit(pd.concat(tables.values()), task=np.repeat([0, 1, 2], 300))
    mixed = in_one.score_samples(stacked, task=[99] * 20 + [1] * 20)
    assert mixed[:20] == pytest.approx(wanted)
    assert mixed[20:] == pytest.approx(each[1])


class NeverScanned(np.ndarray):
    """Each row's task; looking through all rows once for every task fails."""

    def __eq__(self, other):
        raise AssertionError("all rows were looked through for one task")

    __hash__ = None


def test_rows_are_split_by_task_with_one_sort(tables, monkeypatch):
    from kinfolk.networks.answers import predictor
    from kinfolk.networks.estimators import reading

    def receive(*args, whole=reading.receive_table, **options):
        arrival = whole(*args, **options)
        return arrival._replace(place=arrival.place.view(NeverScanned))

    def ask(*args, whole=predictor.receive_rows, **options):
        asked = whole(*args, **options)
        return asked._replace(place=asked.place.view(NeverScanned))

    monkeypatch.setattr(reading, "receive_table", receive)
    monkeypatch.setattr(predictor, "receive_rows", ask)
    long = pd.concat(tables.values(), ignore_index=True)
    task = np.repeat([0, 1, 2], 300)
    order = np.random.default_rng(0).permutation(len(task))
    model = BayesNets(random_state=0).fit(long.iloc[order], task=task[order])
    scores = model.score_samples(long.iloc[order], task=task[order])
    alone = np.concatenate(list(model.score_samples(dict(enumerate(tables.values()))).values()))
    np.testing.assert_allclose(scores, alone[order])
    assert model.impute(long.iloc[order[:5]], task=task[order[:5]]).to_numpy().tolist() == (
        long.iloc[order[:5]].to_numpy().tolist()
    )


def test_tasks_with_different_variables_get_networks_of_their_own_variables(tables):
    partly = {0: tables[0].drop(columns=["xray", "asia"]), 1: tables[1].drop(columns="tub"), 2: tables[2]}
    model = BayesNets().fit(partly)
    for name, table in partly.items():
        assert set(model.graphs_[name].nodes) == set(table.columns) == set(model.networks_[name].variables)
    scores = model.score_samples(partly)
    assert all(np.isfinite(its).all() for its in scores.values())
    # A new task can only be like one that has all variables.
    assert model.score_samples({9: tables[0]})[9] == pytest.approx(model.score_samples({2: tables[0]})[2])


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_samples_are_frames_of_states_with_the_networks_frequencies(frame):
    drawn = sample_tasks(ASIA, 300, frame=frame, random_state=0)
    model = BayesNets(random_state=0).fit(drawn)
    sample = model.sample(20_000, task=1, random_state=3)
    assert type(sample) is type(drawn[1])
    network = model.networks_[1]
    assert list(sample.columns) == list(network.variables)
    codes = codes_of(network, {name: pd.Series(list(sample[name])) for name in network.variables})
    for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        for configuration in product(*(range(network.cards[p]) for p in parents)):
            its = (codes[:, parents] == configuration).all(axis=1)
            if its.sum() > 500:
                chance = table[configuration][0]
                error = 4 * np.sqrt(chance * (1 - chance) / its.sum()) + 1e-9
                assert (codes[its, v] == 0).mean() == pytest.approx(chance, abs=error)
    again = model.sample(20_000, task=1, random_state=3)
    assert sample.equals(again)
    assert not sample.equals(model.sample(20_000, task=1, random_state=4))


def test_bif_files_hold_the_whole_network(model, tmp_path):
    for name in ("network.bif", "network.bif.gz"):
        model.to_bif(tmp_path / name, task=2)
        back = read_bif(tmp_path / name)
        ours = model.networks_[2]
        assert (back.variables, back.states, back.parents) == (ours.variables, ours.states, ours.parents)
        for a, b in zip(back.tables, ours.tables, strict=True):
            assert a == pytest.approx(b, abs=1e-12)


def test_a_pgmpy_model_has_the_same_probabilities(model):
    pytest.importorskip("pgmpy")
    from pgmpy.inference import VariableElimination

    theirs = model.to_pgmpy(task=0)
    assert set(theirs.edges()) == set(model.graphs_[0].edges)
    assert theirs.check_model()
    network = model.networks_[0]
    marginal = VariableElimination(theirs).query(["dysp"], show_progress=False)
    rows = np.array(list(product(*(range(card) for card in network.cards))))
    weights = np.exp(network.log_probability(rows))
    place = network.variables.index("dysp")
    for code, state in enumerate(network.states[place]):
        wanted = weights[rows[:, place] == code].sum()
        assert marginal.get_value(dysp=state) == pytest.approx(wanted)


def test_confidence_is_1_for_an_obvious_arc_and_a_share_of_the_resamples_for_all(tables):
    rng = np.random.default_rng(0)
    frames = {}
    for name in ("x", "y"):
        a = rng.integers(0, 2, 200)
        frames[name] = pd.DataFrame(
            {"a": a, "b": np.where(rng.random(200) < 0.03, 1 - a, a), "c": rng.integers(0, 2, 200)}
        )
    confidence = BayesNets(bootstrap=10, required=[("a", "b")], random_state=0).fit(frames).arc_confidence_
    assert list(confidence.columns) == ["task", "parent", "child", "confidence", "either_way"]
    sure = confidence[(confidence["parent"] == "a") & (confidence["child"] == "b")]
    assert sorted(sure["task"]) == ["x", "y"]
    assert (sure["confidence"] == 1).all()
    free = BayesNets(bootstrap=10, random_state=0).fit(frames).arc_confidence_
    linked = free[free["parent"].isin(["a", "b"]) & free["child"].isin(["a", "b"])]
    assert (linked["either_way"] == 1).all()
    wide = BayesNets(bootstrap=8, random_state=0).fit(tables).arc_confidence_
    assert wide["confidence"].between(0, 1, inclusive="right").all()
    assert wide["either_way"].between(0, 1, inclusive="right").all()
    assert (wide["confidence"] * 8 % 1 == 0).all()
    assert (wide["either_way"] >= wide["confidence"]).all()
    assert wide["confidence"].nunique() > 1


def test_confidence_does_not_hang_on_the_number_of_threads(tables):
    one, two, other = (
        BayesNets(bootstrap=5, random_state=seed, n_jobs=n_jobs).fit(tables).arc_confidence_
        for seed, n_jobs in [(0, 1), (0, 2), (1, 1)]
    )
    assert one.equals(two)
    assert not one.equals(other)


def test_shared_tables_lend_a_task_of_few_rows_what_its_kin_know():
    network = load_network("asia")
    many = sample_tasks([network] * 4, [1500, 1500, 1500, 40], frame="pandas", random_state=2)
    gaps = {}
    for tables_ in ("independent", "shared"):
        model = BayesNets(tables=tables_).fit(many)
        gaps[tables_] = kl_divergence(network, model.networks_[3], 5000, 0).estimate
        sums = [table.sum(axis=-1) for table in model.networks_[3].tables]
        assert all(total == pytest.approx(np.ones_like(total)) for total in sums)
    assert gaps["shared"] < 0.5 * gaps["independent"]


def test_learnt_networks_near_the_truth_as_rows_grow():
    truth = make_random_network(8, n_states=2, strength=1.0, random_state=5)
    gaps = []
    for n_rows in (50, 400, 3200):
        model = BayesNets().fit(sample_tasks([truth, truth], n_rows, random_state=0))
        gaps.append(kl_divergence(truth, model.networks_[0], 5000, 0).estimate)
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]
    assert 0 < gaps[2] < 0.02


def test_pooled_rows_have_one_network_for_all(tables):
    model = BayesNets(sharing="pooled").fit(tables)
    everything = BayesNets(sharing="none").fit(pd.concat(tables.values(), ignore_index=True))
    for network in model.networks_.values():
        assert network.parents == everything.networks_[0].parents
        for ours, theirs in zip(network.tables, everything.networks_[0].tables, strict=True):
            assert ours == pytest.approx(theirs)
    assert model.log_score_ == pytest.approx(everything.log_score_)


def test_columns_of_numbers_are_cut_into_bins():
    rng = np.random.default_rng(1)
    heat = rng.normal(size=400)
    table = pd.DataFrame({"heat": heat, "ice": -heat + 0.1 * rng.normal(size=400), "coin": rng.integers(0, 2, 400)})
    model = BayesNets(bins=4).fit(table)
    assert len(model.networks_[0].states[0]) == 4
    assert list(model.graphs_[0].edges) == [("heat", "ice")]
    assert np.isfinite(model.score_samples(table)).all()


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(tables):
    model = BayesNets(random_state=0).fit(tables)
    before, scores = dict(vars(model)), model.score_samples(tables)
    with pytest.raises(ValueError, match="no value in any row"):
        model.fit({0: tables[0].assign(asia=None), 1: tables[1].assign(asia=None)})
    assert vars(model) == before
    model.bootstrap = -1
    with pytest.raises(ValueError, match="bootstrap"):
        model.fit(tables)
    model.bootstrap = 0
    assert all((scores[name] == its).all() for name, its in model.score_samples(tables).items())
    fresh = BayesNets(penalty=2)
    with pytest.raises(ValueError, match="penalty"):
        fresh.fit(tables)
    assert [name for name in vars(fresh) if name.endswith("_")] == []


def test_a_second_fit_forgets_the_first(tables):
    model = BayesNets(bootstrap=2, penalty="validate", random_state=0).fit(tables)
    model.set_params(bootstrap=0, penalty=0.5).fit({name: table.drop(columns="asia") for name, table in tables.items()})
    assert not hasattr(model, "arc_confidence_")
    assert not hasattr(model, "penalty_curve_")
    assert model.n_features_in_ == 7


def test_parameters_go_in_and_out_unchanged_and_clones_fit_alike(tables, model):
    arcs = [("smoke", "lung")]
    given = BayesNets(sharing="identical", required=arcs, ess=2.5, tabu=3, random_state=0)
    assert given.get_params()["required"] is arcs
    copied = clone(given)
    assert copied.get_params() == given.get_params()
    same_answers(copied.fit(tables), given.fit(tables))
    same_answers(clone(model).fit(tables), model)
    assert given.set_params(sharing="none").sharing == "none"


@pytest.mark.parametrize("ask", ["graphs_", "score_samples", "sample", "score"])
def test_an_unfitted_estimator_says_so(tables, ask):
    questions = {
        "graphs_": lambda model: model.graphs_,
        "score_samples": lambda model: model.score_samples(tables),
        "score": lambda model: model.score(tables),
        "sample": lambda model: model.sample(3),
    }
    with pytest.raises(NotFittedError):
        questions[ask](BayesNets())


def test_fitting_and_asking_leave_the_tables_alone(tables):
    copies = {name: table.copy() for name, table in tables.items()}
    model = BayesNets(bootstrap=2, penalty="validate").fit(tables)
    model.score_samples(tables)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(table, copies[name])


def test_the_class_example_holds():
    networks = make_related_networks("asia", 3, p_delete=0.1, random_state=0)
    model = BayesNets().fit(sample_tasks(networks, 500, random_state=0))
    assert len(model.graphs_) == 3
    assert model.n_features_in_ == 8
    assert model.feature_names_in_.tolist() == list(networks[0].variables)
    assert 0 <= model.penalty_ <= 1


def test_states_with_odd_names_survive_learning_and_files(tmp_path):
    odd = make_network(
        ["age", "report"], [["<5", "5-65", ">65"], ["Asy/Patch", "Normal"]], [[], [0]],
        [np.array([0.2, 0.5, 0.3]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])],
    )  # fmt: skip
    model = BayesNets().fit(sample_tasks([odd], 400, random_state=0)[0])
    assert model.networks_[0].states == odd.states
    model.to_bif(tmp_path / "odd.bif")
    assert read_bif(tmp_path / "odd.bif").states == odd.states


def test_an_estimator_made_from_bif_files_scores_and_samples_as_the_one_that_wrote_them(tmp_path):
    rng = np.random.default_rng(0)
    tables = {name: as_frame(rng.integers(0, 2, (60, 3)), [2, 2, 2]) for name in ("x", "y")}
    tables["y"] = tables["y"].drop(columns="c")
    model = BayesNets(random_state=0).fit(tables)
    for name, file in (("x", "x.bif"), ("y", "y.bif.gz")):
        model.to_bif(tmp_path / file, task=name)
    again = BayesNets.from_bif({"x": tmp_path / "x.bif", "y": tmp_path / "y.bif.gz"})
    for name, scores in model.score_samples(tables).items():
        assert again.score_samples({name: tables[name]})[name] == pytest.approx(scores, rel=1e-12)
    assert list(again.graphs_["x"].edges) == list(model.graphs_["x"].edges)
    assert again.sample(5, task="y", random_state=0).shape == (5, 2)


def test_bif_files_that_give_a_variable_different_states_are_refused_by_name(tmp_path):
    rng = np.random.default_rng(0)
    for name, states in (("x", 2), ("y", 3)):
        model = BayesNets().fit(as_frame(rng.integers(0, states, (90, 2)), [states, states]))
        model.to_bif(tmp_path / f"{name}.bif")
    with pytest.raises(ValueError, match=r"task 'y': variable 'a' has the states .* must be the same"):
        BayesNets.from_bif({name: tmp_path / f"{name}.bif" for name in ("x", "y")})
