"""Sound files to sequences: values of closed form, a data set's stored coefficients, and files of every bad kind."""

import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.io import wavfile

from kinfolk.datasets.real import data_file
from kinfolk.datasets.sound.audio import Codebook, learn_codebook, read_music, read_recording
from kinfolk.datasets.sound.cepstrum import Framing, cepstrum, side_by_side
from kinfolk.datasets.sound.sound_files import RATE, read_sound, sound_files


def tone(hertz, seconds=1.0, rate=RATE):
    return np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)


@pytest.fixture
def no_soundfile(monkeypatch):
    # None in place of a module makes its import fail, whether it is installed or not.
    monkeypatch.setitem(sys.modules, "soundfile", None)


def write(path, signal, rate=RATE, kind=np.float32):
    scale = {np.uint8: 127, np.int16: 32_767, np.int32: 2**31 - 1}.get(kind)
    stored = signal if scale is None else np.round(signal * scale) + (128 if kind is np.uint8 else 0)
    wavfile.write(path, rate, stored.astype(kind))
    return path


@pytest.mark.parametrize(("kind", "error"), [(np.uint8, 0.015), (np.int16, 1e-4), (np.int32, 1e-7), (np.float32, 1e-6)])
def test_every_number_format_of_wav_is_read_at_full_scale(tmp_path, kind, error):
    signal = 0.8 * tone(440)
    assert read_sound(write(tmp_path / "a.wav", signal, kind=kind)) == pytest.approx(signal, abs=error)


def test_channels_are_averaged(tmp_path):
    left, right = tone(440), tone(880)
    read = read_sound(write(tmp_path / "a.wav", np.column_stack([left, right])))
    assert read == pytest.approx((left + right) / 2, abs=1e-6)


@pytest.mark.parametrize("rate", [8_000, 44_100, 48_000])
def test_another_rate_is_converted_to_22050_samples_a_second(tmp_path, rate):
    read = read_sound(write(tmp_path / "a.wav", tone(440, rate=rate), rate))
    assert len(read) == RATE
    # Filters of the conversion reach over both ends.
    assert read[500:-500] == pytest.approx(tone(440)[500:-500], abs=2e-3)


