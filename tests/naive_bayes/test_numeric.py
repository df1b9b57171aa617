"""Naive Bayes with columns of numbers beside categories, on every way of sharing and of inference."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import kinfolk
from kinfolk import AveragedNB, ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB
from kinfolk.tasks.schema import Number
from tests.oracle import log_crp, partitions

# Short chains serve where only their bookkeeping is looked at.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FAMILIES = {"height": "gaussian", "visits": "count"}
PLAIN = {"label_prior": 1.0, "feature_prior": 1.0, "temper": 1.0}
FEW = {"n_chains": 2, "n_burn_in": 20, "n_draws": 60, "random_state": 0}


def make_rows(n_rows, n_tasks, seed, apart=3.0):
    """Rows of tasks of two kinds, which differ in how height and visits go with the label."""
    rng = np.random.default_rng(seed)
    task, y = np.arange(n_rows) % n_tasks, rng.integers(0, 2, n_rows)
    turn = np.where(task % 2 == 0, 1, -1)
    columns = {
        "colour": rng.choice(["red", "blue"], n_rows),
        "height": 170.0 + 5.0 * rng.normal(size=n_rows) + apart * turn * y,
        "visits": rng.poisson(3.0 + 2.0 * y),
    }
    holes = rng.random(n_rows) < 0.1
    columns["height"] = [
        None if hole else height for hole, height in zip(holes, columns["height"].tolist(), strict=True)
    ]
    return pl.DataFrame(columns), y, task


ROWS, LABELS, TASKS = make_rows(24, 4, 1)


def log_marginal(rows, y, number_of):
    """Log density of rows that share their parameters, by the chain rule over scipy's distributions."""
    total = 0.0
    for label in (0, 1):
        mine = rows.filter(pl.Series(y == label))
        colours = mine["colour"].to_list()
        seen = {"red": 0, "blue": 0}
        for i, colour in enumerate(colours):
            total += np.log((1.0 + seen[colour]) / (2.0 + i))
            seen[colour] += 1
        heights = mine["height"].drop_nulls().to_numpy()
        height = number_of["height"]
        kappa, a, b, _ = height.prior
        mean = 0.0
        for z in (heights - height.centre) / height.scale:
            t = stats.t(2 * a, mean, np.sqrt(b * (kappa + 1) / (a * kappa)))
            total += t.logpdf(z) - np.log(height.scale)
            b += 0.5 * kappa * (z - mean) ** 2 / (kappa + 1)
            mean = (kappa * mean + z) / (kappa + 1)
            kappa, a = kappa + 1, a + 0.5
        shape, rate = number_of["visits"].prior[:2]
        for x in mine["visits"].to_list():
            total += stats.nbinom.logpmf(x, shape, rate / (1 + rate))
            shape, rate = shape + x, rate + 1
    return total


def log_labels(y):
    """Log probability of one task's labels."""
    return sum(np.log((1.0 + np.sum(y[:i] == label)) / (2.0 + i)) for i, label in enumerate(y))


def numbers_of(model):
    return {column.name: column.number for column in model._result.schema.columns if column.number is not None}


def enumerated(rows, y, task, concentration, number_of):
    """Log joint of data and each partition of the tasks."""
    known = {}
    joint = {}
    for partition in partitions(int(task.max()) + 1):
        total = log_crp(partition, concentration)
        for cluster in set(partition):
            members = tuple(u for u, c in enumerate(partition) if c == cluster)
            if members not in known:
                kept = np.isin(task, members)
                known[members] = log_marginal(rows.filter(pl.Series(kept)), y[kept], number_of)
            total += known[members]
        joint[partition] = total + sum(log_labels(y[task == u]) for u in range(int(task.max()) + 1))
    return joint


