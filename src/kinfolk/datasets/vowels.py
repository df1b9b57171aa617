"""Two Japanese vowels spoken by nine men (Kudo, Toyama and Shimbo 1999), read from ``KINFOLK_DATA``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfolk.datasets.real import data_file

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def load_vowels() -> Bunch:
    """Load the utterances: 12 cepstral coefficients a step, a task for each speaker.

    Returns
    -------
    Bunch
        ``X`` (n_steps, 12), ``lengths`` and ``task`` (the speaker, 1 to 9) of each utterance, ``is_train`` (which
        utterances the set gives to learn from, 30 of each speaker).

    Raises
    ------
    FileNotFoundError
        Where ``KINFOLK_DATA`` is not set or does not hold the set.

    References
    ----------
    .. [1] M. Kudo, J. Toyama and M. Shimbo, "Multidimensional curve classification using passing-through regions",
       Pattern Recognition Letters 20, 1999, 1103–1111.
    """
    from sklearn.utils import Bunch

    with np.load(data_file("japanese_vowels", "japanese_vowels.npz")) as stored:
        return Bunch(
            X=stored["frames"].astype(np.float64),
            lengths=stored["lengths"].astype(np.int64),
            task=stored["speaker"].astype(np.int64),
            is_train=stored["is_train"].astype(bool),
            name="vowels",
        )
