"""Sequences as a list of arrays or frames, as a long table, and end to end: one model, the same answers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kinfolk
from kinfolk import NestedIHMM, SharedIHMM, SingleIHMM

SMALL = {"n_states": 3, "n_chains": 1, "n_burn_in": 2, "n_draws": 2, "random_state": 0}
LENGTHS = [4, 6, 5, 5]
TASK = ["ann", "bob", "ann", "bob"]
rng = np.random.default_rng(0)
TABLE = pd.DataFrame({"tone": rng.choice(list("abc"), 20), "loud": rng.normal(size=20).round(2)})
ENDS = np.cumsum(LENGTHS)
PARTS = [TABLE.iloc[end - n : end] for n, end in zip(LENGTHS, ENDS, strict=True)]
LONG = TABLE.assign(clip=np.repeat(["w", "x", "y", "z"], LENGTHS), who=np.repeat(TASK, LENGTHS))


def answers(model, *given, **task):
    return [ask(*given, **task) for ask in (model.score_samples, model.predict, model.predict_proba, model.score)]


@pytest.fixture(scope="module")
def fitted():
    return NestedIHMM(n_clusters=2, **SMALL).fit(TABLE, LENGTHS, task=TASK)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [list, tuple, lambda parts: [pl.from_pandas(part) for part in parts]])
def test_a_list_of_frames_is_sequences_end_to_end(make, fitted, tmp_path):
    parts = make(PARTS)
    model = NestedIHMM(n_clusters=2, **SMALL).fit(parts, task=TASK)
    kinfolk.save(model, tmp_path / "m.kin")
    wanted = answers(fitted, TABLE, LENGTHS, task=TASK)
    for answering in (model, kinfolk.load(tmp_path / "m.kin")):
        for found, want in zip(answers(answering, parts, task=TASK), wanted, strict=True):
            np.testing.assert_allclose(found, want, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [NestedIHMM, SharedIHMM, SingleIHMM])
def test_a_long_table_with_columns_of_sequences_and_tasks_is_sequences_end_to_end(estimator, tmp_path):
    plain = estimator(**SMALL).fit(TABLE, LENGTHS, task=TASK)
    model = estimator(task_column="who", sequence_column="clip", **SMALL).fit(LONG)
    assert model.tasks_.tolist() == ["ann", "bob"]
    kinfolk.save(model, tmp_path / "m.kin")
    wanted = answers(plain, TABLE, LENGTHS, task=TASK)
    for answering in (model, kinfolk.load(tmp_path / "m.kin"), kinfolk.load(tmp_path / "m.kin", estimator=True)):
        for found, want in zip(answers(answering, LONG), wanted, strict=True):
            np.testing.assert_allclose(found, want, atol=1e-9)
        # Told beside the table, neither need stand in it; a list tells lengths.
        for given in ((TABLE, LENGTHS), (PARTS,)):
            np.testing.assert_allclose(answering.score_samples(*given, task=TASK), wanted[0], atol=1e-9)
        np.testing.assert_allclose(answering.classify(LONG), plain.classify(TABLE, LENGTHS), atol=1e-9)
        np.testing.assert_allclose(answering.classify(PARTS), plain.classify(TABLE, LENGTHS), atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_list_of_flat_arrays_is_sequences_and_columns_by_place_are_found():
    tones = TABLE["tone"].to_numpy(dtype=object)
    plain = SharedIHMM(**SMALL).fit(tones, LENGTHS, task=TASK)
    listed = SharedIHMM(**SMALL).fit(np.split(tones, ENDS[:-1]), task=TASK)
    by_place = SharedIHMM(task_column=2, sequence_column=0, **SMALL).fit(LONG[["clip", "tone", "who"]].to_numpy())
    wanted = plain.score_samples(tones, LENGTHS, task=TASK)
    np.testing.assert_allclose(listed.score_samples(np.split(tones, ENDS[:-1]), task=TASK), wanted)
    np.testing.assert_allclose(by_place.score_samples(LONG[["clip", "tone", "who"]].to_numpy()), wanted)
    np.testing.assert_allclose(by_place.score_samples(tones, LENGTHS, task=TASK), wanted)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_frame_keeps_the_categories_it_declares_beside_other_columns():
    wide = LONG.assign(tone=pd.Categorical(LONG["tone"], categories=list("abcd")))[["clip", "who", "tone"]]
    model = SharedIHMM(task_column="who", sequence_column="clip", **SMALL).fit(wide)
    assert model.emission_.n_codes == 4


WRONG = {
    "widths": ([np.zeros((3, 2)), np.zeros((3, 1))], {}, "sequence 1 has 1 column, and sequence 0 has 2 columns"),
    "names": ([PARTS[0], PARTS[1].rename(columns={"tone": "x"})], {}, "sequence 1 has columns .*'x'.*same order"),
    "kinds": ([PARTS[0], np.zeros((3, 2))], {}, "number 0 is a DataFrame and number 1 a ndarray"),
    "empty": ([PARTS[0], PARTS[0][:0]], {}, "sequence 1 has no steps"),
    "both": (PARTS, {"lengths": LENGTHS}, "lengths= was given too"),
    "too deep": ([np.zeros((3, 2, 2))], {}, "3 dimensions"),
}


@pytest.mark.parametrize("name", WRONG)
def test_lists_that_are_no_sequences_get_one_sentence_in_fit_and_after_it(name, fitted):
    X, options, sentence = WRONG[name]
    with pytest.raises(ValueError, match=sentence):
        NestedIHMM(**SMALL).fit(X, **options)
    with pytest.raises(ValueError, match=sentence):
        fitted.score_samples(X, task=["ann"] * len(X), **options)


def test_long_tables_that_do_not_say_where_sequences_are_get_one_sentence():
    model = NestedIHMM(task_column="who", sequence_column="clip", **SMALL)
    with pytest.raises(ValueError, match=r"rows of sequence 'w' do not follow each other \(row 20\): sort the table"):
        model.fit(pd.concat([LONG, LONG[:1]]))
    with pytest.raises(ValueError, match=r"rows of sequence 'w' do not follow each other \(row 10\)"):
        model.fit(LONG.assign(clip="w"))
    with pytest.raises(ValueError, match="sequence 0 has rows of task 'ann' and of task 'bob'"):
        NestedIHMM(task_column="who", **SMALL).fit(LONG.drop(columns="clip"), [10, 10])
    with pytest.raises(ValueError, match="row 2: a sequence is missing"):
        model.fit(LONG.assign(clip=[None if i == 2 else c for i, c in enumerate(LONG["clip"])]))
    with pytest.raises(ValueError, match="lengths= and sequence_column='clip' were both given"):
        model.fit(LONG, LENGTHS)
    with pytest.raises(ValueError, match="nowhere"):
        NestedIHMM(sequence_column="nowhere", **SMALL).fit(LONG)


def test_a_forecast_says_what_it_is(fitted):
    told = repr(fitted.forecast(PARTS[:2], task=TASK[:2], n_steps=3, n_samples=7, random_state=0))
    assert told.startswith("<Forecast of 2 sequences, 3 steps ahead, 7 draws; next in the first: tone: '")
    assert "; loud: " in told
    assert " ± " in told
    assert (
        repr(fitted.forecast(TABLE[:0], task=[], random_state=0))
        == "<Forecast of 0 sequences, 1 step ahead, 1000 draws>"
    )


SHUFFLED = LONG.assign(at=np.arange(20.0)).sample(frac=1.0, random_state=0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_in_any_order_are_sequences_where_a_column_tells_it(tmp_path):
    options = {"task_column": "who", "sequence_column": "clip", **SMALL}
    plain = SharedIHMM(**options).fit(LONG)
    model = SharedIHMM(order_column="at", **options).fit(SHUFFLED.sort_values("clip"))
    kinfolk.save(model, tmp_path / "m.kin")
    for answering in (model, kinfolk.load(tmp_path / "m.kin"), kinfolk.load(tmp_path / "m.kin", estimator=True)):
        # Sequences come in the order in which they are met, steps in that of the rows.
        met = list(dict.fromkeys(SHUFFLED["clip"]))
        of_clip = dict(zip("wxyz", plain.score_samples(LONG), strict=True))
        np.testing.assert_allclose(answering.score_samples(SHUFFLED), [of_clip[clip] for clip in met], atol=1e-9)
        np.testing.assert_array_equal(answering.predict(SHUFFLED), plain.predict(LONG)[SHUFFLED.index])
        proba = plain.predict_proba(LONG)[SHUFFLED.index]
        np.testing.assert_allclose(answering.predict_proba(SHUFFLED), proba, atol=1e-9)
        # Told with their lengths, steps stand in their order.
        np.testing.assert_allclose(answering.score_samples(PARTS, task=TASK), list(of_clip.values()), atol=1e-9)
    found = model.segments(SHUFFLED)
    assert list(dict.fromkeys(found["sequence"])) == met
    wanted = plain.segments(LONG)
    for clip in met:
        for name in ("start", "stop", "state", "task"):
            assert found[name][found["sequence"] == clip].tolist() == wanted[name][wanted["sequence"] == clip].tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sequences_are_told_apart_within_tasks_and_tasks_are_sequences_without_them():
    numbered = LONG.assign(clip=np.repeat([1, 1, 2, 2], LENGTHS))
    model = SharedIHMM(task_column="who", sequence_column="clip", **SMALL).fit(numbered)
    np.testing.assert_allclose(
        model.score_samples(numbered),
        SharedIHMM(**SMALL).fit(TABLE, LENGTHS, task=TASK).score_samples(TABLE, LENGTHS, task=TASK),
    )
    by_task = LONG.sort_values("who", kind="stable").drop(columns="clip")
    model = SharedIHMM(task_column="who", **SMALL).fit(by_task)
    assert len(model.score_samples(by_task)) == 2
    with pytest.raises(ValueError, match=r"rows of task 'ann' do not follow each other \(row 10\).*or --order"):
        SharedIHMM(task_column="who", **SMALL).fit(LONG.drop(columns="clip"))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_places_in_sequences_that_do_not_tell_an_order_are_told():
    model = SharedIHMM(task_column="who", sequence_column="clip", order_column="at", **SMALL)
    with pytest.raises(ValueError, match="order column 'at', row 3: a place in its sequence is missing"):
        model.fit(LONG.assign(at=[None if i == 3 else float(i) for i in range(20)]))
    with pytest.raises(ValueError, match="order column 'at' has int and str"):
        model.fit(LONG.assign(at=[*range(19), "x"]))
    with pytest.raises(ValueError, match="at"):
        model.fit(LONG)
    with pytest.warns(UserWarning, match="rows 4 and 5 are of one sequence and both have 7: such rows"):
        model.fit(LONG.assign(at=[7 if i in (4, 5) else i + 20 for i in range(20)]))
    with pytest.warns(UserWarning, match="rows 1 and 2 .* both have 7, the first of 2 such pairs"):
        model.fit(LONG.assign(at=[7 if i in (1, 2, 3) else i + 20 for i in range(20)]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_are_numbered_as_they_stand_in_the_table_wherever_a_column_puts_them():
    backwards = LONG.iloc[::-1].assign(at=np.arange(20.0)[::-1])
    backwards["level"] = np.linspace(0.0, 1.0, 20)
    options = {"task_column": "who", "sequence_column": "clip", "order_column": "at", **SMALL}
    # In text, as of a file's column, all numbers before it are text as well.
    wrong = backwards.assign(level=["much" if i == 3 else str(level) for i, level in enumerate(backwards["level"])])
    with pytest.raises(ValueError, match="column 'level', row 3: 'much' is no number"):
        SharedIHMM(emission=["categorical"] * (backwards.shape[1] - 4) + ["gaussian"], **options).fit(wrong)
    model = SharedIHMM(**options).fit(backwards)
    with pytest.raises(ValueError, match="column 'level', row 3: 'much' is not a number"):
        model.predict(wrong)
    with pytest.raises(ValueError, match="column 'level', row 2: -1 is not a count"):
        SharedIHMM(emission=["categorical"] * (backwards.shape[1] - 4) + ["poisson"], **options).fit(
            backwards.assign(level=[-1 if i == 2 else 4 for i in range(20)])
        )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_dates_tell_an_order(make):
    options = {"task_column": "who", "sequence_column": "clip", **SMALL}
    days = SHUFFLED.assign(at=pd.Timestamp("2026-01-01") + pd.to_timedelta(SHUFFLED["at"], unit="D"))
    model = SharedIHMM(order_column="at", **options).fit(make(days))
    by_number = SharedIHMM(order_column="at", **options).fit(SHUFFLED)
    np.testing.assert_array_equal(model.predict(make(days)), by_number.predict(SHUFFLED))
    with pytest.raises(ValueError, match="order column 'at', row 1: a place in its sequence is missing"):
        model.predict(make(days.assign(at=[pd.NaT if i == 1 else day for i, day in enumerate(days["at"])])))
    with pytest.raises(ValueError, match="column 'at' holds dates or times"):
        SharedIHMM(**options).fit(make(days.sort_values("at")))


def test_ragged_lists_of_lists_are_told_to_be_written_as_arrays(fitted):
    ragged = [["a", "b"], ["a"]]
    for ask in (NestedIHMM(**SMALL).fit, fitted.score_samples):
        with pytest.raises(ValueError, match="number 0 of 2 and number 1 of 1 values"):
            ask(ragged, task=["ann", "bob"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_answers_about_steps_stand_in_the_order_of_the_table():
    runs = pd.DataFrame({"who": np.repeat(["ann", "bob"], 24), "at": np.tile(np.arange(24), 2)})
    runs["tone"] = np.where(runs["at"] // 6 % 2 == 0, "a", "b")
    model = SharedIHMM(task_column="who", order_column="at", inference="variational", n_states=3, random_state=0).fit(
        runs
    )
    shuffled = runs.sample(frac=1.0, random_state=3)
    for decoding in ("viterbi", "marginal"):
        found = model.predict(shuffled, decoding=decoding)
        assert pd.crosstab(found, shuffled["tone"].to_numpy()).to_numpy().tolist() in (
            [[24, 0], [0, 24]],
            [[0, 24], [24, 0]],
        )
    np.testing.assert_array_equal(model.predict_proba(shuffled).argmax(axis=1), found)
