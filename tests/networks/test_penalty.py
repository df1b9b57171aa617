"""The strength of the joint prior, learnt or validated, against enumeration and plain recomputation."""

from functools import partial
from itertools import combinations, pairwise, product
from math import exp, inf, log

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kinfolk import BayesNets
from kinfolk.datasets import make_related_networks, sample_tasks
from kinfolk.networks.inference import structures as fitting
from kinfolk.networks.inference import validate as validation
from kinfolk.networks.model.priors import best_strength, edit_costs, pair_costs, pair_spectrum
from tests.networks.oracle import (
    Scorer,
    Task,
    as_frame,
    as_matrix,
    edit_penalty,
    no_rules,
    paired_penalty,
    random_cards,
    random_dag,
    random_rows,
    related_rows,
    state_of,
)

# What scores and searches are held against has the paper's uniform P(G).
UniformNets = partial(BayesNets, structure_prior=None)

KINDS = [
    ("edit", {}),
    ("edit", {"reverse": 2.0}),
    ("edit", {"add": 0.3, "remove": 1.7, "reverse": 0.9}),
    ("paired", {}),
    ("paired", {"arc": 0.4, "reverse": 1.3}),
]


def unit_cost(kind, costs, k):
    """Cost of the states of one pair at λ = 1, from the oracle's priors."""
    measure = edit_penalty(1.0, **costs) if kind == "edit" else paired_penalty(1.0, max(k, 2), **costs)
    return lambda states, who: measure(states, who, 0, 1)


def spectrum_of(kind, costs, size, k=None):
    matrix = edit_costs(**costs) if kind == "edit" else pair_costs(**costs)
    return pair_spectrum(kind, size, matrix, 1.0 if kind == "edit" else max((size if k is None else k) - 1, 1))


def expected_cost(kind, costs, size, strength, k=None):
    """Mean cost of a pair's states when configurations weigh exp(−λ·cost), by enumeration."""
    cost = unit_cost(kind, costs, size if k is None else k)
    all_costs = np.array([cost(list(states), list(range(size))) for states in product(range(3), repeat=size)])
    weights = np.exp(-strength * all_costs)
    return float((weights * all_costs).sum() / weights.sum())


@pytest.mark.parametrize(("kind", "costs"), KINDS)
@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_the_normaliser_is_the_sum_over_all_ways_to_give_tasks_states(kind, costs, k):
    cost = unit_cost(kind, costs, k)
    everything = [cost(list(states), list(range(k))) for states in product(range(3), repeat=k)]
    spectrum = spectrum_of(kind, costs, k)
    for strength in (0.0, 0.3, 2.0, 9.0):
        total = sum(exp(-strength * value) for value in everything)
        assert spectrum.log_normaliser(strength) == pytest.approx(log(total), abs=1e-10)


@pytest.mark.parametrize(("kind", "costs"), KINDS)
@pytest.mark.parametrize("total_cost", [0.0, 1.0, 4.5, 20.0])
def test_the_strength_makes_the_expected_cost_what_was_found_and_one_edit_more(kind, costs, total_cost):
    sizes, numbers = [2, 4], [7, 30]
    strength = best_strength(total_cost, [spectrum_of(kind, costs, size, 4) for size in sizes], numbers)
    expected = sum(n * expected_cost(kind, costs, size, strength, 4) for size, n in zip(sizes, numbers, strict=True))
    assert 0 < strength < 30
    assert expected == pytest.approx(total_cost + 1, rel=1e-4)


def test_structures_that_differ_more_than_by_chance_get_no_strength():
    strength = best_strength(1000.0, [spectrum_of("edit", {}, 3)], [5])
    assert strength == pytest.approx(0, abs=1e-4)


def test_fewer_edits_mean_more_strength():
    spectra = [spectrum_of("edit", {}, 5)]
    strengths = [best_strength(cost, spectra, [100]) for cost in (0, 1, 5, 25, 100)]
    assert all(a > b for a, b in pairwise(strengths))


def learnt_problem(seed, n_tasks=3, n=5, n_rows=80, p_delete=0.25, drop=False):
    rng = np.random.default_rng(seed)
    cards = random_cards(rng, n, 3)
    tables = related_rows(rng, n_tasks, cards, n_rows, p_delete)
    here = [tuple(range(n))] * n_tasks
    if drop:
        here[-1], here[-2] = tuple(range(1, n)), tuple(range(n - 1))
    tasks = [Task(codes, its) for codes, its in zip(tables, here, strict=True)]
    return tasks, cards, {t: as_frame(task.codes, cards, task.here) for t, task in enumerate(tasks)}


