"""The studies of sequences, with models that stand in: what is compared, on which sequences, and what is said of it."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from kinfolk.datasets.sequences import make_kin_sequences, make_sequences
from kinfolk.experiments.publishing import publish
from kinfolk.experiments.sequences import mocap, music, synthetic, vowels
from kinfolk.experiments.sequences.models import AVERAGED, ESTIMATORS, NESTED, SHARED, SINGLE, gain_over, steps_of
from kinfolk.experiments.sequences.music import compare_clips, held_out, kin_of, middle
from kinfolk.experiments.sequences.synthetic import judge, path_from_one_cluster
from kinfolk.experiments.sequences.vowels import by_hmmlearn, choose, nearest_mean


class Unigram:
    """Stands in for an estimator: symbols, or Gaussian frames, independent of each other, by task or for all tasks."""

    def __init__(self, method, **parameters):
        self.method, self.parameters = method, parameters

    def fit(self, X, lengths, task):
        self.tasks_ = np.unique(task)
        of_step = np.repeat(task, lengths)
        if self.parameters.get("emission") == "gaussian":
            self.means = np.array([X[of_step == t].mean(axis=0) for t in self.tasks_])
        else:
            n_codes = len(self.parameters.get("symbols", range(8)))
            counts = np.array([np.bincount(X[of_step == t, 0], minlength=n_codes) for t in self.tasks_])
            if self.method == SHARED:
                counts = np.tile(counts.sum(axis=0), (len(counts), 1))
            weight = 0.1 if self.method == NESTED else 1.0
            self.shares = (counts + weight) / (counts + weight).sum(axis=1, keepdims=True)
        n = len(self.tasks_)
        self.partition_ = np.arange(n) // 2
        self.similarity_ = np.equal.outer(self.partition_, self.partition_).astype(float)
        n_draws = self.parameters.get("n_draws", 4)
        partitions = np.tile(self.partition_, (2, n_draws, 1))
        self.posterior_ = SimpleNamespace(traces=SimpleNamespace(partitions=partitions))
        self.convergence_ = SimpleNamespace(r_hat={"log joint": 1.0})
        return self

    def score_samples(self, X, lengths, task):
        if self.parameters.get("emission") == "gaussian":
            return self.classify(X, lengths)[np.arange(len(lengths)), np.searchsorted(self.tasks_, task)]
        place = np.searchsorted(self.tasks_, np.repeat(task, lengths))
        logs = np.log(self.shares[place, np.asarray(X).reshape(len(place), -1)[:, 0]])
        return np.add.reduceat(logs, np.cumsum(lengths) - lengths)

    def sample(self, lengths, task, random_state):
        shares = self.shares[np.searchsorted(self.tasks_, task)]
        drawn = np.random.default_rng(random_state).choice(len(shares), p=shares, size=(int(np.sum(lengths)), 1))
        return drawn, np.zeros(len(drawn), dtype=int)

    def classify(self, X, lengths):
        starts = np.cumsum(lengths) - lengths
        means = np.add.reduceat(X, starts, axis=0) / lengths[:, None]
        return -((means[:, None, :] - self.means) ** 2).sum(axis=2)


def clips(random_state):
    made = make_kin_sequences(4, 2, 3, n_sequences=12, length=10, likeness=500.0, random_state=1)
    # Tasks 1 and 3, 2 and 4 are drawn from the same clusters.
    return SimpleNamespace(
        X=made.X, lengths=made.lengths, task=made.task + 1, partition=made.partition, pairs=[(1, 3), (2, 4)]
    )


def utterances():
    made = make_kin_sequences(
        3, 3, 2, emission="gaussian", n_values=2, n_sequences=20, length=(4, 8), sharpness=8.0, random_state=3
    )
    return SimpleNamespace(
        X=made.X, lengths=made.lengths, task=made.task + 1, is_train=np.tile(np.repeat([True, False], 10), 3)
    )


def movements():
    rng = np.random.default_rng(4)
    action = np.repeat(np.array(["run", "sit", "run", "jump"]), 10)
    shown = {"run": 0.0, "sit": 4.0, "jump": 9.0}
    X = np.array([[shown[name]] for name in action]) + 0.1 * rng.normal(size=(40, 1))
    return SimpleNamespace(X=X, lengths=np.array([20, 20]), task=np.array([0, 1]), action=action)


class Rounded:
    """Stands in for an estimator: a state for each whole number."""

    partition_ = np.array([0, 0])

    def __init__(self, method, **parameters):
        self.method = method

    def fit(self, X, lengths, task):
        return self

    def predict(self, X, lengths, task, decoding="viterbi"):
        return np.round(X[:, 0]).astype(np.int64)


STUDIES = {
    "synthetic": (synthetic, {"n_sets": 2, "n_shown": 3, "make": lambda random_state: several()}),
    "music": (music, {"sizes": (2, 6), "n_repeats": 2, "load": clips}),
    "vowels": (vowels, {"sizes": (1, 4), "n_repeats": 2, "load": utterances}),
}


def several():
    return make_sequences(n_sequences=4, length=5, random_state=0)


@pytest.fixture(autouse=True)
def no_peers(monkeypatch):
    for peer in ("hmmlearn.hmm", "dynamax.hidden_markov_model"):
        monkeypatch.setitem(sys.modules, peer, None)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_writes_numbers_picture_and_report_and_repeats_itself(name, tmp_path):
    module, options = STUDIES[name]
    outcomes = [
        publish(tmp_path / str(run), name, "Title", module.ABOUT, module.study(build=Unigram, **options))
        for run in range(2)
    ]
    first, second = outcomes
    assert first.csv.read_bytes() == second.csv.read_bytes()
    assert first.report == second.report
    assert first.png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert all(f"| {finding} | " in first.report for finding in module.ABOUT.found)
    assert not re.search(r"\bnan\b|\bNone\b", first.report)


def test_a_chain_is_shown_on_its_way_from_one_cluster():
    made = make_sequences(n_sequences=30, random_state=0)
    path = path_from_one_cluster(made, 40, seed=0)
    assert path.shape == (40, 12)
    assert path[-1].tolist() == made.partition.tolist()


def test_synthetic_tasks_are_fitted_from_every_start():
    given = []

    def build(method, **parameters):
        given.append((method, parameters))
        return Unigram(method, **parameters)

    table = synthetic.study(build=build, n_sets=2, n_shown=3, n_scored=1, make=lambda random_state: several()).table
    from_starts = [(method, parameters) for method, parameters in given if "start" in parameters]
    assert [parameters["start"] for _, parameters in from_starts] == ["agglomerate", "together", "apart"] * 2
    assert {method for method, _ in from_starts} == {NESTED}
    assert len({parameters["random_state"] for _, parameters in from_starts}) == 6
    assert table["start"].drop_nulls().len() == 6
    # Of one set all models are scored, with the same seed, so that the average finds the chains of the others.
    scored = [(method, parameters) for method, parameters in given if "start" not in parameters]
    assert [method for method, _ in scored] == [NESTED, SHARED, SINGLE, AVERAGED]
    assert len({parameters["random_state"] for _, parameters in scored}) == 1


def test_models_of_synthetic_tasks_are_scored_by_sequences_that_they_have_not_learnt_from():
    made, learnt = several(), []

    class Recorded(Unigram):
        def fit(self, X, lengths, task):
            learnt.append((X.tobytes(), task.tolist()))
            return super().fit(X, lengths, task)

    rows = synthetic.score_models(made, Recorded, {}, 0)
    firsts = np.arange(len(made.task)).reshape(12, -1)[:, :2].ravel()
    assert {wanted for wanted, _ in learnt} == {made.X[steps_of(made.lengths, firsts)].tobytes()}
    model = Unigram(NESTED).fit(made.X[steps_of(made.lengths, firsts)], made.lengths[firsts], made.task[firsts])
    rest = np.setdiff1d(np.arange(len(made.task)), firsts)
    of_step = np.searchsorted(model.tasks_, np.repeat(made.task[rest], made.lengths[rest]))
    logs = np.log(model.shares[of_step, made.X[steps_of(made.lengths, rest), 0]])
    assert rows[0]["score"] == pytest.approx(logs.sum() / len(rest))


def test_draws_at_the_truth_are_counted_whatever_clusters_are_called():
    traces = SimpleNamespace(partitions=np.array([[[0, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 2]]]))
    model = SimpleNamespace(
        posterior_=SimpleNamespace(traces=traces),
        partition_=np.array([4, 4, 2]),
        convergence_=SimpleNamespace(r_hat={"log joint": 1.01, "number of clusters": 1.2}),
    )
    found = judge(model, np.array([7, 7, 3]))
    assert found == {"ari": 1.0, "at_truth": 0.5, "clusters": 2.25, "worst_r_hat": 1.2}


def test_clips_are_learnt_from_their_middle_and_scored_on_all_the_rest():
    data = clips(0)
    chosen = middle(data.task, 4)
    assert chosen.tolist() == [4, 5, 6, 7, 16, 17, 18, 19, 28, 29, 30, 31, 40, 41, 42, 43]
    model = Unigram(NESTED, symbols=range(16)).fit(
        data.X[steps_of(data.lengths, chosen)], data.lengths[chosen], data.task[chosen]
    )
    for row in held_out(model, data, chosen):
        # The mean of sums is the log share of every code left, over the number of sequences left.
        rest = [i for i in range(48) if i not in chosen and data.task[i] == row["clip"]]
        codes = data.X[steps_of(data.lengths, np.array(rest)), 0]
        expected = np.log(model.shares[row["clip"] - 1, codes]).sum() / len(rest)
        assert row["log_likelihood"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="task 1 has 12 sequences: at most 10 can be learnt from"):
        middle(data.task, 11)


def test_the_nearest_clip_is_judged_by_the_intended_pairs():
    data = clips(0)
    everything = np.arange(48)
    model = Unigram(NESTED, symbols=range(16)).fit(data.X, data.lengths, data.task[everything])
    similarity, nearest = compare_clips(model, data, 0)
    assert nearest == 1.0
    assert similarity[0, 2] > similarity[0, 1]
    wrong = SimpleNamespace(**{**vars(data), "pairs": [(1, 2), (3, 4)]})
    assert compare_clips(model, wrong, 0)[1] == 0.0
    # The model that stands in calls the clips 1 and 2 kin, and 3 and 4.
    assert kin_of(model, wrong) == {"kin_of_pairs": 1.0, "kin_of_others": 0.0}
    assert kin_of(model, data) == {"kin_of_pairs": 0.0, "kin_of_others": 0.5}


def test_every_model_learns_from_the_same_sequences_and_knows_all_codes():
    seen = []

    class Recorded(Unigram):
        def fit(self, X, lengths, task):
            seen.append((self.method, len(lengths), X.tobytes(), tuple(self.parameters["symbols"])))
            return super().fit(X, lengths, task)

    outcome = music.study(build=Recorded, sizes=(2,), n_repeats=1, load=clips)
    assert [method for method, *_ in seen] == [NESTED, SHARED, SINGLE, AVERAGED]
    assert {(size, rows, symbols) for _, size, rows, symbols in seen} == {(8, seen[0][2], tuple(range(16)))}
    assert outcome.ours[1:] == ("Not run at these sizes.", "Not run at these sizes.")


def test_starts_are_compared_by_the_probabilities_of_being_kin(monkeypatch):
    class Started(Unigram):
        def fit(self, X, lengths, task):
            super().fit(X, lengths, task)
            if self.parameters.get("start") == "apart":
                self.similarity_ = np.eye(len(self.tasks_))
            return self

    monkeypatch.setattr(music, "SHOWN", (2, 6))
    outcome = music.study(build=Started, sizes=(2, 6), n_repeats=2, load=clips)
    # Of the 16 pairs of four clips, those of 1 and 2 and of 3 and 4 are kin but from the start apart.
    assert re.findall(r"all clips (\w+) \(6 sequences\) .*? differ by ([0-9.]+) on", outcome.ours[1]) == [
        ("together", "0.000"),
        ("apart", "0.250"),
    ]


def test_gains_are_paired_by_clip_and_their_error_is_over_clips():
    rows = [
        (method, 2, clip, repeat, value + clip * 100)
        for method, values in ((NESTED, (3.0, 4.0)), (SINGLE, (1.0, 1.0)))
        for clip, value in enumerate(values)
        for repeat in range(3)
    ]
    scores = pl.DataFrame(rows, schema=["method", "examples", "clip", "repeat", "score"], orient="row")
    # Differences of the two clips are 2 and 3: mean 2.5, standard error 0.5, however many repeats there are.
    assert gain_over(scores, NESTED, SINGLE, "score", "clip").rows() == [(2, 2, 2.5, 0.5)]


def test_training_utterances_are_nested_and_never_tested():
    data = utterances()
    few, more = (choose(data, size, 5) for size in (2, 6))
    assert set(few) < set(more)
    assert data.is_train[more].all()
    assert np.bincount(data.task[more]).tolist() == [0, 6, 6, 6]


def test_the_nearest_mean_frame_is_found_as_by_hand():
    data = SimpleNamespace(
        X=np.array([[0.0], [2.0], [10.0], [8.0], [3.0]]), lengths=np.array([2, 1, 1, 1]), task=np.array([1, 2, 2, 1])
    )
    # Means are 1, 10, 8 and 3: of the first two, 8 is nearer to 10, and 3 to 1.
    assert nearest_mean(data, np.array([0, 1]), np.array([2, 3])).tolist() == [2, 1]


def test_a_speaker_of_hmmlearn_is_the_one_whose_model_makes_an_utterance_most_likely():
    class Mean:
        """Stands in for a hidden Markov model: one Gaussian, fitted to all frames; of five states, a failure."""

        def __init__(self, n_components, **parameters):
            self.transmat_ = np.zeros((n_components, n_components))
            self.startprob_ = np.full(n_components, np.nan if n_components == 5 else 1 / n_components)

        def fit(self, X, lengths):
            self.mean = self.means_ = self._covars_ = X.mean(axis=0)

        def score(self, X):
            assert self.transmat_.sum(axis=1) == pytest.approx(np.ones(4))
            return -((X - self.mean) ** 2).sum()

    data = utterances()
    chosen, test = choose(data, 10, 0), np.flatnonzero(~data.is_train)
    named = by_hmmlearn(SimpleNamespace(GaussianHMM=Mean), data, chosen, test, 0)
    frames = [
        data.X[steps_of(data.lengths, chosen[data.task[chosen] == speaker])].mean(axis=0) for speaker in (1, 2, 3)
    ]
    expected = [
        1 + np.argmin([((data.X[steps_of(data.lengths, np.array([u]))] - mean) ** 2).sum() for mean in frames])
        for u in test
    ]
    assert named.tolist() == expected


def test_test_utterances_are_scored_by_the_model_of_their_own_speaker():
    outcome = vowels.study(build=Unigram, sizes=(10,), n_repeats=1, load=utterances)
    data = utterances()
    distances = []
    for number in np.flatnonzero(~data.is_train).tolist():
        of_speaker = data.is_train & (data.task == data.task[number])
        frames = data.X[steps_of(data.lengths, np.flatnonzero(of_speaker))].mean(axis=0)
        own = data.X[steps_of(data.lengths, np.array([number]))].mean(axis=0)
        distances.append(((own - frames) ** 2).sum())
    scores = dict(outcome.table.select("method", "log_likelihood").iter_rows())
    assert scores[SHARED] == pytest.approx(-np.mean(distances))
    assert scores[vowels.NEAREST] is None
    assert "Nats a test utterance, by its speaker's model" in outcome.ours[1]


def test_rows_of_speakers_that_were_published_are_not_measured_again(tmp_path):
    first = vowels.study(build=Unigram, sizes=(3, 5), n_repeats=1, load=utterances).table
    known = first.filter((first["method"] != AVERAGED) & (first["examples"] == 3)).with_columns(accuracy=0.25)
    known.write_csv(tmp_path / "earlier.csv")
    asked = []

    def told(method, **parameters):
        asked.append(method)
        return Unigram(method, **parameters)

    given = {"sizes": (3, 5), "n_repeats": 1, "load": utterances}
    both = vowels.study(build=told, earlier=tmp_path / "earlier.csv", **given).table
    assert asked == [AVERAGED, *ESTIMATORS]
    assert both["method"].to_list() == first["method"].to_list()
    taken = (both["method"] != AVERAGED) & (both["examples"] == 3)
    assert both.filter(taken)["accuracy"].to_list() == [0.25] * len(known)
    assert both.filter(~taken).equals(first.filter(~taken))


def test_the_report_says_where_hmmlearn_was_not_run():
    outcome = vowels.study(build=Unigram, sizes=(10,), n_repeats=3, load=utterances)
    assert "hmmlearn is not installed" in outcome.setting
    # All ten training utterances can be chosen in one way only.
    assert outcome.table["repeat"].unique().to_list() == [0]


def test_labels_are_counted_by_the_best_matching_of_states():
    outcome = mocap.study(build=Rounded, n_repeats=2, load=movements)
    assert outcome.table["wrong"].to_list() == [0.0] * 8
    assert outcome.table["states"].to_list() == [3] * 8
    assert mocap.share_of_wrong_labels(np.zeros(40), movements().action) == pytest.approx(0.5)


def test_rows_of_movements_that_were_published_are_not_measured_again(tmp_path):
    first = mocap.study(build=Rounded, n_repeats=1, load=movements).table
    known = first.filter(first["method"] != mocap.SHARED).with_columns(wrong=0.25)
    known.write_csv(tmp_path / "earlier.csv")
    asked = []

    def told(method, **parameters):
        asked.append((method, parameters["random_state"]))
        return Rounded(method, **parameters)

    both = mocap.study(build=told, n_repeats=2, load=movements, earlier=tmp_path / "earlier.csv").table
    assert both["method"].to_list() == 2 * first["method"].to_list()
    assert [method for method, _ in asked] == [mocap.SHARED, *mocap.MODELS]
    before = both.filter((both["repeat"] == 0) & (both["method"] != mocap.SHARED))
    assert before["wrong"].to_list() == [0.25] * len(known)
    assert both.filter(both["repeat"] == 1).drop("repeat").equals(first.drop("repeat"))


def test_a_study_of_movements_writes_numbers_picture_and_report_and_repeats_itself(tmp_path):
    first, second = (
        publish(tmp_path / run, "mocap", "Title", mocap.ABOUT, mocap.study(build=Rounded, n_repeats=2, load=movements))
        for run in "ab"
    )
    assert first.csv.read_bytes() == second.csv.read_bytes()
    assert first.report == second.report
    assert not re.search(r"\bnan\b|\bNone\b", first.report)
