"""Decisions by expected loss, against enumeration and the thresholds of Roy (2006)."""

import copy
import itertools
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import kinfolk
from kinfolk.decisions import DecisionClassifier, Loss, decide, expected_loss, realised_loss

X, Y = load_iris(return_X_y=True)
SPECIES = load_iris().target_names


def random_problem(seed, n_rows=50):
    rng = np.random.default_rng(seed)
    n_classes, n_actions = rng.integers(1, 6, size=2)
    proba = rng.dirichlet(np.ones(n_classes), size=n_rows)
    return proba, rng.normal(size=(n_classes, n_actions))


class TestDecide:
    @pytest.mark.parametrize("seed", range(20))
    def test_expected_losses_equal_the_sum_over_classes_and_the_decision_its_minimum(self, seed):
        proba, matrix = random_problem(seed)
        by_hand = [
            [sum(p * matrix[c, a] for c, p in enumerate(row)) for a in range(matrix.shape[1])] for row in proba.tolist()
        ]
        np.testing.assert_allclose(expected_loss(proba, matrix), by_hand, rtol=1e-12, atol=1e-15)
        assert decide(proba, matrix).tolist() == [row.index(min(row)) for row in by_hand]

    def test_zero_one_loss_chooses_the_most_probable_class(self):
        proba = np.random.default_rng(0).dirichlet(np.ones(7), size=500)
        names = np.array(list("abcdefg"))
        np.testing.assert_array_equal(decide(proba, Loss.zero_one(names)), names[proba.argmax(axis=1)])

    @pytest.mark.parametrize("seed", range(20))
    def test_two_classes_are_parted_at_the_threshold_of_equation_3_1(self, seed):
        true_negative, true_positive, d1, d0 = np.random.default_rng(seed).uniform(0.1, 5.0, size=4)
        loss = [[true_negative, true_negative + d1], [true_positive + d0, true_positive]]
        threshold = d1 / (d0 + d1)
        p = np.array([threshold - 1e-9, threshold, threshold + 1e-9])
        assert decide(np.column_stack([1 - p, p]), loss).tolist() == [0, 0, 1]

    @pytest.mark.parametrize("n", range(-8, 9))
    def test_the_asymmetric_loss_has_its_threshold_at_one_over_one_plus_two_to_the_n(self, n):
        threshold = 1 / (1 + 2**n)
        p = np.array([threshold * (1 - 1e-9), threshold, threshold * (1 + 1e-9)])
        proba = np.column_stack([1 - p, p])
        assert decide(proba, Loss.asymmetric(n, ["no", "yes"], positive="yes")).tolist() == ["no", "no", "yes"]
        first_is_positive = Loss.asymmetric(n, ["yes", "no"], positive="yes")
        assert decide(proba[:, ::-1], first_is_positive).tolist()[::2] == ["no", "yes"]

    def test_the_asymmetric_loss_with_n_minus_2_makes_a_false_positive_four_times_worse(self):
        loss = Loss.asymmetric(-2, ["no", "yes"], positive="yes")
        assert realised_loss(["no"], ["yes"], loss) == 4 * realised_loss(["yes"], ["no"], loss)

    def test_which_class_is_positive_need_not_be_said_where_it_makes_no_difference(self):
        assert Loss.asymmetric(0, ["accept", "reject"]) == Loss.zero_one(["accept", "reject"])
        for classes in ([0, 1], [1, 0], [-1, 1], [False, True]):
            loss = Loss.asymmetric(2, classes)
            assert realised_loss([max(classes)], [min(classes)], loss) == 4.0

    def test_a_frame_or_a_mapping_names_its_classes_and_actions(self):
        rows = [[0.0, 9.0, 1.0], [2.0, 0.0, 1.0]]
        frame = pd.DataFrame(rows, index=["no", "yes"], columns=["decline", "accept", "ask"])
        loss = Loss(frame)
        assert loss == Loss(rows, ["no", "yes"], ["decline", "accept", "ask"])
        # Rows are found by name: in another order they mean the same.
        assert decide([[0.9, 0.1]], frame[::-1], classes=["no", "yes"]).tolist() == ["decline"]
        named = {"yes": {"ask": 1, "accept": 0, "decline": 2}, "no": {"decline": 0, "accept": 9, "ask": 1}}
        assert decide([[0.4, 0.6]], Loss(named), classes=["no", "yes"]).tolist() == ["ask"]

    def test_asking_is_chosen_exactly_where_every_class_is_dearer(self):
        p = np.linspace(0, 1, 1001)
        proba = np.column_stack([1 - p, p])
        chosen = decide(proba, Loss.zero_one([0, 1]).with_ask(0.3))
        assert chosen.dtype == object
        for probability, action in zip(p, chosen, strict=True):
            if probability < 0.3 - 1e-9:
                assert action == 0
            elif probability > 0.7 + 1e-9:
                assert action == 1
            elif 0.3 + 1e-9 < probability < 0.7 - 1e-9:
                assert action == "ask"

    def test_asking_may_cost_more_under_one_class_than_another(self):
        loss = Loss.zero_one(["no", "yes"]).with_ask([0.1, 0.9], name="call")
        # With p for yes, the losses are p, 1 - p and 0.1 + 0.8 p: above both others on either side of 0.5.
        assert set(decide([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]], loss)) == {"no", "yes"}
        cheaper = Loss.zero_one(["no", "yes"]).with_ask([0.1, 0.5], name="call")
        assert decide([[0.95, 0.05], [0.6, 0.4], [0.2, 0.8]], cheaper).tolist() == ["no", "call", "yes"]

    def test_asking_at_the_price_of_the_best_class_is_left_to_the_class(self):
        assert decide([[0.7, 0.3]], Loss.zero_one(["no", "yes"]).with_ask(0.3)).tolist() == ["no"]

    def test_ties_go_to_the_first_action_even_where_rounding_hides_them(self):
        third = np.full((1, 3), 1 / 3)
        for order in itertools.permutations(range(3)):
            names = [f"class {i}" for i in order]
            assert decide(third, Loss.zero_one(names)).tolist() == names[:1]
        # In floating point 0.1 + 0.2 exceeds 0.3, so that the first action looks the dearer.
        assert 0.1 * 1 + 0.2 * 1 > 0.3
        assert decide([[0.1, 0.2, 0.7]], [[1, 0.3], [1, 0.3], [0, 0.3]]).tolist() == [0]

    def test_a_real_difference_is_not_taken_for_a_tie_beside_enormous_losses(self):
        assert decide([[1.0, 0.0]], [[1e-9, 0.0, 1e15], [1e15, 1e15, 0.0]]).tolist() == [1]

    def test_a_row_is_decided_the_same_alone_and_among_others(self):
        rng = np.random.default_rng(3)
        proba = rng.integers(0, 4, size=(300, 6)) + 0.25
        proba /= proba.sum(axis=1, keepdims=True)
        loss = rng.integers(0, 3, size=(6, 9))
        alone = np.concatenate([decide(proba[[i]], loss) for i in range(len(proba))])
        np.testing.assert_array_equal(decide(proba, loss), alone)

    def test_no_rows_give_no_decisions(self):
        assert decide(np.empty((0, 2)), [[0, 1], [1, 0]]).shape == (0,)


