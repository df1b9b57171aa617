"""Questions about variables, and missing values filled in, against enumeration of the joint distribution."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk import BayesNets

RNG = np.random.default_rng(5)
N = 240


def table(flip):
    rain = RNG.choice(["no", "some", "much"], N, p=[0.5, 0.3, 0.2])
    sprinkler = np.where((rain == "no") ^ (RNG.random(N) < 0.15), "on", "off")
    wet = np.where((rain != "no") | (sprinkler == "on") ^ (RNG.random(N) < flip), 1, 0)
    return pd.DataFrame({"rain": rain, "sprinkler": sprinkler, "wet": wet, "size": RNG.normal(wet, 0.7)})


TABLES = {"garden": table(0.1), "park": table(0.3), "roof": table(0.2)[["rain", "wet"]]}
NAMES = ("rain", "sprinkler", "wet", "size")


@pytest.fixture(scope="module")
def model():
    return BayesNets(bins=3, random_state=0, tabu=0).fit(TABLES)


def joint_of(network):
    """Probability of every row, multiplied out of the tables."""
    rows = list(product(*(range(len(its)) for its in network.states)))
    chance = []
    for row in rows:
        p = 1.0
        for v, (parents, its) in enumerate(zip(network.parents, network.tables, strict=True)):
            p *= its[(*(row[u] for u in parents), row[v])]
        chance.append(p)
    return np.array(rows), np.array(chance)


def enumerated(network, asked, evidence):
    rows, chance = joint_of(network)
    place = {name: v for v, name in enumerate(network.variables)}
    for name, value in evidence.items():
        chance = chance * (rows[:, place[name]] == network.states[place[name]].index(value))
    out = np.zeros([len(network.states[place[name]]) for name in asked])
    for row, p in zip(rows, chance, strict=True):
        out[tuple(row[place[name]] for name in asked)] += p
    return out / out.sum()


@pytest.mark.parametrize("task", ["garden", "park"])
@pytest.mark.parametrize(
    ("asked", "evidence"),
    [
        (["rain"], {}),
        (["rain"], {"wet": 1}),
        (["wet", "rain"], {"sprinkler": "on"}),
        (["sprinkler", "rain", "size"], {"wet": 0}),
        (["size"], {"rain": "some", "sprinkler": "off", "wet": 1}),
        (list(NAMES), {}),
    ],
)
def test_a_query_is_the_joint_distribution_summed_and_scaled(model, task, asked, evidence):
    found = model.query(asked, evidence, task=task)
    network = model.networks_[task]
    assert found.variables == tuple(asked)
    assert found.states == tuple(network.states[network.variables.index(name)] for name in asked)
    np.testing.assert_allclose(found.probabilities, enumerated(network, asked, evidence), atol=1e-12)
    first = found.marginal(asked[0])
    assert list(first) == list(found.states[0])
    assert sum(first.values()) == pytest.approx(1)
    best = found.most_probable()
    at = tuple(its.index(best[name]) for name, its in zip(found.variables, found.states, strict=True))
    assert found.probabilities[at] == found.probabilities.max()


def test_evidence_of_a_variable_in_bins_is_a_number(model):
    network = model.networks_["garden"]
    v = network.variables.index("size")
    code = model._predictor()._schema.columns[3].encode(np.array([0.4]))[0]
    wanted = enumerated(network, ["wet"], {"size": network.states[v][code]})
    np.testing.assert_allclose(model.query("wet", {"size": 0.4}, task="garden").probabilities, wanted, atol=1e-12)


def test_a_new_task_answers_as_the_known_ones_weighed_by_what_they_say_of_the_evidence(model):
    whole = [model.networks_[name] for name in ("garden", "park")]
    numerator = np.zeros(3)
    for network in whole:
        rows, chance = joint_of(network)
        wet = network.states[network.variables.index("wet")].index(1)
        for row, p in zip(rows, chance, strict=True):
            if row[network.variables.index("wet")] == wet:
                numerator[row[network.variables.index("rain")]] += p
    found = model.query("rain", {"wet": 1}, task="never seen").probabilities
    np.testing.assert_allclose(found, numerator / numerator.sum(), atol=1e-12)


@pytest.mark.parametrize(
    ("asked", "evidence", "task", "sentence"),
    [
        ("snow", {}, "garden", r"^'snow' is not a variable; the variables are rain, sprinkler, wet, size$"),
        ("rain", {"snow": 1}, "garden", "'snow' is not a variable"),
        ("rain", {"rain": "no"}, "garden", "each once, and none of the evidence"),
        (["rain", "rain"], {}, "garden", "each once"),
        ([], {}, "garden", "each once"),
        ("rain", {"wet": 7}, "garden", r"evidence: 7 is not a value of 'wet'; 0, 1 are"),
        ("sprinkler", {}, "roof", "task 'roof' has no variable 'sprinkler'"),
        ("rain", {}, None, r"task=None: one of the tasks \['garden', 'park', 'roof'\] is needed"),
    ],
)
def test_a_question_that_makes_no_sense_gets_one_sentence(model, asked, evidence, task, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.query(asked, evidence, task=task)


def holes(rows):
    rows = rows.astype(object).reset_index(drop=True)
    gaps = np.random.default_rng(1).random(rows.shape) < 0.35
    return rows.mask(gaps, None)


@pytest.mark.parametrize("task", ["garden", "roof"])
def test_each_missing_value_becomes_the_state_that_enumeration_finds_most_probable(model, task):
    rows = holes(TABLES[task].head(25))
    filled = model.impute({task: rows})[task]
    network = model.networks_[task]
    assert list(filled.columns) == list(rows.columns)
    size = model._predictor()._schema.columns[3]
    n_filled = 0
    for i, row in rows.iterrows():
        known = {name: value for name, value in row.items() if value is not None and value == value}
        if "size" in known:
            known["size"] = size.value_names[size.encode(np.array([known["size"]]))[0]]
        for name in rows.columns:
            states = network.states[network.variables.index(name)]
            if name in known:
                assert filled[name][i] == known[name]
            else:
                chances = enumerated(network, [name], known)
                assert chances[states.index(filled[name][i])] == pytest.approx(chances.max(), abs=1e-12)
                n_filled += 1
    assert n_filled > 10


def test_a_table_of_all_tasks_is_filled_in_row_by_row_and_a_strange_value_counts_as_missing():
    long = pd.concat([TABLES["garden"], TABLES["park"]], ignore_index=True)
    task = np.repeat(["garden", "park"], N)
    model = BayesNets(bins=3, random_state=0, tabu=0).fit(long, task=task)
    rows = holes(long.iloc[::40])
    both = model.impute(rows, task=task[::40])
    for name in ("garden", "park"):
        alone = model.impute({name: rows[task[::40] == name]})[name]
        pd.testing.assert_frame_equal(both[task[::40] == name].reset_index(drop=True), alone, check_dtype=False)
    strange = rows.head(1).assign(rain="hail")
    blank = rows.head(1).assign(rain=None)
    assert model.impute(strange, task=["garden"])["rain"][0] == model.impute(blank, task=["garden"])["rain"][0]
    assert len(model.impute(rows.head(0), task=[])) == 0


def test_a_loaded_model_answers_the_same(model, tmp_path):
    kinfolk.save(model, tmp_path / "nets.kin")
    loaded = kinfolk.load(tmp_path / "nets.kin")
    asked = model.query(["rain", "size"], {"wet": 1}, task="park")
    again = loaded.query(["rain", "size"], {"wet": 1}, task="park")
    np.testing.assert_array_equal(again.probabilities, asked.probabilities)
    assert again.states == asked.states
    rows = holes(TABLES["park"].head(10))
    assert loaded.impute({"park": rows})["park"] == {
        name: column.tolist() for name, column in model.impute({"park": rows})["park"].items()
    }
    assert loaded.score({"park": rows}) == model.score({"park": rows})


def test_networks_and_predictors_say_in_a_line_what_they_are(model):
    network = model.networks_["roof"]
    assert repr(network) == f"<Network of 2 variables, {network.n_arcs} arcs: rain, wet>"
    assert repr(model._predictor()).startswith("<BayesNets, ready to answer: 3 tasks ('garden', 'park', 'roof')")
