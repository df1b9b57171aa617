"""Counts and weights to 2⁴⁰, priors from 1e−12 to 1e12, tasks of one and of ten million rows, 10,000 categories, 32-bit
floats.

Expected values are computed with 60 digits by mpmath, from the closed forms.
"""

import numpy as np
import pytest
from mpmath import mp, mpf

import kinfolk
from kinfolk import ClusteredNB, CompleteSharingNB, LICAClassifier, NoSharingNB
from kinfolk.linear.model.weights import Sites, weights_given_sites
from kinfolk.networks.model.scores import score_table
from kinfolk.networks.model.scores.bdeu import BDeu
from kinfolk.networks.model.scores.dirichlet import no_rises
from tests.oracle import partitions

PRIORS = [1e-12, 1e-3, 1.0, 37.5, 1e6, 1e12]
FIXED = {"temper": 1.0, "concentration": 1.0}


def log_marginal(counts, prior):
    """Log probability of an ordered sequence with these counts under a symmetric Dirichlet prior."""
    counts = [mpf(int(n)) for n in counts]
    prior, total = mpf(prior), mpf(len(counts)) * mpf(prior)
    cells = sum((mp.loggamma(prior + n) - mp.loggamma(prior) for n in counts), mpf(0))
    return cells - (mp.loggamma(total + sum(counts)) - mp.loggamma(total))


def log_evidence(features, labels, label_prior, feature_prior):
    """Of one set of rows: labels, then every feature given the label."""
    of_features = (log_marginal(group, feature_prior) for label in features for group in label)
    return log_marginal(labels, label_prior) + sum(of_features, mpf(0))


def make_counts(sizes, seed=0, n_features=2, n_values=3):
    """Counts of tasks of given sizes, two labels, without missing values."""
    rng = np.random.default_rng(seed)
    labels = np.array([rng.multinomial(n, [0.3, 0.7]) for n in sizes])
    shares = rng.dirichlet(np.ones(n_values), size=(2, n_features))
    features = np.array([[[rng.multinomial(n, p) for p in shares[y]] for y, n in enumerate(own)] for own in labels])
    return features, labels


@pytest.fixture(autouse=True)
def sixty_digits():
    with mp.workdps(60):
        yield


@pytest.mark.parametrize("sizes", [[1, 7], [1, 10_000_000], [2**40, 3]], ids=str)
@pytest.mark.parametrize("prior", PRIORS)
def test_evidence_and_predictions_of_tasks_alone_are_those_of_sixty_digits(prior, sizes):
    features, labels = make_counts(sizes)
    model = NoSharingNB(label_prior=prior, feature_prior=prior, temper=1.0).fit_statistics(features, labels)
    expected = sum((log_evidence(f, y, prior, prior) for f, y in zip(features, labels, strict=True)), mpf(0))
    assert model.log_evidence_ == pytest.approx(float(expected), rel=1e-12, abs=1e-12)
    found = model.predict_proba([[0, 2], [1, 1]], task=[0, 1])
    for row, (task, x) in zip(found, ((0, (0, 2)), (1, (1, 1))), strict=True):
        joint = []
        for y in (0, 1):
            n = mpf(int(labels[task, y]))
            p = (n + mpf(prior)) / (mpf(int(labels[task].sum())) + 2 * mpf(prior))
            for f, value in enumerate(x):
                p *= (mpf(int(features[task, y, f, value])) + mpf(prior)) / (n + 3 * mpf(prior))
            joint.append(p)
        np.testing.assert_allclose(row, [float(p / sum(joint)) for p in joint], rtol=1e-12)


@pytest.mark.parametrize("sizes", [[1, 7, 30], [1, 10_000_000, 10_000_000]], ids=str)
@pytest.mark.parametrize("prior", PRIORS)
def test_partitions_weigh_what_they_weigh_with_sixty_digits(prior, sizes):
    """Exact sums over all partitions of three tasks: the similarity hangs on differences of evidence."""
    features, labels = make_counts(sizes, seed=1)
    options = {"label_prior": 1.0, "feature_prior": prior, **FIXED}
    model = ClusteredNB(inference="exact", **options).fit_statistics(features, labels)
    weights, together = [], []
    for partition in partitions(3):
        # The Chinese restaurant: concentration to the number of clusters, a factorial for each.
        log_p = -mp.loggamma(mpf(4))
        for cluster in set(partition):
            members = [t for t in range(3) if partition[t] == cluster]
            log_p += mp.loggamma(mpf(len(members)))
            own = sum((log_marginal(g, prior) for label in features[members].sum(axis=0) for g in label), mpf(0))
            log_p += own
        weights.append(log_p)
        together.append([[partition[i] == partition[j] for j in range(3)] for i in range(3)])
    highest = max(weights)
    shares = np.array([float(mp.exp(w - highest)) for w in weights])
    expected = np.tensordot(shares / shares.sum(), np.array(together, dtype=float), axes=1)
    np.testing.assert_allclose(model.similarity_, expected, atol=1e-6)
    tree = ClusteredNB(inference="bhc", **options).fit_statistics(features, labels)
    assert np.isfinite(tree.log_evidence_)
    assert np.isfinite(tree.similarity_).all()


