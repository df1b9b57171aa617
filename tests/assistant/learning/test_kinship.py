"""What a team's model says, against closed forms, against kinfolk's own predictors, and at the edges of its data."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from scipy.cluster.hierarchy import is_valid_linkage

import kinfolk
from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk.plots import tree
from kinfolk_assistant.learning import fitting
from kinfolk_assistant.learning.costs import Costs
from kinfolk_assistant.learning.judging import judge
from kinfolk_assistant.learning.kinship import Kinship
from kinfolk_assistant.learning.tempering import temper_after
from tests.assistant.learning.made_up import request, rows_by_rule, team_rows

ANN = "ann@example.org"


@pytest.fixture(scope="module")
def team() -> pl.DataFrame:
    return team_rows(6, 25, 1, unlabelled=0.1)


@pytest.fixture(scope="module")
def model(team: pl.DataFrame) -> Kinship:
    return Kinship.fit(team)


def loaded(model: Kinship, folder: Path) -> Any:
    path = folder / "model"
    path.write_bytes(model.to_bytes())
    return kinfolk.load(path, estimator=True)


def tempered(estimator: Any, power: float) -> Any:
    """The estimator with one power for all features."""
    fit = estimator._result
    return estimator._keep(fit._replace(hyper=fit.hyper._replace(temper=np.full(len(MEETING_FEATURES), power))))


def temper_of(user: str, rows: pl.DataFrame) -> float:
    return float(temper_after(len(rows.filter(pl.col("user") == user)["answer"].drop_nulls())))


def log_odds(probability: float | None) -> float:
    assert probability is not None
    return log(probability / (1.0 - probability))


def naive_bayes_by_hand(rows: pl.DataFrame, values: dict[str, str | None]) -> tuple[float, dict[str, float]]:
    """Log odds of one person's habit and of each feature, from that person's labelled rows alone."""
    strength = fitting.LABEL_PRIOR
    count = {answer: int((rows["answer"] == answer).sum()) for answer in ("accept", "decline")}
    share = (count["accept"] + strength / 2) / (len(rows) + strength)
    habit = log((count["accept"] + strength * share) / (count["decline"] + strength * (1 - share)))
    ratios = {}
    for name, value in values.items():
        if value is None:
            continue
        seen = rows.filter(pl.col(name).is_not_null())
        of_all = (int((seen[name] == value).sum()) + 1) / (len(seen) + len(MEETING_FEATURES[name]))
        rate = {}
        for answer in count:
            given = seen.filter(pl.col("answer") == answer)
            hits = int((given[name] == value).sum())
            rate[answer] = (hits + fitting.FEATURE_PRIOR * of_all) / (len(given) + fitting.FEATURE_PRIOR)
        ratios[name] = float(temper_after(len(rows))) * log(rate["accept"] / rate["decline"])
    # A feature that is as common under both answers is no reason.
    return habit, {name: ratio for name, ratio in ratios.items() if abs(ratio) > 1e-12}


@pytest.mark.parametrize(
    "values",
    [
        request(),
        request(conflict="yes"),
        request(conflict="no", duration="longer", start_time="late"),
        {name: values[-1] for name, values in MEETING_FEATURES.items()},
    ],
)
def test_for_one_person_probability_and_reasons_are_those_of_tempered_naive_bayes_by_hand(
    values: dict[str, str | None],
) -> None:
    rows = rows_by_rule(ANN, 30, 3, "conflict", ("no",))
    # A few values that are not known, so that counts differ between features.
    rows = rows.with_columns(duration=pl.when(pl.int_range(pl.len()) % 4 > 0).then("duration"))
    model = Kinship.fit(rows)
    habit, ratios = naive_bayes_by_hand(rows, values)
    reasons = model.reasons(values, ANN, n=15)
    assert {reason.feature: reason.log_ratio for reason in reasons} == pytest.approx(ratios)
    assert log_odds(model.probability(values, ANN)) == pytest.approx(habit + sum(ratios.values()))


def test_probabilities_are_those_of_kinfolks_own_estimator_for_members_and_newcomers(
    model: Kinship, team: pl.DataFrame, tmp_path: Path
) -> None:
    estimator = loaded(model, tmp_path)
    some = team[::10].select(*MEETING_FEATURES)
    for user in [*model.users, "newcomer@example.org"]:
        tempered(estimator, temper_of(user, team))
        expected = estimator.predict_proba(some, task=[user] * len(some))[:, 0]
        found = [model.probability(row, user) for row in some.iter_rows(named=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_reasons_are_the_weightiest_of_kinfolks_own_explanation(
    model: Kinship, team: pl.DataFrame, tmp_path: Path
) -> None:
    estimator = loaded(model, tmp_path)
    some = team[::40]
    for row, user in enumerate(some["user"].to_list()):
        tempered(estimator, temper_of(user, team))
        request_alone = some[row].select(*MEETING_FEATURES)
        values = request_alone.row(0, named=True)
        table = estimator.explain(request_alone, task=[user]).table(label="accept").head(3)
        found = model.reasons(values, user)
        assert [reason.feature for reason in found] == table["feature"].to_list()
        assert [reason.value for reason in found] == table["value"].to_list()
        np.testing.assert_allclose([reason.log_ratio for reason in found], table["log_odds"].to_numpy(), rtol=1e-9)


def test_a_value_that_is_not_known_is_never_a_reason(model: Kinship) -> None:
    found = model.reasons(request(conflict="yes", duration="15"), model.users[0], n=15)
    assert {reason.feature for reason in found} == {"conflict", "duration"}


def test_a_missing_feature_counts_like_one_that_is_none(model: Kinship) -> None:
    user = model.users[0]
    assert model.probability({"conflict": "yes"}, user) == model.probability(request(conflict="yes"), user)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"conflict": "maybe"}, r"^Feature 'conflict' is 'maybe'; it needs to be one of 'no', 'yes', or None\.$"),
        ({"colour": "red"}, r"^Feature 'colour' is not one of the model's: start_time, "),
    ],
)
def test_a_value_outside_the_features_is_refused_by_name(model: Kinship, values: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        model.probability(values, model.users[0])
    with pytest.raises(ValueError, match=sentence):
        model.reasons(values, model.users[0])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (pl.lit("maybe").alias("conflict"), r"Column 'conflict', row 0 is 'maybe'; it needs to be one of 'no', 'yes'"),
        (pl.lit("reject").alias("answer"), r"Column 'answer', row 0 is 'reject'; it needs to be one of 'accept'"),
        (pl.lit(None).cast(pl.String).alias("user"), r"Column 'user', row 0 is null; every row needs the user"),
    ],
)
def test_a_row_that_cannot_be_learnt_from_is_refused_by_its_column(change: pl.Expr, sentence: str) -> None:
    rows = rows_by_rule(ANN, 3, 0, "conflict", ("no",))
    with pytest.raises(ValueError, match=sentence):
        Kinship.fit(rows.with_columns(change))


def test_rows_without_a_column_are_refused() -> None:
    with pytest.raises(ValueError, match="The rows have no column 'location'; they need the fifteen features"):
        Kinship.fit(rows_by_rule(ANN, 3, 0, "conflict", ("no",)).drop("location"))


def test_the_order_of_rows_and_columns_changes_nothing_at_all(model: Kinship, team: pl.DataFrame) -> None:
    shuffled = team.sample(fraction=1.0, shuffle=True, seed=5).select(sorted(team.columns))
    again = Kinship.fit(shuffled)
    assert again.users == model.users
    np.testing.assert_array_equal(again.similarity()[1], model.similarity()[1])
    for row in team[::15].iter_rows(named=True):
        values = {name: row[name] for name in MEETING_FEATURES}
        assert again.probability(values, row["user"]) == model.probability(values, row["user"])


def test_new_names_for_the_users_change_no_probability(model: Kinship, team: pl.DataFrame) -> None:
    named = {user: f"{9 - i}-{user}" for i, user in enumerate(model.users)}
    renamed = Kinship.fit(team.with_columns(user=pl.col("user").replace_strict(named)))
    for row in team[::15].iter_rows(named=True):
        values = {name: row[name] for name in MEETING_FEATURES}
        assert renamed.probability(values, named[row["user"]]) == pytest.approx(
            model.probability(values, row["user"]), rel=1e-9
        )


def test_an_archive_gives_back_the_same_model(model: Kinship) -> None:
    again = Kinship.from_bytes(model.to_bytes())
    values, user = request(conflict="yes", duration="15"), model.users[2]
    assert again.to_bytes() == model.to_bytes()
    assert again.probability(values, user) == model.probability(values, user)
    assert again.reasons(values, user) == model.reasons(values, user)
    assert again.kin(user) == model.kin(user)


def test_bytes_that_are_no_model_of_a_team_are_refused_in_one_sentence(model: Kinship, tmp_path: Path) -> None:
    path = tmp_path / "alien"
    kinfolk.save(kinfolk.NoSharingNB().fit([["a"], ["b"]], ["accept", "decline"], task=["x", "y"]), path)
    whole = model.to_bytes()
    for data in (b"PK", b"not a model", whole[: len(whole) // 2], path.read_bytes()):
        with pytest.raises(ValueError, match=r"^The stored model is [^\n]*$"):
            Kinship.from_bytes(data)


@pytest.mark.parametrize("n", [0, 5])
def test_without_a_single_answer_nothing_is_learnt_and_the_user_is_asked(n: int) -> None:
    rows = rows_by_rule(ANN, 5, 0, "conflict", ("no",)).head(n).with_columns(answer=pl.lit(None, dtype=pl.String))
    model = Kinship.from_bytes(Kinship.fit(rows).to_bytes())
    assert model.probability(request(conflict="no"), ANN) is None
    assert model.reasons(request(conflict="no"), ANN) == []
    assert model.kin(ANN) == []
    assert model.similarity()[1].shape == (0, 0)
    assert model.tree() is None
    assert judge(model, request(conflict="no"), ANN, Costs(ask=50.0)).action == "ask"


def test_where_nobody_has_ever_declined_only_the_habit_counts_however_strange_a_request_is() -> None:
    rows = rows_by_rule(ANN, 40, 0, "conflict", ("no", "yes")).with_columns(pl.lit("15").alias("duration"))
    model = Kinship.fit(rows)
    habit, _ = naive_bayes_by_hand(rows, {})
    for values in (request(), request(duration="15"), request(duration="longer", conflict="yes")):
        assert log_odds(model.probability(values, ANN)) == pytest.approx(habit)
        assert model.reasons(values, ANN) == []


def test_kin_are_those_who_answer_alike_the_nearest_first_and_never_oneself() -> None:
    early = [rows_by_rule(f"early{i}@example.org", 60, i, "conflict", ("no",)) for i in range(3)]
    late = [rows_by_rule(f"late{i}@example.org", 60, 10 + i, "duration", ("60", "longer")) for i in range(2)]
    model = Kinship.fit(pl.concat([*early, *late]))
    assert [one.user for one in model.kin("early1@example.org")] == ["early0@example.org", "early2@example.org"]
    assert [one.user for one in model.kin("late0@example.org")] == ["late1@example.org"]
    assert model.kin("early0@example.org", n=1) == model.kin("early0@example.org")[:1]
    assert model.kin("nobody@example.org") == []


def test_kin_and_similarity_tell_the_same(model: Kinship) -> None:
    users, similarity = model.similarity()
    np.testing.assert_array_equal(np.diag(similarity), 1.0)
    np.testing.assert_array_equal(similarity, similarity.T)
    for place, user in enumerate(users):
        kin = model.kin(user)
        assert [one.similarity for one in kin] == sorted((one.similarity for one in kin), reverse=True)
        for one in kin:
            assert one.similarity == pytest.approx(similarity[place, users.index(one.user)])
        assert len(kin) == int((similarity[place] >= 0.05).sum()) - 1


def test_the_tree_is_one_that_kinfolk_draws_with_kin_joined_lowest() -> None:
    rows = [rows_by_rule(f"early{i}@example.org", 60, i, "conflict", ("no",)) for i in range(2)]
    rows.append(rows_by_rule("late@example.org", 60, 9, "duration", ("60", "longer")))
    model = Kinship.fit(pl.concat(rows))
    merges = model.tree()
    assert merges is not None
    assert is_valid_linkage(merges)
    assert merges[0, :2].tolist() == [0, 1]
    _, similarity = model.similarity()
    assert merges[0, 2] == pytest.approx(-log(similarity[0, 1]))
    # Never together in any draw: as far apart as one draw in the next could tell.
    assert merges[1, 2] == pytest.approx(log(fitting.CHAINS["n_chains"] * fitting.CHAINS["n_draws"] + 1))
    plt.close(tree(merges, model.users).figure)


def test_one_person_has_no_tree_and_no_kin() -> None:
    model = Kinship.fit(rows_by_rule(ANN, 5, 0, "conflict", ("no",)))
    assert model.tree() is None
    assert model.kin(ANN) == []
    assert model.similarity()[1].tolist() == [[1.0]]


def test_requests_without_an_answer_say_whose_kin_a_newcomer_is() -> None:
    # Two groups that get different requests and answer the same question in opposite ways.
    teams = []
    for i in range(3):
        for group, job in (("a", "student"), ("b", "officer")):
            rows = rows_by_rule(f"{group}{i}@example.org", 60, 2 * i, "conflict", ("no",) if group == "a" else ("yes",))
            teams.append(rows.with_columns(invitee_job=pl.lit(job).cast(pl.Enum(MEETING_FEATURES["invitee_job"]))))
    new = rows_by_rule(ANN, 60, 50, "conflict", ("no",)).with_columns(
        invitee_job=pl.lit("student").cast(pl.Enum(MEETING_FEATURES["invitee_job"])),
        answer=pl.lit(None, dtype=pl.String),
    )
    model = Kinship.fit(pl.concat([*teams, new]))
    assert {one.user[0] for one in model.kin(ANN) if one.similarity > 0.5} == {"a"}
    knowing, unknown = (model.probability(request(conflict="yes"), user) for user in (ANN, "other@example.org"))
    assert knowing is not None
    assert unknown is not None
    assert knowing < unknown


def test_newcomers_with_five_answers_are_predicted_better_than_alone_and_than_from_everybody_alike() -> None:
    rows = team_rows(21, 80, 6)
    names = rows["user"].unique().sort().to_list()
    is_new = pl.col("user").is_in(names[::3])
    few = rows.filter(is_new).group_by("user", maintain_order=True).head(5).select(rows.columns)
    asked = rows.filter(is_new).group_by("user", maintain_order=True).tail(40).select(rows.columns)
    known = pl.concat([rows.filter(~is_new), few])
    accepts = (asked["answer"] == "accept").to_numpy()
    features = list(MEETING_FEATURES)

    def surprise(probability: Any) -> float:
        return float(-np.log(np.where(accepts, probability, 1 - np.asarray(probability))).mean())

    others = {
        kind.__name__: kind(label_prior=1.0, feature_prior=1.0, temper=1.0)
        .fit(known.select(features), known["answer"].to_list(), task=known["user"].to_list())
        .predict_proba(asked.select(features), task=asked["user"].to_list())[:, 0]
        for kind in (kinfolk.NoSharingNB, kinfolk.CompleteSharingNB)
    }
    model = Kinship.fit(known)
    judged = [judge(model, {name: row[name] for name in features}, row["user"], Costs()) for row in asked.to_dicts()]
    ours = surprise([one.probability for one in judged])
    assert ours < log(2)
    assert ours < min(surprise(probability) for probability in others.values()) - 0.1
    # Answering must not cost much more than always asking, even where little is known.
    lost = [
        0.1 if one.action == "ask" else float(one.action != answer)
        for one, answer in zip(judged, asked["answer"], strict=True)
    ]
    assert np.mean(lost) < 0.11
