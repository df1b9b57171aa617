"""Ten one-minute clips of music, of which four pairs are meant to be alike, read from ``KINFOLK_DATA``.

They stand in for the ten clips of Ni, Carin and Dunson (2007), section 4.2, which are not published.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import numpy as np

from kinfolk.datasets.real import data_file
from kinfolk.datasets.sound.audio import N_COEFFICIENTS, learn_codebook, read_recording, windows

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FOLDER = "music_clips"
STEPS = 40


def load_music(
    *,
    frames: Literal["codes", "gaussian"] = "codes",
    source: Literal["stored", "sound"] = "stored",
    n_codes: int = 32,
    random_state: int = 0,
) -> Bunch:
    """Load the clips as sequences of 40 frames, a task for each clip.

    Parameters
    ----------
    frames : {"codes", "gaussian"}, default="codes"
        Codes of a quantiser learnt from all clips, or the ten cepstral coefficients themselves.
    source : {"stored", "sound"}, default="stored"
        Coefficients as they come with the set, of overlapping frames of 46 ms every 23 ms (64 sequences a clip, of
        0.93 s), or computed from the sound files as in the paper, of frames of 25 ms side by side (60 sequences a clip,
        of one second), for which soundfile must be installed (extra ``audio``).
    n_codes : int, default=32
        Size of the codebook.
    random_state : int, default=0
        Seed of the quantiser.

    Returns
    -------
    Bunch
        ``X`` (n_steps, 1) codes or (n_steps, 10) numbers, ``lengths`` and ``task`` (1 to 10) of each sequence,
        ``partition`` (the intended group of each clip), ``pairs`` (those meant to be alike), ``titles``,
        ``instruments``.

    Raises
    ------
    FileNotFoundError
        Where ``KINFOLK_DATA`` is not set or does not hold the set.
    """
    from sklearn.utils import Bunch

    for name, given, known in (("frames", frames, ("codes", "gaussian")), ("source", source, ("stored", "sound"))):
        if given not in known:
            raise ValueError(f'{name} is {given!r}, but must be "{known[0]}" or "{known[1]}"')
    about = json.loads(data_file(FOLDER, "clips.json").read_text(encoding="utf-8"))
    clips = about["clips"]
    if source == "stored":
        with np.load(data_file(FOLDER, "mfcc.npz")) as stored:
            cepstra = [stored[f"clip{clip['clip']:02}"][:, :N_COEFFICIENTS].astype(np.float64) for clip in clips]
    else:
        cepstra = [read_recording(data_file(FOLDER, clip["file"])).frames for clip in clips]
    lengths = [windows(len(of_clip), STEPS) for of_clip in cepstra]
    kept = np.vstack([of_clip[: sum(cut)] for of_clip, cut in zip(cepstra, lengths, strict=True)])
    groups = [clip["group"] for clip in clips]
    return Bunch(
        X=learn_codebook(kept, n_codes, random_state).encode(kept)[:, None] if frames == "codes" else kept,
        lengths=np.array([length for cut in lengths for length in cut], dtype=np.int64),
        task=np.repeat([clip["clip"] for clip in clips], [len(cut) for cut in lengths]),
        partition=np.array([list(dict.fromkeys(groups)).index(group) for group in groups], dtype=np.int64),
        pairs=[tuple(pair) for pair in about["alike_pairs"]],
        titles=[clip["title"] for clip in clips],
        instruments=[clip["rendered_as"] for clip in clips],
        name="music",
    )