class TestEnumeration:
    """Everything that a sum over all partitions says."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def fitted(cls):
        model = ClusteredNB(**PLAIN, inference="exact", concentration=0.7, numeric=FAMILIES)
        cls.MODEL = model.fit(ROWS, LABELS, task=TASKS)
        cls.JOINT = enumerated(ROWS, LABELS, TASKS, 0.7, numbers_of(model))

    def test_the_evidence_is_that_of_the_raw_numbers(self):
        assert self.MODEL.log_evidence_ == pytest.approx(logsumexp(list(self.JOINT.values())), abs=1e-8)

    def test_similarity_is_the_posterior_probability_of_sharing(self):
        weights = np.exp(np.array(list(self.JOINT.values())) - self.MODEL.log_evidence_)
        for i, j in ((0, 1), (0, 2), (1, 3)):
            together = sum(w for z, w in zip(self.JOINT, weights, strict=True) if z[i] == z[j])
            assert self.MODEL.similarity_[i, j] == pytest.approx(together, abs=1e-8)

    @pytest.mark.parametrize("asked", [0, 2, 4])
    def test_predictions_are_ratios_of_evidence(self, asked):
        """The next row's labels are as probable as the data with that row; task 4 is a new one."""
        more = pl.DataFrame({"colour": ["red"], "height": [176.5], "visits": [6]})
        task = np.append(TASKS, asked)
        log_p = [
            logsumexp(
                list(
                    enumerated(
                        pl.concat([ROWS, more]), np.append(LABELS, y), task, 0.7, numbers_of(self.MODEL)
                    ).values()
                )
            )
            for y in (0, 1)
        ]
        expected = np.exp(log_p - logsumexp(log_p))
        assert self.MODEL.predict_proba(more, task=[asked])[0] == pytest.approx(expected, abs=1e-8)

    def test_a_missing_number_is_left_out(self):
        row = pl.DataFrame(
            {"colour": ["red"], "height": [None], "visits": [6]}, schema_overrides={"height": pl.Float64}
        )
        only = ROWS.drop("height")
        without = ClusteredNB(**PLAIN, inference="exact", concentration=0.7, numeric=FAMILIES).fit(
            ROWS, LABELS, task=TASKS
        )
        # With the partition held, a missing column is as if it had never been there.
        pooled = CompleteSharingNB(**PLAIN, numeric=FAMILIES).fit(ROWS, LABELS, task=TASKS)
        smaller = CompleteSharingNB(**PLAIN, numeric={"visits": "count"}).fit(only, LABELS, task=TASKS)
        assert pooled.predict_proba(row, task=[0]) == pytest.approx(smaller.predict_proba(row.drop("height"), task=[0]))
        assert np.isfinite(without.predict_proba(row, task=[0])).all()

    def test_hierarchical_clustering_bounds_the_evidence_from_below(self):
        model = ClusteredNB(**PLAIN, concentration=0.7, numeric=FAMILIES).fit(ROWS, LABELS, task=TASKS)
        assert model.log_evidence_ <= self.MODEL.log_evidence_ + 1e-9
        assert model.log_evidence_ == pytest.approx(self.MODEL.log_evidence_, abs=0.2)
        assert model.similarity_ == pytest.approx(self.MODEL.similarity_, abs=0.1)

    def test_hierarchical_clustering_finds_the_odds_of_its_merges(self):
        model = ClusteredNB(**PLAIN, concentration=0.7, numeric=FAMILIES).fit(ROWS, LABELS, task=TASKS)
        i, j = model.tree_.children[0]
        pairs = [np.isin(TASKS, members) for members in (i, j, (i, j))]
        alone, other, both = (log_marginal(ROWS.filter(pl.Series(k)), LABELS[k], numbers_of(model)) for k in pairs)
        assert model.tree_.log_odds[0] == pytest.approx(both - alone - other - np.log(0.7), abs=1e-8)

    def test_gibbs_sampling_agrees(self):
        model = ClusteredNB(
            **PLAIN, inference="gibbs", concentration=0.7, numeric=FAMILIES, n_burn_in=50, n_draws=500, random_state=0
        ).fit(ROWS, LABELS, task=TASKS)
        assert model.similarity_ == pytest.approx(self.MODEL.similarity_, abs=0.06)
        assert model.log_evidence_ == pytest.approx(self.MODEL.log_evidence_, abs=5 * model.log_evidence_error_ + 0.05)


