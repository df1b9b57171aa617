"""Pictures of models and of numbers: what is drawn is what was given, with five tasks and with five hundred."""

import itertools
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import kinfolk
from kinfolk import plots
from kinfolk.plots.reliability_diagram import calibration_bins
from tests.reporting.examples import kin


@pytest.fixture(scope="module")
def sampled():
    X, y, task = kin(5, 12)
    model = kinfolk.ClusteredNB(random_state=0, inference="gibbs", n_chains=2, n_burn_in=5, n_draws=12)
    return model.fit(X, y, task=task)


@pytest.fixture(scope="module")
def heard():
    rng = np.random.default_rng(0)
    X = [np.concatenate([rng.normal(size=(12, 1)), 9 + rng.normal(size=(8, 1))]) for _ in range(3)]
    model = kinfolk.SharedIHMM(random_state=0, n_chains=2, n_burn_in=15, n_draws=8).fit(X, task=["a", "b", "c"])
    return model, X


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(100, 3)), np.repeat(["p", "q", "r", "s", "t"], 20)
    y = X[:, 0] * np.repeat([1.0, 1.0, -1.0, -1.0, 2.0], 20)
    return kinfolk.LICARegressor(n_sources=2, random_state=0).fit(X, y, task=task)


@pytest.fixture
def drawings(sampled, heard, linear):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    came = rng.random(300) < p
    both = np.stack([1 - p, p], axis=1)
    truth = np.where(came, "yes", "no")
    sequences, X = heard
    return {
        "learning_curves": lambda **o: plots.learning_curves({"a": ([1, 2, 4], rng.random((3, 5)))}, **o),
        "gain": lambda **o: plots.gain(rng.normal(size=5), np.ones(5), **o),
        "reliability": lambda **o: plots.reliability(p, came, **o),
        "loss_by_asymmetry": lambda **o: plots.loss_by_asymmetry(
            {"m": both}, truth, ["no", "yes"], positive="yes", **o
        ),
        "log_ratios": lambda **o: plots.log_ratios(sampled, **o),
        "cluster_profiles": lambda **o: plots.cluster_profiles(sampled, **o),
        "number_of": lambda **o: plots.number_of(sampled, **o),
        "number_of states": lambda **o: plots.number_of(sequences, "states", **o),
        "traces": lambda **o: plots.traces(sampled, **o),
        "traces of sequences": lambda **o: plots.traces(sequences, "number of clusters", **o),
        "sources": lambda **o: plots.sources(linear, **o),
        "state_sequences": lambda **o: plots.state_sequences(sequences, X, task=["a", "b", "c"], **o),
        "emissions": lambda **o: plots.emissions(sequences, **o),
        "reliance": lambda **o: plots.reliance(sampled.report(), **o),
        "reliance of a model": lambda **o: plots.reliance(sampled, **o),
    }


@pytest.mark.parametrize(
    "name",
    [
        "learning_curves",
        "gain",
        "reliability",
        "loss_by_asymmetry",
        "log_ratios",
        "cluster_profiles",
        "number_of",
        "number_of states",
        "traces",
        "traces of sequences",
        "sources",
        "state_sequences",
        "emissions",
        "reliance",
        "reliance of a model",
    ],
)
def test_given_axes_are_used_and_otherwise_a_figure_is_made_that_saves(drawings, name, tmp_path):
    ax = Figure().add_subplot()
    assert drawings[name](ax=ax, title="of $5 and $6") is ax
    assert ax.get_title() == "of $5 and $6"
    assert plt.get_fignums() == []
    drawings[name]().figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
    plt.close("all")


def test_curves_are_means_with_bands_of_two_standard_errors():
    values = np.array([[1.0, 2.0, 3.0, 6.0], [1.0, 1.0, 1.0, 1.0]])
    ax = plots.learning_curves({"model": ([2, 8], values)}, ax=Figure().add_subplot())
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [3.0, 1.0])
    corners = ax.collections[0].get_paths()[0].vertices
    reach = 2 * np.std([1, 2, 3, 6], ddof=1) / 2
    np.testing.assert_allclose([corners[:, 1].min(), corners[:, 1].max()], [3 - reach, 3 + reach])


