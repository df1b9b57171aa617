"""What a model tells about its tasks: explanations, rates and similarities, against closed forms and enumeration."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB
from tests import oracle
from tests.problems import PLAIN, as_arguments, as_rows, priors, random_problems

GIBBS = {"inference": "gibbs", "n_chains": 2, "n_burn_in": 5, "n_draws": 5, "random_state": 0}
EVERY = [
    NoSharingNB(),
    CompleteSharingNB(),
    CompleteSharingNB(share_labels=False),
    ClusteredNB(),
    ClusteredNB(predictive="averaged"),
    ClusteredNB(inference="exact"),
    ClusteredNB(**GIBBS),
]
FIXED = EVERY[:3]
TASKS = ["ann", "bob", "eve", "kim"]
RNG = np.random.default_rng(4)
TASK = np.repeat(TASKS, 25)
LABEL = RNG.choice(["maybe", "no", "yes"], 100)
# Ann and bob are kin, eve and kim are: yes goes with red for the one pair, with blue for the other.
TURNED = np.isin(TASK, ["eve", "kim"])
RED = RNG.random(100) < np.where((LABEL == "yes") ^ TURNED, 0.9, 0.15)
X = pd.DataFrame(
    {
        "colour": np.where(RED, "red", np.where(RNG.random(100) < 0.5, "blue", "green")),
        "size": RNG.normal((LABEL == "no") * 1.5, 1.0),
        "flag": [
            None if gone else flag for flag, gone in zip(RNG.random(100) < 0.4, RNG.random(100) < 0.2, strict=True)
        ],
    }
)
ASKED = X.iloc[::7].reset_index(drop=True)
ASKED_TASK = np.append(TASK[::7][:-2], ["somebody new"] * 2)


@pytest.fixture(params=EVERY, ids=repr)
def model(request):
    return clone(request.param).fit(X, LABEL, task=TASK)


def probabilities(table, *by):
    """A table's probabilities by the values of some of its columns."""
    return dict(zip(zip(*(table[name] for name in by), strict=True), table["probability"], strict=True))


@pytest.mark.parametrize("unfitted", EVERY, ids=repr)
@pytest.mark.parametrize("temper", [1.0, 0.4])
def test_the_parts_of_an_explanation_add_up_to_the_models_log_odds(unfitted, temper):
    model = clone(unfitted).set_params(temper=temper).fit(X, LABEL, task=TASK)
    explained = model.explain(ASKED, task=ASKED_TASK)
    log_p = model.predict_log_proba(ASKED, task=ASKED_TASK)
    total = explained.label_part + explained.feature_part.sum(axis=1) + explained.remainder
    classes = model.classes_.tolist()
    for y, label in enumerate(classes):
        for other, against in enumerate(classes):
            expected = log_p[:, y] - log_p[:, other]
            np.testing.assert_allclose(total[:, y] - total[:, other], expected, atol=1e-10)
            np.testing.assert_allclose(explained.log_odds(label, against), expected, atol=1e-10)
    # What remains is small: each of these tasks is all but certain to be in one cluster, a new one in either.
    remains = np.ptp(explained.remainder, axis=1)
    assert remains[:-2].max() < 0.01
    assert remains[-2:].max() < 0.6
    assert np.ptp(explained.feature_part, axis=2).max() > 0.7


@pytest.mark.parametrize("model", FIXED, ids=repr)
@pytest.mark.parametrize("temper", [1.0, 0.4])
def test_where_one_block_is_certain_nothing_remains_to_be_explained(model, temper):
    model = clone(model).set_params(temper=temper).fit(X, LABEL, task=TASK)
    explained = model.explain(ASKED, task=ASKED_TASK)
    np.testing.assert_allclose(np.ptp(explained.remainder, axis=1), 0.0, atol=1e-10)


