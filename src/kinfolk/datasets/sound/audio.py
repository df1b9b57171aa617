"""From sound files to sequences: cepstra of 25 ms frames, 32 codes over all clips, one second each (Ni, sec. 4.2).

K. Ni, L. Carin and D. Dunson, "Multi-Task Learning for Sequential Data via iHMMs and the Nested Dirichlet Process",
ICML 2007.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.datasets.sound.cepstrum import cepstrum, side_by_side
from kinfolk.datasets.sound.sound_files import RATE, read_sound, sound_files
from kinfolk.maths.arrays import Floats

__all__ = ["Codebook", "Music", "Recording", "learn_codebook", "read_music", "read_recording", "windows"]


FRAMES_A_SECOND = 40
N_COEFFICIENTS = 10
# Louder than this, of full scale, something can be heard.
AUDIBLE = 1e-4
# k-means of more frames than this learns from batches of them.
MANY_FRAMES = 200_000


class Recording(NamedTuple):
    """What is known of one sound file."""

    name: str
    """Its file name without the ending."""
    frames: Floats
    """(n_frames, n_coefficients) cepstra, 40 a second."""
    seconds: float
    """How long the whole file lasts."""
    silent: bool


class Codebook(NamedTuple):
    """A vector quantiser: a frame's code is that of the nearest centre, in units of each coefficient's spread."""

    centres: Floats
    """(n_codes, n_coefficients)."""
    spread: Floats
    """(n_coefficients,)."""

    def encode(self, frames: Floats) -> NDArray[np.int64]:
        """The code of each frame."""
        scaled, centres = frames / self.spread, self.centres / self.spread
        distance = (centres**2).sum(axis=1) - 2.0 * scaled @ centres.T
        return np.asarray(distance.argmin(axis=1), dtype=np.int64)


class Music(NamedTuple):
    """Sequences of several recordings, as the estimators of this package take them."""

    X: NDArray[np.int64] | Floats
    """(n_steps, 1) codes, or (n_steps, n_coefficients) cepstra."""
    lengths: NDArray[np.int64]
    """(n_sequences,)."""
    task: NDArray[np.str_]
    """(n_sequences,) the recording of each sequence."""
    recordings: tuple[Recording, ...]
    codebook: Codebook | None


def read_recording(
    path: str | os.PathLike[str], *, name: str | None = None, n_coefficients: int = N_COEFFICIENTS
) -> Recording:
    """Read a sound file and describe its frames.

    Parameters
    ----------
    path : path-like
        A sound file, as `kinfolk.datasets.sound.sound_files.read_sound` takes it.
    name : str, optional
        By default the file's name without its ending.
    n_coefficients : int, default=10
        Cepstral coefficients of a frame.

    Returns
    -------
    Recording

    Raises
    ------
    ValueError
        Where the file is damaged, or shorter than one frame.
    """
    file = Path(path)
    signal = read_sound(file)
    frames = cepstrum(signal, RATE, side_by_side(FRAMES_A_SECOND, RATE), n_coefficients=n_coefficients)
    seconds = len(signal) / RATE
    if not len(frames):
        raise ValueError(f"{file} is too short: it lasts {1000 * seconds:.0f} ms, and a frame needs 25 ms")
    return Recording(file.stem if name is None else name, frames, seconds, bool(np.abs(signal).max() < AUDIBLE))


def read_music(
    folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    frames: Literal["codes", "gaussian"] = "codes",
    n_codes: int = 32,
    seconds: float = 1.0,
    longest: float | None = None,
    random_state: int = 0,
    advance: Callable[[int], None] = lambda steps: None,
    leave_out: Callable[[ValueError], None] | None = None,
) -> Music:
    """Read recordings and cut them into sequences, a task for each.

    Parameters
    ----------
    folder : path-like or sequence of path-like
        A folder of sound files, or the files.
    frames : {"codes", "gaussian"}, default="codes"
        Codes of a quantiser learnt from all recordings, as in the paper, or the cepstra themselves.
    n_codes : int, default=32
        Size of the codebook.
    seconds : float, default=1.0
        Length of a sequence. What is left at a recording's end is dropped, unless it is all there is.
    longest : float, optional
        Of a recording of more seconds than this, only the middle is used: ends are often quiet.
    random_state : int, default=0
        Seed of the quantiser.
    advance : callable, optional
        Called with 1 after each file.
    leave_out : callable, optional
        Called with the error of a file that cannot be used, which is then left out. By default the error is raised.

    Returns
    -------
    Music

    Raises
    ------
    ValueError
        Where a file cannot be used, naming it.

    Examples
    --------
    >>> import tempfile
    >>> from scipy.io import wavfile
    >>> place = Path(tempfile.mkdtemp())
    >>> time = np.arange(3 * 22_050) / 22_050
    >>> for name, hertz in (("low", 110), ("high", 1760)):
    ...     wavfile.write(place / f"{name}.wav", 22_050, np.sin(2 * np.pi * hertz * time))
    >>> music = read_music(place, n_codes=4)
    >>> music.X.shape, music.lengths.tolist(), music.task.tolist()
    ((240, 1), [40, 40, 40, 40, 40, 40], ['high', 'high', 'high', 'low', 'low', 'low'])
    """
    if frames not in ("codes", "gaussian"):
        raise ValueError(f'frames is {frames!r}, but must be "codes" or "gaussian"')
    steps = round(seconds * FRAMES_A_SECOND)
    if steps < 1:
        raise ValueError(f"seconds is {seconds!r}, but a sequence needs at least one frame of 25 ms")
    files = sound_files(folder) if isinstance(folder, str | os.PathLike) else [Path(file) for file in folder]
    if longest is not None and not longest >= seconds:
        raise ValueError(f"longest is {longest!r}, but must be at least the {seconds:g} s of a sequence")
    recordings = []
    for file, name in zip(files, _names(files), strict=True):
        try:
            recordings.append(_middle(read_recording(file, name=name), longest))
        except ValueError as error:
            if leave_out is None:
                raise
            leave_out(error)
        advance(1)
    if not recordings:
        raise ValueError(f"none of the {len(files)} sound files can be used")
    kept = [windows(len(recording.frames), steps) for recording in recordings]
    cepstra = np.vstack([recording.frames[: sum(cut)] for recording, cut in zip(recordings, kept, strict=True)])
    codebook = learn_codebook(cepstra, n_codes, random_state) if frames == "codes" else None
    return Music(
        cepstra if codebook is None else codebook.encode(cepstra)[:, None],
        np.array([length for cut in kept for length in cut], dtype=np.int64),
        np.repeat([recording.name for recording in recordings], [len(cut) for cut in kept]),
        tuple(recordings),
        codebook,
    )


def _middle(recording: Recording, longest: float | None) -> Recording:
    n_frames = len(recording.frames)
    kept = n_frames if longest is None else min(n_frames, round(longest * FRAMES_A_SECOND))
    first = (n_frames - kept) // 2
    return recording._replace(frames=recording.frames[first : first + kept])


def windows(n_frames: int, steps: int) -> list[int]:
    """Lengths of the sequences that so many frames are cut into; an end that is too short is dropped.

    Examples
    --------
    >>> windows(100, 40), windows(30, 40)
    ([40, 40], [30])
    """
    return [steps] * (n_frames // steps) or [n_frames]


def learn_codebook(frames: Floats, n_codes: int = 32, random_state: int = 0) -> Codebook:
    """Learn a vector quantiser by k-means; with fewer different frames than codes there are so many codes.

    Parameters
    ----------
    frames : ndarray of shape (n_frames, n_coefficients)
    n_codes : int, default=32
    random_state : int, default=0

    Returns
    -------
    Codebook

    References
    ----------
    .. [1] Y. Linde, A. Buzo and R. M. Gray, "An algorithm for vector quantizer design", IEEE Trans. Communications 28,
       1980, 84–95.

    Examples
    --------
    >>> codebook = learn_codebook(np.array([[0.0], [0.1], [5.0], [5.1]]), n_codes=2)
    >>> codebook.centres.round(6).tolist(), codebook.encode(np.array([[1.0], [4.0]])).tolist()
    ([[0.05], [5.05]], [0, 1])
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if n_codes < 1:
        raise ValueError(f"n_codes is {n_codes!r}, but must be 1 or more")
    deviation = frames.std(axis=0)
    # Where a coefficient never changes it tells no frames apart, whatever its unit.
    spread = np.where(deviation > 0, deviation, 1.0)
    scaled = frames / spread
    distinct = np.unique(frames, axis=0)
    if len(distinct) <= n_codes:
        return Codebook(distinct, spread)
    kind = KMeans if len(frames) <= MANY_FRAMES else MiniBatchKMeans
    fitted = kind(n_codes, n_init=3, random_state=random_state).fit(scaled)
    # In the order of loudness, so that codes mean something to a reader.
    order = np.argsort(fitted.cluster_centers_[:, 0], kind="stable")
    return Codebook(np.asarray(fitted.cluster_centers_[order] * spread, dtype=np.float64), spread)


def _names(files: Sequence[Path]) -> list[str]:
    """A name for each file: without its ending and its folder, where that is the name of no other."""
    names = []
    for file in files:
        given = (file.stem, file.name)
        others = [(other.stem, other.name) for other in files]
        names.append(next((g for place, g in enumerate(given) if [o[place] for o in others].count(g) == 1), str(file)))
    return names