def test_unlabelled_rows_are_summed_over_as_enumeration_says():
    labels = [None if i in (3, 8, 17) else int(y) for i, y in enumerate(LABELS)]
    exact = ClusteredNB(**PLAIN, inference="exact", numeric=FAMILIES).fit(ROWS, labels, task=TASKS)
    numbers = numbers_of(exact)
    logs, firsts = [], []
    for guess in np.ndindex(2, 2, 2):
        filled = LABELS.copy()
        filled[[3, 8, 17]] = guess
        logs.append(logsumexp(list(enumerated(ROWS, filled, TASKS, 1.0, numbers).values())))
        firsts.append(guess[0])
    assert exact.log_evidence_ == pytest.approx(logsumexp(logs), abs=1e-8)
    one = np.exp(logsumexp(np.array(logs)[np.array(firsts) == 1]) - logsumexp(logs))
    assert exact.label_distributions_[3, 1] == pytest.approx(one, abs=1e-8)
    sampled = ClusteredNB(**PLAIN, inference="gibbs", numeric=FAMILIES, n_burn_in=50, n_draws=500, random_state=1)
    sampled.fit(ROWS, labels, task=TASKS)
    assert sampled.label_distributions_ == pytest.approx(exact.label_distributions_, abs=0.04)


def test_unlabelled_rows_that_differ_only_in_a_number_keep_their_own_probabilities():
    heights = [150.0] * 6 + [190.0] * 6 + [151.0, 189.0]
    y = [0] * 6 + [1] * 6 + [None, None]
    model = NoSharingNB(**PLAIN, numeric={"height": "gaussian"}, **FEW).fit(pd.DataFrame({"height": heights}), y)
    assert model.transduction_.tolist()[-2:] == [0, 1]


def test_kinds_of_tasks_that_differ_only_in_numbers_are_found():
    rows, y, task = make_rows(600, 12, 5, apart=6.0)
    for inference in ("bhc", "randomised-bhc", "gibbs"):
        model = ClusteredNB(**PLAIN, inference=inference, numeric=FAMILIES, **FEW).fit(rows, y, task=task)
        assert model.partition_.tolist() == [0, 1] * 6


def test_two_calls_of_partial_fit_are_one_fit_in_the_same_units():
    rows, y, task = make_rows(80, 4, 2)
    numbers = {**FAMILIES}
    whole = ClusteredNB(**PLAIN, numeric=numbers)
    whole.partial_fit(rows[:50], y[:50], task=task[:50]).partial_fit(rows[50:], y[50:], task=task[50:])
    # The second half first meets the units of the first.
    again = ClusteredNB(**PLAIN, numeric=numbers).partial_fit(rows[:50], y[:50], task=task[:50])
    again.partial_fit(rows[65:], y[65:], task=task[65:]).partial_fit(rows[50:65], y[50:65], task=task[50:65])
    assert again.predict_proba(rows, task=task) == pytest.approx(whole.predict_proba(rows, task=task))
    assert again.log_evidence_ == pytest.approx(whole.log_evidence_)


def test_a_row_of_weight_two_counts_as_two_rows():
    rows, y, task = make_rows(30, 3, 3)
    twice = pl.concat([rows, rows[:10]])
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    repeated = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(twice, np.append(y, y[:10]), task=np.append(task, task[:10]))
    weighted = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(rows, y, task=task, sample_weight=weights)
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_)
    assert weighted.predict_proba(rows, task=task) == pytest.approx(repeated.predict_proba(rows, task=task))


def test_neither_the_order_of_rows_nor_the_names_of_tasks_matter():
    rows, y, task = make_rows(60, 6, 4)
    order = np.random.default_rng(0).permutation(60)
    names = np.array(["f", "b", "d", "a", "e", "c"])
    first = ClusteredNB(**PLAIN, inference="gibbs", numeric=FAMILIES, **FEW).fit(rows, y, task=task)
    other = ClusteredNB(**PLAIN, inference="gibbs", numeric=FAMILIES, **FEW).fit(
        rows[order], y[order], task=names[task[order]]
    )
    assert np.array_equal(first.predict_proba(rows, task=task), other.predict_proba(rows, task=names[task]))


