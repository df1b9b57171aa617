"""Geweke's joint-distribution test of the Gibbs sampler (J. Amer. Statist. Assoc. 99, 2004, 799–804).

Partition, labels and features are drawn in two ways: all at once from the model, and by turns, a sweep of the sampler
given the data, then new data given what the sweep left. If, and only if, the sweep is right, both ways have the same
distribution. A second sampler, written for this file, has a switch for each of the mistakes that are easily made (one
of them printed in the thesis): without a mistake it passes the test, with any of them it does not.

Many simulations run side by side; arrays have them first.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import gammaln

from kinfolk.naive_bayes.inference.gibbs import Chain
from kinfolk.tasks.statistics import Layout, Rows, Statistics
from tests.naive_bayes.posed import pose

N_TASKS, CONCENTRATION = 3, 0.8
N_VALUES = (2, 3)
TASK = np.array([0, 0, 0, 1, 1, 2, 2])
KNOWN = np.array([True, False, False, True, False, True, False])
MISSING = np.array([[0, 0], [0, 0], [0, 1], [0, 0], [0, 0], [1, 0], [0, 0]], dtype=bool)
ALPHA = np.array([0.6, 1.3])
# BETA[label, feature, value]; a prior of zero means that there is no such value.
BETA = np.array([[[0.5, 0.9, 0.0], [0.4, 0.8, 1.1]], [[1.2, 0.4, 0.0], [0.7, 0.3, 0.6]]])


@dataclass
class State:
    """Everything that the model draws, parameters aside, in many simulations."""

    seats: np.ndarray  # (simulations, tasks)
    labels: np.ndarray  # (simulations, rows)
    codes: np.ndarray  # (simulations, rows, features)

    def copy(self) -> "State":
        return State(self.seats.copy(), self.labels.copy(), self.codes.copy())

    def label_counts(self) -> np.ndarray:
        """How often each task has each label."""
        return np.stack(
            [np.eye(len(ALPHA))[self.labels[:, task == TASK]].sum(axis=1) for task in range(N_TASKS)], axis=1
        )

    def feature_counts(self) -> np.ndarray:
        """Counts by task, label, feature and value."""
        shape = (len(self.seats), N_TASKS, *BETA.shape)
        row, feature = np.nonzero(~MISSING)
        simulation = np.arange(shape[0])[:, None]
        cells = (simulation, TASK[row], self.labels[:, row], feature, self.codes[:, row, feature])
        return np.bincount(np.ravel_multi_index(cells, shape).ravel(), minlength=np.prod(shape)).reshape(shape)

    def at(self, cluster: np.ndarray) -> np.ndarray:
        """Which tasks sit at a cluster, one given for each simulation."""
        return self.seats == cluster[:, None]


def draw_index(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An index along the last axis for each set of weights."""
    heights = weights.cumsum(axis=-1)
    return (rng.random(heights.shape[:-1])[..., None] * heights[..., -1:] >= heights).sum(axis=-1)


def draw_data(state: State, which: np.ndarray, rng: np.random.Generator, *, given_data: bool) -> None:
    """Draw rates, from their posterior or their prior, and with them the labels of some rows and all features."""
    n = len(state.seats)
    after, alpha = np.broadcast_to(BETA, (n, N_TASKS, *BETA.shape)), np.broadcast_to(ALPHA, (n, N_TASKS, len(ALPHA)))
    if given_data:
        sits = state.seats[:, None, :] == np.arange(N_TASKS)[:, None]
        after = BETA + np.einsum("nct,ntyfx->ncyfx", sits, state.feature_counts())
        alpha = ALPHA + state.label_counts()
    theta, phi = rng.standard_gamma(after), rng.standard_gamma(alpha)
    state.labels[:, which] = draw_index(phi[:, TASK[which]], rng)
    of_row = theta[np.arange(n)[:, None], state.seats[:, TASK], state.labels]
    state.codes[:] = np.where(MISSING, -1, draw_index(of_row, rng))


def draw_from_model(n: int, rng: np.random.Generator) -> State:
    state = State(np.zeros((n, N_TASKS), int), np.zeros((n, len(TASK)), int), np.zeros((n, *MISSING.shape), int))
    for u in range(1, N_TASKS):
        company = (state.seats[:, :u, None] == np.arange(N_TASKS)).sum(axis=1).astype(float)
        company[np.arange(n), state.seats[:, :u].max(axis=1) + 1] = CONCENTRATION
        state.seats[:, u] = draw_index(company, rng)
    draw_data(state, np.ones(len(TASK), dtype=bool), rng, given_data=False)
    return state


Sweep = Callable[[State, np.random.Generator], None]