class TestNames:
    def test_without_names_the_decisions_are_positions(self):
        assert decide([[0.2, 0.8]], [[0, 1, 2], [2, 1, 0]]).tolist() == [2]

    def test_a_square_matrix_has_the_classes_as_actions_unless_others_are_named(self):
        proba, matrix = [[0.2, 0.8]], [[0, 1], [1, 0]]
        assert decide(proba, matrix, classes=["no", "yes"]).tolist() == ["yes"]
        assert decide(proba, matrix, classes=["no", "yes"], actions=["stay", "go"]).tolist() == ["go"]
        assert decide(proba, matrix, actions=["stay", "go"]).tolist() == ["go"]

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_a_named_loss_is_matched_to_the_columns_of_a_frame_by_name(self, frame):
        loss = Loss([[0, 1, 5], [2, 0, 5], [9, 9, 0]], classes=["b", "a", "c"], actions=["B", "A", "C"])
        proba = np.random.default_rng(1).dirichlet(np.ones(3), size=40)
        table = frame({"a": proba[:, 0], "b": proba[:, 1], "c": proba[:, 2]})
        by_position = expected_loss(proba[:, [1, 0, 2]], loss)
        np.testing.assert_allclose(expected_loss(table, loss), by_position)
        np.testing.assert_array_equal(decide(table, loss), np.array(["B", "A", "C"])[by_position.argmin(axis=1)])

    def test_a_class_of_the_loss_that_the_probabilities_lack_counts_as_impossible(self):
        loss = Loss.zero_one(["a", "b", "c"])
        np.testing.assert_allclose(expected_loss([[0.25, 0.75]], loss, classes=["c", "a"]), [[0.25, 1.0, 0.75]])

    def test_numbers_stay_numbers_beside_a_named_action(self):
        assert decide([[1, 0], [0.5, 0.5]], Loss.zero_one(np.array([3, 7])).with_ask(0.1)).tolist() == [
            3,
            "ask",
        ]

    def test_a_loss_is_a_value(self):
        loss = Loss.asymmetric(2, ["no", "yes"], positive="yes").with_ask(0.5)
        for twin in (
            Loss(loss.matrix, loss.classes, loss.actions),
            copy.deepcopy(loss),
            pickle.loads(pickle.dumps(loss)),
        ):
            assert twin == loss
            assert hash(twin) == hash(loss)
            with pytest.raises(ValueError, match="read-only"):
                twin.matrix[0, 0] = 1.0
        assert loss != Loss.asymmetric(3, ["no", "yes"], positive="yes").with_ask(0.5)
        assert loss != Loss(loss.matrix, loss.classes, ["no", "yes", "call"])


