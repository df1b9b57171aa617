"""Particles going along a sequence give its probability with rows and shares summed out, as sums over all paths do."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from kinfolk.sequences.answers.compiled_filters import CompiledFilters
from kinfolk.sequences.answers.forecasting import draw_empty_clusters, look_ahead
from kinfolk.sequences.answers.new_tasks import joining_weights, pseudo_counts
from kinfolk.sequences.answers.particles import Crowd, advance, successors
from kinfolk.sequences.answers.plain_filters import PlainFilters
from kinfolk.sequences.answers.prediction import Kept, log_predictive, log_predictive_of_tasks
from kinfolk.sequences.answers.predictor import SequencesPredictor
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.families import side_by_side
from kinfolk.sequences.model.emissions.poisson import Poisson
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.answering import Known

N_STATES, N_CODES = 2, 3
CODES = Categorical(N_CODES, 0.1)
MIXED = side_by_side([Categorical(N_CODES, 0.1), Poisson(2.0, 0.1)])


def a_draw(rng, emission=CODES, n_tasks=2):
    """A draw whose rows and codes are nearly unknown, so that what a sequence itself shows counts most."""
    hyper = HyperParameters(1.5, 1.0, 0.3, 0.1)
    base = rng.dirichlet(np.full(N_STATES, 5.0), size=1)
    statistics = emission.statistics(tuple(np.array([0, 1, 1]) for _ in emission.channels), np.array([0, 0, 1]), 2)
    rows = pseudo_counts(base[0], hyper) + rng.integers(3, size=(n_tasks, N_STATES + 1, N_STATES))
    return Draw(
        np.zeros(n_tasks, dtype=np.int64),
        base,
        emission.draw_parameters(statistics[None], rng),
        rows / rows.sum(axis=2, keepdims=True),
        hyper,
        0.0,
        np.full(n_tasks, N_STATES),
        rows.astype(np.float32),
        (emission.code_counts(statistics)[None] + hyper.strength).astype(np.float32),
    )


def keep(draws, emission=CODES, n_clusters=1, filters=CompiledFilters, seed=3, weights=None):
    empty = draw_empty_clusters(draws, emission, np.random.default_rng(7))
    return Kept(tuple(draws), empty, n_clusters, seed, emission, filters(emission), weights)


def one_sequence(*channels, group=1, n_groups=3):
    bounds = np.zeros(n_groups + 1, dtype=np.int64)
    bounds[group + 1 :] = 1
    return Sequences(tuple(np.asarray(c) for c in channels), np.array([0, len(channels[0])]), bounds)


def log_dirichlets(counts, more):
    """Log probability of draws in their order, by Dirichlet distributions along the last axis."""
    whole = gammaln(counts.sum(axis=-1)) - gammaln((counts + more).sum(axis=-1))
    return (whole + (gammaln(counts + more) - gammaln(counts)).sum(axis=-1)).sum()


def enumerated(codes, rows, shares, log_density=None):
    """Log probability of codes, rows and shares integrated out; other channels by their density (steps, states)."""
    terms = []
    for path in itertools.product(range(N_STATES), repeat=len(codes)):
        moves, shown, row, log_p = np.zeros_like(rows), np.zeros_like(shares), 0, 0.0
        for t, (state, code) in enumerate(zip(path, codes, strict=True)):
            moves[row, state] += 1
            if code >= 0:
                shown[state, code] += 1
            log_p += 0.0 if log_density is None else log_density[t, state]
            row = state + 1
        terms.append(log_p + log_dirichlets(rows, moves) + log_dirichlets(shares, shown))
    return logsumexp(terms)


SEQUENCE = [2, 2, 0, 2, -1, 1]


def test_the_mean_of_particles_is_the_probability_with_rows_and_shares_integrated_out():
    rng = np.random.default_rng(0)
    draws = [a_draw(rng) for _ in range(2)]
    exact = logsumexp(
        [enumerated(SEQUENCE, d.row_counts[1].astype(float), d.code_counts[0].astype(float)) for d in draws]
    )
    found = [np.exp(log_predictive(keep(draws, seed=s), one_sequence(SEQUENCE, group=2))[0]) for s in range(40)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(np.exp(exact) / 2, abs=4 * error)
    assert error < 0.02 * np.mean(found)


def test_particles_that_forget_what_they_saw_are_found_out():
    """The broken twin: pseudo-counts that stay as they were."""
    start = keep([a_draw(np.random.default_rng(0))]).particles(2)[0]
    (steps,) = start.steps((np.array(SEQUENCE),))
    exact = enumerated(SEQUENCE, start.crowd.rows[0], start.crowd.codes[0])

    def estimate(forgets, seed):
        crowd, rng = start.crowd, np.random.default_rng(seed)
        for t in range(len(SEQUENCE)):
            one = steps._replace(codes=steps.codes[t : t + 1], row=steps.row[t : t + 1])
            crowd = advance(crowd, one, rng.random((1, len(crowd.row) + 1)))
            if forgets:
                crowd = crowd._replace(rows=start.crowd.rows, codes=start.crowd.codes)
        return np.exp(crowd.log_likelihood())

    for forgets in (False, True):
        found = [estimate(forgets, seed) for seed in range(40)]
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        assert (abs(np.mean(found) - np.exp(exact)) > 4 * error) == forgets


def test_a_new_task_joins_clusters_with_rows_and_shares_integrated_out():
    draw = a_draw(np.random.default_rng(1))
    kept = keep([draw], n_clusters=3)
    joins, alone = joining_weights(draw, 3)
    ways = [
        (joins[0], draw.base_weights[0], draw.code_counts[0].astype(float)),
        (alone, kept.empty.base_weights[0], np.full((N_STATES, N_CODES), 0.1)),
    ]
    terms = [np.log(w) + enumerated(SEQUENCE, pseudo_counts(base, draw.hyper), shares) for w, base, shares in ways]
    found = [np.exp(log_predictive(kept._replace(seed=s), one_sequence(SEQUENCE, group=0))[0]) for s in range(40)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(np.exp(logsumexp(terms)), abs=4 * error)


def test_channels_without_codes_have_the_parameters_that_were_drawn():
    draw = a_draw(np.random.default_rng(2), MIXED)
    counts = np.array([1, 0, 3, 2, -1, 7])
    rates = np.exp(draw.parameters[0][:, N_CODES + 1])
    log_density = np.where(
        counts[:, None] < 0, 0.0, counts[:, None] * np.log(rates) - rates - gammaln(counts[:, None] + 1.0)
    )
    exact = enumerated(SEQUENCE, draw.row_counts[0].astype(float), draw.code_counts[0].astype(float), log_density)
    found = [np.exp(log_predictive(keep([draw], MIXED, seed=s), one_sequence(SEQUENCE, counts))[0]) for s in range(40)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(np.exp(exact), abs=4 * error)


@pytest.mark.parametrize("group", [0, 1])
def test_numpy_alone_gives_what_the_kernel_gives(group):
    rng = np.random.default_rng(3)
    draws = [a_draw(rng, MIXED) for _ in range(5)]
    # Long enough for particles to take each other's places; a code that the codebook does not have.
    sequence = one_sequence(rng.integers(-1, 4, size=30), rng.integers(-1, 5, size=30), group=group)
    both = [log_predictive(keep(draws, MIXED, 2, filters), sequence) for filters in (CompiledFilters, PlainFilters)]
    np.testing.assert_allclose(*both, rtol=1e-12)


def test_a_sequence_is_as_probable_whatever_stands_beside_it():
    rng = np.random.default_rng(4)
    kept = keep([a_draw(rng) for _ in range(3)])
    codes = rng.integers(3, size=20)
    together = Sequences((codes,), np.array([0, 8, 20]), np.array([0, 0, 2, 2]))
    apart = [log_predictive(kept, one_sequence(part))[0] for part in (codes[:8], codes[8:])]
    np.testing.assert_array_equal(log_predictive(kept, together), apart)
    of_tasks = log_predictive_of_tasks(kept, Sequences((codes,), np.array([0, 8, 20]), np.array([0, 2])))
    np.testing.assert_array_equal(of_tasks[:, 0], apart)


def test_as_drawn_each_draw_has_the_rows_and_shares_that_it_has():
    rng = np.random.default_rng(8)
    draw = a_draw(rng)
    drawn = (
        SequencesPredictor(Known("a model", None, 1, None, np.array(["a", "b"])), None, keep([draw])).as_drawn().kept
    )
    terms = []
    for path in itertools.product(range(N_STATES), repeat=3):
        rows = (0, path[0] + 1, path[1] + 1)
        moves = sum(np.log(draw.transitions[0][row, state]) for row, state in zip(rows, path, strict=True))
        terms.append(moves + sum(draw.parameters[0][state, code] for state, code in zip(path, (0, 2, 2), strict=True)))
    assert log_predictive(drawn, one_sequence([0, 2, 2]))[0] == pytest.approx(logsumexp(terms))


def test_draws_count_as_they_are_weighed():
    rng = np.random.default_rng(5)
    draws = [a_draw(rng) for _ in range(2)]
    one_step = one_sequence([2])
    each = [np.exp(log_predictive(keep([draw]), one_step)[0]) for draw in draws]
    found = log_predictive(keep(draws, weights=np.array([0.9, 0.1])), one_step)[0]
    assert np.exp(found) == pytest.approx(0.9 * each[0] + 0.1 * each[1], rel=1e-6)


def of_two_models():
    """A draw of a model that expects the first code and never the last, and three of one that expects the others."""
    draw = a_draw(np.random.default_rng(0))
    counts = np.float32([[1e7, 1.0, 1e-30], [10.0, 5e6, 5e6]])
    one, other = (draw._replace(code_counts=np.broadcast_to(own, draw.code_counts.shape)) for own in counts)
    draws = one, other, other, other
    return keep(draws, weights=np.array([0.4, 0.2, 0.2, 0.2]))._replace(rooms=(1, 2, 2, 2))


@pytest.mark.parametrize("group", [0, 1])
def test_draws_of_several_models_are_as_probable_as_the_models_on_average(group):
    """A model that explains the first step best does not drive out the one that explains all of them."""
    kept = of_two_models()
    sequence, by_model = one_sequence([0, 2, 2, 2, 2], group=group), []
    for places in (slice(0, 1), slice(1, 4)):
        alone = kept._replace(draws=kept.draws[places], weights=None, rooms=None, n_clusters=kept.rooms[places][0])
        alone = alone._replace(empty=type(kept.empty)(*(part[places] for part in kept.empty)))
        by_model.append(log_predictive(alone, sequence)[0])
    assert by_model[0] < by_model[1] - 10.0
    assert log_predictive(kept, sequence)[0] == pytest.approx(logsumexp(by_model, b=[0.4, 0.6]), rel=1e-9)


def test_a_forecast_goes_on_from_the_model_that_has_been_right():
    outlook = look_ahead(of_two_models(), one_sequence([0, 2, 2, 2, 2]), 1, 1, np.random.default_rng(0))
    np.testing.assert_allclose(outlook.moments[0].mean[0, 0], [0.0, 0.5, 0.5], atol=1e-4)


def test_a_forecast_of_particles_is_a_ratio_of_predictive_likelihoods():
    rng = np.random.default_rng(6)
    kept = keep([a_draw(rng) for _ in range(3)])
    seen = [0, 2, 2]
    so_far = log_predictive(kept, one_sequence(seen))[0]
    outlook = look_ahead(kept, one_sequence(seen), 1, 1, np.random.default_rng(0))
    expected = [np.exp(log_predictive(kept, one_sequence([*seen, code]))[0] - so_far) for code in range(N_CODES)]
    np.testing.assert_allclose(outlook.moments[0].mean[0, 0], expected, rtol=1e-6)


def test_places_go_to_particles_in_the_proportion_of_their_weights():
    weights = np.array([0.7, 0.02, 0.25, 0.03])
    kept = np.zeros(4)
    for uniform in (np.arange(200) + 0.5) / 200:
        end, go_on = successors(np.log(weights), uniform)
        kept += 1.0
        np.subtract.at(kept, end, 1.0)
        np.add.at(kept, go_on, 1.0)
    np.testing.assert_allclose(kept / 200, 4 * weights, atol=0.02)
    assert successors(np.log([0.3, 0.2, 0.3, 0.2]), 0.5) is None


def test_particles_are_values():
    start = keep([a_draw(np.random.default_rng(0))]).particles(1)[0]
    before = Crowd(*(field.copy() for field in start.crowd))
    for filters in (CompiledFilters(CODES), PlainFilters(CODES)):
        for steps in start.steps((np.array(SEQUENCE),)):
            filters.advance(start.crowd, steps, np.random.default_rng(0).random((6, len(start.crowd.row) + 1)))
    for one, other in zip(before, start.crowd, strict=True):
        np.testing.assert_array_equal(one, other)
