"""What draws predict is what the model's sums say, summed by brute force over every path of hidden states."""

import itertools
import json

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

from kinfolk.sequences.answers.compiled_filters import CompiledFilters
from kinfolk.sequences.answers.forecasting import draw_empty_clusters, draw_sequences, look_ahead
from kinfolk.sequences.answers.kin import bound_on_evidence, kin_of
from kinfolk.sequences.answers.new_tasks import joining_weights, pseudo_counts, ways_of_a_new_task
from kinfolk.sequences.answers.plain_filters import PlainFilters
from kinfolk.sequences.answers.prediction import (
    Kept,
    log_predictive,
    log_predictive_of_tasks,
    most_probable_paths,
    state_probabilities,
)
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.bernoulli import Bernoulli
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.emission import Asked, with_past
from kinfolk.sequences.model.emissions.families import side_by_side
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull
from kinfolk.sequences.model.emissions.poisson import Poisson
from kinfolk.sequences.model.emissions.student_t import StudentT
from kinfolk.sequences.model.sequences import Sequences
from tests.sequences.emissions.families import example

N_STATES, N_CODES = 3, 4
EMISSION = Categorical(N_CODES, 0.5)


def random_draw(rng, n_tasks=2, n_clusters=2, emission=EMISSION, n_states=N_STATES, stickiness=0.0):
    transitions = rng.dirichlet(np.ones(n_states), size=(n_tasks, n_states + 1))
    parameters = emission.draw_parameters(np.zeros((n_clusters, n_states, emission.n_statistics)), rng)
    base = rng.dirichlet(np.full(n_states, 2.0), size=n_clusters)
    cluster = np.concatenate([np.arange(n_clusters), np.zeros(n_tasks - n_clusters, dtype=np.int64)])
    used = np.full(n_tasks, n_states)
    return Draw(
        cluster, base, parameters, transitions, HyperParameters(1.5, 1.0, 2.0, 0.5, stickiness), rng.normal(), used
    )


def keep(draws, emission=EMISSION, n_clusters=2, filters=None):
    empty = draw_empty_clusters(draws, emission, np.random.default_rng(7))
    return Kept(tuple(draws), empty, n_clusters, 3, emission, filters or CompiledFilters(emission))


def one_group(codes, group=1, n_groups=3):
    """One sequence, in a group of its own."""
    bounds = np.zeros(n_groups + 1, dtype=np.int64)
    bounds[group + 1 :] = 1
    return Sequences((np.asarray(codes),), np.array([0, len(codes)]), bounds)


def all_paths(codes, transitions, shares):
    """Every path of states and its joint probability with the codes; a code of −1 is missing."""
    n_states = len(shares)
    for path in itertools.product(range(n_states), repeat=len(codes)):
        probability, row = 1.0, 0
        for state, code in zip(path, codes, strict=True):
            probability *= transitions[row, state] * (shares[state, code] if code >= 0 else 1.0)
            row = state + 1
        yield path, probability


def likelihood(codes, draw, task):
    shares = np.exp(draw.parameters[draw.cluster[task]])
    return sum(probability for _, probability in all_paths(codes, draw.transitions[task], shares))


@pytest.fixture
def draws():
    rng = np.random.default_rng(0)
    return [random_draw(rng) for _ in range(3)]


@pytest.mark.parametrize("codes", [[2], [0, 3, 1, 1], [1, -1, 4, 0]], ids=["one step", "four", "missing and unknown"])
@pytest.mark.parametrize("task", [0, 1])
def test_predictive_likelihood_is_the_mean_over_draws_of_sums_over_all_paths(draws, codes, task):
    expected = np.log(np.mean([likelihood(codes, draw, task) for draw in draws]))
    np.testing.assert_allclose(log_predictive(keep(draws), one_group(codes, task + 1)), expected, rtol=1e-10)


def test_predictive_likelihood_of_every_task_is_that_of_the_task(draws):
    sequences = Sequences((np.array([0, 3, 1, 2, 2]),), np.array([0, 3, 5]), np.array([0, 2]))
    expected = [
        [np.log(np.mean([likelihood(codes, draw, task) for draw in draws])) for task in range(2)]
        for codes in ([0, 3, 1], [2, 2])
    ]
    np.testing.assert_allclose(log_predictive_of_tasks(keep(draws), sequences), expected, rtol=1e-10)