def test_units_do_not_matter_to_predictions():
    rows, y, task = make_rows(60, 4, 6)
    feet = rows.with_columns(height=pl.col("height") / 30.48 - 1e3)
    metric = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(rows, y, task=task)
    imperial = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(feet, y, task=task)
    assert imperial.predict_proba(feet, task=task) == pytest.approx(metric.predict_proba(rows, task=task), rel=1e-6)
    # A density in feet is 30.48 times that in centimetres.
    n_seen = rows["height"].drop_nulls().len()
    assert imperial.log_evidence_ == pytest.approx(metric.log_evidence_ + n_seen * np.log(30.48), abs=1e-6)


@pytest.mark.parametrize("library", ["polars", "pandas", "numpy"])
def test_every_library_gives_the_same(library):
    rows = ROWS.drop("colour")
    given = {"polars": rows, "pandas": rows.to_pandas(), "numpy": rows.to_numpy()}[library]
    families = {0: "gaussian", 1: "count"} if library == "numpy" else FAMILIES
    model = ClusteredNB(**PLAIN, numeric=families).fit(given, LABELS, task=TASKS)
    expected = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(rows, LABELS, task=TASKS)
    assert np.array_equal(model.predict_proba(given, task=TASKS), expected.predict_proba(rows, task=TASKS))
    assert model.log_evidence_ == expected.log_evidence_
    assert type(model.numeric_rates()).__module__.split(".")[0] == ("pandas" if library == "pandas" else "polars")


@pytest.mark.parametrize(
    "values",
    [
        np.full(12, 3.5),
        np.full(12, np.nan),
        1e12 + np.arange(12.0),
        np.tile([-1.7e308, 1.7e308], 6),
        1.0 + 1e-14 * np.arange(12),
        np.where(np.arange(12) % 4 == 0, np.nan, np.arange(12) * 1e-200),
    ],
    ids=["constant", "all missing", "huge", "largest", "hardly varying", "tiny"],
)
@pytest.mark.parametrize("estimator", [NoSharingNB(), CompleteSharingNB(), ClusteredNB()])
@pytest.mark.parametrize("n_tasks", [2, 12])
def test_extreme_columns_leave_everything_finite(values, estimator, n_tasks):
    y, task = np.arange(12) // 2 % 2, np.arange(12) % n_tasks
    model = estimator.set_params(numeric={0: "gaussian"}, **PLAIN).fit(values[:, None], y, task=task)
    assert np.isfinite(model.log_evidence_)
    for asked in (values, np.full(12, 1e300), np.full(12, -1e-300)):
        assert np.isfinite(model.predict_log_proba(asked[:, None], task=task)).all()


@pytest.mark.parametrize("kind", [CompleteSharingNB, ClusteredNB, AveragedNB])
@pytest.mark.parametrize("numeric", ["gaussian", "auto"])
def test_tables_of_numbers_alone_are_learnt_as_scikit_learn_learns_them(kind, numeric):
    rng = np.random.default_rng(0)
    y, task = np.arange(1500) % 2, np.arange(1500) % 3
    X = rng.normal(y[:, None] * [1.0, -2.0], [1.0, 3.0], size=(1500, 2))
    model = kind(numeric=numeric, random_state=0) if kind is AveragedNB else kind(numeric=numeric)
    found = model.fit(X, y, task=task).predict_proba(X, task=task)
    # Tasks are alike, so that priors and what was held out leave little between them.
    np.testing.assert_allclose(found, GaussianNB().fit(X, y).predict_proba(X), atol=0.06)


def test_a_count_never_seen_and_one_far_away_are_predicted():
    model = ClusteredNB(**PLAIN, numeric={0: "count"}).fit(np.zeros((8, 1)), [0, 1] * 4, task=[0, 1, 2, 3] * 2)
    assert model.predict_proba([[0], [10**9], [-1]], task=[0, 0, 9]).sum(axis=1) == pytest.approx(1.0)
    # A negative count says nothing, so that only the new task's label rates are left.
    assert model.predict_proba([[-1]], task=[9])[0].tolist() == [0.5, 0.5]


