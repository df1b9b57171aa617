"""Relaxed sameness: tasks of a cluster have noisy copies of its rates (the last sentence of paper 000).

Clustered naive Bayes (thesis section 2.5) with the noise model of the prototypes (section 2.4) inside every cluster:

    z ~ CRP(a),    θ̄_{c,y,f} ~ Dir(β),    K_{y,f} ~ Gamma(shape, rate),    θ_{u,y,f} ~ Dir(K_{y,f} θ̄_{z_u,y,f}).

With K to infinity it is clustered naive Bayes, with one cluster the prototype model. Rates θ_u are integrated out: a
task's counts n are Dirichlet-multinomial. Read as an urn, each of its rows either draws its value from the prototype or
repeats an earlier row; with t_{u,x} ≤ n_{u,x} the number of draws from the prototype, its *votes*, and s(n, t)
Stirling's numbers,

    p(n_u, t_u | θ̄, K) = Γ(K) / Γ(K + N_u) ∏_x s(n_{u,x}, t_{u,x}) (K θ̄_x)^{t_{u,x}},

so that given votes the prototypes are integrated out as well, and partitions are drawn as those of clustered naive
Bayes with votes in the place of counts, single tasks and splits and merges alike. A sweep draws

    K given z, θ̄ (votes summed out);    votes given K, z, θ̄;    z given votes;    θ̄ given z and votes.

The first two are one draw of (K, t), the last two one of (z, θ̄). Votes are whole numbers, and so must counts be.

Given z, K and votes, features are independent: a task's next row has ∏_f (n_{u,x} + K m_x) / (N_u + K), m being the
prototypes' conditional mean, and given z alone the product of such rates averaged over draws. So draws of the same
partition share a block with averaged rates, and a task is a mixture over partitions drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kinfolk.maths.dirichlet import dirichlet_product
from kinfolk.maths.gamma_draws import log_gamma_draws
from kinfolk.naive_bayes.inference.gibbs import Schedule, arrange, convergence_of_draws
from kinfolk.naive_bayes.inference.noisy_blocks import Draw, blocks_of_partitions, mean_prototypes
from kinfolk.naive_bayes.inference.noisy_kernels import draw_votes, log_likelihood, redraw_strengths
from kinfolk.naive_bayes.inference.prototype import noise_model
from kinfolk.naive_bayes.model.fitted import Behind, Fitted, Problem
from kinfolk.naive_bayes.model.noisy_copies import NoiseModel
from kinfolk.naive_bayes.model.tallies import Floats
from kinfolk.partition.agreement import central_partition
from kinfolk.partition.concentration import GammaPrior, draw_concentration
from kinfolk.partition.crp import canonical
from kinfolk.partition.gibbs import Seating
from kinfolk.partition.split_merge import split_and_merge
from kinfolk.tasks.statistics import no_rows

# Of the draws, predictions use at most this many, and no more cells than this (128 MiB).
_MOST_KEPT = 100
_MOST_KEPT_CELLS = 1 << 24
_FEWEST_KEPT = 10


class NoisyDraws(NamedTuple):
    """Draws of the strengths (chains, draws, groups), and what else this model leaves behind.

    ``prototypes`` (clusters, cells) are the posterior means of those of the reported partition, over the draws that
    have it; ``behind`` says what stands behind the rates of every block.
    """

    strengths: Floats
    prototypes: Floats
    behind: Behind


class NoisyChain:
    """One sampler over seats, strengths and prototypes, all rows labelled.

    Annealed, the power acts on the prototypes: pseudo-counts are K θ̄^power, so that votes count by the power.
    """

    def __init__(
        self, problem: Problem, model: NoiseModel, concentration: float | GammaPrior, annealed: bool = False
    ) -> None:
        counts = problem.statistics.feature_counts
        if counts.dtype.kind not in "iu":
            raise ValueError("noisy copies need whole weights of rows, and some of those given are fractions")
        self.problem, self.model = problem, model
        self.counts = np.ascontiguousarray(counts)
        self.prior = concentration if isinstance(concentration, GammaPrior) else None
        start = concentration.shape / concentration.rate if isinstance(concentration, GammaPrior) else concentration
        # Votes that count by a power are fractions, which no table of lgamma reaches.
        product = dirichlet_product(model.prototype_prior, model.group_start, 0) if annealed else problem.product()
        self.seating = Seating(self.counts.astype(np.float64) if annealed else self.counts, product, float(start))
        self.seating.place(np.zeros(len(counts), dtype=np.int64))
        self.votes = self.counts.copy()
        self.width = np.ones(model.n_groups)
        self.log_strength = np.zeros(model.n_groups)

    def start(self, rng: np.random.Generator) -> None:
        """Strengths from the prior; tasks seated one by one, each where those before attract it, all rows votes."""
        self.log_strength[:] = log_gamma_draws(np.full(self.model.n_groups, self.model.shape), rng)
        self.log_strength -= np.log(self.model.rate)
        self.draw_concentration_from_prior(rng)
        self.votes[:] = self.counts
        self.count_votes(1.0)
        self.seating.clear()
        self.seating.sweep(rng.random(len(self.counts)))
        self.redraw_prototypes(rng)

    def draw_concentration_from_prior(self, rng: np.random.Generator) -> None:
        """Draw the concentration, if it is unknown, without data."""
        if self.prior is not None:
            self.seating.concentration = self.prior.draw(rng)

    def sweep(self, rng: np.random.Generator, power: float = 1.0, adapt: bool = False) -> None:
        """Redraw everything once. O(rows · features + tasks · clusters · cells)."""
        model, log_share = self.model, power * self.log_prototype
        prior = (model.shape, model.rate)
        data = (model.group_start, self.counts, self.cluster, log_share)
        redraw_strengths(self.log_strength, self.width, *prior, *data, adapt, rng)
        draw_votes(self.log_strength, *data, self.votes, rng)
        self.count_votes(power)
        self.reseat(rng)
        self.redraw_prototypes(rng)

    def count_votes(self, power: float) -> None:
        """Let the clusters have the votes of their tasks."""
        seating = self.seating
        seating.counts[:] = self.votes if power == 1.0 else power * self.votes
        seating.refresh()

    def reseat(self, rng: np.random.Generator) -> None:
        """Redraw the partition given the votes, prototypes integrated out, then the concentration if it is unknown."""
        seating = self.seating
        seating.sweep(rng.random(len(self.votes)))
        split_and_merge(seating, rng)
        if self.prior is not None:
            seating.concentration = draw_concentration(
                seating.concentration, seating.n_clusters, len(self.votes), self.prior, rng
            )

    def redraw_prototypes(self, rng: np.random.Generator) -> None:
        """Redraw the prototypes of all clusters given votes and seats."""
        taken, self.cluster = np.unique(self.seating.seat, return_inverse=True)
        drawn = log_gamma_draws(self.seating.cluster_counts[taken] + self.model.prototype_prior, rng)
        starts, widths = self.model.group_start[:-1], np.diff(self.model.group_start)
        self.log_prototype = drawn - np.repeat(np.logaddexp.reduceat(drawn, starts, axis=1), widths, axis=1)

    @property
    def log_joint(self) -> float:
        """Log probability of seats, labels and features, given strengths and prototypes."""
        fit = log_likelihood(self.log_strength, self.model.group_start, self.counts, self.cluster, self.log_prototype)
        return float(fit + self.seating.log_prior + self.problem.log_label_evidence())


class _Kept(NamedTuple):
    """What one chain leaves: every draw's seats, strengths, concentration and log joint, and some draws whole."""

    seats: NDArray[np.int64]
    strengths: Floats
    concentrations: Floats
    log_joint: Floats
    whole: list[Draw]