def test_states_are_those_of_the_most_probable_draw_by_enumeration(draws):
    best = max(draws, key=lambda draw: draw.log_joint)
    codes = [0, 3, -1, 1]
    paths = list(all_paths(codes, best.transitions[1], np.exp(best.parameters[best.cluster[1]])))
    total = sum(probability for _, probability in paths)
    expected = np.zeros((4, N_STATES))
    for path, probability in paths:
        expected[np.arange(4), path] += probability / total
    kept, sequences = keep(draws), one_group(codes, 2)
    np.testing.assert_allclose(state_probabilities(kept, sequences), expected, atol=1e-12)
    assert tuple(most_probable_paths(kept, sequences)) == max(paths, key=lambda pair: pair[1])[0]


def test_a_new_task_has_the_states_of_the_cluster_that_explains_it():
    rng = np.random.default_rng(1)
    sure = np.log(np.full((2, 2, 5), 1e-6))
    for cluster, state, code in ((0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)):
        sure[cluster, state, code] = 0.0
    draw = random_draw(rng, n_states=2)._replace(parameters=sure, base_weights=np.full((2, 2), 0.5))
    kept, sequences = keep([draw]), one_group([3, 3, 2], 0)
    assert most_probable_paths(kept, sequences).tolist() == [1, 1, 0]
    assert state_probabilities(kept, sequences)[0, 1] > 0.99


# New tasks.


def test_a_new_task_joins_clusters_as_an_urn_says():
    draw = random_draw(np.random.default_rng(0), n_tasks=3, n_clusters=2)
    draw = draw._replace(hyper=draw.hyper._replace(eta=2.0))
    # Of the third task of J = 3: (n_k + η/K) / (J + η) with K = 4, and the two empty clusters together.
    joins, empty = joining_weights(draw, 4)
    np.testing.assert_allclose(joins, [2.5 / 5.0, 1.5 / 5.0])
    assert empty == pytest.approx(1.0 / 5.0)
    assert joining_weights(draw._replace(cluster=np.zeros(3, dtype=np.int64), base_weights=np.ones((1, 3))), 1) == (
        1.0,
        0,
    )
    assert joining_weights(draw, None)[1] == 1.0


@pytest.mark.parametrize("n_clusters", [1, 3, None])
def test_ways_of_a_new_task_add_up_to_one(n_clusters):
    draw = random_draw(np.random.default_rng(0), n_clusters=1 if n_clusters == 1 else 2)
    ways = keep([draw] * 2, n_clusters=n_clusters).ways(1)
    assert np.exp([way.log_weight for way in ways]).sum() == pytest.approx(1.0)
    assert {way.cluster for way in ways} == {1: {0}, 3: {0, 1, -1}, None: {-1}}[n_clusters]
    np.testing.assert_allclose([way.transitions.sum(axis=1) for way in ways], 1.0)


def test_a_new_tasks_likelihood_is_that_with_its_transitions_integrated_out():
    """Rows are independent with mean β, so that two steps of different rows have a probability in closed form."""
    draw = random_draw(np.random.default_rng(2), n_clusters=2)
    draw = draw._replace(hyper=draw.hyper._replace(alpha=0.7))
    repeated = [draw] * 400
    shares = np.exp(draw.parameters)
    joins, empty = joining_weights(draw, 2)
    assert empty == 0.0
    by_cluster = [(draw.base_weights[k] @ shares[k][:, 1]) * (draw.base_weights[k] @ shares[k][:, 2]) for k in (0, 1)]
    found = log_predictive(keep(repeated), one_group([1, 2], 0))
    assert np.exp(found[0]) == pytest.approx(joins @ by_cluster, rel=0.05)


def test_a_new_cluster_has_parameters_from_the_prior():
    """A single step of a task that shares with nobody shows any code equally often."""
    repeated = [random_draw(np.random.default_rng(2))] * 600
    found = log_predictive(keep(repeated, n_clusters=None), one_group([3], 0))
    assert np.exp(found[0]) == pytest.approx(1.0 / N_CODES, rel=0.15)


