"""``kinfolk music``: what it says of a folder of sound, its report, and one sentence where a folder cannot be used."""

import json
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from scipy.io import wavfile
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk.cli.music import describe, kin_text
from tests.cli.conftest import Run
from tests.cli.test_bad_input import refused

RATE = 22_050
SIMILARITY = np.array([[1.0, 0.9, 0.2, 0.0], [0.9, 1.0, 0.3, 0.0], [0.2, 0.3, 1.0, 0.004], [0.0, 0.0, 0.004, 1.0]])


class Found:
    """Stands in for the estimator: keeps what it was given, and finds the same kin whatever the sound."""

    made: ClassVar[list["Found"]] = []

    def __init__(self, **parameters: object) -> None:
        self.parameters, self.inference = parameters, parameters["inference"]
        Found.made.append(self)

    def fit(self, X, lengths, task):
        self.given = X, lengths, task
        self.tasks_ = np.unique(task)
        n = len(self.tasks_)
        self.similarity_, self.partition_ = SIMILARITY[:n, :n], np.array([0, 0, 1, 2])[:n]
        warnings.warn("The chains disagree: raise n_draws.", ConvergenceWarning, stacklevel=2)
        return self


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> type[Found]:
    monkeypatch.setattr(kinfolk, "NestedIHMM", Found, raising=False)
    Found.made.clear()
    return Found


LOW, HIGH = (220, 330, 440), (1760, 2217, 2960)


