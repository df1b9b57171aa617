"""How sure each arc is: how often it is found again in rows drawn anew (Friedman, Goldszmidt and Wyner 1999).

In the papers: Niculescu-Mizil and Caruana (2012), section 5.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from kinfolk.interrupts import asked
from kinfolk.networks.inference.structures import Hyper, Options, learn_structures
from kinfolk.networks.model.data import Data
from kinfolk.pieces import delayed
from kinfolk.progress import no_progress


def arc_confidence(
    options: Options, hyper: Hyper, data: Data, seed: int, advance: Callable[[int], None] = no_progress
) -> NDArray[np.float64] | None:
    """Share of resamples in which each task's structure has each arc, of shape (n_tasks, n_variables, n_variables).

    Every resample draws each task's rows with replacement, as many as there are, and learns all structures anew. Where
    Ctrl-C ends that early, the share is that of the resamples so far, None where there was none.
    """
    seeds = np.random.default_rng(seed).integers(1 << 32, size=options.bootstrap)
    one_thread, keep = options._replace(n_jobs=1), options.kept("resamples", hyper, data, seed)

    def resample(own_seed: int) -> NDArray[np.bool_]:
        rng = np.random.default_rng(own_seed)
        codes = tuple(np.asfortranarray(its[rng.integers(len(its), size=len(its))]) for its in data.codes)
        return learn_structures(one_thread, hyper, data._replace(codes=codes), int(own_seed)).structures

    def kept(own_seed: int) -> NDArray[np.bool_] | None:
        if asked():
            return None
        found = keep.done(lambda: resample(own_seed), own_seed)
        advance(1)
        # Searches may have been cut short.
        return None if asked() else found

    every = Parallel(n_jobs=options.n_jobs, prefer="threads", max_nbytes=None)(delayed(kept)(int(own)) for own in seeds)
    found = [structures for structures in every if structures is not None]
    if not found:
        return None
    total = np.zeros(found[0].shape)
    for structures in found:
        total += structures
    return total / len(found)