def by_hand(problem, partition, u):
    """Posterior means φ_y and θ_{y,f,x} of task u in a partition, from counts in plain loops."""
    in_cluster = np.isin(problem.task, [v for v in range(problem.n_tasks) if partition[v] == partition[u]])
    phi = problem.alpha + np.bincount(problem.labels[problem.task == u], minlength=problem.n_labels)
    theta = []
    for y in range(problem.n_labels):
        rows = problem.codes[in_cluster & (problem.labels == y)]
        of_label = []
        for f, n_values in enumerate(problem.n_values):
            counts = problem.beta[y][f] + np.bincount(rows[rows[:, f] >= 0, f], minlength=n_values)
            of_label.append(counts / counts.sum())
        theta.append(of_label)
    return phi / phi.sum(), theta


PROBLEMS = random_problems(4, seed=11, n_tasks=3, n_rows=12, missing=0.1) + random_problems(
    2, seed=12, n_tasks=4, n_rows=14, n_labels=3
)
PARTLY_LABELLED = random_problems(3, seed=13, n_tasks=3, n_rows=12, missing=0.1, unlabelled=0.25)


@pytest.mark.parametrize("problem", PROBLEMS + PARTLY_LABELLED)
@pytest.mark.parametrize("predictive", ["full", "averaged"])
def test_contributions_are_log_rates_averaged_over_all_that_is_unknown_given_the_row(problem, predictive):
    model = ClusteredNB(
        inference="exact", concentration=problem.concentration, predictive=predictive, **priors(problem)
    ).fit(**as_arguments(problem))
    x, u = np.array([1, 0]), 1
    explained = model.explain(as_rows(x[None]), task=[u])
    log_weights, label_part, feature_part = [], [], []
    for z, labels in product(oracle.partitions(problem.n_tasks), oracle.labellings(problem)):
        phi, theta = by_hand(replace(problem, labels=labels), z, u)
        log_theta = np.log([[theta[y][f][x[f]] for y in range(problem.n_labels)] for f in range(2)])
        row = (phi * np.exp(log_theta.sum(axis=0))).sum() if predictive == "full" else 1.0
        log_weights.append(oracle.log_joint(problem, z, labels) + np.log(row))
        label_part.append(np.log(phi))
        feature_part.append(log_theta)
    weights = softmax(log_weights)
    np.testing.assert_allclose(explained.label_part[0], np.average(label_part, axis=0, weights=weights), atol=1e-10)
    np.testing.assert_allclose(explained.feature_part[0], np.average(feature_part, axis=0, weights=weights), atol=1e-10)


def test_a_missing_or_unknown_value_adds_nothing():
    rows = pd.DataFrame({"colour": [None, "mauve"], "size": [0.1, np.nan], "flag": [True, None]})
    explained = NoSharingNB().fit(X, LABEL, task=TASK).explain(rows, task=["ann", "ann"])
    assert (explained.feature_part[0, 0] == 0).all()
    assert (explained.feature_part[1] == 0).all()
    assert (explained.feature_part[0, 1:] != 0).all()
    assert explained.values[0][0] == explained.values[1][0] == "(unknown)"
    assert explained.values[0][2] == "True"


def test_sources_are_shares_that_add_up_to_one(model):
    explained = model.explain(ASKED, task=ASKED_TASK)
    shares = np.array([explained.own, explained.kin, explained.everybody, explained.prior])
    assert shares.shape == (4, len(ASKED), 3)
    assert (shares >= -1e-12).all()
    np.testing.assert_allclose(shares.sum(axis=0), 1.0, atol=1e-12)
    assert (explained.prior > 0).all()
    assert (explained.own[-2:] == 0).all(), "a new task has no data of its own"


def counts_behind_features(rows):
    """How many rows of each label have each feature present (features, labels)."""
    present = X.notna().to_numpy()
    classes = np.unique(LABEL)
    return np.array([[np.sum(rows & present[:, f] & (label == LABEL)) for label in classes] for f in range(3)])


