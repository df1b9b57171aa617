"""Numbered checks: each finds what it is for, and nothing where there is nothing to find."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk.convergence import Convergence
from kinfolk.reporting.findings import Findings, findings_of
from kinfolk.reporting.held_out import Given, HeldOut, calibrate
from kinfolk.reporting.numbered_checks import CHECKS, Seen, look
from kinfolk.tasks.schema import Column, Schema
from kinfolk.transfer.comparison import Comparison
from tests.reporting.examples import kin


def codes(alerts):
    return sorted({alert.code for alert in alerts})


def findings(**about):
    tasks = about.pop("tasks", ["a", "b", "c"])
    return Findings(kinfolk.ClusteredNB(), "naive Bayes", tasks, ["no", "yes"], ["f"], **about)


def held_out(own, rows=None, **others):
    """A comparison with these losses, a number each, in five folds that differ a little."""
    noise = np.array([0.0, 0.001, -0.001, 0.002, -0.002])
    losses = {"ClusteredNB": own + noise, **{name: value + noise[::-1] for name, value in others.items()}}
    ways = {"ClusteredNB": "sharing", "alone": "alone", "pooled": "pooled", "task-feature": "task as a feature"}
    ways["logistic-pooled"] = "pooled"
    found = Comparison("log loss", "accuracy", losses, losses, ways, {}, "ClusteredNB", None, "", ())
    by_row = {name: np.full(30, float(np.mean(loss))) for name, loss in losses.items()} if rows is None else rows
    return HeldOut(found, "ClusteredNB", by_row, np.repeat([0, 1, 2], 10))


def test_a_task_that_sharing_hurts_is_named():
    rng = np.random.default_rng(0)
    own = rng.normal(1.0, 0.1, 30)
    rows = {"ClusteredNB": own, "alone": own + np.repeat([0.3, -0.5, 0.0], 10) + rng.normal(0.0, 0.1, 30)}
    seen = Seen(findings(), held_out=held_out(1.0, rows, alone=1.1))
    assert [(alert.code, alert.task) for alert in look(seen)] == [("KF001", "b")]


def test_a_task_of_few_rows_is_not_harmed_because_these_happen_to_agree():
    # Three rows that are each a little worse: by Student's t that is chance, by the normal distribution it is not.
    gains = np.tile([-0.010, -0.012, -0.008], 10)
    rows = {"ClusteredNB": np.ones(30), "alone": 1.0 + gains}
    few = held_out(1.0, rows, alone=1.1)._replace(place=np.repeat(np.arange(10), 3))
    tasks = list("abcdefghij")
    assert codes(look(Seen(findings(tasks=tasks), held_out=few))) == []
    many = few._replace(place=np.zeros(30, dtype=int))
    assert codes(look(Seen(findings(tasks=tasks), held_out=many))) == ["KF001"]


def test_chains_that_disagree_are_told_of():
    apart = Convergence({"log joint": 1.5}, {"log joint": 400.0})
    agree = Convergence({"log joint": 1.0}, {"log joint": 400.0})
    assert codes(look(Seen(findings(convergence=apart)))) == ["KF002"]
    assert codes(look(Seen(findings(convergence=agree)))) == []


def test_chains_that_agree_and_are_too_short_are_not_said_to_disagree():
    short = Convergence({"log joint": 1.0}, {"log joint": 60.0})
    (alert,) = look(Seen(findings(convergence=short)))
    assert (alert.code, alert.title) == ("KF002", "Chains have not converged")
    assert alert.seen.startswith("the chains are too short to estimate the log joint (60 effective draws")
    assert "disagree" not in f"{alert.title} {alert.seen} {alert.why}"
    (worse,) = look(Seen(findings(convergence=Convergence({"log joint": 1.5}, {"log joint": 400.0}))))
    assert (alert.severity, worse.severity) == (2, 3)


def test_tasks_without_kin_are_named_unless_nobody_has_any():
    (alert,) = look(Seen(findings(partition=np.array([0, 0, 1]))))
    assert (alert.code, alert.seen) == ("KF003", "no kin: 'c'")
    assert look(Seen(findings(partition=np.array([0, 1, 2])))) == []


def test_a_prior_that_decides_is_told_of():
    shares = np.array([[0.8, 0.1, 0.0, 0.1], [0.2, 0.1, 0.0, 0.7], [0.5, 0.0, 0.0, 0.5]])
    (alert,) = look(Seen(findings(shares=shares)))
    assert (alert.code, alert.where) == ("KF004", "1 task of 3")


def test_clusters_in_vain_and_pooling_that_does_as_well_are_told_of():
    split = findings(partition=np.array([0, 0, 1]))
    seen = Seen(split, held_out=held_out(1.0, **{"pooled": 1.0, "logistic-pooled": 1.3, "task-feature": 1.0}))
    assert codes(look(seen, ignore=["KF003"])) == ["KF005", "KF008"]
    better = Seen(split, held_out=held_out(1.0, **{"pooled": 1.3, "logistic-pooled": 1.3, "task-feature": 1.2}))
    assert look(better, ignore=["KF003"]) == []


def test_tasks_of_few_rows_are_named():
    (alert,) = look(Seen(findings(rows=np.array([100, 4, 5]))))
    assert (alert.code, alert.seen) == ("KF006", "fewer than 5 rows with a label: 'b'")


@pytest.mark.parametrize(("stretch", "bad"), [(1.0, False), (3.0, True)])
def test_probabilities_that_promise_too_much_are_told_of(stretch, bad):
    rng = np.random.default_rng(0)
    odds = rng.normal(size=3000)
    y = np.where(rng.random(3000) < 1 / (1 + np.exp(-odds)), "yes", "no").astype(object)
    p = 1 / (1 + np.exp(-stretch * odds))
    found = held_out(1.0, alone=1.1).comparison
    found = Comparison(**{**found.__dict__, "predictions": {"ClusteredNB": np.stack([1 - p, p], axis=1)},
                          "classes": np.array(["no", "yes"], dtype=object)})  # fmt: skip
    of = held_out(1.0, alone=1.1)._replace(comparison=found)
    calibration = calibrate(of, Given({}, y, np.full(3000, "a"), ""))
    assert calibration.bad is bad
    assert calibration.n.sum() == 3000
    assert codes(look(Seen(findings(), calibration=calibration))) == (["KF007"] if bad else [])


def test_values_never_seen_are_named_with_their_column():
    schema = Schema((Column("f", ("red", "blue"), None),))
    values = np.array(["red"] * 8 + ["green", None], dtype=object)
    seen = Seen(findings(schema=schema), Given({"f": values}, None, np.full(10, "a"), ""))
    (alert,) = look(seen)
    assert (alert.code, alert.where) == ("KF009", "column f")
    assert "1 of 10 rows" in alert.seen


@pytest.mark.parametrize(
    ("values", "found"),
    [(tuple(range(18, 60)), ["KF010"]), ((1, 2, 3), []), (tuple(range(0, 90_000, 9_000)), []), (("1", "2"), [])],
)
def test_whole_numbers_that_are_quantities_are_told_of(values, found):
    schema = Schema((Column("age", values, None),))
    assert codes(look(Seen(findings(schema=schema)))) == found


def test_identifiers_are_told_of_with_rows_and_without():
    ids = np.array([f"row {i}" for i in range(50)], dtype=object)
    seen = Seen(findings(), Given({"id": ids, "x": np.linspace(0.1, 0.9, 50)}, None, np.full(50, "a"), ""))
    assert [(alert.code, alert.where) for alert in look(seen)] == [("KF011", "column id")]
    schema = Schema((Column("id", tuple(ids), None),))
    assert codes(look(Seen(findings(schema=schema, rows=np.array([20, 20, 10]))))) == ["KF011"]


def test_a_feature_that_gives_the_label_away_is_found_in_a_fitted_model():
    X, y, task = kin()
    model = kinfolk.ClusteredNB(random_state=0).fit(X.assign(leak=np.where(y == "go", "g", "s")), y, task=task)
    table = model.checks()
    assert table.columns.tolist() == ["code", "title", "severity", "where", "seen", "why", "advice"]
    assert table.loc[table.code == "KF012", "where"].tolist() == ["column leak"]
    assert "KF012" not in model.checks(ignore=["KF012"]).code.tolist()
    assert "KF012" not in kinfolk.ClusteredNB(random_state=0).fit(X, y, task=task).checks().code.tolist()


def test_counts_of_features_are_those_of_the_rows():
    X, y, task = kin()
    X = X.assign(number=np.random.default_rng(0).normal(size=len(y)))
    model = kinfolk.ClusteredNB(random_state=0, numeric="gaussian").fit(X, y, task=task)
    counts = findings_of(model).feature_counts
    assert list(counts) == list("abcd")
    for name in "abcd":
        np.testing.assert_array_equal(counts[name], pd.crosstab(y, X[name]).to_numpy())


def test_numbers_to_ignore_must_be_known_ones():
    with pytest.raises(ValueError, match="KF999"):
        look(Seen(findings()), ignore=["KF999"])


def test_the_gravest_come_first():
    shares = np.array([[0.2, 0.1, 0.0, 0.7]] * 3)
    apart = Convergence({"log joint": 1.5}, {"log joint": 400.0})
    alerts = look(Seen(findings(shares=shares, convergence=apart, rows=np.array([1, 1, 1]))))
    assert [alert.code for alert in alerts] == ["KF002", "KF004", "KF006"]


def test_the_documentation_has_a_paragraph_for_each_check():
    text = (Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")
    headings = dict(re.findall(r"^## (KF\d{3}) (.+)$", text, flags=re.MULTILINE))
    assert headings == {code: check.title for code, check in CHECKS.items()}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        assert len(part.split()) > 60, part.partition("\n")[0]