class TestRealisedLoss:
    def test_it_is_the_mean_of_the_looked_up_losses(self):
        rng = np.random.default_rng(5)
        matrix = rng.normal(size=(3, 4))
        truth, taken, weight = rng.integers(3, size=60), rng.integers(4, size=60), rng.uniform(size=60)
        looked_up = np.array([matrix[c, a] for c, a in zip(truth, taken, strict=True)])
        assert realised_loss(truth, taken, matrix) == pytest.approx(looked_up.mean())
        weighted = realised_loss(truth, taken, matrix, sample_weight=weight)
        assert weighted == pytest.approx((looked_up * weight).sum() / weight.sum())

    def test_under_zero_one_loss_it_is_one_minus_accuracy(self):
        truth, guess = SPECIES[Y], SPECIES[GaussianNB().fit(X, Y).predict(X)]
        assert realised_loss(truth, guess, Loss.zero_one(SPECIES)) == pytest.approx(1 - accuracy_score(truth, guess))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: decide([[0.5, 0.5], [0.5, np.nan]], np.eye(2)), "Row 1 of proba holds NaN in column 1;"),
        (lambda: decide([[0.5, 0.5], [0.5, 0.6]], np.eye(2)), r"Row 1 of proba sums to 1\.1;"),
        (lambda: decide([[np.inf, 0.5]], np.eye(2)), "Row 0 of proba sums to inf;"),
        (lambda: decide([[1.25, -0.25]], np.eye(2)), r"Row 0 of proba holds -0\.25 in column 1;"),
        (lambda: decide([0.5, 0.5], np.eye(2)), r"proba has shape \(2,\);"),
        (lambda: decide([["a", "b"]], np.eye(2)), "proba cannot be read as an array of numbers:"),
        (lambda: decide([[1.0, 0.0], [1.0]], np.eye(2)), "proba cannot be read as an array of numbers:"),
        (lambda: decide([[0.5, 0.5]], np.eye(3)), "proba has 2 columns but the loss has 3 rows;"),
        (
            lambda: decide([[0.5, 0.5]], np.eye(3), classes="ab"),
            "proba has 2 columns but the loss has 3 rows;",
        ),
        (
            lambda: decide([[0.5, 0.5]], np.eye(2), classes=["a"]),
            "1 classes are named, 'a', but there are 2 columns",
        ),
        (
            lambda: decide([[0.5, 0.5]], np.eye(2), actions="abc"),
            "3 actions are named, 'a', 'b', 'c', but there are 2",
        ),
        (
            lambda: decide(pd.DataFrame({"no": [0.5], "maybe": [0.5]}), Loss.zero_one(["no", "yes"])),
            "Column 1 of the probabilities is for class 'maybe', but the loss has rows only for 'no', 'yes'",
        ),
        (lambda: Loss([[0, np.nan], [1, 0]]), "The loss holds nan in row 0, column 1;"),
        (lambda: Loss([[0, 1], [np.inf, 0]]), "The loss holds inf in row 1, column 0;"),
        (lambda: Loss([0, 1]), r"The loss has shape \(2,\);"),
        (lambda: Loss.zero_one(["a", "a"]), "The name 'a' stands twice among the classes;"),
        (
            lambda: Loss.zero_one(["ask", "tell"]).with_ask(1),
            "The name 'ask' stands twice among the actions;",
        ),
        (lambda: Loss.zero_one(["a", "b"]).with_ask([1, 2, 3]), r"The cost of asking has shape \(3,\);"),
        (lambda: Loss.zero_one(["a", "b"]).with_ask(np.nan), "The loss holds nan in row 0, column 2;"),
        (lambda: Loss.asymmetric(1, ["a", "b", "c"]), "was given 3 classes;"),
        (lambda: Loss.asymmetric(np.nan), "was given n = nan;"),
        (lambda: Loss.asymmetric(1, ["accept", "reject"]), "say which is positive: positive='reject'"),
        (lambda: Loss({"no": {"no": 0, "yes": 1}, "yes": {"no": 1}}), "action 'yes' is missing for class 'yes'"),
        (lambda: Loss({"no": [0, 1]}), "The loss of class 'no' is"),
        (lambda: Loss(pd.DataFrame([[0, 1], [1, 0]]), classes=["a", "b"]), "names its own classes"),
        (lambda: Loss.asymmetric(1, ["a", "b"], positive="c"), "The positive class 'c' is not one of"),
        (
            lambda: realised_loss([0, 2], [0, 1], np.eye(2)),
            "Row 1 of y_true is 2, which the loss does not know",
        ),
        (
            lambda: realised_loss([0, 1], [0, "ask"], np.eye(2)),
            "Row 1 of actions is 'ask', which the loss does not",
        ),
        (lambda: realised_loss([0], [0, 1], np.eye(2)), "y_true has 1 rows and actions has 2;"),
        (lambda: realised_loss([], [], np.eye(2)), "y_true has 0 rows and actions has 0;"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_that_names_the_place(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


# GaussianNB itself takes the logarithm of 0 where every row of a class has weight 0, as one check has it.
@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
@parametrize_with_checks([DecisionClassifier(GaussianNB()), DecisionClassifier(LogisticRegression())])
def test_decision_classifier_keeps_the_scikit_learn_contract(estimator, check):
    check(estimator)


class PerTaskPrior(ClassifierMixin, BaseEstimator):
    """Class frequencies of each task: the smallest model that cannot do without ``task``."""

    def fit(self, X, y, *, task):
        self.classes_ = np.unique(y)
        task, y = np.asarray(task), np.asarray(y)
        self.priors_ = {t: [(y[task == t] == c).mean() for c in self.classes_] for t in np.unique(task)}
        return self

    def predict_proba(self, X, *, task):
        return np.array([self.priors_[t] for t in task])


TASK = np.array(["mild", "keen"])[np.arange(40) % 2]
ANSWER = np.where((TASK == "keen") | (np.arange(40) < 12), "yes", "no")
ROWS = np.zeros((40, 1))


class TestDecisionClassifier:
    def test_with_the_default_loss_it_predicts_as_its_classifier_does(self):
        plain, deciding = GaussianNB().fit(X, Y), DecisionClassifier(GaussianNB()).fit(X, Y)
        np.testing.assert_array_equal(deciding.predict(X), plain.predict(X))
        np.testing.assert_array_equal(deciding.predict_proba(X), plain.predict_proba(X))
        assert deciding.predict(X).dtype == Y.dtype
        assert deciding.score(X, Y) == plain.score(X, Y)

    @pytest.mark.parametrize(
        "loss",
        [
            [[0, 1, 2], [5, 0, 1], [1, 9, 0]],
            # The same, with its classes in another order and its actions in that of classes_.
            Loss([[1, 9, 0], [0, 1, 2], [5, 0, 1]], SPECIES[[2, 0, 1]], SPECIES),
            lambda classes: Loss([[0, 1, 2], [5, 0, 1], [1, 9, 0]], classes),
        ],
        ids=["array", "Loss", "callable"],
    )
    def test_every_form_of_the_loss_leads_to_the_decisions_of_decide(self, loss):
        model = DecisionClassifier(GaussianNB(), loss).fit(X, SPECIES[Y])
        losses = model.predict_proba(X) @ np.array([[0, 1, 2], [5, 0, 1], [1, 9, 0]])
        np.testing.assert_allclose(model.decision_losses(X), losses)
        np.testing.assert_array_equal(model.predict(X), SPECIES[losses.argmin(axis=1)])
        assert model.predict(X).dtype == SPECIES.dtype

    def test_it_asks_exactly_where_no_class_is_probable_enough(self):
        model = DecisionClassifier(GaussianNB(), ask_cost=0.1).fit(X, Y)
        proba = model.predict_proba(X)
        expected = [int(row.argmax()) if row.max() > 0.9 else "ask" for row in proba]
        assert 0 < expected.count("ask") < 50
        assert model.predict(X).tolist() == expected
        assert model.actions_.tolist() == [0, 1, 2, "ask"]

    def test_asking_never_counts_as_right_in_the_score(self):
        model = DecisionClassifier(GaussianNB(), ask_cost=0.1).fit(X, Y)
        chosen = model.predict(X).tolist()
        right = [a == c for a, c in zip(chosen, Y.tolist(), strict=True)]
        assert model.score(X, Y) == pytest.approx(sum(right) / len(Y))
        weight = np.arange(150.0)
        assert model.score(X, Y, sample_weight=weight) == pytest.approx(np.dot(right, weight) / weight.sum())
        # Weights are the third argument of every classifier's score; tasks go by keyword alone.
        assert model.score(X, Y, weight) == model.score(X, Y, sample_weight=weight)
        with pytest.raises(TypeError, match="positional"):
            model.score(X, Y, weight, ["a"] * len(Y))

    def test_a_fitted_model_is_used_as_it_stands(self):
        fitted = GaussianNB().fit(X, Y)
        model = DecisionClassifier(FrozenEstimator(fitted), ask_cost=0.2).fit(X[:3], Y[:3])
        np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))

    def test_cross_validated_decisions_keep_the_ask_action(self):
        model = DecisionClassifier(GaussianNB(), ask_cost=0.05)
        chosen = cross_val_predict(model, X, SPECIES[Y], cv=5)
        assert set(chosen) == {*SPECIES, "ask"}

    def test_a_grid_search_over_losses_finds_the_one_it_is_scored_by(self):
        two, true = X[50:, :1], SPECIES[Y[50:]]
        wanted = Loss.asymmetric(4, SPECIES[1:], positive=SPECIES[2])
        search = GridSearchCV(
            DecisionClassifier(GaussianNB()),
            {
                "loss": [partial(Loss.asymmetric, n, positive=SPECIES[2]) for n in (-4, 0, 4)],
                "estimator__var_smoothing": [1e-9],
            },
            scoring=make_scorer(realised_loss, greater_is_better=False, loss=wanted),
            error_score="raise",
        ).fit(two, true)
        assert search.best_estimator_.loss_ == wanted
        realised = realised_loss(true, search.predict(two), wanted)
        plain = realised_loss(true, GaussianNB().fit(two, true).predict(two), wanted)
        assert realised < plain

    def test_a_loss_survives_cloning(self):
        model = DecisionClassifier(GaussianNB(), Loss.asymmetric(2, ["a", "b"], positive="b"), ask_cost=[0.1, 0.2])
        assert clone(model).loss == model.loss

    def test_task_goes_straight_to_the_classifier_without_metadata_routing(self):
        model = DecisionClassifier(PerTaskPrior(), ask_cost=0.25).fit(ROWS, ANSWER, task=TASK)
        # Of the mild task's twenty answers six are yes (0.3, so asking is cheaper); of the keen task's, all.
        assert model.predict(ROWS[:2], task=TASK[:2]).tolist() == ["ask", "yes"]
        np.testing.assert_allclose(model.decision_losses(ROWS[:2], task=TASK[:2]), [[0.3, 0.7, 0.25], [1, 0, 0.25]])
        assert model.score(ROWS, ANSWER, task=TASK) == 0.5

    def test_task_follows_metadata_routing_where_it_is_enabled(self):
        with sklearn.config_context(enable_metadata_routing=True):
            asking = PerTaskPrior().set_fit_request(task=True).set_predict_proba_request(task=True)
            model = DecisionClassifier(asking, ask_cost=0.25).fit(ROWS, ANSWER, task=TASK)
            assert model.predict(ROWS[:2], task=TASK[:2]).tolist() == ["ask", "yes"]
            assert model.score(ROWS, ANSWER, task=TASK) == 0.5
            scores = cross_val_score(model, ROWS, ANSWER, params={"task": TASK}, cv=2)
            assert scores.shape == (2,)
            assert not np.isnan(scores).any()
            with pytest.raises(UnsetMetadataPassedError, match="task"):
                DecisionClassifier(PerTaskPrior()).fit(ROWS, ANSWER, task=TASK)

    @pytest.mark.parametrize(
        ("model", "sentence"),
        [
            (DecisionClassifier(LinearSVC()), "LinearSVC has no predict_proba;"),
            (DecisionClassifier(GaussianNB(), "hinge"), "loss is 'hinge';"),
            (
                DecisionClassifier(GaussianNB(), np.eye(2)),
                r"loss has shape \(2, 2\) but there are 3 classes;",
            ),
            (DecisionClassifier(GaussianNB(), np.ones((3, 2))), r"loss has shape \(3, 2\) but there are 3"),
            (
                DecisionClassifier(GaussianNB(), Loss.zero_one([0, 1])),
                "is for class 2, but the loss has rows only",
            ),
            (DecisionClassifier(GaussianNB(), ask_cost=[1, 2]), r"The cost of asking has shape \(2,\);"),
        ],
    )
    def test_bad_parameters_are_refused_at_fit(self, model, sentence):
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, Y)

    def test_it_does_not_predict_before_it_is_fitted(self):
        with pytest.raises(NotFittedError):
            DecisionClassifier(GaussianNB()).predict(X)


