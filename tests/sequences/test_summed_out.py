"""Particles sum θ of numbers and counts out, as sums over all paths of ratios of log marginals do."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from kinfolk.sequences.answers import particles
from kinfolk.sequences.answers.compiled_filters import CompiledFilters
from kinfolk.sequences.answers.compiled_predictive import grow, log_density_of_one
from kinfolk.sequences.answers.forecasting import look_ahead
from kinfolk.sequences.answers.new_tasks import joining_weights, pseudo_counts
from kinfolk.sequences.answers.plain_filters import PlainFilters
from kinfolk.sequences.answers.prediction import log_predictive, log_predictive_of_tasks
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions import predictive
from kinfolk.sequences.model.emissions.families import side_by_side
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.student_t import StudentT
from kinfolk.sequences.model.emissions.summed_out import SummedOut
from tests.sequences.emissions.families import example, taken
from tests.sequences.test_particles import keep, log_dirichlets, one_sequence

NAMES = ("diagonal", "full", "poisson", "ar", "bernoulli", "channels")
BOTH = (CompiledFilters, PlainFilters)
N_STATES = 2


def a_draw(name, seed=0, emission=None, observations=None):
    """A draw of two states that have seen three steps and one, by a prior that is not the emission's own."""
    if emission is None:
        emission, observations = example(name)
    rng = np.random.default_rng(seed)
    hyper = HyperParameters(1.5, 1.0, 0.7, 0.5)
    base = rng.dirichlet(np.full(N_STATES, 5.0), size=1)
    statistics = emission.statistics(taken(observations, [7, 8, 9, 10]), np.array([0, 0, 1, 0]), N_STATES)[None]
    rows = pseudo_counts(base[0], hyper) + rng.integers(3, size=(2, N_STATES + 1, N_STATES))
    return Draw(
        np.zeros(2, dtype=np.int64),
        base,
        emission.with_strength(hyper.strength).draw_parameters(statistics, rng),
        rows / rows.sum(axis=2, keepdims=True),
        hyper,
        0.0,
        np.full(2, N_STATES),
        rows.astype(np.float32),
        (emission.code_counts(statistics) + hyper.strength).astype(np.float32),
        statistics=emission.statistics_to_sum_out(statistics),
    )


def known_before(name):
    emission, observations = example(name)
    return emission.statistics(taken(observations, [7, 8, 9, 10]), np.array([0, 0, 1, 0]), N_STATES)


def a_sequence(name, steps=(2, 3, 9, 10, 5)):
    """Steps, one of which is missing in part or as a whole."""
    return taken(example(name, seed=1).observations, list(steps))


def enumerated(emission, observations, rows, before):
    """Log probability of a sequence with rows and θ integrated out, by the log marginals of all steps in each state."""
    n_steps = len(observations[0])
    terms = []
    for path in itertools.product(range(N_STATES), repeat=n_steps):
        moves, row = np.zeros_like(rows), 0
        for state in path:
            moves[row, state] += 1
            row = state + 1
        after = before + emission.statistics(observations, np.array(path), N_STATES)
        shown = (emission.log_marginal(after) - emission.log_marginal(before)).sum()
        terms.append(shown + log_dirichlets(rows, moves))
    return logsumexp(terms)


def estimates(kept, sequence, n=40):
    found = np.exp([log_predictive(kept._replace(seed=seed), sequence)[0] for seed in range(n)])
    return found.mean(), found.std(ddof=1) / np.sqrt(n)


@pytest.mark.parametrize("filters", BOTH)
@pytest.mark.parametrize("name", NAMES)
def test_the_mean_of_particles_is_the_probability_with_theta_integrated_out(name, filters):
    draw, shown = a_draw(name), a_sequence(name)
    emission = example(name).emission.with_strength(draw.hyper.strength)
    exact = np.exp(enumerated(emission, shown, draw.row_counts[1].astype(float), known_before(name)))
    kept = keep([draw], example(name).emission, filters=filters)
    found, error = estimates(kept, one_sequence(*shown, group=2))
    assert found == pytest.approx(exact, rel=1e-6, abs=4 * error)
    assert error < 0.02 * exact