@pytest.mark.parametrize("model", [NoSharingNB(**PLAIN), CompleteSharingNB(share_labels=False, **PLAIN)], ids=repr)
def test_sources_are_the_counts_behind_the_rates_weighed_by_the_labels_probability(model):
    model = clone(model).fit(X, LABEL, task=TASK)
    explained = model.explain(ASKED, task=["bob"] * len(ASKED))
    proba = model.predict_proba(ASKED, task=["bob"] * len(ASKED))
    own = counts_behind_features(TASK == "bob")
    behind = own if isinstance(model, NoSharingNB) else counts_behind_features(np.ones(100, dtype=bool))
    pseudo = np.array([[3], [8], [2]])
    np.testing.assert_allclose(explained.own, proba @ (own / (behind + pseudo)).T, atol=1e-12)
    np.testing.assert_allclose(explained.everybody, proba @ ((behind - own) / (behind + pseudo)).T, atol=1e-12)
    np.testing.assert_allclose(explained.prior, proba @ (pseudo / (behind + pseudo)).T, atol=1e-12)
    assert (explained.kin == 0).all()


def two_pairs(n=60):
    """Two pairs of tasks whose labels and colours go together in opposite ways, beyond doubt."""
    rows = pd.DataFrame({"colour": ["red", "blue"] * (2 * n)})
    return rows, ["yes", "no"] * n + ["no", "yes"] * n, np.repeat(TASKS, n)


@pytest.mark.parametrize("options", [{}, {"inference": "exact"}, GIBBS], ids=str)
def test_kin_are_the_other_tasks_of_the_cluster(options):
    rows, y, task = two_pairs()
    model = ClusteredNB(concentration=1e-8, **options).fit(rows, y, task=task)
    assert model.partition_.tolist() == [0, 0, 1, 1]
    explained = model.explain(rows[:1], task=["ann"])
    # Of the 60 red or blue rows of either label in the cluster 30 are ann's own; the prior adds two.
    np.testing.assert_allclose(
        [explained.own[0, 0], explained.kin[0, 0], explained.everybody[0, 0], explained.prior[0, 0]],
        [30 / 62, 30 / 62, 0.0, 2 / 62],
        atol=1e-6,
    )


def test_one_task_alone_has_no_kin_and_nobody_else(model):
    explained = clone(model).fit(X, LABEL).explain(ASKED)
    assert (explained.kin == 0).all()
    assert (explained.everybody == 0).all()


@pytest.mark.parametrize(
    ("model", "task"),
    [(NoSharingNB(n_chains=1, n_burn_in=2, n_draws=3, random_state=0), TASK), (ClusteredNB(**GIBBS), None)],
    ids=["no sharing", "one task"],
)
def test_a_tasks_own_unlabelled_rows_are_its_own(model, task):
    y = np.where(np.arange(100) % 5 == 0, None, LABEL)
    explained = model.fit(X, y, task=task).explain(X, task=task)
    assert (explained.kin == 0).all()
    assert (explained.everybody == 0).all()


def test_the_table_has_the_weightiest_feature_first_for_any_two_labels():
    model = NoSharingNB().fit(X, LABEL, task=TASK)
    explained = model.explain(X, task=TASK)
    classes = model.classes_.tolist()
    probable = [[classes[y] for y in order] for order in np.argsort(-model.predict_proba(X, task=TASK), axis=1)]
    for row, label, against in [(0, None, None), (31, "no", None), (77, "maybe", "no"), (5, None, "maybe")]:
        table = explained.table(row, label, against)
        label = label or next(name for name in probable[row] if name != against)
        against = against or next(name for name in probable[row] if name != label)
        assert set(table["label"]) == {label}
        assert set(table["against"]) == {against}
        y, other = classes.index(label), classes.index(against)
        expected = explained.feature_part[row, :, y] - explained.feature_part[row, :, other]
        order = sorted(range(3), key=lambda f: -abs(expected[f]))
        assert table["feature"].tolist() == [*(list(X)[f] for f in order), "(label rates)", "(rest)", "(total)"]
        assert table["log_odds"].tolist()[:3] == [expected[f] for f in order]
        for name in ("own", "kin", "everybody", "prior"):
            assert table[name].tolist()[:3] == [getattr(explained, name)[row, f] for f in order]
            assert table[name].isna().tolist() == [False] * 3 + [True] * 3
    row = explained.table(0)
    assert row["value"][row["feature"].tolist().index("colour")] == X["colour"][0]


