"""Structures of several tasks together, against all neighbouring configurations and the literal TSK construction."""

from functools import partial
from math import inf, log1p

import numpy as np
import pandas as pd
import pytest

from kinfolk import BayesNets
from kinfolk.networks.inference.climb import Effort
from kinfolk.networks.inference.structures import learn_together
from kinfolk.networks.model.data import lay_out
from kinfolk.networks.model.family_scores import make_problem
from kinfolk.networks.model.network import Constraints
from kinfolk.networks.model.priors import joint_prior
from kinfolk.networks.model.scores import CRITERIA
from tests.networks.oracle import (
    Scorer,
    Task,
    as_frame,
    as_matrix,
    edit_penalty,
    is_acyclic,
    log_family,
    no_rules,
    paired_penalty,
    random_cards,
    related_rows,
)

# What scores and searches are held against has the paper's uniform P(G).
UniformNets = partial(BayesNets, structure_prior=None)


def strength(penalty):
    return inf if penalty == 1 else -log1p(-penalty)


class Problem:
    """Tables of related tasks, as the estimator gets them and as the oracle does."""

    def __init__(self, seed, n_tasks=None, n=None, drop=False):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.k = int(rng.integers(2, 5)) if n_tasks is None else n_tasks
        self.n = int(rng.integers(3, 6)) if n is None else n
        self.cards = random_cards(rng, self.n, 3)
        tables = related_rows(rng, self.k, self.cards, int(rng.integers(15, 60)))
        here = [tuple(range(self.n))] * self.k
        if drop:
            # The last two tasks lack a variable each, and no variable is lacking everywhere.
            here[-1], here[-2] = tuple(range(1, self.n)), tuple(range(self.n - 1))
        self.tasks = [Task(codes, its) for codes, its in zip(tables, here, strict=True)]

    @property
    def frames(self):
        return {t: as_frame(task.codes, self.cards, task.here) for t, task in enumerate(self.tasks)}

    def scorer(self, penalty, rules=None, **options):
        return Scorer(self.tasks, self.cards, no_rules(self.n) if rules is None else rules, penalty=penalty, **options)

    def separate(self, rules=None, **options):
        """Where climbs of each task by itself end."""
        rules = no_rules(self.n) if rules is None else rules
        found = [
            Scorer([task], self.cards, rules, **options).climb(rules.required[None].copy())[0] for task in self.tasks
        ]
        return np.array(found)

    def learnt(self, model):
        return np.array([as_matrix(model.graphs_[t], self.n) for t in range(self.k)])


def agrees(problem, model, scorer, start):
    """Check that the estimator ended where a climb over all configurations does, with the score of what it found."""
    found = problem.learnt(model)
    assert any((found == end).all() for end in scorer.ends(start))
    assert model.log_score_ == pytest.approx(scorer.total(found), abs=1e-8)


def plain(problem, **options):
    return UniformNets(tabu=0, restarts=0, **options).fit(problem.frames)


@pytest.mark.parametrize("penalty", [0.2, 0.8, 0.999])
@pytest.mark.parametrize(
    "costs", [{}, {"reverse": 2.0}, {"add": 0.5, "remove": 2.0, "reverse": 1.5}, {"add": 0.0, "reverse": 0.7}]
)
def test_every_step_under_the_edit_prior_is_the_best_of_all_configurations(penalty, costs):
    for seed in range(4):
        problem = Problem(seed)
        model = plain(problem, penalty=penalty, costs=costs or None)
        agrees(problem, model, problem.scorer(edit_penalty(strength(penalty), **costs)), problem.separate())


@pytest.mark.parametrize("penalty", [0.2, 0.8, 0.999])
@pytest.mark.parametrize("costs", [{}, {"arc": 0.5, "reverse": 0.5}, {"reverse": 0.25}])
def test_every_step_under_the_paired_prior_is_the_best_of_all_configurations(penalty, costs):
    for seed in range(10, 14):
        problem = Problem(seed)
        model = plain(problem, prior="paired", penalty=penalty, costs=costs or None)
        scorer = problem.scorer(paired_penalty(strength(penalty), problem.k, **costs))
        agrees(problem, model, scorer, problem.separate())


