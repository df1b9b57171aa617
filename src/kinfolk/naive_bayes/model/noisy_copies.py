"""Noisy copies of a prototype: the noise model of thesis section 2.4 (eq. 2.25–2.27 and 2.30), compiled.

For every group, the values x of one feature under one label, the tasks u have rates that are noisy copies of one
prototype θ̄, the closer the larger the strength K:

    θ̄ ~ Dirichlet(β),    K ~ Gamma(shape, rate),    θ_u ~ Dirichlet(K θ̄).

With θ_u integrated out, the counts n_u of task u, N_u in all, are Dirichlet-multinomial, and

    log p(data | K, θ̄) = Σ_x Σ_u log (K θ̄_x)↑n_{u,x} − Σ_u log K↑N_u,        a↑n = Γ(a + n) / Γ(a).

Each sum over tasks depends only on how often each count occurs (``tallies``). Where tasks are clustered, each cluster
has a prototype, and all have the strength of the group: the first sum is then over clusters too. Log K, and the log
odds of the shares of two cells at a time, are drawn by slice sampling (R. M. Neal, "Slice sampling", Ann. Statist. 31,
2003, stepping out). Given K the log likelihood is a sum of concave functions of the θ̄_x: there are no modes to be lost
between. The power that annealing needs, and weights that make counts fractional, change nothing in this, as they would
in schemes that draw latent tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.gamma_draws import log_gamma_draws
from kinfolk.naive_bayes.model.tallies import Tallies, log_risings
from kinfolk.tasks.statistics import Layout

_NARROWEST, _WIDEST = 1e-3, 1e3


class NoiseModel(NamedTuple):
    """Priors: pseudo-counts β of the prototypes, cell by cell, and shape and rate of the strengths' Gamma.

    The cells of group g are ``group_start[g]:group_start[g + 1]``.
    """

    group_start: NDArray[np.int64]
    prototype_prior: Floats
    shape: float
    rate: float

    @property
    def n_groups(self) -> int:
        """Number of groups, each with a prototype and a strength."""
        return len(self.group_start) - 1

    def cells(self, group: int) -> slice:
        """The cells of a group."""
        return slice(int(self.group_start[group]), int(self.group_start[group + 1]))

    def log_prior(self, group: int, log_strength: Floats, log_prototype: Floats) -> Floats:
        """Log density of points (log K and all but one θ̄_x) of a group."""
        beta = self.prototype_prior[self.cells(group)]
        strength = self.shape * (np.log(self.rate) + log_strength) - self.rate * np.exp(log_strength)
        prototype = gammaln(beta.sum()) - gammaln(beta).sum() + log_prototype @ (beta - 1.0)
        return np.asarray(strength - gammaln(self.shape) + prototype)

    def draw_strengths(self, rng: np.random.Generator) -> Floats:
        """Log strengths of all groups, without data."""
        return np.asarray(log_gamma_draws(np.full(self.n_groups, self.shape), rng) - np.log(self.rate))

    def draw_prior(self, group: int, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Log strengths (n,) and log prototypes (n, values) of a group, without data."""
        beta = self.prototype_prior[self.cells(group)]
        log_strength = log_gamma_draws(np.full(n, self.shape), rng) - np.log(self.rate)
        drawn = log_gamma_draws(np.tile(beta, (n, 1)), rng)
        return log_strength, np.asarray(drawn - np.logaddexp.reduce(drawn, axis=1, keepdims=True))


def noise_model(prototype_prior: Floats, layout: Layout, strength_prior: tuple[float, float]) -> NoiseModel:
    """The noise model of features in this layout."""
    shape, rate = strength_prior
    return NoiseModel(layout.group_start, prototype_prior, float(shape), float(rate))


class State(NamedTuple):
    """Where a sampler stands in every group, and how wide it looks around itself; changed in place.

    Log strengths and widths are (groups,), log prototypes (clusters, cells), and widths of shares (cells,).
    """

    log_strength: Floats
    log_prototype: Floats
    strength_width: Floats
    share_width: Floats

    @classmethod
    def around(cls, model: NoiseModel, counts: Floats, rng: np.random.Generator) -> State:
        """Prototypes at the rates of counts of all tasks together, strengths from the prior."""
        mass = counts + model.prototype_prior
        starts, widths = model.group_start[:-1], np.diff(model.group_start)
        log_prototype = np.log(mass) - np.repeat(np.log(np.add.reduceat(mass, starts)), widths)
        return cls(model.draw_strengths(rng), log_prototype[None], np.ones(model.n_groups), np.ones(len(mass)))

    def sweep(self, model: NoiseModel, tallies: Tallies, rng: np.random.Generator, adapt: bool = False) -> None:
        """Redraw every group of one cluster, from the prior where there are no data; widths may adapt in burning in."""
        seen = tallies.seen(model.n_groups)
        for g in np.flatnonzero(~seen).tolist():
            (self.log_strength[g],), self.log_prototype[:, model.cells(g)] = model.draw_prior(g, 1, rng)
        _sweep_groups(np.flatnonzero(seen), model, tallies, self, adapt, rng)

    def log_likelihood(self, model: NoiseModel, tallies: Tallies) -> float:
        """Log probability of the data given strengths and prototypes, task by task integrated over their rates."""
        return float(_log_likelihood_of_all(model, tallies, self))


@compiled
def _log_likelihood(group, model, tallies, log_strength, log_shares):  # type: ignore[no-untyped-def]
    """Log likelihood of a group of cells, given the log shares of its values (clusters, values)."""
    n_clusters, n_cells = len(log_shares), len(model.prototype_prior)
    total = -log_risings(tallies, n_clusters * n_cells + group, log_strength)
    for k in range(n_clusters):
        first = k * n_cells + model.group_start[group]
        for x in range(log_shares.shape[1]):
            total += log_risings(tallies, first + x, log_strength + log_shares[k, x])
    return total