class TestSaving:
    """A model with numbers in a file and back."""

    @pytest.mark.parametrize("inference", ["bhc", "gibbs"])
    def test_a_saved_model_predicts_the_same_bits(self, tmp_path, inference):
        labels = [None if i % 5 == 0 and inference == "gibbs" else int(y) for i, y in enumerate(LABELS)]
        model = ClusteredNB(**PLAIN, inference=inference, numeric=FAMILIES, **FEW).fit(ROWS, labels, task=TASKS)
        kinfolk.save(model, tmp_path / "model.kin")
        expected = model.predict_proba(ROWS, task=TASKS)
        assert np.array_equal(kinfolk.load(tmp_path / "model.kin").predict_proba(ROWS, task=TASKS), expected)
        again = kinfolk.load(tmp_path / "model.kin", estimator=True)
        assert np.array_equal(again.predict_proba(ROWS, task=TASKS), expected)
        assert again.numeric_rates().equals(model.numeric_rates())
        more = make_rows(10, 4, 8)
        for one in (again, model):
            one.partial_fit(more[0], more[1], task=more[2])
        assert np.array_equal(again.predict_proba(ROWS, task=TASKS), model.predict_proba(ROWS, task=TASKS))

    def test_prediction_from_a_file_needs_numpy_alone(self, tmp_path):
        model = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(ROWS, LABELS, task=TASKS)
        kinfolk.save(model, tmp_path / "model.kin")
        code = f"""
import sys
for name in ("scipy", "numba", "sklearn", "polars", "pandas", "joblib"):
    sys.modules[name] = None
import kinfolk
model = kinfolk.load({str(tmp_path / "model.kin")!r})
table = {{"colour": ["red"], "height": [171.0], "visits": [4]}}
print(model.predict_proba(table, task=[0])[0, 1])
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        row = pl.DataFrame({"colour": ["red"], "height": [171.0], "visits": [4]})
        assert float(done.stdout) == model.predict_proba(row, task=[0])[0, 1]

    @pytest.mark.parametrize(
        ("number", "message"),
        [
            (["cauchy", 0.0, 1.0], "units of its column"),
            (["gaussian", 0.0, 0.0], "units"),
            (["count", 0.0, 1.0], "fit"),
        ],
    )
    def test_units_that_make_no_sense_are_refused(self, tmp_path, number, message):
        model = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(ROWS, LABELS, task=TASKS)
        kinfolk.save(model, tmp_path / "model.kin")
        with zipfile.ZipFile(tmp_path / "model.kin") as packed:
            parts = {name: packed.read(name) for name in packed.namelist()}
        about = json.loads(parts["model.json"])
        about["schema"][1]["number"] = number
        parts["model.json"] = json.dumps(about).encode()
        with zipfile.ZipFile(tmp_path / "bad.kin", "w") as packed:
            for name, data in parts.items():
                packed.writestr(name, data)
        with pytest.raises(ValueError, match=message):
            kinfolk.load(tmp_path / "bad.kin")


class TestFindings:
    """Tables and explanations."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def fitted(cls):
        model = CompleteSharingNB(**PLAIN, share_labels=False, numeric=FAMILIES)
        cls.MODEL = model.fit(ROWS, LABELS, task=TASKS)

    def test_numeric_rates_are_shrunk_means_and_deviations(self):
        height = numbers_of(self.MODEL)["height"]
        table = self.MODEL.numeric_rates().filter(pl.col("label") == 1)
        heights = ROWS.filter(pl.Series(LABELS == 1))["height"].drop_nulls().to_numpy()
        kappa, a, b, _ = height.prior
        weight = kappa + len(heights)
        mean = (kappa * height.centre + heights.sum()) / weight
        squares = b * height.scale**2 + 0.5 * (
            ((heights - heights.mean()) ** 2).sum()
            + kappa * len(heights) / weight * (heights.mean() - height.centre) ** 2
        )
        found = table.filter(pl.col("feature") == "height")
        assert found["family"].to_list() == ["gaussian"]
        assert found["mean"].to_list() == pytest.approx([mean])
        assert found["standard_deviation"].to_list() == pytest.approx([np.sqrt(squares / (a + 0.5 * len(heights)))])
        visits = ROWS.filter(pl.Series(LABELS == 1))["visits"]
        shape, rate = numbers_of(self.MODEL)["visits"].prior[:2]
        expected = (shape + visits.sum()) / (rate + len(visits))
        assert table.filter(pl.col("feature") == "visits")["mean"].to_list() == pytest.approx([expected])

    def test_a_tasks_rates_are_those_of_its_cluster_where_that_is_certain(self):
        of_tasks = self.MODEL.numeric_rates(by="task")
        assert of_tasks.filter(pl.col("task") == 2)["mean"].to_list() == pytest.approx(
            self.MODEL.numeric_rates()["mean"].to_list()
        )

    def test_tables_of_categories_leave_numbers_out(self):
        assert set(self.MODEL.feature_rates()["feature"]) == {"colour"}
        assert set(self.MODEL.log_ratios()["feature"]) == {"colour"}

    def test_an_explanation_adds_up_to_the_log_odds(self):
        model = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(ROWS, LABELS, task=TASKS)
        explanation = model.explain(ROWS, task=TASKS)
        p = model.predict_log_proba(ROWS, task=TASKS)
        assert explanation.log_odds() == pytest.approx(p[:, 1] - p[:, 0])
        assert explanation.own + explanation.kin + explanation.everybody + explanation.prior == pytest.approx(1.0)
        assert explanation.feature_names == ["colour", "height", "visits"]

    def test_an_explanation_says_what_a_number_added(self):
        """Under complete sharing a feature adds the log ratio of its predictive densities."""
        explanation = self.MODEL.explain(ROWS, task=TASKS)
        row = int(np.flatnonzero(ROWS["height"].is_not_null().to_numpy())[0])
        shape, rate = numbers_of(self.MODEL)["visits"].prior[:2]
        log_p = []
        for label in (0, 1):
            visits = ROWS.filter(pl.Series(np.equal(LABELS, label)))["visits"]
            q = (rate + len(visits)) / (1 + rate + len(visits))
            log_p.append(stats.nbinom.logpmf(ROWS["visits"][row], shape + visits.sum(), q))
        added = explanation.feature_part[row, 2, 1] - explanation.feature_part[row, 2, 0]
        assert added == pytest.approx(log_p[1] - log_p[0])
        assert explanation.values[row][1] == f"{ROWS['height'][row]:.6g}"

    def test_tempering_acts_on_numbers_too(self):
        blind = CompleteSharingNB(numeric=FAMILIES, temper=0.0).fit(ROWS, LABELS, task=TASKS)
        assert np.ptp(blind.predict_proba(ROWS, task=TASKS), axis=0) == pytest.approx([0.0, 0.0])


