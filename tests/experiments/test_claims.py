"""All studies in one run: what is done is not done again, what cannot be run is said, and one page has all."""

import json

import polars as pl
import pytest
from matplotlib.figure import Figure

from kinfolk.experiments import claims
from kinfolk.experiments.publishing import About, Study, publish
from kinfolk.experiments.registry import EXPERIMENTS


class Coin:
    """A study that counts how often it is run."""

    title = "Nobody (1900), <b>table 1</b>: a coin"
    about = About("Nobody (1900).", "Tossed a coin.", "A made-up coin.", ("It fell on its edge.",))

    def __init__(self, name, broken=False):
        self.name, self.broken, self.n_runs = name, broken, 0

    def run(self, output, quick=False, seed=0, *, shown=True):
        self.n_runs += 1
        if self.broken:
            raise ValueError("KINFOLK_DATA is not set")
        study = Study(pl.DataFrame({"edge": [0.0]}), Figure(), ("It did not.",), "one toss")
        return publish(output, self.name, self.title, self.about, study)


def test_a_run_that_was_stopped_goes_on_and_the_page_has_all(tmp_path):
    studies = [Coin("first"), Coin("second", broken=True)]
    said = []
    page = claims.run_all(tmp_path, True, 3, say=said.append, studies=studies)
    assert said == ["1 of 2: first", "2 of 2: second"]
    text = page.read_text(encoding="utf-8")
    assert "1 of 2 studies were run" in text
    assert "It did not." in text
    assert "not run: KINFOLK_DATA is not set" in text
    assert "kinfolk reproduce first --quick --seed 3" in text
    assert "<b>table 1</b>" not in text
    studies[1].broken = False
    claims.run_all(tmp_path, True, 3, say=said.append, studies=studies)
    assert [study.n_runs for study in studies] == [1, 2]
    assert "2 of 2 studies were run" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("changed", [{"quick": False}, {"seed": 4}])
def test_another_run_is_run_again(tmp_path, changed):
    study = Coin("first")
    before = {"quick": True, "seed": 3}
    for setting in (before, before, before | changed):
        claims.run_all(tmp_path, setting["quick"], setting["seed"], say=lambda _: None, studies=[study])
    assert study.n_runs == 2


def test_a_damaged_record_is_made_again(tmp_path):
    study = Coin("first")
    claims.run_all(tmp_path, studies=[study], say=lambda _: None)
    (tmp_path / "first.json").write_text("{", encoding="utf-8")
    claims.run_all(tmp_path, studies=[study], say=lambda _: None)
    assert study.n_runs == 2
    assert json.loads((tmp_path / "first.json").read_text(encoding="utf-8"))["ours"] == ["It did not."]


@pytest.mark.slow
def test_every_study_runs_quickly_and_the_page_has_it(tmp_path):
    text = claims.run_all(tmp_path, quick=True, say=lambda _: None).read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f'id="{name}"' in text