def test_ways_of_a_new_task_hang_on_the_draw_alone():
    rng = np.random.default_rng(0)
    first, second = random_draw(rng), random_draw(rng)
    kept = keep([first, second])
    ways = [list(ways_of_a_new_task(kept.draws, 1, kept.empty, 2, 3)) for _ in range(2)]
    for one, other in zip(*ways, strict=True):
        np.testing.assert_array_equal(one.transitions, other.transitions)


def dirichlet_path_evidence(codes, rows, shares):
    """log p(o) with the transition rows integrated out: a sum over paths of Pólya urns."""
    terms = []
    for path in itertools.product(range(len(shares)), repeat=len(codes)):
        counts, row, log_probability = np.zeros_like(rows), 0, 0.0
        for state, code in zip(path, codes, strict=True):
            counts[row, state] += 1
            log_probability += np.log(shares[state, code])
            row = state + 1
        urns = gammaln(rows.sum(axis=1)) - gammaln((rows + counts).sum(axis=1))
        urns = urns.sum() + (gammaln(rows + counts) - gammaln(rows)).sum()
        terms.append(log_probability + urns)
    return logsumexp(terms)


@pytest.mark.parametrize("stickiness", [0.0, 3.0])
def test_the_evidence_for_kin_is_a_bound_close_to_the_enumerated_one(stickiness):
    codes = [0, 1, 1, 3, 0]
    for seed in range(4):
        draw = random_draw(np.random.default_rng(seed), n_states=2, stickiness=stickiness)
        rows = pseudo_counts(draw.base_weights[0], draw.hyper)
        exact = dirichlet_path_evidence(codes, rows, np.exp(draw.parameters[0]))
        bound = bound_on_evidence(draw, 0, EMISSION, one_group(codes, 0, 1))
        assert exact - 1.0 < bound <= exact + 1e-9


def test_the_evidence_for_kin_is_exact_where_states_are_seen():
    sure = np.log(np.full((1, 2, 5), 1e-30))
    sure[0, 0, 0] = sure[0, 1, 1] = 0.0
    draw = random_draw(np.random.default_rng(0), n_clusters=1, n_states=2)._replace(parameters=sure)
    rows = pseudo_counts(draw.base_weights[0], draw.hyper)
    exact = dirichlet_path_evidence([0, 0, 1, 0], rows, np.exp(sure[0]))
    assert bound_on_evidence(draw, 0, EMISSION, one_group([0, 0, 1, 0], 0, 1)) == pytest.approx(exact, abs=1e-3)


def test_kin_weighs_clusters_by_prior_and_evidence():
    draw = random_draw(np.random.default_rng(3), n_tasks=3, n_clusters=2)
    sequences = one_group([0, 1, 2, 2], 0, 1)
    joins, empty = joining_weights(draw, 5)
    evidence = np.exp([bound_on_evidence(draw, k, EMISSION, sequences) for k in (0, 1)])
    weights = np.array([*(joins * evidence), empty * np.exp(-6.0)])
    weights /= weights.sum()
    found = kin_of(keep([draw], n_clusters=5), sequences, -6.0)
    np.testing.assert_allclose(found.probability, [weights[0], weights[1], weights[0]], rtol=1e-9)
    assert found.alone == pytest.approx(weights[2])


# What is next.


@pytest.mark.parametrize("group", [0, 1, 2])
def test_a_forecast_of_symbols_is_a_ratio_of_predictive_likelihoods(draws, group):
    codes, kept = [0, 3, 1], keep(draws)
    so_far = log_predictive(kept, one_group(codes, group))
    outlook = look_ahead(kept, one_group(codes, group), 2, 1, np.random.default_rng(0))
    for code in range(N_CODES):
        one_ahead = log_predictive(kept, one_group([*codes, code], group))
        two_ahead = log_predictive(kept, one_group([*codes, -1, code], group))
        expected = np.exp([one_ahead - so_far, two_ahead - so_far]).ravel()
        np.testing.assert_allclose(outlook.moments[0].mean[0, :, code], expected, rtol=1e-9)


