"""The thesis's figures and evidence ratios: what they count is right, and each runs whole at its smallest."""

import re
from importlib import import_module

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln
from sklearn.utils import Bunch

from kinfolk.datasets.meetings import make_meetings
from kinfolk.experiments.clustered_naive_bayes import accuracy_curves, thesis_real
from kinfolk.experiments.clustered_naive_bayes.evidence_ratios import evidence_of, ratios
from kinfolk.experiments.clustered_naive_bayes.learning_curves import CLUSTERED, NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.thesis_figure_2_7 import seat_customers
from kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_6 import bell_numbers
from kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_8 import losses
from kinfolk.experiments.clustered_naive_bayes.thesis_models import (
    MAJORITY,
    accuracy_by_task,
    difference,
    probabilities,
    thesis_models,
)
from kinfolk.experiments.publishing import publish
from kinfolk.experiments.registry import find


def made_up(name):
    rng = np.random.default_rng(0)
    task = np.repeat(["a", "b", "c"], 20)
    colour = rng.choice(["red", "blue"], 60)
    return Bunch(data=pl.DataFrame({"colour": colour}), target=(colour == "red") ^ (rng.random(60) < 0.2), task=task)


SMALLEST = {
    "thesis-evidence": {"n_runs": 2, "max_powers": 4},
    "thesis-figure-2-5": {},
    "thesis-figure-2-7": {"n_runs": 20},
    "thesis-figure-4-1": {"n_steps": 2, "n_repeats": 1},
    "thesis-figure-4-2": {"every": 60},
    "thesis-figure-4-3": {"n_steps": 2, "n_repeats": 1},
    "thesis-figure-4-4": {"every": 60},
    "thesis-figure-4-5": {"sizes": (20, 60), "n_subsets": 2},
    "thesis-figure-4-6": {},
    "thesis-figure-4-7": {"every": 60},
    "thesis-figure-4-8": {"n_trials": 2},
    "thesis-real": {"sets": {"made_up": "Made up"}, "n_folds": 2, "load": made_up},
    "thesis-section-2-4": {"n_repeats": 1},
}


@pytest.mark.parametrize("name", SMALLEST)
def test_a_study_writes_its_files_and_judges_every_finding(name, tmp_path):
    study = find(name)
    found = import_module(study.home).study(quick=True, seed=0, **SMALLEST[name])
    outcome = publish(tmp_path, name, study.title, study.about, found)
    assert outcome.png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert pl.read_csv(outcome.csv).shape == outcome.table.shape
    assert len(outcome.held) == len(outcome.ours) == len(study.about.found)
    assert set(outcome.held) <= {"held", "partly", "not held", "open"}
    assert not re.search(r"\bnan\b|\bNone\b", outcome.report)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([(0.5, 0.1), (0.3, 0.1)], "held"),
        ([(0.5, 0.1), (0.1, 0.1)], "partly"),
        ([(0.1, 0.1), (-0.1, 0.1)], "open"),
        ([(0.1, 0.1), (-0.5, 0.1)], "not held"),
    ],
)
def test_what_no_real_set_can_tell_is_open(found, verdict):
    quantity = "log ratio: no over complete sharing"
    rest = [
        "log ratio: labels, no over complete sharing",
        "log ratio: clustered over no sharing",
        "accuracy: no sharing minus complete sharing",
        "accuracy: clustered minus no sharing",
        *(f"less loss at n = {n}" for n in range(-4, 5)),
        *(f"accuracy: {model}" for model in ("no sharing", "complete sharing", "clustered", "most common label")),
    ]
    rows = [
        {"set": name, "quantity": each, "value": value, "error": error}
        for name, (own, own_error) in zip(("one", "other"), found, strict=True)
        for each, value, error in [(quantity, own, own_error), *((known, 1.0, 0.1) for known in rest)]
    ]
    *_, held = thesis_real._compare(pl.DataFrame(rows), {"one": "", "other": ""}, "")
    assert held == (verdict, "held", "held", "held", "held", "held")


def test_bell_numbers_are_the_known_ones():
    # The On-Line Encyclopedia of Integer Sequences, A000110.
    assert bell_numbers(10)[-1] == 115_975
    assert bell_numbers(21)[-1] == 474_869_816_156_751


def test_customers_open_tables_one_after_another():
    tables = seat_customers(50, np.random.default_rng(0))
    assert tables[0] == 1
    assert set(np.diff(tables)) <= {0, 1}


