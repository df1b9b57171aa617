"""Fit, predict, decide and inspect by the command line give what the Python interface gives."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk.decisions import Loss, decide, expected_loss
from tests.cli.conftest import Run, write

ROLES = ("--task", "who is it", "--label", "answer")


@pytest.fixture
def fitted(meetings: pd.DataFrame) -> kinfolk.ClusteredNB:
    return kinfolk.ClusteredNB(task_column="who is it").fit(meetings.drop(columns="answer"), meetings["answer"])


@pytest.fixture
def model(run: Run, meetings: pd.DataFrame, tmp_path: Path) -> Path:
    write(meetings, tmp_path / "train.csv")
    result = run("fit", "train.csv", *ROLES, "-o", "team.kin")
    assert result.exit_code == 0, result.stderr
    return tmp_path / "team.kin"


def printed(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


def test_every_kind_of_file_gives_the_numbers_of_the_python_interface(
    run: Run, table: Path, meetings: pd.DataFrame, fitted: kinfolk.ClusteredNB
) -> None:
    assert run("fit", table, *ROLES, "-o", "team.kin").exit_code == 0
    result = run("predict", "team.kin", table)
    assert result.exit_code == 0
    assert result.stderr == ""
    found = printed(result.stdout)
    assert found.columns.tolist() == ["task", "predicted", "probability_no", "probability_yes"]
    assert found["task"].tolist() == meetings["who is it"].tolist()
    X = meetings.drop(columns="answer")
    assert found["predicted"].tolist() == fitted.predict(X).tolist()
    np.testing.assert_allclose(found.iloc[:, 2:], fitted.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.parquet", "out.json"])
def test_output_files_hold_what_standard_output_shows(run: Run, model: Path, name: str) -> None:
    shown = printed(run("predict", model, "train.csv").stdout)
    result = run("predict", model, "train.csv", "-o", name)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    if name.endswith("json"):
        found = pd.DataFrame(json.loads(Path(name).read_text())["rows"])
    elif name.endswith("parquet"):
        found = pd.read_parquet(name)
    else:
        found = pd.read_csv(name, sep="\t" if name.endswith("tsv") else ",")
    pd.testing.assert_frame_equal(
        found.astype({"task": object, "predicted": object}), shown.astype({"task": object, "predicted": object})
    )


def test_decisions_are_those_of_least_expected_loss(
    run: Run, model: Path, meetings: pd.DataFrame, fitted: kinfolk.ClusteredNB
) -> None:
    proba = fitted.predict_proba(meetings.drop(columns="answer"))
    loss = Loss.asymmetric(2, ["no", "yes"], positive="no").with_ask(0.3)
    options = ("--asymmetric", 2, "--positive", "no", "--ask-cost", 0.3)
    found = printed(run("decide", model, "train.csv", *options).stdout)
    losses = ["expected_loss_no", "expected_loss_yes", "expected_loss_ask"]
    assert found.columns.tolist() == [
        "task", "decision", "expected_loss", *losses, "probability_no", "probability_yes",
    ]  # fmt: skip
    assert found["decision"].tolist() == decide(proba, loss).tolist()
    assert set(found["decision"]) == {"no", "yes", "ask"}
    np.testing.assert_allclose(found[losses], expected_loss(proba, loss), rtol=1e-12)
    np.testing.assert_allclose(found["expected_loss"], found[losses].min(axis=1), rtol=1e-12)


def test_a_loss_file_names_labels_and_actions_in_any_order(run: Run, model: Path) -> None:
    Path("loss.csv").write_text("label,go,stay,flip\nyes,0,4,1.5\nno,1,0,1.5\n")
    found = printed(run("decide", model, "train.csv", "--loss", "loss.csv").stdout)
    p = found["probability_yes"]
    np.testing.assert_allclose(found["expected_loss_go"], 1 - p, atol=1e-12)
    np.testing.assert_allclose(found["expected_loss_stay"], 4 * p, atol=1e-12)
    np.testing.assert_allclose(found["expected_loss_flip"], 1.5, atol=1e-12)
    assert (found["decision"] == np.where(p > 0.2, "go", "stay")).all()


def test_decisions_without_a_loss_are_the_predictions(run: Run, model: Path) -> None:
    decided, predicted = (printed(run(c, model, "train.csv").stdout) for c in ("decide", "predict"))
    assert decided["decision"].tolist() == predicted["predicted"].tolist()


@pytest.mark.parametrize("labels", [(0, 1), (False, True)])
def test_labels_that_are_no_text_stand_beside_ask(run: Run, meetings: pd.DataFrame, labels: tuple) -> None:
    meetings["answer"] = [labels[answer == "yes"] for answer in meetings["answer"]]
    meetings.to_parquet("train.parquet")
    assert run("fit", "train.parquet", *ROLES, "-o", "team.kin").exit_code == 0
    positive = str(labels[1]).lower()
    options = ("--asymmetric", 1, "--positive", positive, "--ask-cost", 0.3, "--json")
    found = json.loads(run("decide", "team.kin", "train.parquet", *options).stdout)
    assert found["labels"] == list(labels)
    assert found["actions"] == [*labels, "ask"]
    names = [str(label).lower() for label in labels]
    assert {row["decision"] for row in found["rows"]} == {*names, "ask"}
    Path("loss.csv").write_text(f"label,a,b\n{positive},0,1\n{names[0]},1,0\n")
    chosen = printed(run("decide", "team.kin", "train.parquet", "--loss", "loss.csv").stdout)
    assert (chosen["decision"] == np.where(chosen[f"probability_{positive}"] >= 0.5, "a", "b")).all()


def test_inspect_tells_clusters_tasks_kin_and_what_tells_labels_apart(
    run: Run, model: Path, fitted: kinfolk.ClusteredNB
) -> None:
    result = run("inspect", model, "--json", "--features", 3)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["log_evidence"] == pytest.approx({"value": fitted.log_evidence_, "kind": "lower bound", "error": 0.0})
    assert [entry["task"] for entry in found["tasks"]] == fitted.tasks_.tolist()
    assert [entry["cluster"] for entry in found["tasks"]] == fitted.partition_.tolist()
    assert [entry["labelled_rows"] for entry in found["tasks"]] == [30] * 6
    assert [entry["tasks"] for entry in found["clusters"]] == [
        fitted.tasks_[fitted.partition_ == cluster].tolist() for cluster in range(max(fitted.partition_) + 1)
    ]
    ratios = fitted.log_ratios(estimate="mean")
    for entry in found["clusters"]:
        own = ratios[ratios["cluster"] == entry["cluster"]]["log_ratio"]
        assert [r["log_ratio"] for r in entry["log_ratios"]] == pytest.approx(
            sorted(own, key=lambda ratio: -abs(ratio))[:3]
        )

    one = json.loads(run("inspect", model, "--task", "person 0", "--json").stdout)
    similarity = dict(zip(fitted.tasks_.tolist(), fitted.similarity_[0].tolist(), strict=True))
    assert {kin["task"]: kin["similarity"] for kin in one["kin"]} == pytest.approx(
        {task: p for task, p in similarity.items() if task != "person 0"}
    )
    rates = fitted.label_rates()
    assert one["label_rates"] == pytest.approx(
        dict(rates[rates["task"] == "person 0"][["label", "probability"]].itertuples(index=False))
    )


def test_inspect_in_words_shows_every_task_and_cluster(run: Run, model: Path) -> None:
    text = run("inspect", model).stdout
    assert "lower bound" in text
    for person in range(6):
        assert f"person {person}" in text
    assert "größe" in text
    text = run("inspect", model, "--task", "person 5").stdout
    assert "person 4" in text
    assert "person 0" not in text


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (("--model", "no-sharing"), kinfolk.NoSharingNB()),
        (("--model", "complete-sharing", "--own-labels"), kinfolk.CompleteSharingNB(share_labels=False)),
        (("--inference", "exact", "--concentration", 2), kinfolk.ClusteredNB(inference="exact", concentration=2.0)),
        (
            ("--bins", 3, "--label-prior", 2, "--feature-prior", 0.5, "--temper", 0.7),
            kinfolk.ClusteredNB(bins=3, label_prior=2.0, feature_prior=0.5, temper=0.7),
        ),
    ],
)
def test_options_of_fit_reach_the_estimator(
    run: Run, meetings: pd.DataFrame, options: tuple, estimator: kinfolk.ClusteredNB
) -> None:
    write(meetings, Path("train.csv"))
    result = run("fit", "train.csv", *ROLES, *options, "-o", "team.kin", "--json")
    about = json.loads(result.stdout)
    X, task = meetings.drop(columns=["answer", "who is it"]), meetings["who is it"]
    estimator.fit(X, meetings["answer"], task=task)
    assert about["model"] == type(estimator).__name__
    assert (about["rows"], about["unlabelled_rows"], about["file"]) == (180, 0, "team.kin")
    assert about["log_evidence"]["value"] == pytest.approx(estimator.log_evidence_)
    found = printed(run("predict", "team.kin", "train.csv").stdout)
    np.testing.assert_allclose(found.iloc[:, 2:], estimator.predict_proba(X, task=task), rtol=1e-12)


def test_gibbs_repeats_with_its_seed_and_estimates_evidence_only_when_asked(run: Run, meetings: pd.DataFrame) -> None:
    few = meetings.groupby("who is it").head(6).copy()
    few.loc[few.index[::4], "answer"] = None
    write(few, Path("train.csv"))
    fit = ("fit", "train.csv", *ROLES, "--inference", "gibbs", "--json")
    first, second = (json.loads(run(*fit, "--seed", 3, "-o", name).stdout) for name in ("a.kin", "b.kin"))
    assert first["log_evidence"] is None
    assert first["unlabelled_rows"] == 9
    assert "not estimated" in run("inspect", "a.kin").stdout
    assert run("predict", "a.kin", "train.csv").stdout == run("predict", "b.kin", "train.csv").stdout
    asked = json.loads(run(*fit, "--seed", 3, "--evidence", "-o", "c.kin").stdout)
    assert asked["log_evidence"]["kind"] == "estimate"
    assert asked["log_evidence"] == json.loads(run("inspect", "c.kin", "--json").stdout)["log_evidence"]
    assert second["clusters"] == first["clusters"]


def test_features_weights_and_marks_of_unlabelled_rows_are_taken_from_named_columns(
    run: Run, meetings: pd.DataFrame
) -> None:
    meetings["weight"] = np.arange(len(meetings)) % 3
    meetings["answer"] = (meetings["answer"] == "yes").astype(int)
    meetings.loc[::5, "answer"] = -1
    write(meetings, Path("train.csv"))
    roles = (*ROLES, "--weight", "weight", "--unlabelled", -1, "--drop", "hours")
    result = run("fit", "train.csv", *roles, "-o", "team.kin", "--json")
    assert "unlabelled rows are left out" in result.stderr
    about = json.loads(result.stdout)
    assert about["features"] == ["colour", "größe"]
    assert about["labels"] == [0, 1]
    assert about["unlabelled_rows"] == 36
    kept = meetings[meetings["answer"] >= 0]
    X, task = kept[["colour", "größe"]], kept["who is it"]
    # Bins are learnt from unlabelled rows too, and here the labelled ones need the same edges.
    edges = kinfolk.load("team.kin")._schema.columns[1].edges
    by_hand = kinfolk.ClusteredNB(bins={"größe": edges}).fit(X, kept["answer"], task=task, sample_weight=kept["weight"])
    found = printed(run("predict", "team.kin", "train.csv").stdout)[(meetings["answer"] >= 0).to_numpy()]
    np.testing.assert_allclose(found.iloc[:, 2:], by_hand.predict_proba(X, task=task), rtol=1e-12)
    same = run("fit", "train.csv", *ROLES, "--feature", "größe", "--feature", "colour", "-o", "x.kin", "--json")
    assert json.loads(same.stdout)["features"] == ["colour", "größe"]


def test_tables_go_through_pipes(run: Run, model: Path) -> None:
    text = Path("train.csv").read_bytes()
    assert run("predict", model, "-", given=text).stdout == run("predict", model, "train.csv").stdout
    assert run("fit", "-", *ROLES, "-o", "piped.kin", given=text).exit_code == 0
    assert run("inspect", "piped.kin", "--json").stdout == run("inspect", model, "--json").stdout


def test_a_model_fitted_in_python_to_arrays_predicts_for_columns_in_their_order(
    run: Run, meetings: pd.DataFrame
) -> None:
    X = meetings[["hours", "größe"]].to_numpy()
    array_model = kinfolk.NoSharingNB().fit(X, meetings["answer"], task=meetings["who is it"])
    kinfolk.save(array_model, "array.kin")
    write(meetings[["hours", "größe", "who is it"]], Path("new.csv"))
    found = printed(run("predict", "array.kin", "new.csv", "--task", "who is it").stdout)
    np.testing.assert_allclose(found.iloc[:, 2:], array_model.predict_proba(X, task=meetings["who is it"]), rtol=1e-12)
    result = run("predict", "array.kin", "new.csv")
    assert result.exit_code == 2
    assert "X has 3 features, but NoSharingNB is expecting 2 features" in result.stderr


def test_a_model_of_one_nameless_task_needs_no_task_column(run: Run, meetings: pd.DataFrame) -> None:
    kinfolk.save(kinfolk.NoSharingNB().fit(meetings[["colour"]], meetings["answer"]), "one.kin")
    write(meetings, Path("new.csv"))
    assert printed(run("predict", "one.kin", "new.csv").stdout).columns.tolist() == [
        "predicted", "probability_no", "probability_yes",
    ]  # fmt: skip


def test_a_task_column_may_be_a_feature_of_a_model_fitted_in_python(run: Run, meetings: pd.DataFrame) -> None:
    X = meetings[["who is it", "colour"]]
    both = kinfolk.NoSharingNB().fit(X, meetings["answer"], task=meetings["who is it"])
    kinfolk.save(both, "both.kin")
    write(meetings, Path("new.csv"))
    found = printed(run("predict", "both.kin", "new.csv", "--task", "who is it").stdout)
    np.testing.assert_allclose(found.iloc[:, 2:], both.predict_proba(X, task=meetings["who is it"]), rtol=1e-12)


@pytest.mark.parametrize("arguments", [(), ("--model", "no-sharing"), ("--weight", "hours"), ("--unlabelled", "no")])
def test_a_large_table_is_counted_and_gives_the_same_model(
    run: Run, table: Path, meetings: pd.DataFrame, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = run("fit", table, *ROLES, *arguments, "-o", "small.kin", "--json")
    assert small.exit_code == 0, small.stderr
    monkeypatch.setattr("kinfolk.cli.fit_naive_bayes.LARGE_ROWS", 1)
    monkeypatch.setattr("kinfolk.cli.fit_naive_bayes.LARGE_BYTES", 1)
    monkeypatch.setattr("kinfolk.cli.fit_naive_bayes._fit_rows", None)
    large = run("fit", table, *ROLES, *arguments, "-o", "large.kin", "--json")
    assert large.exit_code == 0, large.stderr
    one, other = (json.loads(result.stdout) for result in (small, large))
    assert (one["rows"], one["unlabelled_rows"]) == (other["rows"], other["unlabelled_rows"])
    assert one["log_evidence"] == pytest.approx(other["log_evidence"])
    assert run("predict", "large.kin", table).stdout == run("predict", "small.kin", table).stdout


def test_a_large_table_with_unlabelled_rows_is_read_where_the_model_learns_from_them(
    run: Run, meetings: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinfolk.cli.fit_naive_bayes.LARGE_BYTES", 1)
    meetings.loc[:3, "answer"] = None
    write(meetings, tmp_path / "train.csv")
    result = run("fit", "train.csv", *ROLES, "--model", "no-sharing", "-o", "team.kin", "--json")
    assert result.exit_code == 0, result.stderr
    assert sum(task["unlabelled_rows"] for task in json.loads(result.stdout)["tasks"]) == 4


def test_an_average_of_all_kinds_of_models_is_fitted_inspected_and_predicts_as_in_python(
    run: Run, meetings: pd.DataFrame
) -> None:
    write(meetings, Path("train.csv"))
    result = run("fit", "train.csv", *ROLES, "--model", "transfer", "-o", "team.kin", "--json")
    assert result.exit_code == 0, result.stderr
    X = meetings.drop(columns="answer")
    fitted = kinfolk.TransferClassifier(task_column="who is it", random_state=0).fit(X, meetings["answer"])
    assert json.loads(result.stdout)["weights"] == pytest.approx(fitted.weights_)
    found = printed(run("predict", "team.kin", "train.csv").stdout)
    np.testing.assert_allclose(found.iloc[:, 2:], fitted.predict_proba(X), rtol=1e-9)
    for arguments in ((), ("--json",), ("--task", meetings["who is it"].iloc[0])):
        shown = run("inspect", "team.kin", *arguments)
        assert shown.exit_code == 0, shown.stderr
    assert "new task" in run("inspect", "team.kin").stdout


def test_numbers_are_fitted_inspected_and_predicted_with_what_they_lie_between(
    run: Run, meetings: pd.DataFrame
) -> None:
    write(meetings, Path("train.csv"))
    roles = ("--task", "who is it", "--label", "hours", "--model", "transfer-regressor", "-o", "team.kin")
    result = run("fit", "train.csv", *roles)
    assert result.exit_code == 0, result.stderr
    assert "weights" in run("inspect", "team.kin").stdout
    found = printed(run("predict", "team.kin", "train.csv").stdout)
    assert found.columns.tolist()[1:] == ["predicted", "standard_deviation", "quantile_0.05", "quantile_0.95"]
    assert (found["quantile_0.05"] < found["quantile_0.95"]).all()
    refused = run("fit", "train.csv", *ROLES, "--model", "transfer-regressor", "-o", "team.kin")
    assert refused.exit_code == 2
    assert "column 'answer' holds String, not numbers" in refused.stderr


def test_an_average_is_fitted_inspected_and_predicts_as_in_python(run: Run, meetings: pd.DataFrame) -> None:
    write(meetings, Path("train.csv"))
    result = run("fit", "train.csv", *ROLES, "--model", "averaged", "-o", "team.kin", "--json")
    assert result.exit_code == 0, result.stderr
    about = json.loads(result.stdout)
    X = meetings.drop(columns="answer")
    fitted = kinfolk.AveragedNB(task_column="who is it", random_state=0).fit(X, meetings["answer"])
    assert about["weights"] == pytest.approx(fitted.weights_)
    found = printed(run("predict", "team.kin", "train.csv").stdout)
    np.testing.assert_allclose(found.iloc[:, 2:], fitted.predict_proba(X), rtol=1e-9)
    assert run("decide", "team.kin", "train.csv", "--ask-cost", 0.1).exit_code == 0
    for arguments in ((), ("--json",), ("--task", meetings["who is it"].iloc[0])):
        shown = run("inspect", "team.kin", *arguments)
        assert shown.exit_code == 0, shown.stderr
    assert "weights" in run("inspect", "team.kin").stdout


@pytest.mark.parametrize("given", ["learn", "0.4"])
def test_hyper_parameters_are_numbers_or_learnt(run: Run, meetings: pd.DataFrame, given: str) -> None:
    write(meetings, Path("train.csv"))
    options = ("--label-prior", given, "--feature-prior", given, "--temper", given, "--concentration", given)
    assert run("fit", "train.csv", *ROLES, *options, "-o", "team.kin").exit_code == 0
    model = kinfolk.load("team.kin", estimator=True)
    expected = given if given == "learn" else float(given)
    assert (model.label_prior, model.feature_prior, model.temper, model.concentration) == (expected,) * 4


def test_columns_of_numbers_are_taken_as_the_command_line_says(run: Run, meetings: pd.DataFrame) -> None:
    write(meetings, Path("train.csv"))
    assert run("fit", "train.csv", *ROLES, "--numeric", "gaussian", "-o", "team.kin").exit_code == 0
    assert kinfolk.load("team.kin", estimator=True).numeric == "gaussian"
    refused = run("fit", "train.csv", *ROLES, "--model", "prototype", "--numeric", "gaussian", "-o", "team.kin")
    assert refused.exit_code == 2
    assert "PrototypeNB takes no columns of numbers" in refused.stderr
    refused = run("fit", "train.csv", "--task", "who", "--model", "bayesnets", "--numeric", "auto", "-o", "team.kin")
    assert refused.exit_code == 2
    models = "clustered, no-sharing, complete-sharing, prototype or averaged"
    assert f"--numeric belongs to --model {models}" in refused.stderr


def test_a_linear_model_fitted_in_python_predicts_and_decides(run: Run, meetings: pd.DataFrame) -> None:
    X = meetings[["größe", "hours", "who is it"]]
    model = kinfolk.LICAClassifier(n_sources=1, inference="map", task_column="who is it", random_state=0)
    kinfolk.save(model.fit(X, meetings["answer"]), "linear.kin")
    write(meetings[["größe", "hours", "colour", "who is it"]], Path("new.csv"))
    found = printed(run("predict", "linear.kin", "new.csv").stdout)
    np.testing.assert_allclose(found.iloc[:, 2:], model.predict_proba(X), rtol=1e-9)
    assert run("decide", "linear.kin", "new.csv", "--ask-cost", 0.1).exit_code == 0
    result = run("inspect", "linear.kin")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "linear.kin holds LICAClassifier" in result.stderr


def test_what_columns_were_taken_for_is_said(run: Run) -> None:
    ages = [20 + i % 40 for i in range(200)]
    write(
        pd.DataFrame(
            {
                "who": ["ann", "bob"] * 100,
                "age": ages,
                "shoes": [age % 3 for age in ages],
                "height": [1.5 + age / 100 for age in ages],
                "answer": ["old" if age >= 40 else "young" for age in ages],
            }
        ),
        Path("t.csv"),
    )
    fitted = run("fit", "t.csv", "--task", "who", "--label", "answer", "-o", "m.kin").stdout
    shown = run("inspect", "m.kin").stdout
    for text in (fitted, shown):
        assert "age (8 bins), shoes, height (8 bins)" in text
    about = json.loads(run("inspect", "m.kin", "--json").stdout)
    assert about["taken_for"] == {"age": "8 bins", "shoes": "3 categories", "height": "8 bins"}
