"""Judgements against the expected losses of equations 1.2 and 3.1, worked out by hand."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from typing import Any

import pytest

from kinfolk_assistant.learning.costs import Costs
from kinfolk_assistant.learning.judging import judge
from kinfolk_assistant.learning.model import Kin, Reason, TeamModel
from tests.assistant.learning.made_up import request, rows_by_rule


class Certain:
    """A model of one probability."""

    def __init__(self, probability: float | None) -> None:
        self.known = probability

    def probability(self, values: Any, user: str) -> float | None:
        return self.known

    def reasons(self, values: Any, user: str) -> list[Reason]:
        return [Reason("conflict", "no", 1.0)]

    def kin(self, user: str) -> list[Kin]:
        return [Kin("bob@example.org", 0.5)]


def action_at(probability: float, costs: Costs) -> str:
    return judge(Certain(probability), request(), "ann@example.org", costs).action  # type: ignore[arg-type]


PROBABILITIES = [i / 40 for i in range(41)]


@pytest.mark.parametrize("costs", [Costs(*c) for c in product((0.5, 1.0, 4.0), (0.25, 1.0, 3.0), (0.05, 0.2, 1.1))])
def test_no_other_action_has_a_smaller_expected_loss(costs: Costs) -> None:
    for p in PROBABILITIES:
        # Equation 1.2: what each action costs if the user would have accepted, and if not.
        losses = {
            "accept": p * 0.0 + (1 - p) * costs.false_accept,
            "decline": p * costs.false_decline + (1 - p) * 0.0,
            "ask": costs.ask,
        }
        judgement = judge(Certain(p), request(), "ann@example.org", costs)  # type: ignore[arg-type]
        assert judgement.expected_losses == pytest.approx(losses)
        assert losses[judgement.action] == pytest.approx(min(losses.values()))


@pytest.mark.parametrize(("false_accept", "false_decline"), [(1.0, 1.0), (4.0, 1.0), (1.0, 4.0), (3.0, 5.0)])
def test_where_asking_is_too_dear_a_request_is_accepted_above_the_threshold_of_equation_3_1(
    false_accept: float, false_decline: float
) -> None:
    threshold = false_accept / (false_decline + false_accept)
    costs = Costs(false_accept, false_decline, ask=100.0)
    for p in PROBABILITIES:
        assert action_at(p, costs) == ("accept" if p > threshold else "decline")


def test_the_user_is_asked_between_the_two_probabilities_at_which_a_wrong_answer_costs_as_much_as_asking() -> None:
    costs = Costs(false_accept=2.0, false_decline=1.0, ask=0.3)
    assert [action_at(p, costs) for p in (0.29, 0.31, 0.84, 0.86)] == ["decline", "ask", "ask", "accept"]


def test_a_tie_is_put_before_the_user() -> None:
    assert action_at(0.75, Costs(1.0, 1.0, ask=0.25)) == "ask"
    assert action_at(1.0, Costs(1.0, 1.0, ask=0.0)) == "ask"
    assert action_at(0.5, Costs(0.0, 0.0, ask=0.0)) == "ask"


@pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", Costs._fields)
def test_a_cost_that_is_no_finite_number_above_zero_is_refused_by_name(name: str, cost: float) -> None:
    with pytest.raises(ValueError, match=f"The cost {name} is {cost}; it needs"):
        judge(None, request(), "ann@example.org", Costs()._replace(**{name: cost}))


@pytest.mark.parametrize("model", [None, Certain(None)])
def test_with_nothing_learnt_the_user_is_asked(model: Any) -> None:
    assert judge(model, request(), "ann@example.org", Costs(ask=100.0)) == ("ask", None, {}, [], [])


def test_a_judgement_carries_what_the_model_says_of_reasons_and_kin() -> None:
    judgement = judge(Certain(0.5), request(), "ann@example.org", Costs())  # type: ignore[arg-type]
    assert judgement[3:] == ([Reason("conflict", "no", 1.0)], [Kin("bob@example.org", 0.5)])


def test_judging_from_an_archive_loads_neither_scikit_learn_nor_numba_nor_polars(tmp_path: Any) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(TeamModel.fit(rows_by_rule("ann@example.org", 8, 0, "conflict", ("no",))).to_bytes())
    program = (
        "import sys, pathlib\n"
        "from kinfolk_assistant.learning.costs import Costs\n"
        "from kinfolk_assistant.learning.judging import judge\n"
        "from kinfolk_assistant.learning.model import TeamModel\n"
        "model = TeamModel.from_bytes(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "assert judge(model, {'conflict': 'no'}, 'ann@example.org', Costs()).probability is not None\n"
        "print([name for name in ('sklearn', 'numba', 'polars', 'scipy', 'pandas') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(archive)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
