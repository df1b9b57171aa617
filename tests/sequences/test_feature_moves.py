"""The beta-process HMM's sampler against a sum over every feature matrix and path, and against the model (Geweke)."""

from dataclasses import replace

import numpy as np
import pytest

from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.inference import feature_choices, feature_split_merge
from kinfolk.sequences.inference.feature_choices import choose_features
from kinfolk.sequences.inference.feature_split_merge import SplitMerge
from kinfolk.sequences.inference.feature_sweep import draw_given_states, start_state, sweep
from kinfolk.sequences.model.bp_hmm import FeatureState, log_features
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences
from tests.sequences.feature_oracle import exact_features, log_prior
from tests.sequences.test_gibbs_exact import z_scores
from tests.sequences.test_gibbs_geweke import dirichlet

OBSERVED = ([0, 1, 1], [0, 0])
HYPER = {"eta": 0.8, "gamma": 1.1, "alpha": 0.7, "strength": 0.5}
KAPPA, MOST = 0.6, 3
DATA = Sequences((np.concatenate(OBSERVED),), np.array([0, 3, 5]), np.array([0, 1, 2]))
FIXED = Priors(*HYPER.values(), KAPPA)


@pytest.fixture(scope="module")
def exact():
    found = exact_features(OBSERVED, 2, MOST, kappa=KAPPA, **HYPER)
    return [*found.n_states, found.n_shared, *found.stays, found.together]


@pytest.fixture(autouse=True)
def as_many_splits_as_merges(monkeypatch):
    # Exact for any share; of so few states there are few merges.
    monkeypatch.setattr(feature_split_merge, "_SPLITS", 0.5)


def run(n_sweeps, seed=0, **options):
    """What enumeration says, of every sweep: how many states, how many shared, who stays, who is together."""
    rng, emission = np.random.default_rng(seed), Categorical(2, HYPER["strength"])
    state = start_state(np.zeros(5, dtype=np.int64), DATA, emission, FIXED, n_states=MOST, rng=rng)
    found = np.empty((n_sweeps, 8))
    for i in range(n_sweeps):
        state = sweep(state, DATA, emission, FIXED, rng, **options)
        s, sizes = state.states, state.features.sum(axis=0)
        n = (sizes > 0).sum()
        found[i] = n == 1, n == 2, n == 3, (sizes == 2).sum(), s[1] == s[0], s[2] == s[1], s[4] == s[3], s[0] == s[3]
    return found


def off(found, wanted):
    return np.abs(z_scores(found, wanted)).max()


def test_the_prior_of_features_is_the_oracles_up_to_how_columns_are_counted():
    hyper = HyperParameters(0.8, 1.1, 1.0, 1.0)
    for columns in (((1, 0), (1, 1)), ((1, 1),), ((1, 0), (0, 1), (1, 1))):
        assert log_features(np.array(columns, dtype=bool).T, hyper) == pytest.approx(log_prior(columns, 1.1, 0.8))


def test_features_and_paths_are_as_frequent_as_enumeration_says_by_choices_alone(exact):
    assert off(run(2_500, n_split_merges=0, n_births=2), exact) < 4.0


def test_features_and_paths_are_as_frequent_as_enumeration_says_with_splits_and_merges(exact):
    assert off(run(2_500, seed=1, n_split_merges=3), exact) < 4.0