@pytest.mark.parametrize("prior", [1e-12, 1.0, 1e12])
def test_ten_thousand_categories(prior):
    features, labels = make_counts([5, 40, 3], n_features=1, n_values=10_000)
    model = CompleteSharingNB(label_prior=1.0, feature_prior=prior, temper=1.0).fit_statistics(features, labels)
    expected = log_evidence(features.sum(axis=0), labels.sum(axis=0), 1.0, prior)
    assert model.log_evidence_ == pytest.approx(float(expected), rel=1e-11)
    assert np.isfinite(model.predict_proba([[9_999]], task=[0])).all()


@pytest.mark.parametrize("inference", ["bhc", "variational", "gibbs", "randomised-bhc"])
def test_every_inference_stays_finite_beside_ten_million_rows(inference):
    features, labels = make_counts([1, 10_000_000, 2, 10_000_000, 1, 5])
    few = {"n_chains": 1, "n_burn_in": 2, "n_draws": 3} if inference == "gibbs" else {}
    model = ClusteredNB(inference=inference, random_state=0, temper=1.0, **few).fit_statistics(features, labels)
    proba = model.predict_proba(np.array([[0, 0], [2, 2]] * 3), task=np.arange(6))
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)


def test_32_bit_floats_are_the_numbers_that_they_are():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3)).astype(np.float32)
    rows[:, 2] *= np.float32(1e30)
    y, task = rng.integers(2, size=60), np.repeat([0, 1, 2], 20)
    for model in (NoSharingNB(temper=1.0), NoSharingNB(numeric="gaussian", temper=1.0), LICAClassifier(1)):
        answers = [model.fit(X, y, task=task).predict_proba(X, task=task) for X in (rows, rows.astype(np.float64))]
        np.testing.assert_array_equal(*answers)
        assert np.isfinite(answers[0]).all()


