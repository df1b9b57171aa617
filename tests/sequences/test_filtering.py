"""Filtering against a sum over every path."""

from itertools import pairwise, product

import numpy as np
import pytest

from kinfolk.sequences.answers.plain_filters import PlainFilters
from kinfolk.sequences.model import filtering
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.emission import Densities
from kinfolk.sequences.model.lanes import FEW, LANES
from kinfolk.sequences.model.sequences import Layout, Sequences


def problem(n_states, seed, lengths=(3, 1, 5)):
    rng = np.random.default_rng(seed)
    likelihood = rng.random((4, n_states))
    log_scale = rng.normal(size=4)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    row = rng.integers(4, size=bounds[-1])
    # Rows that do not add up to one, as a variational bound has them.
    transitions = rng.dirichlet(np.full(n_states, 0.7), size=n_states + 1) * rng.uniform(0.5, 1.0, (n_states + 1, 1))
    return likelihood, log_scale, row, bounds, transitions


def expected_counts(*given):
    """Log likelihoods, expected transitions and posteriors of the sequences of one task."""
    *densities, bounds, transitions = given
    found = filtering.smooth(
        Densities(*densities), Layout.of(bounds, np.array([0, len(bounds) - 1])), transitions[None]
    )
    assert found.of_tasks[0] == pytest.approx(found.log_likelihoods.sum())
    return found.log_likelihoods, found.counts[0], found.posteriors


def log_likelihoods(*given):
    return filtering.log_likelihoods(Densities(*given[:3]), *given[3:])


def draw_states(likelihood, log_scale, row, bounds, transitions, uniforms, states):
    layout = Layout.of(bounds, np.array([0, len(bounds) - 1]))
    return filtering.draw_states(Densities(likelihood, log_scale, row), layout, transitions[None], uniforms, states)


def most_probable_states(*given):
    return filtering.most_probable_states(Densities(*given[:3]), *given[3:])


def paths(likelihood, log_scale, row, bounds, transitions):
    """Every path of every sequence with its joint probability, from the definition."""
    for i in range(len(bounds) - 1):
        steps = row[bounds[i] : bounds[i + 1]]
        found = []
        for path in product(range(transitions.shape[1]), repeat=len(steps)):
            probability, before = 1.0, 0
            for state, at in zip(path, steps, strict=True):
                probability *= transitions[before, state] * likelihood[at, state] * np.exp(log_scale[at])
                before = state + 1
            found.append((path, probability))
        yield i, found


@pytest.mark.parametrize("n_states", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_log_likelihood_is_that_of_all_paths(n_states, seed):
    given = problem(n_states, seed)
    wanted = [np.log(sum(p for _, p in found)) for _, found in paths(*given)]
    np.testing.assert_allclose(log_likelihoods(*given), wanted, rtol=1e-10)
    np.testing.assert_allclose(expected_counts(*given)[0], wanted, rtol=1e-10)


@pytest.mark.parametrize("n_states", [1, 2, 3, 5])
def test_expected_counts_and_posteriors_are_those_of_all_paths(n_states):
    given = problem(n_states, 2)
    _, _, row, bounds, transitions = given
    counts, posteriors = np.zeros_like(transitions), np.zeros((len(row), n_states))
    for i, found in paths(*given):
        total = sum(p for _, p in found)
        for path, p in found:
            before = 0
            for t, state in enumerate(path):
                counts[before, state] += p / total
                posteriors[bounds[i] + t, state] += p / total
                before = state + 1
    _, found_counts, found_posteriors = expected_counts(*given)
    np.testing.assert_allclose(found_counts, counts, atol=1e-10)
    np.testing.assert_allclose(found_posteriors, posteriors, atol=1e-10)


# Sequences that go side by side: of one length, of many, of none, and more of them than there are lanes.
MANY = {"one length": (4,) * LANES, "many lengths": (0, 5, 1, 4, 2, 3) * 7, "no steps": (0,) * LANES}


@pytest.mark.parametrize("n_states", [1, 2, 3, 4])
@pytest.mark.parametrize("lengths", MANY.values(), ids=MANY.keys())
def test_sequences_side_by_side_have_the_counts_and_posteriors_of_all_their_paths(n_states, lengths):
    given = problem(n_states, 6, lengths)
    # A state that some observations rule out, so that some sequences are improbable or impossible.
    given[0][0, 0] = 0.0
    _, _, row, bounds, transitions = given
    totals, counts, posteriors = np.zeros(len(lengths)), np.zeros_like(transitions), np.zeros((len(row), n_states))
    for i, found in paths(*given):
        total = sum(p for _, p in found)
        with np.errstate(divide="ignore"):
            totals[i] = np.log(total)
        for path, p in found if total > 0.0 else ():
            before = 0
            for t, state in enumerate(path):
                counts[before, state] += p / total
                posteriors[bounds[i] + t, state] += p / total
                before = state + 1
    found_totals, found_counts, found_posteriors = expected_counts(*given)
    np.testing.assert_allclose(found_totals, totals, rtol=1e-10)
    np.testing.assert_allclose(found_counts, counts, atol=1e-10)
    np.testing.assert_allclose(found_posteriors, posteriors, atol=1e-10)


@pytest.mark.parametrize("n_states", [2, 5, 20])
def test_sequences_side_by_side_are_smoothed_as_plain_numpy_smooths_them(n_states):
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, 60, size=3 * LANES + 5)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    data = Sequences((rng.integers(6, size=bounds[-1]),), bounds, np.array([0, len(lengths)]))
    parameters = np.log(rng.dirichlet(np.full(7, 0.2), size=n_states))
    transitions = rng.dirichlet(np.full(n_states, 0.5), size=n_states + 1)
    plain = PlainFilters(Categorical(6))
    wanted = plain.densities(parameters, data)
    densities = filtering.scaled(Categorical(6).log_densities(parameters, data.observations))
    totals, counts, posteriors = expected_counts(*densities, bounds, transitions)
    np.testing.assert_allclose(totals, plain.log_likelihoods(wanted, data, transitions), rtol=1e-10)
    np.testing.assert_allclose(posteriors, plain.smooth(wanted, data, transitions)[1], atol=1e-10)
    assert counts.sum() == pytest.approx(data.n_steps, rel=1e-10)