def test_gains_stand_in_order_and_unknown_ones_are_left_out():
    ax = plots.gain([0.1, np.nan, 0.3, -0.2], labels=list("abcd"), ax=Figure().add_subplot())
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["c", "a", "d"]
    np.testing.assert_allclose(ax.collections[-1].get_offsets()[:, 0], [0.3, 0.1, -0.2])


def test_gains_and_shares_of_a_report_are_those_of_its_tasks(sampled):
    X, y, task = kin(5, 12)
    report = sampled.report(data=X, y=y, task=task, n_folds=2)
    ax = plots.gain(report, ax=Figure().add_subplot())
    expected = sorted((entry["gain_over_alone"] for entry in report.document["tasks"]), reverse=True)
    np.testing.assert_allclose(ax.collections[-1].get_offsets()[:, 0], expected)
    bars = plots.reliance(report, ax=Figure().add_subplot()).patches[:5]
    own = sorted((entry["rests_on"]["own"] for entry in report.document["tasks"]), reverse=True)
    np.testing.assert_allclose([bar.get_width() for bar in bars], own)
    ax = plots.reliability(report, ax=Figure().add_subplot())
    np.testing.assert_allclose(ax.lines[1].get_ydata(), report.document["calibration"]["observed"])
    with pytest.raises(ValueError, match="without rows"):
        plots.gain(sampled.report())


def test_bins_have_equal_numbers_and_intervals_cover_what_is_true():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    found = calibration_bins(p, rng.random(20_000) < p)
    assert found.n.tolist() == [2000] * 10
    assert ((found.low < found.predicted) & (found.predicted < found.high)).sum() >= 8
    one = calibration_bins(np.full(10, 0.3), np.arange(10) < 3)
    assert one.observed.tolist() == [0.3]
    # Wilson's interval for 3 of 10, as statsmodels' proportion_confint gives it.
    np.testing.assert_allclose([one.low[0], one.high[0]], [0.10779127, 0.60322185], rtol=1e-6)


def test_losses_are_those_of_decisions_beside_the_better_constant_one():
    p = np.array([0.9, 0.6, 0.4, 0.1])
    truth = np.array(["yes", "no", "yes", "no"])
    table = np.stack([1 - p, p], axis=1)
    ax = plots.loss_by_asymmetry(
        {"m": table}, truth, ["no", "yes"], positive="yes", powers=[0, 1], ax=Figure().add_subplot()
    )
    # n = 0: two of four are wrong, as with either constant. n = 1: it says yes from a third on, one false alarm;
    # always yes costs two false alarms.
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [1.0, 0.5])


def test_numbers_of_clusters_and_states_are_posterior_probabilities(sampled, heard):
    ax = plots.number_of(sampled, ax=Figure().add_subplot())
    drawn = sampled.posterior_.partitions.max(axis=2) + 1
    counted = {round(bar.get_center()[0]): bar.get_height() for bar in ax.patches}
    for number, share in counted.items():
        assert share == pytest.approx((drawn == number).mean())
    ax = plots.number_of(heard[0], "states", task="b", ax=Figure().add_subplot())
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(1.0, abs=0.01)


def test_segments_end_where_states_change(heard):
    model, X = heard
    ax = plots.state_sequences(model, X, task=["a", "b", "c"], ax=Figure().add_subplot())
    states = model.predict(X, task=["a", "b", "c"]).reshape(3, 20)
    np.testing.assert_array_equal(ax.images[0].get_array(), states)
    changes = [path.vertices[0, 0] for lines in ax.collections[:3] for path in lines.get_paths()]
    np.testing.assert_allclose(changes, np.nonzero(np.diff(states))[1] + 0.5)
    # Without colours, numbers tell the states.
    for text in ax.texts:
        at, row = text.get_position()
        assert int(text.get_text()) == states[int(row), int(at)]
    assert len(ax.texts) == len(changes) + 3


def test_means_of_states_are_near_those_that_observations_were_drawn_around(heard):
    ax = plots.emissions(heard[0], ax=Figure().add_subplot())
    written = sorted(float(text.get_text()) for text in ax.texts)
    assert len(written) == 2
    np.testing.assert_allclose(written, [0.0, 9.0], atol=0.6)
    # Each is farther from the mean of both than half of what they spread over, on its own side.
    assert sorted(np.sign(ax.images[0].get_array().ravel())) == [-1, 1]


