"""How far a prediction's features are believed, by how much the person asked has taught the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The fifteen features depend on one another (a full day brings conflicts), and naive Bayes counts what they say
# together several times over: believed outright, it was surer than right, and wrong answers cost more than they saved.
# On made-up teams of 21 the powers of least log loss were about 0.3 after 2 to 10 answers, when people are often taken
# for the wrong people's kin, 0.4 after 20, 0.5 after 40, and 0.6 after 120.
_AT_FIRST, _IN_THE_END = 0.3, 0.65
_HALF_WAY = 40.0


def temper_after(n_answers: ArrayLike) -> NDArray[np.float64]:
    """Give the power on the feature likelihood in predictions for people who have given so many answers.

    Examples
    --------
    >>> temper_after([0, 40, 400]).round(2).tolist()
    [0.3, 0.48, 0.62]
    """
    n = np.asarray(n_answers, dtype=np.float64)
    return np.asarray(_AT_FIRST + (_IN_THE_END - _AT_FIRST) * n / (n + _HALF_WAY))