@pytest.mark.parametrize(
    "model", [ClusteredNB(**GIBBS), ClusteredNB(), PrototypeNB(n_draws=20, random_state=0)], ids=repr
)
def test_all_parts_of_a_table_add_up_to_the_log_odds_of_the_prediction(model):
    model.fit(X, LABEL, task=TASK)
    tables = model.explain(X, task=TASK).table()
    assert tables["row"].unique().tolist() == list(range(len(X)))
    predicted, log_proba = model.predict(X, task=TASK), np.sort(model.predict_log_proba(X, task=TASK), axis=1)
    for row, table in tables.groupby("row"):
        *parts, total = table["log_odds"].tolist()
        assert sum(parts) == pytest.approx(total, abs=1e-12)
        assert total == pytest.approx(log_proba[row, -1] - log_proba[row, -2], abs=1e-9)
        assert set(table["label"]) == {predicted[row]}


def test_the_label_rates_are_the_main_reason_where_they_are():
    """Features that tell nothing: a table without the label rates would have nothing to say."""
    y = np.where(np.arange(100) < 95, "yes", "no")
    why = NoSharingNB(label_prior=1.0).fit(np.tile([["a"], ["b"]], (50, 1)), y).explain([["a"]])
    feature, of_labels, rest, total = why.table()["log_odds"].to_list()
    assert abs(feature) < 0.5
    assert of_labels == pytest.approx(np.log(96 / 6))
    assert total == pytest.approx(feature + of_labels + rest)
    assert repr(why) == f"<Explanation of 1 row: log odds 'yes' against 'no' {total:+.2f}; table() has the parts>"


def test_an_explanation_names_the_bin_that_a_number_fell_into():
    model = NoSharingNB(bins={"size": [0.0, 1.0]}).fit(X, LABEL, task=TASK)
    rows = X.iloc[:3].assign(size=[-0.5, 0.5, 1.5])
    values = [row[1] for row in model.explain(rows, task=TASK[:3]).values]
    assert values == ["up to 0", "0 to 1", "over 1"]


@pytest.mark.parametrize("labels", [("perhaps", None), ("yes", "perhaps")])
def test_a_label_that_does_not_exist_is_refused_by_name(labels):
    model = NoSharingNB().fit(X, LABEL, task=TASK)
    explained = model.explain(ASKED, task=ASKED_TASK)
    for ask in (
        lambda: explained.table(0, *labels),
        lambda: explained.log_odds(*labels),
        lambda: model.log_ratios(*labels),
    ):
        with pytest.raises(ValueError, match=r"^'perhaps' is not a label; the labels are \['maybe', 'no', 'yes'\]$"):
            ask()


@pytest.mark.parametrize("estimate", ["mean", "map", "ml"])
@pytest.mark.parametrize("by", ["cluster", "task"])
def test_rates_add_up_to_one(model, by, estimate):
    rates = model.feature_rates(by=by, estimate=estimate)
    totals = rates.groupby([by, "label", "feature"])["probability"].sum(min_count=1).dropna()
    np.testing.assert_allclose(totals, 1.0, atol=1e-12)
    assert len(totals) > 0
    assert rates[by].unique().tolist() == (TASKS if by == "task" else list(range(model.partition_.max() + 1)))
    labels = model.label_rates(estimate)
    np.testing.assert_allclose(labels.groupby("task")["probability"].sum(), 1.0, atol=1e-12)
    assert labels["task"].unique().tolist() == TASKS


