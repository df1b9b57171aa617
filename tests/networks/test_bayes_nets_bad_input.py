"""What BayesNets cannot learn from is refused in one sentence that names the column, row, task or parameter."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from kinfolk import BayesNets


def table(seed, names="abcd", n_rows=40):
    rng = np.random.default_rng(seed)
    drawn = pd.DataFrame({name: rng.choice(["x", "y"], n_rows) for name in names})
    drawn.iloc[:2] = [["x"] * len(names), ["y"] * len(names)]
    return drawn


TABLES = {"s": table(0), "t": table(1)}


def refusal(data=TABLES, task=None, **parameters):
    """The message of the refusal: one sentence, no line breaks."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the callers look at the message
        BayesNets(**parameters).fit(data, task=task)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


def says(message, *parts):
    for part in parts:
        assert part in message, message


def gappy():
    table = TABLES["t"].copy()
    table.loc[7, "c"] = None
    return table


def test_wrong_tiers_are_named():
    says(refusal(tiers=[["a"], ["q"]]), "tiers", "'q'")
    says(refusal(tiers=[["a"], ["b", "a"]]), "tiers", "'a'", "two of them")
    says(refusal(tiers=["a", "b"]), "tiers=['a', 'b']", "a list of lists of variables")
    says(refusal(tiers=7), "tiers=7", "a list of lists of variables")
    says(refusal(tiers=[["a"], ["b"]], required=[("b", "a")]), "'b' → 'a'", "earlier tier")
    says(refusal(tiers=[["a"], ["b"]], search="classes"), "tiers")


def test_a_column_that_is_constant_in_one_task_alone_is_learnt_from():
    model = BayesNets().fit({"s": TABLES["s"].assign(b="x"), "t": TABLES["t"]})
    assert model.networks_["s"].states[1] == ("x", "y")


def test_more_than_255_states():
    def of(n_states):
        return pd.DataFrame({"id": [f"v{i % n_states}" for i in range(600)], "b": ["x", "y"] * 300})

    says(refusal(of(256)), "column 'id'", "256 states", "255")
    says(refusal(of(300)), "column 'id'", "300 states")
    assert len(BayesNets().fit(of(255)).networks_[0].states[0]) == 255


@pytest.mark.parametrize(("n_rows", "words"), [(0, "no rows"), (1, "1 sample (row)")])
def test_a_task_of_no_row_or_one(n_rows, words):
    says(refusal({"s": TABLES["s"], "t": TABLES["t"].head(n_rows)}), "task 't'", words, "at least 2")
    assert BayesNets().fit({"s": TABLES["s"], "t": TABLES["t"].head(2)}).tasks_.tolist() == ["s", "t"]


def test_a_task_of_one_row_in_a_table_of_all():
    says(refusal(TABLES["s"], ["p"] * 39 + ["q"]), "task 'q'", "1 sample (row)")


def test_tables_without_rows_or_columns():
    says(refusal(TABLES["s"].head(0)), "0 sample(s)")
    says(refusal({}), "0 feature(s)")
    says(refusal([1, 2, 3]), "2D")


@pytest.mark.parametrize("sharing", ["joint", "identical"])
def test_two_tasks_without_a_common_variable(sharing):
    apart = {"s": TABLES["s"][["a", "b"]], "t": TABLES["t"][["c", "d"]]}
    says(refusal(apart, sharing=sharing), "task 's'", "no variable in common")
    assert BayesNets(sharing="none").fit(apart).graphs_["t"].number_of_nodes() == 2


def test_pooled_rows_that_lack_a_variable():
    says(refusal({"s": TABLES["s"], "t": table(2, "cd")}, sharing="pooled"), "task 't'", "'a'")


def test_contradictory_required_arcs():
    says(refusal(required=["ab"]), "required", "'ab' is not an arc")
    says(refusal(required=[("a", "b"), ("b", "a")]), "required", "cycle", "a → b")
    says(refusal(required=[("a", "b"), ("b", "c"), ("c", "a")]), "required", "cycle", "a → b", "b → c")
    says(refusal(required=[("a", "b")], forbidden=[("a", "b")]), "'a' → 'b'", "both required and forbidden")
    says(refusal(required=[("a", "d"), ("b", "d")], max_parents=1), "'d'", "max_parents=1")


