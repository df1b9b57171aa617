"""Publishing: files are whole or not there, and the report holds each finding beside ours."""

import os

import polars as pl
import pytest
from matplotlib.figure import Figure

from kinfolk.experiments.publishing import About, Study, publish, write_whole

ABOUT = About("A. Nobody (1900).", "Tossed coins.", "A made-up coin.", ("It fell on heads.", "It rolled away."))


def test_a_file_is_left_as_it_was_when_writing_fails_and_nothing_lies_around(tmp_path, monkeypatch):
    path = tmp_path / "numbers.csv"
    write_whole(path, b"old")

    def break_off(self, target):
        assert self.read_bytes() == b"new"
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", break_off)
    with pytest.raises(OSError, match="the disk is full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["numbers.csv"]


def test_the_report_holds_each_finding_beside_ours(tmp_path):
    study = Study(pl.DataFrame({"heads": [0.5]}), Figure(), ("So it did.", "It stayed."), "two tosses", "And more.")
    outcome = publish(tmp_path / "new" / "folder", "coin", "A coin", ABOUT, study)
    text = outcome.markdown.read_text()
    assert "| It fell on heads. | So it did. |\n| It rolled away. | It stayed. |" in text
    assert all(part in text for part in ("Tossed coins.", "A made-up coin.", "two tosses", "And more.", "coin.png"))


def test_a_finding_without_ours_beside_it_is_refused(tmp_path):
    study = Study(pl.DataFrame({"heads": [0.5]}), Figure(), ("So it did.",), "two tosses")
    with pytest.raises(ValueError, match="zip"):
        publish(tmp_path, "coin", "A coin", ABOUT, study)
    assert list(tmp_path.iterdir()) == []


def test_numbers_are_written_to_six_places(tmp_path):
    study = Study(pl.DataFrame({"heads": [1 / 3], "tosses": [3]}), Figure(), ("a", "b"), "three tosses")
    assert publish(tmp_path, "coin", "A coin", ABOUT, study).csv.read_text() == "heads,tosses\n0.333333,3\n"
