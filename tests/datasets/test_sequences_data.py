"""Generated and real sequences: what the paper prints, frequencies that the truth implies, and the READMEs' counts."""

import numpy as np
import pytest

from kinfolk.datasets.mocap import load_mocap
from kinfolk.datasets.music import load_music
from kinfolk.datasets.sequences import make_kin_sequences, make_sequences
from kinfolk.datasets.vowels import load_vowels

# Ni, Carin and Dunson (2007), section 4.1, as printed, by cluster.
PRINTED = {
    "starts": [[0.6950, 0.3050], [0.8724, 0.1276], [0.4729, 0.5271]],
    "transitions": [[[0.8, 0.2], [0.2, 0.8]], [[0.2, 0.8], [0.8, 0.2]], [[0.5, 0.5], [0.5, 0.5]]],
    "emissions": [
        [[0.05, 0.1, 0.7, 0.1, 0.05, 0, 0, 0], [0, 0, 0, 0.05, 0.1, 0.7, 0.1, 0.05]],
        [[0, 0, 0.05, 0.1, 0.7, 0.1, 0.05, 0], [0, 0.05, 0.1, 0.7, 0.1, 0.05, 0, 0]],
        [[0.05, 0, 0, 0, 0.05, 0.1, 0.7, 0.1], [0.1, 0.05, 0, 0, 0, 0.05, 0.1, 0.7]],
    ],
}


def test_the_papers_tasks_have_the_papers_sizes_and_clusters():
    made = make_sequences(random_state=0)
    assert (made.X.shape, made.X.dtype) == ((12 * 50 * 20, 1), np.int64)
    assert made.lengths.tolist() == [20] * 600
    assert made.task.tolist() == [task for task in range(12) for _ in range(50)]
    assert made.partition.tolist() == [0] * 3 + [1] * 4 + [2] * 5


def test_without_distortion_probabilities_are_the_printed_ones():
    made = make_sequences(distortion=0, random_state=0)
    for name, printed in PRINTED.items():
        assert made[name] == pytest.approx(np.array(printed)[made.partition])


def test_distortions_are_added_where_probabilities_are_not_zero_and_rows_add_up_to_one():
    made = make_sequences(random_state=1)
    for name in ("transitions", "emissions"):
        printed = np.array(PRINTED[name])[made.partition]
        assert made[name].sum(axis=-1) == pytest.approx(np.ones(made[name].shape[:-1]))
        assert ((made[name] > 0) == (printed > 0)).all()
        # Undone, what was added is from 0 to 0.05: the row's total is that of all raised probabilities.
        n_raised = (printed > 0).sum(axis=-1, keepdims=True)
        assert (made[name] * (1 + 0.05 * n_raised) >= printed - 1e-12).all()
        assert (made[name] <= printed + 0.05).all()
    assert made.starts == pytest.approx(np.array(PRINTED["starts"])[made.partition])


def test_codes_come_as_often_as_the_true_probabilities_say():
    made = make_sequences(n_sequences=2_000, random_state=2)
    of_step = np.repeat(made.task, made.lengths)
    for task in (0, 5, 11):
        here = of_step == task
        codes, states = made.X[here, 0], made.states[here]
        for state in range(2):
            n = (states == state).sum()
            frequency = np.bincount(codes[states == state], minlength=8) / n
            assert frequency == pytest.approx(made.emissions[task, state], abs=4 * (0.25 / n) ** 0.5)
        first = states.reshape(-1, 20)
        assert np.bincount(first[:, 0]) / 2_000 == pytest.approx(made.starts[task], abs=0.045)
        before, after = first[:, :-1].ravel(), first[:, 1:].ravel()
        for state in range(2):
            follow = np.bincount(after[before == state], minlength=2) / (before == state).sum()
            assert follow == pytest.approx(made.transitions[task, state], abs=0.02)