class KinfolkSweep:
    """The sampler under test, loaded with the state of a simulation before every sweep."""

    def __init__(self) -> None:
        layout = Layout(len(ALPHA), np.array(N_VALUES))
        n_unknown = int((~KNOWN).sum())
        # Counts come with each state; the label counts here are only many enough for the tables of lgamma.
        statistics = Statistics(
            layout,
            np.arange(N_TASKS),
            np.zeros((N_TASKS, layout.n_cells), dtype=np.int32),
            np.full((N_TASKS, layout.n_labels), len(TASK), dtype=np.int32),
        )
        codes, labels = np.zeros((n_unknown, len(N_VALUES)), np.int32), np.zeros(n_unknown, np.int32)
        self.cells = BETA > 0
        posed = pose(statistics, Rows(codes, labels, TASK[~KNOWN], None), ALPHA, BETA[self.cells]).at(CONCENTRATION)
        self.chain = Chain(*posed, posed.product())

    def __call__(self, state: State, rng: np.random.Generator) -> None:
        labels, seating = self.chain.labels, self.chain.seating
        label_counts, feature_counts = state.label_counts(), state.feature_counts()[:, :, self.cells]
        for i in range(len(state.seats)):
            labels.rows.codes[:] = state.codes[i, ~KNOWN]
            labels.rows.labels[:] = state.labels[i, ~KNOWN]
            labels.label_counts[:] = label_counts[i]
            seating.counts[:] = feature_counts[i]
            seating.place(state.seats[i])
            self.chain.sweep(rng)
            state.seats[i] = seating.seat
            state.labels[i, ~KNOWN] = labels.rows.labels


class Twin:
    """The same sampler in a few lines of numpy, right unless told to make a mistake."""

    def __init__(self, mistake: str | None = None) -> None:
        self.mistake = mistake

    def __call__(self, state: State, rng: np.random.Generator) -> None:
        for row in np.flatnonzero(~KNOWN):
            state.labels[:, row] = self.draw_labels(state, row, rng)
        for task in range(N_TASKS):
            state.seats[:, task] = self.draw_seats(state, task, rng)

    def draw_labels(self, state: State, row: int, rng: np.random.Generator) -> np.ndarray:
        kin = state.at(state.seats[:, TASK[row]])
        labels = state.label_counts()
        features = np.einsum("nt,ntyfx->nyfx", kin, state.feature_counts()) + BETA
        everyone, present = np.arange(len(kin))[:, None], np.flatnonzero(~MISSING[row])
        values = state.codes[:, row, present]
        if self.mistake != "the row itself is counted":
            labels[everyone[:, 0], TASK[row], state.labels[:, row]] -= 1
            features[everyone, state.labels[:, [row]], present, values] -= 1
        own = labels[:, TASK[row]]
        if self.mistake == "labels of the cluster":
            own = np.einsum("nt,nty->ny", kin, labels)
        rates = features / features.sum(axis=-1, keepdims=True)
        fit = rates[everyone[:, :, None], np.arange(len(ALPHA))[:, None], present, values[:, None, :]].prod(axis=-1)
        return draw_index((own + ALPHA) * fit, rng)

    def draw_seats(self, state: State, task: int, rng: np.random.Generator) -> np.ndarray:
        counts = state.feature_counts()
        sits = state.seats[:, None, :] == np.arange(N_TASKS + 1)[:, None]
        if self.mistake != "the task itself is counted":
            sits[:, :, task] = False
        company = sits.sum(axis=2)
        weight = np.minimum(company, 1.0) if self.mistake == "sizes of clusters forgotten" else company.astype(float)
        free = (company == 0).argmax(axis=1)
        weight[np.arange(len(free)), free] = CONCENTRATION
        there = np.einsum("nct,ntyfx->ncyfx", sits, counts)
        gain = log_marginals(there + counts[:, [task]]) - log_marginals(there)
        chosen = draw_index(weight * np.exp(gain - gain.max(axis=1, keepdims=True)), rng)
        # Only a task that counts itself can find every table taken; its own is then as good as a new one.
        return np.where(chosen == N_TASKS, state.seats[:, task], chosen)


def log_marginals(counts: np.ndarray) -> np.ndarray:
    """Log marginal of counts (…, label, feature, value), up to what the prior alone gives."""
    after = counts + BETA
    return gammaln(after[..., BETA > 0]).sum(axis=-1) - gammaln(after.sum(axis=-1)).sum(axis=(-2, -1))