@pytest.mark.parametrize("rate", [1_009, 99_991, 999_983])
def test_a_prime_rate_takes_little_memory_and_keeps_the_pitch(tmp_path, rate):
    path = write(tmp_path / "a.wav", tone(100, rate=rate), rate)
    read_sound(path)  # imports are made before
    tracemalloc.start()
    read = read_sound(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The sound itself, read and averaged, is 24 MB at the highest rate.
    assert peak < 100e6
    assert abs(len(read) - RATE) <= 2
    assert read[1_000:20_000] == pytest.approx(tone(100)[1_000:20_000], abs=0.02)


def spectrum_in_bands_by_loops(frame, rate, n_fft, n_bands):
    """The definition, band by band and frequency by frequency."""
    mel_of = lambda f: 2595 * np.log10(1 + f / 700)  # noqa: E731
    edges = 700 * (10 ** (np.linspace(mel_of(20), mel_of(rate / 2), n_bands + 2) / 2595) - 1)
    bins = [int(np.floor((n_fft + 1) * edge / rate)) for edge in edges]
    n = len(frame)
    window = [0.5 - 0.5 * np.cos(2 * np.pi * i / (n - 1)) for i in range(n)]
    power = np.abs(np.fft.fft(frame * window, n_fft)) ** 2
    bands = []
    for low, middle, high in zip(bins, bins[1:], bins[2:], strict=False):
        rising = sum(power[k] * (k - low) / (middle - low) for k in range(low, middle))
        falling = sum(power[k] * (high - k) / (high - middle) for k in range(middle, high))
        bands.append(np.log(max(rising + falling, 1e-10)))
    return bands


def test_coefficients_are_those_of_the_definition_written_as_loops():
    rng = np.random.default_rng(0)
    signal = rng.normal(size=6 * 551)
    found = cepstrum(signal, RATE, side_by_side(40, RATE))
    # Frames of 551 samples begin at multiples of 551.25: there is no room for a sixth.
    assert found.shape == (5, 10)
    for frame, start in enumerate((0, 551, 1102, 1653, 2205)):
        bands = spectrum_in_bands_by_loops(signal[start : start + 551], RATE, 1024, 40)
        # The orthonormal cosine transform, as a sum.
        place = np.arange(40)
        expected = [
            np.sqrt((1 if c == 0 else 2) / 40) * np.sum(bands * np.cos(np.pi * c * (2 * place + 1) / 80))
            for c in range(10)
        ]
        assert found[frame] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_coefficients_are_the_stored_ones_of_the_music_clips():
    pytest.importorskip("soundfile", reason="the clips are Ogg Vorbis")
    try:
        stored = np.load(data_file("music_clips", "mfcc.npz"))
        clip = data_file("music_clips", "audio/clip04.ogg")
    except FileNotFoundError as absent:
        pytest.skip(f"the music clips are not here: {absent}")
    found = cepstrum(read_sound(clip), RATE, Framing(RATE / 512, 1024), n_coefficients=13)
    assert found == pytest.approx(stored["clip04"], abs=2e-3)


def test_loudness_moves_the_first_coefficient_alone():
    signal = np.random.default_rng(1).normal(size=RATE)
    framing = side_by_side(40, RATE)
    soft, loud = cepstrum(signal, RATE, framing), cepstrum(10 * signal, RATE, framing)
    # Power times 100 adds log 100 to each of 40 bands; an orthonormal transform of a constant is √40 of it.
    assert loud - soft == pytest.approx(np.tile([np.log(100) * 40**0.5, *[0.0] * 9], (40, 1)), abs=1e-9)


def test_a_minute_at_22050_has_2400_frames_of_25_ms(tmp_path):
    recording = read_recording(write(tmp_path / "minute.wav", tone(440, 60)))
    assert (recording.frames.shape, recording.seconds, recording.name) == ((2400, 10), 60.0, "minute")


def test_a_codebook_gives_each_frame_the_nearest_centre():
    rng = np.random.default_rng(2)
    frames = rng.normal(size=(200, 3)) * [1.0, 10.0, 0.1]
    codebook = learn_codebook(frames, n_codes=5)
    scaled = (frames[:, None, :] - codebook.centres) / frames.std(axis=0)
    assert codebook.encode(frames).tolist() == (scaled**2).sum(axis=2).argmin(axis=1).tolist()
    # Each centre is the mean of its frames: k-means has converged.
    for code in range(5):
        mean = frames[codebook.encode(frames) == code].mean(axis=0)
        assert codebook.centres[code] == pytest.approx(mean, rel=1e-2, abs=0.05)


def test_the_same_seed_gives_the_same_codebook():
    frames = np.random.default_rng(3).normal(size=(300, 4))
    one, same, other = (learn_codebook(frames, 6, seed).centres for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_fewer_different_frames_than_codes_give_a_code_each():
    codebook = learn_codebook(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 3.0]]), n_codes=32)
    assert codebook.centres.tolist() == [[0.0, 1.0], [0.0, 3.0]]


def test_very_many_frames_are_quantised_in_batches(monkeypatch):
    monkeypatch.setattr("kinfolk.datasets.sound.audio.MANY_FRAMES", 50)
    frames = np.repeat([[0.0], [10.0]], 100, axis=0) + np.random.default_rng(4).normal(size=(200, 1))
    codes = learn_codebook(frames, 2).encode(frames)
    assert codes.tolist() == [0] * 100 + [1] * 100


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    write(tmp_path / "b.wav", 0.1 * rng.normal(size=int(2.6 * RATE)))
    write(tmp_path / "a.WAV", tone(440, 3.0, 44_100), 44_100)
    (tmp_path / "notes.txt").write_text("not sound")
    (tmp_path / ".hidden.wav").write_text("not sound")
    return tmp_path