def test_a_start_graph_that_cannot_be():
    says(refusal(start=[("a", "b"), ("b", "a")]), "start graph", "task 's'", "cycle", "a → b")
    says(refusal(start={"t": [("a", "b"), ("b", "c"), ("c", "a")]}), "start graph", "task 't'", "c → a")
    says(refusal(start=nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")])), "start graph", "cycle")
    says(refusal(start=[("a", "b")], required=[("b", "a")]), "start graph", "cycle")
    says(refusal(start=[("a", "b")], forbidden=[("a", "b")]), "start", "'a' → 'b'", "forbidden")
    says(refusal(start=[("a", "d"), ("b", "d")], max_parents=1), "start", "'d'", "max_parents=1")
    says(refusal(start={"u": []}), "start", "'u'", "['s', 't']")
    says(refusal(start=5), "start=5")


@pytest.mark.parametrize("parameter", ["required", "forbidden", "start"])
def test_arcs_that_are_none(parameter):
    says(refusal(**{parameter: [("a", "zz")]}), parameter, "'zz' is not a variable", "a, b, c, d")
    says(refusal(**{parameter: [("a", "a")]}), parameter, "('a', 'a')", "itself")
    says(refusal(**{parameter: [("a",)]}), parameter, "('a',)", "pair of variables")


def test_missing_values_unless_em_is_asked_for():
    says(refusal({"s": TABLES["s"], "t": gappy()}), "column 'c'", "row 7", "task 't'", 'missing="em"')
    stacked = pd.concat([TABLES["s"], gappy()], ignore_index=True)
    says(refusal(stacked, ["s"] * 40 + ["t"] * 40), "column 'c'", "row 47", "task 't'")


def test_what_missing_values_cannot_be_combined_with():
    gaps = {"s": TABLES["s"], "t": gappy()}
    says(refusal(gaps, missing="em", penalty="validate"), "validate", "complete rows")
    says(refusal(gaps, missing="em", bootstrap=2), "bootstrap", "complete rows")


def test_a_column_without_any_value():
    empty = {name: its.assign(b=None) for name, its in TABLES.items()}
    says(refusal(empty, missing="em"), "column 'b'", "no value in any row")


@pytest.mark.parametrize(
    "parameters",
    [
        {"sharing": "all"},
        {"sharing": None},
        {"prior": "uniform"},
        {"criterion": "aic"},
        {"search": "exact"},
        {"missing": "drop"},
        {"tables": "one"},
        {"tabu": -1},
        {"tabu": 1.5},
        {"restarts": -1},
        {"restarts": "1"},
        {"bootstrap": -2},
        {"bootstrap": True},
        {"ess": 0},
        {"ess": -1.0},
        {"ess": "1"},
        {"ess": np.nan},
        {"ess": np.inf},
        {"validation": 0.0},
        {"validation": 1},
        {"penalty": 1.5},
        {"penalty": -0.1},
        {"penalty": "strong"},
        {"penalty": None},
        {"penalty": True},
        {"penalty": np.nan},
        {"max_parents": -1},
        {"max_parents": 1.5},
        {"max_parents": True},
    ],
    ids=str,
)
def test_a_wrong_parameter_is_named_with_its_value(parameters):
    (name, value), *_ = parameters.items()
    says(refusal(**parameters), f"{name}={value!r}")


@pytest.mark.parametrize(
    ("costs", "prior", "word"),
    [
        ({"add": -1}, "edit", "'add'"),
        ({"reverse": np.inf}, "paired", "'reverse'"),
        ({"add": "dear"}, "edit", "add"),
        ({"flip": 1}, "edit", "flip"),
        ({"arc": 1}, "edit", "arc"),
        ({"remove": 1}, "paired", "remove"),
    ],
    ids=str,
)
def test_wrong_costs_are_named(costs, prior, word):
    says(refusal(costs=costs, prior=prior, penalty=0.5), word)


def test_wrong_structure_priors_are_named():
    says(refusal(structure_prior={("a", "q"): 0.5}), "structure_prior", "'q'")
    says(refusal(structure_prior={("a", "b"): 1.0}), "structure_prior", "('a', 'b')", "1.0", "required=")
    says(refusal(structure_prior=([("a", "b")], 3)), "structure_prior", "3")
    says(refusal(structure_prior=7), "structure_prior=7")


def test_wrong_penalties_of_pairs_of_variables_are_named():
    says(refusal(penalty=0.5, arc_penalty={("a", "q"): 0.5}), "arc_penalty", "'q'")
    says(refusal(penalty=0.5, arc_penalty={("a", "b"): 2}), "arc_penalty", "('a', 'b')", "2")
    says(refusal(arc_penalty={("a", "b"): -1}), "arc_penalty", "('a', 'b')")


def test_penalties_of_pairs_of_tasks_need_the_paired_prior_and_a_number():
    says(refusal(penalty=0.5, task_penalty={("s", "t"): 0.5}), "task_penalty", 'prior="paired"')
    says(refusal(prior="paired", task_penalty={("s", "t"): 0.5}), "task_penalty", "number")
    paired = {"prior": "paired", "penalty": 0.5}
    says(refusal(**paired, task_penalty={("s", "u"): 0.5}), "task_penalty", "('s', 'u')", "['s', 't']")
    says(refusal(**paired, task_penalty={("s", "s"): 0.5}), "task_penalty", "('s', 's')")
    says(refusal(**paired, task_penalty={("s", "t"): 5}), "task_penalty", "('s', 't')", "5")
    both = {"task_penalty": {("s", "t"): 0.5}, "arc_penalty": {("a", "b"): 0.5}}
    says(refusal(**paired, **both), "task_penalty", "arc_penalty")


@pytest.mark.parametrize("parameter", ["arc_penalty", "task_penalty"])
def test_penalties_that_are_no_mapping_are_refused(parameter):
    says(refusal(**{parameter: [("s", "t")]}, prior="paired", penalty=0.5), parameter)


def test_classes_are_searched_with_scores_that_do_not_tell_their_members_apart():
    says(refusal(search="classes", criterion="k2"), "classes", "bdeu")
    says(refusal(search="classes", required=[("a", "b")]), "classes", "required")
    one_way = {("a", "b"): 0.2, ("b", "a"): 0.3}
    for prior in ({("a", "b"): 0.2}, one_way, ([("a", "b")], 0.5)):
        says(refusal(search="classes", structure_prior=prior), "classes", "structure_prior", "both directions")


def test_a_task_said_twice_or_not_at_all():
    says(refusal(TABLES, ["s"]), "task=")
    says(refusal(TABLES["s"], ["s"]), "1 entries for 40 rows")
    says(refusal(TABLES["s"], task_column="zz"), "'zz'")
    says(refusal(TABLES["s"], ["s"] * 39 + [None]), "row 39", "task is missing")


def test_a_column_that_stands_twice():
    says(refusal({"s": pd.concat([TABLES["s"], TABLES["s"]], axis=1), "t": TABLES["t"]}), "column 'a'", "twice")


def test_infinite_numbers():
    heights = pd.DataFrame({"height": [0.5, 0.25, np.inf, 0.75] * 10, "b": ["x", "y"] * 20})
    says(refusal(heights), "column 'height'", "row 2", "infinity")
    says(refusal({"s": TABLES["s"], "t": heights}), "column 'height'", "row 2", "infinity")


def test_questions_that_do_not_say_which_task(tmp_path):
    model = BayesNets().fit(TABLES)
    with pytest.raises(ValueError, match="say which task each row belongs to"):
        model.score_samples(TABLES["s"])
    for ask in (lambda: model.sample(3), lambda: model.to_bif(tmp_path / "x.bif"), lambda: model.sample(1, task="u")):
        with pytest.raises(ValueError, match=r"\['s', 't'\]"):
            ask()
    with pytest.raises(ValueError, match="task 's': column 'z'"):
        model.score_samples({"s": TABLES["s"].assign(z="x")})


@pytest.mark.parametrize("n_rows", [-1, 1.5])
def test_a_number_of_rows_that_is_none_is_refused(n_rows):
    model = BayesNets().fit(TABLES["s"])
    with pytest.raises(ValueError, match=f"n_rows.*{n_rows}"):
        model.sample(n_rows)


def test_penalties_of_pairs_of_more_tasks_than_can_be():
    many = dict.fromkeys(range(13), TABLES["s"])
    message = refusal(many, prior="paired", penalty=0.5, task_penalty={(0, 1): 0.9})
    says(message, "task_penalty", "13 tasks", "at most 12", "exponentially")