def test_accuracies_and_their_difference_are_counted_as_by_hand():
    answers = pl.DataFrame(
        {
            "model": ["one"] * 3 + ["two"] * 3,
            "split": [0] * 6,
            "task": ["a", "a", "b"] * 2,
            "truth": [True, False, True] * 2,
            "p": [0.9, 0.8, 0.1, 0.9, 0.1, 0.2],
            "common": [True, False, True] * 2,
        }
    )
    by_task = accuracy_by_task(answers)
    assert by_task.rows() == [
        ("one", "a", 2, 0.5),
        ("one", "b", 1, 0.0),
        ("two", "a", 2, 1.0),
        ("two", "b", 1, 0.0),
        (MAJORITY, "a", 2, 0.5),
        (MAJORITY, "b", 1, 1.0),
    ]
    # Differences 0.5 and 0: mean 0.25, and half their distance is the error of the mean.
    assert difference(by_task, "two", "one") == pytest.approx((0.25, 0.25, 1, 0))


def test_the_most_common_label_of_a_task_is_that_of_its_training_rows():
    problem = made_up("")
    problem.target = np.repeat([True, False, True], 20)
    split = np.setdiff1d(np.arange(60), [0, 25, 45]), np.array([0, 25, 45])
    answers = probabilities(problem, {NO_SHARING: thesis_models()[NO_SHARING]}, [split], lambda _: None)
    assert answers["common"].to_list() == [True, True, True]
    problem.target[[0, 25, 45]] ^= True
    answers = probabilities(problem, {NO_SHARING: thesis_models()[NO_SHARING]}, [split], lambda _: None)
    assert answers["common"].to_list() == [False, False, False]


def test_losses_are_those_of_the_best_decision_by_hand():
    # One true row that one model gives 0.4, one false row that both are sure of, in each of two splits.
    rows = [
        (model, split, truth, p)
        for split in (0, 1)
        for model, p_true in ((CLUSTERED, 0.6), (NO_SHARING, 0.4))
        for truth, p in ((True, p_true), (False, 0.01))
    ]
    table = losses(pl.DataFrame(rows, schema=["model", "split", "truth", "p"], orient="row"))
    at = {row["n"]: row for row in table.iter_rows(named=True)}
    # The threshold is 1/(1 + 2ⁿ): at n = 0 one half, where 0.4 misses the true row; at n = −2 four fifths.
    assert (at[0][CLUSTERED], at[0][NO_SHARING], at[0]["gain"]) == pytest.approx((0.0, 0.5, 1.0))
    assert (at[-2][CLUSTERED], at[-2][NO_SHARING]) == pytest.approx((0.125, 0.125))
    # At n = 8 the threshold is 1/257: both take the false row for true, at a cost of 1 in 2 rows.
    assert (at[8][CLUSTERED], at[8]["gain"]) == pytest.approx((0.5, 0.0))


def test_curves_learn_from_ten_rows_at_first_and_from_all_but_one_at_last():
    meetings = make_meetings(n_people=3, n_requests=30, random_state=0)
    problem = Bunch(data=meetings.data, target=meetings.target == "accept", task=meetings.task)
    table = accuracy_curves.measure(problem, NO_SHARING, 3, 2, 0)
    sizes = dict(zip(*np.unique(meetings.task, return_counts=True), strict=True))
    for task, n in sizes.items():
        own = table.filter(pl.col("task") == task)
        assert own["trained"].to_list() == [10, round(10 + (n - 11) / 2), n - 1]
        assert own["tested"].to_list() == [2 * (n - 10), 2 * (n - own["trained"][1]), 2]


def test_evidence_ratios_are_those_of_the_closed_form():
    problem = made_up("")
    found = evidence_of(problem, np.arange(60), 0, 0, 0)

    def log_evidence(rows):
        # Dirichlet-multinomial of labels and, given them, of colours, with pseudo-counts of 1 (A.2).
        red, truth = problem.data["colour"].to_numpy()[rows] == "red", problem.target[rows]
        tables = [np.bincount(truth, minlength=2)]
        tables += [np.bincount(red[truth == label], minlength=2) for label in (False, True)]
        return sum(gammaln(2) - gammaln(2 + t.sum()) + gammaln(1 + t).sum() for t in tables)

    whole = log_evidence(np.arange(60))
    alone = sum(log_evidence(np.flatnonzero(problem.task == task)) for task in "abc")
    assert ratios(found)["no over complete sharing"] == (pytest.approx(alone - whole, abs=1e-9), 0.0)
