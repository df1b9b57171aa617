"""Estimators fitted to the counts of a file give what they give when fitted to its rows."""

import numpy as np
import polars as pl
import pytest

import kinfolk
from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB

MODELS = [
    NoSharingNB(),
    CompleteSharingNB(share_labels=False),
    ClusteredNB(),
    ClusteredNB(inference="variational", random_state=0),
    ClusteredNB(temper="learn"),
]


def make_rows():
    rng = np.random.default_rng(0)
    task = rng.integers(6, size=600)
    yes = rng.random(600) < 0.5
    sky = np.where(rng.random(600) < 0.8, (task < 3) == yes, rng.random(600) < 0.5)
    return pl.DataFrame(
        {
            "sky": np.where(sky, "red", "blue"),
            "who": pl.Series([f"person {t}" for t in task]),
            "size": rng.normal(size=600) + yes,
            "hours": pl.Series(rng.integers(4, size=600)).replace(3, None),
            "answer": np.where(yes, "yes", "no"),
        }
    )


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_counts_of_a_file_give_the_model_of_its_rows(model, tmp_path):
    rows = make_rows()
    rows.write_parquet(tmp_path / "rows.parquet")
    counts = kinfolk.count_rows(tmp_path / "rows.parquet", label="answer", task="who", batch_rows=77)
    X = rows.drop("answer", "who")
    expected = model.fit(X, rows["answer"], task=rows["who"]).predict_proba(X, task=rows["who"])
    evidence = model.log_evidence_
    model.fit_statistics(counts)
    np.testing.assert_allclose(model.predict_proba(X, task=rows["who"]), expected, atol=1e-10)
    assert model.log_evidence_ == pytest.approx(evidence, abs=1e-8)
    assert model.predict(X.head(1), task=["person 0"]).tolist()[0] in ("no", "yes")


def test_the_task_may_be_a_column_of_the_rows_to_predict():
    rows = make_rows()
    counts = kinfolk.count_rows(rows, label="answer", task="who")
    model = NoSharingNB(task_column="who").fit_statistics(counts)
    X = rows.drop("answer")
    expected = NoSharingNB(task_column="who").fit(X, rows["answer"]).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    assert model.feature_names_in_.tolist() == ["sky", "who", "size", "hours"]


def test_a_model_of_counts_is_saved_and_loaded(path):
    rows = make_rows()
    model = ClusteredNB().fit_statistics(kinfolk.count_rows(rows, label="answer", task="who"))
    kinfolk.save(model, path)
    X = rows.drop("answer", "who")
    np.testing.assert_allclose(
        kinfolk.load(path).predict_proba(X, task=rows["who"]), model.predict_proba(X, task=rows["who"]), atol=1e-12
    )


def test_unlabelled_rows_are_counted_and_left_out_with_a_warning():
    rows = make_rows().with_columns(pl.when(pl.int_range(pl.len()) > 1).then("answer").alias("answer"))
    counts = kinfolk.count_rows(rows, label="answer", task="who")
    with pytest.warns(UserWarning, match=r"^2 unlabelled rows are left out: counts hold labelled rows alone$"):
        NoSharingNB().fit_statistics(counts)


def test_counts_that_do_not_fit_get_one_sentence():
    counts = kinfolk.count_rows(make_rows(), label="answer", task="who")
    with pytest.raises(ValueError, match=r"^task_column='size', but the table was counted with tasks in column 'who'$"):
        NoSharingNB(task_column="size").fit_statistics(counts)
    with pytest.raises(ValueError, match="give nothing beside them"):
        NoSharingNB().fit_statistics(counts, tasks=["a"])
    with pytest.raises(ValueError, match=r"^label_counts is needed beside feature_counts"):
        NoSharingNB().fit_statistics(np.ones((2, 2, 1, 2)))
