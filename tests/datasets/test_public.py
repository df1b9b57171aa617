"""Sets that other packages bring, and what belongs into the folder of data."""

import re
from pathlib import Path

import numpy as np
import pytest

import kinfolk
from kinfolk.datasets import catalogue, load_public
from kinfolk.datasets.public import PUBLIC
from kinfolk.experiments.registry import EXPERIMENTS

SOURCES = Path(kinfolk.__file__).parent


@pytest.mark.parametrize(
    ("name", "module", "n_rows", "n_tasks", "features"),
    [
        # As the packages' own descriptions count them: 11 firms of 20 years; 344 penguins, 11 of unknown sex.
        ("grunfeld", "statsmodels", 220, 11, ["value", "capital"]),
        (
            "penguins",
            "palmerpenguins",
            333,
            5,
            ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"],
        ),
    ],
)
def test_a_set_has_the_rows_that_its_package_describes(name, module, n_rows, n_tasks, features):
    pytest.importorskip(module, reason=f"{module} is not installed")
    found = load_public(name)
    assert len(found.target) == len(found.task) == found.data.height == n_rows
    assert len(np.unique(found.task)) == n_tasks
    assert found.feature_names == features
    assert found.licence == PUBLIC[name].licence


def test_a_package_that_is_not_installed_is_named_and_so_are_the_sets(monkeypatch):
    monkeypatch.setitem(PUBLIC, "penguins", PUBLIC["penguins"]._replace(package="not_there_at_all"))
    with pytest.raises(FileNotFoundError, match="pip install not_there_at_all has the data set 'penguins'"):
        load_public("penguins")
    with pytest.raises(ValueError, match="grunfeld, penguins"):
        load_public("nobody")


def test_every_folder_that_loaders_read_is_in_the_catalogue_with_studies_that_exist():
    code = "".join(path.read_text("utf-8") for path in (SOURCES / "datasets").glob("*.py"))
    folders = set(re.findall(r'data_file\("(\w+)"', code)) | set(re.findall(r'^FOLDER = "(\w+)"', code, re.MULTILINE))
    assert len(folders) > 6
    assert folders <= {folder.name for folder in catalogue.CATALOGUE}
    assert {name for folder in catalogue.CATALOGUE for name in folder.studies} <= set(EXPERIMENTS)


def test_the_documentation_has_every_folder():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")
    for folder in catalogue.CATALOGUE:
        assert f"`{folder.name}/`" in page
        assert all(f"`{file}`" in page for file in folder.files)
        assert all(study in page for study in folder.studies)