def test_every_step_with_a_penalty_for_each_two_tasks_is_the_best_of_all_configurations():
    for seed in range(20, 30):
        problem = Problem(seed, n_tasks=3 + seed % 2)
        own = {(0, 1): 0.95, (2, 0): 0.0}
        between = [[strength(0.6)] * problem.k for _ in range(problem.k)]
        for (s, t), value in own.items():
            between[s][t] = between[t][s] = strength(value)
        model = plain(problem, prior="paired", penalty=0.6, task_penalty=own)
        scorer = problem.scorer(paired_penalty(None, problem.k, between=between))
        agrees(problem, model, scorer, problem.separate())


@pytest.mark.parametrize("prior", ["edit", "paired"])
def test_a_pair_of_variables_may_have_a_penalty_of_its_own(prior):
    for seed in range(30, 36):
        problem = Problem(seed)
        strengths = np.full((problem.n, problem.n), strength(0.7))
        for (i, j), value in {(0, 1): 0.0, (1, 2): 0.9999}.items():
            strengths[i, j] = strengths[j, i] = strength(value)
        model = plain(problem, prior=prior, penalty=0.7, arc_penalty={("b", "a"): 0.0, ("b", "c"): 0.9999})
        penalty = edit_penalty(strengths) if prior == "edit" else paired_penalty(strengths, problem.k)
        agrees(problem, model, problem.scorer(penalty), problem.separate())


@pytest.mark.parametrize("criterion", ["k2", "bic"])
def test_every_step_is_the_best_with_other_scores_and_rules(criterion):
    for seed in range(40, 46):
        problem = Problem(seed, n=4)
        rules = no_rules(4, most_parents=2)
        rules.required[0, 2], rules.allowed[2, 0], rules.allowed[1, 3] = True, False, False
        model = plain(
            problem, criterion=criterion, penalty=0.9, required=[("a", "c")], forbidden=[("b", "d")], max_parents=2
        )
        scorer = problem.scorer(edit_penalty(strength(0.9)), rules, score=criterion)
        agrees(problem, model, scorer, problem.separate(rules, score=criterion))


@pytest.mark.parametrize("prior", ["edit", "paired"])
def test_arcs_of_a_variable_that_a_task_lacks_are_not_counted_for_it(prior):
    for seed in range(50, 56):
        problem = Problem(seed, n_tasks=3 + seed % 2, n=4, drop=True)
        model = plain(problem, prior=prior, penalty=0.9)
        penalty = edit_penalty(strength(0.9)) if prior == "edit" else paired_penalty(strength(0.9), problem.k)
        agrees(problem, model, problem.scorer(penalty), problem.separate())
        for task, graph in model.graphs_.items():
            assert set(graph.nodes) == set(problem.frames[task].columns)


@pytest.mark.parametrize("prior", ["edit", "paired"])
def test_structure_priors_have_the_exponent_of_the_joint_prior(prior):
    beliefs = {("a", "b"): 0.02, ("c", "a"): 0.95, ("b", "c"): 0.3}
    for seed in range(60, 66):
        problem = Problem(seed)
        odds = np.zeros((problem.n, problem.n))
        for (u, v), p in beliefs.items():
            odds["abc".index(u), "abc".index(v)] = np.log(p / (1 - p))
        rules = no_rules(problem.n)._replace(arcs=odds)
        model = plain(problem, prior=prior, penalty=0.8, structure_prior=beliefs)
        scorer = problem.scorer(
            edit_penalty(strength(0.8)) if prior == "edit" else paired_penalty(strength(0.8), problem.k),
            rules,
            exponent=lambda t, i, j, k=problem.k: 1 / (1 + (k - 1) * 0.8),
        )
        agrees(problem, model, scorer, problem.separate(rules))


def test_a_structure_priors_exponent_adds_up_the_penalties_of_pairs_of_tasks():
    beliefs = {("a", "b"): 0.02, ("c", "a"): 0.95}
    problem = Problem(70, n_tasks=3)
    odds = np.zeros((problem.n, problem.n))
    odds[0, 1], odds[2, 0] = np.log(0.02 / 0.98), np.log(0.95 / 0.05)
    rules = no_rules(problem.n)._replace(arcs=odds)
    penalties = np.array([[0, 0.9, 0.5], [0.9, 0, 0.5], [0.5, 0.5, 0]])
    model = plain(problem, prior="paired", penalty=0.5, task_penalty={(0, 1): 0.9}, structure_prior=beliefs)
    scorer = problem.scorer(
        paired_penalty(None, 3, between=-np.log1p(-penalties)),
        rules,
        exponent=lambda t, i, j: 1 / (1 + penalties[t].sum()),
    )
    agrees(problem, model, scorer, problem.separate(rules))


