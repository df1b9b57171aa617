"""Hidden Markov models by the command line: what the Python interface finds and answers, and one sentence else."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kinfolk
from tests.cli.conftest import Run, write
from tests.cli.test_bad_input import refused

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SMALL = ("--states", 4, "--chains", 2, "--burn-in", 10, "--draws", 6)
PYTHON = {"n_states": 4, "n_chains": 2, "n_burn_in": 10, "n_draws": 6, "random_state": 0}
ROLES = ("--task", "person", "--sequence", "day", "--order", "minute")
COLUMNS = {"task_column": "person", "sequence_column": "day", "order_column": "minute"}
FIT = ("fit", "walks.csv", *ROLES, "--model", "ihmm", *SMALL, "-o", "walks.kin")


def walks() -> pd.DataFrame:
    """Four people with days of different lengths, numbered alike; rows in no order."""
    rng = np.random.default_rng(0)
    rows = []
    for person, away in (("ann", "park"), ("bob", "park"), ("cid", "road"), ("dot", "road")):
        for day in (1, 2):
            at = 0
            for place, speed in (("home", 0.5), (away, 5.0)) * int(rng.integers(2, 4)):
                for _ in range(int(rng.integers(3, 6))):
                    rows.append((person, day, at, place, round(speed + 0.3 * rng.normal(), 2)))
                    at += 1
    frame = pd.DataFrame(rows, columns=["person", "day", "minute", "place", "speed"])
    return frame.sample(frac=1.0, random_state=1, ignore_index=True)


WALKS = walks()


@pytest.fixture(scope="module")
def fitted() -> kinfolk.NestedIHMM:
    return kinfolk.NestedIHMM(**PYTHON, **COLUMNS).fit(WALKS)


@pytest.fixture
def model(run: Run, fitted: kinfolk.NestedIHMM, tmp_path: Path) -> Path:
    WALKS.to_csv("walks.csv", index=False)
    kinfolk.save(fitted, tmp_path / "walks.kin")
    return tmp_path / "walks.kin"


def printed(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fitting_finds_what_the_python_interface_finds(
    run: Run, tmp_path: Path, fitted: kinfolk.NestedIHMM, ending: str
) -> None:
    write(WALKS, tmp_path / f"walks.{ending}")
    result = run("fit", f"walks.{ending}", *ROLES, "--model", "ihmm", *SMALL, "-o", "m.kin")
    assert result.exit_code == 0, (result.stderr, result.exception)
    for fact in (
        "model             NestedIHMM (gibbs)",
        "tasks             4",
        "place (categorical), speed (gaussian)",
    ):
        assert fact in result.stdout
    loaded = kinfolk.load("m.kin", estimator=True)
    assert loaded.get_params() == {**fitted.get_params(), "n_jobs": 1, "verbose": False}
    np.testing.assert_array_equal(loaded.log_joint_, fitted.log_joint_)


@pytest.mark.parametrize(
    ("sharing", "name"), [("nested", "NestedIHMM"), ("shared", "SharedIHMM"), ("single", "SingleIHMM")]
)
def test_every_option_reaches_the_estimator(run: Run, sharing: str, name: str) -> None:
    WALKS.to_csv("walks.csv", index=False)
    result = run(
        *FIT, "--sharing", sharing, "--stickiness", 2, "--seed", 3, "--inference", "gibbs",
        "--emission", "speed=gaussian-full", "--emission", "place=categorical",
        *(("--clusters", 3) if sharing == "nested" else ()), "--checkpoint", "kept", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, (result.stderr, result.exception)
    about = json.loads(result.stdout)
    assert (about["model"], about["rows"]) == (name, len(WALKS))
    assert list(Path("kept").iterdir())
    params = kinfolk.load("walks.kin", estimator=True).get_params()
    given = {**PYTHON, **COLUMNS, "stickiness": 2.0, "random_state": 3, "inference": "gibbs", "n_jobs": 1,
             "emission": ["categorical", "gaussian-full"], "verbose": False, "checkpoint": None}  # fmt: skip
    given |= {"n_clusters": 3} if sharing == "nested" else {}
    assert params == {**getattr(kinfolk, name)(**given).get_params()}


def test_an_average_says_whom_it_believes(run: Run) -> None:
    WALKS.to_csv("walks.csv", index=False)
    command = ("fit", "walks.csv", *ROLES, "--model", "ihmm", "--sharing", "averaged", "--inference", "variational")
    result = run(*command, "--states", 4, "--clusters", 3, "-o", "a.kin")
    assert result.exit_code == 0, (result.stderr, result.exception)
    model = kinfolk.load("a.kin", estimator=True)
    assert isinstance(model, kinfolk.AveragedIHMM)
    for text in (result.stdout, run("inspect", "a.kin").stdout):
        for name, weight in model.weights_.items():
            assert f"{name} {weight:.0%}" in text
    states = printed(run("predict", "a.kin", "walks.csv").stdout)["state"]
    assert states.tolist() == model.predict(WALKS).tolist()
    assert model.report().document["family"] == "sequences"


def test_tasks_pick_states_and_are_told_by_the_same_commands(run: Run) -> None:
    WALKS.to_csv("walks.csv", index=False)
    result = run(*FIT, "--sharing", "features", "--inference", "gibbs")
    assert result.exit_code == 0, (result.stderr, result.exception)
    model = kinfolk.load("walks.kin", estimator=True)
    assert isinstance(model, kinfolk.FeatureIHMM)
    assert "FeatureIHMM (gibbs)" in run("inspect", "walks.kin").stdout
    states = printed(run("predict", "walks.kin", "walks.csv").stdout)["state"]
    assert states.tolist() == model.predict(WALKS).tolist()


def test_variational_inference_and_days_that_are_dates(run: Run) -> None:
    dated = WALKS.assign(minute=pd.Timestamp("2026-01-01") + pd.to_timedelta(WALKS["minute"], unit="min"))
    dated.to_csv("walks.csv", index=False)
    command = ("fit", "walks.csv", *ROLES, "--model", "ihmm", "--inference", "variational", "--states", 4)
    assert run(*command, "-o", "v.kin").exit_code == 0
    WALKS.to_csv("walks.csv", index=False)
    assert run(*command, "-o", "n.kin").exit_code == 0
    dated.to_csv("dated.csv", index=False)
    of_dates = printed(run("predict", "v.kin", "dated.csv").stdout)
    pd.testing.assert_frame_equal(of_dates, printed(run("predict", "n.kin", "walks.csv").stdout))


@pytest.mark.parametrize("decoding", ["viterbi", "marginal"])
def test_states_of_rows_are_those_of_the_python_interface(
    run: Run, model: Path, fitted: kinfolk.NestedIHMM, decoding: str
) -> None:
    result = run("predict", model, "walks.csv", "--decoding", decoding, "--keep", "minute")
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    found = printed(result.stdout)
    assert found.columns.tolist() == ["task", "sequence", "minute", "cluster", "state", "name", "probability"]
    assert found["task"].tolist() == WALKS["person"].tolist()
    assert found["sequence"].tolist() == WALKS["day"].tolist()
    assert found["minute"].tolist() == WALKS["minute"].tolist()
    states = fitted.predict(WALKS, decoding=decoding)
    assert found["state"].tolist() == states.tolist()
    sure = fitted.predict_proba(WALKS)[np.arange(len(states)), states]
    np.testing.assert_allclose(found["probability"], sure, atol=1e-9)
    named = fitted.states()
    names = dict(zip(zip(named["cluster"], named["state"], strict=True), named["name"], strict=True))
    for row in found.to_dict("records"):
        assert names.get((row["cluster"], row["state"]), row["name"]) == row["name"]


@pytest.mark.parametrize("name", [None, "out.csv", "out.tsv", "out.parquet", "out.json"])
def test_segments_are_those_of_the_python_interface_in_every_kind_of_file(
    run: Run, model: Path, fitted: kinfolk.NestedIHMM, name: str | None
) -> None:
    result = run("predict", model, "walks.csv", "--what", "segments", *(() if name is None else ("-o", name)))
    assert (result.exit_code, result.stderr) == (0, "")
    if name is None:
        found = printed(result.stdout)
    elif name.endswith("parquet"):
        found = pd.read_parquet(name)
    elif name.endswith("json"):
        found = pd.DataFrame(json.loads(Path(name).read_text())["rows"])
    else:
        found = pd.read_csv(name, sep="\t" if name.endswith("tsv") else ",")
    # Minutes are counted as steps are.
    assert found.pop("from").tolist() == found["start"].tolist()
    assert (found.pop("to") + 1).tolist() == found["stop"].tolist()
    pd.testing.assert_frame_equal(found, fitted.segments(WALKS), check_dtype=False, rtol=1e-9)


def test_scores_and_forecasts_are_those_of_the_python_interface(
    run: Run, model: Path, fitted: kinfolk.NestedIHMM
) -> None:
    found = printed(run("predict", model, "walks.csv", "--what", "scores").stdout)
    scores = fitted.score_samples(WALKS)
    np.testing.assert_allclose(found["log_likelihood"], scores, rtol=1e-9)
    np.testing.assert_allclose(found["per_step"], scores / found["n_steps"], rtol=1e-9)
    steps = WALKS.groupby(["person", "day"]).size()
    for row in found.to_dict("records"):
        assert steps[row["task"], row["sequence"]] == row["n_steps"]
    found = printed(run("predict", model, "walks.csv", "--what", "forecast", "--ahead", 2, "--seed", 5).stdout)
    wanted = fitted.forecast(WALKS, n_steps=2, random_state=5)
    numbers = found[found["column"] == "speed"]
    for name, values in (("mean", wanted.mean), ("deviation", wanted.deviation)):
        np.testing.assert_allclose(numbers[name], values["speed"].ravel(), rtol=1e-9)
    for at, level in enumerate((0.05, 0.5, 0.95)):
        np.testing.assert_allclose(numbers[f"quantile_{level}"], wanted.quantiles["speed"][:, :, at].ravel())
    home = found[found["value"] == "home"]
    np.testing.assert_allclose(home["probability"], wanted.probability["place"]["home"].ravel(), rtol=1e-9)


def test_tasks_may_stand_in_another_column(run: Run, model: Path) -> None:
    plain = run("predict", model, "walks.csv", "--what", "scores").stdout
    WALKS.rename(columns={"person": "who"}).to_csv("other.csv", index=False)
    assert run("predict", model, "other.csv", "--task", "who", "--what", "scores").stdout == plain


def test_what_was_found_is_told_of_all_and_of_one(run: Run, model: Path, fitted: kinfolk.NestedIHMM) -> None:
    text = run("inspect", model).stdout
    for fact in ("NestedIHMM (gibbs)", "clusters", "states of a task", "share of steps", "place: home"):
        assert fact in text
    about = json.loads(run("inspect", model, "--json").stdout)
    assert [row["name"] for row in about["states"]] == fitted.states()["name"].tolist()
    assert [entry["cluster"] for entry in about["tasks"]] == fitted.partition_.tolist()
    np.testing.assert_allclose([about["tasks"][0]["n_states"].get(str(n), 0.0) for n in range(5)], fitted.n_states_[0])
    assert len(about["similar_states"]) == len(fitted.similar_states())
    one = json.loads(run("inspect", model, "--task", "cid", "--json").stdout)
    assert {entry["task"]: entry["similarity"] for entry in one["kin"]} == {
        task: fitted.similarity(["cid", task])[0, 1] for task in ("ann", "bob", "dot")
    }
    assert "share of steps" in run("inspect", model, "--task", "cid").stdout
    # As a group of its own, a task has its states and shares of steps.
    group = fitted.differing_states({task: task == "cid" for task in ("ann", "bob", "cid", "dot")})
    own = group[group["group"]].sort_values("state")
    told = sorted(one["states"], key=lambda entry: entry["state"])
    assert [(entry["state"], entry["name"]) for entry in told] == list(zip(own["state"], own["name"], strict=True))
    np.testing.assert_allclose([entry["share"] for entry in told], own["share"])
    assert one["n_states"] == about["tasks"][2]["n_states"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((*FIT, "--sharing", "joint"), ["--sharing joint", "nested, shared, single, averaged, features"]),
        ((*FIT, "--sharing", "shared", "--clusters", 3), ["--clusters", "--sharing is shared"]),
        ((*FIT, "--inference", "bhc"), ["--inference bhc", "gibbs or variational"]),
        ((*FIT[:-8], "-o", "m.kin", "--inference", "variational", "--chains", 2), ["--chains", "--inference gibbs"]),
        ((*FIT, "--sharing", "features", "--inference", "variational"), ["--sharing features", "gibbs"]),
        ((*FIT, "--bins", 4), ["--bins", "--model is ihmm"]),
        ((*FIT, "--label", "place"), ["--label", "--model is ihmm"]),
        ((*FIT, "--stickiness", "much"), ["--stickiness much", "a number or 'learn'"]),
        ((*FIT, "--emission", "speed=gaussian"), ["no kind for column 'place'"]),
        ((*FIT, "--emission", "size=gaussian"), ["'size' is no column to learn from", "place, speed"]),
        ((*FIT, "--emission", "normal"), ["emission='normal'", "gaussian"]),
        ((*FIT, "--drop", "day"), ["'day'", "sequence", "leave out"]),
        (("fit", "walks.csv", "--task", "person", "--sequence", "day", "--model", "ihmm", "-o", "m.kin"),
         ["do not follow each other", "--order"]),
        (("fit", "walks.csv", "--task", "person", "--order", "hour", "--model", "ihmm", "-o", "m.kin"),
         ["'hour' is not in", "walks.csv"]),
        (("fit", "walks.csv", "--task", "person", "--label", "place", "--sequence", "day", "-o", "m.kin"),
         ["--sequence belongs to --model ihmm"]),
        (("fit", "walks.csv", "--task", "person", "--model", "bayesnets", "--sharing", "nested", "-o", "m.kin"),
         ["--sharing nested", "joint, none, identical, pooled"]),
        (("predict", "walks.kin", "walks.csv", "--what", "scores", "--decoding", "viterbi"), ["--decoding", "scores"]),
        (("predict", "walks.kin", "walks.csv", "--ahead", 2), ["--ahead belongs to --what forecast"]),
        (("predict", "walks.kin", "walks.csv", "--what", "segments", "--keep", "minute"), ["--keep", "segments"]),
        (("predict", "walks.kin", "walks.csv", "--task", "who"), ["'who' is not in walks.csv"]),
        (("inspect", "walks.kin", "--features", 3), ["--features", "hidden Markov models"]),
        (("inspect", "walks.kin", "--task", "zoe"), ["task 'zoe' is not one of"]),
        (("decide", "walks.kin", "walks.csv"), ["no label to predict"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_gets_one_sentence(
    run: Run, model: Path, command: tuple[object, ...], words: list[str]
) -> None:
    said = refused(run, *command)
    for word in words:
        assert word in said
    assert not Path("m.kin").exists()


def test_questions_about_sequences_are_refused_by_other_models(run: Run) -> None:
    WALKS.to_csv("walks.csv", index=False)
    assert run("fit", "walks.csv", "--task", "person", "--label", "place", "-o", "nb.kin").exit_code == 0
    assert "--what belongs to hidden Markov models" in refused(
        run, "predict", "nb.kin", "walks.csv", "--what", "states"
    )


def test_without_a_sequence_column_every_task_is_a_sequence(run: Run) -> None:
    WALKS.assign(minute=WALKS["minute"] + 100 * WALKS["day"]).drop(columns="day").to_csv("walks.csv", index=False)
    result = run("fit", "walks.csv", "--task", "person", "--order", "minute", "--model", "ihmm", *SMALL, "-o", "m.kin")
    assert result.exit_code == 0, result.stderr
    found = printed(run("predict", "m.kin", "walks.csv", "--what", "scores").stdout)
    assert sorted(found["task"]) == ["ann", "bob", "cid", "dot"]