def observed(state: State) -> dict[str, np.ndarray]:
    """What the two ways are compared by: functions of a state, chosen to meet every kind of dependence."""
    seats, labels, codes = state.seats, state.labels, state.codes
    pairs = (seats[:, [0, 0, 1]] == seats[:, [1, 2, 2]]).sum(axis=1)  # 0, 1 or 3 of them
    together = seats[:, 0] == seats[:, 1]
    first = labels == 0
    labels_agree, values_agree = labels[:, 2] == labels[:, 4], codes[:, 1, 0] == codes[:, 4, 0]
    return {
        "number of clusters": np.select([pairs == 0, pairs == 1], [3, 2], 1),
        "all tasks apart": pairs == 0,
        "two tasks together": together,
        "label of an unknown row": first[:, 6],
        "count of a label": first.sum(axis=1),
        "square of that count": first.sum(axis=1) ** 2,
        "unknown and known label agree": labels[:, 0] == labels[:, 1],
        "unknown labels of one task agree": labels[:, 1] == labels[:, 2],
        "unknown labels of two tasks agree": labels_agree,
        "they agree, together": labels_agree & together,
        "count of a value": (codes[:, :, 1] == 2).sum(axis=1),
        "label with value": (first & (codes[:, :, 0] == 0)).sum(axis=1),
        "values of two tasks agree": values_agree,
        "they agree, together, under one label": values_agree & together & (labels[:, 1] == labels[:, 4]),
        "values of one task agree": codes[:, 1, 0] == codes[:, 2, 0],
    }


def by_turns(sweep: Sweep, n_simulations: int, n_turns: int, seed: int) -> dict[str, np.ndarray]:
    """Means over the turns of each simulation; they start from the model, so none needs a burn-in."""
    rng = np.random.default_rng(seed)
    state = draw_from_model(n_simulations, rng)
    turns = []
    for _ in range(n_turns):
        sweep(state, rng)
        draw_data(state, KNOWN, rng, given_data=True)
        turns.append(observed(state))
    return {name: np.mean([turn[name] for turn in turns], axis=0) for name in turns[0]}


def differences(sweep: Sweep, at_once: dict[str, np.ndarray], n_simulations: int, n_turns: int) -> dict[str, float]:
    """Differences in standard errors; simulations are independent, so their spread knows of autocorrelation."""
    found = by_turns(sweep, n_simulations, n_turns, seed=2)
    errors = {
        name: np.hypot(*(x.std(ddof=1) / np.sqrt(len(x)) for x in (found[name], at_once[name]))) for name in found
    }
    return {name: float((found[name].mean() - at_once[name].mean()) / errors[name]) for name in found}


def largest(z: dict[str, float]) -> float:
    return max(abs(value) for value in z.values())


@pytest.fixture(scope="module")
def at_once() -> dict[str, np.ndarray]:
    return observed(draw_from_model(200_000, np.random.default_rng(1)))


def test_draws_from_the_model_have_the_moments_that_theory_gives(at_once):
    a, rate, total = CONCENTRATION, ALPHA[0] / ALPHA.sum(), ALPHA.sum()
    expected = {
        "number of clusters": sum(a / (a + i) for i in range(N_TASKS)),
        "all tasks apart": a**2 / ((a + 1) * (a + 2)),
        "two tasks together": 1 / (a + 1),
        "label of an unknown row": rate,
        "unknown and known label agree": 1 - 2 * rate * (1 - rate) * total / (total + 1),  # draws from one urn
        "unknown labels of two tasks agree": rate**2 + (1 - rate) ** 2,
        "they agree, together": (rate**2 + (1 - rate) ** 2) / (a + 1),
    }
    for name, value in expected.items():
        drawn = at_once[name]
        assert abs(drawn.mean() - value) < 4 * drawn.std() / np.sqrt(len(drawn)), name


def test_draws_from_the_prior_forget_the_one_before():
    sampler, rng = KinfolkSweep(), np.random.default_rng(0)
    for _ in range(3):
        sampler.chain.draw_from_prior(rng)
        fresh = sampler.chain.data.statistics.label_counts.sum()
        assert sampler.chain.labels.label_counts.sum() == fresh + (~KNOWN).sum()


def test_the_gibbs_sampler_keeps_the_joint_distribution(at_once):
    z = differences(KinfolkSweep(), at_once, 600, 200)
    assert largest(z) < 4, z


@pytest.mark.slow
def test_the_gibbs_sampler_keeps_the_joint_distribution_in_a_long_run():
    at_once = observed(draw_from_model(4_000_000, np.random.default_rng(3)))
    z = differences(KinfolkSweep(), at_once, 1_000, 1_500)
    assert largest(z) < 4, z


def test_the_twin_without_a_mistake_keeps_the_joint_distribution(at_once):
    z = differences(Twin(), at_once, 600, 200)
    assert largest(z) < 4, z


@pytest.mark.parametrize(
    ("mistake", "n_turns"),
    [
        ("labels of the cluster", 50),  # as the thesis prints A.47
        ("the row itself is counted", 200),
        ("the task itself is counted", 50),
        ("sizes of clusters forgotten", 50),
    ],
)
def test_a_sampler_with_a_mistake_is_found_out(mistake, n_turns, at_once):
    z = differences(Twin(mistake), at_once, 600, n_turns)
    assert largest(z) > 6, z
