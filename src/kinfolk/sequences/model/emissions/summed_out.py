"""Channels of an emission whose θ is summed out by what states know of it, side by side; only numpy is imported."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple, Self

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import Emission, Family, Observations
from kinfolk.sequences.model.emissions.predictive import GAUSSIAN, NUMBERS, Layout, n_cells


class SummedOut(NamedTuple):
    """Families whose θ is summed out, and the places of their channels among all.

    Statistics, cells and entries of the channels lie one after the other.
    """

    families: tuple[Family, ...]
    channels: tuple[int, ...]

    @classmethod
    def of(cls, emission: Emission, known: bool = True) -> Self:
        """The channels of an emission of which that can be done, if statistics are known; none otherwise."""
        chosen = [(place, family) for place, family in enumerate(emission.channels) if known and family.sums_out]
        return cls(tuple(family for _, family in chosen), tuple(place for place, _ in chosen))

    @property
    def layout(self) -> Layout:
        """Of each channel kind, first entry, first cell, blocks, regressors and size (`predictive`)."""
        rows, entry, cell = [], 0, 0
        for family in self.families:
            kind, n_blocks, n_regressors, size = family.blocks
            rows.append((kind, entry, cell, n_blocks, n_regressors, size))
            entry += n_blocks * size
            cell += n_cells(kind, n_blocks, size)
        return np.array(rows, dtype=np.int64).reshape(len(rows), 6)

    @property
    def n_cells(self) -> int:
        """How many cells a state has."""
        return sum(n_cells(kind, n_blocks, size) for kind, n_blocks, _, size in (own.blocks for own in self.families))

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has."""
        return sum(family.n_statistics for family in self.families)

    def cells(self, statistics: Floats, strength: Floats) -> Floats:
        """Cells (…, C) of states with statistics (…, S), by priors of strength (…)."""
        widths = [family.n_statistics for family in self.families]
        parts = np.split(statistics, list(accumulate(widths)), axis=-1)
        each = zip(self.families, parts[:-1], strict=True)
        return np.concatenate([*(family.cells(own, strength) for family, own in each), parts[-1]], axis=-1)

    def can_be(self, statistics: Floats, strength: Floats) -> bool:
        """Whether there may be steps with such statistics."""
        try:
            with np.errstate(all="ignore"):
                cells = self.cells(statistics, strength)
        except np.linalg.LinAlgError:
            return False
        for family, own in zip(self.families, np.split(cells, self.layout[1:, 2], axis=-1), strict=True):
            kind, n_blocks, *_ = family.blocks
            # Of numbers the first cells count steps; of a Gaussian the first is as far above zero as the factor.
            above_zero = {NUMBERS: n_blocks, GAUSSIAN: 1}.get(kind, own.shape[-1])
            if not (np.isfinite(own).all() and (own[..., :above_zero] > 0.0).all()):
                return False
        return True

    def with_known(self, emission: Emission, parameters: Floats, cells: Floats, rng: np.random.Generator) -> Floats:
        """Parameters (…, P) of states in which those of these channels are drawn by what they know (…, C)."""
        out = np.array(parameters)
        ends = list(accumulate(family.n_parameters for family in emission.channels))
        parts = np.split(cells, self.layout[1:, 2], axis=-1)
        for family, place, own in zip(self.families, self.channels, parts, strict=True):
            out[..., ends[place] - family.n_parameters : ends[place]] = family.draw_known(own, rng)
        return out

    def entries(self, observations: Observations) -> tuple[Floats, Floats]:
        """Entries (n_steps, V) of steps, and what of their log densities all states have in common (n_steps,)."""
        n_steps = len(observations[0])
        parts, log_scale = [np.empty((n_steps, 0))], np.zeros(n_steps)
        for family, place in zip(self.families, self.channels, strict=True):
            own, scale = family.entries((observations[place],))
            parts.append(own)
            log_scale += scale
        return np.concatenate(parts, axis=1), log_scale