@pytest.mark.parametrize("name", NAMES)
def test_particles_that_forget_the_steps_of_the_sequence_are_found_out(name, monkeypatch):
    """The broken twin: states that know what training told them alone."""
    draw, shown = a_draw(name), a_sequence(name)
    emission = example(name).emission.with_strength(draw.hyper.strength)
    exact = np.exp(enumerated(emission, shown, draw.row_counts[1].astype(float), known_before(name)))
    monkeypatch.setattr(particles, "grown", lambda cells, entries, layout: cells)
    found, error = estimates(keep([draw], example(name).emission, filters=PlainFilters), one_sequence(*shown, group=2))
    assert abs(found - exact) > 8 * error


@pytest.mark.parametrize("filters", BOTH)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "channels"])
def test_tasks_are_told_apart_by_what_training_tells_of_numbers(name, filters):
    draw, shown = a_draw(name), a_sequence(name)
    emission = example(name).emission.with_strength(draw.hyper.strength)
    rows, row = emission.log_predictive_densities(known_before(name), shown)
    exact = []
    for task_rows in draw.row_counts.astype(float):
        terms = []
        for path in itertools.product(range(N_STATES), repeat=len(row)):
            moves, at = np.zeros_like(task_rows), 0
            for state in path:
                moves[at, state] += 1
                at = state + 1
            terms.append(rows[row][np.arange(len(row)), path].sum() + log_dirichlets(task_rows, moves))
        exact.append(np.exp(logsumexp(terms)))
    kept, sequence = keep([draw], example(name).emission, filters=filters), one_sequence(*shown, group=0)
    found = np.exp([log_predictive_of_tasks(kept._replace(seed=seed), sequence)[0] for seed in range(20)])
    error = found.std(axis=0, ddof=1) / np.sqrt(20)
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - exact), 4 * error + 1e-6 * np.array(exact))


