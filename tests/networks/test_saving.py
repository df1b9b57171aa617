"""Bayes nets in files: nothing is lost, numpy alone reads them, and damage costs one sentence."""

import itertools
import json
import subprocess
import sys
import zipfile

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

import kinfolk
from kinfolk import BayesNets
from kinfolk.datasets import make_related_networks, sample_tasks
from tests.saved_models import saved
from tests.test_hostile_files import array_of, assert_refused, distortions, edited, members_of

NETWORKS = make_related_networks("asia", 3, p_delete=0.2, random_state=1)
BY_TASK = dict(zip("abc", sample_tasks(NETWORKS, 120, random_state=0).values(), strict=True))
LONG = pl.concat([table.with_columns(task=pl.lit(name)) for name, table in BY_TASK.items()])


@pytest.fixture(scope="module")
def long_form():
    return BayesNets(task_column="task", bootstrap=2, random_state=0).fit(LONG)


@pytest.fixture(scope="module")
def by_task():
    """Tasks of several types and sizes: one lacks a variable, one has numbers that are binned, one has gaps."""
    rng = np.random.default_rng(0)
    numbers = {"size": pl.Series(rng.normal(size=120)), "flag": pl.Series(rng.random(120) < 0.3)}
    gaps = pl.when(pl.int_range(120) % 9 == 0).then(None).otherwise(pl.col("bronc"))
    tables = {
        1: BY_TASK["a"].drop("xray"),
        "b": BY_TASK["b"].drop("asia").with_columns(**numbers),
        "c": BY_TASK["c"].with_columns(bronc=gaps),
    }
    return BayesNets(missing="em", bins=3, random_state=0).fit(tables), tables


@pytest.fixture
def long_file(long_form, path):
    return saved(long_form, path)


def test_a_loaded_predictor_gives_the_log_probabilities_of_the_model(long_form, long_file):
    predictor = kinfolk.load(long_file)
    asked = LONG[:50].with_columns(
        task=pl.Series(["somebody new", *LONG["task"][1:50]]),
        bronc=pl.Series([None, "never seen", *LONG["bronc"][2:50]]),
    )
    np.testing.assert_array_equal(predictor.score_samples(asked), long_form.score_samples(asked))
    assert predictor.tasks_.tolist() == ["a", "b", "c"]
    assert list(predictor.networks_) == ["a", "b", "c"]
    assert predictor.feature_names_in_ == [name for name in LONG.columns if name != "task"]


def test_model_and_predictor_leave_other_columns_aside_and_refuse_another_order(long_form, long_file):
    predictor = kinfolk.load(long_file)
    asked = LONG.select(pl.lit("x").alias("other"), pl.all())
    expected = long_form.score_samples(LONG)
    for one in (predictor, long_form):
        np.testing.assert_array_equal(one.score_samples(asked), expected)
        with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
            one.score_samples(LONG.select(sorted(LONG.columns, reverse=True)))
        assert one.score_samples(LONG[:0]).shape == (0,)


def test_a_predictor_reads_plain_lists_and_takes_the_task_apart(long_form, long_file):
    columns = LONG.drop("task").to_dict(as_series=False)
    found = kinfolk.load(long_file).score_samples(columns, task=LONG["task"].to_list())
    np.testing.assert_array_equal(found, long_form.score_samples(LONG))


def test_tables_of_each_task_are_scored_as_by_the_model(by_task, path):
    model, tables = by_task
    predictor = kinfolk.load(saved(model, path))
    expected, found = model.score_samples(tables), predictor.score_samples(tables)
    assert list(found) == list(expected) == [1, "b", "c"]
    for task in tables:
        np.testing.assert_array_equal(found[task], expected[task])
    assert predictor.tasks_.tolist() == [1, "b", "c"]
    whole = BayesNets(random_state=0).fit(BY_TASK)
    asked = {"b": BY_TASK["b"].drop("tub"), "zoe": BY_TASK["c"][:3]}
    expected, found = whole.score_samples(asked), kinfolk.load(saved(whole, path)).score_samples(asked)
    for task in asked:
        np.testing.assert_array_equal(found[task], expected[task])


