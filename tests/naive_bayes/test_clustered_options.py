"""ClusteredNB's options as a user meets them: a partition per feature, noisy copies, batches, evidence by choice."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk import ClusteredNB, PrototypeNB
from kinfolk.naive_bayes.inference import noisy_blocks
from kinfolk.naive_bayes.inference.noisy_sampling import NoisyChain

CHAINS = {"n_chains": 2, "n_burn_in": 20, "n_draws": 30, "random_state": 0}


def made_up_tasks(seed=0, n_tasks=12, n_rows=40):
    """Two features, whose rules split the tasks into halves that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = rng.integers(2, size=len(task))
    turned = np.column_stack([task % 2, task < n_tasks // 2])
    X = np.where(rng.random((len(task), 2)) < 0.9, y[:, None] ^ turned, rng.integers(2, size=(len(task), 2)))
    return X.astype(str), y, task


@pytest.fixture(scope="module")
def per_feature():
    X, y, task = made_up_tasks()
    return ClusteredNB(partition_per="feature").fit(X, y, task=task)


def test_every_feature_finds_the_halves_of_its_own(per_feature):
    first, second = per_feature.feature_partitions_.values()
    assert first.tolist() == [0, 1] * 6
    assert second.tolist() == [0] * 6 + [1] * 6
    assert per_feature.partition_.tolist() in (first.tolist(), second.tolist())
    # Tasks 0 and 2 share both rules, 0 and 1 only the second, 0 and 7 neither.
    assert per_feature.similarity_[0, [2, 1, 7]] == pytest.approx([1.0, 0.5, 0.0], abs=0.05)


def test_one_partition_for_all_features_needs_the_quarters():
    X, y, task = made_up_tasks()
    model = ClusteredNB().fit(X, y, task=task)
    assert model.partition_.max() == 3
    with pytest.raises(AttributeError, match="comes with partition_per"):
        model.feature_partitions_  # noqa: B018


def test_noisy_copies_are_sampled_and_predict():
    X, y, task = made_up_tasks(n_rows=40)
    model = ClusteredNB(within="noisy", **CHAINS).fit(X, y, task=task)
    assert model.posterior_.partitions.shape == (2, 30, 12)
    assert {"log joint", "number of clusters"} <= set(model.convergence_.r_hat)
    shuffled = np.random.default_rng(0).permutation(task)
    assert model.score(X, y, task=task) > model.score(X, y, task=shuffled) + 0.2


def test_no_prototype_of_noisy_copies_is_computed_and_thrown_away(monkeypatch):
    calls = {"drawn": 0, "averaged": 0}

    def counted(name, function):
        def count(*given):
            calls[name] += 1
            return function(*given)

        return count

    monkeypatch.setattr(NoisyChain, "redraw_prototypes", counted("drawn", NoisyChain.redraw_prototypes))
    monkeypatch.setattr(noisy_blocks, "_prototypes", counted("averaged", noisy_blocks._prototypes))
    X, y, task = made_up_tasks(n_rows=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ClusteredNB(within="noisy", n_chains=1, n_burn_in=3, n_draws=4, random_state=0).fit(X, y, task=task)
    # Drawn at the start and once a sweep, and averaged once for each draw that is kept.
    assert calls == {"drawn": 1 + 3 + 4, "averaged": 4}


@pytest.mark.parametrize(
    "options", [{"partition_per": "feature"}, {"within": "noisy", **CHAINS}, {"inference": "gibbs", **CHAINS}], ids=str
)
def test_options_are_kept_in_the_saved_model(options, tmp_path):
    X, y, task = made_up_tasks(n_rows=12)
    model = ClusteredNB(**options).fit(X, y, task=task)
    kinfolk.save(model, tmp_path / "model.kin")
    again = kinfolk.load(tmp_path / "model.kin", estimator=True)
    assert again.get_params() == model.get_params()
    assert again.converged_ == model.converged_
    np.testing.assert_allclose(again.predict_proba(X, task=task), model.predict_proba(X, task=task))
    np.testing.assert_allclose(again.similarity_, model.similarity_)


def test_explanations_of_noisy_copies_and_of_features_partitions_add_up(per_feature):
    X, y, task = made_up_tasks(n_rows=12)
    noisy = ClusteredNB(within="noisy", **CHAINS).fit(X, y, task=task)
    for model in (per_feature, noisy):
        explained = model.explain(X[:4], task=task[:4])
        total = explained.label_part + explained.feature_part.sum(axis=1) + explained.remainder
        np.testing.assert_allclose(total, model.predict_log_proba(X[:4], task=task[:4]), atol=1e-9)
        # What the parts leave over is little beside what they say.
        assert np.ptp(explained.remainder, axis=1).max() < 0.2 * np.ptp(explained.feature_part, axis=2).max()
        shares = explained.own + explained.kin + explained.everybody + explained.prior
        np.testing.assert_allclose(shares, 1.0, atol=1e-6)


def test_batches_find_what_all_tasks_at_once_find():
    X, y, task = made_up_tasks(n_tasks=40, n_rows=60)
    whole, batches = (
        ClusteredNB(inference="variational", batch_size=size, random_state=0).fit(X, y, task=task) for size in (None, 7)
    )
    assert batches.partition_.tolist() == whole.partition_.tolist()
    assert batches.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-4)


def test_a_batch_of_all_tasks_is_all_tasks_at_once():
    X, y, task = made_up_tasks(n_tasks=12, n_rows=6)
    whole, batch = (
        ClusteredNB(inference="variational", batch_size=size, random_state=0).fit(X, y, task=task)
        for size in (None, 12)
    )
    np.testing.assert_array_equal(batch.similarity_, whole.similarity_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"partition_per": "row"}, 'partition_per=\'row\': give "task" or "feature"'),
        ({"within": "alike"}, 'within=\'alike\': give "same" or "noisy"'),
        ({"strength_prior": (0, 1)}, "strength_prior=.*two finite numbers above zero"),
        ({"inference": "variational", "batch_size": 0}, "batch_size=0: a whole number of at least 1"),
        ({"batch_size": 5}, 'batch_size=5 goes with inference="variational" alone'),
        ({"device": "cuda"}, "device='cuda' goes with inference=\"variational\" alone"),
    ],
)
def test_bad_options_are_told_in_one_sentence(given, message):
    with pytest.raises(ValueError, match=message):
        ClusteredNB(**given).fit([["a"], ["b"]], [0, 1])


