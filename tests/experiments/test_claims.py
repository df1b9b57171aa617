"""All studies in one run: what is done is not done again, what cannot be run is said, and one page has all."""

import json
import re
from html import escape
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from kinfolk.experiments import claims
from kinfolk.experiments.claims_page import claims_page, read_claims, verdict_on
from kinfolk.experiments.publishing import About, Study, publish
from kinfolk.experiments.registry import EXPERIMENTS

RESULTS = Path(__file__).parents[2] / "results"
# Figures and tables as the papers number them.
NUMBERED = {
    "Roy (2006)": [
        *("figure 1-1", "figure 1-2"),
        *(f"figure 2-{n}" for n in range(1, 8)),
        *("figure 3-1", "figure 3-2", "table 3.1"),
        *(f"figure 4-{n}" for n in range(1, 9)),
        *("table 4.1", "figure A-1", "figure A-2", "figure A-3"),
        *("equation (4.2)", "equation (4.7)", "equation (4.15)"),
    ],
    "Roy and Kaelbling (2007)": [f"figure {n}" for n in range(1, 6)],
    "Niculescu-Mizil and Caruana (2012)": [f"figure {n}" for n in range(1, 9)],
    "Zhang, Ghahramani and Yang (2005)": ["figure 1", "figure 2"],
    "Ni, Carin and Dunson (2007)": [f"figure {n}" for n in range(1, 8)],
}


class Coin:
    """A study that counts how often it is run."""

    title = "Nobody (1900), <b>table 1</b>: a coin"
    about = About("Nobody (1900).", "Tossed a coin.", "A made-up coin.", ("It fell on its edge.",))

    def __init__(self, name, broken=False):
        self.name, self.broken, self.n_runs, self.repeated = name, broken, 0, None

    def run(self, output, quick=False, seed=0, *, repeats=None, shown=True):
        self.n_runs += 1
        self.asked = repeats
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
    assert "1 of 2 studies were run, 1 of them in their quick form" in text
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


def test_a_study_put_together_from_parts_is_called_so_and_does_not_count_as_the_whole(tmp_path):
    study = Coin("alone")
    claims.run_all(tmp_path, say=lambda _: None, studies=[study])
    place = tmp_path / "alone.json"
    record = json.loads(place.read_text(encoding="utf-8"))
    record["with"]["part"] = True
    assert "run in part" in claims_page([record])
    place.write_text(json.dumps(record), encoding="utf-8")
    text = claims.run_all(tmp_path, say=lambda _: None, studies=[study]).read_text(encoding="utf-8")
    assert study.n_runs == 2
    assert "run in part" not in text


def test_a_run_with_fewer_repeats_is_called_so_and_does_not_count_as_the_whole(tmp_path):
    plain, repeated = Coin("plain"), Coin("repeated")
    repeated.repeated = "n_splits"
    studies = [plain, repeated]
    text = claims.run_all(tmp_path, repeats=3, say=lambda _: None, studies=studies).read_text(encoding="utf-8")
    assert (plain.asked, repeated.asked) == (None, 3)
    assert text.count("run, with 3 repeats of everything") == 1
    assert "kinfolk reproduce repeated --repeats 3" in text
    claims.run_all(tmp_path, say=lambda _: None, studies=studies)
    assert [study.n_runs for study in studies] == [1, 2]


def test_a_damaged_record_is_made_again(tmp_path):
    study = Coin("first")
    claims.run_all(tmp_path, studies=[study], say=lambda _: None)
    (tmp_path / "first.json").write_text("{", encoding="utf-8")
    claims.run_all(tmp_path, studies=[study], say=lambda _: None)
    assert study.n_runs == 2
    assert json.loads((tmp_path / "first.json").read_text(encoding="utf-8"))["ours"] == ["It did not."]


def places_of(paper):
    """Figures, tables and equations that the claims of a paper name, those of a range one by one."""
    named = set()
    for claim in read_claims():
        if claim.paper != paper:
            continue
        for kind, listed in re.findall(r"(figure|table|equation)s? ([^a-z]*(?:to [^a-z]+)*)", claim.place):
            for first, last in re.findall(r"([A-Z0-9][-.\d]*\d|\d|\(4[.\d]+\))(?: to ([A-Z0-9][-.\d]*|\d))?", listed):
                head, at = re.fullmatch(r"(.*?)(\d+)\)?", first).groups()
                end = int(re.search(r"\d+$", last).group()) if last else int(at)
                tail = ")" if first.endswith(")") else ""
                named |= {f"{kind} {head}{n}{tail}" for n in range(int(at), end + 1)}
    return named


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_figure_and_table_of_a_paper_is_among_the_claims(paper):
    assert [place for place in NUMBERED[paper] if place not in places_of(paper)] == []


def test_every_claim_names_a_finding_of_a_study_or_says_why_there_is_none():
    for claim in read_claims():
        if claim.study is None:
            assert claim.why
        else:
            assert 1 <= claim.finding <= len(EXPERIMENTS[claim.study].about.found), claim


def test_the_page_has_every_claim_and_what_is_not_run_is_said():
    text = claims_page([])
    for claim in read_claims():
        assert escape(claim.says) in text
        assert escape(claim.place) in text
        assert verdict_on(claim, {})[0] == ("no measurement" if claim.study is None else "not run")


def test_a_claim_that_does_not_hold_says_why_where_that_is_known():
    claim = next(claim for claim in read_claims() if claim.because)
    record = {"not_run": None, "ours": ["ours"] * claim.finding, "held": ["held"] * claim.finding}
    assert verdict_on(claim, {claim.study: record}) == ("held", "ours")
    for verdict in ("partly", "not held", "open"):
        record["held"][-1] = verdict
        assert verdict_on(claim, {claim.study: record}) == (verdict, f"ours {claim.because}")


@pytest.mark.skipif(not RESULTS.is_dir(), reason="results are not part of this copy")
def test_every_claim_that_did_not_hold_in_a_full_run_says_why():
    known = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")}
    full = {name: record for name, record in known.items() if not record["with"]["quick"]}
    silent = [claim for claim in read_claims() if verdict_on(claim, full)[0] == "not held" and not claim.because]
    assert silent == []


def test_a_claim_shows_its_own_finding_with_its_verdict():
    claim = next(claim for claim in read_claims() if claim.study == "ijcai-figure-4" and claim.finding == 2)
    record = {"not_run": None, "ours": ["first", "second"], "held": ["held", "partly"]}
    assert verdict_on(claim, {claim.study: record}) == ("partly", "second")
    assert verdict_on(claim, {claim.study: record | {"held": []}}) == ("in words", "second")
    assert verdict_on(claim, {claim.study: record | {"not_run": "no data"}}) == ("not run", "no data")


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_committed_results_say_what_they_were_made_with(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["name"] == path.stem
    assert record["with"]["kinfolk"]
    assert record["commit"]
    assert record["processor"]
    assert record["cores"] >= 1
    assert len(record["ours"]) == len(record["found"])
    assert pl.read_csv(path.with_suffix(".csv"), infer_schema_length=None).height > 0
    assert path.with_suffix(".png").is_file()


@pytest.mark.skipif(not RESULTS.is_dir(), reason="results are not part of this copy")
def test_the_page_of_committed_results_has_every_claim():
    text = claims.page_of(RESULTS)
    for claim in read_claims():
        assert escape(claim.says) in text


@pytest.mark.slow
def test_every_study_runs_quickly_and_the_page_has_it(tmp_path):
    text = claims.run_all(tmp_path, quick=True, say=lambda _: None).read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f'id="{name}"' in text
