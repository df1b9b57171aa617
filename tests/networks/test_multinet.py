"""BayesMultinet against naive Bayes, Bayes' rule by hand, and the networks that the data were made from."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import CategoricalNB

import kinfolk
from kinfolk import BayesMultinet, BayesNets
from kinfolk.datasets import make_random_network, make_related_networks, sample_tasks

RNG = np.random.default_rng(4)
N_ROWS = 240
LABEL = RNG.choice(["cat", "dog", "eel"], N_ROWS, p=[0.5, 0.3, 0.2])
SIZE = np.where(LABEL == "eel", 0, RNG.integers(0, 3, N_ROWS))
# Cats follow their size, dogs do the opposite: no column tells them apart by itself.
SPEED = np.where(RNG.random(N_ROWS) < 0.85, np.where(LABEL == "dog", 2 - SIZE, SIZE), RNG.integers(0, 3, N_ROWS))
COAT = RNG.choice(["long", "none", "short"], N_ROWS)
X = pd.DataFrame({"size": SIZE, "speed": SPEED, "coat": COAT})


@pytest.fixture(scope="module")
def fitted():
    return BayesMultinet(random_state=0).fit(X, LABEL)


def probability_by_hand(network, row):
    """Product of the tables' cells of one row of codes."""
    result = 1.0
    for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        result *= table[tuple(row[u] for u in (*parents, v))]
    return result


def bayes_rule_by_hand(model, row):
    """p(c | observed cells of one row of states), by adding up all rows that agree with it; None is missing."""
    weight = []
    for label in model.classes_:
        network = model.networks_[label]
        free = [
            range(len(states)) if value is None else [states.index(value)]
            for value, states in zip(row, network.states, strict=True)
        ]
        total = sum(probability_by_hand(network, codes) for codes in itertools.product(*free))
        weight.append((np.sum(label == LABEL) + 1) / (N_ROWS + 3) * total)
    return np.array(weight) / sum(weight)


def test_without_arcs_it_is_naive_bayes():
    codes = np.column_stack([SIZE, SPEED, pd.factorize(COAT)[0]])
    model = BayesMultinet(max_parents=0, criterion="k2", tables="independent", class_prior=0).fit(codes, LABEL)
    expected = CategoricalNB(alpha=1.0).fit(codes, LABEL)
    np.testing.assert_allclose(model.predict_log_proba(codes), expected.predict_log_proba(codes), rtol=1e-10)


def test_probabilities_are_those_of_bayes_rule(fitted):
    assert max(graph.number_of_edges() for graph in fitted.graphs_.values()) > 0
    rows = [list(row) for row in itertools.product([0, 1, 2], [0, 1, 2], ["long", "none", "short"])]
    found = fitted.predict_proba(pd.DataFrame(rows, columns=X.columns))
    np.testing.assert_allclose(found, [bayes_rule_by_hand(fitted, row) for row in rows], rtol=1e-10)
    np.testing.assert_array_equal(
        fitted.predict(pd.DataFrame(rows, columns=X.columns)), fitted.classes_[found.argmax(axis=1)]
    )


def test_missing_and_unseen_values_are_summed_out(fitted):
    rows = [[0, None, "long"], [None, 2, "short"], [None, None, None], [1, 2, None]]
    expected = np.array([bayes_rule_by_hand(fitted, row) for row in rows])
    gaps = pd.DataFrame(rows, columns=X.columns)
    np.testing.assert_allclose(fitted.predict_proba(gaps), expected, rtol=1e-10)
    unseen = gaps.fillna({"size": 77, "speed": 77, "coat": "scales"})
    np.testing.assert_allclose(fitted.predict_proba(unseen), expected, rtol=1e-10)


def test_an_arc_that_the_classes_use_differently_separates_them(fitted):
    """Each column alone has nearly the same distribution for cats and dogs; only the pair tells them apart."""
    two = np.isin(LABEL, ["cat", "dog"])
    assert fitted.graphs_["cat"].to_undirected().has_edge("size", "speed")
    naive = BayesMultinet(max_parents=0).fit(X[two], LABEL[two])
    assert BayesMultinet().fit(X[two], LABEL[two]).score(X[two], LABEL[two]) > naive.score(X[two], LABEL[two]) + 0.1


