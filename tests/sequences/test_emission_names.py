"""Emissions as users name them: what estimators learn with each, forecast, keep in a file and refuse."""

import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk import FeatureIHMM, NestedIHMM, SharedIHMM
from kinfolk.sequences.model.emissions.families import FAMILIES
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal

QUICK = {"n_states": 4, "inference": "variational", "n_chains": 1, "n_draws": 20, "random_state": 0}


def turning_and_drifting(n_sequences=6, length=60, seed=0):
    """Sequences around 20 that drift in one state and turn back at each step in another, with the same variance."""
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.permuted(np.tile([0, 1], (n_sequences, 2)), axis=1), length // 4, axis=1).ravel()
    x = np.zeros(n_sequences * length)
    for t in range(len(x)):
        before = x[t - 1] if t % length else rng.normal()
        x[t] = (0.9 if states[t] == 0 else -0.9) * before + 0.4 * rng.normal()
    return 20.0 + 3.0 * x, [length] * n_sequences, states


def test_autoregressions_tell_states_apart_that_differ_in_nothing_else():
    x, lengths, states = turning_and_drifting()
    right = {}
    for emission in ("ar", "gaussian"):
        model = SharedIHMM(emission=emission, stickiness=10.0, **QUICK).fit(x, lengths)
        found = model.predict(x, lengths)
        right[emission] = max(np.mean((found == k) == (states == 1)) for k in np.unique(found))
    assert right["ar"] > 0.93
    assert right["gaussian"] < 0.8


def test_forecasts_of_an_autoregression_come_from_the_end_of_the_sequence():
    x, lengths, _ = turning_and_drifting()
    frame = pd.DataFrame({"level": x})
    model = SharedIHMM(emission="ar", stickiness=10.0, **QUICK).fit(frame, lengths)
    drifting = 20.0 + 9.0 * 0.95 ** np.arange(12.0)
    ends = {"high": drifting, "low": 40.0 - drifting}
    for end in ends.values():
        ahead = model.forecast(pd.DataFrame({"level": end}), n_steps=2, n_samples=400, random_state=0)
        expected = 20.0 + 0.9 * (end[-1] - 20.0)
        assert ahead.mean["level"][0, 0] == pytest.approx(expected, abs=1.5)
        # Draws and sums agree.
        error = ahead.deviation["level"][0] / np.sqrt(400)
        assert (np.abs(ahead.samples[0, :, :, 0].mean(axis=0) - ahead.mean["level"][0]) < 4.0 * error).all()
        np.testing.assert_allclose(ahead.samples[0, :, :, 0].std(axis=0), ahead.deviation["level"][0], rtol=0.25)


def test_the_first_step_of_a_sequence_and_those_around_a_gap_count_for_no_likelihood():
    x, lengths, _ = turning_and_drifting()
    model = SharedIHMM(emission="ar", **QUICK).fit(x, lengths)
    assert model.score(x[:1]) == pytest.approx(0.0, abs=1e-12)
    gap = x[:20].copy()
    gap[[0, 2, 4, 6, 8, 10, 12, 14, 16, 18]] = np.nan
    assert model.score(gap) == pytest.approx(0.0, abs=1e-12)
    gap[18] = x[18]
    assert model.score(gap) == pytest.approx(model.score(x[17:20]), rel=0.5)
    assert model.score(gap) != 0.0


@pytest.mark.parametrize("inference", ["gibbs", "variational"])
def test_autoregressions_stand_beside_other_columns_and_come_back_from_a_file(inference, tmp_path):
    x, lengths, states = turning_and_drifting(2)
    table = pd.DataFrame({"x": x, "symbol": np.where(states, "a", "b"), "y": np.roll(x, 1)})
    chains = {"n_burn_in": 3, "n_draws": 4, **QUICK, "inference": inference}
    model = SharedIHMM(emission=["ar-2", "categorical", "ar-2"], **chains).fit(table, lengths)
    kinfolk.save(model, tmp_path / "model.npz")
    loaded = kinfolk.load(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.score_samples(table, lengths), model.score_samples(table, lengths))
    ours, theirs = (one.forecast(table, lengths, n_steps=3, random_state=1) for one in (model, loaded))
    for name in ("x", "y"):
        np.testing.assert_allclose(ours.mean[name], theirs.mean[name])
        assert np.isfinite(ours.deviation[name]).all()
    np.testing.assert_array_equal(ours.samples[..., 1], theirs.samples[..., 1])
    assert model.classify(table, lengths).shape == (2, 1)


def with_outliers(n_sequences=12, length=48, seed=0):
    """Two columns with three states, one number in thirty far away."""
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.integers(3, size=(n_sequences, 6)), length // 6, axis=1).ravel()
    x = rng.normal(np.array([[0.0, 5.0], [3.0, 0.0], [-3.0, -4.0]])[states], 0.7)
    far = rng.random(x.shape) < 1 / 30
    x[far] += 25.0 * rng.standard_t(1.5, size=far.sum())
    return 1e4 * x, [length] * n_sequences, states