_log_proposal_ratio = feature_choices.log_proposal_ratio
BROKEN = {
    "a birth is weighed by its proposal upside down": (
        feature_choices, "log_proposal_ratio", lambda *given: -_log_proposal_ratio(*given), {"n_births": 2},
    ),
    "a split forgets how probable its path was": (
        feature_split_merge.Halves, "log_probability", lambda self, path: 0.0, {"n_split_merges": 3},
    ),
    "a split forgets who came to have what": (
        feature_split_merge.Having, "log_probability", lambda self, has: 0.0, {"n_split_merges": 3},
    ),
    "a split forgets how it picked its steps": (
        SplitMerge, "_log_choices", lambda *given: 0.0, {"n_split_merges": 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_move_is_found_out_by_enumeration(how, exact, monkeypatch):
    where, name, instead, options = BROKEN[how]
    monkeypatch.setattr(where, name, instead)
    assert off(run(1_200, **options), exact) > 5.0


def test_shared_features_chosen_without_the_others_are_found_out(exact, monkeypatch):
    """As if nobody else's having a state said anything of this task's."""
    monkeypatch.setattr(feature_choices, "choose_shared", _fair)
    assert off(run(1_200), exact) > 5.0


_choose_shared = feature_choices.choose_shared


def _fair(task, own, hyper, rng):
    return _choose_shared(task._replace(n_tasks=2), own, hyper._replace(eta=1.0), rng)


# The model and the sampler agree: Geweke's test with all hyper-parameters learnt.

BOUNDS, TASK_BOUNDS, ROOM = np.array([0, 4, 7, 12, 13]), np.array([0, 2, 3, 4]), 4
LEARNT = Priors(*[GammaPrior(3.0, 2.0)] * 5)
CODES = Categorical(3)


def buffet(gamma, c, n_tasks, rng):
    """A feature matrix by customers who take dishes, one after the other."""
    columns = []
    for j in range(n_tasks):
        for column in columns:
            column.append(rng.random() * (c + j) < sum(column))
        columns += [[False] * j + [True] for _ in range(rng.poisson(gamma * c / (c + j)))]
    return np.array(columns, dtype=bool).reshape(len(columns), -1).T if columns else np.zeros((n_tasks, 0), dtype=bool)


def prior_draw(emission, rng):
    """A state and data, top to bottom; where a task has no state, or states no room, all is drawn again."""
    n_tasks = len(TASK_BOUNDS) - 1
    while True:
        c, gamma, alpha, strength, kappa = (prior.draw(rng) for prior in LEARNT)
        drawn = buffet(gamma, c, n_tasks, rng)
        if drawn.shape[1] <= ROOM and drawn.any(axis=1).all():
            break
    features = np.zeros((n_tasks, ROOM), dtype=bool)
    features[:, : drawn.shape[1]] = drawn
    parameters = emission.with_strength(strength).draw_parameters(np.zeros((ROOM, emission.n_statistics)), rng)
    transitions, states = np.zeros((n_tasks, ROOM + 1, ROOM)), np.empty(BOUNDS[-1], dtype=np.int64)
    for j in range(n_tasks):
        own = np.flatnonzero(features[j])
        for r in (-1, *own):
            transitions[j, r + 1, own] = dirichlet(alpha + kappa * (own == r), rng)
        for i in range(TASK_BOUNDS[j], TASK_BOUNDS[j + 1]):
            before = 0
            for t in range(BOUNDS[i], BOUNDS[i + 1]):
                states[t] = rng.choice(ROOM, p=transitions[j, before])
                before = states[t] + 1
    state = FeatureState(features, states, parameters, transitions, HyperParameters(c, gamma, alpha, strength, kappa))
    return state, Sequences(emission.draw_observations(parameters, states, rng), BOUNDS, TASK_BOUNDS)


def told(state, data):
    """What the two ways of drawing are compared by."""
    s, sizes, hyper = state.states, state.features.sum(axis=0), np.log(state.hyper)
    stays = np.diff(s)[np.setdiff1d(np.arange(BOUNDS[-1] - 1), BOUNDS - 1)] == 0
    codes = data.observations[0]
    return [
        *hyper, *hyper**2, (sizes > 0).sum(), (sizes == 1).sum(), (sizes == 3).sum(), state.features[0].sum(),
        (state.features[0] & state.features[2]).sum(), stays.mean(), len(set(s[:7].tolist())), s[0] == s[-1],
        len(set(codes[:4].tolist())), codes[0] == codes[-1], codes[0] == codes[1], state.transitions[0, 0].max(),
    ]  # fmt: skip


def geweke(step, n_sweeps, seed, n_prior, n_batches=40):
    rng = np.random.default_rng(seed)
    independent = np.array([told(*prior_draw(CODES, rng)) for _ in range(n_prior)], dtype=float)
    state, data = prior_draw(CODES, rng)
    chain = []
    for _ in range(n_sweeps):
        state = step(state, data, rng)
        data = replace(data, observations=CODES.draw_observations(state.parameters, state.states, rng))
        chain.append(told(state, data))
    batches = np.array(chain, dtype=float).reshape(n_batches, -1, independent.shape[1]).mean(axis=1)
    variance = batches.var(axis=0, ddof=1) / n_batches + independent.var(axis=0) / n_prior
    return np.abs((batches.mean(axis=0) - independent.mean(axis=0)) / np.sqrt(variance)).max()


def whole(state, data, rng):
    return sweep(state, data, CODES, LEARNT, rng, n_split_merges=2)


def by_choices(state, data, rng):
    here = CODES.with_strength(state.hyper.strength)
    return draw_given_states(choose_features(state, data, here, rng), data, CODES, LEARNT, rng)


def test_a_chain_with_new_data_at_each_sweep_is_the_prior():
    assert geweke(whole, 2_000, seed=2, n_prior=2_000) < 4.0


def test_a_chain_that_forgets_a_proposal_is_not_the_prior(monkeypatch):
    monkeypatch.setattr(feature_split_merge.Halves, "log_probability", lambda self, path: 0.0)
    assert geweke(whole, 800, seed=2, n_prior=1_000) > 5.0


@pytest.mark.slow
@pytest.mark.parametrize("step", [whole, by_choices], ids=["whole", "choices"])
def test_a_long_chain_with_new_data_at_each_sweep_is_the_prior(step):
    assert geweke(step, 20_000, seed=3, n_prior=15_000) < 4.0