@pytest.mark.parametrize("options", [{}, {"tabu": 0}, {"restarts": 3}, {"prior": "paired"}, {"criterion": "bic"}])
def test_a_penalty_of_0_gives_exactly_the_separate_structures(options):
    for seed in range(5):
        frames = Problem(seed).frames
        together = UniformNets(penalty=0, random_state=1, **options).fit(frames)
        apart = UniformNets(sharing="none", random_state=1, **options).fit(frames)
        assert together.log_score_ == apart.log_score_
        assert (together.penalty_, together.strength_) == (0, 0)
        for t, graph in apart.graphs_.items():
            assert list(together.graphs_[t].edges) == list(graph.edges)


def literal_tsk(problem, criterion, max_parents, tabu, **options):
    """Section 3.1 to the letter: one table of all rows with a column TSK, which must be a parent of every variable."""
    table = pd.concat(problem.frames.values(), ignore_index=True)
    table["TSK"] = pd.Categorical(np.repeat(np.arange(problem.k), [len(task.codes) for task in problem.tasks]))
    model = UniformNets(
        sharing="none",
        criterion=criterion,
        ess=1.5 * problem.k,
        max_parents=None if max_parents is None else max_parents + 1,
        required=[("TSK", name) for name in table.columns if name != "TSK"],
        tabu=tabu,
        restarts=0,
        search="climb",
        **options,
    ).fit(table)
    # The family of TSK itself is the same whatever the structure.
    own = table["TSK"].cat.codes.to_numpy()[:, None]
    constant = log_family(own, [problem.k], 0, (), criterion, 1.5 * problem.k)
    graph = model.graphs_[0]
    graph.remove_node("TSK")
    return graph, model.log_score_ - constant


@pytest.mark.parametrize("criterion", ["bdeu", "k2", "bic"])
@pytest.mark.parametrize("max_parents", [None, 1])
@pytest.mark.parametrize("tabu", [0, 10])
def test_identical_structures_are_those_of_the_tsk_construction(criterion, max_parents, tabu):
    for seed in range(80, 86):
        problem = Problem(seed)
        wanted, score = literal_tsk(problem, criterion, max_parents, tabu)
        options = {"criterion": criterion, "ess": 1.5, "max_parents": max_parents, "tabu": tabu, "search": "climb"}
        models = [UniformNets(sharing="identical", **options).fit(problem.frames)]
        if criterion != "bic":
            models += [
                UniformNets(penalty=1, prior=prior, **options).fit(problem.frames) for prior in ("edit", "paired")
            ]
        for model in models:
            for graph in model.graphs_.values():
                assert set(graph.edges) == set(wanted.edges)
            assert model.log_score_ == pytest.approx(score, abs=1e-8)
            assert model.penalty_ == 1
            assert model.strength_ == inf


def test_one_structure_prior_counts_once_for_identical_structures():
    beliefs = {("a", "b"): 0.02, ("c", "a"): 0.95}
    for seed in range(90, 94):
        problem = Problem(seed)
        wanted, score = literal_tsk(problem, "bdeu", None, 0, structure_prior=beliefs)
        model = UniformNets(sharing="identical", ess=1.5, tabu=0, structure_prior=beliefs).fit(problem.frames)
        assert all(set(graph.edges) == set(wanted.edges) for graph in model.graphs_.values())
        assert model.log_score_ == pytest.approx(score, abs=1e-8)