NUMBERS = {
    "diagonal": GaussianDiagonal(np.array([10.0, -2.0]), np.array([3.0, 0.5]), 2.0),
    "full": GaussianFull(
        np.array([10.0, -2.0]),
        np.linalg.inv(np.array([[3.0, 0.4], [0.0, 0.5]])),
        np.array([[3.0, 0.4], [0.0, 0.5]]),
        float(np.log(1.5)),
        2.0,
    ),
}


def kept_numbers(kind):
    rng = np.random.default_rng(4)
    return keep([random_draw(rng, emission=NUMBERS[kind]) for _ in range(2)], NUMBERS[kind])


PAST = np.array([[11.0, -2.2], [9.0, -1.7]])


def test_a_forecast_of_numbers_has_the_moments_of_the_predictive_density():
    """The density of the first column of one more step, whose second is missing, on a grid."""
    kept = kept_numbers("diagonal")
    outlook = look_ahead(kept, one_group(PAST), 1, 1, np.random.default_rng(0))
    grid, width = np.linspace(-70.0, 90.0, 1601, retstep=True)
    so_far = log_predictive(kept, one_group(PAST))
    density = np.array(
        [np.exp(log_predictive(kept, one_group(np.vstack([PAST, [x, np.nan]]))) - so_far)[0] for x in grid]
    )
    assert density.sum() * width == pytest.approx(1.0, abs=1e-3)
    mean = (grid * density).sum() * width
    assert outlook.moments[0].mean[0, 0, 0] == pytest.approx(mean, abs=1e-2)
    deviation = np.sqrt(((grid - mean) ** 2 * density).sum() * width)
    assert outlook.moments[0].deviation[0, 0, 0] == pytest.approx(deviation, rel=1e-2)


def test_a_forecast_of_joint_numbers_has_the_moments_of_its_draws():
    kept = kept_numbers("full")
    outlook = look_ahead(kept, one_group(PAST), 1, 4000, np.random.default_rng(0))
    np.testing.assert_allclose(outlook.moments[0].mean[0, 0], outlook.paths[0].mean(axis=0), atol=0.2)
    np.testing.assert_allclose(outlook.moments[0].deviation[0, 0], outlook.paths[0].std(axis=0), rtol=0.15)


def test_the_forecast_of_a_count_in_a_known_state_is_poisson():
    emission = Poisson(4.0, 1.0)
    draw = random_draw(np.random.default_rng(0), n_clusters=1, emission=emission, n_states=1)
    outlook = look_ahead(keep([draw], emission, 1), one_group([3, 5]), 1, 1, np.random.default_rng(0))
    rate = float(np.exp(draw.parameters[0, 0, 0]))
    assert outlook.moments[0].mean[0, 0, 0] == pytest.approx(rate)
    assert outlook.moments[0].deviation[0, 0, 0] == pytest.approx(np.sqrt(rate))


def test_paths_of_the_future_follow_the_forecast(draws):
    kept = keep(draws)
    outlook = look_ahead(kept, one_group([0, 3, 1]), 2, 4000, np.random.default_rng(0))
    paths = outlook.paths[0].reshape(4000, 2)
    for step in range(2):
        shares = np.bincount(paths[:, step], minlength=N_CODES) / len(paths)
        np.testing.assert_allclose(shares, outlook.moments[0].mean[0, step], atol=0.03)


def shares_of_pairs(kept, task, n=4000):
    (codes,), states = draw_sequences(kept, [task] * n, [2] * n, np.random.default_rng(0))
    assert states.shape == codes.shape == (2 * n,)
    return np.bincount(codes[::2] * N_CODES + codes[1::2], minlength=N_CODES**2).reshape(N_CODES, N_CODES) / n


def test_new_sequences_are_as_probable_as_the_model_says(draws):
    kept = keep(draws)
    expected = [[np.exp(log_predictive(kept, one_group([a, b], 2)))[0] for b in range(N_CODES)] for a in range(N_CODES)]
    np.testing.assert_allclose(shares_of_pairs(kept, 1), expected, atol=0.025)


def test_new_sequences_of_a_new_task_have_transitions_from_the_prior_of_a_cluster(draws):
    draw = draws[0]
    joins, _ = joining_weights(draw, 2)
    shown = [draw.base_weights[k] @ np.exp(draw.parameters[k][:, :N_CODES]) for k in (0, 1)]
    expected = sum(weight * np.outer(codes, codes) for weight, codes in zip(joins, shown, strict=True))
    np.testing.assert_allclose(shares_of_pairs(keep([draw]), -1), expected, atol=0.025)


