"""Sound files as one channel at one rate: WAV by itself, and all that libsndfile reads with the extra ``audio``."""

from __future__ import annotations

import os
import struct
import warnings
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

RATE = 22_050
WAVE = (".wav", ".wave")
SOUNDS = (*WAVE, ".aif", ".aiff", ".au", ".caf", ".flac", ".mp3", ".oga", ".ogg", ".opus", ".w64")
# Beyond these a header is damaged, not meant.
RATES = (1_000, 1_000_000)
# A ratio of rates is taken exactly where its denominator is no larger, as that of all usual rates is.
_MOST_PARTS = 10_000


def sound_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Sound files of a folder, by name; those of folders in it are left out, as are hidden files.

    Raises
    ------
    ValueError
        Where it is no folder, or holds no sound.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ValueError(f"{place} is not a folder: sound files are looked for in one")
    # Files that differ in capitals alone still have an order of their own.
    files = sorted(
        (file for file in place.iterdir() if file.suffix.lower() in SOUNDS and not file.name.startswith(".")),
        key=lambda file: (file.name.casefold(), file.name),
    )
    files = [file for file in files if file.is_file()]
    if not files:
        raise ValueError(f"{place} holds no sound file: names that end in {', '.join(SOUNDS)} are read")
    return files


def read_sound(path: str | os.PathLike[str], *, rate: int = RATE) -> Floats:
    """Read a sound file; channels are averaged, and another rate is converted.

    Parameters
    ----------
    path : path-like
        WAV of whole or floating-point numbers, or, with soundfile installed (extra ``audio``), any kind that it reads.
    rate : int, default=22050
        Samples a second wanted.

    Returns
    -------
    ndarray of shape (n_samples,)
        Full scale is from −1 to 1.

    Raises
    ------
    ValueError
        Where the file is damaged, holds no sound, or holds numbers that are not finite.
    ImportError
        Where soundfile is needed and not installed.

    Examples
    --------
    >>> import tempfile
    >>> from scipy.io import wavfile
    >>> path = Path(tempfile.mkdtemp()) / "tone.wav"
    >>> tone = np.sin(2 * np.pi * 440 * np.arange(44_100) / 44_100)
    >>> wavfile.write(path, 44_100, (32_000 * np.column_stack([tone, tone])).astype(np.int16))
    >>> read_sound(path).shape
    (22050,)
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(2, "there is no such sound file", str(file))
    its_rate, samples = _read_wave(file) if file.suffix.lower() in WAVE else _read_any(file)
    if not RATES[0] <= its_rate <= RATES[1]:
        raise ValueError(f"{file} cannot be read: its header gives {its_rate} samples a second, so it is damaged")
    if not samples.size:
        raise ValueError(f"{file} holds no sound: it has 0 samples, and at least one frame of 25 ms is needed")
    signal = samples.mean(axis=1) if samples.ndim == 2 else samples
    if not np.isfinite(signal).all():
        raise ValueError(f"{file} cannot be used: sample {int(np.argmin(np.isfinite(signal)))} is not a finite number")
    return _resampled(signal, its_rate, rate)


def _resampled(signal: Floats, from_rate: int, to_rate: int) -> Floats:
    if from_rate == to_rate:
        return signal
    # Imported here because most recordings of one collection already have the rate wanted.
    from scipy.signal import resample_poly

    # The filter grows with the terms of the ratio: a prime rate of a million would take seconds and a gibibyte. The
    # nearest ratio of small terms is off by less than a part in ten thousand, far below what can be heard.
    ratio = Fraction(to_rate, from_rate).limit_denominator(_MOST_PARTS)
    return np.asarray(resample_poly(signal, ratio.numerator, ratio.denominator), dtype=np.float64)


def _read_wave(file: Path) -> tuple[int, Floats]:
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            # A tag that is not sound is no harm, and a file cut short still has its beginning.
            warnings.simplefilter("ignore", wavfile.WavFileWarning)
            rate, samples = wavfile.read(file)
    except (ValueError, EOFError, struct.error, IndexError, ZeroDivisionError, UnboundLocalError, MemoryError) as error:
        try:
            return _read_any(file)
        except ImportError:
            raise ValueError(f"{file} cannot be read as WAV: {_cause(error)}") from None
    return int(rate), _full_scale(samples)


def _full_scale(samples: NDArray[np.generic]) -> Floats:
    """Samples from −1 to 1; eight-bit ones are without a sign in WAV files, with silence at 128."""
    if np.issubdtype(samples.dtype, np.floating):
        return samples.astype(np.float64)
    width = 8 * samples.dtype.itemsize
    middle = 2.0 ** (width - 1)
    return (samples.astype(np.float64) - (middle if np.issubdtype(samples.dtype, np.unsignedinteger) else 0.0)) / middle


def _read_any(file: Path) -> tuple[int, Floats]:
    try:
        soundfile = import_module("soundfile")
    except ImportError:
        raise ImportError(
            f"{file} needs the package soundfile (pip install 'kinfolk[audio]'): without it, WAV alone is read"
        ) from None
    try:
        samples, rate = soundfile.read(file, dtype="float64")
    except (soundfile.LibsndfileError, RuntimeError, TypeError) as error:
        raise ValueError(f"{file} cannot be read as sound: {_cause(error)}") from None
    return int(rate), np.asarray(samples, dtype=np.float64)


def _cause(error: Exception) -> str:
    """What a reader said, as the end of a sentence."""
    said = " ".join(str(error).split()).rstrip(".")
    return said or "it is damaged or cut short"
