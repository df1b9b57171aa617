"""A report tells what the model holds, and its numbers are those of rows held out."""

import json
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk.convergence import r_hat
from kinfolk.reporting import families
from kinfolk.reporting.account import account_for
from kinfolk.reporting.drawing import error_bars
from kinfolk.reporting.findings import findings_of
from tests.reporting.examples import HOSTILE, kin


@pytest.fixture(scope="module")
def team():
    X, y, task = kin(40, 6)
    model = kinfolk.ClusteredNB(random_state=0).fit(X, y, task=task)
    return model, (X, y, task)


@pytest.fixture(scope="module")
def held_out(team):
    model, (X, y, task) = team
    return model.report(data=X, y=y, task=task)


def test_the_first_screen_says_whether_sharing_helped_and_who_is_kin(held_out):
    first = held_out.html.partition('id="summary"')[2].partition("</section>")[0]
    assert "Did sharing help?" in first
    assert "Yes." in first
    assert "40 tasks fall into 2 clusters of kin" in first
    assert held_out.document["comparison"]["sharing_helps"] is True
    ways = {entry["way"] for entry in held_out.document["comparison"]["models"]}
    assert ways == {"sharing", "alone", "pooled", "task as a feature"}


def test_losses_of_tasks_are_those_of_copies_that_have_not_seen_the_rows(team, held_out):
    _, (X, y, task) = team
    own = np.zeros(len(y))
    for train, test in kinfolk.TaskKFold(5, random_state=0).split(X, y, task=task):
        fold = kinfolk.ClusteredNB(random_state=0).fit(X.iloc[train], y[train], task=task[train])
        proba = fold.predict_proba(X.iloc[test], task=task[test])
        own[test] = -np.log(proba[np.arange(len(test)), fold.classes_.searchsorted(y[test])])
    for entry in held_out.document["tasks"]:
        mine = own[task == entry["task"]]
        assert entry["loss"] == pytest.approx(mine.mean())
        assert entry["loss_error"] == pytest.approx(mine.std(ddof=1) / np.sqrt(len(mine)))


def test_shares_are_those_of_the_counts_behind_a_tasks_rates():
    X, y, task = kin(4, 100)
    model = kinfolk.ClusteredNB(random_state=0).fit(X, y, task=task)
    cluster = dict(zip(model.tasks_, model.partition_, strict=True))
    of_row = np.array([cluster[name] for name in task])
    rates = model.label_rates().set_index(["task", "label"])["probability"]
    for entry in model.report().document["tasks"]:
        shares, name = entry["rests_on"], entry["task"]
        assert sum(shares.values()) == pytest.approx(1.0)
        expected = sum(
            rates[name, label]
            * ((task == name) & (y == label)).sum()
            / ((of_row == cluster[name]) & (y == label)).sum()
            for label in ("go", "stop")
        )
        # What the prior has differs a little between labels.
        assert shares["own"] / (1.0 - shares["prior"]) == pytest.approx(expected, rel=0.02)


def test_without_rows_the_page_says_what_they_would_add(team):
    page = team[0].report()
    assert page.document["comparison"] is None
    assert "--data TABLE" in page.html
    assert "Examples of rows" not in page.html


def test_examples_can_be_turned_off(team, held_out):
    model, (X, y, task) = team
    assert "Examples of rows" in held_out.html
    assert "Examples of rows" not in model.report(data=X, y=y, task=task, examples=False).html


def test_tasks_without_kin_are_counted_apart_from_those_in_clusters():
    X, y, task = kin(5, 40)
    y = np.where(task == "task 0", np.random.default_rng(3).choice(["go", "stop"], len(y)), y)
    page = kinfolk.ClusteredNB(random_state=0, inference="exact").fit(X, y, task=task).report()
    assert [len(cluster["tasks"]) for cluster in page.document["clusters"]] == [3, 1, 1]
    assert "3 of 5 tasks fall into 1 cluster of kin; the other 2 have no kin." in page.html