def test_sequences_side_by_side_do_not_underflow_and_one_that_is_impossible_leaves_others_alone():
    tiny = 1e-310
    transitions = np.array([[1.0, 0.0], [1.0, tiny], [0.0, 1.0]])
    # The second code is sure of state 1, which is never left; the others are improbable wherever they are seen.
    likelihood = np.array([[1.0, 0.0], [0.0, 1.0], [1e-200, 1e-200], [1e-10, 1e-10]])
    below, impossible, long = [0, 1, 1], [0, 1, 0], [0] + [2, 3] * 50
    row = np.array((below + impossible + long) * LANES)
    bounds = np.concatenate([[0], np.cumsum([3, 3, 101] * LANES)])
    totals, counts, posteriors = expected_counts(likelihood, np.zeros(4), row, bounds, transitions)
    assert np.all(totals[1::3] == -np.inf)
    np.testing.assert_allclose(totals[::3], np.log(tiny), rtol=1e-4)
    np.testing.assert_allclose(totals[2::3], 50 * np.log(1e-200) + 50 * np.log(1e-10), rtol=1e-10)
    assert not np.isnan(counts).any()
    of_steps = posteriors.reshape(LANES, -1, 2)
    np.testing.assert_allclose(of_steps[:, 3:6], 0.0)
    np.testing.assert_allclose(of_steps[:, 6:].sum(axis=2), 1.0)


def test_a_sequence_too_improbable_for_floats_counts_for_nothing_side_by_side():
    # Backwards alone each step is within range; 1e-100 × 1e-250 on the way forwards is not.
    transitions = np.array([[1.0, 0.0], [1.0, 1e-100], [0.0, 1.0]])
    likelihood = np.array([[1.0, 0.0], [0.0, 1e-250]])
    row, bounds = np.array([0, 1] * LANES), np.arange(LANES + 1) * 2
    totals, counts, posteriors = expected_counts(likelihood, np.zeros(2), row, bounds, transitions)
    assert np.all(totals == -np.inf)
    assert not counts.any()
    assert not posteriors.any()


@pytest.mark.parametrize("n_states", [1, 2, 3, 5])
def test_most_probable_path_is_the_largest_of_all(n_states):
    given = problem(n_states, 3)
    states, log_probability = most_probable_states(*given)
    for i, found in paths(*given):
        path, p = max(found, key=lambda pair: pair[1])
        assert tuple(states[given[3][i] : given[3][i + 1]]) == path
        assert log_probability[i] == pytest.approx(np.log(p), rel=1e-10)


