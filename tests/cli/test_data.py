"""``kinfolk data check`` says which data sets are there, and what is missing."""

import json

from kinfolk.datasets import catalogue


def test_files_that_are_missing_are_named(tmp_path, run):
    known = catalogue.CATALOGUE[0]
    for folder in catalogue.CATALOGUE[:-1]:
        (tmp_path / folder.name).mkdir()
        for file in folder.files:
            (tmp_path / folder.name / file).touch()
    last = catalogue.CATALOGUE[-1]
    missing = catalogue.missing_files(tmp_path)
    assert missing[known.name] == ()
    assert missing[last.name] == last.files
    done = run("data", "check", "--folder", tmp_path)
    assert done.exit_code == 1
    assert f"{last.name}: {last.source}" in done.stdout.replace("`", "")
    found = json.loads(run("data", "check", "--folder", tmp_path, "--json").stdout)
    assert [row["folder"] for row in found if not row["there"]] == [last.name]
    for file in last.files:
        (tmp_path / last.name).mkdir(exist_ok=True)
        (tmp_path / last.name / file).touch()
    assert run("data", "check", "--folder", tmp_path).exit_code == 0


def test_without_a_folder_it_says_what_names_one_and_a_wrong_folder_is_refused(run, monkeypatch, tmp_path):
    monkeypatch.delenv("KINFOLK_DATA", raising=False)
    done = run("data", "check")
    assert done.exit_code == 1
    assert done.stdout.startswith("KINFOLK_DATA is not set")
    refused = run("data", "check", "--folder", tmp_path / "nowhere")
    assert refused.exit_code == 2