def test_a_card_says_how_many_times_as_frequent_a_value_is():
    X, y, task = kin(4, 100)
    model = kinfolk.ClusteredNB(random_state=0).fit(X, y, task=task)
    rates = model.feature_rates(by="task").set_index(["task", "label", "feature", "value"])["probability"]
    for cluster, name in zip(model.partition_, model.tasks_, strict=True):
        html = model.report().html.partition(f'id="cluster-{cluster}"')[2].partition("</div>")[0]
        said = re.search(r"<li>(\w) = (\w+): ([\d.]+) times as frequent with <b>(\w+)</b> as with (\w+)</li>", html)
        feature, value, times, label, other = said.groups()
        ratio = rates[name, label, feature, value] / rates[name, other, feature, value]
        assert float(times) == pytest.approx(ratio, abs=0.051)
        assert ratio > 1


def test_labels_and_tasks_may_be_columns_of_the_table(team, held_out):
    model, (X, y, task) = team
    table = X.assign(answer=y, who=task, stray=1.0)
    found = model.report(data=table, y="answer", task="who")
    assert found.document["comparison"]["models"] == held_out.document["comparison"]["models"]
    with pytest.raises(ValueError, match="needs the task of each"):
        model.report(data=X, y=y)
    with pytest.raises(ValueError, match="needs what is to be predicted"):
        model.report(data=X, task=task)


def test_a_page_is_written_and_needs_nothing_else(team, tmp_path):
    model, _ = team
    page = model.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text == page.html
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert "url(" not in text
    assert str(tmp_path) not in text
    assert json.loads(json.dumps(page.document)) == page.document


def test_names_that_are_markup_are_shown_as_text():
    X, y, task = kin(4, name=lambda t: f"{HOSTILE}{t}")
    X = X.rename(columns={"a": '"><img src=x onerror=alert(1)>'})
    model = kinfolk.ClusteredNB(random_state=0).fit(X, y, task=task)
    html = model.report(data=X, y=y, task=task).html
    assert HOSTILE not in html
    assert "<img" not in html
    assert html.count("<script>") == 1


@pytest.mark.parametrize("n_tasks", [201, 2500])
def test_a_page_of_many_tasks_stays_small(n_tasks):
    X, y, task = kin(n_tasks, 4)
    model = kinfolk.ClusteredNB(random_state=0, inference="bhc" if n_tasks < 1000 else "randomised-bhc")
    model = model.fit(X, y, task=task)
    page = model.report()
    assert len(page.html.encode()) < 1_000_000
    assert page.html.count('<tr id="task-') == 200
    assert len(page.document["tasks"]) == n_tasks


def test_estimators_that_are_fitted_show_a_summary_in_notebooks(team):
    model, _ = team
    assert "40 tasks fall into 2 clusters" in model._repr_html_()
    assert "clusters of kin" not in kinfolk.ClusteredNB()._repr_html_()


def test_a_model_that_is_not_fitted_has_no_report():
    with pytest.raises(Exception, match="not fitted"):
        kinfolk.ClusteredNB().report()


@pytest.mark.parametrize(
    "model",
    [
        kinfolk.NoSharingNB(random_state=0),
        kinfolk.CompleteSharingNB(random_state=0),
        kinfolk.PrototypeNB(random_state=0, n_chains=2, n_burn_in=10, n_draws=10),
        kinfolk.ClusteredNB(random_state=0, inference="gibbs", n_chains=2, n_burn_in=5, n_draws=5),
        kinfolk.ClusteredNB(random_state=0, inference="variational"),
        kinfolk.ClusteredNB(random_state=0, inference="exact"),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'inference', '')}",
)
def test_every_naive_bayes_model_has_a_report_that_is_the_same_after_loading(model, tmp_path):
    X, y, task = kin(6, 10)
    model.fit(X, y, task=task)
    kinfolk.save(model, tmp_path / "model.kin")
    loaded = kinfolk.load(tmp_path / "model.kin", estimator=True)
    page, again = model.report(), loaded.report()
    assert page.html == again.html
    assert f"<h1>{type(model).__name__}, 6 tasks</h1>" in page.html