def test_deciding_imports_no_package_but_numpy():
    code = (
        "import sys; from kinfolk.decisions import Loss, decide, expected_loss, realised_loss; "
        "print({'sklearn', 'scipy', 'pandas', 'polars', 'narwhals', 'numba', 'joblib'} & sys.modules.keys())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "set()"


def test_an_unknown_name_is_an_attribute_error():
    import kinfolk.decisions

    assert set(dir(kinfolk.decisions)) == set(kinfolk.decisions.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'decree'"):
        _ = kinfolk.decisions.decree


@pytest.mark.parametrize("frozen", [False, True])
def test_a_saved_decider_decides_as_it_did(tmp_path, frozen):
    rng = np.random.default_rng(0)
    X, task = rng.integers(3, size=(60, 2)).astype(str), np.repeat(["a", "b", "c"], 20)
    y = np.where(X[:, 0] == "0", "yes", np.where(X[:, 0] == "1", "no", rng.choice(["no", "yes"], 60)))
    inner = kinfolk.ClusteredNB()
    inner = FrozenEstimator(inner.fit(X, y, task=task)) if frozen else inner
    model = DecisionClassifier(inner, partial(Loss.asymmetric, 2, positive="yes"), ask_cost=0.3)
    model = model.fit(X, y) if frozen else model.fit(X, y, task=task)
    path = tmp_path / "decider.kin"
    kinfolk.save(model, path)
    loaded, again = kinfolk.load(path), kinfolk.load(path, estimator=True)
    expected = model.predict(X, task=task)
    assert set(expected) == {"no", "yes", "ask"}
    assert repr(loaded).startswith("<DecisionClassifier: 'no', 'yes', 'ask' by what costs least; <ClusteredNB, ready")
    for one in (loaded, again):
        assert one.predict(X, task=task).tolist() == expected.tolist()
        assert one.actions_.tolist() == model.actions_.tolist()
        np.testing.assert_allclose(one.decision_losses(X, task=task), model.decision_losses(X, task=task), rtol=1e-12)
        np.testing.assert_allclose(one.predict_proba(X, task=task), model.predict_proba(X, task=task), rtol=1e-12)
    assert again.fit(X, y, task=task).predict(X, task=task).tolist() == expected.tolist()
    with pytest.warns(kinfolk.UnseenWarning):
        loaded.predict(X, task=["new"] * 60)
    kinfolk.load(path, new_tasks="expected").predict(X, task=["new"] * 60)


def test_a_decider_around_another_model_is_not_saved(tmp_path):
    model = DecisionClassifier(GaussianNB()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="the GaussianNB inside is not a kinfolk classifier that can be saved"):
        kinfolk.save(model, tmp_path / "decider.kin")
