"""Sets with numbers as features on which papers on multi-task learning report, read from ``KINFOLK_DATA``.

Nothing of them is part of the package. Each has a README in its folder, which says where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.datasets.real import data_file

if TYPE_CHECKING:
    from sklearn.utils import Bunch

LIKED_FROM = 6
# What each block of columns of the school set codes, in the order of the file.
SCHOOL_BLOCKS = {
    "year": 3,
    "share with free meals": 1,
    "share in the best band": 1,
    "gender": 2,
    "band": 3,
    "ethnic group": 11,
    "gender of the school": 3,
    "denomination of the school": 3,
}


class _Parts(NamedTuple):
    """A set's rows; ``is_train`` is None where it comes without a split of its own."""

    data: NDArray[np.float64]
    target: NDArray[Any]
    task: NDArray[np.int64]
    feature_names: tuple[str, ...]
    is_train: NDArray[np.bool_] | None = None


def load_numeric(name: str) -> Bunch:
    """Load one of the sets with numbers as features. None has a constant column: models have intercepts.

    Parameters
    ----------
    name : {"landmine", "lenk_ratings", "lenk_likes", "school", "parkinsons"}
        Whether a radar echo is of a mine (1.0) or of clutter (0.0), in 29 fields; ratings from 0 to 10 that 180 persons
        gave to 20 computers; whether they liked them (1.0 for a rating of 6 or more, else 0.0); examination scores of
        pupils of 139 schools; the total score of disease (UPDRS) in voice recordings of 42 patients.

    Returns
    -------
    Bunch
        ``data`` (array of float64), ``target`` (float64), ``task`` (numbers from 1), ``feature_names``, ``is_train``
        (which rows to learn from, where the set comes with such a split, and else None), ``name``.

    Raises
    ------
    FileNotFoundError
        Where ``KINFOLK_DATA`` is not set or does not hold the set.
    """
    from sklearn.utils import Bunch

    if name not in _LOADERS:
        raise ValueError(f"there is no data set {name!r}: the known ones are {', '.join(_LOADERS)}")
    return Bunch(**_LOADERS[name]()._asdict(), name=name)


def _cells(
    folder: str, file: str, data: str, target: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Rows, targets and numbers of the task, from a file that holds a matrix for each task."""
    from scipy.io import loadmat

    cells = loadmat(data_file(folder, file))
    rows, targets = cells[data][0], cells[target][0]
    task = np.repeat(np.arange(1, len(rows) + 1, dtype=np.int64), [len(of_task) for of_task in rows])
    return np.vstack(list(rows)).astype(np.float64), np.vstack(list(targets)).ravel().astype(np.float64), task


def _landmine() -> _Parts:
    data, target, task = _cells("landmine", "LandmineData.mat", "feature", "label")
    return _Parts(data, target, task, tuple(f"feature {j + 1}" for j in range(data.shape[1])))


def _school() -> _Parts:
    data, target, task = _cells("school", "school.mat", "X", "Y")
    names = [
        f"{block} {value + 1}" if n_values > 1 else block
        for block, n_values in SCHOOL_BLOCKS.items()
        for value in range(n_values)
    ]
    return _Parts(data[:, :-1], target, task, tuple(names))


def _lenk(liked: bool) -> Callable[[], _Parts]:
    def load() -> _Parts:
        from scipy.io import loadmat

        tables = loadmat(data_file("lenk_computer", "lenk_data.mat"))
        train, test = (tables[part].astype(np.float64) for part in ("Traindata", "Testdata"))
        rows = np.vstack([train, test])
        # Rows lie person by person, 16 to learn from and 4 to test.
        persons = np.arange(1, 181, dtype=np.int64)
        task = np.concatenate([np.repeat(persons, 16), np.repeat(persons, 4)])
        rating = rows[:, -1]
        target = (rating >= LIKED_FROM).astype(np.float64) if liked else rating
        data = rows[:, 1:-1]
        names = tuple(f"attribute {j + 1}" for j in range(data.shape[1]))
        return _Parts(data, target, task, names, np.arange(len(rows)) < len(train))

    return load


def _parkinsons() -> _Parts:
    frame = pl.read_csv(data_file("parkinsons", "parkinsons_updrs.csv.gz"))
    features = frame.drop("subject#", "motor_UPDRS", "total_UPDRS")
    return _Parts(
        features.cast(pl.Float64).to_numpy(),
        frame["total_UPDRS"].cast(pl.Float64).to_numpy(),
        frame["subject#"].to_numpy(),
        tuple(features.columns),
    )


_LOADERS: dict[str, Callable[[], _Parts]] = {
    "landmine": _landmine,
    "lenk_ratings": _lenk(liked=False),
    "lenk_likes": _lenk(liked=True),
    "school": _school,
    "parkinsons": _parkinsons,
}