@pytest.mark.parametrize("kind", ["edit", "paired"])
@pytest.mark.parametrize("criterion", ["bdeu", "k2"])
def test_the_joint_search_itself_under_an_infinite_penalty_finds_identical_structures(kind, criterion):
    for seed in range(95, 100):
        problem = Problem(seed)
        n = problem.n
        constraints = Constraints(*no_rules(n)[:3])
        cases = lay_out([task.codes for task in problem.tasks], problem.cards)
        search = make_problem(cases, CRITERIA[criterion], 1.5, constraints)
        prior = joint_prior(kind, np.full((n, n), inf), problem.k, np.zeros((n, n)), {})
        found = learn_together(search, prior, [np.zeros((problem.k, n, n), dtype=bool)], Effort(0, 0, 0), 0)
        model = plain(problem, sharing="identical", criterion=criterion, ess=1.5)
        assert found.adjacency.tolist() == problem.learnt(model).tolist()
        assert found.score == pytest.approx(model.log_score_, abs=1e-8)


def test_identical_structures_are_the_common_one_less_what_a_task_lacks():
    for seed in range(100, 105):
        problem = Problem(seed, n_tasks=4, n=4, drop=True)
        model = UniformNets(sharing="identical", tabu=0).fit(problem.frames)
        whole = as_matrix(model.graphs_[0], 4)
        assert whole.any()
        for t, graph in model.graphs_.items():
            here = list(problem.tasks[t].here)
            assert as_matrix(graph, 4)[np.ix_(here, here)].tolist() == whole[np.ix_(here, here)].tolist()
        # The common structure that one climb over sums of the tasks' own scores ends with.
        agrees(problem, model, problem.scorer(edit_penalty(inf)), np.zeros((4, 4, 4), dtype=bool))


def test_pooled_structures_are_those_of_one_table_with_all_rows():
    for seed in range(110, 114):
        problem = Problem(seed)
        model = plain(problem, sharing="pooled", ess=2.0)
        everything = Task(np.concatenate([task.codes for task in problem.tasks]), tuple(range(problem.n)))
        scorer = Scorer([everything], problem.cards, no_rules(problem.n), ess=2.0)
        wanted = scorer.climb(np.zeros((1, problem.n, problem.n), dtype=bool))
        assert problem.learnt(model).tolist() == np.repeat(wanted, problem.k, axis=0).tolist()
        assert model.log_score_ == pytest.approx(scorer.total(wanted), abs=1e-8)


@pytest.mark.parametrize("prior", ["edit", "paired"])
@pytest.mark.parametrize("search", ["climb", "classes"])
def test_more_effort_finds_better_structures_and_their_scores_are_their_own(prior, search):
    gained = []
    for seed in range(120, 140):
        problem = Problem(seed)
        hard = UniformNets(prior=prior, penalty=0.9, random_state=0, search=search, restarts=2).fit(problem.frames)
        gained.append(hard.log_score_ - plain(problem, prior=prior, penalty=0.9).log_score_)
        penalty = edit_penalty(strength(0.9)) if prior == "edit" else paired_penalty(strength(0.9), problem.k)
        found = problem.learnt(hard)
        assert all(is_acyclic(structure) for structure in found)
        assert hard.log_score_ == pytest.approx(problem.scorer(penalty).total(found), abs=1e-8)
    assert np.mean(gained) > 0.1


@pytest.mark.parametrize("kind", ["edit", "paired"])
def test_tabu_and_restarts_of_the_joint_search_never_end_lower_than_its_plain_climb(kind):
    for seed in range(200, 240):
        problem = Problem(seed)
        n = problem.n
        cases = lay_out([task.codes for task in problem.tasks], problem.cards)
        search = make_problem(cases, CRITERIA["bdeu"], 1.0, Constraints(*no_rules(n)[:3]))
        prior = joint_prior(kind, np.full((n, n), strength(0.8)), problem.k, np.zeros((n, n)), {})
        start = np.zeros((problem.k, n, n), dtype=bool)
        scores = [
            learn_together(search, prior, [start], Effort(tabu, restarts, 3), 0).score
            for tabu, restarts in [(0, 0), (0, 4), (10, 0), (10, 4)]
        ]
        assert min(scores) == pytest.approx(scores[0], abs=1e-7)
        assert scores[3] >= scores[2] - 1e-7


def test_a_start_for_each_task_is_where_its_search_begins():
    problem = Problem(141, n_tasks=3, n=4)
    start = {0: [("d", "a")], 2: [("b", "a"), ("c", "b")]}
    begin = np.zeros((3, 4, 4), dtype=bool)
    begin[0, 3, 0] = begin[2, 1, 0] = begin[2, 2, 1] = True
    model = UniformNets(tabu=0, penalty=0.9, start=start).fit(problem.frames)
    separate = np.array(
        [Scorer([task], problem.cards, no_rules(4)).climb(begin[t : t + 1])[0] for t, task in enumerate(problem.tasks)]
    )
    agrees(problem, model, problem.scorer(edit_penalty(strength(0.9))), separate)


