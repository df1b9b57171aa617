"""The program as a whole: a quick start, clean streams, files whole or not at all, commands of other packages."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from importlib.metadata import EntryPoint
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import polars as pl
import pytest

import kinfolk
from kinfolk.cli.app import app
from kinfolk.cli.fit import MODELS, RunOptions, TableOptions
from tests.cli.conftest import Run, write

PROGRAM = [sys.executable, "-c", "from kinfolk.cli import main; main()"]
HEAVY = ["numpy", "numba", "sklearn", "scipy", "polars", "pandas", "matplotlib", "rich.console"]


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"], []])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom kinfolk.cli.app import app\n"
        f"try: app({arguments!r}, prog_name='kinfolk')\nexcept SystemExit as stop: assert not stop.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "kinfolk" in done.stdout


def test_predicting_loads_neither_scikit_learn_nor_numba(run: Run, meetings: pd.DataFrame) -> None:
    X = meetings.drop(columns="answer")
    kinfolk.save(kinfolk.NoSharingNB(task_column="who is it").fit(X, meetings["answer"]), "m.kin")
    write(meetings, Path("t.csv"))
    code = (
        "import sys\nfrom kinfolk.cli.app import app\n"
        "for command in ('predict', 'decide'):\n"
        "  try: app([command, 'm.kin', 't.csv'])\n  except SystemExit as stop: assert not stop.code\n"
        "print([name for name in ('sklearn', 'numba', 'scipy') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("command", ["fit", "predict", "decide", "inspect", "demo", "reproduce"])
def test_every_command_explains_itself_with_an_example(run: Run, command: str) -> None:
    text = run(command, "--help").stdout
    assert "Example:" in text
    assert f"kinfolk {command}" in text


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version").stdout == f"kinfolk {kinfolk.__version__}\n"


@pytest.fixture
def model(run: Run, meetings: pd.DataFrame) -> Path:
    X = meetings.drop(columns="answer")
    kinfolk.save(kinfolk.NoSharingNB(task_column="who is it").fit(X, meetings["answer"]), "m.kin")
    return write(meetings, Path("t.csv"))


def test_a_reader_that_closes_the_pipe_is_no_error(model: Path) -> None:
    Path("one.csv").write_text("".join(model.read_text().splitlines(keepends=True)[:2]))
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    read_end, write_end = os.pipe()
    os.close(read_end)
    # A long result fails while it is written, a short one when it is flushed, help before any command runs.
    for command in (["predict", "m.kin", "t.csv"], ["predict", "m.kin", "one.csv"], ["inspect", "m.kin"], ["--help"]):
        done = subprocess.run([*PROGRAM, *command], stdout=write_end, stderr=subprocess.PIPE, env=buffered, check=False)
        assert (done.returncode, done.stderr) == (0, b""), command
    os.close(write_end)


def test_ctrl_c_exits_with_130(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kinfolk, "load", interrupted)
    result = run("predict", "m.kin", "t.csv")
    assert result.exit_code == 130
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_results_are_utf8_even_where_the_system_is_not(model: Path, encoding: str) -> None:
    new = model.read_text().replace("person 0", "Jörg")
    model.write_text(new)
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for command, name in ((["inspect", "m.kin"], "größe"), (["predict", "m.kin", "t.csv"], "Jörg")):
        done = subprocess.run([*PROGRAM, *command], capture_output=True, env=environment, check=True)
        assert name in done.stdout.decode()


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("p.parquet").write_text("as it was")

    def full(self: pl.DataFrame, file: object) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    before = sorted(os.listdir())
    result = run("predict", "m.kin", "t.csv", "-o", "p.parquet")
    assert result.exit_code == 2
    assert "No space left" in result.stderr
    assert Path("p.parquet").read_text() == "as it was"
    assert sorted(os.listdir()) == before


def test_a_link_keeps_pointing_at_the_file_that_is_written(run: Run, model: Path) -> None:
    Path("real.csv").write_text("old")
    Path("link.csv").symlink_to("real.csv")
    assert run("predict", "m.kin", "t.csv", "-o", "link.csv").exit_code == 0
    assert Path("link.csv").is_symlink()
    assert Path("real.csv").read_text().startswith("task,predicted")


def test_result_files_have_the_permissions_that_the_user_asks_for(run: Run, model: Path) -> None:
    before = os.umask(0o027)
    try:
        run("predict", "m.kin", "t.csv", "-o", "p.csv")
    finally:
        os.umask(before)
    assert Path("p.csv").stat().st_mode & 0o777 == 0o640


def test_a_fault_of_the_program_is_not_dressed_up_as_bad_input(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(kinfolk, "load", faulty)
    assert isinstance(run("predict", "m.kin", "t.csv").exception, ZeroDivisionError)


def test_the_place_of_an_error_can_be_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINFOLK_TRACEBACK", "1")
    assert isinstance(run("predict", "nothing.kin", "t.csv").exception, FileNotFoundError)


@pytest.fixture
def added(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another package's commands: one good function, one good app, one that fails on import, one of a taken name."""
    (tmp_path / "other_package.py").write_text(
        "import typer\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def first(n: int): print('first', n)\n"
        "@app.command()\n"
        "def second(): raise ValueError('second is wrong')\n"
        "def greet(name: str): print('hello', name)\n"
    )
    (tmp_path / "broken_package.py").write_text("import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    entries = [
        EntryPoint(name, value, "kinfolk.commands")
        for name, value in [
            ("greet", "other_package:greet"),
            ("more", "other_package:app"),
            ("broken", "broken_package:app"),
            ("absent", "other_package:nothing"),
            ("fit", "broken_package:app"),
        ]
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries if group == "kinfolk.commands" else [])
    yield
    sys.modules.pop("other_package", None)