def pair_costs_of(tasks, structures, kind, costs):
    """For each pair of variables that two tasks or more have: how many have it, and what their states cost at λ = 1."""
    cost = unit_cost(kind, costs, len(tasks))
    found = {}
    for i, j in combinations(range(len(structures[0])), 2):
        who = [t for t, task in enumerate(tasks) if i in task.here and j in task.here]
        if len(who) > 1:
            found[i, j] = len(who), cost([state_of(structures[t], i, j) for t in who], who)
    return found


@pytest.mark.parametrize(("kind", "costs"), KINDS)
@pytest.mark.parametrize("drop", [False, True])
def test_the_learnt_strength_fits_the_learnt_structures(kind, costs, drop):
    for seed in range(3):
        tasks, cards, frames = learnt_problem(seed, drop=drop)
        model = UniformNets(prior=kind, costs=costs or None).fit(frames)
        structures = [as_matrix(model.graphs_[t], len(cards)) for t in range(len(tasks))]
        pairs = pair_costs_of(tasks, structures, kind, costs).values()
        expected = sum(expected_cost(kind, costs, size, model.strength_, len(tasks)) for size, _ in pairs)
        if model.strength_ > 1e-3:
            assert expected == pytest.approx(sum(cost for _, cost in pairs) + 1, rel=1e-3)
        penalty = (
            edit_penalty(model.strength_, **costs)
            if kind == "edit"
            else paired_penalty(model.strength_, len(tasks), **costs)
        )
        scorer = Scorer(tasks, cards, no_rules(len(cards)), penalty=penalty)
        assert model.log_score_ == pytest.approx(scorer.total(np.array(structures)), abs=1e-8)
        assert model.penalty_ == pytest.approx(1 - exp(-model.strength_))


def test_factors_of_pairs_of_variables_take_part_in_the_learnt_strength():
    for seed in range(5):
        tasks, cards, frames = learnt_problem(seed)
        factors = {(0, 1): 0.0, (1, 2): 3.0, (0, 3): 0.2, (2, 4): 2.0}
        named = {("abcde"[i], "abcde"[j]): value for (i, j), value in factors.items()}
        model = UniformNets(arc_penalty=named).fit(frames)
        structures = [as_matrix(model.graphs_[t], len(cards)) for t in range(len(tasks))]
        expected = cost = 0.0
        for pair, (size, its) in pair_costs_of(tasks, structures, "edit", {}).items():
            factor = factors.get(pair, 1.0)
            expected += factor * expected_cost("edit", {}, size, factor * model.strength_)
            cost += factor * its
        assert expected == pytest.approx(cost + 1, rel=1e-3)


@pytest.mark.parametrize("prior", ["edit", "paired"])
def test_no_turn_of_structures_and_strength_lowers_their_joint_posterior(monkeypatch, prior):
    runs = []

    def best(total_cost, spectra, numbers):
        strength = best_strength(total_cost, spectra, numbers)
        runs[-1].append(("strength", strength))
        return strength

    def learn(problem, its_prior, starts, *rest, together=fitting.learn_together):
        found = together(problem, its_prior, starts, *rest)
        runs[-1].append(("structures", found.adjacency))
        return found

    def with_strength(options, hyper, problem, start, *rest, whole=fitting._learn_with_strength):
        runs.append([("structures", start)])
        return whole(options, hyper, problem, start, *rest)

    monkeypatch.setattr(fitting, "best_strength", best)
    monkeypatch.setattr(fitting, "learn_together", learn)
    monkeypatch.setattr(fitting, "_learn_with_strength", with_strength)
    n_turns = 0
    for seed in range(8):
        runs.clear()
        runs.append([])
        tasks, cards, frames = learnt_problem(seed, n_rows=40)
        k, n = len(tasks), len(cards)
        UniformNets(prior=prior).fit(frames)
        own = unit_cost(prior, {}, k)
        everything = [own(list(states), list(range(k))) for states in product(range(3), repeat=k)]
        scorer = Scorer(tasks, cards, no_rules(n))
        for run in runs[1:]:
            assert len(run) >= 3
            structures, strength, last = run[0][1], None, -inf
            for what, value in run[1:]:
                structures, strength = (value, strength) if what == "structures" else (structures, value)
                cost = sum(its for _, its in pair_costs_of(tasks, structures, prior, {}).values())
                normaliser = n * (n - 1) / 2 * log(sum(exp(-strength * its) for its in everything))
                now = scorer.total(structures) - strength * (cost + 1) - normaliser
                assert now >= last - 1e-6
                last = now
                n_turns += 1
    assert n_turns > 40


