"""Six recordings of exercises, every step labelled (Fox, Hughes, Sudderth and Jordan 2014), from ``KINFOLK_DATA``."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from kinfolk.datasets.real import data_file

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def load_mocap() -> Bunch:
    """Load the recordings: 12 joint angles a step, 10 steps a second, a task for each recording.

    Returns
    -------
    Bunch
        ``X`` (n_steps, 12) with ``columns``, ``lengths`` and ``task`` (its number) of each recording, ``action`` (the
        exercise done at each step, one of twelve) and ``subject`` of each recording.

    Raises
    ------
    FileNotFoundError
        Where ``KINFOLK_DATA`` is not set or does not hold the set.

    References
    ----------
    .. [1] E. B. Fox, M. C. Hughes, E. B. Sudderth and M. I. Jordan, "Joint Modeling of Multiple Time Series via the
       Beta Process with Application to Motion Capture Segmentation", Annals of Applied Statistics 8, 2014.
    """
    from sklearn.utils import Bunch

    def rows_of(name: str) -> list[list[str]]:
        with data_file("mocap6", name).open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    titles, *steps = rows_of("sensor_data_per_tstep.csv")
    actions, recordings = rows_of("actions_per_tstep.csv")[1:], rows_of("metadata_per_seq.csv")[1:]
    task, lengths = np.unique([int(row[0]) for row in steps], return_counts=True)
    return Bunch(
        X=np.array([row[2:] for row in steps], dtype=np.float64),
        columns=titles[2:],
        lengths=lengths.astype(np.int64),
        task=task.astype(np.int64),
        action=np.array([row[2] for row in actions]),
        subject=np.array([int(row[1]) for row in recordings]),
        name="mocap6",
    )
