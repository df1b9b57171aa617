"""Sums over hidden states, and particles, for prediction by an estimator: compiled, and in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.pieces import delayed
from kinfolk.sequences.answers.compiled_predictive import grow, log_density_of_one
from kinfolk.sequences.answers.particles import WORN_OUT, Crowd, Steps
from kinfolk.sequences.model.emissions.emission import Densities, Emission
from kinfolk.sequences.model.filtering import log_likelihoods, most_probable_states, scaled, smooth
from kinfolk.sequences.model.sequences import Sequences


class CompiledFilters(NamedTuple):
    """The :class:`~kinfolk.sequences.answers.prediction.Filters` of a family of emissions."""

    emission: Emission
    n_jobs: int | None = None

    def densities(self, parameters: Floats, sequences: Sequences) -> Densities:
        """How probable every step is in every state."""
        return scaled(self.emission.log_densities(parameters, sequences.observations))

    def log_likelihoods(self, densities: Densities, sequences: Sequences, transitions: Floats) -> Floats:
        """Log likelihood of each sequence."""
        return np.asarray(log_likelihoods(densities, sequences.bounds, transitions))

    def smooth(self, densities: Densities, sequences: Sequences, transitions: Floats) -> tuple[Floats, Floats]:
        """Log likelihoods, and the states of every step, given the whole sequence."""
        found = smooth(densities, sequences.layout, transitions[None])
        return found.log_likelihoods, found.posteriors

    def most_probable_paths(self, densities: Densities, sequences: Sequences, transitions: Floats) -> NDArray[np.int64]:
        """States of the most probable paths."""
        return np.asarray(most_probable_states(densities, sequences.bounds, transitions)[0])

    def advance(self, crowd: Crowd, steps: Steps, uniforms: Floats) -> Crowd:
        """Particles so many steps later."""
        moved = crowd.copy()
        _advance(moved, steps, uniforms)
        return moved

    def each(self, work: Callable[[int], Any], places: Iterable[int]) -> list[Any]:
        """What some work gives for each place, in their order, whatever the number of threads."""
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(work)(place) for place in places))


# Log densities so far below the largest are left out.
_ADDS_NOTHING = -120.0


@compiled
def _advance(crowd, steps, uniforms):  # type: ignore[no-untyped-def]
    """What `kinfolk.sequences.answers.particles.advance` does, in place."""
    # By names of their own, because taking an array out of a tuple in a loop counts a reference each time.
    log_weights, origin, row, rows, codes, touched, cells = crowd
    shown, channels, drawn, row_of_drawn, untouched, entries, log_scale, layout, begun, goes_on = steps
    n, n_rows, n_states = rows.shape
    n_channels = len(channels) - 1
    left, held = np.zeros((n, n_rows)), np.zeros((n, n_states, n_channels))
    for i in range(n):
        for r in range(n_rows):
            for s in range(n_states):
                left[i, r] += rows[i, r, s]
        for s in range(n_states):
            for m in range(n_channels):
                for c in range(channels[m], channels[m + 1]):
                    held[i, s, m] += codes[i, s, c]
    weight, totals, worth = np.empty((n, n_states)), np.empty(n), np.empty(n)
    log_density, chance = np.zeros(n_states), np.empty(n_states)
    has_cells, has_drawn = len(untouched) > 0, len(drawn) > 0
    for t in range(len(shown)):
        step = entries[t]
        for i in range(n):
            largest = 0.0
            if has_cells or has_drawn:
                largest = -np.inf
                for s in range(n_states):
                    own = 0.0
                    if has_cells:
                        if touched[i, s]:
                            own = log_density_of_one(cells[i, s], step, layout)
                        else:
                            own = untouched[t, origin[i], s]
                    if has_drawn:
                        own += drawn[row_of_drawn[t], origin[i], s]
                    log_density[s] = own
                    largest = max(largest, own)
            total = 0.0
            for s in range(n_states):
                own = rows[i, row[i], s] / left[i, row[i]]
                if has_cells or has_drawn:
                    # Shares of moves are above 1e−38: beside the likeliest, what is smaller than this adds nothing.
                    own *= exp(log_density[s] - largest) if log_density[s] - largest > _ADDS_NOTHING else 0.0
                for m in range(n_channels):
                    if shown[t, m] >= 0:
                        own *= codes[i, s, shown[t, m]] / held[i, s, m]
                total += own
                weight[i, s] = own
            totals[i] = total
            log_weights[i] += log(total) + largest + log_scale[t]
        largest = log_weights.max()
        total = squares = 0.0
        for i in range(n):
            worth[i] = exp(log_weights[i] - largest)
            total += worth[i]
            squares += worth[i] * worth[i]
        if total * total < WORN_OUT * n * squares:
            n_kept = np.zeros(n, dtype=np.int64)
            reached, parent = worth[0], 0
            for i in range(n):
                while parent < n - 1 and reached < (i + uniforms[t, n]) / n * total:
                    parent += 1
                    reached += worth[parent]
                n_kept[parent] += 1
            parent = 0
            for i in range(n):
                if n_kept[i] == 0:
                    while n_kept[parent] < 2:
                        parent += 1
                    n_kept[parent] -= 1
                    origin[i], row[i] = origin[parent], row[parent]
                    rows[i], codes[i] = rows[parent], codes[parent]
                    touched[i] = touched[parent]
                    for s in range(n_states):
                        if touched[i, s]:
                            cells[i, s] = cells[parent, s]
                    left[i], held[i], weight[i] = left[parent], held[parent], weight[parent]
                    totals[i] = totals[parent]
            log_weights[:] = largest + log(total / n)
        looks_ahead = np.any(step != 0.0) and (goes_on or t < len(shown) - 1)
        for i in range(n):
            total = 0.0
            for s in range(n_states):
                chance[s] = sqrt(weight[i, s]) if looks_ahead and weight[i, s] > 0.0 else weight[i, s]
                total += chance[s]
            chosen, reached = 0, chance[0]
            while chosen < n_states - 1 and uniforms[t, i] * total >= reached:
                chosen += 1
                reached += chance[chosen]
            if looks_ahead:
                log_weights[i] += log(chance[chosen]) - log(totals[i]) + log(total)
            rows[i, row[i], chosen] += 1.0
            left[i, row[i]] += 1.0
            for m in range(n_channels):
                if shown[t, m] >= 0:
                    codes[i, chosen, shown[t, m]] += 1.0
                    held[i, chosen, m] += 1.0
            if has_cells:
                if not touched[i, chosen]:
                    touched[i, chosen] = True
                    cells[i, chosen] = begun[origin[i], chosen]
                grow(cells[i, chosen], step, layout)
            row[i] = chosen + 1
