"""Reports of hidden Markov models: whether sharing states helps, how many there are, what they show, and segments."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk import NestedIHMM, SharedIHMM, SingleIHMM, TaskKFold
from kinfolk.reporting.account import account_for
from kinfolk.reporting.findings import findings_of
from kinfolk.reporting.held_out_sequences import hold_out_sequences, receive
from tests.cli.conftest import Run, run  # noqa: F401 - a fixture
from tests.cli.test_bad_input import refused
from tests.cli.test_sequences import COLUMNS, WALKS
from tests.reporting.examples import HOSTILE

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

QUICK = {"n_states": 4, "inference": "variational", "n_draws": 8, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return NestedIHMM(**QUICK, **COLUMNS).fit(WALKS)


@pytest.fixture(scope="module")
def page(model):
    return model.report(data=WALKS, n_folds=2)


def test_losses_are_those_of_models_fitted_by_hand(page):
    """The same folds, with sequences as lists of frames."""
    ordered = WALKS.sort_values("minute")
    met = list(dict.fromkeys(zip(WALKS["person"], WALKS["day"], strict=True)))
    parts = [ordered[(ordered["person"] == who) & (ordered["day"] == day)][["place", "speed"]] for who, day in met]
    task = np.array([who for who, _ in met])
    found = {entry["model"]: entry["loss"] for entry in page.document["comparison"]["models"]}
    assert set(found) == {"NestedIHMM", "shared", "alone", "pooled"}
    kinds = {"NestedIHMM": NestedIHMM, "shared": SharedIHMM, "alone": SingleIHMM, "pooled": SingleIHMM}
    for name, kind in kinds.items():
        losses = []
        for train, test in TaskKFold(2, random_state=0).split(None, np.zeros(len(task)), task=task):
            who = np.zeros(len(task), dtype=int) if name == "pooled" else task
            copy = kind(**QUICK, symbols={"place": sorted(set(WALKS["place"]))}, emission=["categorical", "gaussian"])
            copy.fit([parts[i] for i in train], task=who[train])
            scores = copy.score_samples([parts[i] for i in test], task=who[test])
            losses.append(np.mean(-scores / [len(parts[i]) for i in test]))
        assert found[name] == pytest.approx(np.mean(losses), rel=1e-9), name


def test_the_page_tells_whether_sharing_helps_and_shows_states_numbers_and_segments(model, page):
    assert "On held-out sequences" in page.html
    for said in ("Posterior of the number of states", "Posterior of the number of clusters", "place: home"):
        assert said in page.html
    for section in ("Sequences and their segments", "What the states show"):
        assert section in page.html
    assert "not answered for sequences" not in page.html
    wanted = model.segments(WALKS)
    assert page.document["segments"]["state"] == wanted["state"].tolist()
    assert page.document["details"]["states"]["name"] == model.states()["name"].tolist()
    np.testing.assert_allclose(page.document["details"]["n_clusters"], model.n_clusters_)
    assert len(page.html) < 400_000
    alone = model.report()
    assert "Given rows (--data TABLE, or data=)" in alone.html
    assert alone.document["segments"] is None


def test_sequences_come_as_lists_or_with_lengths_too(model):
    rng = np.random.default_rng(0)
    X, lengths, task = rng.choice(list("ab"), 60), [10, 5, 20, 25], ["ann", "ann", "bob", HOSTILE]
    plain = SharedIHMM(**QUICK).fit(X, lengths, task=task)
    by_lengths = account_for(plain, (X, lengths, task), n_folds=2)
    by_list = account_for(plain, np.split(X, np.cumsum(lengths)[:-1]), task=task, n_folds=2)
    for name, losses in by_lengths.held_out.losses.items():
        np.testing.assert_array_equal(losses, by_list.held_out.losses[name])
    assert by_lengths.given.digest == by_list.given.digest
    # Two tasks have one sequence alone, which two folds cut in halves.
    assert by_lengths.held_out.comparison.notes[0].startswith("2 tasks have one sequence alone")
    assert len(by_lengths.held_out.place) == 6
    assert HOSTILE not in plain.report(data=(X, lengths, task), n_folds=2).html


def test_no_sharing_is_compared_with_models_that_share():
    rng = np.random.default_rng(0)
    X, lengths, task = rng.choice(list("ab"), 60), [10, 20, 10, 20], ["ann", "ann", "bob", "bob"]
    single = SingleIHMM(**QUICK).fit(X, lengths, task=task)
    findings = findings_of(single)
    held_out = hold_out_sequences(findings, receive(findings, (X, lengths, task), None, None), 2, 0)
    assert held_out.comparison.ways == {
        "SingleIHMM": "alone", "nested": "sharing", "shared": "sharing", "pooled": "pooled"
    }  # fmt: skip
    assert all(np.isfinite(losses).all() for losses in held_out.losses.values())


def test_checks_speak_of_sequences_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": np.repeat(["ann", "bob"], 60), "level": rng.integers(0, 12, 120)})
    model = SharedIHMM(task_column="who", **QUICK).fit(frame)
    found = model.checks()
    assert "KF010" in found["code"].to_list()
    strange = frame.assign(level=frame["level"] + 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kinfolk.UnseenWarning)
        assert "KF009" in model.checks(strange, n_folds=2)["code"].to_list()


def test_what_cannot_be_compared_gets_one_sentence(model, run: Run) -> None:  # noqa: F811
    with pytest.raises(ValueError, match="NestedIHMM predicts no label"):
        model.report(data=WALKS, y="place")
    kinfolk.save(model, "walks.kin")
    WALKS.to_csv("walks.csv", index=False)
    assert "--label was given" in refused(run, "report", "walks.kin", "--data", "walks.csv", "--label", "place")
    WALKS.drop(columns="minute").to_csv("short.csv", index=False)
    assert "minute" in refused(run, "report", "walks.kin", "--data", "short.csv")


def test_the_command_makes_the_page_of_the_python_interface(model, page, run: Run) -> None:  # noqa: F811
    kinfolk.save(model, "walks.kin")
    WALKS.to_parquet("walks.parquet")
    result = run("report", "walks.kin", "--data", "walks.parquet", "--folds", 2, "-o", "walks.html")
    assert (result.exit_code, result.stderr) == (0, "")
    text = Path("walks.html").read_text()
    loss = next(entry for entry in page.document["comparison"]["models"] if entry["model"] == "NestedIHMM")["loss"]
    assert f"{loss:.4f}" in text
    assert "Sequences and their segments" in text


def test_options_of_rows_are_refused_without_rows(model, run: Run) -> None:  # noqa: F811
    kinfolk.save(model, "walks.kin")
    for option in (("--label", "place"), ("--task", "person"), ("--folds", 3)):
        assert f"{option[0]} belongs to --data" in refused(run, "report", "walks.kin", *option)


def test_states_are_drawn_of_rows_in_any_order(model):
    import matplotlib.pyplot as plt

    ax = kinfolk.plots.state_sequences(model, WALKS, decoding="marginal")
    drawn = np.asarray(ax.images[0].get_array())
    wanted = model.segments(WALKS, decoding="marginal")
    assert drawn.shape == (8, WALKS.groupby(["person", "day"]).size().max())
    first = wanted[(wanted["task"] == wanted["task"][0]) & (wanted["sequence"] == wanted["sequence"][0])]
    assert drawn[0][: first["stop"].max()].tolist() == np.repeat(first["state"], first["duration"]).tolist()
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        who for who, _ in dict.fromkeys(zip(WALKS["person"], WALKS["day"], strict=True))
    ]
    plt.close("all")