@pytest.mark.parametrize("inference", ["gibbs", "variational"])
def test_states_are_found_where_some_numbers_are_far_away(inference, tmp_path):
    x, lengths, states = with_outliers()
    task = np.arange(len(lengths)) % 3
    chains = {**QUICK, "n_states": 8, "inference": inference, "n_burn_in": 15, "n_draws": 10}
    model = NestedIHMM(n_clusters=3, emission="student-t", **chains).fit(x, lengths, task=task)
    together = np.zeros((3, 8))
    for found, true in zip(model.predict(x, lengths, task=task), states, strict=True):
        together[true, found] += 1
    wrong = 1.0 - sum(np.sort(together.max(axis=0))[-3:]) / len(states)
    assert wrong < 0.06
    x[5, 0] = np.nan
    ahead = model.forecast(x, lengths, task=task, n_steps=2, random_state=0)
    assert all(np.isfinite(ahead.deviation[column]).all() for column in (0, 1))
    kinfolk.save(model, tmp_path / "model.npz")
    loaded = kinfolk.load(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.score_samples(x, lengths, task=task), model.score_samples(x, lengths, task=task))


def test_a_model_that_integrates_parameters_out_refuses_emissions_that_do_not_allow_it():
    x, lengths, _ = with_outliers(4)
    with pytest.raises(ValueError, match="FeatureIHMM integrates the parameters of states out"):
        FeatureIHMM(emission=["gaussian", "student-t"], n_chains=1).fit(x, lengths, task=range(4))


def answers_of(n_sequences=6, length=40, seed=0):
    """Three columns of yes and no, likely in runs, with gaps."""
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.permuted(np.tile([0, 1], (n_sequences, 2)), axis=1), length // 4, axis=1).ravel()
    yes = rng.random((len(states), 3)) < np.array([[0.9, 0.1, 0.5], [0.1, 0.8, 0.5]])[states]
    gaps = rng.random(yes.shape) < 0.1
    return yes, gaps, [length] * n_sequences, states


@pytest.mark.parametrize("form", ["booleans", "numbers"])
def test_columns_of_yes_and_no_may_be_booleans_or_numbers_with_gaps(form, tmp_path):
    yes, gaps, lengths, states = answers_of()
    if form == "booleans":
        table = pd.DataFrame(
            {name: pd.array(column, dtype="boolean") for name, column in zip("abc", yes.T, strict=True)}
        )
        table = table.mask(gaps)
    else:
        table = pd.DataFrame(np.where(gaps, np.nan, yes), columns=list("abc"))
    model = SharedIHMM(emission="bernoulli", stickiness=5.0, **QUICK).fit(table, lengths)
    found = model.predict(table, lengths)
    assert max(np.mean((found == k) == (states == 1)) for k in np.unique(found)) > 0.9
    [means] = model.emission_.means(model.posterior_.draws[0].parameters[0][np.unique(found)])
    assert means[:, 0].min() < 0.25
    assert means[:, 0].max() > 0.75
    ahead = model.forecast(table, lengths, n_steps=2, random_state=0)
    share = ahead.mean["a"]
    np.testing.assert_allclose(ahead.deviation["a"], np.sqrt(share * (1.0 - share)))
    assert set(np.unique(ahead.samples)) == {0.0, 1.0}
    kinfolk.save(model, tmp_path / "model.npz")
    loaded = kinfolk.load(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.score_samples(table, lengths), model.score_samples(table, lengths))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [(2.0, "column 'b', row 3: 2 is neither 0 nor 1"), ("yes", "column 'b', row 3: 'yes' is no number")],
)
def test_what_is_neither_yes_nor_no_is_refused_with_its_column_and_row(value, sentence):
    yes, _, lengths, _ = answers_of(2)
    table = pd.DataFrame(yes.astype(float), columns=list("abc"))
    model = SharedIHMM(emission="bernoulli", **QUICK).fit(table, lengths)
    strange = table.astype(object)
    strange.loc[3, "b"] = value
    with pytest.raises(ValueError, match=sentence):
        SharedIHMM(emission="bernoulli", **QUICK).fit(strange, lengths)
    with pytest.raises(ValueError, match="column 'b', row 3"):
        model.score(strange, lengths)


class Rounded(GaussianDiagonal):
    """A family that is nowhere but in the table: tenths of whole numbers."""

    @classmethod
    def check(cls, numbers, label):
        if (np.round(numbers, 1) != numbers)[~np.isnan(numbers)].any():
            raise ValueError(f"{label} has more than tenths")


def test_one_line_in_the_table_makes_an_emission_that_is_learnt_forecast_and_kept_in_files(monkeypatch, tmp_path):
    monkeypatch.setitem(FAMILIES, "rounded", Rounded)
    x, lengths, _ = with_outliers(4)
    table = pd.DataFrame(np.round(x, 1), columns=["a", "b"])
    model = SharedIHMM(emission="rounded", **QUICK).fit(table, lengths)
    kinfolk.save(model, tmp_path / "model.npz")
    loaded = kinfolk.load(tmp_path / "model.npz")
    assert type(loaded.kept.emission) is Rounded
    ours, theirs = (one.forecast(table, lengths, random_state=0) for one in (model, loaded))
    np.testing.assert_allclose(ours.mean["a"], theirs.mean["a"])
    assert model.states().shape[0] > 0
    with pytest.raises(ValueError, match="column 'b' has more than tenths"):
        model.score(table.assign(b=table["b"] + 0.01), lengths)


@pytest.mark.parametrize("emission", ["ar-0", "ar-x", "AR", "gaussian-2", ["ar", 3]])
def test_names_that_are_not_known_are_refused_with_those_that_are(emission):
    x, lengths, _ = turning_and_drifting(2)
    with pytest.raises(ValueError, match=r'give "auto", one of .*"ar"'):
        SharedIHMM(emission=emission, **QUICK).fit(x, lengths)
