"""Random intercepts of several groupings of the same rows, crossed: tasks, and categories of many values.

A number is the mean of all, an effect of its group in every grouping, each effect Gaussian with the variance of its
grouping, and noise (Henderson's mixed model). Effects are found grouping by grouping, each given the others; where they
stay, they are the best linear unbiased predictions. Variances are those of the highest likelihood (restricted, as the
mean of all is not known either) by expectation and maximisation, one step after every sweep over the groupings. The
posterior that the expectation is over has groupings independent of each other (variational Bayes); of one grouping it
is exact. Moments of sums of squares (Gao and Owen 2017) are cheaper, and were far off where directors of films, and how
many films they made, go with kinds of films: 0.23 for the noise where likelihood has 0.63.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled

# Precision, about zero, of the mean log odds of two labels, which rows of one label alone would send anywhere.
_OF_LABELS = 1.0 / 9.0


class Groups(NamedTuple):
    """Groups of rows in several groupings.

    Parameters
    ----------
    place : ndarray of shape (n_rows, n_groupings)
        Places of groups, counted through all groupings; negative where a row has none.
    first : ndarray of shape (n_groupings + 1,)
        The place of the first group of each grouping, and last how many groups there are.
    """

    place: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, groupings: list[tuple[NDArray[np.int64], int]], n_rows: int) -> Groups:
        """Groupings by the place of every row in each, negative where it has none, and how many groups each has."""
        first = np.concatenate([[0], np.cumsum([n_groups for _, n_groups in groupings])]).astype(np.int64)
        place = np.empty((n_rows, len(groupings)), dtype=np.int64)
        for g, (own, _) in enumerate(groupings):
            place[:, g] = np.where(own >= 0, own + first[g], -1)
        return cls(place, first)


@compiled
def settle(groups, left_over, weights, effects, variances, rest, room, most_sweeps, least_change, unit_noise):  # type: ignore[no-untyped-def]
    """Find the effect of every group, the mean of all and the variances, from those that are there on.

    Parameters
    ----------
    groups : Groups
    left_over, weights : ndarray of shape (n_rows,)
        Numbers, and how much they count; rows whose weight is not positive are not learnt from.
    effects : ndarray of shape (n_groups + 1,)
        The mean of all is last.
    variances : ndarray of shape (n_groupings + 1,)
        Those of the noise are last. Zeros: nothing is known yet.
    rest : ndarray of shape (n_rows,)
        Becomes what is left of numbers less all effects.
    room : ndarray of shape (2, n_groups)
        To work in.
    most_sweeps, least_change
        When to end: the change is that of any variance, in parts of their sum.
    unit_noise : bool
        Whether the noise has a variance of one, weights being its inverse, as those of labels are; otherwise it is
        learnt.
    """
    n_rows = len(rest)
    _subtract(groups, left_over, effects, rest)
    if variances.sum() == 0.0:
        mass, squares, effects[-1] = 0.0, 0.0, 0.0
        for i in range(n_rows):
            if weights[i] > 0.0:
                mass += weights[i]
                effects[-1] += weights[i] * left_over[i]
        effects[-1] /= max(mass, 1e-300)
        for i in range(n_rows):
            if weights[i] > 0.0:
                squares += weights[i] * (left_over[i] - effects[-1]) ** 2
        variances[:] = squares / max(mass, 1e-300) / len(variances)
        if unit_noise:
            variances[:] = 1.0
        _subtract(groups, left_over, effects, rest)
    if variances.sum() == 0.0:
        return
    for _ in range(most_sweeps):
        change = _sweep(groups, weights, effects, variances, rest, room, unit_noise)
        if change <= least_change * variances.sum():
            break


@compiled
def _subtract(groups, left_over, effects, rest):  # type: ignore[no-untyped-def]
    for i in range(len(rest)):
        rest[i] = left_over[i] - effects[-1]
        for g in range(groups.place.shape[1]):
            if groups.place[i, g] >= 0:
                rest[i] -= effects[groups.place[i, g]]


@compiled
def _sweep(groups, weights, effects, variances, rest, room, unit_noise):  # type: ignore[no-untyped-def]
    """Every grouping's effects given the others', then the variances; by how much one of these has changed at most."""
    n_rows, n_groupings = groups.place.shape
    count, total = room[0], room[1]
    noise = max(variances[n_groupings], 1e-9 * variances.sum())
    # What is not known of effects, summed over rows.
    unsure, change = 0.0, 0.0
    for g in range(n_groupings):
        lo, hi = groups.first[g], groups.first[g + 1]
        count[lo:hi], total[lo:hi] = 0.0, 0.0
        lone, lone_total, old_mean = 0.0, 0.0, effects[-1]
        for i in range(n_rows):
            if weights[i] > 0.0:
                k = groups.place[i, g]
                if k >= 0:
                    count[k] += weights[i]
                    total[k] += weights[i] * (rest[i] + effects[k])
                else:
                    lone += weights[i]
                    lone_total += weights[i] * rest[i]
        mean, its_variance = 0.0, 0.0
        if g == 0:
            # The mean of all is found together with the first grouping's effects: one by one, they hardly move.
            precision = lone / noise + (_OF_LABELS if unit_noise else 0.0)
            mean = (lone_total + lone * old_mean) / noise
            for k in range(lo, hi):
                its = 1.0 / (count[k] * variances[g] + noise)
                precision += count[k] * its
                mean += (total[k] + count[k] * old_mean) * its
            mean, its_variance = mean / precision - old_mean, 1.0 / precision
            unsure += lone * its_variance
        squares, n_seen = 0.0, 0
        for k in range(lo, hi):
            if count[k] > 0.0:
                share = count[k] * variances[g] / (count[k] * variances[g] + noise)
                left = variances[g] * (1.0 - share)
                squares += left + share**2 * its_variance
                unsure += count[k] * (left + (1.0 - share) ** 2 * its_variance)
                effect = share * (total[k] / count[k] - mean)
                squares += effect**2
                n_seen += 1
            else:
                effect = 0.0
            # What rest loses by it.
            total[k] = effect - effects[k]
            effects[k] = effect
        effects[-1] += mean
        for i in range(n_rows):
            k = groups.place[i, g]
            rest[i] -= mean + (total[k] if k >= 0 else 0.0)
        if n_seen:
            change = max(change, abs(squares / n_seen - variances[g]))
            variances[g] = squares / n_seen
    if unit_noise:
        return change
    mass, squares = 0.0, unsure
    for i in range(n_rows):
        if weights[i] > 0.0:
            mass += weights[i]
            squares += weights[i] * rest[i] ** 2
    change = max(change, abs(squares / mass - variances[n_groupings]))
    variances[n_groupings] = squares / mass
    return change
