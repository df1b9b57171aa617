"""Hyper-parameters that are learnt: what they maximise, and that they are found where they are known."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import dirichlet_multinomial

import kinfolk
from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB
from kinfolk.naive_bayes.inference import clustered
from kinfolk.naive_bayes.inference.empirical_bayes import learn_feature_prior
from kinfolk.naive_bayes.inference.fitting import learn_label_prior, packed_keys
from kinfolk.tasks.statistics import Layout


def made_up_tasks(rng, n_tasks, n_rows, strength, n_values=4, n_features=3):
    """Tasks in one cluster each, with label rates from Beta(strength / 2, strength / 2)."""
    rates = rng.beta(strength / 2, strength / 2, size=n_tasks)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = (rng.random(len(task)) < rates[task]).astype(int)
    theta = rng.dirichlet(np.ones(n_values), size=(2, n_features))
    x = np.array([[rng.choice(n_values, p=theta[label, f]) for f in range(n_features)] for label in y])
    return x.astype(str), y, task


@pytest.mark.parametrize("strength", [2.0, 10.0, 40.0])
def test_the_strength_of_the_labels_prior_is_found(strength):
    rng = np.random.default_rng(3)
    rates = rng.dirichlet([0.3 * strength, 0.7 * strength], size=600)
    found = learn_label_prior(rng.multinomial(40, rates))
    assert found.sum() == pytest.approx(strength, rel=0.25)
    assert found[1] / found.sum() == pytest.approx(0.7, abs=0.03)


def test_the_labels_prior_maximises_their_marginal_under_a_gamma_prior():
    counts = np.array([[5, 1], [2, 4], [0, 3], [7, 7]])

    def score(prior):
        strength = prior.sum()
        marginal = sum(dirichlet_multinomial.logpmf(n, prior, n.sum()) for n in counts)
        return marginal + np.log(prior / strength).sum() + 2.0 * (np.log(strength) - strength / 20.0)

    best = learn_label_prior(counts)
    for factor in (0.9, 1.1):
        for y in range(2):
            changed = best.copy()
            changed[y] *= factor
            assert score(changed) < score(best)


def test_tasks_of_one_row_each_leave_the_strength_to_its_prior():
    assert learn_label_prior(np.array([[1, 0], [0, 1]] * 50)).sum() == pytest.approx(20.0, rel=0.01)


def test_a_label_that_no_row_has_is_never_impossible():
    assert (learn_label_prior(np.array([[5, 0], [3, 0]])) > 0.0).all()


def test_the_strengths_of_the_features_are_found():
    rng = np.random.default_rng(4)
    layout = Layout(2, np.array([3, 5]))
    strengths = np.array([2.0, 30.0])
    means = [rng.dirichlet(np.full(n, 5.0), size=2) for n in (3, 5)]
    blocks = np.empty((400, layout.n_cells), dtype=np.int64)
    for y in range(2):
        for f in range(2):
            theta = rng.dirichlet(strengths[f] * means[f][y], size=400)
            first = y * layout.width + layout.offsets[f]
            blocks[:, first : first + layout.n_values[f]] = rng.multinomial(50, theta)
    learnt = learn_feature_prior(blocks, np.ones(400), layout)
    assert np.allclose(learnt.strengths, strengths, rtol=0.15)
    found = learnt.pseudo_counts(layout).reshape(2, -1)
    assert np.allclose(found[:, 3:] / found[:, 3:].sum(axis=1, keepdims=True), means[1], atol=0.03)


def test_improbable_blocks_have_no_say_in_the_features_prior():
    layout = Layout(1, np.array([2]))
    blocks = np.array([[9, 1], [8, 2], [0, 500]])
    kept = learn_feature_prior(blocks, np.array([1.0, 1.0, 1e-6]), layout)
    alone = learn_feature_prior(blocks[:2], np.ones(2), layout)
    assert np.array_equal(kept.pseudo_counts(layout), alone.pseudo_counts(layout))


def test_learning_the_concentration_raises_the_evidence_of_exact_inference():
    """EM never lowers what it maximises: the evidence times the density of log a under a Gamma(1, 1) prior."""
    rng = np.random.default_rng(5)
    x, y, task = made_up_tasks(rng, 6, 12, 5.0)

    def penalised(concentration):
        model = ClusteredNB(inference="exact", concentration=concentration, label_prior=1.0).fit(x, y, task=task)
        return model.log_evidence_ + np.log(model.concentration_) - model.concentration_

    learnt = ClusteredNB(inference="exact", concentration="learn", label_prior=1.0).fit(x, y, task=task).concentration_
    assert penalised(learnt) > penalised(1.0)
    assert penalised(learnt) > max(penalised(learnt / 2), penalised(learnt * 2))


def test_sampled_concentrations_agree_with_those_learnt_by_em():
    rng = np.random.default_rng(6)
    x, y, task = made_up_tasks(rng, 30, 20, 5.0)
    kind = {"label_prior": 1.0, "random_state": 0, "concentration": "learn"}
    by_em = ClusteredNB(**kind).fit(x, y, task=task)
    sampled = ClusteredNB(inference="gibbs", **kind).fit(x, y, task=task)
    assert sampled.concentration_ == pytest.approx(by_em.concentration_, abs=0.3)
    assert sampled.posterior_.concentrations.std() > 0.0


@pytest.mark.filterwarnings("ignore:.*had not settled:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model", [NoSharingNB, CompleteSharingNB, PrototypeNB, ClusteredNB], ids=lambda model: model.__name__
)
def test_what_was_learnt_is_kept_in_the_saved_model(tmp_path, model):
    x, y, task = made_up_tasks(np.random.default_rng(7), 8, 15, 5.0)
    fitted = model(label_prior="learn", feature_prior="learn", temper="learn", random_state=0).fit(x, y, task=task)
    kinfolk.save(fitted, tmp_path / "model.kinfolk")
    again = kinfolk.load(tmp_path / "model.kinfolk", estimator=True)
    assert np.array_equal(again.temper_, fitted.temper_)
    assert np.array_equal(again.label_prior_, fitted.label_prior_)
    assert np.allclose(again.predict_proba(x, task=task), fitted.predict_proba(x, task=task))
    predictor = kinfolk.load(tmp_path / "model.kinfolk")
    assert np.allclose(predictor.predict_proba(x, task=task), fitted.predict_proba(x, task=task))


def test_learnt_hyper_parameters_predict_better_than_ones_where_tasks_have_few_rows():
    rng = np.random.default_rng(8)
    x, y, task = made_up_tasks(rng, 60, 30, 30.0)
    train = np.arange(len(y)) % 30 < 3
    kept = np.flatnonzero(~train)
    losses = {}
    for given in ("learn", 1.0):
        model = NoSharingNB(label_prior=given, feature_prior=given, temper=given)
        model.fit(x[train], y[train], task=task[train])
        own = model.predict_log_proba(x[kept], task=task[kept])[np.arange(len(kept)), y[kept]]
        losses[given] = -own.mean()
    assert losses["learn"] < 0.95 * losses[1.0]


def test_rates_that_are_the_same_for_labels_take_each_label_of_a_block_as_a_block():
    rng = np.random.default_rng(9)
    layout = Layout(2, np.array([3, 5]))
    counts = rng.integers(30, size=(4, layout.n_counts))
    learnt = learn_feature_prior(counts, np.ones(4), layout, same_for_labels=True)
    one_label = learn_feature_prior(counts.reshape(8, -1), np.ones(8), Layout(1, np.array([3, 5])))
    assert np.array_equal(learnt.strengths, one_label.strengths)
    assert np.array_equal(learnt.pseudo_counts(layout), np.tile(one_label.pseudo_counts(Layout(1, [3, 5])), 2))


@pytest.mark.parametrize("model", [CompleteSharingNB, PrototypeNB], ids=lambda model: model.__name__)
def test_with_few_rows_of_many_values_a_learnt_prior_of_all_tasks_predicts_better_than_ones(model):
    """Some values common and many rare, most of these seen with one label only: alone they would tell too much."""
    rng = np.random.default_rng(10)
    rates = [rng.dirichlet(10.0 * common + 1e-3, size=2) for common in rng.dirichlet(np.full(30, 0.3), size=6)]
    y, task = rng.integers(2, size=1_200), np.arange(1_200) % 20
    x = np.column_stack([[rng.choice(30, p=of[label]) for label in y] for of in rates])
    train, kept = np.arange(60), np.arange(60, 1_200)
    losses = {}
    for given in ("learn", 1.0):
        fitted = model(feature_prior=given, random_state=0).fit(x[train].astype(str), y[train], task=task[train])
        own = fitted.predict_log_proba(x[kept].astype(str), task=task[kept])[np.arange(len(kept)), y[kept]]
        losses[given] = -own.mean()
    assert losses["learn"] < losses[1.0]


def test_an_unknown_word_for_a_hyper_parameter_is_refused_with_its_name():
    for name in ("label_prior", "feature_prior", "temper", "concentration"):
        with pytest.raises(ValueError, match=name):
            ClusteredNB(**{name: "guess"}).fit([["a"], ["b"]], [0, 1])


def test_the_marginal_that_scipy_gives_is_ours_without_the_multinomial_coefficient():
    """Guards the oracle used above: SciPy's has a factor that does not depend on the prior."""
    n, prior = np.array([3, 2]), np.array([1.5, 2.5])
    ours = gammaln(prior + n).sum() - gammaln(prior.sum() + 5) - gammaln(prior).sum() + gammaln(prior.sum())
    assert dirichlet_multinomial.logpmf(n, prior, 5) - ours == pytest.approx(np.log(10.0))


