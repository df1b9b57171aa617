"""Bird feeders of Washington and Oregon, a task for each state and winter, read from ``KINFOLK_DATA``.

Project FeederWatch, of the Cornell Lab of Ornithology and Birds Canada, is also the bird problem of Niculescu-Mizil and
Caruana, "Inductive Transfer for Bayesian Network Structure Learning", section 4.2, who had other regions and years.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.datasets.real import data_file

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FOLDER = "feederwatch_wa_or"
NOT_GIVEN = "not given"
# Lowest value of each class in the files, and what the class is called here.
HOURS = {0.001: "under 1", 1.001: "1 to 4", 4.001: "4 to 8", 8.001: "over 8"}
SNOW = {0.0: "none", 0.001: "under 5", 5.0: "5 to 15", 15.001: "over 15"}
MONTHS = {11: "November", 12: "December", 1: "January", 2: "February", 3: "March", 4: "April"}
HALF_DAYS = ("DAY1_AM", "DAY1_PM", "DAY2_AM", "DAY2_PM")
CIRCUMSTANCES = ("month", "half-days watched", "hours watched", "snow")
SEEN = ("no", "yes")


def load_feederwatch(*, min_share: float = 0.05) -> Bunch:
    """Load which birds were seen at feeders, as tables of eight related tasks with partly different columns.

    Parameters
    ----------
    min_share : float, default=0.05
        A species seen on a smaller share of a task's checklists is left out of that task.

    Returns
    -------
    Bunch
        ``data``, a polars frame for each task, such as "OR 2021": one row for each checklist, with columns for the
        month, the number of half-days and the hours watched, the depth of snow, and for each species whether it was
        seen; ``site``, for each task the place where each row was observed. Rows of one site are much alike, so a test
        set needs sites of its own.

    Raises
    ------
    FileNotFoundError
        Where ``KINFOLK_DATA`` is not set or does not hold the set.
    """
    from sklearn.utils import Bunch

    if isinstance(min_share, bool) or not isinstance(min_share, int | float) or not 0 <= min_share <= 1:
        raise ValueError(f"min_share is {min_share!r}, but must be a share from 0 to 1")
    checklists = pl.read_csv(data_file(FOLDER, "checklists.csv.gz"))
    names = pl.read_csv(data_file(FOLDER, "species.csv")).sort("column")["common_name"].to_list()
    seen = _read_seen()
    about = _describe(checklists)
    task = checklists.select(pl.col("STATE").str.tail(2) + " " + pl.col("SEASON").str.tail(4)).to_series()
    site = checklists["LOC_ID"].to_numpy()
    data, sites = {}, {}
    for name in sorted(task.unique()):
        rows = np.flatnonzero((task == name).to_numpy())
        here = seen[rows]
        # What is seen never or always tells nothing, whatever share was asked for.
        varies = here.any(axis=0) & ~here.all(axis=0)
        kept = np.flatnonzero(varies & (here.mean(axis=0) >= min_share))
        species = [pl.Series(names[s], SEEN, dtype=pl.Enum(SEEN)).gather(here[:, s].astype(int)) for s in kept]
        data[name] = about[rows].hstack(species)
        sites[name] = site[rows]
    return Bunch(data=data, site=sites, name="feederwatch")


def _read_seen() -> NDArray[np.bool_]:
    """Which species (column) was seen on which checklist (row)."""
    with np.load(data_file(FOLDER, "counts.npz")) as parts:
        seen = np.zeros(tuple(parts["shape"]), dtype=bool)
        rows = np.repeat(np.arange(len(seen)), np.diff(parts["indptr"]))
        seen[rows, parts["indices"].astype(np.int64)] = parts["data"] > 0
    return seen


def _describe(checklists: pl.DataFrame) -> pl.DataFrame:
    """The circumstances of each checklist; where the observer left one out, that is a value too."""
    month, half_days, hours, snow = CIRCUMSTANCES
    n_half_days = checklists.select(pl.sum_horizontal(HALF_DAYS)).to_series()
    return pl.DataFrame(
        [
            _classes(checklists["Month"], MONTHS).rename(month),
            n_half_days.cast(pl.String).cast(pl.Enum([str(n) for n in range(len(HALF_DAYS) + 1)])).rename(half_days),
            _classes(checklists["EFFORT_HRS_ATLEAST"], HOURS).rename(hours),
            _classes(checklists["SNOW_DEP_ATLEAST"], SNOW).rename(snow),
        ]
    )


def _classes(values: pl.Series, called: dict[float, str] | dict[int, str]) -> pl.Series:
    unknown = [value for value in values.drop_nulls().unique().sort() if value not in called]
    if unknown:
        raise ValueError(f"column {values.name!r} holds {unknown[0]!r}, but its classes are {list(called)}")
    kinds = list(called.values())
    if values.null_count():
        kinds.append(NOT_GIVEN)
    return values.replace_strict(called, default=NOT_GIVEN, return_dtype=pl.Enum(kinds))