@pytest.mark.parametrize("make", [make_sequences, make_kin_sequences])
def test_the_same_seed_gives_the_same_sequences(make):
    one, same, other = (make(random_state=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.X, same.X)
    assert not np.array_equal(one.X, other.X)


def test_kin_share_emissions_and_have_transitions_of_their_own():
    made = make_kin_sequences(6, 2, 3, random_state=0)
    assert made.partition.tolist() == [0, 1] * 3
    assert np.array_equal(made.emissions[0], made.emissions[2])
    assert not np.allclose(made.emissions[0], made.emissions[1])
    assert not np.allclose(made.transitions[0], made.transitions[2])
    assert made.transitions.sum(axis=2) == pytest.approx(np.ones((6, 3)))


def test_likeness_brings_the_transitions_of_kin_together():
    def apart(likeness):
        rows = make_kin_sequences(40, 1, 3, likeness=likeness, random_state=0).transitions
        return np.abs(rows - rows.mean(axis=0)).mean()

    assert apart(1.0) > 2 * apart(20.0) > 4 * apart(1_000.0)


@pytest.mark.parametrize(("emission", "spread"), [("gaussian", 1.0), ("poisson", None)])
def test_numbers_have_the_mean_and_spread_of_their_state(emission, spread):
    made = make_kin_sequences(2, 1, 2, emission=emission, n_values=3, n_sequences=500, random_state=1)
    of_step = np.repeat(made.task, made.lengths)
    assert made.X.shape == (2 * 500 * 40, 3)
    for state in range(2):
        here = (of_step == 0) & (made.states == state)
        mean = made.emissions[0, state]
        # A count's variance is its mean.
        deviation = np.full(3, spread) if spread else np.sqrt(mean)
        error = 5 * deviation / here.sum() ** 0.5
        assert (np.abs(made.X[here].mean(axis=0) - mean) < error).all()
        assert made.X[here].std(axis=0) == pytest.approx(deviation, rel=0.1)


def test_lengths_may_vary_and_observations_may_be_missing():
    made = make_kin_sequences(5, 2, 2, length=(3, 6), missing=0.2, n_sequences=200, random_state=2)
    assert set(made.lengths) == {3, 4, 5, 6}
    assert len(made.X) == made.lengths.sum() == len(made.states)
    assert np.isnan(made.X).mean() == pytest.approx(0.2, abs=0.03)
    assert set(made.X[~np.isnan(made.X)]) <= set(range(16))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_tasks": 0}, "n_tasks is 0, but must be a whole number of at least 1"),
        ({"n_clusters": 11}, "n_clusters is 11, but must be at most the number of tasks, 10"),
        ({"emission": "loud"}, "emission is 'loud', but must be"),
        ({"length": (5, 4)}, "length is 4, but must be a whole number of at least 5"),
        ({"likeness": 0}, "likeness is 0, but must be a number above 0"),
        ({"missing": 1.0}, r"missing is 1\.0, but must be a share"),
    ],
)
def test_numbers_out_of_range_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_kin_sequences(**options)


def test_a_negative_distortion_is_refused():
    with pytest.raises(ValueError, match="distortion is -1, but must be"):
        make_sequences(distortion=-1)


def real(load, **options):
    try:
        return load(**options)
    except FileNotFoundError as absent:
        pytest.skip(f"the real data set is not here: {absent}")


def test_the_ten_clips_have_64_sequences_of_40_frames_and_four_pairs():
    music = real(load_music)
    assert np.bincount(music.task).tolist() == [0] + [64] * 10  # 2,582 frames a clip
    assert (len(music.X), set(music.lengths), music.X.max()) == (25_600, {40}, 31)
    assert music.pairs == [(2, 3), (4, 5), (6, 7), (9, 10)]
    for one, other in music.pairs:
        assert music.partition[one - 1] == music.partition[other - 1]
    assert len(set(music.partition)) == 6
    assert "harpsichord" in music.instruments[0]


def test_every_intended_pair_of_clips_has_the_most_similar_codes():
    """The README: on mean and deviation of the coefficients, pairs are mutual nearest neighbours; codes keep that."""
    music = real(load_music)
    codes = music.X.reshape(10, -1)
    shares = np.array([np.bincount(row, minlength=32) for row in codes]) / codes.shape[1]
    alike = np.sqrt(shares) @ np.sqrt(shares).T - np.eye(10)
    for one, other in music.pairs:
        assert (alike[one - 1].argmax(), alike[other - 1].argmax()) == (other - 1, one - 1)


def test_cepstra_of_the_clips_are_the_stored_ones():
    music = real(load_music, frames="gaussian")
    assert music.X.shape == (25_600, 10)
    # Loudness varies most, by the scale of the orthonormal transform.
    assert music.X.std(axis=0).argmax() == 0


def test_utterances_are_those_that_the_readme_counts():
    vowels = real(load_vowels)
    train, test = (np.bincount(vowels.task[part])[1:] for part in (vowels.is_train, ~vowels.is_train))
    assert train.tolist() == [30] * 9
    assert test.tolist() == [31, 35, 88, 44, 29, 24, 40, 50, 29]
    assert vowels.X.shape == (9_961, 12)
    assert (vowels.lengths[vowels.is_train].sum(), vowels.lengths[~vowels.is_train].sum()) == (4_274, 5_687)
    assert (vowels.lengths.min(), vowels.lengths.max()) == (7, 29)


def test_real_sets_that_are_not_there_are_asked_for_by_name(monkeypatch, tmp_path):
    monkeypatch.setenv("KINFOLK_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"clips\.json is not there"):
        load_music()
    with pytest.raises(FileNotFoundError, match=r"japanese_vowels\.npz is not there"):
        load_vowels()
    with pytest.raises(ValueError, match='source is \'radio\', but must be "stored" or "sound"'):
        load_music(source="radio")


def test_movements_are_those_that_their_readme_tells_of():
    mocap = real(load_mocap)
    assert mocap.X.shape == (2_058, 12)
    assert mocap.lengths.tolist() == [382, 205, 251, 446, 387, 387]
    assert mocap.subject.tolist() == [13, 13, 13, 14, 14, 14]
    assert len(np.unique(mocap.action)) == 12
    assert mocap.columns[0] == "root.ty"
