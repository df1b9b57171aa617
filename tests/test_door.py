"""One door: a hostile table gets the same answer or the same sentence from everything that answers.

Asked are the estimator, the predictor that is loaded from its archive, and the command line where it has the model.
"""

import copy
import functools
import json
import pickle
import subprocess
import sys
import warnings
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import kinfolk
from kinfolk.cli.app import app
from kinfolk.tasks import answering

N_ROWS = 24
RNG = np.random.default_rng(4)
WHO = np.array(["ann", "bob", "eve"])[np.arange(N_ROWS) % 3]
LABEL = RNG.permutation(np.repeat(["no", "yes"], N_ROWS // 2))
NUMBERS = pd.DataFrame({"f": RNG.normal(LABEL == "yes", 1.0).round(3), "g": RNG.normal(size=N_ROWS).round(3)})
MIXED = NUMBERS.assign(f=np.where(NUMBERS["f"] > 0.5, "high", "low"))
WORDS = MIXED.assign(g=np.where(NUMBERS["g"] > 0.0, "here", "there"))
FEW = {"n_chains": 1, "n_burn_in": 1, "n_draws": 2, "random_state": 0}


class Family:
    """An estimator with the table that it is fitted to, and what it is asked."""

    def __init__(self, estimator, features, y=None, *, answer="predict_proba", has_tasks=True, command=True):
        self.name = type(estimator).__name__
        self.estimator = estimator
        self.table = features.assign(who=WHO)[["who", *features.columns]] if has_tasks else features
        self.y = y
        self.answer = answer
        self.has_tasks = has_tasks
        self.command = command

    def clone(self):
        return type(self.estimator)(**self.estimator.get_params(deep=False))

    def fit(self, table=None, y=None):
        table = self.table if table is None else table
        y = self.y if y is None else y
        return self.clone().fit(table) if self.y is None else self.clone().fit(table, y)


FAMILIES = [
    Family(kinfolk.ClusteredNB(task_column="who"), MIXED, LABEL),
    Family(kinfolk.NoSharingNB(task_column="who", numeric="gaussian"), MIXED, LABEL),
    Family(kinfolk.PrototypeNB(task_column="who", **FEW), MIXED, LABEL),
    Family(kinfolk.AveragedNB(task_column="who", n_folds=2, random_state=0), MIXED, LABEL),
    Family(kinfolk.TransferClassifier(task_column="who", n_folds=2, random_state=0), MIXED, LABEL),
    Family(
        kinfolk.TransferRegressor(task_column="who", n_folds=2, random_state=0),
        MIXED,
        NUMBERS["g"] + 1.0,
        answer="predict",
        command=False,
    ),
    Family(kinfolk.LICAClassifier(1, task_column="who"), NUMBERS, LABEL, command=False),
    Family(kinfolk.LICARegressor(1, task_column="who"), NUMBERS, NUMBERS["g"] + 1.0, answer="predict", command=False),
    Family(kinfolk.HierarchicalClassifier(task_column="who"), MIXED, LABEL),
    Family(
        kinfolk.HierarchicalRegressor(task_column="who"), MIXED, RNG.normal(size=24), answer="predict", command=False
    ),
    Family(kinfolk.BayesNets(task_column="who"), WORDS, answer="score_samples"),
    Family(kinfolk.BayesMultinet(), WORDS, LABEL, has_tasks=False, command=False),
    Family(kinfolk.NestedIHMM(2, 2, **FEW), NUMBERS, answer="score_samples", has_tasks=False, command=False),
]


@pytest.fixture(autouse=True)
def nothing_divided_before(monkeypatch):
    """Tasks that other tests left out on purpose are not expected here."""
    monkeypatch.setattr(answering, "_divided", deque())


@pytest.fixture(scope="module")
def askers(tmp_path_factory):
    """The estimator, the loaded predictor, and the command line of a family, each as a function of a table."""

    @functools.cache
    def of(name):
        [family] = (one for one in FAMILIES if one.name == name)
        model = family.fit()
        path = tmp_path_factory.mktemp("door") / "model.kin"
        kinfolk.save(model, path)
        who = {"estimator": getattr(model, family.answer), "predictor": getattr(kinfolk.load(path), family.answer)}
        if family.command:
            who["command"] = lambda table: commanded(path, table, family.answer)
        return family, who

    return of


@pytest.fixture(params=[family.name for family in FAMILIES])
def everybody(request, askers):
    """The family, and everything of it that answers."""
    return askers(request.param)


def commanded(path, table, answer):
    """What ``kinfolk predict`` says of a table in a file."""
    file = path.with_name("table.parquet")
    table.to_parquet(file)
    result = CliRunner().invoke(app, ["predict", str(path), str(file), "--json"])
    if result.exit_code:
        assert result.exit_code == 2, result.exception
        raise ValueError(result.stderr.removeprefix("kinfolk: "))
    for line in result.stderr.splitlines():
        warnings.warn(line.removeprefix("kinfolk: "), kinfolk.UnseenWarning, stacklevel=1)
    found = json.loads(result.stdout)
    rows = found["rows"] if isinstance(found, dict) else found
    labels = [f"probability_{label}" for label in ("no", "yes")]
    if answer == "score_samples":
        return np.array([row["log_probability"] for row in rows])
    return np.array([[row[label] for label in labels] for row in rows]).reshape(-1, 2)


def outcome(call, table):
    """An answer, or the words of the sentence that refuses one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(call(table))
        except (ValueError, TypeError) as error:
            return " ".join(str(error).split()).rstrip(".")


def assert_alike(outcomes):
    """All said the same; what that was."""
    first = next(iter(outcomes.values()))
    for who, other in outcomes.items():
        assert isinstance(other, str) == isinstance(first, str), outcomes
        if isinstance(first, str):
            assert other == first, who
        else:
            np.testing.assert_allclose(other, first, rtol=1e-9, err_msg=who)
            assert other.shape == first.shape, who
    return first


def change(**columns):
    """Some columns with other values."""
    return lambda table: table.assign(**{name: value for name, value in columns.items() if name in table})


def row_1(name, value):
    """Another value in row 1 of a column."""
    return lambda table: table.assign(
        **{name: [value if i == 1 else old for i, old in enumerate(table[name])]} if name in table else {}
    )


# A column of words has no infinite number that a file could hold beside them.
INFINITE = {"f": float("inf"), "O": "inf"}
SAME = "the answer to the good table"
EMPTY = "no rows"
ALIKE = "anything, if all say the same"
NUMBERS_ONLY = "a sentence where the column was fitted as numbers, else an answer"

# Each with what is expected: one of the above, or words of the sentence.
TABLES = {
    "a column more": (lambda table: table.assign(more=1), SAME),
    "a column more, in front": (lambda table: table.assign(more="x")[["more", *table.columns]], SAME),
    "a column of missing values more": (lambda table: table.assign(more=None), SAME),
    "tasks as a categorical": (lambda table: table.astype({"who": "category"}) if "who" in table else table, SAME),
    "another index": (lambda table: table.set_index(np.arange(len(table))[::-1] * 7), SAME),
    "no rows": (lambda table: table[:0], EMPTY),
    "columns swapped": (lambda table: table[["g", "f", *[c for c in table if c == "who"]]], "in the same order"),
    "a column less": (lambda table: table.drop(columns="g"), "yet now missing: - g"),
    "a column called otherwise": (lambda table: table.rename(columns={"g": "G"}), "unseen at fit time: - G"),
    "only a column more": (lambda table: table[[]].assign(more=1), "yet now missing: - f - g"),
    "an unseen task": (change(who="zoe"), ALIKE),
    "a task that is a number": (change(who=7), ALIKE),
    "a missing value in f": (row_1("f", None), ALIKE),
    "a missing value in g": (row_1("g", None), ALIKE),
    "a column of missing values": (change(g=None), ALIKE),
    "an unseen category": (row_1("f", "never seen"), ALIKE),
    "infinity": (
        lambda table: table.assign(g=table["g"].where(np.arange(len(table)) != 1, INFINITE[table["g"].dtype.kind])),
        ALIKE,
    ),
    "text for numbers": (lambda table: table.assign(g=table["g"].astype(str)), SAME),
    "text that is no number": (change(g="much"), NUMBERS_ONLY),
    "truth values": (change(g=True), ALIKE),
    "whole numbers": (change(g=3), ALIKE),
    "dates": (change(g=pd.Timestamp("2026-01-01")), ALIKE),
    "lists": (
        lambda table: table.assign(g=[[1, 2]] * len(table)),
        "holds lists or arrays: every cell must be one value",
    ),
    "text of 10,000 characters": (row_1("f", "x" * 10_000), ALIKE),
    "markup, quotes and line breaks in text": (row_1("f", '<script>alert("kin")</script>\n\'--'), ALIKE),
    "a formula as text": (row_1("f", "=1+1"), ALIKE),
    "numbers near the largest float": (change(g=1.7e308), ALIKE),
    "numbers near zero": (change(g=5e-324), ALIKE),
}


def expect(found, expected, good):
    if expected is SAME:
        assert not isinstance(found, str), found
        np.testing.assert_allclose(found, good, rtol=1e-9)
    elif expected is EMPTY:
        assert not isinstance(found, str), found
        # No rows are no answers; of sequences they are one without steps.
        assert found.shape in ((0, *good.shape[1:]), (1,) if good.shape == (1,) else ())
    elif expected is not ALIKE:
        assert isinstance(found, str), "this table should be refused"
        assert expected in found


def check_table(family, who, name):
    hostile, expected = TABLES[name]
    if expected is NUMBERS_ONLY:
        expected = "column 'g', row 0: 'much' is not a number" if family.table["g"].dtype.kind == "f" else ALIKE
    good = assert_alike({one: outcome(call, family.table) for one, call in who.items()})
    assert not isinstance(good, str), good
    found = assert_alike({one: outcome(call, hostile(family.table)) for one, call in who.items()})
    expect(found, expected, good)


@pytest.mark.parametrize("name", TABLES)
def test_a_hostile_table_gets_one_answer_or_one_sentence(everybody, name):
    check_table(*everybody, name)


@pytest.mark.parametrize(("fitted_as", "asked_as"), [(int, str), (str, int)])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_whole_numbers_and_tasks_are_known_by_how_they_are_written(family, fitted_as, asked_as, tmp_path):
    if fitted_as is str and family.table["f"].dtype.kind == "f":
        pytest.skip("numbers alone")
    table = change(who=np.arange(N_ROWS) % 3 + 7)(family.table.assign(g=np.arange(N_ROWS) // 3 % 4))
    drifting = [name for name in ("who", "g") if name in table]
    model = family.fit(table.astype(dict.fromkeys(drifting, fitted_as)))
    kinfolk.save(model, tmp_path / "model.kin")
    for one in (model, kinfolk.load(tmp_path / "model.kin")):
        ask = getattr(one, family.answer)
        asked = table.astype(dict.fromkeys(drifting, asked_as))
        assert told(ask, asked) == []
        np.testing.assert_array_equal(ask(asked), ask(table.astype(dict.fromkeys(drifting, fitted_as))))


UNKNOWN_TASKS = {
    "no task": (lambda table: table.drop(columns="who"), "who"),
    "a missing task": (row_1("who", None), "row 1"),
}


def check_task(family, who, name):
    hostile, expected = UNKNOWN_TASKS[name]
    found = assert_alike({one: outcome(call, hostile(family.table)) for one, call in who.items()})
    expect(found, expected, None)


@pytest.mark.parametrize("name", UNKNOWN_TASKS)
def test_a_model_of_several_tasks_must_be_told_which(everybody, name):
    family, who = everybody
    if not family.has_tasks:
        pytest.skip("one task")
    check_task(family, who, name)


# Forms that no file has: the estimator and the predictor alone.
FORMS = {
    "polars": (pl.from_pandas, SAME),
    "arrow": (lambda table: pa.Table.from_pandas(table, preserve_index=False), SAME),
    "a mapping": (lambda table: {name: table[name].to_numpy() for name in table}, SAME),
    "an array": (lambda table: table.to_numpy(), SAME),
    "a wider array": (lambda table: table.assign(more=1).to_numpy(), "features, but"),
    "a narrower array": (lambda table: table[["f"]].to_numpy(), "features, but"),
    "an array of no rows": (lambda table: table.to_numpy()[:0], EMPTY),
    "a row": (lambda table: table.to_numpy()[0], ALIKE),
    "a number": (lambda table: 3.0, ALIKE),
    "nothing": (lambda table: None, ALIKE),
    "a list of tables": (lambda table: [table, table], "X is a list of 2 tables: put them under each other"),
    "a list of arrays": (lambda table: [table.to_numpy()] * 3, "X is a list of 3 tables: put them under each other"),
    "a column twice": (lambda table: pd.concat([table, table["f"]], axis=1), ALIKE),
}


def check_form(family, who, name):
    hostile, expected = FORMS[name]
    asked = {one: call for one, call in who.items() if one != "command"}
    if not asked:
        return
    if family.has_tasks and name in ("an array", "an array of no rows"):
        expected = "column 'who' is not in the table"
    found = assert_alike({one: outcome(call, hostile(family.table)) for one, call in asked.items()})
    expect(found, expected, outcome(next(iter(asked.values())), family.table))


@pytest.mark.parametrize("name", FORMS)
def test_a_hostile_form_gets_one_answer_or_one_sentence(everybody, name):
    if name.startswith("a list of") and everybody[0].name == "NestedIHMM":
        pytest.skip("a list of tables is one of sequences")
    check_form(*everybody, name)


# What is learnt from: the tables that are asked about, which may have another sentence here, and some more.
TRAINING = {name: hostile for name, (hostile, _) in TABLES.items() if "column more" not in name} | {
    "a column of missing values more": TABLES["a column of missing values more"][0],
    "no columns": lambda table: table[[name for name in table if name == "who"]],
    "a missing task": UNKNOWN_TASKS["a missing task"][0],
    "a column twice": FORMS["a column twice"][0],
    "a list of tables": FORMS["a list of tables"][0],
    "a row": FORMS["a row"][0],
    "nothing": FORMS["nothing"][0],
}
REFUSED = {
    "no rows": "0 sample(s)",
    "no columns": "0 feature(s)",
    "a missing task": "row 1: a task is missing",
    "dates": "column 'g' holds dates or times",
    "lists": "column 'g' holds lists or arrays",
    "a column twice": "column 'f' stands twice",
    "nothing": "Expected 2D array",
}


def fitted(family, given):
    """What a fit to some rows answers about them, or the words of the sentence that refuses them."""

    def fit(rows):
        y = given["y"]
        if y is None and family.y is None:
            model = family.clone().fit(rows)
        else:
            short = len(rows) if isinstance(rows, pd.DataFrame) and not len(rows) else None
            model = family.clone().fit(rows, y[:short], **{k: v for k, v in given.items() if k not in ("X", "y")})
        asked = {"task": given["task"]} if "task" in given else {}
        return getattr(model, family.answer)(rows, **asked)

    return outcome(fit, given["X"])


@pytest.mark.parametrize("name", TRAINING)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_rows_are_learnt_from_or_refused_in_one_sentence(family, name):
    if name == "a missing task" and not family.has_tasks:
        pytest.skip("one task")
    if name in ("a list of tables", "a row") and family.name == "NestedIHMM":
        pytest.skip("both are sequences")
    found = fitted(family, {"X": TRAINING[name](family.table), "y": family.y})
    if name in REFUSED:
        assert REFUSED[name] in found
    if not isinstance(found, str):
        assert np.isfinite(found).all()


COMMANDS = {"ClusteredNB": ["--label", "label"], "BayesNets": ["--model", "bayesnets"]}


@pytest.mark.parametrize("name", [name for name in TRAINING if name not in FORMS])
@pytest.mark.parametrize("model", COMMANDS)
def test_the_command_line_says_the_same_about_rows_to_learn_from(model, name, tmp_path):
    [family] = (one for one in FAMILIES if one.name == model)
    table = TRAINING[name](family.table)
    expected = fitted(family, {"X": table, "y": family.y})
    labelled = table if family.y is None else table.assign(label=family.y[: len(table)])
    labelled.to_parquet(tmp_path / "rows.parquet")
    command = ["fit", str(tmp_path / "rows.parquet"), "-o", str(tmp_path / "model.kin"), "--task", "who"]
    result = CliRunner().invoke(app, [*command, *COMMANDS[model]])
    if not isinstance(expected, str):
        assert result.exit_code == 0, result.stderr
        answers = getattr(kinfolk.load(tmp_path / "model.kin"), family.answer)
        np.testing.assert_allclose(outcome(answers, table), expected, rtol=1e-9)
        return
    assert result.exit_code == 2, result.exception
    found = " ".join(result.stderr.removeprefix("kinfolk: ").split()).rstrip(".")
    if name in ("no columns", "only a column more"):
        # It names the file.
        assert str(tmp_path / "rows.parquet") in found
    else:
        assert found == expected


def with_row(i, value):
    return lambda y: np.array([value if j == i else old for j, old in enumerate(y)], dtype=object)


def weighing(value):
    return lambda y: {"sample_weight": np.array([1.0, 1.0, value] + [1.0] * (N_ROWS - 3))}


# What is given beside a table, each as a function of the labels.
BESIDE = {
    "no label at all": lambda y: {"y": [None] * N_ROWS},
    "one label for all": lambda y: {"y": np.array([y[0]] * N_ROWS)},
    "a missing label": lambda y: {"y": with_row(1, None)(y)},
    "a label that is infinite": lambda y: {
        "y": np.where(np.arange(N_ROWS) == 1, np.inf, 1.0 * (np.arange(N_ROWS) % 2))
    },
    "labels of fewer rows": lambda y: {"y": y[:-1]},
    "labels in two columns": lambda y: {"y": np.stack([y, y], axis=1)},
    "dates as labels": lambda y: {"y": np.array(["2026-01-01"] * N_ROWS, dtype="M8[D]")},
    "complex labels": lambda y: {"y": np.arange(N_ROWS) * 1j},
    "a negative weight": weighing(-2.0),
    "a missing weight": weighing(np.nan),
    "an infinite weight": weighing(np.inf),
    "a weight of 10^16": weighing(1e16),
    "a weight of 10^12": weighing(1e12),
    "complex weights": lambda y: {"sample_weight": np.full(N_ROWS, 1j)},
    "weights of text": lambda y: {"sample_weight": ["heavy"] * N_ROWS},
    "weights of nothing": lambda y: {"sample_weight": np.zeros(N_ROWS)},
    "weights of fewer rows": lambda y: {"sample_weight": [1.0, 2.0]},
    "tasks of fewer rows": lambda y: {"task": WHO[:2]},
    "one name for all tasks": lambda y: {"task": "who"},
    "a missing task beside": lambda y: {"task": with_row(1, None)(WHO)},
    "an infinite task": lambda y: {"task": np.where(np.arange(N_ROWS) == 1, np.inf, 1.0)},
    "dates as tasks": lambda y: {"task": np.array(["2026-01-01"] * N_ROWS, dtype="M8[D]")},
    "lists as tasks": lambda y: {"task": [[1]] * N_ROWS},
    "a task for every row": lambda y: {"task": np.arange(N_ROWS)},
}
LEARNT = {"one label for all", "a missing label", "a weight of 10^12", "a task for every row"}


def untold(family):
    """The family with tasks given beside the table."""
    other = copy.copy(family)
    other.estimator = type(family.estimator)(**family.estimator.get_params(deep=False) | {"task_column": None})
    return other


def beside(family):
    """What a family is given where tasks come beside the table."""
    return {"X": family.table.drop(columns="who"), "y": family.y, "task": WHO}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize(
    "family", [one for one in FAMILIES if one.has_tasks and one.y is not None], ids=lambda family: family.name
)
def test_what_is_given_beside_a_table_is_taken_or_refused_in_one_sentence(family, name):
    y = np.asarray(family.y)
    found = fitted(untold(family), beside(family) | BESIDE[name](y))
    if name in LEARNT:
        assert not isinstance(found, str), found
        assert np.isfinite(found).all()
    else:
        assert isinstance(found, str), "this should be refused"
        assert "\n" not in found


def told(call, table):
    """What is said of a table that much is unknown of, if anything."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(table)
    return [str(one.message) for one in caught if one.category is kinfolk.UnseenWarning]


# What of each table is told, by words of the sentence; None where nothing is.
UNSEEN = {
    "the good table": (lambda table: table, None),
    "tasks never seen": (
        change(who="zoe"),
        "24 of 24 rows are of tasks that the model has never seen ('zoe'; it",
    ),
    "half of the tasks never seen": (
        lambda table: table.assign(who=np.where(np.arange(N_ROWS) < N_ROWS // 2, "zoe", table["who"])),
        None,
    ),
    "few rows of tasks never seen": (lambda table: table.assign(who="zoe")[:19], None),
    "tasks of another type": (change(who=7), "task 7 of row 0 is of another type than the model's tasks ('ann', "),
    "one task of another type": (
        lambda table: table.assign(who=[7 if i == 4 else who for i, who in enumerate(WHO)])[:5],
        "task 7 of row 4 is of another type",
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_tasks_that_most_rows_are_of_and_nobody_knows_are_told(everybody, name):
    family, who = everybody
    if not family.has_tasks:
        pytest.skip("one task")
    hostile, expected = UNSEEN[name]
    for one, call in who.items():
        if one == "command" and "of another type" in str(expected) and name.startswith("one"):
            continue  # no file has a column of both
        found = told(call, hostile(family.table))
        assert len(found) == (expected is not None), one
        assert expected is None or found[0].startswith(expected), one


def strange(values):
    """The column of words of a table with other values."""
    return lambda table: table.assign(f=values) if table["f"].dtype.kind == "O" else None


UNSEEN_VALUES = {
    "unknown words": (strange("odd"), "column 'f' has no value that the model knows ('high', 'low'), but 'odd'"),
    "a known word among unknown ones": (strange(["odd"] * (N_ROWS - 1) + ["low"]), None),
    "nothing at all": (strange(None), None),
    "few unknown words": (lambda table: None if strange("odd")(table) is None else strange("odd")(table)[:19], None),
    "numbers": (strange(3), "column 'f', row 0: 3 is of another type than what the model knows ('high', 'low')"),
}


@pytest.mark.parametrize("name", UNSEEN_VALUES)
def test_a_column_that_nothing_is_known_of_is_told(everybody, name):
    family, who = everybody
    hostile, expected = UNSEEN_VALUES[name]
    table = hostile(family.table)
    if table is None:
        pytest.skip("numbers alone")
    for one, call in who.items():
        found = told(call, table)
        assert len(found) == (expected is not None), one
        assert expected is None or found[0].startswith(expected), one


def test_the_command_line_says_it_in_a_line_on_standard_error(askers, tmp_path):
    family, _ = askers("ClusteredNB")
    kinfolk.save(family.fit(), tmp_path / "model.kin")
    family.table.assign(who="zoe").to_csv(tmp_path / "table.csv", index=False)
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "model.kin"), str(tmp_path / "table.csv")])
    assert result.exit_code == 0
    assert len([line for line in result.stderr.splitlines() if "tasks that the model has never seen" in line]) == 1


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.has_tasks], ids=lambda family: family.name)
def test_expected_tasks_are_not_told(family, tmp_path):
    new = change(who="zoe")(family.table)
    model = type(family.estimator)(**family.estimator.get_params(deep=False) | {"new_tasks": "expected"})
    model = model.fit(family.table) if family.y is None else model.fit(family.table, family.y)
    assert told(getattr(model, family.answer), new) == []
    kinfolk.save(model, tmp_path / "quiet.kin")
    assert told(getattr(kinfolk.load(tmp_path / "quiet.kin"), family.answer), new) == []
    assert len(told(getattr(kinfolk.load(tmp_path / "quiet.kin", new_tasks="warn"), family.answer), new)) == 1
    again = kinfolk.load(tmp_path / "quiet.kin", estimator=True, new_tasks="warn")
    assert len(told(getattr(again, family.answer), new)) == 1
    with pytest.raises(ValueError, match="new_tasks='all': one of 'warn', 'expected' is needed"):
        kinfolk.load(tmp_path / "quiet.kin", new_tasks="all")
    with pytest.raises(ValueError, match="new_tasks='all': one of 'warn', 'expected' is needed"):
        model.set_params(new_tasks="all").fit(family.table, family.y)


def test_new_tasks_of_most_sequences_are_told(tmp_path):
    rng = np.random.default_rng(0)
    model = kinfolk.NestedIHMM(2, 2, **FEW).fit(rng.normal(size=60), [10] * 6, task=list("aabbcc"))
    kinfolk.save(model, tmp_path / "model.kin")
    for one in (model, kinfolk.load(tmp_path / "model.kin")):
        found = told(lambda X, one=one: one.score_samples(X, [3] * 20, task=["n"] * 20), rng.normal(size=60))
        assert [text.partition(" (")[0] for text in found] == [
            "20 of 20 sequences are of tasks that the model has never seen"
        ]
    quiet = kinfolk.load(tmp_path / "model.kin", new_tasks="expected")
    assert told(lambda X: quiet.score_samples(X, [3] * 20, task=["n"] * 20), rng.normal(size=60)) == []


def test_tasks_that_are_left_out_on_purpose_are_not_told():
    table = pd.DataFrame({"f": np.tile(["a", "b"], 40), "who": np.repeat(["left-1", "left-2"], 40)})
    model, split = kinfolk.NoSharingNB(task_column="who"), kinfolk.LeaveTasksOut(task_column="who")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_score(model, table, np.tile([0, 1], 40), cv=split)
        other = change(who="left-3")
        with pytest.raises(kinfolk.UnseenWarning):
            model.fit(table, np.tile([0, 1], 40)).predict(other(table))
        # A model of other tasks does not know one that was left out elsewhere.
        elsewhere = model.fit(change(who="left-4")(table), np.tile([0, 1], 40))
        with pytest.raises(kinfolk.UnseenWarning):
            elsewhere.predict(change(who="left-1")(table))


def test_tasks_that_are_left_out_on_purpose_are_not_told_in_other_processes():
    table = pd.DataFrame({"f": np.tile(["a", "b"], 40), "who": np.repeat(["away-1", "away-2"], 40)})
    split = kinfolk.LeaveTasksOut(task_column="who")
    list(split.split(table, np.tile([0, 1], 40)))
    model = make_pipeline("passthrough", kinfolk.NoSharingNB(task_column="who"))
    asked = (
        "import pickle, sys, warnings\n"
        "warnings.simplefilter('error')\n"
        "model, table = pickle.load(sys.stdin.buffer)\n"
        "model.fit(table[:40], [0, 1] * 20).predict(table[40:])\n"
        "try:\n"
        "    model.predict(table[40:].assign(who='unknown'))\n"
        "except Warning as warning:\n"
        "    print(type(warning).__name__)\n"
    )
    given = pickle.dumps((model, table))
    done = subprocess.run([sys.executable, "-c", asked], input=given, capture_output=True, check=False)
    assert done.stdout.split() == [b"UnseenWarning"], done.stderr.decode()
    # A fitted model goes elsewhere without what happened here.
    assert b"away-2" not in pickle.dumps(model[-1].fit(table[:40], np.tile([0, 1], 20)))


def test_tables_by_task_are_told_of_as_one_table_is(tmp_path):
    rows = {"f": ["a", "b"] * 12, "g": [1, 2, 2] * 8}
    model = kinfolk.BayesNets(restarts=0).fit({7: rows, 8: rows | {"f": ["a", "a", "a", "b"] * 6}})
    kinfolk.save(model, tmp_path / "nets.kin")
    for who in (model, kinfolk.load(tmp_path / "nets.kin")):
        for ask in (who.score_samples, who.impute):
            assert told(ask, {7: rows, 8: rows}) == told(ask, {"7": rows}) == []
            [new] = told(ask, {8: {"f": ["a"], "g": [1]}, 9: rows})
            assert new.startswith("24 of 25 rows are of tasks that the model has never seen (9; it knows 7, 8)")
            [strange] = told(ask, {"north": rows})
            assert strange.startswith("task 'north' of row 0 is of another type than the model's tasks (7, 8)")
            [unknown] = told(ask, {7: rows | {"f": ["c"] * 24}})
            assert unknown.startswith("column 'f' has no value that the model knows ('a', 'b'), but 'c'")
        np.testing.assert_array_equal(who.score_samples({"7": rows})["7"], who.score_samples({7: rows})[7])
        assert who.query("f", task="7").marginal("f") == who.query("f", task=7).marginal("f")
    quiet = kinfolk.load(tmp_path / "nets.kin", new_tasks="expected")
    assert told(quiet.score_samples, {9: rows}) == []


def test_the_command_can_be_told_that_new_tasks_are_expected(tmp_path):
    table = pd.DataFrame({"f": ["a", "b"] * 12, "who": ["ann", "bob"] * 12})
    kinfolk.save(kinfolk.NoSharingNB(task_column="who").fit(table, [0, 0, 1, 1] * 6), tmp_path / "model.kin")
    table.assign(who="zoe").to_csv(tmp_path / "new.csv", index=False)
    for command in ("predict", "decide"):
        ask = [command, str(tmp_path / "model.kin"), str(tmp_path / "new.csv")]
        assert "tasks that the model has never seen" in CliRunner().invoke(app, ask).stderr
        assert CliRunner().invoke(app, [*ask, "--new-tasks", "expected"]).stderr == ""


def test_a_warning_points_at_the_line_that_asked():
    model = kinfolk.NoSharingNB().fit([["a"], ["b"]], [0, 1], task=["here", "there"])
    with pytest.warns(kinfolk.UnseenWarning) as caught:
        model.predict([["a"]] * 20, task=["nowhere"] * 20)
    assert caught[0].filename == __file__


def test_a_loaded_model_says_what_it_is(everybody):
    family, who = everybody
    said = repr(who["predictor"].__self__)
    assert said.startswith(f"<{family.name}, ready to answer: ")
    assert "'f', 'g'" in said
    assert not family.has_tasks or "3 tasks ('ann', 'bob', 'eve')" in said
    assert family.answer != "predict_proba" or "labels 'no', 'yes'" in said
