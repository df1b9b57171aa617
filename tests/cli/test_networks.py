"""Bayes nets by the command line: what the Python interface finds, files for other programs, and one sentence else."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk.cli.bif import file_names
from kinfolk.datasets import load_network, make_related_networks, sample_tasks
from kinfolk.networks.answers.bif import read_bif, write_bif
from tests.cli.conftest import Run
from tests.cli.test_bad_input import refused

NETWORKS = make_related_networks("asia", 3, p_delete=0.2, random_state=3)
TABLE = sample_tasks(NETWORKS, 200, form="long", random_state=0).to_pandas().astype(object)
TABLE["task"] = TABLE["task"].map({0: "WA", 1: "OR/north", 2: "or:North"})
N_ROWS = len(TABLE)
FIT = ("fit", "t.csv", "--task", "task", "--model", "bayesnets", "-o", "m.kin")
PROGRAM = [sys.executable, "-c", "from kinfolk.cli import main; main()"]


@pytest.fixture(scope="module")
def fitted() -> kinfolk.BayesNets:
    return kinfolk.BayesNets(task_column="task", bootstrap=2, random_state=0).fit(TABLE)


@pytest.fixture(scope="module")
def saved(fitted: kinfolk.BayesNets, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("networks") / "nets.kin"
    kinfolk.save(fitted, path)
    return path


@pytest.fixture(autouse=True)
def files(run: Run, saved: Path) -> None:
    """A table and a model in the folder that commands run in."""
    TABLE.to_csv("t.csv", index=False)
    os.link(saved, "nets.kin")


def test_fitting_finds_what_the_python_interface_finds(run: Run, fitted: kinfolk.BayesNets) -> None:
    result = run(*FIT, "--bootstrap", 2, "--jobs", 2)
    assert (result.exit_code, result.stderr) == (0, ""), (result.stderr, result.exception)
    penalty = f"{fitted.penalty_:.6g} (strength {fitted.strength_:.3f}, learnt)"
    for fact in ("tasks        3", f"WA {len(fitted.graphs_['WA'].edges)}", penalty, "m.kin"):
        assert fact in result.stdout
    loaded = kinfolk.load("m.kin", estimator=True)
    assert loaded.log_score_ == fitted.log_score_
    assert loaded.verbose is False
    for task, graph in fitted.graphs_.items():
        assert set(loaded.graphs_[task].edges) == set(graph.edges)


def test_an_arc_s_probability_is_a_number_or_a_word(run: Run) -> None:
    for given, expected in (("0.1", 0.1), ("learn", "learn"), ("uniform", "uniform")):
        assert run(*FIT, "--arc-probability", given, "--search", "orders").exit_code == 0
        assert kinfolk.load("m.kin", estimator=True).structure_prior == expected


def test_every_option_reaches_the_estimator(run: Run) -> None:
    write_bif(load_network("asia"), "asia.bif")
    result = run(
        *FIT, "--sharing", "joint", "--prior", "paired", "--penalty", "0.9", "--criterion", "bic", "--ess", 2,
        "--max-parents", 3, "--tabu", 2, "--restarts", 1, "--search", "climb", "--gaps", "em", "--tables", "shared",
        "--require", "smoke->lung", "--require", "smoke -> bronc", "--forbid", "xray->dysp", "--start", "asia.bif",
        "--tier", "asia, smoke", "--tier", "xray",
        "--expert", "asia.bif", "--expert-factor", 0.4, "--seed", 3, "--bins", 4, "--json",
    )  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, ""), (result.stderr, result.exception)
    params = kinfolk.load("m.kin", estimator=True).get_params()
    arcs = list(load_network("asia").graph().edges)
    assert set(params.pop("start")) == set(arcs)
    expert, factor = params.pop("structure_prior")
    assert (set(expert), factor) == (set(arcs), 0.4)
    given = {
        "sharing": "joint", "prior": "paired", "penalty": 0.9, "criterion": "bic", "ess": 2.0, "max_parents": 3,
        "tabu": 2, "restarts": 1, "search": "climb", "missing": "em", "tables": "shared",
        "required": [("smoke", "lung"), ("smoke", "bronc")], "forbidden": [("xray", "dysp")], "random_state": 3,
        "tiers": [["asia", "smoke"], ["xray"]],
        "bins": 4, "n_jobs": 1, "task_column": "task", "verbose": False,
    }  # fmt: skip
    expected = kinfolk.BayesNets(**given).get_params()
    assert params == {name: value for name, value in expected.items() if name not in ("start", "structure_prior")}
    document = json.loads(result.stdout)
    assert document["penalty"] == {
        "value": pytest.approx(0.9),
        "strength": pytest.approx(np.log(10)),
        "chosen": "given",
    }
    found = {(arc["parent"], arc["child"]): arc for arc in document["arcs"]}
    assert found["smoke", "bronc"]["everywhere"]
    assert found["smoke", "lung"]["tasks"] == ["OR/north", "WA", "or:North"]
    assert ("xray", "dysp") not in found


def test_the_hierarchical_score_is_for_identical_structures_alone(run: Run) -> None:
    assert run(*FIT, "--sharing", "identical", "--criterion", "bhd").exit_code == 0
    assert kinfolk.load("m.kin", estimator=True).criterion == "bhd"
    refused = run(*FIT, "--criterion", "bhd")
    assert refused.exit_code == 2
    assert "needs sharing='identical', not 'joint'" in refused.stderr


@pytest.mark.parametrize("sharing", ["none", "identical", "pooled"])
def test_structures_that_are_not_learnt_jointly_have_no_penalty(run: Run, sharing: str) -> None:
    result = run(*FIT, "--sharing", sharing, "--json")
    document = json.loads(result.stdout)
    assert document["penalty"] is None
    if sharing != "none":
        assert document["common_arcs"] == len(document["arcs"])
    assert run("inspect", "m.kin").exit_code == 0


def test_inspection_tells_which_tasks_have_which_arcs(run: Run, fitted: kinfolk.BayesNets) -> None:
    document = json.loads(run("inspect", "nets.kin", "--json").stdout)
    expected = {
        arc: [task for task, graph in fitted.graphs_.items() if graph.has_edge(*arc)]
        for graph in fitted.graphs_.values()
        for arc in graph.edges
    }
    assert {(arc["parent"], arc["child"]): arc["tasks"] for arc in document["arcs"]} == expected
    assert [arc["everywhere"] for arc in document["arcs"]] == [len(arc["tasks"]) == 3 for arc in document["arcs"]]
    text = run("inspect", "nets.kin").stdout
    assert any(line.split() == ["lung", "either", "all"] for line in text.splitlines())
    assert len(document["arcs"]) > document["common_arcs"] > 0


def test_inspection_of_one_task_tells_parents_and_confidence(run: Run, fitted: kinfolk.BayesNets) -> None:
    document = json.loads(run("inspect", "nets.kin", "--task", "WA", "--json").stdout)
    parents = {entry["variable"]: set(entry["parents"]) for entry in document["variables"]}
    assert parents == {name: set(fitted.graphs_["WA"].predecessors(name)) for name in fitted.graphs_["WA"]}
    table = fitted.arc_confidence_
    shares = table[table["task"] == "WA"].set_index(["parent", "child"])["confidence"]
    for arc in document["arcs"]:
        assert arc["confidence"] == shares.get((arc["parent"], arc["child"]), 0.0)
    assert "confidence" in run("inspect", "nets.kin", "--task", "WA").stdout


def test_prediction_gives_the_log_probability_of_every_row(run: Run, fitted: kinfolk.BayesNets) -> None:
    new = TABLE.assign(note="left aside")[["note", *TABLE.columns]]
    new.loc[0, "xray"], new.loc[1, "task"] = None, "ID"
    new.to_csv("new.csv", index=False)
    result = run("predict", "nets.kin", "new.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    found = pd.read_csv(io.StringIO(result.stdout))
    assert found.columns.tolist() == ["task", "log_probability"]
    assert found["task"].tolist() == new["task"].tolist()
    np.testing.assert_allclose(found["log_probability"], fitted.score_samples(new[TABLE.columns]), rtol=1e-12)
    rows = json.loads(run("predict", "nets.kin", "new.csv", "--json").stdout)["rows"]
    assert [row["log_probability"] for row in rows] == pytest.approx(found["log_probability"].tolist(), rel=1e-12)


def test_predicting_and_drawing_load_neither_scikit_learn_nor_numba() -> None:
    code = (
        "import sys\nfrom kinfolk.cli.app import app\n"
        "for command in (['predict', 'nets.kin', 't.csv'], ['sample', 'nets.kin', '--task', 'WA'], "
        "['bif', 'nets.kin', '-o', 'nets']):\n"
        "  try: app(command)\n  except SystemExit as stop: assert not stop.code\n"
        "print([name for name in ('sklearn', 'numba', 'scipy', 'networkx') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_networks_are_written_as_bif_each_in_a_file_of_its_own(run: Run, fitted: kinfolk.BayesNets) -> None:
    for arguments in (("--json",), ("--json",)):  # a second time into the folder that is there
        result = run("bif", "nets.kin", "-o", "nets", *arguments)
        assert (result.exit_code, result.stderr) == (0, "")
    files = {entry["task"]: entry["file"] for entry in json.loads(result.stdout)["files"]}
    assert files == {"OR/north": "OR_north.bif", "WA": "WA.bif", "or:North": "or_North-2.bif"}
    assert sorted(os.listdir("nets")) == sorted(files.values())
    for task, network in fitted.networks_.items():
        found = read_bif(Path("nets") / files[task])
        assert (found.variables, found.parents) == (network.variables, network.parents)
        for one, other in zip(found.tables, network.tables, strict=True):
            np.testing.assert_array_equal(one, other)
    assert "WA.bif" in run("bif", "nets.kin", "-o", "one", "--task", "WA").stdout
    assert os.listdir("one") == ["WA.bif"]


def test_names_of_files_are_safe_and_differ() -> None:
    tasks = ["../../etc", "a/b", "a b", "A_B", ".", "", "CON", "nul.x", "é" * 300, "é" * 299, "-o", "x\ny"]
    names = file_names(tasks)
    assert len({name.casefold() for name in names}) == len(tasks)
    for name in names:
        assert Path(name).name == name
        assert len(name.encode()) <= 255
        assert name[0] not in ".-"
        assert name.partition(".")[0].lower() not in ("con", "nul")


def test_a_network_that_cannot_be_written_leaves_no_file_of_the_others(run: Run) -> None:
    table = pd.DataFrame({"task": ["a", "b"] * 20, "x y": [1, 2, 2, 1] * 10, "z": [1, 2] * 20})
    kinfolk.save(kinfolk.BayesNets(task_column="task").fit(table), "blank.kin")
    assert "'x y'" in refused(run, "bif", "blank.kin", "-o", "nets")
    assert run("bif", "blank.kin", "-o", "nets", "--quote").exit_code == 0
    assert read_bif("nets/a.bif").variables == ("x y", "z")


def test_draws_follow_the_network_and_repeat(run: Run, fitted: kinfolk.BayesNets) -> None:
    arguments = ("sample", "nets.kin", "-n", 4000, "--task", "WA", "--seed", 5)
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert run(*arguments).stdout == result.stdout
    assert run(*arguments[:-1], 6).stdout != result.stdout
    drawn = pd.read_csv(io.StringIO(result.stdout))
    network = fitted.networks_["WA"]
    assert drawn.columns.tolist() == list(network.variables)
    # The share of a state of a variable without parents, within five standard errors.
    root = network.parents.index(())
    share = network.tables[root][0]
    found = (drawn[network.variables[root]] == network.states[root][0]).mean()
    assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / 4000)


def test_rows_are_drawn_from_a_bif_file_as_from_the_model(run: Run) -> None:
    run("bif", "nets.kin", "-o", "nets")
    from_file = run("sample", "nets/WA.bif", "-n", 20, "--seed", 1)
    assert from_file.exit_code == 0
    assert from_file.stdout == run("sample", "nets.kin", "-n", 20, "--seed", 1, "--task", "WA").stdout
    assert len(from_file.stdout.splitlines()) == 21


def test_drawn_rows_can_be_fitted_again(run: Run) -> None:
    rows = [
        pd.read_csv(io.StringIO(run("sample", "nets.kin", "-n", 50, "--task", t).stdout)) for t in ("WA", "OR/north")
    ]
    pd.concat([frame.assign(task=t) for t, frame in enumerate(rows)]).to_csv("drawn.csv", index=False)
    assert run("fit", "drawn.csv", *FIT[2:], "--tabu", 0, "--drop", "asia", "--drop", "tub").exit_code == 0


@pytest.mark.parametrize("command", ["bif", "sample"])
def test_the_new_commands_explain_themselves_with_an_example(run: Run, command: str) -> None:
    text = run(command, "--help").stdout
    assert "Example:" in text
    assert f"kinfolk {command}" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fit", "t.csv", "--task", "task", "-o", "m.kin"), ["--label is needed", "bayesnets"]),
        ((*FIT, "--label", "xray"), ["--label", "bayesnets"]),
        ((*FIT, "--inference", "bhc"), ["--inference", "--model clustered"]),
        ((*FIT, "--temper", 1), ["--temper", "clustered, no-sharing, complete-sharing or prototype"]),
        ((*FIT, "--evidence"), ["--evidence", "--model is bayesnets"]),
        ((*FIT, "--weight", "xray"), ["--weight", "bayesnets"]),
        (("fit", "t.csv", "--task", "task", "--label", "xray", "-o", "m.kin", "--tabu", 10), ["--tabu", "bayesnets"]),
        (("fit", "t.csv", "--task", "task", "--label", "xray", "-o", "m.kin", "--require", "a->b"), ["--require"]),
        ((*FIT, "--sharing", "some"), ["'some'", "joint"]),
        ((*FIT, "--penalty", "much"), ["--penalty 'much'", "from 0 to 1"]),
        ((*FIT, "--penalty", "1.5"), ["penalty=1.5", "from 0 to 1"]),
        ((*FIT, "--penalty", "nan"), ["penalty=nan"]),
        ((*FIT, "--ess", 0), ["ess"]),
        ((*FIT, "--tabu", -1), ["tabu"]),
        ((*FIT, "--max-parents", -1), ["max_parents"]),
        ((*FIT, "--jobs", 0), ["n_jobs"]),
        ((*FIT, "--require", "smoke"), ["--require 'smoke'", "PARENT->CHILD"]),
        ((*FIT, "--require", "smoke->cough"), ["--require", "'cough' is not a variable", "asia, tub"]),
        ((*FIT, "--forbid", "task->smoke"), ["--forbid", "'task' is not a variable"]),
        ((*FIT, "--require", "smoke->smoke"), ["'smoke'", "to itself"]),
        ((*FIT, "--require", "smoke->lung", "--require", "lung->smoke"), ["required arcs contradict", "lung → smoke"]),
        ((*FIT, "--require", "smoke->lung", "--forbid", "smoke->lung"), ["'smoke' → 'lung'", "both"]),
        ((*FIT, "--search", "classes", "--require", "smoke->lung"), ['search="classes"', "required"]),
        ((*FIT, "--arc-probability", "few"), ["--arc-probability 'few'", "sparse, learn or uniform"]),
        ((*FIT, "--arc-probability", "1.5"), ["structure_prior=1.5"]),
        ((*FIT, "--arc-probability", "0.1", "--expert", "asia.bif"), ["--arc-probability and --expert"]),
        ((*FIT, "--start", "nothing.bif"), ["nothing.bif", "No such file"]),
        ((*FIT, "--start", "t.csv"), ["t.csv, line 1"]),
        ((*FIT, "--start", "cyclic.bif"), ["cyclic.bif", "cycle"]),
        ((*FIT, "--start", "half.bif"), ["half.bif, line"]),
        ((*FIT, "--start", "other.bif"), ["start", "'rain' is not a variable"]),
        ((*FIT, "--expert", "half.bif"), ["half.bif, line"]),
        ((*FIT, "--expert", "other.bif"), ["structure_prior", "'rain'"]),
        ((*FIT, "--expert-factor", 0.5), ["--expert-factor", "--expert"]),
        ((*FIT, "--expert", "asia.bif", "--expert-factor", 2), ["factor 2.0"]),
        ((*FIT, "--drop", "task"), ["'task'", "task and as one to leave out"]),
        (("decide", "nets.kin", "t.csv"), ["nets.kin", "no label"]),
        (("inspect", "nets.kin", "--features", 10), ["--features", "nets.kin"]),
        (("inspect", "nets.kin", "--task", "XX"), ["'XX'", "'WA'"]),
        (("predict", "nets.kin", "nothing.csv"), ["nothing.csv"]),
        (("predict", "nets.kin", "t.csv", "--task", "who"), ["'who'"]),
        (("sample", "nets.kin"), ["several tasks", "'WA'"]),
        (("sample", "nets.kin", "--task", "XX"), ["'XX'", "'WA'"]),
        (("sample", "nets.kin", "-n", 0, "--task", "WA"), ["--rows"]),
        (("sample", "half.bif"), ["half.bif, line"]),
        (("sample", "half.kin", "--task", "WA"), ["half.kin"]),
        (("sample", "asia.bif", "--task", "WA"), ["--task", "asia.bif"]),
        (("sample", "labels.kin"), ["labels.kin holds no Bayes nets"]),
        (("sample", "nothing.bif"), ["nothing.bif", "No such file"]),
        (("sample", "asia.bif", "-o", "rows.xlsx"), ["rows.xlsx"]),
        (("bif", "labels.kin", "-o", "nets"), ["labels.kin holds no Bayes nets"]),
        (("bif", "nets.kin", "-o", "t.csv"), ["t.csv", "not a folder"]),
        (("bif", "nets.kin", "-o", "nowhere/nets"), ["nowhere/nets", "no folder"]),
        (("bif", "nets.kin", "-o", "nets", "--task", "XX"), ["'XX'"]),
        (("bif", "half.kin", "-o", "nets"), ["half.kin"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_arguments_get_one_sentence(run: Run, arguments: tuple, told: list[str]) -> None:
    asia = load_network("asia")
    write_bif(asia, "asia.bif")
    text = Path("asia.bif").read_text()
    Path("half.bif").write_text(text[: len(text) // 2])
    other = "variable rain { type discrete [2] { no, yes }; } variable wet { type discrete [2] { no, yes }; }"
    rows = "{ (no) 0.9, 0.1; (yes) 0.1, 0.9; }"
    wet = f"probability ( wet | rain ) {rows}"
    Path("other.bif").write_text(f"{other} probability ( rain ) {{ table 0.5, 0.5; }} {wet}")
    Path("cyclic.bif").write_text(f"{other} probability ( rain | wet ) {rows} {wet}")
    Path("half.kin").write_bytes(Path("nets.kin").read_bytes()[:2000])
    kinfolk.save(kinfolk.NoSharingNB().fit([["a"], ["b"]], [0, 1]), "labels.kin")
    sentence = refused(run, *arguments)
    for part in told:
        assert part in sentence


def changed(**columns: object) -> pd.DataFrame:
    return TABLE.assign(**columns)


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (changed(xray=None), ["'xray'", "no value in any row"]),
        (changed(xray=[f"v{i % 256}" for i in range(N_ROWS)]), ["'xray'", "256 states", "255"]),
        (changed(task=["alone", *["x"] * (N_ROWS - 1)]), ["'alone'", "1 sample"]),
        (changed(task=[None, *["x"] * (N_ROWS - 1)]), ["'task'", "row 0", "missing"]),
        (changed(xray=["no"] * 5 + [None] + ["yes"] * (N_ROWS - 6)), ["'xray'", "row 5", "missing"]),
        (changed(xray=[np.inf, *np.arange(N_ROWS - 1) / 8]), ["'xray'", "row 0", "infinity"]),
        (TABLE[["task"]], ["no feature"]),
        (TABLE[:0], ["0 sample(s)"]),
    ],
    ids=[
        "empty",
        "too many states",
        "one row",
        "no task",
        "missing cell",
        "infinity",
        "no column",
        "no row",
    ],
)
def test_tables_that_cannot_be_learnt_from_get_one_sentence(run: Run, frame: pd.DataFrame, told: list[str]) -> None:
    frame.to_csv("bad.csv", index=False)
    sentence = refused(run, "fit", "bad.csv", *FIT[2:])
    for part in told:
        assert part in sentence


def test_missing_cells_can_be_learnt_from_if_asked_for(run: Run) -> None:
    changed(xray=[None, *TABLE["xray"][1:]]).to_csv("gaps.csv", index=False)
    assert run("fit", "gaps.csv", *FIT[2:], "--gaps", "em", "--tabu", 0).exit_code == 0
    assert kinfolk.load("m.kin", estimator=True).n_iter_ >= 1


def test_the_program_itself_ends_without_a_traceback_on_half_a_file() -> None:
    Path("half.bif").write_text("network asia {\n}\nvariable asia {\n  type discrete [ 2 ] { yes, n")
    done = subprocess.run([*PROGRAM, "sample", "half.bif"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kinfolk: half.bif, line")
    assert done.stderr.count("\n") == 1