def test_drawn_paths_are_as_frequent_as_they_are_probable():
    likelihood, log_scale, row, bounds, transitions = problem(3, 4, lengths=(3,))
    n_draws = 40_000
    rng = np.random.default_rng(0)
    many_rows, many_bounds = np.tile(row, n_draws), np.arange(n_draws + 1) * 3
    states = np.full(3 * n_draws, -1)
    totals = draw_states(likelihood, log_scale, many_rows, many_bounds, transitions, rng.random(3 * n_draws), states)
    np.testing.assert_allclose(totals, log_likelihoods(likelihood, log_scale, row, bounds, transitions)[0])
    ((_, found),) = paths(likelihood, log_scale, row, bounds, transitions)
    total = sum(p for _, p in found)
    drawn = states.reshape(-1, 3)
    chi_square = 0.0
    for path, p in found:
        expected = n_draws * p / total
        chi_square += ((drawn == path).all(axis=1).sum() - expected) ** 2 / expected
    # The 99.99% point of chi-square with 26 degrees of freedom.
    assert chi_square < 63.0


def drawn_plainly(likelihood, log_scale, row, bounds, transitions, uniforms):
    """Paths by the same uniform numbers, as one writes it with numpy."""
    states = np.empty(bounds[-1], dtype=np.int64)
    for start, stop in pairwise(bounds):
        come, filtered = transitions[0], []
        for t in range(start, stop):
            filtered.append(come * likelihood[row[t]])
            filtered[-1] /= filtered[-1].sum()
            come = filtered[-1] @ transitions[1:]
        for t in range(stop - 1, start - 1, -1):
            last = t == stop - 1
            weights = filtered[t - start] * (1.0 if last else transitions[1:, states[t + 1]])
            states[t] = np.searchsorted(np.cumsum(weights), uniforms[t] * weights.sum(), side="right")
    return states