def test_a_folder_becomes_one_second_sequences_by_recording(folder):
    music = read_music(folder, n_codes=8)
    assert music.task.tolist() == ["a"] * 3 + ["b"] * 2
    assert music.lengths.tolist() == [40] * 5
    assert (music.X.shape, music.X.dtype) == ((200, 1), np.int64)
    assert set(music.X[:120].ravel()).isdisjoint(music.X[120:].ravel())
    assert [round(recording.seconds, 1) for recording in music.recordings] == [3.0, 2.6]


def test_cepstra_themselves_can_be_the_observations(folder):
    music = read_music(folder, frames="gaussian", seconds=0.5)
    assert (music.X.shape, music.lengths.tolist(), music.codebook) == ((120 + 100, 10), [20] * 11, None)
    assert np.array_equal(music.X[:120], music.recordings[0].frames)


def test_the_order_of_files_decides_nothing_but_the_order_of_tasks(folder):
    files = sound_files(folder)
    forward, backward = read_music(files, frames="gaussian"), read_music(files[::-1], frames="gaussian")
    assert backward.task.tolist() == ["b"] * 2 + ["a"] * 3
    assert np.array_equal(forward.X[:120], backward.X[80:])


def test_of_a_long_recording_the_middle_is_used(folder):
    whole, middle = (read_music([folder / "b.wav"], frames="gaussian", longest=longest) for longest in (None, 1.0))
    # 104 frames in 2.6 s: 32 on either side of the middle 40.
    assert np.array_equal(middle.X, whole.recordings[0].frames[32:72])
    assert middle.recordings[0].seconds == whole.recordings[0].seconds
    with pytest.raises(ValueError, match=r"longest is 0\.5, but must be at least the 1 s"):
        read_music(folder, longest=0.5)


def test_files_that_cannot_be_used_can_be_left_out(folder):
    (folder / "ab.wav").write_bytes(b"nothing")
    told = []
    music = read_music(folder, leave_out=told.append)
    assert [recording.name for recording in music.recordings] == ["a", "b"]
    assert ["ab.wav" in str(error) for error in told] == [True]
    with pytest.raises(ValueError, match="none of the 1 sound files can be used"):
        read_music([folder / "ab.wav"], leave_out=told.append)


def test_recordings_of_one_name_are_told_apart_by_ending_and_folder(tmp_path):
    (tmp_path / "x").mkdir()
    files = [tmp_path / "a.wav", tmp_path / "a.wave", tmp_path / "x" / "a.wav"]
    for file in files:
        write(file, tone(440))
    assert [r.name for r in read_music(files).recordings] == [str(files[0]), "a.wave", str(files[2])]


def test_a_silent_recording_is_a_recording_like_any_other(tmp_path):
    write(tmp_path / "silence.wav", np.zeros(2 * RATE))
    write(tmp_path / "tone.wav", tone(440, 2.0))
    music = read_music(tmp_path)
    assert [recording.silent for recording in music.recordings] == [True, False]
    assert len(set(music.X[:80].ravel())) == 1
    assert np.isfinite(music.recordings[0].frames).all()
    assert read_music([tmp_path / "silence.wav"]).X.tolist() == [[0]] * 80


def test_a_recording_of_less_than_a_second_is_one_short_sequence(tmp_path):
    music = read_music([write(tmp_path / "short.wav", tone(440, 0.5))])
    assert music.lengths.tolist() == [20]