def test_an_average_says_how_much_each_member_weighs():
    X, y, task = kin(6, 10)
    model = kinfolk.AveragedNB(random_state=0).fit(X, y, task=task)
    assert "weights: " in model.report().html


def test_linear_models_show_their_sources_and_are_compared_with_linear_ones():
    rng = np.random.default_rng(0)
    X, task = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc")), np.repeat(["x", "y", "z"], 40)
    y = X["a"].to_numpy() * np.where(task == "x", -2.0, 2.0) + 0.1 * rng.normal(size=120)
    page = kinfolk.LICARegressor(random_state=0).fit(X, y, task=task).report(data=X, y=y, task=task)
    assert "Source 0" in page.html
    assert {entry["model"] for entry in page.document["comparison"]["models"]} == {
        "LICARegressor",
        "ridge-alone",
        "ridge-pooled",
        "ridge-task-feature",
    }
    assert page.document["calibration"] is None
    assert "120 rows given here" in page.html
    assert '<td class="n" data-v="40">40</td>' in page.html
    for peer in ("every task alone", "all tasks pooled", "pooled, with an intercept for each task"):
        assert re.search(rf"above zero is worse\):.*?{peer} \(ridge regression\) [+-][\d.]+ ± [\d.]+", page.html)


def varying_slopes():
    """Tasks of which the weight of one column varies and that of another does not."""
    rng = np.random.default_rng(0)
    X, task = pd.DataFrame(rng.normal(size=(200, 2)), columns=["varies", "common"]), np.repeat(list("vwxyz"), 40)
    slopes = np.repeat([-2.0, -1.0, 0.0, 1.0, 3.0], 40)
    return X, slopes * X["varies"] + X["common"] + 0.1 * rng.normal(size=200), task


def test_partially_pooled_numbers_are_compared_with_ridge_regressions_and_show_where_tasks_differ():
    X, y, task = varying_slopes()
    model = kinfolk.HierarchicalRegressor().fit(X, y, task=task)
    page = model.report(data=X, y=y, task=task)
    ways = {entry["model"] for entry in page.document["comparison"]["models"]}
    assert ways == {"HierarchicalRegressor", "ridge-alone", "ridge-pooled", "ridge-task-feature"}
    weights = {entry["column"]: entry for entry in page.document["details"]["weights"]}
    assert page.document["details"]["weights"][0]["column"] == "varies"
    assert (weights["varies"]["lowest_task"], weights["varies"]["highest_task"]) == ("v", "z")
    table = model.weights().set_index(["task", "column"])
    assert weights["varies"]["highest"] == pytest.approx(table.loc[("z", "varies"), "weight"])
    assert weights["varies"]["spread"] == pytest.approx(table.loc[("z", "varies"), "spread"])
    assert "differ most in the weight of varies" in page.html