@pytest.mark.parametrize("n_states", [1, 2, 5, 8])
@pytest.mark.parametrize("n_sequences", [LANES // 2 + 1, 2 * LANES, 3 * LANES - 2])
def test_states_drawn_side_by_side_are_those_drawn_one_by_one(n_states, n_sequences):
    rng = np.random.default_rng(n_states)
    lengths = rng.integers(0, 30, size=n_sequences)
    given = problem(n_states, n_sequences, lengths)
    uniforms, states = rng.random(given[3][-1]), np.full(given[3][-1], -1)
    totals = draw_states(*given, uniforms, states)
    np.testing.assert_allclose(totals, log_likelihoods(*given), rtol=1e-12)
    np.testing.assert_array_equal(states, drawn_plainly(*given, uniforms))


def test_improbable_steps_side_by_side_are_drawn_as_those_drawn_one_by_one():
    """Of 200 steps with likelihoods of a thousandth, products are far below the least float."""
    rng = np.random.default_rng(4)
    likelihood, *others = problem(3, 4, rng.integers(150, 200, size=2 * LANES))
    given = 1e-3 * likelihood, *others
    uniforms, states = rng.random(given[3][-1]), np.full(given[3][-1], -1)
    totals = draw_states(*given, uniforms, states)
    np.testing.assert_allclose(totals, log_likelihoods(*given), rtol=1e-12)
    np.testing.assert_array_equal(states, drawn_plainly(*given, uniforms))


@pytest.mark.parametrize("n_sequences", [3, 2 * LANES])
def test_a_run_of_sequences_is_drawn_by_the_clusters_and_transitions_of_their_tasks_and_no_other(n_sequences):
    rng = np.random.default_rng(n_sequences)
    n_states, n_rows = 3, 5
    lengths = rng.integers(1, 12, size=3 * n_sequences)
    bounds, task_bounds = np.append(0, lengths.cumsum()), np.arange(4) * n_sequences
    likelihood, log_scale = rng.random((2, n_rows, n_states)), np.zeros((2, n_rows))
    row, uniforms = rng.integers(n_rows, size=bounds[-1]), rng.random(bounds[-1])
    transitions, slots = rng.dirichlet(np.ones(n_states), size=(3, n_states + 1)), np.array([1, 0, 1])
    states, first, last = np.full(bounds[-1], 7), 1, 3 * n_sequences - 1
    densities = Densities(likelihood, log_scale, row)
    layout = Layout.of(bounds, task_bounds)
    totals = filtering.draw_states(densities, layout, transitions, uniforms, states, slots, (first, last))
    wanted, wanted_totals = np.full(bounds[-1], 7), np.zeros(len(lengths))
    for i in range(first, last):
        j, steps = i // n_sequences, slice(bounds[i], bounds[i + 1])
        given = likelihood[slots[j]], log_scale[slots[j]], row[steps], np.array([0, lengths[i]]), transitions[j]
        wanted[steps] = drawn_plainly(*given, uniforms[steps])
        wanted_totals[i] = log_likelihoods(*given)[0]
    np.testing.assert_array_equal(states, wanted)
    np.testing.assert_allclose(totals, wanted_totals, rtol=1e-12)


def test_few_sequences_of_each_task_need_no_kernel_for_sequences_side_by_side(monkeypatch):
    def refuse(*given):
        raise AssertionError("the kernel for sequences side by side was called")

    monkeypatch.setattr(filtering, "draw_in_lanes", refuse)
    monkeypatch.setattr(filtering, "smooth_in_lanes", refuse)
    n_tasks, transitions = 3, np.full((3, 3, 2), 0.5)
    for n_sequences in (FEW, FEW + 1):
        n_steps = n_tasks * n_sequences
        densities = Densities(np.ones((1, 2)), np.zeros(1), np.zeros(n_steps, dtype=np.int64))
        layout = Layout.of(np.arange(n_steps + 1), np.arange(n_tasks + 1) * n_sequences)
        given = densities, layout, transitions, np.full(n_steps, 0.5), np.zeros(n_steps, dtype=np.int64)
        if n_sequences == FEW:
            np.testing.assert_allclose(filtering.draw_states(*given), 0.0)
            np.testing.assert_allclose(filtering.smooth(*given[:3]).log_likelihoods, 0.0)
        else:
            with pytest.raises(AssertionError, match="side by side"):
                filtering.draw_states(*given)


def test_long_sequences_among_many_go_by_themselves_and_are_drawn_all_the_same():
    lengths = np.full(2 * LANES, 3)
    lengths[[4, 17]] = 4_000
    given = problem(3, 0, lengths)
    rng = np.random.default_rng(1)
    uniforms, states = rng.random(given[3][-1]), np.full(given[3][-1], -1)
    np.testing.assert_allclose(draw_states(*given, uniforms, states), log_likelihoods(*given), rtol=1e-12)
    np.testing.assert_array_equal(states, drawn_plainly(*given, uniforms))


def test_impossible_sequences_side_by_side_leave_their_states_and_others_alone():
    transitions = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    row = np.tile([0, 1, 1, 1], LANES)
    given = np.eye(2), np.zeros(2), row, np.arange(2 * LANES + 1) * 2, transitions
    states = np.full(4 * LANES, 7)
    totals = draw_states(*given, np.full(4 * LANES, 0.5), states)
    np.testing.assert_allclose(totals.reshape(-1, 2), np.tile([-np.inf, np.log(0.5)], (LANES, 1)))
    np.testing.assert_array_equal(states.reshape(-1, 4), np.tile([7, 7, 1, 1], (LANES, 1)))


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
def test_states_that_cannot_be_are_not_drawn_side_by_side_however_extreme_the_number(uniform):
    rng = np.random.default_rng(0)
    # Neither the first state nor the last; sums of the others are rounded in every way.
    transitions = np.zeros((10, 9))
    transitions[:, 1:8] = rng.dirichlet(np.ones(7), size=10)
    n_steps = 40 * 4 * LANES
    given = (
        rng.random((50, 9)),
        np.zeros(50),
        rng.integers(50, size=n_steps),
        np.arange(4 * LANES + 1) * 40,
        transitions,
    )
    states = np.full(n_steps, -1)
    draw_states(*given, np.full(n_steps, uniform), states)
    assert set(states.tolist()) == {1 if uniform == 0.0 else 7}


def test_a_long_sequence_of_improbable_steps_does_not_underflow():
    n_steps = 100_000
    likelihood, log_scale = np.array([[1.0, 1e-12]]), np.array([-50.0])
    transitions = np.array([[0.0, 1.0], [0.5, 0.5], [1e-9, 1.0]])
    given = likelihood, log_scale, np.zeros(n_steps, dtype=np.int64), np.array([0, n_steps]), transitions
    # Powers of the 2 × 2 matrix of a step, scaled as they go.
    step = transitions[1:] * likelihood[0]
    vector, wanted = transitions[0] * likelihood[0], 0.0
    for _ in range(n_steps - 1):
        wanted += np.log(vector.sum())
        vector = vector / vector.sum() @ step
    wanted += np.log(vector.sum()) - 50.0 * n_steps
    assert log_likelihoods(*given)[0] == pytest.approx(wanted, rel=1e-12)
    _, counts, posteriors = expected_counts(*given)
    assert counts.sum() == pytest.approx(n_steps, rel=1e-9)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0)


def test_steps_below_the_normal_range_of_floats_still_count():
    tiny = 1e-310
    transitions = np.array([[1.0, 0.0], [1.0, tiny], [0.0, 1.0]])
    likelihood = np.array([[1.0, 0.0], [0.0, 1.0]])
    given = likelihood, np.zeros(2), np.array([0, 1, 1]), np.array([0, 3]), transitions
    assert log_likelihoods(*given)[0] == pytest.approx(np.log(tiny), rel=1e-4)
    states = np.zeros(3, dtype=np.int64)
    draw_states(*given, np.full(3, 0.5), states)
    assert states.tolist() == [0, 1, 1]


def test_an_impossible_sequence_has_minus_infinity_and_leaves_others_alone():
    transitions = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    given = np.eye(2), np.zeros(2), np.array([0, 1, 1, 1]), np.array([0, 2, 4]), transitions
    np.testing.assert_allclose(log_likelihoods(*given), [-np.inf, np.log(0.5)])
    totals, counts, posteriors = expected_counts(*given)
    assert totals[0] == -np.inf
    np.testing.assert_allclose(counts, [[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(posteriors, [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    states = np.full(4, 7)
    assert draw_states(*given, np.full(4, 0.5), states)[0] == -np.inf
    assert states.tolist() == [7, 7, 1, 1]
    states, log_probability = most_probable_states(*given)
    assert states.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(log_probability, [-np.inf, np.log(0.5)])


def test_no_path_is_told_of_a_sequence_that_only_its_last_step_makes_impossible():
    likelihood, transitions = np.array([[0.0, 1.0], [0.0, 0.0]]), np.full((3, 2), 0.5)
    states, log_probability = most_probable_states(
        likelihood, np.zeros(2), np.array([0, 0, 1]), np.array([0, 3]), transitions
    )
    assert (states.tolist(), log_probability.tolist()) == ([0, 0, 0], [-np.inf])


def test_a_sequence_without_steps_has_probability_one():
    likelihood, log_scale, row, _, transitions = problem(3, 5, lengths=(2,))
    bounds = np.array([0, 0, 2, 2])
    totals, counts, _ = expected_counts(likelihood, log_scale, row, bounds, transitions)
    assert totals[0] == totals[2] == 0.0
    assert counts[0].sum() == pytest.approx(1.0)
    assert most_probable_states(likelihood, log_scale, row, bounds, transitions)[1][0] == 0.0


def test_one_sequence_whose_steps_are_all_improbable_is_smoothed_to_the_end():
    # Below the range in which reciprocals are finite, so that each step is divided by its own size.
    likelihood = np.array([[1.0, 3.0], [3.0, 1.0]]) * 1e-309
    transitions = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    _, counts, posteriors = expected_counts(likelihood, np.zeros(2), np.array([0, 1, 0]), np.array([0, 3]), transitions)
    np.testing.assert_allclose(posteriors, [[0.25, 0.75], [0.75, 0.25], [0.25, 0.75]], rtol=1e-6)
    assert counts.sum() == pytest.approx(3.0)


def test_tasks_together_are_smoothed_as_each_of_them_is_alone():
    rng = np.random.default_rng(8)
    lengths = rng.integers(0, 9, size=2 * LANES + 5)
    likelihood, log_scale, row, bounds, _ = problem(3, 8, lengths)
    # One with sequences for lanes, one with a few, one without any.
    task_bounds = np.array([0, 2 * LANES, 2 * LANES + 5, 2 * LANES + 5])
    transitions = rng.dirichlet(np.ones(3), size=(3, 4))
    found = filtering.smooth(Densities(likelihood, log_scale, row), Layout.of(bounds, task_bounds), transitions)
    for j, (first, last) in enumerate(pairwise(task_bounds)):
        own = bounds[first : last + 1]
        alone = expected_counts(likelihood, log_scale, row[own[0] : own[-1]], own - own[0], transitions[j])
        np.testing.assert_allclose(found.log_likelihoods[first:last], alone[0], rtol=1e-10)
        np.testing.assert_allclose(found.counts[j], alone[1], atol=1e-10)
        np.testing.assert_allclose(found.posteriors[own[0] : own[-1]], alone[2], atol=1e-10)
        assert found.of_tasks[j] == pytest.approx(alone[0].sum())
