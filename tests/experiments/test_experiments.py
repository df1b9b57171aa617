"""Every experiment runs, writes its files, repeats itself, and finds what the paper found in direction."""

import re
from importlib import import_module

import numpy as np
import polars as pl
import pytest

from kinfolk.experiments.clustered_naive_bayes.ijcai_figure_4 import _pairs_together, _purity
from kinfolk.experiments.publishing import publish
from kinfolk.experiments.registry import EXPERIMENTS, find

# Smaller still than quick, for those that fit thousands of models.
SMALL = {
    "ijcai-figure-3": {"sizes": (1, 8), "n_splits": 2},
    "ijcai-figure-4": {"sizes": (16, 128)},
    "ijcai-figure-5": {"sizes": (1, 8), "n_splits": 1},
    "thesis-table-4-1": {},
}


def published(name, folder, seed=0):
    experiment = find(name)
    study = import_module(experiment.home).study(quick=True, seed=seed, **SMALL[name])
    return publish(folder, name, experiment.title, experiment.about, study)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")
    return {name: published(name, folder) for name in SMALL}


@pytest.mark.parametrize("name", SMALL)
def test_an_experiment_writes_numbers_picture_and_report(outcomes, name):
    outcome = outcomes[name]
    assert outcome.png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert pl.read_csv(outcome.csv).shape == outcome.table.shape
    report = outcome.markdown.read_text()
    assert report.startswith(f"# {EXPERIMENTS[name].title}\n")
    assert all(f"| {finding} | " in report for finding in EXPERIMENTS[name].about.found)
    assert not re.search(r"\bnan\b|\bNone\b", report)


def test_experiments_of_several_names_share_a_folder(outcomes):
    (folder,) = {outcome.csv.parent for outcome in outcomes.values()}
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        f"{name}.{kind}" for name in SMALL for kind in ("csv", "png", "md")
    )


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_gives_the_same_numbers(outcomes, tmp_path, name):
    again = published(name, tmp_path)
    assert again.csv.read_bytes() == outcomes[name].csv.read_bytes()
    assert again.report == outcomes[name].report


def test_another_seed_gives_other_numbers(outcomes, tmp_path):
    other = published("ijcai-figure-4", tmp_path, seed=1)
    assert other.csv.read_bytes() != outcomes["ijcai-figure-4"].csv.read_bytes()


def test_figure_3_shows_that_users_with_kin_gain_from_few_examples(outcomes):
    with_kin = outcomes["ijcai-figure-3"].table.filter(pl.col("person").is_in([1, 3, 20]))
    assert with_kin.group_by("person").agg(pl.col("gain").mean())["gain"].min() > 0


def test_figure_4_shows_trees_that_come_closer_to_the_true_groups_with_more_examples(outcomes):
    means = outcomes["ijcai-figure-4"].table.group_by("examples").agg(pl.col("ari_groups").mean()).sort("examples")
    few, many = means["ari_groups"]
    assert few < many
    assert many > 0.9


def test_figure_5_shows_a_gain_larger_than_its_standard_error_at_few_examples(outcomes):
    table = outcomes["ijcai-figure-5"].table
    assert table["people"].to_list() == [21, 21]
    assert (table["auc_gain"] > table["auc_gain_error"]).all()
    difference = table["auc_clustered"] - table["auc_no_sharing"]
    assert difference.to_list() == pytest.approx(table["auc_gain"].to_list())


def test_table_4_1_mixes_no_military_users_professors_and_sri_researchers(outcomes):
    table = outcomes["thesis-table-4-1"].table
    kinds = {"Military": "military", "SRI": "SRI"}
    kind = [kinds.get(institution, "professor") for institution in table["institution"]]
    groups = table.with_columns(kind=pl.Series(kind)).group_by("group_found").agg(pl.col("kind").n_unique())
    assert groups["kind"].to_list() == [1] * groups.height


def test_purity_and_pairs_are_counted_as_by_hand():
    partition = np.array([0, 0, 0, 1, 1])
    kinds = np.array(["M", "M", "P", "P", "S"])
    # Majorities: M in the first cluster (2 of 3), P or S in the second (1 of 2).
    assert _purity(partition, kinds) == pytest.approx(3 / 5)
    # Pairs of M and P: two users with two, and both M are with the one P of their cluster.
    assert _pairs_together(partition, kinds == "M", kinds == "P") == pytest.approx(2 / 4)
