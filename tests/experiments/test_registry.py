"""The registry: names resolve, in a fixed order, and asking for the list loads nothing heavy."""

import subprocess
import sys
from types import SimpleNamespace

import polars as pl
import pytest
from matplotlib.figure import Figure

from kinfolk.experiments.publishing import About, Study
from kinfolk.experiments.registry import EXPERIMENTS, Experiment, find

ON_MEETINGS = ["ijcai-figure-3", "ijcai-figure-4", "ijcai-figure-5", "thesis-table-4-1"]
ON_NETWORKS = ["networks-bhd", *(f"networks-figure-{number}" for number in (1, 2, 3, 4, 5, 7, 8))]


def test_experiments_are_listed_under_their_names_in_alphabetical_order():
    assert list(EXPERIMENTS) == sorted(EXPERIMENTS)
    assert [experiment.name for experiment in EXPERIMENTS.values()] == list(EXPERIMENTS)
    assert {*ON_MEETINGS, *ON_NETWORKS} <= {*EXPERIMENTS}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_what_the_paper_did_and_found_and_on_what_data(name):
    about = find(name).about
    assert about.did
    assert about.stands_in
    assert all(about.found)


@pytest.mark.parametrize("name", ON_MEETINGS)
def test_experiments_on_meetings_say_that_the_papers_data_are_not_public(name):
    assert "not public" in find(name).about.stands_in


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no experiment 'figure-9'; there are ijcai-figure-3, .*thesis-table-4-1$"):
        find("figure-9")


def test_listing_the_experiments_loads_none_of_the_heavy_packages():
    heavy = ("numpy", "polars", "sklearn", "matplotlib", "numba", "rich")
    code = (
        "import sys; from kinfolk.experiments.registry import EXPERIMENTS; "
        "[experiment.title for experiment in EXPERIMENTS.values()]; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def coin(monkeypatch):
    def study(*, quick, seed):
        return Study(pl.DataFrame({"seed": [seed]}), Figure(), ("It did not.",), f"quick: {quick}")

    about = About("A. Nobody (1900).", "Tossed a coin.", "A made-up coin.", ("It fell on its edge.",))
    monkeypatch.setitem(sys.modules, "coin_experiment", SimpleNamespace(ABOUT=about, study=study))
    return Experiment("coin", "A coin", "coin_experiment")


def test_running_hands_on_seed_and_haste_and_writes_under_the_experiments_name(coin, tmp_path):
    outcome = coin.run(tmp_path, quick=True, seed=7)
    assert (outcome.csv, outcome.png, outcome.markdown) == tuple(
        tmp_path / f"coin.{end}" for end in ("csv", "png", "md")
    )
    assert outcome.csv.read_text() == "seed\n7\n"
    assert "quick: True" in outcome.report


def test_repeats_are_handed_on_under_the_studys_own_name_of_them_and_refused_where_nothing_is_repeated(
    coin, tmp_path, monkeypatch
):
    with pytest.raises(ValueError, match="coin repeats nothing: leave --repeats out"):
        coin.run(tmp_path, repeats=3)

    def study(*, quick, seed, n_splits=20):
        return Study(pl.DataFrame({"splits": [n_splits]}), Figure(), ("It did not.",), "")

    monkeypatch.setattr(sys.modules["coin_experiment"], "study", study)
    assert coin.run(tmp_path, repeats=3, shown=False).csv.read_text() == "splits\n3\n"
    assert coin.run(tmp_path, shown=False).csv.read_text() == "splits\n20\n"


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith("sequences-")])
def test_every_study_of_sequences_can_be_run_with_fewer_repeats_of_everything(name):
    assert find(name).repeated is not None


def test_running_prints_the_report_and_where_the_files_are_unless_told_not_to(coin, tmp_path, capsys):
    outcome = coin.run(tmp_path)
    printed = capsys.readouterr().out
    assert "It fell on its edge." in printed
    assert "It did not." in printed
    assert f"wrote {outcome.png}" in printed
    coin.run(tmp_path, shown=False)
    assert capsys.readouterr().out == ""
