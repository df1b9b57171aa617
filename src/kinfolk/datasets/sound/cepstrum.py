"""Mel-frequency cepstral coefficients of short frames of sound (Davis and Mermelstein 1980; Ni et al. 2007, sec. 4.2).

S. B. Davis and P. Mermelstein, "Comparison of parametric representations for monosyllabic word recognition in
continuously spoken sentences", IEEE Trans. Acoustics, Speech and Signal Processing 28, 1980, 357–366.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, rfft

from kinfolk.maths.arrays import Floats

# Power below which a band counts as silent: that of a 16-bit recording's last digit is far above it.
SILENCE = 1e-10
LOWEST_HERTZ = 20.0
N_BANDS = 40
# Coarser than this, the lowest bands would fall between two frequencies of the transform.
WIDEST_BIN_HERTZ = 22.0
# Spectra of so many samples are in memory at once.
CHUNK = 1 << 22


class Framing(NamedTuple):
    """Where frames lie: how many start in a second, and how many samples each has."""

    per_second: float
    n_samples: int

    def starts(self, n_samples: int, rate: int) -> NDArray[np.int64]:
        """First sample of every frame that fits whole, each at its own time, so that no rounding adds up."""
        n_frames = int((n_samples - self.n_samples) * self.per_second / rate) + 2
        starts = np.floor(np.arange(max(n_frames, 0)) * (rate / self.per_second) + 1e-9).astype(np.int64)
        return np.asarray(starts[starts + self.n_samples <= n_samples])


def side_by_side(per_second: float, rate: int) -> Framing:
    """Frames that do not overlap; at 40 a second each has 25 ms.

    Examples
    --------
    >>> side_by_side(40, 22_050)
    Framing(per_second=40, n_samples=551)
    """
    return Framing(per_second, int(rate / per_second))


def cepstrum(
    signal: Floats, rate: int, framing: Framing, *, n_coefficients: int = 10, n_bands: int = N_BANDS
) -> Floats:
    """Describe the timbre of each frame: the cosine transform of the log power in bands of equal width to the ear.

    Parameters
    ----------
    signal : ndarray of shape (n_samples,)
        One channel.
    rate : int
        Samples a second.
    framing : Framing
    n_coefficients : int
        The first is the loudness.
    n_bands : int
        Triangular bands from 20 Hz to half the rate, of equal width in mel.

    Returns
    -------
    ndarray of shape (n_frames, n_coefficients)
        A silent frame has a very small first coefficient and zeros.

    Examples
    --------
    >>> tone = np.sin(2 * np.pi * 440 * np.arange(22_050) / 22_050)
    >>> cepstrum(tone, 22_050, side_by_side(40, 22_050)).shape
    (40, 10)
    """
    starts = framing.starts(len(signal), rate)
    n_fft = _transform_length(framing.n_samples, rate)
    bands = _bands(rate, n_fft, n_bands)
    window = np.hanning(framing.n_samples)
    coefficients = np.empty((len(starts), n_coefficients))
    step = max(CHUNK // n_fft, 1)
    for first in range(0, len(starts), step):
        these = starts[first : first + step]
        frames = signal[these[:, None] + np.arange(framing.n_samples)] * window
        power = np.abs(rfft(frames, n_fft, axis=1)) ** 2
        loudness = np.log(np.maximum(power @ bands.T, SILENCE))
        coefficients[first : first + step] = dct(loudness, type=2, norm="ortho", axis=1)[:, :n_coefficients]
    return coefficients


def _transform_length(n_samples: int, rate: int) -> int:
    finest = max(n_samples, int(np.ceil(rate / WIDEST_BIN_HERTZ)))
    return int(2 ** np.ceil(np.log2(finest)))


@cache
def _bands(rate: int, n_fft: int, n_bands: int) -> Floats:
    """Weights of the frequencies (columns) in each band (rows); edges lie on frequencies of the transform."""
    edges = _hertz(np.linspace(_mel(LOWEST_HERTZ), _mel(rate / 2), n_bands + 2))
    bins = np.floor((n_fft + 1) * edges / rate)
    low, middle, high = bins[:-2, None], bins[1:-1, None], bins[2:, None]
    frequency = np.arange(n_fft // 2 + 1)
    # A band whose edge falls on its middle has no slope on that side.
    rising = (frequency - low) / np.maximum(middle - low, 1.0)
    falling = (high - frequency) / np.maximum(high - middle, 1.0)
    return np.asarray(np.clip(np.minimum(rising, falling), 0.0, 1.0))


def _mel(hertz: float) -> float:
    return float(2595.0 * np.log10(1.0 + hertz / 700.0))


def _hertz(mel: Floats) -> Floats:
    return np.asarray(700.0 * (10.0 ** (mel / 2595.0) - 1.0))
