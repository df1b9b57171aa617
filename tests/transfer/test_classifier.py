"""TransferClassifier: it equals a member that is alone, believes what predicts, and answers for every table."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone

import kinfolk
from kinfolk import (
    AveragedNB,
    ClusteredClassifier,
    ClusteredNB,
    HierarchicalClassifier,
    LICAClassifier,
    NoSharingNB,
    TransferClassifier,
    TransferRegressor,
)
from kinfolk.lica.inference import infer
from kinfolk.tasks.design import learn_design
from kinfolk.tasks.table import read_table
from kinfolk.transfer import held_out
from kinfolk.transfer.held_out import HeldOut, ruled_out


def any_table(seed, n_tasks=12, n_rows=20):
    """Text, whole numbers, numbers and truth values, with gaps; tasks differ in their rates and in one weight."""
    rng = np.random.default_rng(seed)
    n = n_tasks * n_rows
    task = np.repeat([f"t{k}" for k in range(n_tasks)], n_rows)
    rate, weight = rng.normal(size=n_tasks).repeat(n_rows), rng.normal(1.0, 0.7, n_tasks).repeat(n_rows)
    size, colour, count = rng.normal(size=n), rng.choice(["red", "blue", "grey"], n), rng.integers(0, 5, n)
    odds = rate + weight * size + (colour == "red") * 1.5 * np.sign(size) + 0.2 * count
    y = np.where(rng.random(n) < expit(odds), "yes", "no")
    gone = rng.random(n) < 0.1
    X = pd.DataFrame(
        {
            "size": np.where(gone, np.nan, size),
            "colour": np.where(rng.random(n) < 0.1, None, colour),
            "count": count,
            "odd": count % 2 == 1,
        }
    )
    return X, y, task


@pytest.fixture(scope="module")
def data():
    return any_table(0)


@pytest.fixture(scope="module")
def model(data):
    X, y, task = data
    return TransferClassifier(random_state=0).fit(X, y, task=task)


@pytest.mark.parametrize(
    ("name", "alone"),
    [
        ("no sharing", NoSharingNB(random_state=0)),
        ("clustered", ClusteredNB(random_state=0)),
        ("partly pooled", HierarchicalClassifier()),
    ],
)
def test_where_all_members_but_one_are_excluded_the_average_is_that_model(name, alone, data):
    X, y, task = data
    alone = clone(alone).fit(X, y, task=task)
    average = TransferClassifier([name], random_state=0).fit(X, y, task=task)
    assert list(average.weights_.values()) == [1.0]
    assert np.allclose(average.predict_proba(X, task=task), alone.predict_proba(X, task=task), atol=1e-12)


def test_where_all_members_but_one_are_excluded_the_average_is_that_linear_model_on_a_design_matrix(data):
    X, y, task = data
    average = TransferClassifier({"it": LICAClassifier(2, random_state=0)}, random_state=0).fit(X, y, task=task)
    design = learn_design(read_table(X))
    matrix = design.encode(read_table(X))
    alone = LICAClassifier(2, random_state=0).fit(matrix, y, task=task)
    assert np.allclose(average.predict_proba(X, task=task), alone.predict_proba(matrix, task=task), atol=1e-10)


def test_clusters_of_linear_models_are_those_of_the_average(tmp_path):
    rng = np.random.default_rng(5)
    X, task = rng.normal(size=(240, 2)), np.repeat(["a", "b", "c", "d"], 60)
    y = np.where(np.repeat([2.0, 2.0, -2.0, -2.0], 60) * X[:, 0] + rng.logistic(size=240) > 0, "yes", "no")
    own = ClusteredClassifier(n_chains=1, random_state=0)
    model = TransferClassifier({"kin": own}, random_state=0).fit(X, y, task=task)
    assert model.partition_.tolist() == [0, 0, 1, 1]
    assert model.similarity(["a", "d"]).shape == (2, 2)
    kinfolk.save(model, tmp_path / "model.kin")
    assert kinfolk.load(tmp_path / "model.kin", estimator=True).partition_.tolist() == [0, 0, 1, 1]


def test_of_naive_bayes_alone_and_of_one_size_it_is_close_to_the_average_of_naive_bayes(data):
    X, y, task = data
    names = ["no sharing", "complete sharing", "prototype", "clustered"]
    found = TransferClassifier(names, random_state=0).fit(X, y, task=task).predict_proba(X, task=task)
    assert np.abs(found - AveragedNB(random_state=0).fit(X, y, task=task).predict_proba(X, task=task)).max() < 0.1


def test_the_average_is_the_members_averaged_by_the_weights_of_a_tasks_size(data, model):
    X, _, task = data
    weights = model.weights_by_rows_
    of_size = weights[weights["rows"] == weights["rows"].max()].set_index("member")["weight"]
    answers = [member.answers() for member in model._average.members.values()]
    asked = kinfolk.tasks.answering.receive_rows(X, model._average.known, task=task)
    parts = [np.exp(each.log_predictive(each.code(asked))) for each in answers]
    expected = sum(of_size[name] * part for name, part in zip(model.members_, parts, strict=True))
    assert np.allclose(model.predict_proba(X, task=task), expected)


def test_interactions_are_believed_where_no_sum_of_features_predicts():
    rng = np.random.default_rng(1)
    X, task = rng.normal(size=(1500, 4)), np.arange(1500) % 30
    y = (rng.random(1500) < expit(3.0 * X[:, 0] * X[:, 1])).astype(int)
    model = TransferClassifier(random_state=0).fit(X, y, task=task)
    assert model.weights_["interactions"] > 0.8


def test_large_tasks_may_stand_by_themselves_while_small_ones_do_not():
    rng = np.random.default_rng(2)
    n_rows = np.repeat([3, 300], [100, 12])
    task = np.repeat(np.arange(112), n_rows)
    # Tasks have rates of their own, near the others': it takes many rows to know them better than all rows do.
    rates = np.clip(rng.normal([[0.2], [0.8]], 0.15, size=(112, 2, 5)), 0.02, 0.98)
    y = rng.integers(0, 2, len(task))
    X = (rng.random((len(task), 5)) < rates[task, y]).astype(str)
    members = ["no sharing", "complete sharing"]
    weights = TransferClassifier(members, random_state=0).fit(X, y, task=task).weights_by_rows_
    own = {row["rows"]: row["weight"] for row in weights.to_dicts() if row["member"] == "no sharing"}
    assert own[max(own)] > 0.9
    assert own[min(size for size in own if size > 0)] < own[max(own)] - 0.1


def test_a_model_that_the_others_would_only_lose_by_is_ruled_out_and_one_that_helps_is_not():
    rng = np.random.default_rng(3)
    truth = rng.uniform(0.05, 0.95, 4000)
    label = rng.random(4000) < truth
    given = np.array([truth, np.full(4000, 0.5), rng.permutation(truth) ** 4])
    log_p = np.log(np.where(label, given, 1.0 - given)).T
    said = HeldOut(log_p, np.ones(4000), np.full(4000, 8.0))
    assert ruled_out(said, np.full(3, 1 / 3)).tolist() == [False, True, True]


@pytest.mark.parametrize(("enough", "rows"), [(10, 12), (8, 8), (3, 4), (1_000, 20)])
def test_parts_are_held_out_until_enough_rows_are_known(monkeypatch, enough, rows):
    monkeypatch.setattr(held_out, "_ENOUGH_ROWS", enough)
    part = HeldOut(np.log(np.full((4, 2), 0.5)), np.ones(4), np.full(4, 8.0))
    asked, side_by_side = [], []

    def hold_out(members, _, n_jobs):
        asked.append(members)
        side_by_side.append(n_jobs)
        return part, [f"{name}, knowing" for name in members]

    kept, still, found = held_out.in_rounds(["one", "two"], np.full(2, 0.5), [None] * 5, hold_out, 2)
    assert (kept.tolist(), len(found.weights)) == ([0, 1], rows)
    assert still == ["one, knowing", "two, knowing"]
    assert asked[1:] == [still] * (rows // 4 - 1)
    # Members are side by side in the first part, and after it parts are.
    assert side_by_side == [2] + [1] * (rows // 4 - 1)


@pytest.mark.parametrize("of_numbers", [False, True])
def test_where_sources_begin_is_found_out_in_the_first_round_alone(monkeypatch, data, of_numbers):
    found = []

    def counted(name):
        choose = getattr(infer, name)

        def choose_and_tell(*given, **named):
            found.append((name, choose(*given, **named)))
            return found[-1][1]

        monkeypatch.setattr(infer, name, choose_and_tell)

    counted("choose_start")
    counted("choose_residual_variance")
    X, y, task = data
    if of_numbers:
        size = X["size"].fillna(0.0)
        members = TransferRegressor(["sources", "pooled"], random_state=0).fit(X, size, task=task).members_
        assert [name for name, _ in found] == ["choose_start", "choose_residual_variance"]
    else:
        members = TransferClassifier(["sources", "no sharing"], random_state=0).fit(X, y, task=task).members_
        assert [name for name, _ in found] == ["choose_start"]
    assert members["sources"]._model.fitted.begun == tuple(each for _, each in found) + (None,) * (not of_numbers)


def test_every_row_of_an_explanation_adds_up_to_the_log_odds(data, model):
    X, _, task = data
    found = model.explain(X[:20], task=task[:20])
    log_p = np.log(model.predict_proba(X[:20], task=task[:20]))
    assert np.allclose(found.log_odds(), log_p[:, 1] - log_p[:, 0])
    table = found.table(0)
    assert table["log_odds"].iloc[:-1].sum() == pytest.approx(table["log_odds"].iloc[-1])
    assert found.feature_names[:4] == list(X.columns)
    shares = found.own + found.kin + found.everybody + found.prior
    assert np.allclose(shares, 1.0)
    assert set(found.weights) == set(model.members_)
    assert np.allclose(sum(found.weights.values()), 1.0)


def test_what_trees_see_in_several_features_is_one_line_of_the_explanation():
    rng = np.random.default_rng(4)
    X, task = rng.normal(size=(600, 3)), np.arange(600) % 12
    y = (rng.random(600) < expit(4.0 * X[:, 0] * X[:, 1])).astype(int)
    model = TransferClassifier(["complete sharing", "interactions"], random_state=0).fit(X, y, task=task)
    found = model.explain(X[:50], task=task[:50])
    assert found.feature_names == ["0", "1", "2", "interactions"]
    weightiest = np.abs(found.feature_part[..., 1] - found.feature_part[..., 0]).argmax(axis=1)
    assert (weightiest == 3).mean() > 0.8


def test_tasks_and_values_never_seen_and_missing_ones_are_answered(data, model):
    X, _, _ = data
    odd = X[:3].assign(colour=["purple", None, "red"], size=[None, 0.5, 1e6])
    found = model.predict_proba(odd, task=["nobody", "t1", "t2"])
    assert np.isfinite(found).all()
    assert np.allclose(found.sum(axis=1), 1.0)


def test_members_that_learn_from_all_rows_at_once_take_no_further_ones_and_say_so(data, model):
    X, y, task = data
    assert not hasattr(TransferClassifier(), "partial_fit")
    assert not hasattr(TransferClassifier(["clustered", "sources"]), "partial_fit")
    assert hasattr(TransferClassifier(["clustered"]), "partial_fit")
    assert hasattr(TransferClassifier({"kin": ClusteredNB()}), "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as found:
        model.partial_fit(X, y, task=task)
    assert "partly pooled" in str(found.value.__cause__)
    assert "fit it to all of them again" in str(found.value.__cause__)


def test_weights_that_depend_on_a_tasks_rows_move_with_rows_added_later():
    rng = np.random.default_rng(7)
    task = np.repeat(np.arange(40), np.repeat([4, 64], 20))
    rates = np.clip(rng.normal([[0.2], [0.8]], 0.2, size=(40, 2, 4)), 0.02, 0.98)
    y = rng.integers(0, 2, len(task))
    X = (rng.random((len(task), 4)) < rates[task, y]).astype(str)
    model = TransferClassifier(["no sharing", "complete sharing"], random_state=0).fit(X, y, task=task)
    before = model.explain(X[:1], task=[0]).weights["no sharing"]
    more = np.flatnonzero(task == 39)
    model.partial_fit(X[more], y[more], task=np.zeros(len(more), dtype=int))
    assert model.explain(X[:1], task=[0]).weights["no sharing"] > before + 0.02


def test_dates_are_refused_with_the_column(data):
    X, y, task = data
    with pytest.raises((TypeError, ValueError), match="day"):
        TransferClassifier().fit(X.assign(day=pd.Timestamp("2024-01-01")), y, task=task)


def test_a_saved_average_answers_the_same_and_is_the_same_estimator(tmp_path, data, model):
    X, _, task = data
    path = tmp_path / "model.kin"
    kinfolk.save(model, path)
    expected = model.predict_proba(X, task=task)
    assert np.array_equal(kinfolk.load(path).predict_proba(X, task=task), expected)
    again = kinfolk.load(path, estimator=True)
    assert np.array_equal(again.predict_proba(X, task=task), expected)
    assert again.weights_ == model.weights_
    parts = [each.explain(X[:5], task=task[:5]).feature_part for each in (again, model)]
    assert np.array_equal(*parts)


def test_a_saved_average_answers_with_numpy_alone(tmp_path, data, model):
    X, _, task = data
    kinfolk.save(model, tmp_path / "model.kin")
    rows = {name: X[name][:4].tolist() for name in X.columns}
    code = f"""
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("scipy", "sklearn", "numba", "pandas", "polars", "joblib"):
            raise ImportError(name)