SMALL = pd.DataFrame({"colour": pd.Categorical(list("rrrbrb"), categories=list("rbg"))})
SMALL_LABEL, SMALL_TASK = ["no", "no", "no", "no", "yes", "no"], ["u", "u", "u", "u", "u", "v"]


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        # Counts (3, 1, 0) of no and (1, 0, 0) of yes; Dirichlet(2, 2, 2): means (n + 2) / (N + 6).
        ("mean", [5 / 10, 3 / 10, 2 / 10, 3 / 7, 2 / 7, 2 / 7]),
        # Modes (n + 1) / (N + 3).
        ("map", [4 / 7, 2 / 7, 1 / 7, 2 / 4, 1 / 4, 1 / 4]),
        ("ml", [3 / 4, 1 / 4, 0, 1, 0, 0]),
    ],
)
def test_feature_rates_have_their_closed_forms(estimate, expected):
    model = NoSharingNB(feature_prior=2.0).fit(SMALL, SMALL_LABEL, task=SMALL_TASK)
    for by, owner in (("cluster", 0), ("task", "u")):
        rates = model.feature_rates(by=by, estimate=estimate)
        rates = rates[rates[by] == owner]
        assert rates["probability"].tolist() == pytest.approx(expected)
        assert rates["label"].tolist() == ["no"] * 3 + ["yes"] * 3
        assert rates["feature"].tolist() == ["colour"] * 6
        assert rates["value"].tolist() == list("rbg") * 2


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        # Counts (4, 1) and (1, 0) of no and yes; Dirichlet(2, 3).
        ("mean", [6 / 10, 4 / 10, 3 / 6, 3 / 6]),
        ("map", [5 / 8, 3 / 8, 2 / 4, 2 / 4]),
        ("ml", [4 / 5, 1 / 5, 1, 0]),
    ],
)
@pytest.mark.parametrize("model", [NoSharingNB(), ClusteredNB(), ClusteredNB(inference="exact")], ids=repr)
def test_label_rates_have_their_closed_forms(model, estimate, expected):
    model = clone(model).set_params(label_prior=[2, 3]).fit(SMALL, SMALL_LABEL, task=SMALL_TASK)
    rates = model.label_rates(estimate)
    assert rates["probability"].tolist() == pytest.approx(expected)
    assert rates["task"].tolist() == ["u", "u", "v", "v"]
    assert rates["label"].tolist() == ["no", "yes"] * 2


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        # Counts (5, 1) of no and yes; Dirichlet(2, 2).
        ("mean", [7 / 10, 3 / 10]),
        ("map", [6 / 8, 2 / 8]),
        ("ml", [5 / 6, 1 / 6]),
    ],
)
def test_label_rates_of_complete_sharing_are_those_of_all_rows(estimate, expected):
    rates = CompleteSharingNB(label_prior=2.0).fit(SMALL, SMALL_LABEL, task=SMALL_TASK).label_rates(estimate)
    assert rates["probability"].tolist() == pytest.approx(expected * 2)


def test_a_mode_that_does_not_exist_gives_way_to_the_mean():
    model = NoSharingNB(feature_prior=0.5).fit(SMALL, SMALL_LABEL, task=SMALL_TASK)
    rates = model.feature_rates(by="task", estimate="map")
    # Task v has no row of label yes: with pseudo-counts below one the density is highest in every corner.
    none_seen = rates[(rates["task"] == "v") & (rates["label"] == "yes")]
    assert none_seen["probability"].tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_maximum_likelihood_is_null_where_there_is_no_data(library):
    rows = SMALL.astype(str) if library == "pandas" else pl.DataFrame({"colour": list("rrrbrb")})
    model = NoSharingNB().fit(rows, SMALL_LABEL, task=SMALL_TASK)
    rates = model.feature_rates(by="task", estimate="ml")
    missing = rates["probability"].isna() if library == "pandas" else rates["probability"].is_null()
    assert missing.to_list() == [False] * 4 + [False] * 2 + [True] * 2


def test_a_task_without_labelled_rows_has_no_maximum_likelihood():
    model = ClusteredNB(inference="exact").fit(SMALL, [*SMALL_LABEL[:5], None], task=SMALL_TASK)
    assert model.label_rates("ml")["probability"].isna().tolist() == [False, False, True, True]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_tasks_mean_rates_are_averaged_over_all_partitions(problem):
    model = ClusteredNB(inference="exact", concentration=problem.concentration, **priors(problem))
    model.fit(**as_arguments(problem))
    found = probabilities(model.feature_rates(by="task"), "task", "label", "feature", "value")
    posterior = oracle.partition_posterior(problem)
    for u in range(problem.n_tasks):
        thetas = [by_hand(problem, z, u)[1] for z in posterior]
        for y in range(problem.n_labels):
            for f, n_values in enumerate(problem.n_values):
                mean = np.average([theta[y][f] for theta in thetas], axis=0, weights=list(posterior.values()))
                for x in range(n_values):
                    assert found[u, f"y{y}", f"f{f}", f"v{x}"] == pytest.approx(mean[x], abs=1e-10)