def test_rows_without_a_label_are_left_out_with_a_warning_that_counts_them():
    X, y, task = made_up_tasks(n_rows=6)
    some = np.where(np.arange(len(y)) % 9 == 0, None, y)
    with pytest.warns(UserWarning, match='8 unlabelled rows are left out by partition_per="feature"'):
        ClusteredNB(partition_per="feature").fit(X, some, task=task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(UserWarning, match='left out by within="noisy"'):
            ClusteredNB(within="noisy", **CHAINS).fit(X, some, task=task)


def test_evidence_by_search_lies_between_the_trees_bound_and_the_exact_value():
    X, y, task = made_up_tasks(n_tasks=8, n_rows=3)
    priors = {"label_prior": 1.0, "random_state": 0}
    tree = ClusteredNB(**priors).fit(X, y, task=task)
    exact = ClusteredNB(inference="exact", **priors).fit(X, y, task=task).log_evidence_
    searched, annealed = tree.evidence("search"), tree.evidence("annealed")
    assert tree.evidence() == (tree.log_evidence_, "lower bound", 0.0)
    assert tree.log_evidence_ <= searched.value <= exact + 1e-9
    assert searched.kind == "lower bound"
    assert annealed.value == pytest.approx(exact, abs=4 * annealed.error + 0.05)
    with pytest.raises(ValueError, match='give "fit", "search" or "annealed"'):
        tree.evidence("guess")


def test_evidence_of_features_partitions_adds_up_and_knows_no_search(per_feature):
    assert per_feature.log_evidence_kind_ == "lower bound"
    annealed = per_feature.evidence("annealed")
    assert 0.0 < annealed.error < 1.0
    assert abs(annealed.value - per_feature.log_evidence_) < 3.0 + 4 * annealed.error
    with pytest.raises(ValueError, match="one partition for all features"):
        per_feature.evidence("search")
    with pytest.raises(ValueError, match='partition_per="task" with within="same" alone'):
        per_feature.conditional_evidence()


def test_short_chains_are_told_to_be_too_short():
    X, y, task = made_up_tasks(n_rows=4)
    with pytest.warns(ConvergenceWarning, match="raise n_burn_in and n_draws"):
        model = ClusteredNB(inference="gibbs", n_chains=2, n_burn_in=0, n_draws=5, random_state=0).fit(X, y, task=task)
    assert not model.converged_
    assert model.convergence_.r_hat


def test_what_does_not_sample_has_nothing_to_converge():
    X, y, task = made_up_tasks(n_rows=4)
    model = ClusteredNB().fit(X, y, task=task)
    assert model.converged_
    assert model.convergence_ is None


def test_long_chains_of_an_easy_problem_converge():
    X, y, task = made_up_tasks(n_rows=40)
    for model in (ClusteredNB(inference="gibbs", random_state=0), PrototypeNB(n_draws=400, random_state=0)):
        assert model.fit(X, y, task=task).converged_


def test_what_stands_behind_noisy_copies_is_the_tasks_own_rows_its_kins_and_the_priors(tmp_path):
    """A task with many rows of its own stands on these, one without any on the others'."""
    X, y, task = made_up_tasks(n_tasks=6, n_rows=60)
    many = (task > 0) | (np.arange(len(task)) < 2)
    model = ClusteredNB(within="noisy", **CHAINS).fit(X[many], y[many], task=task[many])
    few, rich = (model.explain(X[:1], task=[who]).own[0] for who in (0, 3))
    assert (rich > few).all()
    kinfolk.save(model, tmp_path / "model.kin")
    again = kinfolk.load(tmp_path / "model.kin", estimator=True)
    np.testing.assert_array_equal(again.explain(X[:1], task=[3]).own, model.explain(X[:1], task=[3]).own)


def test_features_that_are_sampled_say_whether_they_converged_and_what_they_drew():
    X, y, task = made_up_tasks(n_rows=6)
    short = {"n_chains": 2, "n_burn_in": 0, "n_draws": 2, "random_state": 0}
    model = ClusteredNB(inference="gibbs", partition_per="feature", concentration="learn", **short)
    with pytest.warns(ConvergenceWarning, match="Fewer than 4 draws"):
        model.fit(X, y, task=task)
    assert not model.converged_
    assert model.concentration_ != 1.0


def test_a_search_over_partitions_takes_no_concentration_that_was_drawn():
    X, y, task = made_up_tasks(n_rows=6)
    model = ClusteredNB(inference="gibbs", concentration="learn", **CHAINS).fit(X, y, task=task)
    with pytest.raises(ValueError, match="takes one concentration"):
        model.evidence("search")


def test_one_row_added_to_a_loaded_model_does_not_overrule_what_tempered_it(tmp_path):
    X, y, task = made_up_tasks()
    model = ClusteredNB().fit(X, y, task=task)
    kinfolk.save(model, tmp_path / "model.kin")
    again = kinfolk.load(tmp_path / "model.kin", estimator=True)
    again.partial_fit(X[:1], y[:1], task=task[:1])
    np.testing.assert_array_equal(again.temper_, model.temper_)