@pytest.mark.usefixtures("no_soundfile")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "bad.wav cannot be read as WAV"),
        (b"RIFF\x00\x00\x00\x00WAVE", "bad.wav cannot be read as WAV"),
        (b"not sound at all", "bad.wav cannot be read as WAV"),
        (bytes(range(256)) * 8, "bad.wav cannot be read as WAV"),
    ],
)
def test_a_damaged_wav_file_is_named_in_one_sentence(tmp_path, content, sentence):
    (tmp_path / "bad.wav").write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as refused:
        read_music(tmp_path)
    assert "\n" not in str(refused.value)


def test_every_way_to_cut_a_wav_file_short_is_survived(tmp_path, no_soundfile):
    whole = write(tmp_path / "whole.wav", tone(440, 0.1), kind=np.int16).read_bytes()
    for length in [*range(64), 1000, 4000]:
        path = tmp_path / "cut.wav"
        path.write_bytes(whole[:length])
        try:
            read = read_sound(path)
        except ValueError as refused:
            told = str(refused)
        else:
            told = "cut.wav" if np.isfinite(read).all() else "not finite"
        assert "cut.wav" in told


def test_too_short_empty_endless_and_missing_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"short\.wav is too short: it lasts 20 ms"):
        read_recording(write(tmp_path / "short.wav", tone(440, 0.02)))
    with pytest.raises(ValueError, match=r"empty\.wav holds no sound"):
        read_recording(write(tmp_path / "empty.wav", np.zeros(0)))
    with pytest.raises(ValueError, match=r"odd\.wav cannot be used: sample 1 is not a finite number"):
        read_recording(write(tmp_path / "odd.wav", np.array([0.0, np.nan, np.inf])))
    with pytest.raises(ValueError, match=r"slow\.wav cannot be read: its header gives 3 samples"):
        read_recording(write(tmp_path / "slow.wav", tone(440), rate=3))
    with pytest.raises(FileNotFoundError, match="no such sound file"):
        read_recording(tmp_path / "absent.wav")


@pytest.mark.usefixtures("no_soundfile")
@pytest.mark.parametrize("ending", ["ogg", "flac", "mp3"])
def test_other_kinds_than_wav_ask_for_soundfile_where_it_is_not_installed(tmp_path, ending):
    (tmp_path / f"a.{ending}").write_bytes(b"OggS")
    with pytest.raises(ImportError, match=rf"a\.{ending} needs the package soundfile"):
        read_music(tmp_path)


def test_soundfile_is_used_where_it_is_installed_and_its_complaint_names_the_file(tmp_path, monkeypatch):
    class LibsndfileError(RuntimeError):
        pass

    def read(file, dtype):
        if "bad" in file.name:
            raise LibsndfileError("Format not recognised.")
        return np.column_stack([tone(440), tone(440)]), RATE

    monkeypatch.setitem(sys.modules, "soundfile", SimpleNamespace(read=read, LibsndfileError=LibsndfileError))
    for name in ("good.ogg", "bad.flac"):
        (tmp_path / name).write_bytes(b"")
    assert read_sound(tmp_path / "good.ogg") == pytest.approx(tone(440))
    with pytest.raises(ValueError, match=r"bad\.flac cannot be read as sound: Format not recognised$"):
        read_sound(tmp_path / "bad.flac")


def test_folders_and_options_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no sound file"):
        read_music(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        read_music(tmp_path / "absent")
    with pytest.raises(ValueError, match='frames is \'loud\', but must be "codes" or "gaussian"'):
        read_music(tmp_path, frames="loud")
    with pytest.raises(ValueError, match=r"seconds is 0\.001"):
        read_music(tmp_path, seconds=0.001)
    with pytest.raises(ValueError, match="n_codes is 0, but must be 1 or more"):
        learn_codebook(np.zeros((3, 1)), 0)


def test_codes_of_a_constant_coefficient_are_told_by_the_others():
    codebook = Codebook(np.array([[0.0, 7.0], [1.0, 7.0]]), np.ones(2))
    assert codebook.encode(np.array([[0.1, 7.0], [0.9, 7.0]])).tolist() == [0, 1]
