"""Filters against hmmlearn and dynamax, sweeps of the iHMM against plain numpy, how a sweep of the nDP-iHMM grows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from bench.measure import Comparison, in_turns, once
from kinfolk import NestedIHMM
from kinfolk.datasets.music import load_music
from kinfolk.datasets.sequences import make_sequences
from kinfolk.experiments.sequences.models import steps_of
from kinfolk.experiments.sequences.music import middle
from kinfolk.sequences.inference.sweep import draw_given_states, start_state, sweep
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.emission import Densities
from kinfolk.sequences.model.filtering import draw_states, scaled, smooth
from kinfolk.sequences.model.ndp_ihmm import Priors, State
from kinfolk.sequences.model.sequences import Sequences

N_SEQUENCES, LENGTH, N_CODES = 600, 40, 32
# Section 4.2: burn-in and kept draws.
PAPERS_SWEEPS = 2_098 + 20_709


def drawn(rng: np.random.Generator, n_tasks: int, n_sequences: int, length: int, n_codes: int) -> Sequences:
    """Sequences of tasks of three kinds, two hidden states and emissions of its own to each kind."""
    emissions = rng.dirichlet(np.full(n_codes, 0.3), size=(3, 2))
    n_all = n_tasks * n_sequences
    kind = np.repeat(np.arange(n_tasks) % 3, n_sequences)
    codes = np.empty((n_all, length), dtype=np.int64)
    state = rng.integers(2, size=n_all)
    for t in range(length):
        cumulative = emissions[kind, state].cumsum(axis=1)
        codes[:, t] = (rng.random((n_all, 1)) > cumulative[:, :-1]).sum(axis=1)
        state = np.where(rng.random(n_all) < 0.2, 1 - state, state)
    return Sequences((codes.ravel(),), np.arange(n_all + 1) * length, np.arange(n_tasks + 1) * n_sequences)


def plain_draw_states(
    likelihood: NDArray[np.float64], row: NDArray[np.int64], bounds: NDArray[np.int64], transitions: Any, rng: Any
) -> NDArray[np.int64]:
    """Forward filtering, backward sampling as one writes it with numpy, a sequence and a step at a time."""
    states = np.empty(len(row), dtype=np.int64)
    for start, stop in pairwise(bounds):
        filtered = np.empty((stop - start, transitions.shape[1]))
        ahead = transitions[0]
        for t in range(stop - start):
            filtered[t] = ahead * likelihood[row[start + t]]
            filtered[t] /= filtered[t].sum()
            ahead = filtered[t] @ transitions[1:]
        weights = filtered[-1]
        for t in range(stop - start - 1, -1, -1):
            cumulative = np.cumsum(weights)
            state = int(np.searchsorted(cumulative, rng.random() * cumulative[-1]))
            states[start + t] = state
            if t > 0:
                weights = filtered[t - 1] * transitions[1:, state]
    return states


def plain_sweep(state: State, data: Sequences, emission: Categorical, priors: Priors, rng: Any) -> State:
    """A sweep of a single iHMM whose states are drawn with numpy."""
    densities = scaled(emission.log_densities(state.parameters[0], data.observations))
    states = plain_draw_states(densities.likelihood, densities.row, data.bounds, state.transitions[0], rng)
    return draw_given_states(state._replace(states=states), data, emission, priors, rng)


def smoother_of_dynamax(
    likelihood: NDArray[np.float64], transitions: NDArray[np.float64], data: Sequences
) -> Callable[[], Any] | None:
    """Forward–backward with expected counts of all sequences at once, compiled, in double precision as ours.

    None where dynamax is not installed: it is no dependency of the benchmarks, because it comes with all of JAX.
    """
    try:
        jax: Any = import_module("jax")
        hmm: Any = import_module("dynamax.hidden_markov_model")
    except ImportError:
        return None
    # Sequences of one length, which is what it takes side by side.
    codes = data.observations[0].reshape(data.n_sequences, -1)

    @jax.jit
    def smoothed(log_likelihood: Any, start: Any, rows: Any) -> Any:
        found = jax.vmap(lambda steps: hmm.hmm_smoother(start, rows, steps))(log_likelihood[codes])
        return found.marginal_loglik, found.smoothed_probs, found.trans_probs.sum(axis=0)

    with np.errstate(divide="ignore"):
        log_likelihood = np.log(likelihood)
    return lambda: jax.block_until_ready(smoothed(log_likelihood, transitions[0], transitions[1:]))


def filters(data: Sequences, rng: np.random.Generator) -> list[Comparison]:
    """Forward–backward and backward sampling for several numbers of states."""
    try:
        peer: Any = import_module("hmmlearn._hmmc")
    except ImportError:
        peer = None
    results = []
    for n_states in (2, 8, 20):
        likelihood = rng.dirichlet(np.ones(N_CODES), size=n_states).T
        likelihood /= likelihood.max(axis=1, keepdims=True)
        transitions = rng.dirichlet(np.ones(n_states), size=n_states + 1)
        densities = Densities(likelihood, np.zeros(N_CODES), data.observations[0])
        uniforms, states = rng.random(data.n_steps), np.zeros(data.n_steps, dtype=np.int64)

        def by_peer(counted: bool, likelihood: Any = likelihood, transitions: Any = transitions) -> None:
            # Without counts, no more than its compiled parts; with them, all that ours gives.
            of_steps = likelihood[data.observations[0]]
            counts, posteriors = np.zeros(transitions.shape), []
            for start, stop in pairwise(data.bounds):
                part = of_steps[start:stop]
                _, forward, scaling = peer.forward_scaling(transitions[0], transitions[1:], part)
                backward = peer.backward_scaling(transitions[0], transitions[1:], part, scaling)
                both = forward * backward
                if counted:
                    posteriors.append(both / both.sum(axis=1, keepdims=True))
                    counts[0] += posteriors[-1][0]
                    counts[1:] += peer.compute_scaling_xi_sum(forward, transitions[1:], backward, part)
            if counted:
                np.concatenate(posteriors)

        counting = partial(smooth, densities, data.layout, transitions[None])
        drawing = partial(draw_states, densities, data.layout, transitions[None], uniforms, states)
        smoother = smoother_of_dynamax(likelihood, transitions, data)
        if smoother is not None:
            found, expected = counting(), smoother()
            np.testing.assert_allclose(expected[0], found.log_likelihoods, rtol=1e-9)
            np.testing.assert_allclose(expected[2], found.counts[0, 1:], rtol=1e-9)
            seconds, of_dynamax = in_turns(counting, smoother)
            results.append(
                Comparison(
                    f"forward–backward with expected counts, {n_states} states, {N_SEQUENCES} × {LENGTH} steps: "
                    f"{data.n_steps / seconds / 1e6:.1f} million steps/s",
                    "dynamax's hmm_smoother, all sequences at once",
                    seconds,
                    of_dynamax,
                    "faster",
                )
            )
        for name, job, of_peer, counted in (
            ("forward–backward with expected counts", counting, "forward–backward with expected counts", True),
            ("forward–backward with expected counts", counting, "forward–backward, without counts", False),
            ("forward filtering, backward sampling", drawing, "forward–backward, without counts", False),
        ):
            first = once(job)
            seconds, *of_hmmlearn = in_turns(job, *([partial(by_peer, counted)] if peer else []))
            results.append(
                Comparison(
                    f"{name}, {n_states} states, {N_SEQUENCES} × {LENGTH} steps: "
                    f"{data.n_steps / seconds / 1e6:.1f} million steps/s",
                    f"hmmlearn's {of_peer}" if peer else "hmmlearn's is not installed",
                    seconds,
                    of_hmmlearn[0] if of_hmmlearn else None,
                    "at least 10×" if job is drawing and n_states == 20 else "at least 3×",
                    first,
                )
            )
    return results


def sweep_seconds(data: Sequences, n_clusters: int, n_states: int, n_codes: int) -> tuple[float, float, float]:
    """Seconds of the first sweep and of later ones, in one thread and in two, tasks in clusters of their own kind."""
    rng, emission, priors = np.random.default_rng(0), Categorical(n_codes), Priors()
    cluster = np.arange(data.n_tasks) % min(3, n_clusters)
    state = start_state(data, emission, priors, n_clusters=n_clusters, n_states=n_states, rng=rng, cluster=cluster)
    first = once(lambda: sweep(state, data, emission, priors, rng))
    for _ in range(5):
        state = sweep(state, data, emission, priors, rng)

    def ten(n_jobs: int) -> None:
        # From the same place with the same numbers, whatever the threads.
        own, at = np.random.default_rng(1), state
        for _ in range(10):
            at = sweep(at, data, emission, priors, own, n_jobs=n_jobs)

    one, two = in_turns(partial(ten, 1), partial(ten, 2))
    return first, one / 10, two / 10


def run() -> list[Comparison]:
    rng = np.random.default_rng(0)
    single = drawn(rng, 1, N_SEQUENCES, LENGTH, N_CODES)
    results = filters(single, rng)
    first, seconds, _ = sweep_seconds(single, 1, 20, N_CODES)
    emission, priors = Categorical(N_CODES), Priors()
    state = start_state(single, emission, priors, n_clusters=1, n_states=20, rng=rng)
    results.append(
        Comparison(
            f"sweep of one iHMM, 20 states, {N_SEQUENCES} × {LENGTH} steps: "
            f"{single.n_steps / seconds / 1e6:.1f} million steps/s",
            "states drawn with plain numpy",
            seconds,
            once(lambda: plain_sweep(state, single, emission, priors, rng)),
            "2 million steps/s",
            first,
        )
    )
    for n_tasks in (12, 24, 48):
        data = drawn(rng, n_tasks, 50, 20, 8)
        _, seconds, two = sweep_seconds(data, 20, 10, 8)
        job = f"sweep of the nDP-iHMM, {n_tasks} tasks × 50 × 20 steps, 20 clusters of 10 states"
        wanted = "under 40 ms" if n_tasks == 12 else "linear in tasks × steps"
        results.append(Comparison(job, "", seconds, None, wanted))
        results.append(Comparison("the same with two threads", "one thread", two, seconds, "at least 1.6×"))
    return [*results, small_data(), chains(), *music()]


def small_data() -> Comparison:
    """All defaults on the smallest data that somebody would try first."""
    codes = drawn(np.random.default_rng(0), 5, 2, 20, 3).observations[0]

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            NestedIHMM(random_state=0).fit(codes, [20] * 10, task=np.repeat(range(5), 2))

    first = once(fit)
    return Comparison("NestedIHMM with defaults, 5 tasks × 2 × 20 steps", "", once(fit), None, "under 3 s", first)


def chains() -> Comparison:
    """Two chains of an estimator in two processes, which are running already, against one after the other."""
    made = make_sequences(random_state=0)

    def fit(n_jobs: int) -> None:
        model = NestedIHMM(n_states=10, n_chains=2, n_burn_in=20, n_draws=60, n_jobs=n_jobs, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(made.X, made.lengths, task=made.task)

    first = once(lambda: fit(2))
    job = "two chains of 80 sweeps, 12 tasks × 50 × 20 steps, in two processes"
    return Comparison(job, "in one", once(lambda: fit(2)), once(lambda: fit(1)), "at least 1.6×", first)


def music() -> list[Comparison]:
    """The paper's ten clips, 30 sequences of each, where the data are at hand."""
    try:
        clips = load_music(random_state=0)
    except FileNotFoundError as missing:
        print(f"The music clips are left out: {missing}")
        return []
    chosen = middle(clips.task, 30)
    given = clips.X[steps_of(clips.lengths, chosen)], clips.lengths[chosen]
    common: dict[str, Any] = {"symbols": list(range(int(clips.X.max()) + 1)), "random_state": 0, "n_jobs": 2}

    def fit(**parameters: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            NestedIHMM(**common, **parameters).fit(*given, task=clips.task[chosen])

    first = once(lambda: fit(inference="variational"))
    variational = once(lambda: fit(inference="variational"))
    job = "music, 10 clips × 30 sequences"
    results = [Comparison(f"{job}, variational", "", variational, None, "under a minute", first)]
    short, longer = (once(partial(fit, n_chains=1, n_burn_in=50, n_draws=n_draws)) for n_draws in (50, 250))
    whole = (longer - short) / 200 * PAPERS_SWEEPS
    what = f"{job}, {PAPERS_SWEEPS:,} sweeps of the paper, by 200 of them"
    return [*results, Comparison(what, "", whole, None, "under an hour")]