@pytest.mark.usefixtures("added")
def test_commands_of_other_packages_are_listed_without_being_loaded(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert result.stderr == ""
    for name in ("greet", "more", "broken"):
        assert f"\n  {name} " in result.stdout
    assert result.stdout.count("\n  fit ") == 1
    assert "other_package" not in sys.modules


@pytest.mark.usefixtures("added")
def test_commands_of_other_packages_run_and_err_as_kinfolk_s_own(run: Run) -> None:
    assert run("greet", "ann").stdout == "hello ann\n"
    assert run("more", "first", 3).stdout == "first 3\n"
    result = run("more", "second")
    assert (result.exit_code, result.stderr) == (2, "kinfolk: second is wrong\n")
    assert run("greet").exit_code == 2


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("name", ["broken", "absent"])
def test_a_broken_command_of_another_package_breaks_no_other(run: Run, name: str) -> None:
    result = run(name)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert repr(name) in result.stderr
    assert "Learn from a table" in run("fit", "--help").stdout


def test_damaged_metadata_of_other_packages_costs_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(group: str) -> None:
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "bad")

    monkeypatch.setattr("importlib.metadata.entry_points", damaged)
    result = run("--help")
    assert result.exit_code == 0
    assert result.stderr.count("\n") == 1


@pytest.fixture
def studies(run: Run, monkeypatch: pytest.MonkeyPatch) -> list:
    """Experiments that only write down how they were called."""
    calls: list = []
    one = SimpleNamespace(
        name="figure-1", title="What figure 1 shows", run=lambda *given, repeats: calls.append((*given, repeats))
    )
    monkeypatch.setattr("kinfolk.experiments.registry.EXPERIMENTS", {"figure-1": one})
    team = SimpleNamespace(run_demo=lambda *given: calls.append(given))
    monkeypatch.setitem(sys.modules, "kinfolk.experiments.clustered_naive_bayes.team", team)
    return calls


def test_demo_and_reproduce_hand_over_folder_speed_and_seed(run: Run, studies: list) -> None:
    assert run("demo").exit_code == 0
    assert run("demo", "--quick", "-o", "a/b", "--seed", 4).exit_code == 0
    assert run("reproduce", "figure-1", "--quick").exit_code == 0
    assert run("reproduce", "figure-1", "-o", "here", "--seed", 5, "--repeats", 3).exit_code == 0
    assert studies == [
        (Path("kinfolk-demo"), False, 0),
        (Path("a/b"), True, 4),
        (Path("kinfolk-reproduce/figure-1"), True, 0, None),
        (Path("here"), False, 5, 3),
    ]
    assert all(folder.is_dir() for folder, *_ in studies)


def test_reproduce_lists_what_it_knows(run: Run, studies: list) -> None:
    for arguments in (("reproduce", "--list"), ("reproduce",)):
        assert "figure-1  What figure 1 shows" in run(*arguments).stdout
    result = run("reproduce", "figure-2")
    assert (result.exit_code, studies) == (2, [])
    assert "there is no experiment 'figure-2'; there are figure-1" in result.stderr


def test_json_of_all_commands_is_one_document_with_names_as_they_are(run: Run, model: Path) -> None:
    roles = ("--task", "who is it", "--label", "answer")
    for arguments in (
        ("fit", "t.csv", *roles, "-o", "n.kin"),
        ("predict", "m.kin", "t.csv"),
        ("decide", "m.kin", "t.csv"),
        ("inspect", "m.kin"),
        ("inspect", "m.kin", "--task", "person 1"),
    ):
        result = run(*arguments, "--json")
        assert isinstance(json.loads(result.stdout), dict), arguments
        assert result.stderr == ""
    assert "größe" in run("inspect", "m.kin", "--json").stdout


def test_help_of_fit_lists_options_under_the_models_that_have_them(run: Run) -> None:
    text = run("fit", "--help").stdout
    common, naive_bayes, networks = (text.index(f"\n{heading}:") for heading in (
        "Options", "Options of naive Bayes models", "Options of Bayes nets"
    ))  # fmt: skip
    assert common < text.index("--seed") < naive_bayes < text.index("--temper") < networks < text.index("--tabu")


def test_every_option_of_fit_belongs_to_a_model_or_to_all(run: Run) -> None:

    (command,) = (c for c in app.registered_commands if c.name == "fit")
    read = set(signature(command.callback).parameters)
    for_all = {field.name for group in (TableOptions, RunOptions) for field in fields(group)}
    assert read == for_all.union(*(kind.options for kind in MODELS.values()))
