"""``kinfolk fit --engine``: the model is the same, whoever counts the rows."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import kinfolk
from kinfolk.posterior import read_archive
from tests.cli.conftest import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = pl.DataFrame(
        {
            "who": rng.integers(0, 6, 400),
            "sky": rng.choice(["red", "blue"], 400),
            "size": rng.normal(size=400),
            "ok": rng.choice(["yes", "no"], 400),
        }
    )
    (tmp_path / "rows").mkdir()
    rows[:150].write_parquet(tmp_path / "rows" / "a.parquet")
    rows[150:].write_parquet(tmp_path / "rows" / "b.parquet")
    return tmp_path / "rows"


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_a_model_is_the_same_whoever_counts(run: Run, folder: Path, engine: str) -> None:
    pytest.importorskip(engine)
    given = ["fit", str(folder), "--task", "who", "--label", "ok", "--temper", "1"]
    answers = []
    for own in ([], ["--engine", engine]):
        model = folder.parent / "model.kin"
        outcome = run(*given, *own, "-o", model)
        assert outcome.exit_code == 0, outcome.stderr
        assert "rows" in outcome.stdout
        asked = pl.DataFrame({"who": [3, 5], "sky": ["red", "blue"], "size": [0.1, -2.0]})
        answers.append(kinfolk.load(model).predict_proba(asked))
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler belongs to --engine dask"),
        (["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"], "no Dask scheduler answers at tcp://127.0.0.1:1"),
        (["--engine", "duckdb", "--numeric", "gaussian"], "--engine duckdb counts rows, and --numeric gaussian"),
        (["--engine", "duckdb", "--model", "averaged"], "--engine belongs to --model"),
    ],
)
def test_engines_that_cannot_count_are_told_of_in_one_sentence(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("kinfolk.cli.engines.SECONDS_TO_ANSWER", 0.2)
    outcome = run("fit", folder, "--task", "who", "--label", "ok", "-o", folder / "m.kin", *options)
    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert not (folder / "m.kin").exists()


def test_a_command_keeps_checkpoints(run: Run, folder: Path) -> None:
    given = ["fit", folder, "--task", "who", "--label", "ok", "--checkpoint", "kept", "-o", "m.kin"]
    outcome = run(*given, "--inference", "gibbs", "--seed", "3")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(list(Path("kept").glob("*.checkpoint"))) == 4
    before = {path: path.read_bytes() for path in Path("kept").iterdir()}
    assert run(*given, "--inference", "gibbs", "--seed", "3").exit_code == 0
    assert {path: path.read_bytes() for path in Path("kept").iterdir()} == before


@pytest.mark.parametrize("model", ["averaged", "transfer", "bayesnets"])
def test_averages_and_networks_keep_checkpoints_too(
    run: Run, folder: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinfolk.checkpoints.WORTH", 0.0)
    label = [] if model == "bayesnets" else ["--label", "ok"]
    given = ["fit", folder, "--task", "who", *label, "--model", model, "--seed", "3"]
    assert run(*given, "-o", "plain.kin").exit_code == 0
    expected = read_archive("plain.kin")
    for _ in range(2):
        outcome = run(*given, "--checkpoint", "kept", "-o", "m.kin")
        assert outcome.exit_code == 0, outcome.stderr
        assert list(Path("kept").glob("*.checkpoint"))
        found = read_archive("m.kin")
        assert found.about == expected.about
        assert {name: array.tobytes() for name, array in found.arrays.items()} == {
            name: array.tobytes() for name, array in expected.arrays.items()
        }


def test_engines_count_parquet_alone(run: Run, folder: Path) -> None:
    pytest.importorskip("duckdb")
    table = folder.parent / "rows.csv"
    pl.read_parquet(folder / "a.parquet").write_csv(table)
    outcome = run("fit", table, "--task", "who", "--label", "ok", "-o", "m.kin", "--engine", "duckdb")
    assert outcome.exit_code == 2
    assert "rows.csv cannot be counted by --engine duckdb: Parquet files, or a folder of them, can" in outcome.stderr