@pytest.mark.parametrize("sharing", ["identical", "joint"])
def test_a_start_for_each_task_still_ends_in_identical_structures_where_these_are_asked_for(sharing):
    for seed in range(150, 156):
        problem = Problem(seed, n_tasks=3, n=4)
        start = {0: [("d", "a")], 1: [("a", "d")], 2: [("b", "a"), ("c", "b")]}
        model = UniformNets(tabu=0, penalty=1, sharing=sharing, start=start).fit(problem.frames)
        found = problem.learnt(model)
        assert (found == found[0]).all()
        assert model.log_score_ == pytest.approx(problem.scorer(edit_penalty(inf)).total(found), abs=1e-8)


@pytest.mark.parametrize("tabu", [0, 10])
def test_a_pair_of_variables_with_a_penalty_of_1_is_the_same_in_all_tasks(tabu):
    for seed in range(160, 170):
        problem = Problem(seed, n=4)
        model = UniformNets(tabu=tabu, penalty=0.2, arc_penalty={("a", "b"): 1, ("c", "d"): 1}).fit(problem.frames)
        found = problem.learnt(model)
        for i, j in [(0, 1), (1, 0), (2, 3), (3, 2)]:
            assert len(set(found[:, i, j].tolist())) == 1
        strengths = np.full((4, 4), strength(0.2))
        strengths[0, 1] = strengths[1, 0] = strengths[2, 3] = strengths[3, 2] = inf
        assert model.log_score_ == pytest.approx(problem.scorer(edit_penalty(strengths)).total(found), abs=1e-8)


@pytest.mark.parametrize("tabu", [0, 10])
def test_two_tasks_with_a_penalty_of_1_have_the_same_structure(tabu):
    for seed in range(170, 180):
        problem = Problem(seed, n_tasks=3, n=4)
        model = UniformNets(tabu=tabu, prior="paired", penalty=0.2, task_penalty={(0, 2): 1}).fit(problem.frames)
        found = problem.learnt(model)
        assert found[0].tolist() == found[2].tolist()
        between = np.full((3, 3), strength(0.2))
        between[0, 2] = between[2, 0] = inf
        scorer = problem.scorer(paired_penalty(None, 3, between=between))
        assert model.log_score_ == pytest.approx(scorer.total(found), abs=1e-8)


def test_edits_that_cost_nothing_stay_free_at_a_penalty_of_1():
    # Reversals are free, so tasks need to agree only on which variables are linked.
    for seed in range(180, 186):
        problem = Problem(seed, n_tasks=3, n=4)
        model = UniformNets(penalty=1, costs={"reverse": 0.0}, criterion="k2", tabu=0).fit(problem.frames)
        scorer = problem.scorer(edit_penalty(inf, reverse=0.0), score="k2")
        found = problem.learnt(model)
        assert max(gain for gain, _ in scorer.neighbours(found)) <= 1e-7


@pytest.mark.parametrize("prior", ["edit", "paired"])
def test_a_task_gets_the_arc_that_its_kin_show_from_the_first_column_to_the_second(prior):
    cells = [[0, 0], [0, 1], [1, 0], [1, 1]]
    shows, hints = (np.repeat(cells, counts, axis=0) for counts in ([20, 3, 3, 20], [6, 4, 4, 6]))
    gains = [log_family(rows, [2, 2], 1, (0,)) - log_family(rows, [2, 2], 1, ()) for rows in (shows, hints)]
    assert gains[0] > -gains[1] > 0
    frames = {"x": as_frame(shows, [2, 2]), "y": as_frame(hints, [2, 2])}
    separate = UniformNets(sharing="none").fit(frames)
    assert [list(graph.edges) for graph in separate.graphs_.values()] == [[("a", "b")], []]
    for tabu in (0, 10):
        joint = UniformNets(prior=prior, penalty=0.99, tabu=tabu).fit(frames)
        assert [list(graph.edges) for graph in joint.graphs_.values()] == [[("a", "b")]] * 2