def test_the_saved_tables_are_those_of_the_model_to_the_last_bit(by_task, path):
    model, _ = by_task
    predictor = kinfolk.load(saved(model, path))
    for task, network in model.networks_.items():
        found = predictor.networks_[task]
        assert (found.variables, found.states, found.parents) == (network.variables, network.states, network.parents)
        for one, other in zip(found.tables, network.tables, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_model_of_an_array_scores_columns_by_their_order(path):
    codes = np.random.default_rng(1).integers(0, 3, (60, 4))
    model = BayesNets().fit(codes)
    predictor = kinfolk.load(saved(model, path))
    np.testing.assert_array_equal(predictor.score_samples(codes), model.score_samples(codes))
    np.testing.assert_array_equal(predictor.score_samples(pd.DataFrame(codes)), model.score_samples(codes))


def test_scoring_needs_numpy_alone(long_file, tmp_path):
    LONG.write_json(tmp_path / "rows.json")
    code = (
        "import json, sys, kinfolk\n"
        f"rows = json.load(open({str(tmp_path / 'rows.json')!r}))\n"
        f"predictor = kinfolk.load({str(long_file)!r})\n"
        "columns = {name: [row[name] for row in rows] for name in rows[0]}\n"
        "columns['xray'][0] = None\n"
        "assert len(predictor.score_samples(columns)) == len(rows)\n"
        "by_task = {'b': {name: values for name, values in columns.items() if name != 'task'}}\n"
        "assert len(predictor.score_samples(by_task)['b']) == len(rows)\n"
        "heavy = ('numba', 'scipy', 'sklearn', 'networkx', 'narwhals', 'polars', 'pandas')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_predictor_says_what_it_misses(by_task, long_file, tmp_path):
    predictor = kinfolk.load(long_file)
    with pytest.raises(ValueError, match="yet now missing:\n- tub"):
        predictor.score_samples(LONG.drop("tub"))
    with pytest.raises(ValueError, match="task= and task_column='task' were both given"):
        predictor.score_samples(LONG, task=LONG["task"])
    with pytest.raises(ValueError, match="task has 1 entries for 360 rows"):
        predictor.score_samples(LONG.drop("task"), task=["a"])
    with pytest.raises(ValueError, match="row 3: a task is missing"):
        predictor.score_samples(LONG[:4].with_columns(task=pl.Series(["a", "b", "a", None])))
    model, tables = by_task
    several = kinfolk.load(saved(model, tmp_path / "several.kin"))
    with pytest.raises(ValueError, match="fitted to 3 tasks"):
        several.score_samples(tables["b"].with_columns(asia=pl.lit("yes")).select(several.feature_names_in_))
    with pytest.raises(ValueError, match="task 1: column 'nothing' was not there in training"):
        several.score_samples({1: tables[1].with_columns(nothing=1)})
    with pytest.raises(ValueError, match="task 'zoe' is new, and no known task has all variables"):
        several.score_samples({"zoe": tables["b"]})


def assert_same_estimator(loaded, model):
    assert type(loaded) is BayesNets
    assert loaded.get_params() == model.get_params()
    assert loaded.tasks_.tolist() == model.tasks_.tolist()
    assert loaded.n_features_in_ == model.n_features_in_
    assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert (loaded.log_score_, loaded.strength_, loaded.penalty_) == (
        model.log_score_,
        model.strength_,
        model.penalty_,
    )
    assert list(loaded.graphs_) == list(model.graphs_)
    for task, graph in model.graphs_.items():
        assert nx.utils.graphs_equal(loaded.graphs_[task], graph)
        assert loaded.sample(5, task=task, random_state=3).equals(model.sample(5, task=task, random_state=3))


def test_a_loaded_estimator_knows_all_that_the_model_knew(long_form, long_file, tmp_path):
    loaded = kinfolk.load(long_file, estimator=True)
    assert_same_estimator(loaded, long_form)
    np.testing.assert_array_equal(loaded.score_samples(LONG), long_form.score_samples(LONG))
    assert loaded.arc_confidence_.equals(long_form.arc_confidence_)
    for model, name in ((loaded, "loaded.bif"), (long_form, "fitted.bif")):
        model.to_bif(tmp_path / name, task="b")
    assert (tmp_path / "loaded.bif").read_bytes() == (tmp_path / "fitted.bif").read_bytes()


def test_a_loaded_estimator_of_tasks_that_differ_knows_which_has_what(by_task, path):
    model, tables = by_task
    loaded = kinfolk.load(saved(model, path), estimator=True)
    assert_same_estimator(loaded, model)
    assert loaded.n_iter_ == model.n_iter_
    assert "xray" not in loaded.graphs_[1]
    assert loaded.score(tables) == model.score(tables)


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_curves_and_an_infinite_strength_are_saved(path, backend):
    table = LONG.to_pandas() if backend == "pandas" else LONG
    model = BayesNets(task_column="task", penalty="validate", tabu=0, random_state=0).fit(table)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    assert type(loaded.penalty_curve_) is type(model.penalty_curve_)
    assert loaded.penalty_curve_.equals(model.penalty_curve_)
    assert np.isinf(model.penalty_curve_["strength"].to_numpy()).any()
    model = BayesNets(task_column="task", penalty=1.0, random_state=0).fit(table)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    assert (loaded.strength_, loaded.penalty_) == (np.inf, 1.0)


def test_graphs_among_the_parameters_come_back_as_arcs_that_fit_the_same(path):
    expert = nx.DiGraph([("smoke", "lung"), ("smoke", "bronc")])
    model = BayesNets(
        penalty=0.5,
        prior="paired",
        start={"a": NETWORKS[0], "b": [("smoke", "bronc")]},
        required=nx.DiGraph([("smoke", "bronc")]),
        forbidden=[("xray", "dysp")],
        structure_prior=(expert, 0.3),
        task_penalty={("a", "b"): 0.9},
        costs={"reverse": 1.5},
        random_state=np.random.RandomState(4),
    ).fit(BY_TASK)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    assert loaded.required == [("smoke", "bronc")]
    assert loaded.forbidden == [("xray", "dysp")]
    assert loaded.structure_prior == (list(expert.edges), 0.3)
    assert set(loaded.start["a"]) == set(NETWORKS[0].graph().edges)
    assert loaded.start["b"] == [("smoke", "bronc")]
    assert loaded.task_penalty == {("a", "b"): 0.9}
    assert loaded.costs == {"reverse": 1.5}
    assert loaded.random_state == model._model.seed
    again = loaded.fit(BY_TASK)
    for task, graph in model.graphs_.items():
        assert set(again.graphs_[task].edges) == set(graph.edges)
    assert again.log_score_ == model.log_score_


def test_probabilities_and_penalties_of_arcs_are_saved_by_their_arcs(path):
    prior, penalties = {("smoke", "lung"): 0.9}, {("smoke", "lung"): 0.2}
    model = BayesNets(penalty=0.5, structure_prior=prior, arc_penalty=penalties).fit(BY_TASK)
    loaded = kinfolk.load(saved(model, path), estimator=True)
    assert (loaded.structure_prior, loaded.arc_penalty) == (prior, penalties)


def test_a_model_that_was_loaded_is_saved_again_byte_for_byte(long_form, by_task, path, tmp_path):
    for model in (long_form, by_task[0]):
        again = saved(kinfolk.load(saved(model, path), estimator=True), tmp_path / "again.kin")
        with zipfile.ZipFile(path) as first, zipfile.ZipFile(again) as second:
            assert first.namelist() == second.namelist()
            for name in first.namelist():
                assert first.read(name) == second.read(name), name


def test_a_model_that_learnt_nothing_is_not_saved(path):
    with pytest.raises(NotFittedError):
        kinfolk.save(BayesNets(), path)
    assert not path.exists()


# Damaged and hostile files.


@pytest.mark.parametrize("name", ["present", "arcs", "tables", "confidence.arcs", "confidence.shares"])
def test_arrays_of_the_wrong_shape_are_refused(long_file, name):
    whole = long_file.read_bytes()
    for kind, distorted in distortions(array_of(long_file, name)):
        if kind == "taken out" and name == "confidence.arcs":
            continue  # a model without resamples is a model
        long_file.write_bytes(whole)
        edited(long_file, arrays={name: distorted})
        assert_refused(long_file, "is damaged", estimator=True)
        if not name.startswith("confidence"):
            assert_refused(long_file, "is damaged")


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [*itertools.product(["arcs", "confidence.arcs"], range(3), [-1, 8, 2**31 - 1]), ("present", 0, 2)],
)
def test_places_that_do_not_exist_are_refused(long_file, name, column, value):
    array = array_of(long_file, name).copy()
    array[0, column] = value
    edited(long_file, arrays={name: array})
    assert_refused(long_file, "is damaged", estimator=True)
    if name != "confidence.arcs":
        assert_refused(long_file, "is damaged")


@pytest.mark.parametrize("share", [-0.1, 2.0])
def test_a_confidence_that_is_no_share_is_refused(long_file, share):
    shares = array_of(long_file, "confidence.shares").copy()
    shares[0, 1] = share
    assert_refused(edited(long_file, arrays={"confidence.shares": shares}), "not a share from 0 to 1", estimator=True)


def test_an_arc_of_a_variable_that_its_task_lacks_is_refused(by_task, path):
    model, _ = by_task
    arcs = array_of(saved(model, path), "arcs").copy()
    arcs[0] = 0, model._model.schema.names.index("tub"), model._model.schema.names.index("xray")
    assert_refused(edited(path, arrays={"arcs": arcs}), "name variables that their task does not have")


def with_tables(file, change):
    tables = array_of(file, "tables").copy()
    change(tables)
    return edited(file, arrays={"tables": tables})


@pytest.mark.parametrize(
    "change",
    [
        lambda tables: tables.__setitem__(0, tables[0] + 1e-6),
        lambda tables: tables.__setitem__(slice(2), [1.5, -0.5]),
        lambda tables: tables.__setitem__(slice(2), [np.nan, 1.0]),
        lambda tables: tables.__setitem__(slice(2), [np.inf, 0.0]),
        lambda tables: tables.__setitem__(slice(None), 0.0),
    ],
    ids=["nearly one", "negative", "NaN", "infinite", "nothing"],
)
def test_tables_that_are_no_probabilities_are_refused(long_file, change):
    with_tables(long_file, change)
    assert_refused(long_file, "is damaged")
    assert_refused(long_file, "is damaged", estimator=True)


def two_variables(file, arcs, tables):
    """The saved model cut down to one task and two variables of two states."""
    story = json.loads(members_of(file)["model.json"])
    arrays = {"present": np.ones((1, 2), dtype=np.uint8), "arcs": np.array(arcs).reshape(-1, 3)}
    return edited(
        file,
        about={"tasks": ["a"], "schema": story["schema"][:2]},
        arrays={**arrays, "tables": np.array(tables), "confidence.arcs": None, "confidence.shares": None},
    )


def test_a_model_cut_down_to_two_variables_loads(long_file):
    """So that what the next test finds is the fault it put in."""
    assert kinfolk.load(two_variables(long_file, [(0, 0, 1)], [0.5] * 6)).networks_["a"].n_arcs == 1


@pytest.mark.parametrize(
    ("arcs", "tables", "told"),
    [
        ([(0, 0, 1), (0, 1, 0)], [0.5] * 8, "cycle: asia → tub → asia|cycle: tub → asia → tub"),
        ([(0, 0, 0)], [0.5] * 6, "'asia': its parents"),
        ([(0, 0, 1), (0, 0, 1)], [0.5] * 10, "'tub': its parents"),
        ([(0, 0, 1)], [0.5] * 5, "too few"),
        ([(0, 0, 1)], [0.5] * 8, "too many"),
    ],
)
def test_structures_that_cannot_be_are_refused(long_form, path, arcs, tables, told):
    assert_refused(two_variables(saved(long_form, path), arcs, tables), told)
    assert_refused(path, told, estimator=True)


def test_a_few_bytes_do_not_ask_for_much_memory(long_file):
    """Forty parents of one variable would need a table of 2⁴¹ cells, 20,000 variables a matrix of 4·10⁸ arcs."""
    schema = [{"name": str(v), "categories": [0, 1], "edges": None} for v in range(41)]
    story = {"tasks": ["a"], "schema": schema}
    arrays = {
        "present": np.ones((1, 41), dtype=np.uint8),
        "arcs": np.array([(0, v, 40) for v in range(40)]),
        "tables": np.full(1000, 0.5),
    }
    assert_refused(edited(long_file, about=story, arrays=arrays), "too few")
    story["schema"] = [{"name": str(v), "categories": [0, 1], "edges": None} for v in range(20_000)]
    arrays = {"present": np.ones((1, 20_000), dtype=np.uint8), "arcs": np.zeros((0, 3), dtype=int)}
    assert_refused(edited(long_file, about=story, arrays=arrays | {"tables": np.full(40_000, 0.5)}), "20000 variables")


BAD_STORIES = {
    "no tasks": {"tasks": []},
    "tasks a number": {"tasks": 3},
    "a task more": {"tasks": ["a", "b", "c", "d"]},
    "a task twice": {"tasks": ["a", "b", "b"]},
    "nested tasks": {"tasks": [["a"], ["b"], ["c"]]},
    "schema missing": {"schema": None},
    "schema empty": {"schema": []},
    "schema text": {"schema": "asia"},
    "parameters missing": {"params": None},
    "parameters a list": {"params": []},
}
BAD_ESTIMATORS = {
    "another estimator": {"estimator": "ClusteredNB"},
    "unknown parameter": {"params": {"task_column": None, "nonsense": 1}},
    "start without arcs": {"params": {"task_column": None, "start": 3}},
    "arcs of three": {"params": {"task_column": None, "required": [["a", "b", "c"]]}},
    "prior without a factor": {"params": {"task_column": None, "structure_prior": [[]]}},
    "unhashable keys": {"params": {"task_column": None, "costs": {"pairs": [[[["a"]], 1]]}}},
    "deep parameters": {"params": {"task_column": None, "bins": json.loads("[" * 700 + "]" * 700)}},
    "score text": {"log_score": "high"},
    "strength missing": {"strength": None},
    "backend unknown": {"backend": "os"},
    "names not text": {"feature_names_in": [1] * 9},
    "names too few": {"feature_names_in": ["asia"]},
    "half a curve": {"penalty_curve": [[1.0, 2.0], [1.0]]},
    "curve of one column": {"penalty_curve": [[1.0, 2.0]]},
    "curve of text": {"penalty_curve": [["a"], ["b"]]},
}


def test_a_model_under_the_name_of_another_kind_is_refused(long_file):
    assert_refused(edited(long_file, about={"family": "naive_bayes"}), "is damaged")


@pytest.mark.parametrize("kind", BAD_STORIES)
def test_a_story_that_does_not_fit_its_arrays_is_refused(long_file, kind):
    edited(long_file, about=BAD_STORIES[kind])
    assert_refused(long_file, "is damaged")
    assert_refused(long_file, "is damaged", estimator=True)


@pytest.mark.parametrize("kind", BAD_ESTIMATORS)
def test_an_estimator_that_cannot_be_is_refused(long_file, kind):
    edited(long_file, about=BAD_ESTIMATORS[kind])
    says = {"backend": "not a library of tables", "names": "the names of its columns", "half": "as many penalties"}
    assert_refused(long_file, f"is damaged.*{says.get(kind.split()[0], '')}", estimator=True)


@pytest.mark.parametrize(
    "column",
    [
        {"name": "asia", "categories": None, "edges": None},
        {"name": "asia", "categories": ["no", "yes"], "edges": [1.0]},
        {"name": "asia", "categories": ["no", "no"], "edges": None},
        {"name": "asia", "categories": ["no"], "edges": None},
        {"name": "asia", "categories": [["no"], ["yes"]], "edges": None},
        {"name": "asia", "categories": None, "edges": [2.0, 1.0]},
        {"name": "asia", "categories": None, "edges": [float("nan")]},
        {"name": "asia", "categories": None, "edges": [[1.0]]},
        {"name": "tub", "categories": ["no", "yes"], "edges": None},
        {"name": 3, "categories": ["no", "yes"], "edges": None},
        {"name": "asia"},
        "asia",
    ],
    ids=str,
)
def test_a_variable_that_cannot_be_is_refused(long_file, column):
    story = json.loads(members_of(long_file)["model.json"])
    edited(long_file, about={"schema": [column, *story["schema"][1:]]})
    assert_refused(long_file, "is damaged")
    assert_refused(long_file, "is damaged", estimator=True)


@pytest.mark.parametrize("estimator", [False, True])
def test_a_flipped_bit_is_noticed_or_does_no_harm(long_form, long_file, estimator):
    whole, rng = long_file.read_bytes(), np.random.default_rng(7)
    expected = long_form.score_samples(LONG)
    sentences = []
    for place in rng.integers(0, len(whole), 60):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        long_file.write_bytes(damaged)
        try:
            loaded = kinfolk.load(long_file, estimator=estimator)
        except ValueError as refusal:
            sentences.append(str(refusal))
        else:
            np.testing.assert_array_equal(loaded.score_samples(LONG), expected)
    assert len(sentences) > 30
    assert all(str(long_file) in sentence and "\n" not in sentence for sentence in sentences)