@pytest.mark.parametrize(
    "model",
    [kinfolk.HierarchicalClassifier(), kinfolk.ClusteredClassifier(n_chains=2, n_burn_in=3, n_draws=4, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_partially_pooled_labels_are_compared_with_logistic_regressions(model):
    X, y, task = varying_slopes()
    y = np.where(y > 0, "up", "down")
    page = model.fit(X, y, task=task).report(data=X, y=y, task=task, n_folds=2)
    ways = {entry["model"] for entry in page.document["comparison"]["models"]}
    assert ways == {type(model).__name__, "logistic-alone", "logistic-pooled", "logistic-task-feature"}
    assert "Weights, common and by task" in page.html


def test_chains_of_clustered_regressions_are_judged_and_iterations_of_others_too():
    X, y, task = varying_slopes()
    y = np.where(y > 0, "up", "down")
    model = kinfolk.ClusteredClassifier(n_chains=2, n_burn_in=3, n_draws=6, random_state=0).fit(X, y, task=task)
    page = model.report()
    drawn = model._model.clusters.log_evidence.reshape(2, 6)
    assert page.document["convergence"]["r_hat"]["log evidence"] == pytest.approx(r_hat(drawn))
    assert "The number of clusters, draw by draw" in page.html
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short = kinfolk.HierarchicalClassifier(max_iter=1).fit(X, y, task=task)
    assert "The iterations have not converged: raise max_iter." in short.report().html
    assert "The iterations have converged." in kinfolk.HierarchicalClassifier().fit(X, y, task=task).report().html


def test_an_average_of_models_of_numbers_has_a_report_on_rows():
    X, y, task = varying_slopes()
    model = kinfolk.TransferRegressor(["partly pooled", "pooled"], random_state=0).fit(X, y, task=task)
    page = model.report(data=X, y=y, task=task, n_folds=2)
    assert "ridge-pooled" in {entry["model"] for entry in page.document["comparison"]["models"]}
    assert "weights: " in page.html


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_findings_of_checks_come_in_the_library_of_the_table_that_was_fitted(frame):
    X, y, task = varying_slopes()
    own = X if frame == "pandas" else pl.from_pandas(X)
    linear = kinfolk.HierarchicalRegressor().fit(own, y, task=task)
    states = kinfolk.SharedIHMM(random_state=0, n_chains=2, n_burn_in=2, n_draws=4)
    states.fit(own, [40] * 5, task=list("vwxyz"))
    for model in (linear, states):
        assert type(model.checks()).__module__.partition(".")[0] == frame


def test_a_source_that_no_task_takes_anything_from_is_not_shown():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(400, 4)), np.repeat(np.arange(8), 50)
    weights = rng.laplace(size=8)[:, None] * rng.normal(size=4)
    y = np.einsum("ij,ij->i", X, weights[task]) + rng.normal(size=400)
    model = kinfolk.LICARegressor(random_state=0, n_sources=1).fit(X, y, task=task)
    found = families._sources(account_for(model)).body
    assert ("Source 0" in found, "next to empty" in found) == (True, False)
    empty = findings_of(model)
    empty.details["sources"] = np.column_stack([empty.details["sources"], np.full(8, 1e-5)])
    empty.details["spread"] = np.append(empty.details["spread"], 0.0)
    empty.details["top_features"][1] = [{"feature": "x0", "weight": 1e-4}]
    found = families._sources(SimpleNamespace(findings=empty)).body
    assert "Source 1" not in found
    assert "One more source is next to empty" in found


def test_networks_tell_which_arcs_are_shared():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    X = pd.DataFrame({"a": a, "b": a ^ (rng.random(300) < 0.05), "c": rng.integers(0, 2, 300)}).astype(str)
    model = kinfolk.BayesNets(random_state=0).fit(X, task=np.repeat(["x", "y"], 150))
    page = model.report()
    arcs = page.document["details"]["arcs"]
    assert [sorted([arc["parent"], arc["child"]]) for arc in arcs] == [["a", "b"]]
    assert arcs[0]["n_tasks"] == arcs[0]["of"] == 2


def test_networks_are_compared_on_rows_held_out_by_their_probability():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 120)
    X = pd.DataFrame({"a": a, "b": a ^ (rng.random(120) < 0.1)}).astype(str)
    task = np.repeat(["x", "y", "z"], 40)
    model = kinfolk.BayesNets(random_state=0).fit(X, task=task)
    page = model.report(data=X, task=task, n_folds=3)
    found = {entry["model"]: entry["loss"] for entry in page.document["comparison"]["models"]}
    alone = [
        -kinfolk.BayesNets(sharing="none", random_state=0)
        .fit(X.iloc[train], task=task[train])
        .score_samples(X.iloc[test], task=task[test])
        .mean()
        for train, test in kinfolk.TaskKFold(3, random_state=0).split(X, task=task)
    ]
    assert found["alone"] == pytest.approx(np.mean(alone))
    assert set(found) == {"BayesNets", "alone", "pooled"}
    assert "gain over alone" in page.html


def test_networks_of_classes_are_compared_by_the_labels_that_they_give_rows_held_out(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.choice(["ill", "well"], 120)
    a = rng.integers(0, 2, 120)
    X = pd.DataFrame({"a": a, "b": a ^ (y == "ill") ^ (rng.random(120) < 0.2)}).astype(str)
    model = kinfolk.BayesMultinet(random_state=0).fit(X, y)
    page = model.report(data=X.assign(state=y), y="state", n_folds=3)
    found = {entry["model"]: entry["loss"] for entry in page.document["comparison"]["models"]}
    by_hand = []
    for train, test in kinfolk.TaskKFold(3, random_state=0).split(X, task=y):
        alone = kinfolk.BayesMultinet(sharing="none", random_state=0).fit(X.iloc[train], y[train])
        proba = alone.predict_proba(X.iloc[test])
        by_hand.append(-np.log(proba[np.arange(len(test)), (y[test] == "well").astype(int)]).mean())
    assert found["class-alone"] == pytest.approx(np.mean(by_hand))
    assert set(found) == {"BayesMultinet", "class-alone", "class-pooled"}
    assert page.document["calibration"]["label"] == "well"
    assert "BayesMultinet, 2 classes" in page.html
    assert "120 rows given here" in page.html
    assert "KF001" not in [alert["code"] for alert in page.document["checks"]]
    kinfolk.save(model, tmp_path / "nets.kin")
    again = kinfolk.load(tmp_path / "nets.kin", estimator=True)
    assert again.report().document["details"] == model.report().document["details"]
    with pytest.raises(ValueError, match="leave task= out"):
        model.report(data=X, y=y, task=y)
    with pytest.raises(ValueError, match="give y="):
        model.report(data=X)


def test_two_models_of_networks_are_compared_on_the_same_parts_of_the_rows():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 120)
    X = pd.DataFrame({"a": a, "b": a ^ (rng.random(120) < 0.1)}).astype(str)
    task = np.repeat(["x", "y", "z"], 40)
    models = {
        "joint": kinfolk.BayesNets(random_state=0).fit(X, task=task),
        "same": kinfolk.BayesNets(sharing="identical", random_state=0).fit(X, task=task),
    }
    page = kinfolk.reporting.compare(models, data=X, task=task, n_folds=3)
    found = {entry["model"]: entry["minus log probability of a row"] for entry in page.document["comparison"]["models"]}
    assert set(found) == {"joint", "same", "alone"}
    for name, model in models.items():
        own = model.report(data=X, task=task, n_folds=3).document["comparison"]["models"]
        assert found[name] == pytest.approx(next(entry["loss"] for entry in own if entry["model"] == "BayesNets"))
    labels = kinfolk.BayesMultinet(random_state=0).fit(X, task)
    with pytest.raises(ValueError, match="networks and networks of classes cannot be compared on the same rows"):
        kinfolk.reporting.compare({"joint": models["joint"], "labels": labels}, data=X, y=task)


def test_a_model_that_shares_with_nobody_is_not_compared_with_itself():
    X, y, task = kin(6, 20)
    page = kinfolk.NoSharingNB().fit(X, y, task=task).report(data=X, y=y, task=task, n_folds=3)
    assert "of the best model without sharing, which is this model." in page.html
    assert "every task alone +0.000" not in page.html


def test_tasks_around_a_prototype_are_not_said_to_stand_alone():
    X, y, task = kin(4, 20)
    page = kinfolk.PrototypeNB(random_state=0).fit(X, y, task=task).report()
    assert "the 4 tasks vary around one common pattern" in page.html
    assert "stands alone" not in page.html


def test_networks_are_compared_on_the_tables_by_task_that_they_were_fitted_to():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 120)
    X = pd.DataFrame({"a": a, "b": a ^ (rng.random(120) < 0.1)})
    task = np.repeat(["x", "y", "z"], 40)
    by_task = {name: X[task == name] for name in "xyz"}
    model = kinfolk.BayesNets(random_state=0).fit(by_task)
    found = model.report(data=by_task, n_folds=3).document["comparison"]
    assert found == model.report(data=X, task=task, n_folds=3).document["comparison"]
    with pytest.raises(ValueError, match="second time"):
        model.report(data=by_task, task=task)