sys.meta_path.insert(0, Refused())
from math import nan
import kinfolk
print(kinfolk.load({str(tmp_path / "model.kin")!r}).predict_proba({rows!r}, task={task[:4].tolist()!r}).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.allclose(eval(done.stdout), model.predict_proba(X[:4], task=task[:4]))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_with_a_task_column_say_what_arrays_beside_them_say(make):
    X, y, task = any_table(0, n_tasks=5, n_rows=12)
    names = ["complete sharing", "sources", "interactions"]
    plain = X.astype(object).where(X.notna(), None)
    columns = {name: plain[name].tolist() for name in plain.columns}
    table = {"who": task.tolist(), **columns}
    beside = TransferClassifier(names, random_state=0).fit(columns, y, task=task).predict_proba(columns, task=task)
    inside = TransferClassifier(names, task_column="who", random_state=0).fit(make(table), y).predict_proba(make(table))
    assert np.allclose(inside, beside)


def test_the_same_seed_gives_the_same_answers_whatever_the_number_of_jobs():
    X, y, task = any_table(0, n_tasks=5, n_rows=12)
    found = [
        TransferClassifier(random_state=0, n_jobs=n).fit(X, y, task=task).predict_proba(X, task=task) for n in (1, 2)
    ]
    assert np.array_equal(*found)


def test_a_row_of_weight_zero_is_as_if_it_had_not_come(data):
    X, y, task = data
    names, weights = ["complete sharing", "sources", "interactions"], np.ones(len(y))
    more = pd.concat([X, X[:30]], ignore_index=True)
    for name in names:
        plain = TransferClassifier([name], random_state=0).fit(X, y, task=task, sample_weight=weights)
        zero = TransferClassifier([name], random_state=0).fit(
            more, np.append(y, np.where(y[:30] == "yes", "no", "yes")), task=np.append(task, task[:30]),
            sample_weight=np.append(weights, np.zeros(30)),
        )  # fmt: skip
        assert np.allclose(plain.predict_proba(X, task=task), zero.predict_proba(X, task=task), atol=1e-8)


def test_more_than_two_labels_are_told_apart(data):
    X, y, task = data
    three = np.where(X["count"] > 3, "maybe", y)
    model = TransferClassifier(random_state=0).fit(X, three, task=task)
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    assert model.score(X, three, task=task) > 0.75


def test_one_task_and_one_label_are_answered(data):
    X, y, _ = data
    one = TransferClassifier(random_state=0).fit(X, y, task=["only"] * len(y))
    assert one.predict_proba(X[:3], task=["only"] * 3).shape == (3, 2)
    same = TransferClassifier(random_state=0).fit(X[:10], ["yes"] * 10, task=["only"] * 10)
    assert same.predict(X[:2], task=["only"] * 2).tolist() == ["yes", "yes"]


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (["kin"], "names are needed of no sharing"),
        ([], "names are needed of|empty"),
        ("clustered", "a list or a mapping"),
        ({"odd": object()}, "is a object, not a model that can be averaged"),
    ],
)
def test_members_that_are_none_are_refused(members, sentence, data):
    X, y, task = data
    with pytest.raises(ValueError, match=sentence):
        TransferClassifier(members).fit(X, y, task=task)
