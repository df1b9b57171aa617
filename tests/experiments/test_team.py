"""The demonstration: tables on standard output, progress on standard error, one picture."""

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from kinfolk.experiments.clustered_naive_bayes.team import run_demo

# Fewer than the demonstration has; the largest is the one that kin are found by.
SIZES = (4, 64)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new"
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        path = run_demo(folder, quick=True, seed=0, sizes=SIZES)
    return path, out.getvalue(), err.getvalue()


def test_the_demo_writes_one_picture_and_says_where(demo):
    path, out, _ = demo
    assert [file.name for file in path.parent.iterdir()] == ["team.png"]
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert f"The picture is in {path}" in out


def test_the_demo_scores_every_model_at_every_size(demo):
    _, out, _ = demo
    for model in ("no sharing", "complete sharing", "clustered"):
        lines = [line for line in out.splitlines() if f"│ {model} " in line]
        # Every size in each of the two settings, each with an area and a loss and their errors.
        assert len(lines) == 2 * len(SIZES)
        assert all(line.count("±") >= 2 for line in lines)


def test_the_demo_names_kin_and_explains_a_decision(demo):
    _, out, _ = demo
    assert "Who is kin, by 64 examples of each person" in out
    assert "(Military)" in out
    assert "expected loss: accept" in out
    assert "So: " in out


def test_the_demo_speaks_of_its_progress_on_standard_error_only(demo):
    _, out, err = demo
    assert "Making up a team" in err
    assert "Making up a team" not in out


def test_the_explanation_adds_up_to_the_log_odds(demo):
    _, out, _ = demo
    table = out[out.index("One request to") :]
    cells = [[cell.strip() for cell in line.split("│")] for line in table.splitlines() if line.startswith("│")]
    *parts, total = [float(row[3]) for row in cells]
    assert sum(parts) == pytest.approx(total, abs=0.05)
