"""Real sets with several tasks that a package on PyPI brings under a stated licence: no folder of data is needed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from sklearn.utils import Bunch


class _Public(NamedTuple):
    """Where a set is: the package that brings it, the file in it, the licence that it states, and how it is read."""

    package: str
    file: str
    licence: str
    target: str
    task: str
    read: Callable[[pl.DataFrame], pl.DataFrame]


def _grunfeld(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop("year")


def _penguins(frame: pl.DataFrame) -> pl.DataFrame:
    # Nobody knows the sex of eleven of them.
    known = frame.with_columns(colony=pl.col("species") + ", " + pl.col("island")).drop_nulls("sex")
    return known.drop("species", "island", "year")


PUBLIC = {
    "grunfeld": _Public(
        "statsmodels",
        "datasets/grunfeld/grunfeld.csv",
        "public domain, as statsmodels states",
        "invest",
        "firm",
        _grunfeld,
    ),
    "penguins": _Public(
        "palmerpenguins", "data/penguins.csv", "CC0, as palmerpenguins states", "sex", "colony", _penguins
    ),
}


def load_public(name: str) -> Bunch:
    """Load a real set that another package on PyPI brings.

    Parameters
    ----------
    name : {"grunfeld", "penguins"}
        Investment of 11 firms in 20 years by their value and capital (Grunfeld 1950), from ``statsmodels``; sex of 333
        penguins by four measures in 5 colonies (Horst, Hill and Gorman 2020), from ``palmerpenguins``.

    Returns
    -------
    Bunch
        ``data`` (a polars frame of features), ``target``, ``task``, ``feature_names``, ``licence``, ``name``.

    Raises
    ------
    FileNotFoundError
        Where the package is not installed; the sentence says how to install it.

    Examples
    --------
    >>> from kinfolk.datasets import load_public
    >>> penguins = load_public("penguins")  # doctest: +SKIP
    >>> sorted(set(penguins.task.tolist()))  # doctest: +SKIP
    ['Adelie, Biscoe', 'Adelie, Dream', 'Adelie, Torgersen', 'Chinstrap, Dream', 'Gentoo, Biscoe']
    """
    from sklearn.utils import Bunch

    if name not in PUBLIC:
        raise ValueError(f"there is no public data set {name!r}: the known ones are {', '.join(PUBLIC)}")
    public = PUBLIC[name]
    try:
        home = files(public.package).joinpath(public.file)
    except ModuleNotFoundError:
        raise FileNotFoundError(f"pip install {public.package} has the data set {name!r}") from None
    with as_file(home) as path:
        frame = public.read(pl.read_csv(path, null_values=["NA"]))
    data = frame.drop(public.target, public.task)
    return Bunch(
        data=data,
        target=frame[public.target].to_numpy(),
        task=frame[public.task].to_numpy(),
        feature_names=data.columns,
        licence=public.licence,
        name=name,
    )