class TestLeavingOut:
    """Rows taken out of a fit, and powers chosen by them."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def fitted(cls):
        model = CompleteSharingNB(share_labels=False, numeric=FAMILIES, **PLAIN | {"temper": "learn"})
        cls.MODEL = model.fit(ROWS, LABELS, task=TASKS)

    def test_a_rows_own_numbers_are_gone(self):
        left_out = self.MODEL._leave_out(self.MODEL._result.rows)
        numbers = numbers_of(self.MODEL)
        for i in range(len(LABELS)):
            for label in (0, 1):
                others = ROWS.filter(pl.Series(np.equal(LABELS, label) & (np.arange(len(LABELS)) != i)))
                shape, rate = numbers["visits"].prior[:2]
                shape, rate = shape + others["visits"].sum(), rate + len(others)
                expected = stats.nbinom.logpmf(ROWS["visits"][i], shape, rate / (1 + rate))
                assert left_out.log_fit[i, 2, label] == pytest.approx(expected)
            if ROWS["height"][i] is None:
                assert left_out.log_fit[i, 1].tolist() == [0.0, 0.0]

    def test_powers_stand_in_the_order_of_the_columns(self):
        swapped = self.MODEL.get_params() | {"numeric": FAMILIES}
        other = CompleteSharingNB(**swapped).fit(ROWS.select("visits", "colour", "height"), LABELS, task=TASKS)
        assert other.temper_ == pytest.approx(self.MODEL.temper_[[2, 0, 1]], abs=1e-4)
        plain = CompleteSharingNB(**PLAIN, share_labels=False, numeric=FAMILIES).fit(ROWS, LABELS, task=TASKS)
        untempered = plain.explain(ROWS, task=TASKS).feature_part
        tempered = self.MODEL.explain(ROWS, task=TASKS).feature_part
        assert tempered == pytest.approx(self.MODEL.temper_[:, None] * untempered)
        log_odds = self.MODEL.explain(ROWS, task=TASKS).log_odds()
        log_p = self.MODEL.predict_log_proba(ROWS, task=TASKS)
        assert log_p[:, 1] - log_p[:, 0] == pytest.approx(log_odds)

    def test_everything_can_be_learnt_beside_numbers(self, tmp_path):
        learnt = dict.fromkeys(("temper", "label_prior", "feature_prior", "concentration"), "learn")
        model = ClusteredNB(numeric=FAMILIES, **learnt).fit(ROWS, LABELS, task=TASKS)
        only_numbers = ClusteredNB(numeric=FAMILIES, **learnt).fit(ROWS.drop("colour"), LABELS, task=TASKS)
        assert only_numbers.temper_.shape == (2,)
        kinfolk.save(model, tmp_path / "model.kin")
        again = kinfolk.load(tmp_path / "model.kin")
        assert np.array_equal(again.predict_proba(ROWS, task=TASKS), model.predict_proba(ROWS, task=TASKS))


def test_the_families_of_columns_are_what_was_asked_for():
    model = NoSharingNB(**PLAIN, numeric={"height": "gaussian", "visits": "bin"}).fit(ROWS, LABELS, task=TASKS)
    kinds = [(column.categories is None, column.number is None) for column in model._result.schema.columns]
    assert kinds == [(False, True), (True, False), (True, True)]
    assert numbers_of(model) == {"height": Number("gaussian", *numbers_of(model)["height"][1:])}


@pytest.mark.parametrize("given", ["gauss", 3, {"height": "normal"}, None])
def test_an_unknown_family_is_one_clear_sentence(given):
    with pytest.raises(ValueError, match=r'numeric=.*: give one of "bin", "gaussian", "count", "auto"'):
        ClusteredNB(**PLAIN, numeric=given).fit(ROWS, LABELS, task=TASKS)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="column 'weight' is not in the table"):
        ClusteredNB(**PLAIN, numeric={"weight": "gaussian"}).fit(ROWS, LABELS, task=TASKS)


WITHOUT_DENSITIES = {
    'partition_per="feature"': ClusteredNB(partition_per="feature"),
    'within="noisy"': ClusteredNB(within="noisy", **FEW),
    'inference="variational"': ClusteredNB(inference="variational"),
    "PrototypeNB": PrototypeNB(**FEW),
}


@pytest.mark.parametrize("name", WITHOUT_DENSITIES)
@pytest.mark.parametrize("numeric", [FAMILIES, {"visits": "count"}])
def test_models_of_rates_alone_say_that_they_take_no_numbers(name, numeric):
    column = "height" if "height" in numeric else "visits"
    with pytest.raises(ValueError, match=f"{name} takes no columns of numbers, as column '{column}' is to be"):
        clone(WITHOUT_DENSITIES[name]).set_params(numeric=numeric).fit(ROWS, LABELS, task=TASKS)


def test_numbers_that_came_before_are_refused_by_a_model_of_rates_alone():
    model = ClusteredNB(**PLAIN, numeric=FAMILIES).fit(ROWS, LABELS, task=TASKS)
    with pytest.raises(ValueError, match='within="noisy" takes no columns of numbers'):
        model.set_params(within="noisy").partial_fit(ROWS, LABELS, task=TASKS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", WITHOUT_DENSITIES)
def test_auto_chooses_between_bins_and_categories_for_models_of_rates_alone(name):
    rng = np.random.default_rng(0)
    y, task = rng.integers(0, 2, 80), rng.integers(0, 3, 80)
    # Of whole numbers, smooth ones that go with the label are best in bins, and round ones best as categories.
    columns = {
        "height": rng.normal(size=80),
        "age": np.round(30.0 + 4.0 * rng.normal(size=80) + 10.0 * y).astype(int),
        "price": np.where(rng.random(80) < 0.8, 5 * rng.integers(0, 12, 80), rng.integers(0, 60, 80)),
    }
    model = clone(WITHOUT_DENSITIES[name]).set_params(numeric="auto", random_state=0)
    found = model.fit(pd.DataFrame(columns), y, task=task)._result.schema.columns
    assert [column.number is None for column in found] == [True] * 3
    assert [column.edges is None for column in found] == [False, False, True]