WEIGHTS = {
    "ten million rows": (lambda row, t: 1e7, 1e-9),
    "a task of ten million rows beside small ones": (lambda row, t: np.where(t == 0, 1e7, 1.0), 1e-6),
    "a row that weighs a million": (lambda row, t: np.where(row == 0, 1e6, 1.0), 1e-5),
    "a task of 2 to the 40 rows": (lambda row, t: np.where(t == 0, 2.0**40, 1.0), 1e-2),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_of_linear_models_are_those_of_sixty_digits(case):
    """Five tasks of two columns, both with weights of their own."""
    weigh, within = WEIGHTS[case]
    rng = np.random.default_rng(0)
    spread, scale = np.array([0.5, 2.0]), np.array([3.0, 1.0])
    precision, shift = np.zeros((5, 2, 2)), np.zeros((5, 2))
    for t in range(5):
        X, row_weight = rng.normal(size=(9, 2)), weigh(np.arange(9), t) * np.ones(9)
        X[:, 0] = 1.0
        precision[t], shift[t] = (X * row_weight[:, None]).T @ X, (X * row_weight[:, None]).T @ rng.normal(size=9)
    found = weights_given_sites(Sites(precision, shift, precision.sum(axis=0), shift.sum(axis=0)), spread, scale)
    # The common weights and those of every task as one Gaussian of twelve numbers.
    whole, known = mp.zeros(12), mp.zeros(12, 1)
    for i in range(2):
        whole[i, i] += mpf(scale[i]) ** -2
        for t in range(5):
            own = 2 + 2 * t
            whole[own + i, own + i] += mpf(spread[i]) ** -2
            for a in (i, own + i):
                known[a] += mpf(shift[t, i])
                for j in range(2):
                    for b in (j, own + j):
                        whole[a, b] += mpf(precision[t, i, j])
    mean = whole**-1 * known
    expected = np.array([[float(mean[i] + mean[2 + 2 * t + i]) for i in range(2)] for t in range(5)])
    np.testing.assert_allclose(found.means, expected, rtol=0, atol=within)


LINEAR = [
    kinfolk.HierarchicalClassifier(),
    kinfolk.HierarchicalRegressor(),
    kinfolk.ClusteredClassifier(n_chains=1, n_burn_in=1, n_draws=2, random_state=0),
    kinfolk.LICAClassifier(1),
    kinfolk.LICARegressor(1),
    kinfolk.TransferClassifier(n_folds=2, random_state=0),
    kinfolk.TransferRegressor(n_folds=2, random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:sample_weight lies between")
@pytest.mark.parametrize("which", ["a row", "a task", "all rows"])
@pytest.mark.parametrize("model", LINEAR, ids=lambda model: type(model).__name__)
def test_rows_that_weigh_2_to_the_40_leave_answers_finite(model, which):
    rng = np.random.default_rng(4)
    task, X = np.arange(24) % 3, rng.normal(size=(24, 2))
    y = (X[:, 0] + rng.normal(size=24) > 0).astype(int) if hasattr(model, "predict_proba") else X[:, 0] + task % 2
    heavy = {"a row": np.arange(24) == 2, "a task": task == 0, "all rows": np.ones(24, dtype=bool)}[which]
    model.fit(X, y, task=task, sample_weight=np.where(heavy, 2.0**40, 1.0))
    answers = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    assert np.isfinite(answers(X, task=task)).all()


def test_a_row_that_drowns_others_is_told_of():
    X, y, task = np.arange(24.0)[:, None] % 5, np.arange(24) % 2, np.arange(24) % 3
    weights = np.where(np.arange(24) == 3, 2e6, 1.0)
    with pytest.warns(
        UserWarning, match=r"^sample_weight lies between 1 and 2e\+06: beside a row that weighs more than"
    ):
        kinfolk.HierarchicalClassifier().fit(X, y, task=task, sample_weight=weights)
    kinfolk.HierarchicalClassifier().fit(X, y, task=task, sample_weight=weights.clip(0, 1e6))


@pytest.mark.parametrize("counts", [[[1, 0, 2], [7, 0, 0]], [[300, 5, 1], [0, 900, 2]], [[10_000_000, 0, 1]]], ids=str)
@pytest.mark.parametrize("ess", PRIORS)
@pytest.mark.parametrize("whole", [True, False])
def test_scores_of_families_of_networks_are_those_of_sixty_digits(ess, counts, whole):
    """BDeu of a variable of three values, by configuration of its parents, of which there are four."""
    given = np.array(counts, dtype=float)
    expected = sum((log_marginal(row, mpf(ess) / (4 * 3)) for row in counts), mpf(0))
    found = score_table(given.ravel(), (len(counts), 3, 1), 4.0, BDeu(ess, no_rises(1)), 0, whole)
    # Of ten million rows, a difference of two logs of Γ that are 150 million has seven decimals.
    assert found == pytest.approx(float(expected), rel=2e-11, abs=1e-7 if given.max() > 1e6 else 0.0)


@pytest.mark.parametrize("prior", [1e-12, 1e12])
@pytest.mark.parametrize(
    "model",
    [
        kinfolk.BayesNets(random_state=0),
        kinfolk.BayesNets(criterion="bhd", sharing="identical", random_state=0),
        kinfolk.BayesNets(missing="em", random_state=0),
    ],
    ids=["joint", "bhd", "em"],
)
def test_networks_stay_finite_whatever_their_prior(model, prior):
    rng = np.random.default_rng(0)
    rows, task = rng.integers(0, 3, (40, 3)).astype(str), np.r_[0, 0, np.arange(38) % 2 + 1]
    model.set_params(ess=prior).fit(rows, task=task)
    assert np.isfinite(model.log_score_)
    assert np.isfinite(model.score_samples(rows, task=task)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prior", [1e-12, 1e12])
@pytest.mark.parametrize("inference", ["gibbs", "variational"])
@pytest.mark.parametrize("kind", [kinfolk.SingleIHMM, kinfolk.SharedIHMM, kinfolk.NestedIHMM])
def test_hidden_markov_models_stay_finite_whatever_their_priors(kind, inference, prior):
    few = {"n_chains": 1, "n_burn_in": 3, "n_draws": 3} if inference == "gibbs" else {}
    priors = dict.fromkeys(("emission_strength", "state_concentration", "transition_concentration"), prior)
    model = kind(4, inference=inference, random_state=0, **few, **priors)
    symbols, lengths = np.random.default_rng(0).integers(0, 4, (120, 1)), [1, 19, *[10] * 10]
    task = list("abccddeeffgg")
    model.fit(symbols, lengths, task=task)
    assert np.isfinite(model.score_samples(symbols, lengths, task=task)).all()
