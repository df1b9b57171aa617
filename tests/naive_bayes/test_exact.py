"""Exact inference agrees with enumeration by an oracle that shares no code with the package."""

import numpy as np
import pytest

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB
from tests import oracle
from tests.problems import as_arguments, as_rows, priors, random_problems

SHAPES = [
    {"n_tasks": 2, "n_rows": 8},
    {"n_tasks": 3, "n_rows": 10, "n_labels": 3},
    {"n_tasks": 4, "n_rows": 12, "missing": 0.2},
    {"n_tasks": 5, "n_rows": 14, "n_features": 3, "n_values": 2},
    {"n_tasks": 6, "n_rows": 18, "missing": 0.1},
    {"n_tasks": 3, "n_rows": 9, "unlabelled": 0.34, "missing": 0.1},
]
PROBLEMS = [problem for i, shape in enumerate(SHAPES) for problem in random_problems(3, seed=i, **shape)]


def fitted(problem: oracle.Problem, **options: object) -> ClusteredNB:
    model = ClusteredNB(inference="exact", concentration=problem.concentration, **priors(problem), **options)
    return model.fit(**as_arguments(problem))


def new_rows(problem: oracle.Problem) -> np.ndarray:
    rng = np.random.default_rng(7)
    rows = np.array([[rng.integers(v) for v in problem.n_values] for _ in range(3)])
    rows[0, 0] = -1
    return rows


@pytest.mark.parametrize("problem", PROBLEMS)
def test_evidence_equals_the_sum_over_all_partitions_and_labellings(problem):
    model = fitted(problem)
    assert model.log_evidence_ == pytest.approx(oracle.log_evidence(problem), abs=1e-10)
    assert model.log_evidence_kind_ == "exact"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_similarity_equals_the_posterior_probability_of_sharing(problem):
    np.testing.assert_allclose(fitted(problem).similarity_, oracle.co_clustering(problem), atol=1e-10)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_partition_is_the_most_probable_one(problem):
    if (problem.labels >= 0).all():
        posterior = oracle.partition_posterior(problem)
        assert posterior[tuple(fitted(problem).partition_)] == pytest.approx(max(posterior.values()), abs=1e-10)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_labels_of_unlabelled_rows_have_their_exact_marginals(problem):
    np.testing.assert_allclose(fitted(problem).label_distributions_, oracle.label_marginals(problem), atol=1e-10)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("predictive", ["full", "averaged"])
def test_predictions_for_known_and_new_tasks_equal_the_exact_predictive(problem, predictive):
    if predictive == "averaged" and (problem.labels < 0).any():
        pytest.skip("with unlabelled rows eq. (4) is read in more than one way")
    model = fitted(problem, predictive=predictive)
    expected_of = oracle.predictive if predictive == "full" else oracle.predictive_paper
    rows = new_rows(problem)
    for task in [*range(problem.n_tasks), 99]:
        found = model.predict_proba(as_rows(rows), task=[task] * len(rows))
        expected = [expected_of(problem, x, None if task == 99 else task) for x in rows]
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if (p.labels >= 0).all()])
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (NoSharingNB(), "none"),
        (CompleteSharingNB(), "complete"),
        (CompleteSharingNB(share_labels=False), "complete-own-labels"),
    ],
)
def test_models_with_a_fixed_partition_equal_the_oracle(problem, model, name):
    model.set_params(**priors(problem)).fit(**as_arguments(problem))
    assert model.log_evidence_ == pytest.approx(oracle.log_evidence(problem, name), abs=1e-10)
    rows = new_rows(problem)
    for task in [*range(problem.n_tasks), 99]:
        found = model.predict_proba(as_rows(rows), task=[task] * len(rows))
        expected = [oracle.predictive(problem, x, None if task == 99 else task, model=name) for x in rows]
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_an_unseen_category_is_left_out_of_the_product():
    problem = PROBLEMS[0]
    model = fitted(problem)
    unseen = as_rows(np.array([[99, 0]]))
    missing = as_rows(np.array([[-1, 0]]))
    np.testing.assert_array_equal(model.predict_proba(unseen, task=[0]), model.predict_proba(missing, task=[0]))


def test_evidence_over_all_data_sets_of_a_size_sums_to_one():
    template = oracle.make_problem(
        [[0], [0], [0]], [0, 0, 0], [0, 0, 1], n_labels=2, n_values=[2], alpha=0.7, beta=0.4, concentration=1.3
    )
    total = 0.0
    for problem in oracle.all_data_sets(template):
        arguments = as_arguments(problem)
        # Rows that name every label, with weight zero, would be dropped: labels are declared instead.
        model = ClusteredNB(inference="exact", concentration=1.3, label_prior=0.7, feature_prior=0.4)
        model.partial_fit(arguments["X"], arguments["y"], classes=["y0", "y1"], task=arguments["task"])
        total += np.exp(model.log_evidence_)
    assert total == pytest.approx(1.0, abs=1e-12)
