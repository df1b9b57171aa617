"""Whole numbers that nobody called categories: what the labels of the training rows make of them."""

import numpy as np
import polars as pl
import pytest

import kinfolk
from kinfolk.tasks.choosing import choose_coding
from kinfolk.tasks.columns import learn_schema
from kinfolk.tasks.streaming.counting import count_rows
from kinfolk.tasks.table import read_table

FEW = {"n_chains": 1, "n_burn_in": 1, "n_draws": 2}
RNG = np.random.default_rng(7)
AGE = RNG.integers(20, 60, 300)
OLD = np.where(RNG.random(300) < 1.0 / (1.0 + np.exp(0.3 * (40 - AGE))), "old", "young")
ODD = np.where(AGE % 2 == 1, "odd", "even")


def kind_of(values, labels, weights=None, **how):
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    declared = how.pop("declared", {})
    given = {"categorical_features": "auto", "bins": 8, "numeric": "bin", **how}
    table = read_table({"x": values})
    return learn_schema(table, weights, declared=declared, labels=codes, **given).columns[0].kind


def test_numbers_whose_order_tells_are_binned_and_codes_are_not():
    assert kind_of(AGE, OLD) == "bin"
    assert kind_of(AGE, ODD) == "category"
    # With rows enough each value is known by itself, whatever the order.
    every = np.repeat(AGE, 60)
    steep = (np.tile(np.arange(60), 300) < np.repeat(60 * (AGE - 20) // 40, 60)).astype(int)
    assert kind_of(AGE, steep[::60]) == "bin"
    assert kind_of(every, steep) == "category"


def urn(code, labels, n_labels):
    """Log probability of labels, one after the other: Laplace's rule of succession within every code."""
    seen, total = {}, 0.0
    for c, y in zip(code, labels, strict=True):
        counts = seen.setdefault(c, np.ones(n_labels))
        total += np.log(counts[y] / counts.sum())
        counts[y] += 1
    return total


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_that_of_labels_predicted_one_by_one(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 12, 60).astype(float)
    labels = rng.integers(0, 3, 60) if seed % 2 else (values // 3 + rng.integers(0, 2, 60)).astype(int) % 3
    edges = np.array([2.0, 5.0, 8.0])
    bins, categories = urn(np.searchsorted(edges, values), labels, 3), urn(values, labels, 3)
    assert choose_coding(values, None, labels.astype(np.int32), edges) == ("bin" if bins > categories else "category")
    gaps = np.append(values, np.nan), np.append(labels, 0).astype(np.int32)
    unlabelled = np.append(values, 3.0), np.append(labels, -1).astype(np.int32)
    for numbers, codes in (gaps, unlabelled):
        assert choose_coding(numbers, None, codes, edges) == ("bin" if bins > categories else "category")


def test_only_what_nobody_decided_is_weighed():
    assert kind_of(AGE, OLD, categorical_features=["x"]) == "category"
    assert kind_of(AGE, OLD, declared={0: tuple(range(20, 60))}) == "category"
    assert kind_of(AGE, ODD, categorical_features=[]) == "bin"
    assert kind_of(AGE, ODD, bins={"x": 4}) == "bin"
    assert kind_of(AGE, OLD, numeric="gaussian") == "category"
    assert kind_of(AGE, ODD, numeric={"x": "bin"}) == "bin"
    assert kind_of([str(age) for age in AGE], OLD) == "category"
    assert learn_schema(read_table({"x": AGE}), None, "auto", 8, {}).columns[0].kind == "category"


def test_whole_numbers_of_no_more_values_than_bins_are_categories():
    few, label = AGE // 5, np.where(AGE > 40, "old", "young")
    assert len(np.unique(few)) == 8
    assert kind_of(few, label) == "category"
    assert kind_of(few[:60], OLD[:60], bins=2) == "bin"
    assert kind_of(AGE, OLD, bins=1) == "category"


def test_neither_the_order_of_rows_nor_how_often_they_are_written_down_matters():
    for label in (OLD, ODD):
        counts = RNG.integers(1, 4, 300)
        repeated = kind_of(np.repeat(AGE, counts), np.repeat(label, counts))
        order = RNG.permutation(300)
        assert kind_of(AGE[order], label[order], weights=counts[order].astype(float)) == repeated


@pytest.mark.parametrize("n", [20, 40, 80, 300])
@pytest.mark.parametrize("label", [OLD, ODD], ids=["order", "codes"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_counted_give_the_same_columns(n, label, weighted):
    y = label[:n].astype(object)
    y[::7] = None
    rows = pl.DataFrame({"age": AGE[:n], "who": np.arange(n) % 3, "y": y.tolist()})
    weights = np.where(np.arange(n) % 5 == 0, 0.0, 1.0 + np.arange(n) % 2)
    how = {"sample_weight": weights} if weighted else {}
    model = kinfolk.NoSharingNB(random_state=0, **FEW).fit(rows.select("age"), y, task=np.arange(n) % 3, **how)
    expected = model._result.schema.columns[0]
    given = {"weight": "w"} if weighted else {}
    counts = count_rows(rows.with_columns(w=weights), task="who", label="y", features=["age"], batch_rows=17, **given)
    [found] = counts.schema.columns
    assert found.kind == expected.kind
    assert found.value_names == expected.value_names


@pytest.mark.parametrize(
    "model",
    [
        kinfolk.NoSharingNB(),
        kinfolk.CompleteSharingNB(),
        kinfolk.ClusteredNB(),
        kinfolk.PrototypeNB(**FEW),
        kinfolk.AveragedNB(members=[kinfolk.NoSharingNB(), kinfolk.CompleteSharingNB()], n_folds=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_naive_bayes_model_takes_a_column_for_the_same(model):
    model.set_params(random_state=0).fit({"age": AGE, "same": AGE}, OLD, task=np.arange(300) % 3)
    for member in getattr(model, "members_", {"": model}).values():
        assert [column.kind for column in member._result.schema.columns] == ["bin", "bin"]
    model.fit({"age": AGE}, ODD, task=np.arange(300) % 3)
    for member in getattr(model, "members_", {"": model}).values():
        assert [column.kind for column in member._result.schema.columns] == ["category"]


def test_values_that_were_given_priors_one_by_one_stay_categories():
    ages = np.unique(AGE)
    model = kinfolk.NoSharingNB(feature_prior={"age": np.ones(len(ages))}).fit({"age": AGE}, OLD)
    assert model._result.schema.columns[0].categories == tuple(ages.tolist())