def test_shares_of_symbols_are_those_that_states_were_drawn_with_and_loaded_models_draw_the_same(tmp_path):
    rng = np.random.default_rng(0)
    drawn = [[rng.choice(["a", "b"], 40), rng.choice(["b", "c"], 40, p=[0.2, 0.8])] for _ in range(6)]
    X = np.concatenate([part for sequence in drawn for part in sequence]).tolist()
    model = kinfolk.SharedIHMM(n_chains=2, n_burn_in=30, n_draws=20, random_state=0).fit(
        X, [80] * 6, task=list("uuvvww")
    )
    ax = plots.emissions(model, ax=Figure().add_subplot())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    shares = np.array([float(text.get_text().rstrip("%")) for text in ax.texts]).reshape(-1, 3)
    np.testing.assert_allclose(shares[np.argsort(shares[:, 0])], [[0, 20, 80], [50, 50, 0]], atol=12)
    kinfolk.save(model, tmp_path / "model.kin")
    again = plots.emissions(kinfolk.load(tmp_path / "model.kin"), ax=Figure().add_subplot())
    np.testing.assert_array_equal(again.images[0].get_array(), ax.images[0].get_array())


def test_columns_of_symbols_and_of_numbers_stand_beside_each_other():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 0], 20)
    X = pd.DataFrame({"note": np.where(kind, "high", "low"), "loud": rng.normal(5.0 * kind)})
    model = kinfolk.SingleIHMM(
        emission=["categorical", "gaussian"], n_chains=2, n_burn_in=20, n_draws=10, random_state=0
    ).fit(X)
    ax = plots.emissions(model, ax=Figure().add_subplot())
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert sorted(names) == ["loud", "note: high", "note: low"]
    texts = np.array([text.get_text() for text in ax.texts]).reshape(-1, 3)
    assert all(text.endswith("%") for text in texts[:, [names.index("note: high"), names.index("note: low")]].ravel())


def test_ratios_are_those_of_the_model(sampled):
    task = sampled.tasks_[0]
    ax = plots.log_ratios(sampled, [task], ax=Figure().add_subplot())
    table = sampled.log_ratios(by="task", estimate="mean")
    expected = table[table.task == task].log_ratio.to_numpy()
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], expected)


@pytest.mark.parametrize("draw", ["gain", "reliance", "sources", "cluster_profiles"])
def test_five_hundred_tasks_are_thinned_out_to_names_that_can_be_read(draw):
    rng = np.random.default_rng(0)
    names = [f"task {place}" for place in range(500)]
    if draw == "gain":
        ax = plots.gain(rng.normal(size=500), labels=names)
    elif draw == "reliance":
        ax = plots.reliance(rng.dirichlet(np.ones(4), 500), names)
    elif draw == "sources":
        ax = plots.sources(SimpleNamespace(sources_=rng.normal(size=(500, 3)), tasks_=np.array(names)))
    else:
        X, y, task = kin(500, 3)
        ax = plots.cluster_profiles(kinfolk.ClusteredNB(random_state=0).fit(X, y, task=task))
    ax.figure.canvas.draw()
    boxes = [tick.get_window_extent() for tick in ax.get_yticklabels()]
    assert len(boxes) <= 60
    tops = sorted((box.y0, box.y1) for box in boxes)
    assert all(below[1] <= above[0] + 1.0 for below, above in itertools.pairwise(tops))
    plt.close("all")


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda m: plots.sources(m), "no sources_"),
        (lambda m: plots.number_of(m, "states"), "no n_states_"),
        (lambda m: plots.emissions(m), "no n_states_; a model of sequences"),
        (lambda m: plots.gain(m), "gains are known of rows held out"),
        (lambda m: plots.learning_curves(m), "no mapping"),
        (lambda m: plots.reliance(kinfolk.NoSharingNB()), "not fitted"),
        (lambda m: plots.number_of(m, "kinds"), "what='kinds'"),
        (lambda m: plots.traces(m, "colour"), "quantity='colour'"),
        (lambda m: plots.number_of(kinfolk.NoSharingNB()), "not fitted"),
        (lambda m: plots.log_ratios(m, ["nobody"]), "'nobody' was not in the training data"),
        (lambda m: plots.reliance([[0.5, 0.5]]), "four numbers"),
        (lambda m: plots.reliability([0.5, 0.5], [True]), "one number a row"),
        (lambda m: plots.learning_curves({"a": ([1, 2], [[1.0]])}), "2 sizes"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(sampled, draw, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw(sampled)