def test_joint_learning_predicts_better_than_separate_learning_and_naive_bayes():
    """Two classes whose networks share nine arcs in ten, 100 rows each; 4,000 new rows."""
    losses = []
    for seed in range(5):
        networks = make_related_networks(make_random_network(15, random_state=seed), 2, p_delete=0.1, random_state=seed)
        train, test = (sample_tasks(networks, n, form="long", random_state=seed + n) for n in (100, 2000))
        names = [name for name in train.columns if name != "task" and train[name].n_unique() > 1]
        of_seed = []
        for changes in ({}, {"sharing": "none"}, {"max_parents": 0}):
            model = BayesMultinet(random_state=0, **changes).fit(train[names], train["task"])
            of_seed.append(log_loss(test["task"], model.predict_proba(test[names])))
        losses.append(of_seed)
    joint, separate, naive = np.transpose(losses)
    assert joint.mean() < min(separate.mean(), naive.mean()) - 0.03
    assert (joint < separate).sum() >= 4


def test_networks_are_those_of_bayes_nets_with_classes_as_tasks(fitted):
    nets = BayesNets(tables="shared", random_state=0).fit(X, task=LABEL)
    assert list(fitted.networks_) == ["cat", "dog", "eel"]
    assert fitted.log_score_ == nets.log_score_
    assert fitted.penalty_ == nets.penalty_
    for label, graph in nets.graphs_.items():
        assert set(fitted.graphs_[label].edges) == set(graph.edges)
        for own, other in zip(fitted.networks_[label].tables, nets.networks_[label].tables, strict=True):
            np.testing.assert_array_equal(own, other)


def test_rows_with_gaps_are_learnt_from_by_structural_em():
    gaps = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.15)
    model = BayesMultinet(random_state=0).fit(gaps, LABEL)
    assert model.graphs_["cat"].to_undirected().has_edge("size", "speed")
    assert model.score(X, LABEL) > BayesMultinet(max_parents=0).fit(X, LABEL).score(X, LABEL)
    with pytest.raises(ValueError, match=r"column 'size', row \d+ \(class 'cat'\): a value is missing"):
        BayesMultinet(missing="error").fit(gaps, LABEL)


@pytest.mark.parametrize("changes", [{}, {"sharing": "none"}, {"sharing": "identical"}, {"tables": "independent"}])
def test_a_class_with_one_row_has_a_network_too(changes):
    label = LABEL.copy()
    label[0] = "ape"
    model = BayesMultinet(random_state=0, **changes).fit(X, label)
    proba = model.predict_proba(X)
    assert model.classes_.tolist() == ["ape", "cat", "dog", "eel"]
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert 0 < proba[0, 0] < 1
    gaps = X.astype(object)
    gaps.iloc[0, 0] = None
    np.testing.assert_allclose(BayesMultinet().fit(gaps, label).predict_proba(X).sum(axis=1), 1.0)


def test_a_lone_row_takes_its_arcs_from_the_other_classes():
    label = LABEL.copy()
    label[0] = "ape"
    joint = BayesMultinet(random_state=0).fit(X, label)
    alone = BayesMultinet(sharing="none", random_state=0).fit(X, label)
    assert set(joint.graphs_["ape"].edges) == set(joint.graphs_["cat"].edges) != set()
    assert alone.graphs_["ape"].number_of_edges() == 0


def test_one_class_is_always_predicted():
    model = BayesMultinet().fit(X, ["cat"] * N_ROWS)
    assert set(model.predict(X)) == {"cat"}
    np.testing.assert_array_equal(model.predict_proba(X), 1.0)
    np.testing.assert_array_equal(model.explain(X).log_odds(), 0.0)


@pytest.mark.parametrize("labels", [LABEL == "cat", (LABEL == "cat") * 2.0, (LABEL == "cat").astype(object)])
def test_labels_of_any_type_come_back(labels):
    model = BayesMultinet().fit(X, labels)
    assert model.classes_.tolist() == sorted(set(labels.tolist()))
    assert set(model.predict(X).tolist()) <= set(labels.tolist())
    assert list(model.networks_) == model.classes_.tolist()
    assert {type(label) for label in model.networks_} == {type(label) for label in labels.tolist()}


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, lambda frame: frame.to_dict("list")])
def test_frames_of_any_library_give_the_same_probabilities_and_hold_columns_to_their_names(fitted, make):
    model = BayesMultinet(random_state=0).fit(make(X), LABEL)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["size", "speed", "coat"]
    np.testing.assert_allclose(model.predict_proba(make(X)), fitted.predict_proba(X), rtol=1e-12)
    with pytest.raises(ValueError, match=r"feature names should match|columns should be"):
        model.predict(make(X[["speed", "size", "coat"]]))