# With numpy alone.

FAMILIES = {
    "codes": Categorical(4, 0.5),
    "numbers": NUMBERS["diagonal"],
    "constant": GaussianDiagonal(np.array([1.0, 5.0]), np.array([0.0, 2.0]), 1.0),
    "joint numbers": NUMBERS["full"],
    "counts": Poisson(3.0, 1.0),
    "autoregressive numbers": example("ar").emission,
    "yes or no": Bernoulli(2),
    "numbers with outliers": StudentT(np.array([9.0, -2.0]), np.array([2.0, 1.0])),
}
# Lengths that differ, in groups of a new task and of both known ones.
BOUNDS = np.cumsum([0, 7, 1, 12, 3, 1, 2, 9, 1, 5, 4, 1, 14])


def from_a_file(family):
    """The family as it comes back from JSON."""
    asked = Asked("x", family.n_codes if isinstance(family, Categorical) else None, getattr(family, "order", 0))
    return type(family).from_plain(json.loads(json.dumps(family.plain())), 2, asked, family.strength)


def steps_of(kind, rng, n=60):
    if kind == "codes":
        return rng.integers(-1, 6, n)
    if kind == "counts":
        return rng.integers(-1, 12, n)
    numbers = rng.normal([10.0, -2.0], [3.0, 0.5], (n, 2))
    numbers[rng.random((n, 2)) < 0.2] = np.nan
    if kind == "yes or no":
        return np.where(np.isnan(numbers), np.nan, numbers > np.array([10.0, -2.0]))
    return with_past(numbers, np.diff(BOUNDS), 1) if kind.startswith("autoregressive") else numbers


@pytest.mark.parametrize("kind", [*FAMILIES, "all together"])
def test_plain_sums_agree_with_compiled_ones(kind):
    rng = np.random.default_rng(5)
    kinds = list(FAMILIES) if kind == "all together" else [kind]
    families = [FAMILIES[name].with_strength(0.7) for name in kinds]
    emission = side_by_side(families)
    draws = [random_draw(rng, emission=emission) for _ in range(3)]
    observations = tuple(steps_of(name, rng) for name in kinds)
    sequences = Sequences(observations, BOUNDS, np.array([0, 3, 9, 12]))
    compiled = keep(draws, emission, 3)
    read = side_by_side([from_a_file(family) for family in families])
    plain = compiled._replace(emission=read, filters=PlainFilters(read))
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(log_predictive(plain, sequences), log_predictive(compiled, sequences), **close)
    np.testing.assert_allclose(
        log_predictive_of_tasks(plain, sequences), log_predictive_of_tasks(compiled, sequences), **close
    )
    np.testing.assert_allclose(
        state_probabilities(plain, sequences), state_probabilities(compiled, sequences), atol=1e-9
    )
    np.testing.assert_array_equal(most_probable_paths(plain, sequences), most_probable_paths(compiled, sequences))
    ahead = [look_ahead(kept, sequences, 2, 3, np.random.default_rng(0)) for kept in (plain, compiled)]
    for ours, theirs in zip(*(each.moments for each in ahead), strict=True):
        np.testing.assert_allclose(ours.mean, theirs.mean, **close)
        if ours.deviation is not None:
            np.testing.assert_allclose(ours.deviation, theirs.deviation, rtol=1e-6, atol=1e-6)


def test_a_number_has_the_density_of_a_gaussian():
    emission = GaussianDiagonal(np.array([10.0]), np.array([2.0]), 1.0)
    parameters = np.array([[0.5, 4.0]])
    filters = PlainFilters(emission)
    sequences = one_group(np.array([[9.3]]))
    certain = np.ones((2, 1))
    found = filters.log_likelihoods(filters.densities(parameters, sequences), sequences, certain)
    assert found[0] == pytest.approx(norm.logpdf(9.3, 11.0, 1.0))
    compiled = CompiledFilters(emission)
    found = compiled.log_likelihoods(compiled.densities(parameters, sequences), sequences, certain)
    assert found[0] == pytest.approx(norm.logpdf(9.3, 11.0, 1.0))