def test_rates_of_clusters_pool_the_rows_of_their_tasks():
    rows, y, task = two_pairs()
    model = ClusteredNB().fit(rows, y, task=task)
    rates = probabilities(model.feature_rates(), "cluster", "label", "value")
    assert rates[0, "yes", "red"] == pytest.approx(61 / 62)
    assert rates[1, "yes", "red"] == pytest.approx(1 / 62)
    ml = probabilities(model.feature_rates(by="task", estimate="ml"), "task", "label", "value")
    assert ml["bob", "yes", "red"] == 1.0
    assert ml["kim", "yes", "red"] == 0.0


@pytest.mark.parametrize(("label", "against"), [("yes", "no"), ("no", "yes"), ("maybe", "yes"), (None, None)])
@pytest.mark.parametrize("estimate", ["mean", "map"])
@pytest.mark.parametrize("by", ["cluster", "task"])
def test_log_ratios_compare_the_rates_of_two_labels(by, estimate, label, against):
    model = ClusteredNB(feature_prior=2.0).fit(X, LABEL, task=TASK)
    rates = probabilities(model.feature_rates(by=by, estimate=estimate), by, "label", "feature", "value")
    ratios = model.log_ratios(label, against, by=by, estimate=estimate)
    assert list(ratios) == [by, "feature", "value", "log_ratio"]
    for owner, feature, value, ratio in ratios.itertuples(index=False):
        expected = np.log(
            rates[owner, label or "yes", feature, value] / rates[owner, against or "maybe", feature, value]
        )
        assert ratio == pytest.approx(expected, abs=1e-10)


def test_log_ratios_of_the_first_label_are_against_the_last():
    model = NoSharingNB().fit(X, LABEL, task=TASK)
    expected = [-ratio for ratio in model.log_ratios("yes", "maybe", estimate="mean")["log_ratio"]]
    assert model.log_ratios("maybe", estimate="mean")["log_ratio"].tolist() == pytest.approx(expected)


