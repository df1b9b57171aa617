"""The estimators find kin, take sequences in whatever form they come, and repeat themselves exactly."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from kinfolk import NestedIHMM, SharedIHMM, SingleIHMM, UnseenWarning
from kinfolk.convergence import diagnose
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from tests.sequences.toy import QUICK, toy_numbers, toy_sequences

X, LENGTHS, TASK = toy_sequences()
MODELS = {"nested": NestedIHMM(n_clusters=3, **QUICK), "shared": SharedIHMM(**QUICK), "single": SingleIHMM(**QUICK)}


@pytest.fixture(scope="module")
def models():
    return {name: clone(model).fit(X, LENGTHS, task=TASK) for name, model in MODELS.items()}


@pytest.fixture(scope="module")
def nested(models):
    return models["nested"]


def test_kin_are_found(nested):
    assert nested.tasks_.tolist() == ["ann", "bob", "cid", "dot"]
    assert nested.partition_.tolist() == [0, 0, 1, 1]
    similarity = nested.similarity_
    np.testing.assert_array_equal(np.diag(similarity), 1.0)
    assert similarity[0, 1] > 0.9 > 0.1 > similarity[0, 2]
    np.testing.assert_array_equal(nested.similarity(["dot", "ann"]), similarity[np.ix_([3, 0], [3, 0])])


def test_the_partition_is_one_of_the_draws_and_similarity_their_mean(nested):
    partitions = nested.posterior_.traces.partitions.reshape(-1, 4)
    assert nested.partition_.tolist() in partitions.tolist()
    together = [[np.mean(partitions[:, i] == partitions[:, j]) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(nested.similarity_, together)


def test_all_share_or_none_by_the_models_of_comparison(models):
    np.testing.assert_array_equal(models["shared"].similarity_, 1.0)
    np.testing.assert_array_equal(models["single"].similarity_, np.eye(4))


@pytest.mark.parametrize("name", MODELS)
def test_what_a_fit_leaves_behind_has_its_shape(models, name):
    model = models[name]
    assert model.log_joint_.shape == (2, 6)
    assert model.n_states_.shape == (4, 5)
    np.testing.assert_allclose(model.n_states_.sum(axis=1), 1.0)
    assert len(model.posterior_.draws) == 12
    expected = diagnose({"log joint": model.log_joint_}).r_hat["log joint"]
    assert model.convergence_.r_hat["log joint"] == pytest.approx(expected)
    assert not model.converged_


def test_chains_too_short_are_told():
    with pytest.warns(ConvergenceWarning, match="chains"):
        clone(MODELS["nested"]).fit(X, LENGTHS, task=TASK)


@pytest.mark.parametrize("name", MODELS)
def test_sequences_are_likelier_under_their_own_task(models, name):
    model = models[name]
    fresh, lengths, task = toy_sequences(seed=9)
    own = model.score_samples(fresh, lengths, task=task)
    other = model.score_samples(fresh, lengths, task=task[::-1])
    assert own.shape == (8,)
    assert (own > other).all()
    assert model.score(fresh, lengths, task=task) == pytest.approx(own.mean())


@pytest.mark.parametrize("name", MODELS)
def test_predictive_likelihoods_of_short_sequences_add_up_to_one(models, name):
    pairs = list(itertools.product("abcd", repeat=2))
    flat = [symbol for pair in pairs for symbol in pair]
    for task in ("bob", "never seen"):
        found = models[name].score_samples(flat, [2] * 16, task=[task] * 16)
        assert np.exp(found).sum() == pytest.approx(1.0)


def test_single_tasks_learn_nothing_from_each_other():
    others = X.copy()
    others[-2 * LENGTHS[0] :] = "d"
    found = [
        clone(MODELS["single"]).fit(table, LENGTHS, task=TASK).score_samples(list("abba"), task=["ann"])
        for table in (X, others)
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", MODELS)
def test_sequences_are_put_to_their_tasks(models, name):
    probability = models[name].classify(list("aaabbb") + list("cccddd"), [6, 6])
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert probability[0, :2].sum() > 0.95
    assert probability[1, 2:].sum() > 0.95


@pytest.mark.filterwarnings("ignore::kinfolk.UnseenWarning")
def test_a_new_task_is_put_to_its_kin_or_to_none(nested):
    alike = nested.kin(list("aaabbbaaabbb") * 2, [12, 12])
    assert (alike.probability[:2] > 0.9).all()
    assert (alike.probability[2:] < 0.1).all()
    assert alike.probability[0] + alike.probability[2] + alike.alone == pytest.approx(1.0, abs=0.1)
    with pytest.warns(UnseenWarning, match="column 0 has no value that the model knows"):
        assert nested.kin(["z"] * 30 + ["y"] * 30 + ["x"] * 30).alone > 0.5


def test_a_new_task_may_only_be_kin_of_all_where_all_share(models):
    assert models["shared"].kin(list("abab")).probability.tolist() == pytest.approx([1.0] * 4)
    assert models["single"].kin(list("abab")).alone == pytest.approx(1.0)


@pytest.mark.parametrize("name", MODELS)
def test_hidden_states_follow_the_runs(models, name):
    some = X[:24]
    states = models[name].predict(some, task=["ann"])
    assert len(set(states[some == "a"])) == len(set(states[some == "b"])) == 1
    assert len(set(states)) == 2
    probability = models[name].predict_proba(some, task=["ann"])
    assert probability.shape == (24, 4)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert (probability.argmax(axis=1) == states).mean() > 0.9


def test_new_sequences_look_like_those_of_their_task(nested):
    drawn, states = nested.sample(200, task="cid", random_state=1)
    assert drawn.shape == states.shape == (200,)
    assert drawn.dtype == X.dtype
    assert np.isin(drawn, ["c", "d"]).mean() > 0.9
    again, _ = nested.sample(200, task="cid", random_state=1)
    np.testing.assert_array_equal(drawn, again)
    several, _ = nested.sample(lengths=[3, 40], task=["ann", "cid"], random_state=1)
    assert np.isin(several[:3], ["a", "b"]).all()
    assert len(several) == 43


def test_a_forecast_adds_up_and_follows_the_sequence(nested):
    forecast = nested.forecast(list("aaa") + list("ccccdd"), [3, 6], task=["ann", "dot"], n_steps=2, random_state=0)
    assert set(forecast.probability[0]) == set("abcd")
    total = sum(forecast.probability[0].values())
    np.testing.assert_allclose(total, np.ones((2, 2)))
    assert forecast.probability[0]["a"][0, 0] > 0.5
    assert forecast.probability[0]["d"][1, 0] > 0.5
    assert forecast.samples.shape == (2, 1000, 2)
    assert np.isin(forecast.samples[0], ["a", "b"]).mean() > 0.9


def test_a_symbol_never_seen_has_a_probability_and_says_little(nested):
    strange = nested.score_samples(["z"], task=["ann"])[0]
    assert -12.0 < strange < nested.score_samples(["a"], task=["ann"])[0]


def test_symbols_that_are_named_are_known_without_being_seen():
    model = NestedIHMM(n_clusters=2, symbols=list("abcdz"), **QUICK).fit(X, LENGTHS, task=TASK)
    pairs = list(itertools.product("abcdz", repeat=2))
    found = model.score_samples([symbol for pair in pairs for symbol in pair], [2] * 25, task=["ann"] * 25)
    assert np.exp(found).sum() == pytest.approx(1.0)


# Variational inference.


@pytest.fixture(scope="module")
def approximated():
    return {
        name: clone(model).set_params(inference="variational", n_draws=30).fit(X, LENGTHS, task=TASK)
        for name, model in MODELS.items()
    }


@pytest.mark.parametrize("name", MODELS)
def test_a_variational_fit_answers_as_a_sampled_one(models, approximated, name):
    sampled, model = models[name], approximated[name]
    assert model.partition_.tolist() == sampled.partition_.tolist()
    assert model.convergence_ is None
    assert model.converged_
    assert len(model.posterior_.draws) == 30
    fresh, lengths, task = toy_sequences(seed=9)
    apart = np.abs(scores(model, fresh, lengths, task) - scores(sampled, fresh, lengths, task))
    # Few draws after few sweeps: single tasks may be some nats apart.
    assert apart.mean() < 2.5
    again = clone(model).set_params(n_jobs=2).fit(X, LENGTHS, task=TASK)
    np.testing.assert_array_equal(scores(again, X), scores(model, X))


def test_a_bound_is_had_from_variational_fits_alone(models, approximated):
    bounds = {name: model.lower_bound_ for name, model in approximated.items()}
    # Sharing between kin explains these tasks best.
    assert bounds["nested"] > bounds["single"]
    with pytest.raises(AttributeError, match="variational"):
        _ = models["nested"].lower_bound_


# Whatever form the sequences have.


def scores(model, table, lengths=LENGTHS, task=TASK):
    return model.score_samples(table, lengths, task=task)


@pytest.mark.parametrize(
    "form",
    [
        list,
        lambda x: x[:, None],
        lambda x: pd.DataFrame({"symbol": x}),
        lambda x: pl.DataFrame({"symbol": x}),
        lambda x: pd.Series(x, dtype="category"),
        pl.Series,
        lambda x: x.astype(object),
    ],
    ids=["list", "column", "pandas", "polars", "categorical series", "polars series", "objects"],
)
def test_a_column_of_symbols_may_come_in_any_form(nested, form):
    model = clone(nested).fit(form(X), LENGTHS, task=TASK)
    np.testing.assert_array_equal(scores(model, form(X)), scores(nested, X))
    assert model.n_features_in_ == 1


def test_whole_numbers_are_symbols(nested):
    codes = np.searchsorted(list("abcd"), X)
    for form in (codes, codes.astype(float), codes + 7):
        model = clone(nested).fit(form, LENGTHS, task=TASK)
        np.testing.assert_array_equal(scores(model, form), scores(nested, X))
    assert set(clone(nested).fit(codes + 7, LENGTHS, task=TASK).sample(20, task="ann")[0]) <= {7, 8, 9, 10}


def test_sequences_of_a_task_need_not_follow_each_other(nested):
    order = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    mixed = np.concatenate([np.split(X, 8)[i] for i in order])
    tasks = [TASK[i] for i in order]
    model = clone(nested).fit(mixed, LENGTHS, task=tasks)
    np.testing.assert_array_equal(scores(model, mixed, task=tasks), scores(nested, X)[order])
    np.testing.assert_array_equal(
        model.predict(mixed, LENGTHS, task=tasks),
        np.concatenate([np.split(nested.predict(X, LENGTHS, task=TASK), 8)[i] for i in order]),
    )


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_fit_whatever_the_workers(models, name):
    again = clone(MODELS[name]).set_params(n_jobs=2).fit(X, LENGTHS, task=TASK)
    np.testing.assert_array_equal(again.log_joint_, models[name].log_joint_)
    np.testing.assert_array_equal(scores(again, X), scores(models[name], X))
    other = clone(MODELS[name]).set_params(random_state=1).fit(X, LENGTHS, task=TASK)
    assert (other.log_joint_ != models[name].log_joint_).any()


def test_gaussian_columns_make_one_channel():
    numbers, lengths, task = toy_numbers()
    model = NestedIHMM(n_clusters=3, **QUICK).fit(numbers, lengths, task=task)
    assert isinstance(model.emission_, GaussianDiagonal)
    assert model.partition_.tolist() == [0, 0, 1, 1]
    drawn, _ = model.sample(300, task="cid", random_state=0)
    assert drawn.shape == (300, 2)
    assert (np.abs(drawn[:, 0] - 55.0) < 15.0).mean() > 0.9
    forecast = model.forecast(numbers[:5], task=["ann"])
    assert set(forecast.mean) == {0, 1}
    assert forecast.deviation[0].shape == (1, 1)
    assert forecast.samples.shape == (1, 1000, 1, 2)
    assert forecast.samples.std() > 0.0


def test_kinds_of_columns_may_be_mixed_and_named():
    numbers, lengths, task = toy_numbers()
    table = pd.DataFrame(
        {"symbol": X, "level": numbers[:, 0], "calls": np.round(np.abs(numbers[:, 1])), "flag": X == "a"}
    )
    kinds = ["categorical", "gaussian-full", "poisson", "categorical"]
    model = NestedIHMM(n_clusters=3, emission=kinds, **QUICK).fit(table, lengths, task=task)
    assert model.partition_.tolist() == [0, 0, 1, 1]
    assert model.feature_names_in_.tolist() == list(table)
    forecast = model.forecast(table.iloc[:4], task=["ann"])
    assert set(forecast.probability) == {"symbol", "flag"}
    assert set(forecast.mean) == {"level", "calls"}
    drawn, _ = model.sample(5, task="bob", random_state=0)
    assert drawn.shape == (5, 4)
    assert set(drawn[:, 3]) <= {True, False}


def test_missing_steps_are_summed_out(nested):
    gaps = X.astype(object)
    gaps[::7] = None
    model = clone(nested).fit(gaps, LENGTHS, task=TASK)
    assert model.partition_.tolist() == [0, 0, 1, 1]
    known = [model.score_samples([symbol], task=["ann"])[0] for symbol in "abcd"]
    assert np.exp(known).sum() == pytest.approx(1.0)
    assert model.score_samples([None, None], task=["ann"])[0] == pytest.approx(0.0, abs=1e-9)
    between = [model.score_samples(["a", symbol, "b"], task=["ann"])[0] for symbol in [*"abcd", None]]
    # Particles that choose a state by what they see are others than those that see nothing.
    assert np.exp(between[:4]).sum() == pytest.approx(np.exp(between[4]), rel=0.03)


@pytest.mark.parametrize("start", ["together", "apart", {"ann": "x", "bob": "x", "cid": "y", "dot": "y"}, [1, 1, 2, 3]])
def test_chains_may_start_anywhere(start):
    model = NestedIHMM(n_clusters=4, start=start, **QUICK).fit(X, LENGTHS, task=TASK)
    assert model.partition_.shape == (4,)


def test_hyper_parameters_may_be_given_or_learnt():
    given = NestedIHMM(
        n_clusters=3,
        emission_strength=0.2,
        concentration=2.0,
        state_concentration=3.0,
        transition_concentration=4.0,
        stickiness=5.0,
        **QUICK,
    ).fit(X, LENGTHS, task=TASK)
    draw = given.posterior_.draws[-1]
    assert draw.hyper == HyperParameters(eta=2.0, gamma=3.0, alpha=4.0, strength=0.2, stickiness=5.0)
    learnt = NestedIHMM(n_clusters=3, stickiness="learn", **QUICK).fit(X, LENGTHS, task=TASK)
    for name in ("strength", "eta", "gamma", "alpha", "stickiness"):
        assert len({getattr(draw.hyper, name) for draw in learnt.posterior_.draws}) > 1


def test_without_lengths_and_task_all_is_one_sequence_of_one_task():
    model = SingleIHMM(**QUICK).fit(X)
    assert model.tasks_.tolist() == [0]
    assert model.score_samples(X).shape == (1,)
    assert model.predict(X).shape == X.shape


def test_nothing_is_answered_before_fitting():
    for ask in ("score_samples", "predict", "predict_proba", "classify", "kin", "forecast"):
        with pytest.raises(NotFittedError):
            getattr(NestedIHMM(), ask)(["a"])
    with pytest.raises(NotFittedError):
        NestedIHMM().sample()


def test_progress_is_shown_where_asked_for(capfd):
    NestedIHMM(n_clusters=2, verbose=True, **QUICK).fit(X, LENGTHS, task=TASK)
    assert capfd.readouterr().out == ""