@pytest.mark.parametrize("name", NAMES)
def test_a_new_task_may_have_a_cluster_that_nothing_is_known_of(name):
    draw, shown = a_draw(name), a_sequence(name)
    emission = example(name).emission.with_strength(draw.hyper.strength)
    kept = keep([draw], example(name).emission, n_clusters=3)
    joins, alone = joining_weights(draw, 3)
    before = known_before(name)
    ways = [(joins[0], draw.base_weights[0], before), (alone, kept.empty.base_weights[0], np.zeros_like(before))]
    terms = [np.log(w) + enumerated(emission, shown, pseudo_counts(base, draw.hyper), own) for w, base, own in ways]
    found, error = estimates(kept, one_sequence(*shown, group=0))
    assert found == pytest.approx(np.exp(logsumexp(terms)), rel=1e-6, abs=4 * error)


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_numpy_alone_gives_what_the_kernel_gives(name, group):
    draws = [a_draw(name, seed) for seed in range(5)]
    emission, observations = example(name, 30, 2)
    found = [
        log_predictive(keep(draws, emission, 2, filters), one_sequence(*observations, group=group)) for filters in BOTH
    ]
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_step_in_one_state_is_as_probable_as_in_a_table_of_all(name):
    emission, observations = example(name)
    summed, shown = SummedOut.of(emission), example(name, 40, 3).observations
    statistics = emission.statistics_to_sum_out(emission.statistics(observations, np.arange(14) % 3, 3))
    cells, layout = summed.cells(statistics, np.array([0.2, 1.0, 3.0])), summed.layout
    entries, _ = summed.entries(shown)
    for step in entries:
        each = predictive.log_density_of_each(cells, step, layout)
        np.testing.assert_allclose(predictive.log_densities(cells, step[None], layout)[0], each, atol=1e-10)
        np.testing.assert_allclose([log_density_of_one(own, step, layout) for own in cells], each, atol=1e-10)
        after = predictive.grown(cells, step, layout)
        for own in cells:
            grow(own, step, layout)
        np.testing.assert_allclose(cells, after, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_states_know_after_steps_is_what_their_statistics_tell(name):
    emission, observations = example(name, 60, 4)
    summed = SummedOut.of(emission)
    strength = np.array([emission.strength])
    cells = summed.cells(np.zeros((1, summed.n_statistics)), strength)
    for step in summed.entries(observations)[0]:
        cells = predictive.grown(cells, step, summed.layout)
    whole = emission.statistics_to_sum_out(emission.statistics(observations, np.zeros(60, dtype=np.int64), 1))
    np.testing.assert_allclose(cells, summed.cells(whole, strength), rtol=1e-9, atol=1e-9)


def test_many_numbers_that_are_missing_here_and_there_are_as_probable_as_by_the_family():
    rng = np.random.default_rng(5)
    emission = GaussianDiagonal(rng.normal(size=30), np.full(30, 2.0), 0.4)
    learnt, shown = (np.where(rng.random((20, 30)) < 0.2, np.nan, 9.0 * rng.normal(size=(20, 30))) for _ in range(2))
    for numbers in (learnt, np.nan_to_num(learnt)):
        statistics = emission.statistics((numbers,), np.arange(20) % 2, 2)
        summed = SummedOut.of(emission)
        cells = summed.cells(statistics, np.full(2, 0.4))
        entries, log_scale = summed.entries((shown,))
        expected = emission.log_predictive_densities(statistics, (shown,)).rows - log_scale[:, None]
        np.testing.assert_allclose(predictive.log_densities(cells, entries, summed.layout), expected, rtol=1e-12)
        for step, row in zip(entries, expected, strict=True):
            found = [log_density_of_one(own, step, summed.layout) for own in cells]
            np.testing.assert_allclose(found, row, rtol=1e-12)


def test_a_family_that_is_not_conjugate_stays_as_it_was_drawn_beside_one_that_is():
    _, (numbers,) = example("diagonal")
    one, other = (
        GaussianDiagonal(np.array([11.0]), np.array([2.0]), 0.5),
        StudentT(np.array([14.0]), np.array([5.0]), 0.5),
    )
    emission = side_by_side([one, other])
    both = numbers[:, :1], numbers[:, 1:]
    draw = a_draw(None, 0, emission, both)
    assert draw.statistics.shape == (1, N_STATES, 3)
    shown = taken(both, [0, 1, 2])
    theta = draw.parameters[0][:, 2:]
    rows, row = other.log_densities(theta, shown[1:])
    own = one.statistics(taken(both[:1], [7, 8, 9, 10]), np.array([0, 0, 1, 0]), N_STATES)
    terms = []
    for path in itertools.product(range(N_STATES), repeat=3):
        alone = rows[row][np.arange(3), path].sum()
        moves, at = np.zeros((N_STATES + 1, N_STATES)), 0
        for state in path:
            moves[at, state] += 1
            at = state + 1
        after = own + one.statistics(shown[:1], np.array(path), N_STATES)
        known = (one.log_marginal(after) - one.log_marginal(own)).sum()
        terms.append(alone + known + log_dirichlets(draw.row_counts[0].astype(float), moves))
    for filters in BOTH:
        found, error = estimates(keep([draw], emission, filters=filters), one_sequence(*shown))
        assert found == pytest.approx(np.exp(logsumexp(terms)), rel=1e-6, abs=4 * error)


@pytest.mark.parametrize("filters", BOTH)
def test_draws_of_earlier_files_have_the_parameters_that_were_drawn(filters):
    draw = a_draw("diagonal")._replace(statistics=None)
    emission, shown = example("diagonal").emission, a_sequence("diagonal")
    rows, row = emission.log_densities(draw.parameters[0], shown)
    terms = []
    for path in itertools.product(range(N_STATES), repeat=5):
        moves, at = np.zeros((N_STATES + 1, N_STATES)), 0
        for state in path:
            moves[at, state] += 1
            at = state + 1
        terms.append(rows[row][np.arange(5), path].sum() + log_dirichlets(draw.row_counts[0].astype(float), moves))
    found, error = estimates(keep([draw], emission, filters=filters), one_sequence(*shown))
    assert found == pytest.approx(np.exp(logsumexp(terms)), rel=1e-6, abs=4 * error)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_answer_however_a_sequence_is_cut_into_parts(name, monkeypatch):
    draws = [a_draw(name, seed) for seed in range(3)]
    emission, observations = example(name, 30, 2)
    found = []
    for most in (1 << 22, 1 << 22, 3 * N_STATES * 4):
        monkeypatch.setattr(particles, "_MOST_DENSITIES", most)
        found.append(log_predictive(keep(draws, emission), one_sequence(*observations))[0])
    assert found[0] == found[1]
    # Counts of moves have few bits, and are added up anew.
    assert found[2] == pytest.approx(found[0], rel=1e-6)


@pytest.mark.parametrize("filters", BOTH)
@pytest.mark.parametrize("name", ["diagonal", "full", "ar"])
def test_numbers_as_large_as_numbers_can_be_are_improbable_and_no_more(name, filters):
    emission, (numbers,) = example(name)
    wild = np.nan_to_num(numbers)
    wild[[2, 6, 7]] = np.array([1e300, -1e200, 1e9])[:, None]
    found = log_predictive(keep([a_draw(name)], emission, filters=filters), one_sequence(wild))[0]
    assert np.isfinite(found)
    assert found < -100.0


def test_particles_take_no_more_memory_than_there_is(monkeypatch):
    draws = [a_draw("full", seed) for seed in range(5)]
    summed = SummedOut.of(example("full").emission)
    of_one = draws[0].transitions[0].size + 2 * N_STATES * summed.n_cells
    monkeypatch.setattr(particles, "_MOST_CELLS", 7 * of_one)
    for group in (0, 1):
        (start,) = keep(draws, example("full").emission, 2).particles(group)
        assert len(start.crowd.row) <= (10 if group == 0 else 7)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_drawn_by_what_states_know_are_those_drawn_by_their_statistics(name):
    emission, observations = example(name)
    summed = SummedOut.of(emission)
    statistics = emission.statistics(observations, np.arange(14) % 3, 3)
    cells = summed.cells(emission.statistics_to_sum_out(statistics), np.full(3, emission.strength))
    given = emission.draw_parameters(statistics, np.random.default_rng(0))
    found = summed.with_known(emission, given, cells, np.random.default_rng(1))
    if len(emission.channels) == 1:
        wanted = emission.draw_parameters(statistics, np.random.default_rng(1))
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    else:
        n_shares = emission.channels[0].n_parameters
        np.testing.assert_array_equal(found[:, :n_shares], given[:, :n_shares])
        assert (found[:, n_shares:] != given[:, n_shares:]).all()


@pytest.mark.parametrize("filters", BOTH)
def test_a_forecast_goes_on_from_what_the_sequence_itself_has_shown(filters):
    emission = GaussianDiagonal(np.zeros(1), np.full(1, 10.0), 0.3)
    learnt = np.tile(np.array([-10.0, -10.2, -9.9, -10.1]), 4)[:, None]
    draw = a_draw(None, 0, emission, (learnt,))
    # Far from all that training has shown.
    shown = 12.0 + 0.1 * np.arange(12)[:, None] % 0.3
    outlook = look_ahead(keep([draw], emission, filters=filters), one_sequence(shown), 1, 1, np.random.default_rng(0))
    assert 5.0 < outlook.moments[0].mean[0, 0, 0] < 12.5


@pytest.mark.parametrize("filters", BOTH)
@pytest.mark.parametrize("name", NAMES)
def test_a_sequence_of_which_all_is_missing_is_certain(name, filters):
    emission, observations = example(name)
    missing = tuple(np.full_like(array, -1 if array.dtype.kind == "i" else np.nan) for array in observations)
    found = log_predictive(keep([a_draw(name)], emission, filters=filters), one_sequence(*missing))[0]
    # Counts of moves have few bits.
    assert found == pytest.approx(0.0, abs=1e-8)
