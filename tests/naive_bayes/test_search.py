"""The bound from searching partitions, as a clustered model reports it."""

import numpy as np
import pytest

from kinfolk import ClusteredNB
from kinfolk.naive_bayes.inference.clustered import searched_evidence
from tests import oracle
from tests.naive_bayes.posed import posed_to
from tests.problems import as_arguments, priors, random_problems


@pytest.mark.parametrize("problem", random_problems(4, seed=400, n_tasks=5, n_rows=20))
def test_the_bound_lies_between_the_tree_s_and_the_exact_evidence(problem):
    model = ClusteredNB(concentration=problem.concentration, **priors(problem)).fit(**as_arguments(problem))
    exact = oracle.log_evidence(problem)
    found = searched_evidence(*posed_to(model), 0, model.tree_)
    assert found.kind == "lower bound"
    assert model.log_evidence_ < found.value <= exact + 1e-9
    assert found.value > exact - 0.2


def test_the_bound_depends_on_neither_names_nor_order_of_tasks():
    (problem,) = random_problems(1, seed=410, n_tasks=6, n_rows=24)
    arguments = as_arguments(problem)
    renamed = {**arguments, "task": np.array([3, 0, 5, 1, 4, 2])[problem.task]}
    values = []
    for given in (arguments, renamed):
        model = ClusteredNB(concentration=problem.concentration, **priors(problem)).fit(**given)
        values.append(searched_evidence(*posed_to(model), 0, model.tree_, n_sweeps=5).value)
    assert values[0] == pytest.approx(values[1], abs=1e-9)
