"""Features as numbers for models that need them: categories one by one, numbers centred, gaps at the median."""

from __future__ import annotations

from typing import Self

import numpy as np
import polars as pl
import polars.selectors as cs

from bench.fewshot.measures import Numbers
from bench.fewshot.sets import Rows

FEW_VALUES = 2  # a category with as many values is one column


class Encoder:
    """Learns categories, medians and scales from training rows."""

    def fit(self, rows: Rows) -> Self:
        """Learn."""
        numbers = rows.X.select(cs.numeric())
        self.numbers = numbers.columns
        values = numbers.cast(pl.Float64).to_numpy()
        self.middle = np.nan_to_num(np.nanmedian(values, axis=0)) if values.size else np.zeros(0)
        filled = np.where(np.isfinite(values), values, self.middle)
        self.mean, deviation = filled.mean(axis=0), filled.std(axis=0)
        self.unit = np.where(deviation > 0.0, deviation, 1.0)
        others = [name for name in rows.X.columns if name not in self.numbers]
        self.categories = {
            name: sorted(rows.X[name].cast(pl.String).drop_nulls().unique().to_list()) for name in others
        }
        return self

    def transform(self, rows: Rows) -> Numbers:
        """Encode; categories never seen are none of those known."""
        values = rows.X.select(self.numbers).cast(pl.Float64).to_numpy()
        parts = [(np.where(np.isfinite(values), values, self.middle) - self.mean) / self.unit]
        for name, known in self.categories.items():
            column = rows.X[name].cast(pl.String).to_numpy()
            used = known[1:] if len(known) == FEW_VALUES else known
            parts.append(
                np.stack([(column == value).astype(float) for value in used], axis=1) if used else parts[0][:, :0]
            )
        return np.hstack(parts)