def write_notes(path: Path, notes: tuple[int, ...], seed: int, seconds: int = 3) -> None:
    """Play notes in random order, four a second, with a little noise."""
    rng = np.random.default_rng(seed)
    hertz = np.repeat(rng.choice(notes, size=4 * seconds), RATE // 4 + 1)[: seconds * RATE]
    signal = 0.5 * np.sin(2 * np.pi * np.cumsum(hertz) / RATE) + 0.01 * rng.normal(size=len(hertz))
    wavfile.write(path, RATE, signal.astype(np.float32))


@pytest.fixture(autouse=True)
def songs(run: Run) -> None:
    """Four recordings in the folder that commands run in, one with a name that HTML would misread."""
    Path("songs").mkdir()
    for seed, (name, notes) in enumerate((("a", LOW), ("b & <c>", LOW), ("d", HIGH))):
        write_notes(Path("songs") / f"{name}.wav", notes, seed)
    wavfile.write(Path("songs") / "silence.wav", RATE, np.zeros(2 * RATE, dtype=np.int16))


@pytest.mark.usefixtures("found")
def test_kin_are_listed_with_their_probabilities_most_probable_first(run: Run) -> None:
    result = run("music", "songs")
    assert result.exit_code == 0, (result.stderr, result.exception)
    lines = {line.split("  ")[0]: line for line in result.stdout.splitlines() if line}
    assert lines["a"].endswith("b & <c> (0.90), d (0.20)")
    assert lines["d"].endswith("b & <c> (0.30), a (0.20)")
    assert lines["silence"].split() == ["silence", "3", "none"]
    assert result.stderr.splitlines() == ["kinfolk: silence is silent", "kinfolk: The chains disagree: raise n_draws."]


@pytest.mark.usefixtures("found")
def test_json_holds_groups_and_pairs(run: Run) -> None:
    document = json.loads(run("music", "songs", "--json").stdout)
    assert document["groups"] == [["a", "b & <c>"], ["d"], ["silence"]]
    by_name = {entry["recording"]: entry for entry in document["recordings"]}
    assert by_name["a"]["kin"] == [
        {"recording": "b & <c>", "probability": 0.9},
        {"recording": "d", "probability": 0.2},
    ]
    assert by_name["silence"] | {"kin": []} == {
        "recording": "silence", "seconds": 2.0, "sequences": 2, "silent": True, "group": 3, "kin": [],
    }  # fmt: skip


class Page(HTMLParser):
    """Text and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name.split(":")[-1] in ("src", "href") and value]

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.usefixtures("found")
def test_the_report_is_one_file_with_names_groups_and_the_diagram(run: Run) -> None:
    assert run("music", "songs", "-o", "report.html").exit_code == 0
    text = Path("report.html").read_text(encoding="utf-8")
    page = Page(text)
    shown = " ".join(page.words)
    for fact in ("4 recordings fall into 3 groups", "b & <c> (0.90)", "silence (silent)", "The chains disagree"):
        assert fact in " ".join(shown.split()), fact
    assert page.tags.count("svg") == 1
    # Nothing is fetched from anywhere: what is pointed at lies within the picture.
    assert all(address.startswith("#") for address in page.addresses)
    assert "url(http" not in text
    assert "<c>" not in text


@pytest.mark.usefixtures("found")
def test_the_same_folder_gives_the_same_report(run: Run) -> None:
    pages = []
    for name in ("one.html", "two.html"):
        run("music", "songs", "-o", name)
        pages.append(Path(name).read_bytes())
    assert pages[0] == pages[1]


def test_options_reach_the_quantiser_and_the_model(run: Run, found: type[Found]) -> None:
    run("music", "songs", "--codes", 5, "--states", 7, "--seed", 3, "--jobs", 2, "--longest", 2)
    run("music", "songs", "--frames", "gaussian", "--quick")
    coded, numbers = found.made
    X, lengths, task = coded.given
    assert X.shape == (4 * 80, 1)
    assert set(X.ravel()) == set(range(5))
    assert lengths.tolist() == [40] * 8
    assert task.tolist() == [name for name in ("a", "b & <c>", "d", "silence") for _ in range(2)]
    given = {"n_states": 7, "emission": "categorical", "inference": "gibbs", "random_state": 3, "n_jobs": 2}
    assert {name: coded.parameters[name] for name in given} == given
    assert numbers.given[0].shape == (3 * 120 + 80, 10)
    assert (numbers.parameters["emission"], numbers.parameters["inference"]) == ("gaussian", "variational")


@pytest.mark.parametrize("frames", ["codes", "gaussian"])
def test_two_kinds_of_recordings_are_told_apart_by_the_model_itself(run: Run, frames: str) -> None:
    Path("songs/silence.wav").unlink()
    write_notes(Path("songs/e.wav"), HIGH, 3)
    result = run("music", "songs", "--quick", "--codes", 8, "--states", 4, "--frames", frames, "--json")
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert json.loads(result.stdout)["groups"] == [["a", "b & <c>"], ["d", "e"]]


def test_what_cannot_be_used_is_told_in_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    Path("empty").mkdir()
    Path("single").mkdir()
    write_notes(Path("single/only.wav"), LOW, 0)
    assert "empty holds no sound file" in refused(run, "music", "empty")
    assert "nowhere is not a folder" in refused(run, "music", "nowhere")
    assert "single holds one recording" in refused(run, "music", "single")
    assert "no folder absent" in refused(run, "music", "songs", "-o", "absent/report.html")
    Path("songs/bad.wav").write_bytes(b"RIFF")
    assert "bad.wav cannot be read as WAV" in refused(run, "music", "songs", "-o", "report.html")
    Path("songs/bad.wav").rename("songs/bad.mp3")
    assert "bad.mp3 needs the package soundfile" in refused(run, "music", "songs")


@pytest.mark.usefixtures("found")
def test_bad_files_can_be_left_out(run: Run) -> None:
    Path("songs/bad.wav").write_bytes(b"RIFF")
    result = run("music", "songs", "--skip", "--json")
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert "left out: songs/bad.wav cannot be read as" in result.stderr
    assert len(json.loads(result.stdout)["recordings"]) == 4


def test_long_lists_of_kin_are_cut() -> None:
    kin = [{"recording": str(i), "probability": 0.5} for i in range(6)]
    assert kin_text(kin) == "0 (0.50), 1 (0.50), 2 (0.50), 3 (0.50) and 2 more"
    assert kin_text([]) == "none"


def test_recordings_are_described_in_the_order_of_the_models_tasks() -> None:
    model = SimpleNamespace(
        tasks_=np.array(["x", "y"]), similarity_=np.eye(2), partition_=np.array([0, 1]), inference="gibbs"
    )
    recordings = [SimpleNamespace(name=name, seconds=1.0, silent=False) for name in ("y", "x")]
    read = SimpleNamespace(recordings=recordings, task=np.array(["y", "x", "x"]), codebook=None)
    found = describe(model, read, [])
    assert [(entry["recording"], entry["sequences"]) for entry in found["recordings"]] == [("x", 2), ("y", 1)]
