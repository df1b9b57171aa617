"""Settings of a peer, chosen on rows held out within the training rows, and a fit with them to all of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bench.fewshot.measures import of_numbers, of_probabilities
from bench.fewshot.models import Answer, Fit
from bench.fewshot.sets import Rows

N_FOLDS = 3


def tuned(fit: Callable[..., Answer], kind: str, grid: Sequence[Mapping[str, Any]]) -> Fit:
    """A fit that tries every setting of a grid by three folds of the training rows."""

    def fit_best(train: Rows, seed: int) -> Answer:
        if len(grid) == 1:
            return fit(train, seed, **grid[0])
        fold = np.random.default_rng(seed).permutation(np.arange(len(train.y)) % N_FOLDS)
        losses = []
        for settings in grid:
            loss = 0.0
            for part in range(N_FOLDS):
                judged = train.at(np.flatnonzero(fold == part))
                mean, _ = fit(train.at(np.flatnonzero(fold != part)), seed, **settings)(judged)
                if kind == "classification":
                    loss += of_probabilities(judged.y, mean)["log_loss"]
                else:
                    loss += of_numbers(judged.y, mean, None)["squared_error"]
            losses.append(loss)
        return fit(train, seed, **grid[int(np.argmin(losses))])

    return fit_best
