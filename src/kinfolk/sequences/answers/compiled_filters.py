"""Sums over hidden states for prediction by an estimator: compiled, and over draws in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
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

    def each(self, work: Callable[[int], Floats], places: Iterable[int]) -> list[Floats]:
        """What some work gives for each place, in their order, whatever the number of threads."""
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(work)(place) for place in places))
