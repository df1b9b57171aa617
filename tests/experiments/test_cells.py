"""A study that was stopped goes on from the cells that it has, to the same table."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

from kinfolk import NoSharingNB, checkpoints
from kinfolk.checkpoints import Place
from kinfolk.datasets import make_meetings
from kinfolk.experiments.cells import cell, checkpoint, kept_in
from kinfolk.experiments.clustered_naive_bayes.evidence_ratios import evidence_of
from kinfolk.experiments.lica import synthetic
from kinfolk.experiments.lica.methods import classifier
from kinfolk.experiments.networks.problems import over_draws
from kinfolk.experiments.registry import EXPERIMENTS

# One of each way in which studies are cut into cells.
STUDIES = ("thesis-figure-4-8", "ijcai-figure-3", "ijcai-figure-4")


@pytest.fixture(autouse=True)
def every_cell(monkeypatch):
    monkeypatch.setattr(checkpoints, "WORTH", 0.0)


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_that_ended_at_any_cell_goes_on_to_the_same_table(name, tmp_path, monkeypatch):
    save, n_left, n_saved = Place.save, 0, 0

    def save_and_die(place, value):
        nonlocal n_left, n_saved
        save(place, value)
        n_left, n_saved = n_left - 1, n_saved + 1
        if n_left == 0:
            raise Killed

    monkeypatch.setattr(Place, "save", save_and_die)
    study = EXPERIMENTS[name]
    expected = study.run(tmp_path / "anew", quick=True, shown=False).csv.read_text()
    n_cells, n_saved = n_saved, 0
    assert n_cells > 4
    for n_left in (1, 3):  # noqa: B007 - read by the function above
        with pytest.raises(Killed):
            study.run(tmp_path / "stopped", quick=True, shown=False)
    n_left = 0
    outcome = study.run(tmp_path / "stopped", quick=True, shown=False)
    assert n_saved == n_cells, "no cell was measured twice"
    assert outcome.csv.read_text() == expected
    assert sorted(path.suffix for path in (tmp_path / "stopped").iterdir()) == [".csv", ".md", ".png"]


def test_cells_of_another_seed_or_study_are_others(tmp_path):
    measured = []

    def measure(what):
        measured.append(what)
        return {"what": what}

    for about in [("one", 0), ("one", 1), ("other", 0), ("one", 0)]:
        with kept_in(tmp_path, *about):
            assert cell(lambda about=about: measure(about), "cell") == {"what": about}
    assert measured == [("one", 0), ("one", 1), ("other", 0)]
    assert checkpoint().folder is None


def test_draws_in_threads_are_kept_by_what_they_are(tmp_path):
    measured = []

    def work(name, number):
        measured.append((name, number))
        return [{"name": name, "number": number, "score": float(np.sqrt(number))}]

    jobs = [("a", 1), ("a", 2), ("b", 1)]
    with kept_in(tmp_path, "a study"):
        first = over_draws("Drawing", jobs[:2], work)
        whole = over_draws("Drawing", jobs, work)
    assert sorted(measured) == jobs
    assert whole[:2].equals(first)
    assert whole["score"].to_list() == [1.0, np.sqrt(2.0), 1.0]


def test_models_of_made_up_sources_are_not_fitted_again(tmp_path):
    fitted = []

    def build(**parameters):
        model = classifier(**parameters)
        fit = model.fit
        model.fit = lambda *given, **by_name: fitted.append(parameters) or fit(*given, **by_name)
        return model

    def run():
        with kept_in(tmp_path, "a study"):
            return synthetic.study(n_tasks=(8,), n_repeats=1, build=build).table

    first = run()
    assert len(fitted) == 2 * len(synthetic.MODELS)
    assert run().equals(first)
    assert len(fitted) == 2 * len(synthetic.MODELS), "all cells were kept"


def test_evidence_is_kept_by_model_and_rows(tmp_path, monkeypatch):
    meetings = make_meetings(random_state=0)
    problem = Bunch(data=meetings.data, target=meetings.target == "accept", task=meetings.task)
    few, more, fitted, fit = np.arange(0, 400, 8), np.arange(0, 400, 4), [], NoSharingNB.fit

    def fit_and_count(model, X, *given, **by_name):
        fitted.append(len(X))
        return fit(model, X, *given, **by_name)

    monkeypatch.setattr(NoSharingNB, "fit", fit_and_count)
    with kept_in(tmp_path, "a study"):
        found = [evidence_of(problem, rows, 2, 10, 0) for rows in (few, few, more)]
    assert found[0] == found[1] != found[2]
    assert fitted == [50, 100]


@pytest.mark.slow
def test_a_study_killed_at_random_moments_goes_on_to_the_same_table(tmp_path):
    script = (
        "import sys\nfrom pathlib import Path\nfrom kinfolk import checkpoints; checkpoints.WORTH = 0.0\n"
        "from kinfolk.experiments.registry import EXPERIMENTS\n"
        f"print('begun', flush=True); EXPERIMENTS[{STUDIES[0]!r}].run(Path(sys.argv[1]), quick=True, shown=False)\n"
    )
    rng, study = np.random.default_rng(0), EXPERIMENTS[STUDIES[0]]
    for _ in range(6):
        run = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "killed")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert run.stdout is not None
        run.stdout.readline()
        time.sleep(rng.exponential(1.5))
        run.kill()
        run.wait()
        run.stdout.close()
    expected = study.run(tmp_path / "anew", quick=True, shown=False).csv.read_text()
    assert Path(study.run(tmp_path / "killed", quick=True, shown=False).csv).read_text() == expected