def test_networks_of_tasks_with_different_variables_are_compared_on_rows_held_out():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 120)
    X = pd.DataFrame({"a": a, "b": a ^ (rng.random(120) < 0.1), "c": rng.integers(0, 2, 120)}).astype(str)
    by_task = {"x": X[["a", "b"]][:60], "y": X[60:]}
    page = kinfolk.BayesNets(random_state=0).fit(by_task).report(data=by_task, n_folds=3)
    # Rows of different variables cannot be pooled.
    assert [entry["model"] for entry in page.document["comparison"]["models"]] == ["BayesNets", "alone"]
    of_x = next(entry for entry in page.document["tasks"] if entry["task"] == "x")
    entropy = np.log(2) - 0.1 * np.log(0.1) - 0.9 * np.log(0.9)
    assert of_x["loss"] == pytest.approx(entropy, abs=4 * of_x["loss_error"])


def test_sequences_tell_how_many_states_tasks_have():
    rng = np.random.default_rng(0)
    model = kinfolk.SharedIHMM(random_state=0, n_chains=2, n_burn_in=5, n_draws=6)
    model.fit([rng.normal(size=(20, 1)) for _ in range(3)], task=["x", "y", "z"])
    page = model.report()
    assert "Hidden states" in page.html
    np.testing.assert_allclose(np.sum(page.document["details"]["n_states"], axis=1), 1.0)