def test_log_ratios_are_null_where_a_rate_is_zero_or_unknown():
    model = NoSharingNB().fit(SMALL, SMALL_LABEL, task=SMALL_TASK)
    ratios = model.log_ratios(by="task", estimate="ml")
    assert ratios["log_ratio"][0] == pytest.approx(np.log(1 / (3 / 4)))
    assert ratios["log_ratio"].isna().tolist() == [False, True, True] + [True] * 3


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.label_rates("median"), 'estimate=\'median\': give "mean", "map" or "ml"'),
        (lambda model: model.feature_rates(estimate="median"), 'estimate=\'median\': give "mean", "map" or "ml"'),
        (lambda model: model.feature_rates(by="row"), 'by=\'row\': give "cluster" or "task"'),
        (lambda model: model.similarity(["ann", "zoe"]), "'zoe'.* was not in the training data"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused_in_a_sentence(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(NoSharingNB().fit(X, LABEL, task=TASK))


def test_similarity_is_symmetric_with_ones_on_the_diagonal(model):
    similarity = model.similarity_
    assert similarity.shape == (4, 4)
    np.testing.assert_array_equal(np.diag(similarity), 1.0)
    np.testing.assert_allclose(similarity, similarity.T, atol=1e-12)
    assert ((similarity >= 0) & (similarity <= 1)).all()


def test_similarity_of_some_tasks_is_that_part_of_the_matrix(model):
    asked = ["kim", "ann", "eve"]
    place = [model.tasks_.tolist().index(task) for task in asked]
    np.testing.assert_allclose(model.similarity(asked), model.similarity_[np.ix_(place, place)], atol=1e-14)


def test_a_task_that_is_in_several_blocks_is_with_itself_all_the_same():
    rng = np.random.default_rng(0)
    X, y, task = rng.integers(0, 2, (24, 3)).astype(str), rng.integers(0, 2, 24), np.repeat(list("abcdef"), 4)
    model = ClusteredNB(inference="variational", random_state=0).fit(X, y, task=task)
    assert 0.9 < model.similarity_[0, 1] < 0.999
    np.testing.assert_array_equal(np.diag(model.similarity_), 1.0)
    twice = model.similarity(["a", "b", "a"])
    np.testing.assert_allclose(twice, model.similarity_[np.ix_([0, 1, 0], [0, 1, 0])])


def test_similarity_follows_the_order_of_tasks():
    rows, y, task = two_pairs()
    renamed = pd.Series(task).map({"ann": 9, "bob": 2, "eve": 5, "kim": 1}).to_numpy()
    model = ClusteredNB(concentration=1e-8).fit(rows, y, task=renamed)
    assert model.tasks_.tolist() == [1, 2, 5, 9]
    # 2 and 9 are ann and bob, 1 and 5 eve and kim.
    expected = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    np.testing.assert_allclose(model.similarity_, expected, atol=1e-6)
    assert model.partition_.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("model", FIXED, ids=repr)
def test_similarity_of_a_given_partition_is_zero_or_one(model):
    model = clone(model).fit(X, LABEL, task=TASK)
    expected = np.eye(4) if isinstance(model, NoSharingNB) else np.ones((4, 4))
    np.testing.assert_array_equal(model.similarity_, expected)
    np.testing.assert_array_equal(model.partition_, np.arange(4) if isinstance(model, NoSharingNB) else np.zeros(4))


def test_similarity_of_more_than_5000_tasks_is_given_in_parts_only():
    n_tasks = 5_001
    model = NoSharingNB().fit(np.arange(n_tasks)[:, None] % 2, np.arange(n_tasks) % 2, task=np.arange(n_tasks))
    with pytest.raises(ValueError, match=r"5,001 tasks .* ask for some of them with similarity\(tasks\)$"):
        model.similarity_  # noqa: B018 - computed on access
    np.testing.assert_array_equal(model.similarity([5_000, 17, 0]), np.eye(3))


def test_similarity_takes_tasks_of_mixed_types():
    model = CompleteSharingNB().fit([["p"], ["q"]], [0, 1], task=["ann", 1])
    np.testing.assert_array_equal(model.similarity(["ann", 1]), np.ones((2, 2)))


@pytest.mark.parametrize(("y", "task"), [([0, 1], ["ann", 1]), (["no", 1], [0, 0])], ids=["tasks", "labels"])
def test_tables_hold_tasks_and_labels_of_mixed_types(y, task):
    model = NoSharingNB().fit([["p"], ["q"]], y, task=task)
    rates = model.label_rates()
    assert len(rates) == len(model.tasks_) * 2
    assert {str(v) for v in rates["task"]} == {str(v) for v in task}
    assert {str(v) for v in rates["label"]} == {str(v) for v in y}
    model.feature_rates(by="task")
    model.log_ratios(by="task")


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.label_rates(),
        lambda model: model.feature_rates(),
        lambda model: model.log_ratios(),
        lambda model: model.similarity(["ann"]),
        lambda model: model.similarity_,
        lambda model: model.partition_,
        lambda model: model.log_evidence_,
        lambda model: model.tree_,
    ],
    ids=["label_rates", "feature_rates", "log_ratios", "similarity", "similarity_", "partition_", "evidence", "tree_"],
)
def test_asking_an_unfitted_model_what_it_found_says_that_it_is_not_fitted(ask):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(ClusteredNB())


def test_an_unfitted_model_has_no_findings_to_look_for():
    assert not any(hasattr(ClusteredNB(), name) for name in ("partition_", "similarity_", "log_evidence_", "tree_"))


def test_a_tree_comes_with_hierarchical_clustering_only():
    model = ClusteredNB(inference="exact").fit(X, LABEL, task=TASK)
    with pytest.raises(AttributeError, match='tree_ comes with inference="bhc"'):
        model.tree_  # noqa: B018 - computed on access
    assert ClusteredNB().fit(X, LABEL, task=TASK).tree_.n_tasks == 4
