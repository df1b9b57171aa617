"""Means of numbers by task or category, drawn to the mean of all by the ratio of the variances within and between."""

from __future__ import annotations

from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled


@compiled
def draw_means(place: NDArray, values: Floats, weights: Floats, counts: Floats, found: Floats) -> None:  # type: ignore[type-arg]
    """Fill in the mean of every place, and last the mean of all, which one never seen has.

    The mean of n rows counts n/(n + s) of its distance from that of all, s being the variance within places over that
    between them, which is the variance of means less what rows alone make of it (DerSimonian and Laird's moments).

    Parameters
    ----------
    place, values, weights : ndarray of shape (n_rows,)
        Rows whose weight is not positive are not looked at.
    counts, found : ndarray of shape (n_places + 1,)
        Are overwritten: weights of the rows of every place, of all last, and means.
    """
    n_places = len(found) - 1
    counts[:] = 0.0
    found[:] = 0.0
    for i in range(len(place)):
        if weights[i] > 0.0:
            counts[place[i]] += weights[i]
            found[place[i]] += weights[i] * values[i]
    for k in range(n_places):
        counts[n_places] += counts[k]
        found[n_places] += found[k]
    if counts[n_places] == 0.0:
        return
    overall = found[n_places] / counts[n_places]
    n_seen, squares, between = 0, 0.0, 0.0
    for k in range(n_places):
        found[k] = found[k] / counts[k] if counts[k] > 0.0 else overall
        n_seen += counts[k] > 0.0
        squares += counts[k] ** 2
        between += counts[k] * (found[k] - overall) ** 2
    within = 0.0
    for i in range(len(place)):
        if weights[i] > 0.0:
            within += weights[i] * (values[i] - found[place[i]]) ** 2
    free = counts[n_places] - n_seen
    within = within / free if free > 0.0 else 0.0
    spread = counts[n_places] - squares / counts[n_places]
    between = max(between - (n_seen - 1) * within, 0.0) / max(spread, 1e-300)
    for k in range(n_places):
        # Where places do not differ, all have the mean of all.
        share = 0.0 if between == 0.0 else counts[k] / (counts[k] + within / between) if counts[k] > 0.0 else 0.0
        found[k] = overall + share * (found[k] - overall)
    found[n_places] = overall