def test_tasks_that_have_some_states_in_common_are_in_no_clusters():
    rng = np.random.default_rng(0)
    levels = {"x": (0, 9), "y": (0, 9), "z": (0, 30)}
    X = [np.repeat(rng.permutation(own), 12)[:, None] + 0.3 * rng.normal(size=(24, 1)) for own in levels.values()]
    model = kinfolk.FeatureIHMM(random_state=0, n_chains=2, n_burn_in=20, n_draws=20).fit(X, task=list(levels))
    page = model.report()
    assert page.document["clusters"] == []
    assert "one cluster" not in page.html
    used = np.array(page.document["details"]["features"]) > 0.5
    n = (used.sum(axis=0) > 0).sum()
    assert f"The 3 tasks use {n} hidden states: {(used.sum(axis=0) == 3).sum()} of them in all tasks" in page.html
    assert "Most alike are x and y" in page.html
    assert "The share of hidden states that two tasks have in common" in page.html


def test_two_models_are_held_against_each_other(team):
    model, (X, y, task) = team
    alone = kinfolk.NoSharingNB(random_state=0).fit(X, y, task=task)
    page = kinfolk.reporting.compare({"shared": model, "apart": alone}, data=X, y=y, task=task)
    assert page.document["agreement"] == [("shared", "apart", 0.0)]
    assert "Take &#x27;shared&#x27;" in page.html
    assert "nobody" in page.html
    told = page.document["made_again_with"]
    assert (
        told["SHA-256 of the rows' values"]
        == model.report(data=X, y=y, task=task).document["made_again_with"]["SHA-256 of the rows' values"]
    )
    assert "How to reproduce this page" in page.html
    with pytest.raises(ValueError, match="at least two"):
        kinfolk.reporting.compare({"one": model})


def test_no_mark_at_an_axis_says_minus_zero():
    page = str(error_bars([("a", 0.041, 0.02), ("b", 0.6, 0.02)], "log loss", "a"))
    assert ">0<" in page
    assert "-0<" not in page