def test_tasks_with_one_structure_get_a_strong_prior_and_unrelated_ones_a_weak_one():
    rng = np.random.default_rng(3)
    cards = np.full(8, 2)
    common = random_dag(rng, 8, 0.35)
    alike = {t: as_frame(random_rows(rng, common, cards, 800, 0.4), cards) for t in range(5)}
    others = {t: as_frame(random_rows(rng, random_dag(rng, 8, 0.35), cards, 800, 0.4), cards) for t in range(5)}
    strong = UniformNets().fit(alike).strength_
    weak = UniformNets().fit(others).strength_
    # Random structures of this density differ in most pairs that any of them links.
    assert strong > 4
    assert weak < 2.5


def validated(seed=0, share=0.2, **options):
    *_, frames = learnt_problem(seed, n_rows=60)
    return frames, UniformNets(penalty="validate", validation=share, tabu=0, random_state=5, **options).fit(frames)


def test_the_curve_has_the_whole_grid_and_the_best_value_is_chosen():
    _, model = validated()
    curve = model.penalty_curve_
    assert list(curve.columns) == ["penalty", "strength", "log_likelihood"]
    strengths = curve["strength"].to_list()
    assert strengths == list(validation.GRID)
    assert strengths[0] == 0
    assert strengths[-1] == inf
    assert curve["penalty"].to_list() == pytest.approx([1 - exp(-value) for value in strengths])
    # A logarithmic grid of 1 − δ, as in the paper.
    assert {round(value / log(10), 6) for value in strengths[:-1]} >= {0, 1, 2, 3, 4}
    assert model.strength_ == strengths[int(np.argmax(curve["log_likelihood"].to_list()))]


@pytest.mark.parametrize("prior", ["edit", "paired"])
def test_held_out_rows_are_predicted_by_models_that_never_saw_them(monkeypatch, prior):
    kept, held = [], []

    class Asked:
        def __init__(self, network):
            self.network = network

        def log_probability(self, rows):
            held.append(rows)
            return self.network.log_probability(rows)

    def recording(structures, data, *rest, whole=validation.learn_networks):
        kept.extend(data.codes)
        return [Asked(network) for network in whole(structures, data, *rest)]

    monkeypatch.setattr(validation, "learn_networks", recording)
    frames, model = validated(prior=prior)
    monkeypatch.undo()
    assert len(kept) == len(held) == len(validation.GRID) * len(frames)
    decoded = {}
    for t, frame in frames.items():
        rows = np.stack([frame[name].cat.codes for name in frame.columns], axis=1)
        assert len(held[t]) == 12
        together = np.concatenate([kept[t], held[t]])
        assert sorted(together.tolist()) == sorted(rows.tolist())
        assert all((held[place] == held[t]).all() for place in range(t, len(held), len(frames)))
        names = [frame[name].cat.categories.to_numpy() for name in frame.columns]
        for part, codes in (("kept", kept[t]), ("held", held[t])):
            table = frame.iloc[: len(codes)].copy()
            for v, name in enumerate(frame.columns):
                table[name] = frame[name].array[:0].from_codes(codes[:, v], categories=names[v])
            decoded.setdefault(part, {})[t] = table
    curve = zip(model.penalty_curve_["strength"], model.penalty_curve_["log_likelihood"], strict=True)
    for strength, log_likelihood in curve:
        fitted = UniformNets(penalty=-np.expm1(-strength), prior=prior, tabu=0).fit(decoded["kept"])
        scores = fitted.score_samples(decoded["held"])
        assert log_likelihood == pytest.approx(np.mean([its.mean() for its in scores.values()]), abs=1e-9)


def test_after_validation_all_rows_are_learnt_from():
    frames, model = validated(seed=1)
    again = UniformNets(penalty=model.penalty_, tabu=0).fit(frames)
    assert again.log_score_ == pytest.approx(model.log_score_, abs=1e-6)
    for t, graph in again.graphs_.items():
        assert set(graph.edges) == set(model.graphs_[t].edges)


def test_a_single_task_needs_no_penalty():
    frame = learnt_problem(2)[2][0]
    for penalty in ("learn", "validate", 0.9):
        model = UniformNets(penalty=penalty).fit(frame)
        assert model.strength_ == 0
        assert not hasattr(model, "penalty_curve_")


def test_turns_that_end_before_the_strength_settles_are_told(monkeypatch):
    monkeypatch.setattr(fitting, "_MOST_TURNS", 1)
    networks = make_related_networks("asia", 4, p_delete=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="still changing after 1 turns"):
        UniformNets(penalty="learn", random_state=0).fit(sample_tasks(networks, 100, random_state=0))