@pytest.fixture
def ran(monkeypatch):
    """Names of the algorithms of clustering, in the order in which they are called."""
    names = []
    for name, algorithm in clustered.ALGORITHMS.items():
        monkeypatch.setitem(
            clustered.ALGORITHMS, name, lambda *given, _name=name, _run=algorithm: names.append(_name) or _run(*given)
        )
    return names


FOUR = {"y": ["yes", "no"] * 20, "task": np.repeat(["ann", "bob", "cid", "eve"], 10)}
LETTERS, NUMBERS = np.tile([["a"], ["b"]], (20, 1)), np.arange(40.0)[:, None] % 7 + 0.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("inference", "learns_by"), [("gibbs", "bhc"), ("exact", "exact"), ("bhc", "bhc")])
def test_a_sampler_learns_from_a_quicker_algorithm_and_others_from_themselves(ran, inference, learns_by):
    ClusteredNB(inference=inference, feature_prior="learn", n_chains=1, n_draws=5, random_state=0).fit(LETTERS, **FOUR)
    assert ran[-1] == inference
    assert set(ran[:-1]) == {learns_by}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("X", "many", "learns_by"),
    [(LETTERS, 4, "bhc"), (LETTERS, 3, "variational"), (NUMBERS, 3, "randomised-bhc")],
    ids=["not many", "many", "many with numbers"],
)
def test_a_sampler_of_many_tasks_learns_from_an_algorithm_for_many(ran, monkeypatch, X, many, learns_by):
    monkeypatch.setattr(clustered, "_MAX_BHC_TASKS", many)
    numeric = {} if X is LETTERS else {"numeric": "gaussian"}
    ClusteredNB(inference="gibbs", feature_prior="learn", n_chains=1, n_draws=5, **numeric).fit(X, **FOUR)
    assert ran[-1] == "gibbs"
    assert set(ran[:-1]) == {learns_by}


def test_a_sampler_that_learns_the_concentration_alone_draws_it_and_has_no_need_of_another(ran):
    model = ClusteredNB(inference="gibbs", concentration="learn", n_chains=1, n_draws=5, random_state=0)
    model.fit(LETTERS, **FOUR)
    assert ran == ["gibbs"]


def test_learning_that_settles_says_nothing_and_stops(recwarn):
    X, y, task = np.tile([["a"], ["b"]], (60, 1)), ["yes", "no"] * 60, np.repeat(np.arange(6), 20)
    ClusteredNB(feature_prior="learn", concentration="learn").fit(X, y, task=task)
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize("n_columns", [1, 5, 40])
def test_packed_codes_sort_as_the_codes_do_column_by_column(n_columns):
    rng = np.random.default_rng(n_columns)
    n_values = rng.integers(1, 9, n_columns)
    columns = [rng.integers(-1, n, 300) for n in n_values]
    packed = packed_keys(columns, n_values.tolist())
    assert len(packed) < n_columns or n_columns == 1
    np.testing.assert_array_equal(np.lexsort(packed), np.lexsort(columns))
