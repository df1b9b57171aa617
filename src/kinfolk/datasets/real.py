"""Real data sets with many tasks, read from the folder that the environment variable ``KINFOLK_DATA`` names.

Nothing of them is part of the package. Each has a README in its folder, which says where it comes from.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from sklearn.utils import Bunch

VARIABLE = "KINFOLK_DATA"
HEART_COLUMNS = [
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal"),
    "num",
]
HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")


def data_file(folder: str, name: str) -> Path:
    """A file of a real data set; FileNotFoundError, with what to do about it, where it is not there."""
    root = os.environ.get(VARIABLE)
    if not root:
        raise FileNotFoundError(f"{VARIABLE} is not set: it names the folder that holds {folder}/{name}")
    path = Path(root) / folder / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: {VARIABLE} names the folder that holds {folder}/{name}")
    return path


def load_real(name: str) -> Bunch:
    """Load one of the real data sets.

    Parameters
    ----------
    name : {"contraception", "guimmun", "bank_choice", "insteval", "heart_disease", "adult"}
        Use of contraceptives in 60 districts of Bangladesh; immunisation in 161 communities of Guatemala; choices
        between credit cards of 946 persons; good ratings (4 or 5) of 1,128 lecturers; heart disease in 4 hospitals; an
        income above 50K by 41 countries of birth and unknown ones.

    Returns
    -------
    Bunch
        ``data`` (a polars frame of features), ``target``, ``task``, ``feature_names``, ``name``.

    Raises
    ------
    FileNotFoundError
        Where ``KINFOLK_DATA`` is not set or does not hold the set.
    """
    from sklearn.utils import Bunch

    if name not in _LOADERS:
        raise ValueError(f"there is no data set {name!r}: the known ones are {', '.join(_LOADERS)}")
    frame, target, task, left_out = _LOADERS[name]()
    data = frame.drop(target, task, *left_out)
    return Bunch(
        data=data,
        target=frame[target].to_numpy(),
        task=frame[task].to_numpy(),
        feature_names=data.columns,
        name=name,
    )


_Parts = tuple[pl.DataFrame, str, str, tuple[str, ...]]


def _categorical(file: str, target: str, task: str, *left_out: str) -> Callable[[], _Parts]:
    def load() -> _Parts:
        return pl.read_csv(data_file("categorical_multitask", f"{file}.csv.gz")), target, task, left_out

    return load


def _insteval() -> _Parts:
    frame = pl.read_csv(data_file("categorical_multitask", "insteval.csv.gz"))
    return frame.with_columns((pl.col("y") >= 4).alias("good")), "good", "d", ("s", "y")


def _heart_disease() -> _Parts:
    parts = []
    for hospital in HOSPITALS:
        part = pl.read_csv(
            data_file("heart_disease", f"processed.{hospital}.data"),
            has_header=False,
            new_columns=HEART_COLUMNS,
            null_values=["?"],
            schema_overrides=[pl.Float64] * len(HEART_COLUMNS),
        )
        parts.append(part.with_columns(pl.lit(hospital).alias("hospital")))
    frame = pl.concat(parts)
    # A cholesterol of zero stands for a missing one, as the set's README says.
    chol = pl.when(pl.col("chol") == 0).then(None).otherwise(pl.col("chol")).alias("chol")
    return frame.with_columns(chol, (pl.col("num") > 0).alias("ill")), "ill", "hospital", ("num",)


def _adult() -> _Parts:
    frame = pl.read_csv(data_file("adult", "adult.csv.gz"))
    # An unknown country is a task like any other; elsewhere a question mark is a missing value.
    known = pl.col(pl.String).exclude("native_country").replace("?", None)
    return frame.with_columns(known), "income", "native_country", ("split",)


_LOADERS: dict[str, Callable[[], _Parts]] = {
    "contraception": _categorical("contraception", "use", "district", "woman"),
    "guimmun": _categorical("guimmun", "immun", "comm", "kid", "mom"),
    "bank_choice": _categorical("bank_choice", "choice", "id"),
    "insteval": _insteval,
    "heart_disease": _heart_disease,
    "adult": _adult,
}