def test_an_explanation_adds_up_to_the_log_odds(fitted):
    log_proba = fitted.predict_log_proba(X)
    why = fitted.explain(X)
    assert why.feature_names == ["size", "speed", "coat"]
    np.testing.assert_allclose(why.log_odds(), log_proba[:, 2] - log_proba[:, 0], atol=1e-10)
    np.testing.assert_allclose(why.log_odds("cat", "dog"), log_proba[:, 0] - log_proba[:, 1], atol=1e-10)
    assert (why.remainder == 0).all()
    for label in ("cat", "dog"):
        assert "coat" not in {v for edge in fitted.graphs_[label].edges for v in edge}
    coat = {label: dict(zip(n.states[2], n.tables[2], strict=True)) for label, n in fitted.networks_.items()}
    added = why.feature_part[:, 2, 0] - why.feature_part[:, 2, 1]
    np.testing.assert_allclose(added, [np.log(coat["cat"][c] / coat["dog"][c]) for c in COAT])
    assert set(why.table(0)["feature"]) == {"size", "speed", "coat", "(label rates)", "(rest)", "(total)"}
    *parts, total = why.table(0, "cat", "dog")["log_odds"]
    assert sum(parts) == pytest.approx(total)
    assert total == pytest.approx(log_proba[0, 0] - log_proba[0, 1], abs=1e-10)


def test_an_explanation_of_a_row_with_gaps_leaves_what_was_summed_out_to_the_remainder(fitted):
    (parent, child), *_ = fitted.graphs_["cat"].edges
    gaps = X.astype(object)
    gaps.loc[:4, parent] = None
    log_proba = fitted.predict_log_proba(gaps)
    why = fitted.explain(gaps)
    np.testing.assert_allclose(why.log_odds(), log_proba[:, 2] - log_proba[:, 0], atol=1e-10)
    places = [why.feature_names.index(name) for name in (parent, child)]
    assert (why.feature_part[:5, places] == 0).all()
    assert (np.abs(why.remainder[:5, 0] - why.remainder[:5, 2]) > 1e-6).all()
    assert (why.remainder[5:] == 0).all()


def test_scikit_learns_model_selection_works():
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(BayesMultinet(), pl.from_pandas(X), LABEL, cv=folds, scoring="neg_log_loss")
    assert len(scores) == 3
    search = GridSearchCV(
        BayesMultinet(), {"max_parents": [0, 1]}, cv=folds, scoring="neg_log_loss", error_score="raise"
    ).fit(X, LABEL)
    assert search.best_params_ == {"max_parents": 1}
    for (train, test), score in zip(folds.split(X, LABEL), scores, strict=True):
        by_hand = BayesMultinet().fit(X.iloc[train], LABEL[train]).predict_proba(X.iloc[test])
        assert score == pytest.approx(-log_loss(LABEL[test], by_hand))


def test_a_pickled_model_predicts_the_same(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


BAD = [
    ({"class_prior": -1}, X, LABEL, "class_prior=-1: a number of at least 0"),
    ({"class_prior": "much"}, X, LABEL, "class_prior='much': a number of at least 0"),
    ({"sharing": "pooled"}, X, LABEL, "sharing='pooled' would give all classes one network"),
    ({"sharing": "some"}, X, LABEL, "sharing='some': one of 'joint'"),
    ({"penalty": "validate"}, X, ["ape", *LABEL[1:]], "class 'ape' has one row"),
    ({}, X, [*LABEL[:7], None, *LABEL[8:]], "y, row 7: a label is missing"),
    ({}, X, LABEL[1:], "inconsistent numbers of samples"),
    ({}, X[:1], LABEL[:1], r"1 sample \(row\)"),
    ({}, X.assign(kind=LABEL), pd.Series(LABEL, name="kind"), "column 'kind' is the label and also a feature"),
]


@pytest.mark.parametrize(("parameters", "rows", "labels", "message"), BAD, ids=[case[-1] for case in BAD])
def test_bad_input_gets_one_clear_sentence(parameters, rows, labels, message):
    model = BayesMultinet(**parameters)
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(rows, labels)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "n_features_in_"), "a fit that fails leaves nothing behind"


def test_classes_that_are_not_there_cannot_be_explained(fitted):
    with pytest.raises(ValueError, match="'cow' is not a label; the labels are"):
        fitted.explain(X).log_odds("cow")


def test_a_saved_classifier_predicts_the_same_with_numpy_alone_and_as_an_estimator(fitted, tmp_path):
    model = fitted
    path = tmp_path / "classes.kin"
    kinfolk.save(model, path)
    predictor, again = kinfolk.load(path), kinfolk.load(path, estimator=True)
    np.testing.assert_allclose(predictor.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(predictor.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_log_proba(X), model.predict_log_proba(X))
    assert again.get_params() == model.get_params()


def test_a_column_that_is_constant_in_all_rows_changes_no_probability():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 3))
    y = X[:, 0] ^ (rng.random(60) < 0.2)
    wider = np.column_stack([X, np.full(60, 7)])
    plain, constant = BayesMultinet().fit(X, y), BayesMultinet().fit(wider, y)
    np.testing.assert_allclose(constant.predict_proba(wider), plain.predict_proba(X), rtol=1e-9)