@compiled
def log_likelihoods(group, model, tallies, log_strengths, log_prototypes):  # type: ignore[no-untyped-def]
    """Log likelihood of points of one group: log strengths (points,) and log prototypes (points, values)."""
    out = np.empty(len(log_strengths))
    for i in range(len(out)):
        out[i] = _log_likelihood(group, model, tallies, log_strengths[i], log_prototypes[i : i + 1])
    return out


@compiled
def _log_likelihood_of_all(model, tallies, state):  # type: ignore[no-untyped-def]
    total = 0.0
    for g in range(len(state.log_strength)):
        log_shares = state.log_prototype[:, model.group_start[g] : model.group_start[g + 1]]
        total += _log_likelihood(g, model, tallies, state.log_strength[g], log_shares)
    return total


@compiled
def _split(log_odds, log_both):  # type: ignore[no-untyped-def]
    """Logs of two shares, given their log odds and the log of their sum."""
    larger = log_both - np.log1p(np.exp(-abs(log_odds)))
    return larger + min(log_odds, 0.0), larger - max(log_odds, 0.0)


@compiled
def _log_density(point, cell, partner, log_both, group, model, tallies, state):  # type: ignore[no-untyped-def]
    """Log density along a line: of log K if ``cell`` is −1, else of the log odds of two cells' shares."""
    if cell < 0:
        prior = model.shape * point - model.rate * np.exp(point)
        log_shares = state.log_prototype[:, model.group_start[group] : model.group_start[group + 1]]
        return prior + _log_likelihood(group, model, tallies, point, log_shares)
    one, other = _split(point, log_both)
    prior = model.prototype_prior[cell] * one + model.prototype_prior[partner] * other
    log_strength = state.log_strength[group]
    one_fit = log_risings(tallies, cell, log_strength + one)
    return prior + one_fit + log_risings(tallies, partner, log_strength + other)


@compiled
def _slice(here, width, cell, partner, log_both, group, model, tallies, state, rng):  # type: ignore[no-untyped-def]
    """Draw a point on a line from where the density is above a random height."""
    height = _log_density(here, cell, partner, log_both, group, model, tallies, state) + np.log1p(-rng.random())
    left = here - width * rng.random()
    right = left + width
    while _log_density(left, cell, partner, log_both, group, model, tallies, state) > height:
        left -= width
    while _log_density(right, cell, partner, log_both, group, model, tallies, state) > height:
        right += width
    # Rounding may hide the point itself from a height just below it.
    while right - left > 1e-12 * (1.0 + abs(here)):
        there = left + (right - left) * rng.random()
        if _log_density(there, cell, partner, log_both, group, model, tallies, state) > height:
            return there
        if there < here:
            left = there
        else:
            right = there
    return here


@compiled
def _adapted(width, step):  # type: ignore[no-untyped-def]
    """A width that follows the steps taken, a few of them wide."""
    return min(max(0.9 * width + 0.4 * abs(step), _NARROWEST), _WIDEST)


@compiled
def _redraw_strength(group, model, tallies, state, adapt, rng):  # type: ignore[no-untyped-def]
    here = state.log_strength[group]
    there = _slice(here, state.strength_width[group], -1, -1, 0.0, group, model, tallies, state, rng)
    state.log_strength[group] = there
    if adapt:
        state.strength_width[group] = _adapted(state.strength_width[group], there - here)


@compiled
def redraw_strengths(model, tallies, state, adapt, rng):  # type: ignore[no-untyped-def]
    """Redraw the strengths of all groups in place, given the prototypes of all clusters."""
    for group in range(len(state.log_strength)):
        _redraw_strength(group, model, tallies, state, adapt, rng)


@compiled
def _sweep_group(group, model, tallies, state, adapt, rng):  # type: ignore[no-untyped-def]
    """Redraw the strength of a group, then its prototype, every cell but one with a partner chosen at random."""
    _redraw_strength(group, model, tallies, state, adapt, rng)
    first, n_values = model.group_start[group], model.group_start[group + 1] - model.group_start[group]
    for cell in range(first + 1, first + n_values):
        partner = first + int(rng.random() * (n_values - 1))
        if partner >= cell:
            partner += 1
        here = state.log_prototype[0, cell] - state.log_prototype[0, partner]
        log_both = np.logaddexp(state.log_prototype[0, cell], state.log_prototype[0, partner])
        there = _slice(here, state.share_width[cell], cell, partner, log_both, group, model, tallies, state, rng)
        state.log_prototype[0, cell], state.log_prototype[0, partner] = _split(there, log_both)
        if adapt:
            state.share_width[cell] = _adapted(state.share_width[cell], there - here)


@compiled
def _sweep_groups(groups, model, tallies, state, adapt, rng):  # type: ignore[no-untyped-def]
    for group in groups:
        _sweep_group(group, model, tallies, state, adapt, rng)


@compiled
def run_group(group, model, tallies, state, n_burn_in, n_draws, rng):  # type: ignore[no-untyped-def]
    """Burn in, then keep every draw of a group: its log strengths (draws,) and log prototypes (draws, values)."""
    first, last = model.group_start[group], model.group_start[group + 1]
    log_strengths = np.empty(n_draws)
    log_prototypes = np.empty((n_draws, last - first))
    for sweep in range(n_burn_in + n_draws):
        _sweep_group(group, model, tallies, state, sweep < n_burn_in, rng)
        if sweep >= n_burn_in:
            log_strengths[sweep - n_burn_in] = state.log_strength[group]
            for x in range(last - first):
                log_prototypes[sweep - n_burn_in, x] = state.log_prototype[0, first + x]
    return log_strengths, log_prototypes