def _run_chain(
    chain: NoisyChain,
    schedule: Schedule,
    kept: NDArray[np.int64],
    back: NDArray[np.int64],
    seed: np.random.SeedSequence,
    progress: Callable[[int], None] | None,
) -> _Kept:
    """Burn in, then draw; seats and votes come back in the order of the tasks that ``back`` gives."""
    rng = np.random.default_rng(seed)
    chain.start(rng)
    seats, strengths, concentrations, log_joint, whole = [], [], [], [], []
    for sweep in range(schedule.n_burn_in + schedule.n_draws):
        chain.sweep(rng, adapt=sweep < schedule.n_burn_in)
        if progress is not None:
            progress(1)
        if sweep < schedule.n_burn_in:
            continue
        seats.append(canonical(chain.cluster[back]))
        strengths.append(np.exp(chain.log_strength))
        concentrations.append(chain.seating.concentration)
        log_joint.append(chain.log_joint)
        if sweep - schedule.n_burn_in in kept:
            votes = chain.votes[back].astype(np.int32)
            whole.append(Draw(seats[-1], strengths[-1], votes, concentrations[-1]))
    return _Kept(np.array(seats), np.array(strengths), np.array(concentrations), np.array(log_joint), whole)


def fit_noisy(
    problem: Problem,
    concentration: float | GammaPrior,
    strength_prior: tuple[float, float],
    schedule: Schedule,
    seed: int,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Fitted, NoisyDraws]:
    """Run the chains side by side and join their draws. O(sweeps · (rows · features + tasks · clusters · cells)).

    Unlabelled rows are left out. The partition reported is the one, of those drawn, that agrees best with all. Of the
    draws at most 100 (and for very many tasks no fewer than 10), evenly spaced, are used for predictions, whose error
    beside all draws' is therefore that of a mean over 100 nearly independent draws: a tenth of the spread of one draw's
    prediction around their mean.
    """
    order = problem.canonical_order()
    arranged, _ = arrange(problem._replace(unlabelled=no_rows(problem.statistics.layout)), order)
    model = noise_model(problem, strength_prior)
    n_tasks, n_cells = problem.statistics.feature_counts.shape
    most = int(np.clip(_MOST_KEPT_CELLS // ((n_tasks + 1) * n_cells), _FEWEST_KEPT, _MOST_KEPT))
    per_chain = max(1, most // schedule.n_chains)
    kept = np.unique(np.linspace(0, schedule.n_draws - 1, per_chain).round().astype(np.int64))
    back = np.argsort(order)
    chains = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_run_chain)(NoisyChain(arranged, model, concentration), schedule, kept, back, part, progress)
        for part in np.random.SeedSequence(seed).spawn(schedule.n_chains)
    )
    whole = [draw for chain in chains for draw in chain.whole]
    partition = central_partition(np.array([draw.seat for draw in whole]))
    blocks, behind = blocks_of_partitions(problem, whole)
    seats, strengths, drawn, log_joint = (np.array(part) for part in list(zip(*chains, strict=True))[:4])
    concentrations = drawn if isinstance(concentration, GammaPrior) else None
    fitted = Fitted(
        blocks=blocks,
        partition=partition,
        partitions=seats,
        log_joint=log_joint,
        concentrations=concentrations,
        convergence=convergence_of_draws(log_joint, seats, concentrations),
    )
    return fitted, NoisyDraws(strengths, mean_prototypes(problem, whole, partition), behind)
